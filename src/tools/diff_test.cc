// Two models, and what became of one: each slip here has been made by a program that people used.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "posenc/tools.h"
#include "src/core/words.h"
#include "src/model/gguf.h"

namespace posenc {
namespace {

Model read(const std::string& json) {
  const Expected<Model> model = read_config(json);
  EXPECT_TRUE(model) << model.error().message();
  return model.value_or(Model{});
}

// A Llama of two layers, with more keys or other values of them.
std::string llama(const std::string& more = "", const std::string& theta = "500000.0") {
  return R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2,
             "num_attention_heads": 32, "num_key_value_heads": 8,
             "max_position_embeddings": 131072, "rope_theta": )" +
         theta + more + "}";
}
const char* const llama3 =
    R"(, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
          "high_freq_factor": 4.0, "original_max_position_embeddings": 8192})";
const char* const yarn =
    R"(, "rope_scaling": {"rope_type": "yarn", "factor": 4.0,
          "original_max_position_embeddings": 32768)";

std::vector<Finding> diff(const std::string& a, const std::string& b, std::int64_t length = 0) {
  const auto found = differences(read(a), read(b), length);
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(std::vector<Finding>());
}
Finding only(const std::vector<Finding>& findings) {
  EXPECT_EQ(findings.size(), 1U);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(Differences, RowsOfSoundAreCompared) {
  const auto whisper = [](const std::string& rows) {
    return R"({"model_type": "whisper", "d_model": 768, "encoder_layers": 2, "decoder_layers": 2,
               "encoder_attention_heads": 12, "decoder_attention_heads": 12,
               "max_target_positions": 448, "max_source_positions": )" +
           rows + "}";
  };
  const Finding found = only(diff(whisper("1500"), whisper("3000")));
  EXPECT_EQ(found.code, "rows");
  EXPECT_EQ(found.found, "3000 rows");
  EXPECT_TRUE(diff(whisper("1500"), whisper("1500")).empty());
}

TEST(Diff, AModelIsItsOwnLike) { EXPECT_TRUE(diff(llama(llama3), llama(llama3)).empty()); }

TEST(Diff, ABaseThatWasRaisedWithThePromiseIsNoError) {
  const std::string longer = R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2,
      "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 1048576,
      "rope_theta": 3580165449.0})";
  const std::vector<Finding> found = diff(llama(), longer);
  const auto base = std::ranges::find(found, "rope_theta", &Finding::code);
  ASSERT_NE(base, found.end());
  EXPECT_EQ(base->severity, Severity::warning);
  EXPECT_TRUE(base->cure.starts_with("right where the second was trained further")) << base->cure;
}

TEST(Diff, AxesAreComparedWherePairsDifferToo) {
  const std::vector<Finding> found =
      diff(R"({"model_type": "paddleocr_vl", "hidden_size": 1024, "num_hidden_layers": 2,
               "num_attention_heads": 16, "head_dim": 128, "max_position_embeddings": 131072,
               "rope_theta": 500000, "rope_scaling": {"type": "default", "mrope_section":
               [16, 24, 24]}})",
           R"({"model_type": "ernie4_5", "hidden_size": 1024, "num_hidden_layers": 2,
               "num_attention_heads": 16, "head_dim": 128, "max_position_embeddings": 131072,
               "rope_theta": 500000})");
  EXPECT_NE(std::ranges::find(found, "mrope", &Finding::code), found.end());
  EXPECT_EQ(std::ranges::find(found, "rotary_dim", &Finding::code), found.end());
}

TEST(Diff, ScalingLost) {
  const Finding lost = only(diff(llama(llama3), llama()));
  EXPECT_EQ(lost.code, "rope_scaling");
  EXPECT_EQ(lost.severity, Severity::error);
  EXPECT_EQ(lost.layers, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(lost.found, "none");
  EXPECT_TRUE(lost.message.starts_with("pairs 29–63 of 64 rotate otherwise")) << lost.message;
}

// Pair 32 loses the most: 0.1 rad is reached between 112 and 113 tokens.
TEST(Diff, ScalingLostShowsFromTheFirstTenthOfARadian) {
  EXPECT_EQ(only(diff(llama(llama3), llama())).position, 113);
}

TEST(Diff, BaseFellBackToTheDefault) {
  const Finding base = only(diff(llama(), llama("", "10000.0")));
  EXPECT_EQ(base.code, "rope_theta");
  EXPECT_EQ(base.expected, "500000");
  EXPECT_EQ(base.found, "10000");
  EXPECT_TRUE(base.cure.contains("--rope-freq-base 500000")) << base.cure;
}

TEST(Diff, BaseAndScalingAreToldApart) {
  const auto findings = diff(llama(llama3), llama("", "10000.0"));
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].code, "rope_theta");
  EXPECT_EQ(findings[1].code, "rope_scaling");
}

