// What is said to an engine is what the model has, or a note says what is not.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>
#include <nlohmann/json.hpp>

#include "posenc/engines.h"
#include "tests/gguf_bytes.h"
#include "tests/paths.h"

namespace posenc {
namespace {

// A Qwen3 with a scaling, and a context of 131072.
Model qwen_with(const std::string& scaling) {
  const Expected<Model> model = read_config(
      R"({"model_type": "qwen3", "hidden_size": 4096, "head_dim": 128, "num_hidden_layers": 2,
          "num_attention_heads": 32, "num_key_value_heads": 8, "rope_theta": 1000000.0,
          "max_position_embeddings": 131072, "rope_scaling": )" +
      scaling + "}");
  EXPECT_TRUE(model) << model.error().message();
  return model.value_or(Model{});
}
const char* const yarn_four =
    R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})";

Translation said(const Model& model, std::string_view engine, std::int64_t length = 0) {
  const auto translation = translate(model, engine, length);
  EXPECT_TRUE(translation) << translation.error().message();
  return translation.value_or(Translation{});
}

bool notes(const Translation& translation, EngineNote::Kind kind, std::string_view text) {
  return std::ranges::any_of(translation.notes, [&](const EngineNote& note) {
    return note.kind == kind && note.what.contains(text);
  });
}

TEST(Translate, FlagsOfLlamaCpp) {
  EXPECT_EQ(
      said(qwen_with(yarn_four), "llama.cpp", 65536).target,
      "--rope-freq-base 1000000 --rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 65536");
}

TEST(Translate, VllmIsToldTheBaseToo) {
  EXPECT_EQ(
      said(qwen_with(yarn_four), "vllm").target,
      R"(--hf-overrides '{"rope_parameters":{"rope_type":"yarn","factor":4.0,)"
      R"("original_max_position_embeddings":32768,"beta_fast":32.0,"beta_slow":1.0,"rope_theta":1000000.0}}')");
}

TEST(Translate, OldSpellingHasTheBaseBesideTheScaling) {
  const Translation old =
      said(qwen_with(R"({"rope_type": "linear", "factor": 2.0})"), "transformers@4");
  EXPECT_EQ(old.target,
            R"({"rope_theta":1000000.0,"rope_scaling":{"rope_type":"linear","factor":2.0},)"
            R"("max_position_embeddings":131072})");
}

TEST(Translate, LayersOfTwoKindsThatRotateAlikeAreSaidOnce) {
  const Expected<Model> model = read_model("gpt-oss-20b");
  ASSERT_TRUE(model);
  const std::string target = said(*model, "transformers").target;
  EXPECT_TRUE(target.starts_with(R"({"rope_parameters":{"rope_type":"yarn")")) << target;
}

TEST(Translate, EachKindOfLayerIsSaidOnce) {
  const Expected<Model> model = read_model("gemma-4-e2b");  // has four groups of two kinds
  ASSERT_TRUE(model);
  const std::string target = said(*model, "transformers").target;
  EXPECT_EQ(target.find("full_attention"), target.rfind("full_attention")) << target;
}

// type ntk of a family that has none of its own.
EngineReading of_named_ntk(const char* engine) {
  const auto model = read_config(R"({"model_type": "llama", "hidden_size": 512,
      "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 4096,
      "rope_theta": 10000.0, "rope_scaling": {"type": "ntk", "factor": 4.0}})");
  EXPECT_TRUE(model) << model.error().message();
  return *read_as(*model, engine);
}

TEST(NamedNtk, IsUnknownToTransformers) {
  for (const char* engine : {"transformers", "transformers@4.57"})
    EXPECT_TRUE(of_named_ntk(engine).refused.contains("KeyError: 'ntk'")) << engine;
}

TEST(NamedNtk, IsRefusedByEnginesThatKnowNoSuchType) {
  for (const char* engine : {"mlx-lm", "sglang", "exllamav3", "lmdeploy", "tensorrt-llm"})
    EXPECT_TRUE(of_named_ntk(engine).refused.contains("called ntk there")) << engine;
  for (const char* engine : {"llama.cpp", "exllamav2"})
    EXPECT_FALSE(of_named_ntk(engine).notes.empty()) << engine;
}

