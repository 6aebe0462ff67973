// Convolutions as positions: the fast loops beside plain ones, what each number of a token reads,
// gradients beside differences. What transformers computes is in tests/conformance.
#include "posenc/convolution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {
namespace of_convolutions {

class Convolution : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Convolution, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// A problem in double: `tall` 0 is a line.
struct Problem {
  std::int64_t batch = 2, tokens = 9, width = 12, groups = 3, tall = 0, wide = 4, kept = 0;
  GridSize grid = {};
  AfterConvolution after = AfterConvolution::none;
  bool adds = true, hides = false;
  std::vector<double> x = {}, weight = {}, bias = {};
  std::vector<std::uint8_t> keep = {};

  std::int64_t taps() const { return std::max<std::int64_t>(tall, 1) * wide; }
  void fill() {
    x = random(batch * tokens * width, 1);
    weight = random(width * width / groups * taps(), 2);
    for (double& w : weight) w *= 0.3;
    bias = random(width, 3);
    keep.assign(static_cast<std::size_t>(batch * tokens), 1);
    if (hides) keep[3] = keep[static_cast<std::size_t>(tokens)] = 0;
  }
  Tensor weights(double* data) const {
    return tall == 0 ? Tensor::dense(data, {width, width / groups, wide})
                     : Tensor::dense(data, {width, width / groups, tall, wide});
  }
  PositionConvolution convolution() {
    return {.weight = Table::borrow(weights(weight.data())),
            .bias = Table::borrow(Tensor::dense(bias.data(), {width})),
            .after = after,
            .adds = adds};
  }
  Tensor of(std::vector<double>& numbers) const {
    return Tensor::dense(numbers.data(), {batch, tokens, width});
  }
  ConvolvedTokens read(const Tensor& from, int threads = 1) const {
    return {.x = from,
            .grid = grid,
            .kept = kept,
            .keep = hides ? keep.data() : nullptr,
            .threads = Threads{threads}};
  }
  std::vector<double> truth() {
    std::vector<double> out(x.size());
    const auto done = convolve_positions_reference(convolution(), read(of(x)), of(out));
    EXPECT_TRUE(done) << done.error().message();
    return out;
  }
};

std::vector<Problem> problems() {
  std::vector<Problem> all = {
      {},
      {.wide = 5, .after = AfterConvolution::gelu},
      {.tokens = 3, .wide = 8, .after = AfterConvolution::normalised_gelu, .adds = false},
      {.tokens = 40, .width = 96, .groups = 2, .wide = 16, .after = AfterConvolution::gelu},
      {.tokens = 17, .width = 19, .groups = 19, .wide = 3, .hides = true},
      {.tokens = 200, .width = 33, .groups = 33, .wide = 31, .after = AfterConvolution::gelu},
      {.width = 12, .groups = 1, .wide = 2, .hides = true},
      {.tokens = 1, .width = 5, .groups = 5, .wide = 7},
      {.tokens = 0, .width = 5, .groups = 5, .wide = 7},
      {.tokens = 2, .width = 5, .groups = 1, .wide = 3, .kept = 2},
      {.tokens = 1 + 4 * 5,
       .width = 12,
       .groups = 12,
       .tall = 3,
       .wide = 3,
       .kept = 1,
       .grid = {4, 5}},
      {.tokens = 30 * 40, .width = 70, .groups = 70, .tall = 3, .wide = 3, .grid = {30, 40}},
      {.tokens = 2 + 6 * 4,
       .width = 12,
       .groups = 4,
       .tall = 3,
       .wide = 5,
       .kept = 2,
       .grid = {6, 4},
       .after = AfterConvolution::normalised_gelu,
       .hides = true},
      {.tokens = 6, .width = 8, .groups = 8, .tall = 4, .wide = 2, .grid = {1, 6}},
      {.tokens = 3000, .width = 33, .groups = 33, .wide = 4},
      // Widths of whole vectors, which are read and written where they lie, and one beyond a piece.
      {.tokens = 6 * 9, .width = 16, .groups = 16, .tall = 3, .wide = 3, .grid = {6, 9}},
      {.tokens = 6 * 9, .width = 48, .groups = 48, .tall = 3, .wide = 3, .grid = {6, 9}},
      {.tokens = 150, .width = 80, .groups = 80, .wide = 5},
      {.batch = 1,
       .tokens = 2 * 9,
       .width = 1072,
       .groups = 1072,
       .tall = 3,
       .wide = 3,
       .grid = {2, 9}},
      {.tokens = 5 * 6,
       .width = 8,
       .groups = 2,
       .tall = 4,
       .wide = 2,
       .grid = {5, 6},
       .after = AfterConvolution::gelu},
  };
  for (Problem& each : all) each.fill();
  return all;
}

TEST_P(Convolution, IsThatOfPlainLoops) {
  for (Problem& p : problems()) {
    SCOPED_TRACE(std::to_string(p.tokens) + " tokens of " + std::to_string(p.width));
    std::vector<double> out(p.x.size(), NAN);
    const auto done = convolve_positions(p.convolution(), p.read(p.of(p.x)), p.of(out));
    ASSERT_TRUE(done) << done.error().message();
    const std::vector<double> wanted = p.truth();
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], wanted[i], 1e-12) << i;
  }
}

