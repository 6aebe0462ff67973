#include "src/model/layers.h"

#include <algorithm>
#include <utility>

namespace posenc::detail {
namespace {

// layer_types, with old words for its entries.
std::string layer_type(std::string_view word) {
  if (word == "attention" || word == "global") return "full_attention";
  if (word == "local") return "sliding_attention";
  return std::string(word);
}

// Every attention has it in its name; the others keep a state, or mix no tokens at all.
bool is_known(std::string_view type) {
  constexpr std::string_view others[] = {"attention", "mamba", "conv", "recurrent", "mlp", "moe"};
  return std::ranges::any_of(others, [&](std::string_view word) { return type.contains(word); });
}

class LayerReader {
 public:
  LayerReader(const Section& config, const Family& family, const Shape& shape, bool causal,
              Notes& notes)
      : config_(config),
        reading_(config.reading),
        family_(family),
        shape_(shape),
        causal_(causal),
        notes_(notes) {}

  Layers read() {
    find_layer_types();
    find_forced();
    find_window();
    find_nope();
    find_dense_front();
    find_shared();
    return std::move(layers_);
  }

 private:
  void find_layer_types() {
    const auto said = config_.words("layer_types layers_block_type block_types");
    if (reading_.error) return;
    layers_.kinds.assign(static_cast<std::size_t>(shape_.layers), LayerKind{"full_attention"});
    if (said) {
      if (static_cast<std::int64_t>(said->value.size()) != shape_.layers) {
        reading_.refuse(
            said->key,
            "must have one entry for each of " + std::to_string(shape_.layers) + " layers",
            std::to_string(said->value.size()) + " entries", "correct it or num_hidden_layers");
        return;
      }
      for (std::size_t i = 0; i < layers_.kinds.size(); ++i) {
        layers_.kinds[i].type = layer_type(said->value[i]);
        if (is_known(layers_.kinds[i].type)) continue;
        reading_.refuse(said->key, "has an unknown kind of layer",
                        "'" + said->value[i].substr(0, 64) + "' for layer " + std::to_string(i),
                        "full_attention, sliding_attention, linear_attention, mamba, conv, ...");
        return;
      }
      note(notes_, "layer_types", std::to_string(said->value.size()) + " entries", Origin::file,
           said->key);
      return;
    }
    if (const auto indices = config_.integers("attn_layer_indices full_attn_idxs", not_negative)) {
      for (std::int64_t i = 0; i < shape_.layers; ++i) {
        if (std::ranges::find(indices->value, i) == indices->value.end())
          type_of(i) = family_.other;
      }
      note(notes_, "layer_types", std::to_string(indices->value.size()) + " layers attend",
           Origin::file, indices->key);
      return;
    }
    if (const auto pattern = config_.word("hybrid_override_pattern")) return hybrid(*pattern);
    alternate();
  }

  // What the code does to layers whatever the file says of their types.
  void find_forced() {
    if (reading_.error || layers_.kinds.empty()) return;
    if (lists(family_.types, "gemma4_text") && has_window(layers_.kinds.back().type)) {
      layers_.kinds.back().type = "full_attention";
      note(notes_, "layer_types", "the last layer is full attention", Origin::family,
           "rule of " + reading_.family);
    }
    if (!lists(family_.types, "mllama_text_model")) return;
    const auto said = config_.integers("cross_attention_layers", not_negative);
    const std::vector<std::int64_t> cross =
        said ? said->value : std::vector<std::int64_t>{3, 8, 13, 18, 23, 28, 33, 38};
    for (const std::int64_t layer : cross) {
      if (layer < shape_.layers)
        layers_.kinds[static_cast<std::size_t>(layer)] = {std::string(cross_attention), false};
    }
    note(notes_, "cross_attention_layers", std::to_string(cross.size()) + " layers",
         said ? Origin::file : Origin::family, said ? said->key : "default of " + reading_.family);
  }

