// posenc on WebGPU: the verbs of a plan that grow with the text, with exact angles; what an adapter or a kernel does not have, and
// what is too large for it, goes by WebAssembly, the package posenc, by itself.
import { PosencError, type AttentionInputs, type Plan, type Side, type Where } from 'posenc'
import { by_distance, channels_of, far, fits, placed, spread, type Placed } from './places.js'
import { bytes_of, half, is_half, padded, type Bytes, type Given, type Made } from './numbers.js'
import { turns_of, words_of } from './turns.js'
import { unsaid, type Verb, type Way } from './ways.js'
import * as wgsl from './wgsl.js'
export { turns_of } from './turns.js'
export type { Given, Halves, Made } from './numbers.js'
export type { Verb, Way } from './ways.js'
export * as wgsl from './wgsl.js'

export type Options = {
  /** navigator.gpu, or that of another implementation. */
  gpu?: GPU
  /** A device of one's own, which is not destroyed; made with the feature shader-f16 where float16 is to be computed with. */
  device?: GPUDevice
  /** Takes an adapter that computes on the processor too (SwiftShader), where WebAssembly is ten times faster: for tests. */
  software?: boolean
  /** Throws, by name, what WebGPU does not say, in place of computing it by WebAssembly. */
  only?: boolean
}

/** Never fails for want of an adapter: then all goes by WebAssembly, and `gpu.why` says so. */
export async function load({
  gpu = globalThis.navigator?.gpu,
  device,
  software = false,
  only = false,
}: Options = {}): Promise<Gpu> {
  if (device) return new Gpu(device, '', only)
  try {
    if (!gpu) return new Gpu(undefined, 'a runtime without WebGPU', only)
    const adapter = await gpu.requestAdapter()
    if (!adapter) return new Gpu(undefined, 'a machine without an adapter', only)
    if (!software && adapter.info?.isFallbackAdapter)
      return new Gpu(undefined, 'an adapter that computes on the processor', only)
    const { maxStorageBufferBindingSize, maxBufferSize } = adapter.limits
    const made = await adapter.requestDevice({
      requiredFeatures: adapter.features.has('shader-f16') ? ['shader-f16'] : [],
      requiredLimits: { maxStorageBufferBindingSize, maxBufferSize },
    })
    return new Gpu(made, '', only, gpu)
  } catch (error) {
    return new Gpu(undefined, `an adapter that gives no device (${(error as Error).message})`, only)
  }
}

// GPUBufferUsage and GPUMapMode, which implementations outside of browsers keep elsewhere.
const Usage = { MAP_READ: 1, COPY_SRC: 4, COPY_DST: 8, UNIFORM: 64, STORAGE: 128 }
const for_reading = 1

type Step = { code: string; bindings: GPUBuffer[]; invocations: number; groups?: [number, number] }

export class Gpu {
  /** The device; nothing where all goes by WebAssembly. */
  readonly device: GPUDevice | undefined
  /** Why there is no device, or ''. */
  why: string
  private readonly only: boolean
  private readonly from: GPU | undefined // of a device that is its own; Dawn's in Node must outlive its devices
  private readonly pipelines = new Map<string, GPUComputePipeline>()
  private readonly tables = new WeakMap<Plan, GPUBuffer>()

  constructor(device: GPUDevice | undefined, why: string, only: boolean, from?: GPU) {
    this.device = device
    this.why = why
    this.only = only
    this.from = from
    void device?.lost.then(({ message }) => (this.why = `a device that was lost (${message})`))
  }

  /** Whether kernels compute in the type of a Float16Array, which needs the adapter's shader-f16; else they do in float32. */
  get f16(): boolean {
    return this.device?.features.has('shader-f16') ?? false
  }

  /** Who would compute a verb of a plan, and why not WebGPU. */
  way(plan: Plan, verb: Verb): Way {
    const why = this.why || unsaid(plan, verb)
    return why ? { by: 'webassembly', why } : { by: 'webgpu' }
  }

  /** Gives the device back, and with it all that lies there. */
  destroy(): void {
    if (this.from) this.device?.destroy()
  }

