// What position adds to a query's logits besides what meets its vector: asked for row by row, by
// the loop of attention and by that of its gradients.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "posenc/plan.h"
#include "src/attention/grid_rows.h"
#include "src/attention/visible.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"

namespace posenc::detail {

// The most rows that a loop asks for before it uses them.
constexpr std::int64_t tile_rows = 32;

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
    // [key] of the block, whole vectors of it readable, as it is until tile_rows more rows are
    // asked for; null: nothing
    const T* bias = nullptr;
    T factor = 1;  // times this
  };
  // Before the rows of a block are asked for.
  virtual void begin(const BiasBlock& block) = 0;
  // Rows of the block's head `g` that lie in the same distance from each other, whole vectors of
  // each readable: query i's begins at first + i · step. first is null where they are to be asked
  // for one by one.
  struct Rows {
    const T* first = nullptr;
    std::int64_t step = 0;
  };
  virtual Rows rows(std::int64_t /*g*/) { return {}; }
  // Of query `query` of the block's head `g`, whose logits are scaled by `scale`. What the query
  // sees may be narrowed. `buffer` [key_count, padded] is the caller's, to be returned filled or
  // left.
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

// The plan's bias, by slopes or by a table. Where queries and keys both follow each other, one
// window of numbers by distance serves every row of a block: each row reads it from one number
// further on. Where they do not, a table's rows are kept for short sequences, which windows of a
// picture are: all of a batch read them. Of longer ones a grid's are read as they lie (GridRows),
// and others are put together of runs of keys that do follow each other.
template <class T>
class PlanBias : public RowBias<T> {
 public:
  // most_*: of any block.
  PlanBias(const Plan& plan, std::int64_t group, std::int64_t most_queries, std::int64_t most_keys)
      : bias_(plan.bias ? &*plan.bias : nullptr),
        slopes_(plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr),
        table_(plan.bias ? std::get_if<BiasTable>(&*plan.bias) : nullptr),
        group_(group),
        grid_(table_ == nullptr ? 1 : table_->values.values.with_rank(2).shape[0], group) {
    if (bias_ == nullptr) return;
    step_ = padded(most_queries + most_keys) + row_lanes;
    window_ = scratch_.take_zeros<T>(group * step_);
    if (table_ == nullptr) return;
    values_ = table_->values.values.with_rank(2);
    axes_ = table_->axes();
    run_end_ = scratch_.take<std::int64_t>(most_keys);
    key_step_ = padded(most_keys) + row_lanes;
    if (axes_ > 1) from_first_key_ = scratch_.take_zeros<std::int32_t>((axes_ - 1) * key_step_);
  }

  void begin(const BiasBlock& block) override {
    if (bias_ == nullptr) return;
    block_ = &block;
    windowed_ = block.queries.consecutive && block.keys.consecutive && axes_ == 1;
    if (!windowed_) return table_ != nullptr ? begin_table() : void();
    last_query_ = block.query_count - 1;
    longest_ = block.queries.position(last_query_) - block.keys.position(0);
    distances_ = last_query_ + block.key_count;
    for (std::int64_t g = 0; g < group_; ++g)
      by_distance(block.first_head + g, longest_, distances_, window_ + g * step_);
  }

