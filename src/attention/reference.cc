// Attention as its formula reads, in double:
//   logit_ij = (q̂_i·k̂_j + q_i·a^K_d + k_j·a^Q_d [+ bias]) · scale_i/√head_dim [+ bias], d = i − j
//   with profiles r_i, s_j: (q̂_i·k̂_j [+ bias]) · scale_i/√head_dim + τ_i (r_i·a^K_d + s_j·a^Q_d)
//     [+ bias]
//   out_i    = R_iᵀ Σ_j α_ij v̂_j + Σ_j α_ij a^V_d,   α_i = softmax of logit_i over the keys i
//            sees, and
//              over a sink's logit, which has no value
// A softcap acts on the scaled products, before the bias.
// with q̂, k̂ (and v̂, where the plan rotates values) rotated at their positions. The plan's `add`
// part went to the embedding before q, k and v were made of it, and has no place here.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "posenc/attention.h"
#include "src/attention/arguments.h"
#include "src/attention/dense.h"
#include "src/attention/reference.h"
#include "src/attention/regions.h"
#include "src/attention/sums.h"
#include "src/attention/visible.h"
#include "src/core/try.h"
#include "src/kernels/bias.h"
#include "src/kernels/reference.h"

namespace posenc {
namespace {

using detail::Dense;

// Rows of one head into an output [batch, heads, queries, keys], where one is wanted.
void write_squares(const std::vector<double>& rows, const Tensor& out, std::int64_t b,
                   std::int64_t h) {
  if (!out) return;
  std::size_t next = 0;
  for (std::int64_t i = 0; i < out.shape[2]; ++i)
    for (std::int64_t j = 0; j < out.shape[3]; ++j) out.set(out.offset(b, h, i, j), rows[next++]);
}

constexpr double hidden = -std::numeric_limits<double>::infinity();

// c·tanh(z/c), z where c is 0.
double capped(double z, double c) {
  if (c == 0) return z;
  // e^x − 1 as Kahan forms it, without what the difference loses near 0.
  const double x = -2 * std::abs(z / c), e = std::exp(x);
  const double less = e == 1 ? x : x < -40 ? -1 : (e - 1) * x / std::log(e);
  return std::copysign(c * -less / (2 + less), z);
}

// Logarithms of weights to weights, in place.
void exponentiate(std::span<double> row) {
  for (double& x : row) x = std::exp(x);
}

// Logits to weights in place; all zero where every key is hidden. sink: the logit that has no
// value. Returns the logarithm of the sum.
double softmax(std::span<double> row, double sink) {
  if (row.empty()) return sink;
  const double peak = std::max(std::ranges::max(row), sink);
  double sum = 0;
  for (double& x : row) {
    x = x == hidden ? 0 : std::exp(x - peak);
    sum += x;
  }
  if (sink != hidden) sum += sink == peak ? 1 : std::exp(sink - peak);
  for (double& x : row) x = x == 0 ? 0 : x / sum;
  return sum == 0 ? hidden : peak + std::log(sum);
}

// x · the table's vectors in these rows; 0 without the table.
double product(const Tensor& table, std::int64_t head, const std::vector<std::int64_t>& rows,
               const double* x) {
  double sum = 0;
  for (const std::int64_t row : rows) {
    if (!table || row == no_row) continue;
    for (std::int64_t c = 0; c < table.shape[2]; ++c)
      sum += x[c] * table.get(table.offset(table.shape[0] == 1 ? 0 : head, row, c));
  }
  return sum;
}

// The row of each list for a distance.
Expected<std::vector<std::int64_t>> rows_at(const Relative& relative, std::int64_t distance) {
  std::vector<std::int64_t> rows;
  for (std::int64_t list = 0; list < relative.lists(); ++list) {
    POSENC_TRY(row, relative.list(list).at(distance));
    rows.push_back(row);
  }
  return rows;
}

// One head of one sequence at a time: its logits [query][key], then its output.
struct Head {
  const Plan& plan;
  const Positions& queries;
  const Positions& keys;
  const detail::RelativeTables& relative;
  const detail::ReferenceRule& rule;
  const detail::AttendArguments& in;
  std::int64_t sequence, head, key_head;

