// Tells the three kinds of model file apart by content, as names of files say little.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/core/try.h"
#include "src/model/config.h"
#include "src/model/other_names.h"
#include "src/model/params.h"

namespace posenc {
namespace {

// A file that people have beside the one that is meant.
struct OtherFile {
  std::string_view is = {}, cure = {};
};

constexpr std::string_view beside = "give the model's folder, or the config.json beside it";

// By its first bytes.
OtherFile what_else(std::string_view text) {
  if (text.starts_with("PK\3\4") || text.starts_with("\x80\2"))
    return {"weights of PyTorch (.pt, .bin)", beside};
  if (text.size() > 8 && text[8] == '{' && text.substr(0, 8).contains('\0'))
    return {"safetensors, which has weights alone", beside};
  if (text.starts_with("\x93NUMPY")) return {"a .npy array", "posenc identify reads tensors"};
  const std::string_view start = text.substr(0, 4096);
  if ((start.starts_with("FROM ") || start.contains("\nFROM ")) && !start.starts_with("{"))
    return {"a Modelfile of Ollama",
            "posenc doctor MODEL Modelfile reads it; its line FROM names the GGUF"};
  if (start.starts_with("<!DOCTYPE") || start.starts_with("<html"))
    return {"a web page", "download the file itself: …/resolve/main/config.json"};
  if (start.starts_with("version https://git-lfs"))
    return {"a pointer of Git LFS", "git lfs pull fetches the file"};
  return {};
}

// By its keys.
OtherFile what_else(const detail::Json& json) {
  const auto word = [&](const char* key) -> std::string_view {
    const detail::Json* value = json.find(key);
    const auto* text = value ? value->get<std::string>() : nullptr;
    return text ? std::string_view(*text) : std::string_view();
  };
  if (json.find("_diffusers_version") && word("_class_name").ends_with("Pipeline"))
    return {"model_index.json of diffusers, which names the parts of a pipeline",
            "give its folder transformer, or transformer/config.json within"};
  if (json.find("_diffusers_version") && word("_class_name").ends_with("Scheduler"))
    return {"the settings of a scheduler of noise", "give transformer/config.json of the pipeline"};
  if (json.find("model_type") || json.find("_class_name")) return {};
  const bool has_layers = json.find("num_hidden_layers") || json.find("hidden_size");
  if (!has_layers &&
      (json.find("added_tokens") || json.find("tokenizer_class") || json.find("vocab")))
    return {"a tokenizer's file", beside};
  if (!has_layers && (json.find("image_processor_type") || json.find("feature_extractor_type") ||
                      json.find("processor_class")))
    return {"a processor's settings (preprocessor_config.json, processor_config.json)", beside};
  if (json.find("n_routed_experts") && json.find("dim") && json.find("n_layers"))
    return {
        "a configuration of DeepSeek's own inference code, whose class has the defaults of what "
        "the file leaves out",
        "give the config.json that Hugging Face's classes read"};
  if (json.find("weight_map")) return {"an index of weights", beside};
  if (json.find("peft_type"))
    return {"the configuration of an adapter",
            "posenc diff BASE FOLDER compares an adapter's training with its base"};
  if (json.find("_from_model_config") || json.find("do_sample") || json.find("bos_token_id")) {
    if (!json.find("architectures") && !json.find("hidden_size") && !json.find("dim"))
      return {"generation_config.json, which says how to sample", beside};
  }
  if (json.find("chat_template")) return {"a chat template", beside};
  return {};
}

// MLC LLM's mlc-chat-config.json: the configuration within, with names of its own.
detail::Json of_mlc(const detail::Json& whole) {
  const detail::Json* inner = whole.find("model_config");
  const auto* members = inner ? inner->get<detail::Json::Object>() : nullptr;
  const bool is_one = members && whole.find("quantization") && !whole.find("hidden_size");
  if (!is_one) return whole;
  detail::Json::Object config = *members;
  const auto has = [&](std::string_view key) {
    return std::ranges::find(config, key, &detail::JsonMember::key) != config.end();
  };
  for (const auto& [theirs, ours] : {std::pair("position_embedding_base", "rope_theta"),
                                     std::pair("context_window_size", "max_position_embeddings")})
    for (detail::JsonMember& member : config)
      if (member.key == theirs && !has(ours)) member.key = ours;
  if (const detail::Json* type = whole.find("model_type"); type && !has("model_type"))
    config.push_back({"model_type", *type});
  return {.value = std::move(config)};
}

// TensorRT-LLM's config.json, of a checkpoint or within that of a built engine: what a converter
// took over from the model's own, with names of its own.
std::optional<detail::Json> of_tensorrt(const detail::Json& whole) {
  const detail::Json* inner = whole.find("pretrained_config");
  const detail::Json& config = inner ? *inner : whole;
  const auto* members = config.get<detail::Json::Object>();
  const detail::Json* architecture = config.find("architecture");
  if (!members || !architecture || !config.find("position_embedding_type") ||
      config.find("model_type"))
    return std::nullopt;
  constexpr std::pair<std::string_view, std::string_view> names[] = {
      {"rotary_base", "rope_theta"},
      {"rotary_scaling", "rope_scaling"},
      {"head_size", "head_dim"},
      {"dtype", "torch_dtype"},
      {"qwen_type", "model_type"}};
  constexpr std::string_view same[] = {"hidden_size",         "num_hidden_layers",
                                       "num_attention_heads", "num_key_value_heads",
                                       "vocab_size",          "max_position_embeddings",
                                       "rotary_pct",          "partial_rotary_factor",
                                       "rotary_dim",          "sliding_window",
                                       "kv_lora_rank",        "q_lora_rank",
                                       "qk_nope_head_dim",    "qk_rope_head_dim",
                                       "v_head_dim",          "original_max_position_embeddings",
                                       "intermediate_size"};
  detail::Json::Object out = {{"architectures", {.value = detail::Json::Array{*architecture}}}};
  for (const detail::JsonMember& member : *members) {
    if (member.value.is_null()) continue;
    const auto* const renamed =
        std::ranges::find(names, member.key, [](const auto& each) { return each.first; });
    if (renamed != std::end(names))
      out.push_back({std::string(renamed->second), member.value});
    else if (std::ranges::find(same, member.key) != std::end(same))
      out.push_back(member);
  }
  return detail::Json{.value = std::move(out)};
}

Expected<Model> read_tensorrt(const detail::Json& config, std::string_view name) {
  POSENC_TRY(model, detail::read_config_json(config, name));
  // Nobody writes Hugging Face's keys into it.
  std::erase_if(model.warnings, [](const Warning& one) { return one.code == "type_from_class"; });
  return std::move(model);
}

}  // namespace

Expected<Model> detail::read_text_of_model(std::string_view text, std::string_view name) {
  if (const auto other = what_else(text); !other.is.empty())
    return fail(name, "must describe a model", std::string(other.is), other.cure);
  const auto settings = settings_in_yaml(text);
  POSENC_TRY(whole, settings ? Expected<Json>(*settings) : parse_json(text, name));
  if (const auto config = whole.get<Json::Object>() ? from_other_names(whole) : std::nullopt) {
    POSENC_TRY(model, read_config_json(*config, name));
    if (is_of_nemo(whole))
      model.warnings.push_back(
          {"family_remark",
           "a configuration of NeMo, which names no family: read as Megatron's layers rotate, "
           "halves of each head"});
    if (is_of_openai(whole))
      model.warnings.push_back(
          {"family_remark",
           "OpenAI's own configuration, which its own code reads: engines want the config.json of "
           "the repository's first folder, where the same stands in Hugging Face's words"});
    if (!is_of_deepseek(whole)) return std::move(model);
    // max_seq_len is the length of its table, and not of what was trained.
    std::erase_if(model.warnings,
                  [](const Warning& one) { return one.code == "factor_vs_lengths"; });
    model.warnings.push_back(
        {"family_remark",
         "the configuration of DeepSeek's own inference code: what it does not say is the "
         "default of its class ModelArgs (base 10000, YaRN by 40 of 4,096, max_seq_len 16,384)"});
    return model;
  }
  if (const auto config = of_tensorrt(whole)) return read_tensorrt(*config, name);
  // A draft as vLLM's speculators writes it: its layers have a configuration of their own.
  if (const Json* layers = whole.find("transformer_layer_config");
      layers && layers->get<Json::Object>() && whole.find("speculators_model_type"))
    return read_config_json(*layers, name);
  const Json json = of_mlc(whole);
  if (const auto other = what_else(json); !other.is.empty())
    return fail(name, "must describe a model", std::string(other.is), other.cure);
  return is_params(json) ? read_params_json(json, name) : read_config_json(json, name);
}

Expected<Model> read_model_bytes(std::span<const std::byte> bytes, std::string_view name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("GGUF") || text.starts_with("FUGG")) return read_gguf(bytes, name);
  return detail::read_text_of_model(text, name);
}

}  // namespace posenc
