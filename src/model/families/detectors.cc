// Detectors: a few layers attend among the features that convolutions make of a picture, and
// sinusoids of rows and columns are added in every layer to what queries and keys are projected
// from. DETR's decoder attends with learned rows of its object queries; those of RT-DETR and its
// kin sample a few places instead of attending.
//
// SAM's clicks and boxes are vectors of random frequencies, made by a prompt encoder, which its
// mask decoder adds to queries and keys in every layer.
#include <numbers>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {

void read_detector(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  ModelDims dims;
  dims.width = config.size(notes, "width", "encoder_hidden_dim d_model hidden_size",
                           family.sizes.width, most_width);
  dims.layers = config.size(notes, "encoder layers", "encoder_layers num_layers",
                            family.sizes.layers, most_layers);
  dims.heads = dims.kv_heads =
      config.size(notes, "encoder heads", "encoder_attention_heads num_attention_heads",
                  family.sizes.heads, most_heads);
  dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
  const auto kind = config.word("position_embedding_type");
  if (kind && kind->value != "sine")
    reading.refuse(kind->key, "must be sine", "'" + kind->value + "'",
                   "a learned row and a learned column side by side are not covered");
  if (const auto levels = config.integers("encode_proj_layers", not_negative)) {
    dims.layers *= std::ssize(levels->value);
    note(notes, "layers", std::to_string(dims.layers), Origin::derived,
         "encoder_layers of each of encode_proj_layers");
    if (dims.layers < 1 || dims.layers > most_layers)
      reading.refuse(levels->key,
                     "must have 1 to " + std::to_string(most_layers) + " layers in all",
                     std::to_string(dims.layers), "correct the file");
  }
  if (reading.error) return;
  Sinusoidal waves = family.added.waves;
  waves.axes_dim = {dims.width / 2, dims.width / 2};
  if (family.added.shares) waves.position_scale = {2 * std::numbers::pi};
  if (const auto base = config.number("positional_encoding_temperature", above_one)) {
    waves.base = base->value;
    note(notes, "base", number_text(base->value), Origin::file, base->key);
  }
  note(notes, "layout", name(waves.layout), Origin::family, "rule of " + reading.family);
  LayerGroup encoder = uniform_group(Stack::encoder, dims, false, notes);
  encoder.schemes = {waves};
  encoder.added_each_layer = true;
  add_group(reading, std::move(encoder), 0);
  if (family.context > 0) {
    const std::int64_t queries =
        config.size(notes, "queries", "num_queries", family.context, most_length);
    dims.layers =
        config.size(notes, "decoder layers", "decoder_layers", family.sizes.layers, most_layers);
    dims.heads = dims.kv_heads = config.size(notes, "decoder heads", "decoder_attention_heads",
                                             family.sizes.heads, most_heads);
    dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
    if (reading.error) return;
    LayerGroup decoder = uniform_group(Stack::decoder, dims, false, std::move(notes));
    decoder.schemes = {Learned{.rows = queries}};
    decoder.added_each_layer = true;
    add_group(reading, std::move(decoder), 0);
  }
  if (!family.remark.empty()) reading.warn("family_remark", family.remark);
}

void read_prompts(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  ModelDims dims;
  dims.width = config.size(notes, "width", "hidden_size", family.sizes.width, most_width);
  dims.layers = family.sizes.layers;
  if (family.sizes.heads > 0) {
    dims.layers =
        config.size(notes, "layers", "num_hidden_layers", family.sizes.layers, most_layers);
    dims.heads = dims.kv_heads =
        config.size(notes, "heads", "num_attention_heads", family.sizes.heads, most_heads);
    dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
  }
  if (reading.error) return;
  FourierFeatures clicks;
  if (const auto scale = config.number("scale", positive)) {
    clicks.sigma = scale->value;
    note(notes, "sigma", number_text(scale->value), Origin::file, scale->key);
  }
  LayerGroup group = uniform_group(Stack::decoder, dims, false, std::move(notes));
  group.schemes = {std::move(clicks)};
  group.added_each_layer = family.sizes.heads > 0;
  add_group(reading, std::move(group), 0);
  reading.warn("family_remark", family.remark);
}

}  // namespace posenc::detail
