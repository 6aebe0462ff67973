// The part of a plan that concerns some of the heads: rows of every list that runs over heads.
#pragma once

#include <cstdint>

#include "posenc/plan.h"

namespace posenc::detail {

struct Heads {
  std::int64_t first = 0, count = 0;
};

// Lists that all heads share stay as they are, and so does what is learned and not given.
Rotate some_heads(Rotate rotate, Heads queries, Heads keys);
Plan some_heads(Plan plan, Heads queries, Heads keys);

// A table [head][...], where it has `rank` axes and is not shared by all heads.
void cut_heads(Table& table, Heads heads, int rank);

}  // namespace posenc::detail
