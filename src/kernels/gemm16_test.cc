// Products of bfloat16 beside sums in double, by every way that this machine has of them.
#include "src/kernels/gemm16.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "src/kernels/gemm.h"
#include "tests/random.h"

namespace posenc {
namespace {

using detail::Pair16, detail::Products16;

float rounded(float x) {
  Pair16 pair[detail::gemm16_pairs];
  float row[2 * detail::gemm16_pairs] = {x};
  detail::pair_columns(row, 0, 1, 1, pair, 1);
  return std::bit_cast<float>(pair[0] << 16);
}

// Of two matrices of bfloat16 numbers, the factors as pairs and their product.
struct Product16 {
  std::int64_t rows, columns, depth;  // depth in numbers, a multiple of 32
  std::vector<float> a, b;
  std::vector<Pair16> a_pairs, b_pairs;
  std::vector<float> c;

  Product16(std::int64_t rows, std::int64_t columns, std::int64_t depth)
      : rows(rows),
        columns(columns),
        depth(depth),
        a(random<float>(rows * depth, 1)),
        b(random<float>(depth * columns, 2)),
        a_pairs(static_cast<std::size_t>((rows + detail::gemm16_rows) * depth / 2)),
        b_pairs(static_cast<std::size_t>(depth / 2 * columns)),
        c(static_cast<std::size_t>((rows + detail::gemm16_rows) * columns), 3.0f) {
    for (auto* x : {&a, &b})
      for (float& each : *x) each = rounded(each);
    pair();
  }
  void pair() {
    detail::pair_columns(a.data(), depth, rows, depth, a_pairs.data(), depth / 2);
    detail::pair_rows(b.data(), columns, depth, columns, depth, b_pairs.data(), columns);
  }
  detail::Gemm16 whole() {
    return {.c = c.data(),
            .c_step = columns,
            .rows = rows,
            .columns = columns,
            .a = a_pairs.data(),
            .a_step = depth / 2,
            .b = b_pairs.data(),
            .b_step = columns,
            .depth = depth / 2};
  }
  float at(std::int64_t row, std::int64_t column) const {
    return c[static_cast<std::size_t>(row * columns + column)];
  }
  // Sums of exact products in float, `before` each: off by a few roundings of partial sums below
  // `depth` numbers up to 1.
  void expect_sums(double before = 0) const {
    const double allowed = 0x1p-23 * static_cast<double>(depth);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t k = 0; k < columns; ++k) {
        double sum = before;
        for (std::int64_t i = 0; i < depth; ++i)
          sum += static_cast<double>(a[static_cast<std::size_t>(r * depth + i)]) *
                 static_cast<double>(b[static_cast<std::size_t>(i * columns + k)]);
        ASSERT_NEAR(static_cast<double>(at(r, k)), sum, allowed) << r << ", " << k;
      }
    }
  }
};

class Gemm16 : public testing::TestWithParam<Products16> {
 protected:
  void SetUp() override { detail::use_products16(GetParam()); }
  void TearDown() override { detail::use_products16(detail::products16().front()); }
};
INSTANTIATE_TEST_SUITE_P(, Gemm16, testing::ValuesIn(detail::products16()), [](const auto& test) {
  std::string word;
  for (const char c : name(test.param))
    if (std::isalnum(static_cast<unsigned char>(c))) word += c;
  return word;
});

TEST_P(Gemm16, IsTheSumOfExactProductsForEveryNumberOfRows) {
  for (std::int64_t rows = 1; rows <= 50; ++rows) {
    Product16 product(rows, 48, 64);
    detail::gemm16(product.whole());
    product.expect_sums();
  }
}

TEST_P(Gemm16, IsTheSumOfExactProductsForEveryNumberOfColumns) {
  for (std::int64_t columns = 16; columns <= 160; columns += 16) {
    for (const std::int64_t rows : {3, 16, 32, 40}) {
      Product16 product(rows, columns, 96);
      detail::gemm16(product.whole());
      product.expect_sums();
    }
  }
}

TEST_P(Gemm16, AddsToWhatStandsThere) {
  Product16 product(20, 64, 32);
  detail::Gemm16 more = product.whole();
  more.adds = true;
  detail::gemm16(more);
  product.expect_sums(3);
}

