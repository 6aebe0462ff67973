// The lines of formulas beside the plans that they stand for: every configuration of the zoo, and
// every setting by which a scaling leaves a part of its formula out.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/explain.h"
#include "tests/paths.h"

namespace posenc {
namespace {

// The number behind the last "= " or "× " of a line.
double last_number_of(const std::string& text) {
  const std::size_t equals = text.rfind("= "), times = text.rfind("× ");
  const std::size_t from = equals != text.npos && (times == text.npos || equals > times)
                               ? equals + 2
                               : times + std::string("× ").size();
  return std::strtod(text.c_str() + from, nullptr);
}

// Returns how many scalings there are.
int check_formulas(const Explanation& explanation) {
  int scalings = 0;
  for (const GroupExplanation& facts : explanation.groups) {
    const LayerGroup& group = explanation.model.groups[facts.group];
    const Rope* const rope = std::get_if<Rope>(&group.schemes.at(0));
    if (!rope || !facts.plan.rotate || std::holds_alternative<Unscaled>(rope->scaling)) continue;
    ++scalings;
    EXPECT_EQ(facts.formulas.size(), 2u);
    if (facts.formulas.size() != 2) continue;
    const std::string& text = facts.formulas[1].text;
    EXPECT_EQ(facts.formulas[1].name, info(rope->scaling).name);
    const double amplitude = facts.plan.rotate->amplitude;
    EXPECT_EQ(text.contains("cos, sin"), amplitude != 1) << text;
    if (amplitude != 1) {
      EXPECT_NEAR(last_number_of(text), amplitude, 5e-5 * amplitude) << text;
    }
    if (const Yarn* yarn = std::get_if<Yarn>(&rope->scaling)) {
      EXPECT_EQ(text.contains("⌊"), yarn->truncate) << text;
      EXPECT_EQ(text.contains("⌈"), yarn->truncate) << text;
    }
  }
  return scalings;
}

TEST(Formulas, AgreeWithThePlansOfTheZoo) {
  int scalings = 0;
  for (const auto& file : std::filesystem::directory_iterator(test::data_path("zoo"))) {
    const auto model = read_model(file.path().string());
    if (!model) continue;  // index.json
    for (const std::int64_t at : {std::int64_t{0}, std::int64_t{200'000}}) {
      const auto explanation = explain(*model, {.at = at});
      if (!explanation) continue;  // a table that ends
      SCOPED_TRACE(file.path().string());
      scalings += check_formulas(*explanation);
    }
  }
  EXPECT_GT(scalings, 30);
}

std::string scaling_line(std::string_view parameters, std::int64_t at = 0) {
  const auto model = read_config(
      R"({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 4,
          "num_hidden_layers": 2, "max_position_embeddings": 16384, "rope_theta": 10000,
          "rope_scaling": )" +
      std::string(parameters) + "}");
  if (!model) ADD_FAILURE() << model.error().message();
  if (!model) return {};
  const auto explanation = explain(*model, {.at = at});
  check_formulas(*explanation);
  return explanation->groups.at(0).formulas.at(1).text;
}

TEST(Formulas, YarnSaysWhatMakesItsFactor) {
  constexpr std::string_view plain =
      R"({"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 4096)";
  const auto with = [&](std::string_view more) {
    return scaling_line(std::string(plain) + std::string(more) + "}");
  };
  EXPECT_EQ(with(""),
            "ramp·f_r/s + (1−ramp)·f_r, ramp from 0 at pair ⌊c(32)⌋ to 1 at ⌈c(1)⌉, c(n) = "
            "d·ln(L/2πn)/(2 ln b); s = 4, L = 4,096; cos, sin × (0.1 ln s + 1) = 1.1386");
  EXPECT_TRUE(with(R"(, "mscale": 1, "mscale_all_dim": 1)").ends_with("L = 4,096"));
  EXPECT_TRUE(with(R"(, "mscale": 0.5, "mscale_all_dim": 1)")
                  .contains("× (0.1·0.5 ln s + 1)/(0.1·1 ln s + 1) = 0.939"));
  EXPECT_TRUE(with(R"(, "attention_factor": 0.9)").ends_with("cos, sin × attention_factor = 0.9"));
  EXPECT_TRUE(with(R"(, "attention_factor": 1)").ends_with("L = 4,096"));
  const std::string untruncated = with(R"(, "truncate": false, "beta_fast": 16, "beta_slow": 2)");
  EXPECT_TRUE(untruncated.contains("at pair c(16) to 1 at c(2)")) << untruncated;
}

TEST(Formulas, OtherScalingsSayTheirNumbers) {
  EXPECT_EQ(scaling_line(R"({"rope_type": "linear", "factor": 4})"), "f_r / 4");
  EXPECT_TRUE(scaling_line(R"({"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
      "high_freq_factor": 4, "original_max_position_embeddings": 4096})")
                  .ends_with("f_r/s below 1, f_r above 4, linear in turns between; s = 8, L = "
                             "4,096"));
  EXPECT_EQ(scaling_line(R"({"rope_type": "proportional", "partial_rotary_factor": 0.25})"),
            "f_r = b^(−2r/d) for r < ⌊0.25·d/2⌋, else 0, with the exponent over all of d");
}

TEST(Formulas, ATemperatureIsInBrackets) {
  const auto model = read_config(R"({"model_type": "llama4_text", "hidden_size": 512,
      "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4})");
  ASSERT_TRUE(model);
  const auto explanation = explain(*model);
  ASSERT_TRUE(explanation);
  EXPECT_TRUE(explanation->groups.at(1).amplitude_note.contains(
      "the query at position p × (1 + 0.1·ln(1 + ⌊(p + 1)/8192⌋)), which"))
      << explanation->groups.at(1).amplitude_note;
}

}  // namespace
}  // namespace posenc
