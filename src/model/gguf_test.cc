// GGUF files of the official writer, and what a config.json of the same model says.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "posenc/model.h"
#include "tests/paths.h"

namespace posenc {
namespace {

Model read(const std::string& path) {
  auto model = read_model(path);
  if (model) return *std::move(model);
  ADD_FAILURE() << model.error().message();
  return {};
}
Model file(const std::string& name) { return read(test::data_path("files/" + name + ".gguf")); }

bool warns(const Model& model, std::string_view code) {
  return std::ranges::find(model.warnings, code, &Warning::code) != model.warnings.end();
}
const Provenance* said(const LayerGroup& group, std::string_view field) {
  const auto found = std::ranges::find(group.provenance, field, &Provenance::field);
  return found == group.provenance.end() ? nullptr : &*found;
}
std::string bytes_of(const std::string& name) {
  std::ifstream in(test::data_path("files/" + name + ".gguf"), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
Expected<Model> read_text(const std::string& text) {
  return read_gguf(std::as_bytes(std::span(text)), "m.gguf");
}

// --- one model in two files ----------------------------------------------------------------------

// Converters keep single precision, and permute channels for the pairing.
void expect_same_rotation(const Rotate& a, const Rotate& b) {
  EXPECT_EQ(a.slice.rotary_dim, b.slice.rotary_dim);
  EXPECT_EQ(a.slice.first_dim, b.slice.first_dim);
  EXPECT_EQ(a.frequencies.axes, b.frequencies.axes);
  EXPECT_NEAR(a.amplitude, b.amplitude, 1e-6 * b.amplitude);
  ASSERT_EQ(a.frequencies.radians.size(), b.frequencies.radians.size());
  for (std::size_t i = 0; i < a.frequencies.radians.size(); ++i)
    EXPECT_NEAR(a.frequencies.radians[i], b.frequencies.radians[i], 1e-6 * b.frequencies.radians[i])
        << i;
}

// The window, where a text of the model's length reaches beyond it; llama.cpp knows no other for
// Phi 3.
std::optional<std::int64_t> cuts(const LayerGroup& group, const Model& model) {
  return group.window && *group.window < model.context ? group.window : std::nullopt;
}

void expect_same_plans(const Model& gguf, const Model& config, std::int64_t length) {
  EXPECT_EQ(gguf.context, config.context);
  for (const LayerGroup& group : config.groups) {
    if (group.stack == Stack::vision) continue;
    for (const std::int64_t layer : group.layers) {
      const LayerGroup* same = find_group(gguf, layer, group.stack);
      ASSERT_TRUE(same) << layer;
      EXPECT_EQ(cuts(*same, gguf), cuts(group, config)) << layer;
      EXPECT_EQ(same->causal, group.causal) << layer;
      EXPECT_EQ(same->geometry, group.geometry) << layer;
      EXPECT_EQ(same->cache_elements, group.cache_elements) << layer;
      const auto a = compile(*same, length), b = compile(group, length);
      ASSERT_TRUE(a && b) << layer;
      ASSERT_EQ(a->rotate.has_value(), b->rotate.has_value()) << layer;
      if (a->rotate) expect_same_rotation(*a->rotate, *b->rotate);
      EXPECT_EQ(a->bias, b->bias) << layer;
      EXPECT_NEAR(a->logits.multiplier, b->logits.multiplier, 1e-6) << layer;
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(GgufModel, LlamasTensorOfDivisorsIsLlama3Scaling) {
  expect_same_plans(file("llama-3.1"), read("llama-3.1-8b"), 0);
}
TEST(GgufModel, TheScalingThatMadeTheDivisorsIsNamedAndItsTrainedLength) {
  const Model model = file("llama-3.1");
  EXPECT_EQ(model.trained_context, 8192);
  const LayerGroup& group = model.groups.at(0);
  const Llama3 published{.factor = 8,
                         .low_freq_factor = 1,
                         .high_freq_factor = 4,
                         .original_max_position_embeddings = 8192};
  EXPECT_EQ(std::get<Rope>(group.schemes.at(0)).scaling, Scaling(published));
  ASSERT_TRUE(said(group, "rope_type"));
  EXPECT_EQ(said(group, "rope_type")->value, "llama3");
  EXPECT_EQ(said(group, "rope_type")->detail,
            "the divisors of rope_freqs.weight are those of llama3(8, 1, 4, 8192)");
}
// One divisor a thousandth off is no rounding: what the file says holds, pair by pair.
TEST(GgufModel, DivisorsThatNoScalingMadeAreTakenAsTheyAre) {
  std::string bytes = bytes_of("llama-3.1");
  const float eight = 8, other = 8.008f;
  const std::string_view pattern(reinterpret_cast<const char*>(&eight), sizeof eight);
  const std::size_t at = bytes.rfind(pattern);
  ASSERT_NE(at, bytes.npos);
  std::memcpy(bytes.data() + at, &other, sizeof other);
  const auto model = read_text(bytes);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->trained_context, 131072);
  EXPECT_EQ(std::get<Rope>(model->groups.at(0).schemes.at(0)).frequency_factors.size(), 64u);
}
TEST(GgufModel, YarnIsThatOfTheConfig) {
  expect_same_plans(file("llama-yarn"), read(test::data_path("zoo/yarn-llama-2-7b-64k.json")), 0);
}
TEST(GgufModel, LongRopeIsThatOfTheConfigOnBothSidesOfItsSwitch) {
  expect_same_plans(file("phi-3.5"), read("phi-3.5-mini"), 4096);
  expect_same_plans(file("phi-3.5"), read("phi-3.5-mini"), 131072);
}
TEST(GgufModel, SectionsAreThoseOfTheConfig) {
  expect_same_plans(file("qwen2.5-vl"), read("qwen2.5-vl-7b"), 0);
}
TEST(GgufModel, SlidingLayersAndTheirBaseAreThoseOfTheConfig) {
  expect_same_plans(file("gemma-3"), read("gemma-3-4b"), 0);
}
TEST(GgufModel, BloomsSlopesAreThoseOfTheConfig) {
  expect_same_plans(file("bloom"), read("bloom-176b"), 0);
}

TEST(GgufModel, Gemma4sTwoWidthsAndItsStillPairsAreThoseOfTheConfig) {
  const Model gguf = file("gemma-4"), config = read("gemma-4-e2b");
  for (std::int64_t layer = 0; layer < 35; ++layer) {
    SCOPED_TRACE(layer);
    const LayerGroup* mine = find_group(gguf, layer, Stack::text);
    const LayerGroup* same = find_group(config, layer, Stack::text);
    ASSERT_TRUE(mine && same);
    EXPECT_EQ(mine->window, same->window);
    EXPECT_EQ(mine->geometry, same->geometry);
    EXPECT_EQ(mine->cache_elements, same->cache_elements);
    const auto a = compile(*mine, 0), b = compile(*same, 0);
    ASSERT_TRUE(a && b && a->rotate && b->rotate);
    EXPECT_NEAR(a->logits.multiplier, b->logits.multiplier, 1e-6);
    ASSERT_EQ(a->rotate->frequencies.radians.size(), b->rotate->frequencies.radians.size());
    for (std::size_t i = 0; i < a->rotate->frequencies.radians.size(); ++i)
      EXPECT_NEAR(a->rotate->frequencies.radians[i], b->rotate->frequencies.radians[i],
                  1e-6 * b->rotate->frequencies.radians[i] + 1e-25);
  }
}
TEST(GgufModel, Glm5HasDeepSeeksHeads) {
  const Model model = file("glm-5");
  const LayerGroup& group = model.groups.at(0);
  EXPECT_EQ(group.geometry.head_dim, 256);
  EXPECT_EQ(group.cache_elements, 512 + 64);
  const auto plan = compile(group, 0);
  ASSERT_TRUE(plan && plan->rotate);
  EXPECT_EQ(plan->rotate->slice.pairing, Pairing::interleaved);
  EXPECT_EQ(plan->rotate->slice.first_dim, 192);
}
// llama.cpp reads them for grok and mistral3.
TEST(GgufModel, YarnsBetasAndItsAmplitudeAreWhatLlamaCppRuns) {
  const Model model = file("yarn-keys");
  EXPECT_TRUE(warns(model, "gguf_key_not_read"));
  const Rope& rope = std::get<Rope>(model.groups.at(0).schemes.at(0));
  const Yarn& yarn = std::get<Yarn>(rope.scaling);
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.beta_fast, 32);
  EXPECT_FALSE(yarn.attention_factor);
}

// --- what a file says ----------------------------------------------------------------------------

TEST(GgufModel, NeighboursPairInLlamaAndHalvesInPhi) {
  const auto pairing = [](const Model& model) {
    return std::get<Rope>(model.groups.at(0).schemes.at(0)).pairing;
  };
  EXPECT_EQ(pairing(file("llama-3.1")), Pairing::interleaved);
  EXPECT_EQ(pairing(file("phi-3.5")), Pairing::halves);
}

TEST(GgufModel, ProvenanceNamesTheKeysOfTheFile) {
  const Model model = file("gemma-3");
  const LayerGroup& sliding = model.groups.at(0);
  EXPECT_EQ(said(sliding, "rope_theta")->detail, "gemma3.rope.freq_base_swa");
  EXPECT_EQ(said(sliding, "rope_theta")->origin, Origin::file);
  EXPECT_EQ(said(sliding, "pairing")->origin, Origin::family);
  EXPECT_EQ(said(model.groups.at(1), "factor")->detail, "gemma3.rope.scaling.factor");
  EXPECT_EQ(said(sliding, "query_pre_attn_scalar")->origin, Origin::family);
}

// llama.cpp reads no pattern of windows for lfm2: all layers that attend slide.
TEST(GgufModel, Lfm2sLayersSlideIfTheyHaveKeyHeads) {
  const Model model = file("layer-lists");
  std::string kinds;
  for (std::int64_t layer = 0; layer < 6; ++layer) {
    const LayerGroup* group = find_group(model, layer, Stack::text);
    ASSERT_TRUE(group) << layer;
    EXPECT_EQ(group->window.has_value(), group->label == "sliding attention") << layer;
    EXPECT_EQ(group->cache_elements == 0, group->label == "conv") << layer;
    kinds += group->label[0];
  }
  EXPECT_EQ(kinds, "cscssc");
  EXPECT_TRUE(warns(model, "gguf_key_not_read"));
}

TEST(GgufModel, BertHasTheRowsOfItsTable) {
  const Model model = file("bert");
  EXPECT_EQ(std::get<Learned>(model.groups.at(0).schemes.at(0)).rows, 64);
  EXPECT_FALSE(model.groups.at(0).causal);
}

// As a converter leaves a Phi that transformers 5 saved: its lists are no tensors of the file.
TEST(GgufModel, AFileThatLostLongRopesListsIsToldAndHasItsAmplitude) {
  std::string bytes = bytes_of("phi-3.5");
  for (const std::string name : {"rope_factors_long.weight", "rope_factors_short.weight"}) {
    const std::size_t at = bytes.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    bytes[at] = 'l';
  }
  const auto model = read_text(bytes);
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(warns(*model, "gguf_missing_rope_factors"));
  const auto plan = compile(model->groups.at(0));
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_EQ(plan->rotate->frequencies.radians.at(0), 1);
  EXPECT_GT(plan->rotate->amplitude, 1.1);
}

TEST(GgufModel, AnUnknownArchitectureIsReadWithAWarning) {
  const Model model = file("unknown");
  EXPECT_FALSE(model.known_family);
  EXPECT_TRUE(warns(model, "unknown_family"));
  EXPECT_EQ(said(model.groups.at(0), "pairing")->origin, Origin::assumed);
}

TEST(GgufModel, NoneOfTheFilesWarnsWithoutNeed) {
  for (const char* name : {"llama-3.1", "llama-yarn", "qwen2.5-vl", "bert", "bloom", "gemma-3"})
    EXPECT_TRUE(file(name).warnings.empty()) << name << ": " << file(name).warnings[0].message;
}

TEST(GgufModel, ADownloadThatGoesOnIsExplainedWithAWarning) {
  const std::string whole = bytes_of("llama-yarn");
  const auto model = read_text(whole.substr(0, whole.size() - 10));
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(warns(*model, "file_cut_off"));
}

TEST(GgufModel, DivisorsThatAreNotThereYetAreAnError) {
  const std::string whole = bytes_of("llama-3.1");
  const auto model = read_text(whole.substr(0, whole.size() - 10));
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().message(),
            "m.gguf: rope_freqs.weight: its data is not in the file; download the whole file");
}

// Every byte of every file replaced: what is read compiles, the rest is refused.
TEST(GgufModel, DamageIsReadOrRefused) {
  for (const char* name :
       {"llama-3.1", "llama-yarn", "phi-3.5", "qwen2.5-vl", "bloom", "gemma-3"}) {
    std::string text = bytes_of(name);
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char before = text[at];
      for (const char bad : {'\xff', '\x00', '\x7f'}) {
        text[at] = bad;
        const auto model = read_text(text);
        EXPECT_TRUE(model || !model.error().rule.empty());
      }
      text[at] = before;
    }
  }
}

}  // namespace
}  // namespace posenc
