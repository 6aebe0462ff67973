// Angles that content says: a sum over the tokens so far of what each of them turns by, for rotate_by() (apply.h). Selective
// RoPE turns by Φ_t = temperature_r·Σ_{s≤t} φ_s(x_s) of head and pair, CARoPE (2507.23083) by Σ f(x_s)^r, Mamba-3 by sums of what
// its tokens project to; a φ that is the same number at every token is RoPE. A logit of a query at i and a key at j then goes by what the tokens
// between say, Σ_{j<s≤i} φ_s. Values of φ, its convolution, its gate and the norm behind are the caller's.
#pragma once

#include <span>

#include "posenc/error.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

// out[b, h, t, r] = start[b, h, r] + factor[r] · Σ_{s≤t} steps[b, h, s, r], tensors [batch, head, seq, pair] of any dtype and strides,
// summed in double; out may be steps itself. factor [pair], empty: ones, such as the frequencies of selective RoPE's temperature. start
// [batch, head, pair]: the last angles of the tokens before (decoding), absent: zeros. Sums round as doubles do; take out in double
// where texts are long.
// Errors: shapes.
Expected<void> summed_angles(const Tensor& steps, std::span<const double> factor,
                             const Tensor& start, const Tensor& out);

// The gradient by steps given that by the angles: out[b, h, s, r] = factor[r] · Σ_{t≥s} angles_gradient[b, h, t, r], which
// angle_gradient() (gradients.h) makes of what rotate_by() gave. That by start is its first token's, divided by factor; of queries and keys
// rotated by the same angles it is the sum of both.
// Errors: shapes.
Expected<void> summed_angles_gradient(const Tensor& angles_gradient, std::span<const double> factor,
                                      const Tensor& out);

}  // namespace posenc
