// attend_backward: arguments checked, tensors copied and rotated, the loop of backward.cc shared
// out among threads, and what it sums rotated back and written.
#include "posenc/gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/attention/arguments.h"
#include "src/attention/backward.h"
#include "src/attention/dense.h"
#include "src/attention/fused.h"
#include "src/attention/regions.h"
#include "src/core/try.h"
#include "src/kernels/check.h"
#include "src/kernels/rotate_checked.h"
#include "src/kernels/rotate_gradient.h"

namespace posenc {
namespace {

using detail::BackwardInputs;
using detail::BackwardTask;
using detail::HeadRows;
using detail::KeySums;
using detail::QuerySums;
using detail::TableSum;
using detail::TableSums;

constexpr std::string_view where = "attend_backward";

// --- arguments ----------------------------------------------------------------------------------

// A gradient seen with four axes; absent where not wanted. An extent of the plan's part is all it
// asks.
Expected<Tensor> gradient_of(std::string_view of, const Tensor& gradient, const Tensor& like) {
  const std::string name = "the gradient of " + std::string(of);
  if (gradient && !like) {
    return fail(where, name + " needs a plan with such a part", "none",
                "leave the gradient absent");
  }
  const auto view = detail::gradient_like(where, name, gradient, like);
  if (!view || !*view) return view;
  return view->with_rank(4);
}

// Extents alone, to compare shapes with; the memory is not read.
Tensor extents(const void* any, std::initializer_list<std::int64_t> shape) {
  return Tensor::dense(const_cast<void*>(any), DType::f64, shape);
}

// The gradient by a temperature is the product of a query with the gradient by what the scale made
// of it.
Expected<void> check_learned_temperature(const Plan& plan) {
  POSENC_CHECK(check_takes(rooms::attended_temperature, plan, where));
  if (!plan.relative || !plan.relative->uses_query) return {};
  return fail(where, "a learned temperature has gradients beside terms that hold the query alone",
              "vectors by distance that meet keys", "leave head_scale and head_bias absent");
}

// Both or none, and without sink logits: their gradient is told by the caller's two numbers alone.
Expected<void> check_whole(const AttentionInputs& in, const WholeRows& whole) {
  if (bool(whole.log_sums) != bool(whole.dots))
    return fail(where, "log_sums and dots of whole rows must be given together", "one of them");
  if (!whole || !in.sink_logits) return {};
  return fail(where, "with whole rows sink logits must be absent", "sink logits",
              "log_sums has them; their gradient is -exp(sink - log_sum) * dot");
}

struct Arguments {
  detail::AttendArguments in;
  Tensor out_gradient;
  WholeRows whole;
  AttentionGradients to;  // of four axes
};

Expected<Arguments> checked_arguments(const AttentionInputs& in, const Plan& plan,
                                      const Tensor& out_gradient,
                                      const AttentionGradients& gradients, const WholeRows& whole) {
  POSENC_TRY(g, detail::viewed(where, "out_gradient", out_gradient, 4));
  POSENC_TRY(fitting, detail::attend_arguments(rooms::attend_backward, where, in, plan,
                                               detail::dense_like(g)));

  Tensor slopes, bias, frequency, phase, mix, by_head;
  if (plan.bias) {
    if (const auto* part = std::get_if<Slopes>(&*plan.bias)) {
      slopes = extents(part, {static_cast<std::int64_t>(part->slope.size())});
    } else {
      bias = std::get<BiasTable>(*plan.bias).values.values.with_rank(2);
    }
  }
  if (plan.rotate) {
    const Rotate& part = *plan.rotate;
    frequency = extents(&part, {part.frequencies.heads, part.frequencies.axes, part.pairs()});
    if (const Mix* const by = part.mix()) mix = extents(by, {by->heads, by->inputs, by->outputs});
    if (const Phase* const by = part.phase()) phase = extents(by, {by->heads, part.pairs()});
    if (gradients.rotation_frequency)
      POSENC_CHECK(check_takes(rooms::attended_frequencies, plan, where));
  }
  if (plan.logits.temperature == Temperature::heads) {
    by_head = extents(&plan.logits, {std::ssize(plan.logits.head_scale)});
    if (gradients.head_scale || gradients.head_bias) POSENC_CHECK(check_learned_temperature(plan));
  }
  Arguments checked{.in = fitting, .out_gradient = g, .whole = {}, .to = {}};
  POSENC_CHECK(check_whole(in, whole));
  POSENC_TRY(log_sums, detail::number_by_query(where, "log_sums", whole.log_sums, checked.in));
  POSENC_TRY(dots, detail::number_by_query(where, "dots", whole.dots, checked.in));
  checked.whole = {.log_sums = log_sums, .dots = dots};
  const detail::RelativeTables& relative = checked.in.relative;
  struct Wanted {
    std::string_view of;
    const Tensor* from;
    const Tensor* like;
    Tensor* to;
  };
  AttentionGradients& to = checked.to;
  for (const Wanted& each :
       {Wanted{"q", &gradients.q, &checked.in.q, &to.q},
        {"k", &gradients.k, &checked.in.k, &to.k},
        {"v", &gradients.v, &checked.in.v, &to.v},
        {"the slopes", &gradients.slopes, &slopes, &to.slopes},
        {"the bias table", &gradients.bias, &bias, &to.bias},
        {"relative.query", &gradients.relative_query, &relative.query, &to.relative_query},
        {"relative.key", &gradients.relative_key, &relative.key, &to.relative_key},
        {"relative.value", &gradients.relative_value, &relative.value, &to.relative_value},
        {"the frequencies", &gradients.rotation_frequency, &frequency, &to.rotation_frequency},
        {"the phases", &gradients.rotation_phase, &phase, &to.rotation_phase},
        {"the mixture's cosines", &gradients.mix_cosine, &mix, &to.mix_cosine},
        {"the mixture's sines", &gradients.mix_sine, &mix, &to.mix_sine},
        {"logits.head_scale", &gradients.head_scale, &by_head, &to.head_scale},
        {"logits.head_bias", &gradients.head_bias, &by_head, &to.head_bias},
        {"profiles.query", &gradients.profiles.query, &checked.in.profiles.query,
         &to.profiles.query},
        {"profiles.key", &gradients.profiles.key, &checked.in.profiles.key, &to.profiles.key}}) {
    POSENC_TRY(view, gradient_of(each.of, *each.from, *each.like));
    *each.to = view;
  }
  POSENC_TRY(sinks, detail::sink_gradient(where, gradients.sink_logits, in.sink_logits));
  to.sink_logits = sinks;
  return checked;
}

// --- before and after the loop ------------------------------------------------------------------

// A sum of its own for each table that is wanted, over the query heads of one key head.
TableSums table_sums(const AttentionGradients& to, std::int64_t group) {
  const auto sum = [&](const Tensor& gradient, int head_axis) {
    if (!gradient) return TableSum();
    const auto axis = static_cast<std::size_t>(head_axis);
    const std::int64_t heads = gradient.shape[axis];
    const std::int64_t size = heads == 0 ? 0 : gradient.size() / heads;
    return TableSum(heads == 1 ? 1 : group, size);
  };
  return {.slopes = sum(to.slopes, 3),
          .bias = sum(to.bias, 2),
          .query = sum(to.relative_query, 1),
          .key = sum(to.relative_key, 1),
          .value = sum(to.relative_value, 1)};
}

// The sums of all key heads of all parts of all sequences, in their order.
void write_table(std::vector<TableSums>& items, TableSum TableSums::* of, std::int64_t kv_heads,
                 std::int64_t group, const Tensor& gradient) {
  if (!gradient) return;
  auto total = detail::Dense<double>::zeros(gradient);
  std::vector<double>& numbers = total.numbers();
  for (std::size_t item = 0; item < items.size(); ++item) {
    const TableSum& part = items[item].*of;
    const bool shared = part.numbers.size() == numbers.size();
    const std::int64_t first_head = shared ? 0 : static_cast<std::int64_t>(item) % kv_heads * group;
    double* const to = numbers.data() + first_head * part.size;
    for (std::size_t n = 0; n < part.numbers.size(); ++n) to[n] += part.numbers[n];
  }
  total.copy_to(gradient);
}

// The plan's bias, and the gradient by it: a sum over the diagonals where queries and keys both
// follow each other, whose distances are told apart only at the end.
template <class T>
class PlanBiasGradient final : public detail::PlanBias<T> {
 public:
  PlanBiasGradient(const Plan& plan, std::int64_t group, std::int64_t queries, std::int64_t keys,
                   TableSums& sums)
      : detail::PlanBias<T>(plan, group, queries, keys), sums_(sums) {
    if (wanted()) by_diagonal_ = diagonals_.template take_zeros<double>(group * this->step_);
  }

