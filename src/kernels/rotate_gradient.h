// Gradients by a rotation's frequencies and phases.
#pragma once

#include <string_view>
#include <vector>

#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/positions.h"
#include "posenc/tensor.h"

namespace posenc::detail {

// Adds sign · the gradient by the frequencies to `sum` [head or 1][axis][pair], given what was
// rotated and the gradient by it, [batch, head, seq, head_dim], all of it checked. The sign is −1
// where it was rotated back.
void add_frequency_gradient(const Rotate& rotate, const Positions& positions, const Tensor& rotated,
                            const Tensor& gradient, double sign, std::vector<double>& sum);

// Where the gradients by a mixture are summed; null: not wanted.
struct MixSums {
  std::vector<double>* cosine = nullptr;     // [head or 1][input][output]
  std::vector<double>* sine = nullptr;       // the same
  std::vector<double>* frequency = nullptr;  // [axis][pair]
};

// Adds the gradients by a mixture and by the frequencies that it mixes, out of tokens x before they
// were rotated and the gradient by what they became.
void add_mix_gradient(const Rotate& rotate, const Positions& positions, const Tensor& x,
                      const Tensor& gradient, const MixSums& sums);

// The same by the phases of the side that has some, [head or 1][pair].
void add_phase_gradient(const Rotate& rotate, const Tensor& rotated, const Tensor& gradient,
                        std::vector<double>& sum);

}  // namespace posenc::detail
