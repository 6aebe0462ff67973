// posenc diff, run as a user does, on files of several formats.
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class DiffCommand : public posenc::test::CommandTest {};

TEST_F(DiffCommand, ExitsWithZeroWhereBothAreAlike) {
  const Outcome same = posenc("diff llama-3.1-8b llama-3.1-8b");
  EXPECT_EQ(same.code, 0);
  EXPECT_TRUE(has(same.out, "Both treat position alike.")) << same.out;
}

TEST_F(DiffCommand, ExitsWithOneWhereTheyDiffer) {
  const Outcome other = posenc("diff gemma-3-4b llama-3.1-8b");
  EXPECT_EQ(other.code, 1);
  EXPECT_TRUE(has(other.out, "head_dim    256 → 128")) << other.out;
}

TEST_F(DiffCommand, TwoModelsInOneEngineAreComparedAsItRunsEach) {
  EXPECT_EQ(posenc("diff llama-3.1-8b llama-3.1-8b --engines vllm").code, 0);
  const Outcome draft = posenc("diff llama-3.1-8b llama-2-7b --engines vllm,llama.cpp --json");
  EXPECT_EQ(draft.code, 1);
  const Json json = Json::parse(draft.out);
  EXPECT_EQ(json.at("found"), "llama-2-7b");
  EXPECT_EQ(json.at("engines").size(), 2u);
  EXPECT_EQ(json.at("findings").at(0).at("code"), "rope_theta");
}

TEST_F(DiffCommand, WhatNoEngineIsKnownToDoIsSaidOnce) {
  write("zork.json",
        R"({"model_type":"zork","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":2,)"
        R"("rope_theta":10000.0,"max_position_embeddings":128})");
  const Outcome all = posenc("diff zork.json --engines all");
  const std::size_t first = all.out.find("not_known");
  EXPECT_NE(first, all.out.npos) << all.out << all.err;
  EXPECT_EQ(all.out.find("not_known", first + 1), all.out.npos) << all.out;
  EXPECT_TRUE(has(all.out, "the same of")) << all.out;
}

TEST_F(DiffCommand, WhatAnEngineRefusesOfTwoModelsIsNamed) {
  const std::string qwen = posenc::test::data_path("doctor/deepseek-r1-0528-qwen3-8b.json");
  const Outcome refused = posenc("diff llama-3.1-8b " + qwen + " --engines onnxruntime-genai");
  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(has(refused.out, "deepseek-r1-0528-qwen3-8b: ")) << refused.out;
}

TEST_F(DiffCommand, ExitsWithTwoForAFileThatIsNotThere) {
  EXPECT_EQ(posenc("diff llama-3.1-8b nowhere.json").code, 2);
}

TEST_F(DiffCommand, JsonHasEveryKeyOfAFinding) {
  const Outcome said = posenc("diff llama-3.1-8b llama-2-7b --json");
  const Json found = Json::parse(said.out, nullptr, false);
  ASSERT_TRUE(found.is_object()) << said.out;
  EXPECT_EQ(said.code, 1);
  EXPECT_EQ(found["equal"], false);
  for (const char* key :
       {"code", "layer", "pair", "position", "expected", "found", "message", "cure"})
    EXPECT_TRUE(found["findings"][0].contains(key)) << key;
}

TEST_F(DiffCommand, AskedLengthIsTheOneThatIsTold) {
  EXPECT_TRUE(has(posenc("diff llama-3.1-8b llama-2-7b --at 8k").out, "at 8,191 pair"));
}

TEST_F(DiffCommand, EnginesAreComparedWithWhatTheFileSays) {
  const std::string disputed = posenc::test::data_path("doctor/deepseek-r1-0528-qwen3-8b.json");
  const Outcome said = posenc("diff " + disputed + " --engines all --json");
  EXPECT_EQ(said.code, 1);
  const Json found = Json::parse(said.out, nullptr, false);
  ASSERT_TRUE(found.is_object()) << said.out;
  EXPECT_EQ(found["equal"], false);
  EXPECT_GE(found["engines"].size(), 8U);
}

TEST_F(DiffCommand, AnEngineThatRunsTheFileAsItIsMeansSuccess) {
  const Outcome said = posenc("diff llama-3.1-8b --engines vllm,llama.cpp,transformers@4");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(has(said.out, "as the file says")) << said.out;
}

TEST_F(DiffCommand, ASecondModelAndALogAreOneTooMany) {
  EXPECT_EQ(posenc("diff llama-3.1-8b llama-2-7b --log server.log").code, 2);
  EXPECT_EQ(posenc("diff llama-3.1-8b").code, 2);
}

TEST_F(DiffCommand, ALogIsComparedWithTheFile) {
  const std::string log = posenc::test::data_path("logs/llama-3.1-without-base.log");
  const Outcome said = posenc("diff llama-3.1-8b --log " + log);
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "500000 → 10000; layers 0–31; line 19")) << said.out;
  const Json found =
      Json::parse(posenc("diff llama-3.1-8b --json --log - < " + log).out, nullptr, false);
  ASSERT_TRUE(found.is_object());
  EXPECT_EQ(found["findings"][0]["line"], 19);
}

TEST_F(DiffCommand, ALogThatIsNoneIsAnErrorAndBounded) {
  EXPECT_EQ(posenc("diff llama-3.1-8b --log nowhere.log").code, 2);
  const Outcome endless = posenc("diff llama-3.1-8b --log /dev/zero");
  EXPECT_EQ(endless.code, 2);
  EXPECT_TRUE(has(endless.err, "64 MiB")) << endless.err;
  EXPECT_EQ(posenc("diff llama-3.1-8b llama-2-7b --log nowhere.log").code, 2);
}

TEST_F(DiffCommand, AVersionThatHasNoProfileIsReadAsTheNearest) {
  EXPECT_TRUE(has(posenc("diff llama-3.1-8b --engines vllm@0.2").out, "no profile of 0.2"));
}

TEST_F(DiffCommand, WhatIsNoVersionIsRefused) {
  const Outcome said = posenc("diff llama-3.1-8b --engines vllm@new");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.err, "transformers@4")) << said.err;
}

TEST_F(DiffCommand, AnAdapterIsComparedByItsTrainersSettings) {
  const Outcome found = posenc("diff llama-2-7b " + posenc::test::data_path("doctor/lora-of-16k"));
  EXPECT_EQ(found.code, 1) << found.err;
  EXPECT_TRUE(has(found.out, "linear factor 4 → none")) << found.out;
}

}  // namespace
