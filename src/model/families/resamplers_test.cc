#include <gtest/gtest.h>

#include <string_view>

#include "posenc/model.h"

namespace posenc {
namespace {
namespace resamplers {

Model resampler(std::string_view config) { return read_config(config, "config.json").value(); }

TEST(Resamplers, HaveNoPositionsOfTheirOwn) {
  const Model model = resampler(R"({"model_type": "idefics2_perceiver"})");
  ASSERT_EQ(model.groups.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<NoPe>(model.groups[0].schemes.front()));
  EXPECT_FALSE(model.groups[0].causal);
  EXPECT_EQ(std::ssize(model.groups[0].layers), 3);
}

TEST(Resamplers, ReadTheirSizesByTheirOwnKeys) {
  const Model model = resampler(R"({"model_type": "idefics_perciever", "resampler_depth": 2,
      "resampler_n_heads": 8, "resampler_head_dim": 64})");
  EXPECT_EQ(std::ssize(model.groups[0].layers), 2);
  EXPECT_EQ(model.groups[0].geometry.heads, 8);
  EXPECT_EQ(model.groups[0].geometry.kv_heads, 8);
  EXPECT_EQ(model.groups[0].geometry.head_dim, 64);
}

TEST(Resamplers, ShareKeysWhereTheFileSaysSo) {
  const Model model =
      resampler(R"({"model_type": "idefics2_perceiver", "num_key_value_heads": 2})");
  EXPECT_EQ(model.groups[0].geometry.kv_heads, 2);
}

TEST(Resamplers, PoolMolmosPatchesInOneLayer) {
  const Model model = resampler(R"({"model_type": "molmo2_adapter"})");
  EXPECT_EQ(std::ssize(model.groups[0].layers), 1);
  EXPECT_EQ(model.groups[0].geometry.head_dim, 72);
}

}  // namespace resamplers
}  // namespace
}  // namespace posenc