TEST_P(Gemm16, ReadsPanelsAsTransposedKeysLie) {
  const std::int64_t panel = detail::panel_columns<float>();
  if (panel % detail::gemm16_rows != 0) GTEST_SKIP() << "panels are narrower than tiles";
  Product16 product(20, 4 * panel, 64);
  // Keys are rows, [column][depth].
  std::vector<float> keys(product.b.size());
  detail::transpose(product.b.data(), product.columns, product.depth, product.columns, keys.data(),
                    product.depth);
  std::vector<Pair16> rows(product.b_pairs.size()), panels(rows.size());
  const std::int64_t pairs = product.depth / 2;
  detail::pair_columns(keys.data(), product.depth, product.columns, product.depth, rows.data(),
                       pairs);
  detail::transpose_to_panels(rows.data(), pairs, product.columns, pairs, panels.data());
  detail::Gemm16 by_panels = product.whole();
  by_panels.b = panels.data();
  by_panels.b_step = panel;
  by_panels.panel_columns = panel;
  by_panels.panel_step = panel * pairs;
  detail::gemm16(by_panels);
  product.expect_sums();
}

// What a query sees differs from its neighbour's: weights of 0 before and behind must not show.
TEST_P(Gemm16, ZerosBeforeAndBehindChangeNoBit) {
  Product16 narrow(5, 32, 64), wide(5, 32, 192);
  std::fill(wide.a.begin(), wide.a.end(), 0.0f);
  for (std::int64_t r = 0; r < 5; ++r)
    std::copy_n(narrow.a.begin() + r * 64, 64, wide.a.begin() + r * 192 + 64);
  std::copy_n(narrow.b.begin(), 64 * 32, wide.b.begin() + 64 * 32);
  wide.pair();
  detail::gemm16(narrow.whole());
  detail::gemm16(wide.whole());
  for (std::int64_t r = 0; r < 5; ++r)
    for (std::int64_t c = 0; c < 32; ++c) ASSERT_EQ(narrow.at(r, c), wide.at(r, c));
}

TEST_P(Gemm16, ARowsNaNStaysInIt) {
  Product16 product(20, 32, 64);
  product.a[64 * 7 + 3] = std::numeric_limits<float>::quiet_NaN();
  product.pair();
  detail::gemm16(product.whole());
  for (std::int64_t r = 0; r < 20; ++r) EXPECT_EQ(std::isnan(product.at(r, 5)), r == 7) << r;
}

// Linux names what it found when it started.
TEST(Products16Found, AreThoseThatTheSystemNames) {
  std::ifstream file("/proc/cpuinfo");
  const std::string told{std::istreambuf_iterator<char>(file), {}};
  if (!told.contains("\nflags")) GTEST_SKIP() << "the system names none";
  const std::vector<Products16> found = detail::products16();
  EXPECT_EQ(std::ranges::find(found, Products16::pairs) != found.end(),
            told.contains(" avx512_bf16"));
  if (std::ranges::find(found, Products16::tiles) != found.end()) {
    EXPECT_TRUE(told.contains(" amx_bf16"));
  }
}

// --- pairs ---------------------------------------------------------------------------------------

TEST(Pairs16, AreRoundedToNearestTiesToEven) {
  EXPECT_EQ(rounded(1 + 0x1p-8f), 1.0f);
  EXPECT_EQ(rounded(1 + 0x3p-8f), 1 + 0x1p-6f);
  EXPECT_EQ(rounded(1 + 0x1.02p-8f), 1 + 0x1p-7f);
  EXPECT_EQ(rounded(-3.0f), -3.0f);
  EXPECT_EQ(rounded(std::numeric_limits<float>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rounded(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Pairs16, OfARowHoldTheEarlierNumberBelow) {
  std::vector<float> row(16, 9.0f);
  row[0] = 1, row[1] = 2, row[2] = 4;
  Pair16 to[8] = {7, 7, 7, 7, 7, 7, 7, 7};
  detail::pair_columns(row.data(), 16, 1, 3, to, 8);
  EXPECT_EQ(to[0], 0x40003f80u);
  EXPECT_EQ(to[1], 0x00004080u);
  for (int i = 2; i < 8; ++i) EXPECT_EQ(to[i], 0u);
}

TEST(Pairs16, OfAColumnEndInZeros) {
  std::vector<float> x(3 * 16, 1.0f);
  Pair16 to[4 * 16];
  detail::pair_rows(x.data(), 16, 3, 16, 8, to, 16);
  EXPECT_EQ(to[5], 0x3f803f80u);
  EXPECT_EQ(to[16 + 5], 0x00003f80u);
  EXPECT_EQ(to[32 + 5], 0u);
  EXPECT_EQ(to[48 + 5], 0u);
}

}  // namespace
}  // namespace posenc
