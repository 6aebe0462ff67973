// GRAPE against its authors' own modules (tests/peers/grape.py).
#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

struct Grape : testing::Test {
  const Json& file = load("golden/grape.json");
  const std::int64_t heads = file.at("heads"), dim = file.at("head_dim");

  const Json& record(std::string_view name) const {
    for (const Json& each : file.at("records"))
      if (each.at("name") == name) return each;
    return file;
  }
  Tensor tensor(std::vector<double>& x, std::int64_t columns) const {
    return Tensor::dense(x.data(), {1, heads, std::ssize(x) / heads / columns, columns});
  }
};

TEST_F(Grape, ApIsTheirs) {
  const Json& given = record("grape_ap");
  const std::int64_t columns = given.at("p_dim");
  std::vector<double> x[3], p = numbers<double>(given.at("p")),
                            keys = numbers<double>(given.at("p_keys"));
  for (int i = 0; i < 3; ++i) x[i] = numbers<double>(given.at(std::string(1, "qkv"[i])));
  const Positions text = Positions::range(0, std::ssize(p) / heads / columns);
  const AttentionInputs in{tensor(x[0], dim), tensor(x[1], dim), tensor(x[2], dim), text, text};
  std::vector<double> out(x[0].size());
  const GrapeAp scheme{.p_queries = {tensor(p, columns)}, .p_keys = {tensor(keys, columns)}};
  ASSERT_TRUE(attend(in, scheme, {}, tensor(out, dim)));
  expect_close(out, numbers<double>(given.at("out_f32")), 3e-6);
}

// p of a key is that of a query divided by its root mean square and rotated by a radian a token,
// backwards. Theirs has cosines and sines of bfloat16.
TEST_F(Grape, APlanMakesPOfTheKeys) {
  const Json& given = record("grape_ap");
  const std::int64_t columns = given.at("p_dim");
  std::vector<double> p = numbers<double>(given.at("p"));
  for (auto row = p.begin(); row != p.end(); row += columns) {
    double squares = 0;
    for (auto each = row; each != row + columns; ++each) squares += *each * *each;
    for (auto each = row; each != row + columns; ++each)
      *each /= std::sqrt(squares / static_cast<double>(columns));
  }
  Plan plan;
  plan.rotate = Rotate{
      .slice = {.rotary_dim = columns},
      .frequencies = {.radians = std::vector<double>(static_cast<std::size_t>(columns / 2), -1)}};
  const Tensor view = tensor(p, columns);
  ASSERT_TRUE(rotate(plan, view, Positions::range(0, view.shape[2]), Side::key, view));
  expect_close(p, numbers<double>(given.at("p_keys")), 2 * 0x1p-9 * 3);
}

// Frequencies of each head that turn backwards: negative ones of a plan.
TEST_F(Grape, MIsAPlanOfHeads) {
  const Json& given = record("grape_m of heads");
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.rotary_dim = dim},
             .frequencies = {.heads = heads, .radians = numbers<double>(given.at("frequencies"))}};
  for (double& frequency : plan.rotate->frequencies.radians) frequency = -frequency;
  ASSERT_TRUE(checked(plan, dim));
  for (const auto& [from, to] : {std::pair{"q", "q_f32"}, {"k", "k_f32"}}) {
    std::vector<double> x = numbers<double>(given.at(from));
    const Tensor view = tensor(x, dim);
    ASSERT_TRUE(rotate(plan, view, Positions::range(0, view.shape[2]), Side::query, view));
    expect_close(x, numbers<double>(given.at(to)), 2e-5);
  }
}

// exp(nωL) of a plane that a and b span, L = abᵀ − baᵀ, is a rotation of two channels once W_q and
// W_k are written in a basis that begins with that plane: with s = |a||b|sin(a, b), I + sin(ns)/s L
// + (1 − cos(ns))/s² L² between q and k gives what rotate() gives of Bq and Bk.
TEST_F(Grape, ARotationInAnyPlaneIsOneOfAPairInAnotherBasis) {
  const std::vector<double> a = {0.3, -0.5, 0.2, 0.7}, b = {-0.4, 0.1, 0.6, 0.2};
  const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
    double sum = 0;
    for (std::size_t c = 0; c < 4; ++c) sum += x[c] * y[c];
    return sum;
  };
  const double s = std::sqrt(dot(a, a) * dot(b, b) - dot(a, b) * dot(a, b));
  const auto by_l = [&](const std::vector<double>& x) {
    std::vector<double> y(4);
    for (std::size_t c = 0; c < 4; ++c) y[c] = a[c] * dot(b, x) - b[c] * dot(a, x);
    return y;
  };
  const auto turned = [&](const std::vector<double>& x, double n) {
    const std::vector<double> once = by_l(x), twice = by_l(once);
    std::vector<double> y(4);
    for (std::size_t c = 0; c < 4; ++c)
      y[c] = x[c] + std::sin(n * s) / s * once[c] + (1 - std::cos(n * s)) / (s * s) * twice[c];
    return y;
  };
  // An orthonormal basis (Gram-Schmidt) whose first two are of the plane.
  std::vector<std::vector<double>> basis = {a, b, {1, 0, 0, 0}, {0, 1, 0, 0}};
  for (std::size_t n = 0; n < 4; ++n) {
    for (std::size_t before = 0; before < n; ++before) {
      const double along = dot(basis[n], basis[before]);
      for (std::size_t c = 0; c < 4; ++c) basis[n][c] -= along * basis[before][c];
    }
    const double length = std::sqrt(dot(basis[n], basis[n]));
    for (double& x : basis[n]) x /= length;
  }
  Plan plan;  // L turns from b to a
  plan.rotate = Rotate{.slice = {.pairing = Pairing::interleaved, .rotary_dim = 2},
                       .frequencies = {.radians = {-s}}};
  const std::vector<double> q = {1, 0.2, -0.3, 0.8}, k = {-0.6, 0.4, 0.9, 0.5};
  for (const std::int64_t i : {0, 3, 40}) {
    for (const std::int64_t j : {0, 2, 39}) {
      std::vector<double> turned_q, turned_k;
      for (const auto& row : basis)
        turned_q.push_back(dot(row, q)), turned_k.push_back(dot(row, k));
      const auto rotated = [&](std::vector<double>& x, std::int64_t at) {
        const Tensor view = Tensor::dense(x.data(), {1, 4});
        EXPECT_TRUE(rotate(plan, view, Positions::range(at, 1), Side::query, view));
      };
      rotated(turned_q, i);
      rotated(turned_k, j);
      EXPECT_NEAR(dot(turned_q, turned_k),
                  dot(turned(q, static_cast<double>(i)), turned(k, static_cast<double>(j))), 1e-12);
      EXPECT_NEAR(dot(turned_q, turned_k), dot(q, turned(k, static_cast<double>(j - i))), 1e-12);
    }
  }
}

}  // namespace
}  // namespace posenc::golden
