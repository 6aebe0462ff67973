// Rotations by angles that tokens say (angles.h), around attention that has no position of its own.
#pragma once

#include <string>
#include <string_view>

#include "posenc/angles.h"
#include "posenc/gradients.h"

namespace posenc::lab {

// One of the forms by its name: selective_rope, carope, mamba3, grape_m, repo.
struct ContentRope {
  std::string name;
  std::int64_t first = 0;  // RePo's first layer; those below rotate as RoPE, as its authors have it

  static bool is_name(std::string_view name);
  Expected<AngleForm> form(std::int64_t head_dim) const;
  bool operator==(const ContentRope&) const = default;
};

Expected<void> attend(const AttentionInputs& in, const AngleForm& form, const SaidAngles& said,
                      const Tensor& out);
// Writes the gradients of q, k, v and of what was said.
Expected<void> attend_backward(const AttentionInputs& in, const AngleForm& form,
                               const SaidAngles& said, const Tensor& out_gradient,
                               const AttentionGradients& wanted, const SaidGradients& by_said);

}  // namespace posenc::lab