  // −inf where the mask hides the key.
  Expected<void> logits(const Mask& mask, Dense<double>& q, Dense<double>& k,
                        Dense<double>& query_profiles, Dense<double>& key_profiles,
                        std::vector<Dense<double>>& all_q, std::vector<Dense<double>>& all_k,
                        std::vector<double>& logit) const {
    const std::int64_t dim = q.dim();
    const auto* slopes = plan.bias ? std::get_if<Slopes>(&*plan.bias) : nullptr;
    const bool bias_before_scale = slopes != nullptr && slopes->before_scale;
    std::size_t next = 0;
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      const std::int64_t position = queries.at(i, sequence);
      const double scale =
          plan.logits.query_scale(position, head) / std::sqrt(static_cast<double>(dim));
      for (std::int64_t j = 0; j < keys.size(); ++j, ++next) {
        logit[next] = hidden;
        if (!detail::visible(mask, queries, keys, sequence, i, j)) continue;
        const std::int64_t distance = position - keys.at(j, sequence);
        const std::size_t region =
            all_q.size() == 1 ? 0 : plan.rotate->regions()->of(position, keys.at(j, sequence));
        Dense<double>&rotated_q = all_q[region], &rotated_k = all_k[region];
        double sum = detail::reference::dot(rotated_q.row(sequence, head, i),
                                            rotated_k.row(sequence, key_head, j), rotated_q.dim());
        double profile = 0;
        if (relative.part != nullptr && relative.part->profiles > 0) {
          POSENC_TRY(rows, rows_at(*relative.part, distance));
          if (relative.key)
            profile += product(relative.key, head, rows, query_profiles.row(sequence, head, i));
          if (relative.query)
            profile += product(relative.query, head, rows, key_profiles.row(sequence, head, j));
          profile *= plan.logits.query_scale(position, head) / plan.logits.multiplier;
        } else if (relative.part != nullptr) {
          POSENC_TRY(rows, rows_at(*relative.part, distance));
          // These vectors meet q and k as they came, not rotated.
          sum += product(relative.key, head, rows, q.row(sequence, head, i));
          sum += product(relative.query, head, rows, k.row(sequence, key_head, j));
        }
        POSENC_TRY(bias, plan.bias
                             ? detail::bias_at(*plan.bias, head, {queries, keys, sequence, i, j})
                             : Expected<double>(0.0));
        logit[next] = bias_before_scale ? (sum + bias) * scale + profile
                                        : capped(sum * scale, plan.logits.softcap) + bias + profile;
      }
      if (rule.change) {
        rule.change({.sequence = sequence,
                     .head = head,
                     .query = i,
                     .q = {q.row(sequence, head, i), static_cast<std::size_t>(dim)},
                     .rotated_q = all_q[0].row(sequence, head, i),
                     .rotated_keys = all_k[0].row(sequence, key_head),
                     .scale = scale,
                     .logits = row_of(logit, i)});
      }
    }
    return {};
  }

  std::span<double> row_of(std::vector<double>& logit, std::int64_t i) const {
    return std::span(logit).subspan(static_cast<std::size_t>(i * keys.size()),
                                    static_cast<std::size_t>(keys.size()));
  }

  // Σ_j α_ij v_j into out, Σ_j α_ij a^V_d into relative_out; a query that sees no key gives zeros.
  void outputs(std::vector<double>& logit, Dense<double>& v, Dense<double>& out,
               Dense<double>& relative_out) const {
    const std::int64_t dim = v.dim();
    for (std::int64_t i = 0; i < queries.size(); ++i) {
      const std::span<double> row = row_of(logit, i);
      if (rule.leaves_log_weights) {
        exponentiate(row);
      } else {
        const double log_sum = softmax(row, in.sink(sequence, head, i));
        if (in.log_sums) in.log_sums.set(in.log_sums.offset(sequence, head, i), log_sum);
      }
      double* const to = out.row(sequence, head, i);
      double* const relative_to = relative_out.row(sequence, head, i);
      for (std::int64_t j = 0; j < keys.size(); ++j) {
        const double weight = row[static_cast<std::size_t>(j)];
        if (weight == 0) continue;
        const double* const from = v.row(sequence, key_head, j);
        detail::reference::add_multiple(weight, from, dim, to);
        if (!relative.value) continue;
        const Tensor& table =
            relative.value;  // logits() asked for the same rows, so none is missing
        const auto rows = rows_at(*relative.part, queries.at(i, sequence) - keys.at(j, sequence));
        for (const std::int64_t r : *rows) {
          if (r == no_row) continue;
          for (std::int64_t c = 0; c < dim; ++c)
            relative_to[c] +=
                weight * table.get(table.offset(table.shape[0] == 1 ? 0 : head, r, c));
        }
      }
    }
  }
};

}  // namespace

