// The matrix product beside one in double, by every instruction set, shape by shape around its
// tiles.
#include "src/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class Gemm : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, Gemm, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

// Some lanes more and fewer than vectors have. A sum of 9 products near 1 is off by few roundings.
template <class T>
void expect_sums(std::int64_t columns) {
  constexpr std::int64_t rows = 3, terms = 9;
  const auto before = random<T>(rows * (columns + 2), 1), weight = random<T>(rows * terms, 2),
             x = random<T>(terms * (columns + 1), 3);
  std::vector<T> y = before;
  // The weights of a row lie `rows` apart.
  detail::gemm(detail::Gemm<T>{.c = y.data(),
                               .c_step = columns + 2,
                               .rows = rows,
                               .columns = columns,
                               .a = weight.data(),
                               .a_row = 1,
                               .a_step = rows,
                               .b = x.data(),
                               .b_step = columns + 1,
                               .depth = terms,
                               .adds = true});
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

TEST_P(Gemm, AreTheSumsOfEveryWidth) {
  for (std::int64_t columns = 0; columns < 70; ++columns) {
    expect_sums<float>(columns);
    expect_sums<double>(columns);
  }
}

// What is added lies in a row's own place for each row.
template <class T>
void expect_sums_and_more(std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t terms = 4;
  const auto a = random<T>(rows * terms, 1), b = random<T>(terms * columns, 2),
             more = random<T>(rows + columns, 3);
  std::vector<T> bare(static_cast<std::size_t>(rows * columns)), c = bare;
  std::vector<const T*> plus;
  for (std::int64_t r = 0; r < rows; ++r) plus.push_back(more.data() + (rows - r));
  detail::Gemm<T> product{.c = bare.data(),
                          .c_step = columns,
                          .rows = rows,
                          .columns = columns,
                          .a = a.data(),
                          .a_row = terms,
                          .b = b.data(),
                          .b_step = columns,
                          .depth = terms};
  detail::gemm(product);
  product.c = c.data();
  product.plus = plus.data();
  detail::gemm(product);
  for (std::int64_t e = 0; e < rows * columns; ++e)
    ASSERT_EQ(c[static_cast<std::size_t>(e)],
              bare[static_cast<std::size_t>(e)] +
                  plus[static_cast<std::size_t>(e / columns)][e % columns])
        << rows << " x " << columns << ": " << e;
}

TEST_P(Gemm, AddsRowsThatLieAnywhere) {
  for (std::int64_t rows = 1; rows < 15; ++rows) {
    for (const std::int64_t columns : {0, 1, 7, 16, 33, 64, 97, 130}) {
      expect_sums_and_more<float>(rows, columns);
      expect_sums_and_more<double>(rows, columns);
    }
  }
}

// x [keys][depth] as panels: rows of a by keys, as many of each as tiles have and some more and
// fewer.
template <class T>
void expect_products_by_panels(std::int64_t rows, std::int64_t keys) {
  constexpr std::int64_t depth = 5;
  const std::int64_t panel = detail::panel_columns<T>();
  const std::int64_t whole = (keys + panel - 1) / panel * panel;
  const auto a = random<T>(rows * depth, 4), x = random<T>(keys * depth, 5);
  std::vector<T> panels(static_cast<std::size_t>(whole * depth)),
      c(static_cast<std::size_t>(rows * whole));
  detail::transpose_to_panels(x.data(), depth, keys, depth, panels.data());
  detail::gemm(detail::Gemm<T>{.c = c.data(),
                               .c_step = whole,
                               .rows = rows,
                               .columns = whole,
                               .a = a.data(),
                               .a_row = depth,
                               .b = panels.data(),
                               .b_step = panel,
                               .depth = depth,
                               .panel_step = panel * depth});
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < whole; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < depth && j < keys; ++k) {
        sum += static_cast<double>(a[static_cast<std::size_t>(r * depth + k)]) *
               static_cast<double>(x[static_cast<std::size_t>(j * depth + k)]);
      }
      EXPECT_NEAR(static_cast<double>(c[static_cast<std::size_t>(r * whole + j)]), sum,
                  20 * static_cast<double>(std::numeric_limits<T>::epsilon()))
          << rows << " x " << keys << ": " << r << ", " << j;
    }
  }
}

TEST_P(Gemm, ByPanelsMeetsTheTranspose) {
  for (const std::int64_t rows : {1, 2, 3, 5, 6, 7, 13}) {
    for (const std::int64_t keys : {1, 3, 4, 15, 16, 17, 64, 70}) {
      expect_products_by_panels<float>(rows, keys);
      expect_products_by_panels<double>(rows, keys);
    }
  }
}

template <class T>
void expect_transposed(std::int64_t rows, std::int64_t columns) {
  const std::int64_t step = columns + 3, to_step = rows + 2;
  std::vector<T> x(static_cast<std::size_t>(rows * step));
  std::vector<T> y(static_cast<std::size_t>(columns * to_step), T{-1});
  std::iota(x.begin(), x.end(), T{0});
  detail::transpose(x.data(), step, rows, columns, y.data(), to_step);
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < to_step; ++r) {
      const T wanted = r < rows ? x[static_cast<std::size_t>(r * step + c)] : T{-1};
      ASSERT_EQ(y[static_cast<std::size_t>(c * to_step + r)], wanted) << r << ", " << c;
    }
  }
}

TEST_P(Gemm, TransposesWholeAndBrokenSquares) {
  for (const std::int64_t rows : {1, 4, 7, 64}) {
    for (const std::int64_t columns : {1, 3, 8, 17}) {
      expect_transposed<float>(rows, columns);
      expect_transposed<double>(rows, columns);
    }
  }
}

TEST_P(Gemm, AWeightOfZeroHidesNaNWhereAsked) {
  for (const std::int64_t columns : {1, 20, 64}) {
    const std::vector<float> x(static_cast<std::size_t>(columns), NAN), weight = {0};
    std::vector<float> y(x.size(), 5);
    const auto add = [&](bool skips_zeros) {
      detail::gemm(detail::Gemm<float>{.c = y.data(),
                                       .c_step = columns,
                                       .rows = 1,
                                       .columns = columns,
                                       .a = weight.data(),
                                       .a_row = 1,
                                       .b = x.data(),
                                       .b_step = columns,
                                       .depth = 1,
                                       .adds = true,
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
