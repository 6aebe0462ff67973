// The keys of open_clip's model_configs/*.json and of open_clip_config.json, which has them in
// model_cfg.
#include "src/model/open_clip.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace posenc::detail {
namespace {

constexpr std::int64_t usual_head = 64;  // channels of a head, where vision_cfg says none

// The keys of a tower that open_clip builds itself, each by transformers' name.
struct Word {
  std::string_view ours, theirs;
};
constexpr Word text_words[] = {{"hidden_size", "width"},
                               {"num_attention_heads", "heads"},
                               {"num_hidden_layers", "layers"},
                               {"max_position_embeddings", "context_length"}};
constexpr Word vision_words[] = {{"hidden_size", "width"},
                                 {"num_hidden_layers", "layers"},
                                 {"image_size", "image_size"},
                                 {"patch_size", "patch_size"}};

std::optional<Json::Object> translated(const Json& tower, std::span<const Word> words) {
  Json::Object out;
  for (const auto& [ours, theirs] : words) {
    const Json* value = tower.find(theirs);
    if (!value || !value->get<std::int64_t>()) return std::nullopt;
    out.push_back({std::string(ours), *value});
  }
  return out;
}

bool is_built_elsewhere(const Json& tower) {
  for (const std::string_view key : {"timm_model_name", "hf_model_name"})
    if (tower.find(key)) return true;
  const Json* kind = tower.find("pos_embed_type");
  const auto* word = kind ? kind->get<std::string>() : nullptr;
  return word && *word != "learnable";
}

}  // namespace

std::optional<Json> from_open_clip(const Json& whole) {
  const Json* inner = whole.find("model_cfg");
  const Json& model = inner ? *inner : whole;
  const Json *text = model.find("text_cfg"), *vision = model.find("vision_cfg");
  if (!text || !vision || whole.find("model_type") || model.find("multimodal_cfg") ||
      is_built_elsewhere(*text) || is_built_elsewhere(*vision))
    return std::nullopt;
  auto of_text = translated(*text, text_words), of_vision = translated(*vision, vision_words);
  if (!of_text || !of_vision) return std::nullopt;
  const Json* said = vision->find("head_width");
  const auto* width = vision->find("width")->get<std::int64_t>();
  const auto* head = said ? said->get<std::int64_t>() : &usual_head;
  if (!head || *head < 1 || *width % *head != 0) return std::nullopt;
  of_vision->push_back({"num_attention_heads", {.value = *width / *head}});
  return Json{.value = Json::Object{{"model_type", {.value = std::string("clip")}},
                                    {"text_config", {.value = *std::move(of_text)}},
                                    {"vision_config", {.value = *std::move(of_vision)}}}};
}

}  // namespace posenc::detail
