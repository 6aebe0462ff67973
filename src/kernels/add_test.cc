// Position vectors on every instruction set of this machine against the plain loops in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/apply.h"
#include "src/kernels/reference.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {

namespace reference = detail::reference;

class AddKernel : public EveryInstructionSet {};

INSTANTIATE_TEST_SUITE_P(Sets, AddKernel, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

// [batch, seq, width] out of a view whose one head is dropped.
Tensor without_heads(Tensor view) {
  view.shape = {view.shape[0], view.shape[2], view.shape[3]};
  view.stride = {view.stride[0], view.stride[2], view.stride[3]};
  view.rank = 3;
  return view;
}

enum class What { added_in_place, added_elsewhere, vectors };

void expect_vectors(const Plan& plan, DType dtype, MemoryLayout layout, std::int64_t batch,
                    const Positions& positions, What what, const std::string& about) {
  const std::int64_t seq = positions.size();
  const std::int64_t width =
      std::visit([](const auto& kind) { return kind.width; }, plan.add->kind);
  Memory from = memory(dtype, layout, batch, 1, seq, width);
  Memory into = memory(dtype, MemoryLayout::heads_first, batch, 1, seq, width, 2);
  const Tensor x = without_heads(from.view());
  const Tensor out = what == What::added_in_place ? x : without_heads(into.view());
  std::vector<double> exact(static_cast<std::size_t>(batch * seq * width));
  const Tensor truth = Tensor::dense(exact.data(), {batch, seq, width});
  double largest = 1;
  const auto each = [&](const auto& act) {
    for (std::int64_t b = 0; b < batch; ++b)
      for (std::int64_t t = 0; t < seq; ++t)
        for (std::int64_t c = 0; c < width; ++c) act(b, t, c);
  };
  each([&](auto b, auto t, auto c) {
    const double value = x.get(x.offset(b, t, c));
    largest = std::max(largest, std::abs(value * plan.add->embedding_scale));
    truth.set(truth.offset(b, t, c), value);
  });
  if (what == What::vectors) {
    ASSERT_TRUE(reference::position_vectors(plan, positions, truth)) << about;
    ASSERT_TRUE(position_vectors(plan, positions, out)) << about;
  } else {
    ASSERT_TRUE(reference::add(plan, truth, positions, truth)) << about;
    ASSERT_TRUE(add(plan, x, positions, out)) << about;
  }
  double worst = 0;
  each([&](auto b, auto t, auto c) {
    const double wanted = truth.get(truth.offset(b, t, c)), got = out.get(out.offset(b, t, c));
    // The wave is rounded, then the sum, then the element.
    const double allowed = 4 * compute_step(dtype) * largest + std::abs(wanted) * step(dtype) / 2 +
                           (dtype == DType::f16 ? 0x1p-25 : 0);
    const double error = std::abs(got - wanted) / allowed;
    if (!(error <= worst)) worst = error;
  });
  EXPECT_LE(worst, 1) << about << " " << name(dtype);
}

Plan waves(std::int64_t width, std::int64_t pairs, WaveLayout layout) {
  Plan plan;
  plan.add = Add{.kind = Waves{.width = width, .layout = layout, .frequency = geometric(pairs)},
                 .embedding_scale = 1.5};
  return plan;
}

constexpr WaveLayout both_layouts[] = {WaveLayout::interleaved, WaveLayout::concatenated};
constexpr What all_ways[] = {What::added_in_place, What::added_elsewhere, What::vectors};

TEST_P(AddKernel, WavesOfEveryWidthAndDtype) {
  for (const DType dtype : all_dtypes) {
    for (const WaveLayout layout : both_layouts) {
      for (const std::int64_t width : {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 64, 65, 130}) {
        for (const What what : all_ways) {
          expect_vectors(waves(width, (width + 1) / 2, layout), dtype, MemoryLayout::tokens_first,
                         2, Positions::range(59, 9), what, "width " + std::to_string(width));
        }
      }
    }
  }
}

TEST_P(AddKernel, ChannelsThatNoWaveReachesKeepTheEmbedding) {
  for (const WaveLayout layout : both_layouts) {
    for (const What what : all_ways) {
      expect_vectors(waves(40, 9, layout), DType::f32, MemoryLayout::tokens_first, 1,
                     Positions::range(3, 5), what, "9 pairs of 40 channels");
    }
  }
}

TEST_P(AddKernel, WavesInEveryLayout) {
  for (const DType dtype : all_dtypes) {
    for (const MemoryLayout layout : all_layouts) {
      for (const What what : all_ways) {
        expect_vectors(waves(21, 10, WaveLayout::interleaved), dtype, layout, 3,
                       Positions::range(1000000, 70), what,
                       "layout " + std::to_string(static_cast<int>(layout)));
      }
    }
  }
}

TEST_P(AddKernel, OffsetMovesTheWavesAndOneRowMayBeZero) {
  for (const WaveLayout layout : both_layouts) {
    Plan plan = waves(20, 10, layout);
    std::get<Waves>(plan.add->kind).row_offset = 2;
    std::get<Waves>(plan.add->kind).zero_row = 5;
    for (const What what : all_ways) {
      expect_vectors(plan, DType::f32, MemoryLayout::tokens_first, 1, Positions::range(0, 9), what,
                     "");
    }
  }
}

TEST_P(AddKernel, EverySequenceHasItsPositions) {
  const std::vector<std::int64_t> ids = {5, 1000, 7, 16000000, 0, 63};
  for (const What what : all_ways) {
    expect_vectors(waves(32, 16, WaveLayout::interleaved), DType::f64, MemoryLayout::tokens_first,
                   3, *Positions::ids(ids, 1, 3), what, "");
  }
}

TEST_P(AddKernel, LearnedRowsOfEveryDtypeAddToEveryDtype) {
  const std::vector<std::int64_t> ids = {4, 0, 6, 6, 1, 2};
  for (const DType table_dtype : all_dtypes) {
    for (const std::int64_t width : {1, 7, 16, 33}) {
      for (const MemoryLayout table_layout :
           {MemoryLayout::tokens_first, MemoryLayout::channels_first}) {
        Memory table = memory(table_dtype, table_layout, 1, 1, 7, width, 9);
        Tensor rows = table.view();
        rows.shape = {7, width};
        rows.stride = {rows.stride[2], rows.stride[3]};
        rows.rank = 2;
        Plan plan;
        plan.add = Add{.kind = Rows{.rows = 7, .width = width, .table = Table::borrow(rows)},
                       .embedding_scale = 3};
        for (const DType dtype : all_dtypes) {
          for (const What what : all_ways) {
            expect_vectors(plan, dtype, MemoryLayout::heads_first, 2, *Positions::ids(ids, 1, 2),
                           what,
                           std::string(name(table_dtype)) + " rows of " + std::to_string(width));
          }
        }
      }
    }
  }
}

// Rows of 8 channels, columns of 6 and time of 4, with 3 channels left over.
Plan picture_waves(WaveLayout layout, bool cosine_first) {
  Waves waves{.width = 21,
              .layout = layout,
              .frequency = std::vector<double>(27),
              .axes = 3,
              .blocks = {8, 6, 4},
              .cosine_first = cosine_first,
              .amplitude = 0.75};
  const auto own = geometric(9);
  for (std::size_t r = 0; r < 9; ++r) waves.frequency[(r < 4 ? 0u : r < 7 ? 9u : 18u) + r] = own[r];
  Plan plan;
  plan.add = Add{.kind = waves, .embedding_scale = 1.5};
  return plan;
}

TEST_P(AddKernel, WavesOfSeveralAxesOfEveryDtype) {
  const Positions grid = *Positions::grid(std::vector<std::int64_t>{3, 5, 7},
                                          std::vector<std::int64_t>{100, -2, 1000000});
  for (const DType dtype : all_dtypes)
    for (const WaveLayout layout : both_layouts)
      for (const bool cosine_first : {false, true})
        for (const MemoryLayout memory : all_layouts)
          for (const What what : all_ways)
            expect_vectors(picture_waves(layout, cosine_first), dtype, memory, 2, grid, what,
                           cosine_first ? "cosines first" : "sines first");
}

TEST_P(AddKernel, CosinesMayStandFirst) {
  for (const DType dtype : all_dtypes) {
    for (const WaveLayout layout : both_layouts) {
      for (const std::int64_t width : {2, 7, 32, 33, 64, 130}) {
        Plan plan = waves(width, width / 2, layout);
        std::get<Waves>(plan.add->kind).cosine_first = true;
        std::get<Waves>(plan.add->kind).amplitude = 1 / std::sqrt(static_cast<double>(width));
        for (const What what : all_ways)
          expect_vectors(plan, dtype, MemoryLayout::tokens_first, 2, Positions::range(59, 19), what,
                         "width " + std::to_string(width));
      }
    }
  }
}

// Angles of pairs that mix axes: their reference is in double, and so is what they are added by.
TEST_P(AddKernel, PairsMayMixAxes) {
  Plan plan;
  plan.add = Add{.kind = Waves{.width = 6,
                               .layout = WaveLayout::concatenated,
                               .frequency = {1, 2, 3, 4, 5, 6},
                               .axes = 2}};
  const Positions grid = *Positions::grid(std::vector<std::int64_t>{2, 3});
  for (const DType dtype : all_dtypes)
    expect_vectors(plan, dtype, MemoryLayout::tokens_first, 2, grid, What::added_elsewhere, "");
}

TEST_P(AddKernel, WavesAtRealPositionsOfEveryDtype) {
  std::vector<double> at = {0, -3.25, 1e6 + 0.5, 0.125, 17, 2.75, 1e-3, -40, 5, 9.5, 0.3, 1};
  const Tensor points = Tensor::dense(at.data(), {3, 2, 2});
  for (const DType dtype : all_dtypes) {
    for (const WaveLayout layout : both_layouts) {
      for (const bool cosine_first : {false, true}) {
        const Plan plan = picture_waves(layout, cosine_first);
        Memory from = memory(dtype, MemoryLayout::tokens_first, 2, 1, 2, 21);
        const Tensor x = without_heads(from.view());
        std::vector<double> exact(2 * 2 * 21);
        const Tensor truth = Tensor::dense(exact.data(), {2, 2, 21});
        double largest = 1;
        for (std::int64_t i = 0; i < 84; ++i) {
          const double value = x.get(x.offset(i / 42, i / 21 % 2, i % 21));
          largest = std::max(largest, std::abs(value * 1.5));
          truth.set(i, value);
        }
        ASSERT_TRUE(reference::add(plan, truth, points, truth));
        ASSERT_TRUE(add(plan, x, points, x));
        for (std::int64_t i = 0; i < 84; ++i) {
          const double wanted = exact[static_cast<std::size_t>(i)];
          EXPECT_NEAR(x.get(x.offset(i / 42, i / 21 % 2, i % 21)), wanted,
                      4 * compute_step(dtype) * largest + std::abs(wanted) * step(dtype) / 2 +
                          (dtype == DType::f16 ? 0x1p-25 : 0))
              << name(dtype) << " channel " << i % 21;
        }
      }
    }
  }
}

TEST_P(AddKernel, RealPositionsThatAreWholeGiveTheVectorsOfWholeOnes) {
  for (const WaveLayout layout : both_layouts) {
    const Plan plan = picture_waves(layout, true);
    const Positions grid = *Positions::grid(std::vector<std::int64_t>{2, 3, 4});
    std::vector<double> at;
    for (std::int64_t axis = 0; axis < 3; ++axis)
      for (std::int64_t t = 0; t < grid.size(); ++t)
        at.push_back(static_cast<double>(grid.at(t, 0, axis)));
    std::vector<double> whole(24 * 21), real(24 * 21);
    ASSERT_TRUE(position_vectors(plan, grid, Tensor::dense(whole.data(), {1, 24, 21})));
    ASSERT_TRUE(position_vectors(plan, Tensor::dense(at.data(), {3, 1, 24}),
                                 Tensor::dense(real.data(), {1, 24, 21})));
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(real[i], whole[i], 1e-14) << i;
  }
}

TEST_P(AddKernel, RowsOfSeveralAxesAreSummed) {
  for (const DType table_dtype : all_dtypes) {
    Memory table = memory(table_dtype, MemoryLayout::tokens_first, 1, 1, 9, 33, 9);
    Tensor rows = table.view();
    rows.shape = {9, 33};
    rows.stride = {rows.stride[2], rows.stride[3]};
    rows.rank = 2;
    Plan plan;
    plan.add =
        Add{.kind = Rows{.rows = 9, .width = 33, .table = Table::borrow(rows), .axis_rows = {4, 5}},
            .embedding_scale = 3};
    const Positions grid = *Positions::grid(std::vector<std::int64_t>{4, 5});
    for (const DType dtype : all_dtypes)
      for (const What what : all_ways)
        expect_vectors(plan, dtype, MemoryLayout::heads_first, 2, grid, what, "");
  }
}

// A table of floats as it stands, so that each is rounded to 16 bits and nothing else.
std::vector<std::uint16_t> narrowed(std::vector<float>& values, DType dtype) {
  const auto width = static_cast<std::int64_t>(values.size());
  Plan plan;
  plan.add = Add{.kind = Rows{.rows = 1,
                              .width = width,
                              .table = Table::borrow(Tensor::dense(values.data(), {1, width}))}};
  std::vector<std::uint16_t> bits(values.size());
  EXPECT_TRUE(position_vectors(plan, Positions::range(0, 1),
                               Tensor::dense(bits.data(), dtype, {1, width})));
  return bits;
}

TEST_P(AddKernel, FloatsAroundEverySixteenBitNumberAndTieRoundToNearestEven) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<float> values;
    for (std::uint32_t i = 0; i < 65536; ++i) {
      const auto bits = static_cast<std::uint16_t>(i);
      const float value = dtype == DType::f16 ? half_to_float(bits) : bfloat16_to_float(bits);
      const auto next_bits = static_cast<std::uint16_t>(i + 1);
      const float next =
          dtype == DType::f16 ? half_to_float(next_bits) : bfloat16_to_float(next_bits);
      const float tie = value / 2 + next / 2;
      for (const float each : {value, tie}) {
        values.push_back(each);
        values.push_back(std::nextafter(each, std::numeric_limits<float>::infinity()));
        values.push_back(std::nextafter(each, -std::numeric_limits<float>::infinity()));
      }
    }
    const auto got = narrowed(values, dtype);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint16_t wanted =
          dtype == DType::f16 ? float_to_half(values[i]) : float_to_bfloat16(values[i]);
      // A NaN stays one, whatever it carries.
      if (std::isnan(values[i])) {
        EXPECT_GT(got[i] & 0x7fff, dtype == DType::f16 ? 0x7c00 : 0x7f80) << values[i];
      } else {
        EXPECT_EQ(got[i], wanted) << values[i];
      }
    }
  }
}

