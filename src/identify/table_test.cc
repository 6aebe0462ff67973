// Tables as engines and checkpoints keep them.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "posenc/identify.h"
#include "tests/random.h"

namespace posenc {
namespace {

constexpr std::int64_t table_rows = 600, table_pairs = 32;

// [row][column], each number kept as a type.
struct MadeTable {
  DType dtype = DType::f32;
  std::int64_t rows = table_rows, columns = table_pairs;
  std::vector<double> memory = {};

  Tensor fill(const std::function<double(std::int64_t, std::int64_t)>& at) {
    memory.resize(static_cast<std::size_t>(rows * columns));
    const Tensor view = Tensor::dense(memory.data(), dtype, {rows, columns});
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t c = 0; c < columns; ++c) view.set(t * columns + c, at(t, c));
    return view;
  }
};

double wave(std::int64_t pair) { return std::pow(5e5, -static_cast<double>(pair) / table_pairs); }

// cos and sin of angle(row, pair), with pair_of(column).
IdentifiedTable found_table(
    const std::function<double(std::int64_t, std::int64_t)>& angle, DType dtype = DType::f32,
    std::int64_t columns = table_pairs,
    const std::function<std::int64_t(std::int64_t)>& pair_of = [](std::int64_t c) { return c; },
    double amplitude = 1) {
  MadeTable cos{.dtype = dtype, .columns = columns}, sin = cos;
  const auto found = identify_table(
      cos.fill([&](auto t, auto c) { return amplitude * std::cos(angle(t, pair_of(c))); }),
      sin.fill([&](auto t, auto c) { return amplitude * std::sin(angle(t, pair_of(c))); }));
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(IdentifiedTable{});
}

double exact_angle(std::int64_t row, std::int64_t pair) {
  return static_cast<double>(row) * wave(pair);
}

TEST(IdentifyTable, NamesBaseAndTheFirstRow) {
  const IdentifiedTable found = found_table([](auto t, auto r) { return exact_angle(t + 3, r); });
  EXPECT_EQ(found.rotation.verdict, Rotated::rotation);
  EXPECT_EQ(found.columns, TableColumns::pairs);
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
  EXPECT_EQ(found.rotation.offset, 3);
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"exact"});
}

TEST(IdentifyTable, ColumnsTwiceAreToldByWhereTheyRepeat) {
  const auto concatenated = [](std::int64_t c) { return c % table_pairs; };
  const auto interleaved = [](std::int64_t c) { return c / 2; };
  EXPECT_EQ(found_table(exact_angle, DType::f32, 2 * table_pairs, concatenated).columns,
            TableColumns::concatenated);
  EXPECT_EQ(found_table(exact_angle, DType::f32, 2 * table_pairs, interleaved).columns,
            TableColumns::interleaved);
}

TEST(IdentifyTable, AmplitudeAndTheTypeThatKeepsIt) {
  const IdentifiedTable found =
      found_table(exact_angle, DType::bf16, table_pairs, [](std::int64_t c) { return c; }, 1.1386);
  ASSERT_TRUE(found.rotation.amplitude);
  EXPECT_NEAR(*found.rotation.amplitude, 1.1386, 1e-3);
  EXPECT_EQ(found.kept, DType::bf16);
  EXPECT_EQ(found_table(exact_angle, DType::f16).kept, DType::f16);
}

TEST(IdentifyTable, FrequenciesThatBfloat16Rounded) {
  const auto angle = [](std::int64_t t, std::int64_t r) {
    const auto rounded = bfloat16_to_float(float_to_bfloat16(static_cast<float>(wave(r))));
    return static_cast<double>(static_cast<float>(t) * rounded);
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const IdentifiedTable found = found_table(angle, dtype);
    ASSERT_TRUE(found.rotation.frequencies) << name(dtype);
    EXPECT_EQ(found.rotation.frequencies->base, 5e5) << name(dtype);
    EXPECT_EQ(found.rotation.frequencies->kept, DType::bf16) << name(dtype);
    EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"bfloat16_frequencies"});
    ASSERT_FALSE(found.rotation.findings.empty());
    EXPECT_EQ(found.rotation.findings.front().code, "frequencies_rounded");
  }
}

TEST(IdentifyTable, AllOfItInBfloat16) {
  const auto narrow = [](double x) {
    return bfloat16_to_float(float_to_bfloat16(static_cast<float>(x)));
  };
  const IdentifiedTable found = found_table([&](std::int64_t t, std::int64_t r) {
    return static_cast<double>(narrow(narrow(static_cast<double>(t)) * narrow(wave(r))));
  });
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"bfloat16"});
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
}

