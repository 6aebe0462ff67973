// Which keys a query sees: one rule for every attention kernel, pair by pair and for a block of
// keys at once.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

#include "posenc/attention.h"
#include "posenc/positions.h"
#include "src/attention/arguments.h"

namespace posenc::detail {

// Whether the mask's blocks have both tokens in one.
bool of_one_block(const Mask& mask, const Positions& queries, const Positions& keys, std::int64_t b,
                  std::int64_t i, std::int64_t j);

// A query's list of Mask::keys, as check_keys() leaves it: ascending, past its end `no_key`.
inline constexpr std::int32_t no_key = std::numeric_limits<std::int32_t>::max();
inline std::span<const std::int32_t> key_list(const Mask& mask, std::int64_t queries,
                                              std::int64_t b, std::int64_t i) {
  return {mask.keys + (b * queries + i) * mask.key_count, static_cast<std::size_t>(mask.key_count)};
}

// The order of query 0, where queries are the last of the keys.
inline std::int64_t first_order(const Positions& queries, const Positions& keys) {
  return queries.selected() ? 0 : keys.size() - queries.size();
}

// A picture's patches share their position in time, so with several axes the mask compares the
// order of the tokens, the last query standing at the last key. Whatever Mask::keys lists.
inline bool visible_if_listed(const Mask& mask, const Positions& queries, const Positions& keys,
                              std::int64_t b, std::int64_t i, std::int64_t j) {
  if (mask.keep != nullptr && mask.keep[b * keys.size() + j] == 0) return false;
  if (queries.segment(i) != keys.segment(j)) return false;
  if (mask.blocks != nullptr && of_one_block(mask, queries, keys, b, i, j)) return true;
  const bool by_position = queries.axes() == 1 && keys.axes() == 1;
  return by_position ? mask.sees(queries.at(i, b), keys.at(j, b))
                     : mask.sees(first_order(queries, keys) + queries.order(i), keys.order(j));
}

inline bool visible(const Mask& mask, const Positions& queries, const Positions& keys,
                    std::int64_t b, std::int64_t i, std::int64_t j) {
  return (mask.keys == nullptr ||
          std::ranges::binary_search(key_list(mask, queries.size(), b, i), j)) &&
         visible_if_listed(mask, queries, keys, b, i, j);
}

// Some tokens of a sequence: where they stand, for biases, and their order, for the mask.
class PositionBlock {
 public:
  std::int64_t lowest_order = 0, highest_order = 0, lowest_segment = 0, highest_segment = 0;
  std::int32_t lowest_block = 0, highest_block = -1;  // of the mask's blocks; none: an empty range
  // Each position and order is one above the last, all of one segment.
  bool consecutive = true;
  // Each order is above the last, all of one segment: what a mask without prefix shows is an
  // interval of them.
  bool ascending = true;
  // The same within each segment, and a segment's tokens lie beside each other, as those of a pack.
  bool segments_ascending = true, segments_consecutive = true;

