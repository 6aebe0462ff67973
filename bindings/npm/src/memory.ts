// posenc.wasm's functions as JavaScript calls: strings, arrays and structs go in as copies, errors come out as exceptions.
// The module itself says how the compiler laid out the structs of c.h (cmake/wasm_layout.sh).
type Exports = {
  memory: WebAssembly.Memory
  _initialize(): void
  malloc(size: number): number
  free(at: number): void
} & Record<string, (...args: (number | bigint)[]) => number>

// [offset, kind] of a member, or [offset, kind, count] of an array; a pointer is a uint32.
type Layout = Record<string, { size: number; members: Record<string, [number, keyof typeof kinds, number?]> }>
const kinds = {
  uint8: Uint8Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float32: Float32Array,
  float64: Float64Array,
}

export type DType = 0 | 1 // double, float
export type Numbers = Float64Array | Float32Array
export type Argument = number | bigint | string | Uint8Array | Struct
// A module's bytes, a response that brings them, or the module.
// Said without the types of a browser, which a program for Node need not have.
export type Wasm = ArrayBuffer | ArrayBufferView | Fetched | Promise<Fetched> | Compiled
export type Fetched = { readonly ok: boolean; readonly url: string; arrayBuffer(): Promise<ArrayBuffer> }
/** A WebAssembly.Module. */
export type Compiled = object

// A struct of c.h by the names of its members. Members left out are zero, struct_size is filled in, and a pointer may be
// given as what it points to.
export class Struct {
  readonly name: string
  readonly members: Record<string, Argument | number[] | undefined>
  constructor(name: string, members: Struct['members']) {
    this.name = name
    this.members = members
  }
}

// The library's cures name the command's flags: what a geometry calls them. Of a whole sentence, or of the cure alone.
function inOurWords(said: string): string {
  return said
    .replace(/(^|; )set --grid HEIGHTxWIDTH/, '$1set grid_height and grid_width')
    .replace(/(^|; )set --([a-z-]+)/, (_, before: string, flag: string) => `${before}set ${flag.replace(/-/g, '_')}`)
}

async function compiled(wasm: Wasm): Promise<WebAssembly.Module> {
  const given = await (wasm as BufferSource | Response | Promise<Response> | WebAssembly.Module)
  if (given instanceof WebAssembly.Module) return given
  if (!(given instanceof Response)) return WebAssembly.compile(given)
  if (!given.ok) throw new Error(`${given.url}: ${given.status} ${given.statusText}`)
  // Some servers do not know the type, and a stream must have it.
  return given.headers.get('content-type') === 'application/wasm'
    ? WebAssembly.compileStreaming(given)
    : WebAssembly.compile(await given.arrayBuffer())
}

/** What the library refuses: the sentence as `message`, and its parts. */
export class PosencError extends Error {
  override readonly name = 'PosencError'
  /** The function or the file's key. */
  readonly where: string
  /** The rule that is broken. */
  readonly rule: string
  /** The value found; '' where there is none. */
  readonly got: string
  /** What to do about it; '' where nothing is known. */
  readonly cure: string
  constructor(message: string, where: string, rule: string, got: string, cure: string) {
    super(message)
    this.where = where
    this.rule = rule
    this.got = got
    this.cure = cure
  }
}

export class Memory {
  private readonly api: Exports
  private readonly layout: Layout
  private readonly slot: number

  static async of(wasm: Wasm): Promise<Memory> {
    const module = await compiled(wasm)
    return new Memory(module, await WebAssembly.instantiate(module, {}))
  }

  private constructor(module: WebAssembly.Module, instance: WebAssembly.Instance) {
    const [layout] = WebAssembly.Module.customSections(module, 'posenc.layout')
    this.layout = JSON.parse(new TextDecoder().decode(layout)) as Layout
    this.api = instance.exports as unknown as Exports
    this.api._initialize()
    this.slot = this.api.malloc(64)
  }

  // A view is made anew each time: memory that grew leaves old ones empty.
  bytes(at: number, size: number): Uint8Array {
    return new Uint8Array(this.api.memory.buffer, at, size)
  }

