// The rules of layer_rules.h. Each follows the configuration class or the modeling code of its
// family; a key of the file that states the rule's number beats the row's.
#include "src/model/families/layer_rules.h"

#include <algorithm>
#include <string>

namespace posenc::detail {
namespace {

constexpr Range layer_range{.least = 1, .most = static_cast<double>(most_layers)};

// EXAONE spells its pattern: "LLLG" is three local layers and a global one, again and again.
void mark_spelled(LayerDraft& layers, std::string_view pattern) {
  if (pattern.empty()) return;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    if (pattern[static_cast<std::size_t>(i) % pattern.size()] == 'L')
      layers.at(i).type = layers.family.layers.other;
  }
  note(layers.notes, "layer_types", pattern, Origin::file,
       layers.config.where("sliding_window_pattern"));
}

// All layers but one in `every`: that with (i + shift) % every == 0. Every family spells the period
// in its own way, and none uses another's word for something else.
void mark_all_but_one(LayerDraft& layers, std::int64_t shift) {
  const Section& config = layers.config;
  const Json* pattern = config.raw("sliding_window_pattern");
  if (pattern && contains_word(layers.family.layers.every_keys, "sliding_window_pattern") &&
      pattern->get<std::string>())
    return mark_spelled(layers, *pattern->get<std::string>());
  const auto said = config.integer(layers.family.layers.every_keys, layer_range);
  const std::int64_t every = said ? said->value : layers.family.layers.every;
  if (config.reading.error || every < 1) return;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    if ((i + shift) % every != 0) layers.at(i).type = layers.family.layers.other;
  }
  layers.note_choice("layer_types",
                     std::string(shift == 1 ? "(i + 1)" : "i") + " % " + std::to_string(every) +
                         " = 0 is full attention",
                     said);
}

// Whether the switch of the families that have one leaves nothing to slide.
bool switched_off(LayerDraft& layers) {
  return layers.family.window.needs_switch &&
         !layers.config.flag_or(layers.notes, "use_sliding_window", "use_sliding_window", false);
}

}  // namespace

void mark_all_but_last_of(LayerDraft& layers) { mark_all_but_one(layers, 1); }
void mark_all_but_first_of(LayerDraft& layers) { mark_all_but_one(layers, 0); }

void mark_all(LayerDraft& layers) {
  if (switched_off(layers)) return;
  for (LayerKind& kind : layers.kinds) kind.type = layers.family.layers.other;
}

void mark_past_layer(LayerDraft& layers) {
  if (switched_off(layers)) return;
  const auto said = layers.config.integer("max_window_layers", not_negative);
  const std::int64_t first = said ? said->value : layers.family.layers.every;
  for (std::int64_t i = first; i < layers.count(); ++i)
    layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "sliding from layer " + std::to_string(first) + " on",
       Origin::derived, said ? said->key : "default of " + layers.config.reading.family);
}

void mark_each_second_before(LayerDraft& layers) {
  if (switched_off(layers)) return;
  const auto said = layers.config.integer("max_window_layers", not_negative);
  const std::int64_t end =
      std::min(said ? said->value : layers.family.layers.every, layers.count());
  for (std::int64_t i = 0; i < end; i += 2) layers.at(i).type = layers.family.layers.other;
  layers.note_choice("layer_types", "each second slides, before layer " + std::to_string(end), said,
                     "default");
}

void mark_off_period(LayerDraft& layers) {
  const auto period = layers.config.integer("attn_layer_period", layer_range),
             offset = layers.config.integer("attn_layer_offset", not_negative);
  const std::int64_t every = period ? period->value : layers.family.layers.every;
  const std::int64_t at = offset ? offset->value : every / 2;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    if (i % every != at) layers.at(i).type = layers.family.layers.other;
  }
  layers.note_choice("layer_types",
                     "i % " + std::to_string(every) + " = " + std::to_string(at) + " attends",
                     period);
}

// A list of the file has been read before any rule runs, so there is none here.
void mark_unlisted(LayerDraft& layers) {
  for (LayerKind& kind : layers.kinds) kind.type = layers.family.layers.other;
  note(layers.notes, "layer_types", "no layer attends", Origin::family,
       "default of " + layers.config.reading.family);
}

void no_layer(LayerDraft& layers) {
  for (LayerKind& kind : layers.kinds) kind.rotates = false;
}

// Without a window the model is a plain rotary one; with one, layers that do not slide have no
// position even where none slides.
void windowed_layers(LayerDraft& layers) {
  if (!layers.window) return;
  for (LayerKind& kind : layers.kinds) kind.rotates = has_window(kind.type);
}

// A 1 in no_rope_layers means that the layer does rotate; the key's name says the opposite.
void listed_layers(LayerDraft& layers) {
  const auto list = layers.config.integers("no_rope_layers", Range{.least = 0, .most = 1});
  const auto interval = layers.config.integer("no_rope_layer_interval", at_least_one);
  if (layers.config.reading.error) return;
  if (list && !list->value.empty()) {
    if (!layers.covers_layers(list->key, std::ssize(list->value), "entry")) return;
    for (std::size_t i = 0; i < layers.kinds.size(); ++i)
      layers.kinds[i].rotates = list->value[i] != 0;
    note(layers.notes, "no_rope_layers", "1 rotates, 0 does not", Origin::file, list->key);
    return;
  }
  const std::int64_t every = interval ? interval->value : layers.family.layers.every;
  for (std::int64_t i = 0; i < layers.count(); ++i) layers.at(i).rotates = (i + 1) % every != 0;
  layers.note_choice("no_rope_layers",
                     "(i + 1) % " + std::to_string(every) + " = 0 has no position", interval);
}

}  // namespace posenc::detail
