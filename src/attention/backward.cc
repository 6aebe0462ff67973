// With α_ij the weights, û_i = Σ_j α_ij v̂_j, ĝ_i the rotated gradient by the output i, g_i the
// plain one, and s_i = query scale/√head_dim:
//   e_ij = ∂L/∂α_ij = ĝ_i·v̂_j + g_i·a^V_d        δ_ij = ∂L/∂logit_ij = α_ij (e_ij − Σ_k α_ik e_ik)
//   ∂q̂_i = s_i Σ_j δ_ij k̂_j     ∂k̂_j = Σ_i δ_ij s_i q̂_i     ∂v̂_j = Σ_i α_ij ĝ_i
//   ∂q_i += s_i Σ_j δ_ij a^K_d   ∂k_j += Σ_i s_i δ_ij a^Q_d
//   ∂a^K_d = Σ δ_ij s_i q_i      ∂a^Q_d = Σ s_i δ_ij k_j     ∂a^V_d = Σ α_ij g_i      d = i − j
// With profiles r, s and temperatures τ alone: r_i for q_i, s_j for k_j, τ_i for the s_i of these
// three lines.
//   ∂sink_i = −α_i,sink Σ_j α_ij e_ij
// With a softcap δ_ij of the products is times its slope 1 − tanh².
// The rows of some queries stand whole, from the first key that one of them sees to the last: then
// five products are all it takes, where walking the keys block by block would form the logits
// twice.
#include "src/attention/backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "src/attention/relative_gradient.h"
#include "src/attention/softmax.h"
#include "src/attention/visible.h"
#include "src/kernels/gemm.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/threads.h"

namespace posenc::detail {
namespace {

using Index = std::int64_t;

constexpr Index visible_block = 256;  // keys whose visibility is asked at a time

// Rows of logits and their gradients are to stay in the second cache.
constexpr Index row_numbers = 48 * 1024, most_rows = 8 * gemm_rows, least_rows = 2 * gemm_rows;

template <class T>
class Backward {
 public:
  Backward(const BackwardInputs<T>& in, const BackwardTask<T>& task, RowBias<T>& bias)
      : in_(in),
        task_(task),
        bias_(bias),
        visibility_(*in.in->mask, *in.in->queries, *in.in->keys, in.in->region),
        relative_(in, task),
        b_(task.sequence),
        group_(in.in->group()),
        keys_(in.k.seq()),
        panel_(panel_columns<T>()),
        stride_(row_stride(keys_)),
        meanwhile_(in.caller == this_thread() ? in.in->meanwhile : nullptr) {
    const Mask& mask = *in.in->mask;
    // A window may be as large as a number can be.
    const Index window = mask.window > 0 ? std::min(keys_, mask.window) : keys_;
    const Index most_seen = std::min(keys_, window + most_rows);
    const Index fitting = row_numbers / std::max<Index>(most_seen, 1) / gemm_rows * gemm_rows;
    block_ = std::clamp(fitting, least_rows, most_rows);
    weight_ = scratch_.take<T>(block_ * stride_);
    delta_ = scratch_.take<T>(block_ * stride_);
    buffer_ = scratch_.take<T>(stride_);
    if (in.plan->logits.softcap != 0) slope_ = scratch_.take<T>(stride_);
    seen_ = scratch_.take<VisibleRange>(block_);
    row_seen_ = scratch_.take<VisibleRange>(block_);
  }

  void run() {
    at_.sequence = b_;
    at_.first_head = task_.key_head * group_;
    at_.query_count = in_.q.seq();
    at_.key_count = keys_;
    at_.queries = visibility_.query_block(b_, 0, in_.q.seq());
    at_.keys = visibility_.key_block(b_, 0, keys_);
    for (Index first = 0; first < keys_; first += visible_block)
      key_blocks_.push_back(
          visibility_.key_block(b_, first, std::min(visible_block, keys_ - first)));
    bias_.begin(at_);
    relative_.begin(at_);
    each_tile_of(task_.part, task_.parts, in_.q.seq(), block_, [this](Index first) {
      first_ = first;
      count_ = std::min(block_, in_.q.seq() - first);
      for (Index i = 0; i < count_; ++i) seen_[i] = range(first + i);
      for (Index g = 0; g < group_; ++g) {
        rows_of_head(g);
        if (meanwhile_ != nullptr) (*meanwhile_)();
      }
    });
  }