// Each number is a sum of so many products, rounded in float and then once to the dtype.
TEST_P(Convolution, OfOtherTypesIsRoundedOnce) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (Problem& p : problems()) {
      std::vector<std::uint32_t> memory(p.x.size()), made(p.x.size());
      const Tensor from = Tensor::dense(memory.data(), dtype, {p.batch, p.tokens, p.width}),
                   to = Tensor::dense(made.data(), dtype, {p.batch, p.tokens, p.width});
      for (std::int64_t i = 0; i < std::ssize(p.x); ++i) {
        from.set(i, p.x[static_cast<std::size_t>(i)]);
        p.x[static_cast<std::size_t>(i)] = from.get(i);
      }
      const auto done = convolve_positions(p.convolution(), p.read(from), to);
      ASSERT_TRUE(done) << done.error().message();
      const std::vector<double> wanted = p.truth();
      const double ulp = dtype == DType::f32 ? 0 : dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
      for (std::int64_t i = 0; i < std::ssize(wanted); ++i) {
        const double right = wanted[static_cast<std::size_t>(i)];
        ASSERT_NEAR(to.get(i), right, ulp * std::abs(right) + 3e-5) << i;
      }
    }
  }
}

// Above 4 MiB the loop asks for what it reads next, and tries which way is fastest.
TEST(PositionConvolution, IsTheSameWhereMemoryIsAskedForAhead) {
  Problem p{.batch = 1,
            .tokens = 64 * 32,
            .width = 576,
            .groups = 576,
            .tall = 3,
            .wide = 3,
            .grid = {64, 32}};
  p.fill();
  std::vector<float> from(p.x.begin(), p.x.end()), to(p.x.size());
  for (std::size_t i = 0; i < from.size(); ++i) p.x[i] = static_cast<double>(from[i]);
  const std::vector<double> wanted = p.truth();
  const Tensor in = Tensor::dense(from.data(), {1, p.tokens, p.width}),
               out = Tensor::dense(to.data(), {1, p.tokens, p.width});
  constexpr int calls = 4;
  for (int call = 0; call < calls; ++call) {
    std::fill(to.begin(), to.end(), 0.0F);
    ASSERT_TRUE(convolve_positions(p.convolution(), p.read(in), out));
    for (std::size_t i = 0; i < to.size(); ++i)
      ASSERT_NEAR(static_cast<double>(to[i]), wanted[i], 3e-5) << call << ", " << i;
  }
}

// Rounding a NaN of many bits must not make a number of it.
TEST_P(Convolution, KeepsAWeightThatIsNoNumber) {
  constexpr std::int64_t width = 48;
  std::vector<float> weight(width * 3, 1.0F);
  weight[3] = std::bit_cast<float>(0x7fffffffU);  // of channel 1
  std::vector<std::uint16_t> x(width * 4, 0x3f80), y(width * 4);
  const PositionConvolution three{.weight =
                                      Table::borrow(Tensor::dense(weight.data(), {width, 1, 3}))};
  const Tensor from = Tensor::dense(x.data(), DType::bf16, {1, 4, width}),
               to = Tensor::dense(y.data(), DType::bf16, {1, 4, width});
  ASSERT_TRUE(convolve_positions(three, {.x = from}, to));
  EXPECT_TRUE(std::isnan(to.get(to.offset(0, 2, 1))));
  EXPECT_FALSE(std::isnan(to.get(to.offset(0, 2, 0))));
}

