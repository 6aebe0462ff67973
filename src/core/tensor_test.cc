#include "posenc/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace posenc {
namespace {

// A 16-bit format as its definition reads: (−1)^sign · 2^exponent · significand.
double by_definition(std::uint16_t bits, int mantissa_bits) {
  const int bias = (1 << (14 - mantissa_bits)) - 1;
  const int exponent = (bits & 0x7fff) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 2 * bias + 1) {
    return mantissa != 0 ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

struct Conversions {
  int mantissa_bits;
  std::uint16_t (*from_double)(double);
  std::uint16_t (*from_float)(float);
  float (*to_float)(std::uint16_t);
};

class TensorBits : public testing::TestWithParam<Conversions> {};

TEST_P(TensorBits, EveryEncodingMeansWhatItsDefinitionSays) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<std::uint16_t>(bits);
    ASSERT_TRUE(same(GetParam().to_float(b), by_definition(b, GetParam().mantissa_bits))) << bits;
  }
}

TEST_P(TensorBits, EveryEncodingSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<std::uint16_t>(bits);
    const float value = GetParam().to_float(b);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(GetParam().to_float(GetParam().from_float(value)))) << bits;
    } else {
      ASSERT_EQ(GetParam().from_float(value), b);
      ASSERT_EQ(GetParam().from_double(value), b);
    }
  }
}

// Between two neighbours: below the middle goes down, above it up, the middle to the even one.
TEST_P(TensorBits, EveryGapRoundsToNearestEven) {
  const std::uint32_t infinity =
      static_cast<std::uint32_t>(((1 << (15 - GetParam().mantissa_bits)) - 1))
      << GetParam().mantissa_bits;
  for (std::uint32_t sign : {0U, 0x8000U}) {
    for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
      const auto low = static_cast<std::uint16_t>(sign | bits);
      const auto high = static_cast<std::uint16_t>(sign | (bits + 1));
      const double a = GetParam().to_float(low), b = GetParam().to_float(high);
      const double middle = (a + b) / 2;
      ASSERT_EQ(GetParam().from_double(middle), (bits & 1) != 0 ? high : low) << bits;
      ASSERT_EQ(GetParam().from_double(std::nextafter(middle, a)), low) << bits;
      ASSERT_EQ(GetParam().from_double(std::nextafter(middle, b)), high) << bits;
    }
  }
}

TEST_P(TensorBits, BeyondTheLargestIsInfinity) {
  const int exponent_bits = 15 - GetParam().mantissa_bits;
  const auto infinity =
      static_cast<std::uint16_t>(((1 << exponent_bits) - 1) << GetParam().mantissa_bits);
  const double largest = GetParam().to_float(static_cast<std::uint16_t>(infinity - 1));
  const double before = GetParam().to_float(static_cast<std::uint16_t>(infinity - 2));
  const double edge = largest + (largest - before) / 2;
  EXPECT_EQ(GetParam().from_double(std::nextafter(edge, 0)), infinity - 1);
  EXPECT_EQ(GetParam().from_double(edge), infinity);
  EXPECT_EQ(GetParam().from_double(std::numeric_limits<double>::max()), infinity);
}

TEST_P(TensorBits, BelowHalfTheSmallestIsASignedZero) {
  const double smallest = GetParam().to_float(1);
  EXPECT_EQ(GetParam().from_double(smallest / 2), 0);
  EXPECT_EQ(GetParam().from_double(std::nextafter(smallest / 2, 1)), 1);
  EXPECT_EQ(GetParam().from_double(-smallest / 4), 0x8000);
  EXPECT_EQ(GetParam().from_double(std::numeric_limits<double>::denorm_min()), 0);
}

// Above a tie by less than a float can hold: through float it would land on the tie and go down.
TEST_P(TensorBits, DoubleIsRoundedOnceNotThroughFloat) {
  const double tie = 1 + std::ldexp(1, -GetParam().mantissa_bits - 1);
  const double above = tie + 0x1p-40;
  EXPECT_EQ(GetParam().from_double(above), GetParam().from_double(1) + 1);
  EXPECT_EQ(GetParam().from_float(static_cast<float>(above)), GetParam().from_double(1));
}

constexpr float widened_bfloat16(std::uint16_t bits) { return bfloat16_to_float(bits); }

