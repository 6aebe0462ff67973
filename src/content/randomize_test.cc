// What a scheme says of its lists and tables is enough to call it and to have all its gradients;
// and which random numbers they get.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <string>
#include <vector>

#include "posenc/tools.h"
#include "src/content/content_test.h"

namespace posenc {
namespace {

class EveryContentScheme : public testing::TestWithParam<SchemeInfo> {
 protected:
  static const SchemeInfo& about() { return GetParam(); }
  ContentScheme made() {
    ContentScheme scheme = *make_content_scheme(about().name);
    randomize(scheme, {.seed = 5, .heads = 4, .kv_heads = 2, .length = 9, .head_dim = 6});
    return scheme;
  }
  static Call call() {
    Call call{.heads = 4, .kv_heads = 2, .queries = 9, .keys = 9, .dim = 6};
    call.query_positions = call.key_positions = Positions::range(0, 9);
    call.fill();
    return call;
  }
};

TEST_P(EveryContentScheme, NamesWhatItRefersTo) {
  EXPECT_TRUE(about().reads);
  const auto has = [](const auto& list, std::string_view name) {
    return std::ranges::any_of(list, [&](const auto& each) { return each.name == name; });
  };
  for (const FieldInfo& field : about().fields) {
    EXPECT_FALSE(field.required && field.holds.axes.count == 0) << field.name;
    EXPECT_EQ(field.holds.axes.count > 0, field.kind == FieldKind::numbers) << field.name;
    EXPECT_FALSE(field.holds.learned && gradient_named(field.name) == nullptr) << field.name;
  }
  for (const TableInfo& table : about().tables) {
    const Holds& holds = table.holds;
    EXPECT_GT(holds.axes.count, 1U) << table.name;
    EXPECT_FALSE(holds.learned && gradient_named(table.name) == nullptr) << table.name;
    EXPECT_TRUE(holds.instead.empty() || has(about().fields, holds.instead)) << table.name;
    EXPECT_TRUE(holds.projection.same.empty() || has(about().tables, holds.projection.same));
    EXPECT_EQ(holds.axes.has(Axis::column), holds.projection.columns > 0) << table.name;
  }
}

TEST_P(EveryContentScheme, AttendsWithRandomNumbersAndLearnsAllThatItSays) {
  const Call given = call();
  const ContentScheme scheme = made();
  ASSERT_TRUE(attend(given.inputs(), scheme, {}, given.out.view));
  ContentGradients gradients;
  std::deque<std::vector<double>> memory;
  for (const auto& [name, shape] : learned(scheme)) {
    Tensor view{.dtype = DType::f64, .rank = static_cast<int>(shape.size())};
    std::int64_t size = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; size *= shape[axis])
      view.shape[axis] = shape[axis], view.stride[axis] = size;
    view.data = memory.emplace_back(static_cast<std::size_t>(size), NAN).data();
    gradients.*gradient_named(name) = view;
  }
  const auto done = attend_backward(given.inputs(), scheme, {}, given.q.view, gradients);
  ASSERT_TRUE(done) << done.error().message();
  for (const std::vector<double>& gradient : memory)
    EXPECT_TRUE(std::ranges::all_of(gradient, [](double x) { return std::isfinite(x); }));
}

TEST_P(EveryContentScheme, RefusesGradientsOfWhatItDoesNotTake) {
  const Call given = call();
  double nothing[1];
  for (const SchemeInfo& other : all_content_schemes()) {
    for (const TableInfo& table : other.tables) {
      if (std::ranges::any_of(about().tables,
                              [&](const TableInfo& own) { return own.name == table.name; }))
        continue;
      ContentGradients gradients;
      gradients.*gradient_named(table.name) = Tensor::dense(nothing, {1});
      const auto done = attend_backward(given.inputs(), made(), {}, given.q.view, gradients);
      ASSERT_FALSE(done) << table.name;
      EXPECT_EQ(done.error().rule, std::string(about().name) + " learns no " +
                                       std::string(table.name) + " to have a gradient");
    }
  }
}

TEST_P(EveryContentScheme, KeepsWhatItWasGiven) {
  ContentScheme scheme = made();
  const ContentScheme before = scheme;
  randomize(scheme, {.seed = 6, .heads = 4, .kv_heads = 2, .length = 9, .head_dim = 6});
  EXPECT_EQ(scheme, before);
}

INSTANTIATE_TEST_SUITE_P(Content, EveryContentScheme, testing::ValuesIn(all_content_schemes()),
                         [](const auto& entry) { return std::string(entry.param.name); });

std::vector<double> numbers_of(const ContentScheme& scheme, std::string_view table) {
  return *table_of(scheme, table)->owned;
}

TEST(Randomize, TablesOfAHeadStandOneBehindTheOther) {
  ContentScheme scheme = Path{};
  randomize(scheme, {.seed = 3, .heads = 2, .length = 4, .head_dim = 5});
  const std::vector<double> x = normals(3, 2 * 4 * 6);
  for (std::size_t head = 0; head < 2; ++head) {
    const double* const of_head = x.data() + head * 4 * 6;
    for (std::size_t t = 0; t < 4; ++t) {
      const double* const row = of_head + t * 5;
      double squares = 0;
      for (int c = 0; c < 5; ++c) squares += row[c] * row[c];
      for (std::size_t c = 0; c < 5; ++c)
        EXPECT_EQ(numbers_of(scheme, "w")[(head * 4 + t) * 5 + c], row[c] / std::sqrt(squares));
      EXPECT_EQ(numbers_of(scheme, "beta")[head * 4 + t], 2 / (1 + std::exp(-of_head[20 + t])));
    }
  }
  EXPECT_FALSE(*table_of(scheme, "log_gates"));
}

TEST(Randomize, TokensThatAreAlikeSayTheSame) {
  ContentScheme scheme = Forgetting{};
  randomize(scheme, {.seed = 3, .heads = 2, .length = 3, .open = 1, .alike = true});
  std::vector<double> expected;
  for (const double x : normals(3, 2))
    expected.insert(expected.end(), 3, -std::log1p(std::exp(-1 - x)));
  EXPECT_EQ(numbers_of(scheme, "log_gates"), expected);
}

TEST(Randomize, AFieldThatSaysAsMuchLeavesNothingToDraw) {
  ContentScheme scheme = Forgetting{.gate_bias = {1}};
  randomize(scheme, {});
  EXPECT_FALSE(*table_of(scheme, "log_gates"));
}

TEST(Randomize, ANetworkHasTheUnitsOfItsFirstLayer) {
  ContentScheme scheme = Fire{.hidden_weight = {1, 2, 3}};
  randomize(scheme, {.seed = 3, .heads = 2});
  const std::vector<double> x = normals(3, 3 + 6 + 2);
  const Fire& fire = std::get<Fire>(scheme);
  EXPECT_EQ(fire.hidden_bias, std::vector(x.begin(), x.begin() + 3));
  EXPECT_EQ(fire.output_weight, std::vector(x.begin() + 3, x.begin() + 9));
  EXPECT_EQ(fire.output_bias, std::vector(x.begin() + 9, x.end()));
}

}  // namespace
}  // namespace posenc