  // Nemotron-H: a letter for each layer, * attends.
  void hybrid(const Found<std::string>& pattern) {
    if (std::ssize(pattern.value) != shape_.layers) {
      reading_.refuse(
          pattern.key,
          "must have one letter for each of " + std::to_string(shape_.layers) + " layers",
          std::to_string(pattern.value.size()), "correct it or num_hidden_layers");
      return;
    }
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      if (pattern.value[static_cast<std::size_t>(i)] != '*') type_of(i) = family_.other;
    }
    note(notes_, "layer_types", "* attends", Origin::file, pattern.key);
  }

  void alternate() {
    if (lists("bamba granitemoehybrid", family_.types)) {  // the layers that attend are listed
      for (LayerKind& kind : layers_.kinds) kind.type = family_.other;
      note(notes_, "layer_types", "no layer attends", Origin::family,
           "default of " + reading_.family);
      return;
    }
    if (family_.alternate == Alternate::no || family_.alternate == Alternate::all_slide) return;
    if (family_.alternate == Alternate::past_layer) {
      const bool on = config_.flag_or(notes_, "use_sliding_window", "use_sliding_window", false);
      const auto from = config_.integer("max_window_layers", not_negative);
      const std::int64_t first = !on ? shape_.layers : from ? from->value : family_.every;
      for (std::int64_t i = std::max<std::int64_t>(first, 0); i < shape_.layers; ++i)
        type_of(i) = family_.other;
      if (on)
        note(notes_, "layer_types", "sliding from layer " + std::to_string(first) + " on",
             Origin::derived, from ? from->key : "default of " + reading_.family);
      return;
    }
    const Range range{.least = 1, .most = static_cast<double>(most_layers)};
    if (family_.alternate == Alternate::at_offset) {
      const auto period = config_.integer("attn_layer_period", range),
                 offset = config_.integer("attn_layer_offset", not_negative);
      const std::int64_t every = period ? period->value : family_.every;
      const std::int64_t at = offset ? offset->value : every / 2;
      for (std::int64_t i = 0; i < shape_.layers; ++i) {
        if (i % every != at) type_of(i) = family_.other;
      }
      note(notes_, "layer_types",
           "i % " + std::to_string(every) + " = " + std::to_string(at) + " attends",
           period ? Origin::file : Origin::family,
           period ? period->key : "rule of " + reading_.family);
      return;
    }
    constexpr std::string_view names =
        "sliding_window_pattern _sliding_window_pattern global_attn_every_n_layers "
        "full_attention_interval";
    const Json* pattern = config_.raw("sliding_window_pattern");
    if (pattern && pattern->get<std::string>())
      return spelled_pattern(*pattern->get<std::string>());
    const auto said = config_.integer(names, range);
    const std::int64_t every = said ? said->value : family_.every;
    if (reading_.error || every < 1) return;
    const bool last = family_.alternate == Alternate::every_last;
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      if ((last ? i + 1 : i) % every != 0) type_of(i) = family_.other;
    }
    note(notes_, "layer_types",
         std::string(last ? "(i + 1)" : "i") + " % " + std::to_string(every) +
             " = 0 is full attention",
         said ? Origin::file : Origin::family, said ? said->key : "rule of " + reading_.family);
  }

  // EXAONE spells it: "LLLG" is three local layers and a global one, again and again.
  void spelled_pattern(std::string_view pattern) {
    if (pattern.empty()) return;
    for (std::int64_t i = 0; i < shape_.layers; ++i) {
      if (pattern[static_cast<std::size_t>(i) % pattern.size()] == 'L') type_of(i) = family_.other;
    }
    note(notes_, "layer_types", pattern, Origin::file, config_.where("sliding_window_pattern"));
  }

  std::string& type_of(std::int64_t layer) {
    return layers_.kinds[static_cast<std::size_t>(layer)].type;
  }
  bool any_of(bool (*test)(std::string_view)) const {
    return std::ranges::any_of(layers_.kinds,
                               [&](const LayerKind& kind) { return test(kind.type); });
  }

