// Polar rotations on every instruction set against the plain loops in double, and what they refuse.
#include "src/kernels/polar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/reference.h"
#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc::polar_test {
namespace {

class PolarKernel : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, PolarKernel, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

Plan polar(std::int64_t pairs, std::int64_t first_dim = 0, Pairing pairing = Pairing::halves) {
  Plan plan;
  plan.rotate =
      Rotate{.slice = {.pairing = pairing, .first_dim = first_dim, .rotary_dim = 2 * pairs},
             .kind = Polar{}};
  for (std::int64_t r = 0; r < pairs; ++r)
    plan.rotate->frequencies.radians.push_back(
        std::pow(10000, -static_cast<double>(r) / static_cast<double>(pairs)));
  return plan;
}

// Each number as the reference has it in double, rounded once; softplus is rounded besides.
void expect_rotated(const Plan& plan, DType dtype, MemoryLayout from, MemoryLayout to,
                    std::int64_t heads, std::int64_t seq, std::int64_t dim, Side side,
                    const std::string& what) {
  const std::int64_t wide = dim + plan.rotate->pairs();
  Memory x = memory(dtype, from, 2, heads, seq, dim), y = memory(dtype, to, 2, heads, seq, wide, 2);
  const Tensor view = x.view(), out = y.view();
  std::vector<double> numbers, exact(static_cast<std::size_t>(2 * heads * seq * wide));
  for_each_index(view, [&](auto b, auto h, auto t, auto c) {
    numbers.push_back(view.get(view.offset(b, h, t, c)));
  });
  const Tensor wanted = Tensor::dense(exact.data(), {2, heads, seq, wide});
  const Positions at = Positions::range(250, seq);
  const Memory before = y;
  ASSERT_TRUE(detail::reference::rotate(plan, Tensor::dense(numbers.data(), {2, heads, seq, dim}),
                                        at, side, wanted))
      << what;
  const auto done = rotate(plan, view, at, side, out);
  ASSERT_TRUE(done) << what << ": " << done.error().message();
  double worst = 0;
  for_each_index(out, [&](auto b, auto h, auto t, auto c) {
    const double w = wanted.get(wanted.offset(b, h, t, c)), got = out.get(out.offset(b, h, t, c));
    const double allowed = (4 + std::abs(w)) * 2 * compute_step(dtype) +
                           std::abs(w) * step(dtype) / 2 + (dtype == DType::f16 ? 0x1p-25 : 0);
    const double error = std::abs(got - w) / allowed;
    if (!(error <= worst)) worst = error;
  });
  EXPECT_LE(worst, 1) << what;
  Memory restored = y, original = y;
  original.storage = before.storage;
  for_each_index(out, [&](auto b, auto h, auto t, auto c) {
    const std::int64_t where = out.offset(b, h, t, c);
    detail::copy(original.view(), where, restored.view(), where);
  });
  EXPECT_TRUE(restored.storage == before.storage) << what << " wrote outside";
}

TEST_P(PolarKernel, EveryDtypeAndOddSizeAsTheReference) {
  for (const DType dtype : all_dtypes)
    for (const Pairing pairing : {Pairing::halves, Pairing::interleaved})
      for (const std::int64_t pairs : {1, 2, 3, 7, 8, 15, 16, 17, 33, 64})
        expect_rotated(polar(pairs, 0, pairing), dtype, MemoryLayout::heads_first,
                       MemoryLayout::heads_first, 2, 5, pairs, Side::query,
                       std::string(name(dtype)) + " pairs " + std::to_string(pairs));
}

TEST_P(PolarKernel, EveryLayoutIntoEveryOther) {
  for (const DType dtype : all_dtypes)
    for (const MemoryLayout from : all_layouts)
      for (const MemoryLayout to : all_layouts)
        expect_rotated(polar(5, 2), dtype, from, to, 3, 4, 9, Side::key, "layouts");
}

TEST_P(PolarKernel, KeysHavePhasesByHead) {
  Plan plan = polar(12, 1);
  plan.rotate->kind =
      Polar{.phase = Phase{.side = Side::key, .heads = 3, .radians = random(3 * 12, 4)}};
  for (const DType dtype : all_dtypes)
    for (const Side side : {Side::query, Side::key})
      expect_rotated(plan, dtype, MemoryLayout::tokens_first, MemoryLayout::heads_first, 3, 300, 14,
                     side, "phases");
}

TEST_P(PolarKernel, AnyNumberOfThreadsGivesTheSameBits) {
  const Plan plan = polar(64);
  Memory x = memory(DType::f32, MemoryLayout::heads_first, 1, 4, 700, 64);
  const auto bits = [&](int threads) {
    Memory y = memory(DType::f32, MemoryLayout::heads_first, 1, 4, 700, 128, 2);
    EXPECT_TRUE(rotate(plan, x.view(), Positions::range(3, 700), Side::query, y.view(), {threads}));
    return std::move(y.storage);
  };
  const auto one = bits(1);
  for (const int count : {0, 2, 5}) EXPECT_EQ(bits(count), one) << count;
}

// At position 0 all of a channel's length is in its cosine.
TEST_P(PolarKernel, SoftplusHoldsAtTheEnds) {
  std::vector<float> x = {-200, -90, -1,  -0.0f,
                          1,    30,  200, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> out(16);
  ASSERT_TRUE(rotate(polar(8), Tensor::dense(x.data(), {1, 8}), Positions::range(0, 1), Side::query,
                     Tensor::dense(out.data(), {1, 16})));
  for (std::size_t i = 0; i < 7; ++i) {
    const double wanted = detail::softplus(x[i]);
    EXPECT_NEAR(out[i], wanted, 1e-37 + 3e-7 * wanted) << x[i];
    EXPECT_EQ(out[8 + i], 0);
  }
  EXPECT_TRUE(std::isnan(out[7]));
}

TEST(PolarErrors, OutMustBeWiderThanX) {
  std::vector<double> x(4), out(8);
  const Tensor narrow = Tensor::dense(x.data(), {1, 4});
  EXPECT_NE(rotate(polar(4), narrow, Positions::range(0, 1), Side::query, narrow)
                .error()
                .message()
                .find("widens a head by 4 channels"),
            std::string::npos);
  EXPECT_FALSE(rotate(polar(4), narrow, Positions::range(0, 1), Side::query,
                      Tensor::dense(out.data(), {1, 7})));
  EXPECT_TRUE(rotate(polar(4), narrow, Positions::range(0, 1), Side::query,
                     Tensor::dense(out.data(), {1, 8})));
}

TEST(PolarErrors, NothingGoesBackThroughSoftplus) {
  std::vector<double> x(8), out(8);
  const Tensor view = Tensor::dense(x.data(), {1, 8}), to = Tensor::dense(out.data(), {1, 8});
  for (const auto verb : {rotate_transpose, rotate_inverse})
    EXPECT_NE(verb(polar(4), view, Positions::range(0, 1), Side::query, to, {})
                  .error()
                  .message()
                  .find("its softplus loses the sign"),
              std::string::npos);
}

}  // namespace
}  // namespace posenc::polar_test
