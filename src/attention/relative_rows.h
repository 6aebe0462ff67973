// What vectors by distance meet (relative.h): queries and keys as they came or, of a plan with
// profiles, these.
#pragma once

#include <cmath>
#include <cstdint>

#include "src/attention/fused.h"
#include "src/attention/query_rows.h"
#include "src/attention/relative.h"

namespace posenc::detail {

template <class T>
class RelativeRows {
 public:
  using Side = RelativeTerms<T>::Side;

  RelativeRows(const AttendJob& job, const RelativeTerms<T>& terms, Scratch& scratch)
      : in_(*job.in), group_(in_.group()) {
    profiles_ = terms.present() && job.plan->relative->profiles > 0;
    if (profiles_)
      unscaled_ = static_cast<T>(std::sqrt(static_cast<double>(in_.q.shape[3])) /
                                 job.plan->logits.multiplier);
    step_ = padded(profiles_ ? job.plan->relative->profiles : in_.q.shape[3]);
    if (terms.meets_queries()) queries_ = scratch.take<T>(group_ * job.block * step_);
    if (terms.meets_keys()) keys_ = scratch.take<T>((profiles_ ? group_ : 1) * key_block * step_);
  }

  // From the scale of logits to their temperature alone, which multiplies profiles; else 1.
  T unscaled() const { return unscaled_; }

  Side queries(const BiasBlock& at, const T* scale) const {
    const Tensor& x = profiles_ ? in_.profiles.query : in_.q;
    const std::int64_t count = at.query_count, rows = queries_ == nullptr ? 0 : group_ * count;
    for (std::int64_t row = 0; row < rows; row += count)
      load_rows(x, x.offset(at.sequence, at.first_head + row / count, at.queries.first()), count,
                queries_ + row * step_, step_);
    for (std::int64_t row = 0; row < rows; ++row)
      scale_row(queries_ + row * step_, step_, scale[row] * unscaled_);
    return {queries_, step_};
  }
  // Each query head has profiles of its own.
  Side keys(const BiasBlock& at) const {
    const Tensor& x = profiles_ ? in_.profiles.key : in_.k;
    const std::int64_t first = profiles_ ? at.first_head : at.first_head / group_;
    for (std::int64_t g = 0; keys_ != nullptr && g < (profiles_ ? group_ : 1); ++g)
      load_rows(x, x.offset(at.sequence, first + g, at.keys.first()), at.key_count,
                keys_ + g * key_block * step_, step_);
    return {keys_, step_};
  }

 private:
  const AttendArguments& in_;
  const std::int64_t group_;
  bool profiles_ = false;
  T unscaled_ = 1;
  std::int64_t step_ = 0;
  T* queries_ = nullptr;  // [row][step]; null: not met
  T* keys_ = nullptr;     // [key][step], of profiles [head of the group][key][step]
};

}  // namespace posenc::detail
