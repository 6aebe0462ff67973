// Gradients, for those who train: of a loss by what went into attend, rotate and add, given its
// gradient by what came out of them. The gradient of rotate by its input is rotate_transpose
// (apply.h), with amplitude and xPos' growth too. KERPLE's own parameters: kerple_gradients
// (schemes.h).
//
// Every gradient is written, not added to: a table that several layers share has the sum of theirs.
// It may have a dtype of its own (sums over tokens belong in float or double), any strides, and the
// memory of an input.
#pragma once

#include "posenc/attention.h"

namespace [[gnu::visibility("default")]] posenc {

// Where attend_backward writes what; what is absent is not wanted. Shapes are those of the inputs
// and of the plan's parts.
struct AttentionGradients {
  Tensor q = {}, k = {}, v = {};
  Tensor slopes = {};          // [head]: of the positive slope, as the plan has it
  Tensor bias = {};            // [head][row], or [1][row] where the heads share a table
  Tensor relative_query = {};  // [row][head_dim], or [head][row][head_dim]; of profiles [row][u]
  Tensor relative_key = {};    // the same
  Tensor relative_value = {};  // the same
  Tensor rotation_frequency = {};          // [head or 1][axis][pair]
  Tensor rotation_phase = {};              // [head or 1][pair]: of Rotate::phase
  Tensor mix_cosine = {}, mix_sine = {};   // [head or 1][input][output]: of Rotate::mix
  Tensor sink_logits = {};                 // like AttentionInputs::sink_logits
  Tensor head_scale = {}, head_bias = {};  // [head]: of the plan's learned temperature
  ProfileTensors profiles = {};            // like AttentionInputs::profiles
};

// Of queries whose keys are more than attend_backward is given: what attend made of all of them.
struct WholeRows {
  Tensor log_sums = {};  // [batch, heads, queries], as attend writes them
  Tensor dots = {};      // [batch, heads, queries]: Σ_c out_c · out_gradient_c
  explicit operator bool() const { return static_cast<bool>(log_sums); }
};

// `in` as attend took it; out_gradient [batch, heads, queries, head_dim] of q's dtype. Nothing
// needs to be cached by attend: the weights are formed again, for a few queries at a time, so that
// memory beyond the arguments grows with the length, not with its square. A key that nobody sees
// and a query that sees no key have gradients of zero. Float, bfloat16 and half are computed in
// float, sums over tokens for a table in double. Threads share out the key heads of all sequences,
// and where these are fewer than 8 their queries too, in at most 8 parts; the same bits for any
// number of threads.
//
// With `whole`, the keys of `in` are some of those that the queries see: every gradient is the part
// that these keys have in it, and parts add up. Sink logits have no place there; their gradient is
// −e^(sink − log_sum) · dot. Errors: those of attend; a gradient of a part that the plan lacks, or
// of sink logits that are not given, or of another shape; frequencies of a plan with an engine's
// angles; a temperature's beside terms by distance that it scales without q (Shaw's or DeBERTa's
// vectors that meet keys, profiles, slopes before the scale), or beside a polar rotation. Then
// nothing is written.
Expected<void> attend_backward(const AttentionInputs& in, const Plan& plan,
                               const Tensor& out_gradient, const AttentionGradients& gradients,
                               const WholeRows& whole = {});

// The gradient by the plan's frequencies [head or 1][axis][pair], as 2-D mixed RoPE learns them
// (2403.13298), of one call of rotate: `rotated` [batch, head, seq, head_dim] is what it gave,
// `rotated_gradient` the gradient by that. Queries and keys rotated by the same frequencies: the
// sum of both.
// Errors: no rotation, an engine's angles, a mixture of cosines (attend_backward has it), shapes,
// positions that do not match.
Expected<void> rotate_frequency_gradient(const Plan& plan, const Tensor& rotated,
                                         const Tensor& rotated_gradient, const Positions& positions,
                                         const Tensor& frequency_gradient);

// The gradient by the angles of rotate_by, which gave `rotated`: out [batch, head, seq, pair] as
// the angles were, summed over heads or sequences that shared them.
// Errors: no rotation, shapes.
Expected<void> angle_gradient(const Plan& plan, const Tensor& rotated,
                              const Tensor& rotated_gradient, const Tensor& out);

// The gradients of add: by the embedding (embedding_scale · out_gradient [batch, seq, width]) and
// by the learned table [row][width] (the sum over the tokens that read a row; zero where none did).
// Either may be absent; the embedding's has the dtype of out_gradient, and may be the same view.
// Errors: those of add; a table's gradient of a plan that has no learned rows.
Expected<void> add_backward(const Plan& plan, const Positions& positions,
                            const Tensor& out_gradient, const Tensor& embedding_gradient,
                            const Tensor& table_gradient = {});

}  // namespace posenc
