// posenc explain on every bundled model, and its flags.
#include <cmath>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "posenc/model.h"
#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class ExplainCommand : public posenc::test::CommandTest {
 protected:
  Json json(const std::string& arguments) const {
    return Json::parse(posenc("explain --json " + arguments).out, nullptr, false);
  }
};

TEST_F(ExplainCommand, EveryBundledModelHasAPage) {
  ASSERT_FALSE(posenc::bundled_models().empty());
  for (const auto& model : posenc::bundled_models()) {
    const Outcome page = posenc("explain " + std::string(model.name));
    EXPECT_EQ(page.code, 0) << model.name << ": " << page.err;
    EXPECT_TRUE(page.out.starts_with(model.name)) << model.name;
  }
}

TEST_F(ExplainCommand, EveryBundledModelHasJson) {
  for (const auto& model : posenc::bundled_models()) {
    const Json explained = json(std::string(model.name));
    ASSERT_TRUE(explained.is_object()) << model.name;
    EXPECT_EQ(explained["model"], model.name);
    EXPECT_FALSE(explained["groups"].empty()) << model.name;
    EXPECT_FALSE(has(explained.dump(), "inf")) << model.name;
  }
}

TEST_F(ExplainCommand, PagesAreAsWideAsTheTerminal) {
  for (const std::size_t columns : {0u, 60u, 80u, 120u}) {
    if (columns > 0) setenv("COLUMNS", std::to_string(columns).c_str(), 1);
    for (const auto& model : posenc::bundled_models()) {
      const std::string page = posenc("explain " + std::string(model.name)).out;
      std::size_t width = 0;
      for (const char byte : page) {
        if (byte == '\n') width = 0;
        width += byte != '\n' && (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
        ASSERT_LE(width, columns > 0 ? columns : 100u) << model.name;
      }
    }
    unsetenv("COLUMNS");
  }
}

TEST_F(ExplainCommand, StandardInputIsAModel) {
  write("config.json", posenc("models llama-3.1-8b").out);
  for (const char* model : {"- < config.json", "/dev/stdin < config.json"}) {
    const Json explained = json(model);
    ASSERT_TRUE(explained.is_object()) << model;
    EXPECT_EQ(explained["model"], "stdin");
    EXPECT_EQ(explained["groups"], json("llama-3.1-8b")["groups"]);
  }
  EXPECT_EQ(posenc("explain - < /dev/null").code, 2);
}

TEST_F(ExplainCommand, SeveralModelsAreALineOfJsonEach) {
  const std::string lines = posenc("explain gpt2 t5-small --json").out;
  const std::size_t end = lines.find('\n');
  EXPECT_EQ(Json::parse(lines.substr(0, end))["model"], "gpt2");
  EXPECT_EQ(Json::parse(lines.substr(end + 1))["model"], "t5-small");
  EXPECT_EQ(posenc("explain gpt2 t5-small --csv").code, 2);
}

TEST_F(ExplainCommand, ALengthIsWrittenAsPeopleDo) {
  EXPECT_EQ(json("llama-3.1-8b --at 128k")["asked"], 131072);
  EXPECT_EQ(json("llama-3.1-8b --at 1M")["asked"], 1048576);
  EXPECT_EQ(json("llama-3.1-8b --at 1e5")["asked"], 100000);
  for (const char* wrong : {"0", "-1k", "1.0001k", "k", "1e300", "nan"})
    EXPECT_EQ(posenc(std::string("explain llama-3.1-8b --at ") + wrong).code, 2) << wrong;
}

TEST_F(ExplainCommand, ABundledModelSaysWhereItComesFrom) {
  EXPECT_TRUE(has(posenc("explain bert-base-uncased").out, "reconstructed: class defaults"));
  EXPECT_EQ(json("deepseek-v3")["origin"], "published: a copy in ai-dynamo/aiconfigurator");
}

TEST_F(ExplainCommand, ListsOfModelsAndSchemesAreJson) {
  for (const char* list : {"models --json", "schemes --json"}) {
    const Json all = Json::parse(posenc(list).out, nullptr, false);
    ASSERT_TRUE(all.is_array()) << list;
    EXPECT_GT(all.size(), 20u) << list;
    for (const Json& each : all) EXPECT_TRUE(each["name"].is_string()) << list;
  }
}

// The rotation of both kinds of layers is one, and held against what the full ones see.
TEST_F(ExplainCommand, TheChartIsOfTheLayersThatSeeAll) {
  const std::string page = posenc("explain gpt-oss-20b").out;
  EXPECT_TRUE(has(page, "131,072 context, passed at pair"));
  EXPECT_FALSE(has(page, "128 window, passed"));
}

TEST_F(ExplainCommand, AFileAndAFolderAreRead) {
  write("config.json", posenc("models llama-3.1-8b").out);
  for (const char* model : {"config.json", "."}) {
    const Json explained = json(model);
    ASSERT_TRUE(explained.is_object()) << model;
    EXPECT_EQ(explained["groups"], json("llama-3.1-8b")["groups"]);
  }
}

TEST_F(ExplainCommand, ALengthIsCarriedOut) {
  EXPECT_EQ(json("llama-3.1-8b --at 1000")["asked"], 1000);
  EXPECT_TRUE(json("llama-3.1-8b")["asked"].is_null());
}

TEST_F(ExplainCommand, StrictExitsWithOneOnWarnings) {
  EXPECT_EQ(posenc("explain llama-2-7b --strict --at 100").code,
            json("llama-2-7b --at 100")["warnings"].empty() ? 0 : 1);
  EXPECT_EQ(posenc("explain llama-3.1-8b --strict --at 1000000").code, 1);
  EXPECT_EQ(posenc("explain llama-3.1-8b --at 1000000").code, 0);
}

TEST_F(ExplainCommand, CsvHasARowForEachPair) {
  const std::string csv = posenc("explain llama-3.1-8b --csv").out;
  EXPECT_TRUE(csv.starts_with("group,stack,label,pair,axis,frequency,unscaled,wavelength,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 65);
}

TEST_F(ExplainCommand, PairsShowsThemAll) {
  EXPECT_FALSE(has(posenc("explain llama-3.1-8b").out, "\n    17  "));
  EXPECT_TRUE(has(posenc("explain llama-3.1-8b --pairs").out, "\n    17  "));
}

TEST_F(ExplainCommand, AnUnknownModelIsBadInput) {
  const Outcome outcome = posenc("explain llama-3.1-8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_TRUE(outcome.err.starts_with("posenc: "));
}

TEST_F(ExplainCommand, ALayerTheModelLacksIsBadInput) {
  EXPECT_EQ(posenc("explain llama-3.1-8b --layer 32").code, 2);
  EXPECT_EQ(posenc("explain llama-3.1-8b --layer 31").code, 0);
}

TEST_F(ExplainCommand, AFileThatIsNoConfigIsBadInput) {
  write("broken.json", "{\"model_type\":");
  write("empty.json", "");
  for (const char* name : {"broken.json", "empty.json"})
    EXPECT_EQ(posenc("explain ./" + std::string(name)).code, 2);
}

}  // namespace
