// The rows of a block of queries are those of all query heads that share a key head, so that keys and values
// are read once for all of them. A tile of gemm_rows rows meets the part of a block of keys that some of them
// see: its logits stay in the first cache between the two products.
#include "src/attention/fused.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "src/attention/regions.h"
#include "src/attention/relative.h"
#include "src/attention/softmax.h"
#include "src/kernels/gemm.h"
#include "src/kernels/polar.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

using Index = std::int64_t;

// About this many rows meet a block of keys before the next block is loaded, so that loading and transposing
// it cost little beside the products.
constexpr Index block_rows = 96 * gemm_rows;

// Blocks of fewer rows take the keys as they lie: transposing them would cost more than it saves.
constexpr Index short_rows = 2 * gemm_rows;

template <class T>
class QueryBlock {
 public:
  QueryBlock(const AttendJob& job, RowBias<T>& bias)
      : job_(job),
        in_(*job.in),
        plan_(*job.plan),
        visibility_(*in_.mask, *in_.queries, *in_.keys),
        rotation_(plan_.rotate ? &*plan_.rotate : nullptr),
        bias_(bias),
        group_(in_.group()),
        rows_(group_ * job.block),
        short_(rows_ < short_rows),
        relative_(in_, plan_, job.block, key_block, short_),
        head_dim_(in_.q.shape[3]),
        depth_(head_dim_ + (plan_.rotate ? plan_.rotate->widening() : 0)),
        step_(padded(depth_)),
        v_dim_(in_.v.shape[3]),
        v_step_own_(padded(v_dim_)),
        rotates_queries_(plan_.rotate && !job.queries_rotated),
        rotates_keys_(plan_.rotate && !job.keys_rotated),
        rotates_outputs_(plan_.rotate && plan_.rotate->rotates_outputs()),
        rotates_values_(plan_.rotate && plan_.rotate->rotates_values() && !in_.keys_rotated),
        meanwhile_(job.caller == this_thread() ? in_.meanwhile : nullptr) {
    if (plan_.rotate && plan_.rotate->regions()) {
      regions_ = &*plan_.rotate->regions();
      for (const Regions::Region& each : regions_->region)
        rotation_of_.push_back(rotation_of(*plan_.rotate, each));
    }
    all_q_ = scratch_.take<T>(rows_ * step_ * regions());
    out_ = scratch_.take<T>(rows_ * v_step_own_);
    row_max_ = scratch_.take<T>(rows_);
    sum_ = scratch_.take<T>(rows_);
    scale_ = scratch_.take<T>(rows_);
    seen_ = scratch_.take<VisibleRange>(job.block);
    biases_ = scratch_.take<typename RowBias<T>::Rows>(group_);
    k_ = scratch_.take<T>(key_block * step_);
    v_ = scratch_.take<T>(key_block * v_step_own_);
    panel_ = panel_columns<T>();
    if (!short_) panels_ = scratch_.take<T>((key_block + panel_) * depth_);
    weights_ = scratch_.take<T>(gemm_rows * weights_step);
    bias_rows_ = scratch_.take_zeros<T>(gemm_rows * weights_step);
    if (relative_.present() && plan_.relative->profiles > 0) {
      profile_step_ = padded(plan_.relative->profiles);
      unscaled_ =
          static_cast<T>(std::sqrt(static_cast<double>(head_dim_)) / plan_.logits.multiplier);
      if (relative_.meets_queries()) query_profiles_ = scratch_.take<T>(rows_ * profile_step_);
      if (relative_.meets_keys())
        key_profiles_ = scratch_.take<T>(group_ * key_block * profile_step_);
    } else {
      if (relative_.meets_queries()) raw_q_ = scratch_.take<T>(rows_ * step_);
      if (relative_.meets_keys()) raw_k_ = scratch_.take<T>(key_block * step_);
    }
  }

