// Reads the kind of each layer, in the order in which Hugging Face's code decides it: what the file
// lists, else the family's pattern; what the code forces against the file; the window, without
// which no layer slides; which layers rotate; which ones reuse the keys of others. The order
// matters: a window that is null turns sliding layers into full ones before a rule asks which of
// them slide. Last, how many heads each has.
#include "src/model/families/layers.h"

#include <algorithm>
#include <utility>

namespace posenc::detail {
namespace {

constexpr std::string_view full = "full_attention";

// layer_types, with old words for its entries.
std::string layer_type(std::string_view word) {
  // A layer that attends beside a recurrence is called hybrid.
  if (word == "attention" || word == "global" || word == "hybrid") return std::string(full);
  // What stands behind the attention, which transformers admits in its place.
  if (word == "sparse" || word == "dense") return std::string(full);
  if (word == "local" || word == "hybrid_sliding") return "sliding_attention";
  return std::string(word);
}

// What the words of layer types say of the mixer, the first that is in one.
struct MixerWord {
  std::string_view word;
  Mixer mixer;
};
constexpr MixerWord mixer_words[] = {{unsaid_layer, Mixer::unsaid},
                                     {"linear", Mixer::recurrence},
                                     {"mamba", Mixer::recurrence},
                                     {"recurrent", Mixer::recurrence},
                                     {"conv", Mixer::convolution},
                                     {"attention", Mixer::attention},
                                     {"minimax_m3_sparse", Mixer::attention},
                                     {"mlp", Mixer::none},
                                     {"moe", Mixer::none}};

const MixerWord* mixer_word(std::string_view type) {
  const auto found = std::ranges::find_if(
      mixer_words, [&](const MixerWord& each) { return type.contains(each.word); });
  return found == std::end(mixer_words) ? nullptr : &*found;
}

// A word that says none of these is refused and not taken for attention: a wrong layer is worse
// than none.
bool is_known(std::string_view type) { return mixer_word(type) != nullptr; }

class LayerReader {
 public:
  LayerReader(const Section& config, const Family& family, const ModelDims& dims,
              ProvenanceList& notes)
      : draft_{{}, config, family, dims, notes} {}

  Layers read() {
    find_types();
    if (family().layers.forced && !reading().error) family().layers.forced(draft_);
    find_window();
    if (family().layers.rotates) family().layers.rotates(draft_);
    if (family().attention.indexer.rule) family().attention.indexer.rule(draft_);
    if (family().layers.passes) family().layers.passes(draft_);
    find_shared();
    find_heads();
    return std::move(draft_);
  }

 private:
  const Section& config() const { return draft_.config; }
  const Family& family() const { return draft_.family; }
  Reading& reading() const { return draft_.config.reading; }

  // A list of the file beats the family's pattern; the file may spell it in three ways.
  void find_types() {
    // First of all, so that rules find a kind for each layer even after an error.
    draft_.kinds.assign(static_cast<std::size_t>(draft_.count()), LayerKind{std::string(full)});
    const auto said = config().words("layer_types layers_block_type");
    const auto cycle = config().words("block_types");
    if (reading().error) return;
    if (said) return take_types(*said);
    if (cycle) return take_types(repeated(*cycle));
    if (const auto indices = config().integers("attn_layer_indices full_attn_idxs", not_negative))
      return take_indices(*indices);
    if (const auto letters = config().word("hybrid_override_pattern"))
      return take_letters(*letters);
    if (const Json* blocks = config().raw("block_configs")) return take_blocks(*blocks);
    if (!family().layers.pattern.mark) return;
    by_pattern_ = true;
    family().layers.pattern.mark(draft_);
  }

  // RecurrentGemma says its first layers, and the others are as them, again and again.
  Found<std::vector<std::string>> repeated(Found<std::vector<std::string>> cycle) const {
    const std::size_t period = cycle.value.size(), all = draft_.kinds.size();
    if (period == 0 || period > all) return cycle;
    for (std::size_t i = period; i < all; ++i) cycle.value.push_back(cycle.value[i - period]);
    return cycle;
  }

  void take_types(const Found<std::vector<std::string>>& said) {
    if (!draft_.covers_layers(said.key, std::ssize(said.value), "entry")) return;
    for (std::size_t i = 0; i < draft_.kinds.size(); ++i) {
      draft_.kinds[i].type = layer_type(said.value[i]);
      if (is_known(draft_.kinds[i].type)) continue;
      reading().refuse(said.key, "has an unknown kind of layer",
                       "'" + said.value[i].substr(0, 64) + "' for layer " + std::to_string(i),
                       "full_attention, sliding_attention, linear_attention, mamba, conv, ...");
      return;
    }
    note(draft_.notes, "layer_types", std::to_string(said.value.size()) + " entries", Origin::file,
         said.key);
    warn_of_types(said.key);
  }