TEST(NamedNtk, IsThatOfGteInVllm) {
  const Model model = of_named_ntk("vllm").model;
  const auto& rope = std::get<Rope>(model.groups.front().schemes.front());
  EXPECT_EQ(rope.rope_theta, 40000);
  const auto* linear = std::get_if<Linear>(&rope.scaling);
  ASSERT_TRUE(linear);
  EXPECT_DOUBLE_EQ(linear->factor, std::pow(4.0, 2.0 / 128));
}

TEST(Translate, NtkAwareScalingIsAnotherBase) {
  const Translation ntk = said(qwen_with(R"({"rope_type": "ntk", "factor": 8.0})"), "llama.cpp");
  EXPECT_EQ(ntk.largest_angle_difference, 0);
  EXPECT_TRUE(ntk.target.starts_with("--rope-freq-base 8268")) << ntk.target;
}

TEST(Translate, AnAttentionFactorThatNoFlagKeepsIsLost) {
  const Translation lost = said(
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "attention_factor": 1.0})"),
      "llama.cpp");
  EXPECT_TRUE(notes(lost, EngineNote::Kind::lost, "attention_factor"));
  EXPECT_NEAR(*lost.amplitude_difference, 0.1 * std::log(4.0), 1e-12);
}

TEST(Translate, AnEngineThatRefusesLeavesNothingToCompare) {
  const Translation refused =
      said(qwen_with(R"({"rope_type": "dynamic", "factor": 2.0})"), "exllamav3");
  EXPECT_FALSE(refused.largest_angle_difference);
  EXPECT_TRUE(notes(refused, EngineNote::Kind::lost, "ValueError"));
}

TEST(Translate, KeysOfAGguf) {
  EXPECT_EQ(said(qwen_with(yarn_four), "gguf").target,
            R"({"rope.freq_base":1000000.0,"rope.dimension_count":128,"rope.scaling.type":"yarn",)"
            R"("rope.scaling.factor":4.0,"rope.scaling.original_context_length":32768,)"
            R"("context_length":131072})");
}

TEST(Translate, AGgufKeepsAnAttentionFactorThatNoFlagKeeps) {
  const Translation kept = said(
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "attention_factor": 1.0})"),
      "gguf");
  EXPECT_TRUE(kept.target.contains(R"("rope.scaling.attn_factor":0.878)")) << kept.target;
  EXPECT_EQ(kept.amplitude_difference, 0);
}

TEST(Translate, BetasThatLlamaCppDoesNotReadAreLost) {
  const Translation lost = said(
      qwen_with(
          R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768, "beta_fast": 16})"),
      "gguf");
  EXPECT_TRUE(notes(lost, EngineNote::Kind::lost, "beta_fast"));
  EXPECT_GT(*lost.largest_angle_difference, 0.1);
}

TEST(Translate, KeysOfParamsJson) {
  EXPECT_EQ(
      said(qwen_with(yarn_four), "params.json").target,
      R"({"rope_theta":1000000.0,"yarn":{"factor":4.0,"original_max_position_embeddings":32768,)"
      R"("beta":32.0,"alpha":1.0,"apply_scale":true},"max_position_embeddings":131072})");
}

TEST(Translate, ParamsJsonKnowsNoScalingButYarn) {
  const Translation lost =
      said(qwen_with(R"({"rope_type": "linear", "factor": 2.0})"), "params.json");
  EXPECT_TRUE(notes(lost, EngineNote::Kind::lost, "linear"));
  EXPECT_GT(*lost.largest_angle_difference, 0.1);
}

TEST(Translate, AModelThatDoesNotRotateIsRefused) {
  const Expected<Model> model = read_model("bloom-176b");
  ASSERT_TRUE(model);
  EXPECT_FALSE(translate(*model, "vllm"));
}

