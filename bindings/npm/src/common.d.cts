import type { Engine, Reader } from './node.js' with { 'resolution-mode': 'import' }

/** All that computes. */
export declare function load(): Promise<Engine>
/** The readers of models' files and the doctor, three times as large. */
export declare function loadReader(): Promise<Reader>
