// Attention whose position term reads the content, or the query's absolute position, so that no Plan
// can say it: a plan is tables and numbers known before q and k are. Each scheme has a loop of its own
// beside the waist; they take what attend takes (attention.h), out like q; float64 is computed in
// double, the other dtypes in float, rounded once. A query that sees no key gives zeros. Keys stream
// through in blocks: memory beyond the arguments grows with the length, not with its square. The same
// bits for any number of threads.
//
// The plan beside a scheme may rotate (queries, keys, values) and scale logits; the empty plan is what
// most of the papers use. Its `add` part went to the embedding, as always.
// Errors of all of them: those of attend; a plan with a bias or relative vectors; parameters whose
// shapes do not match.
//
// attend_NAME_backward gives the gradients of attend_NAME, given that of a loss by its output,
// out_gradient [batch, heads, queries, head_dim] of q's dtype, which may be broadcast. They are written,
// not added to, each where a tensor is given: its shape that of what it is the gradient of, its dtype
// any, its memory an input's too. Weights are formed again, so nothing needs to be kept; memory grows
// with the length, not with its square. Parameters are summed in double.
// Errors: those of attend_NAME; a gradient of another shape. Then nothing is written.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "posenc/attention.h"

namespace posenc {

// --- FIRE ---------------------------------------------------------------------------------------

// Functional interpolation (Li et al. 2023, arXiv 2310.04418), i the query's position, j the key's:
//   logit_ij = q_i·k_j/√d + f_h(x_ij),   x_ij = ψ(|i − j|) / (ψ(max(i, L)) + 10⁻⁶)
//   ψ(n) = ln(|c|·n + 1),   L = |length_multiplier · initial_length|
//   f_h(x) = output_bias[h] + Σ_u output_weight[h][u] · max(0, hidden_weight[u]·x + hidden_bias[u])
// For keys in the past x is within [0, 1], whatever the length. The distance is divided by where the
// query stands (from L on), hence the absolute position. In PyTorch the weights are mlp.0.weight,
// mlp.0.bias, mlp.2.weight, mlp.2.bias of Linear(1, 32), ReLU, Linear(32, heads).
struct Fire {
  std::vector<double> hidden_weight = {}, hidden_bias = {};  // [hidden]
  std::vector<double> output_weight = {};                    // [heads][hidden]
  std::vector<double> output_bias = {};                      // [heads]
  double c = 0.1;
  double initial_length = 512;   // not learned
  double length_multiplier = 1;  // learned