TEST(IdentifyTable, PositionsInBfloat16) {
  const IdentifiedTable found = found_table(
      [](std::int64_t t, std::int64_t r) {
        const float p = bfloat16_to_float(float_to_bfloat16(static_cast<float>(t)));
        return static_cast<double>(p) * wave(r);
      },
      DType::f32);
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"bfloat16_positions"});
}

TEST(IdentifyTable, PositionsThatWereDividedInFloat16) {
  const auto narrow = [](double x) { return half_to_float(float_to_half(static_cast<float>(x))); };
  const IdentifiedTable found = found_table(
      [&](std::int64_t t, std::int64_t r) {
        const double position = narrow(static_cast<double>(t) / 8);
        return static_cast<double>(narrow(position * static_cast<double>(narrow(wave(r)))));
      },
      DType::f32);
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().found, "float16");
}

TEST(IdentifyTable, ATableMayBeginFarFromPosition0) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return static_cast<double>(t + 130048) * wave(r);
  });
  EXPECT_EQ(found.rotation.offset, 130048);
}

TEST(IdentifyTable, AnglesOfATf32Product) {
  const auto cut = [](double x) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & ~0x1FFFU);
  };
  const IdentifiedTable found = found_table(
      [&](std::int64_t t, std::int64_t r) {
        return static_cast<double>(cut(static_cast<double>(t)) * cut(wave(r)));
      },
      DType::f32);
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().found, "TF32");
}

TEST(IdentifyTable, PositionsInBfloat16TimesFrequenciesOfFewerDigits) {
  const auto narrow = [](double x) {
    return bfloat16_to_float(float_to_bfloat16(static_cast<float>(x)));
  };
  const auto angles_of = [&](const std::function<float(double)>& kept) {
    return found_table([&](std::int64_t t, std::int64_t r) {
             return static_cast<double>(narrow(static_cast<double>(t)) * kept(wave(r)));
           })
        .rotation.angles;
  };
  const std::vector<std::string> positions{"bfloat16_positions"};
  EXPECT_EQ(angles_of([](double f) { return static_cast<float>(f); }), positions);
  EXPECT_EQ(angles_of(narrow), positions);
}

TEST(IdentifyTable, APairThatStandsStillAloneIsOdd) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return r == table_pairs - 1 ? 0 : static_cast<double>(t) * wave(r);
  });
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "odd_pair");
  EXPECT_EQ(found.rotation.findings.front().pair, table_pairs - 1);
}

TEST(IdentifyTable, TwoPairsThatAreExchangedAreOneSlip) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return static_cast<double>(t) * wave(r == 10 ? 11 : r == 11 ? 10 : r);
  });
  ASSERT_EQ(found.rotation.findings.size(), 1u);
  EXPECT_TRUE(found.rotation.findings.front().message.contains("10 and 11 are exchanged"));
}

TEST(IdentifyTable, AnOddPairBesideAScaling) {
  const Rope rope{.rope_theta = 5e5,
                  .scaling = Llama3{.factor = 32, .original_max_position_embeddings = 8192}};
  const auto made = rope_frequencies<double>(rope, {.head_dim = 2 * table_pairs});
  ASSERT_TRUE(made);
  const IdentifiedTable found = found_table([&](std::int64_t t, std::int64_t r) {
    const double own = made->frequency[static_cast<std::size_t>(r)];
    return static_cast<double>(t) * own * (r == 20 ? 2 : 1);
  });
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_TRUE(std::holds_alternative<Llama3>(found.rotation.frequencies->scaling));
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "odd_pair");
  EXPECT_EQ(found.rotation.findings.front().pair, 20);
}

TEST(IdentifyTable, APairThatStandsStillAmongTurningOnesIsOdd) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return r == table_pairs / 2 ? 0 : static_cast<double>(t) * wave(r);
  });
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "odd_pair");
  EXPECT_EQ(found.rotation.findings.front().pair, table_pairs / 2);
  EXPECT_TRUE(found.rotation.cannot_tell.empty());
}

TEST(IdentifyTable, PairsThatStandStillMayBeABufferFilledInPart) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return r >= table_pairs / 2 ? 0 : static_cast<double>(t) * wave(r);
  });
  ASSERT_FALSE(found.rotation.cannot_tell.empty());
  EXPECT_TRUE(found.rotation.cannot_tell.front().contains("filled in part"));
}

TEST(IdentifyTable, ProductsInFloat16) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    const float angle = static_cast<float>(t) * static_cast<float>(wave(r));
    return static_cast<double>(half_to_float(float_to_half(angle)));
  });
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"float16_products"});
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "angles_rounded");
  EXPECT_EQ(found.rotation.findings.front().position, 256);
}

