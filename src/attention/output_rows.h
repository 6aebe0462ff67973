// What the rows of a block of queries have come to: a running softmax and a sum of weighted values
// each.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "src/attention/query_rows.h"
#include "src/attention/relative.h"
#include "src/attention/softmax.h"

namespace posenc::detail {

template <class T>
class OutputRows {
 public:
  const std::int64_t step;
  T* const sums;  // [row][step]

  OutputRows(const AttendJob& job, Scratch& scratch)
      : step(padded(job.in->v.shape[3])),
        sums(scratch.take<T>((job.in->group() * job.block + tile_rows) * step)),
        in_(*job.in),
        plan_(*job.plan),
        group_(in_.group()),
        row_max_(scratch.take<T>(group_ * job.block)),
        sum_(scratch.take<T>(group_ * job.block)),
        rounded_(job.pairs ? scratch.take<T>(group_ * job.block) : sum_) {}

  void begin(const BiasBlock& at) {
    const std::int64_t count = at.query_count, rows = group_ * count;
    std::fill_n(sums, rows * step, T{0});
    // The softmax begins with what the sink adds to it.
    for (std::int64_t row = 0; row < rows; ++row) {
      row_max_[row] = static_cast<T>(
          in_.sink(at.sequence, at.first_head + row / count, at.queries.first() + row % count));
      sum_[row] = row_max_[row] == -std::numeric_limits<T>::infinity() ? T{0} : T{1};
      rounded_[row] = sum_[row];
    }
  }

  // A row's logits to weights, and what older ones are to be multiplied by, which its sums are.
  // `pairs`, if given: see fold_pairs().
  T fold(std::int64_t row, SoftmaxRow<T>& softmax, Pair16* pairs = nullptr, bool keeps = true) {
    softmax.row_max = row_max_[row];
    softmax.sum = sum_[row];
    // Of a row that has seen nothing yet the sums are zeros, and stay so.
    const bool begun = sum_[row] != 0;
    T correction = 1;
    if (pairs == nullptr) {
      correction = detail::fold(softmax);
    } else if constexpr (std::is_same_v<T, float>) {
      correction = fold_pairs(softmax, pairs, keeps);
      rounded_[row] = rounded_[row] * correction + softmax.added_rounded;
    }
    row_max_[row] = softmax.row_max;
    sum_[row] = softmax.sum;
    if (correction != 1 && begun) scale_row(sums + row * step, step, correction);
    return correction;
  }

  void write(const BiasBlock& at, const RelativeTerms<T>& relative) {
    const std::int64_t count = at.query_count, rows = group_ * count, first = at.queries.first();
    const bool rotates = plan_.rotate && plan_.rotate->rotates_outputs();
    const bool adds_later = rotates || relative.adds_values();
    for (std::int64_t row = 0; row < rows && adds_later; ++row) {
      if (rounded_[row] != 0) scale_row(sums + row * step, step, 1 / rounded_[row]);
    }
    if (rotates) {
      const Positions positions = in_.queries->slice(at.sequence, first, count);
      for (std::int64_t g = 0; g < group_; ++g)
        rotate_rows(*plan_.rotate, plan_.rotate->mix() ? at.first_head / group_ : at.first_head + g,
                    sums + g * count * step, step, count, in_.v.shape[3], positions, Side::value,
                    Action::inverse);
    }
    for (std::int64_t row = 0; row < rows; ++row) {
      T* const out = sums + row * step;
      const std::int64_t g = row / count, query = row % count;
      if (in_.log_sums) write_log_sum(row, at.sequence, at.first_head + g, first + query);
      if (relative.adds_values()) relative.add_values(g, query, sum_[row], out);
      const T factor = adds_later || rounded_[row] == 0 ? T{1} : 1 / rounded_[row];
      store_rows(out, step, 1, factor * static_cast<T>(in_.value_scale), in_.out,
                 in_.out.offset(at.sequence, at.first_head + g, first + query));
    }
  }

 private:
  void write_log_sum(std::int64_t row, std::int64_t sequence, std::int64_t head,
                     std::int64_t query) const {
    const double sum = static_cast<double>(sum_[row]);
    in_.log_sums.set(in_.log_sums.offset(sequence, head, query),
                     sum == 0 ? -std::numeric_limits<double>::infinity()
                              : static_cast<double>(row_max_[row]) + std::log(sum));
  }

  const AttendArguments& in_;
  const Plan& plan_;
  const std::int64_t group_;

  T *const row_max_, *const sum_;  // [row]
  // [row]: what outputs are divided by, so that they are means of values however weights were
  // rounded
  T* const rounded_;
};

}  // namespace posenc::detail