  // A list of unlike layers, where the code that runs the model passes over it.
  void warn_of_types(const std::string& key) {
    const bool window = draft_.any_has_window(),
               unlike = std::ranges::any_of(
                   draft_.kinds, [](const LayerKind& kind) { return kind.type != full; });
    if ((unlike || family().layers.pattern.mark) && !family().layers.types) {
      reading().warn("layer_types_unread", key +
                                               " is read, since the file means it; Hugging Face's "
                                               "code for " +
                                               reading().family + " knows no layer types");
    }
    const auto on = config().flag("use_sliding_window");
    if (window && family().window.needs_switch && !(on && on->value)) {
      reading().warn("window_switched_off",
                     key +
                         " has layers that slide, and use_sliding_window is not true: Hugging "
                         "Face's code for " +
                         reading().family + " has no window for them");
    }
  }

  // Nemotron-NAS: what the search left of each layer's attention, and how many heads share a key.
  void take_blocks(const Json& blocks) {
    const auto* list = blocks.get<Json::Array>();
    if (!list || !draft_.covers_layers("block_configs", std::ssize(*list), "entry")) return;
    for (std::int64_t i = 0; i < draft_.count(); ++i) {
      LayerKind& kind = draft_.at(i);
      const Json* attention = (*list)[static_cast<std::size_t>(i)].find("attention");
      if (!attention || !attention->get<Json::Object>()) continue;
      const auto is_true = [&](std::string_view key) {
        const Json* value = attention->find(key);
        return value && value->text() == "true";
      };
      const auto number = [&](std::string_view key) {
        const Json* value = attention->find(key);
        const auto* whole = value ? value->get<std::int64_t>() : nullptr;
        return whole && *whole > 0 && *whole <= most_length ? *whole : 0;
      };
      if (is_true("no_op") || is_true("replace_with_linear")) kind.type = "mlp";
      if (!has_attention(kind.type)) continue;
      if (const std::int64_t group = number("n_heads_in_group"); group > 0) {
        if (draft_.dims.heads % group != 0) {
          reading().refuse("block_configs", "must share the heads out in groups",
                           std::to_string(group) + " of " + std::to_string(draft_.dims.heads) +
                               " in layer " + std::to_string(i),
                           "correct n_heads_in_group");
          return;
        }
        kind.kv_heads = draft_.dims.heads / group;
      }
      if (const std::int64_t window = number("window_length"); window > 0) {
        kind.type = "sliding_attention";
        kind.window = window;
      }
    }
    note(draft_.notes, "layer_types", std::to_string(list->size()) + " entries", Origin::file,
         config().where("block_configs"));
  }

  void take_indices(const Found<std::vector<std::int64_t>>& attend) {
    for (std::int64_t i = 0; i < draft_.count(); ++i) {
      if (std::ranges::find(attend.value, i) == attend.value.end())
        draft_.at(i).type = family().layers.other;
    }
    note(draft_.notes, "layer_types", std::to_string(attend.value.size()) + " layers attend",
         Origin::file, attend.key);
  }

  // Nemotron-H: a letter for each layer.
  void take_letters(const Found<std::string>& letters) {
    if (!draft_.covers_layers(letters.key, std::ssize(letters.value), "letter")) return;
    for (std::int64_t i = 0; i < draft_.count(); ++i) {
      const char letter = letters.value[static_cast<std::size_t>(i)];
      if (letter == '*') continue;
      const bool known = letter == 'M' || letter == '-' || letter == 'E';
      if (!known)
        reading().refuse(letters.key, "has an unknown letter",
                         "'" + std::string(1, letter) + "' for layer " + std::to_string(i),
                         "* attends, M is Mamba, - a perceptron, E experts");
      draft_.at(i).type = letter == 'M' ? "mamba" : letter == 'E' ? "moe" : "mlp";
    }
    note(draft_.notes, "layer_types", "* attends, M is Mamba, - and E are none", Origin::file,
         letters.key);
  }

  // The window of all layers that have one. Layers that a pattern marked, or whose file says null,
  // attend fully without it; where the file lists sliding layers, their window must be there too.
  void find_window() {
    const bool null = read_window();
    if (!draft_.window) {
      if (!draft_.any_has_window()) return;
      if (!null && !(by_pattern_ && family().layers.pattern.window_optional)) {
        reading().refuse(config().where("sliding_window"), "is missing: some layers slide", "",
                         "add it");
        return;
      }
      for (LayerKind& kind : draft_.kinds)
        if (has_window(kind.type)) kind.type = full;
      return;
    }
    const bool everywhere = std::ranges::all_of(
        draft_.kinds, [](const LayerKind& kind) { return has_window(kind.type); });
    if (everywhere && draft_.dims.context > 0 && *draft_.window >= draft_.dims.context)
      draft_.window_note.detail += "; not below the context, so it never cuts";
  }

