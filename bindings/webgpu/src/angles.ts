// Phases and their cosines as the kernels of `posenc emit --to wgsl` have them: angles.sh writes this file.
export const angles = /* wgsl */ `
// The upper half of the product, out of products of 16 bits.
fn hi(a: u32, b: u32) -> u32 {
  let a1 = a >> 16u;
  let a0 = a & 0xffffu;
  let b1 = b >> 16u;
  let b0 = b & 0xffffu;
  let mid = ((a0 * b0) >> 16u) + ((a1 * b0) & 0xffffu) + ((a0 * b1) & 0xffffu);
  return a1 * b1 + ((a1 * b0) >> 16u) + ((a0 * b1) >> 16u) + (mid >> 16u);
}

// To the nearest float, of two the even one, which f32() does not promise: 24 bits are left for it.
fn to_f32(x: u32) -> f32 {
  let excess = 8u - min(8u, countLeadingZeros(x));
  let half = select(0u, ((1u << excess) >> 1u) - 1u + ((x >> excess) & 1u), excess > 0u);
  return f32(((x + half) >> excess) << excess);
}

// position · turns modulo 1; turns are four words, the lowest first. A position is signed where it is wide, else it is one word.
fn phase_of(position: vec2u, turns: vec4u) -> vec2u {
  let t3 = turns.w;
  let t2 = turns.z;
  let t1 = turns.y;
  let t0 = turns.x;
  let p1 = select(0u, position.y, wide);
  let p0 = position.x;
  // Word 1 of their product, for its carry.
  let a0 = hi(p0, t0);
  let a1 = a0 + p0 * t1;
  let a2 = a1 + p1 * t0;
  let carried = u32(a1 < a0) + u32(a2 < a1);
  // Word 2. A position below 0 has 2^64 too much here, whose turns are taken off.
  let b0 = hi(p0, t1);
  let b1 = b0 + carried;
  let b2 = b1 + hi(p1, t0);
  let b3 = b2 + p0 * t2;
  let b4 = b3 + p1 * t1;
  let below = (p1 >> 31u) != 0u;
  let less0 = select(0u, t0, below);
  let less1 = select(0u, t1, below);
  let word2 = b4 - less0;
  // Word 3.
  let c0 = u32(b1 < b0) + u32(b2 < b1);
  let c1 = c0 + u32(b3 < b2) + u32(b4 < b3);
  let c2 = c1 - u32(b4 < less0) - less1;
  let c3 = c2 + hi(p0, t2) + hi(p1, t1);
  let word3 = c3 + p0 * t3 + p1 * t2;
  return vec2u(word2, word3);
}

fn cos_sin(phase: vec2u) -> vec2f {
  let word2 = phase.x;
  let word3 = phase.y;
  // The quarter that is next, and twice the distance from it in 2^-32 of a quarter.
  let quarter = (word3 + 536870912u) >> 30u;
  let rest = word3 - (quarter << 30u);
  let behind = (rest >> 31u) != 0u;
  let m1 = select(rest, ~rest, behind);
  let m0 = select(word2, ~word2, behind);
  let v = (m1 << 3u) | (m0 >> 29u);
  let z = hi(v, v);
  // Cosine and sine of that distance, in 2^-31 and 2^-32.
  let d2 = 1399910u - hi(z, 15167u);
  let d1 = 68093819u - hi(z, d2);
  let d0 = 1324675872u - hi(z, d1);
  let d = hi(z, d0);
  let s3 = 157073u - hi(z, 1325u);
  let s2 = 10696154u - hi(z, s3);
  let s1 = 346799333u - hi(z, s2);
  let s0 = 3373259426u - hi(z, s1);
  let s = hi(v, s0);
  let cosine = to_f32(2147483648u - (d >> 1u)) * 4.656613e-10f;
  let sine = to_f32(s) * 2.3283064e-10f;
  let side = select(sine, -sine, behind);
  // So many quarters on.
  let odd = (quarter & 1u) != 0u;
  let c_near = select(cosine, side, odd);
  let s_near = select(side, cosine, odd);
  let cos_phase = select(c_near, -c_near, ((quarter + 1u) & 2u) != 0u);
  let sin_phase = select(s_near, -s_near, (quarter & 2u) != 0u);
  return vec2f(cos_phase, sin_phase);
}
`
