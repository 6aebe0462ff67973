// Attention by products of bfloat16: how far it may be from the plain loops, derived, and what it
// keeps of attention in float.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "posenc/attention.h"
#include "posenc/cache.h"
#include "posenc/gradients.h"
#include "posenc/schemes.h"
#include "src/attention/softmax.h"
#include "src/kernels/gemm16.h"
#include "tests/random.h"

namespace posenc {
namespace {

using detail::Products16;

constexpr double unit = 0x1p-8;  // by which rounding to bfloat16 may be off, relatively

// Four heads over two key heads, of bfloat16 numbers.
struct BFloat16Problem {
  std::int64_t heads = 4, kv_heads = 2, queries, keys, dim;
  std::vector<std::uint16_t> q, k, v, out;
  Mask mask = {};
  AttendOptions options = {};
  Threads threads = {};

  BFloat16Problem(std::int64_t queries, std::int64_t keys, std::int64_t dim = 64)
      : queries(queries), keys(keys), dim(dim) {
    unsigned seed = 1;
    for (const auto& [x, count] :
         {std::pair{&q, heads * queries}, {&k, kv_heads * keys}, {&v, kv_heads * keys}}) {
      for (const double each : random(count * dim, seed++)) x->push_back(bits(each));
    }
    out.resize(q.size());
  }
  static std::uint16_t bits(double x) {
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16);
  }
  static double number(std::uint16_t x) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(x) << 16));
  }
  Tensor view(std::vector<std::uint16_t>& x, std::int64_t of, std::int64_t tokens) {
    return Tensor::dense(x.data(), DType::bf16, {1, of, tokens, dim});
  }
  AttentionInputs inputs() {
    AttentionInputs in{view(q, heads, queries),
                       view(k, kv_heads, keys),
                       view(v, kv_heads, keys),
                       Positions::range(keys - queries, queries),
                       Positions::range(0, keys),
                       mask,
                       threads};
    in.options = options;
    return in;
  }
  std::vector<double> run(const Plan& plan = {}, const Tensor& log_sums = {}) {
    const auto done = attend(inputs(), plan, view(out, heads, queries), log_sums);
    EXPECT_TRUE(done) << done.error().message();
    std::vector<double> numbers;
    for (const std::uint16_t each : out) numbers.push_back(number(each));
    return numbers;
  }
  // In float32, so that rounding the output hides nothing.
  std::vector<float> run_exactly(const Plan& plan = {}) {
    std::vector<float> wide(out.size());
    const auto done = attend(inputs(), plan, Tensor::dense(wide.data(), {1, heads, queries, dim}));
    EXPECT_TRUE(done) << done.error().message();
    return wide;
  }
};

class AttendBFloat16 : public testing::TestWithParam<Products16> {
 protected:
  void SetUp() override { detail::use_products16(GetParam()); }
  void TearDown() override { detail::use_products16(detail::products16().front()); }
};
INSTANTIATE_TEST_SUITE_P(, AttendBFloat16, testing::ValuesIn(detail::products16()),
                         [](const auto& test) {
                           std::string word;
                           for (const char c : name(test.param))
                             if (std::isalnum(static_cast<unsigned char>(c))) word += c;
                           return word;
                         });

// Against the plain loops in double. With weights α_j off by δ_j relatively, an output is off by
//   Σ_j α_j δ_j (v_j − out) / Σ_j α_j (1 + δ_j),
// which is ≤ ε/(1 − ε) · Σ_j α_j |v_j − out| for |δ_j| ≤ ε. Weights are rounded: 2^-8. A rotated
// query and key are rounded as well, so that their logit is off by
//   (2 · 2^-8 + 2^-16) · Σ_c |q_c k_c| / √d at most, and a weight by e to that.
// What float adds, sums of 64 products and exponentials, is below 2^-14 of a logit's terms.
void expect_within_the_bound(BFloat16Problem& problem, const Plan& plan) {
  const std::int64_t heads = problem.heads, queries = problem.queries, keys = problem.keys,
                     dim = problem.dim;
  std::vector<double> q, k, v;
  for (const auto& [from, to] : {std::pair{&problem.q, &q}, {&problem.k, &k}, {&problem.v, &v}})
    for (const std::uint16_t each : *from) to->push_back(BFloat16Problem::number(each));
  std::vector<double> exact(q.size()), logits(static_cast<std::size_t>(heads * queries * keys));
  AttentionInputs in = problem.inputs();
  in.q = Tensor::dense(q.data(), {1, heads, queries, dim});
  in.k = Tensor::dense(k.data(), {1, problem.kv_heads, keys, dim});
  in.v = Tensor::dense(v.data(), {1, problem.kv_heads, keys, dim});
  ASSERT_TRUE(attend_reference(in, plan, Tensor::dense(exact.data(), {1, heads, queries, dim}),
                               Tensor::dense(logits.data(), {1, heads, queries, keys})));
  const std::vector<float> got = problem.run_exactly(plan);
  const auto norm = [dim](const double* x) {
    double sum = 0;
    for (std::int64_t c = 0; c < dim; ++c) sum += x[c] * x[c];
    return std::sqrt(sum);
  };
  double worst = 0;
  for (std::int64_t row = 0; row < heads * queries; ++row) {
    const std::int64_t kv = row / queries / (heads / problem.kv_heads);
    const double* const logit = logits.data() + row * keys;
    double sum = 0, longest = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      sum += std::exp(logit[j]);
      // Rotation keeps norms, and Σ|q k| is at most their product.
      if (std::isfinite(logit[j]))
        longest = std::max(longest, norm(k.data() + (kv * keys + j) * dim));
    }
    const double off = (norm(q.data() + row * dim) * longest / std::sqrt(static_cast<double>(dim)));
    const double of_logit = off * (0x1p-14 + (plan.rotate ? 2 * unit + unit * unit : 0));
    const double epsilon = (1 + unit) * std::exp(of_logit) - 1;
    for (std::int64_t c = 0; c < dim; ++c) {
      const auto at = static_cast<std::size_t>(row * dim + c);
      double deviation = 0;
      for (std::int64_t j = 0; j < keys; ++j)
        deviation += std::exp(logit[j]) / sum *
                     std::abs(v[static_cast<std::size_t>((kv * keys + j) * dim + c)] - exact[at]);
      const double allowed = epsilon / (1 - epsilon) * deviation + 1e-6;
      worst = std::max(worst, std::abs(static_cast<double>(got[at]) - exact[at]) / allowed);
    }
  }
  EXPECT_LE(worst, 1);
}