TEST(Diff, AttentionFactorIsAmplitude) {
  const Finding factor = only(diff(llama(std::string(yarn) + "}"),
                                   llama(std::string(yarn) + R"(, "attention_factor": 1.0})")));
  EXPECT_EQ(factor.code, "amplitude");
  EXPECT_EQ(factor.expected, "×1.13863");
  // 1 / 1.13863², the logits being products of two rotated vectors.
  EXPECT_TRUE(factor.message.contains("0.7713 times")) << factor.message;
}

TEST(Diff, SpellingsOfOneScalingAreAlike) {
  EXPECT_TRUE(diff(llama(llama3), R"({"model_type": "llama", "hidden_size": 4096,
      "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "rope_parameters": {"rope_theta": 500000.0,
      "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
      "original_max_position_embeddings": 8192}})")
                  .empty());
}

TEST(Diff, AScalingThatWaitsForLongTextsIsSeenWhereItActs) {
  const std::string dynamic = R"(, "rope_scaling": {"rope_type": "dynamic", "factor": 2.0})";
  EXPECT_TRUE(diff(llama(dynamic), llama()).empty());
  EXPECT_EQ(only(diff(llama(dynamic), llama(), 262144)).code, "rope_scaling");
}

// Chunks of 253,952 tokens and of 126,976: right up to there, and no word of the file's frequencies
// differs.
TEST(Diff, DistanceMapsDiffer) {
  const auto chunks = [](const char* sizes) {
    return R"({"model_type": "qwen2", "hidden_size": 3584, "num_hidden_layers": 2,
        "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 1010000)" +
           std::string(sizes) + "}";
  };
  const std::string
      large =
          chunks(R"(, "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192})"),
      small =
          chunks(R"(, "dual_chunk_attention_config": {"chunk_size": 131072, "local_size": 4096})");
  const Finding two = only(diff(large, small));
  EXPECT_EQ(two.code, "distance_map");
  EXPECT_EQ(two.severity, Severity::error);
  EXPECT_EQ(two.expected, "chunks of 253,952");
  EXPECT_EQ(two.found, "chunks of 126,976");
  EXPECT_EQ(two.position, 126976);
  EXPECT_EQ(only(diff(large, chunks(""))).found, "none");
  EXPECT_EQ(only(diff(chunks(""), large)).position, 253952);
  EXPECT_TRUE(diff(large, large).empty());
}

// Each head has frequencies of its own; those that one model lacks are not read.
TEST(Diff, HeadsOfTheirOwnFrequenciesAreComparedAsFarAsBothHaveThem) {
  const auto talker = [](int heads) {
    return R"({"model_type": "qwen2_5_omni_dit", "hidden_size": 1024, "num_hidden_layers": 2,
        "head_dim": 64, "num_attention_heads": )" +
           std::to_string(heads) + "}";
  };
  for (const auto& [a, b] : {std::pair{16, 8}, {8, 16}}) {
    const auto found = diff(talker(a), talker(b));
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().code, "frequency_heads");
    for (const Finding& finding : found) EXPECT_NE(finding.code, "frequency");
  }
}

TEST(Diff, ADraftMayBeSmaller) {
  const std::string draft = R"({"model_type": "llama", "hidden_size": 2048,
      "num_hidden_layers": 1, "num_attention_heads": 16, "num_key_value_heads": 8,
      "max_position_embeddings": 131072, "rope_theta": 500000.0})";
  for (const Finding& finding : diff(llama(), draft))
    EXPECT_EQ(finding.severity, Severity::note) << finding.code;
}

TEST(Diff, PairsInOtherOrderAreAnErrorInFilesOfOneFormat) {
  Model a = read(llama()), b = a;
  std::get<Rope>(b.groups[0].schemes[0]).pairing = Pairing::interleaved;
  EXPECT_EQ(only(*differences(a, b)).severity, Severity::error);
}

