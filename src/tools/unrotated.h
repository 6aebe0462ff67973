// What holds at a longer context for a model whose position is no rotation.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "posenc/model.h"

namespace posenc::detail {

// What to do, by which rule, and why: as of ContextPlan.
struct Holds {
  std::string_view recommended, rule, source;
  std::string reason;
};

// `plan` is that of the first group. Nothing: a rotation decides.
std::optional<Holds> by_scheme(const Model& model, std::int64_t to, const Plan& plan);

}  // namespace posenc::detail
