#include "evidence/lab/model/source.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>
#include <variant>

#include "src/core/try.h"
#include "src/core/words.h"
#include "src/text/json.h"

namespace posenc::lab {
namespace {

constexpr TensorNames of_gguf{.embedding = "token_embd",
                              .head = "output",
                              .last_norm = "output_norm",
                              .layers = "blk.",
                              .attention_norm = "attn_norm",
                              .mlp_norm = "ffn_norm",
                              .q = "attn_q",
                              .k = "attn_k",
                              .v = "attn_v",
                              .o = "attn_output",
                              .gate = "ffn_gate",
                              .up = "ffn_up",
                              .down = "ffn_down"};

constexpr TensorNames of_hugging_face{.embedding = "model.embed_tokens",
                                      .head = "lm_head",
                                      .last_norm = "model.norm",
                                      .layers = "model.layers.",
                                      .attention_norm = "input_layernorm",
                                      .mlp_norm = "post_attention_layernorm",
                                      .q = "self_attn.q_proj",
                                      .k = "self_attn.k_proj",
                                      .v = "self_attn.v_proj",
                                      .o = "self_attn.o_proj",
                                      .gate = "mlp.gate_proj",
                                      .up = "mlp.up_proj",
                                      .down = "mlp.down_proj"};

Expected<void> check_family(const LlamaSource& source, std::string_view known,
                            const std::string& where) {
  if (detail::contains_word(known, source.model.family)) return {};
  return fail(where, "must be a model whose layers are Llama's for the lab to run it",
              source.model.family, "one of: " + std::string(known));
}

Expected<LlamaSource> of_file(const std::string& path) {
  POSENC_TRY(file, MappedFile::open(path));
  POSENC_TRY(gguf, parse_gguf(file.bytes(), path));
  POSENC_TRY(model, read_gguf(file.bytes(), path));
  LlamaSource made{.model = std::move(model), .names = of_gguf};
  POSENC_CHECK(check_family(made, "llama", path + ": general.architecture"));
  if (const GgufValue* value = gguf.find("llama.attention.layer_norm_rms_epsilon"))
    if (const auto* epsilon = std::get_if<double>(value)) made.epsilon = *epsilon;
  const auto size = [&](std::string_view key) -> std::int64_t {
    const GgufValue* value = gguf.find(key);
    const auto* count = value ? std::get_if<std::uint64_t>(value) : nullptr;
    return count && *count < 1u << 30 ? static_cast<std::int64_t>(*count) : 0;
  };
  made.width = size("llama.embedding_length");
  made.hidden = size("llama.feed_forward_length");
  made.files.push_back(std::move(file));
  made.tensors = std::move(gguf.tensors);
  return made;
}

// The files that model.safetensors.index.json names, or the one there is.
Expected<std::set<std::string>> shards_of(const std::string& folder) {
  constexpr std::string_view index = "model.safetensors.index.json";
  std::set<std::string> shards;
  std::error_code none;
  if (!std::filesystem::exists(std::filesystem::path(folder) / index, none)) {
    shards.insert("model.safetensors");
    return shards;
  }
  POSENC_TRY(text, text_in_folder(folder, index));
  POSENC_TRY(json, detail::parse_json(text, index));
  const detail::Json* map = json.find("weight_map");
  const auto* members = map ? map->get<detail::Json::Object>() : nullptr;
  if (!members)
    return fail(folder + "/" + std::string(index), "must have a weight_map", json.kind());
  for (const detail::JsonMember& member : *members) {
    const auto* name = member.value.get<std::string>();
    if (!name || name->empty() || name->find_first_of("/\\") != name->npos)
      return fail(folder + "/" + std::string(index), "must name files of its folder",
                  member.value.text());
    shards.insert(*name);
  }
  return shards;
}

Expected<LlamaSource> of_folder(const std::string& folder) {
  POSENC_TRY(model, read_model(folder));
  LlamaSource made{.model = std::move(model), .names = of_hugging_face};
  POSENC_CHECK(check_family(made, "llama mistral qwen2", folder + ": model_type"));
  POSENC_TRY(text, text_in_folder(folder, "config.json"));
  POSENC_TRY(config, detail::parse_json(text, "config.json"));
  const detail::Json* epsilon = config.find("rms_norm_eps");
  if (const auto* number = epsilon ? epsilon->get<double>() : nullptr) made.epsilon = *number;
  const auto size = [&](std::string_view key) -> std::int64_t {
    const detail::Json* value = config.find(key);
    const auto* count = value ? value->get<std::int64_t>() : nullptr;
    return count && *count > 0 && *count < 1 << 30 ? *count : 0;
  };
  made.width = size("hidden_size");
  made.hidden = size("intermediate_size");
  POSENC_TRY(shards, shards_of(folder));
  for (const std::string& shard : shards) {
    const std::string path = (std::filesystem::path(folder) / shard).string();
    POSENC_TRY(file, MappedFile::open(path));
    POSENC_TRY(safetensors, parse_safetensors(file.bytes(), path));
    made.files.push_back(std::move(file));
    for (StoredTensor& tensor : safetensors.tensors) made.tensors.push_back(std::move(tensor));
  }
  return made;
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_directory(path, none);
}

Expected<std::string> text_in_folder(const std::string& folder, std::string_view name) {
  POSENC_TRY(file, MappedFile::open((std::filesystem::path(folder) / name).string()));
  return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
}

Expected<LlamaSource> llama_source(const std::string& path) {
  return is_folder(path) ? of_folder(path) : of_file(path);
}

}  // namespace posenc::lab
