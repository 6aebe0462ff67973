// attend_backward: arguments checked, tensors copied and turned, the loop of backward.cc shared out
// among threads, and what it sums turned back and written.
#include "posenc/gradients.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "src/attention/arguments.h"
#include "src/attention/backward.h"
#include "src/kernels/check.h"
#include "src/kernels/elements.h"
#include "src/kernels/rotate_gradient.h"
#include "src/kernels/threads.h"

namespace posenc {
namespace {

using detail::BackwardInputs;
using detail::Dense;
using detail::KeySums;
using detail::QuerySums;
using detail::TableSum;
using detail::TableSums;

constexpr std::string_view where = "attend_backward";

// --- arguments ----------------------------------------------------------------------------------

// A gradient seen with four axes; absent where not wanted. An extent of the plan's part is all it asks.
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

struct Arguments {
  detail::AttendArguments in;
  Tensor out_gradient;
  AttentionGradients to;  // of four axes
};

Expected<Arguments> checked_arguments(const AttentionInputs& in, const Plan& plan,
                                      const Tensor& out_gradient,
                                      const AttentionGradients& gradients) {
  const auto g = detail::viewed(where, "out_gradient", out_gradient, 4);
  if (!g) return std::unexpected(g.error());
  const auto fitting = detail::attend_arguments(where, in, plan, detail::dense_like(*g));
  if (!fitting) return std::unexpected(fitting.error());

  Tensor slopes, bias, frequency;
  if (plan.bias) {
    if (const auto* part = std::get_if<Slopes>(&*plan.bias)) {
      slopes = extents(part, {static_cast<std::int64_t>(part->slope.size())});
    } else {
      bias = std::get<BiasTable>(*plan.bias).values.values.with_rank(2);
    }
  }
  if (plan.rotate) {
    const Rotate& part = *plan.rotate;
    frequency = extents(&part, {part.heads, part.axes, part.pairs()});
    if (gradients.rotation_frequency) {
      if (auto ok = detail::check_learned_frequencies(where, part); !ok)
        return std::unexpected(ok.error());
    }
  }
  Arguments checked{.in = *fitting, .out_gradient = *g, .to = {}};
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
        {"the frequencies", &gradients.rotation_frequency, &frequency, &to.rotation_frequency}}) {
    const auto view = gradient_of(each.of, *each.from, *each.like);
    if (!view) return std::unexpected(view.error());
    *each.to = *view;
  }
  return checked;
}

// --- before and after the loop ------------------------------------------------------------------

template <class T>
Dense<T> table(const Tensor& values) {
  return values ? Dense<T>(values.with_rank(4)) : Dense<T>();
}

template <class T>
Expected<BackwardInputs<T>> turned_inputs(const Arguments& arguments, const Plan& plan,
                                          const Positions& queries, const Positions& keys,
                                          const Mask& mask, Threads threads) {
  const detail::RelativeTables& relative = arguments.in.relative;
  BackwardInputs<T> in{.plan = &plan,
                       .queries = &queries,
                       .keys = &keys,
                       .mask = &mask,
                       .q = Dense<T>(arguments.in.q),
                       .k = Dense<T>(arguments.in.k),
                       .v = Dense<T>(arguments.in.v),
                       .out_gradient = Dense<T>(arguments.out_gradient),
                       .relative_query = table<T>(relative.query),
                       .relative_key = table<T>(relative.key),
                       .relative_value = table<T>(relative.value)};
  if (plan.bias) {
    if (const auto* part = std::get_if<BiasTable>(&*plan.bias))
      in.bias = table<T>(part->values.values);
  }
  if (in.relative_key) in.plain_q = in.q;
  if (in.relative_query) in.plain_k = in.k;
  if (in.relative_value) in.plain_out_gradient = in.out_gradient;
  // The output is turned back as values were turned, and that turn's transpose is the turn itself.
  for (const auto& [x, positions, side] : {std::tuple{&in.q, &queries, Side::query},
                                           {&in.k, &keys, Side::key},
                                           {&in.v, &keys, Side::value},
                                           {&in.out_gradient, &queries, Side::value}}) {
    if (auto ok = rotate(plan, x->view(), *positions, side, x->view(), threads); !ok)
      return std::unexpected(ok.error());
    in.finite = in.finite &&
                std::ranges::all_of(x->numbers(), [](T number) { return std::isfinite(number); });
  }
  return in;
}

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
  auto total = Dense<double>::zeros(gradient);
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

// Turns a gradient back, adds what never was turned, and writes it.
template <class T>
Expected<void> write_turned(const Plan& plan, Dense<T>& sum, Dense<T>& plain,
                            const Positions& positions, Side side, const Tensor& to,
                            Threads threads) {
  if (!to) return {};
  if (auto ok = rotate_transpose(plan, sum.view(), positions, side, sum.view(), threads); !ok)
    return ok;
  sum.add(plain);
  sum.copy_to(to);
  return {};
}

