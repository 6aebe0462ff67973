// The mask's blocks, which few calls have.
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

}  // namespace posenc::detail
