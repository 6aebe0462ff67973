// The configurations that travel with the library, and why each was chosen.
#include "src/model/bundled.h"

#include <algorithm>
#include <span>

#include "posenc/model.h"
#include "src/core/try.h"

namespace posenc {
namespace {

// Why each is here, sorted by name.
constexpr BundledModel abouts[] = {
    {"bert-base-uncased", "a learned row for each of 512 positions"},
    {"bloom-176b", "ALiBi with 112 heads, not a power of two"},
    {"chatglm3-6b", "half of each head rotated, interleaved"},
    {"deepseek-v3",
     "latent attention: 128 channels without position, 64 rotated; YaRN on cos, sin and logits"},
    {"falcon-7b", "71 heads that share one key-value head"},
    {"gemma-3-4b",
     "five sliding layers with base 10000 for each full one with base 1000000, scaled by 8"},
    {"gemma-4-e2b", "proportional RoPE in wide full layers, a vision tower with two axes"},
    {"gpt-j-6b", "64 of 256 channels rotated, interleaved"},
    {"gpt-oss-20b", "YaRN without rounding, windows of 128 in every other layer"},
    {"gpt2", "a learned row for each of 1024 positions"},
    {"internlm2.5-7b", "dynamic NTK: the rotation depends on the length"},
    {"llama-2-7b", "plain RoPE, no key says so"},
    {"llama-3.1-8b", "Llama-3 scaling, 8192 to 131072"},
    {"llama-4-scout", "every fourth layer without position; low and high factor equal"},
    {"modernbert-base", "an encoder that rotates, with a base for each kind of layer"},
    {"opt-125m", "learned rows that start at row 2"},
    {"phi-3.5-mini", "LongRoPE: two lists of factors, switched at 4096"},
    {"qwen2.5-7b-yarn4", "YaRN by 4 in a file that still promises 32768"},
    {"qwen2.5-vl-7b", "three position axes in sections, a vision tower with two"},
    {"qwen3-vl-4b", "three position axes, interleaved"},
    {"smollm3-3b", "every fourth layer without position"},
    {"t5-small", "buckets of distances, encoder and decoder"},
    {"whisper-tiny", "sinusoids in the encoder, learned rows in the decoder"},
};

std::span<const detail::BundledFile> files() {
  return {detail::bundled_files, detail::bundled_file_count};
}

}  // namespace

std::vector<BundledModel> bundled_models() {
  std::vector<BundledModel> models;
  for (const detail::BundledFile& file : files()) {
    const auto about = std::ranges::find(abouts, file.name, &BundledModel::name);
    models.push_back({file.name, about == std::end(abouts) ? std::string_view() : about->about});
  }
  return models;
}

Expected<std::string_view> bundled_config(std::string_view name) {
  std::vector<std::string_view> names;
  for (const detail::BundledFile& file : files()) {
    if (file.name == name) return file.text;
    names.push_back(file.name);
  }
  return fail("bundled_config", "no such bundled model",
              "'" + std::string(name.substr(0, 200)) + "'", suggestion(name, names));
}

Expected<Model> detail::read_bundled(std::string_view name) {
  POSENC_TRY(text, bundled_config(name));
  auto model = read_config(text, name);
  if (model) model->files.clear();  // no file of the user's
  return model;
}

}  // namespace posenc
