// Biases that depend on the distance between a query and a key.
#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/error.h"
#include "posenc/plan.h"
#include "posenc/positions.h"

namespace posenc::detail {

// The bias is for this many heads, and its table is there.
Expected<void> check_bias(std::string_view where, const Bias& bias, std::int64_t heads);

// Axes of the positions that a plan reads by rotation or bias; 0: no plan of several axes, the
// first of any is read.
std::int64_t axes_of(const Plan& plan);

// Two tokens of a sequence.
struct Pair {
  const Positions& queries;
  const Positions& keys;
  std::int64_t sequence, query, key;
  std::int64_t distance(std::int64_t axis) const {
    return queries.at(query, sequence, axis) - keys.at(key, sequence, axis);
  }
};

// What a checked bias adds to the logit of a head. Errors: a distance the table does not reach.
Expected<double> bias_at(const Bias& bias, std::int64_t head, const Pair& pair);

}  // namespace posenc::detail
