// posenc doctor, run as a user does.
#include <filesystem>
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::data_path;
using posenc::test::has;
using posenc::test::Outcome;

class DoctorCommand : public posenc::test::CommandTest {
 protected:
  // Whatever the machine's own cache has.
  Outcome doctor(const std::string& evidence) const {
    return run("HF_HUB_CACHE='" + path("hub") + "' '" + posenc::test::command_path() + "' doctor " +
               evidence);
  }
  Json json(const std::string& evidence) const {
    return Json::parse(doctor("--json " + evidence).out, nullptr, false);
  }
  const std::string without_scaling = data_path("doctor/llama-3.1-without-scaling.json");
};

TEST_F(DoctorCommand, ExitsWithZeroWhereNothingIsWrong) {
  const Outcome said = doctor("llama-3.1-8b");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(has(said.out, "Nothing wrong with position up to 131,072")) << said.out;
}

TEST_F(DoctorCommand, ExitsWithOneWhereSomethingIsFound) {
  const Outcome said = doctor("llama-3.1-8b " + without_scaling);
  EXPECT_EQ(said.code, 1);
  EXPECT_TRUE(has(said.out, "without-scaling.json: rope_scaling is none")) << said.out;
}

TEST_F(DoctorCommand, ExitsWithTwoWhereNothingCanBeUsed) {
  const Outcome said = doctor("no-such-model");
  EXPECT_EQ(said.code, 2);
  EXPECT_TRUE(has(said.out, "Nothing of this can be used")) << said.out;
}

TEST_F(DoctorCommand, WhatCannotBeUsedDoesNotHideTheRest) {
  const Outcome said = doctor("llama-3.1-8b no-such-model");
  EXPECT_EQ(said.code, 0) << said.out;
  EXPECT_TRUE(has(said.out, "not used:")) << said.out;
}

TEST_F(DoctorCommand, ReadsAPipe) {
  const Outcome said =
      run("'" + posenc::test::command_path() + "' doctor - <'" + without_scaling + "'");
  EXPECT_EQ(said.code, 1) << said.out;
  EXPECT_TRUE(has(said.out, "stdin")) << said.out;
}

TEST_F(DoctorCommand, FindsANameInTheHubsCache) {
  const std::string repository = "hub/models--someone--their-model/";
  std::filesystem::create_directories(path(repository + "refs"));
  std::filesystem::create_directories(path(repository + "snapshots/abc"));
  write(repository + "refs/main", "abc");
  std::filesystem::copy(without_scaling, path(repository + "snapshots/abc/config.json"));
  const Json said = json("someone/their-model");
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["evidence"][0]["kind"], "model") << said;
}

TEST_F(DoctorCommand, ANameIsMetHoweverItsWeightsArePacked) {
  const char* const lines[] = {"llama-server -m /models/Qwen3-8B-Q4_K_M.gguf -c 8192",
                               "mlx_lm.server --model mlx-community/Qwen3-8B-4bit",
                               "vllm serve Qwen/Qwen3-8B-AWQ --max-model-len 8192"};
  for (const char* line : lines) {
    const Outcome said = doctor(std::string("'") + line + "'");
    EXPECT_TRUE(has(said.out, "qwen3, bundled, 40,960 tokens")) << line << said.out;
  }
  const Outcome other =
      doctor("'llama-server -m /models/Qwen3-8B-abliterated-Q4_K_M.gguf -c 8192'");
  EXPECT_FALSE(has(other.out, "bundled")) << other.out;
}

TEST_F(DoctorCommand, AQuotedLineMayBeginWithADash) {
  const Outcome said = doctor(
      "'-m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B --max-model-len=204800'");
  EXPECT_TRUE(has(said.out, "a command line of vllm")) << said.out << said.err;
  EXPECT_TRUE(has(said.out, "beyond_context")) << said.out;
}

TEST_F(DoctorCommand, ReadsTheSettingsBesideAnAdapter) {
  const Json said = json("llama-2-7b " + data_path("doctor/lora-of-16k"));
  ASSERT_TRUE(said.is_object());
  EXPECT_EQ(said["evidence"][1]["kind"], "training") << said;
  EXPECT_FALSE(said["findings"].empty()) << said;
}

TEST_F(DoctorCommand, TensorsAreSentToIdentify) {
  write("keys.npy", "\x93NUMPY");
  const Outcome said = doctor("llama-3.1-8b keys.npy");
  EXPECT_TRUE(has(said.out, "posenc identify --after keys.npy")) << said.out;
}

TEST_F(DoctorCommand, JsonHasTheFindingOfEachDiagnosis) {
  const Json said = json("llama-3.1-8b " + without_scaling);
  ASSERT_TRUE(said.is_object());
  ASSERT_FALSE(said["findings"].empty());
  const Json& first = said["findings"][0];
  EXPECT_EQ(first["code"], "rope_scaling");
  EXPECT_EQ(first["where"], without_scaling);
  EXPECT_EQ(first["finding"]["layers"].size(), 32);
}

TEST_F(DoctorCommand, SarifNamesTheLineOfALog) {
  write("server.log", "loading\nprint_info: freq_base_train = 10000.0\n");
  const Json said = Json::parse(doctor("--sarif qwen3-8b server.log").out, nullptr, false);
  ASSERT_TRUE(said.is_object());
  ASSERT_FALSE(said["runs"][0]["results"].empty()) << said;
  const Json& place = said["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
  EXPECT_EQ(place["artifactLocation"]["uri"], "server.log");
  EXPECT_EQ(place["region"]["startLine"], 2);
}

}  // namespace
