// Models that mix tokens without attention: no layer rotates, adds or biases by position, and what
// carries the order in its place is said.
#include <optional>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

// A number, or the sum of a list with a number for each stage; nothing where neither stands there.
std::optional<std::int64_t> counted(const Json& value) {
  if (const auto* one = value.get<std::int64_t>()) return *one;
  const auto* stages = value.get<Json::Array>();
  if (!stages || stages->empty()) return std::nullopt;
  std::int64_t sum = 0;
  for (const Json& stage : *stages) {
    const auto* number = stage.get<std::int64_t>();
    if (!number || *number < 0 || *number > most_layers) return std::nullopt;
    sum += *number;
  }
  return sum;
}

// Layers as the file counts them; a file without a word for it has one stack.
std::int64_t layers_of(const Section& config, ProvenanceList& notes) {
  for (const std::string_view key : split("num_hidden_layers depths layer_depths n_layer n_layers "
                                          "num_layers num_blocks")) {
    const Json* value = config.raw(key);
    const auto count = value ? counted(*value) : std::nullopt;
    if (!count) continue;
    if (*count < 1 || *count > most_layers) {
      config.reading.refuse(config.where(key), "must be 1 to " + std::to_string(most_layers),
                            std::to_string(*count), "correct the file");
      return 1;
    }
    note(notes, "layers", std::to_string(*count), Origin::file, config.where(key));
    return *count;
  }
  note(notes, "layers", "1", Origin::derived, "no key counts them");
  return 1;
}

void read_mixed(const Section& config, const Family& family, Mixer mixer, std::string label) {
  ProvenanceList notes;
  const std::int64_t layers = layers_of(config, notes);
  const bool causal = mixer == Mixer::recurrence;
  // What no attention divides has one head of no width.
  LayerGroup group = uniform_group(Stack::text, {.layers = layers, .heads = 1, .kv_heads = 1},
                                   causal, std::move(notes));
  set_mixer(mixer, std::move(label), group);
  if (!causal) group.cache_note = "no attention: nothing is cached";
  config.reading.warn("family_remark",
                      "no layer has a positional encoding: " + std::string(family.remark));
  add_group(config.reading, std::move(group), 0);
}

}  // namespace

void read_recurrence(const Section& config, const Family& family) {
  read_mixed(config, family, Mixer::recurrence, "recurrence");
}

void read_convolutions(const Section& config, const Family& family) {
  read_mixed(config, family, Mixer::convolution, "convolution");
}

void read_perceptrons(const Section& config, const Family& family) {
  read_mixed(config, family, Mixer::none, "perceptron");
}

}  // namespace posenc::detail