  double threshold() const { return std::abs(length_multiplier * initial_length); }
  double psi(double n) const { return std::log1p(std::abs(c) * n); }
  // x of a query at `query` and a key at `key`.
  double interpolated(std::int64_t query, std::int64_t key) const;
};

// Errors besides: weights that are not for these heads or not finite, positions of several axes.
Expected<void> attend_fire(const AttentionInputs& in, const Fire& fire, const Plan& plan,
                           const Tensor& out);

// What FIRE adds to the logits, for engines that take it as a tensor: out [head, query, key].
Expected<void> fire_bias(const Fire& fire, const Positions& queries, const Positions& keys,
                         const Tensor& out);

// The gradient by what FIRE learns; shapes are those of Fire.
struct FireGradient {
  std::vector<double> hidden_weight = {}, hidden_bias = {}, output_weight = {}, output_bias = {};
  double c = 0, length_multiplier = 0;
};

// Returns the gradients by the parameters, and writes those by q, k and v.
Expected<FireGradient> attend_fire_backward(const AttentionInputs& in, const Fire& fire,
                                            const Plan& plan, const Tensor& out_gradient,
                                            const Tensor& q_gradient, const Tensor& k_gradient,
                                            const Tensor& v_gradient);

// --- schemes that count the keys between query and key -------------------------------------------
// They are causal: another mask than a causal one, or a prefix that is seen from before, is an error.
// Keys must stand in the order of their positions (those that Mask::keep hides may stand anywhere),
// as in a text and in a cache; a hidden key counts for nothing.

// Contextual position encoding (Golovneva et al. 2024, arXiv 2405.18719): a key's position is how many
// tokens between it and the query, both included, the query counts.
//   z_ij = q_i·k_j/√d,   p_ij = min(Σ_{l=j..i} σ(z_il), positions − 1)
//   logit_ij = z_ij + (1 − w) q_i·e[⌊p⌋] + w q_i·e[⌈p⌉],   w = p − ⌊p⌋
// Keys that the mask hides (by padding, a window, a chunk) are not counted. Beside a plan that turns,
// z is of turned queries and keys; e meets the query as it came.
struct Cope {
  // e: [positions][head_dim], or [head][positions][head_dim]. The authors store it as
  // [1][head_dim][positions]: a view with the last two axes swapped.
  Tensor embeddings = {};
  // The paper's listing adds q·e as it is. The authors' repository divides it by √head_dim with the
  // rest (unless --cope-nodiv): true.
  bool before_scale = false;
};

Expected<void> attend_cope(const AttentionInputs& in, const Cope& cope, const Plan& plan,
                           const Tensor& out);

// embeddings_gradient: the shape of the embeddings. Where p is capped it has no gradient. Memory grows
// with heads · min(positions, keys) · head_dim besides.
Expected<void> attend_cope_backward(const AttentionInputs& in, const Cope& cope, const Plan& plan,
                                    const Tensor& out_gradient, const Tensor& q_gradient,
                                    const Tensor& k_gradient, const Tensor& v_gradient,
                                    const Tensor& embeddings_gradient);

// Forgetting attention of the Forgetting Transformer (FoX; Lin et al. 2025, arXiv 2503.02130): each
// token forgets some of what came before it.
//   logit_ij = q_i·k_j/√d + Σ_{l=j+1..i} log_gate_l
struct Forgetting {
  // [batch][heads][keys], any dtype: log σ(w_h·x_l + b_h) of each token, at most 0. −∞ forgets all
  // that came before the token. As they come from a projection, [batch][keys][heads]: a swapped view.
  Tensor log_gates = {};
};

// A query is the last key that stands no later than it (with positions of several axes, the last query
// is the last key), so while decoding gates are needed for all keys, as k and v are. Sums are formed in
// double. Errors besides: a gate above 0 or NaN.
Expected<void> attend_forgetting(const AttentionInputs& in, const Forgetting& forgetting,
                                 const Plan& plan, const Tensor& out);

// log_gates_gradient: the shape of the log gates; 0 for a gate of −∞ and for padding. By the gate's own
// logit x it is times 1 − f, f = σ(x).
Expected<void> attend_forgetting_backward(const AttentionInputs& in, const Forgetting& forgetting,
                                          const Plan& plan, const Tensor& out_gradient,
                                          const Tensor& q_gradient, const Tensor& k_gradient,
                                          const Tensor& v_gradient,
                                          const Tensor& log_gates_gradient);

// Stick-breaking attention (Tan et al. 2024, arXiv 2410.17980): from the query backwards, each key
// breaks its share off what is left of a stick. No softmax, no position at all: nearer keys come first.
//   z_ij = q_i·k_j/√d,   A_ij = σ(z_ij) Π_{j<l<i} (1 − σ(z_il)),   out_i = Σ_{j<i} A_ij v_j
// The weights of a query sum to at most 1; the rest of the stick goes to nobody.
struct StickBreaking {
  // The paper's boundary: keys before the query's own position, which is outside of the product too.
  // True: the query's own key takes the first share (attend_current in public code).
  bool attend_current = false;
};

// `remainder` [batch, heads, queries], if given, receives 1 − Σ_j A_ij, formed as the product
// Π (1 − σ(z_il)) that it is; a model may give it to the query's own value.
Expected<void> attend_stick_breaking(const AttentionInputs& in, const StickBreaking& stick_breaking,
                                     const Plan& plan, const Tensor& out,
                                     const Tensor& remainder = {});

// `remainder_gradient` [batch, heads, queries], if given: that of the loss by the remainder.
Expected<void> attend_stick_breaking_backward(const AttentionInputs& in,
                                              const StickBreaking& stick_breaking, const Plan& plan,
                                              const Tensor& out_gradient, const Tensor& q_gradient,
                                              const Tensor& k_gradient, const Tensor& v_gradient,
                                              const Tensor& remainder_gradient = {});

}  // namespace posenc
