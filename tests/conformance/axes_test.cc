// Rotations by several axes as diffusion transformers and Ernie 4.5 VL make them, their configurations read by posenc.
#include <numeric>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

// The record's vectors, [token][head_dim], each rotated at the ids of its token.
std::vector<double> rotated_by_ids(const Json& record) {
  const Expected<Model> model = read_config(record.at("config").dump());
  EXPECT_TRUE(model) << (model ? "" : model.error().message());
  if (!model) return {};
  const Expected<Plan> plan = compile(model->groups.at(0));
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message());
  const auto ids = numbers<std::int64_t>(record.at("ids"));
  const auto at = Positions::ids(ids, record.at("axes").get<std::int64_t>());
  if (!plan || !at) return {};
  auto rows = numbers<double>(record.at("x"));
  const Tensor x = Tensor::dense(rows.data(), {1, 1, record.at("tokens").get<std::int64_t>(),
                                               record.at("head_dim").get<std::int64_t>()});
  EXPECT_TRUE(rotate(*plan, x, *at, Side::query, x));
  return rows;
}

std::vector<double> products(const std::vector<double>& rows, std::size_t dim) {
  std::vector<double> all;
  for (auto a = rows.begin(); a != rows.end(); a += static_cast<std::ptrdiff_t>(dim))
    for (auto b = rows.begin(); b != rows.end(); b += static_cast<std::ptrdiff_t>(dim))
      all.push_back(std::inner_product(a, a + static_cast<std::ptrdiff_t>(dim), b, 0.0));
  return all;
}

// Their cos and sin are floats, and some form the angle in float: ids are below 64.
constexpr double rounded = 2e-5;

TEST(SeveralAxes, AreRotatedAsByTheModelsOwnCode) {
  for (const Json& record : records("axes")) {
    if (record.at("out").is_null()) continue;
    SCOPED_TRACE(record.at("config").dump());
    expect_close(rotated_by_ids(record), numbers<double>(record.at("out")), rounded);
  }
}

TEST(SeveralAxes, IdsThatAreAllMovedGiveTheSameProducts) {
  for (const Json& record : records("axes")) {
    if (!record.contains("products")) continue;
    SCOPED_TRACE(record.at("config").dump());
    expect_close(products(rotated_by_ids(record), record.at("head_dim").get<std::size_t>()),
                 numbers<double>(record.at("products")), 10 * rounded);
  }
}

TEST(SeveralAxes, AClassThatIsGivenNothingHasItsOwnDefaults) {
  for (const Json& record : load("golden/axes.json").at("defaults")) {
    const std::string type = record.at("class");
    SCOPED_TRACE(type);
    const Expected<Model> model = read_config(R"({"_class_name": ")" + type + "\"}");
    ASSERT_TRUE(model) << model.error().message();
    const LayerGroup& group = model->groups.at(0);
    const Axial& axial = std::get<Axial>(group.schemes.at(0));
    if (record.contains("axes_dim")) {
      EXPECT_EQ(axial.axes_dim, numbers<std::int64_t>(record.at("axes_dim")));
    }
    EXPECT_EQ(axial.rope_theta, record.value("rope_theta", 10000.0));
    EXPECT_EQ(group.geometry.heads, record.at("heads"));
    EXPECT_EQ(group.geometry.kv_heads, record.value("kv_heads", group.geometry.heads));
    EXPECT_EQ(group.geometry.head_dim, record.value("head_dim", group.geometry.head_dim));
    EXPECT_EQ(std::ssize(group.layers),
              record.at("layers").get<int>() + record.value("single_layers", 0));
  }
}

}  // namespace
}  // namespace posenc::golden
