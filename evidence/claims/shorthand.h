// Shorthand of the checks for posenc's public API, in double. The first error sticks and becomes
// the check's result, so that a check reads as its formula.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/claims.h"
#include "posenc/model.h"
#include "posenc/schemes.h"
#include "src/explain/text.h"

namespace posenc::detail {

using std::numbers::pi;
using Vector = std::vector<double>;

// Rows of one length: [position][channel].
struct Matrix {
  std::int64_t rows = 0, columns = 0;
  Vector values = {};

  Matrix() = default;
  Matrix(std::int64_t r, std::int64_t c)
      : rows(r), columns(c), values(static_cast<std::size_t>(r * c)) {}
  Matrix(std::int64_t r, std::int64_t c, Vector v) : rows(r), columns(c), values(std::move(v)) {}
  double& operator()(std::int64_t r, std::int64_t c) {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  double operator()(std::int64_t r, std::int64_t c) const {
    return values[static_cast<std::size_t>(r * columns + c)];
  }
  Vector row(std::int64_t r) const {
    const auto from = values.begin() + r * columns;
    return {from, from + columns};
  }
};

double dot(std::span<const double> a, std::span<const double> b);
double norm(std::span<const double> x);
double distance(std::span<const double> a, std::span<const double> b);
double largest_difference(std::span<const double> a, std::span<const double> b);

struct Attended {
  Matrix out, logits;
};

enum class Way { forward, inverse };

class Lab {
 public:
  Plan plan(const Scheme& scheme, const Geometry& geometry = {});
  Plan rope(std::int64_t head_dim, Rope scheme = {});
  Vector frequencies(std::int64_t width);  // of the sinusoid
  Model model(std::string_view bundled);

  Positions ids(std::vector<std::int64_t> ids);
  Matrix vectors(const Plan& plan, const Positions& positions);
  Matrix table(std::int64_t width, std::int64_t rows);  // sinusoidal, from position 0
  Matrix rotated(const Plan& plan, const Matrix& x, const Positions& positions,
                 Way way = Way::forward);
  Vector rotated(const Plan& plan, const Vector& x, std::int64_t position, Way way = Way::forward);
  Matrix bias(const Plan& plan, std::int64_t heads, const Positions& queries,
              const Positions& keys);
  Attended attend(const Plan& plan, const Matrix& q, const Matrix& k, const Matrix& v,
                  const Positions& positions, const Mask& mask = {.causal = false});
  // The logit × √head_dim of one query and one key.
  double score(const Plan& plan, const Vector& q, const Vector& k, std::int64_t query_position,
               std::int64_t key_position);

  // Normal numbers, the same on every machine.
  double normal();
  Vector normals(std::int64_t count, double deviation = 1);
  Matrix normal_rows(std::int64_t rows, std::int64_t columns);

  // The value, or the error kept and a default.
  template <class T>
  T take(Expected<T> value) {
    if (value) return std::move(*value);
    keep(value.error());
    return T{};
  }
  void keep(const Error& error) {
    if (!failed_) error_ = error;
    failed_ = true;
  }
  void check(const Expected<void>& ok) {
    if (!ok) keep(ok.error());
  }
  bool failed() const { return failed_; }
  const Error& error() const { return error_; }

 private:
  std::mt19937_64 engine_{20170612};
  Error error_;
  bool failed_ = false;
};

// A check as a Claim holds it.
template <Evidence (*body)(Lab&)>
Expected<Evidence> run() {
  Lab lab;
  Evidence finding = body(lab);
  if (lab.failed()) return std::unexpected(lab.error());
  return finding;
}

// Text and numbers as one string: integers grouped, others in four digits.
inline std::string piece(std::string_view text) { return std::string(text); }
template <std::integral T>
std::string piece(T number) {
  return grouped(static_cast<std::int64_t>(number));
}
inline std::string piece(double number) { return shown(number, 4); }
template <class... Parts>
std::string say(const Parts&... parts) {
  return (piece(parts) + ...);
}

inline Measure inside(std::string what, double residual, double tolerance) {
  return {std::move(what), residual, tolerance, true};
}
inline Measure outside(std::string what, double residual, double tolerance) {
  return {std::move(what), residual, tolerance, false};
}

// What a check found, the same on every machine.
inline Evidence found(std::string computed, std::vector<Measure> measures) {
  return {std::move(computed), "", std::move(measures)};
}

constexpr double rounding = 1e-12;  // of a few hundred operations in double on numbers near 1

// The lists, one a file.
std::span<const Claim> waves_claims();
std::span<const Claim> pattern_claims();
std::span<const Claim> table_claims();
std::span<const Claim> rotation_claims();
std::span<const Claim> distance_claims();
std::span<const Claim> attention_claims();
std::span<const Claim> padding_claims();
std::span<const Claim> scaling_claims();
std::span<const Claim> dynamic_claims();
std::span<const Claim> cost_claims();
std::span<const Claim> published_claims();

}  // namespace posenc::detail
