// Configurations that are easily read otherwise than transformers reads them, against what its own
// code makes of each (tests/peers/readings.py): what rotates a layer's keys, what its mask shows,
// the scale of its logits.
#include <algorithm>
#include <cmath>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

class Reading : public testing::TestWithParam<Case> {
 protected:
  static const Json& record() { return GetParam().record(); }
};

std::string codes(const Model& model) {
  std::string all;
  for (const Warning& warning : model.warnings) all += (all.empty() ? "" : " ") + warning.code;
  return all;
}

// The layer in one of the model's stacks: encoders have no text.
const LayerGroup* layer_of(const Model& model, std::int64_t layer) {
  const LayerGroup* group = find_group(model, layer, Stack::text);
  return group ? group : find_group(model, layer, Stack::encoder);
}

// Layers that attend, in order: of a recurrence's, the probe sees nothing.
std::vector<std::int64_t> attending(const Model& model) {
  std::vector<std::int64_t> layers;
  for (const LayerGroup& group : model.groups) {
    if (group.mixer != Mixer::attention) continue;
    layers.insert(layers.end(), group.layers.begin(), group.layers.end());
  }
  std::ranges::sort(layers);
  return layers;
}

void expect_rotation(const Plan& plan, const Json& want) {
  ASSERT_EQ(!plan.rotate, want.is_null());
  if (!plan.rotate) return;
  EXPECT_EQ(plan.rotate->slice.rotary_dim, want.at("rotary_dim"));
  EXPECT_EQ(plan.rotate->slice.first_dim, want.at("first_dim"));
  // Latent attention reorders the channels first, so that neighbours become halves.
  if (plan.rotate->slice.first_dim == 0) {
    EXPECT_EQ(name(plan.rotate->slice.pairing), want.at("pairing").get<std::string>());
  }
  EXPECT_NEAR(plan.rotate->amplitude, want.at("attention_factor"), 1e-12);
  expect_relative(pair_frequencies(*plan.rotate), numbers<double>(want.at("inv_freq")),
                  kFrequencyF32);
}

void expect_layer(const LayerGroup& group, const Json& want) {
  const auto plan = compile(group);
  ASSERT_TRUE(plan) << plan.error().message();
  expect_rotation(*plan, want.at("rotation"));
  EXPECT_EQ(group.geometry.head_dim, want.at("head_dim"));
  if (want.at("causal").is_null()) return;  // attention written out: no mask to look at
  EXPECT_EQ(group.causal, want.at("causal").get<bool>());
  EXPECT_EQ(group.chunked, want.at("chunked").get<bool>());
  const Json& window = want.at("window");
  ASSERT_EQ(group.window.has_value(), !window.is_null());
  if (group.window && group.causal) {
    EXPECT_EQ(*group.window, window);
  }
  if (group.window && !group.causal) {
    EXPECT_EQ(*group.window / 2, want.at("after"));
  }
  EXPECT_NEAR(plan->logits.multiplier / std::sqrt(group.geometry.head_dim), want.at("scaling"),
              1e-12);
}

TEST_P(Reading, IsThatOfTransformers) {
  const auto model = read_config(record().at("config").dump());
  ASSERT_TRUE(model) << model.error().message();
  if (record().contains("warning")) {
    const auto code = record().at("warning").get<std::string>();
    EXPECT_NE(std::ranges::find(model->warnings, code, &Warning::code), model->warnings.end())
        << code << " is not among " << codes(*model);
    return;
  }
  const Json& layers = record().at("layers");
  const std::vector<std::int64_t> attend = attending(*model);
  ASSERT_EQ(attend.size(), layers.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    SCOPED_TRACE("layer " + std::to_string(attend[i]));
    const LayerGroup* group = layer_of(*model, attend[i]);
    ASSERT_TRUE(group);
    expect_layer(*group, record().at("sets").at(layers[i].get<std::size_t>()));
  }
}

INSTANTIATE_TEST_SUITE_P(, Reading, testing::ValuesIn(cases("readings")),
                         [](const auto& each) { return test_name(each.param.name); });

}  // namespace
}  // namespace posenc::golden
