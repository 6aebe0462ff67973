// Rules that moved from one transformers to the next: a file says which version saved it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <variant>

#include "posenc/model.h"

namespace posenc {
namespace {

// Of a layer, 0: the first.
Rope rope_saved_by(std::string_view version, std::string_view rest, std::int64_t layer = 0) {
  const std::string text =
      R"({"hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4, )" +
      (version.empty() ? "" : R"("transformers_version": ")" + std::string(version) + "\", ") +
      std::string(rest) + "}";
  const auto model = read_config(text);
  EXPECT_TRUE(model) << (model ? "" : model.error().message());
  const LayerGroup* const group = model ? find_group(*model, layer, Stack::text) : nullptr;
  return group ? std::get<Rope>(group->schemes.at(0)) : Rope{.rope_theta = 0};
}

constexpr std::string_view persimmon = R"("model_type": "persimmon")";

TEST(SavedBy, AVersionBeforeFiveHasPersimmonsOldBase) {
  EXPECT_EQ(rope_saved_by("4.38.2", persimmon).rope_theta, 25000);
}
TEST(SavedBy, VersionFiveHasPersimmonsNewBase) {
  EXPECT_EQ(rope_saved_by("5.0.0", persimmon).rope_theta, 10000);
}
TEST(SavedBy, AFileWithoutAVersionIsReadByTheNewestRules) {
  EXPECT_EQ(rope_saved_by("", persimmon).rope_theta, 10000);
}
TEST(SavedBy, AVersionThatIsNoneIsReadByTheNewestRules) {
  for (const char* version : {"4", "four.1", "-1.2", "99999999999999.1", ".", ""})
    EXPECT_EQ(rope_saved_by(version, persimmon).rope_theta, 10000) << version;
}

constexpr std::string_view olmo3 =
    R"("model_type": "olmo3", "rope_theta": 20000, "sliding_window": 64)";

TEST(SavedBy, AVersionBeforeFiveGivesOlmo3sSlidingLayersTheBaseOfAll) {
  EXPECT_EQ(rope_saved_by("4.57.1", olmo3).rope_theta, 20000);
}
TEST(SavedBy, VersionFiveFixesTheBaseOfOlmo3sSlidingLayers) {
  EXPECT_EQ(rope_saved_by("5.1.0", olmo3).rope_theta, 500000);
  EXPECT_EQ(rope_saved_by("5.1.0", olmo3, 3).rope_theta, 20000);
}

constexpr std::string_view phi = R"("model_type": "phi", "partial_rotary_factor": 0.5,
    "rope_scaling": {"rope_type": "linear", "factor": 2, "partial_rotary_factor": 0.25})";

TEST(SavedBy, BeforeFiveSeventeenThePartialFactorBesideTheScalingWins) {
  EXPECT_EQ(rope_saved_by("5.16.9", phi).partial_rotary_factor, 0.5);
}
TEST(SavedBy, SinceFiveSeventeenThePartialFactorInsideWins) {
  EXPECT_EQ(rope_saved_by("5.17.0", phi).partial_rotary_factor, 0.25);
}

TEST(SavedBy, ModernBertsBaseWithinAFlatScalingIsThatOfAllLayers) {
  constexpr std::string_view bert =
      R"("model_type": "modernbert-decoder", "local_rope_theta": 30000,
      "rope_scaling": {"rope_type": "linear", "factor": 2, "rope_theta": 500000})";
  EXPECT_EQ(rope_saved_by("", bert, 1).rope_theta, 500000);
}

}  // namespace
}  // namespace posenc
