// Files that contradict themselves, or are spelled in more than one way.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "posenc/model.h"

namespace posenc {
namespace {

// A small llama with some keys more.
std::string small(std::string_view more = "") {
  return R"({"model_type": "llama", "hidden_size": 256, "num_attention_heads": 4,
             "num_hidden_layers": 2, "max_position_embeddings": 4096)" +
         std::string(more.empty() ? "" : ", ") + std::string(more) + "}";
}

std::string config_error(std::string_view text) {
  const auto model = read_config(text);
  return model ? "" : model.error().message();
}

bool warns(std::string_view text, std::string_view code) {
  const auto model = read_config(text);
  return model && std::ranges::find(model->warnings, code, &Warning::code) != model->warnings.end();
}

std::size_t warning_count(std::string_view text) {
  const auto model = read_config(text);
  return model ? model->warnings.size() : 1000;
}

Rope rope_of(std::string_view text) {
  const auto model = read_config(text);
  if (!model) {
    ADD_FAILURE() << model.error().message();
    return {};
  }
  const Rope* rope = std::get_if<Rope>(&model->groups.at(0).schemes.at(0));
  if (!rope) ADD_FAILURE() << "no rope";
  return rope ? *rope : Rope{};
}

const Provenance* provenance(const Model& model, std::string_view field) {
  for (const Provenance& p : model.groups.at(0).provenance) {
    if (p.field == field) return &p;
  }
  return nullptr;
}

// --- kinds and ranges ----------------------------------------------------------------------------

TEST(Config, APlainFileHasNoWarnings) { EXPECT_EQ(warning_count(small()), 0u); }

TEST(Config, AListIsNoConfig) {
  EXPECT_NE(config_error("[1]").find("JSON object"), std::string::npos);
}

TEST(Config, AMissingFamilyIsRefused) {
  EXPECT_NE(config_error("{}").find("model_type: is missing"), std::string::npos);
}

TEST(Config, AWordIsNoNumber) {
  EXPECT_EQ(config_error(small(R"("rope_theta": "10000")")),
            "config.json: rope_theta: must be a number, got a word (\"10000\"); correct the file");
}

TEST(Config, TrueIsNoNumber) { EXPECT_NE(config_error(small(R"("head_dim": true)")), ""); }

TEST(Config, AFractionIsNoCount) {
  EXPECT_NE(config_error(small(R"("head_dim": 64.5)")).find("whole number"), std::string::npos);
}

TEST(Config, AFlatScalingIsToldTheNestedForm) {
  const std::string model = small(R"("rope_scaling_type": "linear", "rope_scaling_factor": 4.0)");
  EXPECT_TRUE(warns(model, "foreign_name"));
  EXPECT_FALSE(warns(model, "unread_key"));
}

TEST(Config, AWholeRealIsACount) { EXPECT_EQ(config_error(small(R"("head_dim": 64.0)")), ""); }

TEST(Config, NegativeSizesAreRefused) {
  EXPECT_NE(config_error(small(R"("num_key_value_heads": -1)")).find("at least 1"),
            std::string::npos);
}

TEST(Config, AbsurdSizesAreRefused) {
  for (const std::string_view size : {"10001", "1e308", "9223372036854775807", "1e19"}) {
    EXPECT_NE(
        config_error(R"({"model_type": "llama", "num_hidden_layers": )" + std::string(size) + "}"),
        "")
        << size;
  }
}

TEST(Config, AThetaOfOneIsRefused) {
  EXPECT_NE(config_error(small(R"("rope_theta": 1)")).find("above 1"), std::string::npos);
}

TEST(Config, NullIsAsIfAbsent) {
  EXPECT_EQ(config_error(small(R"("head_dim": null, "rope_scaling": null, "rope_theta": null)")),
            "");
}

// --- contradictions ------------------------------------------------------------------------------

TEST(Config, HeadsMustDivideTheWidth) {
  EXPECT_NE(
      config_error(R"({"model_type": "llama", "hidden_size": 100, "num_attention_heads": 3})"), "");
}

TEST(Config, HeadDimFreesTheWidth) {
  EXPECT_EQ(
      config_error(
          R"({"model_type": "llama", "hidden_size": 100, "num_attention_heads": 3, "head_dim": 32})"),
      "");
}

TEST(Config, KeyValueHeadsMustDivideTheHeads) {
  EXPECT_NE(config_error(small(R"("num_key_value_heads": 3)")).find("divide"), std::string::npos);
  EXPECT_NE(config_error(small(R"("num_key_value_heads": 8)")).find("divide"), std::string::npos);
}

TEST(Config, LayerTypesMustCoverTheLayers) {
  EXPECT_NE(config_error(small(R"("layer_types": ["full_attention"])")).find("2 layers"),
            std::string::npos);
}

TEST(Config, AnOddHeadIsRefused) {
  EXPECT_NE(config_error(small(R"("head_dim": 63)")).find("even"), std::string::npos);
}

TEST(Config, SectionsMustSumToThePairs) {
  EXPECT_NE(
      config_error(small(R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 8, 9]})")), "");
  EXPECT_EQ(
      config_error(small(R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 8, 8]})")), "");
}

TEST(Config, ListsMustHaveOneEntryForEachPair) {
  EXPECT_NE(
      config_error(
          small(R"("rope_scaling": {"type": "longrope", "short_factor": [1], "long_factor": [1],
                                                   "original_max_position_embeddings": 1024})"))
          .find("32 pairs"),
      std::string::npos);
}

TEST(Config, AMissingFactorIsRefused) {
  EXPECT_NE(config_error(small(R"("rope_scaling": {"type": "linear"})"))
                .find("rope_scaling.factor: is missing"),
            std::string::npos);
}

TEST(Config, AnUnknownScalingNamesItsLikes) {
  const std::string message =
      config_error(small(R"("rope_scaling": {"type": "yarm", "factor": 2})"));
  EXPECT_NE(message.find("rope_scaling.type"), std::string::npos) << message;
  EXPECT_NE(message.find("did you mean 'yarn'"), std::string::npos) << message;
}

TEST(Config, ScalingParametersMustBeAnObject) {
  EXPECT_NE(config_error(small(R"("rope_scaling": "yarn")")), "");
}

// --- spellings -----------------------------------------------------------------------------------

TEST(Config, OldAndNewSpellingAgree) {
  const Rope old = rope_of(small(R"("rope_theta": 500000, "partial_rotary_factor": 0.5,
      "rope_scaling": {"type": "linear", "factor": 4})"));
  const Rope now = rope_of(small(R"("rope_parameters": {"rope_type": "linear", "rope_theta": 500000,
      "partial_rotary_factor": 0.5, "factor": 4})"));
  EXPECT_EQ(old, now);
  EXPECT_EQ(now.rope_theta, 500000);
}

TEST(Config, SuIsLongRope) {
  std::string ones = "1";
  for (int i = 1; i < 32; ++i) ones += ", 1";
  const Rope rope =
      rope_of(small(R"("rope_scaling": {"type": "su", "original_max_position_embeddings": 2048,
      "short_factor": [)" +
                    ones + R"(], "long_factor": [)" + ones + "]}"));
  EXPECT_EQ(info(rope.scaling).name, "longrope");
}

TEST(Config, MropeIsTheDefaultWithSections) {
  const Rope rope =
      rope_of(small(R"("rope_scaling": {"type": "mrope", "mrope_section": [16, 8, 8]})"));
  EXPECT_EQ(info(rope.scaling).name, "default");
  EXPECT_EQ(rope.mrope_section, (std::vector<std::int64_t>{16, 8, 8}));
}

TEST(Config, ThetaInTheParametersWins) {
  const std::string text =
      small(R"("rope_theta": 20000, "rope_parameters": {"rope_theta": 30000})");
  EXPECT_EQ(rope_of(text).rope_theta, 30000);
  EXPECT_TRUE(warns(text, "theta_conflict"));
}

TEST(Config, ADefaultThetaIsNamedAsTheFamilys) {
  const auto model = read_config(small());
  ASSERT_TRUE(model);
  const Provenance* theta = provenance(*model, "rope_theta");
  ASSERT_TRUE(theta);
  EXPECT_EQ(theta->origin, Origin::family);
  EXPECT_EQ(theta->value, "10000");
}

TEST(Config, AStatedValueNamesItsKey) {
  const auto model = read_config(small(R"("rope_scaling": {"type": "linear", "factor": 4})"));
  ASSERT_TRUE(model);
  const Provenance* factor = provenance(*model, "factor");
  ASSERT_TRUE(factor);
  EXPECT_EQ(factor->detail, "rope_scaling.factor");
}

// Interpolation names no trained length; the context is what it reaches.
TEST(Config, InterpolatedPositionsStayWithinTheTrainedLength) {
  const auto model = read_config(small(R"("rope_scaling": {"type": "linear", "factor": 4})"));
  ASSERT_TRUE(model);
  EXPECT_EQ(model->context, 4096);
  EXPECT_EQ(model->trained_context, 1024);
}

TEST(Config, TheTrainedLengthBesideTheParametersWins) {
  const std::string text = small(R"("original_max_position_embeddings": 1024,
      "rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048})");
  EXPECT_EQ(std::get<Yarn>(rope_of(text).scaling).original_max_position_embeddings, 1024);
  EXPECT_TRUE(warns(text, "original_length_conflict"));
}

TEST(Config, AMissingTrainedLengthIsTheContext) {
  const std::string text = small(R"("rope_scaling": {"type": "yarn", "factor": 4})");
  EXPECT_EQ(std::get<Yarn>(rope_of(text).scaling).original_max_position_embeddings, 4096);
  EXPECT_TRUE(warns(text, "original_length_missing"));
}

TEST(Config, ANullFactorIsDerivedFromTheLengths) {
  const Rope rope = rope_of(small(R"("rope_scaling": {"type": "yarn", "factor": null,
      "original_max_position_embeddings": 1024})"));
  const auto plan = compile(Scheme{rope}, {.head_dim = 64});
  ASSERT_TRUE(plan) << plan.error().message();
  EXPECT_NEAR(plan->rotate->amplitude, 0.1 * std::log(4.0) + 1, 1e-15);
}

TEST(Config, ParametersByLayerType) {
  const auto model = read_config(small(R"("layer_types": ["sliding_attention", "full_attention"],
      "sliding_window": 128, "rope_parameters": {"sliding_attention": {"rope_theta": 20000},
      "full_attention": null})"));
  ASSERT_TRUE(model) << model.error().message();
  ASSERT_EQ(model->groups.size(), 2u);
  EXPECT_EQ(std::get<Rope>(model->groups[0].schemes[0]).rope_theta, 20000);
  EXPECT_TRUE(std::holds_alternative<NoPe>(model->groups[1].schemes[0]));
}

TEST(Config, ALayerTypeWithoutParametersIsRefused) {
  EXPECT_NE(
      config_error(
          small(R"("layer_types": ["sliding_attention", "full_attention"], "sliding_window": 128,
      "rope_parameters": {"sliding_attention": {"rope_theta": 20000}})"))
          .find("rope_parameters.full_attention"),
      std::string::npos);
}

// --- warnings ------------------------------------------------------------------------------------

TEST(ConfigWarning, UnknownKey) {
  EXPECT_TRUE(warns(small(R"("rope_scaling": {"type": "linear", "factor": 4, "finetuned": true})"),
                    "unknown_key"));
}

TEST(ConfigWarning, OurOwnFieldsAreNotTheFiles) {
  EXPECT_TRUE(warns(small(R"("rope_scaling": {"type": "yarn", "factor": 4, "scale_logits": true,
      "original_max_position_embeddings": 1024})"),
                    "unknown_key"));
}

TEST(ConfigWarning, FactorAgainstTheLengths) {
  constexpr std::string_view scaling =
      R"("rope_scaling": {"type": "yarn", "original_max_position_embeddings": 1024, )";
  EXPECT_TRUE(warns(small(std::string(scaling) + R"("factor": 8})"), "factor_vs_lengths"));
  EXPECT_FALSE(warns(small(std::string(scaling) + R"("factor": 4})"), "factor_vs_lengths"));
  const auto advice = [&](std::string_view factor) {
    const auto model =
        read_config(small(std::string(scaling) + "\"factor\": " + std::string(factor) + "}"));
    const std::string message = model ? model->warnings.at(0).message : "";
    return message.substr(message.find("is used; ") + 9);
  };
  EXPECT_EQ(advice("8"), "write max_position_embeddings 8192 or correct the factor");
  EXPECT_EQ(advice("1.0001"), "correct the factor");
  EXPECT_EQ(advice("1e308"), "correct the factor");
}

// Qwen's card has its readers add the scaling and leave max_position_embeddings: one note, and no
// alarm.
TEST(ConfigWarning, TheTrainedLengthIsKeptAsPublished) {
  const auto codes = [](std::string_view lengths) {
    const auto model = read_config(R"({"model_type": "qwen2", "hidden_size": 3584,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "rope_theta": 1000000.0, )" +
                                   std::string(lengths));
    std::vector<std::string> out;
    if (model)
      for (const Warning& warning : model->warnings) out.push_back(warning.code);
    return out;
  };
  using Codes = std::vector<std::string>;
  EXPECT_EQ(codes(R"("max_position_embeddings": 32768, "rope_scaling": {"type": "yarn",
      "factor": 4, "original_max_position_embeddings": 32768}})"),
            Codes{"trained_length_kept"});
  // What no card says stays a question, but one.
  EXPECT_EQ(codes(R"("max_position_embeddings": 40960, "rope_scaling": {"type": "yarn",
      "factor": 4, "original_max_position_embeddings": 40960}})"),
            Codes{"original_is_max"});
}

