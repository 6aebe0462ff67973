// The package's way into the module's memory.
import { Struct } from '../../bindings/npm/dist/memory.js'
export { Memory, Struct, tensor } from '../../bindings/npm/dist/memory.js'

// A posenc_geometry whose key heads are its query heads.
export const geometry = ({ grid, ...sizes }) =>
  new Struct('posenc_geometry', { kv_heads: sizes.heads, grid_height: grid, grid_width: grid, ...sizes })
