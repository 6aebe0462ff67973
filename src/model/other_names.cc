#include "src/model/other_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>

namespace posenc::detail {
namespace {

constexpr std::size_t longest_yaml = std::size_t{1} << 16;

struct OtherName {
  std::string_view ours, theirs;
};

// whisper/model.py: ModelDimensions.
constexpr OtherName whisper_words[] = {{"d_model", "n_audio_state"},
                                       {"encoder_layers", "n_audio_layer"},
                                       {"encoder_attention_heads", "n_audio_head"},
                                       {"max_source_positions", "n_audio_ctx"},
                                       {"decoder_layers", "n_text_layer"},
                                       {"decoder_attention_heads", "n_text_head"},
                                       {"max_target_positions", "n_text_ctx"},
                                       {"vocab_size", "n_vocab"}};
// nanoGPT's model.py: GPTConfig, whose model is GPT-2.
constexpr OtherName nanogpt_words[] = {{"n_embd", "n_embd"},
                                       {"n_layer", "n_layer"},
                                       {"n_head", "n_head"},
                                       {"n_positions", "block_size"}};
// litgpt/config.py: Config. Its rotation pairs halves, whatever the model is.
constexpr OtherName litgpt_words[] = {{"hidden_size", "n_embd"},
                                      {"num_hidden_layers", "n_layer"},
                                      {"num_attention_heads", "n_head"},
                                      {"num_key_value_heads", "n_query_groups"},
                                      {"head_dim", "head_size"},
                                      {"max_position_embeddings", "block_size"},
                                      {"partial_rotary_factor", "rotary_percentage"},
                                      {"rope_theta", "rope_base"}};

// NeMo's megatron_gpt_model.py: what it reads of its configuration.
constexpr OtherName nemo_words[] = {{"hidden_size", "hidden_size"},
                                    {"num_hidden_layers", "num_layers"},
                                    {"num_attention_heads", "num_attention_heads"},
                                    {"num_key_value_heads", "num_query_groups"},
                                    {"head_dim", "kv_channels"},
                                    {"rope_theta", "rotary_base"}};
// The same where positions are learned, in GPT-2's words.
constexpr OtherName nemo_learned_words[] = {{"n_embd", "hidden_size"},
                                            {"n_layer", "num_layers"},
                                            {"n_head", "num_attention_heads"},
                                            {"n_positions", "max_position_embeddings"}};

// deepseek-ai/DeepSeek-V3's inference/model.py: ModelArgs.
constexpr OtherName deepseek_words[] = {{"hidden_size", "dim"},
                                        {"num_hidden_layers", "n_layers"},
                                        {"num_attention_heads", "n_heads"},
                                        {"num_key_value_heads", "n_heads"},
                                        {"n_routed_experts", "n_routed_experts"},
                                        {"first_k_dense_replace", "n_dense_layers"},
                                        {"qk_nope_head_dim", "qk_nope_head_dim"},
                                        {"qk_rope_head_dim", "qk_rope_head_dim"},
                                        {"kv_lora_rank", "kv_lora_rank"},
                                        {"v_head_dim", "v_head_dim"}};

// openai/gpt-oss's gpt_oss/torch/model.py: ModelConfig. Pairs are halves, each second layer sees
// all, as Hugging Face's class for it has them.
constexpr OtherName openai_words[] = {{"hidden_size", "hidden_size"},
                                      {"num_hidden_layers", "num_hidden_layers"},
                                      {"num_attention_heads", "num_attention_heads"},
                                      {"num_key_value_heads", "num_key_value_heads"},
                                      {"head_dim", "head_dim"},
                                      {"sliding_window", "sliding_window"},
                                      {"rope_theta", "rope_theta"}};

bool is_given(const Json* value) { return value && !value->is_null(); }

Json::Object in_our_words(const Json& whole, std::span<const OtherName> words,
                          std::string_view type) {
  Json::Object out = {{"model_type", {.value = std::string(type)}}};
  for (const auto& [ours, theirs] : words)
    if (const Json* value = whole.find(theirs); is_given(value))
      out.push_back({std::string(ours), *value});
  return out;
}

bool gives_all(const Json& whole, std::span<const OtherName> words) {
  return std::ranges::all_of(
      words, [&](const OtherName& word) { return is_given(whole.find(word.theirs)); });
}

// rope_adjustments is Llama 3's scaling, or YaRN where it has betas; rope_condense_ratio divides
// every position.
void put_scaling(const Json& whole, Json::Object& out) {
  Json::Object scaling;
  const Json* adjusted = whole.find("rope_adjustments");
  const auto* members = adjusted ? adjusted->get<Json::Object>() : nullptr;
  if (members && !members->empty()) {
    const char* type = adjusted->find("beta_fast") ? "yarn" : "llama3";
    scaling.push_back({"rope_type", {.value = std::string(type)}});
    for (const JsonMember& member : *members)
      scaling.push_back(
          {member.key == "original_max_seq_len" ? "original_max_position_embeddings" : member.key,
           member.value});
  } else if (const Json* ratio = whole.find("rope_condense_ratio");
             is_given(ratio) && ratio->text() != "1" && ratio->text() != "1.0") {
    scaling.push_back({"rope_type", {.value = std::string("linear")}});
    scaling.push_back({"factor", *ratio});
  }
  if (!scaling.empty()) out.push_back({"rope_scaling", {.value = std::move(scaling)}});
}

// DeepSeek's own inference: what the file does not say is its class's default, YaRN by 40 of 4,096
// among it, which counts where max_seq_len is beyond the trained length.
Json::Object of_deepseek(const Json& whole) {
  const bool picks = is_given(whole.find("index_topk"));
  Json::Object out = in_our_words(whole, deepseek_words, picks ? "deepseek_v32" : "deepseek_v3");
  const auto value_of = [&](std::string_view key, const Json& usual) {
    const Json* value = whole.find(key);
    return is_given(value) ? *value : usual;
  };
  const auto whole_number = [](std::int64_t number) { return Json{.value = number}; };
  if (const Json* rank = whole.find("q_lora_rank"); is_given(rank) && rank->text() != "0")
    out.push_back({"q_lora_rank", *rank});
  for (const char* key : {"rope_theta", "index_n_heads", "index_head_dim", "index_topk"})
    if (const Json* value = whole.find(key); is_given(value)) out.push_back({key, *value});
  const Json length = value_of("max_seq_len", whole_number(4 * 4096)),
             trained = value_of("original_seq_len", whole_number(4096)),
             magnitude = value_of("mscale", Json{.value = 1.0});
  out.push_back({"max_position_embeddings", length});
  const auto *longest = length.get<std::int64_t>(), *original = trained.get<std::int64_t>();
  if (longest && original && *longest <= *original) return out;
  Json::Object yarn = {{"rope_type", {.value = std::string("yarn")}},
                       {"factor", value_of("rope_factor", Json{.value = 40.0})},
                       {"original_max_position_embeddings", trained},
                       {"beta_fast", value_of("beta_fast", whole_number(32))},
                       {"beta_slow", value_of("beta_slow", whole_number(1))},
                       {"mscale", magnitude},
                       {"mscale_all_dim", magnitude}};
  out.push_back({"rope_scaling", {.value = std::move(yarn)}});
  return out;
}

// rope_ntk_beta is YaRN's beta_fast, rope_ntk_alpha its beta_slow; bounds between pairs are not
// rounded, and a factor of 1 leaves all as it was trained.
Json::Object of_openai(const Json& whole) {
  Json::Object out = in_our_words(whole, openai_words, "gpt_oss");
  const Json &trained = *whole.find("initial_context_length"),
             &factor = *whole.find("rope_scaling_factor");
  const auto* length = trained.get<std::int64_t>();
  const auto* real = factor.get<double>();
  const auto* integer = factor.get<std::int64_t>();
  const double times = real ? *real : integer ? static_cast<double>(*integer) : 1;
  constexpr double longest = 1e12;
  const bool grows = length && *length > 0 && times > 1 && times < longest &&
                     static_cast<double>(*length) < longest / times;
  if (!grows) {
    out.push_back({"max_position_embeddings", trained});
    out.push_back({"rope_scaling",
                   {.value = Json::Object{{"rope_type", {.value = std::string("default")}}}}});
    return out;
  }
  const auto context = static_cast<std::int64_t>(static_cast<double>(*length) * times);
  out.push_back({"max_position_embeddings", {.value = context}});
  const auto value_of = [&](std::string_view key, std::int64_t usual) {
    const Json* value = whole.find(key);
    return is_given(value) ? *value : Json{.value = usual};
  };
  Json::Object yarn = {
      {"rope_type", {.value = std::string("yarn")}}, {"factor", factor},
      {"original_max_position_embeddings", trained}, {"beta_fast", value_of("rope_ntk_beta", 32)},
      {"beta_slow", value_of("rope_ntk_alpha", 1)},  {"truncate", {.value = false}}};
  out.push_back({"rope_scaling", {.value = std::move(yarn)}});
  return out;
}

bool is_number(const Json* value) {
  return value && (value->get<std::int64_t>() || value->get<double>());
}

// Megatron's rotation: halves, of a part of each head, positions divided by a factor. Numbers
// alone are taken, since a value may refer to another key.
std::optional<Json> of_nemo(const Json& whole) {
  const Json* type = whole.find("position_embedding_type");
  const auto* word = type ? type->get<std::string>() : nullptr;
  const bool learned = !word || *word == "learned_absolute";
  if (!learned && *word != "rope") return std::nullopt;
  Json::Object out = {{"model_type", {.value = std::string(learned ? "gpt2" : "nemotron")}}};
  const auto put = [&](const OtherName& name) {
    const Json* value = whole.find(name.theirs);
    if (is_number(value)) out.push_back({std::string(name.ours), *value});
    return is_number(value);
  };
  if (learned) {
    std::ranges::for_each(nemo_learned_words, put);
    return Json{.value = std::move(out)};
  }
  std::ranges::for_each(nemo_words, put);
  if (!put({"max_position_embeddings", "encoder_seq_length"}))
    put({"max_position_embeddings", "max_position_embeddings"});
  if (!put({"partial_rotary_factor", "rotary_percentage"}))
    out.push_back({"partial_rotary_factor", {.value = 1.0}});
  const Json* as_llama = whole.find("scale_positional_embedding");
  Json::Object scaling;
  if (const Json* factor = whole.find("seq_len_interpolation_factor"); is_number(factor))
    scaling = {{"rope_type", {.value = std::string("linear")}}, {"factor", *factor}};
  else if (as_llama && (as_llama->text() == "true" || as_llama->text() == "\"True\""))
    scaling = {{"rope_type", {.value = std::string("llama3")}},
               {"factor", {.value = 8.0}},
               {"low_freq_factor", {.value = 1.0}},
               {"high_freq_factor", {.value = 4.0}},
               {"original_max_position_embeddings", {.value = std::int64_t{8192}}}};
  if (!scaling.empty()) out.push_back({"rope_scaling", {.value = std::move(scaling)}});
  return Json{.value = std::move(out)};
}

bool is_yaml_of_a_model(std::string_view text) {
  const auto all = [&](std::initializer_list<std::string_view> keys) {
    return std::ranges::all_of(keys, [&](std::string_view key) { return text.contains(key); });
  };
  return text.size() <= longest_yaml && !text.starts_with('{') &&
         (all({"rope_condense_ratio:", "n_embd:"}) ||
          (all({"num_layers:", "hidden_size:", "num_attention_heads:"}) &&
           (text.contains("position_embedding_type:") || text.contains("rotary_percentage:")) &&
           (text.contains("encoder_seq_length:") || text.contains("mcore_gpt:"))));
}

}  // namespace

bool is_of_nemo(const Json& whole) {
  const auto any = [&](std::initializer_list<std::string_view> keys) {
    return std::ranges::any_of(keys,
                               [&](std::string_view key) { return whole.find(key) != nullptr; });
  };
  return is_number(whole.find("num_layers")) && is_number(whole.find("num_attention_heads")) &&
         is_number(whole.find("hidden_size")) && !is_given(whole.find("model_type")) &&
         any({"encoder_seq_length", "mcore_gpt", "megatron_amp_O2", "nemo_version"}) &&
         any({"position_embedding_type", "rotary_percentage"});
}

bool is_of_deepseek(const Json& whole) {
  return gives_all(whole, deepseek_words) && !is_given(whole.find("model_type"));
}

bool is_of_openai(const Json& whole) {
  return gives_all(whole, openai_words) && is_given(whole.find("initial_context_length")) &&
         is_given(whole.find("rope_scaling_factor")) && !is_given(whole.find("model_type"));
}

std::optional<Json> from_other_names(const Json& whole) {
  if (is_given(whole.find("architectures"))) return std::nullopt;
  if (is_of_openai(whole)) return Json{.value = of_openai(whole)};
  if (is_of_deepseek(whole)) return Json{.value = of_deepseek(whole)};
  if (is_of_nemo(whole)) return of_nemo(whole);
  if (gives_all(whole, whisper_words))
    return Json{.value = in_our_words(whole, whisper_words, "whisper")};
  if (is_given(whole.find("model_type")) || !gives_all(whole, nanogpt_words)) return std::nullopt;
  if (is_given(whole.find("rope_condense_ratio"))) {
    Json::Object out = in_our_words(whole, litgpt_words, "llama");
    put_scaling(whole, out);
    return Json{.value = std::move(out)};
  }
  const bool rotates = std::ranges::any_of(*whole.get<Json::Object>(), [](const auto& member) {
    return member.key.contains("rope") || member.key.contains("rotary");
  });
  if (rotates) return std::nullopt;
  return Json{.value = in_our_words(whole, nanogpt_words, "gpt2")};
}

std::optional<Json> settings_in_yaml(std::string_view text) {
  if (!is_yaml_of_a_model(text)) return std::nullopt;
  Json::Object out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':'), first = line.find_first_not_of(' ');
    if (colon == line.npos || first == line.npos || line[first] == '#' || line[first] == '-')
      continue;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    value = value.substr(0, value.find(" #"));
    while (value.ends_with(' ')) value.remove_suffix(1);
    const std::string key(line.substr(first, colon - first));
    const auto json = parse_json(value, key);
    Json read = json ? *json : Json{.value = std::string(value)};
    if (value.empty()) read = {.value = Json::Object{}};
    if (first == 0) {
      out.push_back({key, std::move(read)});
    } else if (auto* inner =
                   out.empty() ? nullptr : std::get_if<Json::Object>(&out.back().value.value)) {
      inner->push_back({key, std::move(read)});
    }
  }
  // A training's file has the model in a section of its own.
  Json whole{.value = std::move(out)};
  const Json* model = whole.find("model");
  return model && model->find("num_layers") ? *model : whole;
}

}  // namespace posenc::detail