TEST(Translate, LengthsBelowZeroAreRefused) {
  EXPECT_FALSE(translate(qwen_with(yarn_four), "vllm", -1));
}

// A llama's GGUF, one layer and no tensors, with keys of a flat JSON object.
Expected<Model> gguf_with(const std::string& keys, std::int64_t head_dim) {
  const auto json = nlohmann::json::parse(keys);
  test::GgufBytes b;
  b.start(0, json.size() + 6);
  const auto whole = [&](const std::string& key, std::int64_t value) {
    b.key("llama." + key, test::GgufBytes::u32).put(static_cast<std::uint32_t>(value));
  };
  b.key("general.architecture", test::GgufBytes::string).word("llama");
  whole("block_count", 1);
  whole("embedding_length", 8 * head_dim);
  whole("attention.head_count", 8);
  whole("attention.key_length", head_dim);
  whole("attention.value_length", head_dim);
  for (const auto& [key, value] : json.items()) {
    if (value.is_string())
      b.key("llama." + key, test::GgufBytes::string).word(value.get<std::string>());
    else if (value.is_number_integer())
      whole(key, value.get<std::int64_t>());
    else
      b.key("llama." + key, test::GgufBytes::f32).put(value.get<float>());
  }
  b.pad();
  return read_gguf(std::as_bytes(std::span(b.text)), "m.gguf");
}

// Every model of the zoo whose text rotates by one kind of RoPE: its keys, read again, give its
// frequencies.
class Zoo : public testing::TestWithParam<std::string> {};

// Why a target's keys are not read again here; "" where they are.
std::string_view left_out(const Model& model, const Expected<Translation>& made,
                          std::string_view target) {
  if (!made) return "does not rotate";
  if (target == "transformers") {
    if (made->target.contains("full_attention")) return "has layers of several kinds";
    return made->target.contains("mrope") ? "has axes of pictures" : "";
  }
  if (!made->largest_angle_difference) return "is refused by the engine";
  const auto is_less = [](const EngineNote& note) {
    return note.kind == EngineNote::Kind::lost || note.kind == EngineNote::Kind::approximated;
  };
  if (made->largest_angle_difference != 0 || made->amplitude_difference != 0 ||
      std::ranges::any_of(made->notes, is_less))
    return "is not said whole, as its notes tell";
  if (model.groups.size() != 1) return "has layers of several kinds";
  if (model.groups[0].cache_note.contains("MLA")) return "rotates a part beside latent keys";
  return target == "gguf" && made->target.contains("sections") ? "has axes of pictures" : "";
}

TEST_P(Zoo, KeysForTransformersReadBackTheSame) {
  const Expected<Model> model = read_model(test::data_path("zoo/" + GetParam() + ".json"));
  ASSERT_TRUE(model) << model.error().message();
  const auto made = translate(*model, "transformers");
  if (!left_out(*model, made, "transformers").empty()) return;
  ASSERT_EQ(made->largest_angle_difference, 0);
  const LayerGroup& group = model->groups.front();
  const Expected<Plan> plan = compile(group, model->context);
  ASSERT_TRUE(plan);
  // A Llama's heads of as many channels as rotate here, so that the part is the same of any head.
  const std::string keys = made->target.substr(1);
  const Expected<Model> again = read_config(
      R"({"model_type": "llama", "hidden_size": 4096, "num_hidden_layers": 1, "num_attention_heads": 8, "head_dim": )" +
      std::to_string(group.geometry.head_dim) + ", " + keys);
  ASSERT_TRUE(again) << again.error().message() << made->target;
  const Expected<Plan> theirs = compile(again->groups.front(), model->context);
  ASSERT_TRUE(theirs) << theirs.error().message();
  EXPECT_EQ(theirs->rotate->frequencies.radians, plan->rotate->frequencies.radians) << made->target;
  EXPECT_NEAR(theirs->rotate->amplitude, plan->rotate->amplitude, 1e-12);
}

