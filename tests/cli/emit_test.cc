// posenc emit and posenc bench exactness, run as a user does.
#include <fstream>
#include <iterator>
#include <string>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace {

using Json = nlohmann::json;
using posenc::test::has;
using posenc::test::Outcome;

class EmitCommand : public posenc::test::CommandTest {};

TEST_F(EmitCommand, AModelAndASchemeAreWrittenAlike) {
  const Outcome model = posenc("emit llama-2-7b --to c");
  ASSERT_EQ(model.code, 0) << model.err;
  EXPECT_TRUE(has(model.out, "// llama-2-7b (")) << model.out.substr(0, 200);
  EXPECT_TRUE(has(model.out, "arXiv:2104.09864"));
  const Outcome scheme = posenc("emit --scheme rope --head_dim 128 --to c");
  const auto numbers = [](const std::string& text) { return text.substr(text.find("#include")); };
  EXPECT_EQ(numbers(model.out), numbers(scheme.out));
  EXPECT_EQ(posenc("emit --model llama-2-7b --to c").out, model.out);
}

TEST_F(EmitCommand, WritesAFileAndJson) {
  const Outcome written = posenc("emit llama-2-7b --to wgsl --out " + path("rope.wgsl"));
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_EQ(written.out, "");
  std::ifstream file(path("rope.wgsl"));
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Json json = Json::parse(posenc("emit llama-2-7b --to wgsl --json").out, nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json.at("text"), text);
  EXPECT_EQ(json.at("target"), "wgsl");
  // The test of a text for browsers is JSON too.
  const std::size_t at = text.find("// test: ") + 9;
  const Json test = Json::parse(text.substr(at, text.find('\n', at) - at), nullptr, false);
  ASSERT_FALSE(test.is_discarded());
  EXPECT_EQ(test.at("pairs"), 64);
  EXPECT_EQ(test.at("checks").at(0).size(), 8u);
}

TEST_F(EmitCommand, RefusalsAreBadInput) {
  for (const char* line : {"emit gpt2 --to c", "emit llama-2-7b --to metal", "emit --to c",
                           "emit llama-2-7b --to score_mod", "emit llama-2-7b",
                           "emit --scheme pope --head_dim 64 --to triton"}) {
    const Outcome refused = posenc(line);
    EXPECT_EQ(refused.code, 2) << line;
    EXPECT_EQ(refused.out, "") << line;
    EXPECT_TRUE(refused.err.starts_with("posenc: emit: ")) << refused.err;
  }
}

TEST_F(EmitCommand, WhatRunsHereIsExactAndOfTheSameBits) {
  const Outcome bench = posenc("bench exactness --json --python none");
  ASSERT_EQ(bench.code, 0) << bench.out << bench.err;
  const Json rows = Json::parse(bench.out, nullptr, false);
  ASSERT_FALSE(rows.is_discarded());
  std::string missing;
  int ours = 0, others = 0;
  for (const Json& row : rows) {
    if (row.contains("missing")) {
      missing += row.at("backend").get<std::string>() + " ";
      EXPECT_NE(row.at("missing"), "");
      continue;
    }
    ++(row.at("ours").get<bool>() ? ours : others);
    if (row.at("ours")) {
      EXPECT_LE(row.at("error").get<double>(), 6e-8) << row;
    }
  }
  EXPECT_GE(ours, 7);
  EXPECT_EQ(others, 14);
  EXPECT_TRUE(has(missing, "Triton")) << missing;
}

}  // namespace
