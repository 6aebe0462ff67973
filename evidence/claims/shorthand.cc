#include "evidence/claims/shorthand.h"

#include <algorithm>
#include <numeric>

#include "src/core/random.h"

namespace posenc::detail {

double dot(std::span<const double> a, std::span<const double> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double norm(std::span<const double> x) { return std::sqrt(dot(x, x)); }
double distance(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}
double largest_difference(std::span<const double> a, std::span<const double> b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

namespace {

std::int64_t width_of(const Plan& plan) {
  if (!plan.add) return 0;
  return std::visit([](const auto& kind) { return kind.width; }, plan.add->kind);
}

Tensor head(Matrix& x) { return Tensor::dense(x.values.data(), {1, 1, x.rows, x.columns}); }
Tensor head(Matrix&& x) = delete;

}  // namespace

Plan Lab::plan(const Scheme& scheme, const Geometry& geometry) {
  return take(compile(scheme, geometry));
}

Plan Lab::rope(std::int64_t head_dim, Rope scheme) {
  return plan(Scheme{std::move(scheme)}, {.head_dim = head_dim});
}

Vector Lab::frequencies(std::int64_t width) {
  const Plan p = plan(Sinusoidal{}, {.width = width});
  const Waves* waves = p.add ? std::get_if<Waves>(&p.add->kind) : nullptr;
  return waves ? waves->frequency : Vector(static_cast<std::size_t>(width / 2));
}

Model Lab::model(std::string_view bundled) { return take(read_model(bundled)); }

Positions Lab::ids(std::vector<std::int64_t> ids) { return take(Positions::ids(ids)); }

Matrix Lab::vectors(const Plan& plan, const Positions& positions) {
  Matrix out(positions.size(), width_of(plan));
  check(position_vectors(plan, positions,
                         Tensor::dense(out.values.data(), {1, out.rows, out.columns})));
  return out;
}

Matrix Lab::table(std::int64_t width, std::int64_t rows) {
  return vectors(plan(Sinusoidal{}, {.width = width}), Positions::range(0, rows));
}

Matrix Lab::rotated(const Plan& plan, const Matrix& x, const Positions& positions, Way way) {
  Matrix out = x;
  check(way == Way::forward ? rotate(plan, head(out), positions, Side::query, head(out))
                            : rotate_inverse(plan, head(out), positions, Side::query, head(out)));
  return out;
}

Vector Lab::rotated(const Plan& plan, const Vector& x, std::int64_t position, Way way) {
  const Matrix row(1, static_cast<std::int64_t>(x.size()), x);
  return rotated(plan, row, Positions::range(position, 1), way).values;
}

Matrix Lab::bias(const Plan& plan, std::int64_t heads, const Positions& queries,
                 const Positions& keys) {
  Matrix out(heads * queries.size(), keys.size());
  check(posenc::bias(plan, queries, keys,
                     Tensor::dense(out.values.data(), {heads, queries.size(), keys.size()})));
  return out;
}

Attended Lab::attend(const Plan& plan, const Matrix& q, const Matrix& k, const Matrix& v,
                     const Positions& positions, const Mask& mask) {
  Matrix queries = q, keys = k, values = v, out(q.rows, q.columns), logits(q.rows, k.rows);
  check(attend_reference({head(queries), head(keys), head(values), positions, positions, mask},
                         plan, head(out), head(logits)));
  return {std::move(out), std::move(logits)};
}

double Lab::score(const Plan& plan, const Vector& q, const Vector& k, std::int64_t query_position,
                  std::int64_t key_position) {
  const auto dim = static_cast<std::int64_t>(q.size());
  Matrix query(1, dim, q), key(1, dim, k), out(1, dim), logit(1, 1);
  check(attend_reference({head(query),
                          head(key),
                          head(key),
                          Positions::range(query_position, 1),
                          Positions::range(key_position, 1),
                          {.causal = false}},
                         plan, head(out), head(logit)));
  return logit.values[0] * std::sqrt(static_cast<double>(dim));
}

double Lab::normal() { return detail::normal(engine_); }

Vector Lab::normals(std::int64_t count, double deviation) {
  Vector x(static_cast<std::size_t>(count));
  for (double& value : x) value = deviation * normal();
  return x;
}

Matrix Lab::normal_rows(std::int64_t rows, std::int64_t columns) {
  return {rows, columns, normals(rows * columns)};
}

}  // namespace posenc::detail
