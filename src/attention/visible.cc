// The mask's blocks and lists of keys, which few calls have.
#include "src/attention/visible.h"

namespace posenc::detail {

bool of_one_block(const Mask& mask, const Positions& queries, const Positions& keys, std::int64_t b,
                  std::int64_t i, std::int64_t j) {
  const std::int32_t* const row = mask.blocks + b * keys.size();
  const std::int32_t own = mask.query_blocks != nullptr ? mask.query_blocks[b * queries.size() + i]
                                                        : row[keys.size() - queries.size() + i];
  return own >= 0 && own == row[j];
}

void PositionBlock::read_blocks(std::int64_t count) {
  for (std::int64_t t = 0; t < count; ++t) {
    if (blocks_[t] < 0) continue;
    lowest_block = lowest_block > highest_block ? blocks_[t] : std::min(lowest_block, blocks_[t]);
    highest_block = std::max(highest_block, blocks_[t]);
  }
}

bool PositionBlock::has_block(std::int32_t block) const {
  return block >= 0 && lowest_block <= block && block <= highest_block;
}

bool Visibility::lists_some(const PositionBlock& q, const PositionBlock& k) const {
  for (std::int64_t t = 0; t < q.count(); ++t)
    if (!listed(q, t, k, {0, k.count()}).empty()) return true;
  return false;
}

VisibleRange Visibility::listed_range(const PositionBlock& q, std::int64_t t,
                                      const PositionBlock& k, const VisibleRange& whole,
                                      std::int64_t b) const {
  const VisibleRange rest = range_if_listed(q, t, k, whole.end, b);
  if (rest.empty()) return {};
  std::span<const std::int32_t> ids = listed(q, t, k, rest);
  std::int64_t count = std::ssize(ids);
  if (rest.holes) {
    const auto shows = [&](std::int32_t id) { return pair_if_listed(b, q.first() + t, id); };
    while (!ids.empty() && !shows(ids.front())) ids = ids.subspan(1);
    while (!ids.empty() && !shows(ids.back())) ids = ids.first(ids.size() - 1);
    count = std::ranges::count_if(ids, shows);
  }
  if (ids.empty()) return {};
  VisibleRange seen{ids.front() - k.first(), ids.back() + 1 - k.first()};
  seen.holes = count != seen.end - seen.begin;
  return seen;
}

}  // namespace posenc::detail