TEST(Diff, PairsInOtherOrderAreANoteBetweenFormats) {
  Model a = read(llama()), b = a;
  std::get<Rope>(b.groups[0].schemes[0]).pairing = Pairing::interleaved;
  b.files = {{.path = "x.gguf", .format = FileFormat::gguf}};
  const Finding pairing = only(*differences(a, b));
  EXPECT_EQ(pairing.code, "pairing");
  EXPECT_EQ(pairing.severity, Severity::note);
}

TEST(Diff, PartOfAHead) {
  Model a = read(llama()), b = a;
  std::get<Rope>(b.groups[0].schemes[0]).partial_rotary_factor = 0.5;
  const Finding part = only(*differences(a, b));
  EXPECT_EQ(part.code, "rotary_dim");
  EXPECT_EQ(part.expected, "128 of 128");
  EXPECT_EQ(part.found, "64 of 128");
}

TEST(Diff, AWindowShowsBeyondItself) {
  Model a = read(llama()), b = a;
  b.groups[0].window = 4096;
  const Finding window = only(*differences(a, b));
  EXPECT_EQ(window.code, "window");
  EXPECT_EQ(window.position, 4096);
}

TEST(Diff, AnotherScheme) {
  Model a = read(llama()), b = a;
  b.groups[0].schemes = {Alibi{}};
  const Finding scheme = only(*differences(a, b));
  EXPECT_EQ(scheme.code, "scheme");
  EXPECT_EQ(scheme.found, "alibi");
}

TEST(Diff, AxesOfPicturesBySectionsOrInterleaved) {
  Model a = read(llama());
  std::get<Rope>(a.groups[0].schemes[0]).mrope_section = {24, 20, 20};
  Model b = a;
  std::get<Rope>(b.groups[0].schemes[0]).mrope_interleaved = true;
  const Finding axes = only(*differences(a, b));
  EXPECT_EQ(axes.code, "mrope");
  EXPECT_EQ(axes.expected, "sections 24 20 20");
  EXPECT_EQ(axes.found, "interleaved 24 20 20");
}

TEST(Diff, LengthsBelowZeroAreRefused) {
  EXPECT_EQ(differences(Model{}, Model{}, -1).error().rule, "length must be 0 or more");
}

TEST(Finding, AsJson) {
  EXPECT_EQ(
      to_json(Finding{.code = "rope_theta",
                      .stack = Stack::text,
                      .layers = {0, 1},
                      .pair = 6,
                      .position = 1,
                      .expected = "5e5",
                      .found = "1e4",
                      .message = "m",
                      .cure = "c"}),
      R"({"code":"rope_theta","severity":"error","stack":"text","layer":0,"layers":[0,1],)"
      R"("pair":6,"position":1,"expected":"5e5","found":"1e4","message":"m","cure":"c","engines":[],"line":null})");
}

// The first release of Olmo 3 in transformers rotated its sliding layers by the file's base as
// well.
TEST(DiffOfEngines, OlmoHadOneBaseInTransformers4) {
  const Model olmo = read(R"({"model_type": "olmo3", "hidden_size": 64, "num_hidden_layers": 4,
      "num_attention_heads": 4, "rope_theta": 1000000, "sliding_window": 8})");
  const auto now = engine_differences(olmo, "transformers@5"),
             then = engine_differences(olmo, "transformers@4");
  ASSERT_TRUE(now && then);
  EXPECT_TRUE(now->findings.empty());
  const Finding base = only(then->findings);
  EXPECT_EQ(base.code, "rope_theta");
  EXPECT_EQ(base.layers, (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(base.found, "1000000");
}

Finding with_code(const std::vector<Finding>& findings, const std::string& code) {
  const auto found = std::ranges::find(findings, code, &Finding::code);
  return found == findings.end() ? Finding{} : *found;
}

std::vector<Finding> phi_in(const char* engine, std::int64_t length) {
  const auto found = engine_differences(*read_model("phi-3.5-mini"), engine, length);
  EXPECT_TRUE(found) << found.error().message();
  return found ? found->findings : std::vector<Finding>();
}

TEST(DiffOfEngines, AListThatIsFixedForLongTextsIsLostByShortOnes) {
  const Finding lose = only(phi_in("vllm", 8192));
  EXPECT_EQ(lose.code, "short_texts");
  EXPECT_EQ(lose.severity, Severity::warning);
  EXPECT_EQ(lose.expected, "the short list");
  EXPECT_EQ(lose.found, "the long list");
  EXPECT_TRUE(lose.message.starts_with("texts of up to 4,096 tokens lose")) << lose.message;
  EXPECT_TRUE(lose.message.contains("at 4,095 pair 4")) << lose.message;
  EXPECT_EQ(lose.cure, "start it for 4096 tokens where no text is longer");
}

TEST(DiffOfEngines, AnEngineThatHasTheLongListAlwaysCannotBeStartedForShortTexts) {
  EXPECT_EQ(only(phi_in("mlx-lm", 8192)).cure, "");
}

TEST(DiffOfEngines, AListThatIsFixedForTheLengthAskedIsThatOfTheFile) {
  EXPECT_TRUE(phi_in("vllm", 4096).empty());
}

TEST(DiffOfEngines, ServedForFewerTokensIsNoOtherRotation) {
  const Finding served = only(phi_in("vllm", 0));
  EXPECT_EQ(served.code, "context");
  EXPECT_EQ(served.severity, Severity::note);
  EXPECT_EQ(served.found, "4,096");
}

TEST(DiffOfEngines, AListThatIsChosenByCallIsThatOfTheFile) {
  EXPECT_TRUE(phi_in("sglang", 8192).empty());
  EXPECT_TRUE(phi_in("sglang", 0).empty());
}

Model nomic() {
  return read(R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12, "n_layer": 2,
      "n_positions": 2048, "max_position_embeddings": 2048,
      "rope_parameters": {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1000}})");
}