TEST(IdentifyTable, AllOfItInFloat16UnderAScaling) {
  const Rope rope{.rope_theta = 5e5,
                  .rotary_dim = 2 * table_pairs,
                  .scaling = Yarn{.factor = 4, .original_max_position_embeddings = 8192}};
  const auto made = rope_frequencies<double>(rope, {.head_dim = 2 * table_pairs});
  ASSERT_TRUE(made);
  const auto narrow = [](double x) { return half_to_float(float_to_half(static_cast<float>(x))); };
  const IdentifiedTable found = found_table([&](std::int64_t t, std::int64_t r) {
    const double f = made->frequency[static_cast<std::size_t>(r)];
    return static_cast<double>(narrow(narrow(static_cast<double>(t)) * narrow(f)));
  });
  ASSERT_TRUE(found.rotation.frequencies);
  EXPECT_EQ(found.rotation.frequencies->base, 5e5);
  EXPECT_TRUE(std::holds_alternative<Yarn>(found.rotation.frequencies->scaling));
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"float16"});
}

TEST(IdentifyTable, OneSpeedForAllPairs) {
  const IdentifiedTable found =
      found_table([](std::int64_t t, std::int64_t) { return 0.25 * static_cast<double>(t); });
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "frequencies_alike");
}

TEST(IdentifyTable, ATableThatNobodyFilledIsNamed) {
  std::vector<float> zeros(64 * 32);
  const Tensor table = Tensor::dense(zeros.data(), {64, 32});
  const auto found = identify_table(table, table);
  ASSERT_TRUE(found);
  ASSERT_FALSE(found->rotation.findings.empty());
  EXPECT_EQ(found->rotation.findings.front().code, "constant");
}

TEST(IdentifyTable, AFloatProductIsNotExact) {
  const IdentifiedTable found = found_table([](std::int64_t t, std::int64_t r) {
    return static_cast<double>(static_cast<float>(t) * static_cast<float>(wave(r)));
  });
  EXPECT_EQ(found.rotation.angles, std::vector<std::string>{"float_product"});
}

TEST(IdentifyTable, FilesThatAreExchangedAreTold) {
  MadeTable cos, sin;
  const Tensor c = cos.fill([](auto t, auto r) { return std::cos(exact_angle(t, r)); });
  const Tensor s = sin.fill([](auto t, auto r) { return std::sin(exact_angle(t, r)); });
  const auto found = identify_table(s, c);
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->exchanged);
  EXPECT_EQ(found->rotation.frequencies->base, 5e5);
}

TEST(IdentifyTable, RandomNumbersAreNone) {
  const std::vector<double> numbers = random(2 * table_rows * table_pairs);
  MadeTable cos, sin;
  const auto found =
      identify_table(cos.fill([&](auto t, auto c) {
        return numbers[static_cast<std::size_t>(t * table_pairs + c)];
      }),
                     sin.fill([&](auto t, auto c) {
                       return numbers[static_cast<std::size_t>((table_rows + t) * table_pairs + c)];
                     }));
  ASSERT_TRUE(found);
  EXPECT_NE(found->rotation.verdict, Rotated::rotation);
}

TEST(IdentifyTable, ShapesMustAgree) {
  MadeTable cos, sin{.rows = 5};
  const auto one = [](auto, auto) { return 1.0; };
  EXPECT_FALSE(identify_table(cos.fill(one), sin.fill(one)));
}

// sin and cos of (row + offset) · base^(−r/denominator).
struct Vectors {
  WaveLayout layout = WaveLayout::interleaved;
  bool cosine_first = false;
  double denominator = 32, scale = 1;
  std::int64_t offset = 0, zero_row = -1;

  IdentifiedVectors found() const {
    MadeTable table{.columns = 64};
    const auto values = table.fill([&](std::int64_t t, std::int64_t c) {
      if (t == zero_row) return 0.0;
      const bool neighbours = layout == WaveLayout::interleaved;
      const std::int64_t r = neighbours ? c / 2 : c % 32;
      const bool front = neighbours ? c % 2 == 0 : c < 32;
      const double angle =
          static_cast<double>(t + offset) * std::pow(1e4, -static_cast<double>(r) / denominator);
      return scale * (front == cosine_first ? std::cos(angle) : std::sin(angle));
    });
    const auto made = identify_vectors(values);
    EXPECT_TRUE(made);
    return made.value_or(IdentifiedVectors{});
  }
};

const Finding* finding_of(const IdentifiedTable& found, std::string_view code) {
  const auto at = std::ranges::find(found.rotation.findings, code, &Finding::code);
  return at == found.rotation.findings.end() ? nullptr : &*at;
}

