// Families whose tokens say how they look by distance (profiles), and nothing else of position.
#include <algorithm>
#include <cmath>
#include <string>

#include "src/model/families/layer_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// Inkling: each sixth layer attends fully, unless a list names those with a window.
void mark_inkling(LayerDraft& layers) {
  const auto local = layers.config.integers("local_layer_ids", not_negative);
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const bool slides = local ? std::ranges::find(local->value, i) != local->value.end()
                              : (i + 1) % layers.family.every != 0;
    if (slides) layers.at(i).type = layers.family.other;
  }
  note(layers.notes, "layer_types",
       local ? std::to_string(local->value.size()) + " with a window" : "each sixth attends fully",
       local ? Origin::file : Origin::family,
       local ? local->key : "rule of " + layers.config.reading.family);
}

// Curves as far as the window reaches, in full layers as far as rel_extent.
void inkling_profiles(const Section& config, LayerGroup& group) {
  const auto known = [&](std::string_view key, std::int64_t otherwise) {
    const auto said = config.integer(key, Range{.least = 1, .most = 1 << 20});
    note(group.provenance, key, std::to_string(said ? said->value : otherwise),
         said ? Origin::file : Origin::family,
         said ? said->key : "default of " + config.reading.family);
    return said ? said->value : otherwise;
  };
  Profiles scheme;
  scheme.profiles = known("d_rel", 16);
  if (group.window) {
    scheme.extent = *group.window;
    note(group.provenance, "extent", std::to_string(scheme.extent), Origin::derived, "the window");
  } else {
    scheme.extent = known("rel_extent", 1024);
  }
  group.schemes = {scheme};
}

// The number of Inkling's full layers, 1 + α ln max(1, (p + 1)/n).
void log_scaling(const Section& config, LayerGroup& group, double floor) {
  const auto said = config.number("log_scaling_n_floor", at_least_one);
  const Json* const raw = config.raw("log_scaling_n_floor");
  if (raw && raw->is_null()) floor = 0;
  if (said) floor = said->value;
  if (floor == 0 || group.window) return;
  const auto alpha = config.number("log_scaling_alpha", not_negative);
  group.logits.temperature = Temperature::log;
  group.logits.beta = alpha ? alpha->value : 0.1;
  group.logits.floor = floor;
  group.logits.offset = 1;
  group.logits_note += (group.logits_note.empty() ? "" : "; ") +
                       std::string("log_scaling_n_floor ") + number_text(floor);
}
void inkling_logits(const Section& config, LayerGroup& group) {
  group.logits.multiplier = 1 / std::sqrt(static_cast<double>(group.geometry.head_dim));
  group.logits_note = "q·k is divided by head_dim, not by its root";
  log_scaling(config, group, 0);
}
void inkling2_logits(const Section& config, LayerGroup& group) {
  log_scaling(config, group, 128000);
}

// WavLM's layers share one table of T5's buckets, times a gate that each layer makes of its input.
void read_gated(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  Profiles scheme{.curves = ProfileCurves::buckets, .profiles = 1};
  scheme.num_buckets = config.size(notes, "num_buckets", "num_buckets", 320, 65536);
  scheme.max_distance = config.size(notes, "max_distance", "max_bucket_distance", 800, 1 << 20);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.schemes = {scheme};
  add_group(config.reading, std::move(group), dims.context);
  config.reading.warn("family_remark", family.remark);
}

// clang-format off: one row a family, as dense as it can be read.
constexpr Family distances[] = {
    {.types = "inkling_text", .context = 128 * K, .sizes = {6144, 66, 64, 8, 128},
     .layer_types = true, .pattern = {mark_inkling}, .every = 6, .window = 512,
     .window_keys = "sliding_window_size sliding_window",
     .local_kv_heads_key = "swa_num_key_value_heads", .local_kv_heads = 16,
     .schemes = inkling_profiles, .logits = inkling_logits},
    {.types = "inkling2_text", .context = 1024 * K, .sizes = {4608, 48, 48, 8, 128},
     .layer_types = true, .pattern = {mark_inkling}, .every = 6, .window = 1024,
     .window_keys = "sliding_window_size sliding_window",
     .local_kv_heads_key = "swa_num_key_value_heads", .local_kv_heads = 8, .schemes = inkling_profiles,
     .logits = inkling2_logits, .sinks = Sinks::all},
    {.types = "wavlm", .read = read_gated, .sizes = {768, 12, 12}, .causal = false,
     .remark = "a convolution over neighbours gives tokens positions besides, which no plan says"},
};
// clang-format on

}  // namespace

std::span<const Family> rows_distances() { return distances; }

}  // namespace posenc::detail