  void operator()(Index index) {
    const Index kv_heads = in_.k.shape[1], keys = in_.k.shape[2];
    at_.sequence = index / (kv_heads * job_.blocks);
    key_head_ = index / job_.blocks % kv_heads;
    at_.first_head = key_head_ * group_;
    first_query_ = index % job_.blocks * job_.block;
    at_.query_count = std::min(job_.block, in_.q.shape[2] - first_query_);
    at_.queries = visibility_.query_block(at_.sequence, first_query_, at_.query_count);
    read_queries();
    for (Index first = 0; first < keys; first += key_block) {
      at_.key_count = std::min(key_block, keys - first);
      at_.keys = visibility_.key_block(at_.sequence, first, at_.key_count);
      keys_of_ = -1;
      for (Index r = 0; r < regions(); ++r) {
        enter(r);
        if (!visibility_.some(at_.queries, at_.keys)) continue;
        if (!keys_stand_ready()) read_keys(first);
        keys_of_ = r;
        attend_block();
      }
      if (keys_of_ < 0) continue;
      if (meanwhile_ != nullptr) (*meanwhile_)();
    }
    write();
  }

 private:
  // Numbers from one row of a tile to the next, an odd number of cache lines.
  static constexpr Index weights_step = key_block + 5 * row_lanes;

  Index regions() const {
    return regions_ == nullptr ? 1 : static_cast<Index>(regions_->region.size());
  }
  // Rows of queries, keys and what is visible are those of a region from here on.
  void enter(Index r) {
    q_ = all_q_ + r * rows_ * step_;
    if (regions_ == nullptr) return;
    region_ = &regions_->region[static_cast<std::size_t>(r)];
    rotation_ = &rotation_of_[static_cast<std::size_t>(r)];
    visibility_.set({regions_, static_cast<std::size_t>(r)});
  }
  // Whether the block's keys were rotated as this region has them, for the one before.
  bool keys_stand_ready() const {
    if (keys_of_ < 0) return false;
    const Regions::Region& before = regions_->region[static_cast<std::size_t>(keys_of_)];
    return before.key == region_->key && before.frequency_scale == region_->frequency_scale;
  }

  void rotate(T* rows, Index step, Index count, Index columns, Index head,
              const Positions& positions, Side side, Action action) const {
    Tensor view = Tensor::dense(rows, {1, 1, count, columns});
    view.stride[2] = step;
    rotate_heads(*rotation_, plan_.rotate->mix() ? key_head_ : head, view, positions, side, action);
  }

  void read_queries() {
    const Index count = at_.query_count, rows = group_ * count;
    const double root = std::sqrt(static_cast<double>(head_dim_));
    // Heads differ by learned temperatures alone, and a logarithm takes its time.
    const bool by_head = plan_.logits.temperature == Temperature::heads;
    for (Index row = 0; row < rows; ++row)
      scale_[row] = !by_head && row >= count
                        ? scale_[row - count]
                        : static_cast<T>(plan_.logits.query_scale(at_.queries.position(row % count),
                                                                  at_.first_head + row / count) /
                                         root);
    const Positions positions =
        rotates_queries_ ? in_.queries->slice(at_.sequence, first_query_, count) : Positions();
    for (Index r = 0; r < regions(); ++r) {
      enter(r);
      read_rotated(count, regions_ == nullptr ? positions : mapped(positions, region_->query));
    }
    std::fill_n(out_, rows * v_step_own_, T{0});
    // The softmax begins with what the sink adds to it.
    for (Index row = 0; row < rows; ++row) {
      row_max_[row] = static_cast<T>(
          in_.sink(at_.sequence, at_.first_head + row / count, first_query_ + row % count));
      sum_[row] = row_max_[row] == -std::numeric_limits<T>::infinity() ? T{0} : T{1};
    }
    if (query_profiles_ != nullptr) read_profiles(rows);
    if (relative_.present())
      relative_.begin_queries(at_.first_head, count,
                              query_profiles_ != nullptr
                                  ? typename RelativeTerms<T>::Side{query_profiles_, profile_step_}
                                  : typename RelativeTerms<T>::Side{raw_q_, step_});
  }