  RowBias<T>::Rows rows(std::int64_t g) override {
    if (windowed_ && (slopes_ == nullptr || !slopes_->before_scale))
      return {window_ + g * step_ + last_query_, -1};
    if (!windowed_ && keeps_) return {kept(block_->first_head + g), kept_step_};
    return {};
  }
  RowBias<T>::Row row(std::int64_t g, std::int64_t query, T scale, VisibleRange& seen,
                      T* buffer) override {
    if (bias_ == nullptr) return {};
    if (const auto all = PlanBias::rows(g); all.first != nullptr)
      return {all.first + query * all.step, T{1}};
    const T factor = slopes_ != nullptr && slopes_->before_scale ? scale : T{1};
    if (windowed_) return {window_ + g * step_ + (last_query_ - query), factor};
    const std::int64_t position = block_->queries.position(query);
    const std::int64_t head = block_->first_head + g;
    if (table_ != nullptr && looks_up_) {
      const T* numbers = line(head);
      const DistanceLine<T> first{numbers, std::ssize(rows().row)};
      if (axes_ == 1)
        if (const T* const whole = grid_.row(of_head(head), position, first)) return {whole, T{1}};
      std::fill_n(buffer, block_->key_count + row_lanes, T{0});
      by_runs(first, position, seen, buffer);
      for (std::int64_t axis = 1; axis < axes_; ++axis)
        add_by_axis(axis, numbers += line_length(axis - 1), query, seen, buffer);
      return {buffer, factor};
    }
    std::fill_n(buffer, block_->key_count + row_lanes, T{0});
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      by_distance(head, position - block_->keys.position(j), 1, buffer + j);
      for (std::int64_t axis = 1; axis < axes_; ++axis) {
        T further;
        table_by_distance(axis, head, distance(axis, query, j), 1, &further);
        buffer[j] += further;
      }
    }
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
    table_by_distance(0, head, longest, count, to);
  }
  // The same of one axis of a table.
  void table_by_distance(std::int64_t axis, std::int64_t head, std::int64_t longest,
                         std::int64_t count, T* to) const {
    const DistanceRows& rows = table_->of_axis(axis);
    const std::int64_t first = of_head(head) * values_.stride[0];
    std::int64_t before = -1;
    for (std::int64_t n = 0; n < count; ++n) {
      const std::int64_t row = row_at(rows, longest - n);
      to[n] =
          row == before ? to[n - 1] : static_cast<T>(values_.get(first + row * values_.stride[1]));
      before = row;
    }
  }
  std::int64_t distance(std::int64_t axis, std::int64_t query, std::int64_t key) const {
    return block_->queries.position(query, axis) - block_->keys.position(key, axis);
  }

  // --- a table off the diagonals -----------------------------------------------------------------

  static constexpr std::int64_t most_kept = 64 * 1024, most_numbers = 1024 * 1024;

  // Keys of a block that lie farther apart are asked for one by one, so that sums of looking up
  // stay within 32 bits.
  static constexpr std::int64_t far = std::int64_t{1} << 29;

  const DistanceRows& rows() const { return table_->rows; }
  std::int64_t of_head(std::int64_t head) const { return values_.shape[0] == 1 ? 0 : head; }

  void begin_table() {
    const std::int64_t queries = block_->query_count, keys = block_->key_count;
    const std::int64_t heads = values_.shape[0];
    line_step_ = 0;
    for (std::int64_t axis = 0; axis < axes_; ++axis) line_step_ += line_length(axis);
    if (lines_ == nullptr && heads * line_step_ <= most_numbers) {
      lines_ = scratch_.template take_zeros<T>(heads * line_step_);
      has_line_ = scratch_.template take_zeros<char>(heads);
    }
    looks_up_ = lines_ != nullptr;
    const std::int64_t step = padded(keys) + row_lanes;
    keeps_ = looks_up_ && axes_ == 1 && block_->queries.shared() && block_->keys.shared() &&
             block_->queries.first() == 0 && block_->keys.first() == 0 &&
             queries * step <= most_kept && heads * queries * step <= most_numbers &&
             (kept_ == nullptr || (queries == kept_queries_ && keys == kept_keys_));
    if (keeps_ && kept_ == nullptr) {
      kept_queries_ = queries, kept_keys_ = keys, kept_step_ = step;
      kept_ = scratch_.template take_zeros<T>(heads * queries * step);
      has_kept_ = scratch_.template take_zeros<char>(heads);
    }
    if (keeps_) return;
    block_->keys.find_runs(keys, run_end_);
    if (looks_up_ && axes_ == 1) grid_.begin(block_->keys, keys, run_end_, rows());
    for (std::int64_t axis = 1; axis < axes_; ++axis) {
      for (std::int64_t j = 0; j < keys; ++j) {
        const std::int64_t apart = block_->keys.position(j, axis) - block_->keys.position(0, axis);
        from_first_key_[(axis - 1) * key_step_ + j] = static_cast<std::int32_t>(apart);
        looks_up_ = looks_up_ && std::abs(apart) <= far;
      }
    }
  }
  // The rows of all queries, [query][kept_step_].
  const T* kept(std::int64_t head) {
    const std::int64_t h = of_head(head);
    T* const to = kept_ + h * kept_queries_ * kept_step_;
    if (has_kept_[h] != 0) return to;
    has_kept_[h] = 1;
    block_->keys.find_runs(kept_keys_, run_end_);
    for (std::int64_t i = 0; i < kept_queries_; ++i)
      by_runs({line(head), std::ssize(rows().row)}, block_->queries.position(i), {0, kept_keys_},
              to + i * kept_step_);
    return to;
  }
  std::int64_t line_length(std::int64_t axis) const {
    return padded(std::ssize(table_->of_axis(axis).row)) + 2 * row_lanes;
  }
  // A head's numbers by distance, the longest first; behind them, line_length() further, those of
  // the next axis.
  const T* line(std::int64_t head) {
    const std::int64_t h = of_head(head);
    T* const first = lines_ + h * line_step_ + row_lanes;
    T* to = first;
    for (std::int64_t axis = 0; axis < axes_ && has_line_[h] == 0; ++axis) {
      const DistanceRows& rows = table_->of_axis(axis);
      table_by_distance(axis, h, rows.last(), std::ssize(rows.row), to);
      to += line_length(axis);
    }
    has_line_[h] = 1;
    return first;
  }
  void add_by_axis(std::int64_t axis, const T* numbers, std::int64_t query,
                   const VisibleRange& seen, T* buffer) const {
    const DistanceRows& rows = table_->of_axis(axis);
    const std::int64_t of_first_key =
        std::clamp(rows.last() - distance(axis, query, 0), -2 * far, 2 * far);
    add_entries(numbers, static_cast<std::int32_t>(std::ssize(rows.row) - 1),
                from_first_key_ + (axis - 1) * key_step_ + seen.begin,
                static_cast<std::int32_t>(of_first_key), seen.end - seen.begin,
                buffer + seen.begin);
  }
  void by_runs(const DistanceLine<T>& line, std::int64_t position, const VisibleRange& seen,
               T* buffer) const {
    for (std::int64_t j = seen.begin, end = 0; j < seen.end; j = end) {
      end = std::min(run_end_[j], seen.end);
      line.copy(rows().last() - position + block_->keys.position(j), end - j, buffer + j);
    }
  }

  Scratch scratch_;
  const Bias* bias_;
  const Slopes* slopes_;
  const BiasTable* table_;
  Tensor values_;  // of the table, [head or 1][row]
  const std::int64_t group_;
  GridRows<T> grid_;
  std::int64_t axes_ = 1;
  std::int64_t step_ = 0, last_query_ = 0;
  std::int64_t longest_ = 0, distances_ = 0;  // of a window: its first distance, and how many
  T* window_ = nullptr;  // [head of the group][step_]: by distance, the longest first
  const BiasBlock* block_ = nullptr;
  bool windowed_ = false, keeps_ = false, looks_up_ = false;
  std::int64_t* run_end_ = nullptr;  // [key]: where the run of keys that follow each other ends
  T *kept_ = nullptr, *lines_ = nullptr;
  std::int32_t* from_first_key_ =
      nullptr;  // [axis − 1][key]: how far its position is from the first key's
  std::int64_t key_step_ = 0;
  char *has_kept_ = nullptr, *has_line_ = nullptr;  // [head or 1]
  std::int64_t kept_queries_ = 0, kept_keys_ = 0, kept_step_ = 0, line_step_ = 0;
};

}  // namespace posenc::detail
