// The slips that engines are known for, each as one attention computed rightly and wrongly, with the commands that give both.
import type { Engine, Scheme } from 'posenc'
import type { Tensor } from '../draw/npy'
import { planCpp, schemeFlags } from './reproduce'
import { softmax } from './scores'

export type At = { d: number; theta: number; seed: number }
export type Slip = 'padding' | 'values' | 'pairing' | 'factor' | 'offset' | 'scale'
// logits and weights [token][token], −∞ where hidden; out [token][channel].
export type Made = { logits: Float64Array; weights: Float64Array; out: Float64Array; cli: string[]; cpp: string[] }
export type Pitfall = {
  right: Made
  wrong: Made
  tensors: Tensor[]
  aside?: { says: string; by: number } // the same slip where it does no harm
}

export const tokens = 24
export const padded = 4 // of them, at the left
const row = { first: 0, count: tokens }
const all = Array.from({ length: tokens }, (_, p) => p)

// `reports`: where somebody met it, as owner/repository#number.
type Told = { name: string; wants: string; does: string; seen: string; cure: string; reports: string[] }
export const told: Record<Slip, Told> = {
  padding: {
    name: 'Left padding without position ids',
    wants: `A row of ${tokens - padded} words has ${padded} padding tokens before it. The first word stands at position 0.`,
    does: `The engine counts the columns, padding included: the first word stands at position ${padded}.`,
    seen: 'A prompt answers otherwise in a batch than alone. A longer prompt beside it means more padding, and a worse answer.',
    cure: 'Make positions from the attention mask: posenc positions --mask.',
    reports: ['unslothai/unsloth#3699', 'ndif-team/nnsight#673'],
  },
  values: {
    name: 'RoPE on the values too',
    wants: 'Queries and keys are rotated, values are not.',
    does: 'The engine rotates the values as well. The attention map is right to the last bit; what it mixes is not.',
    seen: 'Noise from the first token on, the worse the farther into the text, although every attention score agrees.',
    cure: 'Rotate queries and keys alone. A fused qkv tensor must be split before it is rotated.',
    reports: [],
  },
  pairing: {
    name: 'The other pairing',
    wants: 'The weights were trained with halves: channel r rotates with r + d/2.',
    does: 'The engine rotates neighbours: channel 2r with 2r + 1.',
    seen: 'Fluent for a few tokens, since short distances rotate little, then repetition and nonsense.',
    cure: "Take the model's pairing, or reorder the rows of W_q and W_k when the weights are converted.",
    reports: ['huggingface/candle#3948', 'ooples/AiDotNet#2074'],
  },
  factor: {
    name: "YaRN's attention factor lost",
    wants: 'YaRN ×16 makes cos and sin 0.1 ln 16 + 1 times larger, so that logits grow by the square of that.',
    does: 'The engine scales the frequencies and drops the factor.',
    seen: 'Nothing on short prompts but a slight blur. In long texts attention is too flat, and details are missed.',
    cure: 'Multiply cos and sin by the attention factor, or logits by its square; once, not both.',
    reports: ['turboderp-org/exllamav3#259', 'vllm-project/vllm#48351'],
  },
  offset: {
    name: 'Queries one position off',
    wants: 'Query and key of one token rotate by the same position: its distance to itself is 0.',
    does: 'While decoding, the engine gives the query the length of the text, one more than its own position.',
    seen: 'Prompts are read well, generated text drifts: every key seems one token farther than it is.',
    cure: 'The new token of a text of n tokens has position n − 1, in query and key.',
    reports: ['microsoft/onnxruntime-genai#2354'],
  },
  scale: {
    name: '√d forgotten',
    wants: 'Word vectors are multiplied by √d before positions are added to them.',
    does: 'The engine adds the positions to the bare word vectors.',
    seen: 'Tokens attend to their neighbours whatever they say: the position drowns the word.',
    cure: "Take the model's scale_embedding (posenc explain says which it has).",
    reports: ['OpenNMT/OpenNMT-py#1722'],
  },
}

