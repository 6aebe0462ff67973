#include "evidence/lab/train/probe.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace posenc::lab {
namespace {

using Vector = std::vector<double>;

// x with A x = b by Cholesky's factors of A, symmetric and positive; A is [n][n] and overwritten.
Vector solved(std::vector<Vector>& a, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = a[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i][k] * a[j][k];
      a[i][j] = i == j ? std::sqrt(sum) : sum / a[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i][k] * b[k];
    b[i] /= a[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k][i] * b[k];
    b[i] /= a[i][i];
  }
  return b;
}

double mean_of(std::span<const double> numbers) {
  return std::reduce(numbers.begin(), numbers.end()) / static_cast<double>(numbers.size());
}

}  // namespace

double ridge_r2(std::span<const float> features, std::int64_t width,
                std::span<const double> wanted) {
  const auto n = static_cast<std::size_t>(width);
  const std::size_t rows = wanted.size(), half = rows / 2;
  const auto count = static_cast<double>(half);
  Vector middle(n), scale(n);
  for (std::size_t i = 0; i < half * n; ++i)
    middle[i % n] += static_cast<double>(features[i]) / count;
  for (std::size_t i = 0; i < half * n; ++i) {
    const double from = static_cast<double>(features[i]) - middle[i % n];
    scale[i % n] += from * from / count;
  }
  constexpr double still = 1e-20;
  for (double& each : scale) each = each > still ? 1 / std::sqrt(each) : 0;
  const auto standardized = [&](std::size_t row) {
    Vector made(n);
    for (std::size_t i = 0; i < n; ++i)
      made[i] = (static_cast<double>(features[row * n + i]) - middle[i]) * scale[i];
    return made;
  };
  const double level = mean_of(wanted.first(half));
  std::vector<Vector> gram(n, Vector(n));
  Vector toward(n);
  for (std::size_t row = 0; row < half; ++row) {
    const Vector x = standardized(row);
    for (std::size_t i = 0; i < n; ++i) {
      toward[i] += x[i] * (wanted[row] - level);
      for (std::size_t j = 0; j <= i; ++j) gram[i][j] += x[i] * x[j];
    }
  }
  for (std::size_t i = 0; i < n; ++i) gram[i][i] += 1e-3 * count;
  const Vector weights = solved(gram, toward);
  double missed = 0, varied = 0;
  const double middle_of_rest = mean_of(wanted.subspan(half));
  for (std::size_t row = half; row < rows; ++row) {
    const Vector x = standardized(row);
    const double guess = level + std::inner_product(x.begin(), x.end(), weights.begin(), 0.0);
    missed += (wanted[row] - guess) * (wanted[row] - guess);
    varied += (wanted[row] - middle_of_rest) * (wanted[row] - middle_of_rest);
  }
  return varied > 0 ? 1 - missed / varied : 0;
}

}  // namespace posenc::lab
