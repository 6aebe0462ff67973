// Dots and sums of a few rows with rows of a cache beside double, by every instruction set.
#include "src/kernels/cached_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/eight_bits.h"
#include "tests/kernel_memory.h"
#include "tests/random.h"

namespace posenc {
namespace {

class CachedRowsOf : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(, CachedRowsOf, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& test) { return std::string(test.param.name); });

// A cache [1, 1, keys, width], whose rows end where memory does; of 8 bits where the sanitizer's
// does.
struct Cache {
  Memory memory;
  EightBits bytes;
  std::vector<double> numbers;
  detail::CachedRows rows;

  Cache(DType dtype, std::int64_t keys, std::int64_t width, unsigned seed)
      : memory(posenc::memory(has_8_bits(dtype) ? DType::f32 : dtype, MemoryLayout::heads_first, 1,
                              1, keys, width, seed)),
        bytes(has_8_bits(dtype) ? dtype : DType::q8_0, 1, 1, has_8_bits(dtype) ? keys : 0, width,
              seed) {
    const Tensor view = has_8_bits(dtype) ? bytes.view() : memory.view();
    rows = {view.data, dtype, view.stride[2]};
    for (std::int64_t j = 0; j < keys; ++j)
      for (std::int64_t c = 0; c < width; ++c)
        numbers.push_back(view.get(view.offset(0, 0, j) + c));
  }
};

constexpr DType dtypes[] = {DType::f32,  DType::f16,  DType::bf16,
                            DType::e4m3, DType::e5m2, DType::q8_0};
// q8_0 has blocks of 32.
constexpr std::int64_t width_of(DType dtype, std::int64_t width) {
  return dtype == DType::q8_0 ? (width + 31) / 32 * 32 : width;
}

void expect_dots(DType dtype, std::int64_t rows, std::int64_t keys, std::int64_t width) {
  const Cache k(dtype, keys, width, 1), v(dtype, keys, width, 2);
  const auto q = random<float>(rows * width, 3);
  std::vector<float> to(static_cast<std::size_t>(rows * (keys + 3)), 7.0f);
  detail::cached_dots(k.rows, keys, width, q.data(), width, rows, to.data(), keys + 3, &v.rows);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t j = 0; j < keys; ++j) {
      double sum = 0, size = 0;
      for (std::int64_t c = 0; c < width; ++c) {
        const double product = static_cast<double>(q[static_cast<std::size_t>(r * width + c)]) *
                               k.numbers[static_cast<std::size_t>(j * width + c)];
        sum += product, size += std::abs(product);
      }
      ASSERT_NEAR(static_cast<double>(to[static_cast<std::size_t>(r * (keys + 3) + j)]), sum,
                  size * 0x1p-20)
          << name(dtype) << ", " << rows << " rows, " << keys << " keys, " << width << " wide";
    }
    ASSERT_EQ(to[static_cast<std::size_t>(r * (keys + 3) + keys)], 7.0f);
  }
}

void expect_sums(DType dtype, std::int64_t rows, std::int64_t keys, std::int64_t width) {
  const Cache v(dtype, keys, width, 2);
  const auto weights = random<float>(rows * keys, 3), before = random<float>(rows * width, 4);
  std::vector<float> sums = before;
  detail::add_cached(v.rows, keys, width, weights.data(), keys, rows, sums.data(), width);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) {
      const auto at = static_cast<std::size_t>(r * width + c);
      double sum = static_cast<double>(before[at]), size = std::abs(sum);
      for (std::int64_t j = 0; j < keys; ++j) {
        const double product =
            static_cast<double>(weights[static_cast<std::size_t>(r * keys + j)]) *
            v.numbers[static_cast<std::size_t>(j * width + c)];
        sum += product, size += std::abs(product);
      }
      ASSERT_NEAR(static_cast<double>(sums[at]), sum, size * 0x1p-20)
          << name(dtype) << ", " << rows << " rows, " << keys << " keys, " << width << " wide";
    }
  }
}

TEST_P(CachedRowsOf, EveryDtypeNumberOfRowsAndOfKeysHaveTheirDots) {
  for (const DType dtype : dtypes)
    for (std::int64_t rows = 1; rows <= 12; ++rows)
      for (std::int64_t keys = 1; keys <= 9; ++keys)
        expect_dots(dtype, rows, keys, width_of(dtype, 48));
}

