// Real configurations with RoPE: what the reader derives against what each model's code computes.
#include <map>
#include <optional>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

Json config_of(const Json& record) { return load(record.at("config").get<std::string>()); }

const Rope* rope_in(const LayerGroup& group) {
  for (const Scheme& scheme : group.schemes) {
    if (const Rope* rope = std::get_if<Rope>(&scheme)) return rope;
  }
  return nullptr;
}

class ZooRope : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    auto read = read_model(data_path(record().at("config").get<std::string>()));
    ASSERT_TRUE(read) << read.error().message();
    model_ = *std::move(read);
  }

  static const Json& record() { return GetParam().record(); }

  // A group of the text stack that uses a set of the record: any that rotates where all are alike.
  const LayerGroup* group_of(const std::string& label) const {
    if (record().contains("layers_set")) {
      const Json& layers = record().at("layers_set");
      for (std::size_t i = 0; i < layers.size(); ++i) {
        if (layers[i] == label) {
          return find_group(model_, static_cast<std::int64_t>(i), text_stack());
        }
      }
      return nullptr;
    }
    for (const LayerGroup& group : model_.groups) {
      if (group.stack == text_stack() && rope_in(group)) return &group;
    }
    return nullptr;
  }

  // ModernBERT is an encoder.
  Stack text_stack() const {
    return find_group(model_, 0, Stack::text) ? Stack::text : Stack::encoder;
  }

  Model model_;
};

TEST_P(ZooRope, FrequenciesOfEverySetAndLength) {
  for (const Json& set : record().at("sets")) {
    SCOPED_TRACE(set.at("label").get<std::string>() + ", length " + set.at("seq_len").dump());
    const LayerGroup* group = group_of(set.at("label"));
    ASSERT_NE(group, nullptr);
    const auto plan = compile(*group, length_of(set));
    ASSERT_TRUE(plan) << plan.error().message();
    ASSERT_TRUE(plan->rotate);
    expect_relative(pair_frequencies(*plan->rotate), numbers<double>(set.at("inv_freq_f64")),
                    kFrequencyF64);
    EXPECT_EQ(plan->rotate->slice.rotary_dim, set.at("rotary_dim"));
    EXPECT_NEAR(plan->rotate->amplitude, set.at("attention_factor"), 1e-12);
  }
}

TEST_P(ZooRope, FloatFrequenciesOfEverySetAndLength) {
  for (const Json& set : record().at("sets")) {
    SCOPED_TRACE(set.at("label").get<std::string>() + ", length " + set.at("seq_len").dump());
    const LayerGroup* group = group_of(set.at("label"));
    ASSERT_NE(group, nullptr);
    Geometry geometry = group->geometry;
    geometry.length = length_of(set);
    const auto scaled = rope_frequencies<float>(*rope_in(*group), geometry);
    ASSERT_TRUE(scaled) << scaled.error().message();
    expect_relative(scaled->frequency, numbers<double>(set.at("inv_freq_f32")), kFrequencyF32);
  }
}

TEST_P(ZooRope, SchemeIsNamedAsInTheFile) {
  for (const Json& set : record().at("sets")) {
    const LayerGroup* group = group_of(set.at("label"));
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(info(rope_in(*group)->scaling).name, set.at("rope_type").get<std::string>());
    EXPECT_EQ(rope_in(*group)->rope_theta, set.at("rope_theta"));
  }
}

TEST_P(ZooRope, Pairing) {
  const Pairing want = record().at("pairing") == "half" ? Pairing::halves : Pairing::interleaved;
  for (const LayerGroup& group : model_.groups) {
    const Rope* rope = rope_in(group);
    EXPECT_TRUE(!rope || group.stack != text_stack() || rope->pairing == want) << group.label;
  }
}

// Multi-head latent attention rotates the end of a head, after its channels without position.
TEST_P(ZooRope, RotatedSliceOfTheHead) {
  const Json config = config_of(record());
  const std::int64_t before = config.value("qk_nope_head_dim", 0);
  for (const Json& set : record().at("sets")) {
    const LayerGroup* group = group_of(set.at("label"));
    ASSERT_NE(group, nullptr);
    EXPECT_EQ(group->geometry.head_dim, before + set.at("head_dim").get<std::int64_t>());
    const auto plan = compile(*group);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->rotate->slice.first_dim, before);
  }
}

