#include "src/attention/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class Products : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, Products, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

// Some lanes more and fewer than vectors have. A sum of 9 products near 1 is off by few roundings.
template <class T>
void expect_sums(std::int64_t columns) {
  constexpr std::int64_t rows = 3, terms = 9;
  const auto before = random<T>(rows * (columns + 2), 1), weight = random<T>(rows * terms, 2),
             x = random<T>(terms * (columns + 1), 3);
  std::vector<T> y = before;
  // The weights of a row lie `rows` apart.
  detail::add_product({.y = y.data(),
                       .y_step = columns + 2,
                       .rows = rows,
                       .columns = columns,
                       .weight = weight.data(),
                       .weight_row = 1,
                       .weight_step = rows,
                       .x = x.data(),
                       .x_step = columns + 1,
                       .terms = terms});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns + 2; ++c) {
      const auto at = static_cast<std::size_t>(r * (columns + 2) + c);
      double sum = static_cast<double>(before[at]);
      for (std::int64_t t = 0; t < terms && c < columns; ++t) {
        sum += static_cast<double>(weight[static_cast<std::size_t>(t * rows + r)]) *
               static_cast<double>(x[static_cast<std::size_t>(t * (columns + 1) + c)]);
      }
      EXPECT_NEAR(static_cast<double>(y[at]), sum,
                  40 * static_cast<double>(std::numeric_limits<T>::epsilon()))
          << columns << " columns: " << r << ", " << c;
    }
  }
}

TEST_P(Products, AreTheSumsOfEveryWidth) {
  for (std::int64_t columns = 0; columns < 70; ++columns) {
    expect_sums<float>(columns);
    expect_sums<double>(columns);
  }
}

TEST_P(Products, AWeightOfZeroHidesNaNWhereAsked) {
  for (const std::int64_t columns : {1, 20, 64}) {
    const std::vector<float> x(static_cast<std::size_t>(columns), NAN), weight = {0};
    std::vector<float> y(x.size(), 5);
    const auto add = [&](bool skips_zeros) {
      detail::add_product({.y = y.data(),
                           .y_step = columns,
                           .rows = 1,
                           .columns = columns,
                           .weight = weight.data(),
                           .weight_row = 1,
                           .weight_step = 1,
                           .x = x.data(),
                           .x_step = columns,
                           .terms = 1,
                           .skips_zeros = skips_zeros});
    };
    add(true);
    EXPECT_EQ(y, std::vector<float>(y.size(), 5));
    add(false);
    EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y.back()));
  }
}

}  // namespace
}  // namespace posenc