TEST_P(AttendBFloat16, StaysWithinTheBoundOfRoundedWeights) {
  for (const std::int64_t dim : {32, 64, 80, 128, 192}) {
    BFloat16Problem problem(70, 300, dim);
    expect_within_the_bound(problem, {});
  }
}

TEST_P(AttendBFloat16, OfAlibiStaysWithinTheBoundOfRoundedWeights) {
  BFloat16Problem problem(70, 300);
  expect_within_the_bound(problem, compile(Alibi{}, {.heads = 4, .head_dim = 64}).value());
}

TEST_P(AttendBFloat16, RotatedStaysWithinTheBoundOfRoundedQueriesAndKeys) {
  BFloat16Problem problem(70, 300);
  expect_within_the_bound(problem, compile(Rope{}, {.heads = 4, .head_dim = 64}).value());
}

TEST_P(AttendBFloat16, OfWindowsStaysWithinTheBound) {
  BFloat16Problem problem(300, 300);
  problem.mask.window = 40;
  expect_within_the_bound(problem, {});
}

// Rounded weights are divided by the sum of what they became.
TEST_P(AttendBFloat16, GivesBackAValueThatAllKeysHave) {
  BFloat16Problem problem(40, 200);
  for (std::uint16_t& value : problem.v) value = BFloat16Problem::bits(0.75);
  for (const float each : problem.run_exactly()) ASSERT_NEAR(each, 0.75f, 1e-6f);
}

// A row's weights as pairs, and the sums of them before and after they were rounded.
TEST_P(AttendBFloat16, WeightsAreRoundedExponentials) {
  constexpr std::int64_t first = 32, last = 192, begin = 37, end = 170;
  for (const bool biased : {false, true}) {
    std::vector<float> x = random<float>(last, 1, 20.0f);
    const std::vector<float> bias = random<float>(last, 2), logits = x;
    std::vector<detail::Pair16> pairs((last - first) / 2, 7);
    detail::SoftmaxRow<float> row{.x = x.data(),
                                  .first = first,
                                  .last = last,
                                  .begin = begin,
                                  .end = end,
                                  .factor = 0.5f,
                                  .bias = biased ? bias.data() : nullptr,
                                  .bias_factor = 2};
    EXPECT_EQ(detail::fold_pairs(row, pairs.data(), false), 0);  // nothing was there before
    double most = -1e9, sum = 0, sum_of_rounded = 0;
    const auto logit = [&](std::int64_t j) {
      const auto at = static_cast<std::size_t>(j);
      return 0.5 * static_cast<double>(logits[at]) +
             (biased ? 2 * static_cast<double>(bias[at]) : 0.0);
    };
    for (std::int64_t j = begin; j < end; ++j) most = std::max(most, logit(j));
    for (std::int64_t j = first; j < last; ++j) {
      const detail::Pair16 pair = pairs[static_cast<std::size_t>((j - first) / 2)];
      const double weight = BFloat16Problem::number(
          static_cast<std::uint16_t>(j % 2 == 0 ? pair & 0xffff : pair >> 16));
      const double wanted = j >= begin && j < end ? std::exp(logit(j) - most) : 0;
      ASSERT_NEAR(weight, wanted, wanted * (unit + 1e-5)) << j;
      sum += wanted;
      sum_of_rounded += weight;
    }
    EXPECT_NEAR(static_cast<double>(row.sum), sum, 1e-5 * sum);
    EXPECT_NEAR(static_cast<double>(row.added_rounded), sum_of_rounded, 1e-6 * sum);
  }
}