  /**
   * x [heads][tokens][head_dim] rotated at positions, as `plan.rotate` does: within half a step of the type, cosines within 2^-24.9.
   * Errors: those of plan.rotate; with `only`, what WebGPU does not say.
   */
  rotate(plan: Plan, x: Given, head_dim: number, where: Where, side: Side = 'query'): Promise<Made> {
    return this.rotated(plan, x, head_dim, where, side, 'rotate')
  }
  /** The rotation undone. */
  rotateBack(plan: Plan, x: Given, head_dim: number, where: Where, side: Side = 'query'): Promise<Made> {
    return this.rotated(plan, x, head_dim, where, side, 'rotateBack')
  }
  private async rotated(
    plan: Plan,
    x: Given,
    head_dim: number,
    where: Where,
    side: Side,
    verb: 'rotate' | 'rotateBack',
  ) {
    const at = placed(where)
    const axes = plan.info.rotate?.axes ?? 1
    const { heads, why } = fits(plan, x, head_dim, at, axes)
    return this.either(
      plan,
      verb,
      why ?? this.large(x.length),
      x,
      () => plan[verb](x, head_dim, where, side),
      async held => {
        const f16 = this.f16 && is_half(x)
        const moved = held(bytes_of(x, f16), Usage.COPY_SRC)
        if (side !== 'value' || plan.info.rotate!.values)
          await this.run([this.rotation(held, plan, moved, heads, head_dim, at!, f16, verb === 'rotateBack')])
        return this.read(moved, x, f16)
      },
    )
  }

  /**
   * q·k of a query and a key [head_dim] at each distance (query − key, not negative), in float32: how rotation
   * changes one score over a whole text. Errors: those of plan.rotate.
   */
  async scores(plan: Plan, q: Given, k: Given, distances: Where): Promise<Float32Array> {
    const at = placed(distances)
    const { rotate } = plan.info
    const d = q.length
    const why =
      fits(plan, { length: d * (at?.tokens ?? 0) }, d, at, 1).why
      ?? (k.length !== d ? 'a key that does not fit' : undefined)
    const by_wasm = () => {
      const count = at?.tokens ?? 0
      const turned = plan.rotate(
        Float64Array.from({ length: d * count }, (_, i) => q[i % d]),
        d,
        distances,
      )
      const key = plan.rotate(k, d, [0], 'key')
      return Float64Array.from({ length: count }, (_, i) => key.reduce((sum, x, c) => sum + x * turned[i * d + c], 0))
    }
    return this.either(plan, 'rotate', why, new Float32Array(0), by_wasm, async held => {
      const { first_dim, rotary_dim, blocks, pairing, amplitude } = rotate!
      const pairs = rotary_dim / 2
      const [parts, step] = [new Float32Array(2 * pairs), pairing === 'interleaved' ? 1 : pairs / blocks]
      let still = 0
      for (let c = 0; c < d; c++) if (c < first_dim || c >= first_dim + rotary_dim) still += q[c] * k[c]
      for (let pair = 0; pair < pairs; pair++) {
        const a = first_dim + (step === 1 ? 2 * pair : pair + Math.floor(pair / step) * step)
        const b = a + step
        parts[2 * pair] = amplitude ** 2 * (q[a] * k[a] + q[b] * k[b])
        parts[2 * pair + 1] = amplitude ** 2 * (q[a] * k[b] - q[b] * k[a])
      }
      const shape = Uint32Array.of(at!.tokens, pairs, 0)
      new Float32Array(shape.buffer)[2] = still
      const out = held(4 * at!.tokens, Usage.COPY_SRC)
      const bindings = [held(shape), this.turns(plan), held(at!.words(0)), held(parts), out]
      await this.run([{ code: wgsl.scores({ wide: at!.wide }), bindings, invocations: at!.tokens }])
      return this.read(out, new Float32Array(at!.tokens), false)
    }) as Promise<Float32Array>
  }

  /** What is added to the embedding, [tokens][width], in float32. Errors: those of plan.vectors. */
  async vectors(plan: Plan, where: Where, width: number): Promise<Float32Array> {
    const at = placed(where)
    const add = plan.info.add
    const why =
      !at || at.negative || at.axes !== (add?.axes ?? 1) || add?.width !== width
        ? 'positions or a width that do not fit'
        : undefined
    const count = (at?.tokens ?? 0) * width
    const like = new Float32Array(0)
    return this.either(
      plan,
      'vectors',
      why ?? this.large(count),
      like,
      () => plan.vectors(where, width),
      async held => {
        const out = held(4 * count, Usage.COPY_SRC)
        await this.run([this.sum(held, plan, out, at!, 0, false)])
        return this.read(out, like, false)
      },
    ) as Promise<Float32Array>
  }

