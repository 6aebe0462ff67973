// Resamplers: a few learned queries attend to the features of a picture (Perceiver, Flamingo), so
// that as many tokens go on to the text model whatever the picture's size. Nothing tells a position
// here: what the picture's tower added is all.
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {

void read_resampler(const Section& config, const Family& family) {
  ProvenanceList notes;
  ModelDims dims;
  dims.layers = config.size(notes, "layers", "resampler_depth num_hidden_layers",
                            family.sizes.layers, most_layers);
  dims.heads = config.size(notes, "heads", "resampler_n_heads num_attention_heads",
                           family.sizes.heads, most_heads);
  dims.kv_heads = family.sizes.kv_heads == 0 ? dims.heads
                                             : config.size(notes, "kv_heads", "num_key_value_heads",
                                                           family.sizes.kv_heads, most_heads);
  dims.head_dim = config.size(notes, "head_dim", "resampler_head_dim head_dim",
                              family.sizes.head_dim, most_head_dim);
  if (config.reading.error) return;
  dims.width = dims.heads * dims.head_dim;
  LayerGroup group = uniform_group(Stack::vision, dims, false, std::move(notes));
  group.schemes = {NoPe{}};
  add_group(config.reading, std::move(group), 0);
  config.reading.warn("family_remark", family.remark);
}

}  // namespace posenc::detail
