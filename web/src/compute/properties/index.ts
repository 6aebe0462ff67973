// What a scheme keeps and what it does not, each found by running the engine: a residual and the tolerance it is held to.
import { bounded } from './bounded'
import { anyLength, between, distance, future, order } from './scores'
import { back, keepsNorm, linear, unique, zero } from './vectors'
import { make, type Cell, type Property, type Subject } from './verdict'
import { extents, product, withoutHeads } from '../scores'
import type { Described } from 'posenc'

export type { Cell, Property, Subject, Verdict } from './verdict'

// What a layer learns of a scheme that reads the content: its numbers, and projections of the layer's input.
function ofLayer({ fields, tables = [] }: Described, { d, heads }: Subject): [number, string] | undefined {
  const extent = extents({ d, heads, length: 1 })
  const width = heads * d
  const parts: [string, number][] = fields.filter(f => f.learned).map(f => [f.name, product(f.axes!, extent)])
  for (const table of tables) {
    const { name, required, projection } = table
    if (!required || projection?.same) continue
    const own = product(withoutHeads(table), { ...extent, column: projection?.columns ?? 0 })
    const { rank = 0, biased = false } = projection ?? {}
    const weights = rank ? rank * (width + own) : width * own
    parts.push(projection ? [`the projection to ${name}`, weights + (biased ? own : 0)] : [name, own])
  }
  const listed = parts.map(([name, count]) => `${count.toLocaleString('en')} of ${name}`)
  return parts.length ? [parts.reduce((sum, [, count]) => sum + count, 0), `${listed.join(', ')}, a layer`] : undefined
}

function parameters(of: Subject): Cell {
  const { add, bias, relative } = make(of).plan.info
  const counts: Record<string, [number, string]> = {
    learned: [of.rows * of.d, `${of.rows} rows of ${of.d} channels`],
    t5: [of.heads * (bias?.row_count ?? 0), `${of.heads} heads × ${bias?.row_count} buckets, shared by all layers`],
    clipped_bias: [of.heads * (bias?.row_count ?? 0), `${of.heads} heads × ${bias?.row_count} distances`],
    kerple: [2 * of.heads, 'two for each head'],
    shaw: [
      2 * (relative?.row_count ?? 0) * of.d,
      `keys and values, ${relative?.row_count} distances of ${of.d} channels, a layer`,
    ],
    deberta: [
      2 * (relative?.row_count ?? 0) * of.d,
      `keys and queries, ${relative?.row_count} distances of ${of.d} channels`,
    ],
  }
  const about = of.engine.content.find(s => s.name === of.scheme.type)
  const [count, said] = (about && ofLayer(about, of))
    ?? counts[of.scheme.type] ?? [0, add ? 'a formula, nothing learned' : 'nothing learned']
  return {
    verdict: 'none',
    figure: count.toLocaleString('en'),
    limit: 'learned',
    said: `${count.toLocaleString('en')} learned numbers: ${said}.`,
  }
}

export const properties: Property[] = [
  {
    id: 'distance',
    title: 'a score depends on distance alone',
    asks: 'Query and key move on together, the words stay: does their score?',
    panel: 'compare',
    test: distance,
  },
  {
    id: 'norm',
    title: 'a vector keeps its length',
    asks: 'Is ‖x‖ the same at every position?',
    panel: 'rotate',
    test: keepsNorm,
  },
  {
    id: 'zero',
    title: 'position 0 changes nothing',
    asks: 'Is the vector at position 0 the bare one?',
    panel: 'vectors',
    test: zero,
  },
  {
    id: 'linear',
    title: 'a step is one matrix',
    asks: 'Does one matrix M_k lead from every position p to p + k?',
    panel: 'waves',
    test: linear,
  },
  {
    id: 'back',
    title: 'it can be undone',
    asks: 'Rotated, then rotated back: is it the same vector?',
    panel: 'rotate',
    test: back,
  },
  {
    id: 'bounded',
    title: 'values stay bounded',
    asks: 'Do its numbers stay below a bound, however long the text?',
    panel: 'sinusoid',
    test: bounded,
  },
  {
    id: 'unique',
    title: 'each position is its own',
    asks: 'Are the vectors of all positions different?',
    panel: 'sinusoid',
    test: unique,
  },
  {
    id: 'beyond',
    title: 'defined at any length',
    asks: 'Is there a number at position 1,000,000?',
    panel: 'extend',
    test: anyLength,
  },
  {
    id: 'future',
    title: 'past and future differ',
    asks: 'Does a key before the query score otherwise than one after it?',
    panel: 'compare',
    test: future,
  },
  {
    id: 'between',
    title: 'only the two words count',
    asks: 'Other words stand between query and key: does their score stay?',
    panel: 'compare',
    test: between,
  },
  {
    id: 'order',
    title: 'word order counts',
    asks: 'Without a mask: do other orders give other outputs?',
    panel: 'order',
    test: of => order(of, false),
  },
  {
    id: 'masked',
    title: 'word order counts under a causal mask',
    asks: 'With the future hidden: do other orders give other outputs?',
    panel: 'order',
    test: of => order(of, true),
  },
  {
    id: 'parameters',
    title: 'learned numbers',
    asks: 'How many numbers are learned?',
    panel: 'learned',
    test: parameters,
  },
]
