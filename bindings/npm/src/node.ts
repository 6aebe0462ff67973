// The package in Node, which reads the modules from disk.
import { readFile } from 'node:fs/promises'
import { Engine } from './engine.js'
import { Reader } from './reader.js'
export * from './engine.js'
export * from './reader.js'
export { PosencError, type Compiled, type Fetched, type Wasm } from './memory.js'

/** All that computes. */
export const load = async () => Engine.load(await readFile(new URL('./posenc.wasm', import.meta.url)))
/** The readers of models' files and the doctor, three times as large. */
export const loadReader = async () => Reader.load(await readFile(new URL('./posenc-models.wasm', import.meta.url)))
