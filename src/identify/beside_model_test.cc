// Dumps beside the model that they should be of.
#include <cmath>

#include "src/identify/shown_test.h"

namespace posenc {
namespace {

Model bundled(std::string_view name) {
  const auto model = read_config(*bundled_config(name), name);
  EXPECT_TRUE(model) << model.error().message();
  return *model;
}

// The first code, of vectors that `rope` rotated; "" where all is as in the model.
std::string beside(const Identified& found, const Model& model, std::int64_t layer = 0) {
  const auto findings = beside_model(found, model, layer);
  EXPECT_TRUE(findings) << findings.error().message();
  if (!findings || findings->empty()) return "";
  return findings->front().code;
}

Shown vectors() { return {.heads = 2, .tokens = 400, .dim = 128}; }
constexpr Llama3 llama3{.factor = 8, .original_max_position_embeddings = 8192};

TEST(BesideModel, TheModelsOwnRotationIsSilent) {
  const Rope rope{.rope_theta = 5e5, .scaling = llama3};
  EXPECT_EQ(beside(vectors().fill(1).rotate_by(rope).identified(), bundled("llama-3.1-8b")), "");
  EXPECT_EQ(
      beside(vectors().fill(1, true).rotate_by(rope).from_repeated(), bundled("llama-3.1-8b")), "");
}

TEST(BesideModel, AScalingThatIsLost) {
  EXPECT_EQ(beside(vectors().fill(2).rotate_by({.rope_theta = 5e5}).identified(),
                   bundled("llama-3.1-8b")),
            "rope_scaling");
}

TEST(BesideModel, AnotherBase) {
  EXPECT_EQ(beside(vectors().fill(3).rotate_by({}).identified(), bundled("llama-3.1-8b")),
            "rope_theta");
}

TEST(BesideModel, AnotherPairing) {
  EXPECT_EQ(beside(vectors().fill(4).rotate_by({.pairing = Pairing::interleaved}).identified(),
                   bundled("llama-3.1-8b")),
            "pairing");
}

// Half of each angle, twice: without the model this is any other rotation.
TEST(BesideModel, TwiceIsToldWhereTheModelRotatesSlower) {
  const Rope rope{.rope_theta = 5e5, .scaling = llama3};
  Shown shown = vectors();
  shown.fill(5).rotate_by(rope).rotate_again(rope);
  EXPECT_EQ(beside(shown.identified(), bundled("llama-3.1-8b")), "rotated_twice");
}

TEST(BesideModel, Backwards) {
  Shown shown = vectors();
  shown.fill(6).rotate_by({.rope_theta = 5e5, .reversed = true, .scaling = llama3});
  EXPECT_EQ(beside(shown.identified(), bundled("llama-3.1-8b")), "backwards");
}

TEST(BesideModel, ATableInBfloat16Frequencies) {
  const Model model = bundled("llama-3.1-8b");
  auto plan = compile(model.groups.front());
  ASSERT_TRUE(plan);
  for (double& f : plan->rotate->frequencies.radians)
    f = bfloat16_to_float(float_to_bfloat16(static_cast<float>(f)));
  plan->rotate->kind = Plain{};
  Shown shown = vectors();
  shown.fill(7);
  ASSERT_TRUE(
      rotate(*plan, shown.before, Positions::range(0, shown.tokens), Side::key, shown.after));
  EXPECT_EQ(beside(shown.identified(), model), "frequencies_rounded");
}

TEST(BesideModel, TheBaseOfAnotherKindOfLayer) {
  const Model model = bundled("gemma-3-4b");
  const LayerGroup* sliding = find_group(model, 0, Stack::text);
  const LayerGroup* full = find_group(model, 5, Stack::text);
  ASSERT_TRUE(sliding && full && sliding != full);
  const auto plan = compile(*full);
  Shown shown = vectors();
  shown.dim = plan->rotate->slice.rotary_dim;
  shown.fill(8);
  ASSERT_TRUE(
      rotate(*plan, shown.before, Positions::range(0, shown.tokens), Side::key, shown.after));
  EXPECT_EQ(beside(shown.identified(), model, 5), "");
  EXPECT_EQ(beside(shown.identified(), model, 0), "other_layers");
}

// Proportional over a head of 512, with the exponent over the 128 channels that rotate.
TEST(BesideModel, AnotherDenominator) {
  const Model model = bundled("gemma-4-e2b");
  std::int64_t layer = 0;
  while (find_group(model, layer, Stack::text)->window) ++layer;
  auto plan = compile(*find_group(model, layer, Stack::text));
  ASSERT_TRUE(plan && plan->rotate);
  Rotate& rotation = *plan->rotate;
  ASSERT_EQ(rotation.slice.rotary_dim, 512);
  for (std::int64_t r = 0; r < rotation.pairs(); ++r)
    if (double& f = rotation.frequencies.radians[static_cast<std::size_t>(r)]; f != 0)
      f = std::pow(f, 4.0);
  Shown shown{.heads = 2, .tokens = 400, .dim = 512};
  shown.fill(9);
  ASSERT_TRUE(
      rotate(*plan, shown.before, Positions::range(0, shown.tokens), Side::key, shown.after));
  const auto findings = beside_model(shown.identified(), model, layer);
  ASSERT_TRUE(findings && !findings->empty());
  EXPECT_EQ(findings->front().code, "denominator");
  EXPECT_EQ(findings->front().found, "128");
}

TEST(BesideModel, AnAmplitudeThatIsLost) {
  Shown shown = vectors();
  const Yarn yarn{.factor = 4, .original_max_position_embeddings = 32768, .attention_factor = 1};
  shown.fill(10).rotate_by({.rope_theta = 1e6, .scaling = yarn});
  EXPECT_EQ(beside(shown.identified(), bundled("qwen2.5-7b-yarn4")), "amplitude");
}

TEST(BesideModel, ALayerThatRotatesNot) {
  Shown shown = vectors();
  shown.fill(11);
  shown.after_memory = shown.before_memory;
  EXPECT_EQ(beside(shown.identified(), bundled("llama-3.1-8b")), "scheme");
}

// What latent attention caches apart: 64 channels, of heads whose 64 last ones rotate.
TEST(BesideModel, ThePartThatRotatesMayStandAlone) {
  const auto model = read_config(R"({"model_type": "deepseek_v32", "rope_theta": 10000})");
  ASSERT_TRUE(model);
  const auto rotated = [](double base) {
    return Shown{.heads = 1, .tokens = 400}
        .fill(1)
        .rotate_by({.rope_theta = base, .pairing = Pairing::interleaved})
        .identified();
  };
  const auto findings = beside_model(rotated(1e4), *model);
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().code, "rotated_part");
  EXPECT_EQ(findings->front().severity, Severity::note);
  EXPECT_TRUE(findings->front().message.contains("128 to 191")) << findings->front().message;
  EXPECT_EQ(beside(rotated(5e5), *model), "rope_theta");
}

TEST(BesideModel, ALayerMustBeThere) {
  const Identified found = vectors().fill(12).rotate_by({}).identified();
  EXPECT_FALSE(beside_model(found, bundled("llama-3.1-8b"), 99));
}

TEST(BesideModel, AnIndexerWithoutTheScalingIsRightInShortTexts) {
  const auto model = read_config(R"({"model_type": "deepseek_v32", "rope_theta": 10000,
      "rope_scaling": {"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096}})");
  ASSERT_TRUE(model);
  const auto findings =
      beside_model(vectors().fill(1).rotate_by(Rope{.rotary_dim = 64}).identified(), *model);
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().code, "indexer");
  EXPECT_EQ(findings->front().severity, Severity::note);
  EXPECT_TRUE(findings->front().message.contains("4096 tokens")) << findings->front().message;
}

// Keys of DeepSeek V3.2's indexer have 128 channels, of which 64 rotate in halves.
TEST(BesideModel, AnIndexersTensorsAreHeldAgainstItsOwnRotation) {
  const auto model = read_config(R"({"model_type": "deepseek_v32"})");
  ASSERT_TRUE(model);
  const Identified halves = vectors().fill(1).rotate_by(Rope{.rotary_dim = 64}).identified(),
                   neighbours =
                       vectors()
                           .fill(1)
                           .rotate_by(Rope{.pairing = Pairing::interleaved, .rotary_dim = 64})
                           .identified();
  const auto findings = beside_model(halves, *model);
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1u);
  EXPECT_EQ(findings->front().code, "indexer");
  EXPECT_EQ(findings->front().severity, Severity::note);
  EXPECT_TRUE(beside_model(halves, *model, 0, 0, DumpedPart::indexer)->empty());
  EXPECT_EQ(beside(neighbours, *model), "indexer_pairing");
  const auto other =
      vectors().fill(1).rotate_by(Rope{.rope_theta = 5e5, .rotary_dim = 64}).identified();
  EXPECT_EQ(beside(other, *model), "rope_theta");
  EXPECT_FALSE(beside_model(other, bundled("llama-3.1-8b"), 0, 0, DumpedPart::indexer));
}

}  // namespace
}  // namespace posenc
