// What is added to embeddings and logits, and how wrong arguments are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "posenc/apply.h"

namespace posenc {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Plan waves(std::int64_t width, std::vector<double> frequency,
           WaveLayout layout = WaveLayout::interleaved) {
  Plan plan;
  plan.add =
      Add{.kind = Waves{.width = width, .layout = layout, .frequency = std::move(frequency)}};
  return plan;
}

Plan learned(std::vector<double> table, std::int64_t rows, std::int64_t width) {
  Plan plan;
  plan.add =
      Add{.kind = Rows{
              .rows = rows, .width = width, .table = Table::own(std::move(table), rows, width)}};
  return plan;
}

// The vectors of one sequence in double, [seq][width].
std::vector<double> vectors(const Plan& plan, const Positions& positions, std::int64_t width) {
  std::vector<double> out(static_cast<std::size_t>(positions.size() * width), NAN);
  const auto done =
      position_vectors(plan, positions, Tensor::dense(out.data(), {positions.size(), width}));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

std::string message(const Expected<void>& result) {
  return result ? "no error" : result.error().message();
}

void expect_error(const Expected<void>& result, const std::string& says) {
  EXPECT_NE(message(result).find(says), std::string::npos) << message(result);
}

// --- waves --------------------------------------------------------------------------------------

TEST(AddWaves, InterleavedIsSineThenCosineOfEachPair) {
  EXPECT_EQ(vectors(waves(4, {1, 0.5}), Positions::range(3, 1), 4),
            (std::vector{std::sin(3.0), std::cos(3.0), std::sin(1.5), std::cos(1.5)}));
}

TEST(AddWaves, ConcatenatedIsAllSinesThenAllCosines) {
  EXPECT_EQ(vectors(waves(4, {1, 0.5}, WaveLayout::concatenated), Positions::range(3, 1), 4),
            (std::vector{std::sin(3.0), std::sin(1.5), std::cos(3.0), std::cos(1.5)}));
}

TEST(AddWaves, LastPairOfAnOddWidthMayLackItsCosine) {
  EXPECT_EQ(vectors(waves(3, {1, 0.5}), Positions::range(3, 1), 3),
            (std::vector{std::sin(3.0), std::cos(3.0), std::sin(1.5)}));
  EXPECT_EQ(vectors(waves(3, {1, 0.5}, WaveLayout::concatenated), Positions::range(3, 1), 3),
            (std::vector{std::sin(3.0), std::sin(1.5), std::cos(3.0)}));
}

TEST(AddWaves, ChannelsNoPairReachesAreZero) {
  EXPECT_EQ(vectors(waves(5, {1}), Positions::range(3, 1), 5),
            (std::vector{std::sin(3.0), std::cos(3.0), 0.0, 0.0, 0.0}));
}

TEST(AddWaves, OffsetMovesTheRowAndOneRowMayBeZero) {
  Plan plan = waves(2, {1});
  auto& part = std::get<Waves>(plan.add->kind);
  part.row_offset = 2;
  part.zero_row = 3;
  EXPECT_EQ(vectors(plan, Positions::range(0, 3), 2),
            (std::vector{std::sin(2.0), std::cos(2.0), 0.0, 0.0, std::sin(4.0), std::cos(4.0)}));
}

// vector(p + k) = M_k vector(p), M_k = [[cos kω, sin kω], [−sin kω, cos kω]] on each (sin, cos).
TEST(AddWaves, ShiftIsALinearMapThatDoesNotDependOnThePosition) {
  const double omega = 0.37;
  const Plan plan = waves(2, {omega});
  for (const std::int64_t p : {0, 5, 100000}) {
    const auto from = vectors(plan, Positions::range(p, 1), 2);
    const auto to = vectors(plan, Positions::range(p + 7, 1), 2);
    const double c = std::cos(7 * omega), s = std::sin(7 * omega);
    EXPECT_NEAR(to[0], c * from[0] + s * from[1], 1e-12);
    EXPECT_NEAR(to[1], -s * from[0] + c * from[1], 1e-12);
  }
}

TEST(AddWaves, CosinesMayStandFirst) {
  Plan plan = waves(4, {1, 0.5}, WaveLayout::concatenated);
  std::get<Waves>(plan.add->kind).cosine_first = true;
  EXPECT_EQ(vectors(plan, Positions::range(3, 1), 4),
            (std::vector{std::cos(3.0), std::cos(1.5), std::sin(3.0), std::sin(1.5)}));
}

TEST(AddWaves, EveryBlockHasItsSinesBeforeItsCosines) {
  Plan plan = waves(6, {1, 0, 0, 0, 2, 3}, WaveLayout::concatenated);
  auto& part = std::get<Waves>(plan.add->kind);
  part.axes = 2;
  part.blocks = {2, 4};
  const std::vector<std::int64_t> ids = {5, 7};
  const auto got = vectors(plan, *Positions::ids(ids, 2), 6);
  const double wanted[] = {std::sin(5.0),  std::cos(5.0),  std::sin(14.0),
                           std::sin(21.0), std::cos(14.0), std::cos(21.0)};
  for (std::size_t c = 0; c < 6; ++c) EXPECT_NEAR(got[c], wanted[c], 1e-15) << c;
}

TEST(AddWaves, NeedPositionsOfAllTheirAxes) {
  Plan plan = waves(4, {1, 0, 0, 1});
  std::get<Waves>(plan.add->kind).axes = 2;
  std::vector<double> out(4);
  const std::vector<std::int64_t> ids = {1, 2, 3};
  expect_error(position_vectors(plan, *Positions::ids(ids, 3), Tensor::dense(out.data(), {1, 4})),
               "one axis or the 2 of the plan, got 3");
}

TEST(AddWaves, RefuseARealPositionThatIsNotFinite) {
  std::vector<double> out(2), at = {NAN};
  expect_error(position_vectors(waves(2, {1}), Tensor::dense(at.data(), {1, 1, 1}),
                                Tensor::dense(out.data(), {1, 1, 2})),
               "positions must be finite");
}

TEST(AddRows, HaveNoRealPositions) {
  std::vector<double> out(2), at = {0.5};
  expect_error(position_vectors(learned({1, 2}, 1, 2), Tensor::dense(at.data(), {1, 1, 1}),
                                Tensor::dense(out.data(), {1, 1, 2})),
               "must be waves where positions are real, got a learned table");
}

TEST(AddRows, OfSeveralAxesAreSummedAndNameTheAxisThatEnds) {
  Plan plan = learned({1, 2, 10, 20, 30, 40}, 3, 2);
  std::get<Rows>(plan.add->kind).axis_rows = {1, 2};
  const std::vector<std::int64_t> ids = {0, 0, 1, 0}, beyond = {0, 2};
  EXPECT_EQ(vectors(plan, *Positions::ids(ids, 2), 2), (std::vector<double>{31, 42, 11, 22}));
  std::vector<double> out(2);
  expect_error(
      position_vectors(plan, *Positions::ids(beyond, 2), Tensor::dense(out.data(), {1, 2})),
      "position 2 on axis 1 needs row 2 of its 2 rows");
}

// --- learned rows and the ramp ------------------------------------------------------------------

TEST(AddRows, ReadTheRowOfThePosition) {
  const std::vector<std::int64_t> ids = {2, 0};
  EXPECT_EQ(vectors(learned({1, 2, 3, 4, 5, 6}, 3, 2), *Positions::ids(ids), 2),
            (std::vector<double>{5, 6, 1, 2}));
}

TEST(AddRows, OffsetCountsRowsBeforePositionZero) {
  Plan plan = learned({1, 2, 3, 4, 5, 6}, 3, 2);
  std::get<Rows>(plan.add->kind).row_offset = 2;
  EXPECT_EQ(vectors(plan, Positions::range(0, 1), 2), (std::vector<double>{5, 6}));
}

TEST(AddRows, PaddingMarkedBeforeZeroReadsTheRowBelowTheFirst) {
  Plan plan = learned({1, 2, 3, 4, 5, 6}, 3, 2);
  std::get<Rows>(plan.add->kind).row_offset = 2;
  const std::vector<std::uint8_t> mask = {0, 1};
  EXPECT_EQ(vectors(plan, *Positions::from_mask(mask, 1, 0, -1), 2),
            (std::vector<double>{3, 4, 5, 6}));
}

TEST(AddRows, RowOutsideTheTableIsAnErrorThatNamesBoth) {
  const Plan plan = learned(std::vector<double>(1024), 512, 2);
  std::vector<double> out(2);
  expect_error(position_vectors(plan, Positions::range(512, 1), Tensor::dense(out.data(), {1, 2})),
               "position 512 needs row 512 of a table of 512 rows");
}

TEST(AddRows, RowBelowTheTableIsAnErrorNotItsLastRow) {
  const std::vector<std::uint8_t> mask = {0, 1};
  std::vector<double> out(4);
  expect_error(
      position_vectors(learned(std::vector<double>(6), 3, 2), *Positions::from_mask(mask, 1, 0, -1),
                       Tensor::dense(out.data(), {2, 2})),
      "needs row -1 of a table of 3 rows");
}

TEST(AddRows, ErrorLeavesOutAsItWas) {
  std::vector<double> x = {1, 1, 1, 1};
  const Tensor tensor = Tensor::dense(x.data(), {2, 2});
  EXPECT_FALSE(
      add(learned(std::vector<double>(4, 9), 2, 2), tensor, Positions::range(1, 2), tensor));
  EXPECT_EQ(x, (std::vector<double>{1, 1, 1, 1}));
}

TEST(AddRows, TableNotGivenIsAnError) {
  Plan plan;
  plan.add = Add{.kind = Rows{.rows = 4, .width = 2}};
  std::vector<double> out(2);
  expect_error(position_vectors(plan, Positions::range(0, 1), Tensor::dense(out.data(), {1, 2})),
               "table must be given");
}

TEST(AddRows, RowOffsetDoesNotOverflow) {
  Plan plan = learned(std::vector<double>(4), 2, 2);
  std::get<Rows>(plan.add->kind).row_offset = largest;
  std::vector<double> out(2);
  expect_error(position_vectors(plan, Positions::range(1, 1), Tensor::dense(out.data(), {1, 2})),
               "below 2^63");
}

TEST(AddRamp, PutsThePositionIntoItsChannel) {
  Plan plan;
  plan.add = Add{.kind = Ramp{.width = 3, .channel = 1, .scale = 0.5}};
  EXPECT_EQ(vectors(plan, Positions::range(6, 2), 3), (std::vector<double>{0, 3, 0, 0, 3.5, 0}));
}

// --- adding -------------------------------------------------------------------------------------

TEST(AddEmbedding, IsScaledBeforeTheSum) {
  Plan plan = learned({1, 2}, 1, 2);
  plan.add->embedding_scale = 4;
  std::vector<double> x = {10, 20};
  const Tensor tensor = Tensor::dense(x.data(), {1, 2});
  ASSERT_TRUE(add(plan, tensor, Positions::range(0, 1), tensor));
  EXPECT_EQ(x, (std::vector<double>{41, 82}));
}

TEST(AddEmbedding, EverySequenceOfABatchHasItsPositions) {
  const std::vector<std::uint8_t> mask = {1, 1, 0, 1};
  std::vector<double> x(4);
  const Tensor tensor = Tensor::dense(x.data(), {2, 2, 1});
  ASSERT_TRUE(add(learned({5, 7}, 2, 1), tensor, *Positions::from_mask(mask, 2), tensor));
  EXPECT_EQ(x, (std::vector<double>{5, 7, 5, 5}));
}

// In float the sum would round twice; 1 + 2^-9 + 2^-25 must not become a bfloat16 tie.
TEST(AddEmbedding, SixteenBitSumsAreRoundedOnce) {
  const double tie = 0x1p-8;  // half of bfloat16's step above 1
  std::uint16_t bits = double_to_bfloat16(1);
  const Tensor tensor = Tensor::dense(&bits, DType::bf16, {1, 1});
  ASSERT_TRUE(add(learned({tie + 0x1p-40}, 1, 1), tensor, Positions::range(0, 1), tensor));
  EXPECT_EQ(bits, double_to_bfloat16(1) + 1);
}

TEST(AddEmbedding, TransposedViewsAreReadByTheirStrides) {
  std::vector<double> x = {1, 2, 3, 4, 5, 6};
  const Tensor view =
      Tensor::dense(x.data(), {3, 2}).swapped(0, 1);  // two tokens of three channels
  ASSERT_TRUE(add(learned({10, 20, 30, 40, 50, 60}, 2, 3), view, Positions::range(0, 2), view));
  EXPECT_EQ(x, (std::vector<double>{11, 42, 23, 54, 35, 66}));
}

TEST(AddEmbedding, NothingIsAddedToNothing) {
  const Tensor none = Tensor::dense(nullptr, DType::f32, {2, 0, 4});
  EXPECT_EQ(message(add(waves(4, {1, 0.5}), none, Positions::range(0, 0), none)), "no error");
}

TEST(AddErrors, PlanThatAddsNothing) {
  std::vector<double> x(2);
  const Tensor tensor = Tensor::dense(x.data(), {1, 2});
  expect_error(add(Plan{}, tensor, Positions::range(0, 1), tensor),
               "RoPE and biases act in attention");
}

TEST(AddErrors, WidthOrSeqThatDoesNotMatch) {
  std::vector<double> x(6);
  const Tensor tensor = Tensor::dense(x.data(), {2, 3});
  expect_error(add(waves(4, {1}), tensor, Positions::range(0, 2), tensor),
               "width must be the plan's 4, got 3");
  expect_error(add(waves(3, {1}), tensor, Positions::range(0, 3), tensor),
               "a position for each of 2 tokens, got 3");
}

// --- bias ---------------------------------------------------------------------------------------

std::vector<double> biases(const Plan& plan, const Positions& queries, const Positions& keys,
                           std::int64_t heads) {
  std::vector<double> out(static_cast<std::size_t>(heads * queries.size() * keys.size()), NAN);
  const auto done =
      bias(plan, queries, keys, Tensor::dense(out.data(), {heads, queries.size(), keys.size()}));
  EXPECT_TRUE(done) << done.error().message();
  return out;
}

TEST(Bias, SlopesFallWithTheDistanceIntoThePast) {
  Plan plan;
  plan.bias = Slopes{.slope = {0.5, 0.25}};
  EXPECT_EQ(biases(plan, Positions::range(2, 1), Positions::range(0, 4), 2),
            (std::vector<double>{-1, -0.5, 0, 0.5, -0.5, -0.25, 0, 0.25}));
}

TEST(Bias, BidirectionalSlopesFallOnBothSides) {
  Plan plan;
  plan.bias = Slopes{.slope = {0.5}, .bidirectional = true};
  EXPECT_EQ(biases(plan, Positions::range(2, 1), Positions::range(0, 4), 1),
            (std::vector<double>{-1, -0.5, 0, -0.5}));
}

TEST(Bias, TableIsReadByDistance) {
  Plan plan;
  plan.bias = BiasTable{.rows = {.first = 0, .row = {2, 1, 0}},
                        .row_count = 3,
                        .values = Table::own({1, 2, 3, 10, 20, 30}, 2, 3)};
  EXPECT_EQ(biases(plan, Positions::range(2, 1), Positions::range(0, 4), 2),
            (std::vector<double>{1, 2, 3, 3, 10, 20, 30, 30}));
}

TEST(Bias, OneRowOfValuesServesAllHeads) {
  Plan plan;
  plan.bias = BiasTable{.rows = {.row = {0}}, .row_count = 1, .values = Table::own({7}, 1, 1)};
  EXPECT_EQ(biases(plan, Positions::range(0, 1), Positions::range(0, 1), 3),
            (std::vector<double>{7, 7, 7}));
}

TEST(Bias, PlanWithoutOneGivesZeros) {
  EXPECT_EQ(biases(Plan{}, Positions::range(0, 1), Positions::range(0, 2), 1),
            (std::vector<double>{0, 0}));
}

TEST(Bias, AnyNumberOfThreadsGivesTheSameBits) {
  const Plan plan = {.bias = Slopes{.slope = {0.5, 0.25, 0.125}}};
  const auto by = [&](int threads) {
    std::vector<double> out(3 * 101 * 203);
    EXPECT_TRUE(bias(plan, Positions::range(102, 101), Positions::range(0, 203),
                     Tensor::dense(out.data(), {3, 101, 203}), {threads}));
    return out;
  };
  const auto one = by(1);
  for (const int threads : {0, 2, 7}) EXPECT_EQ(by(threads), one) << threads;
}

TEST(BiasErrors, HeadsDistanceAndMissingTable) {
  std::vector<double> out(2);
  const Tensor tensor = Tensor::dense(out.data(), {2, 1, 1});
  const Positions zero = Positions::range(0, 1), far = Positions::range(9, 1);
  Plan plan;
  plan.bias = Slopes{.slope = {1, 1, 1}};
  expect_error(bias(plan, zero, zero, tensor), "for 3 heads, got 2");
  plan.bias = BiasTable{.rows = {.row = {0}, .saturates = false}, .row_count = 1};
  expect_error(bias(plan, zero, zero, tensor), "must be given");
  std::get<BiasTable>(*plan.bias).values = Table::own({7}, 1, 1);
  expect_error(bias(plan, far, zero, tensor), "compile for a longer length");
}

// --- arguments that rotate refuses --------------------------------------------------------------

class RotateErrors : public testing::Test {
 protected:
  RotateErrors() {
    plan.rotate = Rotate{.slice = {.rotary_dim = 4}, .frequencies = {.radians = {1, 0.1}}};
  }
  Expected<void> rotated(const Tensor& from, const Tensor& out) const {
    return rotate(plan, from, Positions::range(0, 3), Side::query, out);
  }
  Plan plan;
  std::vector<double> storage = std::vector<double>(64);
  Tensor x = Tensor::dense(storage.data(), {2, 3, 4});
};

TEST_F(RotateErrors, GoodArgumentsAreAccepted) { EXPECT_EQ(message(rotated(x, x)), "no error"); }

TEST_F(RotateErrors, TensorNotGiven) { expect_error(rotated(Tensor{}, x), "x must be given"); }

TEST_F(RotateErrors, ShapesThatDiffer) {
  expect_error(rotated(x, Tensor::dense(storage.data(), {2, 4, 3})), "the shape [1, 2, 3, 4]");
}

TEST_F(RotateErrors, DtypesThatDiffer) {
  expect_error(rotated(x, Tensor::dense(storage.data(), DType::f32, {2, 3, 4})),
               "dtype float64, got float32");
}

TEST_F(RotateErrors, InPlaceThroughAnotherView) {
  const Tensor square = Tensor::dense(storage.data(), {3, 3, 4});
  expect_error(rotated(square, square.swapped(0, 1)), "same view");
}

TEST_F(RotateErrors, TheInputsMemoryShifted) {
  for (const std::int64_t shift : {1, 4, 12, -1}) {
    const Tensor in = Tensor::dense(storage.data() + 24, {2, 3, 4}),
                 out = Tensor::dense(storage.data() + 24 + shift, {2, 3, 4});
    expect_error(rotated(in, out), "the input itself or memory apart from it");
  }
}

TEST_F(RotateErrors, NeighboursInOneMemoryAreNone) {
  // Queries into the place of the keys, as projections lay them: [token][3][head][channel].
  const auto part = [&](std::int64_t which) {
    Tensor view = Tensor::dense(storage.data() + which * 8, {1, 2, 2, 4});
    view.stride[1] = 4, view.stride[2] = 24;
    return view;
  };
  EXPECT_TRUE(rotate(plan, part(0), Positions::range(0, 2), Side::query, part(1)));
  EXPECT_TRUE(rotate(plan, part(1), Positions::range(0, 2), Side::query, part(0)));
}

TEST_F(RotateErrors, OutputsThatShareAnElement) {
  Tensor out = Tensor::dense(storage.data() + 32, {2, 3, 4});
  out.stride[0] = 0;
  expect_error(rotated(x, out), "an element of its own");
}

TEST_F(RotateErrors, PositionsThatAreTooFew) {
  expect_error(rotate(plan, x, Positions::range(0, 2), Side::query, x), "each of 3 tokens, got 2");
}

TEST_F(RotateErrors, PositionsOfAnotherBatch) {
  const std::vector<std::int64_t> ids(6, 1);
  expect_error(rotate(plan, x, *Positions::ids(ids, 1, 2), Side::query, x),
               "one sequence or of all 1, got 2");
}

TEST_F(RotateErrors, PositionsWithAxesThePlanDoesNotKnow) {
  const std::vector<std::int64_t> ids(9, 1);
  expect_error(rotate(plan, x, *Positions::ids(ids, 3), Side::query, x),
               "one axis or the 1 of the plan, got 3");
}

TEST_F(RotateErrors, SliceBeyondTheHead) {
  plan.rotate->slice.first_dim = 1;
  expect_error(rotated(x, x), "within head_dim 4, got channels from 1, 4 of them");
}

TEST_F(RotateErrors, HeadsOtherThanTheFrequencies) {
  plan.rotate->frequencies.heads = 3;
  plan.rotate->frequencies.radians.assign(6, 1);
  expect_error(rotated(x, x), "of 3 heads, got 2");
}

TEST_F(RotateErrors, FrequenciesFewerThanThePlanSays) {
  plan.rotate->frequencies.radians = {1};
  expect_error(rotated(x, x), "frequencies must hold 1 x 1 x 2 numbers, [head][axis][pair], got 1");
}

TEST_F(RotateErrors, PositionsBeyondTheLengthCompiledFor) {
  plan.valid = Lengths{0, 2};
  expect_error(rotated(x, x), "below 2, the longest length for which this plan holds, got 2");
}

TEST_F(RotateErrors, HostileShapesNeitherWrapNorRead) {
  const std::int64_t big = std::int64_t{1} << 40;
  const Tensor huge = Tensor::dense(storage.data(), {big, big, 4});
  expect_error(rotated(huge, huge), "must fit in memory");
  const Tensor negative = Tensor::dense(storage.data(), {2, -3, 4});
  expect_error(rotated(negative, negative), "no negative extent, got [2, -3, 4]");
  Tensor strided = x;
  strided.stride[0] = std::numeric_limits<std::int64_t>::min();
  expect_error(rotated(strided, strided), "must fit in memory");
}

TEST_F(RotateErrors, HostileFirstPosition) {
  expect_error(rotate(plan, x, Positions::range(largest, 3), Side::query, x), "within 2^62 of 0");
}

}  // namespace
}  // namespace posenc
