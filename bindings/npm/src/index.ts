// The package in browsers. The modules lie beside this file, and are fetched when they are asked for.
import { Engine } from './engine.js'
import { Reader } from './reader.js'
export * from './engine.js'
export * from './reader.js'
export { PosencError, type Compiled, type Fetched, type Wasm } from './memory.js'

/** All that computes. */
export const load = () => Engine.load(fetch(new URL('./posenc.wasm', import.meta.url)))
/** The readers of models' files and the doctor, three times as large. */
export const loadReader = () => Reader.load(fetch(new URL('./posenc-models.wasm', import.meta.url)))