 private:
  // Room for whole vectors and panels behind the last key, in an odd number of cache lines: a
  // column of weights is then spread over all sets of the first cache.
  static Index row_stride(Index keys) {
    constexpr Index line = 64 / sizeof(T);
    return ((padded(keys) + 2 * row_lanes) / line | 1) * line;
  }

  // What a query sees of all keys, found block by block: most blocks answer without being looked
  // into.
  VisibleRange range(Index query) const {
    VisibleRange all;
    bool any = false;
    for (const PositionBlock& block : key_blocks_) {
      const Index start = block.first(), count = std::min(visible_block, keys_ - start);
      const VisibleRange part = visibility_.range(at_.queries, query, block, count, b_);
      if (part.empty()) continue;
      if (!any) {
        all = {start + part.begin, start + part.end, part.holes};
      } else {
        all.holes = all.holes || part.holes || start + part.begin != all.end;
        all.end = start + part.end;
      }
      any = true;
    }
    return all;
  }

  void rows_of_head(Index g) {
    const Index head = at_.first_head + g;
    begin_ = keys_, end_ = 0;
    for (Index i = 0; i < count_; ++i) {
      row_seen_[i] = seen_[i];
      begin_ = std::min(begin_, seen_[i].begin);
      end_ = std::max(end_, seen_[i].end);
    }
    if (begin_ >= end_) return;
    const Index from = begin_ / panel_ * panel_, room = padded(end_) + row_lanes - from;
    for (Index i = 0; i < count_; ++i) {
      std::fill_n(weight_ + i * stride_ + from, room, T{0});
      std::fill_n(delta_ + i * stride_ + from, room, T{0});
    }
    for (Index i = 0; i < count_; i += gemm_rows)
      products(i, std::min(gemm_rows, count_ - i), head);
    for (Index i = 0; i < count_; ++i) {
      if (!row_seen_[i].empty()) differentiate_row(i, g);
      clear_hidden(i);
      if (!row_seen_[i].empty()) give_gradient(i, g);
    }
    by_queries(head);
    by_keys(head);
  }

  // The keys that some of the rows [first, first + rows) see, of each as in `seen`.
  VisibleRange seen_by(const VisibleRange* seen, Index first, Index rows) const {
    VisibleRange all{keys_, 0};
    for (Index i = first; i < first + rows; ++i) {
      if (seen[i].empty()) continue;
      all.begin = std::min(all.begin, seen[i].begin);
      all.end = std::max(all.end, seen[i].end);
    }
    return all;
  }

  // q̂_i·k̂_j into weight_, ĝ_i·v̂_j into delta_.
  void products(Index i, Index rows, Index head) {
    const VisibleRange all = seen_by(seen_, i, rows);
    if (all.empty()) return;
    const Index whole = std::min(panel_, row_lanes), first = all.begin / panel_ * panel_;
    const Index columns = (all.end - first + whole - 1) / whole * whole;
    const auto at = static_cast<std::size_t>(b_ * in_.k.heads() + task_.key_head);
    const auto multiply = [&](T* to, const HeadRows<T>& x, const Aligned<T>& panels) {
      gemm(Gemm<T>{.c = to + i * stride_ + first,
                   .c_step = stride_,
                   .rows = rows,
                   .columns = columns,
                   .a = x.row(b_, head, first_ + i),
                   .a_row = x.step(),
                   .b = panels.data() + first * x.columns(),
                   .b_step = panel_,
                   .depth = x.columns(),
                   .panel_step = panel_ * x.columns()});
    };
    multiply(weight_, in_.q, in_.k_panels[at]);
    multiply(delta_, in_.out_gradient, in_.v_panels[at]);
  }