  void read_rotated(Index count, const Positions& positions) {
    const Index rows = group_ * count;
    for (Index g = 0; g < group_; ++g) {
      T* const q = q_ + g * count * step_;
      load_rows(in_.q, in_.q.offset(at_.sequence, at_.first_head + g, first_query_), count, q,
                step_);
      if (raw_q_ != nullptr) std::copy_n(q, count * step_, raw_q_ + g * count * step_);
      if (depth_ != head_dim_) widen(*plan_.rotate, head_dim_, q, step_, count);
      if (rotates_queries_)
        rotate(q, step_, count, depth_, at_.first_head + g, positions, Side::query,
               Action::forward);
    }
    for (Index row = 0; row < rows; ++row) {
      scale_row(q_ + row * step_, step_, scale_[row]);
      if (raw_q_ != nullptr) scale_row(raw_q_ + row * step_, step_, scale_[row]);
    }
  }
  // Of queries, times the temperature of their logits.
  void read_profiles(Index rows) {
    const Tensor& x = in_.profiles.query;
    const Index count = at_.query_count;
    for (Index g = 0; g < group_; ++g)
      load_rows(x, x.offset(at_.sequence, at_.first_head + g, first_query_), count,
                query_profiles_ + g * count * profile_step_, profile_step_);
    for (Index row = 0; row < rows; ++row)
      scale_row(query_profiles_ + row * profile_step_, profile_step_, scale_[row] * unscaled_);
  }

  // Whether rows can be read where the caller has them.
  static bool stands_ready(const Tensor& x) {
    constexpr DType own = sizeof(T) == sizeof(double) ? DType::f64 : DType::f32;
    return x.dtype == own && x.stride[3] == 1 && x.shape[3] % row_lanes == 0;
  }

  void read_keys(Index first) {
    const Tensor &k = in_.k, &v = in_.v;
    const Index count = at_.key_count, from = k.offset(at_.sequence, key_head_, first);
    const Index v_from = v.offset(at_.sequence, key_head_, first);
    Positions positions = rotates_keys_ || rotates_values_
                              ? in_.keys->slice(at_.sequence, first, count)
                              : Positions();
    if (regions_ != nullptr) positions = mapped(positions, region_->key);
    if (stands_ready(k) && !rotates_keys_) {
      k_rows_ = static_cast<const T*>(k.data) + from;
      k_step_ = k.stride[2];
      if (raw_k_ != nullptr) load_rows(k, from, count, raw_k_, step_);
    } else {
      load_rows(k, from, count, k_, step_);
      if (raw_k_ != nullptr) std::copy_n(k_, count * step_, raw_k_);
      if (depth_ != head_dim_) widen(*plan_.rotate, head_dim_, k_, step_, count);
      if (rotates_keys_)
        rotate(k_, step_, count, depth_, key_head_, positions, Side::key, Action::forward);
      k_rows_ = k_;
      k_step_ = step_;
    }
    if (!short_) transpose_to_panels(k_rows_, k_step_, count, depth_, panels_);
    if (stands_ready(v) && !rotates_values_) {
      v_rows_ = static_cast<const T*>(v.data) + v_from;
      v_step_ = v.stride[2];
    } else {
      load_rows(v, v_from, count, v_, v_step_own_);
      if (rotates_values_)
        rotate(v_, v_step_own_, count, v_dim_, key_head_, positions, Side::value, Action::forward);
      v_rows_ = v_;
      v_step_ = v_step_own_;
    }
    finite_.reset();
    bias_.begin(at_);
    if (!relative_.present()) return;
    const Tensor& x = in_.profiles.key;
    for (Index g = 0; g < group_ && key_profiles_ != nullptr; ++g)
      load_rows(x, x.offset(at_.sequence, at_.first_head + g, first), count,
                key_profiles_ + g * key_block * profile_step_, profile_step_);
    relative_.begin_keys(at_, key_profiles_ != nullptr
                                  ? typename RelativeTerms<T>::Side{key_profiles_, profile_step_}
                                  : typename RelativeTerms<T>::Side{raw_k_, step_});
  }

  void attend_block() {
    for (Index i = 0; i < at_.query_count; ++i)
      seen_[i] = visibility_.range(at_.queries, i, at_.keys, at_.key_count, at_.sequence);
    for (Index g = 0; g < group_; ++g) biases_[g] = bias_.rows(g);
    const Index rows = group_ * at_.query_count;
    for (Index row = 0; row < rows; row += gemm_rows)
      attend_tile(row, std::min(gemm_rows, rows - row));
  }

  struct TileRow {
    Index group, query;
    VisibleRange seen;
    const T* bias = nullptr;
    T bias_factor = 1;
  };