TEST_P(CachedRowsOf, EveryDtypeNumberOfRowsAndOfKeysHaveTheirSums) {
  for (const DType dtype : dtypes)
    for (std::int64_t rows = 1; rows <= 12; ++rows)
      for (std::int64_t keys = 1; keys <= 9; ++keys)
        expect_sums(dtype, rows, keys, width_of(dtype, 48));
}

TEST_P(CachedRowsOf, EveryWidthHasItsDotsAndSums) {
  for (const DType dtype : dtypes) {
    for (std::int64_t width = 16; width <= 272; width += 16) {
      expect_dots(dtype, 5, 7, width_of(dtype, width));
      expect_sums(dtype, 5, 7, width_of(dtype, width));
    }
  }
}

TEST_P(CachedRowsOf, RowsOf8BitsAreLoadedAsTheyAreRead) {
  for (const DType dtype : eight_bit_dtypes) {
    EightBits bytes(dtype, 1, 2, 5, 64, 3);
    const Tensor x = bytes.view();
    std::vector<float> rows(5 * 64);
    detail::load_cached_rows(x, x.offset(0, 1), 5, rows.data(), 64);
    for (std::int64_t e = 0; e < 5 * 64; ++e)
      ASSERT_EQ(static_cast<double>(rows[static_cast<std::size_t>(e)]), x.get(x.offset(0, 1) + e))
          << name(dtype) << ", number " << e;
  }
}

// Every byte, subnormals and NaN among them.
TEST_P(CachedRowsOf, EveryByteOfFloatsOf8BitsIsItsNumber) {
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    std::vector<std::uint8_t> bytes(256);
    for (std::size_t b = 0; b < 256; ++b) bytes[b] = static_cast<std::uint8_t>(b);
    const Tensor x = Tensor::dense(bytes.data(), dtype, {1, 1, 1, 256});
    std::vector<float> row(256);
    detail::load_cached_rows(x, 0, 1, row.data(), 256);
    for (std::size_t b = 0; b < 256; ++b) {
      const double wanted = x.get(static_cast<std::int64_t>(b));
      if (std::isnan(wanted)) {
        ASSERT_TRUE(std::isnan(row[b])) << name(dtype) << ", byte " << b;
      } else {
        ASSERT_EQ(static_cast<double>(row[b]), wanted) << name(dtype) << ", byte " << b;
      }
    }
  }
}

// A NaN is in its key's dots and its column's sums, and nowhere else.
TEST_P(CachedRowsOf, ANanOf8BitsStaysWhereItStands) {
  constexpr std::int64_t keys = 7, width = 112, nan_key = 4, nan_column = 70;
  for (const DType dtype : {DType::e4m3, DType::e5m2}) {
    EightBits bytes(dtype, 1, 1, keys, width, 3);
    bytes.bytes[nan_key * width + nan_column] = 0x7f;
    const Tensor x = bytes.view();
    const detail::CachedRows rows{x.data, dtype, x.stride[2]};
    const auto q = random<float>(3 * width, 4);
    std::vector<float> dots(3 * keys), sums(3 * width, 1.0f);
    detail::cached_dots(rows, keys, width, q.data(), width, 3, dots.data(), keys, nullptr);
    detail::add_cached(rows, keys, width, q.data(), width, 3, sums.data(), width);
    for (std::int64_t at = 0; at < 3 * keys; ++at)
      EXPECT_EQ(std::isnan(dots[static_cast<std::size_t>(at)]), at % keys == nan_key) << at;
    for (std::int64_t at = 0; at < 3 * width; ++at)
      EXPECT_EQ(std::isnan(sums[static_cast<std::size_t>(at)]), at % width == nan_column) << at;
  }
}

TEST_P(CachedRowsOf, NoKeysChangeNothing) {
  const Cache v(DType::bf16, 1, 16, 1);
  std::vector<float> sums(16, 2.0f);
  detail::add_cached(v.rows, 0, 16, nullptr, 0, 1, sums.data(), 16);
  EXPECT_EQ(sums, std::vector<float>(16, 2.0f));
}

}  // namespace
}  // namespace posenc
