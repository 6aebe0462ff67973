// Tables of cosines and sines beside the model that they should be of.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "posenc/identify.h"
#include "posenc/model.h"

namespace posenc {
namespace {

Model published(std::string_view name) {
  const auto model = read_config(*bundled_config(name), name);
  EXPECT_TRUE(model) << model.error().message();
  return *model;
}

// What a scheme's own angles fill, row by row.
struct CosOrSin {
  std::int64_t rows = 600, pairs = 32;
  std::vector<double> memory = {};
  Tensor fill(const std::function<double(std::int64_t, std::int64_t)>& at) {
    memory.resize(static_cast<std::size_t>(rows * pairs));
    const Tensor view = Tensor::dense(memory.data(), DType::f32, {rows, pairs});
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t r = 0; r < pairs; ++r) view.set(t * pairs + r, at(t, r));
    return view;
  }
};
IdentifiedTable cos_sin_of(const std::function<double(std::int64_t, std::int64_t)>& angle,
                           std::int64_t pairs = 32) {
  CosOrSin cos{.pairs = pairs}, sin{.pairs = pairs};
  const auto found =
      identify_table(cos.fill([&](auto t, auto r) { return std::cos(angle(t, r)); }),
                     sin.fill([&](auto t, auto r) { return std::sin(angle(t, r)); }));
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(IdentifiedTable{});
}
std::function<double(std::int64_t, std::int64_t)> ladder(double base, double factor = 1,
                                                         double pairs = 32) {
  return [=](std::int64_t t, std::int64_t r) {
    return static_cast<double>(t) * std::pow(base, -static_cast<double>(r) / pairs) / factor;
  };
}

// Its own NTK: base 20000 · 8, every frequency over 8^(1/32); an encoder.
TEST(TableBesideModel, WhatTheModelAsksForIsSaid) {
  const auto findings = beside_model(cos_sin_of(ladder(160000, std::pow(8.0, 1.0 / 32))),
                                     published("gte-multilingual-base"));
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().code, "table_agrees");
  EXPECT_EQ(findings->front().severity, Severity::note);
  EXPECT_TRUE(findings->front().message.contains("factor 8")) << findings->front().message;
}

TEST(TableBesideModel, AnotherModelsIsNot) {
  const auto code = [](const IdentifiedTable& table, std::string_view model) {
    const auto findings = beside_model(table, published(model));
    return findings && !findings->empty() ? findings->front().code : "";
  };
  EXPECT_EQ(code(cos_sin_of(ladder(160000, std::pow(8.0, 1.0 / 32))), "llama-2-7b"), "rotary_dim");
  EXPECT_EQ(code(cos_sin_of(ladder(1e6, 1, 64), 64), "llama-2-7b"), "rope_theta");
  EXPECT_EQ(code(cos_sin_of(ladder(5e5, 1, 64), 64), "llama-3.1-8b"), "rope_scaling");
}

TEST(TableBesideModel, PairsThatStandStillAreTold) {
  const auto turns = ladder(1e6, 1, 64);
  const auto cut = [&](std::int64_t t, std::int64_t r) { return r < 48 ? turns(t, r) : 0; };
  const auto findings = beside_model(cos_sin_of(cut, 64), published("qwen3-8b"));
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().code, "frequency");
  EXPECT_EQ(findings->front().found, "pairs 48–63 stand still");
}

TEST(TableBesideModel, AScalingInStepsIsTold) {
  const auto turns = ladder(5e5, 1, 64);
  const auto cut = [&](std::int64_t t, std::int64_t r) { return turns(t, r) / (r < 40 ? 1 : 8); };
  const auto findings = beside_model(cos_sin_of(cut, 64), published("llama-3.1-8b"));
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_FALSE(findings->empty());
  EXPECT_EQ(findings->front().found, "pairs 0–39 ×1, 40–63 ×0.125");
}

// Of its layers those with a window come first, whose base is 10000.
TEST(TableBesideModel, LayersOfTheTablesBaseAreNearest) {
  const auto findings = beside_model(cos_sin_of(ladder(1e6, 1, 128), 128), published("gemma-3-4b"));
  ASSERT_TRUE(findings) << findings.error().message();
  ASSERT_FALSE(findings->empty());
  EXPECT_EQ(findings->front().code, "rope_scaling");
}