TEST(DiffOfEngines, ABaseGrownForWhatIsServedIsThatOfTheLongestText) {
  const auto found = engine_differences(nomic(), "vllm", 8192);
  ASSERT_TRUE(found);
  const Finding lose = with_code(found->findings, "short_texts");
  EXPECT_TRUE(lose.message.starts_with("texts of up to 2,048 tokens lose")) << lose.message;
}

// Beside the sizes the code that stands with the weights reads it, and no engine.
TEST(DiffOfEngines, NomicsOwnFactorIsLost) {
  const Model own = read(R"({"model_type": "nomic_bert", "n_embd": 768, "n_head": 12,
      "n_layer": 2, "max_position_embeddings": 8192, "max_trained_positions": 2048,
      "rotary_emb_base": 1000, "rotary_scaling_factor": 2})");
  for (const char* engine : {"vllm", "sglang", "transformers"}) {
    const auto found = engine_differences(own, engine, 8192);
    ASSERT_TRUE(found) << engine;
    EXPECT_EQ(with_code(found->findings, "rope_scaling").found, "none") << engine;
  }
}

TEST(DiffOfEngines, ABaseCannotGrowForLessThanWasTrained) {
  const auto found = engine_differences(nomic(), "vllm", 512);
  ASSERT_TRUE(found);
  const Finding refused = only(found->findings);
  EXPECT_EQ(refused.code, "refused");
  EXPECT_TRUE(refused.message.contains("serve 2048 or more")) << refused.message;
}

TEST(Diff, TextsThatTheSecondIsNotMadeForAreAWarningWhereTheyAreAskedFor) {
  const Finding context = with_code(diff(llama(), R"({"model_type": "llama", "hidden_size": 4096,
      "num_hidden_layers": 2, "num_attention_heads": 32, "num_key_value_heads": 8,
      "max_position_embeddings": 4096, "rope_theta": 500000.0})",
                                         6000),
                                    "context");
  EXPECT_EQ(context.severity, Severity::warning);
  EXPECT_EQ(context.position, 4096);
}

TEST(Diff, TheAmplitudeOfALostScalingIsPartOfIt) {
  const Finding lost = only(diff(llama(std::string(yarn) + "}"), llama()));
  EXPECT_EQ(lost.code, "rope_scaling");
  EXPECT_TRUE(lost.message.contains("cos and sin go ×1.13863 → ×1")) << lost.message;
  EXPECT_EQ(lost.cure, "the scaling was lost: write rope_scaling as the first model has it");
  // The factor acts from the first token on, before any angle shows.
  EXPECT_EQ(lost.position, std::nullopt);
  EXPECT_FALSE(lost.message.contains("nothing shows before")) << lost.message;
}

TEST(Diff, TheAmplitudeOfAnAddedScalingIsPartOfIt) {
  EXPECT_EQ(only(diff(llama(), llama(std::string(yarn) + "}"))).code, "rope_scaling");
}

