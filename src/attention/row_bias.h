// What position adds to a query's logits besides what meets its vector: asked for row by row, by the loop of
// attention and by that of its gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "posenc/plan.h"
#include "src/attention/visible.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"

namespace posenc::detail {

// The queries of a key head's query heads, and keys, that meet.
struct BiasBlock {
  std::int64_t sequence = 0, first_head = 0;  // of `group` query heads
  PositionBlock queries, keys;
  std::int64_t query_count = 0, key_count = 0;
};

// A provider. T is what is computed in.
template <class T>
class RowBias {
 public:
  virtual ~RowBias() = default;
  struct Row {
    // [key] of the block, whole vectors of it readable, as it is until gemm_rows more rows are asked for;
    // null: nothing
    const T* bias = nullptr;
    T factor = 1;  // times this
  };
  // Before the rows of a block are asked for.
  virtual void begin(const BiasBlock& block) = 0;
  // Of query `query` of the block's head `g`, whose logits are scaled by `scale`. What the query sees may
  // be narrowed. `buffer` [key_count, padded] is the caller's, to be returned filled or left.
  virtual Row row(std::int64_t g, std::int64_t query, T scale, VisibleRange& seen, T* buffer) = 0;
  // Takes the gradient by the logits of a row, 0 where hidden, for what the bias has learned.
  virtual void take_gradient(std::int64_t /*g*/, std::int64_t /*query*/, T /*scale*/,
                             const VisibleRange& /*seen*/, const T* /*by_logit*/) {}
};

// The row of a table for a distance that it reaches; of what it does not, hidden from all, any row.
inline std::int64_t row_at(const DistanceRows& rows, std::int64_t distance) {
  const auto listed = static_cast<std::int64_t>(rows.row.size());
  const std::int64_t at = distance <= rows.first ? 0 : std::min(distance - rows.first, listed - 1);
  return rows.row[static_cast<std::size_t>(at)];
}

// The plan's bias, by slopes or by a table. Where queries and keys both follow each other, one window of
// numbers by distance serves every row of a block: each row reads it from one number further on.
template <class T>
class PlanBias : public RowBias<T> {
 public:
  // most_*: of any block.
  PlanBias(const Plan& plan, std::int64_t group, std::int64_t most_queries, std::int64_t most_keys)
      : bias_(plan.bias ? &*plan.bias : nullptr),
        slopes_(plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr),
        group_(group) {
    if (bias_ == nullptr) return;
    if (slopes_ == nullptr) values_ = std::get<BiasTable>(*bias_).values.values.with_rank(2);
    step_ = padded(most_queries + most_keys) + row_lanes;
    window_ = scratch_.take_zeros<T>(group * step_);
  }

  void begin(const BiasBlock& block) override {
    if (bias_ == nullptr) return;
    block_ = &block;
    windowed_ = block.queries.consecutive && block.keys.consecutive;
    if (!windowed_) return;
    last_query_ = block.query_count - 1;
    longest_ = block.queries.position(last_query_) - block.keys.position(0);
    distances_ = last_query_ + block.key_count;
    for (std::int64_t g = 0; g < group_; ++g)
      by_distance(block.first_head + g, longest_, distances_, window_ + g * step_);
  }

  RowBias<T>::Row row(std::int64_t g, std::int64_t query, T scale, VisibleRange& seen,
                      T* buffer) override {
    if (bias_ == nullptr) return {};
    const T factor = slopes_ != nullptr && slopes_->before_scale ? scale : T{1};
    if (windowed_) return {window_ + g * step_ + (last_query_ - query), factor};
    std::fill_n(buffer, block_->key_count + row_lanes, T{0});
    const std::int64_t position = block_->queries.position(query);
    for (std::int64_t j = seen.begin; j < seen.end; ++j)
      by_distance(block_->first_head + g, position - block_->keys.position(j), 1, buffer + j);
    return {buffer, factor};
  }

 protected:
  // The bias at distances longest, longest − 1, …
  void by_distance(std::int64_t head, std::int64_t longest, std::int64_t count, T* to) const {
    if (slopes_ != nullptr) {
      const double slope = -slopes_->slope[static_cast<std::size_t>(head)];
      const auto start = static_cast<double>(longest);
      const bool both_ways = slopes_->bidirectional;
      for (std::int64_t n = 0; n < count; ++n) {
        const double distance = start - static_cast<double>(static_cast<std::int32_t>(n));
        to[n] = static_cast<T>(slope * (both_ways ? std::abs(distance) : distance));
      }
      return;
    }
    const DistanceRows& rows = std::get<BiasTable>(*bias_).rows;
    const std::int64_t of_head = values_.shape[0] == 1 ? 0 : head;
    std::int64_t before = -1;
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t row = row_at(rows, longest - n);
      to[n] =
          row == before
              ? to[n - 1]
              : static_cast<T>(values_.get(of_head * values_.stride[0] + row * values_.stride[1]));
      before = row;
    }
  }

  Scratch scratch_;
  const Bias* bias_;
  const Slopes* slopes_;
  Tensor values_;  // of a table, [head or 1][row]
  const std::int64_t group_;
  std::int64_t step_ = 0, last_query_ = 0;
  std::int64_t longest_ = 0, distances_ = 0;  // of a window: its first distance, and how many
  T* window_ = nullptr;  // [head of the group][step_]: by distance, the longest first
  const BiasBlock* block_ = nullptr;
  bool windowed_ = false;
};

}  // namespace posenc::detail
