// The library as JavaScript objects, in the same words as in C and on the command line: schemes become plans, plans act
// on arrays of numbers.
import { Memory, Struct, type Argument, type Wasm } from './memory.js'
import type { PlanInfo } from './plan.js'

export type Geometry = {
  width?: number
  heads?: number
  kv_heads?: number
  head_dim?: number
  length?: number
  grid_height?: number
  grid_width?: number
}

/** What posenc_schemes_json says of a field. */
export type SchemeField = {
  name: string
  aliases: string[]
  kind: string
  doc: string
  unit: string
  least: number | null
  most: number | null
  open: boolean
  choices: string[]
  required: boolean
  optional: boolean
  default: unknown
  alibi?: boolean // of a list, as what follows: an empty one stands for ALiBi's slopes
} & Partial<Holds>
/** What a list or a table of a scheme of `content` holds. */
export type Holds = {
  axes: Axis[] // outermost first
  for_all_heads: boolean // the axis of heads may be absent
  learned: boolean
}
export type Axis = 'batch' | 'head' | 'key head' | 'query' | 'key' | 'channel' | 'unit' | 'row' | 'column'
/** A tensor that a scheme takes beside its fields; those of schemes of `content` say what it holds. */
export type SchemeTable = { name: string; doc: string } & Partial<
  Holds & {
    required: boolean
    instead: string // the field that says as much where it is absent, or ''
    // Of tokens: what their model makes of a projection of the layer's input.
    projection: {
      activation: 'none' | 'log_sigmoid' | 'unit_length' | 'twice_sigmoid' | 'rms_rotated'
      biased: boolean
      columns: number // of the axis of that name
      rank: number // it goes through so many numbers; 0: it does not
      same: string // the table whose projection this is too, or ''
    }
  }
>
export type Described = {
  name: string
  aliases: string[]
  title: string
  formula: string
  paper: string
  fields: SchemeField[]
  tables?: SchemeTable[]
  reads?: 'positions' | 'gates' | 'keys' // of `content`: what a key is weighed by
}

/** A scheme as posenc prints it: {"type": "rope", "rope_theta": 1e6, "scaling": {"type": "yarn", …}}. */
export type Scheme = { type: string; [field: string]: unknown }

export type { PlanInfo } from './plan.js'

/** Where tokens stand: first, first + 1, …; or one by one; or one by one along several axes, [axis][token]. */
export type Where = { first: number; count: number } | Ids | number[][] | { ids: Ids | number[][] }
export type Ids = number[] | Int32Array | BigInt64Array
export type Masked = { causal?: boolean; window?: number; keep?: boolean[] } // keep: false hides a key
export type Side = 'query' | 'key' | 'value'
const sides = { query: 0, key: 1, value: 2 }
const whichTable = { add: 0, bias: 1, query: 2, key: 3, value: 4, temperature: 5 }

/** Where keys are not given they stand where the queries do; k and v have as many heads as q or fewer. */
export type AttentionInputs = [
  q: ArrayLike<number>,
  k: ArrayLike<number>,
  v: ArrayLike<number>,
  heads: number,
  head_dim: number,
  queries: Where,
  keys?: Where,
  how?: Masked,
]
/** Attention by a scheme that reads the content, with its inside: [heads][queries][keys]. */
export type Attended = { out: Float64Array; logits: Float64Array; weights: Float64Array }
/** Row-major numbers. */
export type Table = { values: ArrayLike<number>; shape: number[] }

export class Engine {
  private readonly memory: Memory
  readonly schemes: Described[]
  readonly scalings: Described[]
  readonly content: Described[] // schemes that read the content
  private readonly plans = new Map<string, Plan>()

  constructor(memory: Memory) {
    this.memory = memory
    const known = this.memory.json<Record<'schemes' | 'scalings' | 'content', Described[]>>('posenc_schemes_json')
    this.schemes = known.schemes
    this.scalings = known.scalings
    this.content = known.content
  }

  static async load(wasm: Wasm): Promise<Engine> {
    return new Engine(await Memory.of(wasm))
  }

  /** The plan of a scheme; the same one for the same question. Throws with the library's own sentence. */
  plan(scheme: Scheme, size: Geometry): Plan {
    const key = JSON.stringify([scheme, size])
    let plan = this.plans.get(key)
    if (!plan) {
      plan = new Plan(this.memory, made => {
        if (this.plans.size > 64) {
          const [oldest, gone] = this.plans.entries().next().value!
          gone.free()
          this.plans.delete(oldest)
        }
        if (made) {
          this.plans.get(key)?.free() // a twin, made since
          this.plans.set(key, made)
        }
        return this.memory.make(
          'posenc_plan_from_scheme',
          JSON.stringify(scheme),
          new Struct('posenc_geometry', { kv_heads: size.heads, ...size }),
        )
      })
    } else this.plans.delete(key)
    this.plans.set(key, plan) // last again: the oldest is the one longest unused
    return plan
  }

