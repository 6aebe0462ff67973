// What each rank has to do and what it must send, counted by formulas: a text of a million tokens
// takes no longer than one of a thousand.
#pragma once

#include <cstdint>
#include <vector>

#include "posenc/layout.h"

namespace posenc::layout::detail {

// Which keys the query at position q of a text of `length` tokens sees.
struct Seen {
  std::int64_t length = 0;
  bool causal = true;
  // Tokens before the query, itself not counted, and behind it; `length` and more: all.
  std::int64_t before = 0, after = 0;
  std::int64_t chunk = 0;       // 0: none
  std::int64_t compressed = 0;  // tokens that a further key stands for, once they are all there
  std::int64_t most_keys = 0;   // that an indexer picks, of these or of all; 0: no indexer

  std::int64_t at(std::int64_t query) const;  // how many
  // Σ over queries first, first + step, …, `count` of them.
  std::int64_t sum(std::int64_t first, std::int64_t step, std::int64_t count) const;
};

// [rank], each rank's queries against all keys that they see.
std::vector<std::int64_t> pairs_of(const Layout& layout, const Seen& seen);

// Keys of other ranks that a rank's queries may see, summed over ranks: tokens of the text, and of
// those which summarize `compressed` tokens.
struct Visited {
  double tokens = 0, compressed = 0;
};
Visited visited(const Layout& layout, const Seen& seen);

}  // namespace posenc::layout::detail