export function pitfall(engine: Engine, slip: Slip, { d, theta, seed }: At): Pitfall {
  const q = engine.normals(seed, tokens * d)
  const k = engine.normals(seed + 1, tokens * d)
  const v = engine.normals(seed + 2, tokens * d)
  const words = q.map(x => x / Math.sqrt(d)) // embeddings begin about 1 long
  const file = (name: string, values: Float64Array) => ({ name, values, shape: [tokens, d] })
  const plain: Scheme = { type: 'nope' }
  const compiled = (scheme: Scheme) => engine.plan(scheme, { head_dim: d })

  function attend(scheme: Scheme, q: Float64Array, k: Float64Array, v: Float64Array, keep?: boolean[]) {
    const { logits, out } = compiled(scheme).attend(q, k, v, 1, d, row, row, { keep })
    return { logits, out, weights: softmax(logits, tokens) }
  }
  const attendCli = (scheme: Scheme, [q, k, v] = ['q', 'k', 'v'], more = '') =>
    `posenc attend out.npy --q ${q}.npy --k ${k}.npy --v ${v}.npy ${schemeFlags(engine, scheme)}${more} --logits logits.npy`
  const attending = (given: string, more = '') =>
    `auto text = posenc::Positions::range(0, 24);\n*posenc::attend_reference(${given}${more}}, plan, out, logits);`
  const attendCpp = attending('{q, k, v, text, text')
  const compileCpp = (scheme: Scheme) => planCpp(engine, scheme, { head_dim: d })
  const rope: Scheme = { type: 'rope', rope_theta: theta }
  const rotate = (of: string, positions = '0:24') =>
    `posenc rotate ${of}.npy ${of}_rotated.npy ${schemeFlags(engine, rope)} --positions ${positions}${of === 'k' ? ' --side k' : ''}`

  const straight = (scheme: Scheme): Made => ({
    ...attend(scheme, q, k, v),
    cli: [attendCli(scheme)],
    cpp: [compileCpp(scheme), attendCpp],
  })
  const qkv = [file('q.npy', q), file('k.npy', k), file('v.npy', v)]

  // Position vectors added to the words at `ids`, and attention between the sums.
  function added(ids: number[], scale_embedding: boolean, from: string[], keep?: boolean[]): Made {
    const waves: Scheme = { type: 'sinusoidal', base: theta, scale_embedding }
    const y = engine.plan(waves, { width: d }).add(words, d, ids)
    const hides = keep ? ` --keep ${keep.map(Number).join(',')}` : ''
    return {
      ...attend(plain, y, y, y, keep),
      cli: [
        ...from.slice(0, -1),
        `posenc add x.npy y.npy ${schemeFlags(engine, waves)} --positions ${from.at(-1)}`,
        attendCli(plain, ['y', 'y', 'y'], hides),
      ],
      cpp: [
        planCpp(engine, waves, { width: d }).replace('plan', 'waves'),
        ...(keep ? [`const std::uint8_t words[] = {${keep.map(Number).join(', ')}};`] : []),
        `auto at = ${from.length > 1 ? '*posenc::Positions::from_mask(words, 1, 24)' : 'posenc::Positions::range(0, 24)'};\n*posenc::add(waves, x, at, y);`,
        compileCpp(plain),
        attending('{y, y, y, text, text', keep ? ', {.keep = words}' : ''),
      ],
    }
  }

  switch (slip) {
    case 'padding': {
      const keep = all.map(p => p >= padded)
      const ids = engine.positionsOf(keep)
      const mask = keep.map(Number).join(',')
      const under = (where: number[]) => {
        const rotated = (x: Float64Array) => compiled(rope).rotate(x, d, where)
        return attend(plain, rotated(q), rotated(k), v, keep).logits
      }
      const [one, other] = [under(ids), under(all)]
      return {
        right: added(ids, true, [`posenc positions ids.npy --mask ${mask}`, 'ids.npy'], keep),
        wrong: added(all, true, ['0:24'], keep),
        tensors: [file('x.npy', words)],
        aside: {
          says: 'Under RoPE the same slip moves no logit: all positions shift alike, and only distances count. Forget to hide the padding itself, and RoPE is wrong too.',
          by: largest(one, other),
        },
      }
    }
    case 'scale':
      return { right: added(all, true, ['0:24']), wrong: added(all, false, ['0:24']), tensors: [file('x.npy', words)] }
    case 'values':
      return {
        right: straight(rope),
        wrong: {
          ...attend(rope, q, k, compiled(rope).rotate(v, d, row)),
          cli: [rotate('v'), attendCli(rope, ['q', 'k', 'v_rotated'])],
          cpp: [
            compileCpp(rope),
            '*posenc::rotate(plan, v, posenc::Positions::range(0, 24), posenc::Side::key, v);',
            attendCpp,
          ],
        },
        tensors: qkv,
      }
    case 'pairing': {
      const by = (pairing: string) => straight({ ...rope, pairing })
      return { right: by('halves'), wrong: by('interleaved'), tensors: qkv }
    }
    case 'factor': {
      const yarn = { type: 'yarn', factor: 16, original_max_position_embeddings: 4096 }
      const by = (scaling: object) => straight({ ...rope, scaling })
      return { right: by(yarn), wrong: by({ ...yarn, attention_factor: 1 }), tensors: qkv }
    }
    case 'offset': {
      const plan = compiled(rope)
      return {
        right: straight(rope),
        wrong: {
          ...attend(plain, plan.rotate(q, d, { first: 1, count: tokens }), plan.rotate(k, d, row, 'key'), v),
          cli: [rotate('q', '1:25'), rotate('k'), attendCli(plain, ['q_rotated', 'k_rotated', 'v'])],
          cpp: [
            compileCpp(rope),
            '*posenc::rotate(plan, q, posenc::Positions::range(1, 24), posenc::Side::query, q);\n*posenc::rotate(plan, k, posenc::Positions::range(0, 24), posenc::Side::key, k);',
            compileCpp(plain).replace('plan', 'none'),
            attendCpp.replace('plan', 'none'),
          ],
        },
        tensors: qkv,
      }
    }
  }
}

// The largest difference; none where both are hidden.
export function largest(a: Float64Array, b: Float64Array): number {
  return a.reduce((most, x, i) => (x === b[i] ? most : Math.max(most, Math.abs(x - b[i]))), 0)
}