  PositionBlock() = default;
  // order_offset: the order of token 0 where the mask does not compare positions. blocks: the
  // mask's, of the block's first token on; null: none.
  PositionBlock(const Positions& positions, bool by_position, std::int64_t order_offset,
                std::int64_t sequence, std::int64_t first, std::int64_t count,
                const std::int32_t* blocks)
      : positions_(&positions),
        blocks_(blocks),
        sequence_(sequence),
        first_(first),
        count_(count),
        by_position_(by_position),
        order_offset_(order_offset) {
    if (count == 0) return;
    if (blocks != nullptr) read_blocks(count);
    lowest_segment = highest_segment = positions.segment(first);
    lowest_order = order(0), highest_order = order(count - 1);
    if (positions.contiguous()) return;
    highest_order = lowest_order;
    for (std::int64_t t = 1; t < count; ++t) {
      lowest_order = std::min(lowest_order, order(t));
      highest_order = std::max(highest_order, order(t));
      lowest_segment = std::min(lowest_segment, segment(t));
      highest_segment = std::max(highest_segment, segment(t));
      consecutive = consecutive && position(t) == position(0) + t && order(t) == order(0) + t &&
                    segment(t) == segment(0);
      ascending = ascending && order(t) > order(t - 1) && segment(t) == segment(0);
      const bool next = segment(t) > segment(t - 1), same = segment(t) == segment(t - 1);
      segments_ascending = segments_ascending && (next || (same && order(t) > order(t - 1)));
      segments_consecutive =
          segments_consecutive && (next || (same && order(t) == order(t - 1) + 1));
    }
  }
  std::int64_t position(std::int64_t t, std::int64_t axis = 0) const {
    return positions_->at(first_ + t, sequence_, axis);
  }
  std::int64_t order(std::int64_t t) const {
    return by_position_ ? position(t) : order_offset_ + positions_->order(first_ + t);
  }
  std::int64_t segment(std::int64_t t) const { return positions_->segment(first_ + t); }
  std::int64_t first() const { return first_; }
  std::int64_t count() const { return count_; }
  std::int64_t sequence() const { return sequence_; }
  // end[t]: where the run of tokens ends, of the first `count`, whose positions follow t's one by
  // one.
  void find_runs(std::int64_t count, std::int64_t* end) const {
    for (std::int64_t t = count - 1; t >= 0; --t) {
      const bool goes_on = t + 1 < count && position(t + 1) == position(t) + 1;
      end[t] = goes_on ? end[t + 1] : t + 1;
    }
  }
  // Every sequence of a batch has these positions.
  bool shared() const { return positions_->batch() == 1 && positions_->axes() == 1; }
  // Whether token t is of a block of the mask that may have tokens in `other`.
  bool shares_block(std::int64_t t, const PositionBlock& other) const {
    return blocks_ != nullptr && other.has_block(blocks_[t]);
  }

 private:
  void read_blocks(std::int64_t count);
  bool has_block(std::int32_t block) const;

  const Positions* positions_ = nullptr;
  const std::int32_t* blocks_ = nullptr;
  std::int64_t sequence_ = 0, first_ = 0, count_ = 0;
  bool by_position_ = true;
  std::int64_t order_offset_ = 0;
};

// What a query sees of a block of keys.
struct VisibleRange {
  std::int64_t begin = 0, end = 0;  // counted from the block's first key
  bool holes = false;               // between them some are hidden
  bool empty() const { return begin >= end; }
};

// A mask over the queries and keys of an attention.
class Visibility {
 public:
  Visibility(const Mask& mask, const Positions& queries, const Positions& keys,
             RegionOf region = {})
      : mask_(&mask),
        region_(region),
        queries_(&queries),
        keys_(&keys),
        by_position_(queries.axes() == 1 && keys.axes() == 1),
        open_(!mask.causal && mask.window <= 0 && mask.chunk <= 0 && mask.keep == nullptr &&
              mask.keys == nullptr) {}

  // From now on what is seen of this region.
  void set(RegionOf region) { region_ = region; }

  PositionBlock query_block(std::int64_t b, std::int64_t first, std::int64_t count) const {
    const std::int64_t before = keys_->size() - queries_->size();
    const std::int32_t* const blocks = mask_->query_blocks != nullptr
                                           ? mask_->query_blocks + b * queries_->size() + first
                                           : blocks_of(b, before + first);
    return {*queries_, by_position_, first_order(*queries_, *keys_), b, first, count, blocks};
  }
  PositionBlock key_block(std::int64_t b, std::int64_t first, std::int64_t count) const {
    return {*keys_, by_position_, 0, b, first, count, blocks_of(b, first)};
  }

  bool pair(std::int64_t b, std::int64_t i, std::int64_t j) const {
    return (mask_->keys == nullptr ||
            std::ranges::binary_search(key_list(*mask_, queries_->size(), b, i), j)) &&
           pair_if_listed(b, i, j);
  }
  bool pair_if_listed(std::int64_t b, std::int64_t i, std::int64_t j) const {
    if (!visible_if_listed(*mask_, *queries_, *keys_, b, i, j)) return false;
    return region_.all == nullptr ||
           region_.all->of(queries_->at(i, b), keys_->at(j, b)) == region_.which;
  }

