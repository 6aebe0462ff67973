// Encoder and decoder with vectors added at both inputs: BART, Marian, Whisper and the like.
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

struct Stacks {
  ProvenanceList notes;
  ModelDims encoder, decoder;
};

Stacks read_stacks(const Section& config, const Family& family) {
  Stacks both;
  ProvenanceList& notes = both.notes;
  const std::int64_t width =
      config.size(notes, "width", "d_model hidden_size", family.sizes.width, most_width);
  const auto stack = [&](std::string_view prefix, std::int64_t sources) {
    const std::string side(prefix);
    ModelDims s;
    s.width = width;
    s.layers =
        config.size(notes, side + " layers", side + "_layers", family.sizes.layers, most_layers);
    s.heads = s.kv_heads = config.size(notes, side + " heads", side + "_attention_heads",
                                       family.sizes.heads, most_heads);
    s.head_dim = head_dim_of(config, notes, width, s.heads);
    s.context = sources;
    return s;
  };
  // Models of time series have sinusoids of any length and say none.
  constexpr std::string_view lengths = "max_position_embeddings max_target_positions";
  const std::int64_t context =
      family.context == 0 && !config.has(lengths)
          ? 0
          : config.size(notes, "context", lengths, family.context, most_length);
  both.encoder = stack("encoder", context);
  both.decoder = stack("decoder", context);
  return both;
}

void add_stacks(const Section& config, const Stacks& both, const Scheme& encoder,
                const Scheme& decoder) {
  const bool only_decoder =
      config.flag("is_decoder") && config.flag("is_decoder")->value &&
      !(config.flag("is_encoder_decoder") && config.flag("is_encoder_decoder")->value);
  LayerGroup target = uniform_group(Stack::decoder, both.decoder, true, both.notes);
  target.schemes = {decoder};
  if (!only_decoder) {
    LayerGroup source = uniform_group(Stack::encoder, both.encoder, false, both.notes);
    source.schemes = {encoder};
    add_group(config.reading, std::move(source), both.decoder.context);
  }
  add_group(config.reading, std::move(target), both.decoder.context);
}

bool scales(const Section& config, const Family& family, ProvenanceList& notes) {
  return config.flag_or(notes, "scale_embedding", "scale_embedding", family.added.scale_embedding);
}

}  // namespace

namespace {

// Learned tables; BART's have two rows more than positions and start at row 2. The encoder has
// `source` positions.
void add_tables(const Section& config, const Family& family, Stacks both, std::int64_t source,
                bool scale) {
  const auto table = [&](std::int64_t positions) {
    return Learned{.rows = positions + family.added.row_offset,
                   .row_offset = family.added.row_offset,
                   .scale_embedding = scale};
  };
  if (family.added.row_offset > 0) {
    note(both.notes, "row_offset", std::to_string(family.added.row_offset), Origin::family,
         "rule of " + config.reading.family);
  }
  add_stacks(config, both, table(source), table(both.decoder.context));
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
}

}  // namespace

void read_bart(const Section& config, const Family& family) {
  Stacks both = read_stacks(config, family);
  const bool scale = scales(config, family, both.notes);
  add_tables(config, family, both, both.encoder.context, scale);
}

// LED gives each side its own length.
void read_led(const Section& config, const Family& family) {
  Stacks both = read_stacks(config, family);
  const bool scale = scales(config, family, both.notes);
  const std::int64_t source = config.size(both.notes, "encoder context",
                                          "max_encoder_position_embeddings", 16384, most_length);
  both.decoder.context = config.size(both.notes, "decoder context",
                                     "max_decoder_position_embeddings", 1024, most_length);
  add_tables(config, family, std::move(both), source, scale);
}

// Marian and Pegasus: the paper's frequencies, all sines, then all cosines.
void read_marian(const Section& config, const Family& family) {
  Stacks both = read_stacks(config, family);
  Sinusoidal waves = family.added.waves;
  waves.scale_embedding = scales(config, family, both.notes);
  note(both.notes, "layout", name(waves.layout), Origin::family,
       "rule of " + config.reading.family);
  if (both.decoder.context > 0)
    note(both.notes, "rows", std::to_string(both.decoder.context), Origin::derived,
         "max_position_embeddings");
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
  add_stacks(config, both, waves, waves);
}

// fairseq's sinusoids: frequencies to both ends, a zero row for padding, positions after it.
void read_m2m(const Section& config, const Family& family) {
  Stacks both = read_stacks(config, family);
  const auto pad = config.integer("pad_token_id", Range{.least = 0, .most = 1 << 24});
  const std::int64_t padding = pad ? pad->value : 1;
  Sinusoidal waves = family.added.waves;
  waves.row_offset = padding + 1;
  waves.padding_idx = padding;
  waves.scale_embedding = scales(config, family, both.notes);
  note(both.notes, "row_offset", std::to_string(padding + 1), pad ? Origin::file : Origin::family,
       "padding_idx + 1");
  add_stacks(config, both, waves, waves);
}

void read_whisper(const Section& config, const Family& family) {
  Stacks both = read_stacks(config, family);
  const std::int64_t source =
      config.size(both.notes, "rows", "max_source_positions", 1500, most_length);
  both.encoder.context = source;
  const bool scale = scales(config, family, both.notes);
  const Sinusoidal& waves =
      family.added.waves;  // the embedding is audio features and is never scaled
  note(both.notes, "layout", name(waves.layout), Origin::family,
       "rule of " + config.reading.family);
  add_stacks(config, both, waves, Learned{.rows = both.decoder.context, .scale_embedding = scale});
}

}  // namespace posenc::detail
