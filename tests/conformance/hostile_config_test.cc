// Configurations that are gigantic, contradictory or cut short: each is refused with a message that
// names the key, and none may crash.
#include <algorithm>
#include <filesystem>
#include <optional>

#include "tests/conformance/golden.h"

namespace posenc::golden {
namespace {

struct Hostile {
  const char* name;
  const char* patch;  // merged into the base: null removes a key
  const char* key;    // what the message must name
};

const char* const kBase = R"({
  "model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_key_value_heads": 4,
  "num_hidden_layers": 4, "max_position_embeddings": 4096, "rope_theta": 10000.0})";

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileConfig : public testing::TestWithParam<Hostile> {};

TEST_P(HostileConfig, IsRefusedByName) {
  Json config = Json::parse(kBase);
  config.merge_patch(Json::parse(GetParam().patch));
  const auto model = read_config(config.dump(), "bad.json");
  ASSERT_FALSE(model) << config.dump();
  const std::string message = model.error().message();
  EXPECT_NE(message.find(GetParam().key), std::string::npos) << message;
  EXPECT_NE(message.find("bad.json"), std::string::npos) << message;
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, HostileConfig,
    testing::Values(
        Hostile{"width_negative", R"({"hidden_size": -512})", "hidden_size"},
        Hostile{"width_zero", R"({"hidden_size": 0})", "hidden_size"},
        Hostile{"width_a_word", R"({"hidden_size": "512"})", "hidden_size"},
        Hostile{"width_a_fraction", R"({"hidden_size": 512.5})", "hidden_size"},
        Hostile{"width_gigantic", R"({"hidden_size": 1e300})", "hidden_size"},
        Hostile{"width_past_64_bits", R"({"hidden_size": 18446744073709551615})", "hidden_size"},
        Hostile{"width_missing", R"({"model_type": "never_heard_of", "hidden_size": null})",
                "hidden_size"},
        Hostile{"heads_zero", R"({"num_attention_heads": 0})", "num_attention_heads"},
        Hostile{"heads_negative", R"({"num_attention_heads": -8})", "num_attention_heads"},
        Hostile{"heads_a_list", R"({"num_attention_heads": [8]})", "num_attention_heads"},
        Hostile{"heads_true", R"({"num_attention_heads": true})", "num_attention_heads"},
        Hostile{"heads_do_not_divide_width",
                R"({"num_attention_heads": 6, "num_key_value_heads": 3})", "hidden_size"},
        Hostile{"heads_missing", R"({"model_type": "never_heard_of", "num_attention_heads": null})",
                "num_attention_heads"},
        Hostile{"kv_heads_zero", R"({"num_key_value_heads": 0})", "num_key_value_heads"},
        Hostile{"kv_heads_do_not_divide", R"({"num_key_value_heads": 3})", "num_key_value_heads"},
        Hostile{"kv_heads_above_heads", R"({"num_key_value_heads": 16})", "num_key_value_heads"},
        Hostile{"head_dim_odd", R"({"head_dim": 63})", "head_dim"},
        Hostile{"head_dim_zero", R"({"head_dim": 0})", "head_dim"},
        Hostile{"head_dim_gigantic", R"({"head_dim": 1099511627776})", "head_dim"},
        Hostile{"layers_negative", R"({"num_hidden_layers": -1})", "num_hidden_layers"},
        Hostile{"layers_gigantic", R"({"num_hidden_layers": 1000000000})", "num_hidden_layers"},
        Hostile{"context_zero", R"({"max_position_embeddings": 0})", "max_position_embeddings"},
        Hostile{"context_negative", R"({"max_position_embeddings": -1})",
                "max_position_embeddings"},
        Hostile{"context_gigantic", R"({"max_position_embeddings": 1e30})",
                "max_position_embeddings"},
        Hostile{"window_negative", R"({"model_type": "mistral", "sliding_window": -4})",
                "sliding_window"}),
    [](const auto& hostile) { return std::string(hostile.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Bases, HostileConfig,
    testing::Values(
        Hostile{"theta_zero", R"({"rope_theta": 0})", "rope_theta"},
        Hostile{"theta_one", R"({"rope_theta": 1})", "rope_theta"},
        Hostile{"theta_negative", R"({"rope_theta": -10000})", "rope_theta"},
        Hostile{"theta_a_word", R"({"rope_theta": "10000"})", "rope_theta"},
        Hostile{"theta_a_list", R"({"rope_theta": [10000]})", "rope_theta"},
        Hostile{"theta_missing_in_an_unknown_family",
                R"({"model_type": "never_heard_of", "rope_theta": null})", "rope_theta"},
        Hostile{"partial_zero", R"({"partial_rotary_factor": 0})", "partial_rotary_factor"},
        Hostile{"partial_above_one", R"({"partial_rotary_factor": 1.5})", "partial_rotary_factor"},
        Hostile{"partial_negative", R"({"partial_rotary_factor": -0.5})", "partial_rotary_factor"},
        Hostile{"partial_leaves_no_pair", R"({"partial_rotary_factor": 0.001})",
                "partial_rotary_factor"},
        Hostile{"family_missing", R"({"model_type": null})", "model_type"},
        Hostile{"family_a_number", R"({"model_type": 7})", "model_type"}),
    [](const auto& hostile) { return std::string(hostile.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Scalings, HostileConfig,
    testing::Values(
        Hostile{"scaling_a_word", R"({"rope_scaling": "linear"})", "rope_scaling"},
        Hostile{"scaling_a_list", R"({"rope_scaling": [1, 2]})", "rope_scaling"},
        Hostile{"parameters_a_word", R"({"rope_parameters": "linear"})", "rope_parameters"},
        Hostile{"type_unknown", R"({"rope_scaling": {"rope_type": "yarnn", "factor": 2}})",
                "yarnn"},
        Hostile{"type_a_number", R"({"rope_scaling": {"rope_type": 3, "factor": 2}})", "rope_type"},
        Hostile{"linear_without_factor", R"({"rope_scaling": {"rope_type": "linear"}})", "factor"},
        Hostile{"linear_factor_zero", R"({"rope_scaling": {"type": "linear", "factor": 0}})",
                "factor"},
        Hostile{"linear_factor_negative", R"({"rope_scaling": {"type": "linear", "factor": -2}})",
                "factor"},
        Hostile{"linear_factor_a_word", R"({"rope_scaling": {"type": "linear", "factor": "2"}})",
                "factor"},
        Hostile{"dynamic_without_factor", R"({"rope_scaling": {"type": "dynamic"}})", "factor"},
        Hostile{"yarn_trained_zero",
                R"({"rope_scaling": {"type": "yarn", "factor": 2,
                "original_max_position_embeddings": 0}})",
                "original_max_position_embeddings"},
        Hostile{"yarn_beta_negative",
                R"({"rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": -1}})", "beta_fast"},
        Hostile{"yarn_truncate_a_word",
                R"({"rope_scaling": {"type": "yarn", "factor": 2, "truncate": "yes"}})",
                "truncate"},
        Hostile{"yarn_attention_negative",
                R"({"rope_scaling": {"type": "yarn", "factor": 2, "attention_factor": -1}})",
                "attention_factor"},
        Hostile{"longrope_without_short",
                R"({"rope_scaling": {"type": "longrope", "long_factor": [1]}})", "short_factor"},
        Hostile{
            "longrope_lists_too_short",
            R"({"rope_scaling": {"type": "longrope", "long_factor": [1], "short_factor": [1]}})",
            "short_factor"},
        Hostile{"longrope_list_of_words",
                R"({"rope_scaling": {"type": "longrope", "long_factor": ["a"],
                "short_factor": ["b"]}})",
                "factor"},
        Hostile{"longrope_list_a_number",
                R"({"rope_scaling": {"type": "longrope", "long_factor": {}, "short_factor": {}}})",
                "factor"},
        Hostile{"longrope_zero_divisor",
                R"({"head_dim": 2, "rope_scaling":
                    {"type": "su", "long_factor": [0], "short_factor": [1]}})",
                "long_factor"},
        Hostile{"llama3_without_band",
                R"({"rope_scaling": {"rope_type": "llama3", "factor": 8,
                    "original_max_position_embeddings": 2048}})",
                "low_freq_factor"},
        Hostile{"llama3_trained_a_fraction",
                R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
                    "high_freq_factor": 4, "original_max_position_embeddings": 2048.5}})",
                "original_max_position_embeddings"},
        Hostile{"mrope_sum_wrong",
                R"({"model_type": "qwen2_vl", "rope_scaling":
                {"type": "mrope", "mrope_section": [1, 2, 3]}})",
                "mrope_section"},
        Hostile{"mrope_negative",
                R"({"model_type": "qwen2_vl", "rope_scaling":
                    {"type": "mrope", "mrope_section": [-16, 24, 24]}})",
                "mrope_section"},
        Hostile{"mrope_one_section",
                R"({"model_type": "qwen2_vl", "rope_scaling":
                {"type": "mrope", "mrope_section": [32]}})",
                "mrope_section"}),
    [](const auto& hostile) { return std::string(hostile.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Layers, HostileConfig,
    testing::Values(
        Hostile{"layer_types_too_few",
                R"({"model_type": "gemma3_text", "head_dim": 64, "sliding_window": 8,
                    "layer_types": ["full_attention"]})",
                "layer_types"},
        Hostile{"layer_types_unknown",
                R"({"model_type": "gemma3_text", "head_dim": 64, "sliding_window": 8,
                    "layer_types": ["a", "b", "c", "d"]})",
                "layer_types"},
        Hostile{"no_rope_layers_too_few", R"({"model_type": "smollm3", "no_rope_layers": [1, 0]})",
                "no_rope_layers"},
        Hostile{"latent_slice_odd",
                R"({"model_type": "deepseek_v3", "qk_rope_head_dim": 63, "qk_nope_head_dim": 64,
                    "kv_lora_rank": 64, "v_head_dim": 64})",
                "qk_rope_head_dim"},
        Hostile{"t5_one_bucket",
                R"({"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 4, "d_kv": 64,
                    "relative_attention_num_buckets": 1})",
                "relative_attention_num_buckets"},
        Hostile{
            "gpt2_no_rows",
            R"({"model_type": "gpt2", "n_embd": 512, "n_head": 8, "n_layer": 4, "n_positions": 0,
                    "max_position_embeddings": null})",
            "n_positions"},
        Hostile{"bloom_no_heads",
                R"({"model_type": "bloom", "n_head": 0, "num_attention_heads": null})", "n_head"}),
    [](const auto& hostile) { return std::string(hostile.param.name); });

