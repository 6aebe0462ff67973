// RoPE where it acts: between the projections W_q, W_k and the scores. Shows that a score knows the
// offset alone, that turning pairs is multiplying by a rotation matrix, and what three schemes make
// of the same queries and keys. Exits with 1 if a claim does not hold.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "posenc/posenc.h"

using namespace posenc;
using Vector = std::vector<double>;

constexpr std::int64_t seq = 8, width = 12, head_dim = 8;

template <class T>
T must(Expected<T> result) {
  if (result) return T(*std::move(result));  // of Expected<void>, nothing
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(1);
}

void claim(const char* text, double difference) {
  std::printf("%-62s %.1e\n", text, difference);
  if (difference > 1e-12) std::exit(1);
}

// Numbers without a pattern, the same on every machine.
Vector numbers(std::int64_t count, double seed) {
  Vector x;
  for (std::int64_t i = 0; i < count; ++i)
    x.push_back(std::sin(seed * static_cast<double>(i * i + 1)));
  return x;
}

// [seq][width] times a transposed [head_dim][width]: [seq][head_dim].
Vector projected(const Vector& x, const Vector& w) {
  Vector y;
  for (std::size_t t = 0; t < x.size() / width; ++t) {
    for (std::size_t c = 0; c < head_dim; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) sum += w[c * width + i] * x[t * width + i];
      y.push_back(sum);
    }
  }
  return y;
}

Vector turned(const Plan& plan, Vector x, std::int64_t position, Side side) {
  const Tensor tensor = Tensor::dense(x.data(), {1, head_dim});
  must(rotate(plan, tensor, Positions::range(position, 1), side, tensor));
  return x;
}

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// The same turn as a head_dim x head_dim matrix, nearly all zeros: O(d²) where pairs need O(d).
Vector times_matrix(const Rotate& rotation, const Vector& x, std::int64_t position) {
  std::vector<Vector> matrix(head_dim, Vector(head_dim));
  const auto pairs = static_cast<std::size_t>(rotation.pairs());
  for (std::size_t r = 0; r < pairs; ++r) {
    const double angle = static_cast<double>(position) * rotation.frequencies.radians[r];
    matrix[r][r] = matrix[r + pairs][r + pairs] = std::cos(angle);
    matrix[r + pairs][r] = std::sin(angle);
    matrix[r][r + pairs] = -matrix[r + pairs][r];
  }
  Vector y;
  for (const Vector& row : matrix) y.push_back(dot(row, x));
  return y;
}

int main() {
  const Geometry geometry{.width = width, .heads = 1, .kv_heads = 1, .head_dim = head_dim};
  const Plan rope = must(compile(Rope{}, geometry));
  const Vector w_q = numbers(head_dim * width, 0.7), w_k = numbers(head_dim * width, 1.3);

  // One query at i and one key at j: only i − j matters.
  const Vector q = projected(numbers(width, 0.9), w_q), k = projected(numbers(width, 1.1), w_k);
  const auto score = [&](std::int64_t i, std::int64_t j) {
    return dot(turned(rope, q, i, Side::query), turned(rope, k, j, Side::key));
  };
  std::printf("score(5, 2) = %.6f   score(5, 3) = %.6f\n", score(5, 2), score(5, 3));
  claim("score(1005, 1002) has the offset of the first; they differ by",
        std::abs(score(1005, 1002) - score(5, 2)));

  const Vector pairs = turned(rope, q, 5, Side::query), matrix = times_matrix(*rope.rotate, q, 5);
  double most = 0;
  for (std::size_t c = 0; c < pairs.size(); ++c)
    most = std::max(most, std::abs(pairs[c] - matrix[c]));
  claim("pair by pair and as a matrix; they differ by", most);

  // One word, eight times: without position every key scores alike, so what varies is the scheme.
  const Vector word = numbers(width, 0.9);
  Vector x;
  for (std::int64_t t = 0; t < seq; ++t) x.insert(x.end(), word.begin(), word.end());
  Vector queries = projected(x, w_q), keys = projected(x, w_k), out(queries.size()),
         logits(seq * seq);
  const auto view = [](Vector& data) { return Tensor::dense(data.data(), {seq, head_dim}); };
  const Positions positions = Positions::range(0, seq);
  std::printf("\nlogits of the last query, key by key, all tokens alike\n");
  for (const Scheme& scheme :
       {Scheme{NoPe{}}, Scheme{Alibi{.alibi_bias_max = 1}}, Scheme{Rope{}}}) {
    const Plan plan = must(compile(scheme, geometry));
    must(attend_reference({view(queries), view(keys), view(keys), positions, positions}, plan,
                          view(out), Tensor::dense(logits.data(), {seq, seq})));
    std::printf("  %-6s", std::string(info(scheme).name).c_str());
    for (std::int64_t j = 0; j < seq; ++j) {
      std::printf(" %8.4f", logits[static_cast<std::size_t>((seq - 1) * seq + j)]);
    }
    std::printf("\n");
  }
}