// Whether a reader of the target's own format finds the rotation that it was made of.
void expect_rotation_of(const Model& model, const Expected<Model>& again,
                        const std::string& target) {
  ASSERT_TRUE(again) << again.error().message() << target;
  const Expected<Plan> plan = compile(model.groups.front(), model.context),
                       theirs = compile(again->groups.front(), model.context);
  ASSERT_TRUE(plan && theirs) << target;
  ASSERT_EQ(theirs->rotate->pairs(), plan->rotate->pairs()) << target;
  for (std::int64_t r = 0; r < plan->rotate->pairs(); ++r)  // a GGUF's numbers are float32
    EXPECT_NEAR(theirs->rotate->at(0, 0, r) / plan->rotate->at(0, 0, r), 1, 1e-6) << target;
  EXPECT_NEAR(theirs->rotate->amplitude, plan->rotate->amplitude, 1e-6) << target;
}

TEST_P(Zoo, ParamsJsonReadsBackTheSame) {
  const Expected<Model> model = read_model(test::data_path("zoo/" + GetParam() + ".json"));
  ASSERT_TRUE(model) << model.error().message();
  const auto made = translate(*model, "params.json");
  if (!left_out(*model, made, "params.json").empty()) return;
  const std::string sizes = R"({"dim": 4096, "n_layers": 1, "n_heads": 8, "head_dim": )" +
                            std::to_string(model->groups.front().geometry.head_dim) + ", ";
  expect_rotation_of(*model, read_params(sizes + made->target.substr(1)), made->target);
}

TEST_P(Zoo, KeysOfAGgufReadBackTheSame) {
  const Expected<Model> model = read_model(test::data_path("zoo/" + GetParam() + ".json"));
  ASSERT_TRUE(model) << model.error().message();
  const auto made = translate(*model, "gguf");
  if (!left_out(*model, made, "gguf").empty()) return;
  expect_rotation_of(*model, gguf_with(made->target, model->groups.front().geometry.head_dim),
                     made->target);
}

std::vector<std::string> zoo() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(test::data_path("zoo")))
    if (entry.path().stem() != "index") names.push_back(entry.path().stem().string());
  std::ranges::sort(names);
  return names;
}

// The round trips above leave out what they name, and no more.
TEST(Translate, RoundTripsReachMostOfTheZoo) {
  const std::map<std::string_view, int> least{
      {"transformers", 48}, {"params.json", 27}, {"gguf", 35}};
  for (const auto& [target, count] : least) {
    std::map<std::string_view, int> seen;
    for (const std::string& name : zoo()) {
      const Expected<Model> model = read_model(test::data_path("zoo/" + name + ".json"));
      ASSERT_TRUE(model) << name;
      ++seen[left_out(*model, translate(*model, target), target)];
    }
    EXPECT_GE(seen[""], count) << target;
  }
}

Model bundled(const char* name) {
  const Expected<Model> model = read_model(name);
  EXPECT_TRUE(model) << name;
  return model.value_or(Model{});
}

nlohmann::json onnx_of(const char* name) {
  return nlohmann::json::parse(said(bundled(name), "onnx", 4096).target).at("rotations");
}

TEST(TranslateToOnnx, HasTablesOfAColumnForEachPair) {
  EXPECT_EQ(onnx_of("llama-3.1-8b").at(0).at("cos_cache"), (nlohmann::json{4096, 64}));
}

TEST(TranslateToOnnx, SaysNeighboursAndHowManyChannelsOfAHeadRotate) {
  const nlohmann::json rotary = onnx_of("chatglm3-6b").at(0).at("RotaryEmbedding");
  EXPECT_EQ(rotary.at("interleaved"), 1);
  EXPECT_EQ(rotary.at("rotary_embedding_dim"), 64);
}

TEST(TranslateToOnnx, HasARotationForEachKindOfLayer) {
  const nlohmann::json kinds = onnx_of("gpt-oss-20b");
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds.at(0).at("GroupQueryAttention").at("local_window_size"), 128);
  EXPECT_FALSE(kinds.at(1).at("GroupQueryAttention").contains("local_window_size"));
}