  // One query's row: from products to α_ij and δ_ij, 0 where hidden.
  void differentiate_row(Index i, Index g) {
    T *const weight = weight_ + i * stride_, *const delta = delta_ + i * stride_;
    const Index query = first_ + i, head = at_.first_head + g;
    const T scale = in_.scale(b_, head, query);
    VisibleRange& seen = row_seen_[i];
    const bool after_softcap = in_.profiles();
    if (relative_.present() && !after_softcap)
      relative_.add_products(head, query, scale, seen, weight, delta);
    if (slope_ != nullptr)
      softcap(weight + seen.begin, seen.end - seen.begin, static_cast<T>(in_.plan->logits.softcap),
              slope_ + seen.begin);
    if (after_softcap)
      relative_.add_products(head, query, in_.temperature(b_, head, query), seen, weight, delta);
    const auto bias = bias_.row(g, query, scale, seen, buffer_);
    if (seen.holes) {
      visibility_.for_holes(at_.queries, query, at_.keys, seen, b_,
                            [weight](Index j) { weight[j] = -std::numeric_limits<T>::infinity(); });
    }
    SoftmaxGradientRow<T> row{.begin = seen.begin,
                              .end = seen.end,
                              .bias = bias.bias,
                              .bias_factor = bias.factor,
                              .weight = weight,
                              .delta = delta,
                              .sink = static_cast<T>(in_.in->sink(b_, head, query))};
    if (const WholeRows& whole = in_.whole) {
      row.of_whole = true;
      row.log_sum = static_cast<T>(whole.log_sums.get(whole.log_sums.offset(b_, head, query)));
      row.whole_mean = whole.dots.get(whole.dots.offset(b_, head, query));
    }
    const double by_sink = differentiate(row);
    std::vector<double>& sinks = task_.queries->sinks;
    if (!sinks.empty())
      sinks[static_cast<std::size_t>((b_ * in_.q.heads() + head) * in_.q.seq() + query)] = by_sink;
  }

  // What the products of a tile made beside what the row sees becomes 0.
  void clear_hidden(Index i) {
    const Index tile = i / gemm_rows * gemm_rows;
    const VisibleRange all = seen_by(seen_, tile, std::min(gemm_rows, count_ - tile));
    if (all.empty()) return;
    const VisibleRange& seen = row_seen_[i];
    const Index first = all.begin / panel_ * panel_, last = padded(all.end) + row_lanes;
    for (T* const row : {weight_ + i * stride_, delta_ + i * stride_}) {
      std::fill(row + first, row + std::max(first, seen.begin), T{0});
      std::fill(row + std::max(first, seen.end), row + last, T{0});
    }
  }

  // What bias and vectors by distance get of a row.
  void give_gradient(Index i, Index g) {
    const Index query = first_ + i;
    const T scale = in_.scale(b_, at_.first_head + g, query);
    const T* const delta = delta_ + i * stride_;
    bias_.take_gradient(g, query, scale, row_seen_[i], delta);
    // Profiles come after the softcap, vectors that meet q and k go through it with their products.
    const bool capped = slope_ != nullptr && !in_.profiles();
    if (capped) through_softcap(row_seen_[i], delta_ + i * stride_);
    if (relative_.present())
      relative_.take_gradient(
          at_.first_head + g, g, query,
          in_.profiles() ? in_.temperature(b_, at_.first_head + g, query) : scale, row_seen_[i],
          weight_ + i * stride_, delta);
    if (slope_ != nullptr && !capped) through_softcap(row_seen_[i], delta_ + i * stride_);
  }

  // From the gradient by what the softcap gave to that by what it took; what is hidden may be NaN.
  void through_softcap(const VisibleRange& seen, T* delta) const {
    for (Index j = seen.begin; j < seen.end; ++j) delta[j] *= delta[j] == 0 ? T{1} : slope_[j];
  }

  // Σ_j over keys, for the queries.
  void by_queries(Index head) {
    for (Index i = 0; i < count_; i += gemm_rows) {
      const Index rows = std::min(gemm_rows, count_ - i);
      const VisibleRange all = seen_by(row_seen_, i, rows);
      if (all.empty()) continue;
      const auto add = [&](HeadRows<T>& to, const T* weights, const HeadRows<T>& x) {
        gemm(Gemm<T>{.c = to.row(b_, head, first_ + i),
                     .c_step = to.step(),
                     .rows = rows,
                     .columns = to.step(),
                     .a = weights + i * stride_ + all.begin,
                     .a_row = stride_,
                     .b = x.row(b_, task_.key_head, all.begin),
                     .b_step = x.step(),
                     .depth = all.end - all.begin,
                     .adds = true,
                     .skips_zeros = !in_.finite});
      };
      add(task_.queries->q, delta_, in_.k);
      if (task_.queries->rotated_out) add(task_.queries->rotated_out, weight_, in_.v);
    }
  }

  // Σ_i over the rows, for keys and values. Rows that see nothing of some keys are left out of
  // their sums: under a causal mask, half of the last keys' rows.
  void by_keys(Index head) {
    const auto [whole_begin, whole_end, holes] = whole_range();
    Index j = begin_;
    while (j < end_) {
      const bool whole = j >= whole_begin && j < whole_end;
      const Index limit = whole ? whole_end : j < whole_begin ? std::min(whole_begin, end_) : end_;
      const Index count = whole ? limit - j : std::min(gemm_rows, limit - j);
      const VisibleRange rows = whole ? VisibleRange{0, count_} : rows_seeing(j, j + count);
      if (!rows.empty()) {
        add_by_key(task_.keys->k, delta_, in_.q, head, j, count, rows);
        add_by_key(task_.keys->v, weight_, in_.out_gradient, head, j, count, rows);
      }
      j += count;
    }
  }