// --- text that is no configuration --------------------------------------------------------------

void expect_refused(const std::string& text) {
  const auto model = read_config(text, "bad.json");
  ASSERT_FALSE(model) << text.substr(0, 80);
  EXPECT_NE(model.error().message().find("bad.json"), std::string::npos) << model.error().message();
}

TEST(HostileText, Empty) { expect_refused(""); }
TEST(HostileText, NotJson) { expect_refused("model_type: llama"); }
TEST(HostileText, AList) { expect_refused("[]"); }
TEST(HostileText, Null) { expect_refused("null"); }
TEST(HostileText, EmptyObject) { expect_refused("{}"); }
TEST(HostileText, ANumberPastADouble) {
  expect_refused(R"({"model_type": "llama", "rope_theta": 1e999})");
}
TEST(HostileText, NotANumber) { expect_refused(R"({"model_type": "llama", "rope_theta": NaN})"); }
TEST(HostileText, TrailingText) { expect_refused(std::string(kBase) + "x"); }
TEST(HostileText, BadUtf8) { expect_refused("{\"model_type\": \"\xff\xfe\"}"); }
TEST(HostileText, DeepLists) { expect_refused(std::string(1'000'000, '[')); }

TEST(HostileText, DeepObjects) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "{\"text_config\":";
  expect_refused(text);
  expect_refused(text + "{}" + std::string(200'000, '}'));
}

