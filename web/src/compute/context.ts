import { createContext } from 'svelte'
import type { Engine } from 'posenc'
import type { Reader } from 'posenc/reader'

export const [useEngine, provideEngine] = createContext<Engine>()
export const [useReader, provideReader] = createContext<() => Promise<Reader>>()