TEST(ConfigWarning, TrainedLengthIsTheContext) {
  EXPECT_TRUE(warns(
      small(
          R"("rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 4096})"),
      "original_is_max"));
}

TEST(ConfigWarning, TypeConflict) {
  const std::string text =
      small(R"("rope_scaling": {"type": "linear", "rope_type": "dynamic", "factor": 2})");
  EXPECT_TRUE(warns(text, "type_conflict"));
  EXPECT_EQ(info(rope_of(text).scaling).name, "dynamic");
}

TEST(ConfigWarning, TwoSpellings) {
  EXPECT_TRUE(warns(
      small(
          R"("rope_scaling": {"type": "linear", "factor": 2}, "rope_parameters": {"rope_theta": 20000})"),
      "two_spellings"));
}

TEST(ConfigWarning, TwoSpellingsThatAgreeAreFine) {
  EXPECT_FALSE(warns(small(R"("rope_scaling": {"type": "linear", "factor": 2, "rope_theta": 20000},
      "rope_parameters": {"rope_type": "linear", "factor": 2, "rope_theta": 20000})"),
                     "two_spellings"));
}

TEST(ConfigWarning, EqualFactors) {
  EXPECT_TRUE(
      warns(small(R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
      "high_freq_factor": 1, "original_max_position_embeddings": 1024})"),
            "equal_factors"));
}