  // Whether some query of a block may see some key of another; a quick look.
  bool some(const PositionBlock& q, const PositionBlock& k) const {
    if (k.highest_segment < q.lowest_segment || k.lowest_segment > q.highest_segment) return false;
    if (mask_->keys != nullptr && !lists_some(q, k)) return false;
    // Regions lie behind each other: those of the farthest and of the nearest pair enclose all
    // others'.
    if (region_.all != nullptr &&
        (region_.all->of(q.highest_order, k.lowest_order) < region_.which ||
         region_.all->of(q.lowest_order, k.highest_order) > region_.which))
      return false;
    if (k.lowest_order < mask_->prefix) return true;
    if (k.lowest_block <= q.highest_block && q.lowest_block <= k.highest_block) return true;
    if (mask_->causal && k.lowest_order > q.highest_order) return false;
    return mask_->window == 0 || (q.lowest_order - k.highest_order < mask_->window &&
                                  k.lowest_order - q.highest_order < mask_->window);
  }

  // What query t of a block of sequence b sees of the `count` keys of another block.
  VisibleRange range(const PositionBlock& q, std::int64_t t, const PositionBlock& k,
                     std::int64_t count, std::int64_t b) const {
    VisibleRange seen{0, count};
    if (open_ && region_.all == nullptr && k.lowest_segment == k.highest_segment)
      return k.lowest_segment == q.segment(t) ? seen : VisibleRange{};
    if (mask_->keys != nullptr) return listed_range(q, t, k, seen, b);
    return range_if_listed(q, t, k, count, b);
  }

  // The keys that a query's list has of a range, counted as the list counts.
  std::span<const std::int32_t> listed(const PositionBlock& q, std::int64_t t,
                                       const PositionBlock& k, const VisibleRange& range) const {
    const auto list = key_list(*mask_, queries_->size(), q.sequence(), q.first() + t);
    const auto from = std::ranges::lower_bound(list, k.first() + range.begin);
    return {from, std::ranges::lower_bound(from, list.end(), k.first() + range.end)};
  }
  bool has_lists() const { return mask_->keys != nullptr; }

  // The same whatever Mask::keys lists.
  VisibleRange range_if_listed(const PositionBlock& q, std::int64_t t, const PositionBlock& k,
                               std::int64_t count, std::int64_t b) const {
    VisibleRange seen{0, count};
    const bool of_segments = !k.ascending && k.segments_ascending && region_.all == nullptr;
    const bool interval =
        (k.ascending || of_segments) && mask_->prefix <= 0 && !q.shares_block(t, k);
    if (interval && of_segments) {
      seen = of_segment(q.segment(t), k, count);
      if (seen.empty()) return {};
      const std::int64_t first = seen.begin;
      seen = k.segments_consecutive ? ordered(q.order(t), k.order(first), seen.end - first)
                                    : ascending(q.order(t), k, first, seen.end);
      if (k.segments_consecutive) seen.begin += first, seen.end += first;
      if (seen.empty()) return {};
    } else if (interval) {
      if (k.segment(0) != q.segment(t)) return {};
      seen = k.consecutive ? ordered(q.order(t), k.order(0), count)
                           : ascending(q.order(t), k, 0, count);
      if (region_.all != nullptr) within_region(q.order(t), k, count, seen);
    }
    if (interval && mask_->keep == nullptr) return seen;
    const std::int64_t i = q.first() + t;
    const auto shows = [&](std::int64_t j) {
      return interval ? mask_->keep[b * keys_->size() + k.first() + j] != 0
                      : pair_if_listed(b, i, k.first() + j);
    };
    while (seen.begin < seen.end && !shows(seen.begin)) ++seen.begin;
    while (seen.begin < seen.end && !shows(seen.end - 1)) --seen.end;
    for (std::int64_t j = seen.begin; j < seen.end && !seen.holes; ++j) seen.holes = !shows(j);
    return seen;
  }

  // Calls act(j) for each hidden key of a range with holes.
  template <class Act>
  void for_holes(const PositionBlock& q, std::int64_t t, const PositionBlock& k,
                 const VisibleRange& seen, std::int64_t b, const Act& act) const {
    if (mask_->keys != nullptr) {
      std::int64_t next = seen.begin;
      for (const std::int32_t id : listed(q, t, k, seen)) {
        const std::int64_t j = id - k.first();
        for (; next < j; ++next) act(next);
        next = pair_if_listed(b, q.first() + t, id) ? j + 1 : j;
      }
      for (; next < seen.end; ++next) act(next);
      return;
    }
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      if (!pair(b, q.first() + t, k.first() + j)) act(j);
    }
  }