  void attend_tile(Index first_row, Index rows) {
    TileRow tile[gemm_rows];
    Index begin = key_block, end = 0;  // of what any row sees
    Index group = first_row / at_.query_count, query = first_row % at_.query_count;
    for (Index r = 0; r < rows; ++r) {
      TileRow& row = tile[r];
      row.group = group, row.query = query, row.seen = seen_[query];
      if (++query == at_.query_count) query = 0, ++group;
      if (row.seen.empty()) continue;
      find_bias(row, bias_rows_ + r * weights_step);
      if (row.seen.empty()) continue;
      begin = std::min(begin, row.seen.begin);
      end = std::max(end, row.seen.end);
    }
    if (begin >= end) return;
    if (relative_.present() && relative_.adds()) {
      relative_.begin_tile(first_row, rows, begin, end);
      for (Index r = 0; r < rows; ++r)
        if (!tile[r].seen.empty()) add_relative(tile[r], bias_rows_ + r * weights_step);
    }
    const Index whole = std::min(panel_, row_lanes);  // vectors are no longer
    const Index first = short_ ? begin : begin / panel_ * panel_;
    const Index last = short_ ? end : first + (end - first + whole - 1) / whole * whole;
    const T* const q = q_ + first_row * step_;
    const T* plus[gemm_rows];
    const bool added = !short_ && find_sums(tile, rows, first, plus);
    if (short_) {
      for (Index r = 0; r < rows; ++r)
        dots(q + r * step_, k_rows_ + begin * k_step_, k_step_, end - begin, depth_,
             r == 0 ? v_rows_ + begin * v_step_ : nullptr, v_step_,
             weights_ + r * weights_step + begin);
    } else {
      gemm(Gemm<T>{.c = weights_ + first,
                   .c_step = weights_step,
                   .rows = rows,
                   .columns = last - first,
                   .a = q,
                   .a_row = step_,
                   .b = panels_ + first * depth_,
                   .b_step = panel_,
                   .depth = depth_,
                   .panel_step = panel_ * depth_,
                   .plus = added ? plus : nullptr});
    }
    bool alike = true;  // all rows see the same keys
    for (Index r = 0; r < rows; ++r) {
      const VisibleRange& seen = tile[r].seen;
      alike = alike && seen.begin == begin && seen.end == end && !seen.holes;
      weigh(first_row + r, tile[r], first, last, weights_ + r * weights_step);
    }
    gemm(Gemm<T>{.c = out_ + first_row * v_step_own_,
                 .c_step = v_step_own_,
                 .rows = rows,
                 .columns = v_step_own_,
                 .a = weights_ + begin,
                 .a_row = weights_step,
                 .b = v_rows_ + begin * v_step_,
                 .b_step = v_step_,
                 .depth = end - begin,
                 .adds = true,
                 // 0 · NaN is NaN: what a row does not see must then be skipped.
                 .skips_zeros = !alike && !values_finite()});
  }

  // Whether biases may be added to the products as these are stored, before a row is read once more: those of all rows, in
  // full, `plus` then from key `first` on. A row that sees nothing takes any.
  bool find_sums(TileRow* tile, Index rows, Index first, const T** plus) const {
    if (plan_.logits.softcap != 0) return false;
    const T* any = nullptr;
    for (Index r = 0; r < rows; ++r) {
      if (tile[r].seen.empty()) continue;
      if (tile[r].bias == nullptr || tile[r].bias_factor != 1) return false;
      any = tile[r].bias;
    }
    for (Index r = 0; r < rows; ++r) {
      plus[r] = (tile[r].seen.empty() ? any : tile[r].bias) + first;
      tile[r].bias = nullptr;
    }
    return true;
  }

  // A row's bias, and what it leaves to see.
  void find_bias(TileRow& row, T* buffer) {
    if (const auto& of_head = biases_[row.group]; of_head.first != nullptr) {
      row.bias = of_head.first + row.query * of_head.step;
      return;
    }
    const T scale = scale_[row.group * at_.query_count + row.query];
    const auto bias = bias_.row(row.group, row.query, scale, row.seen, buffer);
    row.bias = bias.bias;
    row.bias_factor = bias.factor;
  }
  // The bias with what vectors by distance add to it.
  void add_relative(TileRow& row, T* buffer) {
    if (row.bias == nullptr) {
      row.bias = relative_.alone(row.group, row.query, row.seen, buffer);
      row.bias_factor = 1;
      if (row.bias != nullptr) return;
      std::fill_n(buffer, at_.key_count + row_lanes, T{0});
    } else if (row.bias != buffer || row.bias_factor != 1) {
      for (Index j = 0; j < at_.key_count; ++j) buffer[j] = row.bias[j] * row.bias_factor;
    }
    const T scale = scale_[row.group * at_.query_count + row.query];
    relative_.add_to(row.group, row.query, scale * unscaled_, row.seen, buffer);
    // Hidden keys may hold NaN, and so may what they are multiplied by.
    if (relative_.meets_keys() && row.seen.holes)
      visibility_.for_holes(at_.queries, row.query, at_.keys, row.seen, at_.sequence,
                            [buffer](Index j) { buffer[j] = 0; });
    row.bias = buffer;
    row.bias_factor = 1;
  }