TEST(ConfigWarning, EqualFactorsAreRightWhereTheAuthorsPublishThem) {
  const std::string_view equal = R"("rope_scaling": {"rope_type": "llama3", "factor": 16,
      "low_freq_factor": 1, "high_freq_factor": 1, "original_max_position_embeddings": 1024})";
  const auto model = read_config(R"({"model_type": "llama4_text", "hidden_size": 64,
      "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 4, )" +
                                 std::string(equal) + "}");
  ASSERT_TRUE(model);
  EXPECT_EQ(std::ranges::find(model->warnings, "equal_factors", &Warning::code),
            model->warnings.end());
}

TEST(ConfigWarning, AttentionFactorGiven) {
  EXPECT_TRUE(warns(small(R"("rope_scaling": {"type": "yarn", "factor": 4, "attention_factor": 1.0,
      "original_max_position_embeddings": 1024})"),
                    "attention_factor_given"));
}

TEST(ConfigWarning, AnAttentionFactorThatYarnComputesChangesNothing) {
  EXPECT_FALSE(warns(small(R"("rope_scaling": {"type": "yarn", "factor": 8,
      "attention_factor": 1.2079441541679836, "original_max_position_embeddings": 1024})"),
                     "attention_factor_given"));
}

TEST(ConfigWarning, AnOddPartOfAHead) {
  const auto of = [](const char* part) {
    const auto model = read_config(R"({"model_type": "gpt_neox", "hidden_size": 32,
        "num_attention_heads": 8, "num_hidden_layers": 2, "rotary_pct": )" +
                                   std::string(part) + "}");
    EXPECT_TRUE(model);
    return model && std::ranges::find(model->warnings, "odd_rotary_part", &Warning::code) !=
                        model->warnings.end();
  };
  EXPECT_TRUE(of("0.75"));
  EXPECT_FALSE(of("0.5"));
}

