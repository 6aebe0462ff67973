// Families whose attention knows the distance by learned vectors and biases: profiles,
// Transformer-XL and its Conformers, clipped distances.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
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
                              : (i + 1) % layers.family.layers.every != 0;
    if (slides) layers.at(i).type = layers.family.layers.other;
  }
  note(layers.notes, "layer_types",
       local ? std::to_string(local->value.size()) + " with a window" : "each sixth attends fully",
       local ? Origin::file : Origin::family,
       local ? local->key : "rule of " + layers.config.reading.family);
}

// Inkling 2's small model runs some layers again and again, with keys of their own each time.
void inkling_passes(LayerDraft& layers) {
  const Section& config = layers.config;
  const Section nested = config.section("loop_config");
  const auto number = [&](std::string_view inside, std::string_view beside, std::int64_t usual) {
    const auto said = nested.integer(inside, not_negative);
    const auto other = config.integer(beside, not_negative);
    return said ? said->value : other ? other->value : usual;
  };
  const auto first = number("core_start", "loop_layer_index_start", 6),
             end = number("core_end", "loop_layer_index_end", 18),
             times = number("num_passes", "loop_num_passes", 3);
  for (std::int64_t i = first; i < std::min(end, layers.count()); ++i)
    layers.at(i).passes = std::max<std::int64_t>(times, 1);
  note(layers.notes, "passes",
       std::to_string(times) + " of layers " + std::to_string(first) + " to " +
           std::to_string(end - 1),
       nested || config.has("loop_num_passes") ? Origin::file : Origin::family,
       nested                          ? nested.path()
       : config.has("loop_num_passes") ? config.where("loop_num_passes")
                                       : "default of " + config.reading.family);
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
void inkling2_loop_logits(const Section& config, LayerGroup& group) {
  log_scaling(config, group, 8192);
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

void add_encoder(const Section& config, const Family& family, LayerGroup group,
                 std::int64_t context) {
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
  add_group(config.reading, std::move(group), context);
}

// XLNet sees both ways, or what came before.
void read_xlnet(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto kind = config.word("attn_type");
  const bool both = !kind || kind->value != "uni";
  note(notes, "attn_type", both ? "bi" : "uni", kind ? Origin::file : Origin::family,
       kind ? kind->key : "default of " + config.reading.family);
  if (const auto most = config.integer("clamp_len"); most && most->value > 0)
    config.reading.warn("family_remark", most->key + " is " + std::to_string(most->value) +
                                             ": distances from there on share a vector, which "
                                             "the plan does not say");
  LayerGroup group =
      uniform_group(both ? Stack::encoder : Stack::text, dims, !both, std::move(notes));
  group.schemes = {TransformerXl{.layout = family.added.waves.layout, .bidirectional = both}};
  add_encoder(config, family, std::move(group), dims.context);
}

// A Conformer's distances, of the kind that the file says or else the class: Transformer-XL's, or
// Shaw's without values.
std::optional<Scheme> conformer_scheme(const Section& config, const Family& family,
                                       ProvenanceList& notes) {
  const Json* const raw = config.raw("position_embeddings_type");
  const auto said = config.word("position_embeddings_type");
  const std::string kind = said                           ? said->value
                           : raw && raw->is_null()        ? "none"
                           : family.bias.clipped_left > 0 ? "relative_key"
                                                          : "relative";
  const bool in_file = raw != nullptr;
  note(notes, "position_embeddings_type", kind, in_file ? Origin::file : Origin::family,
       in_file ? config.where("position_embeddings_type") : "default of " + config.reading.family);
  if (kind == "relative") return TransformerXl{.layout = WaveLayout::interleaved};
  if (kind == "none") return NoPe{};
  if (kind == "relative_key") {
    Shaw scheme{.use_values = false};
    scheme.max_distance = config.size(notes, "left", "left_max_position_embeddings",
                                      family.bias.clipped_left, 1 << 20);
    scheme.max_ahead = config.size(notes, "right", "right_max_position_embeddings",
                                   family.bias.clipped_right, 1 << 20);
    return scheme;
  }
  if (!config.reading.error) {
    config.reading.refuse(config.where("position_embeddings_type"),
                          kind == "rotary" ? "rotates what queries and keys are projected from, "
                                             "which no plan says"
                                           : "is not a known kind",
                          "'" + kind + "'", "relative and relative_key are read");
  }
  return std::nullopt;
}

void read_conformer(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto scheme = conformer_scheme(config, family, notes);
  if (!scheme) return;
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.schemes = {*scheme};
  const auto source = config.integer("max_source_positions", at_least_one);
  add_encoder(config, family, std::move(group), source ? source->value : dims.context);
}

// FastSpeech 2: one Conformer reads phonemes, another writes the spectrum, and both see both ways.
// With a vocoder the model is a part of the file.
void read_two_conformers(const Section& file, const Family& family) {
  const Section part = file.section("model_config");
  const Section& config = part ? part : file;
  for (const Stack stack : {Stack::encoder, Stack::decoder}) {
    Family side = family;
    side.side = name(stack);
    ProvenanceList notes;
    const ModelDims dims = read_dims(config, side, notes);
    LayerGroup group = uniform_group(stack, dims, false, std::move(notes));
    group.schemes = {TransformerXl{.layout = WaveLayout::interleaved}};
    add_group(config.reading, std::move(group), dims.context);
  }
}

// Granite's encoders of sound cut the text into blocks of context_size, and have a vector for each
// distance.
void read_blocks(const Section& config, const Family& family) {
  ProvenanceList notes;
  ModelDims dims;
  dims.width =
      config.size(notes, "width", "hidden_dim hidden_size", family.sizes.width, most_width);
  dims.layers = config.size(notes, "layers", "num_layers num_hidden_layers", family.sizes.layers,
                            most_layers);
  dims.heads = dims.kv_heads =
      config.size(notes, "heads", "num_heads num_attention_heads", family.sizes.heads, most_heads);
  const auto head_dim = config.integer(
      "dim_head head_dim", Range{.least = 1, .most = static_cast<double>(most_head_dim)});
  dims.head_dim = head_dim ? head_dim->value : head_dim_of(config, notes, dims.width, dims.heads);
  if (head_dim) note(notes, "head_dim", std::to_string(dims.head_dim), Origin::file, head_dim->key);
  const std::int64_t rows = config.size(
      notes, "max_distance", "max_pos_emb max_position_embeddings", family.context, 1 << 20);
  const std::int64_t block =
      config.size(notes, "chunk", "context_size", family.window.size, most_length);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.window = block;
  group.chunked = true;
  group.schemes = {
      Shaw{.max_distance = rows, .use_values = false, .row_order = RowOrder::query_minus_key}};
  add_encoder(config, family, std::move(group), 0);
}

// Phi-4's encoder of sound: a bias for each distance, of which the farthest share one; parts of 500
// frames do not see each other.
void read_clipped(const Section& config, const Family& family) {
  ProvenanceList notes;
  ModelDims dims;
  dims.width = config.size(notes, "width", "hidden_size", family.sizes.width, most_width);
  dims.layers = config.size(notes, "layers", "num_blocks", family.sizes.layers, most_layers);
  dims.heads = dims.kv_heads =
      config.size(notes, "heads", "num_attention_heads", family.sizes.heads, most_heads);
  dims.head_dim = head_dim_of(config, notes, dims.width, dims.heads);
  const std::int64_t most = config.size(notes, "max_distance", "bias_max_distance", 1000, 1 << 20);
  if (const auto symmetric = config.flag("bias_symmetric"); symmetric && symmetric->value) {
    config.reading.refuse(symmetric->key, "is not covered: one bias for both directions", "true",
                          "no released file has it");
    return;
  }
  note(notes, "chunk", std::to_string(family.window.size), Origin::family,
       "rule of " + config.reading.family);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.window = family.window.size;
  group.chunked = true;
  group.schemes = {ClippedBias{.left = most, .right = most - 1}};
  if (const auto chunk = config.integer("chunk_size"); chunk && chunk->value > 0)
    config.reading.warn("family_remark",
                        chunk->key + " is " + std::to_string(chunk->value) +
                            ": a frame sees its chunk and left_chunk ones before, which the plan "
                            "does not say");
  add_encoder(config, family, std::move(group), 0);
}

// Gemma's encoders of sound: queries meet sinusoids of the distance behind them, projected by heads,
// as they meet keys; both sums go through a softcap. Blocks of frames see as much before and ahead
// of each as a window does. Queries are multiplied by softplus(per_dim_scale)/ln 2, learned by
// channel: the plan has 1/ln 2.
void read_gemma_sound(const Section& config, const Family& family) {
  ProvenanceList notes;
  ModelDims dims;
  dims.width = config.size(notes, "width", "hidden_size", family.sizes.width, most_width);
  dims.layers = config.size(notes, "layers", "conf_num_hidden_layers num_hidden_layers",
                            family.sizes.layers, most_layers);
  dims.heads = dims.kv_heads =
      config.size(notes, "heads", "conf_num_attention_heads num_attention_heads",
                  family.sizes.heads, most_heads);
  dims.head_dim = dims.value_dim = head_dim_of(config, notes, dims.width, dims.heads);
  const std::int64_t before = config.size(
      notes, "before", "conf_attention_context_left attention_context_left", 13, most_length);
  const auto right = config.integer("conf_attention_context_right attention_context_right",
                                    Range{.least = 0, .most = static_cast<double>(most_length)});
  const auto cap = config.number("conf_attention_logit_cap attention_logit_cap", positive);
  note(notes, "softcap", number_text(cap ? cap->value : 50), cap ? Origin::file : Origin::family,
       cap ? cap->key : "default of " + config.reading.family);
  const std::int64_t ahead = right ? right->value : 0;
  LayerGroup group = uniform_group(Stack::encoder, dims, ahead == 0, std::move(notes));
  group.window = before + ahead;
  if (ahead > 0) group.behind = before - 1;
  group.schemes = {
      TransformerXl{.bidirectional = ahead > 0, .biases = false, .spacing = WaveSpacing::ends}};
  group.logits = {.multiplier = 1 / std::numbers::ln2, .softcap = cap ? cap->value : 50};
  group.logits_note = "1/ln 2, beside softplus(per_dim_scale) on the channels of queries";
  group.cache_elements = 0;
  group.cache_note = {};
  add_encoder(config, family, std::move(group), 0);
}

// VITS: vectors for as many distances as window_size to each side, on keys and values, and none
// beyond.
void read_vits(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto window = config.integer("window_size", Range{.least = 0, .most = 1 << 20});
  const Json* const raw = config.raw("window_size");
  const std::int64_t most = window ? window->value : raw && raw->is_null() ? 0 : 4;
  note(notes, "max_distance", std::to_string(most), raw ? Origin::file : Origin::family,
       raw ? config.where("window_size") : "default of " + config.reading.family);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  if (most > 0)
    group.schemes = {Shaw{.max_distance = most, .zero_beyond = true}};
  else
    group.schemes = {NoPe{}};
  add_encoder(config, family, std::move(group), 0);
}

// Seamless M4T: a Conformer for sounds, and an encoder and a decoder of text with sinusoids.
void read_seamless(const Section& config, const Family& family) {
  Model& model = config.reading.model;
  Family sounds = family;
  sounds.side = "speech_encoder";
  sounds.remark = {};
  const std::size_t first = model.groups.size();
  read_conformer(config, sounds);
  for (std::size_t i = first; i < model.groups.size(); ++i) model.groups[i].stack = Stack::audio;
  model.context = model.trained_context = 0;
  if (config.reading.error) return;
  read_m2m(config, family);
  config.reading.warn("family_remark", family.remark);
}

constexpr std::string_view units =
    "the layers that write units of sound (t2u_*) are of the text's build, but that those of their "
    "encoder have no position; they are not listed";
constexpr std::string_view short_convolutions =
    "a convolution mixes keys and values with those of the few tokens before, which no plan says";
constexpr Sinusoidal sines_first{.layout = WaveLayout::concatenated};
constexpr std::string_view joint =
    "the network that writes the text has no position, and is not explained";

// clang-format off: one row a family, as dense as it can be read.
constexpr Family distances[] = {
    {.types = "inkling_text", .context = 128 * K, .sizes = {6144, 66, 64, 8, 128},
     .layers = {.types = true, .pattern = {mark_inkling}, .every = 6},
     .window = {.size = 512, .keys = "sliding_window_size sliding_window"},
     .heads = {.local_kv_key = "swa_num_key_value_heads", .local_kv = 16},
     .attention = {.schemes = inkling_profiles, .logits = inkling_logits},
     .remark = short_convolutions},
    {.types = "inkling2_text", .context = 1024 * K, .sizes = {4608, 48, 48, 8, 128},
     .layers = {.types = true, .pattern = {mark_inkling}, .every = 6},
     .window = {.size = 1024, .keys = "sliding_window_size sliding_window"},
     .heads = {.local_kv_key = "swa_num_key_value_heads", .local_kv = 8},
     .attention = {.schemes = inkling_profiles, .logits = inkling2_logits, .sinks = Sinks::all},
     .remark = short_convolutions},
    {.types = "inkling2_loop_text", .context = 1024 * K, .sizes = {2304, 24, 24, 8, 128},
     .layers = {.types = true, .pattern = {mark_inkling}, .every = 6, .passes = inkling_passes},
     .window = {.size = 1024, .keys = "sliding_window_size sliding_window"},
     .heads = {.local_kv_key = "swa_num_key_value_heads", .local_kv = 8},
     .attention = {.schemes = inkling_profiles, .logits = inkling2_loop_logits,
       .sinks = Sinks::all}, .remark = short_convolutions},
    {.types = "wavlm", .read = read_gated, .sizes = {768, 12, 12}, .causal = false,
     .remark = "a convolution over neighbours gives tokens positions besides, which no plan says"},

    // --- Transformer-XL's terms ------------------------------------------------------------------
    {.types = "xlnet", .read = read_xlnet, .sizes = {1024, 24, 16}, .causal = false,
     .added = {.waves = sines_first},
     .remark = "whether two tokens are of one segment is a third product, which is not in the plan"},
    {.types = "parakeet_encoder", .read = read_conformer, .context = 5000, .sizes = {1024, 24, 8},
     .causal = false},
    {.types = "nemotron_asr_streaming_encoder", .read = read_conformer, .context = 5000,
     .sizes = {1024, 24, 8}, .causal = false,
     .remark = "a frame sees its chunk of frames and some chunks before, which the plan does not say"},
    {.types = "seamless_m4t", .read = read_seamless, .context = 1024, .sizes = {1024, 24, 16},
     .other_keys = "max_source_positions", .causal = false,
     .added = {.waves = fairseq, .scale_embedding = true}, .remark = units},
    {.types = "seamless_m4t_v2", .read = read_seamless, .context = 4096, .sizes = {1024, 24, 16},
     .other_keys = "max_source_positions", .causal = false,
     .added = {.waves = fairseq, .scale_embedding = true},
     .bias = {.clipped_left = 64, .clipped_right = 8}, .remark = units},
    {.types = "parakeet_ctc", .read = read_parts},
    {.types = "parakeet_rnnt parakeet_tdt nemotron_asr_streaming nemotron3_5_asr",
     .read = read_parts, .remark = joint},
    {.types = "wav2vec2-conformer", .read = read_conformer, .sizes = {768, 12, 12},
     .causal = false},
    {.types = "cohere_asr", .read = read_parts, .context = 1024, .sizes = {1024, 8, 8}},
    {.types = "fastspeech2_conformer fastspeech2_conformer_with_hifigan",
     .read = read_two_conformers, .context = 5000, .sizes = {384, 4, 2}},

    // --- clipped ---------------------------------------------------------------------------------
    {.types = "wav2vec2-bert", .read = read_conformer, .sizes = {1024, 24, 16}, .causal = false,
     .bias = {.clipped_left = 64, .clipped_right = 8}},
    {.types = "vits", .read = read_vits, .sizes = {192, 6, 2}, .causal = false,
     .remark = "vits: between its layers, and behind them, convolutions know the order of "
               "neighbours, which no plan says"},
    {.types = "granite_speech_encoder granite_speech_plus_encoder", .read = read_blocks,
     .context = 512, .sizes = {1024, 10, 8}, .causal = false, .window = {.size = 200}},
    {.types = "granite_speech5_encoder", .read = read_blocks, .context = 512,
     .sizes = {1024, 16, 8}, .causal = false, .window = {.size = 128},
     .remark = "layers that subsample halve the frames, and the distances of those behind them"},
    {.types = "granite_speech5_ctc", .read = read_parts},
    {.types = "gemma3n_audio", .read = read_gemma_sound, .sizes = {1536, 12, 8}},
    {.types = "gemma4_audio", .read = read_gemma_sound, .sizes = {1024, 12, 8}},
    {.types = "phi4_multimodal_audio", .read = read_clipped, .sizes = {1024, 24, 16},
     .causal = false, .window = {.size = 500}},

    // --- pictures alone --------------------------------------------------------------------------
    {.types = "sam sam_hq slanext sam2", .read = read_vision_alone,
     .remark = "what stands behind the tower is not explained"},
    {.types = "sam3_tracker sam3_tracker_video sam2_video", .read = read_vision_alone,
     .remark = "behind the tower stand a prompt encoder, a mask decoder and, of a video, a memory "
               "whose keys rotate by rows and columns, which are not explained"},
};
// clang-format on

}  // namespace

std::span<const Family> rows_distances() { return distances; }

}  // namespace posenc::detail