TEST(HostileText, GiganticList) {
  std::string list = "1";
  for (int i = 1; i < 500'000; ++i) list += ",1";
  expect_refused(R"({"model_type": "phi3", "hidden_size": 512, "num_attention_heads": 8,
      "num_hidden_layers": 4, "max_position_embeddings": 4096, "rope_theta": 10000.0,
      "rope_scaling": {"type": "longrope", "long_factor": [)" +
                 list + R"(], "short_factor": [)" + list + "]}}");
}

TEST(HostileText, EveryPrefix) {
  const std::string text = kBase;
  for (std::size_t length = 0; length < text.size(); ++length)
    expect_refused(text.substr(0, length));
}

// --- real files, damaged ------------------------------------------------------------------------

// Whatever is read must compile or say why not.
void expect_no_crash(const Json& config) {
  const auto model = read_config(config.dump());
  if (!model) {
    EXPECT_FALSE(model.error().rule.empty());
    return;
  }
  for (const LayerGroup& group : model->groups) {
    for (const std::int64_t length : {std::int64_t{0}, model->context}) {
      const auto plan = compile(group, length);
      EXPECT_TRUE(plan || !plan.error().rule.empty());
    }
  }
}

// Every value of an object, at any depth, replaced by every hostile one in turn.
void damage(Json& whole, Json& part, const std::vector<Json>& hostile) {
  for (auto& [key, value] : part.items()) {
    const Json before = value;
    for (const Json& bad : hostile) {
      value = bad;
      SCOPED_TRACE(key + " = " + bad.dump());
      expect_no_crash(whole);
    }
    value = before;
    if (value.is_object()) damage(whole, value, hostile);
  }
}

class DamagedModel : public testing::TestWithParam<std::string> {};

TEST_P(DamagedModel, IsReadOrRefused) {
  const std::vector<Json> hostile = {nullptr,
                                     true,
                                     0,
                                     -1,
                                     1,
                                     63,
                                     1e300,
                                     4.5,
                                     INT64_MAX,
                                     "x",
                                     "yarn",
                                     {},
                                     Json::array(),
                                     Json::object(),
                                     Json::array({-1, "x"})};
  Json config = load("zoo/" + GetParam());
  damage(config, config, hostile);
}

std::vector<std::string> zoo_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_path("zoo"))) {
    const std::string file = entry.path().filename();
    if (file != "index.json") files.push_back(file);
  }
  std::ranges::sort(files);  // a folder's own order is another one on each machine
  return files;
}

INSTANTIATE_TEST_SUITE_P(Zoo, DamagedModel, testing::ValuesIn(zoo_files()),
                         [](const auto& file) { return test_name(file.param); });

}  // namespace
}  // namespace posenc::golden
