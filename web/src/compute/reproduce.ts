// What to type to have the logits and weights of a head as they are shown here.
import type { Scheme } from 'posenc'
import type { Ready, Size, Words } from './scores'

export type Asked = {
  scheme: Scheme
  size: Size
  seed: number
  head: number
  words: Words
  causal: boolean
  ready?: Ready // absent where the library refuses the scheme
}

export function scoresCommand({ scheme: { type, ...fields }, size, seed, head, words, causal, ready }: Asked): string {
  const { d, heads, length } = size
  delete fields.bidirectional // the flag sets it
  const flags = Object.entries({
    scheme: type,
    ...(type === 'learned' ? { rows: length } : {}),
    ...fields,
    width: d,
    head_dim: d,
    heads,
    // Theirs are tables as long as the text.
    ...(type === 'kerple' || type === 'sandwich' ? { at: length } : {}),
    length,
    head,
    content: words,
    seed,
  }).map(([name, value]) => `--${name} ${value}`)
  if (ready?.drawn) flags.push('--random_learned')
  if (!causal) flags.push('--bidirectional')
  return `posenc plot scores scores.png ${flags.slice(0, 5).join(' ')} \\\n       ${flags.slice(5).join(' ')}`
}

const structs: Record<string, string> = { nope: 'NoPe', xpos: 'XPos', t5: 'T5', stick_breaking: 'StickBreaking' }

export function scoresCpp({ scheme, size: { d, heads, length }, seed, words, causal, ready }: Asked): string {
  const struct = 'posenc::' + (structs[scheme.type] ?? scheme.type[0].toUpperCase() + scheme.type.slice(1))
  const normals = (count: string | number, first = '') =>
    `posenc::normals(${seed + 2}, ${count}${first && ', ' + first})`
  // A scheme that reads the content, with what it has learned.
  const declared: Record<string, string> = {
    fire: `${struct} scheme{${normals(16)}, ${normals(16, '16')},\n                    ${normals(`16 * ${heads}`, '32')}, ${normals(heads, `32 + 16 * ${heads}`)}};`,
    cope: `${struct} scheme{.embeddings = posenc::Table::own(${normals(`16 * ${d}`)}, 16, ${d})};`,
    forgetting:
      `std::vector<double> gates;\nfor (double x : ${normals(words === 'random' ? `${heads} * ${length}` : heads)})\n`
      + `  gates.insert(gates.end(), ${words === 'random' ? 1 : length}, -std::log1p(std::exp(-2 - x)));\n`
      + `${struct} scheme{.log_gates = posenc::Table::own(gates, ${heads}, ${length})};`,
  }
  const base = scheme.type === 'rope' ? `.rope_theta = ${scheme.rope_theta}` : ''
  const tables = ready?.drawn && !ready.reads ? `, learned tables: those of ${seed + 2}` : ''
  return [
    `// q: posenc::normals(${seed}, ...), k: those of ${seed + 1}${tables}`,
    `auto text = posenc::Positions::range(0, ${length});`,
    `posenc::AttentionInputs in{q, k, v, text, text, {.causal = ${causal}}};`,
    ...(ready?.reads
      ? [
          declared[scheme.type] ?? `${struct} scheme;`,
          '*posenc::attend_reference(in, scheme, {}, out, logits, weights);',
        ]
      : [
          `auto plan = *posenc::compile(${struct}{${base}},`,
          `                             {.width = ${d}, .heads = ${heads}, .head_dim = ${d}, .length = ${length}});`,
          '*posenc::attend_reference(in, plan, out, logits);',
        ]),
  ].join('\n')
}