  text(at: number): string {
    const memory = new Uint8Array(this.api.memory.buffer)
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at)))
  }

  alloc(size: number): number {
    return this.api.malloc(Math.max(size, 8))
  }
  free(at: number): void {
    this.api.free(at)
  }

  call(name: string, ...args: Argument[]): void {
    const held: number[] = []
    try {
      const status = this.api[name](...args.map(arg => this.pass(arg, held)))
      if (status !== 0) throw this.error()
    } finally {
      for (const at of held) this.free(at)
    }
  }

  private error(): PosencError {
    const part = (which: number) => this.text(this.api.posenc_last_error_part(which))
    const sentence = inOurWords(this.text(this.api.posenc_last_error()))
    return new PosencError(sentence, part(0), part(1), part(2), inOurWords(part(3)))
  }

  // What a function hands out through its last argument.
  make(name: string, ...args: Argument[]): number {
    this.call(name, ...args, this.slot)
    return new DataView(this.api.memory.buffer).getUint32(this.slot, true)
  }

  // The text of the JSON that a function hands out.
  json_text(name: string, ...args: Argument[]): string {
    const at = this.make(name, ...args)
    const text = this.text(at)
    this.call_void('posenc_string_free', at)
    return text
  }

  json<T>(name: string, ...args: Argument[]): T {
    return JSON.parse(this.json_text(name, ...args)) as T
  }

  call_void(name: string, at: number): void {
    this.api[name](at)
  }

  numbers(at: number, dtype: DType, count: number): Numbers {
    const buffer = this.api.memory.buffer
    return dtype === 0 ? new Float64Array(buffer, at, count) : new Float32Array(buffer, at, count)
  }

  // The ids of positions, [axis][token], of one sequence.
  ids(positions: number): number[][] {
    const at = this.alloc(24)
    this.call('posenc_positions_shape', positions, at)
    const [axes, , count] = Array.from(new BigInt64Array(this.api.memory.buffer, at, 3), Number)
    this.free(at)
    const ids = this.alloc(8 * axes * count)
    this.call('posenc_positions_copy', positions, ids, axes * count)
    const all = Array.from(new BigInt64Array(this.api.memory.buffer, ids, axes * count), Number)
    this.free(ids)
    return Array.from({ length: axes }, (_, axis) => all.slice(axis * count, (axis + 1) * count))
  }

  // Memory for the tensors of one call, freed afterwards.
  scratch<T>(work: (tensor: (shape: number[], from?: ArrayLike<number>) => Scratch) => T, dtype: DType = 0): T {
    const held: number[] = []
    try {
      return work((shape, from) => {
        const count = shape.reduce((a, b) => a * b, 1)
        if (!shape.every(Number.isInteger) || (from && from.length !== count))
          throw new Error(`${from?.length} numbers do not fill a tensor [${shape.join(', ')}]`)
        const at = this.alloc(count * (dtype === 0 ? 8 : 4))
        held.push(at)
        if (from) this.numbers(at, dtype, count).set(from)
        return { at, view: tensor(at, dtype, shape), read: () => this.numbers(at, dtype, count).slice() }
      })
    } finally {
      for (const at of held) this.free(at)
    }
  }

  // An argument as WebAssembly takes it: a number, or the address of a copy, which joins `held`.
  private pass(arg: Argument, held: number[]): number | bigint {
    if (typeof arg === 'number' || typeof arg === 'bigint') return arg
    const bytes =
      typeof arg === 'string'
        ? new TextEncoder().encode(arg + '\0')
        : arg instanceof Struct
          ? this.pack(arg, held)
          : arg
    const at = this.alloc(bytes.length)
    held.push(at)
    this.bytes(at, bytes.length).set(bytes)
    return at
  }

  private pack({ name, members }: Struct, held: number[]): Uint8Array {
    const { size, members: places } = this.layout[name]
    const buffer = new ArrayBuffer(size)
    for (const [member, given] of Object.entries({ struct_size: size, ...members })) {
      if (given === undefined) continue
      if (!(member in places)) throw new Error(`${name} has no member ${member}`)
      const [at, kind, count = 1] = places[member]
      const values = (Array.isArray(given) ? given : [given]).map(value => this.pass(value, held))
      if (values.length > count) throw new Error(`${name}.${member} holds ${count}, got ${values.length}`)
      const view = new kinds[kind](buffer, at, count)
      values.forEach((value, i) => (view[i] = typeof view[i] === 'bigint' ? BigInt(value) : Number(value)))
    }
    return new Uint8Array(buffer)
  }
}

export type Scratch = { at: number; view: Struct; read(): Numbers }

// A row-major, dense tensor whose numbers start at the address `data`.
export function tensor(data: number, dtype: DType, shape: number[]): Struct {
  const stride = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1))
  return new Struct('posenc_tensor', { dtype, rank: shape.length, data, shape, stride })
}