  // The keys that lie within what every row sees from its first key to its last.
  VisibleRange whole_range() const {
    VisibleRange all{begin_, end_};
    for (Index i = 0; i < count_; ++i) {
      all.begin = std::max(all.begin, row_seen_[i].begin);
      all.end = std::min(all.end, row_seen_[i].end);
    }
    return all.empty() ? VisibleRange{end_, end_} : all;
  }
  VisibleRange rows_seeing(Index begin, Index end) const {
    VisibleRange rows{count_, 0};
    for (Index i = 0; i < count_; ++i) {
      if (row_seen_[i].begin >= end || row_seen_[i].end <= begin) continue;
      rows.begin = std::min(rows.begin, i);
      rows.end = i + 1;
    }
    return rows;
  }
  void add_by_key(HeadRows<T>& to, const T* weights, const HeadRows<T>& x, Index head, Index j,
                  Index count, const VisibleRange& rows) {
    gemm(Gemm<T>{.c = to.row(b_, task_.key_head, j),
                 .c_step = to.step(),
                 .rows = count,
                 .columns = to.step(),
                 .a = weights + rows.begin * stride_ + j,
                 .a_row = 1,
                 .a_step = stride_,
                 .b = x.row(b_, head, first_ + rows.begin),
                 .b_step = x.step(),
                 .depth = rows.end - rows.begin,
                 .adds = true,
                 .skips_zeros = !in_.finite});
  }

