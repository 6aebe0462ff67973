import { createContext } from 'svelte'
import type { Engine } from './engine'
import type { Reader } from './reader'

export const [useEngine, provideEngine] = createContext<Engine>()
export const [useReader, provideReader] = createContext<() => Promise<Reader>>()