TEST(Diff, AnAmplitudeThatTheScalingDoesNotMakeStandsByItself) {
  Model a = read(llama(std::string(yarn) + "}")), b = read(llama());
  b.groups[0].logits.multiplier *= 2;
  const auto found = differences(a, b);
  ASSERT_TRUE(found);
  EXPECT_EQ(with_code(*found, "rope_scaling").code, "rope_scaling");
  EXPECT_EQ(with_code(*found, "logits").code, "logits");
}

// --- plans ---------------------------------------------------------------------------------------

Plan plan(const Scheme& scheme) {
  const auto made =
      compile(scheme, {.width = 64, .heads = 4, .kv_heads = 4, .head_dim = 64, .length = 64});
  EXPECT_TRUE(made) << made.error().message();
  return made.value_or(Plan{});
}
std::vector<Finding> diff(const Plan& a, const Plan& b, std::int64_t length = 0) {
  const auto found = differences(a, b, length);
  EXPECT_TRUE(found) << found.error().message();
  return found.value_or(std::vector<Finding>());
}

TEST(DiffOfPlans, APlanIsItsOwnLike) { EXPECT_TRUE(diff(plan(Rope{}), plan(Rope{})).empty()); }

TEST(DiffOfPlans, AnotherBaseIsToldByTheFrequencyThatIsOffMost) {
  const Finding other = only(diff(plan(Rope{}), plan(Rope{.rope_theta = 5e5}), 1001));
  EXPECT_EQ(other.code, "frequency");
  EXPECT_TRUE(other.layers.empty());
  EXPECT_NE(other.message.find("at 1,000 pair"), std::string::npos) << other.message;
}

TEST(DiffOfPlans, PlacesWherePositionEnters) {
  const Finding other = only(diff(plan(Rope{}), plan(Alibi{})));
  EXPECT_EQ(other.code, "scheme");
  EXPECT_EQ(other.expected, "rotation");
  EXPECT_EQ(other.found, "bias");
}

TEST(DiffOfPlans, LearnedNumbers) {
  const auto learned = [](double first) {
    Plan made = plan(Learned{.rows = 64});
    std::get<Rows>(made.add->kind).table = Table::own(std::vector<double>(4096, first), 64, 64);
    return made;
  };
  EXPECT_TRUE(diff(learned(1), learned(1)).empty());
  EXPECT_EQ(only(diff(learned(1), learned(2))).code, "added");
}

TEST(DiffOfPlans, BiasesByTheirNumbers) {
  EXPECT_EQ(only(diff(plan(Kerple{}), plan(Kerple{.kernel = KerpleKernel::power}))).code, "bias");
}

TEST(DiffOfPlans, AListForAllHeadsIsThatOfEach) {
  const Plan shared = plan(Rope{});
  Plan listed = shared;
  listed.rotate->frequencies.heads = 2;
  listed.rotate->frequencies.radians.insert(listed.rotate->frequencies.radians.end(),
                                            shared.rotate->frequencies.radians.begin(),
                                            shared.rotate->frequencies.radians.end());
  EXPECT_EQ(only(diff(shared, listed)).severity, Severity::note);
  listed.rotate->frequencies.radians.back() += 1;
  EXPECT_EQ(diff(shared, listed).size(), 2u);
  EXPECT_EQ(diff(listed, shared).back().code, "frequency");
}

// The factor on cos and sin made good by the logits hides nothing else of them.
TEST(DiffOfPlans, AFactorThatIsMadeGoodDoesNotHideASoftcap) {
  Plan a = plan(Rope{}), b = a;
  b.rotate->amplitude = 2;
  b.logits.multiplier = 0.25;
  EXPECT_EQ(only(diff(a, b)).code, "amplitude");
  b.logits.softcap = 30;
  EXPECT_EQ(diff(a, b).back().code, "logits");
}

TEST(DiffOfPlans, LengthsAreNotNegative) { EXPECT_FALSE(differences(Plan{}, Plan{}, -1)); }

TEST(Diff, AContextThatGrewWithoutAScaling) {
  const std::string longer =
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 2,
          "num_attention_heads": 32, "num_key_value_heads": 8,
          "max_position_embeddings": 524288, "rope_theta": 500000.0})";
  const Finding found = only(diff(llama(), longer));
  EXPECT_EQ(found.code, "context");
  EXPECT_EQ(found.severity, Severity::warning);
  EXPECT_EQ(found.position, 131072);
}

