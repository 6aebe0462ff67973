// A plan acting on tensors. All functions take any strides and dtype (in and out alike) and check
// their arguments. out is the same view as the input (in place) or memory apart from it: the
// input's own memory shifted is an error, a view of it with other strides the caller's mistake.
// float64 is computed in double, the others in float; 16-bit types are rounded once, at the end. A
// float cos or sin is within 2^-25 + 3·2^-53·(2 + position·frequency) of the exact one; those that
// 16-bit tensors are computed with, products of floats along one axis, within 2^-22.4 of those of
// amplitude 1 (2^-22.6 at every position below 2^24 for RoPE's 64 pairs of bases 1e4, 5e5, 1e6 and
// 1e7), a thousandth of what float16 rounds. A mixture's (FoPE) are off by as much times the sum of
// its coefficients' magnitudes. A plan with an engine's angles (Rotate::angles) is computed in that
// engine's own precision, and refuses positions from 2^24 on. Exact angles take any position; where
// position·frequency passes 2^50 the bound above is a whole turn and an angle says nothing. The
// plain loops of attend_reference() and rotation_angles() round a position to a double, from 2^53
// on. Shapes are written as logical axes; see Tensor.
#pragma once

#include <vector>

#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"
#include "posenc/turns.h"

namespace [[gnu::visibility("default")]] posenc {

// How many threads a call may use. Fewer are used for small work, and one inside the caller's own
// OpenMP threads; the bits do not depend on it.
struct Threads {
  int count = 0;  // 0: OMP_NUM_THREADS, or as many as there are processors; 1: the caller's alone
};

// embedding [batch, seq, width] · embedding_scale + position vectors -> out, same shape.
// Errors: no add part, width or seq that does not match, a learned row outside the table.
Expected<void> add(const Plan& plan, const Tensor& embedding, const Positions& positions,
                   const Tensor& out, Threads threads = {});

// The position vectors alone: out [batch, seq, width] (no embedding scale).
Expected<void> position_vectors(const Plan& plan, const Positions& positions, const Tensor& out,
                                Threads threads = {});

// x [batch, head, seq, head_dim] rotated by its positions -> out. A plan without a rotation copies.
// Of a polar rotation (PoPE) out is [batch, head, seq, head_dim + pairs] in memory of its own.
// Errors: shapes, positions that do not match, rotary slice outside head_dim, heads that do not
// match per-head frequencies, phases of this side or mixtures; regions, whose rotation depends on a
// query and a key.
Expected<void> rotate(const Plan& plan, const Tensor& x, const Positions& positions, Side side,
                      const Tensor& out, Threads threads = {});

// Queries [batch, head, seq, head_dim] and keys [batch, kv_head, seq, head_dim] of the same tokens:
// the same as rotating each, but cos and sin of a token are made once for both.
// Errors: those of rotate, or batches that differ; then nothing is written.
Expected<void> rotate(const Plan& plan, const Tensor& q, const Tensor& k,
                      const Positions& positions, const Tensor& q_out, const Tensor& k_out,
                      Threads threads = {});

// The transpose of rotate: the gradient of its input from the gradient of its output, and for plain
// rotations (amplitude 1, no growth) its inverse. A polar rotation has neither: its softplus is not
// linear.
Expected<void> rotate_transpose(const Plan& plan, const Tensor& x, const Positions& positions,
                                Side side, const Tensor& out, Threads threads = {});

// The inverse of rotate: divides by amplitude and growth where rotate multiplied.
Expected<void> rotate_inverse(const Plan& plan, const Tensor& x, const Positions& positions,
                              Side side, const Tensor& out, Threads threads = {});

// The angles of rotate, in radians and without the phases of a side, as the plan's arithmetic forms
// them before it takes their cosine:
// out [batch, head, seq, pair] with one head or the plan's frequencies' (any number where shared).
// An exact angle is rounded once, an engine's float is stored as it is.
// Errors: no rotation, positions or heads that do not match.
Expected<void> rotation_angles(const Plan& plan, const Positions& positions, const Tensor& out,
                               Threads threads = {});

// The frequencies as turns in fixed point, [head][axis][pair], for kernels of one's own: what a pair
// rotates by at whole positions is Σ over axes of position · turns, modulo 1.
// Errors: no rotation, or one that other angles are a part of; a frequency from 2^200 on.
Expected<std::vector<Turns>> rotation_turns(const Plan& plan);

// --- tokens at real positions, or turned by angles of their own ----------------------------------
// Positions are whole numbers. Seconds, metres or a grid stretched to another are real ones: their
// angles are made first, or come from elsewhere (a learned projection of coordinates, a sum over
// what tokens say).

// add and position_vectors of tokens at real positions of any sign, `at` [axis, batch, seq] of any
// dtype: diffusion's time steps, pixels of a picture in shares of it. Angles are formed in double,
// Σ over axes of (at + row_offset) · frequency. Errors: those of add, a part that is not waves, a
// position that is not finite.
Expected<void> add(const Plan& plan, const Tensor& embedding, const Tensor& at, const Tensor& out,
                   Threads threads = {});
Expected<void> position_vectors(const Plan& plan, const Tensor& at, const Tensor& out,
                                Threads threads = {});

// The angles of tokens that stand at real positions of any sign, at [axis, batch, seq] of any
// dtype:
//   out[batch, head, seq, pair] = Σ over axes of at · frequency, formed in double
// Errors: no rotation, an engine's angles, shapes that do not match, a position that is not finite.
Expected<void> rotation_angles(const Plan& plan, const Tensor& at, const Tensor& out,
                               Threads threads = {});

// x [batch, head, seq, head_dim] rotated by angles [batch, head, seq, pair] in radians, of any
// dtype; one batch or one head of them serves all. Of the plan, the slice, the pairing, the
// amplitude and the phases of the side hold; its frequencies and the lengths that it holds for are
// not read.
// Errors: no rotation of this side, xPos' growth (it needs a position), a polar rotation, an
// engine's angles, shapes.
Expected<void> rotate_by(const Plan& plan, const Tensor& x, const Tensor& angles, Side side,
                         const Tensor& out, Threads threads = {});

// The transpose of rotate_by: the gradient of its input from the gradient of its output. That by
// the angles is angle_gradient() of gradients.h.
Expected<void> rotate_by_transpose(const Plan& plan, const Tensor& x, const Tensor& angles,
                                   Side side, const Tensor& out, Threads threads = {});

// The inverse of rotate_by: divides by the amplitude where rotate_by multiplied.
Expected<void> rotate_by_inverse(const Plan& plan, const Tensor& x, const Tensor& angles, Side side,
                                 const Tensor& out, Threads threads = {});

// --- a bias by distance --------------------------------------------------------------------------

// What is added to the logits by distance: out [head, query, key]. A plan without a bias gives
// zeros.
// Errors: heads that do not match, a learned table not given, a distance the table does not reach.
Expected<void> bias(const Plan& plan, const Positions& queries, const Positions& keys,
                    const Tensor& out, Threads threads = {});

}  // namespace posenc
