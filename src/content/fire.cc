// FIRE: logit_ij += f_h(x_ij), x_ij = ψ(|i − j|)/(ψ(max(i, L)) + 10⁻⁶), ψ(n) = ln(|c|n + 1).
// f_h is a network with one input and one layer of max(0, ·): a chain of straight lines, which meet
// where a hidden unit turns on or off. The units of all heads are the same, so the places where the
// lines meet are too; a logit then costs a product and a sum, whatever the number of hidden units.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "posenc/content.h"
#include "src/attention/fused.h"
#include "src/attention/reference.h"
#include "src/content/fire.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

// What attention with FIRE asks, fast or slow.
Expected<detail::AttendArguments> arguments_of(const Fire& fire, const AttentionInputs& in,
                                               const Plan& plan, const Tensor& out,
                                               const Tensor& logits = {}) {
  constexpr std::string_view where = "attend";
  POSENC_TRY(checked,
             detail::attend_arguments(rooms::attend_content, where, in, plan, out, logits));
  POSENC_CHECK(detail::check_fire(where, fire, checked.q.shape[1]));
  POSENC_CHECK(detail::check_fire_axes(where, in.queries, in.keys));
  return checked;
}

// f_h(x) as the network reads.
double network(const Fire& fire, std::int64_t head, double x) {
  const std::size_t units = fire.hidden_weight.size(), h = static_cast<std::size_t>(head);
  double sum = fire.output_bias[h];
  for (std::size_t u = 0; u < units; ++u)
    sum += fire.output_weight[h * units + u] *
           std::max(0.0, fire.hidden_weight[u] * x + fire.hidden_bias[u]);
  return sum;
}

}  // namespace

double Fire::interpolated(std::int64_t query, std::int64_t key) const {
  return psi(std::abs(static_cast<double>(query - key))) / detail::fire_normalizer(*this, query);
}

Expected<void> Fire::attend(const AttentionInputs& in, const Plan& plan, const Tensor& out) const {
  POSENC_TRY(checked, arguments_of(*this, in, plan, out));
  const detail::FireLines lines(*this, checked.q.shape[1]);
  const detail::PsiTable table(*this, in.queries, in.keys);
  detail::with_compute_type(in.q.dtype, [&]<class T>(T*) {
    detail::attend_all<T>(checked, plan, [&](const detail::AttendJob&) {
      return detail::FireBias<T>(*this, lines, table);
    });
  });
  return {};
}

Expected<void> Fire::attend_reference(const AttentionInputs& in, const Plan& plan,
                                      const Tensor& out, const Tensor& logits,
                                      const Tensor& weights) const {
  POSENC_TRY(checked, arguments_of(*this, in, plan, out, logits));
  const auto add = [&](const detail::ReferenceRow& row) {
    const std::int64_t query = in.queries.at(row.query, row.sequence);
    for (std::int64_t j = 0; j < in.keys.size(); ++j) {
      const double x = interpolated(query, in.keys.at(j, row.sequence));
      row.logits[static_cast<std::size_t>(j)] += network(*this, row.head, x);
    }
  };
  return detail::attend_by_rows(checked, plan, {.change = add, .weights = weights});
}

Expected<void> fire_bias(const Fire& fire, const Positions& queries, const Positions& keys,
                         const Tensor& out) {
  constexpr std::string_view where = "fire_bias";
  POSENC_TRY(view, detail::viewed(where, "out", out, 3));
  POSENC_CHECK(detail::check_distinct(where, view));
  POSENC_CHECK(detail::check_fire(where, fire, view.shape[0]));
  POSENC_CHECK(detail::check_fire_axes(where, queries, keys));
  if (queries.batch() != 1 || keys.batch() != 1) {
    return fail(where, "positions must be of one sequence",
                std::to_string(std::max(queries.batch(), keys.batch())),
                "ask sequence by sequence");
  }
  if (view.shape[1] != queries.size() || view.shape[2] != keys.size()) {
    return fail(where,
                "out must be [head, " + std::to_string(queries.size()) + ", " +
                    std::to_string(keys.size()) + "]",
                shape_text(view), "one number for each head, query and key");
  }
  for (std::int64_t i = 0; i < queries.size(); ++i) {
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      const double x = fire.interpolated(queries.at(i), keys.at(j));
      for (std::int64_t h = 0; h < view.shape[0]; ++h)
        view.set(view.offset(h, i, j), network(fire, h, x));
    }
  }
  return {};
}

}  // namespace posenc
