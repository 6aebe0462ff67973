// Families whose cosines are mixed: FoPE where a key of the file asks for it.
#include <gtest/gtest.h>

#include <string>

#include "posenc/explain.h"
#include "posenc/model.h"

namespace posenc {
namespace {

// Intern-S1-Pro's numbers of positions, in a small model.
std::string config(std::string_view rope) {
  return R"({"model_type": "interns1_pro", "text_config": {"model_type": "interns1_pro_text",
    "hidden_size": 512, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128,
    "num_hidden_layers": 2, "max_position_embeddings": 262144, "rope_theta": 5000000,
    "rope_scaling": )" +
         std::string(rope) + "}}";
}
constexpr std::string_view asks =
    R"({"rope_type": "default", "fope_init_factor": 0.5, "fope_sep_head": true,
        "num_inv_freq": null})";

Model read(const std::string& text) {
  const auto model = read_config(text);
  if (!model) ADD_FAILURE() << model.error().message();
  return model ? *model : Model{};
}

TEST(FamilyMixtures, OfInternS1ProAre45WavesOf64Pairs) {
  const Model model = read(config(asks));
  ASSERT_EQ(model.groups.size(), 1U);
  const Fope fope = std::get<Fope>(model.groups[0].schemes[0]);
  EXPECT_EQ(fope.rope_theta, 5000000);
  EXPECT_EQ(fope.max_position_embeddings, 262144);
  EXPECT_EQ(fope.rest_sine, 1);
  EXPECT_FALSE(fope.num_inv_freq);
  const auto plan = compile(model.groups[0]);
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(std::get<Mix>(plan->rotate->kind).inputs, 45);
  EXPECT_EQ(plan->rotate->pairs(), 64);
}

TEST(FamilyMixtures, TheirKeysAreNoWarning) {
  for (const Warning& warning : read(config(asks)).warnings)
    EXPECT_NE(warning.code, "unknown_key") << warning.message;
}

TEST(FamilyMixtures, WithoutTheirKeysItIsRope) {
  const Model model = read(config(R"({"rope_type": "default", "num_inv_freq": null})"));
  EXPECT_TRUE(std::holds_alternative<Rope>(model.groups[0].schemes[0]));
}

TEST(FamilyMixtures, TheNumberOfWavesMayBeSaid) {
  const Model model = read(config(R"({"rope_type": "default", "num_inv_freq": 20})"));
  EXPECT_EQ(std::get<Fope>(model.groups[0].schemes[0]).num_inv_freq, 20);
}

TEST(FamilyMixtures, AreSaidInWords) {
  const auto explained = explain(read(config(asks)), {});
  ASSERT_TRUE(explained) << explained.error().message();
  std::string words;
  for (const std::string& line : explained->groups[0].words) words += line + "\n";
  EXPECT_NE(words.find("the first 45 turn by learned sums of 45 waves"), std::string::npos)
      << words;
  EXPECT_NE(words.find("share of a logit is multiplied by 2"), std::string::npos) << words;
}

}  // namespace
}  // namespace posenc
