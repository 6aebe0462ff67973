// Rows loaded and stored in every dtype, by every instruction set.
#include "src/kernels/rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class Rows : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, Rows, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(Rows, DotsAreSums) {
  for (std::size_t count = 0; count < 40; ++count) {
    const auto a = random<double>(count, 1), b = random<double>(count, 2);
    double sum = 0;
    for (std::size_t c = 0; c < count; ++c) sum += a[c] * b[c];
    EXPECT_NEAR(detail::dot(a.data(), b.data(), std::ssize(a)), sum, 1e-13) << count;
  }
}

TEST_P(Rows, EntriesBeyondATablesEndsAreItsEnds) {
  const auto expect = [](auto number) {
    using T = decltype(number);
    const std::vector<T> numbers{1, 2, 4, 8, 16};
    for (std::int32_t count = 0; count < 40; ++count) {
      std::vector<std::int32_t> at;
      for (std::int32_t i = 0; i < count; ++i) at.push_back(i * 7 % 11 - 3);
      if (count > 3) at[1] = 1 << 30, at[2] = -(1 << 30);
      std::vector<T> sums(at.size(), T{100});
      detail::add_entries(numbers.data(), 4, at.data(), -1, count, sums.data());
      for (std::size_t i = 0; i < at.size(); ++i)
        EXPECT_EQ(sums[i], 100 + numbers[static_cast<std::size_t>(std::clamp(at[i] - 1, 0, 4))]);
    }
  };
  expect(1.0f);
  expect(1.0);
}

// Three rows of a few channels in every dtype, also where neighbours lie apart: loaded, then stored
// again.
TEST_P(Rows, ComeBackAsTheyWent) {
  constexpr std::int64_t rows = 3;
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t columns : {1, 7, 16, 33}) {
      for (const std::int64_t inner : {1, 2}) {
        std::vector<double> memory(static_cast<std::size_t>(rows * columns * inner)), again(memory);
        Tensor x = Tensor::dense(memory.data(), dtype, {1, 1, rows, columns * inner});
        x.shape[3] = columns;
        x.stride[3] = inner;
        for (std::int64_t i = 0; i < rows * columns * inner; ++i)
          x.set(i, 0.25 * static_cast<double>(i % 60) - 3);
        const std::int64_t step = detail::padded(columns);
        std::vector<double> loaded(static_cast<std::size_t>(rows * step), NAN);
        detail::load_rows(x, 0, rows, loaded.data(), step);
        std::vector<float> floats(static_cast<std::size_t>(rows * step), NAN);
        detail::load_rows(x, 0, rows, floats.data(), step);
        Tensor out = x;
        out.data = again.data();
        detail::store_rows(floats.data(), step, rows, 2.0f, out, 0);
        for (std::int64_t t = 0; t < rows; ++t) {
          for (std::int64_t c = 0; c < step; ++c) {
            const auto at = static_cast<std::size_t>(t * step + c);
            const double wanted = c < columns ? x.get(x.offset(0, 0, t, c)) : 0;
            EXPECT_EQ(loaded[at], wanted);
            EXPECT_EQ(static_cast<double>(floats[at]), wanted);
            if (c < columns) {
              EXPECT_EQ(out.get(out.offset(0, 0, t, c)), 2 * wanted);
            }
          }
        }
      }
    }
  }
}

TEST_P(Rows, AreFiniteUnlessANumberIsNot) {
  for (const std::int64_t columns : {1, 16, 37}) {
    std::vector<float> x(static_cast<std::size_t>(2 * columns), 1);
    EXPECT_TRUE(detail::all_finite(x.data(), columns, 2, columns));
    for (const float odd : {NAN, std::numeric_limits<float>::infinity()}) {
      x.back() = odd;
      EXPECT_FALSE(detail::all_finite(x.data(), columns, 2, columns));
    }
  }
}

}  // namespace
}  // namespace posenc