  void take_gradient(std::int64_t g, std::int64_t query, T scale, const detail::VisibleRange& seen,
                     const T* by_logit) override {
    if (!wanted()) return;
    const bool scaled = this->slopes_ != nullptr && this->slopes_->before_scale;
    const std::int64_t position = this->block_->queries.position(query);
    if (this->windowed_ && !scaled) {
      const std::int64_t x0 = this->last_query_ - query + seen.begin;
      return detail::add_to_doubles(by_logit + seen.begin, seen.end - seen.begin,
                                    by_diagonal_ + g * this->step_ + x0);
    }
    for (std::int64_t j = seen.begin; j < seen.end; ++j) {
      if (by_logit[j] == 0) continue;
      add(g, position - this->block_->keys.position(j),
          static_cast<double>(scaled ? by_logit[j] * scale : by_logit[j]));
      for (std::int64_t axis = 1; axis < this->axes_; ++axis)
        add_to_row(g, axis, this->distance(axis, query, j), static_cast<double>(by_logit[j]));
    }
  }
  // To be called once all rows have been taken, when their block may be gone.
  void finish() {
    if (!wanted() || !this->windowed_) return;
    for (std::int64_t g = 0; g < this->group_; ++g) {
      for (std::int64_t x = 0; x < this->distances_; ++x) {
        const double sum = by_diagonal_[g * this->step_ + x];
        if (sum != 0) add(g, this->longest_ - x, sum);
      }
    }
  }

