// Where a model's weights come from: a GGUF file, or a folder as Hugging Face has it (config.json,
// model.safetensors whole or in shards). The two name the same tensors otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/files.h"
#include "posenc/model.h"

namespace posenc::lab {

// What tensors are called; those of a layer behind `layers` and its number.
struct TensorNames {
  std::string_view embedding, head, last_norm, layers;
  std::string_view attention_norm, mlp_norm, q, k, v, o, gate, up, down;
};

struct LlamaSource {
  Model model;
  TensorNames names;
  double epsilon = 1e-5;               // of RMSNorm
  std::int64_t width = 0, hidden = 0;  // channels of a token, and within the MLP, as the file says
  std::vector<MappedFile> files = {};
  std::vector<StoredTensor> tensors = {};  // over the files' bytes
};

// Errors: no such file or folder, an architecture whose layers are not Llama's (those of Mistral
// and Qwen 2 are), a shard that is missing or lies elsewhere, those of the parsers.
Expected<LlamaSource> llama_source(const std::string& path);

// Whether a path is a folder, which has config.json and tokenizer.json.
bool is_folder(const std::string& path);
// A file of a folder as text. Errors: those of MappedFile.
Expected<std::string> text_in_folder(const std::string& folder, std::string_view name);

}  // namespace posenc::lab
