// The kernels. Up to the cosine all is in unsigned integers, so that every adapter gives the same bits, those of posenc's CUDA kernels too:
// WGSL promises neither the accuracy of a sine nor how a sum is rounded. Of two words the lower is first.
import { angles } from './angles.js'
export { angles } from './angles.js'

// A sum of phases; which of a kernel's invocations this is, over all workgroups of both dimensions.
const shared = /* wgsl */ `
fn sum_of(a: vec2u, b: vec2u) -> vec2u {
  let low = a.x + b.x;
  return vec2u(low, a.y + b.y + u32(low < a.x));
}

fn index_of(id: vec3u, groups: vec3u) -> u32 {
  return id.x + id.y * groups.x * 64u;
}
`

// What makes a text of its own, so that no invocation asks: the type of tensors, positions of two words, and what else a kernel names.
export type Kind = { f16?: boolean; wide?: boolean; own_frequencies?: boolean }
const kind = ({
  f16,
  wide,
  own_frequencies,
}: Kind) => `${f16 ? 'enable f16;\n' : ''}alias number = ${f16 ? 'f16' : 'f32'};
const wide = ${wide ?? false};
const own_frequencies = ${own_frequencies ?? false};
`

/** Cosines and sines of [token][pair], for a look at them. */
export const cosines = (of: Kind) => /* wgsl */ `${kind(of)}${angles}${shared}
struct Shape { tokens: u32, pairs: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> turns: array<vec4u>; // [pair]
@group(0) @binding(2) var<storage, read> positions: array<vec2u>; // [token]
@group(0) @binding(3) var<storage, read_write> out: array<vec2f>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = index_of(id, groups);
  if (i >= shape.tokens * shape.pairs) { return; }
  out[i] = cos_sin(phase_of(positions[i / shape.pairs], turns[i % shape.pairs]));
}
`

/** x [head][token][channel] in place: an invocation takes one pair of one token in all heads, which share its cosine. */
export const rotate = (of: Kind) => /* wgsl */ `${kind(of)}${angles}${shared}
struct Shape {
  tokens: u32, heads: u32, head_dim: u32, pairs: u32,
  first_dim: u32, block_pairs: u32, interleaved: u32, axes: u32,
  back: u32, gain: f32,
}
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> turns: array<vec4u>; // [head or 1][axis][pair]
@group(0) @binding(2) var<storage, read> positions: array<vec2u>; // [axis][token]
@group(0) @binding(3) var<storage, read_write> x: array<number>;

fn cos_sin_at(head: u32, token: u32, pair: u32) -> vec2f {
  var phase = vec2u();
  for (var axis = 0u; axis < shape.axes; axis++) {
    phase = sum_of(phase, phase_of(positions[axis * shape.tokens + token], turns[(head * shape.axes + axis) * shape.pairs + pair]));
  }
  if (shape.back != 0u) { phase = sum_of(~phase, vec2u(1u, 0u)); }
  let made = cos_sin(phase);
  return select(made * shape.gain, made, shape.gain == 1.0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = index_of(id, groups);
  if (i >= shape.tokens * shape.pairs) { return; }
  let token = i / shape.pairs;
  let pair = i % shape.pairs;
  var by = cos_sin_at(0u, token, pair);
  var channel = shape.first_dim + 2u * pair;
  var other = 1u;
  if (shape.interleaved == 0u) {
    channel = shape.first_dim + pair + pair / shape.block_pairs * shape.block_pairs;
    other = shape.block_pairs;
  }
  for (var head = 0u; head < shape.heads; head++) {
    if (own_frequencies && head > 0u) { by = cos_sin_at(head, token, pair); }
    let at = (head * shape.tokens + token) * shape.head_dim + channel;
    let a = f32(x[at]);
    let b = f32(x[at + other]);
    x[at] = number(by.x * a - by.y * b);
    x[at + other] = number(by.x * b + by.y * a);
  }
}
`

/** x [token][channel] · scale + the waves of its position, in place; scale 0 where the waves are all that is asked for. */
export const add = (of: Kind) => /* wgsl */ `${kind(of)}${angles}${shared}
struct Shape { tokens: u32, pairs: u32, width: u32, axes: u32, amplitude: f32, scale: f32, has_zero_row: u32, zero_row: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> turns: array<vec4u>; // [axis][pair]
@group(0) @binding(2) var<storage, read> positions: array<vec2u>; // [axis][token]
@group(0) @binding(3) var<storage, read_write> x: array<number>;
@group(0) @binding(4) var<storage, read> channels: array<vec2u>; // [pair]: of the sine, of the cosine

fn add_to(at: u32, wave: f32) {
  let vector = select(wave * shape.amplitude, wave, shape.amplitude == 1.0);
  if (shape.scale == 0.0) { x[at] = number(vector); } else { x[at] = number(f32(x[at]) * shape.scale + vector); }
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = index_of(id, groups);
  if (i >= shape.tokens * shape.pairs) { return; }
  let token = i / shape.pairs;
  let pair = i % shape.pairs;
  var phase = vec2u();
  for (var axis = 0u; axis < shape.axes; axis++) {
    phase = sum_of(phase, phase_of(positions[axis * shape.tokens + token], turns[axis * shape.pairs + pair]));
  }
  var wave = cos_sin(phase);
  if (shape.has_zero_row != 0u && all(positions[token] == vec2u(shape.zero_row, 0u))) { wave = vec2f(); }
  add_to(token * shape.width + channels[pair].x, wave.y);
  add_to(token * shape.width + channels[pair].y, wave.x);
}
`

