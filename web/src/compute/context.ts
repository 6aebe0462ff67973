import { createContext } from 'svelte'
import type { Engine, Reader } from 'posenc'

export const [useEngine, provideEngine] = createContext<Engine>()
export const [useReader, provideReader] = createContext<() => Promise<Reader>>()