  /** Normal numbers first, first + 1, … of a seed's sequence: those that the command draws. */
  normals(seed: number, count: number, first = 0): Float64Array {
    return this.memory.scratch(tensor => {
      const out = tensor([count])
      this.memory.call('posenc_normals', BigInt(seed), BigInt(first), BigInt(count), out.at)
      return out.read() as Float64Array
    })
  }

  /**
   * Attention by a scheme of `content`, whose tensors are `tables`, of q, k, v [heads][tokens][head_dim]. Where the
   * scheme has no softmax logits are the logarithms of the weights.
   */
  attend(scheme: Scheme, tables: Record<string, Table>, ...inputs: AttentionInputs): Attended {
    const { memory } = this
    const made = memory.make('posenc_content_from_scheme', JSON.stringify(scheme))
    try {
      for (const [name, { values, shape }] of Object.entries(tables))
        memory.scratch(tensor => memory.call('posenc_content_set_table', made, name, tensor(shape, values).view))
      return attention(memory, inputs, (given, out, logits, weights) =>
        memory.call('posenc_attend_content_reference', made, 0, given, out, logits, weights),
      )
    } finally {
      memory.call_void('posenc_content_free', made)
    }
  }

  /** Of a row with padding: a token's position is the number of tokens before it. */
  positionsOf(mask: boolean[]): number[] {
    return this.positions('posenc_positions_from_mask', bytes(mask), 1n, BigInt(mask.length), 0n, 0n)[0]
  }

  /** Of a picture's patches, row by row: [row or column][patch]. */
  patches(height: number, width: number): number[][] {
    return this.positions('posenc_positions_patches', BigInt(height), BigInt(width), 1n, 1n)
  }

  private positions(verb: string, ...args: Argument[]): number[][] {
    const { memory } = this
    const made = memory.make(verb, ...args)
    try {
      return memory.ids(made)
    } finally {
      memory.call_void('posenc_positions_free', made)
    }
  }

  /** One pair of channels that rotates by `frequency` radians a position. */
  pair(frequency: number): Plan {
    return this.plan({ type: 'rope', scaling: { type: 'explicit', frequencies: [frequency] } }, { head_dim: 2 })
  }
}

export class Plan {
  readonly info: PlanInfo
  private readonly memory: Memory
  private readonly make: (again?: Plan) => number
  private handle: number // 0: freed
  private readonly tables = new Map<string, () => void>()
  // make: again, for a plan that was freed and is used once more, which it then holds.
  constructor(memory: Memory, make: (again?: Plan) => number) {
    this.memory = memory
    this.make = make
    this.handle = make()
    this.info = memory.json('posenc_plan_json', this.handle)
  }
  free(): void {
    this.memory.call_void('posenc_plan_free', this.handle)
    this.handle = 0
  }
  private live(): number {
    if (this.handle === 0) {
      this.handle = this.make(this)
      for (const fill of this.tables.values()) fill()
    }
    return this.handle
  }

  /** Learned numbers, row-major. */
  setTable(table: keyof typeof whichTable, values: ArrayLike<number>, shape: number[]): this {
    const fill = () =>
      this.memory.scratch(tensor =>
        this.memory.call('posenc_plan_set_table', this.live(), whichTable[table], tensor(shape, values).view),
      )
    fill()
    this.tables.set(table, fill)
    return this
  }

  /** x [tokens][head_dim] or [heads][tokens][head_dim], rotated by the tokens' positions. Of PoPE wider by a channel for each pair. */
  rotate(x: ArrayLike<number>, head_dim: number, where: Where, side: Side = 'query'): Float64Array {
    return this.rotated('posenc_rotate', x, head_dim, where, side)
  }
  /** The rotation undone. */
  rotateBack(x: ArrayLike<number>, head_dim: number, where: Where, side: Side = 'query'): Float64Array {
    return this.rotated('posenc_rotate_inverse', x, head_dim, where, side)
  }
  private rotated(verb: string, x: ArrayLike<number>, head_dim: number, where: Where, side: Side): Float64Array {
    return this.on(where, positions =>
      this.memory.scratch(tensor => {
        const tokens = size(where)
        const heads = x.length / (tokens * head_dim) || 1
        const given = tensor([heads, tokens, head_dim], x)
        const { polar, rotary_dim } = this.info.rotate ?? { polar: false, rotary_dim: 0 }
        const out = polar ? tensor([heads, tokens, head_dim + rotary_dim / 2]) : given
        this.memory.call(verb, this.live(), given.view, positions, sides[side], out.view)
        return out.read() as Float64Array
      }),
    )
  }

  /** [tokens][pairs], in radians. */
  angles(where: Where): Float64Array {
    const pairs = this.info.rotate!.rotary_dim / 2
    return this.on(where, positions =>
      this.memory.scratch(tensor => {
        const out = tensor([1, 1, size(where), pairs])
        this.memory.call('posenc_rotation_angles', this.live(), positions, out.view, 1)
        return out.read() as Float64Array
      }),
    )
  }

