// The readers of model files. They are a module of their own, twice the engine's size: it is fetched when a model is.
import type { PlanInfo, Scheme } from './engine.ts'
import { Memory, type Wasm } from './memory.ts'

export class Reader {
  private readonly memory: Memory
  private constructor(memory: Memory) {
    this.memory = memory
  }
  static async load(wasm: Wasm): Promise<Reader> {
    return new Reader(await Memory.of(wasm))
  }

  // A config.json, a params.json or (the front of) a GGUF.
  read(bytes: Uint8Array, name: string): Model {
    return new Model(this.memory, this.memory.make('posenc_model_read', bytes, bytes.length, name))
  }

  bundled(): { name: string; about: string }[] {
    return this.memory.json('posenc_models_json')
  }
  bundledModel(name: string): Model {
    return new Model(this.memory, this.memory.make('posenc_model_open', name))
  }
}

export class Model {
  private readonly memory: Memory
  private readonly handle: number
  constructor(memory: Memory, handle: number) {
    this.memory = memory
    this.handle = handle
  }
  free(): void {
    this.memory.call_void('posenc_model_free', this.handle)
  }
  // What `posenc explain --json` prints (docs/json.md).
  explain(at = 0): Explained {
    return this.memory.json('posenc_model_explain_json', this.handle, BigInt(at), -1n)
  }
}

// docs/json.md.
export type Group = {
  stack: string
  label: string
  layers: number[]
  head_dim: number
  heads: number
  scheme: Scheme | null
  plan: PlanInfo
  valid: { from: number; to: number | null } | null
  heading: string
  words: string[]
  amplitude_note: string
  logits_note: string
  sink_logits: boolean
}
export type Explained = {
  model: string
  family: string
  context: number | null
  trained_context: number | null
  words: string[]
  groups: Group[]
  warnings: { code: string; message: string }[]
}