  Scratch scratch_;
  const BackwardInputs<T>& in_;
  const BackwardTask<T>& task_;
  RowBias<T>& bias_;
  const Visibility visibility_;
  RelativeGradient<T> relative_;
  const Index b_, group_, keys_, panel_;
  const Index stride_;                            // from one query's row to the next
  const std::function<void()>* const meanwhile_;  // of the caller's thread; of others null
  Index block_ = 0;                               // rows at a time
  BiasBlock at_;                                  // all queries and keys
  std::vector<PositionBlock> key_blocks_;
  Index first_ = 0, count_ = 0;                         // the queries at work
  Index begin_ = 0, end_ = 0;                           // the keys that some of them see
  VisibleRange *seen_ = nullptr, *row_seen_ = nullptr;  // of each; of each and the head at work
  T *weight_ = nullptr, *delta_ = nullptr, *buffer_ = nullptr;  // [row][key], [key]
  T* slope_ = nullptr;  // [key], of the softcap of a row; null: none
};

// Runs run(sequence, head, query) for all rows of queries, in their order.
template <class Run>
void each_query(const AttendArguments& in, const Run& run) {
  for (Index b = 0; b < in.q.shape[0]; ++b)
    for (Index h = 0; h < in.q.shape[1]; ++h)
      for (Index i = 0; i < in.q.shape[2]; ++i) run(b, h, i);
}

// From the gradients by wide rows to those by the rows of x that they were made of.
template <class T>
void narrow(const Rotate& rotate, const Tensor& x, HeadRows<T>& gradient) {
  const auto plain = HeadRows<T>::loaded(x);
  for (Index b = 0; b < plain.batch(); ++b)
    for (Index h = 0; h < plain.heads(); ++h)
      narrow_gradient(rotate, x.shape[3], plain.row(b, h), plain.step(), gradient.row(b, h),
                      gradient.step(), plain.seq());
}

}  // namespace

template <class T>
T BackwardInputs<T>::scale(std::int64_t b, std::int64_t head, std::int64_t query) const {
  return static_cast<T>(plan->logits.query_scale(in->queries->at(query, b), head) /
                        std::sqrt(static_cast<double>(in->q.shape[3])));
}

template <class T>
T BackwardInputs<T>::temperature(std::int64_t b, std::int64_t head, std::int64_t query) const {
  return static_cast<T>(plan->logits.query_scale(in->queries->at(query, b), head) /
                        plan->logits.multiplier);
}

template <class T>
BackwardInputs<T> backward_inputs(const AttendArguments& arguments, const Plan& plan,
                                  const Tensor& out_gradient) {
  BackwardInputs<T> in{.in = &arguments,
                       .plan = &plan,
                       .q = HeadRows<T>::widened(arguments.q, plan.rotate),
                       .k = HeadRows<T>::widened(arguments.k, plan.rotate),
                       .v = HeadRows<T>::loaded(arguments.v),
                       .out_gradient = HeadRows<T>::loaded(out_gradient)};
  const auto table = [](const Tensor& vectors) {
    return vectors ? HeadRows<T>::loaded(vectors.with_rank(4)) : HeadRows<T>();
  };
  in.relative_query = table(arguments.relative.query);
  in.relative_key = table(arguments.relative.key);
  in.relative_value = table(arguments.relative.value);
  const bool profiles = in.profiles();
  if (in.relative_key)
    in.plain_q = profiles ? HeadRows<T>::loaded(arguments.profiles.query) : in.q.copy();
  if (in.relative_query)
    in.plain_k = profiles ? HeadRows<T>::loaded(arguments.profiles.key) : in.k.copy();
  if (in.relative_value) in.plain_out_gradient = in.out_gradient.copy();
  if (plan.rotate && arguments.q.size() != 0) {
    const auto rotated = [&](HeadRows<T>& x, const Positions& positions, Side side) {
      rotate_checked(&*plan.rotate, x.view(), positions, side, Action::forward, x.view(),
                     arguments.threads);
    };
    rotated(in.q, *arguments.queries, Side::query);
    rotated(in.k, *arguments.keys, Side::key);
    if (plan.rotate->rotates_values()) rotated(in.v, *arguments.keys, Side::value);
    // The output is rotated back as values were rotated, and that rotation's transpose is itself.
    if (plan.rotate->rotates_outputs()) rotated(in.out_gradient, *arguments.queries, Side::value);
  }
  in.finite = in.q.finite() && in.k.finite() && in.v.finite() && in.out_gradient.finite();
  each_query(arguments, [&](Index b, Index h, Index i) {
    const T scale = in.scale(b, h, i);
    scale_row(in.q.row(b, h, i), in.q.step(), scale);
    if (in.plain_q)
      scale_row(in.plain_q.row(b, h, i), in.plain_q.step(),
                profiles ? in.temperature(b, h, i) : scale);
  });
  const auto key_heads = static_cast<std::size_t>(in.key_heads());
  in.k_panels.resize(key_heads);
  in.v_panels.resize(key_heads);
  const Index work = arguments.k.size() + arguments.v.size();
  share_out(in.key_heads(), thread_count(arguments.threads, work * static_cast<Index>(sizeof(T))),
            [&](Index first, Index last) {
              const auto transpose = [](const HeadRows<T>& x, Index head, Aligned<T>& to) {
                const Index panel = panel_columns<T>();
                to = Aligned<T>((x.seq() + panel - 1) / panel * panel * x.columns());
                transpose_to_panels(x.row(0, head), x.step(), x.seq(), x.columns(), to.data());
              };
              for (; first < last; ++first) {
                transpose(in.k, first, in.k_panels[static_cast<std::size_t>(first)]);
                transpose(in.v, first, in.v_panels[static_cast<std::size_t>(first)]);
              }
            });
  return in;
}

template <class T>
void add_backward(const BackwardInputs<T>& in, const BackwardTask<T>& task, RowBias<T>& bias) {
  Backward<T>(in, task, bias).run();
}

template <class T>
void write_backward(const BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                    const Tensor& q_gradient, const Tensor& k_gradient, const Tensor& v_gradient) {
  const AttendArguments& arguments = *in.in;
  const auto back = [&](HeadRows<T>& sum, const HeadRows<T>& plain, const Tensor& x,
                        const Positions& positions, Side side) {
    if (in.plan->rotate && (side != Side::value || in.plan->rotate->rotates_values()))
      rotate_checked(&*in.plan->rotate, sum.view(), positions, side, Action::transpose, sum.view(),
                     arguments.threads);
    if (side != Side::value && in.plan->rotate && in.plan->rotate->polar())
      narrow(*in.plan->rotate, x, sum);
    sum.add(plain);
  };
  const auto wanted = [](const Tensor& to) { return to && to.size() != 0; };
  const HeadRows<T> none;
  const bool profiles = in.profiles();
  if (wanted(k_gradient)) {
    back(by_key.k, profiles ? none : by_key.plain_k, arguments.k, *arguments.keys, Side::key);
    by_key.k.store(k_gradient);
  }
  if (wanted(v_gradient)) {
    back(by_key.v, {}, arguments.v, *arguments.keys, Side::value);
    by_key.v.store(v_gradient);
  }
  if (!wanted(q_gradient) && by_query.temperatures.empty()) return;
  if (arguments.q.size() == 0) return;
  // Now the gradients by what the scale gave: q·them is that by the scale, also where it is 0.
  back(by_query.q, profiles ? none : by_query.plain_q, arguments.q, *arguments.queries,
       Side::query);
  auto temperature = by_query.temperatures.begin();
  const double plain_scale =
      in.plan->logits.multiplier / std::sqrt(static_cast<double>(in.q.columns()));
  each_query(arguments, [&](Index b, Index h, Index i) {
    T* const row = by_query.q.row(b, h, i);
    if (temperature != by_query.temperatures.end()) {
      double sum = 0;
      for (Index c = 0; c < in.q.columns(); ++c)
        sum += arguments.q.get(arguments.q.offset(b, h, i, c)) * static_cast<double>(row[c]);
      *temperature++ = sum * plain_scale;
    }
    scale_row(row, in.q.step(), in.scale(b, h, i));
  });
  if (wanted(q_gradient)) by_query.q.store(q_gradient);
}

template <class T>
void write_profiles(const BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                    const ProfileTensors& to) {
  if (to.query && to.query.size() != 0) {
    each_query(*in.in, [&](Index b, Index h, Index i) {
      scale_row(by_query.plain_q.row(b, h, i), by_query.plain_q.step(), in.temperature(b, h, i));
    });
    by_query.plain_q.store(to.query);
  }
  if (to.key && to.key.size() != 0) by_key.plain_k.store(to.key);
}

void write_temperatures(const AttendArguments& in, const Plan& plan,
                        const std::vector<double>& by_row, const Tensor& to_scale,
                        const Tensor& to_bias) {
  if (by_row.empty()) return;
  std::vector<double> by_scale(static_cast<std::size_t>(in.q.shape[1])), by_bias = by_scale;
  auto temperature = by_row.begin();
  each_query(in, [&](Index b, Index h, Index i) {
    const double at = static_cast<double>(in.queries->at(i, b)) + plan.logits.offset;
    by_scale[static_cast<std::size_t>(h)] += *temperature * std::log(std::max(1.0, at));
    by_bias[static_cast<std::size_t>(h)] += *temperature++;
  });
  for (Index h = 0; h < in.q.shape[1]; ++h) {
    if (to_scale) to_scale.set(to_scale.offset(0, 0, 0, h), by_scale[static_cast<std::size_t>(h)]);
    if (to_bias) to_bias.set(to_bias.offset(0, 0, 0, h), by_bias[static_cast<std::size_t>(h)]);
  }
}

void write_sinks(const AttendArguments& in, const std::vector<double>& by_row, const Tensor& to) {
  if (by_row.empty()) return;
  const Index batch = in.q.shape[0], heads = in.q.shape[1], queries = in.q.shape[2];
  const auto at = [&](Index b, Index h, Index i) {
    return by_row[static_cast<std::size_t>((b * heads + h) * queries + i)];
  };
  for (Index h = 0; h < heads; ++h) {
    double sum = 0;
    for (Index b = 0; b < batch; ++b) {
      for (Index i = 0; i < queries; ++i) {
        if (to.rank == 3) to.set(to.offset(b, h, i), at(b, h, i));
        sum += at(b, h, i);
      }
    }
    if (to.rank == 1) to.set(to.offset(h), sum);
  }
}

template struct BackwardInputs<float>;
template struct BackwardInputs<double>;
template BackwardInputs<float> backward_inputs(const AttendArguments&, const Plan&, const Tensor&);
template BackwardInputs<double> backward_inputs(const AttendArguments&, const Plan&, const Tensor&);
template void add_backward(const BackwardInputs<float>&, const BackwardTask<float>&,
                           RowBias<float>&);
template void add_backward(const BackwardInputs<double>&, const BackwardTask<double>&,
                           RowBias<double>&);
template void write_profiles(const BackwardInputs<float>&, QuerySums<float>&, KeySums<float>&,
                             const ProfileTensors&);
template void write_profiles(const BackwardInputs<double>&, QuerySums<double>&, KeySums<double>&,
                             const ProfileTensors&);
template void write_backward(const BackwardInputs<float>&, QuerySums<float>&, KeySums<float>&,
                             const Tensor&, const Tensor&, const Tensor&);
template void write_backward(const BackwardInputs<double>&, QuerySums<double>&, KeySums<double>&,
                             const Tensor&, const Tensor&, const Tensor&);

}  // namespace posenc::detail