  /** What is added to the embedding: [tokens][width]; in float, or in double where asked. */
  vectors(where: Where, width: number): Float32Array
  vectors(where: Where, width: number, exact: true): Float64Array
  vectors(where: Where, width: number, exact = false) {
    return this.on(where, positions =>
      this.memory.scratch(
        tensor => {
          const out = tensor([1, size(where), width])
          this.memory.call('posenc_position_vectors', this.live(), positions, out.view)
          return out.read()
        },
        exact ? 0 : 1,
      ),
    )
  }

  /** Embeddings [tokens][width] with what the plan adds. */
  add(x: ArrayLike<number>, width: number, where: Where): Float64Array {
    return this.on(where, positions =>
      this.memory.scratch(tensor => {
        const out = tensor([1, size(where), width], x)
        this.memory.call('posenc_add', this.live(), out.view, positions, out.view)
        return out.read() as Float64Array
      }),
    )
  }

  /** What is added to the logits: [heads][queries][keys]. */
  bias(heads: number, queries: Where, keys: Where): Float64Array {
    return this.on(queries, of_queries =>
      this.on(keys, of_keys =>
        this.memory.scratch(tensor => {
          const out = tensor([heads, size(queries), size(keys)])
          this.memory.call('posenc_bias', this.live(), of_queries, of_keys, out.view, 1)
          return out.read() as Float64Array
        }),
      ),
    )
  }

  /** softmax(logits) v of q [heads][tokens][head_dim] and k, v of as many heads or fewer, and the logits [heads][queries][keys] (−∞ where hidden). */
  attend(...inputs: AttentionInputs): Pick<Attended, 'out' | 'logits'> {
    return attention(this.memory, inputs, (given, out, logits) =>
      this.memory.call('posenc_attend_reference', this.live(), given, out, logits),
    )
  }

  private on<T>(where: Where, work: (positions: number) => T): T {
    return positioned(this.memory, where, work)
  }
}

// Positions of the library for the time of some work.
function positioned<T>(memory: Memory, where: Where, work: (positions: number) => T): T {
  const ids = ids_of(where)
  const made = ids
    ? memory.make(
        'posenc_positions_ids',
        new Uint8Array(BigInt64Array.from(ids.flat(), BigInt).buffer),
        BigInt(ids.length),
        1n,
        BigInt(ids[0].length),
      )
    : memory.make('posenc_positions_range', ...range_of(where).map(BigInt))
  try {
    return work(made)
  } finally {
    memory.call_void('posenc_positions_free', made)
  }
}

// The arguments of an attention in the module's memory, and what it wrote.
function attention(
  memory: Memory,
  [q, k, v, heads, head_dim, queries, keys = queries, how = {}]: AttentionInputs,
  call: (given: Struct, out: Struct, logits: Struct, weights: Struct) => void,
): Attended {
  const rows = size(queries)
  const columns = size(keys)
  const kv_heads = k.length / (columns * head_dim) || heads
  return positioned(memory, queries, of_queries =>
    positioned(memory, keys, of_keys =>
      memory.scratch(tensor => {
        const out = tensor([1, heads, rows, head_dim])
        const [logits, weights] = [0, 1].map(() => tensor([1, heads, rows, columns]))
        const given = new Struct('posenc_attention', {
          q: tensor([1, heads, rows, head_dim], q).view,
          k: tensor([1, kv_heads, columns, head_dim], k).view,
          v: tensor([1, kv_heads, columns, head_dim], v).view,
          queries: of_queries,
          keys: of_keys,
          mask: new Struct('posenc_mask', {
            causal: Number(how.causal ?? true),
            window: how.window,
            keep: how.keep && bytes(how.keep),
          }),
        })
        call(given, out.view, logits.view, weights.view)
        const [made, before, after] = [out, logits, weights].map(each => each.read() as Float64Array)
        return { out: made, logits: before, weights: after }
      }),
    ),
  )
}

// [axis][token]; nothing where a range is meant.
function ids_of(where: Where): number[][] | undefined {
  const given = where && typeof where === 'object' && 'ids' in where ? where.ids : where
  if (!Array.isArray(given) && !ArrayBuffer.isView(given)) return undefined
  const list = Array.from(given as ArrayLike<number | bigint | number[]>)
  return Array.isArray(list[0]) ? (list as number[][]) : [list.map(Number)]
}

function range_of(where: Where): [first: number, count: number] {
  const { first, count } = (where ?? {}) as { first?: number; count?: number }
  if (!Number.isInteger(first) || !Number.isInteger(count))
    throw new TypeError(
      `positions must be { first, count }, an array of ids, or { ids }, got ${JSON.stringify(where)}; write { first: 0, count: tokens }`,
    )
  return [first as number, count as number]
}

const size = (where: Where): number => ids_of(where)?.[0].length ?? range_of(where)[1]
const bytes = (flags: boolean[]) => Uint8Array.from(flags, Number)
