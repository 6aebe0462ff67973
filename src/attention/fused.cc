// The rows of a block of queries are those of all query heads that share a key head, so that keys
// and values are read once for all of them. A tile of gemm_rows rows meets the part of a block of
// keys that some of them see: its logits stay in the first cache between the two products.
#include "src/attention/fused.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "src/attention/key_rows.h"
#include "src/attention/output_rows.h"
#include "src/attention/query_rows.h"
#include "src/attention/relative.h"
#include "src/attention/relative_rows.h"
#include "src/attention/softmax.h"
#include "src/kernels/cached_rows.h"
#include "src/kernels/elements.h"
#include "src/kernels/gemm.h"
#include "src/kernels/gemm16.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

using Index = std::int64_t;

// About this many rows meet a block of keys before the next block is loaded, so that loading and
// transposing it cost little beside the products.
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
        bias_(bias),
        group_(in_.group()),
        short_(group_ * job.block < short_rows),
        meanwhile_(job.caller == this_thread() ? in_.meanwhile : nullptr),
        queries_(job, scratch_),
        keys_(job, queries_, !short_, scratch_),
        outputs_(job, scratch_),
        relative_(in_, plan_, job.block, key_block, short_),
        relative_rows_(job, relative_, scratch_),
        biases_(scratch_.take<typename RowBias<T>::Rows>(group_)),
        seen_(scratch_.take<VisibleRange>(job.block)),
        at_once_(job.pairs ? tile_rows : gemm_rows),
        weights_(scratch_.take<T>(at_once_ * weights_step)),
        bias_rows_(scratch_.take_zeros<T>(at_once_ * weights_step)),
        weight_pairs_(job.pairs ? scratch_.take<Pair16>(at_once_ * pairs_step) : nullptr) {}

  void operator()(Index index) {
    const Index kv_heads = in_.k.shape[1], keys = in_.k.shape[2];
    const Index first_query = index % job_.blocks * job_.block;
    at_.sequence = index / (kv_heads * job_.blocks);
    at_.first_head = index / job_.blocks % kv_heads * group_;
    at_.query_count = std::min(job_.block, in_.q.shape[2] - first_query);
    at_.queries = queries_.visibility().query_block(at_.sequence, first_query, at_.query_count);
    queries_.read(at_);
    outputs_.begin(at_);
    if (relative_.present())
      relative_.begin_queries(at_.first_head, at_.query_count,
                              relative_rows_.queries(at_, queries_.scale));
    for (Index first = 0; first < keys; first += job_.keys) {
      at_.key_count = std::min(job_.keys, keys - first);
      at_.keys = queries_.visibility().key_block(at_.sequence, first, at_.key_count);
      const RegionPass<T>* before = nullptr;  // whose keys stand ready
      for (const RegionPass<T>& pass : queries_.passes()) {
        if (!pass.visibility.some(at_.queries, at_.keys)) continue;
        if (before == nullptr || !pass.shares_keys(*before)) read_keys(pass);
        before = &pass;
        attend_block(pass);
      }
      if (before != nullptr && meanwhile_ != nullptr) (*meanwhile_)();
    }
    outputs_.write(at_, relative_);
  }

 private:
  // Numbers from one row of a tile to the next, an odd number of cache lines.
  static constexpr Index weights_step = key_block + 5 * row_lanes;
  static constexpr Index pairs_step = (key_block + 2 * row_lanes) / 2;

  void read_keys(const RegionPass<T>& pass) {
    keys_.read(at_, pass);
    bias_.begin(at_);
    if (relative_.present()) relative_.begin_keys(at_, relative_rows_.keys(at_));
  }

  void attend_block(const RegionPass<T>& pass) {
    for (Index i = 0; i < at_.query_count; ++i)
      seen_[i] = pass.visibility.range(at_.queries, i, at_.keys, at_.key_count, at_.sequence);
    for (Index g = 0; g < group_; ++g) biases_[g] = bias_.rows(g);
    const Index rows = group_ * at_.query_count;
    for (Index row = 0; row < rows; row += at_once_)
      attend_tile(pass, row, std::min(at_once_, rows - row));
  }

  struct TileRow {
    Index group, query;
    VisibleRange seen;
    const T* bias = nullptr;
    T bias_factor = 1;
  };

  void attend_tile(const RegionPass<T>& pass, Index first_row, Index rows) {
    TileRow tile[tile_rows];
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
        if (!tile[r].seen.empty()) add_relative(pass, tile[r], bias_rows_ + r * weights_step);
    }
    if (weight_pairs_ != nullptr) return multiply_pairs(pass, tile, first_row, rows, begin, end);
    short_ ? multiply_short(pass, tile, first_row, rows, begin, end)
           : multiply_panels(pass, tile, first_row, rows, begin, end);
  }

  // The tile's logits, weights and sums, of the keys [begin, end).
  void multiply_panels(const RegionPass<T>& pass, TileRow* tile, Index first_row, Index rows,
                       Index begin, Index end) {
    const Index panel = keys_.panel, depth = queries_.depth;
    const Index whole = std::min(panel, row_lanes);  // vectors are no longer
    const Index first = begin / panel * panel,
                last = first + (end - first + whole - 1) / whole * whole;
    const T* plus[gemm_rows];
    const bool added = find_sums(tile, rows, first, plus);
    gemm(Gemm<T>{.c = weights_ + first,
                 .c_step = weights_step,
                 .rows = rows,
                 .columns = last - first,
                 .a = pass.q + first_row * queries_.step,
                 .a_row = queries_.step,
                 .b = keys_.panels + first * depth,
                 .b_step = panel,
                 .depth = depth,
                 .panel_step = panel * depth,
                 .plus = added ? plus : nullptr});
    const bool alike = weigh_all(pass, tile, first_row, rows, first, last, begin, end);
    add_values(first_row, rows, begin, end, !alike && !keys_.values_finite());
  }

  // The same of so few rows that keys are taken as they lie.
  void multiply_short(const RegionPass<T>& pass, TileRow* tile, Index first_row, Index rows,
                      Index begin, Index end) {
    const T* const q = pass.q + first_row * queries_.step;
    bool sparse = false;
    if (!cached_dots_of(q, rows, begin, end)) {
      for (Index r = 0; r < rows; ++r) {
        const T* const row = q + r * queries_.step;
        T* const logits = weights_ + r * weights_step;
        if (pass.visibility.has_lists() && sparse_dots(pass, tile[r], row, logits)) {
          sparse = true;
          continue;
        }
        const bool asks = r == 0 && !keys_.cached_values;
        dots(row, keys_.keys + begin * keys_.step, keys_.step, end - begin, queries_.depth,
             asks ? keys_.values + begin * keys_.value_step : nullptr, keys_.value_step,
             logits + begin);
      }
    }
    const bool alike = weigh_all(pass, tile, first_row, rows, begin, end, begin, end);
    if (alike && !sparse && add_cached_of(first_row, rows, begin, end)) return;
    keys_.need_values();
    add_values(first_row, rows, begin, end, sparse || (!alike && !keys_.values_finite()));
  }

  // Whether the keys were multiplied where the caller has them.
  bool cached_dots_of(const T* q, Index rows, Index begin, Index end) {
    if constexpr (std::is_same_v<T, float>) {
      if (!keys_.cached_keys) return false;
      const CachedRows values = keys_.cached_values.value_or(CachedRows{}).from(begin);
      cached_dots(keys_.cached_keys->from(begin), end - begin, queries_.depth, q, queries_.step,
                  rows, weights_ + begin, weights_step, keys_.cached_values ? &values : nullptr);
      return true;
    }
    return false;
  }
  bool add_cached_of(Index first_row, Index rows, Index begin, Index end) {
    if constexpr (std::is_same_v<T, float>) {
      if (!keys_.cached_values) return false;
      add_cached(keys_.cached_values->from(begin), end - begin, outputs_.step, weights_ + begin,
                 weights_step, rows, outputs_.sums + first_row * outputs_.step, outputs_.step);
      return true;
    }
    return false;
  }

  // Rows' logits to weights. Whether all see the same keys, [begin, end).
  bool weigh_all(const RegionPass<T>& pass, const TileRow* tile, Index first_row, Index rows,
                 Index first, Index last, Index begin, Index end) {
    bool alike = true;
    for (Index r = 0; r < rows; ++r) {
      const VisibleRange& seen = tile[r].seen;
      alike = alike && seen.begin == begin && seen.end == end && !seen.holes;
      weigh(pass, first_row + r, tile[r], first, last, weights_ + r * weights_step);
    }
    return alike;
  }
  // skips_zeros: 0 · NaN is NaN, and what a row does not see must then be skipped.
  void add_values(Index first_row, Index rows, Index begin, Index end, bool skips_zeros) {
    gemm(Gemm<T>{.c = outputs_.sums + first_row * outputs_.step,
                 .c_step = outputs_.step,
                 .rows = rows,
                 .columns = outputs_.step,
                 .a = weights_ + begin,
                 .a_row = weights_step,
                 .b = keys_.values + begin * keys_.value_step,
                 .b_step = keys_.value_step,
                 .depth = end - begin,
                 .adds = true,
                 .skips_zeros = skips_zeros});
  }

  // The same by products of pairs, of whole tiles.
  void multiply_pairs(const RegionPass<T>& pass, TileRow* tile, Index first_row, Index rows,
                      Index begin, Index end) {
    if constexpr (std::is_same_v<T, float>) {
      constexpr Index whole = 2 * gemm16_pairs;
      const Index panel = keys_.panel, grain = std::max(panel, whole),
                  first = begin / grain * grain,
                  last = first + (end - first + whole - 1) / whole * whole;
      gemm16(Gemm16{.c = weights_ + first,
                    .c_step = weights_step,
                    .rows = rows,
                    .columns = last - first,
                    .a = pass.q_pairs + first_row * queries_.pairs,
                    .a_step = queries_.pairs,
                    .b = keys_.key_pairs + first * queries_.pairs,
                    .b_step = panel,
                    .depth = queries_.pairs,
                    .panel_columns = panel,
                    .panel_step = panel * queries_.pairs});
      for (Index r = 0; r < rows; ++r)
        weigh(pass, first_row + r, tile[r], first, last, weights_ + r * weights_step,
              weight_pairs_ + r * pairs_step);
      const Gemm16 sums{.c = outputs_.sums + first_row * outputs_.step,
                        .c_step = outputs_.step,
                        .rows = rows,
                        .columns = outputs_.step,
                        .a = weight_pairs_,
                        .a_step = pairs_step,
                        .b = keys_.value_pairs + first / 2 * keys_.value_step,
                        .b_step = keys_.value_step,
                        .depth = (last - first) / 2,
                        .adds = true};
      gemm16(sums);
      if (keys_.values_finite()) return;
      add_values(first_row, rows, begin, end, true);
    }
  }

  // A row's products with the keys of its list alone, where these are few: the others' memory is
  // not even read.
  bool sparse_dots(const RegionPass<T>& pass, const TileRow& row, const T* q, T* logits) {
    constexpr Index dense = 4;  // of so many keys one listed
    const auto list = pass.visibility.listed(at_.queries, row.query, at_.keys, row.seen);
    if (std::ssize(list) * dense > row.seen.end - row.seen.begin) return false;
    for (const std::int32_t id : list) {
      const Index j = id - at_.keys.first();
      dots(q, keys_.keys + j * keys_.step, keys_.step, 1, queries_.depth, nullptr, 0, logits + j);
    }
    return true;
  }

  // Whether biases may be added to the products as these are stored, before a row is read once
  // more: those of all rows, in full, `plus` then from key `first` on. A row that sees nothing
  // takes any.
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
    const T scale = queries_.scale[row.group * at_.query_count + row.query];
    const auto bias = bias_.row(row.group, row.query, scale, row.seen, buffer);
    row.bias = bias.bias;
    row.bias_factor = bias.factor;
  }
  // The bias with what vectors by distance add to it.
  void add_relative(const RegionPass<T>& pass, TileRow& row, T* buffer) {
    if (row.bias == nullptr) {
      row.bias = relative_.alone(row.group, row.query, row.seen, buffer);
      row.bias_factor = 1;
      if (row.bias != nullptr) return;
      std::fill_n(buffer, at_.key_count + row_lanes, T{0});
    } else if (row.bias != buffer || row.bias_factor != 1) {
      for (Index j = 0; j < at_.key_count; ++j) buffer[j] = row.bias[j] * row.bias_factor;
    }
    const T scale = queries_.scale[row.group * at_.query_count + row.query];
    relative_.add_to(row.group, row.query, scale * relative_rows_.unscaled(), row.seen, buffer);
    // Hidden keys may hold NaN, and so may what they are multiplied by.
    if (relative_.meets_keys() && row.seen.holes)
      pass.visibility.for_holes(at_.queries, row.query, at_.keys, row.seen, at_.sequence,
                                [buffer](Index j) { buffer[j] = 0; });
    row.bias = buffer;
    row.bias_factor = 1;
  }

  // A row's logits to weights, rounded at `pairs` where products are of these.
  void weigh(const RegionPass<T>& pass, Index index, const TileRow& row, Index first, Index last,
             T* logits, Pair16* pairs = nullptr) {
    const VisibleRange& seen = row.seen;
    const T* bias = row.bias;
    T factor = 1;  // of products of queries that are not scaled
    if (weight_pairs_ != nullptr) factor = queries_.scale[index];
    if (plan_.logits.softcap != 0 && factor != 1) {
      scale_row(logits + first, last - first, factor);
      factor = 1;
    }
    if (plan_.logits.softcap != 0 && !seen.empty()) {
      if (capped_terms_ && bias != nullptr) {
        for (Index j = seen.begin; j < seen.end; ++j) logits[j] += bias[j] * row.bias_factor;
        bias = nullptr;
      }
      softcap(logits + seen.begin, seen.end - seen.begin, static_cast<T>(plan_.logits.softcap));
    }
    if (seen.holes) {
      pass.visibility.for_holes(
          at_.queries, row.query, at_.keys, seen, at_.sequence,
          [logits](Index j) { logits[j] = -std::numeric_limits<T>::infinity(); });
    }
    SoftmaxRow<T> softmax{.x = logits,
                          .first = first,
                          .last = last,
                          .begin = seen.empty() ? first : seen.begin,
                          .end = seen.empty() ? first : seen.end,
                          .factor = factor,
                          .bias = bias,
                          .bias_factor = row.bias_factor};
    const bool keeps = pairs != nullptr && (relative_.adds_values() || !keys_.values_finite());
    const T correction = outputs_.fold(index, softmax, pairs, keeps);
    if (relative_.adds_values())
      relative_.count(row.group, row.query, seen, logits, softmax.added, correction);
  }

  Scratch scratch_;
  const AttendJob& job_;
  const AttendArguments& in_;
  const Plan& plan_;
  RowBias<T>& bias_;
  const Index group_;
  const bool short_;
  const std::function<void()>* const meanwhile_;  // of the caller's thread; of others null
  QueryRows<T> queries_;
  KeyRows<T> keys_;
  OutputRows<T> outputs_;
  RelativeTerms<T> relative_;
  RelativeRows<T> relative_rows_;
  // What vectors by distance add goes through the softcap with the products, as they do without
  // profiles.
  const bool capped_terms_ = plan_.relative && plan_.relative->profiles == 0;
  BiasBlock at_;                         // what is at work
  RowBias<T>::Rows* const biases_;       // [head of the group]
  VisibleRange* const seen_;             // [query]
  const Index at_once_;                  // rows of a tile
  T *const weights_, *const bias_rows_;  // of a tile, [row][weights_step]
  Pair16* const weight_pairs_;           // [row][pairs_step]; null: products are of T
};

}  // namespace

AttendJob::AttendJob(const AttendArguments& arguments, const Plan& with)
    : in(&arguments), plan(&with), keys_rotated(arguments.keys_rotated) {
  const Index count = in->q.shape[2];
  pairs = in->q.dtype == DType::bf16 && in->options.allow_bfloat16_products &&
          count * in->group() >= short_rows && chosen_products16() != Products16::none &&
          panel_columns<float>() % gemm16_rows == 0;
  // Half as many of wide heads: with their values they stay in the second cache.
  constexpr Index wide = 512;  // bytes of a key and its value
  const Index size = computes_in_double(in->q.dtype) ? sizeof(double) : sizeof(float);
  if (!pairs && (in->k.shape[3] + in->v.shape[3]) * size > wide) keys /= 2;
  const Index rows = pairs ? 2 * block_rows : block_rows;  // products cost less beside the loading
  block = std::min(count, std::max(gemm_rows, rows / in->group()));
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
                  load_cached_rows(x, x.offset(first / heads, first % heads), seq,
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