TEST(Config, OfADraftOfSpeculatorsIsThatOfItsLayers) {
  const std::string text = R"({"speculators_model_type": "eagle3", "transformer_layer_config": {
      "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2,
      "max_position_embeddings": 40960, "rope_theta": 1000000}})";
  const auto model = read_model_bytes(std::as_bytes(std::span(text)), "config.json");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->context, 40960);
}

TEST(Config, ASlipOfThePenIsToldWithTheKeyThatWasMeant) {
  for (const char* key : {R"("rope_scalling": {"type": "yarn", "factor": 4.0})",
                          R"("rope_teta": 500000)", R"("rope-scaling": {"factor": 2})"})
    EXPECT_TRUE(warns(small(key), "misspelt_key")) << key;
  EXPECT_FALSE(warns(small(R"("rope_scaling": null)"), "misspelt_key"));
}

TEST(Config, ABaseByAnotherProgramsNameIsToldWithTheKeyThatIsRead) {
  const std::string model = small(R"("rotary_base": 1000000)");
  EXPECT_TRUE(warns(model, "foreign_name"));
  EXPECT_FALSE(warns(model, "unread_key"));
}

// TensorRT-LLM's config.json, of a checkpoint and within that of an engine.
TEST(Config, OfTensorRtLlmSaysWhatItsConverterTookOver) {
  const std::string checkpoint = R"({"architecture": "LlamaForCausalLM", "dtype": "float16",
      "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "head_size": 32,
      "num_key_value_heads": 2, "max_position_embeddings": 16384, "rotary_base": 100000.0,
      "position_embedding_type": "rope_gpt_neox", "quantization": {"quant_algo": null},
      "rotary_scaling": {"factor": 4.0, "type": "linear"}})";
  for (const std::string& text :
       {checkpoint, R"({"version": "0.10.0", "pretrained_config": )" + checkpoint + "}"}) {
    const auto model = read_model_bytes(std::as_bytes(std::span(text)), "config.json");
    ASSERT_TRUE(model) << model.error().message();
    EXPECT_EQ(model->family, "llama");
    EXPECT_EQ(model->context, 16384);
    const auto& rope = std::get<Rope>(model->groups[0].schemes[0]);
    EXPECT_EQ(rope.rope_theta, 100000);
    EXPECT_EQ(rope.scaling, Scaling{Linear{4}});
    EXPECT_TRUE(model->warnings.empty());
  }
}

