// What the classes of mlx-lm take where a file has its base and its scaling.
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "posenc/engines.h"

namespace posenc {
namespace {

EngineReading read_by_mlx(const std::string& family, const std::string& rope) {
  const auto model = read_config(R"({"model_type": ")" + family +
                                 R"(", "hidden_size": 512, "num_hidden_layers": 2,
      "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 128,
      "max_position_embeddings": 131072, )" +
                                 rope + "}");
  EXPECT_TRUE(model) << model.error().message();
  return *read_as(*model, "mlx-lm");
}

bool is_unscaled(const EngineReading& reading) {
  return std::holds_alternative<Unscaled>(
      std::get<Rope>(reading.model.groups.front().schemes.front()).scaling);
}

const std::string parameters =
    R"("rope_parameters": {"rope_type": "default", "rope_theta": 10000000})";
const std::string yarn = R"("rope_theta": 1000000.0, "rope_scaling": {"rope_type": "yarn",
    "factor": 4.0, "original_max_position_embeddings": 32768})";

TEST(MlxLm, AClassWithoutADefaultBaseRefusesAFileOfTransformers5) {
  EXPECT_TRUE(read_by_mlx("qwen3_moe", parameters).refused.contains("write rope_theta"));
}

TEST(MlxLm, AClassThatReadsRopeParametersDoesNot) {
  EXPECT_EQ(read_by_mlx("qwen3", parameters).refused, "");
}

// No file of GLM-4 has partial_rotary_factor: the half of a head is its class's default.
TEST(MlxLm, GlmsClassRotatesWholeHeads) {
  const EngineReading reading = read_by_mlx("glm", R"("rope_theta": 10000.0)");
  const auto plan = compile(reading.model.groups.front());
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.rotary_dim, 128);
  EXPECT_FALSE(reading.notes.empty());
}

TEST(MlxLm, AModelWithPicturesIsReadByTheClassOfItsText) {
  const auto found = read_as(*read_model("qwen3-vl-4b"), "mlx-lm");
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->notes.empty());
}

TEST(MlxLm, ABaseBesideIsEnough) {
  EXPECT_EQ(read_by_mlx("qwen3_moe", "\"rope_theta\": 10000000, " + parameters).refused, "");
  EXPECT_EQ(read_by_mlx("qwen3_moe", "\"rope_theta\": 10000000").refused, "");
}

TEST(MlxLm, SomeClassesRotateByTheBaseAlone) {
  EXPECT_TRUE(is_unscaled(read_by_mlx("qwen3_moe", yarn)));
  EXPECT_FALSE(is_unscaled(read_by_mlx("qwen3", yarn)));
}

TEST(MlxLm, NorDoLayersThatSlideHaveADefaultBaseWhereNoOthersRotate) {
  EXPECT_TRUE(read_by_mlx("exaone4", R"("sliding_window": 4096, "sliding_window_pattern": "LG",
      "rope_parameters": {"rope_type": "default", "rope_theta": 1000000})")
                  .refused.contains("write rope_theta"));
}

}  // namespace
}  // namespace posenc
