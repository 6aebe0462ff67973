// What a plan for a longer context says is what the plans of its options compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "posenc/tools.h"
#include "src/tools/least_base.h"

namespace posenc {
namespace {

// A Llama of 4096 tokens, with more keys.
Model llama_with(const std::string& more) {
  const Expected<Model> model = read_config(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32,
          "num_key_value_heads": 8, "max_position_embeddings": 4096, "torch_dtype": "bfloat16", "rope_theta": 10000.0)" +
      more + "}");
  EXPECT_TRUE(model) << model.error().message();
  return model.value_or(Model{});
}

ContextPlan planned(const Model& model, const ExtendOptions& options) {
  const Expected<ContextPlan> plan = extend(model, options);
  EXPECT_TRUE(plan) << plan.error().message();
  return plan.value_or(ContextPlan{});
}

ContextPlan bundled(const char* name, std::int64_t to) {
  const Expected<Model> model = read_model(name);
  EXPECT_TRUE(model);
  return planned(*model, {.to = to});
}

const ContextOption& option(const ContextPlan& plan, std::string_view name) {
  static const ContextOption none;
  const auto at = std::ranges::find(plan.options, name, &ContextOption::name);
  EXPECT_NE(at, plan.options.end()) << name;
  return at == plan.options.end() ? none : *at;
}

TEST(Extend, WithoutAScalingSlowPairsMeetNewAngles) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768});
  const ContextOption& as_is = option(plan, "as_is");
  // 10000^(−2r/128)·4096 is below a full turn from pair 46 on.
  ASSERT_EQ(as_is.unseen.size(), 18u);
  EXPECT_EQ(as_is.unseen.front(), 46);
  EXPECT_EQ(as_is.unseen_from, 4096);
  EXPECT_GE(plan.turns[45], 1);
  EXPECT_LT(plan.turns[46], 1);
  EXPECT_FALSE(as_is.short_texts_from);
}

TEST(Extend, InterpolationShowsNothingNewAndBlursNeighbours) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768});
  const ContextOption& linear = option(plan, "linear");
  EXPECT_TRUE(linear.unseen.empty());
  EXPECT_NEAR(linear.fastest_pair, 8, 1e-9);
  EXPECT_EQ(linear.short_texts_from, 1);
  EXPECT_FALSE(linear.rerotate);
}

TEST(Extend, NtkAwareScalingLeavesSomeAnglesUnseen) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768});
  const ContextOption& ntk = option(plan, "ntk");
  EXPECT_FALSE(ntk.unseen.empty());
  EXPECT_NEAR(ntk.fastest_pair, 1, 1e-9);
  // The distance that is named is the first at which a pair passes what it showed.
  const double furthest = 4096 * std::pow(10000, -2.0 * 46 / 128);
  EXPECT_NEAR(static_cast<double>(*ntk.unseen_from), std::ceil(furthest / ntk.frequencies[46]), 1);
}

TEST(Extend, DynamicScalingAsksForCachedKeysToBeRotatedAgain) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768});
  const ContextOption& dynamic = option(plan, "dynamic");
  EXPECT_TRUE(dynamic.rerotate);
  EXPECT_FALSE(dynamic.short_texts_from);
}

TEST(Extend, YarnIsRecommendedAndSharpensLogits) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768});
  EXPECT_EQ(plan.recommended, "yarn");
  EXPECT_EQ(plan.source, "2309.00071");
  const double amplitude = 0.1 * std::log(8.0) + 1;
  EXPECT_NEAR(option(plan, "yarn").amplitude, amplitude, 1e-12);
  EXPECT_NEAR(option(plan, "yarn").logits, amplitude * amplitude, 1e-12);
  ASSERT_TRUE(plan.said);
  EXPECT_TRUE(plan.said->target.contains(R"("factor":8.0)")) << plan.said->target;
  EXPECT_TRUE(plan.said->target.contains(R"("max_position_embeddings":32768)"));
}

TEST(Extend, WithinTheContextNothingIsDone) {
  const ContextPlan plan = planned(llama_with(""), {.to = 4096});
  EXPECT_EQ(plan.recommended, "as_is");
  EXPECT_EQ(plan.rule, "within_context");
  EXPECT_EQ(plan.options.size(), 1u);
}

TEST(Extend, TrainingMakesALargerBaseTheChoice) {
  const ContextPlan plan = planned(llama_with(""), {.to = 32768, .training = true});
  EXPECT_EQ(plan.recommended, "larger_base");
  EXPECT_GE(option(plan, "larger_base").rope->rope_theta, *plan.least_base);
}

TEST(Extend, AScalingThatWasTrainedGrows) {
  const ContextPlan plan = bundled("llama-3.1-8b", 524288);
  EXPECT_EQ(plan.recommended, "llama3");
  EXPECT_EQ(plan.rule, "same_scaling");
  EXPECT_NEAR(std::get<Llama3>(option(plan, "llama3").rope->scaling).factor, 32, 1e-9);
  EXPECT_EQ(plan.trained, 131072);
}

