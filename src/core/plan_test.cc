#include "posenc/plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

namespace posenc {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

Rotate rotation() {
  return {.slice = {.rotary_dim = 8}, .frequencies = {.radians = {1, 0.1, 0.01, 0.001}}};
}

TEST(PlanTable, OwnedTablesWithTheSameNumbersAreEqual) {
  EXPECT_EQ(Table::own({1, 2, 3, 4, 5, 6}, 2, 3), Table::own({1, 2, 3, 4, 5, 6}, 2, 3));
  EXPECT_NE(Table::own({1, 2, 3, 4, 5, 6}, 2, 3), Table::own({1, 2, 3, 4, 5, 7}, 2, 3));
  EXPECT_NE(Table::own({1, 2, 3, 4, 5, 6}, 2, 3), Table::own({1, 2, 3, 4, 5, 6}, 3, 2));
}

TEST(PlanTable, BorrowedTablesAreEqualOnlyInTheSameMemory) {
  double a[2] = {1, 2}, b[2] = {1, 2};
  EXPECT_EQ(Table::borrow(Tensor::dense(a, {1, 2})), Table::borrow(Tensor::dense(a, {1, 2})));
  EXPECT_NE(Table::borrow(Tensor::dense(a, {1, 2})), Table::borrow(Tensor::dense(b, {1, 2})));
}

TEST(PlanTable, CopiesOfAPlanShareAnOwnedTable) {
  Plan plan;
  plan.bias = BiasTable{.row_count = 2, .values = Table::own({1, 2}, 1, 2)};
  const Plan copy = plan;
  EXPECT_EQ(std::get<BiasTable>(*copy.bias).values.values.data,
            std::get<BiasTable>(*plan.bias).values.values.data);
}

TEST(PlanTable, OwnedTableReadsRowByRow) {
  const Table table = Table::own({1, 2, 3, 4, 5, 6}, 2, 3);
  EXPECT_EQ(table.values.get(table.values.offset(1, 2)), 6);
}

TEST(PlanDistanceRows, EndsHoldWhereTheySaturate) {
  const DistanceRows rows{.first = -1, .row = {4, 5, 6}};
  EXPECT_EQ(*rows.at(-9), 4);
  EXPECT_EQ(*rows.at(0), 5);
  EXPECT_EQ(*rows.at(9), 6);
}

TEST(PlanDistanceRows, OutsideIsAnErrorWhereTheyDoNot) {
  const DistanceRows rows{.first = -1, .row = {4, 5, 6}, .saturates = false};
  EXPECT_EQ(*rows.at(1), 6);
  ASSERT_FALSE(rows.at(2));
  EXPECT_EQ(rows.at(2).error().got, "2");
}

TEST(PlanLogits, ScaleIsTheMultiplierWithoutGrowth) {
  EXPECT_EQ((Logits{.multiplier = 1.5}.query_scale(100000)), 1.5);
}

TEST(PlanLogits, ScaleGrowsByWholeFloors) {
  const Logits logits{.multiplier = 2, .beta = 0.1, .floor = 8192, .offset = 1};
  EXPECT_EQ(logits.query_scale(8190), 2);
  EXPECT_DOUBLE_EQ(logits.query_scale(8191), 2 * (1 + 0.1 * std::log(2.0)));
  EXPECT_DOUBLE_EQ(logits.query_scale(3 * 8192 + 5), 2 * (1 + 0.1 * std::log(4.0)));
}

TEST(PlanLogits, PaddingBeforeTheTextHasAFiniteScale) {
  EXPECT_EQ((Logits{.beta = 0.1, .floor = 8192}.query_scale(-1)), 1);
}

struct BadPlan {
  std::string says;
  std::function<void(Plan&)> spoil;
};

// A good plan with every part; each case spoils one number.
class PlanChecked : public testing::TestWithParam<BadPlan> {
 protected:
  static Plan good() {
    Plan plan;
    plan.add = Add{.kind = Waves{.width = 5, .frequency = {1, 0.1, 0.01}}};
    plan.rotate = rotation();
    plan.bias =
        BiasTable{.rows = {.row = {0, 1}}, .row_count = 2, .values = Table::own({1, 2}, 1, 2)};
    plan.relative = Relative{
        .rows = {.row = {0, 1}}, .row_count = 2, .key = Table::own(std::vector<double>(16), 2, 8)};
    plan.valid = Lengths{0, 10};
    return plan;
  }
};

TEST_F(PlanChecked, AGoodPlanComesBackAsItWas) {
  const auto plan = checked(good(), 8);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(*plan, good());
}

TEST_F(PlanChecked, TheEmptyPlanIsGood) { EXPECT_TRUE(checked(Plan{})); }

TEST_P(PlanChecked, NamesWhatIsWrong) {
  Plan plan = good();
  GetParam().spoil(plan);
  const auto result = checked(plan, 8);
  ASSERT_FALSE(result);
  EXPECT_NE(result.error().message().find(GetParam().says), std::string::npos)
      << result.error().message();
}

Waves& waves(Plan& plan) { return std::get<Waves>(plan.add->kind); }
BiasTable& table(Plan& plan) { return std::get<BiasTable>(*plan.bias); }

INSTANTIATE_TEST_SUITE_P(
    Mistakes, PlanChecked,
    testing::Values(
        BadPlan{"waves.width", [](Plan& p) { waves(p).width = 0; }},
        BadPlan{"at most a pair for two channels", [](Plan& p) { waves(p).width = 4; }},
        BadPlan{"inf at index 1", [](Plan& p) { waves(p).frequency[1] = inf; }},
        BadPlan{"waves.zero_row", [](Plan& p) { waves(p).zero_row = -2; }},
        BadPlan{"waves.axes", [](Plan& p) { waves(p).axes = 0; }},
        BadPlan{"frequencies must hold 2 x 1", [](Plan& p) { waves(p).axes = 2; }},
        BadPlan{"even number of channels, got 3", [](Plan& p) { waves(p).blocks = {2, 3}; }},
        BadPlan{"fit the width of 5, got 6", [](Plan& p) { waves(p).blocks = {2, 4}; }},
        BadPlan{"3 pairs for 4 channels", [](Plan& p) { waves(p).blocks = {4}; }},
        BadPlan{"waves.amplitude", [](Plan& p) { waves(p).amplitude = INFINITY; }},
        BadPlan{
            "rows.axis_rows must be rows.rows in all, 3",
            [](Plan& p) { p.add = Add{.kind = Rows{.rows = 3, .width = 2, .axis_rows = {1, 1}}}; }},
        BadPlan{"embedding_scale", [](Plan& p) { p.add->embedding_scale = NAN; }},
        BadPlan{"table.rows", [](Plan& p) { p.add = Add{.kind = Rows{.rows = 0, .width = 2}}; }},
        BadPlan{"must be [3, 2], got [2, 3]",
                [](Plan& p) {
                  const Table turned = Table::own(std::vector<double>(6), 2, 3);
                  p.add = Add{.kind = Rows{.rows = 3, .width = 2, .table = turned}};
                }},
        BadPlan{"ramp.channel",
                [](Plan& p) { p.add = Add{.kind = Ramp{.width = 2, .channel = 2}}; }},
        BadPlan{"even and positive, got 7", [](Plan& p) { p.rotate->slice.rotary_dim = 7; }},
        BadPlan{"hold 1 x 1 x 3", [](Plan& p) { p.rotate->slice.rotary_dim = 6; }},
        BadPlan{"hold 1 x 3 x 4", [](Plan& p) { p.rotate->frequencies.axes = 3; }},
        BadPlan{"rotate.axes must", [](Plan& p) { p.rotate->frequencies.axes = 0; }},
        BadPlan{"[head][axis][pair], got 4",
                [](Plan& p) { p.rotate->frequencies.heads = std::int64_t{1} << 62; }},
        BadPlan{"rotate.blocks", [](Plan& p) { p.rotate->slice.blocks = 3; }},
        BadPlan{"within head_dim 8", [](Plan& p) { p.rotate->slice.first_dim = 2; }},
        BadPlan{"nan at index 3", [](Plan& p) { p.rotate->frequencies.radians[3] = NAN; }},
        BadPlan{"amplitude", [](Plan& p) { p.rotate->amplitude = 0; }},
        BadPlan{"growth.factor",
                [](Plan& p) { p.rotate->kind = Plain{.growth = XposDecay{.factor = {1, 1}}}; }},
        BadPlan{"growth.scale",
                [](Plan& p) {
                  p.rotate->kind = Plain{.growth = XposDecay{.factor = {1, 1, 1, 1}, .scale = 0}};
                }},
        BadPlan{"phase.radians must hold 1 x 4",
                [](Plan& p) { p.rotate->kind = Plain{.phase = Phase{.radians = {1, 2}}}; }},
        BadPlan{"rotate.phase.heads",
                [](Plan& p) { p.rotate->kind = Plain{.phase = Phase{.heads = 0}}; }},
        BadPlan{"polar pairs must stand without rotated values",
                [](Plan& p) {
                  p.rotate->kind = Polar{};
                  p.rotate->values = Values::rotated_and_back;
                }},
        BadPlan{"mix.inputs must be 0 to the 4 pairs",
                [](Plan& p) { p.rotate->kind = Mix{.inputs = 5}; }},
        BadPlan{"mix.sine must hold 1 x 1 x 2",
                [](Plan& p) {
                  p.rotate->kind = Mix{.inputs = 1, .outputs = 2, .cosine = {1, 2}, .sine = {1}};
                }},
        BadPlan{"without rotated values beside",
                [](Plan& p) {
                  p.rotate->values = Values::rotated_and_back;
                  p.rotate->kind = Mix{};
                }},
        BadPlan{"a window or a chunk above 0, and not both, got 0 and 0",
                [](Plan& p) { p.rotate->kind = Regions{}; }},
        BadPlan{"regions must be 3, got 2",
                [](Plan& p) { p.rotate->kind = Regions{.chunk = 4, .region = {{}, {}}}; }},
        BadPlan{"divisor of 1 or more",
                [](Plan& p) {
                  p.rotate->kind = Regions{.window = 4, .region = {{}, {{.divisor = 0}}}};
                }},
        BadPlan{"without rotated values beside",
                [](Plan& p) {
                  p.rotate->values = Values::rotated_and_back;
                  p.rotate->kind = Regions{.window = 4, .region = {{}, {}}};
                }},
        BadPlan{"name a head", [](Plan& p) { p.bias = Slopes{}; }},
        BadPlan{"slopes must be a number above 0",
                [](Plan& p) { p.bias = Slopes{.slope = {1, -1}}; }},
        BadPlan{"rows must not be empty", [](Plan& p) { table(p).rows.row = {}; }},
        BadPlan{"rows below 2, got 2", [](Plan& p) { table(p).rows.row = {0, 2}; }},
        BadPlan{"rows.first must be a number of at least",
                [](Plan& p) { table(p).rows.first = std::numeric_limits<std::int64_t>::max(); }},
        BadPlan{"[heads or 1, 2], got [2, 1]",
                [](Plan& p) { table(p).values = Table::own({1, 2}, 2, 1); }},
        BadPlan{"at least one of its tables", [](Plan& p) { p.relative->uses_key = false; }},
        BadPlan{"head_dim], got [2, 4]",
                [](Plan& p) { p.relative->key = Table::own(std::vector<double>(8), 2, 4); }},
        BadPlan{"multiplier", [](Plan& p) { p.logits.multiplier = 0; }},
        BadPlan{"logits.floor", [](Plan& p) { p.logits.floor = 0; }},
        BadPlan{"valid lengths", [](Plan& p) { p.valid = Lengths{11, 10}; }}));

TEST(PlanMerged, PartsOfBothAreThere) {
  Plan absolute, rotary;
  absolute.add = Add{.kind = Ramp{.width = 2}};
  rotary.rotate = rotation();
  const auto both = merged(absolute, rotary);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->add, absolute.add);
  EXPECT_EQ(both->rotate, rotary.rotate);
}