template <class T>
void write_frequencies(const Plan& plan, BackwardInputs<T>& in, QuerySums<T>& by_query,
                       KeySums<T>& by_key, const Tensor& to) {
  if (!to) return;
  auto total = Dense<double>::zeros(to);
  const auto add = [&](Dense<T>& turned, Dense<T>& gradient, const Positions& positions,
                       double sign) {
    detail::add_frequency_gradient(*plan.rotate, positions, turned.view(), gradient.view(), sign,
                                   total.numbers());
  };
  add(in.q, by_query.q, *in.queries, 1);
  add(in.k, by_key.k, *in.keys, 1);
  if (plan.rotate->values) {
    add(in.v, by_key.v, *in.keys, 1);
    add(by_query.turned_out, in.out_gradient, *in.queries, -1);  // turned the other way
  }
  total.copy_to(to);
}

template <class T>
Expected<void> backward(const Arguments& arguments, const Plan& plan, const Positions& queries,
                        const Positions& keys, const Mask& mask, Threads threads) {
  const AttentionGradients& to = arguments.to;
  auto in = turned_inputs<T>(arguments, plan, queries, keys, mask, threads);
  if (!in) return std::unexpected(in.error());

  const Tensor &q = arguments.in.q, &k = arguments.in.k;
  QuerySums<T> by_query{.q = Dense<T>::zeros(q)};
  if (in->relative_key) by_query.plain_q = Dense<T>::zeros(q);
  if (to.rotation_frequency && plan.rotate->values) by_query.turned_out = Dense<T>::zeros(q);
  const std::int64_t parts = detail::query_parts(arguments.in);
  std::vector<KeySums<T>> of_part(static_cast<std::size_t>(parts));
  for (KeySums<T>& sums : of_part) {
    sums = {.k = Dense<T>::zeros(k), .v = Dense<T>::zeros(k)};
    if (in->relative_query) sums.plain_k = Dense<T>::zeros(k);
  }

  const std::int64_t kv_heads = k.shape[1], group = kv_heads == 0 ? 1 : q.shape[1] / kv_heads;
  const std::int64_t items = q.size() == 0 ? 0 : k.shape[0] * parts * kv_heads;
  std::vector<TableSums> tables(static_cast<std::size_t>(items));
  std::vector<Expected<void>> done(static_cast<std::size_t>(items));
  const double work = static_cast<double>(q.size()) * static_cast<double>(keys.size());
  const int count = detail::thread_count(threads, static_cast<std::int64_t>(std::min(work, 1e15)));
  const std::int64_t key_heads = k.shape[0] * kv_heads;
  in->k_columns.resize(static_cast<std::size_t>(key_heads));
  in->v_columns.resize(static_cast<std::size_t>(key_heads));
  detail::share_out(key_heads, count, [&](std::int64_t first, std::int64_t last) {
    for (; first < last; ++first) detail::find_columns(*in, first);
  });
  detail::share_out(items, count, [&](std::int64_t first, std::int64_t last) {
    while (first < last) {  // the key heads of a part of a sequence at a time
      const std::int64_t whole = first / kv_heads, part = whole % parts;
      const std::int64_t end = std::min(last, (whole + 1) * kv_heads);
      const auto at = static_cast<std::size_t>(first);
      const auto sums_of = std::span(tables).subspan(at, static_cast<std::size_t>(end - first));
      for (TableSums& each : sums_of) each = table_sums(to, group);
      done[at] = detail::add_backward_of<T>(*in, {.sequence = whole / parts,
                                                  .first_key_head = first % kv_heads,
                                                  .part = part,
                                                  .parts = parts,
                                                  .queries = &by_query,
                                                  .keys = &of_part[static_cast<std::size_t>(part)],
                                                  .tables = sums_of});
      first = end;
    }
  });
  for (const Expected<void>& item : done) {
    if (!item) return item;
  }
  KeySums<T>& by_key = of_part[0];
  for (std::size_t part = 1; part < of_part.size(); ++part) {
    by_key.k.add(of_part[part].k);
    by_key.v.add(of_part[part].v);
    by_key.plain_k.add(of_part[part].plain_k);
  }

  write_table(tables, &TableSums::slopes, kv_heads, group, to.slopes);
  write_table(tables, &TableSums::bias, kv_heads, group, to.bias);
  write_table(tables, &TableSums::query, kv_heads, group, to.relative_query);
  write_table(tables, &TableSums::key, kv_heads, group, to.relative_key);
  write_table(tables, &TableSums::value, kv_heads, group, to.relative_value);
  write_frequencies(plan, *in, by_query, by_key, to.rotation_frequency);
  Dense<T> none;
  for (const auto& [sum, plain, positions, side, gradient] :
       {std::tuple{&by_query.q, &by_query.plain_q, &queries, Side::query, &to.q},
        {&by_key.k, &by_key.plain_k, &keys, Side::key, &to.k},
        {&by_key.v, &none, &keys, Side::value, &to.v}}) {
    if (auto ok = write_turned(plan, *sum, *plain, *positions, side, *gradient, threads); !ok)
      return ok;
  }
  return {};
}

}  // namespace

Expected<void> attend_backward(const AttentionInputs& in, const Plan& plan,
                               const Tensor& out_gradient, const AttentionGradients& gradients) {
  const auto checked = checked_arguments(in, plan, out_gradient, gradients);
  if (!checked) return std::unexpected(checked.error());
  return detail::computes_in_double(in.q.dtype)
             ? backward<double>(*checked, plan, in.queries, in.keys, in.mask, in.threads)
             : backward<float>(*checked, plan, in.queries, in.keys, in.mask, in.threads);
}

}  // namespace posenc