TEST(ConfigWarning, MscaleAlone) {
  EXPECT_TRUE(warns(small(R"("rope_scaling": {"type": "yarn", "factor": 4, "mscale": 1.0,
      "original_max_position_embeddings": 1024})"),
                    "mscale_alone"));
}

TEST(ConfigWarning, ZeroBetaIsTheDefault) {
  const std::string text = small(R"("rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 0,
      "original_max_position_embeddings": 1024})");
  EXPECT_TRUE(warns(text, "zero_beta"));
  EXPECT_EQ(std::get<Yarn>(rope_of(text).scaling).beta_fast, 32);
}

// Which pairs these scalings stretch follows from the base; linear scaling divides all alike.
TEST(ConfigWarning, ABaseLostBesideAScaling) {
  const std::string llama3 =
      R"("rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
      "high_freq_factor": 4, "original_max_position_embeddings": 512})";
  EXPECT_TRUE(warns(small(llama3), "base_from_default"));
  EXPECT_FALSE(warns(small(llama3 + R"(, "rope_theta": 500000)"), "base_from_default"));
  EXPECT_FALSE(
      warns(small(R"("rope_scaling": {"type": "linear", "factor": 2})"), "base_from_default"));
  EXPECT_FALSE(warns(small(), "base_from_default"));
  // A file of Llama 2, whose base is the default.
  EXPECT_FALSE(warns(small(R"("rope_scaling": {"type": "yarn", "factor": 32,
                              "original_max_position_embeddings": 4096})"),
                     "base_from_default"));
}

TEST(ConfigWarning, KeysOfOtherFamilies) {
  EXPECT_TRUE(warns(small(R"("alibi": true)"), "foreign_key"));
  EXPECT_TRUE(warns(small(R"("position_embedding_type": "alibi")"), "foreign_key"));
  EXPECT_FALSE(warns(small(R"("alibi": false)"), "foreign_key"));
  EXPECT_TRUE(warns(small(R"("rope_theta": 500000, "rope_local_base_freq": 10000)"), "unread_key"));
}

