// Angles that content says: a sum over the tokens so far of what each of them turns by, for
// rotate_by() (apply.h). A logit of a query at i and a key at j then depends on what the tokens
// between say, Σ_{j<s≤i} φ_s, and a φ that is the same number at every token is RoPE.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/tensor.h"

namespace [[gnu::visibility("default")]] posenc {

// out[b, h, t, r] = start[b, h, r] + factor[r] · Σ_{s≤t} steps[b, h, s, r], tensors [batch, head,
// seq, pair] of any dtype and strides, summed in double; out may be steps itself. factor [pair],
// empty: ones, such as the frequencies of selective RoPE's temperature. start [batch, head, pair]:
// the last angles of the tokens before (decoding), absent: zeros. Sums round as doubles do; take
// out in double where texts are long. Full turns are taken off from 2^26 radians on, so that what
// is between two tokens stays as exact however large a finite step before them is.
// Errors: shapes.
Expected<void> summed_angles(const Tensor& steps, std::span<const double> factor,
                             const Tensor& start, const Tensor& out);

// The gradient by steps given that by the angles: out[b, h, s, r] = factor[r] · Σ_{t≥s}
// angles_gradient[b, h, t, r], which angle_gradient() (gradients.h) makes of what rotate_by() gave.
// That by start is its first token's, divided by factor; of queries and keys rotated by the same
// angles it is the sum of both.
// Errors: shapes.
Expected<void> summed_angles_gradient(const Tensor& angles_gradient, std::span<const double> factor,
                                      const Tensor& out);

// --- as models have them -------------------------------------------------------------------------
// What a model's projection says is not yet what a token turns by. A form says how the one becomes
// the other.

// The step of pair r, made of a number x that a token says.
enum class AngleStep {
  plain,     // x
  tanh,      // tanh x
  softplus,  // ln(1 + e^x)
  powers,    // (1 / (1 + ln(1 + e^x)))^r: x stands for all pairs of a head
};
// What it is multiplied by, made of another number y.
enum class AngleGate {
  none,
  sigmoid,   // 1 / (1 + e^−y)
  softplus,  // ln(1 + e^y)
};

// Φ_t of head h and pair r = start + frequency[h][r] · Σ_s step(x_s) · gate(y_s), over s ≤ t, s < t
// without own_step, or s = t alone where nothing is summed.
struct AngleForm {
  AngleStep step = AngleStep::plain;
  AngleGate gate = AngleGate::none;
  // Whether a token's own step is in its angle. A logit counts the steps behind the key up to the
  // query's with it, and from the key's on up to the one before the query without.
  bool own_step = true;
  // false: what a token says is where it stands, and no sum; `next` is then the start again.
  bool sums = true;
  std::int64_t turning = 0;  // pairs that turn, the first; 0: all
  // Its rotation is the one for rotate_by(): which channels make a pair, and radians per step [head
  // or 1][pair]. Steps of 1 without own_step are the plan's own positions.
  Plan plan = {};
  bool operator==(const AngleForm&) const = default;
};

// Selective RoPE (Movahedi et al., ICLR 2026, arXiv 2511.17388): x of each pair, of a projection
// and a convolution over 4 tokens, y a gate of the token where the model has one (set gate to
// sigmoid); halves, frequency maximum · theta^(−2r/head_dim). Errors: an odd head_dim, a theta that
// is not above 1.
Expected<AngleForm> selective_rope(std::int64_t head_dim, double theta = 500000,
                                   double maximum = 1);

// CARoPE (Veisi et al. 2025, arXiv 2507.23083): x of each head, of which pair r takes the power r;
// RoPE with the base b where each power's root is b^(−2/head_dim). Halves, frequencies of 1.
// Errors: an odd head_dim.
Expected<AngleForm> carope(std::int64_t head_dim);

// Mamba-3 (arXiv 2603.15569): x of each pair, shared by the heads, y the projected time step of
// each head, its bias added: π tanh(x)·softplus(y). Interleaved pairs of the first `part` of the
// head. Its MIMO kernels pair channels (r, r + head_dim/2), halves: then the first `part` of the
// pairs turns. Errors: a part that is not above 0 and at most 1, an odd head_dim, no pair.
Expected<AngleForm> mamba3(std::int64_t head_dim, double part = 0.5,
                           Pairing pairing = Pairing::interleaved);

// Contextual GRAPE-M (Zhang et al., ICLR 2026, arXiv 2512.07805): x of the token, or of each head,
// softplus, without the own step; halves that turn backwards, −theta^(−2r/head_dim), which its
// models learn for all heads or each (put them into plan.rotate). Errors: an odd head_dim, a theta
// that is not above 1.
Expected<AngleForm> grape_m(std::int64_t head_dim, double theta = 10000);

// RePo (Li, Zhao and Sproat 2025, arXiv 2512.14391): x of each head is the token's position, a
// real number that a small network makes of the layer's input, and nothing is summed. Halves, the
// frequencies of RoPE. Errors: an odd head_dim, a theta that is not above 1.
Expected<AngleForm> repo(std::int64_t head_dim, double theta = 500000);

// What the tokens of a call say, of any dtype and strides.
struct SaidAngles {
  Tensor said = {};   // x [batch, head or 1, seq, pair or 1], of the pairs that turn
  Tensor gate = {};   // y [batch, head or 1, seq, pair or 1], where the form has a gate
  Tensor start = {};  // [batch, head, pair]: `next` of the call before; absent: zeros
};

// The angles, out [batch, head, seq, pair], summed in double, without full turns from 2^26 radians
// on; where they are wanted, next [batch, head, pair]: those that the token behind the last begins
// with. Take both in double where texts are long.
// Errors: shapes; no rotation, or one with axes, phases or a mixture of cosines.
Expected<void> content_angles(const AngleForm& form, const SaidAngles& given, const Tensor& out,
                              const Tensor& next = {});

// Where content_angles_gradient writes what; what is absent is not wanted.
struct SaidGradients {
  Tensor said = {}, gate = {}, start = {};  // shaped like SaidAngles
  Tensor frequency = {};                    // [head or 1][pair], as the form's plan has them
};

// Its gradients, given that by the angles [batch, head, seq, pair], which angle_gradient() makes of
// what rotate_by() gave: of queries and keys rotated by the same angles, the sum of both. Written,
// not added to.
// Errors: those of content_angles.
Expected<void> content_angles_gradient(const AngleForm& form, const SaidAngles& given,
                                       const Tensor& angles_gradient,
                                       const SaidGradients& gradients);

}  // namespace posenc
