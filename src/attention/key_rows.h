// A block of keys and values in the loop of attention: as the caller has them where that serves,
// else loaded and rotated.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "src/attention/query_rows.h"
#include "src/kernels/cached_rows.h"
#include "src/kernels/gemm.h"
#include "src/kernels/gemm16.h"

namespace posenc::detail {

template <class T>
class KeyRows {
 public:
  const std::int64_t panel;
  T* const panels;                             // null: none
  const T *keys = nullptr, *values = nullptr;  // of the block that was read
  std::int64_t step = 0, value_step = 0;       // from row to row
  // Where products are of pairs: keys in panels, [panel][pair][column], and values, [pair of
  // keys][value_step]. Of those that are not finite they hold zeros, and `values` the others'.
  Pair16 *const key_pairs, *const value_pairs;
  // Of few queries: rows as the caller has them; `keys`, and `values` until they are needed, are
  // then those of no block.
  std::optional<CachedRows> cached_keys, cached_values;

  // in_panels: keys are transposed into panels, too, for the products of many rows.
  KeyRows(const AttendJob& job, const QueryRows<T>& queries, bool in_panels, Scratch& scratch)
      : panel(panel_columns<T>()),
        panels(in_panels && !job.pairs ? scratch.take<T>((key_block + panel) * queries.depth)
                                       : nullptr),
        key_pairs(job.pairs ? scratch.take<Pair16>((key_block + panel) * queries.pairs) : nullptr),
        value_pairs(job.pairs ? scratch.take<Pair16>(key_block / 2 * padded(job.in->v.shape[3]))
                              : nullptr),
        in_(*job.in),
        plan_(*job.plan),
        rotates_keys_(plan_.rotate && !job.keys_rotated),
        rotates_values_(plan_.rotate && plan_.rotate->rotates_values() && !in_.keys_rotated),
        stay_(std::is_same_v<T, float> && !in_panels && in_.mask->keys == nullptr),
        depth_(queries.depth),
        pairs_(queries.pairs),
        own_step_(queries.step),
        own_value_step_(padded(in_.v.shape[3])),
        k_(scratch.take<T>(key_block * own_step_)),
        v_(scratch.take<T>(key_block * own_value_step_)),
        rows_(job.pairs ? scratch.take<Pair16>(key_block * pairs_) : nullptr),
        aside_(job.pairs ? scratch.take<T>(key_block * own_value_step_) : nullptr) {}

  // Those of `at`, as the pass has them.
  void read(const BiasBlock& at, const RegionPass<T>& pass) {
    const Tensor &k = in_.k, &v = in_.v;
    const std::int64_t count = at.key_count, first = at.keys.first(),
                       head = at.first_head / in_.group(),
                       from = k.offset(at.sequence, head, first),
                       v_from = v.offset(at.sequence, head, first);
    Positions positions =
        rotates_keys_ || rotates_values_ ? in_.keys->slice(at.sequence, first, count) : Positions();
    if (pass.region != nullptr) positions = mapped(positions, pass.region->key);
    cached_keys = cached_values = std::nullopt;
    if (stay_ && has_cached_rows(k) && !rotates_keys_ && depth_ == k.shape[3]) {
      cached_keys = CachedRows{k.data, k.dtype, k.stride[2]}.from_number(from);
    } else if (stands_ready(k) && !rotates_keys_) {
      keys = static_cast<const T*>(k.data) + from;
      step = k.stride[2];
    } else {
      load_cached_rows(k, from, count, k_, own_step_);
      if (depth_ != k.shape[3]) widen(*plan_.rotate, k.shape[3], k_, own_step_, count);
      if (rotates_keys_)
        rotate_rows(pass.rotation(plan_), head, k_, own_step_, count, depth_, positions, Side::key,
                    Action::forward);
      keys = k_;
      step = own_step_;
    }
    if (panels != nullptr) transpose_to_panels(keys, step, count, depth_, panels);
    if (stay_ && has_cached_rows(v) && !rotates_values_) {
      cached_values = CachedRows{v.data, v.dtype, v.stride[2]}.from_number(v_from);
      value_from_ = v_from;
      values = nullptr;
    } else if (stands_ready(v) && !rotates_values_) {
      values = static_cast<const T*>(v.data) + v_from;
      value_step = v.stride[2];
    } else {
      load_cached_rows(v, v_from, count, v_, own_value_step_);
      if (rotates_values_)
        rotate_rows(pass.rotation(plan_), head, v_, own_value_step_, count, v.shape[3], positions,
                    Side::value, Action::forward);
      values = v_;
      value_step = own_value_step_;
    }
    count_ = count;
    finite_.reset();
    if constexpr (std::is_same_v<T, float>) {
      if (pairs_ > 0) pair();
    }
  }

  // Values as floats, where they were left as they are.
  void need_values() {
    if (values != nullptr) return;
    load_cached_rows(in_.v, value_from_, count_, v_, own_value_step_);
    values = v_;
    value_step = own_value_step_;
  }
  bool values_finite() {
    if (!finite_) finite_ = all_finite(values, value_step, count_, in_.v.shape[3]);
    return *finite_;
  }

 private:
  // The block as pairs.
  void pair() {
    pair_columns(keys, step, count_, depth_, rows_, pairs_);
    transpose_to_panels(rows_, pairs_, count_, pairs_, key_pairs);
    const std::int64_t whole = 2 * padded_pairs(count_);
    if (!values_finite()) {
      // Weights of 0 must not meet them in the products.
      for (std::int64_t at = 0; at < count_ * own_value_step_; ++at) {
        aside_[at] = std::isfinite(v_[at]) ? 0 : v_[at];
        if (aside_[at] != 0) v_[at] = 0;
      }
      values = aside_;
    }
    pair_rows(v_, own_value_step_, count_, in_.v.shape[3], whole, value_pairs, own_value_step_);
  }

  // Whether rows can be read where the caller has them.
  static bool stands_ready(const Tensor& x) {
    constexpr DType own = sizeof(T) == sizeof(double) ? DType::f64 : DType::f32;
    return x.dtype == own && x.stride[3] == 1 && x.shape[3] % row_lanes == 0;
  }

  const AttendArguments& in_;
  const Plan& plan_;
  const bool rotates_keys_, rotates_values_, stay_;
  const std::int64_t depth_, pairs_, own_step_, own_value_step_;
  T *const k_, *const v_;
  Pair16* const rows_;  // of keys, [key][pairs_]
  T* const aside_;
  std::int64_t count_ = 0, value_from_ = 0;
  std::optional<bool> finite_;  // not asked yet
};

}  // namespace posenc::detail
