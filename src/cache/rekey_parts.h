// What the forms of keys share on their way from one rotation and place to another: dense
// (rekey.cc), in pages (rekey_pages.cc), in 8 bits (rekey_coded.cc).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "posenc/rekey.h"

namespace posenc::detail {

// Plans are there, and of rotations that can be taken back; keys or values are meant.
Expected<void> check_stands(const Stand& from, const Stand& to, Side side);

// A position for each of so many tokens, in one row or one for each sequence.
Expected<void> check_positions(const Stand& from, const Stand& to, std::int64_t sequences,
                               std::int64_t tokens);

// Neighbouring pages of one sequence, which are moved at once: a batch of as many rows.
struct PageRun {
  std::int64_t sequence = 0, page = 0, pages = 0;
  std::int64_t first = 0, tokens = 0;  // of the sequence, and in each page
};

// Those of a block table. Errors: pages that the pool does not have, a page of two sequences, more
// tokens than pages.
Expected<std::vector<PageRun>> page_runs(std::int64_t pool_pages, std::int64_t page_size,
                                         std::span<const std::int32_t> table,
                                         std::span<const std::int64_t> tokens);

// Keys [batch, kv_head, tokens, head_dim] of what has been checked.
Expected<void> move_keys(const Stand& from, const Stand& to, const Tensor& keys,
                         const Tensor& result, Side side, Threads threads);

}  // namespace posenc::detail