TEST_P(AttendBFloat16, KnowsTheLogarithmOfTheSumAsFloatDoes) {
  BFloat16Problem problem(40, 200);
  std::vector<double> by_pairs(160), in_float(160);
  problem.run({}, Tensor::dense(by_pairs.data(), {1, 4, 40}));
  problem.options.allow_bfloat16_products = false;
  problem.run({}, Tensor::dense(in_float.data(), {1, 4, 40}));
  for (std::size_t i = 0; i < by_pairs.size(); ++i) ASSERT_NEAR(by_pairs[i], in_float[i], 1e-5);
}

TEST_P(AttendBFloat16, RefusedIsAttentionInFloat) {
  BFloat16Problem problem(40, 200);
  problem.options.allow_bfloat16_products = false;
  const std::vector<float> refused = problem.run_exactly();
  detail::use_products16(Products16::none);
  problem.options.allow_bfloat16_products = true;
  EXPECT_EQ(problem.run_exactly(), refused);
}

TEST_P(AttendBFloat16, RefusedByACacheIsAttentionInFloat) {
  BFloat16Problem problem(40, 200);
  problem.options.allow_bfloat16_products = false;
  const std::vector<double> in_float = problem.run();
  KvCache cache = *KvCache::make({.kv_heads = problem.kv_heads,
                                  .head_dim = problem.dim,
                                  .dtype = DType::bf16,
                                  .attend = problem.options});
  const KvCache::Sequence sequence = cache.add();
  ASSERT_TRUE(cache.append(std::span(&sequence, 1), problem.view(problem.k, problem.kv_heads, 200),
                           problem.view(problem.v, problem.kv_heads, 200), {}));
  std::ranges::fill(problem.out, 0);
  ASSERT_TRUE(cache.attend(std::span(&sequence, 1), problem.view(problem.q, problem.heads, 40), {},
                           problem.mask, problem.view(problem.out, problem.heads, 40)));
  for (std::size_t i = 0; i < in_float.size(); ++i)
    ASSERT_EQ(BFloat16Problem::number(problem.out[i]), in_float[i]) << i;
}

TEST_P(AttendBFloat16, GivesTheSameBitsForAnyNumberOfThreads) {
  BFloat16Problem problem(900, 900);
  problem.threads = Threads{1};
  const std::vector<float> one = problem.run_exactly();
  problem.threads = Threads{3};
  EXPECT_EQ(problem.run_exactly(), one);
}

// As long as they are 12 rows or more.
TEST_P(AttendBFloat16, OfAQueryDoesNotDependOnTheOthers) {
  BFloat16Problem many(100, 300), few(37, 300);
  few.k = many.k, few.v = many.v;
  for (std::int64_t h = 0; h < 4; ++h)
    std::copy_n(many.q.begin() + (h * 100 + 63) * 64, 37 * 64, few.q.begin() + h * 37 * 64);
  const std::vector<float> all = many.run_exactly(), last = few.run_exactly();
  for (std::int64_t h = 0; h < 4; ++h)
    for (std::int64_t i = 0; i < 37 * 64; ++i)
      ASSERT_EQ(last[static_cast<std::size_t>(h * 37 * 64 + i)],
                all[static_cast<std::size_t>((h * 100 + 63) * 64 + i)]);
}

TEST_P(AttendBFloat16, WhatIsHiddenChangesNoBit) {
  BFloat16Problem problem(100, 100);
  std::vector<std::uint8_t> keep(100, 1);
  for (std::size_t j = 3; j < 100; j += 7) keep[j] = 0;
  problem.mask.keep = keep.data();
  const std::vector<float> before = problem.run_exactly();
  for (std::size_t j = 3; j < 100; j += 7) {
    for (std::size_t c = 0; c < 64; ++c) {
      problem.k[j * 64 + c] = problem.k[(100 + j) * 64 + c] = BFloat16Problem::bits(NAN);
      problem.v[j * 64 + c] = problem.v[(100 + j) * 64 + c] =
          BFloat16Problem::bits(c % 2 == 0 ? NAN : std::numeric_limits<double>::infinity());
    }
  }
  EXPECT_EQ(problem.run_exactly(), before);
}

TEST_P(AttendBFloat16, AValueThatIsNaNReachesThoseWhoSeeIt) {
  BFloat16Problem problem(100, 100);
  problem.v[50 * 64 + 9] = BFloat16Problem::bits(NAN);
  const std::vector<float> out = problem.run_exactly();
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(std::isnan(out[i * 64 + 9]), i >= 50) << i;
}

TEST_P(AttendBFloat16, AnInfiniteValueMakesTheOutputInfinite) {
  BFloat16Problem problem(20, 20);
  problem.v[64 + 9] = BFloat16Problem::bits(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(problem.run_exactly()[5 * 64 + 9], -std::numeric_limits<float>::infinity());
}

TEST_P(AttendBFloat16, ARowThatSeesNothingIsZero) {
  BFloat16Problem problem(40, 40);
  std::vector<std::uint8_t> keep(40, 0);
  problem.mask.keep = keep.data();
  for (const float each : problem.run_exactly()) ASSERT_EQ(each, 0);
}

}  // namespace
}  // namespace posenc