TEST(PositionConvolution, IsTheSameBitsForAnyNumberOfThreadsAndInPlace) {
  for (Problem& p : problems()) {
    std::vector<double> one(p.x.size()), three(p.x.size()), same = p.x;
    ASSERT_TRUE(convolve_positions(p.convolution(), p.read(p.of(p.x)), p.of(one)));
    ASSERT_TRUE(convolve_positions(p.convolution(), p.read(p.of(p.x), 3), p.of(three)));
    ASSERT_TRUE(convolve_positions(p.convolution(), p.read(p.of(same)), p.of(same)));
    EXPECT_EQ(one, three);
    for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(same[i], one[i], 1e-13);
  }
}

TEST(PositionConvolution, ReadsTensorsOfAnyStrides) {
  Problem p{.tokens = 11};
  p.fill();
  const std::vector<double> wanted = p.truth();
  std::vector<double> apart(p.x.size() * 2), out(p.x.size());
  for (std::size_t i = 0; i < p.x.size(); ++i) apart[2 * i] = p.x[i];
  Tensor from = p.of(apart);
  for (int axis = 0; axis < 3; ++axis) from.stride[static_cast<std::size_t>(axis)] *= 2;
  ASSERT_TRUE(convolve_positions(p.convolution(), p.read(from), p.of(out)));
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], wanted[i], 1e-12);
}

// An impulse is seen by the taps around it: of an even number there is one more in front.
TEST(PositionConvolution, OfAnEvenKernelReachesOneTokenFurtherBack) {
  std::vector<double> x(7), out(7), weight = {1, 2, 3, 4};
  x[3] = 1;
  const PositionConvolution convolution{.weight =
                                            Table::borrow(Tensor::dense(weight.data(), {1, 1, 4}))};
  ASSERT_TRUE(convolve_positions(convolution, {.x = Tensor::dense(x.data(), {1, 7, 1})},
                                 Tensor::dense(out.data(), {1, 7, 1})));
  EXPECT_EQ(out, (std::vector<double>{0, 0, 4, 1 + 3, 2, 1, 0}));
}

// Alike tokens differ near the ends alone, by the zeros that stand there: it is these that tell
// where a token stands (2102.10882).
TEST(PositionConvolution, TellsAlikeTokensByTheEnds) {
  Problem p{.batch = 1, .tokens = 20, .groups = 12, .wide = 5};
  p.fill();
  for (std::size_t i = 0; i < p.x.size(); ++i) p.x[i] = p.x[i % 12];
  const std::vector<double> y = p.truth();
  const auto row = [&](std::int64_t t) {
    return std::vector<double>(y.begin() + t * 12, y.begin() + (t + 1) * 12);
  };
  for (std::int64_t t = 3; t < 18; ++t) EXPECT_EQ(row(t), row(2));
  for (const std::int64_t t : {0, 1, 18, 19}) EXPECT_NE(row(t), row(2));
}

TEST(PositionConvolution, HidesWhateverPaddingHolds) {
  Problem p{.hides = true};
  p.fill();
  const std::vector<double> wanted = p.truth();
  for (std::int64_t c = 0; c < p.width; ++c) p.x[static_cast<std::size_t>(3 * p.width + c)] = NAN;
  std::vector<double> out(p.x.size());
  ASSERT_TRUE(convolve_positions(p.convolution(), p.read(p.of(p.x)), p.of(out)));
  for (std::size_t i = 0; i < out.size(); ++i) ASSERT_NEAR(out[i], wanted[i], 1e-12);
}

TEST(PositionConvolution, ItsGradientsAreTheSlopes) {
  for (Problem& p : problems()) {
    if (p.tokens > 50) continue;
    SCOPED_TRACE(std::to_string(p.tokens) + " tokens of " + std::to_string(p.width));
    std::vector<double> g = random(std::ssize(p.x), 4), to_x(p.x.size()),
                        to_weight(p.weight.size()), to_bias(p.bias.size());
    const auto done =
        convolve_positions_backward(p.convolution(), p.read(p.of(p.x), 2), p.of(g),
                                    {.x = p.of(to_x),
                                     .weight = p.weights(to_weight.data()),
                                     .bias = Tensor::dense(to_bias.data(), {p.width})});
    ASSERT_TRUE(done) << done.error().message();
    const auto loss = [&] {
      const std::vector<double> y = p.truth();
      double sum = 0;
      for (std::size_t i = 0; i < y.size(); ++i) sum += y[i] * g[i];
      return sum;
    };
    const auto expect_slopes = [&](std::vector<double>& numbers,
                                   const std::vector<double>& slopes) {
      const std::size_t step = std::max<std::size_t>(numbers.size() / 40, 1);
      for (std::size_t i = 0; i < numbers.size(); i += step) {
        const double was = numbers[i];
        numbers[i] = was + 1e-5;
        const double above = loss();
        numbers[i] = was - 1e-5;
        const double slope = (above - loss()) / 2e-5;
        numbers[i] = was;
        ASSERT_NEAR(slopes[i], slope, 1e-6 * (1 + std::abs(slope))) << i;
      }
    };
    expect_slopes(p.x, to_x);
    expect_slopes(p.weight, to_weight);
    expect_slopes(p.bias, to_bias);
  }
}