  // The file's window, else the family's. Returns whether the file turns it off.
  bool read_window() {
    if (draft_.window) {  // by the list that marked the layers
      draft_.window_note = {"window", std::to_string(*draft_.window), Origin::file,
                            config().where("attention_windows")};
      return false;
    }
    const Range range{.least = 1, .most = static_cast<double>(most_length)};
    // local_attention counts both sides. A decoder of such a family sees one of them, which its
    // file may give as sliding_window.
    const bool half = family().window.half && !config().has("sliding_window");
    const std::string_view names =
        family().window.half && !half ? "sliding_window" : family().window.keys;
    const Json* raw = nullptr;
    for (const std::string_view key : split(names))
      if (!raw) raw = config().raw(key);
    const bool zero = raw && raw->text() == "0";  // transformers 5 writes Qwen 2 MoE's null so
    const auto said = zero ? std::nullopt : config().integer(names, range);
    const bool null = raw && !said;
    if (said) draft_.window = half ? std::max<std::int64_t>(said->value / 2, 1) : said->value;
    const auto before = config().integer(family().window.before, range);
    if (before) draft_.window = before->value + 1;
    if (!draft_.window && !null && family().window.size > 0) draft_.window = family().window.size;
    if (before)
      draft_.window_note = {"window", std::to_string(*draft_.window), Origin::derived,
                            before->key + " before the query, and itself"};
    else if (draft_.window)
      draft_.window_note = {"window", std::to_string(*draft_.window),
                            said ? Origin::file : Origin::family,
                            said ? said->key : "default of " + reading().family};
    return null;
  }

  // The last layers read the keys and values that an earlier one has cached.
  void find_shared() {
    const auto said = config().integer("num_kv_shared_layers", not_negative);
    const std::int64_t shared = said ? said->value : family().heads.shared_kv;
    for (std::int64_t i = std::max<std::int64_t>(draft_.count() - shared, 0); i < draft_.count();
         ++i)
      draft_.at(i).shares = true;
    // Mistral Large 4: the layer whose keys each layer reads.
    const auto sources = config().integers("kv_source_layers", not_negative);
    if (!sources || !draft_.covers_layers(sources->key, std::ssize(sources->value), "entry"))
      return;
    for (std::int64_t i = 0; i < draft_.count(); ++i)
      draft_.at(i).shares = sources->value[static_cast<std::size_t>(i)] != i;
  }

  // A layer without attention has no heads, whatever the lists say of it.
  void find_heads() {
    const auto list = [&](std::string_view key) {
      auto said = key.empty() ? std::nullopt : config().integers(key, not_negative);
      if (said && !draft_.covers_layers(said->key, std::ssize(said->value), "entry")) said.reset();
      return said;
    };
    const auto heads = list(family().heads.of_layers), kv_heads = list(family().heads.kv_of_layers);
    for (std::size_t i = 0; i < draft_.kinds.size() && !reading().error; ++i) {
      LayerKind& kind = draft_.kinds[i];
      if (!has_attention(kind.type)) continue;
      if (heads) kind.heads = heads->value[i];
      if (kv_heads) kind.kv_heads = kv_heads->value[i];
      check_heads(kind, i);
    }
  }

  void check_heads(const LayerKind& kind, std::size_t layer) {
    const std::int64_t heads = kind.heads > 0 ? kind.heads : draft_.dims.heads,
                       kv_heads = kind.kv_heads > 0 ? kind.kv_heads : draft_.dims.kv_heads;
    if (heads <= most_heads && kv_heads > 0 && heads % kv_heads == 0) return;
    const std::string_view key = kind.kv_heads > 0 ? family().heads.kv_of_layers : "";
    reading().refuse(config().where(key.empty() ? family().heads.of_layers : key),
                     "must divide the query heads",
                     std::to_string(kv_heads) + " for " + std::to_string(heads) + " in layer " +
                         std::to_string(layer),
                     "correct one of them");
  }

  LayerDraft draft_;
  bool by_pattern_ = false;  // the family's pattern said the kinds, and not the file
};

}  // namespace

bool LayerDraft::any_has_window() const {
  return std::ranges::any_of(kinds, [](const LayerKind& kind) { return has_window(kind.type); });
}

bool LayerDraft::covers_layers(std::string_view key, std::int64_t entries,
                               std::string_view unit) const {
  if (entries == count()) return true;
  // Layers that guess further tokens (MTP) have their entries behind those of the model.
  const auto guessing = config.integer("num_nextn_predict_layers", not_negative);
  if (guessing && entries == count() + guessing->value) return true;
  config.reading.refuse(
      key,
      "must have one " + std::string(unit) + " for each of " + std::to_string(count()) + " layers",
      std::to_string(entries) + (unit == "entry" ? " entries" : ""),
      "correct it or num_hidden_layers");
  return false;
}

bool has_window(std::string_view type) {
  return type.contains("sliding") || is_chunked(type) || type.contains("window") ||
         type.contains("compressed") || type == "local_attention";
}

bool is_chunked(std::string_view type) { return type.contains("chunked"); }

Mixer mixer_of(std::string_view type) {
  const MixerWord* const said = mixer_word(type);
  return said ? said->mixer : Mixer::unsaid;
}

bool has_attention(std::string_view type) { return mixer_of(type) == Mixer::attention; }

Layers read_layers(const Section& config, const Family& family, const ModelDims& dims,
                   ProvenanceList& notes) {
  return LayerReader(config, family, dims, notes).read();
}

}  // namespace posenc::detail
