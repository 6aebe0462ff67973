#include "src/model/other_names.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  const auto value_of = [&](std::string_view key, Json usual) {
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

}  // namespace

bool is_of_deepseek(const Json& whole) {
  return gives_all(whole, deepseek_words) && !is_given(whole.find("model_type"));
}

std::optional<Json> from_other_names(const Json& whole) {
  if (is_given(whole.find("architectures"))) return std::nullopt;
  if (is_of_deepseek(whole)) return Json{.value = of_deepseek(whole)};
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

std::optional<Json> litgpt_settings(std::string_view text) {
  if (text.size() > longest_yaml || !text.contains("rope_condense_ratio:") ||
      !text.contains("n_embd:"))
    return std::nullopt;
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
  return Json{.value = std::move(out)};
}

}  // namespace posenc::detail
