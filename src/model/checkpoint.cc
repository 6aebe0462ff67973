// Which class wrote a file of tensors. The marks are names that one architecture alone has; sizes
// are the shapes of its projections. Files that were saved whole have the names behind a prefix.
#include "src/model/checkpoint.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace posenc::detail {
namespace {

class Names {
 public:
  explicit Names(std::span<const StoredTensor> tensors) {
    for (const StoredTensor& tensor : tensors)
      shapes_.emplace(without_prefix(tensor.name), &tensor.shape);
  }

  bool has(std::string_view name) const { return shapes_.contains(name); }
  bool has_any_in(std::string_view folder) const {
    const auto found = shapes_.lower_bound(folder);
    return found != shapes_.end() && found->first.starts_with(folder);
  }

  // A side of a tensor, from behind where negative; 0 where it has none.
  std::int64_t side(std::string_view name, std::int64_t axis = 0) const {
    const auto found = shapes_.find(name);
    if (found == shapes_.end()) return 0;
    const std::vector<std::int64_t>& shape = *found->second;
    const std::int64_t at = axis < 0 ? std::ssize(shape) + axis : axis;
    return at < 0 || at >= std::ssize(shape) ? 0 : shape[static_cast<std::size_t>(at)];
  }
  std::int64_t rank(std::string_view name) const {
    const auto found = shapes_.find(name);
    return found == shapes_.end() ? 0 : std::ssize(*found->second);
  }

  // Blocks numbered from 0: "double_blocks.0.", "double_blocks.1.", …
  std::int64_t blocks(std::string_view folder) const {
    std::int64_t count = 0;
    while (has_any_in(std::string(folder) + "." + std::to_string(count) + ".")) ++count;
    return count;
  }

 private:
  static std::string_view without_prefix(std::string_view name) {
    for (const std::string_view prefix : {"model.diffusion_model.", "diffusion_model."})
      if (name.starts_with(prefix)) return name.substr(prefix.size());
    return name;
  }