/** q·k of a query and a key at each distance: an invocation takes one distance. */
export const scores = (of: Kind) => /* wgsl */ `${kind(of)}${angles}${shared}
struct Shape { distances: u32, pairs: u32, still: f32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> turns: array<vec4u>; // [pair]
@group(0) @binding(2) var<storage, read> distances: array<vec2u>;
@group(0) @binding(3) var<storage, read> parts: array<vec2f>; // [pair]: of the cosine, of the sine
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = index_of(id, groups);
  if (i >= shape.distances) { return; }
  var score = shape.still;
  for (var pair = 0u; pair < shape.pairs; pair++) {
    score += dot(parts[pair], cos_sin(phase_of(distances[i], turns[pair])));
  }
  out[i] = score;
}
`

/** [head][query][key]: the row of each distance. */
export const bias = /* wgsl */ `${shared}
struct Shape { queries: u32, keys: u32, distances: u32, count: u32 }
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> by_distance: array<f32>; // [head][distance]
@group(0) @binding(2) var<storage, read> places: array<i32>; // queries, counted from the smallest distance on, then keys
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let i = index_of(id, groups);
  if (i >= shape.count) { return; }
  let key = i % shape.keys;
  let row = i / shape.keys;
  let distance = u32(places[row % shape.queries] - places[shape.queries + key]);
  out[i] = by_distance[row / shape.queries * shape.distances + distance];
}
`

/** softmax(logits) v by an online softmax: an invocation takes one query, a workgroup reads tiles of keys and values together. */
export const attend = (of: Kind, head_dim: number) => /* wgsl */ `${kind(of)}
const quads = ${head_dim / 4}u;
const tile = ${Math.min(Math.floor(16384 / (8 * head_dim)), 32)}u;
struct Shape {
  queries: u32, keys: u32, heads: u32, kv_heads: u32,
  scale: f32, causal: u32, window: i32, distances: u32, // 0: no bias
  nearest: i32, // the smallest distance
}
@group(0) @binding(0) var<uniform> shape: Shape;
@group(0) @binding(1) var<storage, read> q: array<vec4<number>>;
@group(0) @binding(2) var<storage, read> k: array<vec4<number>>;
@group(0) @binding(3) var<storage, read> v: array<vec4<number>>;
@group(0) @binding(4) var<storage, read> places: array<vec2i>; // queries, then keys: where, and whether a key is seen
@group(0) @binding(5) var<storage, read> by_distance: array<f32>; // [head][distance]
@group(0) @binding(6) var<storage, read_write> out: array<vec4<number>>;
var<workgroup> keys: array<vec4f, quads * tile>;
var<workgroup> values: array<vec4f, quads * tile>;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let head = group.y;
  let query = group.x * 64u + lane;
  let here = query < shape.queries;
  let key_head = head / (shape.heads / shape.kv_heads);
  let place = select(0, places[min(query, shape.queries - 1u)].x, here);
  let from_query = (head * shape.queries + min(query, shape.queries - 1u)) * quads;
  var own: array<vec4f, quads>;
  var mixed: array<vec4f, quads>;
  for (var c = 0u; c < quads; c++) { own[c] = vec4f(q[from_query + c]) * shape.scale; }
  var row_max = -3.4e38;
  var total = 0.0;
  for (var begin = 0u; begin < shape.keys; begin += tile) {
    let count = min(tile, shape.keys - begin);
    let from_tile = (key_head * shape.keys + begin) * quads;
    workgroupBarrier();
    for (var i = lane; i < count * quads; i += 64u) {
      keys[i] = vec4f(k[from_tile + i]);
      values[i] = vec4f(v[from_tile + i]);
    }
    workgroupBarrier();
    for (var j = 0u; j < count; j++) {
      let key = places[shape.queries + begin + j];
      let distance = place - key.x;
      var seen = here && key.y != 0 && (shape.causal == 0u || distance >= 0);
      seen = seen && (shape.window == 0 || abs(distance) < shape.window);
      if (!seen) { continue; }
      var sums = vec4f();
      for (var c = 0u; c < quads; c++) { sums += own[c] * keys[j * quads + c]; }
      var logit = sums.x + sums.y + (sums.z + sums.w);
      if (shape.distances > 0u) { logit += by_distance[head * shape.distances + u32(distance - shape.nearest)]; }
      if (logit > row_max) {
        let correction = exp(row_max - logit);
        total *= correction;
        for (var c = 0u; c < quads; c++) { mixed[c] *= correction; }
        row_max = logit;
      }
      let weight = exp(logit - row_max);
      total += weight;
      for (var c = 0u; c < quads; c++) { mixed[c] += weight * values[j * quads + c]; }
    }
  }
  if (!here) { return; }
  for (var c = 0u; c < quads; c++) {
    out[from_query + c] = vec4<number>(select(vec4f(), mixed[c] / total, total > 0.0));
  }
}
`