TEST_P(AddKernel, EverySixteenBitNumberOfATableIsReadAsItIs) {
  for (const DType dtype : {DType::f16, DType::bf16}) {
    std::vector<std::uint16_t> bits(65536);
    for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
    std::vector<float> out(65536);
    Plan plan;
    plan.add =
        Add{.kind = Rows{.rows = 1,
                         .width = 65536,
                         .table = Table::borrow(Tensor::dense(bits.data(), dtype, {1, 65536}))}};
    ASSERT_TRUE(
        position_vectors(plan, Positions::range(0, 1), Tensor::dense(out.data(), {1, 65536})));
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float wanted =
          dtype == DType::f16 ? half_to_float(bits[i]) : bfloat16_to_float(bits[i]);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(out[i])) << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(out[i]), std::bit_cast<std::uint32_t>(wanted)) << i;
      }
    }
  }
}

TEST_P(AddKernel, AnyNumberOfThreadsGivesTheSameBitsOnSeveralAxes) {
  const Plan plan = picture_waves(WaveLayout::concatenated, true);
  const Positions grid = *Positions::grid(std::vector<std::int64_t>{5, 20, 30});
  std::vector<float> one(2 * 3000 * 21), many(one.size());
  ASSERT_TRUE(position_vectors(plan, grid, Tensor::dense(one.data(), {2, 3000, 21}), {1}));
  for (const int count : {0, 2, 5}) {
    ASSERT_TRUE(position_vectors(plan, grid, Tensor::dense(many.data(), {2, 3000, 21}), {count}));
    EXPECT_EQ(many, one) << count;
  }
}

TEST_P(AddKernel, AnyNumberOfThreadsGivesTheSameBits) {
  const Plan plan = waves(100, 50, WaveLayout::concatenated);
  std::vector<float> one(2 * 1000 * 100), many(one.size());
  const Positions positions = Positions::range(123, 1000);
  ASSERT_TRUE(position_vectors(plan, positions, Tensor::dense(one.data(), {2, 1000, 100}), {1}));
  for (const int count : {0, 2, 5}) {
    ASSERT_TRUE(
        position_vectors(plan, positions, Tensor::dense(many.data(), {2, 1000, 100}), {count}));
    EXPECT_EQ(many, one) << count;
  }
}

}  // namespace
}  // namespace posenc
