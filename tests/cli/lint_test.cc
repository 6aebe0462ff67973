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
  EXPECT_TRUE(has(said.out, "trained_length_kept")) << said.out;
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

TEST_F(LintCommand, ALineOfJsonForEachFileOfAList) {
  write("list", "qwen3-8b\nnot there\nllama-2-7b\n");
  const Outcome said = posenc("lint --from list --jsonl --engine vllm");
  EXPECT_EQ(said.code, 1);
  std::istringstream lines(said.out);
  std::vector<std::string> codes;
  for (std::string line; std::getline(lines, line);) {
    const Json one = Json::parse(line, nullptr, false);
    ASSERT_TRUE(one.is_object()) << line;
    codes.push_back(one["findings"].empty() ? "" : one["findings"][0]["code"]);
  }
  EXPECT_EQ(codes, (std::vector<std::string>{"", "unreadable", ""}));
}

// Configurations and paths among each other, broken ones among them: each answered in its place.
TEST_F(LintCommand, AStreamIsAnsweredLineByLine) {
  std::string lines;
  for (int n = 0; n < 3000; ++n) {
    const int context = 1000 + n;
    lines += n % 7 == 3 ? "{\"model_type\": \"llama\"\n"
             : n % 7 == 5
                 ? "gpt2\r\n"
                 : "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
                   "\"num_attention_heads\": 4, \"rope_theta\": 10000.0, "
                   "\"max_position_embeddings\": " +
                       std::to_string(context) + "}\n";
  }
  write("lines", lines + "\n-");
  const Outcome said = run("cat lines | '" + posenc::test::command_path() +
                           "' lint --jsonl - --engine vllm --threads 3");
  EXPECT_EQ(said.code, 1) << said.err;
  std::istringstream answers(said.out);
  std::int64_t number = 0;
  for (std::string line; std::getline(answers, line);) {
    const Json one = Json::parse(line, nullptr, false);
    ASSERT_TRUE(one.is_object()) << line;
    const bool last = ++number > 3000;
    EXPECT_EQ(one["line"], last ? 3002 : number);
    const int kind = static_cast<int>((number - 1) % 7);
    const bool broken = last || kind == 3;
    EXPECT_EQ(!one["findings"].empty() && one["findings"][0]["code"] == "unreadable", broken)
        << line;
    EXPECT_EQ(one["file"].is_null(), !last && kind != 5) << line;
  }
  EXPECT_EQ(number, 3001);
  const Outcome same = posenc("lint --from lines --jsonl --engine vllm --threads 1");
  EXPECT_EQ(same.out, said.out);
  const Outcome explained =
      run("cat lines | '" + posenc::test::command_path() + "' explain --jsonl -");
  EXPECT_EQ(explained.code, 1);
  const Json first = Json::parse(explained.out.substr(0, explained.out.find('\n')), nullptr, false);
  EXPECT_EQ(first["line"], 1);
  EXPECT_EQ(first["context"], 1000);
}

TEST_F(LintCommand, ALayoutThatBreaksALayerIsAnError) {
  write("v4.json", R"({"model_type": "deepseek_v4", "num_hidden_layers": 43})");
  const Outcome said = posenc("lint v4.json --cp zigzag:8 --at 131072 --json");
  EXPECT_EQ(said.code, 1);
  const Json cp = Json::parse(said.out, nullptr, false)["cp"];
  EXPECT_EQ(cp["layout"], "zigzag:8");
  EXPECT_EQ(cp["ranks"], 8);
  EXPECT_EQ(cp["verdict"], "breaks");
  EXPECT_EQ(cp["groups"][0]["reasons"][0]["code"], "compressed_keys");
  EXPECT_EQ(cp["best"]["layout"], "contiguous:8:by=gather");
  const Outcome best = posenc("lint v4.json --cp contiguous:8:by=gather --at 131072");
  EXPECT_EQ(best.code, 0) << best.out;
  EXPECT_TRUE(has(best.out, "contiguous:8:by=gather at 131,072 tokens: survives")) << best.out;
}

TEST_F(LintCommand, AJobsSettingsMayBeInAFile) {
  write("train.yaml", "policy:\n  dtensor_cfg:\n    context_parallel_size: 4\n");
  const Outcome said = posenc("lint qwen3-8b --cp train.yaml --at 32768 --jsonl");
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_TRUE(has(said.out, R"("said":["context_parallel_size 4"])")) << said.out;
  const Outcome near = posenc("lint qwen3-8b --cp zig-zag:4");
  EXPECT_EQ(near.code, 2);
  EXPECT_TRUE(has(near.err, "zigzag")) << near.err;
  const Outcome many = posenc("lint qwen3-8b gpt2 --cp zigzag:4 --json");
  EXPECT_EQ(many.code, 2);
  EXPECT_TRUE(has(many.err, "--jsonl has a line for each")) << many.err;
}