TEST(Diff, AContextThatTheConverterAlwaysWritesIsNoPromiseThatGrew) {
  Model converted = read(llama(llama3));
  converted.files = {{"model.gguf", FileFormat::gguf, FileRole::model}};
  for (const detail::Architecture& each : detail::all_architectures()) {
    if (each.converted_context == 0) continue;
    converted.family = detail::split(each.names).front();
    converted.context = each.converted_context;
    const auto found = differences(read(llama(llama3)), converted, 0);
    ASSERT_TRUE(found);
    const auto context = std::ranges::find(*found, "context", &Finding::code);
    ASSERT_NE(context, found->end());
    EXPECT_EQ(context->severity, Severity::note);
  }
}

TEST(Diff, TwoModelsHaveNoCureThatMakesOneOfTheOther) {
  const auto bundled = [](const char* name) { return *read_model(name); };
  const auto found = differences(bundled("llama-3.1-8b"), bundled("llama-3.2-3b"));
  ASSERT_TRUE(found);
  EXPECT_NE(std::ranges::find(*found, "two_models", &Finding::code), found->end());
  for (const Finding& one : *found) EXPECT_EQ(one.cure, "") << one.code;
}

TEST(Diff, ADraftsLengthLeads) {
  const std::string draft =
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 1,
          "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 2048})";
  const auto found = differences(*read_model("llama-3.1-8b"), read(draft));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().code, "context");
  EXPECT_TRUE(found->front().message.contains("beyond 2,048 tokens")) << found->front().message;
  for (const Finding& one : *found)
    EXPECT_TRUE(one.code == "context" || one.severity != Severity::error) << one.code;
}

TEST(Diff, HeadsOfAnotherWidthAreNoOtherPartOfAHead) {
  const auto found =
      differences(*read_model("qwen2.5-vl-3b-instruct"), *read_model("qwen2.5-0.5b"));
  ASSERT_TRUE(found);
  const auto has = [&](std::string_view code) {
    return std::ranges::find(*found, code, &Finding::code) != found->end();
  };
  EXPECT_FALSE(has("rotary_dim"));
  EXPECT_TRUE(has("head_dim"));
  EXPECT_TRUE(has("mrope"));
}

TEST(Diff, AxesThatTextDoesNotSee) {
  const std::string text =
      R"({"model_type": "llama", "hidden_size": 3584, "num_hidden_layers": 28,
          "num_attention_heads": 28, "num_key_value_heads": 4, "max_position_embeddings": 128000,
          "rope_theta": 1000000.0})";
  const auto found = differences(*read_model("qwen2.5-vl-7b"), read(text));
  ASSERT_TRUE(found);
  const auto axes = std::ranges::find(*found, "mrope", &Finding::code);
  ASSERT_NE(axes, found->end());
  EXPECT_EQ(axes->severity, Severity::warning);
  EXPECT_EQ(std::ranges::find(*found, "rotary_dim", &Finding::code), found->end());
}

TEST(EngineDifferences, AFamilyThatNobodyKnowsIsNotJudged) {
  const Model model = read(
      R"({"model_type": "somebodys_own", "hidden_size": 64, "num_hidden_layers": 1,
          "num_attention_heads": 1, "rope_theta": 50000.0, "max_position_embeddings": 4096})");
  const auto found = engine_differences(model, "vllm");
  ASSERT_TRUE(found);
  EXPECT_EQ(only(found->findings).code, "not_known");
}

TEST(EngineDifferences, AVersionHasTheProfileThatHoldsForIt) {
  const auto version = [](const char* engine) {
    const auto found = find_engine(engine);
    return found ? std::string(found->version) : found.error().message();
  };
  EXPECT_EQ(version("transformers"), "5.24.0");
  EXPECT_EQ(version("transformers@5"), "5.24.0");
  EXPECT_EQ(version("transformers@5.12"), "5.16.0");
  EXPECT_EQ(version("transformers@5.14.1"), "5.16.0");
  EXPECT_EQ(version("transformers@5.16.1"), "5.16.0");
  EXPECT_EQ(version("transformers@5.8"), "5.24.0");
  EXPECT_EQ(version("transformers@4"), "4.57.6");
  EXPECT_TRUE(version("transformers@x").contains("such as 5.12"));
}

TEST(EngineDifferences, AnEngineWithoutAClassIsSaidToHaveNone) {
  const Model model = read(R"({"model_type": "qwen3_next", "num_hidden_layers": 4})");
  const auto found = engine_differences(model, "tgi", 0);
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->findings.size(), 1U);
  EXPECT_EQ(found->findings.front().code, "no_class");
}

