// Biases by distance of keys that stand on a grid: the patches of a picture.
#pragma once

#include <algorithm>
#include <cstdint>

#include "posenc/plan.h"
#include "src/attention/visible.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"

namespace posenc::detail {

// A head's numbers of a table by distance, the longest first, row_lanes of room on both sides.
// Beyond either end the end's number holds.
template <class T>
struct DistanceLine {
  const T* numbers = nullptr;
  std::int64_t listed = 0;

  // Numbers [x, x + count) to `to`, where whole vectors may be written.
  void copy(std::int64_t x, std::int64_t count, T* to) const {
    const std::int64_t from = std::clamp<std::int64_t>(-x, 0, count),
                       end = std::clamp(listed - x, from, count);
    std::fill(to, to + from, numbers[0]);
    for (std::int64_t c = from; c < end; c += row_lanes)
      std::copy_n(numbers + x + c, row_lanes, to + c);
    std::fill(to + end, to + count, numbers[listed - 1]);
  }
};

// Keys stand on a grid where they are runs of `width` positions each, `stride` from the start of
// one run to that of the next. A query of column c that stands one run further on meets every
// number one run earlier, so all queries of a column read one list, in the order of keys, and
// nothing is put together for each of them.
template <class T>
class GridRows {
 public:
  // Lists of `at_once` heads are kept, of all where they are small.
  GridRows(std::int64_t heads, std::int64_t at_once)
      : heads_(heads), at_once_(std::min(at_once, heads)) {}

  // Before the rows of a block of keys are asked for. run_end [key]: where the run of keys ends
  // that follow each other.
  void begin(const PositionBlock& keys, std::int64_t count, const std::int64_t* run_end,
             const DistanceRows& rows) {
    count_ = count;
    if (width_ == 0) find(keys, count, run_end, rows);
    stands_ = width_ > 0 && stand(keys, count, run_end);
  }

  // Numbers by key of a query at `position`, whole vectors of them; null: it is put together
  // otherwise.
  const T* row(std::int64_t head, std::int64_t position, const DistanceLine<T>& line) {
    if (!stands_) return nullptr;
    const std::int64_t run = PositionMap::floored(position - origin_, stride_);
    const std::int64_t column = position - origin_ - run * stride_;
    const std::int64_t first = (run_of_first_ - run + before_) * width_ + column_of_first_;
    if (column >= width_ || first < 0 || first + count_ > runs_ * width_) return nullptr;
    const T* const numbers = list(head, column, line) + first;
    // Lists of all columns are more than the first cache holds, and the product of the tile comes
    // before their use.
    for (std::int64_t j = 0; j < count_ + row_lanes; j += 64 / static_cast<std::int64_t>(sizeof(T)))
      __builtin_prefetch(numbers + j);
    return numbers;
  }

 private:
  static constexpr std::int64_t most_numbers = 1024 * 1024;

  // The second of three runs is a whole one.
  void find(const PositionBlock& keys, std::int64_t count, const std::int64_t* run_end,
            const DistanceRows& rows) {
    const std::int64_t second = run_end[0];
    if (second >= count) return;
    const std::int64_t third = run_end[second];
    if (third >= count) return;
    const std::int64_t width = third - second;
    const std::int64_t stride = keys.position(third) - keys.position(second);
    if (stride < width) return;
    before_ = std::max<std::int64_t>(rows.last(), 0) / stride + 1;
    runs_ = before_ + std::max<std::int64_t>(-rows.first, 0) / stride + 2;
    list_step_ = padded(runs_ * width) + 2 * row_lanes;
    if (width * list_step_ > most_numbers) return;
    width_ = width, stride_ = stride, origin_ = keys.position(second), last_ = rows.last();
    slots_ = std::clamp(most_numbers / (width * list_step_), at_once_, heads_);
    lists_ = scratch_.take<T>(slots_ * width * list_step_);
    holds_ = scratch_.take<std::int64_t>(slots_ * width);
    std::fill_n(holds_, slots_ * width, -1);
  }
  // Whether every run of the block is one of the grid's, the first and the last maybe cut short.
  bool stand(const PositionBlock& keys, std::int64_t count, const std::int64_t* run_end) {
    for (std::int64_t j = 0; j < count; j = run_end[j]) {
      const std::int64_t from_origin = keys.position(j) - origin_;
      const std::int64_t run = PositionMap::floored(from_origin, stride_);
      const std::int64_t column = from_origin - run * stride_;
      if (j == 0) run_of_first_ = run, column_of_first_ = column;
      if (column + run_end[j] - j > width_ ||
          (run - run_of_first_) * width_ + column - column_of_first_ != j)
        return false;
    }
    return true;
  }
  const T* list(std::int64_t head, std::int64_t column, const DistanceLine<T>& line) {
    const std::int64_t at = head % slots_ * width_ + column;
    T* const numbers = lists_ + at * list_step_;
    if (holds_[at] == head) return numbers;
    holds_[at] = head;
    for (std::int64_t run = 0; run < runs_; ++run)
      line.copy(last_ + (run - before_) * stride_ - column, width_, numbers + run * width_);
    std::fill(numbers + runs_ * width_, numbers + list_step_, T{0});
    return numbers;
  }

  Scratch scratch_;
  const std::int64_t heads_, at_once_;
  std::int64_t width_ = 0, stride_ = 0, origin_ = 0;  // width 0: no grid found yet
  std::int64_t last_ = 0;                             // the longest distance listed
  std::int64_t before_ = 0, runs_ = 0;  // of a list: runs before the query's own, and all
  std::int64_t list_step_ = 0, slots_ = 0;
  T* lists_ = nullptr;             // [slot][column][list_step_]
  std::int64_t* holds_ = nullptr;  // [slot][column]: whose; −1: none
  bool stands_ = false;            // the block at work
  std::int64_t count_ = 0, run_of_first_ = 0, column_of_first_ = 0;
};

}  // namespace posenc::detail
