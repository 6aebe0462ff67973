#include "posenc/explain.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

namespace {

using namespace posenc;
using Json = nlohmann::json;

LayerGroup group_of(Scheme scheme, std::int64_t layers = 4) {
  LayerGroup group;
  for (std::int64_t i = 0; i < layers; i++) group.layers.push_back(i);
  group.geometry = {.width = 512, .heads = 8, .kv_heads = 2, .head_dim = 64};
  group.schemes = {std::move(scheme)};
  group.cache_elements = 2 * 2 * 64;
  return group;
}

Model model_of(Scheme scheme) {
  Model model;
  model.name = "hand-made";
  model.family = "llama";
  model.context = 8192;
  model.trained_context = 2048;
  model.dtype = "float32";
  model.groups = {group_of(std::move(scheme))};
  return model;
}

Rope llama3() {
  Rope rope;
  rope.scaling = Llama3{.factor = 8, .original_max_position_embeddings = 2048};
  return rope;
}

Explanation explained(Model model, const Ask& ask = {}) {
  Expected<Explanation> explanation = explain(std::move(model), ask);
  if (!explanation) ADD_FAILURE() << explanation.error().message();
  return explanation.value();
}

Json json_of(Model model, const Ask& ask = {}) {
  return Json::parse(to_json(explained(std::move(model), ask)), nullptr, false);
}

TEST(Explain, TurnsAreCountedInBothContexts) {
  const auto explanation = explained(model_of(Rope{}));
  const PairFact& first = explanation.groups[0].pairs[0];
  EXPECT_DOUBLE_EQ(first.turns_trained, 2048 / (2 * std::acos(-1.0)));
  EXPECT_DOUBLE_EQ(first.turns_asked, 8192 / (2 * std::acos(-1.0)));
}

// Where positions are counted anew, a logit depends on more than the distance.
TEST(Explain, DistanceMapsComeBeforeWhatALogitDependsOn) {
  const auto words_of = [](const Rope& rope) {
    std::string text;
    const Explanation said = explained(model_of(rope));
    for (const std::string& sentence : said.groups.front().words) text += sentence + " ";
    return text + said.groups.front().formulas.front().text;
  };
  EXPECT_TRUE(words_of(Rope{}).contains("depends on the distance"));
  EXPECT_TRUE(words_of(Rope{}).contains("depends on i−j alone"));
  for (const DistanceMap& map :
       {DistanceMap(ReRope{.growth = 2}), DistanceMap(SelfExtend{.group = 2}),
        DistanceMap(DualChunk{.chunk_size = 1024, .local_size = 128})}) {
    const std::string words = words_of(Rope{.distance_map = map});
    EXPECT_FALSE(words.contains("depends on the distance")) << words;
    EXPECT_FALSE(words.contains("depends on i−j alone")) << words;
    EXPECT_TRUE(words.contains("counted anew for each query and key")) << words;
  }
}

TEST(Explain, ALengthAskedReplacesTheContext) {
  const auto explanation = explained(model_of(Rope{}), {.at = 100, .layer = {}});
  EXPECT_DOUBLE_EQ(explanation.groups[0].pairs[0].turns_asked, 100 / (2 * std::acos(-1.0)));
}

TEST(Explain, BandsTellWhatTheScalingDoes) {
  const auto explanation = explained(model_of(llama3()));
  const std::vector<Band>& bands = explanation.groups[0].bands;
  ASSERT_EQ(bands.size(), 3u);
  EXPECT_EQ(bands[0].first, 0);
  EXPECT_EQ(bands[0].effect, "untouched");
  EXPECT_EQ(bands[1].first, bands[0].last + 1);
  EXPECT_EQ(bands[2].last, 31);
  EXPECT_EQ(bands[2].effect, "÷8");
}

TEST(Explain, PairsThatDoNotTurnAreABand) {
  Rope rope;
  rope.scaling = Proportional{.partial_rotary_factor = 0.25};
  const auto explanation = explained(model_of(rope));
  ASSERT_EQ(explanation.groups[0].bands.size(), 2u);
  EXPECT_EQ(explanation.groups[0].bands[1].effect, "still");
  EXPECT_TRUE(std::isinf(explanation.groups[0].pairs[31].wavelength));
}

TEST(Explain, WithoutScalingThereAreNoBands) {
  EXPECT_TRUE(explained(model_of(Rope{})).groups[0].bands.empty());
}

TEST(Explain, AmplitudeIsSquaredInTheLogits) {
  Rope rope;
  Yarn yarn{.factor = 4, .original_max_position_embeddings = 2048};
  yarn.attention_factor = 1.5;
  rope.scaling = yarn;
  rope.partial_rotary_factor = 0.5;
  const std::string note = explained(model_of(rope)).groups[0].amplitude_note;
  EXPECT_NE(note.find("cos and sin of both q and k × 1.5, so rotated logits × 2.25"), note.npos)
      << note;
  EXPECT_NE(note.find("unrotated channels unchanged"), note.npos) << note;
}

TEST(Explain, TheHeadingNamesLayersPairingAndScaling) {
  EXPECT_EQ(explained(model_of(llama3())).groups[0].heading,
            "layers 0–3: RoPE, halves, Llama-3 scaling ×8");
}

TEST(Explain, CacheBytesCountLayersAndDtype) {
  const auto explanation = explained(model_of(Rope{}));
  EXPECT_EQ(explanation.cache_bytes_per_token, 4 * 256 * 4);
  EXPECT_EQ(explanation.groups[0].cache_bytes_per_token, 4 * 256 * 4);
}

TEST(Explain, AHostileCacheSizeDoesNotOverflow) {
  Model model = model_of(Rope{});
  model.groups[0].cache_elements = std::int64_t{1} << 62;
  EXPECT_EQ(explained(model).cache_bytes_per_token, std::numeric_limits<std::int64_t>::max());
}

TEST(Explain, ALayerLeavesOtherGroupsOut) {
  Model model = model_of(Rope{});
  model.groups.push_back(group_of(NoPe{}));
  model.groups[1].layers = {4, 5};
  const auto explanation = explained(model, {.at = 0, .layer = 5});
  ASSERT_EQ(explanation.groups.size(), 1u);
  EXPECT_EQ(explanation.groups[0].group, 1u);
}

TEST(Explain, AnUnknownLayerIsAnError) {
  const auto explanation = explain(model_of(Rope{}), {.at = 0, .layer = 4});
  ASSERT_FALSE(explanation);
  EXPECT_EQ(explanation.error().message(),
            "explain: the model has no such layer, got 4; layers run from 0 to 3");
}

TEST(Explain, ANegativeLengthIsAnError) {
  EXPECT_FALSE(explain(model_of(Rope{}), {.at = -1, .layer = {}}));
}

TEST(Explain, ALengthBeyondTheContextIsAWarning) {
  const auto explanation = explained(model_of(Rope{}), {.at = 8193, .layer = {}});
  ASSERT_EQ(explanation.warnings.size(), 1u);
  EXPECT_EQ(explanation.warnings[0].code, "beyond_context");
}

TEST(Explain, ALengthThatTheScalingReachesIsNone) {
  Rope rope;
  rope.scaling = Yarn{.factor = 4, .original_max_position_embeddings = 8192};
  EXPECT_TRUE(explained(model_of(rope), {.at = 32768, .layer = {}}).warnings.empty());
  const auto beyond = explained(model_of(rope), {.at = 32769, .layer = {}});
  ASSERT_EQ(beyond.warnings.size(), 1u);
  EXPECT_TRUE(beyond.warnings[0].message.starts_with("length 32,769 is beyond the 32,768"));
}

TEST(Explain, FrequenciesThatChangeWithTheLengthMakeKeysStale) {
  Rope rope;
  rope.scaling = DynamicNtk{.factor = 4, .max_position_embeddings = 2048};
  EXPECT_TRUE(explained(model_of(rope), {.at = 2048, .layer = {}}).warnings.empty());
  const auto longer = explained(model_of(rope), {.at = 4096, .layer = {}});
  ASSERT_EQ(longer.warnings.size(), 1u);
  EXPECT_EQ(longer.warnings[0].code, "stale_keys");
}

TEST(Explain, AVisionTowerIsNotCompiledForTheTextsLength) {
  Model model = model_of(Rope{});
  model.groups[0].stack = Stack::vision;
  const auto explanation = explained(model, {.at = 4096, .layer = {}});
  EXPECT_DOUBLE_EQ(explanation.groups[0].pairs[0].turns_asked, 8192 / (2 * std::acos(-1.0)));
}

TEST(Explain, NoPeSaysThatOnlyTheMaskTellsOrder) {
  const auto explanation = explained(model_of(NoPe{}));
  ASSERT_FALSE(explanation.groups[0].words.empty());
  EXPECT_NE(explanation.groups[0].words[0].find("causal mask"), std::string::npos);
}

TEST(Explain, AChunkIsNoSlidingWindow) {
  Model model = model_of(Rope{});
  model.groups[0].window = 1024;
  model.groups[0].chunked = true;
  const auto explanation = explained(model);
  EXPECT_NE(explanation.groups[0].words.back().find("its own chunk of 1,024 tokens"),
            std::string::npos);
}

TEST(Explain, ALearnedTableSaysWhereItEnds) {
  const auto explanation = explained(model_of(Learned{.rows = 2050, .row_offset = 2}));
  EXPECT_EQ(explanation.groups[0].words[1],
            "Position 2,048 has no vector: the context ends there, whatever memory allows.");
}

// --- JSON ----------------------------------------------------------------------------------------

TEST(ExplainJson, HasTheDocumentedKeys) {
  const Json json = json_of(model_of(llama3()));
  for (const char* key : {"model", "family", "context", "trained_context", "asked", "dtype",
                          "words", "groups", "cache_bytes_per_token", "warnings"})
    EXPECT_TRUE(json.contains(key)) << key;
  for (const char* key : {"stack", "layers", "heads", "kv_heads", "head_dim", "window", "scheme",
                          "also", "plan", "valid", "provenance"})
    EXPECT_TRUE(json["groups"][0].contains(key)) << key;
  for (const char* key : {"add", "rotate", "bias", "relative", "logits"})
    EXPECT_TRUE(json["groups"][0]["plan"].contains(key)) << key;
}

TEST(ExplainJson, FrequenciesReadBackAsTheSameDoubles) {
  const Model model = model_of(llama3());
  const auto plan = compile(model.groups[0]);
  const Json rotate = json_of(model)["groups"][0]["plan"]["rotate"];
  ASSERT_EQ(rotate["frequencies"].size(), 1u);
  EXPECT_EQ(rotate["frequencies"][0].get<std::vector<double>>(), plan->rotate->frequencies.radians);
  EXPECT_TRUE(rotate["axis_of_pair"].is_null());
}

TEST(ExplainJson, SchemesCarryTypeFieldsAndScaling) {
  const Json scheme = json_of(model_of(llama3()))["groups"][0]["scheme"];
  EXPECT_EQ(scheme["type"], "rope");
  EXPECT_EQ(scheme["rope_theta"], 10000.0);
  EXPECT_EQ(scheme["pairing"], "halves");
  EXPECT_TRUE(scheme["rotary_dim"].is_null());
  EXPECT_EQ(scheme["scaling"]["type"], "llama3");
  EXPECT_EQ(scheme["scaling"]["factor"], 8.0);
  EXPECT_EQ(scheme["scaling"]["original_max_position_embeddings"], 2048);
}

TEST(ExplainJson, MultimodalPairsNameTheirAxis) {
  Rope rope;
  rope.mrope_section = {8, 12, 12};
  const Model model = model_of(rope);
  const Json rotate = json_of(model)["groups"][0]["plan"]["rotate"];
  ASSERT_EQ(rotate["frequencies"].size(), 1u);
  std::vector<std::int64_t> axes(8, 0);
  axes.insert(axes.end(), 12, 1);
  axes.insert(axes.end(), 12, 2);
  EXPECT_EQ(rotate["axis_of_pair"].get<std::vector<std::int64_t>>(), axes);
  EXPECT_EQ(rotate["frequencies"][0][31].get<double>(),
            compile(model.groups[0])->rotate->at(0, 2, 31));
  EXPECT_TRUE(json_of(model)["groups"][0]["scheme"]["mrope_section"][0].is_number_integer());
}

TEST(ExplainJson, MixedHeadsHaveARowForEachHeadAndAxis) {
  Model model = model_of(Mixed{});
  model.groups[0].geometry.kv_heads = 8;
  const Json rotate = json_of(model)["groups"][0]["plan"]["rotate"];
  const auto plan = compile(model.groups[0]);
  ASSERT_EQ(rotate["frequencies"].size(), 16u);
  EXPECT_EQ(rotate["frequencies"][3][5].get<double>(), plan->rotate->at(1, 1, 5));
}

TEST(ExplainJson, LogitsIncludeWhatTheScalingAsks) {
  Rope rope;
  Yarn yarn{.factor = 40, .original_max_position_embeddings = 4096};
  yarn.mscale = yarn.mscale_all_dim = 1;
  yarn.scale_logits = true;
  rope.scaling = yarn;
  const Json plan = json_of(model_of(rope))["groups"][0]["plan"];
  const double m = 0.1 * std::log(40.0) + 1;
  EXPECT_NEAR(plan["logits"]["multiplier"].get<double>(), m * m, 1e-15);
  EXPECT_EQ(plan["rotate"]["amplitude"], 1.0);
}

TEST(ExplainJson, SlopesHaveNoBuckets) {
  const Json bias = json_of(model_of(Alibi{}))["groups"][0]["plan"]["bias"];
  EXPECT_EQ(bias["kind"], "slope");
  EXPECT_EQ(bias["slopes"].size(), 8u);
  EXPECT_EQ(bias["slopes"][0], 0.5);
  EXPECT_TRUE(bias["buckets"].is_null());
  EXPECT_TRUE(bias["max_distance"].is_null());
}

TEST(ExplainJson, BucketTablesHaveNoSlopes) {
  const Json bias = json_of(model_of(T5{}))["groups"][0]["plan"]["bias"];
  EXPECT_EQ(bias["kind"], "table");
  EXPECT_TRUE(bias["slopes"].is_null());
  EXPECT_EQ(bias["buckets"], 32);
  EXPECT_EQ(bias["max_distance"], 128);
}

TEST(ExplainJson, WavesAndTablesAreAdded) {
  const Json waves = json_of(model_of(Sinusoidal{}))["groups"][0]["plan"]["add"];
  EXPECT_EQ(waves["kind"], "waves");
  EXPECT_EQ(waves["frequencies"].size(), 256u);
  EXPECT_TRUE(waves["zero_row"].is_null());
  const Json table =
      json_of(model_of(Learned{.rows = 514, .row_offset = 2}))["groups"][0]["plan"]["add"];
  EXPECT_EQ(table["kind"], "table");
  EXPECT_EQ(table["rows"], 514);
  EXPECT_EQ(table["row_offset"], 2);
  EXPECT_EQ(table["embedding_scale"], 1.0);
}

TEST(ExplainJson, WavesAndTablesOfSeveralAxesHaveAListForEach) {
  const Json waves = json_of(model_of(
      Sinusoidal{.cosine_first = true, .axes_dim = {256, 128}}))["groups"][0]["plan"]["add"];
  EXPECT_EQ(waves["axes"], 2);
  EXPECT_EQ(waves["blocks"], Json({256, 128}));
  EXPECT_EQ(waves["frequencies"].size(), 2u);
  EXPECT_EQ(waves["frequencies"][1].size(), 192u);
  EXPECT_EQ(waves["cosine_first"], true);
  const Json table =
      json_of(model_of(Learned{.rows = 7, .axis_rows = {3, 4}}))["groups"][0]["plan"]["add"];
  EXPECT_EQ(table["axis_rows"], Json({3, 4}));
}

TEST(ExplainJson, UnlimitedLengthsAreNull) {
  Rope rope;
  rope.scaling = LongRope{.short_factor = std::vector<double>(32, 1.0),
                          .long_factor = std::vector<double>(32, 4.0),
                          .original_max_position_embeddings = 2048,
                          .max_position_embeddings = 8192};
  EXPECT_EQ(json_of(model_of(rope))["groups"][0]["valid"]["to"], 2048);
  EXPECT_TRUE(
      json_of(model_of(rope), {.at = 4096, .layer = {}})["groups"][0]["valid"]["to"].is_null());
  EXPECT_TRUE(json_of(model_of(Rope{}))["groups"][0]["valid"].is_null());
}

TEST(ExplainJson, AChunkIsAWindowThatDoesNotSlide) {
  Model model = model_of(Rope{});
  EXPECT_EQ(json_of(model)["groups"][0]["chunked"], false);
  model.groups[0].window = 1024;
  model.groups[0].chunked = true;
  EXPECT_EQ(json_of(model)["groups"][0]["window"], 1024);
  EXPECT_EQ(json_of(model)["groups"][0]["chunked"], true);
}

TEST(ExplainJson, TextThatIsNotUtf8IsReplaced) {
  Model model = model_of(Rope{});
  model.name = "bad \xff name";
  EXPECT_FALSE(json_of(model).is_discarded());
}

TEST(ExplainJson, NumbersThatAreNotFiniteAreNull) {
  Plan plan;
  plan.logits.multiplier = std::numeric_limits<double>::infinity();
  const Json json = Json::parse(to_json(plan), nullptr, false);
  EXPECT_TRUE(json["logits"]["multiplier"].is_null());
}

TEST(ExplainJson, ASchemeAloneIsTheGroupsScheme) {
  EXPECT_EQ(Json::parse(to_json(Scheme(llama3()))),
            json_of(model_of(llama3()))["groups"][0]["scheme"]);
}

std::string words_of(const Explanation& explanation) {
  std::string all;
  for (const auto& group : explanation.groups)
    for (const std::string& sentence : group.words) all += sentence + "\n";
  return all;
}

TEST(Explain, AWindowOfAnEncoderReachesBothWays) {
  Model model = model_of(Rope{});
  model.groups[0].window = 128;
  EXPECT_NE(words_of(explained(model)).find("itself included"), std::string::npos);
  model.groups[0].causal = false;
  EXPECT_NE(words_of(explained(model)).find("half of them on either side"), std::string::npos);
}

TEST(Explain, AChunkIsNotCalledAWindow) {
  Model model = model_of(Rope{});
  model.groups[0].window = 128;
  model.groups[0].chunked = true;
  const std::string words = words_of(explained(model));
  EXPECT_NE(words.find("128 tokens, the chunk"), std::string::npos);
  EXPECT_EQ(words.find("window"), std::string::npos);
}

TEST(Explain, AnUnknownTrainedLengthIsNotClaimed) {
  Model model = model_of(Rope{});
  EXPECT_NE(words_of(explained(model)).find("the trained length"), std::string::npos);
  model.trained_context = model.context;
  EXPECT_EQ(words_of(explained(model)).find("trained"), std::string::npos);
}

TEST(Explain, WavesSayTheirLayout) {
  Model model = model_of(Sinusoidal{.layout = WaveLayout::concatenated});
  EXPECT_NE(words_of(explained(model)).find("All sines stand before all cosines."),
            std::string::npos);
}

TEST(Explain, WavesOfSeveralAxesSayTheirChannels) {
  Model model = model_of(
      Sinusoidal{.layout = WaveLayout::concatenated, .cosine_first = true, .axes_dim = {256, 128}});
  const std::string words = words_of(explained(model));
  EXPECT_NE(words.find("Sines and cosines of each of 2 coordinates"), std::string::npos);
  EXPECT_NE(words.find("channels of its own: 256, 128."), std::string::npos);
  EXPECT_NE(words.find("All cosines stand before all sines."), std::string::npos);
}

TEST(Explain, RowsOfSeveralAxesSayHowMany) {
  Model model = model_of(Learned{.rows = 7, .axis_rows = {3, 4}});
  EXPECT_NE(words_of(explained(model)).find("3, 4 rows."), std::string::npos);
}

TEST(Explain, FourierFeaturesWithoutTheirTableSayThatTheyAreDrawn) {
  Model model = model_of(FourierFeatures{});
  EXPECT_NE(words_of(explained(model)).find("the checkpoint has its own"), std::string::npos);
}

// The rows of a tower's table say nothing of how long its rotation holds.
TEST(Explain, ATableDoesNotMakeFrequenciesDependOnTheLength) {
  Model model = model_of(Rope{});
  model.groups[0].schemes.push_back(Learned{.rows = 8192});
  EXPECT_EQ(words_of(explained(model)).find("As constructed"), std::string::npos);
}

TEST(Explain, AnIndexerHasAPlanOfItsOwn) {
  Model model = model_of(Rope{});
  LayerGroup& group = model.groups[0];
  group.picked = {.count = 2048};
  group.indexer = {.heads = 32,
                   .head_dim = 128,
                   .rotary_dim = 64,
                   .pairing = Pairing::interleaved,
                   .slice = SliceEnd::trailing,
                   .keys = {.elements = 128, .note = "keys of the indexer"}};
  group.cache_beside = {group.indexer->keys};
  EXPECT_NE(words_of(explained(model))
                .find("32 heads of 128 channels, its keys one for all of them: the last 64 "
                      "channels rotate by the same frequencies, and the pairs are interleaved, "
                      "where those of the heads are halves. It caches 128 numbers for each token."),
            std::string::npos)
      << words_of(explained(model));
  const Json own = json_of(model)["groups"][0]["indexer"];
  EXPECT_EQ(own["heads"], 32);
  EXPECT_EQ(own["picked"]["count"], 2048);
  EXPECT_EQ(own["cache_bytes_per_token"], 4 * 128 * 4);
  EXPECT_EQ(own["scheme"]["type"], "rope");
  EXPECT_EQ(own["plan"]["rotate"]["first_dim"], 64);
  EXPECT_EQ(own["plan"]["rotate"]["rotary_dim"], 64);
  EXPECT_TRUE(json_of(model_of(Rope{}))["groups"][0]["indexer"].is_null());
}

TEST(Explain, LayersThatReadTheKeysOfEarlierOnesAreCountedAtOnce) {
  const auto model = read_model("gemma-4-e2b");
  ASSERT_TRUE(model);
  const auto explained = explain(*model);
  ASSERT_TRUE(explained);
  std::string said;
  for (const std::string& sentence : explained->words) said += sentence + " ";
  EXPECT_TRUE(said.contains("20 layers cache nothing")) << said;
}

}  // namespace
