// The configurations that travel with the library, and why each was chosen.
#include "src/model/bundled.h"

#include <algorithm>
#include <array>
#include <span>

#include "posenc/model.h"
#include "src/core/try.h"
#include "src/model/names.h"

namespace posenc {
namespace {

// Where they come from.
constexpr std::string_view aiconfigurator_copy = "a copy in ai-dynamo/aiconfigurator",
                           mlc_copy = "a copy in mlc-ai/mlc-llm",
                           maxtext_code = "the conversion code of AI-Hypercomputer/maxtext",
                           class_defaults =
                               "class defaults of transformers, which name the checkpoint";

// Why each is here, sorted by name.
constexpr BundledModel abouts[] = {
    {"bert-base-uncased", "a learned row for each of 512 positions", "reconstructed",
     class_defaults},
    {"bloom-176b", "ALiBi with 112 heads, not a power of two", "reconstructed",
     "the model card: 70 layers, 112 heads"},
    {"broken-llama-3.1-8b",
     "broken on purpose: Llama 3.1 whose scaling was lost, as conversions do", "reconstructed",
     "llama-3.1-8b without its rope_scaling"},
    {"chatglm3-6b", "half of each head rotated, interleaved", "published", mlc_copy},
    {"deepseek-v3",
     "latent attention: 128 channels without position, 64 rotated; YaRN on cos, sin and logits",
     "published", aiconfigurator_copy},
    {"falcon-7b", "71 heads that share one key-value head", "reconstructed", class_defaults},
    {"gemma-2-2b", "a window of 4096 in every other layer; logits capped at 50", "published",
     mlc_copy},
    {"gemma-3-4b",
     "five sliding layers with base 10000 for each full one with base 1000000, scaled by 8",
     "reconstructed", "the conversion script and class defaults of transformers"},
    {"gemma-4-e2b", "proportional RoPE in wide full layers, a vision tower with two axes",
     "reconstructed", maxtext_code},
    {"glm-4-9b", "64 of 128 channels rotated, interleaved, to 131072", "reconstructed",
     class_defaults},
    {"gpt-j-6b", "64 of 256 channels rotated, interleaved", "published", mlc_copy},
    {"gpt-oss-20b", "YaRN without rounding, windows of 128 in every other layer", "published",
     aiconfigurator_copy},
    {"gpt2", "a learned row for each of 1024 positions", "published", mlc_copy},
    {"internlm2.5-7b", "dynamic NTK: the rotation depends on the length", "published", mlc_copy},
    {"llama-2-7b", "plain RoPE, no key says so", "published",
     "a copy in mlc-ai/mlc-llm of the first day, its context of 2048 corrected to the 4096 "
     "published since"},
    {"llama-3.1-8b", "Llama-3 scaling, 8192 to 131072", "published", aiconfigurator_copy},
    {"llama-3.2-3b", "Llama-3 scaling by 32", "published", mlc_copy},
    {"llama-4-scout", "every fourth layer without position; low and high factor equal", "published",
     aiconfigurator_copy},
    {"mistral-7b-v0.3", "base 1000000 in place of the window of v0.1", "published", mlc_copy},
    {"modernbert-base", "an encoder that rotates, with a base for each kind of layer",
     "reconstructed", class_defaults},
    {"opt-125m", "learned rows that start at row 2", "reconstructed", class_defaults},
    {"phi-3.5-mini", "LongRoPE: two lists of factors, switched at 4096", "published", mlc_copy},
    {"qwen2.5-7b-yarn4", "YaRN by 4 in a file that still promises 32768", "published",
     "the published file with the rope_scaling that its card documents"},
    {"qwen2.5-vl-7b", "three position axes in sections, a vision tower with two", "reconstructed",
     "a conversion test of NVIDIA-NeMo/Megatron-Bridge; the 28 layers of its GGUF"},
    {"qwen3-8b", "base 1000000, 40960 tokens without a scaling", "published", aiconfigurator_copy},
    {"qwen3-coder-480b", "base 10000000, 262144 tokens without a scaling", "published",
     aiconfigurator_copy},
    {"qwen3-vl-4b", "three position axes, interleaved", "reconstructed", maxtext_code},
    {"smollm3-3b", "every fourth layer without position", "reconstructed",
     "its authors' length and base, else class defaults"},
    {"t5-small", "buckets of distances, encoder and decoder", "reconstructed", class_defaults},
    {"whisper-tiny", "sinusoids in the encoder, learned rows in the decoder", "reconstructed",
     class_defaults},
};

std::span<const detail::BundledFile> files() {
  return {detail::bundled_files, detail::bundled_file_count};
}

// The folders of models/, whose files are known by their names alone.
struct Folder {
  std::string_view origin, about;
  std::span<const detail::BundledFile> files;
  std::string_view source;
};
std::array<Folder, 2> folders() {
  return {{{"published",
            "what its config.json says of position",
            {detail::published_files, detail::published_file_count},
            "models/published/README.md"},
           {"reconstructed",
            "what its card and other programs say of position",
            {detail::reconstructed_files, detail::reconstructed_file_count},
            "models/reconstructed/README.md"}}};
}

// A file that is not there is no name: another's configuration would stand in for it unseen.
Expected<const detail::BundledFile*> file_meant(std::string_view name) {
  const bool path = name.starts_with('.') || name.starts_with('/') || name.starts_with('~') ||
                    name.ends_with(".gguf") || name.ends_with(".json") ||
                    std::ranges::count(name, '/') > 1;
  const std::string_view known = path ? name : detail::name_like(name).value_or(name);
  const auto find = [known](std::span<const detail::BundledFile> table) {
    const auto at = std::ranges::find(table, known, &detail::BundledFile::name);
    return at == table.end() ? nullptr : &*at;
  };
  if (const auto* bundled = find(files())) return bundled;
  for (const Folder& folder : folders())
    if (const auto* found = find(folder.files)) return found;
  const std::string shown(name.substr(0, 200));
  return fail("bundled_config", "no such bundled model", "'" + shown + "'",
              detail::name_cure(shown));
}

}  // namespace

std::vector<BundledModel> bundled_models() {
  std::vector<BundledModel> models;
  for (const detail::BundledFile& file : files()) {
    const auto about = std::ranges::find(abouts, file.name, &BundledModel::name);
    models.push_back(about == std::end(abouts) ? BundledModel{.name = file.name} : *about);
  }
  return models;
}

std::vector<BundledModel> published_models() {
  std::vector<BundledModel> models;
  for (const Folder& folder : folders())
    for (const detail::BundledFile& file : folder.files)
      models.push_back({.name = file.name,
                        .about = folder.about,
                        .origin = folder.origin,
                        .source = folder.source});
  return models;
}

std::vector<std::string_view> detail::known_names() {
  std::vector<std::string_view> names;
  for (const detail::BundledFile& file : files()) names.push_back(file.name);
  for (const Folder& folder : folders())
    for (const detail::BundledFile& file : folder.files) names.push_back(file.name);
  return names;
}

Expected<std::string_view> bundled_config(std::string_view name) {
  POSENC_TRY(file, file_meant(name));
  return file->text;
}

Expected<Model> detail::read_bundled(std::string_view name) {
  POSENC_TRY(file, file_meant(name));
  auto model = read_config(file->text, file->name);
  if (!model) return model;
  model->files.clear();  // no file of the user's
  const auto about = std::ranges::find(abouts, file->name, &BundledModel::name);
  if (about != std::end(abouts)) {
    model->origin = std::string(about->origin) + ": " + std::string(about->source);
    return model;
  }
  for (const Folder& folder : folders())
    if (std::ranges::find(folder.files, file->name, &BundledFile::name) != folder.files.end())
      model->origin = std::string(folder.origin) + ": " + std::string(folder.about);
  return model;
}

}  // namespace posenc
