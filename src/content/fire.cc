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
#include "src/content/verbs.h"
#include "src/core/try.h"
#include "src/kernels/check.h"

namespace posenc {
namespace {

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

Expected<void> detail::attend_with(const Fire& fire, const ContentCall& call) {
  const Positions &queries = call.in.queries, &keys = call.in.keys;
  POSENC_CHECK(check_fire(call.where, fire, call.heads(), queries, keys));
  const FireLines lines(fire, call.heads());
  const PsiTable table(fire, queries, keys);
  with_compute_type(call.in.q.dtype, [&]<class T>(T*) {
    attend_all<T>(call.checked, call.plan,
                  [&](const AttendJob&) { return FireBias<T>(fire, lines, table); });
  });
  return {};
}

Expected<void> detail::reference_with(const Fire& fire, const ContentCall& call,
                                      const Tensor& weights) {
  const Positions &queries = call.in.queries, &keys = call.in.keys;
  POSENC_CHECK(check_fire(call.where, fire, call.heads(), queries, keys));
  const auto add = [&](const ReferenceRow& row) {
    const std::int64_t query = queries.at(row.query, row.sequence);
    for (std::int64_t j = 0; j < keys.size(); ++j) {
      const double x = fire.interpolated(query, keys.at(j, row.sequence));
      row.logits[static_cast<std::size_t>(j)] += network(fire, row.head, x);
    }
  };
  return attend_by_rows(call.checked, call.plan, {.change = add, .weights = weights});
}

Expected<void> fire_bias(const Fire& fire, const Positions& queries, const Positions& keys,
                         const Tensor& out) {
  constexpr std::string_view where = "fire_bias";
  POSENC_TRY(view, detail::viewed(where, "out", out, 3));
  POSENC_CHECK(detail::check_distinct(where, view));
  POSENC_CHECK(detail::check_fire(where, fire, view.shape[0], queries, keys));
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
