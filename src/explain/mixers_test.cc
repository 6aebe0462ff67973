// What is said of layers that do not attend, and of those that attend beside them: of every family
// whose code reads layer types, with every word of them, and of every bundled configuration.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "posenc/explain.h"
#include "src/model/families/rows.h"

namespace posenc {
namespace {

constexpr std::string_view of_attention[] = {"mask",     "logit",   "√",     "ositional encoding",
                                             "rotat",    "window",  "query", "queries",
                                             "distance", "softmax", "sink"};

std::string all_said(const GroupExplanation& facts) {
  std::string text = facts.heading + " " + facts.amplitude_note;
  for (const std::string& sentence : facts.words) text += " " + sentence;
  for (const FormulaLine& line : facts.formulas) text += " " + line.text;
  return text;
}

// Returns how many groups do not attend.
int check_mixers(const Explanation& explanation) {
  int without = 0;
  bool carried = false;
  for (const LayerGroup& group : explanation.model.groups)
    carried |= group.mixer == Mixer::recurrence || group.mixer == Mixer::convolution;
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& group = explanation.model.groups[facts.group];
    const std::string said = all_said(facts);
    if (group.mixer == Mixer::attention) {
      EXPECT_FALSE(carried && said.contains("only by what the causal mask")) << said;
      continue;
    }
    ++without;
    // A label may say what it is not: "linear attention".
    const std::string body = said.substr(facts.heading.find(": "));
    for (const std::string_view word : of_attention)
      EXPECT_FALSE(body.contains(word)) << word << ": " << said;
    EXPECT_FALSE(group.window) << said;
    EXPECT_EQ(facts.amplitude_note, "");
    EXPECT_TRUE(facts.formulas.empty());
    EXPECT_EQ(facts.cache_bytes_per_token, 0);
    EXPECT_EQ(group.cache_note.contains("state"), group.mixer == Mixer::recurrence)
        << group.cache_note;
    EXPECT_EQ(facts.words.size(), 1u) << said;
  }
  return without;
}

std::vector<std::string> types_with_layer_types() {
  std::vector<std::string> types;
  for (const auto rows : {detail::rows_alike(), detail::rows_alternating(), detail::rows_latent()})
    for (const detail::Family& family : rows)
      if (family.layers.types && family.causal && family.read == detail::read_decoder)
        for (const std::string_view type : detail::split(family.types)) types.emplace_back(type);
  return types;
}

TEST(Mixers, NothingThatIsTrueOfAttentionAloneIsSaidOfALayerWithoutIt) {
  const std::vector<std::string> types = types_with_layer_types();
  ASSERT_GT(types.size(), 40u);
  int explained = 0;
  for (const std::string& type : types) {
    for (const std::string_view kind :
         {"linear_attention", "mamba", "conv", "recurrent", "mlp", "moe"}) {
      const std::string word(kind);
      auto model = read_config(
          R"({"model_type": ")" + type + R"(", "num_hidden_layers": 4, "hidden_size": 512,
          "num_attention_heads": 4, "num_key_value_heads": 4, "head_dim": 128,
          "rope_theta": 10000, "layer_types": [")" +
          word + R"(", "full_attention", ")" + word + R"(", ")" + word + R"("]})");
      if (!model) continue;
      const auto explanation = explain(*std::move(model));
      ASSERT_TRUE(explanation) << type << ": " << explanation.error().message();
      SCOPED_TRACE(type + ", " + word);
      explained += check_mixers(*explanation);
    }
  }
  EXPECT_GT(explained, 200);
}

TEST(Mixers, NorInTheDefaultLayersOfAFamily) {
  int without = 0;
  for (const std::string& type : types_with_layer_types()) {
    auto model = read_config(R"({"model_type": ")" + type + R"(", "rope_theta": 10000})");
    if (!model) continue;
    const auto explanation = explain(*std::move(model));
    ASSERT_TRUE(explanation) << type;
    SCOPED_TRACE(type);
    without += check_mixers(*explanation);
  }
  EXPECT_GT(without, 8);
}

TEST(Mixers, ABundledConfigurationToo) {
  for (const BundledModel& bundled : bundled_models()) {
    const auto explanation = explain(*read_model(bundled.name));
    ASSERT_TRUE(explanation) << bundled.name;
    SCOPED_TRACE(bundled.name);
    check_mixers(*explanation);
  }
}

TEST(Mixers, NemotronsLettersSayThree) {
  const auto model = read_config(
      R"({"model_type": "nemotron_h", "hybrid_override_pattern": "M-*E", "hidden_size": 512,
          "num_attention_heads": 4, "num_key_value_heads": 4})");
  ASSERT_TRUE(model);
  const Mixer mixers[] = {Mixer::recurrence, Mixer::none, Mixer::attention, Mixer::none};
  for (std::int64_t i = 0; i < 4; ++i)
    EXPECT_EQ(find_group(*model, i, Stack::text)->mixer, mixers[i]) << i;
  const auto wrong = read_config(
      R"({"model_type": "nemotron_h", "hybrid_override_pattern": "M?*E", "hidden_size": 512,
          "num_attention_heads": 4, "num_key_value_heads": 4})");
  ASSERT_FALSE(wrong);
  EXPECT_TRUE(wrong.error().message().contains("'?' for layer 1"));
}

}  // namespace
}  // namespace posenc
