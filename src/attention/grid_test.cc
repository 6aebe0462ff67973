// Tables by distance where positions do not follow each other: pictures and their windows.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "posenc/schemes.h"
#include "src/attention/gradients_test.h"
#include "tests/kernel_memory.h"

namespace posenc {
namespace {
namespace of_grids {

class Grid : public EveryInstructionSet {};
INSTANTIATE_TEST_SUITE_P(Sets, Grid, testing::ValuesIn(detail::instruction_sets()),
                         [](const auto& each) { return std::string(each.param.name); });

GradientProblem picture(std::int64_t height, std::int64_t width, bool class_token,
                        std::vector<double>& table) {
  const GridPositions at = *grid_positions(height, width, class_token);
  GradientProblem p{.queries = at.queries, .keys = at.keys, .mask = {.causal = false}};
  Plan plan = *compile(GridBias{.class_token = class_token},
                       {.heads = p.heads, .grid_height = height, .grid_width = width});
  auto& bias = std::get<BiasTable>(*plan.bias);
  table = random(p.heads * bias.row_count, 31);
  bias.values = Table::borrow(Tensor::dense(table.data(), {p.heads, bias.row_count}));
  p.plan = plan;
  p.filled();
  return p;
}

void expect_reference(GradientProblem& p) {
  std::vector<double> out(p.out.size(), NAN);
  const auto done = attend(p.inputs(), p.plan, p.tensor(out, p.heads, p.queries));
  ASSERT_TRUE(done) << done.error().message();
  p.loss();
  for (std::size_t e = 0; e < out.size(); ++e) ASSERT_NEAR(out[e], p.out[e], 1e-11) << e;
}

// Windows whose rows are kept, pictures put together of runs, and both with a token that is no
// patch.
TEST_P(Grid, BiasesAreThoseOfPlainLoops) {
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {7, 7}, {3, 17}, {18, 20}, {40, 8}}) {
    for (const bool class_token : {false, true}) {
      std::vector<double> table;
      GradientProblem p = picture(height, width, class_token, table);
      expect_reference(p);
    }
  }
}

// Blocks of keys begin and end within rows of the picture; a table may be all heads' own.
TEST_P(Grid, BlocksOfKeysMayCutRowsOfAPicture) {
  std::vector<double> table;
  GradientProblem p = picture(17, 34, false, table);
  p.batch = 1;
  p.filled();
  expect_reference(p);
  auto& bias = std::get<BiasTable>(*p.plan.bias);
  bias.values = Table::borrow(Tensor::dense(table.data(), {1, bias.row_count}));
  p.filled();
  expect_reference(p);
}

// A part of a picture's patches looks at all of it.
TEST_P(Grid, QueriesMayBeSomeOfThePatches) {
  std::vector<double> table;
  GradientProblem p = picture(9, 30, false, table);
  p.batch = 1;
  p.queries = p.keys.slice(0, 100, 75);
  p.filled();
  expect_reference(p);
}

// The second has another width, then its rows in another order: what was found of the first says
// nothing of them.
TEST_P(Grid, SequencesMayHaveLargePicturesOfTheirOwn) {
  std::vector<double> table;
  GradientProblem p = picture(20, 30, false, table);
  const std::int64_t stride = p.keys.at(30) - p.keys.at(0);
  p.batch = 3;
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 600; ++t) ids.push_back(p.keys.at(t));
  for (std::int64_t t = 0; t < 600; ++t) ids.push_back(t / 30 * stride + t % 30 / 2);
  for (std::int64_t t = 0; t < 600; ++t) ids.push_back((19 - t / 30) * stride + t % 30);
  p.queries = p.keys = *Positions::ids(ids, 1, 3);
  p.filled();
  expect_reference(p);
}

// Every sequence has other positions: nothing may be kept of the one before.
TEST_P(Grid, SequencesMayHavePicturesOfTheirOwn) {
  std::vector<double> table;
  GradientProblem p = picture(4, 4, false, table);
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 16; ++t) ids.push_back(p.queries.at(t));
  for (std::int64_t t = 16; t-- > 0;) ids.push_back(p.queries.at(t));
  p.queries = p.keys = *Positions::ids(ids, 1, 2);
  expect_reference(p);
}

// Texts of a pack, longer than a table whose ends stand for all beyond: their positions do not
// follow each other.
TEST_P(Grid, TablesEndWithinARunOfKeys) {
  for (const bool bidirectional : {false, true}) {
    std::vector<double> table = random(4 * 8, 31);
    GradientProblem p{.batch = 1, .mask = {.causal = false}};
    p.queries = p.keys = *Positions::packed(std::vector<std::int64_t>{0, 70, 75, 130});
    p.plan = *compile(T5{.num_buckets = 8, .max_distance = 20, .bidirectional = bidirectional},
                      {.heads = p.heads});
    std::get<BiasTable>(*p.plan.bias).values =
        Table::borrow(Tensor::dense(table.data(), {p.heads, 8}));
    p.filled();
    expect_reference(p);
  }
}

TEST_P(Grid, MasksHideWhatTheyDoOnALine) {
  std::vector<double> table;
  GradientProblem p = picture(5, 6, false, table);
  std::vector<std::uint8_t> keep(60);
  for (std::size_t j = 0; j < keep.size(); ++j) keep[j] = j % 5 != 2;
  p.mask.keep = keep.data();
  p.filled();
  expect_reference(p);
  p.mask = {.causal = true, .window = 20};
  p.filled();  // the first mask's hidden keys are seen now
  expect_reference(p);
}