TEST(PlanMerged, OrderDoesNotMatter) {
  Plan a, b;
  a.rotate = rotation();
  a.logits.multiplier = 2;
  a.valid = Lengths{0, 9};
  b.bias = Slopes{.slope = {1}};
  b.logits = Logits{.multiplier = 3, .beta = 0.1, .floor = 5};
  EXPECT_EQ(*merged(a, b), *merged(b, a));
}

TEST(PlanMerged, TwoRotationsAreAnError) {
  Plan plan;
  plan.rotate = rotation();
  ASSERT_FALSE(merged(plan, plan));
  EXPECT_EQ(merged(plan, plan).error().got, "two rotations");
}

// Both read the same positions.
TEST(PlanMerged, ABiasOfSeveralAxesNeedsThoseOfTheRotation) {
  Plan a, b;
  a.rotate = rotation();
  const DistanceRows rows{.row = {0}};
  b.bias = BiasTable{.rows = rows, .further_axes = {rows}, .row_count = 1};
  const auto both = merged(a, b);
  ASSERT_FALSE(both);
  EXPECT_TRUE(both.error().rule.contains("several axes")) << both.error().message();
}

TEST(PlanMerged, LogitMultipliersMultiply) {
  Plan a, b;
  a.logits = Logits{.multiplier = 2, .beta = 0.1, .floor = 8};
  b.logits.multiplier = 3;
  const auto both = merged(a, b);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->logits, (Logits{.multiplier = 6, .beta = 0.1, .floor = 8}));
}

TEST(PlanMerged, TwoGrowingLogitScalesAreAnError) {
  Plan plan;
  plan.logits.beta = 0.1;
  EXPECT_FALSE(merged(plan, plan));
}

TEST(PlanMerged, HoldsWhereBothHold) {
  Plan a, b;
  a.valid = Lengths{0, 100};
  b.valid = Lengths{50, 200};
  EXPECT_EQ(merged(a, b)->valid, (Lengths{50, 100}));
}

TEST(PlanMerged, NoCommonLengthIsAnError) {
  Plan a, b;
  a.valid = Lengths{0, 100};
  b.valid = Lengths{101, 200};
  EXPECT_FALSE(merged(a, b));
}

}  // namespace
}  // namespace posenc
