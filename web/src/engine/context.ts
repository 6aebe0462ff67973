import { createContext } from 'svelte'
import type { Engine } from './engine'

export const [useEngine, provideEngine] = createContext<Engine>()