TEST_P(ZooRope, EveryLayerHasItsSet) {
  const bool by_use = record().contains("layers_use_rope"),
             by_set = record().contains("layers_set");
  std::map<std::string, double> theta;
  for (const Json& set : record().at("sets")) theta[set.at("label")] = set.at("rope_theta");
  std::size_t layers = 0;
  for (; const LayerGroup* group =
             find_group(model_, static_cast<std::int64_t>(layers), text_stack());
       ++layers) {
    SCOPED_TRACE("layer " + std::to_string(layers));
    const bool rotates = !by_use || record().at("layers_use_rope").at(layers) == 1;
    const auto plan = compile(*group);
    ASSERT_TRUE(plan) << plan.error().message();
    EXPECT_EQ(plan->rotate.has_value(), rotates);
    if (!rotates) continue;
    const std::string label = by_set ? record().at("layers_set").at(layers) : Json("all");
    EXPECT_EQ(rope_in(*group)->rope_theta, theta.at(label));
    EXPECT_TRUE(!by_set || group->window.has_value() == (label == "sliding_attention"));
  }
  EXPECT_GT(layers, 0u);
  EXPECT_TRUE(!by_use || layers == record().at("layers_use_rope").size());
  EXPECT_TRUE(!by_set || layers == record().at("layers_set").size());
}

// Before other multipliers: what the rotation alone asks of the logits.
TEST_P(ZooRope, SoftmaxScaleMultiplier) {
  const double want = record().value("softmax_scale_multiplier", 1.0);
  const LayerGroup* group = group_of(record().at("sets").front().at("label"));
  ASSERT_NE(group, nullptr);
  const auto plan = compile(Scheme{*rope_in(*group)}, group->geometry);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_NEAR(plan->logits.multiplier, want, 1e-12 * want);
}

TEST_P(ZooRope, MropeAxisOfEveryPair) {
  const Json& set = record().at("sets").front();
  const LayerGroup* group = group_of(set.at("label"));
  ASSERT_NE(group, nullptr);
  const auto plan = compile(*group);
  ASSERT_TRUE(plan) << plan.error().message();
  const Rotate& rotate = *plan->rotate;
  if (!set.contains("mrope_section")) {
    EXPECT_EQ(rotate.frequencies.axes, 1);
    return;
  }
  const auto section = numbers<std::int64_t>(set.at("mrope_section"));
  const bool interleaved = set.at("mrope_interleaved");
  ASSERT_EQ(rotate.frequencies.axes, 3);
  for (std::int64_t r = 0; r < rotate.pairs(); ++r) {
    std::int64_t axis = r < section[0] ? 0 : r < section[0] + section[1] ? 1 : 2;
    if (interleaved) {
      axis = r % 3 == 1 && r < 3 * section[1] ? 1 : r % 3 == 2 && r < 3 * section[2] ? 2 : 0;
    }
    for (std::int64_t a = 0; a < 3; ++a) {
      EXPECT_EQ(rotate.at(0, a, r) != 0, a == axis) << "pair " << r << ", axis " << a;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooRope, testing::ValuesIn(cases("zoo_rope")),
                         [](const auto& c) { return test_name(c.param.name); });

// Llama 4: the layers without RoPE sharpen their logits with the query's position.
TEST(ZooLlama4, LayersWithoutPositionHaveAQueryTemperature) {
  const auto model = read_model(data_path("zoo/llama-4-scout.json"));
  ASSERT_TRUE(model) << model.error().message();
  const LayerGroup* group = find_group(*model, 3, Stack::text);
  ASSERT_NE(group, nullptr);
  const auto plan = compile(*group);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->logits, (Logits{.beta = 0.1, .floor = 8192, .offset = 1}));
}

}  // namespace
}  // namespace posenc::golden