  /** Embeddings [tokens][width] with what the plan adds, as `plan.add` does. Errors: those of plan.add. */
  async add(plan: Plan, x: Given, width: number, where: Where): Promise<Made> {
    const at = placed(where)
    const add = plan.info.add
    const fitting =
      at && !at.negative && at.axes === (add?.axes ?? 1) && add?.width === width && x.length === at.tokens * width
    const why = fitting ? undefined : 'positions or a width that do not fit'
    return this.either(
      plan,
      'add',
      why ?? this.large(x.length),
      x,
      () => plan.add(x, width, where),
      async held => {
        const f16 = this.f16 && is_half(x)
        const moved = held(bytes_of(x, f16), Usage.COPY_SRC)
        await this.run([this.sum(held, plan, moved, at!, add!.embedding_scale, f16)])
        return this.read(moved, x, f16)
      },
    )
  }

  /** What is added to the logits, [heads][queries][keys], each the float32 next to what `plan.bias` gives. Errors: those of plan.bias. */
  async bias(plan: Plan, heads: number, queries: Where, keys: Where): Promise<Float32Array> {
    const [of_queries, of_keys] = [placed(queries), placed(keys)]
    const apart = spread(of_queries, of_keys)
    const count = heads * (of_queries?.tokens ?? 0) * (of_keys?.tokens ?? 0)
    const like = new Float32Array(0)
    return this.either(
      plan,
      'bias',
      apart ? this.large(count) : far,
      like,
      () => plan.bias(heads, queries, keys),
      async held => {
        const { nearest, distances } = apart!
        const places = Int32Array.from([
          ...of_queries!.ids.map(id => id - apart!.from - nearest),
          ...of_keys!.ids.map(id => id - apart!.from),
        ])
        const out = held(4 * count, Usage.COPY_SRC)
        const shape = Uint32Array.of(of_queries!.tokens, of_keys!.tokens, distances, count)
        const bindings = [held(shape), held(by_distance(plan, heads, nearest, distances, 1)), held(places), out]
        await this.run([{ code: wgsl.bias, bindings, invocations: count }])
        return this.read(out, like, false)
      },
    ) as Promise<Float32Array>
  }

  /**
   * softmax(logits) v of q [heads][queries][head_dim] and k, v [kv_heads][keys][head_dim], as `plan.attend` but without the logits, in
   * float32: [heads][queries][head_dim]. Queries and keys rotate on the device. Errors: those of plan.attend.
   */
  async attend(plan: Plan, ...inputs: AttentionInputs): Promise<Made> {
    const [q, k, v, heads, head_dim, queries, keys = queries, how = {}] = inputs
    const [of_queries, of_keys] = [placed(queries), placed(keys)]
    const apart = spread(of_queries, of_keys)
    const kv_heads = of_keys ? k.length / (of_keys.tokens * head_dim) : 0
    const why =
      head_dim % 4 !== 0 || head_dim > 256
        ? 'heads of more than 256 channels, or of no whole fours'
        : !apart
          ? far
          : q.length !== heads * of_queries!.tokens * head_dim || v.length !== k.length || heads % kv_heads !== 0
            ? 'tensors that do not fit'
            : how.keep && how.keep.length !== of_keys!.tokens
              ? 'a mask that does not fit'
              : (fits(plan, q, head_dim, of_queries, 1).why
                ?? fits(plan, k, head_dim, of_keys, 1).why
                ?? this.large(Math.max(q.length, k.length)))
    const by_wasm = () => plan.attend(q, k, v, heads, head_dim, queries, keys, how).out
    return this.either(plan, 'attend', why, q, by_wasm, async held => {
      const { info } = plan
      const { nearest, distances } = apart!
      const f16 = this.f16 && [q, k, v].every(is_half)
      const [moved_q, moved_k] = [held(bytes_of(q, f16)), held(bytes_of(k, f16))]
      const steps: Step[] = []
      if (info.rotate)
        steps.push(
          this.rotation(held, plan, moved_q, heads, head_dim, of_queries!, f16, false),
          this.rotation(held, plan, moved_k, kv_heads, head_dim, of_keys!, f16, false),
        )
      const scale = info.logits.multiplier / Math.sqrt(head_dim)
      const shape = new Uint32Array(9)
      shape.set([of_queries!.tokens, of_keys!.tokens, heads, kv_heads])
      new Float32Array(shape.buffer)[4] = scale
      shape.set([Number(how.causal ?? true), Math.min(how.window ?? 0, 2 ** 30), info.bias ? distances : 0, nearest], 5)
      const places = new Int32Array(2 * (of_queries!.tokens + of_keys!.tokens))
      of_queries!.ids.forEach((id, i) => (places[2 * i] = id - apart!.from))
      of_keys!.ids.forEach((id, i) =>
        places.set([id - apart!.from, Number(how.keep?.[i] ?? true)], 2 * (of_queries!.tokens + i)),
      )
      const row = info.bias
        ? by_distance(plan, heads, nearest, distances, info.bias.before_scale ? scale : 1)
        : new Float32Array(1)
      const out = held(4 * Math.ceil((q.length * (f16 ? 2 : 4)) / 4), Usage.COPY_SRC)
      steps.push({
        code: wgsl.attend({ f16 }, head_dim),
        bindings: [held(shape), moved_q, moved_k, held(bytes_of(v, f16)), held(places), held(row), out],
        invocations: 0,
        groups: [Math.ceil(of_queries!.tokens / 64), heads],
      })
      await this.run(steps)
      return this.read(out, q, f16)
    })
  }

