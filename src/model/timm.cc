// The config.json that timm writes to a hub: "architecture" is a name such as
// vit_base_patch16_siglip_224, which says size, patch and what stands in the table of positions.
#include "src/model/timm.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/number.h"

namespace posenc::detail {
namespace {

struct Size {
  std::string_view name;
  std::int64_t width, layers, heads;
};
constexpr Size sizes[] = {
    {"tiny", 192, 12, 3},       {"wee", 256, 14, 4},       {"dwee", 256, 14, 4},
    {"xsmall", 256, 10, 4},     {"little", 320, 14, 5},    {"dlittle", 320, 14, 5},
    {"small", 384, 12, 6},      {"medium", 512, 12, 8},    {"mediumd", 512, 20, 8},
    {"betwixt", 640, 12, 10},   {"base", 768, 12, 12},     {"large", 1024, 24, 16},
    {"so400m", 1152, 27, 16},   {"huge", 1280, 32, 16},    {"giant", 1408, 40, 16},
    {"giantopt", 1536, 40, 16}, {"gigantic", 1664, 48, 16}};

struct Named {
  Size size;
  std::int64_t patch = 0, image = 0, extra_rows = 1;
};

std::optional<std::int64_t> number_behind(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix)) return std::nullopt;
  return whole_number(word.substr(prefix.size()));
}

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t end = std::min(name.find('_'), name.size());
    parts.push_back(name.substr(0, end));
    name.remove_prefix(std::min(end + 1, name.size()));
  }
  return parts;
}

// Nothing: a name of another kind, or with a word that is not known here.
std::optional<Named> read_name(std::string_view architecture) {
  const std::vector<std::string_view> parts =
      parts_of(architecture.substr(0, architecture.find('.')));
  if (parts.size() < 3) return std::nullopt;
  const std::string_view kind = parts[0];
  const auto* const size = std::ranges::find(sizes, parts[1], &Size::name);
  if ((kind != "vit" && kind != "deit" && kind != "deit3") || size == std::end(sizes))
    return std::nullopt;
  Named named{.size = *size};
  const auto has = [&](std::string_view word) {
    return std::ranges::find(parts, word) != parts.end();
  };
  bool registers = false;
  for (const std::string_view word : std::span(parts).subspan(2)) {
    constexpr std::string_view known[] = {"clip",   "quickgelu", "siglip",    "gap",
                                          "dinov2", "rpn",       "distilled", "plus"};
    if (const auto patch = number_behind(word, "patch"); patch && named.patch == 0)
      named.patch = *patch;
    else if (const auto image = whole_number(word))
      named.image = *image;
    else if (number_behind(word, "reg"))
      registers = true;
    else if (std::ranges::find(known, word) == std::end(known))
      return std::nullopt;
  }
  if (named.patch == 0) return std::nullopt;
  if (has("dinov2")) {
    if (named.image == 0) named.image = 518;
    if (size->name == "giant") named.size = {"giant", 1536, 40, 24};
  }
  // I-JEPA's has heads of its own.
  if (size->name == "base" && has("gap") && !has("siglip") && !registers) return std::nullopt;
  if (has("plus")) {
    if (size->name != "base") return std::nullopt;
    named.size = {"base", 896, 12, 14};
  }
  // What stands before the patches has a row of the table each, or none.
  const bool bare =
      kind == "deit3" || has("siglip") || has("gap") || has("xp") || has("rpn") || registers;
  named.extra_rows = has("distilled") ? 2 : bare ? 0 : 1;
  return named;
}

std::optional<std::int64_t> number_of(const Json* value) {
  const auto* number = value ? value->get<std::int64_t>() : nullptr;
  return number ? std::optional(*number) : std::nullopt;
}

}  // namespace

bool is_of_timm(const Json& whole) {
  const Json* name = whole.find("architecture");
  return name && name->get<std::string>() && !whole.find("model_type") &&
         (whole.find("pretrained_cfg") || whole.find("num_features"));
}

std::optional<Json> from_timm(const Json& whole) {
  if (!is_of_timm(whole)) return std::nullopt;
  auto named = read_name(*whole.find("architecture")->get<std::string>());
  if (!named) return std::nullopt;
  const Json* weights = whole.find("pretrained_cfg");
  const Json* input = weights ? weights->find("input_size") : nullptr;
  if (const auto* sides = input ? input->get<Json::Array>() : nullptr; sides && sides->size() == 3)
    named->image = number_of(&(*sides)[1]).value_or(named->image);
  if (const Json* arguments = whole.find("model_args")) {
    for (const std::string_view key : {"class_token", "no_embed_class", "pos_embed", "reg_tokens"})
      if (arguments->find(key)) return std::nullopt;
    for (const auto& [key, to] : {std::pair{"img_size", &named->image},
                                  {"patch_size", &named->patch},
                                  {"embed_dim", &named->size.width},
                                  {"depth", &named->size.layers},
                                  {"num_heads", &named->size.heads}})
      if (const auto number = number_of(arguments->find(key))) *to = *number;
  }
  if (named->image < named->patch || named->patch < 1) return std::nullopt;
  constexpr std::string_view families[] = {"siglip_vision_model", "vit", "deit"};
  const auto rows = static_cast<std::size_t>(named->extra_rows);
  return Json{.value = Json::Object{{"model_type", {.value = std::string(families[rows])}},
                                    {"hidden_size", {.value = named->size.width}},
                                    {"num_hidden_layers", {.value = named->size.layers}},
                                    {"num_attention_heads", {.value = named->size.heads}},
                                    {"image_size", {.value = named->image}},
                                    {"patch_size", {.value = named->patch}}}};
}

}  // namespace posenc::detail
