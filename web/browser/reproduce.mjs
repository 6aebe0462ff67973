// What a panel prints under "Reproduce", run and compiled: the numbers of the page come out of it.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { here } from './run.mjs'

export const command = process.env.POSENC_COMMAND || here('../build/release/posenc')
const library = join(dirname(command), 'libposenc.a')

// Through a shell, as one who copies it does.
export const run = text =>
  execFileSync('bash', ['-ec', text], {
    encoding: 'utf8',
    cwd: tmpdir(),
    env: { ...process.env, PATH: `${dirname(command)}:${process.env.PATH}` },
    maxBuffer: 1 << 26,
  })

// The wavelengths of `posenc explain … --pairs`.
export const wavelengths = text =>
  [...run(text).matchAll(/^ +\d+ +\S+ +(never|[\d.,e+-]+) /gm)].map(([, number]) =>
    number === 'never' ? Infinity : Number(number.replaceAll(',', '')),
  )

// What snippets print, all compiled in one piece and run in `folder`; those that take tensors of the reader's own, which they
// do not declare, are compiled alone. Why they are not, where that cannot be.
export function compiled(snippets, folder = tmpdir(), open_ended = []) {
  if (!existsSync(library)) return `there is no ${library}`
  const built = mkdtempSync(join(tmpdir(), 'posenc-printed-'))
  const [source, program] = [join(built, 'all.cc'), join(built, 'all')]
  const body = snippets.map((text, i) => `static void part_${i}() {\n${text}\n}`).join('\n')
  const calls = snippets.map((_, i) => `std::puts("part"); part_${i}();`).join('\n')
  const given = ['q', 'k', 'v', 'x', 'y', 'out', 'logits', 'weights', 'rotated', 'back']
  const tensors = given.map(name => `const posenc::Tensor& ${name}`).join(', ')
  const taking = open_ended.map((text, i) => `void taking_${i}(${tensors}) {\n${text}\n}`).join('\n')
  const headers = ['<posenc/posenc.h>', '<cmath>', '<cstdio>', '<fstream>', '<iterator>', '<numbers>']
    .map(name => `#include ${name}`)
    .join('\n')
  writeFileSync(source, `${headers}\n${taking}\n${body}\nint main() {\n${calls}\n}\n`)
  try {
    const include = `-I${here('../include')}`
    execFileSync('g++', ['-std=c++23', '-O0', include, source, library, '-lhwy', '-fopenmp', '-o', program])
    const out = execFileSync(program, { encoding: 'utf8', maxBuffer: 1 << 26, cwd: folder })
    return out
      .split('part\n')
      .slice(1)
      .map(part => part.trim().split(/\s+/).map(Number))
  } catch (error) {
    if (error.code === 'ENOENT') return 'there is no g++'
    throw error
  } finally {
    rmSync(built, { recursive: true })
  }
}

// A number as people read it (src/draw/number.ts), back.
export function read(text) {
  const raised = text.replace(/[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]/g, c => (c === '⁻' ? '-' : String('⁰¹²³⁴⁵⁶⁷⁸⁹'.indexOf(c))))
  return text === '' ? Infinity : Number(raised.replaceAll(',', '').replace('−', '-').replace('·10', 'e'))
}
// As far as what is shown has digits.
export const same = (shown, number) =>
  read(shown) === number || Math.abs(read(shown) - number) <= (shown.includes('·10') ? 6e-3 : 6e-4) * Math.abs(number)
