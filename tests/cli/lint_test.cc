// posenc lint, run as a user does.
#include <fstream>
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class LintCommand : public posenc::test::CommandTest {
 protected:
  // DeepSeek-R1-0528-Qwen3-8B, whose attn_factor engines read in two ways.
  std::string disputed() const {
    return posenc::test::data_path("doctor/deepseek-r1-0528-qwen3-8b.json");
  }
};

TEST_F(LintCommand, ExitsWithZeroWithoutAnError) {
  const Outcome said = posenc("lint llama-3.1-8b qwen2.5-7b-yarn4");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(has(said.out, "factor_vs_lengths")) << said.out;
}

TEST_F(LintCommand, ExitsWithOneForAnError) {
  const Outcome said = posenc("lint " + disputed());
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "attn_factor")) << said.out;
}

TEST_F(LintCommand, ExitsWithTwoWhereNothingIs) { EXPECT_EQ(posenc("lint nowhere.json").code, 2); }

TEST_F(LintCommand, AFileThatCannotBeReadIsAFinding) {
  std::ofstream(path("broken.json")) << "{\"model_type\": \"llama\"";
  const Outcome said = posenc("lint broken.json llama-3.1-8b");
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "unreadable")) << said.out;
  EXPECT_TRUE(has(said.out, "1 error, 0 warnings, 0 notes in 2 files")) << said.out;
}

TEST_F(LintCommand, JsonNamesTheFileOfEachFinding) {
  const Json said = Json::parse(posenc("lint --json " + disputed()).out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  ASSERT_FALSE(said["findings"].empty());
  for (const Json& finding : said["findings"])
    for (const char* key : {"file", "code", "severity", "message", "cure", "engines"})
      EXPECT_TRUE(finding.contains(key)) << key;
}

TEST_F(LintCommand, SarifPointsAtTheLineOfTheKey) {
  const Json said = Json::parse(posenc("lint --sarif " + disputed()).out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["version"], "2.1.0");
  const Json& first = said["runs"][0]["results"][0];
  EXPECT_EQ(first["ruleId"], "attn_factor");
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["locations"][0]["physicalLocation"]["region"]["startLine"], 16);
}

TEST_F(LintCommand, FixWritesACopyAndNeverOverAFile) {
  const std::string text =
      R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32,
 "max_position_embeddings": 131072, "rope_theta": 1000000.0,
 "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0, "original_max_position_embeddings": 32768}})";
  write("config.json", text);
  const Outcome said = posenc("lint config.json --fix");
  EXPECT_TRUE(has(said.out, "config.fixed.json")) << said.out;
  EXPECT_EQ(this->text("config.json"), text);
  EXPECT_FALSE(has(this->text("config.fixed.json"), "beta_fast"));
  const Outcome again = posenc("lint config.json --fix");
  EXPECT_EQ(again.code, 2);
  EXPECT_TRUE(has(again.err, "does not write over a file")) << again.err;
  const Json json = Json::parse(posenc("lint config.fixed.json --fix --json").out, nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_TRUE(json["fixed"][0]["copy"].is_null());
}

TEST_F(LintCommand, FixIsForConfigurationsAlone) {
  EXPECT_EQ(posenc("lint llama-3.1-8b --fix").code, 2);
}

}  // namespace