Expected<void> detail::attend_by_rows(const AttendArguments& in, const Plan& plan,
                                      const ReferenceRule& rule) {
  POSENC_TRY(weights, square_output("attend", "weights", rule.weights, in));
  const Positions &queries = *in.queries, &keys = *in.keys;
  const std::int64_t batch = in.q.shape[0], heads = in.q.shape[1];
  const std::int64_t group = heads == 0 ? 1 : in.group();

  Dense<double> q(in.q), k(in.k), v(in.v);
  k.scale(in.key_scale);
  v.scale(in.value_scale);
  const auto of = [](const Tensor& x) { return x ? Dense<double>(x) : Dense<double>(); };
  Dense<double> query_profiles = of(in.profiles.query), key_profiles = of(in.profiles.key);
  // Of each region, or one of each.
  std::vector<Dense<double>> rotated_q, rotated_k;
  const auto rotated = [&](const Plan& by, const Positions& q_at,
                           const Positions& k_at) -> Expected<void> {
    rotated_q.push_back(Dense<double>::zeros(widened(plan, in.q)));
    rotated_k.push_back(Dense<double>::zeros(widened(plan, in.k)));
    POSENC_CHECK(reference::rotate(by, q.view(), q_at, Side::query, rotated_q.back().view()));
    return reference::rotate(by, k.view(), k_at, Side::key, rotated_k.back().view());
  };
  const Regions* const regions = plan.rotate ? plan.rotate->regions() : nullptr;
  if (regions == nullptr) POSENC_CHECK(rotated(plan, queries, keys));
  for (std::size_t r = 0; regions != nullptr && r < regions->region.size(); ++r) {
    const Regions::Region& region = regions->region[r];
    Plan plain = plan;
    plain.valid.reset();
    plain.rotate = rotation_of(*plan.rotate, region);
    POSENC_CHECK(rotated(plain, mapped(queries, region.query), mapped(keys, region.key)));
  }
  const bool rotates_values = plan.rotate && plan.rotate->rotates_values();
  if (rotates_values) POSENC_CHECK(reference::rotate(plan, v.view(), keys, Side::value, v.view()));

  auto sums = Dense<double>::zeros(in.out), relative_sums = sums;
  std::vector<double> logit(static_cast<std::size_t>(queries.size() * keys.size()));
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      const Head head{plan, queries, keys, in.relative, rule, in, b, h, h / group};
      POSENC_CHECK(
          head.logits(*in.mask, q, k, query_profiles, key_profiles, rotated_q, rotated_k, logit));
      write_squares(logit, in.logits, b, h);
      head.outputs(logit, v, sums, relative_sums);
      write_squares(logit, weights, b, h);  // which they have become
    }
  }
  if (rotates_values && plan.rotate->rotates_outputs())
    POSENC_CHECK(rotate_inverse(plan, sums.view(), queries, Side::value, sums.view()));
  sums.add(relative_sums);
  sums.copy_to(in.out);
  return {};
}

Expected<void> attend_reference(const AttentionInputs& in, const Plan& plan, const Tensor& out,
                                const Tensor& logits) {
  POSENC_TRY(checked, detail::attend_arguments(rooms::attend, "attend", in, plan, out, logits));
  return detail::attend_by_rows(checked, plan, {});
}

}  // namespace posenc