TEST(Extend, AScalingThatTheFileOnlyAddsIsNotTakenAsTrained) {
  const ContextPlan plan = bundled("qwen2.5-7b-yarn4", 131072);
  EXPECT_EQ(plan.trained, 32768);
  EXPECT_TRUE(option(plan, "as_is").unseen.empty());
  EXPECT_TRUE(option(plan, "as_is").short_texts_from);
  EXPECT_EQ(plan.rule, "nothing_unseen");
}

TEST(Extend, LongRopeNeedsNewFactors) {
  const ContextPlan plan = bundled("phi-3.5-mini", 262144);
  EXPECT_EQ(plan.recommended, "longrope");
  EXPECT_FALSE(option(plan, "longrope").unavailable.empty());
  EXPECT_FALSE(plan.said);
}

TEST(Extend, LayersThatSlideAreLeftAsTheyAre) {
  const ContextPlan plan = bundled("gemma-3-4b", 524288);
  EXPECT_EQ(plan.layers, (std::vector<std::int64_t>{5, 11, 17, 23, 29}));
  EXPECT_EQ(plan.untouched.size(), 29u);
  EXPECT_EQ(plan.recommended, "linear");
  EXPECT_TRUE(plan.said->target.contains(R"("sliding_attention":{"rope_type":"default")"))
      << plan.said->target;
}

TEST(Extend, WhereOnlyWindowsRotateNothingIsNew) {
  EXPECT_EQ(bundled("llama-4-scout", std::int64_t{1} << 24).rule, "windows");
}

TEST(Extend, TheCacheCountsWindows) {
  const ContextPlan plan = bundled("gpt-oss-20b", 262144);
  ASSERT_EQ(plan.cache.size(), 2u);
  for (const CacheShare& share : plan.cache)
    EXPECT_EQ(share.bytes_within_window,
              share.window ? share.bytes / 262144 * *share.window : share.bytes);
}

TEST(Extend, ModelsThatDoNotRotateGetWhatHolds) {
  EXPECT_EQ(bundled("bloom-176b", 65536).rule, "slopes");
  EXPECT_EQ(bundled("t5-small", 65536).rule, "buckets");
  EXPECT_EQ(bundled("gpt2", 2048).recommended, "longer_table");
  EXPECT_EQ(bundled("gpt2", 512).recommended, "as_is");
  EXPECT_EQ(bundled("whisper-tiny", 2048).recommended, "longer_table");
}

TEST(Extend, EveryBundledModelHasAPlan) {
  for (const BundledModel& model : bundled_models()) {
    const ContextPlan plan = bundled(std::string(model.name).c_str(), 262144);
    EXPECT_FALSE(plan.reason.empty()) << model.name;
    EXPECT_FALSE(plan.rule.empty()) << model.name;
  }
}

TEST(Extend, AnEngineThatHasNoWordsForTheFirstChoiceGetsAnother) {
  // YaRN with a factor on cos and sin of its own: no flag of llama.cpp keeps it.
  const Model model = llama_with(
      R"(, "rope_scaling": {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 2048, "attention_factor": 1.0})");
  const ContextPlan plan = planned(model, {.to = 16384, .engine = "llama.cpp"});
  EXPECT_NE(plan.recommended, "yarn");
  ASSERT_FALSE(plan.engine.empty());
  EXPECT_TRUE(plan.engine.front().contains("yarn cannot be had there")) << plan.engine.front();
}

TEST(Extend, RefusesWhatItCannotPlan) {
  EXPECT_FALSE(extend(llama_with(""), {.to = 0}));
  EXPECT_FALSE(extend(llama_with(""), {.to = std::int64_t{1} << 60}));
  EXPECT_FALSE(extend(llama_with(""), {.to = 8192, .engine = "keras"}));
  EXPECT_FALSE(extend(Model{}, {.to = 8192}));
}

TEST(LeastBase, IsTheFirstOnItsGridThatKeepsTheSumAboveZero) {
  const auto least = [](double base) {
    double lowest = 64;
    for (int m = 0; m < 4096; ++m) {
      double sum = 0;
      for (int r = 0; r < 64; ++r) sum += std::cos(m * std::pow(base, -r / 64.0));
      lowest = std::min(lowest, sum);
    }
    return lowest;
  };
  const auto base = detail::least_base({.pairs = 64, .rotating = 64, .channels = 128}, 4096);
  ASSERT_TRUE(base);
  EXPECT_GE(least(*base), 0);
  EXPECT_LT(least(*base * std::exp2(-1.0 / 16)), 0);
  EXPECT_LT(least(*base / 4), 0);
}

TEST(LeastBase, StillChannelsNeedNone) {
  EXPECT_FALSE(detail::least_base({.pairs = 16, .rotating = 16, .channels = 128}, 4096));
}

TEST(LeastBase, GivesUpOnWorkWithoutEnd) {
  EXPECT_FALSE(
      detail::least_base({.pairs = 64, .rotating = 64, .channels = 128}, std::int64_t{1} << 40));
}

}  // namespace
}  // namespace posenc