  void find_window() {
    const Range range{.least = 1, .most = static_cast<double>(most_length)};
    // ModernBERT's decoder has half of the encoder's local_attention; it may give the half itself.
    const bool decoder = lists(family_.types, "modernbert-decoder");
    const bool half = decoder && !config_.has("sliding_window");
    const std::string_view names =
        decoder && !half ? "sliding_window"
                         : "sliding_window attention_chunk_size local_attention window_size";
    const Json* window = config_.raw("sliding_window");
    const bool zero =
        window && window->text() == "0";  // transformers 5 writes Qwen 2 MoE's null so
    const auto said = zero ? std::nullopt : config_.integer(names, range);
    const bool null = window && !said;  // null turns the family's default off
    if (said)
      layers_.window = half ? std::max<std::int64_t>(said->value / 2, 1) : said->value;
    else if (family_.window > 0 && !null)
      layers_.window = family_.window;
    const bool used = !has_switch() || (config_.flag("use_sliding_window") &&
                                        config_.flag("use_sliding_window")->value);
    if (!used && !any_of(has_window)) layers_.window.reset();  // the switch is off
    const bool all =
        family_.alternate == Alternate::all_slide && layers_.window && !config_.has("layer_types");
    if (!layers_.window) {
      if (!any_of(has_window)) return;
      if (null || family_.alternate == Alternate::past_layer) {
        for (LayerKind& kind : layers_.kinds)
          if (has_window(kind.type)) kind.type = "full_attention";
        return;
      }
      reading_.refuse(config_.where("sliding_window"), "is missing: some layers slide", "",
                      "add it");
      return;
    }
    if (all) {
      for (LayerKind& kind : layers_.kinds)
        if (kind.type == "full_attention") kind.type = family_.other;
    }
    if (!any_of(has_window) && family_.other != "chunked_attention") {
      layers_.window.reset();
      return;
    }
    layers_.window_note = {"window", std::to_string(*layers_.window),
                           said ? Origin::file : Origin::family,
                           said ? said->key : "default of " + reading_.family};
    if (!causal_) layers_.window_note.detail += ", half of it on each side";
    if (std::ranges::all_of(layers_.kinds,
                            [&](const LayerKind& kind) { return has_window(kind.type); }) &&
        shape_.context > 0 && *layers_.window >= shape_.context) {
      layers_.window_note.detail += "; not below the context, so it never cuts";
    }
  }

  bool has_switch() const {
    return config_.has("use_sliding_window") || family_.alternate == Alternate::past_layer;
  }

  void find_nope() {
    if (lists(family_.types,
              "granitemoehybrid")) {  // Granite 4: no position unless the file says rope
      const auto type = config_.word("position_embedding_type");
      const bool rope = type && type->value == "rope";
      for (LayerKind& kind : layers_.kinds) kind.rotates = rope;
      note(notes_, "position_embedding_type", rope ? "rope" : "nope",
           type ? Origin::file : Origin::family,
           type ? type->key : "default of " + reading_.family);
      return;
    }
    switch (family_.nope) {
      case NoPeLayers::none: return;
      case NoPeLayers::all:
        for (LayerKind& kind : layers_.kinds) kind.rotates = false;
        return;
      case NoPeLayers::full:
        if (!any_of(has_window)) return;
        for (LayerKind& kind : layers_.kinds) kind.rotates = has_window(kind.type);
        return;
      case NoPeLayers::listed: return listed_nope();
    }
  }

