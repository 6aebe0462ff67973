// What a real model lost by position under several scalings, zero-shot: `posenc lab perplexity` (docs/real_model.md).
import results from '../../../lab/results/smollm2-16k.json'

// A point of the chart: so many neighbouring blocks, whose texts differ more than scalings do.
const together = 2

type Block = { from: number; to: number; nats: number; n: number }
const named: Record<string, string> = { none: 'default' }

function points(blocks: Block[]) {
  const out: { at: number; nats: number }[] = []
  for (let i = 0; i + together <= blocks.length; i += together) {
    const some = blocks.slice(i, i + together)
    const count = some.reduce((sum, b) => sum + b.n, 0)
    out.push({
      at: (some[0].from + some[together - 1].to) / 2,
      nats: some.reduce((sum, b) => sum + b.nats * b.n, 0) / count,
    })
  }
  return out
}

export const measured = {
  model: 'SmolLM2-135M',
  trained: results.trained,
  length: results.length,
  x: points(results.curves[0].blocks).map(p => p.at),
  curves: results.curves.map(({ scaling, factor, blocks }) => ({
    name: named[scaling] ?? scaling,
    label: scaling === 'none' ? 'default' : `${scaling} ×${factor}`,
    y: points(blocks).map(p => p.nats),
  })),
}