TEST(IdentifyTable, RowsThatNobodyFilledAreTold) {
  MadeTable cos, sin;
  const auto filled = [](double value, std::int64_t row) { return row < 500 ? value : 0.0; };
  const auto found = identify_table(
      cos.fill([&](auto t, auto c) { return filled(std::cos(exact_angle(t, c)), t); }),
      sin.fill([&](auto t, auto c) { return filled(std::sin(exact_angle(t, c)), t); }));
  ASSERT_TRUE(found);
  const Finding* unfilled = finding_of(*found, "rows_unfilled");
  ASSERT_TRUE(unfilled);
  EXPECT_EQ(unfilled->position, 500);
  ASSERT_TRUE(found->rotation.frequencies);
  EXPECT_EQ(found->rotation.frequencies->base, 5e5);
}

TEST(IdentifyTable, APairThatTurnsBackwardsDoesNotStandStill) {
  const IdentifiedTable found =
      found_table([](auto t, auto r) { return (r == 6 ? -1 : 1) * exact_angle(t, r); });
  const Finding* odd = finding_of(found, "odd_pair");
  ASSERT_TRUE(odd);
  EXPECT_TRUE(odd->message.contains("turns backwards")) << odd->message;
  EXPECT_TRUE(odd->found.starts_with("-")) << odd->found;
}

TEST(IdentifyTable, ADivisorThatNobodyWritesIsTheNtkOfGte) {
  const double s = 8, base = 20000, d = 2 * table_pairs;
  const IdentifiedTable found = found_table([&](auto t, auto r) {
    return static_cast<double>(t) * std::pow(base * s, -2 * static_cast<double>(r) / d) /
           std::pow(s, 2 / d);
  });
  const Finding* ntk = finding_of(found, "ntk");
  ASSERT_TRUE(ntk);
  EXPECT_EQ(ntk->severity, Severity::note);
  EXPECT_TRUE(ntk->message.contains("by 8 of base 20000")) << ntk->message;
}

TEST(IdentifyTable, ARoundDivisorIsNone) {
  const IdentifiedTable found = found_table([](auto t, auto r) { return exact_angle(t, r) / 4; });
  EXPECT_EQ(finding_of(found, "ntk"), nullptr);
}

TEST(IdentifyTable, NumbersThatAreNoCosinesAreSaidToBeNone) {
  const auto noise = random<float>(2 * table_rows * table_pairs, 5);
  MadeTable cos, sin;
  const auto at = [&](std::int64_t t, std::int64_t c, std::int64_t part) {
    const std::int64_t n = 2 * (t * table_pairs + c) + part;
    return 100 * static_cast<double>(noise[static_cast<std::size_t>(n)]);
  };
  const auto found = identify_table(cos.fill([&](auto t, auto c) { return at(t, c, 0); }),
                                    sin.fill([&](auto t, auto c) { return at(t, c, 1); }));
  ASSERT_TRUE(found);
  EXPECT_NE(finding_of(*found, "no_circle"), nullptr);
}

TEST(IdentifyVectors, LayoutAndWhichComesFirst) {
  for (const WaveLayout layout : {WaveLayout::interleaved, WaveLayout::concatenated})
    for (const bool cosine_first : {false, true}) {
      const IdentifiedVectors found =
          Vectors{.layout = layout, .cosine_first = cosine_first}.found();
      EXPECT_TRUE(found.sinusoidal);
      EXPECT_EQ(found.layout, layout);
      EXPECT_EQ(found.cosine_first, cosine_first);
      EXPECT_EQ(found.base, 1e4);
      EXPECT_EQ(found.spacing, WaveSpacing::width);
    }
}

TEST(IdentifyVectors, WhispersDenominator) {
  const IdentifiedVectors found =
      Vectors{.layout = WaveLayout::concatenated, .denominator = 31}.found();
  EXPECT_EQ(found.spacing, WaveSpacing::ends);
  EXPECT_EQ(found.base, 1e4);
}

TEST(IdentifyVectors, ScaleOffsetAndARowOfPadding) {
  const IdentifiedVectors found = Vectors{.scale = 0.5, .offset = 2, .zero_row = 1}.found();
  EXPECT_NEAR(found.scale, 0.5, 1e-6);
  EXPECT_EQ(found.offset, 2);
  EXPECT_EQ(found.zero_rows, std::vector<std::int64_t>{1});
}

TEST(IdentifyVectors, LearnedOnesAreNotPeriodic) {
  const std::vector<double> numbers = random(table_rows * table_pairs);
  MadeTable table;
  const auto found = identify_vectors(table.fill(
      [&](auto t, auto c) { return numbers[static_cast<std::size_t>(t * table_pairs + c)]; }));
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->sinusoidal);
}

}  // namespace
}  // namespace posenc