  // A row's logits to weights.
  void weigh(Index index, const TileRow& row, Index first, Index last, T* logits) {
    const VisibleRange& seen = row.seen;
    if (plan_.logits.softcap != 0 && !seen.empty())
      softcap(logits + seen.begin, seen.end - seen.begin, static_cast<T>(plan_.logits.softcap));
    if (seen.holes) {
      visibility_.for_holes(at_.queries, row.query, at_.keys, seen, at_.sequence,
                            [logits](Index j) { logits[j] = -std::numeric_limits<T>::infinity(); });
    }
    SoftmaxRow<T> softmax{.x = logits,
                          .first = first,
                          .last = last,
                          .begin = seen.empty() ? first : seen.begin,
                          .end = seen.empty() ? first : seen.end,
                          .bias = row.bias,
                          .bias_factor = row.bias_factor,
                          .row_max = row_max_[index],
                          .sum = sum_[index]};
    // Of a row that has seen nothing yet the outputs are zeros, and stay so.
    const bool begun = sum_[index] != 0;
    const T correction = fold(softmax);
    row_max_[index] = softmax.row_max;
    sum_[index] = softmax.sum;
    if (correction != 1 && begun) scale_row(out_ + index * v_step_own_, v_step_own_, correction);
    if (relative_.adds_values())
      relative_.count(row.group, row.query, seen, logits, softmax.added, correction);
  }

  bool values_finite() {
    if (!finite_) finite_ = all_finite(v_rows_, v_step_, at_.key_count, v_dim_);
    return *finite_;
  }

  void write() {
    const Index count = at_.query_count, rows = group_ * count;
    const bool adds_later = rotates_outputs_ || relative_.adds_values();
    for (Index row = 0; row < rows && adds_later; ++row) {
      if (sum_[row] != 0) scale_row(out_ + row * v_step_own_, v_step_own_, 1 / sum_[row]);
    }
    if (rotates_outputs_) {
      const Positions positions = in_.queries->slice(at_.sequence, first_query_, count);
      for (Index g = 0; g < group_; ++g)
        rotate(out_ + g * count * v_step_own_, v_step_own_, count, v_dim_, at_.first_head + g,
               positions, Side::value, Action::inverse);
    }
    for (Index row = 0; row < rows; ++row) {
      T* const out = out_ + row * v_step_own_;
      const Index g = row / count, query = row % count;
      if (in_.log_sums) write_log_sum(row, at_.first_head + g, first_query_ + query);
      if (relative_.adds_values()) relative_.add_values(g, query, sum_[row], out);
      const T factor = adds_later || sum_[row] == 0 ? T{1} : 1 / sum_[row];
      store_rows(out, v_step_own_, 1, factor, in_.out,
                 in_.out.offset(at_.sequence, at_.first_head + g, first_query_ + query));
    }
  }

  void write_log_sum(Index row, Index head, Index query) {
    const double sum = static_cast<double>(sum_[row]);
    in_.log_sums.set(in_.log_sums.offset(at_.sequence, head, query),
                     sum == 0 ? -std::numeric_limits<double>::infinity()
                              : static_cast<double>(row_max_[row]) + std::log(sum));
  }

  Scratch scratch_;
  const AttendJob& job_;
  const AttendArguments& in_;
  const Plan& plan_;
  Visibility visibility_;
  const Rotate* rotation_;            // of the region at work
  const Regions* regions_ = nullptr;  // null: none
  std::vector<Rotate> rotation_of_;   // of each region
  const Regions::Region* region_ = nullptr;
  Index keys_of_ = -1;  // whose keys stand ready; below 0: none
  RowBias<T>& bias_;
  const Index group_, rows_;
  const bool short_;
  RelativeTerms<T> relative_;
  const Index head_dim_, depth_,
      step_;  // of queries and keys as they come and as they multiply; row to row
  const Index v_dim_, v_step_own_;  // of values and outputs
  const bool rotates_queries_, rotates_keys_, rotates_outputs_, rotates_values_;
  const std::function<void()>* const meanwhile_;  // of the caller's thread; of others null

