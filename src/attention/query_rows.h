// A block of queries in the loop of attention: the rows of all query heads that share a key head,
// [head of the group][query], rotated once for each region.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "src/attention/fused.h"
#include "src/attention/regions.h"
#include "src/attention/row_bias.h"
#include "src/attention/visible.h"
#include "src/kernels/gemm16.h"
#include "src/kernels/polar.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/rows.h"
#include "src/kernels/scratch.h"

namespace posenc::detail {

// Rows of one head, where they lie.
template <class T>
void rotate_rows(const Rotate& rotate, std::int64_t head, T* rows, std::int64_t step,
                 std::int64_t count, std::int64_t columns, const Positions& positions, Side side,
                 Action action) {
  Tensor view = Tensor::dense(rows, {1, 1, count, columns});
  view.stride[2] = step;
  rotate_heads(rotate, head, view, positions, side, action);
}

// What a block of queries attends to at a time: all keys or, where there are regions, those of one.
template <class T>
struct RegionPass {
  Visibility visibility;
  // [row][step], rotated: floats times the scale of their logits or, where products are of pairs,
  // pairs as they are.
  T* q = nullptr;
  Pair16* q_pairs = nullptr;
  const Regions::Region* region = nullptr;  // null: all keys
  std::optional<Rotate> own = {};           // the region's rotation

  const Rotate& rotation(const Plan& plan) const { return own ? *own : *plan.rotate; }
  // Whether keys that were rotated for another pass stand as this one needs them.
  bool shares_keys(const RegionPass& other) const {
    return other.region->key == region->key &&
           other.region->frequency_scale == region->frequency_scale;
  }
};

template <class T>
class QueryRows {
 public:
  const std::int64_t depth, step;  // the width in which they multiply; from row to row
  const std::int64_t pairs;        // of the width, whole tiles; 0: products are of T
  T* const scale;                  // [row], of its logits

  QueryRows(const AttendJob& job, Scratch& scratch)
      : depth(widened(*job.plan, job.in->q).shape[3]),
        step(padded(depth)),
        pairs(job.pairs ? padded_pairs(depth) : 0),
        scale(scratch.take<T>(job.in->group() * job.block)),
        in_(*job.in),
        plan_(*job.plan),
        rotates_(plan_.rotate && !job.queries_rotated),
        group_(in_.group()),
        head_dim_(in_.q.shape[3]),
        whole_{Visibility(*in_.mask, *in_.queries, *in_.keys)} {
    const Regions* const regions = plan_.rotate ? plan_.rotate->regions() : nullptr;
    for (std::size_t r = 0; regions != nullptr && r < regions->region.size(); ++r) {
      by_region_.push_back(whole_);
      by_region_.back().visibility.set({regions, r});
      by_region_.back().region = &regions->region[r];
      by_region_.back().own = rotation_of(*plan_.rotate, regions->region[r]);
    }
    const std::int64_t rows = group_ * job.block;
    for (RegionPass<T>& pass : passes()) {
      pass.q = scratch.take<T>(rows * step);
      if (pairs > 0) pass.q_pairs = scratch.take<Pair16>((rows + tile_rows) * pairs);
    }
  }

  // All of them, which differ in what they see.
  std::span<RegionPass<T>> passes() {
    return by_region_.empty() ? std::span(&whole_, 1) : std::span(by_region_);
  }
  const Visibility& visibility() const { return whole_.visibility; }

  void read(const BiasBlock& at) {
    const std::int64_t count = at.query_count, rows = group_ * count;
    const double root = std::sqrt(static_cast<double>(head_dim_));
    // Heads differ by learned temperatures alone, and a logarithm takes its time.
    const bool by_head = plan_.logits.temperature == Temperature::heads;
    for (std::int64_t row = 0; row < rows; ++row)
      scale[row] = !by_head && row >= count
                       ? scale[row - count]
                       : static_cast<T>(plan_.logits.query_scale(at.queries.position(row % count),
                                                                 at.first_head + row / count) /
                                        root);
    const Positions positions =
        rotates_ ? in_.queries->slice(at.sequence, at.queries.first(), count) : Positions();
    for (const RegionPass<T>& pass : passes())
      read_pass(at, pass,
                pass.region == nullptr ? positions : mapped(positions, pass.region->query));
  }

 private:
  void read_pass(const BiasBlock& at, const RegionPass<T>& pass, const Positions& positions) const {
    const std::int64_t count = at.query_count;
    for (std::int64_t g = 0; g < group_; ++g) {
      T* const q = pass.q + g * count * step;
      const std::int64_t head = at.first_head + g;
      load_rows(in_.q, in_.q.offset(at.sequence, head, at.queries.first()), count, q, step);
      // Logits are linear in the keys, so that their factor is one of the queries.
      if (in_.key_scale != 1) scale_row(q, count * step, static_cast<T>(in_.key_scale));
      if (depth != head_dim_) widen(*plan_.rotate, head_dim_, q, step, count);
      if (rotates_)
        rotate_rows(pass.rotation(plan_), plan_.rotate->mix() ? head / group_ : head, q, step,
                    count, depth, positions, Side::query, Action::forward);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (pairs > 0) return pair_columns(pass.q, step, group_ * count, depth, pass.q_pairs, pairs);
    }
    for (std::int64_t row = 0; row < group_ * count; ++row)
      scale_row(pass.q + row * step, step, scale[row]);
  }

  const AttendArguments& in_;
  const Plan& plan_;
  const bool rotates_;
  const std::int64_t group_, head_dim_;

  RegionPass<T> whole_;
  std::vector<RegionPass<T>> by_region_;
};

}  // namespace posenc::detail
