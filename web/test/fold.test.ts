import { execFileSync } from 'node:child_process'
import { expect, it } from 'vitest'
import { spread } from '../src/draw/axis'
import { cpp, narrow, shell } from '../src/draw/fold'

const echoed = (text: string) => execFileSync('bash', ['-c', text], { encoding: 'utf8' })
const link =
  '"#/extend?v=1&d=192&scaling=yarn&scheme.rotary_dim=64&scaling.original_max_position_embeddings=4096&scaling.frequencies=1,0.75,0.5"'

it('a folded command is the same command', () => {
  for (const text of [
    `printf '%s|' explain ${link} --pairs`,
    "printf '%s|' rotate q.npy --scheme rope --sign -1 --rope_theta 1e6 --truncate=false",
  ]) {
    expect(echoed(shell(text))).toBe(echoed(text))
    for (const line of shell(text).split('\n')) expect(line.length).toBeLessThanOrEqual(narrow + 6)
  }
})
it('a flag keeps its value beside it', () =>
  expect(shell('posenc rotate q.npy q_m.npy --scheme rope --head_dim 64')).toBe(
    'posenc rotate q.npy q_m.npy \\\n  --scheme rope --head_dim 64',
  ))
it('C++ is folded at its brackets, and says its namespace once', () =>
  expect(
    cpp('auto plan = *posenc::compile(posenc::Rope{.rope_theta = 1000000, .rotary_dim = 64}, {.head_dim = 192});'),
  ).toBe(
    `using namespace posenc;
auto plan = *compile(
  Rope{
    .rope_theta = 1000000,
    .rotary_dim = 64},
  {.head_dim = 192});`,
  ))
it('short lines, texts and comments stay whole', () => {
  expect(cpp('int x = 1;  // one')).toBe('int x = 1;  // one')
  expect(cpp('std::printf("a long text (with brackets), a comma", x);')).toContain(
    '"a long text (with brackets), a comma"',
  )
})
it('labels stand apart, in their order, and none beyond the end', () => {
  expect(spread([10, 11, 50], 12, 100)).toEqual([10, 22, 50])
  expect(spread([90, 95, 99], 12, 100)).toEqual([76, 88, 100])
})