  // A 1 in no_rope_layers means that the layer does rotate; the key's name says the opposite.
  void listed_nope() {
    const auto list = config_.integers("no_rope_layers", Range{.least = 0, .most = 1});
    const auto interval = config_.integer("no_rope_layer_interval", at_least_one);
    if (reading_.error) return;
    if (list && !list->value.empty()) {
      if (static_cast<std::int64_t>(list->value.size()) != shape_.layers) {
        reading_.refuse(
            list->key,
            "must have one entry for each of " + std::to_string(shape_.layers) + " layers",
            std::to_string(list->value.size()) + " entries", "correct it or num_hidden_layers");
        return;
      }
      for (std::size_t i = 0; i < layers_.kinds.size(); ++i)
        layers_.kinds[i].rotates = list->value[i] != 0;
      note(notes_, "no_rope_layers", "1 rotates, 0 does not", Origin::file, list->key);
    } else {
      const std::int64_t every = interval ? interval->value : family_.every;
      for (std::int64_t i = 0; i < shape_.layers; ++i) {
        layers_.kinds[static_cast<std::size_t>(i)].rotates = (i + 1) % every != 0;
      }
      note(notes_, "no_rope_layers", "(i + 1) % " + std::to_string(every) + " = 0 has no position",
           interval ? Origin::file : Origin::family,
           interval ? interval->key : "rule of " + reading_.family);
    }
    if (family_.other ==
        "chunked_attention") {  // Llama 4: whatever layer_types says, the chunks follow
      for (LayerKind& kind : layers_.kinds)
        kind.type = kind.rotates && layers_.window ? "chunked_attention" : "full_attention";
    }
  }

  // Cohere 2 MoE: the dense layers in front attend fully by a pattern of 1, and rotate all the same.
  void find_dense_front() {
    if (!lists(family_.types, "cohere2_moe")) return;
    const auto front = config_.integer("first_k_dense_replace", not_negative);
    const auto pattern = config_.integer("prefix_dense_sliding_window_pattern", at_least_one);
    if (!front || front->value == 0) return;
    const std::int64_t every = pattern ? pattern->value : 1;
    const std::int64_t dense = std::min(front->value, shape_.layers);
    if (!config_.has("layer_types")) {  // the usual pattern starts behind them
      const auto rest = config_.integer("sliding_window_pattern", at_least_one);
      const std::int64_t usual = rest ? rest->value : family_.every;
      for (std::int64_t i = 0; i < shape_.layers; ++i) {
        const bool full = i < dense ? (i + 1) % every == 0 : (i - dense + 1) % usual == 0;
        type_of(i) = full ? "full_attention" : family_.other;
        layers_.kinds[static_cast<std::size_t>(i)].rotates = !full;
      }
    }
    if (every != 1) return;
    for (std::int64_t i = 0; i < dense; ++i)
      layers_.kinds[static_cast<std::size_t>(i)].rotates = true;
    note(notes_, "rotates", std::to_string(dense) + " dense layers in front rotate", Origin::file,
         front->key);
  }

  void find_shared() {
    const auto said = config_.integer("num_kv_shared_layers", not_negative);
    const std::int64_t shared = said ? said->value : lists(family_.types, "gemma3n_text") ? 15 : 0;
    for (std::int64_t i = std::max<std::int64_t>(shape_.layers - shared, 0); i < shape_.layers;
         ++i) {
      layers_.kinds[static_cast<std::size_t>(i)].shares = true;
    }
  }

  const Section& config_;
  Reading& reading_;
  const Family& family_;
  const Shape& shape_;
  bool causal_;
  Notes& notes_;
  Layers layers_;
};

}  // namespace

bool has_window(std::string_view type) {
  return type.contains("sliding") || is_chunked(type) || type.contains("window") ||
         type == "local_attention";
}

bool is_chunked(std::string_view type) { return type.contains("chunked"); }

bool has_attention(std::string_view type) {
  return type.contains("attention") && !type.contains("linear");
}

Layers read_layers(const Section& config, const Family& family, const Shape& shape, bool causal,
                   Notes& notes) {
  return LayerReader(config, family, shape, causal, notes).read();
}

}  // namespace posenc::detail
