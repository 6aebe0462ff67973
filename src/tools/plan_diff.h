// The part of a comparison that plans alone decide.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/plan.h"
#include "posenc/tools.h"

namespace posenc::detail {

inline constexpr std::int64_t usual_length = 8192;  // to tell a difference for, where none is asked

inline constexpr std::string_view axes_not_seen =
    "tokens of pictures and videos have a position on each axis, which the model with fewer axes "
    "does not see";

// Where two plans do otherwise what both do, in the order of a plan's parts; the code of other
// frequencies is "frequency". length: positions that it is told for.
std::vector<Finding> plan_differences(const Plan& expected, const Plan& found,
                                      std::int64_t head_dim, std::int64_t length);

}  // namespace posenc::detail
