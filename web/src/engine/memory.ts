// posenc.wasm's functions as JavaScript calls: strings and arrays go in as copies, errors come out as exceptions.
// Structs are laid out as c.h declares them, with 4-byte pointers.
type Exports = {
  memory: WebAssembly.Memory
  _initialize(): void
  malloc(size: number): number
  free(at: number): void
} & Record<string, (...args: (number | bigint)[]) => number>

export type DType = 0 | 1 // double, float
export type Numbers = Float64Array | Float32Array
export type Argument = number | bigint | string | Uint8Array
export type Wasm = ArrayBuffer | Response | Promise<Response>

export class Memory {
  private readonly api: Exports
  private readonly slot: number

  static async of(wasm: Wasm): Promise<Memory> {
    const { instance } =
      wasm instanceof ArrayBuffer
        ? await WebAssembly.instantiate(wasm, {})
        : await WebAssembly.instantiateStreaming(wasm, {})
    return new Memory(instance)
  }

  private constructor(instance: WebAssembly.Instance) {
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
    const passed = args.map(arg => {
      if (typeof arg === 'number' || typeof arg === 'bigint') return arg
      const bytes = typeof arg === 'string' ? new TextEncoder().encode(arg + '\0') : arg
      const at = this.alloc(bytes.length)
      this.bytes(at, bytes.length).set(bytes)
      held.push(at)
      return at
    })
    const status = this.api[name](...passed)
    for (const at of held) this.free(at)
    if (status !== 0) throw new Error(this.text(this.api.posenc_last_error()))
  }

  // What a function hands out through its last argument.
  make(name: string, ...args: Argument[]): number {
    this.call(name, ...args, this.slot)
    return new DataView(this.api.memory.buffer).getUint32(this.slot, true)
  }

  json<T>(name: string, ...args: Argument[]): T {
    const at = this.make(name, ...args)
    const text = this.text(at)
    this.call_void('posenc_string_free', at)
    return JSON.parse(text) as T
  }

  call_void(name: string, at: number): void {
    this.api[name](at)
  }

  numbers(at: number, dtype: DType, count: number): Numbers {
    const buffer = this.api.memory.buffer
    return dtype === 0 ? new Float64Array(buffer, at, count) : new Float32Array(buffer, at, count)
  }

  // Room for the tensors of one call, given back afterwards.
  scratch<T>(work: (tensor: (shape: number[], from?: ArrayLike<number>) => Scratch) => T, dtype: DType = 0): T {
    const held: number[] = []
    try {
      return work((shape, from) => {
        const count = shape.reduce((a, b) => a * b, 1)
        const at = this.alloc(count * (dtype === 0 ? 8 : 4))
        held.push(at)
        if (from) this.numbers(at, dtype, count).set(from)
        return { view: tensor(at, dtype, shape), read: () => this.numbers(at, dtype, count).slice() }
      })
    } finally {
      for (const at of held) this.free(at)
    }
  }
}

export type Scratch = { view: Uint8Array; read(): Numbers }

// A posenc_tensor: row-major, dense.
function tensor(data: number, dtype: DType, shape: number[]): Uint8Array {
  const struct = new DataView(new ArrayBuffer(80))
  struct.setUint32(0, 80, true)
  struct.setInt32(4, dtype, true)
  struct.setInt32(8, shape.length, true)
  struct.setUint32(12, data, true)
  let stride = 1
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    struct.setBigInt64(16 + 8 * axis, BigInt(shape[axis]), true)
    struct.setBigInt64(48 + 8 * axis, BigInt(stride), true)
    stride *= shape[axis]
  }
  return new Uint8Array(struct.buffer)
}

export type Geometry = { width?: number; heads?: number; kv_heads?: number; head_dim?: number; length?: number }

export function geometry({ width = 0, heads = 0, kv_heads = heads, head_dim = 0, length = 0 }: Geometry): Uint8Array {
  const struct = new DataView(new ArrayBuffer(64))
  struct.setUint32(0, 64, true)
  ;[width, heads, kv_heads, head_dim, length].forEach((x, i) => struct.setBigInt64(8 + 8 * i, BigInt(x), true))
  return new Uint8Array(struct.buffer)
}

// A posenc_mask; rows of `keep` are not offered.
export function mask({ causal = true, window = 0 }: { causal?: boolean; window?: number }): Uint8Array {
  const struct = new DataView(new ArrayBuffer(40))
  struct.setUint32(0, 40, true)
  struct.setInt32(4, causal ? 1 : 0, true)
  struct.setBigInt64(8, BigInt(window), true)
  return new Uint8Array(struct.buffer)
}
