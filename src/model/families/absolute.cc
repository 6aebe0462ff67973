// Models that add vectors to the token embedding (GPT-2, BERT, OPT and their relatives), and those
// that replaced the added table by another scheme under the same keys (BERT's relative_key, Jina's
// ALiBi).
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

// Where the first token stands in the table: RoBERTa's rows start after the padding token's.
std::int64_t row_offset(const Section& config, const Family& family, ProvenanceList& notes) {
  if (family.added.row_offset == 0) return 0;
  std::int64_t offset = family.added.row_offset;
  if (!family.added.rows_beyond) {
    const auto pad = config.integer("pad_token_id", Range{.least = 0, .most = 1 << 24});
    if (pad) offset = pad->value + 1;
    note(notes, "row_offset", std::to_string(offset), pad ? Origin::file : Origin::family,
         "padding_idx + 1; padding itself reads row " + std::to_string(offset - 1));
  } else {
    note(notes, "row_offset", std::to_string(offset), Origin::family,
         "rule of " + config.reading.family);
  }
  return offset;
}

struct Table {
  Learned learned;
  std::int64_t usable = 0;  // positions that have a row
};

Table learned_table(const Section& config, const Family& family, const ModelDims& dims,
                    ProvenanceList& notes) {
  Reading& reading = config.reading;
  Table table;
  table.learned.row_offset = row_offset(config, family, notes);
  if (dims.context == 0 && !reading.error) {
    reading.refuse(config.where("max_position_embeddings"), "is missing", "",
                   "add it: the rows of the table");
  }
  table.learned.rows = dims.context + (family.added.rows_beyond ? table.learned.row_offset : 0);
  table.usable = table.learned.rows - table.learned.row_offset;
  if (table.usable < 1 && !reading.error) {
    reading.refuse(config.where("max_position_embeddings"),
                   "must leave a row beyond the offset " + std::to_string(table.learned.row_offset),
                   std::to_string(dims.context), "correct the file");
  }
  // RoBERTa's rows before the offset hold no position: the context is shorter than the file says.
  if (table.learned.rows == dims.context && table.learned.row_offset > 0) {
    for (Provenance& row : notes) {
      if (row.field != "context") continue;
      row = {"context", std::to_string(table.usable), Origin::derived,
             "max_position_embeddings − row_offset"};
    }
  }
  const auto scale = config.flag("scale_embedding");
  table.learned.scale_embedding = scale ? scale->value : family.added.scale_embedding;
  note(notes, "rows", std::to_string(table.learned.rows), Origin::derived,
       family.added.rows_beyond
           ? "max_position_embeddings + " + std::to_string(table.learned.row_offset)
           : "max_position_embeddings");
  return table;
}

// Electra and ALBERT add positions in a narrower space, before it is widened.
void narrow(const Section& config, const Family& family, LayerGroup& group) {
  if (family.added.table_width.empty()) return;
  const auto width = config.integer(family.added.table_width,
                                    Range{.least = 1, .most = static_cast<double>(most_width)});
  group.geometry.width = width ? width->value : 128;
  note(group.provenance, "width", std::to_string(group.geometry.width),
       width ? Origin::file : Origin::family,
       width ? width->key + ": the space the table is in" : "default of " + config.reading.family);
}

bool is_causal(const Section& config, const Family& family) {
  const auto decoder = config.flag("is_decoder");
  return decoder ? decoder->value : family.causal;
}

LayerGroup start(const Section& config, const Family& family, const ModelDims& dims,
                 ProvenanceList notes) {
  const bool causal = is_causal(config, family);
  return uniform_group(causal ? Stack::text : Stack::encoder, dims, causal, std::move(notes));
}

// A window, half of it on each side; a list gives every layer its own.
void add_local(const Section& config, const Family& family, LayerGroup group,
               std::int64_t context) {
  Reading& reading = config.reading;
  std::vector<std::int64_t> windows;
  const Range range{.least = 1, .most = static_cast<double>(most_length)};
  const Json* said = config.raw("attention_window");
  if (said && said->get<Json::Array>()) {
    if (const auto list = config.integers("attention_window", range)) windows = list->value;
  } else {
    const auto one = config.integer("attention_window", range);
    windows.assign(group.layers.size(), one ? one->value : family.window.size);
  }
  if (windows.size() != group.layers.size() && !reading.error) {
    reading.refuse(
        config.where("attention_window"),
        "must have one entry for each of " + std::to_string(group.layers.size()) + " layers",
        std::to_string(windows.size()) + " entries", "correct it");
  }
  if (reading.error) return;
  note(group.provenance, "window", said ? said->text() : std::to_string(family.window.size),
       said ? Origin::file : Origin::family,
       (said ? config.where("attention_window") : "default of " + reading.family) +
           ", half of it on each side");
  std::vector<std::int64_t> kinds;  // in order of their first layer
  for (const std::int64_t window : windows) {
    if (std::ranges::find(kinds, window) == kinds.end()) kinds.push_back(window);
  }
  for (const std::int64_t window : kinds) {
    LayerGroup same = group;
    same.window = window;
    same.label = "sliding attention";
    std::erase_if(same.layers, [&](std::int64_t layer) {
      return windows[static_cast<std::size_t>(layer)] != window;
    });
    add_group(reading, std::move(same), context);
  }
}

