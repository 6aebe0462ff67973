// An adapter in 30 lines: stands for an engine before `posenc conform`. Replace rotate() by the engine's own.
import { createInterface } from 'node:readline';

function rotate(x, { inv_freq, attention_factor, pairing, first_dim, rotary_dim, positions, axis_of_pair }) {
  return x.map((token, t) =>
    token.map((head) => {
      const out = [...head];
      inv_freq.forEach((f, r) => {
        const [a, b] = (pairing === 'halves' ? [r, r + rotary_dim / 2] : [2 * r, 2 * r + 1]).map((c) => c + first_dim);
        const at = axis_of_pair ? positions[axis_of_pair[r]][t] : positions[t];
        const [cos, sin] = [Math.cos(at * f) * attention_factor, Math.sin(at * f) * attention_factor];
        [out[a], out[b]] = [head[a] * cos - head[b] * sin, head[b] * cos + head[a] * sin];
      });
      return out;
    }),
  );
}

function answer({ operation, input }) {
  if (operation === 'hello') return { name: 'adapter.mjs', version: '1', dtype: 'float64' };
  if (operation !== 'rotate') return { unsupported: 'this example has rotate alone' };
  return { output: { q: rotate(input.q, input), k: rotate(input.k, input) } };
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  console.log(JSON.stringify({ id: request.id, ...answer(request) }));
}
