// posenc translate, run as a user does.
#include <cmath>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "cli/arguments/npy.h"
#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class TranslateCommand : public posenc::test::CommandTest {};

TEST_F(TranslateCommand, PrintsTheTargetAndHowNearItComes) {
  const Outcome said = posenc("translate llama-3.1-8b --to vllm --at 64k");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(has(said.out, "--hf-overrides '{\"rope_parameters\":{\"rope_type\":\"llama3\""))
      << said.out;
  EXPECT_TRUE(has(said.out, "angles within 0 rad up to position 65535")) << said.out;
}

TEST_F(TranslateCommand, KeysAreAnObjectInJson) {
  const Json said =
      Json::parse(posenc("translate gemma-3-4b --to transformers --json").out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["target"]["rope_parameters"]["full_attention"]["factor"], 8.0);
  EXPECT_EQ(said["largest_angle_difference"], 0.0);
}

TEST_F(TranslateCommand, FlagsAreATextInJson) {
  const Json said =
      Json::parse(posenc("translate qwen2.5-7b-yarn4 --to llama.cpp --json").out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  EXPECT_TRUE(said["target"].is_string());
}

TEST_F(TranslateCommand, ExitsWithOneWhereSomethingIsLost) {
  EXPECT_EQ(posenc("translate gpt-oss-20b --to llama.cpp").code, 1);
}

TEST_F(TranslateCommand, ExitsWithOneWhereAPartOfTheHeadCannotBeSaid) {
  const Outcome said = posenc("translate glm-4-9b --to params.json");
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "a part of the head")) << said.out;
}

// Row 1 of plain RoPE: the cosines of the frequencies themselves, of which the first is 1.
TEST_F(TranslateCommand, WritesTheTablesOfOnnx) {
  ASSERT_EQ(posenc("translate llama-2-7b --to onnx --at 16 --tables " + path("tables")).code, 0);
  const auto cosines = posenc::cli::read_array(path("tables/cos_cache.npy"));
  ASSERT_TRUE(cosines) << cosines.error().message();
  ASSERT_EQ(cosines->shape, (std::vector<std::int64_t>{16, 64}));
  auto array = *cosines;
  EXPECT_EQ(posenc::cli::tensor_of(array, "", "test")->get(64), double(float(std::cos(1.0))));
}

TEST_F(TranslateCommand, TablesAreOfOnnxAlone) {
  const Outcome said = posenc("translate llama-2-7b --to vllm --tables " + path("tables"));
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "--to onnx")) << said.err;
}

TEST_F(TranslateCommand, ExitsWithTwoForAnEngineWithoutAProfile) {
  const Outcome said = posenc("translate llama-3.1-8b --to keras");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "vllm@")) << said.err;
}

}  // namespace