TEST(ConfigWarning, LengthDependentRotation) {
  EXPECT_TRUE(
      warns(small(R"("rope_scaling": {"type": "dynamic", "factor": 2})"), "length_dependent"));
  EXPECT_FALSE(
      warns(small(R"("rope_scaling": {"type": "linear", "factor": 2})"), "length_dependent"));
}

TEST(ConfigWarning, TheSameTwiceIsSaidOnce) {
  const auto model = read_config(
      small(R"("layer_types": ["sliding_attention", "full_attention"], "sliding_window": 8,
      "rope_scaling": {"type": "linear", "factor": 2, "x": 1})"));
  ASSERT_TRUE(model);
  EXPECT_EQ(std::ranges::count(model->warnings, "unknown_key", &Warning::code), 1);
}

TEST(ConfigWarning, SpellingsThatDisagree) {
  EXPECT_TRUE(warns(small(R"("n_head": 8)"), "spellings_disagree"));
}

TEST(Config, ALengthThatIsTheFactorTimesTheFirstIsTheContext) {
  const auto context = [](const char* more) {
    const auto model = read_config(
        std::string(R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 1,
            "num_attention_heads": 2, "max_position_embeddings": 4096,
            "rope_scaling": {"type": "linear", "factor": 4.0})") +
        more + "}");
    return model ? model->context : 0;
  };
  EXPECT_EQ(context(R"(, "max_sequence_length": 16384)"), 16384);  // Vicuna's 16k files
  EXPECT_EQ(context(R"(, "max_sequence_length": 8192)"), 4096);
}

TEST(ConfigWarning, LengthsThatDifferAreNoSlip) {
  const std::string file = small(R"("n_positions": 8192)");
  EXPECT_FALSE(warns(file, "spellings_disagree"));
  EXPECT_TRUE(warns(file, "lengths_differ"));
}

// --- unknown families ----------------------------------------------------------------------------

constexpr std::string_view zork =
    R"("model_type": "zork", "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2)";

TEST(UnknownFamily, NeedsABase) {
  EXPECT_NE(config_error("{" + std::string(zork) + "}").find("not a known family"),
            std::string::npos);
}

TEST(UnknownFamily, WithABaseIsReadByTheGenericRule) {
  const auto model = read_config("{" + std::string(zork) + R"(, "rope_theta": 20000})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_FALSE(model->known_family);
  EXPECT_EQ(std::get<Rope>(model->groups[0].schemes[0]).pairing, Pairing::halves);
  const Provenance* pairing = provenance(*model, "pairing");
  ASSERT_TRUE(pairing);
  EXPECT_EQ(pairing->origin, Origin::assumed);
}

TEST(UnknownFamily, ParametersWithoutABaseAreRefused) {
  EXPECT_NE(config_error("{" + std::string(zork) +
                         R"(, "rope_scaling": {"type": "linear", "factor": 2}})")
                .find("rope_theta: is missing"),
            std::string::npos);
}

TEST(UnknownFamily, LatentAttentionIsRefused) {
  EXPECT_NE(
      config_error("{" + std::string(zork) + R"(, "rope_theta": 10000, "kv_lora_rank": 512})"), "");
}

TEST(UnknownFamily, AStatedAlibiIsTaken) {
  const auto model = read_config("{" + std::string(zork) + R"(, "alibi": true})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_TRUE(std::holds_alternative<Alibi>(model->groups[0].schemes[0]));
}

TEST(UnknownFamily, AnEndlessNameIsRefused) {
  EXPECT_NE(
      config_error(R"({"model_type": ")" + std::string(10000, 'x') + "\"}").find("short word"),
      std::string::npos);
}

TEST(Config, AnObjectCalledArchitectureIsNoName) {
  const auto model = read_config(
      R"({"architectures": ["MixFormerSequentialForCausalLM"], "architecture": {"mixer": {}},
          "n_embd": 2048, "n_head": 32, "n_layer": 24, "n_positions": 2048, "rotary_dim": 32})");
  ASSERT_TRUE(model) << model.error().message();
  EXPECT_EQ(model->family, "mixformer-sequential");
}

}  // namespace
}  // namespace posenc
