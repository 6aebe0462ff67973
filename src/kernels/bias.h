// Biases that depend on the distance between a query and a key.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/error.h"
#include "posenc/plan.h"

namespace posenc::detail {

// The bias is for this many heads, and its table is there.
Expected<void> check_bias(std::string_view where, const Bias& bias, std::int64_t heads);

// What a checked bias adds to the logit of a head. Errors: a distance the table does not reach.
Expected<double> bias_at(const Bias& bias, std::int64_t head, std::int64_t distance);

}  // namespace posenc::detail
