#include "posenc/position.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "posenc/tools.h"
#include "tests/paths.h"

namespace {

using namespace posenc;

PositionFile of(std::string_view model, std::int64_t length = 0) {
  return position_of(explain(read_model(model).value(), {.at = length}).value());
}

TEST(Position, EveryBundledModelComesBackAsItWas) {
  for (const BundledModel& model : bundled_models()) {
    const PositionFile file = of(model.name);
    const auto read = read_position(to_json(file));
    ASSERT_TRUE(read) << model.name << ": " << read.error().message();
    ASSERT_EQ(read->groups.size(), file.groups.size()) << model.name;
    const auto found = differences(file, *read);
    ASSERT_TRUE(found);
    EXPECT_TRUE(found->empty()) << model.name << ": " << found->front().message;
  }
}

TEST(Position, AFileIsToldByItsFirstKey) {
  EXPECT_TRUE(is_position(" {\n \"position_json\": 1}"));
  EXPECT_FALSE(is_position(R"({"model_type": "llama", "position_json": 1})"));
  EXPECT_FALSE(is_position(""));
  EXPECT_TRUE(is_position(to_json(of("llama-3.1-8b"))));
}

TEST(Position, RecurrentLayersAreLeftOut) {
  for (const PositionGroup& group : of("gemma-3-4b").groups) EXPECT_FALSE(group.layers.empty());
}

TEST(Position, ALengthThatThePlanDependsOnIsSaid) {
  const PositionFile near = of("phi-3.5-mini", 4096), far = of("phi-3.5-mini", 4097);
  EXPECT_EQ(far.length, 4097);
  const auto found = differences(near, far);
  ASSERT_TRUE(found);
  EXPECT_FALSE(found->empty());
}

TEST(Position, WhatDiffersIsToldByLayers) {
  const PositionFile right = of("gemma-3-4b");
  PositionFile wrong = right;
  wrong.groups[0].window = 4096;
  wrong.groups[1].plan.rotate->slice.pairing = Pairing::interleaved;
  wrong.groups[1].sink_logits = true;
  const auto found = differences(right, wrong).value();
  ASSERT_EQ(found.size(), 3u);
  for (const Finding& finding : found)
    EXPECT_EQ(finding.layers,
              finding.code == "window" ? right.groups[0].layers : right.groups[1].layers)
        << finding.code;
}

TEST(Position, ALayerThatOneLacksIsTold) {
  const PositionFile right = of("llama-3.1-8b");
  PositionFile short_one = right;
  short_one.groups[0].layers.pop_back();
  const auto found = differences(right, short_one).value();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "layers");
  EXPECT_EQ(found[0].layers, std::vector<std::int64_t>{31});
}

TEST(Position, AFileThatIsWrongIsRefusedWithItsPlace) {
  for (const auto& [text, words] :
       {std::pair{R"({"position_json": 2, "groups": []})", "position_json must be 1"},
        {R"({"position_json": 1})", "groups must be a list"},
        {R"({"position_json": 1, "groups": [{"stack": "words"}]})", "stack must be"},
        {R"({"position_json": 1, "groups": [{"stack": "text", "layers": []}]})", "layers must be"},
        {R"({"position_json": 1, "groups": [{"stack": "text", "layers": [1, 1]}]})", "ascend"},
        {R"({"position_json": 1, "groups": [{"stack": "text", "layers": [0]}]})",
         "groups[0]: plan must be there"},
        {R"({"position_json": 1, "groups": [{"stack": "text", "layers": [0], "head_dim": -1,
             "plan": {}}]})",
         "head_dim must be null or a count"},
        {"[", "position.json"}}) {
    const auto read = read_position(text);
    ASSERT_FALSE(read) << text;
    EXPECT_NE(read.error().message().find(words), std::string::npos) << read.error().message();
  }
}

TEST(Position, AnUnknownMemberIsNotComputedWith) {
  std::string text = to_json(of("llama-3.1-8b"));
  text.insert(text.find("\"pairing\""), "\"hologram\":7,");
  const auto read = read_position(text);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_FALSE(read->groups[0].plan.unknown.empty());
}

}  // namespace
