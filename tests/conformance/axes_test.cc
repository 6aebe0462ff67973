// Rotations by several axes as diffusion transformers, texts with pictures (Ernie 4.5 VL, NeoMME)
// and towers of pictures make them, their configurations read by posenc; and by real positions.
#include <tuple>
#include <utility>

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
  const auto at = Positions::signed_ids(ids, record.at("axes").get<std::int64_t>());
  if (!plan || !at) return {};
  auto rows = numbers<double>(record.at("x"));
  const Tensor x = Tensor::dense(rows.data(), {1, 1, record.at("tokens").get<std::int64_t>(),
                                               record.at("head_dim").get<std::int64_t>()});
  EXPECT_TRUE(rotate(*plan, x, *at, Side::query, x));
  return rows;
}

// Their cos and sin are floats, and some form the angle in float: ids are below 64.
constexpr double rounded = 2e-5;

TEST(SeveralAxes, AreRotatedAsByTheModelsOwnCode) {
  for (const Json& record : records("axes")) {
    SCOPED_TRACE(record.at("config").dump());
    expect_close(rotated_by_ids(record), numbers<double>(record.at("out")), rounded);
  }
}

TEST(SeveralAxes, OfTowersAreRotatedAsByTheirOwnModules) {
  for (const Json& record : load("golden/towers.json").at("rotations")) {
    SCOPED_TRACE(record.at("config").dump());
    expect_close(rotated_by_ids(record), numbers<double>(record.at("out")), rounded);
  }
}

// Video by the second, pictures by area: positions that are no whole numbers.
TEST(RealPositions, AreRotatedAsByTheModelsOwnCode) {
  for (const Json& record : load("golden/axes.json").at("real_positions")) {
    SCOPED_TRACE(record.at("model").get<std::string>());
    const auto [tokens, heads, axes, dim] = std::tuple(
        record.at("tokens").get<std::int64_t>(), record.at("heads").get<std::int64_t>(),
        record.at("axes").get<std::int64_t>(), record.at("head_dim").get<std::int64_t>());
    auto frequency = numbers<double>(record.at("frequency"));
    const std::int64_t own = std::ssize(frequency) / (axes * dim / 2);
    Plan plan;
    plan.rotate =
        Rotate{.slice = {.pairing = record.at("pairing") == "halves" ? Pairing::halves
                                                                     : Pairing::interleaved,
                         .rotary_dim = dim},
               .frequencies = {.heads = own, .axes = axes, .radians = std::move(frequency)}};
    auto at = numbers<double>(record.at("at")), rows = numbers<double>(record.at("x"));
    std::vector<double> angle(static_cast<std::size_t>(own * tokens * dim / 2));
    const Tensor angles = Tensor::dense(angle.data(), {1, own, tokens, dim / 2});
    Tensor x = Tensor::dense(rows.data(), {1, tokens, heads, dim});
    std::swap(x.shape[1], x.shape[2]);
    std::swap(x.stride[1], x.stride[2]);
    ASSERT_TRUE(rotation_angles(plan, Tensor::dense(at.data(), {axes, 1, tokens}), angles));
    ASSERT_TRUE(rotate_by(plan, x, angles, Side::query, x));
    expect_close(rows, numbers<double>(record.at("out")), rounded);
  }
}

FieldValue field_value(const Json& of) {
  if (of.is_string()) return of.get<std::string>();
  if (of.is_array()) return numbers<double>(of);
  if (of.is_number_integer()) return of.get<std::int64_t>();
  return of.get<double>();
}

// Pictures and videos larger than training showed; cos and sin of these codes are floats.
TEST(AxisScalings, HaveTheFrequenciesAndMagnitudesOfTheirAuthorsCode) {
  for (const Json& record : records("axis_scalings")) {
    SCOPED_TRACE(record.at("fields").dump() + record.at("axes_dim").dump());
    Scheme scheme = Axial{.rope_theta = record.at("rope_theta"),
                          .axes_dim = numbers<std::int64_t>(record.at("axes_dim"))};
    ASSERT_TRUE(
        set_field(scheme, "axis_scaling", field_value(record.at("fields").at("axis_scaling"))));
    for (const auto& [name, value] : record.at("fields").items()) {
      const auto ok = set_field(scheme, name, field_value(value));
      ASSERT_TRUE(ok) << ok.error().message();
    }
    const auto frequency = numbers<double>(record.at("frequency")),
               magnitude = numbers<double>(record.at("magnitude"));
    const Expected<Plan> plan = compile(scheme, {.head_dim = 2 * std::ssize(frequency)});
    ASSERT_TRUE(plan) << plan.error().message();
    std::vector<double> ours(frequency.size()), times(frequency.size(), plan->rotate->amplitude);
    for (std::size_t r = 0; r < ours.size(); ++r) {
      for (std::int64_t axis = 0; axis < plan->rotate->frequencies.axes; ++axis)
        ours[r] += plan->rotate->at(0, axis, static_cast<std::int64_t>(r));
      if (!plan->rotate->magnitudes().empty()) times[r] *= plan->rotate->magnitudes()[r];
    }
    expect_close(ours, frequency, 2e-7);
    expect_close(times, magnitude, 2e-7);
  }
}

// Each is read, or refused by a reason of its own.
TEST(SeveralAxes, EveryTransformerOfDiffusersIsKnown) {
  int read = 0;
  const Json& classes = load("golden/axes.json").at("classes");
  for (const std::string type : classes) {
    SCOPED_TRACE(type);
    const Expected<Model> model = read_config(R"({"_class_name": ")" + type + "\"}");
    read += model ? 1 : 0;
    if (model) continue;
    const Error& why = model.error();
    EXPECT_TRUE(why.rule == "is known and not covered" || why.got == "false") << why.message();
    EXPECT_NE(why.cure, "");
  }
  EXPECT_EQ(read, 52);  // and the two of CogVideoX where the file asks for a rotation
}

TEST(SeveralAxes, AClassThatIsGivenNothingHasItsOwnDefaults) {
  for (const Json& record : load("golden/axes.json").at("defaults")) {
    const std::string type = record.at("class");
    SCOPED_TRACE(type);
    const Expected<Model> model = read_config(R"({"_class_name": ")" + type + "\"}");
    ASSERT_TRUE(model) << model.error().message();
    const LayerGroup& group = model->groups.at(0);
    const auto* const axial = std::get_if<Axial>(&group.schemes.at(0));
    if (record.contains("axes_dim")) {
      EXPECT_EQ(axial->axes_dim, numbers<std::int64_t>(record.at("axes_dim")));
    }
    EXPECT_EQ(axial ? axial->rope_theta : std::get<Rope>(group.schemes.at(0)).rope_theta,
              record.value("rope_theta", 10000.0));
    EXPECT_EQ(group.geometry.heads, record.value("heads", group.geometry.heads));
    EXPECT_EQ(group.geometry.kv_heads, record.value("kv_heads", group.geometry.heads));
    EXPECT_EQ(group.geometry.head_dim, record.value("head_dim", group.geometry.head_dim));
    EXPECT_EQ(std::ssize(group.layers),
              record.at("layers").get<int>() + record.value("single_layers", 0));
  }
}

}  // namespace
}  // namespace posenc::golden