TEST(TranslateToOnnx, SaysThatATableIsOfOneLengthWhereTheScalingGoesByIt) {
  EXPECT_TRUE(
      notes(said(bundled("phi-3.5-mini"), "onnx", 4096), EngineNote::Kind::fixed, "4096 tokens"));
}

TEST(TranslateToOnnx, SaysThatPicturesHaveOtherPositions) {
  EXPECT_TRUE(
      notes(said(bundled("qwen2.5-vl-7b"), "onnx", 4096), EngineNote::Kind::lost, "pictures"));
}

// Every engine is told every bundled model that rotates, and runs it or says why not.
TEST(Translate, EveryEngineComparesTheBundledModelsThatItRuns) {
  // Of the 22 that rotate.
  const std::map<std::string_view, int> least{
      {"exllamav3", 21}, {"lmdeploy", 21}, {"megatron-core", 19}, {"onnxruntime-genai", 18}};
  constexpr int rotating = 22;
  for (const Engine& engine : engines()) {
    const std::string name = std::string(engine.name) + "@" + std::string(engine.version);
    int compared = 0;
    for (const BundledModel& one : bundled_models()) {
      const Expected<Model> model = read_model(std::string(one.name));
      ASSERT_TRUE(model) << one.name;
      const auto made = translate(*model, name);
      if (!made) {
        EXPECT_TRUE(made.error().message().contains("text layers that rotate")) << one.name;
      } else if (made->largest_angle_difference) {
        ++compared;
      } else {
        EXPECT_TRUE(notes(*made, EngineNote::Kind::lost, "not run: ")) << one.name << " " << name;
      }
    }
    const auto at = least.find(engine.name);
    EXPECT_GE(compared, at == least.end() ? rotating : at->second) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Translate, Zoo, testing::ValuesIn(zoo()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace_if(name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
});

TEST(Translate, ProgramsOfPeopleGetWhatOneTypes) {
  const auto made = [](const char* name, const char* program, std::int64_t length) {
    const auto out = translate(*read_model(name), program, length);
    EXPECT_TRUE(out) << out.error().message();
    return out.value_or(Translation{});
  };
  EXPECT_EQ(made("qwen3-8b", "ollama", 32768).target, "FROM ./model.gguf\nPARAMETER num_ctx 32768");
  const Translation beyond = made("qwen3-8b", "ollama", 131072);
  EXPECT_TRUE(beyond.target.ends_with("40960")) << beyond.target;
  EXPECT_TRUE(std::ranges::any_of(
      beyond.notes, [](const EngineNote& note) { return note.kind == EngineNote::Kind::lost; }));
  EXPECT_TRUE(made("llama-2-7b", "koboldcpp", 4096).target.contains("--ropeconfig 1 10000"));
  const Translation stretched = made("llama-2-7b", "koboldcpp", 8192);
  EXPECT_TRUE(stretched.target.ends_with("--contextsize 8192")) << stretched.target;
  EXPECT_FALSE(stretched.largest_angle_difference);
  // What a file has in tensors is told once.
  EXPECT_EQ(made("llama-3.1-8b", "koboldcpp", 65536).notes.size(), 1u);
  EXPECT_TRUE(made("llama-2-7b", "lmstudio", 4096).target.starts_with("Context Length"));
  EXPECT_TRUE(made("llama-2-7b", "tabbyapi", 4096).target.contains("max_seq_len: 4096"));
}

// No format has a key for the channels of an indexer.
TEST(Translate, AnIndexersPairsAreTheEnginesToKnow) {
  const auto model = read_config(R"({"model_type": "deepseek_v32", "num_hidden_layers": 2})");
  ASSERT_TRUE(model);
  const auto made = translate(*model, "transformers");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_TRUE(std::ranges::any_of(made->notes, [](const EngineNote& note) {
    return note.kind == EngineNote::Kind::defaulted &&
           note.what.contains("the first 64 of 128 channels, pairing halves");
  }));
}

}  // namespace
}  // namespace posenc
