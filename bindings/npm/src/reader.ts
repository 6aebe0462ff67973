// The readers of model files. They are a module of their own, twice the engine's size: it is fetched when a model is.
import { Plan, type PlanInfo, type Scheme } from './engine.js'
import { Memory, type Wasm } from './memory.js'

export class Reader {
  private readonly memory: Memory
  private constructor(memory: Memory) {
    this.memory = memory
  }
  static async load(wasm: Wasm): Promise<Reader> {
    return new Reader(await Memory.of(wasm))
  }

  /** A config.json, a params.json or (the front of) a GGUF. */
  read(bytes: Uint8Array, name: string): Model {
    return new Model(this.memory, this.memory.make('posenc_model_read', bytes, bytes.length, name))
  }

  bundled(): { name: string; about: string }[] {
    return this.memory.json('posenc_models_json')
  }
  /** The profiles of engines, the newest version of each first. */
  engines(): Profile[] {
    return this.memory.json('posenc_engines_json')
  }
  /**
   * What is wrong with position, as `posenc doctor --json` has it (docs/doctor.md). The first model is what should run; all
   * else is a run of it. A string is a bundled name or a command line; a file is told by its content.
   */
  doctor(evidence: Evidence[], { engines = [], at = 0 }: { engines?: string[]; at?: number } = {}): Diagnosis {
    const { memory } = this
    const doctor = memory.make('posenc_doctor_new')
    try {
      for (const one of evidence)
        if (typeof one === 'string') memory.call('posenc_doctor_tell', doctor, one, 0, 0)
        else memory.call('posenc_doctor_tell', doctor, one.name, one.bytes, one.bytes.length)
      return memory.json('posenc_doctor_json', doctor, engines.join(), BigInt(at))
    } finally {
      memory.call_void('posenc_doctor_free', doctor)
    }
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
  /** What `posenc explain --json` prints (docs/json.md). */
  explain(at = 0): Explained {
    return this.memory.json('posenc_model_explain_json', this.handle, BigInt(at), -1n)
  }

  /** The plan of a layer. at: tokens to compile for, which matters where a scaling depends on their number; 0: the model's context. */
  plan(layer = 0, { at = 0, stack = 'text' }: { at?: number; stack?: string } = {}): Plan {
    const { memory, handle } = this
    const group = BigInt(memory.make('posenc_model_find_group', handle, stack, BigInt(layer)))
    return new Plan(memory, () => memory.make('posenc_model_plan', handle, group, BigInt(at), 0))
  }

  /**
   * What the commands of these names print with --json (docs/doctor.md). at: positions to look at, 0: the model's context, or
   * the longer of two. An engine is "vllm", or "transformers@4" for that version.
   */
  diff(found: Model, at = 0): Compared {
    return this.memory.json('posenc_model_diff_json', this.handle, found.handle, BigInt(at))
  }
  /** What an engine makes of it. */
  readBy(engine: string, at = 0): Reading {
    return this.memory.json('posenc_model_engine_json', this.handle, engine, BigInt(at))
  }
  /** What an engine printed, beside it. */
  diffLog(log: Uint8Array, at = 0): Compared {
    return this.memory.json('posenc_model_log_json', this.handle, log, log.length, BigInt(at))
  }
  /** What a command line of llama.cpp, vLLM, SGLang or another engine makes of it. */
  diffCommand(command: string, at = 0): Compared {
    return this.memory.json('posenc_model_command_json', this.handle, command, BigInt(at))
  }
  lint(engine?: string, at = 0): { findings: Finding[] } {
    return this.memory.json('posenc_model_lint_json', this.handle, engine ?? 0, BigInt(at))
  }
  translate(engine: string, at = 0): Translation {
    return this.memory.json('posenc_model_translate_json', this.handle, engine, BigInt(at))
  }
  extend(to: number, { engine, trained = 0, training = false }: Extending = {}): ContextPlan {
    const [wanted, shown] = [to, trained].map(BigInt)
    return this.memory.json('posenc_model_extend_json', this.handle, wanted, engine ?? 0, shown, Number(training))
  }
}

export type Profile = { name: string; title: string; version: string; source: string }
export type Finding = {
  code: string
  severity: 'error' | 'warning' | 'note'
  stack: string | null
  layer: number | null
  layers: number[]
  pair: number | null
  position: number | null
  expected: string
  found: string
  message: string
  cure: string
  engines: string[]
  line: number | null
}
export type Evidence = string | { name: string; bytes: Uint8Array }
export type Diagnosis = {
  evidence: { name: string; kind: string; as: string }[]
  verdict: string
  findings: {
    code: string
    severity: Finding['severity']
    engine: string | null
    version: string | null
    where: string
    what: string
    effect: string
    cure: string
    sure: string
    finding: Finding
  }[]
  next: string
}
export type Compared = { equal: boolean; expected: string; found?: string; findings: Finding[] }
export type Note = { kind: 'lost' | 'approximated' | 'defaulted' | 'fixed' | 'rounded'; what: string }
export type Reading = {
  engine: string
  version: string
  source: string
  refused: string | null
  table_rows: number | null
  notes: Note[]
  findings: Finding[]
}
export type Translation = {
  engine: string
  version: string
  target: string | Record<string, unknown>
  notes: Note[]
  length: number
  largest_angle_difference: number | null
  amplitude_difference: number | null
}
/** trained: tokens that training has shown, 0: as the file tells. training: the weights will be trained at that length. */
export type Extending = { engine?: string; trained?: number; training?: boolean }
export type ContextOption = { name: string } & (
  | { unavailable: string }
  | {
      unavailable: null
      needs_training: boolean
      scheme: Scheme
      frequencies: number[]
      unseen: number[]
      unseen_from: number | null
      fastest_pair: number
      middle_pair: number
      amplitude: number
      logits: number
      short_texts_from: number | null
      rerotate: boolean
    }
)
export type ContextPlan = {
  to: number
  trained: number | null
  trained_by: string
  scheme: string
  layers: number[]
  untouched: number[]
  base: number | null
  least_base: number | null
  turns: number[]
  recommended: string
  rule: string
  reason: string
  source: string | null
  options: ContextOption[]
  flags: string | Record<string, unknown> | null
  engine: Translation | null
  remarks: string[]
  cache: { stack: string; layers: number[]; window: number | null; bytes: number; bytes_within_window: number }[]
  unknown: string[]
}

// docs/json.md.
export type Group = {
  stack: string
  label: string
  mixer: 'attention' | 'recurrence' | 'convolution' | 'none' | 'unsaid'
  layers: number[]
  head_dim: number
  heads: number
  scheme: Scheme | null
  plan: PlanInfo
  valid: { from: number; to: number | null } | null
  heading: string
  words: string[]
  formulas: { name: string; formula: string }[]
  amplitude_note: string
  logits_note: string
  sink_logits: boolean
  added_each_layer: boolean
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