  /** Cosines and sines of a plan's pairs, [tokens][pairs][2], as kernels have them; of rotations of one axis. Throws without a device. */
  async cosines(plan: Plan, where: Where): Promise<Float32Array> {
    const at = placed(where)
    if (!this.device || !at || at.axes !== 1)
      throw new PosencError(
        `posenc.webgpu: cosines need a device and positions of one axis, got ${this.why || 'others'}`,
        'posenc.webgpu',
        'cosines need a device and positions of one axis',
        this.why || 'others',
        '',
      )
    const pairs = plan.info.rotate!.rotary_dim / 2
    return (await this.within(async held => {
      const out = held(8 * at.tokens * pairs, Usage.COPY_SRC)
      const bindings = [held(Uint32Array.of(at.tokens, pairs)), this.turns(plan), held(at.words(0)), out]
      await this.run([{ code: wgsl.cosines({ wide: at.wide }), bindings, invocations: at.tokens * pairs }])
      return this.read(out, new Float32Array(0), false)
    })) as Float32Array
  }

  // --- steps ---

  private rotation(
    held: Held,
    plan: Plan,
    x: GPUBuffer,
    heads: number,
    head_dim: number,
    at: Placed,
    f16: boolean,
    back: boolean,
  ): Step {
    const rotate = plan.info.rotate!
    const pairs = rotate.rotary_dim / 2
    const shape = new Uint32Array(10)
    shape.set([at.tokens, heads, head_dim, pairs, rotate.first_dim, pairs / rotate.blocks])
    shape.set([Number(rotate.pairing === 'interleaved'), rotate.axes, Number(back)], 6)
    new Float32Array(shape.buffer)[9] = back ? 1 / rotate.amplitude : rotate.amplitude
    const bindings = [held(shape), this.turns(plan), held(at.words(0)), x]
    return {
      code: wgsl.rotate({ f16, wide: at.wide, own_frequencies: rotate.heads > 1 }),
      bindings,
      invocations: at.tokens * pairs,
    }
  }

  private sum(held: Held, plan: Plan, x: GPUBuffer, at: Placed, scale: number, f16: boolean): Step {
    const waves = plan.info.add!
    const pairs = waves.width! / 2
    const zero = waves.zero_row ?? -1
    const shape = new Uint32Array(8)
    shape.set([at.tokens, pairs, waves.width!, at.axes])
    new Float32Array(shape.buffer).set([waves.amplitude ?? 1, scale], 4)
    shape.set([Number(zero >= 0), Math.max(zero, 0)], 6)
    const bindings = [held(shape), this.turns(plan), held(at.words(waves.row_offset ?? 0)), x, held(channels_of(waves))]
    return { code: wgsl.add({ f16, wide: at.wide }), bindings, invocations: at.tokens * pairs }
  }

  // The turns of a plan's frequencies, which stay on the device as long as the plan lives.
  private turns(plan: Plan): GPUBuffer {
    const known = this.tables.get(plan)
    if (known) return known
    const { rotate, add } = plan.info
    let all = (rotate ? rotate.frequencies : add!.frequencies!).flat().map(turns_of)
    // Each pair takes one axis alone: none of the others.
    const axis_of = rotate?.axis_of_pair
    if (axis_of)
      all = Array.from({ length: rotate.axes * all.length }, (_, i) =>
        axis_of[i % all.length] === Math.floor(i / all.length) ? all[i % all.length] : 0n,
      )
    const made = this.buffer(words_of(all), 0)
    this.tables.set(plan, made)
    return made
  }

  // --- the device ---