 private:
  bool wanted() const { return sums_.slopes || sums_.bias; }
  void add(std::int64_t g, std::int64_t distance, double gradient) {
    if (sums_.slopes) {
      const auto steps = static_cast<double>(distance);
      *sums_.slopes.of(g) -= gradient * (this->slopes_->bidirectional ? std::abs(steps) : steps);
    } else {
      add_to_row(g, 0, distance, gradient);
    }
  }
  void add_to_row(std::int64_t g, std::int64_t axis, std::int64_t distance, double gradient) {
    sums_.bias.of(g)[detail::row_at(this->table_->of_axis(axis), distance)] += gradient;
  }

  detail::Scratch diagonals_;
  TableSums& sums_;
  double* by_diagonal_ = nullptr;  // [head of the group][as the window]
};

template <class T>
void write_frequencies(BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                       const Tensor& to) {
  if (!to || in.plan->rotate->mix()) return;
  const Rotate& rotation = *in.plan->rotate;
  auto total = detail::Dense<double>::zeros(to);
  const auto add = [&](HeadRows<T>& rotated, HeadRows<T>& gradient, const Positions& positions,
                       double sign) {
    detail::add_frequency_gradient(rotation, positions, rotated.view(), gradient.view(), sign,
                                   total.numbers());
  };
  // Queries come scaled, the sums by them do not.
  add(in.q, by_query.q, *in.in->queries, 1);
  add(in.k, by_key.k, *in.in->keys, 1);
  if (rotation.rotates_values()) add(in.v, by_key.v, *in.in->keys, 1);
  if (rotation.rotates_outputs())
    add(by_query.rotated_out, in.out_gradient, *in.in->queries, -1);  // rotated the other way
  total.copy_to(to);
}

template <class T>
void write_phases(BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                  const Tensor& to) {
  if (!to) return;
  const Rotate& rotation = *in.plan->rotate;
  auto total = detail::Dense<double>::zeros(to);
  if (rotation.phase()->side == Side::key)
    detail::add_phase_gradient(rotation, in.k.view(), by_key.k.view(), total.numbers());
  else
    detail::add_phase_gradient(rotation, in.q.view(), by_query.q.view(), total.numbers());
  total.copy_to(to);
}

// Of what was rotated, which in.q and in.k no longer hold.
template <class T>
void write_mixture(BackwardInputs<T>& in, QuerySums<T>& by_query, KeySums<T>& by_key,
                   const AttentionGradients& to) {
  const Rotate* const rotation = in.plan->rotate ? &*in.plan->rotate : nullptr;
  if (rotation == nullptr || !rotation->mix()) return;
  struct Sum {
    const Tensor& to;
    detail::Dense<double> total;
    explicit Sum(const Tensor& wanted) : to(wanted) {
      if (to) total = detail::Dense<double>::zeros(to);
    }
    std::vector<double>* numbers() { return to ? &total.numbers() : nullptr; }
  } cosine(to.mix_cosine), sine(to.mix_sine), frequency(to.rotation_frequency);
  const detail::MixSums sums{cosine.numbers(), sine.numbers(), frequency.numbers()};
  if (!sums.cosine && !sums.sine && !sums.frequency) return;
  auto q = HeadRows<T>::loaded(in.in->q), k = HeadRows<T>::loaded(in.in->k);
  for (std::int64_t b = 0; b < q.batch(); ++b)
    for (std::int64_t h = 0; h < q.heads(); ++h)
      for (std::int64_t i = 0; i < q.seq(); ++i)
        detail::scale_row(q.row(b, h, i), q.step(), in.scale(b, h, i));
  detail::add_mix_gradient(*rotation, *in.in->queries, q.view(), by_query.q.view(), sums);
  detail::add_mix_gradient(*rotation, *in.in->keys, k.view(), by_key.k.view(), sums);
  for (Sum* const each : {&cosine, &sine, &frequency})
    if (each->to) each->total.copy_to(each->to);
}

template <class T>
void backward(const Arguments& arguments, const Plan& plan) {
  const AttentionGradients& to = arguments.to;
  const Tensor &q = arguments.in.q, &k = arguments.in.k, &v = arguments.in.v;
  auto in = detail::backward_inputs<T>(arguments.in, plan, arguments.out_gradient);
  in.whole = arguments.whole;
  QuerySums<T> by_query{.q = HeadRows<T>::zeros(detail::widened(plan, q))};
  const auto met = [](const Tensor& profiles, const Tensor& x) { return profiles ? profiles : x; };
  if (in.relative_key) by_query.plain_q = HeadRows<T>::zeros(met(arguments.in.profiles.query, q));
  if (to.rotation_frequency && plan.rotate->rotates_outputs())
    by_query.rotated_out = HeadRows<T>::zeros(arguments.in.out);
  by_query.sinks.resize(detail::rows_wanted(arguments.in, bool(to.sink_logits)));
  by_query.temperatures.resize(
      detail::rows_wanted(arguments.in, bool(to.head_scale) || bool(to.head_bias)));
  const std::int64_t parts = detail::query_parts(arguments.in);
  std::vector<KeySums<T>> of_part(static_cast<std::size_t>(parts));
  for (KeySums<T>& sums : of_part) {
    sums.k = HeadRows<T>::zeros(detail::widened(plan, k));
    sums.v = HeadRows<T>::zeros(v);
    if (in.relative_query) sums.plain_k = HeadRows<T>::zeros(met(arguments.in.profiles.key, k));
  }

  const std::int64_t kv_heads = k.shape[1], group = kv_heads == 0 ? 1 : q.shape[1] / kv_heads;
  const bool any = arguments.in.out.size() != 0 && k.size() != 0;
  std::vector<TableSums> tables(static_cast<std::size_t>(any ? in.key_heads() * parts : 0));
  if (any) {
    detail::run_backward(in, by_query, of_part, [&](BackwardTask<T> task, std::int64_t index) {
      TableSums& sums = tables[static_cast<std::size_t>(index)];
      sums = table_sums(to, group);
      task.tables = &sums;
      PlanBiasGradient<T> bias(plan, group, q.shape[2], k.shape[2], sums);
      detail::add_backward(in, task, bias);
      bias.finish();
    });
  }
  write_table(tables, &TableSums::slopes, kv_heads, group, to.slopes);
  write_table(tables, &TableSums::bias, kv_heads, group, to.bias);
  write_table(tables, &TableSums::query, kv_heads, group, to.relative_query);
  write_table(tables, &TableSums::key, kv_heads, group, to.relative_key);
  write_table(tables, &TableSums::value, kv_heads, group, to.relative_value);
  detail::write_sinks(arguments.in, by_query.sinks, to.sink_logits);
  write_frequencies(in, by_query, of_part[0], to.rotation_frequency);
  write_phases(in, by_query, of_part[0], to.rotation_phase);
  write_mixture(in, by_query, of_part[0], to);
  detail::write_profiles(in, by_query, of_part[0], to.profiles);
  detail::write_backward(in, by_query, of_part[0], to.q, to.k, to.v);
  detail::write_temperatures(arguments.in, plan, by_query.temperatures, to.head_scale,
                             to.head_bias);
}

// --- regions ------------------------------------------------------------------------------------

// The sums of all regions' parts of a gradient.
struct RegionSum {
  Tensor AttentionGradients::* member;
  detail::Dense<double> sum, part;
};

// What forward attention tells of whole rows: the logarithms of their sums, and Σ_c out_c ·
// gradient_c.
template <class T>
std::pair<detail::Dense<double>, detail::Dense<double>> whole_rows(const Arguments& arguments,
                                                                   const Plan& plan) {
  detail::AttendArguments in = arguments.in;
  Tensor by_query = in.q;
  by_query.shape[3] = 1;
  auto log_sums = detail::Dense<double>::zeros(by_query), dots = log_sums;
  auto out = detail::Dense<T>::zeros(in.out);
  in.out = out.view();
  in.log_sums = log_sums.view();
  in.log_sums.rank = 3;
  in.options.allow_bfloat16_products = false;  // as the gradients are computed
  detail::attend_by_plan(in, plan);
  detail::Dense<T> gradient(arguments.out_gradient);
  for (std::int64_t row = 0; row < std::ssize(dots.numbers()); ++row) {
    const auto at = static_cast<std::size_t>(row * out.dim());
    for (std::size_t c = 0; c < static_cast<std::size_t>(out.dim()); ++c)
      dots.numbers()[static_cast<std::size_t>(row)] +=
          static_cast<double>(out.numbers()[at + c]) *
          static_cast<double>(gradient.numbers()[at + c]);
  }
  return {std::move(log_sums), std::move(dots)};
}

// Region by region, each a plan that does not rotate over queries and keys that were: their parts
// add up.
template <class T>
void backward_by_regions(const Arguments& arguments, const Plan& plan) {
  const detail::AttendArguments& in = arguments.in;
  const Regions& regions = *plan.rotate->regions();
  if (in.out.size() == 0 || in.k.size() == 0) {
    Plan nothing = plan;
    nothing.rotate.reset();
    return backward<T>(arguments, nothing);
  }
  WholeRows whole = arguments.whole;
  detail::Dense<double> log_sums, dots;
  if (!whole) {
    std::tie(log_sums, dots) = whole_rows<T>(arguments, plan);
    whole = {.log_sums = log_sums.view(), .dots = dots.view()};
  }
  std::vector<RegionSum> sums;
  using G = AttentionGradients;
  for (Tensor G::* const member :
       {&G::q, &G::k, &G::v, &G::slopes, &G::bias, &G::head_scale, &G::head_bias})
    if (const Tensor& to = arguments.to.*member)
      sums.push_back({member, detail::Dense<double>::zeros(to), detail::Dense<double>::zeros(to)});
  Plan plain = plan;
  plain.rotate.reset();
  detail::Dense<T> v(in.v), gradient(arguments.out_gradient);
  for (std::size_t r = 0; r < regions.region.size(); ++r) {
    const Regions::Region& region = regions.region[r];
    const Rotate rotate = detail::rotation_of(*plan.rotate, region);
    const Positions queries = detail::mapped(*in.queries, region.query),
                    keys = detail::mapped(*in.keys, region.key);
    detail::Dense<T> q(in.q), k(in.k);
    const auto turn = [&](const Tensor& x, const Positions& at, Side side, detail::Action action) {
      detail::rotate_checked(&rotate, x, at, side, action, x, in.threads);
    };
    turn(q.view(), queries, Side::query, detail::Action::forward);
    turn(k.view(), keys, Side::key, detail::Action::forward);
    Arguments part = arguments;
    part.in.q = q.view();
    part.in.k = k.view();
    part.in.v = v.view();
    part.in.sink_logits = {};
    part.in.region = {&regions, r};
    part.out_gradient = gradient.view();
    part.whole = whole;
    part.to = {};
    for (RegionSum& each : sums) part.to.*each.member = each.part.view();
    backward<T>(part, plain);
    for (RegionSum& each : sums) {
      if (each.member == &G::q)
        turn(each.part.view(), queries, Side::query, detail::Action::transpose);
      if (each.member == &G::k) turn(each.part.view(), keys, Side::key, detail::Action::transpose);
      each.sum.add(each.part);
    }
  }
  for (RegionSum& each : sums) each.sum.copy_to(arguments.to.*each.member);
  if (!arguments.to.sink_logits) return;
  std::vector<double> by_row;
  const std::int64_t count = in.q.shape[2], heads = in.q.shape[1];
  for (std::int64_t row = 0; row < in.q.shape[0] * heads * count; ++row) {
    const double sink = in.sink(row / count / heads, row / count % heads, row % count);
    const auto at = static_cast<std::size_t>(row);
    by_row.push_back(log_sums.numbers()[at] == -std::numeric_limits<double>::infinity()
                         ? 0
                         : -std::exp(sink - log_sums.numbers()[at]) * dots.numbers()[at]);
  }
  detail::write_sinks(in, by_row, arguments.to.sink_logits);
}

}  // namespace

Expected<void> attend_backward(const AttentionInputs& in, const Plan& plan,
                               const Tensor& out_gradient, const AttentionGradients& gradients,
                               const WholeRows& whole) {
  POSENC_TRY(checked, checked_arguments(in, plan, out_gradient, gradients, whole));
  POSENC_CHECK(detail::check_reach(plan, checked.in));
  detail::with_compute_type(in.q.dtype, [&]<class T>(T*) {
    plan.rotate&& plan.rotate->regions() ? backward_by_regions<T>(checked, plan)
                                         : backward<T>(checked, plan);
  });
  return {};
}

}  // namespace posenc