// models/qwen.py has neither of the two.
TEST(EngineDifferences, VllmGrowsNeitherBaseNorLogitsOfQwensFirstModels) {
  const auto found = engine_differences(*read_model("qwen-7b"), "vllm", 0);
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->findings.front().code, "logits");
}

TEST(EngineDifferences, LogitsThatGrowLaterAreTheSameInAShorterText) {
  const auto has = [](std::int64_t length) {
    const auto found = engine_differences(*read_model("qwen-7b"), "vllm", length)->findings;
    const auto at = std::ranges::find(found, "logits", &Finding::code);
    return at == found.end() ? -1 : at->position.value_or(0);
  };
  EXPECT_EQ(has(6000), -1);
  EXPECT_EQ(has(8193), 8192);
  EXPECT_EQ(has(0), 8192);
}

TEST(EngineDifferences, NothingGrowsThatTheFileHasSwitchedOff) {
  const auto loses = [](const std::string& switches) {
    const auto reading = read_as(read(R"({"model_type": "qwen", "hidden_size": 64,
        "num_attention_heads": 2, "num_hidden_layers": 1, )" +
                                      switches + "}"),
                                 "vllm");
    for (const EngineNote& note : reading ? reading->notes : std::vector<EngineNote>{})
      if (note.what.contains("the model's own code alone")) return note.what;
    return std::string();
  };
  EXPECT_EQ(loses(R"("use_dynamic_ntk": false, "use_logn_attn": false)"), "");
  EXPECT_TRUE(loses(R"("use_dynamic_ntk": false)").starts_with("use_logn_attn is"));
  EXPECT_TRUE(loses(R"("use_logn_attn": false)").starts_with("use_dynamic_ntk is"));
  EXPECT_TRUE(loses(R"("seq_length": 8192)").starts_with("use_dynamic_ntk and use_logn_attn"));
}

TEST(EngineDifferences, ANearestProfileIsSaidToStandIn) {
  const auto said = [](const char* engine) {
    const auto reading = read_as(*read_model("llama-3.1-8b"), engine);
    return reading && std::ranges::any_of(reading->notes, [](const EngineNote& note) {
             return note.what.contains("stands for it");
           });
  };
  EXPECT_TRUE(said("transformers@5.8"));
  EXPECT_TRUE(said("sglang@0.5.99"));  // whose releases count where others count repairs
  EXPECT_FALSE(said("transformers@5.12"));
  EXPECT_FALSE(said("transformers"));
}

// GLM-5's indexer pairs neighbours, and DeepSeek's halves; frequencies are told of the heads alone.
TEST(Diff, IndexersPairAndPick) {
  const auto glm = [](const std::string& more) {
    return R"({"model_type": "glm_moe_dsa", "num_hidden_layers": 2)" + more + "}";
  };
  const Finding pairs = only(diff(glm(""), glm(R"(, "indexer_rope_interleave": false)")));
  EXPECT_EQ(pairs.code, "indexer_pairing");
  EXPECT_EQ(pairs.found, "halves");
  EXPECT_EQ(only(diff(glm(""), glm(R"(, "index_topk": 512)"))).code, "picked");
  EXPECT_EQ(only(diff(glm(""), glm(R"(, "rope_theta": 20000)"))).code, "rope_theta");
  EXPECT_EQ(only(diff(glm(""), glm(R"(, "indexer_types": ["full", "shared"])"))).code, "indexer");
}

TEST(Differences, ALongerPromiseOfWindowsShowsNoNewAngle) {
  const auto severity = [](const char* window) {
    const auto model = [&](const char* context) {
      return *read_config(R"({"model_type": "mistral", "hidden_size": 512, "num_hidden_layers": 2,
          "num_attention_heads": 8, "rope_theta": 1000000, "sliding_window": )" +
                          std::string(window) + R"(, "max_position_embeddings": )" + context + "}");
    };
    const auto found = differences(model("4096"), model("16384"), 0);
    const auto at = std::ranges::find(*found, "context", &Finding::code);
    return at == found->end() ? Severity::error : at->severity;
  };
  EXPECT_EQ(severity("4096"), Severity::note);
  EXPECT_EQ(severity("8192"), Severity::warning);
  EXPECT_EQ(severity("null"), Severity::warning);
}

}  // namespace
}  // namespace posenc
