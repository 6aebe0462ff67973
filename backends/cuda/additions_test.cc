// Position vectors, sums and biases over the emulated grid beside the host.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "backends/cuda/backend.h"
#include "backends/cuda/tensors_test.h"
#include "posenc/cuda.h"
#include "posenc/schemes.h"
#include "tests/guarded_memory.h"

namespace posenc::cuda {
namespace {

constexpr std::int64_t batch = 2, tokens = 5;

// [batch][token][channel] of Numbers' [batch][1][token][channel].
Tensor embeddings(const Numbers& x) {
  Tensor view = x.view;
  view.rank = 3;
  view.shape = {x.view.shape[0], x.view.shape[2], x.view.shape[3], 1};
  view.stride = {x.view.stride[0], x.view.stride[2], x.view.stride[3], 1};
  return view;
}

Additions additions_of(const Plan& plan) {
  auto made = Additions::make(plan, emulated());
  EXPECT_TRUE(made) << made.error().message();
  return made.value_or(Additions{});
}

Plan waves(std::int64_t width, std::int64_t pairs, WaveLayout layout) {
  Waves part{.width = width, .layout = layout};
  for (std::int64_t r = 0; r < pairs; ++r)
    part.frequency.push_back(std::pow(1e4, -static_cast<double>(r) / static_cast<double>(pairs)));
  return {.add = Add{.kind = part, .embedding_scale = 3}};
}

class Sums : public testing::TestWithParam<DType> {
 protected:
  static void expect_sums(const Plan& plan, std::int64_t width, std::int64_t first = 1000,
                          std::int64_t padding = 0) {
    const DType dtype = GetParam();
    Numbers here(dtype, {batch, 1, tokens, width}, padding), there(dtype, here.view.shape, padding);
    here.fill(1), there.fill(1);
    ASSERT_TRUE(
        posenc::add(plan, embeddings(here), Positions::range(first, tokens), embeddings(here)));
    ASSERT_TRUE(add(additions_of(plan), embeddings(there), {.first = first}, embeddings(there)));
    expect_near(here, there);
    ASSERT_TRUE(posenc::position_vectors(plan, Positions::range(first, tokens), embeddings(here)));
    ASSERT_TRUE(position_vectors(additions_of(plan), {.first = first}, embeddings(there)));
    expect_near(here, there);
  }
  static void expect_near(const Numbers& here, const Numbers& there) {
    here.each([&](std::int64_t at) {
      EXPECT_NEAR(there.view.get(at), here.view.get(at), 4 * tolerance(GetParam())) << at;
    });
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, Sums, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(Sums, WavesThatAlternate) { expect_sums(waves(64, 32, WaveLayout::interleaved), 64); }
TEST_P(Sums, WavesSideBySide) { expect_sums(waves(64, 32, WaveLayout::concatenated), 64); }
TEST_P(Sums, WavesFarAway) {
  expect_sums(waves(64, 32, WaveLayout::concatenated), 64, 1'000'000'000);
}
TEST_P(Sums, AnOddWidthLacksACosine) {
  expect_sums(waves(11, 6, WaveLayout::interleaved), 11);
  expect_sums(waves(11, 6, WaveLayout::concatenated), 11);
}
TEST_P(Sums, ChannelsThatNoPairReachesAreZero) {
  expect_sums(waves(16, 6, WaveLayout::interleaved), 16);
  expect_sums(waves(16, 6, WaveLayout::concatenated), 16);
}
TEST_P(Sums, RowsThatAreNotAligned) {
  expect_sums(waves(64, 32, WaveLayout::interleaved), 64, 5, 3);
}
TEST_P(Sums, APaddingRowIsZero) {
  Plan plan = waves(64, 32, WaveLayout::concatenated);
  std::get<Waves>(plan.add->kind).row_offset = 2;
  std::get<Waves>(plan.add->kind).zero_row = 9;
  expect_sums(plan, 64, 5);
}
TEST_P(Sums, ARamp) {
  expect_sums({.add = Add{.kind = Ramp{.width = 16, .channel = 3, .scale = 0.5}}}, 16, 10);
}
TEST_P(Sums, ALearnedTableInEveryType) {
  for (const DType type : dtypes) {
    if ((type == DType::f64) != (GetParam() == DType::f64)) continue;  // refused on the host
    Numbers table(type, {1, 1, 30, 24});
    table.fill(7);
    Rows rows{.rows = 30, .width = 24, .row_offset = 2};
    Tensor view = embeddings(table);
    view.rank = 2, view.shape = {30, 24, 1, 1}, view.stride = {view.stride[1], 1, 1, 1};
    rows.table = Table::borrow(view);
    expect_sums({.add = Add{.kind = rows}}, 24, 20);
  }
}
TEST_P(Sums, EverySequenceHasPositionsOfItsOwn) {
  const Plan plan = waves(64, 32, WaveLayout::interleaved);
  Numbers here(GetParam(), {batch, 1, tokens, 64}), there(GetParam(), here.view.shape);
  here.fill(1), there.fill(1);
  const std::vector<std::int64_t> ids{3, 1, 4, 1, 5, 9, 2, 6, 5, 3};
  ASSERT_TRUE(
      posenc::add(plan, embeddings(here), *Positions::ids(ids, 1, batch), embeddings(here)));
  ASSERT_TRUE(add(additions_of(plan), embeddings(there), {.ids = ids.data()}, embeddings(there)));
  expect_near(here, there);
}

TEST(AdditionsOnDevice, ARowThatATableHasNotIsNaN) {
  std::vector<float> table(4 * 8, 1);
  const Plan plan{.add = Add{.kind = Rows{.rows = 4,
                                          .width = 8,
                                          .table = Table::borrow(
                                              Tensor::dense(table.data(), DType::f32, {4, 8}))}}};
  const Numbers x(DType::f32, {1, 1, 2, 8});
  ASSERT_TRUE(position_vectors(additions_of(plan), {.first = 3}, embeddings(x)));
  EXPECT_EQ(x.view.get(0), 1);
  EXPECT_TRUE(std::isnan(x.view.get(8)));
}

TEST(AdditionsOnDevice, RefuseAnotherWidthAndRealPositions) {
  const Additions additions = additions_of(waves(64, 32, WaveLayout::interleaved));
  const Numbers x(DType::f32, {1, 1, 2, 32}), y(DType::f32, {1, 1, 2, 64});
  const std::vector<double> at(2);
  EXPECT_FALSE(position_vectors(additions, {}, embeddings(x)));
  EXPECT_TRUE(position_vectors(additions, {}, embeddings(y)));
  EXPECT_FALSE(position_vectors(additions, {.real_ids = at.data()}, embeddings(y)));
  EXPECT_FALSE(Additions::make(Plan{}, emulated()));
}

// --- biases --------------------------------------------------------------------------------------

constexpr Geometry geometry{.heads = 3, .kv_heads = 3, .head_dim = 64};

Plan with_values(Plan plan, std::vector<float>& memory) {
  auto& table = std::get<BiasTable>(*plan.bias);
  const auto numbers = random(3 * table.row_count, 5);
  memory.assign(numbers.begin(), numbers.end());
  table.values = Table::borrow(Tensor::dense(memory.data(), DType::f32, {3, table.row_count}));
  return plan;
}

class BiasOnDevice : public testing::TestWithParam<DType> {
 protected:
  // Keys from `first_key` on; the same bits as the host.
  static void expect_same(const Plan& plan, std::int64_t keys, std::int64_t padding = 0) {
    Numbers here(GetParam(), {1, 3, 4, keys}, padding), there(GetParam(), here.view.shape, padding);
    const auto made = Biases::make(plan, emulated());
    ASSERT_TRUE(made) << made.error().message();
    const auto map = [](const Numbers& x) {
      Tensor view = x.view;
      view.rank = 3;
      view.shape = {x.view.shape[1], x.view.shape[2], x.view.shape[3], 1};
      view.stride = {x.view.stride[1], x.view.stride[2], x.view.stride[3], 1};
      return view;
    };
    ASSERT_TRUE(
        posenc::bias(plan, Positions::range(300, 4), Positions::range(20, keys), map(here)));
    ASSERT_TRUE(bias(*made, {.first = 300}, {.first = 20}, map(there)));
    here.each([&](std::int64_t at) { EXPECT_EQ(there.view.get(at), here.view.get(at)) << at; });
  }
};
INSTANTIATE_TEST_SUITE_P(EveryType, BiasOnDevice, testing::ValuesIn(dtypes),
                         [](const auto& type) { return std::string(name(type.param)); });

TEST_P(BiasOnDevice, Slopes) { expect_same(*compile(Scheme(Alibi{}), geometry), 400); }
TEST_P(BiasOnDevice, SlopesOfTheDistanceInBothDirections) {
  expect_same(*compile(Scheme(Alibi{.symmetric = true}), geometry), 400);
}
TEST_P(BiasOnDevice, OddKeysGoOneByOne) { expect_same(*compile(Scheme(Alibi{}), geometry), 37, 1); }
TEST_P(BiasOnDevice, T5sBuckets) {
  std::vector<float> memory;
  expect_same(with_values(*compile(Scheme(T5{}), geometry), memory), 400);
}
TEST_P(BiasOnDevice, OneListForAllHeads) {
  std::vector<float> memory;
  Plan plan = with_values(*compile(Scheme(T5{.bidirectional = true}), geometry), memory);
  auto& table = std::get<BiasTable>(*plan.bias);
  table.values = Table::borrow(Tensor::dense(memory.data(), DType::f32, {1, table.row_count}));
  expect_same(plan, 64);
}

// What an attention's inner loop adds.
TEST(BiasOnDeviceAlone, AFunctionInFloat) {
  const Plan plan = *compile(Scheme(Alibi{}), geometry);
  const auto made = Biases::make(plan, emulated());
  ASSERT_TRUE(made);
  const DeviceBias<float> bias = made->in_float();
  for (const std::int64_t distance : {0, 1, 77, 16'777'216})
    for (std::int32_t head = 0; head < 3; ++head) {
      const double wanted = -std::get<Slopes>(*plan.bias).slope[static_cast<std::size_t>(head)] *
                            static_cast<double>(distance);
      EXPECT_NEAR(bias(head, distance), wanted, 0x1p-23 * std::abs(wanted));
    }
}

TEST(BiasOnDeviceAlone, ADistanceThatATableDoesNotReachIsNaN) {
  const float values[] = {1, 2, 3};
  const DeviceBias<float> bias{.values = values, .first = -1, .last = 1, .saturates = false};
  EXPECT_EQ(bias(0, 1), 3);
  EXPECT_TRUE(std::isnan(bias(0, 2)));
  EXPECT_TRUE(std::isnan(bias(0, -2)));
}

TEST(BiasOnDeviceAlone, RefusesOtherHeads) {
  const auto made = Biases::make(*compile(Scheme(Alibi{}), geometry), emulated());
  const Numbers x(DType::f32, {1, 2, 4, 8});
  Tensor out = x.view;
  out.rank = 3, out.shape = {2, 4, 8, 1}, out.stride = {8, 16, 1, 1};
  EXPECT_FALSE(bias(*made, {}, {}, out));
}

TEST(AdditionsOnDevice, NothingBesideATensorIsTouched) {
  const auto biases = Biases::make(*compile(Scheme(Alibi{}), geometry), emulated());
  for (const auto beside : {GuardedMemory::Beside::start, GuardedMemory::Beside::end})
    for (const DType dtype : dtypes)
      for (const std::int64_t width : {64, 6}) {
        const GuardedMemory memory(3 * static_cast<std::size_t>(width) * size_of(dtype), beside);
        for (const WaveLayout layout : {WaveLayout::interleaved, WaveLayout::concatenated})
          EXPECT_TRUE(position_vectors(additions_of(waves(width, width / 2, layout)), {},
                                       Tensor::dense(memory.data(), dtype, {1, 3, width})));
        EXPECT_TRUE(bias(*biases, {}, {}, Tensor::dense(memory.data(), dtype, {3, 1, width})));
      }
}

}  // namespace
}  // namespace posenc::cuda