  std::map<std::string_view, const std::vector<std::int64_t>*> shapes_;
};

// A class of diffusers, with what its config.json would say.
struct Written {
  std::string_view type = {};
  std::vector<std::pair<std::string_view, std::int64_t>> sizes = {};
  std::string_view more = {};  // further members, as JSON
};

constexpr std::int64_t head = 128;  // channels, of most of them

std::optional<Written> flux(const Names& names) {
  const auto normed = [&](std::string_view end) {
    return names.has("double_blocks.0.img_attn.norm.key_norm." + std::string(end));
  };
  const bool chroma = names.has_any_in("distilled_guidance_layer.");
  if (!normed("scale") && !normed("weight")) return std::nullopt;
  if (!names.has("img_in.weight") && !chroma) return std::nullopt;
  const bool gated = names.has("double_blocks.0.img_mlp.gate_proj.weight");
  const bool pooled = names.has("vector_in.in_layer.weight");
  const bool qwen_text = names.side("txt_in.weight", 1) == 3584;
  const std::string_view type = names.has("double_stream_modulation_img.lin.weight")
                                    ? "Flux2Transformer2DModel"
                                : chroma               ? "ChromaTransformer2DModel"
                                : gated                ? "OvisImageTransformer2DModel"
                                : qwen_text && !pooled ? "LongCatImageTransformer2DModel"
                                                       : "FluxTransformer2DModel";
  const std::int64_t width = std::max(names.side("img_in.weight"), names.side("txt_in.weight"));
  return Written{type,
                 {{"num_attention_heads", width / head},
                  {"num_layers", names.blocks("double_blocks")},
                  {"num_single_layers", names.blocks("single_blocks")}}};
}

std::optional<Written> hunyuan(const Names& names) {
  if (names.has("mlp_t5.0.weight")) {
    const std::int64_t heads = 16;
    return Written{"HunyuanDiT2DModel",
                   {{"num_attention_heads", heads},
                    {"attention_head_dim", names.side("x_embedder.proj.weight") / heads},
                    {"num_layers", names.blocks("blocks")}}};
  }
  if (!names.has("txt_in.individual_token_refiner.blocks.0.norm1.weight")) return std::nullopt;
  const std::string_view type =
      names.rank("img_in.proj.weight") == 4  ? "HunyuanImageTransformer2DModel"
      : names.has("vision_in.proj.0.weight") ? "HunyuanVideo15Transformer3DModel"
                                             : "HunyuanVideoTransformer3DModel";
  Written written{type,
                  {{"num_attention_heads", names.side("img_in.proj.weight") / head},
                   {"num_layers", names.blocks("double_blocks")}}};
  if (const std::int64_t single = names.blocks("single_blocks"); single > 0)
    written.sizes.emplace_back("num_single_layers", single);
  return written;
}

std::optional<Written> wan(const Names& names) {
  if (!names.has("head.modulation")) return std::nullopt;
  Written written{
      names.has_any_in("vace_blocks.") ? "WanVACETransformer3DModel" : "WanTransformer3DModel",
      {{"num_attention_heads", names.side("head.modulation", -1) / head},
       {"num_layers", names.blocks("blocks")}}};
  if (const std::int64_t latents = names.side("patch_embedding.weight", 1); latents > 0)
    written.sizes.emplace_back("in_channels", latents);
  return written;
}

std::optional<Written> lumina(const Names& names) {
  if (!names.has("noise_refiner.0.attention.k_norm.weight")) return std::nullopt;
  const std::int64_t width = names.side("cap_embedder.1.weight"), layers = names.blocks("layers");
  // Z-Image grew out of Lumina 2: the width alone tells them apart.
  if (width == 2304)
    return Written{"Lumina2Transformer2DModel", {{"hidden_size", width}, {"num_layers", layers}}};
  if (width == 3840)
    return Written{"ZImageTransformer2DModel", {{"dim", width}, {"n_layers", layers}}};
  return std::nullopt;
}

std::optional<Written> qwen_image(const Names& names) {
  if (!names.has("transformer_blocks.0.attn.add_q_proj.weight") || !names.has("txt_norm.weight"))
    return std::nullopt;
  return Written{"QwenImageTransformer2DModel",
                 {{"num_attention_heads", names.side("img_in.weight") / head},
                  {"num_layers", names.blocks("transformer_blocks")}}};
}

std::optional<Written> cosmos(const Names& names) {
  const std::string_view query = "blocks.block0.blocks.0.block.attn.to_q.0.weight";
  if (!names.has(query)) return std::nullopt;
  const std::int64_t width = names.side(query);
  return Written{"CosmosTransformer3DModel",
                 {{"num_attention_heads", width / head}, {"num_layers", width == 5120 ? 36 : 28}},
                 width == 5120 ? R"("rope_scale": [2.0, 2.0, 2.0])" : ""};
}

std::optional<Written> cog_video(const Names& names) {
  const bool own = names.has("blocks.0.norm1.linear.weight");
  if (!own && !(names.has("transformer_blocks.0.norm1.linear.weight") &&
                names.has("patch_embed.text_proj.weight")))
    return std::nullopt;
  const std::string folder = own ? "blocks" : "transformer_blocks";
  const bool added = names.has("patch_embed.pos_embedding");
  Written written{"CogVideoXTransformer3DModel",
                  {{"num_attention_heads", names.side(folder + ".0.norm1.linear.weight") / 6 / 64},
                   {"num_layers", names.blocks(folder)}},
                  added ? "" : R"("use_rotary_positional_embeddings": true)"};
  // 1.5 makes a token of two frames, by a matrix where 1.0 convolves.
  if (names.rank("patch_embed.proj.weight") == 2) written.sizes.emplace_back("patch_size_t", 2);
  return written;
}

// What a class that no scheme says is known by.
std::optional<Written> not_covered(const Names& names) {
  constexpr std::pair<std::string_view, std::string_view> marks[] = {
      {"joint_blocks.0.context_block.attn.qkv.weight", "SD3Transformer2DModel"},
      {"t5_yproj.weight", "MochiTransformer3DModel"},
      {"t_block.1.weight", "PixArtTransformer2DModel"},
      {"double_layers.0.attn.w1q.weight", "AuraFlowTransformer2DModel"},
      {"audio_adaln_single.linear.weight", "LTX2VideoTransformer3DModel"},
      {"adaln_single.emb.timestep_embedder.linear_1.bias", "LTXVideoTransformer3DModel"},
  };
  for (const auto& [mark, type] : marks)
    if (names.has(mark)) return Written{type};
  return std::nullopt;
}

std::string config_of(const Written& written) {
  std::string text = R"({"_class_name": ")" + std::string(written.type) + '"';
  for (const auto& [key, size] : written.sizes)
    text += ", \"" + std::string(key) + "\": " + std::to_string(size);
  return text + (written.more.empty() ? "" : ", ") + std::string(written.more) + "}";
}

}  // namespace

std::optional<Expected<Model>> read_checkpoint(std::span<const StoredTensor> tensors,
                                               std::string_view name, FileFormat format) {
  const Names names(tensors);
  if (names.has("input_blocks.0.0.weight"))
    return fail(name, "is a U-Net (Stable Diffusion 1, 2 or XL), whose attention has no position",
                "", "convolutions alone tell places apart");
  std::optional<Written> written;
  for (const auto told : {flux, hunyuan, wan, lumina, qwen_image, cosmos, cog_video, not_covered})
    if (!written) written = told(names);
  if (!written) return std::nullopt;
  Expected<Model> model = read_config(config_of(*written), name);
  if (!model) return model;
  for (const std::string_view ending : {".safetensors", ".gguf"})
    if (model->name.ends_with(ending)) model->name.erase(model->name.size() - ending.size());
  model->files = {{std::string(name), format, FileRole::model}};
  model->warnings.push_back(
      {"told_by_tensors",
       "no configuration is in the file: the names and shapes of its tensors are "
       "those of " +
           std::string(written->type) + ", and what they do not say is that class's default"});
  return model;
}

}  // namespace posenc::detail
