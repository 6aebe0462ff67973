// What a model that was read answers.
#include "posenc/model.h"

#include <algorithm>

namespace posenc {

std::string_view name(Stack stack) {
  constexpr std::string_view names[] = {"text", "encoder", "decoder", "vision", "audio"};
  return names[static_cast<std::size_t>(stack)];
}

bool is_tower(Stack stack) { return stack == Stack::vision || stack == Stack::audio; }

std::string_view name(Mixer mixer) {
  constexpr std::string_view names[] = {"attention", "recurrence", "convolution", "none", "unsaid"};
  return names[static_cast<std::size_t>(mixer)];
}

std::string_view name(Origin origin) {
  constexpr std::string_view names[] = {"file", "derived", "family", "assumed"};
  return names[static_cast<std::size_t>(origin)];
}

std::string_view name(FileFormat format) {
  constexpr std::string_view names[] = {"config.json", "params.json", "GGUF", "safetensors",
                                        "safetensors index"};
  return names[static_cast<std::size_t>(format)];
}

std::string_view name(FileRole role) {
  constexpr std::string_view names[] = {"model", "compared", "weights", "unread"};
  return names[static_cast<std::size_t>(role)];
}

Expected<Plan> compile(const LayerGroup& group, std::int64_t length, Angles angles) {
  Geometry geometry = group.geometry;
  Plan plan;
  for (const Scheme& scheme : group.schemes) {
    // Its table grows with the text: as constructed it is that of one token.
    const bool grows = length == 0 && std::holds_alternative<TransformerXl>(scheme);
    geometry.length = grows ? 1 : length;
    auto part = compile(scheme, geometry, angles);
    if (!part) return part;
    auto both = merged(plan, *part);
    if (!both) return both;
    plan = std::move(*both);
  }
  const double multiplier = plan.logits.multiplier * group.logits.multiplier;
  if (group.logits.has_temperature()) plan.logits = group.logits;
  plan.logits.multiplier = multiplier;
  plan.logits.softcap = group.logits.softcap;
  return checked(std::move(plan), group.geometry.head_dim);
}

std::optional<LayerGroup> indexer_group(const LayerGroup& group) {
  if (!group.indexer) return std::nullopt;
  const Indexer& own = *group.indexer;
  LayerGroup out{.stack = group.stack, .layers = group.layers, .label = "indexer"};
  out.geometry = {.heads = own.heads, .kv_heads = 1, .head_dim = own.head_dim};
  out.causal = group.causal;
  out.logits = own.logits;
  out.learned_factors = group.learned_factors;
  out.cache_elements = own.keys.elements;
  out.cache_note = own.keys.note;
  out.schemes = {NoPe{}};
  if (own.rotary_dim == 0) return out;
  for (const Scheme& scheme : group.schemes) {
    const auto* main = std::get_if<Rope>(&scheme);
    if (!main) continue;
    Rope rope{.rope_theta = main->rope_theta,
              .pairing = own.pairing,
              .rotary_dim = own.rotary_dim,
              .slice = own.slice,
              .mrope_section = main->mrope_section,
              .mrope_interleaved = main->mrope_interleaved,
              .pair_axes = main->pair_axes,
              .frequency_factors = main->frequency_factors,
              .reversed = main->reversed,
              .scaling = main->scaling};
    // The factor on logits is the attention's alone.
    if (auto* yarn = std::get_if<Yarn>(&rope.scaling)) yarn->scale_logits = false;
    out.schemes = {std::move(rope)};
    break;
  }
  return out;
}

std::int64_t bytes_of_number(const Model& model) {
  if (model.dtype == "float64" || model.dtype == "double") return 8;
  if (model.dtype == "float32" || model.dtype == "float") return 4;
  return 2;
}

std::int64_t cached_bytes(const Model& model, const LayerGroup& group, std::int64_t tokens) {
  const std::int64_t kept = group.window ? std::min(*group.window, tokens) : tokens;
  double numbers = static_cast<double>(group.cache_elements) * static_cast<double>(kept);
  for (const CachePart& part : group.cache_beside) {
    const std::int64_t rows = tokens / part.every;
    numbers += static_cast<double>(part.elements) * static_cast<double>(rows);
  }
  numbers *= static_cast<double>(group.layers.size()) * static_cast<double>(bytes_of_number(model));
  return static_cast<std::int64_t>(std::min(numbers, 0x1p62));
}

const LayerGroup* find_group(const Model& model, std::int64_t layer, Stack stack) {
  for (const LayerGroup& group : model.groups) {
    if (group.stack == stack && std::ranges::binary_search(group.layers, layer)) return &group;
  }
  return nullptr;
}

}  // namespace posenc