 private:
  // Whether the list of some query of a block has a key of another.
  bool lists_some(const PositionBlock& q, const PositionBlock& k) const;
  // What a query's list leaves of `whole`, all keys of a block.
  VisibleRange listed_range(const PositionBlock& q, std::int64_t t, const PositionBlock& k,
                            const VisibleRange& whole, std::int64_t b) const;

  const std::int32_t* blocks_of(std::int64_t b, std::int64_t token) const {
    return mask_->blocks == nullptr ? nullptr : mask_->blocks + b * keys_->size() + token;
  }

  // Of keys one after the other in the mask's order. Sums that might overflow are of distances
  // beyond the block, where nothing is cut.
  VisibleRange ordered(std::int64_t query, std::int64_t first_key, std::int64_t count) const {
    VisibleRange seen{0, count};
    const std::int64_t ahead = query - first_key, window = mask_->window, chunk = mask_->chunk;
    if (mask_->causal && ahead < count) seen.end = std::max<std::int64_t>(ahead + 1, 0);
    if (window > 0 && ahead >= window) seen.begin = ahead - window + 1;
    if (window > 0 && (ahead < 0 || (ahead < count && window < count)))
      seen.end = std::min(seen.end, ahead + window);
    if (chunk > 0) {
      const std::int64_t before = query - mask_->chunk_of(query) * chunk;  // tokens of its chunk
      const std::int64_t from_it = chunk - before;                         // as many as stand there
      if (before < ahead) seen.begin = std::max(seen.begin, ahead - before);
      if (ahead < count - from_it) seen.end = std::min(seen.end, ahead + from_it);
    }
    return seen.empty() ? VisibleRange{} : seen;
  }

  // Cuts what is seen to the region, nearer ones of which have later keys.
  void within_region(std::int64_t query, const PositionBlock& k, std::int64_t count,
                     VisibleRange& seen) const {
    const auto first = [&](std::size_t nearest) {  // key of no farther region
      return first_that(
          0, count, [&](std::int64_t j) { return region_.all->of(query, k.order(j)) <= nearest; });
    };
    seen.begin = std::max(seen.begin, first(region_.which));
    if (region_.which > 0) seen.end = std::min(seen.end, first(region_.which - 1));
    if (seen.empty()) seen = {};
  }

  // Of keys that stand ever further on, such as those of a rank under a striped layout: searched by
  // halves.
  VisibleRange ascending(std::int64_t query, const PositionBlock& k, std::int64_t from,
                         std::int64_t end) const {
    const std::int64_t begin = first_that(from, end, [&](std::int64_t j) {
      return k.order(j) > query || mask_->sees(query, k.order(j));
    });
    end = first_that(begin, end, [&](std::int64_t j) {
      return k.order(j) > query && !mask_->sees(query, k.order(j));
    });
    return begin < end ? VisibleRange{begin, end} : VisibleRange{};
  }
  // The tokens of a segment, of segments that lie behind each other.
  static VisibleRange of_segment(std::int64_t segment, const PositionBlock& k, std::int64_t count) {
    const std::int64_t begin =
        first_that(0, count, [&](std::int64_t j) { return k.segment(j) >= segment; });
    return {begin,
            first_that(begin, count, [&](std::int64_t j) { return k.segment(j) > segment; })};
  }
  // The first of [from, end) that holds, as all behind it do; `end`: none.
  template <class Holds>
  static std::int64_t first_that(std::int64_t from, std::int64_t end, const Holds& holds) {
    while (from < end) {
      const std::int64_t middle = from + (end - from) / 2;
      holds(middle) ? end = middle : from = middle + 1;
    }
    return from;
  }

  const Mask* mask_;
  RegionOf region_;
  const Positions *queries_, *keys_;
  bool by_position_;
  bool open_;  // hides nothing but other sequences of a pack
};

}  // namespace posenc::detail
