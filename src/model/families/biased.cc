// Models that add a function of the distance to the logits: ALiBi (BLOOM, MPT, Falcon-RW,
// Baichuan-13B, Jais), T5's buckets, and DeBERTa, whose vectors by distance meet queries and keys.
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/family.h"

namespace posenc::detail {
namespace {

void add_alibi(const Section& config, const ModelDims& dims, ProvenanceList notes,
               const Alibi& alibi, const Logits& logits = {}, std::string_view logits_note = {}) {
  LayerGroup group = uniform_group(Stack::text, dims, true, std::move(notes));
  group.schemes = {alibi};
  group.logits = logits;
  group.logits_note = logits_note;
  add_group(config.reading, std::move(group), dims.context);
}

}  // namespace

void read_bloom(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  note(notes, "scheme", "alibi", Origin::family, "the whole family has ALiBi; no key says so");
  add_alibi(config, dims, std::move(notes), Alibi{});
}

void read_mpt(const Section& config, const Family& family) {
  ProvenanceList notes;
  ModelDims dims = read_dims(config, family, notes);
  const Section attention = config.section("attn_config");
  if (const auto rope = attention.flag("rope"); rope && rope->value) {
    config.reading.refuse(rope->key, "is not covered for mpt", "true",
                          "give a config.json of a rotary family");
  }
  if (const auto kv = attention.integer(
          "kv_n_heads", Range{.least = 1, .most = static_cast<double>(dims.heads)})) {
    dims.kv_heads = kv->value;
    note(notes, "kv_heads", std::to_string(kv->value), Origin::file, kv->key);
  } else if (const auto type = attention.word("attn_type");
             type && type->value == "multiquery_attention") {
    dims.kv_heads = 1;
    note(notes, "kv_heads", "1", Origin::file, type->key);
  }
  if (dims.kv_heads > 0 && dims.heads % dims.kv_heads != 0) {
    config.reading.refuse(attention.where("kv_n_heads"), "must divide the query heads",
                          std::to_string(dims.kv_heads), "correct it");
  }
  Logits logits;
  std::string logits_note;
  if (const auto scale = attention.number("softmax_scale", positive)) {
    logits.multiplier = scale->value * std::sqrt(static_cast<double>(dims.head_dim));
    logits_note = "softmax_scale " + number_text(scale->value);
  }
  const bool alibi = attention.flag_or(notes, "alibi", "alibi", true);
  if (alibi) {
    const auto most = attention.number("alibi_bias_max", positive);
    note(notes, "alibi_bias_max", number_text(most ? most->value : 8),
         most ? Origin::file : Origin::family,
         most ? most->key : "default of " + config.reading.family);
    add_alibi(config, dims, std::move(notes), Alibi{.alibi_bias_max = most ? most->value : 8},
              logits, logits_note);
    return;
  }
  LayerGroup group = uniform_group(Stack::text, dims, true, std::move(notes));
  const auto learned = config.flag("learned_pos_emb");
  if (!learned || learned->value)
    group.schemes = {Learned{.rows = dims.context}};
  else
    group.schemes = {NoPe{}};
  group.logits = logits;
  group.logits_note = logits_note;
  add_group(config.reading, std::move(group), dims.context);
}

// Falcon rotates, unless alibi is true: then slopes are bfloat16 and meet q·k before its scale.
void read_falcon(const Section& config, const Family& family) {
  const auto alibi = config.flag("alibi");
  ProvenanceList notes;
  Family filled = family;
  const bool grouped =
      config.flag("new_decoder_architecture") && config.flag("new_decoder_architecture")->value;
  if (!grouped && !config.has("multi_query"))
    filled.sizes.kv_heads = 1;  // the class default is multi-query
  if (!alibi || !alibi->value) return read_decoder(config, filled);
  const ModelDims dims = read_dims(config, filled, notes);
  note(notes, "scheme", "alibi", Origin::file, alibi->key);
  add_alibi(config, dims, std::move(notes),
            Alibi{.rounding = SlopeRounding::bfloat16, .before_scale = true});
}

// The 7B rotates, the 13B has ALiBi, and no key tells them apart: their own code is two files.
void read_baichuan(const Section& config, const Family& family) {
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  if (dims.width == 0) return;
  if (dims.width != 5120) {
    config.reading.warn("baichuan_by_size",
                        "baichuan: width " + std::to_string(dims.width) +
                            " is taken for the 7B, which rotates; the 13B (5120) has ALiBi");
    return read_decoder(config, family);
  }
  config.reading.warn("baichuan_by_size",
                      "baichuan: width 5120 is taken for the 13B, which has ALiBi; the 7B rotates");
  note(notes, "scheme", "alibi", Origin::family, "the 13B, known by its width 5120");
  add_alibi(config, dims, std::move(notes), Alibi{});
}

void read_jais(const Section& config, const Family& family) {
  const auto type = config.word("position_embedding_type");
  if (type && type->value != "alibi") return read_learned(config, family);
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  Logits logits;
  std::string logits_note;
  if (const auto mup = config.flag("scale_qk_dot_by_d mup_scale_qk_dot_by_d");
      mup && mup->value && dims.head_dim > 0) {
    logits.multiplier = 1 / std::sqrt(static_cast<double>(dims.head_dim));
    logits_note = "q·k is divided by head_dim, not by its root";
  }
  add_alibi(config, dims, std::move(notes), Alibi{}, logits, logits_note);
}

// Encoder and decoder each own one table in their first layer; no 1/√d_kv.
namespace {

// UDOP's: middles of boxes in hundredths of the page. The class has its own numbers of buckets,
// whatever T5's keys say.
AxisBuckets page_buckets(const Section& config) {
  constexpr std::string_view key = "relative_bias_args", usual[] = {"1d", "horizontal", "vertical"};
  const Json* const said = config.raw(key);
  const auto* const list = said != nullptr ? said->get<Json::Array>() : nullptr;
  bool as_usual = said == nullptr || said->is_null() || (list != nullptr && list->size() == 3);
  for (std::size_t n = 0; as_usual && list != nullptr && n < list->size(); ++n) {
    const auto* const one = (*list)[n].get<Json::Object>();
    const Json* const type = one != nullptr && one->size() == 1 ? (*list)[n].find("type") : nullptr;
    const auto* const word = type != nullptr ? type->get<std::string>() : nullptr;
    as_usual = word != nullptr && *word == usual[n];
  }
  if (!as_usual && !config.reading.error)
    config.reading.refuse(config.where(key),
                          "must be the types 1d, horizontal and vertical, and nothing else",
                          said->text(), "no released file has others");
  return {.axis_num_buckets = 32, .axis_max_distance = 100, .axis_unit = 20, .divided = false};
}

}  // namespace

void read_t5(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  ModelDims dims;
  dims.width = config.size(notes, "width", "d_model hidden_size", family.sizes.width, most_width);
  dims.heads = dims.kv_heads =
      config.size(notes, "heads", "num_heads", family.sizes.heads, most_heads);
  dims.head_dim = config.size(notes, "head_dim", "d_kv", family.sizes.head_dim, most_head_dim);
  const std::int64_t encoder =
      config.size(notes, "layers", "num_layers", family.sizes.layers, most_layers);
  const auto said = config.integer("num_decoder_layers",
                                   Range{.least = 1, .most = static_cast<double>(most_layers)});
  const std::int64_t decoder = said ? said->value : encoder;
  note(notes, "decoder layers", std::to_string(decoder), said ? Origin::file : Origin::derived,
       said ? said->key : "as many as the encoder's");
  const std::int64_t buckets =
      config.size(notes, "num_buckets", "relative_attention_num_buckets", 32, 65536);
  if (!reading.error && buckets < 4) {
    reading.refuse(config.where("relative_attention_num_buckets"),
                   "must be at least 4: two directions, each with near and far distances",
                   std::to_string(buckets), "correct it");
  }
  const std::int64_t distance =
      config.size(notes, "max_distance", "relative_attention_max_distance", 128, 1 << 20);
  note(notes, "table",
       family.bias.table_each_layer ? "one for each layer" : "one for all layers of a stack",
       Origin::family, "rule of " + reading.family);
  const auto context = config.integer("n_positions", at_least_one);
  for (const Stack stack : {Stack::encoder, Stack::decoder}) {
    if (!family.side.empty() && family.side != name(stack)) continue;  // Pix2Struct's decoder
    dims.layers = stack == Stack::encoder ? encoder : decoder;
    LayerGroup group = uniform_group(stack, dims, stack == Stack::decoder, notes);
    if (stack == Stack::encoder && family.bias.page != PageBias::none)
      group.schemes = {page_buckets(config)};
    else
      group.schemes = {T5{.num_buckets = buckets,
                          .max_distance = distance,
                          .bidirectional = stack == Stack::encoder}};
    group.logits = {.multiplier = std::sqrt(static_cast<double>(dims.head_dim))};
    group.logits_note = "q·k is not divided by √d_kv";
    add_group(reading, std::move(group), context ? context->value : 0);
  }
  if (!family.remark.empty()) reading.warn("family_remark", family.remark);
}

void read_deberta(const Section& config, const Family& family) {
  Reading& reading = config.reading;
  ProvenanceList notes;
  const ModelDims dims = read_dims(config, family, notes);
  LayerGroup group = uniform_group(Stack::encoder, dims, false, std::move(notes));
  const auto relative = config.flag("relative_attention");
  const auto biased = config.flag("position_biased_input");
  if (relative && relative->value) {
    Deberta scheme;
    const auto buckets = config.integer("position_buckets", Range{.least = -1, .most = 65536});
    const auto most = config.integer("max_relative_positions", Range{.least = -1, .most = 1 << 20});
    scheme.position_buckets = buckets ? buckets->value : -1;
    scheme.max_relative_positions = most && most->value > 0 ? most->value : dims.context;
    const Json* kinds = config.raw("pos_att_type");
    std::string list;
    if (const auto* word = kinds ? kinds->get<std::string>() : nullptr) list = *word;
    if (kinds && kinds->get<Json::Array>()) {
      if (const auto words = config.words("pos_att_type")) {
        for (const std::string& word : words->value) list += word + "|";
      }
    }
    scheme.c2p = list.contains("c2p");
    scheme.p2c = list.contains("p2c");
    note(group.provenance, "pos_att_type", list.empty() ? "none" : list, Origin::file,
         config.where("pos_att_type"));
    group.schemes.push_back(std::move(scheme));
  }
  if (!biased || biased->value) group.schemes.push_back(Learned{.rows = dims.context});
  if (group.schemes.empty()) group.schemes = {NoPe{}};
  add_group(reading, std::move(group), dims.context);
}

}  // namespace posenc::detail