// Windows moved over a picture, in one call: each is what it is alone.
TEST_P(Grid, WindowsOfAPackAreThoseOfABatch) {
  constexpr std::int64_t size = 8, window = 4, shift = 2;
  std::vector<double> table;
  GradientProblem p = picture(window, window, false, table);
  const WindowPartition parts = *window_partition(size, size, window, shift);
  p.batch = 1;
  p.queries = p.keys = parts.positions;
  p.filled();
  expect_reference(p);
}

// Keys that a neighbourhood hides read rows of the table that are not theirs.
TEST_P(Grid, NeighbourhoodsAreThoseOfPlainLoops) {
  for (const std::int64_t dilation : {1, 2}) {
    constexpr std::int64_t height = 10, width = 8, reach = 3;
    const Neighbourhood around = *neighbourhood(height, width, reach, dilation);
    GradientProblem p{
        .batch = 1,
        .queries = around.positions,
        .keys = around.positions,
        .mask = {.causal = false, .keys = around.keys.data(), .key_count = around.key_count}};
    Plan plan = *compile(
        GridBias{.reach = reach},
        {.heads = p.heads, .grid_height = height / dilation, .grid_width = width / dilation});
    auto& bias = std::get<BiasTable>(*plan.bias);
    std::vector<double> table = random(p.heads * bias.row_count, 31);
    bias.values = Table::borrow(Tensor::dense(table.data(), {p.heads, bias.row_count}));
    p.plan = plan;
    p.filled();
    expect_reference(p);
  }
}

GradientProblem vectors(std::int64_t height, std::int64_t width) {
  const GridPositions at = *grid_positions(height, width);
  GradientProblem p{.queries = at.queries, .keys = at.keys, .mask = {.causal = false}};
  std::vector<double> rows = random((2 * height - 1) * gradient_dim, 41),
                      columns = random((2 * width - 1) * gradient_dim, 42);
  Decomposed scheme;
  scheme.row_vectors = Table::borrow(Tensor::dense(rows.data(), {2 * height - 1, gradient_dim}));
  scheme.column_vectors =
      Table::borrow(Tensor::dense(columns.data(), {2 * width - 1, gradient_dim}));
  p.plan = *compile(scheme, {.head_dim = gradient_dim, .grid_height = height, .grid_width = width});
  return p.filled();
}

TEST_P(Grid, VectorsMeetQueriesByRowsAndColumns) {
  for (const auto& [height, width] :
       {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 40}, {6, 7}, {3, 17}, {18, 20}, {40, 8}}) {
    SCOPED_TRACE(height);
    GradientProblem p = vectors(height, width);
    expect_reference(p);
  }
}

TEST_P(Grid, VectorsMeetQueriesOfAnyOrder) {
  GradientProblem p = vectors(5, 6);
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < 30; ++t) ids.push_back(p.queries.at(t));
  for (std::int64_t t = 0; t < 30; ++t) ids.push_back(p.queries.at(t * 7 % 30));
  p.queries = p.keys = *Positions::ids(ids, 1, 2);
  expect_reference(p);
}

TEST_P(Grid, VectorsMeetWhatMasksLeave) {
  GradientProblem p = vectors(5, 6);
  std::vector<std::uint8_t> keep(60);
  for (std::size_t j = 0; j < keep.size(); ++j) keep[j] = j % 5 != 2;
  p.mask = {.causal = true, .window = 20, .keep = keep.data()};
  p.filled();
  expect_reference(p);
}

TEST_P(Grid, VectorsMeetOnePatch) {
  GradientProblem p = vectors(5, 6);
  p.queries = *Positions::ids(std::vector<std::int64_t>{p.keys.at(17)});
  p.filled();
  expect_reference(p);
}

// A bias that stands beside them is added, not replaced.
TEST_P(Grid, VectorsStandBesideABias) {
  std::vector<double> table;
  GradientProblem p = vectors(5, 6);
  p.plan = *merged(p.plan, picture(5, 6, false, table).plan);
  expect_reference(p);
}

TEST(GridGradients, OfVectorsAreTheSlopesOfTheLoss) {
  GradientProblem p = vectors(2, 3);
  Relative& part = *p.plan.relative;
  part.uses_query = part.uses_value = true;
  for (const auto& [numbers, table] :
       {std::pair{&p.key, &part.key}, {&p.query, &part.query}, {&p.value, &part.value}}) {
    *numbers = random(part.row_count * gradient_dim, 61);
    *table = Table::borrow(Tensor::dense(numbers->data(), {part.row_count, gradient_dim}));
  }
  expect_gradients(p);
}

TEST(GridGradients, AreTheSlopesOfTheLoss) {
  for (const bool class_token : {false, true}) {
    std::vector<double> table;
    GradientProblem p = picture(2, 3, class_token, table);
    p.bias = table;
    auto& bias = std::get<BiasTable>(*p.plan.bias);
    bias.values = Table::borrow(Tensor::dense(p.bias.data(), {p.heads, bias.row_count}));
    expect_gradients(p);
  }
}

}  // namespace of_grids
}  // namespace
}  // namespace posenc
