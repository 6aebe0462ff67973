// Which kind of attention each layer has: layer_types where the file has it, or the family's rule.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/model/families/family.h"

namespace posenc::detail {

// Llama 3.2 Vision's layers that attend to the picture: keys are no tokens and have no position.
constexpr std::string_view cross_attention = "cross_attention";

// A layer without attention of a file that does not say what it has instead (a GGUF's nemotron_h).
constexpr std::string_view unsaid_layer = "no attention";

struct LayerKind {
  std::string type;  // as layer_types spells it: "sliding_attention"
  bool rotates = true;
  bool shares = false;                   // keys and values are an earlier layer's (Gemma 3n, 4)
  double theta = 0;                      // its own base; 0: that of all
  std::int64_t heads = 0, kv_heads = 0;  // its own; 0: as many as all
  std::int64_t window = 0;               // its own; 0: that of all
  double part = 0;                       // of its channels that rotate; 0: as for all
  bool scaled = true;                    // by the file's scaling
  bool picks = true;  // by its own indexer, where the family has one; else as the layer before
  std::int64_t passes = 1;  // how often it runs, each time with keys of its own
  bool operator==(const LayerKind&) const = default;
};

struct Layers {
  std::vector<LayerKind> kinds;        // one for each layer
  std::optional<std::int64_t> window;  // of the layers that have one
  Provenance window_note;
};

// What a LayerRule works on: the layers as far as they are known, and what to ask.
struct LayerDraft : Layers {
  const Section& config;
  const Family& family;
  const ModelDims& dims;
  ProvenanceList& notes;

  std::int64_t count() const { return dims.layers; }
  LayerKind& at(std::int64_t layer) { return kinds[static_cast<std::size_t>(layer)]; }
  bool any_has_window() const;

  // Notes what the file says under the key, or else what the family's rule (or default) is.
  template <class T>
  void note_choice(std::string_view field, std::string_view value,
                   const std::optional<Found<T>>& said, std::string_view otherwise = "rule") {
    note(notes, field, value, said ? Origin::file : Origin::family,
         said ? said->key : std::string(otherwise) + " of " + config.reading.family);
  }

  // Whether a list of the file has an entry ("letter") for each layer; if not, the file is refused.
  bool covers_layers(std::string_view key, std::int64_t entries, std::string_view unit) const;
};

Layers read_layers(const Section& config, const Family& family, const ModelDims& dims,
                   ProvenanceList& notes);

bool has_window(std::string_view layer_type);  // sliding or chunked
bool is_chunked(std::string_view layer_type);
Mixer mixer_of(std::string_view layer_type);
bool has_attention(std::string_view layer_type);

}  // namespace posenc::detail
