// npm/src/memory.ts for Node, which reads TypeScript by itself from 22.18 on; for an older one the compiler that npm ci
// brings into web/ removes the types.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const source = new URL('../../npm/src/memory.ts', import.meta.url)
function javascript() {
  const { transpile } = createRequire(new URL('../../web/package.json', import.meta.url))('typescript')
  const text = transpile(readFileSync(source, 'utf8'), { target: 'es2022', module: 'es2022' })
  return 'data:text/javascript,' + encodeURIComponent(text)
}
export const { Memory, Struct, tensor } = await import(process.features.typescript ? source : javascript())

// A posenc_geometry whose key heads are its query heads.
export const geometry = ({ grid, ...sizes }) =>
  new Struct('posenc_geometry', { kv_heads: sizes.heads, grid_height: grid, grid_width: grid, ...sizes })
