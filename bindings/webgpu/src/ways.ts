// Which parts of a plan the kernels say, and the words for those that they do not.
import type { Plan, PlanInfo } from 'posenc'

type Rotate = NonNullable<PlanInfo['rotate']>
type Waves = NonNullable<PlanInfo['add']>

export type Verb = 'rotate' | 'rotateBack' | 'vectors' | 'add' | 'bias' | 'attend'
/** Who computes: why says what WebGPU does not, in the words of a refusal. */
export type Way = { by: 'webgpu' } | { by: 'webassembly'; why: string }

const rotation = (rotate: Rotate): string | undefined =>
  rotate.phase
    ? 'phases of one side'
    : rotate.growth
      ? 'growth of queries and keys'
      : rotate.magnitudes?.length
        ? 'magnitudes of pairs'
        : rotate.mix
          ? 'mixtures of pairs'
          : rotate.regions
            ? 'regions of distance'
            : rotate.two_angles
              ? 'two angles of a pair'
              : rotate.polar
                ? 'polar pairs'
                : rotate.ggml || rotate.angles !== 'exact'
                  ? 'the arithmetic of an engine'
                  : undefined

const sum = (add: Waves | null): string | undefined =>
  !add
    ? 'a plan that adds nothing'
    : add.kind === 'table'
      ? 'rows of a table'
      : add.kind === 'ramp'
        ? 'an index in one channel'
        : 2 * pairs_of(add) !== add.width
          ? 'waves that leave channels'
          : undefined

const pairs_of = ({ frequencies, axes }: Waves) => frequencies!.flat().length / (axes ?? 1)

const attention = ({ info }: Plan): string | undefined =>
  info.rotate && (info.rotate.values || info.rotate.values_stay)
    ? 'rotated values'
    : (info.rotate?.axes ?? 1) > 1 || info.bias?.further_axes?.length
      ? 'attention of several axes'
      : info.relative
        ? 'vectors by distance'
        : info.logits.temperature === 'heads' || (info.logits.temperature !== 'none' && info.logits.beta !== 0)
          ? 'a temperature of positions'
          : info.logits.softcap !== 0
            ? 'a softcap'
            : info.rotate
              ? rotation(info.rotate)
              : undefined

/** What of a plan the kernels do not say; nothing where they say all that the verb needs. */
export function unsaid(plan: Plan, verb: Verb): string | undefined {
  const { info } = plan
  if (info.unknown?.length) return `what a later posenc wrote (${info.unknown.join(', ')})`
  switch (verb) {
    case 'rotate':
    case 'rotateBack':
      return info.rotate ? rotation(info.rotate) : 'a plan that does not rotate'
    case 'vectors':
    case 'add':
      return sum(info.add)
    case 'bias':
      return !info.bias
        ? 'a plan without a bias'
        : info.bias.further_axes?.length
          ? 'a bias of several axes'
          : undefined
    case 'attend':
      return attention(plan)
  }
}