  BiasBlock at_;  // what is at work
  Index key_head_ = 0, first_query_ = 0, panel_ = 0;
  RowBias<T>::Rows* biases_ = nullptr;                                    // [head of the group]
  VisibleRange* seen_ = nullptr;                                          // [query]
  T *q_ = nullptr, *raw_q_ = nullptr, *out_ = nullptr;                    // [row][step]
  T* all_q_ = nullptr;                                                    // q_ of each region
  T *row_max_ = nullptr, *sum_ = nullptr, *scale_ = nullptr;              // [row]
  T *k_ = nullptr, *raw_k_ = nullptr, *v_ = nullptr, *panels_ = nullptr;  // of a block of keys
  // Of a plan with profiles, [row][profile_step_] and [head of the group][key][profile_step_]
  T *query_profiles_ = nullptr, *key_profiles_ = nullptr;
  Index profile_step_ = 0;
  T unscaled_ = 1;  // from the scale of logits to their temperature alone; without profiles 1
  T *weights_ = nullptr, *bias_rows_ = nullptr;    // of a tile
  const T *k_rows_ = nullptr, *v_rows_ = nullptr;  // in k_ and v_, or the caller's
  Index k_step_ = 0, v_step_ = 0;
  std::optional<bool> finite_;  // not asked yet
};

}  // namespace

AttendJob::AttendJob(const AttendArguments& arguments, const Plan& with)
    : in(&arguments), plan(&with), keys_rotated(arguments.keys_rotated) {
  const Index count = in->q.shape[2];
  block = std::min(count, std::max(gemm_rows, block_rows / in->group()));
  blocks = (count + block - 1) / block;
}

template <class T>
void rotate_short(AttendArguments& in, AttendJob& job, Scratch& scratch) {
  constexpr Index most_keys = 1024;
  const Index queries = in.q.shape[2], keys = in.k.shape[2];
  if (!job.plan->rotate || job.plan->rotate->polar() || job.plan->rotate->regions() ||
      in.relative.part != nullptr || in.keys_rotated)
    return;
  if (queries < short_rows || keys > most_keys || in.q.shape[1] == 1) return;
  const auto rotated = [&](Tensor& x, const Positions& positions, Side side) {
    const Index batch = x.shape[0], heads = x.shape[1], seq = x.shape[2], step = padded(x.shape[3]);
    T* const rows = scratch.take<T>(batch * heads * seq * step);
    const auto bytes = static_cast<Index>(sizeof(T));
    share_out(batch * heads, thread_count(in.threads, batch * heads * seq * step * bytes),
              [&](Index first, Index last) {
                for (; first < last; ++first)
                  load_rows(x, x.offset(first / heads, first % heads), seq,
                            rows + first * seq * step, step);
              });
    Tensor view = Tensor::dense(rows, {batch, heads, seq, step});
    view.shape[3] = x.shape[3];
    rotate_checked(&*job.plan->rotate, view, positions, side, Action::forward, view, in.threads);
    x = view;
  };
  rotated(in.q, *in.queries, Side::query);
  rotated(in.k, *in.keys, Side::key);
  job.queries_rotated = job.keys_rotated = true;
}

template void rotate_short<float>(AttendArguments&, AttendJob&, Scratch&);
template void rotate_short<double>(AttendArguments&, AttendJob&, Scratch&);

template <class T>
void attend_blocks(const AttendJob& job, RowBias<T>& bias, std::int64_t first, std::int64_t last) {
  QueryBlock<T> block(job, bias);
  for (std::int64_t i = first; i < last; ++i) block(i);
}

void attend_by_plan(const AttendArguments& in, const Plan& plan) {
  with_compute_type(in.q.dtype, [&]<class T>(T*) {
    attend_all<T>(in, plan, [&](const AttendJob& job) {
      return PlanBias<T>(plan, in.group(), job.block, key_block);
    });
  });
}

template void attend_blocks(const AttendJob&, RowBias<float>&, std::int64_t, std::int64_t);
template void attend_blocks(const AttendJob&, RowBias<double>&, std::int64_t, std::int64_t);

}  // namespace posenc::detail