struct Group {
  LayerGroup group;
  std::int64_t context;
};

// All layers as one group, by the kind of position that the file names.
Group whole_group(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto type = config.word("position_embedding_type");
  const std::string kind = type ? type->value : "absolute";
  LayerGroup group = start(config, family, dims, std::move(notes));
  if (type) note(group.provenance, "position_embedding_type", kind, Origin::file, type->key);
  std::int64_t context = dims.context;
  if (kind == "absolute" || kind == "learned" || kind == "learned_absolute") {
    const Table table = learned_table(config, family, dims, group.provenance);
    group.schemes = {table.learned};
    context = table.usable;
    narrow(config, family, group);
  } else if (kind == "relative_key" || kind == "relative_key_query") {
    // No vector is added: E[query − key + max − 1] meets the query (and the key) before the scale.
    group.schemes = {Shaw{.max_distance = dims.context - 1,
                          .use_values = false,
                          .use_keys = kind == "relative_key_query",
                          .row_order = RowOrder::query_minus_key}};
  } else if (kind == "alibi") {
    group.schemes = {Alibi{.symmetric = !group.causal}};  // Jina's BERT
  } else if (!reading.error) {
    reading.refuse(type->key, "is not a known kind", "'" + kind + "'",
                   "one of: absolute relative_key relative_key_query alibi");
  }
  if (family.attention.logits) family.attention.logits(config, group);
  if (!family.remark.empty()) reading.warn("family_remark", family.remark);
  return {std::move(group), context};
}

}  // namespace

void read_learned(const Section& config, const Family& family) {
  auto [group, context] = whole_group(config, family);
  add_group(config.reading, std::move(group), context);
}

// LayoutLM's learned rows, and its biases of the text's order and of the page.
void read_page(const Section& config, const Family& family) {
  auto [group, context] = whole_group(config, family);
  const auto has = [&](std::string_view key) {
    return config.flag_or(group.provenance, key, key, true);
  };
  const bool text = has("has_relative_attention_bias"), boxes = has("has_spatial_attention_bias");
  // v3 adds those of the page beside the text's alone, v2 either.
  if (boxes && !text && family.bias.page == PageBias::after_the_scale && !config.reading.error)
    config.reading.refuse(config.where("has_relative_attention_bias"),
                          "is not covered: biases of the page without the text's", "false",
                          "no released file has it");
  if (text) {
    const auto size = [&](std::string_view key, std::int64_t otherwise) {
      return config.size(group.provenance, key, key, otherwise, 65536);
    };
    group.schemes.push_back(AxisBuckets{.num_buckets = size("rel_pos_bins", 32),
                                        .max_distance = size("max_rel_pos", 128),
                                        .axes = boxes ? 2 : 0,
                                        .axis_num_buckets = size("rel_2d_pos_bins", 64),
                                        .axis_max_distance = size("max_rel_2d_pos", 256),
                                        .divided = family.bias.page == PageBias::with_the_product});
  }
  add_group(config.reading, std::move(group), context);
}

void read_longformer(const Section& config, const Family& family) {
  auto [group, context] = whole_group(config, family);
  add_local(config, family, std::move(group), context);
}

// Mistral's GPT-2s divide q·k by the layer's number as well, so that no two layers are alike.
void read_gpt2(const Section& config, const Family& family) {
  auto [group, context] = whole_group(config, family);
  const auto inverse = config.flag("scale_attn_by_inverse_layer_idx");
  if (!inverse || !inverse->value) return add_group(config.reading, std::move(group), context);
  note(group.provenance, "scale_attn_by_inverse_layer_idx", "true", Origin::file, inverse->key);
  if (!group.logits_note.empty()) group.logits_note += ", ";
  for (const std::int64_t layer : group.layers) {
    LayerGroup one = group;
    one.layers = {layer};
    one.label = "layer " + std::to_string(layer);
    one.logits.multiplier /= static_cast<double>(layer + 1);
    one.logits_note += "scale_attn_by_inverse_layer_idx: q·k / " + std::to_string(layer + 1);
    add_group(config.reading, std::move(one), context);
  }
}

// Sinusoids of the row's layout.
void read_waves(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto scale = config.flag("scale_embedding");
  Sinusoidal waves = family.added.waves;
  waves.scale_embedding =
      scale && !family.added.scale_unread ? scale->value : family.added.scale_embedding;
  if (scale && scale->value && family.added.scale_unread)
    config.reading.warn("unread_key", scale->key + " is kept and never used");
  note(notes, "layout", name(waves.layout), Origin::family, "rule of " + config.reading.family);
  LayerGroup group = start(config, family, dims, std::move(notes));
  group.schemes = {waves};
  if (family.attention.logits) family.attention.logits(config, group);
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
  add_group(config.reading, std::move(group), dims.context);
}