TEST(PositionConvolution, OfNothingIsNothing) {
  double none = 0;
  const Tensor weight = Tensor::dense(&none, {1, 1, 1});
  const PositionConvolution convolution{.weight = Table::borrow(weight)};
  for (const std::int64_t batch : {0, 2}) {
    const Tensor empty = Tensor::dense(&none, {batch, 0, 1});
    EXPECT_TRUE(convolve_positions(convolution, {.x = empty}, empty));
    EXPECT_TRUE(convolve_positions_backward(convolution, {.x = empty}, empty, {.x = empty}));
  }
  const Tensor narrow = Tensor::dense(&none, {1, 3, 0});
  EXPECT_FALSE(convolve_positions({.weight = Table::borrow(Tensor::dense(&none, {0, 1, 3}))},
                                  {.x = narrow}, narrow));
  EXPECT_FALSE(
      convolve_positions({.weight = Table::borrow(Tensor::dense(&none, {1, 1, 1, 1}))},
                         {.x = Tensor::dense(&none, {1, 0, 1}), .grid = {std::int64_t{1} << 62, 0}},
                         Tensor::dense(&none, {1, 0, 1})));
}

TEST(PositionConvolution, RefusesWhatDoesNotFit) {
  Problem p;
  p.fill();
  std::vector<double> out(p.x.size());
  const auto rule = [&](const PositionConvolution& of, const ConvolvedTokens& from) {
    const auto done = convolve_positions(of, from, p.of(out));
    return done ? std::string("nothing") : done.error().message();
  };
  const PositionConvolution right = p.convolution();
  const ConvolvedTokens tokens = p.read(p.of(p.x));
  EXPECT_EQ(rule(right, tokens), "nothing");
  EXPECT_NE(rule({}, tokens).find("weight must be"), std::string::npos);
  ConvolvedTokens picture = tokens;
  picture.grid = {3, 3};
  EXPECT_NE(rule(right, picture).find("rows, columns"), std::string::npos);
  ConvolvedTokens short_of = tokens;
  short_of.kept = 10;
  EXPECT_NE(rule(right, short_of).find("those kept"), std::string::npos);
  PositionConvolution other = right;
  std::vector<double> five(12 * 5 * 4);
  other.weight = Table::borrow(Tensor::dense(five.data(), {12, 5, 4}));
  EXPECT_NE(rule(other, tokens).find("groups must divide"), std::string::npos);
  other = right;
  other.bias = Table::borrow(Tensor::dense(five.data(), {11}));
  EXPECT_NE(rule(other, tokens).find("bias"), std::string::npos);
}

// [1, 1, taps]: each tap's weights have the length said, whatever their directions'.
TEST(WeightNorm, GivesEachTapItsLength) {
  std::vector<double> v = random(6 * 2 * 3, 5), g = {1, 2, 0.5}, w(v.size());
  ASSERT_TRUE(merge_weight_norm(Tensor::dense(g.data(), {1, 1, 3}),
                                Tensor::dense(v.data(), {6, 2, 3}),
                                Tensor::dense(w.data(), {6, 2, 3})));
  for (std::size_t tap = 0; tap < 3; ++tap) {
    double squares = 0;
    for (std::size_t i = tap; i < w.size(); i += 3) {
      squares += w[i] * w[i];
      EXPECT_GT(w[i] * v[i], 0);
    }
    EXPECT_NEAR(std::sqrt(squares), g[tap], 1e-14);
  }
  EXPECT_FALSE(merge_weight_norm(Tensor::dense(g.data(), {1, 3, 1}),
                                 Tensor::dense(v.data(), {6, 2, 3}),
                                 Tensor::dense(w.data(), {6, 2, 3})));
}

}  // namespace of_convolutions
}  // namespace
}  // namespace posenc