INSTANTIATE_TEST_SUITE_P(
    Formats, TensorBits,
    testing::Values(Conversions{10, double_to_half, float_to_half, half_to_float},
                    Conversions{7, double_to_bfloat16, float_to_bfloat16, widened_bfloat16}),
    [](const auto& each) { return each.param.mantissa_bits == 10 ? "half" : "bfloat16"; });

TEST(Tensor, DenseIsRowMajor) {
  std::vector<float> data(2 * 3 * 5);
  const Tensor view = Tensor::dense(data.data(), {2, 3, 5});
  EXPECT_EQ(view.size(), 30);
  EXPECT_EQ(view.offset(1, 2, 4), 29);
}

TEST(Tensor, SwappedAxesReadTheSameElement) {
  std::vector<float> data(2 * 3 * 5);
  const Tensor view = Tensor::dense(data.data(), {2, 3, 5});
  const Tensor other = view.swapped(0, 1);
  EXPECT_EQ(other.shape[0], 3);
  EXPECT_EQ(other.offset(2, 1, 4), view.offset(1, 2, 4));
}

TEST(Tensor, MoreRankPutsAxesOfOneInFront) {
  std::vector<float> data(6);
  const Tensor view = Tensor::dense(data.data(), {2, 3}).with_rank(4);
  EXPECT_EQ(view.shape, (std::array<std::int64_t, 4>{1, 1, 2, 3}));
  EXPECT_EQ(view.offset(0, 0, 1, 2), 5);
}

TEST(Tensor, HostileShapeSaturatesInsteadOfWrapping) {
  const std::int64_t big = std::int64_t{1} << 40;
  const Tensor view = Tensor::dense(nullptr, DType::f32, {big, big, 4});
  EXPECT_EQ(view.size(), std::numeric_limits<std::int64_t>::max());
}

TEST(Tensor, ShapeWithAZeroIsEmptyHoweverLargeTheRest) {
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(Tensor::dense(nullptr, DType::f32, {big, big, 0}).size(), 0);
}

TEST(Tensor, FloatsOf8BitsAreThoseOfTheirFormats) {
  const auto number = [](DType dtype, std::uint8_t byte) {
    return Tensor::dense(&byte, dtype, {1}).get(0);
  };
  EXPECT_EQ(number(DType::e4m3, 0x7e), 448);
  EXPECT_EQ(number(DType::e4m3, 0x01), 0x1p-9);
  EXPECT_EQ(number(DType::e4m3, 0xb8), -1);
  EXPECT_TRUE(std::isnan(number(DType::e4m3, 0xff)));
  EXPECT_EQ(number(DType::e5m2, 0x7b), 57344);
  EXPECT_EQ(number(DType::e5m2, 0x01), 0x1p-16);
  EXPECT_EQ(number(DType::e5m2, 0xbc), -1);
  EXPECT_TRUE(std::isinf(number(DType::e5m2, 0x7c)));
}

TEST(Tensor, BlocksOfQ8AreAHalfTimesItsBytes) {
  std::vector<std::uint8_t> bytes(2 * q8_block_bytes, 0);
  bytes[1] = 0x38;                   // 0.5
  bytes[2 + 31] = 0xfd;              // -3
  bytes[q8_block_bytes + 1] = 0x40;  // 2
  bytes[q8_block_bytes + 2] = 127;
  const Tensor x = Tensor::dense(bytes.data(), DType::q8_0, {1, 64});
  EXPECT_EQ(x.get(31), -1.5);
  EXPECT_EQ(x.get(32), 254);
  EXPECT_EQ(x.get(33), 0);
}

TEST(Tensor, SetThenGetRoundsOnceToTheDtype) {
  std::vector<double> storage(1);
  for (const auto& [dtype, expected] :
       {std::pair{DType::f64, 1 / 3.0}, std::pair{DType::f32, double{1 / 3.0F}},
        std::pair{DType::f16, 0.333251953125}, std::pair{DType::bf16, 0.333984375}}) {
    const Tensor view = Tensor::dense(storage.data(), dtype, {1});
    view.set(0, 1 / 3.0);
    EXPECT_EQ(view.get(0), expected) << name(dtype);
  }
}

}  // namespace
}  // namespace posenc