// AST cuts a spectrogram into overlapping patches, two tokens in front: a learned row for each.
void read_spectrogram(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const auto size = [&](std::string_view key, std::int64_t otherwise) {
    return config.size(notes, key, key, otherwise, most_head_dim);
  };
  const std::int64_t patch = size("patch_size", 16), bins = size("num_mel_bins", 128),
                     frames = size("max_length", 1024);
  const std::int64_t high = (bins - patch) / size("frequency_stride", 10) + 1,
                     wide = (frames - patch) / size("time_stride", 10) + 1;
  if (config.reading.error) return;
  if (bins < patch || frames < patch) {
    config.reading.refuse(config.where("patch_size"), "must not exceed the spectrogram",
                          std::to_string(patch), "correct the file");
    return;
  }
  note(notes, "rows", std::to_string(high * wide + 2), Origin::derived,
       std::to_string(high) + " · " + std::to_string(wide) + " patches + 2");
  LayerGroup group = start(config, family, dims, std::move(notes));
  group.schemes = {Learned{.rows = high * wide + 2}};
  if (!family.remark.empty()) config.reading.warn("family_remark", family.remark);
  add_group(config.reading, std::move(group), high * wide + 2);
}

// Frozen sinusoids where the file says so; a table that training has begun with sinusoids is as
// learned as any other.
void read_waves_if_said(const Section& config, const Family& family) {
  const auto frozen = config.flag("sinusoidal_pos_embds sinusoidal_embeddings");
  const auto learned = config.flag("use_learned_position_embeddings");  // TrOCR
  const bool waves = (frozen && frozen->value) || (learned && !learned->value);
  return waves ? read_waves(config, family) : read_learned(config, family);
}

namespace {

// [[["global", "local"], 12]]: the words again and again, so many times.
std::vector<std::string> neo_layers(const Section& config, std::int64_t layers) {
  std::vector<std::string> kinds;
  const Json* types = config.raw("attention_types");
  if (types && types->get<Json::Array>()) {
    for (const Json& entry : *types->get<Json::Array>()) {
      const auto* pair = entry.get<Json::Array>();
      const auto* words = pair && pair->size() == 2 ? (*pair)[0].get<Json::Array>() : nullptr;
      const auto* count = words ? (*pair)[1].get<std::int64_t>() : nullptr;
      for (std::int64_t i = 0; count && i < *count && std::ssize(kinds) <= layers; ++i) {
        for (const Json& word : *words) {
          if (const auto* text = word.get<std::string>()) kinds.push_back(*text);
        }
        if (words->empty()) break;
      }
    }
  } else if (const auto said = config.words("attention_layers")) {
    kinds = said->value;
  } else {
    for (std::int64_t i = 0; i < layers; ++i) kinds.push_back(i % 2 == 0 ? "global" : "local");
  }
  if (std::ssize(kinds) != layers && !config.reading.error) {
    config.reading.refuse(config.where("attention_types"),
                          "must describe " + std::to_string(layers) + " layers",
                          std::to_string(kinds.size()), "correct it or num_layers");
  }
  return kinds;
}

}  // namespace

void read_gpt_neo(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const Table table = learned_table(config, family, dims, notes);
  const std::vector<std::string> kinds = neo_layers(config, dims.layers);
  const auto window = config.integer("window_size", at_least_one);
  if (config.reading.error) return;
  for (const std::string_view kind : {"global", "local"}) {
    LayerGroup group = uniform_group(Stack::text, dims, true, notes);
    std::erase_if(group.layers, [&](std::int64_t layer) {
      return kinds[static_cast<std::size_t>(layer)] != kind;
    });
    if (group.layers.empty()) continue;
    group.label = std::string(kind) + " attention";
    if (kind == "local") group.window = window ? window->value : 256;
    group.schemes = {table.learned};
    group.logits = {.multiplier = std::sqrt(static_cast<double>(dims.head_dim))};
    group.logits_note = "q·k is not divided by √head_dim";
    add_group(config.reading, std::move(group), table.usable);
  }
}

// MPNet: a table like RoBERTa's, and T5's bias in every layer.
void read_mpnet(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  const Table table = learned_table(config, family, dims, notes);
  const auto buckets =
      config.integer("relative_attention_num_buckets", Range{.least = 4, .most = 65536});
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  group.schemes = {table.learned,
                   T5{.num_buckets = buckets ? buckets->value : 32, .bidirectional = true}};
  add_group(config.reading, std::move(group), table.usable);
}

// ESM-1b has a table, ESM-2 rotates (halves, base 10000).
void read_esm(const Section& config, const Family& family) {
  const auto type = config.word("position_embedding_type");
  if (!type || type->value != "rotary") return read_learned(config, family);
  Family rotary = family;
  rotary.rope.theta = 10000;
  rotary.rope.theta_keys = {};
  rotary.rope.unread_parameters = "rope_scaling rope_parameters";
  read_decoder(config, rotary);
}

}  // namespace posenc::detail