  private large(numbers: number): string | undefined {
    const most = this.device?.limits.maxStorageBufferBindingSize ?? 0
    return this.device && 4 * numbers > most ? `tensors above ${most} bytes` : numbers === 0 ? 'no numbers' : undefined
  }

  // A verb by WebGPU, or else by WebAssembly; `like` has the type.
  private async either(
    plan: Plan,
    verb: Verb,
    misfit: string | undefined,
    like: Given,
    by_wasm: () => ArrayLike<number>,
    by_gpu: (held: Held) => Promise<Made>,
  ): Promise<Made> {
    let why = this.why || unsaid(plan, verb) || misfit
    if (!why) {
      try {
        return await this.within(by_gpu)
      } catch (error) {
        why = `a device that failed (${(error as Error).message})`
      }
    }
    if (this.only) {
      const rule = `${verb} by WebGPU takes no ${why.replace(/^an? /, '')}`
      const cure = 'load without `only`, and WebAssembly computes it'
      throw new PosencError(`posenc.webgpu: ${rule}; ${cure}`, 'posenc.webgpu', rule, '', cure)
    }
    const made = by_wasm()
    return is_half(like) && half ? new half(made) : Float32Array.from(made)
  }

  // Buffers of one call, given back after it; what the device complains of is thrown.
  private async within(work: (held: Held) => Promise<Made>): Promise<Made> {
    const device = this.device!
    const all: GPUBuffer[] = []
    for (const filter of ['validation', 'out-of-memory', 'internal'] as const) device.pushErrorScope(filter)
    let made: Made | undefined
    let thrown: unknown
    try {
      made = await work((given, usage = 0) => {
        const buffer = this.buffer(given, usage)
        all.push(buffer)
        return buffer
      })
    } catch (error) {
      thrown = error
    }
    for (const buffer of all) buffer.destroy()
    const errors = await Promise.all([0, 1, 2].map(() => device.popErrorScope()))
    const complaint = errors.find(Boolean)
    if (complaint) throw new Error(complaint.message)
    if (thrown) throw thrown
    return made!
  }

  private buffer(given: Bytes | number, usage: number): GPUBuffer {
    const { device } = this
    const size = typeof given === 'number' ? given : given.byteLength
    // What a kernel is told of shapes is small.
    const uniform = typeof given !== 'number' && size <= 64 ? Usage.UNIFORM : 0
    const made = device!.createBuffer({
      size: Math.max(4 * Math.ceil(size / 4), 16),
      usage: Usage.STORAGE | Usage.COPY_DST | uniform | usage,
    })
    if (typeof given !== 'number') device!.queue.writeBuffer(made, 0, padded(given))
    return made
  }

  private async run(steps: Step[]): Promise<void> {
    const device = this.device!
    const encoder = device.createCommandEncoder()
    for (const { code, bindings, invocations, groups } of steps) {
      const pipeline = await this.pipeline(code)
      const entries = bindings.map((buffer, binding) => ({ binding, resource: { buffer } }))
      const pass = encoder.beginComputePass()
      pass.setPipeline(pipeline)
      pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }))
      // A dimension has 65,535 workgroups at most.
      const all = Math.ceil(invocations / 64)
      const rows = Math.ceil(all / 65535)
      pass.dispatchWorkgroups(...(groups ?? [Math.ceil(all / Math.max(rows, 1)), rows]))
      pass.end()
    }
    device.queue.submit([encoder.finish()])
  }

  private async pipeline(code: string): Promise<GPUComputePipeline> {
    const known = this.pipelines.get(code)
    if (known) return known
    const module = this.device!.createShaderModule({ code })
    const made = await this.device!.createComputePipelineAsync({ layout: 'auto', compute: { module } })
    this.pipelines.set(code, made)
    return made
  }

  private async read(from: GPUBuffer, like: Given, f16: boolean): Promise<Made> {
    const device = this.device!
    const back = device.createBuffer({ size: from.size, usage: Usage.MAP_READ | Usage.COPY_DST })
    const encoder = device.createCommandEncoder()
    encoder.copyBufferToBuffer(from, 0, back, 0, from.size)
    device.queue.submit([encoder.finish()])
    await back.mapAsync(for_reading)
    const bytes = back.getMappedRange().slice(0, like.length ? like.length * (f16 ? 2 : 4) : from.size)
    back.destroy()
    if (f16) return new half!(bytes)
    return is_half(like) ? new half!(new Float32Array(bytes)) : new Float32Array(bytes)
  }
}

type Held = (given: Bytes | number, usage?: number) => GPUBuffer