TEST_F(LintCommand, WithoutAModelItSaysWhatItTakes) {
  const Outcome said = posenc("lint");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "posenc lint config.json")) << said.err;
}

TEST_F(LintCommand, SarifsRulesSayWhatACodeMeans) {
  const Json said = Json::parse(posenc("lint --sarif " + disputed()).out, nullptr, false);
  const Json& rule = said["runs"][0]["tool"]["driver"]["rules"][0];
  EXPECT_TRUE(has(rule["shortDescription"]["text"].get<std::string>(), "cos and sin")) << rule;
  EXPECT_TRUE(has(rule["help"]["text"].get<std::string>(), "Cure: ")) << rule;
}

TEST_F(LintCommand, SarifEscapesWhatAUriMayNotHave) {
  write("sp ace çonfig.json", R"({"model_type": "llama", "rope_theta": 1})");
  const Json said = Json::parse(posenc("lint --sarif 'sp ace çonfig.json'").out, nullptr, false);
  EXPECT_EQ(
      said["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
      "sp%20ace%20%C3%A7onfig.json");
}

TEST_F(LintCommand, SarifPointsAtTheKeyThatAnEngineReadsOtherwise) {
  write("config.json",
        "{\n\"model_type\": \"llama\", \"hidden_size\": 256,\n"
        "\"num_attention_heads\": 4, \"num_hidden_layers\": 2,\n"
        "\"max_position_embeddings\": 8192,\n"
        "\"rope_parameters\": {\n\"rope_type\": \"default\", \"rope_theta\": 1000000.0}\n}");
  const Json said =
      Json::parse(posenc("lint --sarif config.json --engine transformers@4").out, nullptr, false);
  bool seen = false;
  for (const Json& one : said["runs"][0]["results"]) {
    if (one["ruleId"] != "engine_rope_theta") continue;
    seen = true;
    EXPECT_EQ(one["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
  }
  EXPECT_TRUE(seen) << said;
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

// The exit code is of the one that failed; what became of the others stands on the page.
TEST_F(LintCommand, FixTellsOfEachFile) {
  const std::string text =
      R"({"model_type": "qwen3", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32,
 "max_position_embeddings": 131072, "rope_theta": 1000000.0,
 "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "beta_fast": 0, "original_max_position_embeddings": 32768}})";
  for (const char* folder : {"a", "b", "c"}) {
    std::filesystem::create_directory(path(folder));
    write(std::string(folder) + "/config.json", *folder == 'b' ? "{\"model_type\": " : text);
  }
  const Outcome said = posenc("lint a b c --fix");
  EXPECT_EQ(said.code, 2);
  for (const char* part :
       {"a/config.json: mended as a/config.fixed.json", "b: not mended: b/config.json",
        "c/config.json: mended as c/config.fixed.json"})
    EXPECT_TRUE(has(said.out, part)) << part << "\n" << said.out;
  EXPECT_TRUE(has(said.err, "b/config.json")) << said.err;
  EXPECT_FALSE(has(this->text("a/config.fixed.json"), "beta_fast"));
  EXPECT_FALSE(has(this->text("c/config.fixed.json"), "beta_fast"));
}

TEST_F(LintCommand, StandardInputIsNotFixedInPlace) {
  write("config.json", R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 1})");
  const Outcome said = run("cat config.json | '" + posenc::test::command_path() + "' lint - --fix");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "standard input has none")) << said.err;
}

// The severity that is counted below stands before the code.
TEST_F(LintCommand, EachFindingSaysHowGraveItIs) {
  const Outcome said = posenc("lint " + disputed());
  EXPECT_TRUE(has(said.out, "error attn_factor")) << said.out;
  std::int64_t errors = 0, warnings = 0;
  for (const std::string& line : posenc::test::lines_of(said.out)) {
    errors += line.starts_with("error ");
    warnings += line.starts_with("warning ");
  }
  EXPECT_TRUE(has(said.out, std::to_string(errors) + " error" + (errors == 1 ? "" : "s") + ", " +
                                std::to_string(warnings) + " warning"))
      << said.out;
}

// The file is as its card says; no cure is offered for what is right.
TEST_F(LintCommand, APublishedRecipeIsANote) {
  const Outcome said = posenc("lint qwen2.5-7b-yarn4 --engine vllm");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(has(said.out, "note trained_length_kept")) << said.out;
  EXPECT_TRUE(has(said.out, "0 errors, 0 warnings, 1 note in 1 file")) << said.out;
  EXPECT_EQ(posenc("explain qwen2.5-7b-yarn4 --strict").code, 0);
}

TEST_F(LintCommand, FixIsForConfigurationsAlone) {
  EXPECT_EQ(posenc("lint llama-3.1-8b --fix").code, 2);
}

}  // namespace
