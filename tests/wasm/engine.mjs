// posenc.wasm as JavaScript objects, as thin as a test needs. Structs are written as c.h lays them out with
// 4-byte pointers.
export class Engine {
  constructor(bytes) {
    this.module = new WebAssembly.Module(bytes)
    this.api = new WebAssembly.Instance(this.module, {}).exports
    this.api._initialize()
    this.slot = this.api.malloc(8)
  }
  // Views are made anew for each use: memory that grew leaves the old ones empty.
  get view() {
    return new DataView(this.api.memory.buffer)
  }
  bytes(at, size) {
    return new Uint8Array(this.api.memory.buffer, at, size)
  }
  text(at) {
    const memory = new Uint8Array(this.api.memory.buffer)
    return new TextDecoder().decode(memory.subarray(at, memory.indexOf(0, at)))
  }
  check(status) {
    if (status !== 0) throw new Error(this.text(this.api.posenc_last_error()))
  }
  // Calls with copies of the strings and buffers among the arguments, which are released afterwards.
  call(name, ...args) {
    const held = []
    const passed = args.map(arg => {
      if (typeof arg !== 'string' && !(arg instanceof Uint8Array)) return arg
      const bytes = typeof arg === 'string' ? new TextEncoder().encode(arg + '\0') : arg
      const at = this.api.malloc(Math.max(bytes.length, 1))
      this.bytes(at, bytes.length).set(bytes)
      held.push(at)
      return at
    })
    try {
      this.check(this.api[name](...passed))
    } finally {
      held.forEach(at => this.api.free(at))
    }
  }
  make(name, ...args) {
    this.call(name, ...args, this.slot)
    return this.view.getUint32(this.slot, true)
  }
  json(name, ...args) {
    const at = this.make(name, ...args)
    const text = this.text(at)
    this.api.posenc_string_free(at)
    return text
  }
  geometry({ width = 0, heads = 0, head_dim = 0, length = 0, grid = 0, angles = 0 }) {
    const struct = new DataView(new ArrayBuffer(64))
    struct.setUint32(0, 64, true)
    struct.setInt32(4, angles, true)
    const members = [width, heads, heads, head_dim, length, grid, grid]
    members.forEach((x, i) => struct.setBigInt64(8 + 8 * i, BigInt(x), true))
    return new Uint8Array(struct.buffer)
  }
  // [...shape] of a dtype (0: double, 1: float) at an address.
  tensor(data, dtype, shape) {
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
}