// A scaling of the same name reads alike without its numbers.
TEST(TableBesideModel, TwoFactorsOfOneScalingAreToldApart) {
  const Rope rope{.rope_theta = 5e5,
                  .rotary_dim = 128,
                  .scaling = Llama3{.factor = 32, .original_max_position_embeddings = 8192}};
  const auto made = rope_frequencies<double>(rope, {.head_dim = 128});
  ASSERT_TRUE(made);
  const auto findings = beside_model(cos_sin_of(
                                         [&](std::int64_t t, std::int64_t r) {
                                           return static_cast<double>(t) *
                                                  made->frequency[static_cast<std::size_t>(r)];
                                         },
                                         64),
                                     published("llama-3.1-8b"));
  ASSERT_TRUE(findings && !findings->empty());
  EXPECT_EQ(findings->front().code, "rope_scaling");
  EXPECT_NE(findings->front().expected, findings->front().found);
}

// Angles of 16 bits bend what is measured of the frequencies: they are no other scaling.
TEST(TableBesideModel, AnglesInFloat16AreNoOtherScaling) {
  const auto model = read_config(R"({"model_type": "qwen2", "hidden_size": 896,
      "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 24,
      "max_position_embeddings": 32768, "rope_theta": 1000000})");
  ASSERT_TRUE(model);
  const auto narrow = [](double x) {
    return static_cast<double>(half_to_float(float_to_half(static_cast<float>(x))));
  };
  const IdentifiedTable found = cos_sin_of([&](std::int64_t t, std::int64_t r) {
    return narrow(narrow(static_cast<double>(t)) *
                  narrow(std::pow(1e6, -static_cast<double>(r) / 32)));
  });
  ASSERT_FALSE(found.rotation.findings.empty());
  EXPECT_EQ(found.rotation.findings.front().code, "angles_rounded");
  const auto findings = beside_model(found, *model);
  ASSERT_TRUE(findings);
  EXPECT_TRUE(only_notes(*findings)) << findings->front().code << findings->front().expected;
}

TEST(TableBesideModel, FrequenciesInFloat16) {
  const auto model = read_config(R"({"model_type": "qwen2", "hidden_size": 896,
      "num_attention_heads": 14, "num_key_value_heads": 2, "num_hidden_layers": 24,
      "max_position_embeddings": 32768, "rope_theta": 1000000})");
  const auto findings = beside_model(
      cos_sin_of([&](std::int64_t t, std::int64_t r) {
        const double f = std::pow(1e6, -static_cast<double>(r) / 32);
        return static_cast<double>(t) *
               static_cast<double>(half_to_float(float_to_half(static_cast<float>(f))));
      }),
      model.value());
  ASSERT_TRUE(findings && !findings->empty());
  EXPECT_EQ(findings->front().code, "frequencies_rounded");
  EXPECT_EQ(findings->front().found, "float16");
}

// One pair of Llama 3's, which a slip of the index gave the one before; and one that is slower.
TEST(TableBesideModel, OnePairOfATextIsNoRiflex) {
  const auto odd = [](double frequency) {
    return cos_sin_of(
        [=](std::int64_t t, std::int64_t r) {
          return r == 17 ? static_cast<double>(t) * frequency : ladder(5e5, 1, 64)(t, r);
        },
        64);
  };
  const IdentifiedTable slipped = odd(std::pow(5e5, -16.0 / 64)), slower = odd(0.025);
  ASSERT_FALSE(slipped.rotation.findings.empty());
  const Finding& alone = slipped.rotation.findings.front();
  EXPECT_EQ(alone.code, "odd_pair");
  EXPECT_EQ(alone.severity, Severity::error);
  EXPECT_TRUE(alone.message.contains("pair 16")) << alone.message;
  EXPECT_FALSE(alone.message.contains("RIFLEx")) << alone.message;
  ASSERT_FALSE(slower.rotation.findings.empty());
  EXPECT_TRUE(slower.rotation.findings.front().message.contains("RIFLEx"));
  const auto beside_text = beside_model(slower, published("llama-3-8b"));
  ASSERT_TRUE(beside_text && !beside_text->empty());
  EXPECT_EQ(beside_text->front().code, "odd_pair");
  Identified merged = slower.rotation;
  add_beside(*beside_text, merged);
  ASSERT_EQ(merged.findings.size(), 1u);
  EXPECT_FALSE(merged.findings.front().message.contains("RIFLEx"));
}

}  // namespace
}  // namespace posenc
