// Families with multi-head latent attention: a part of each head rotates, its last channels.
#include <algorithm>
#include <string>

#include "src/model/families/layer_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// Kimi Linear's checkpoints count the layers that attend from 1, in a section of their own.
void full_layers_of_kimi(LayerDraft& layers) {
  const Section linear = layers.config.section("linear_attn_config");
  const auto full = linear.integers("full_attn_layers", at_least_one);
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const bool attends = full ? std::ranges::find(full->value, i + 1) != full->value.end()
                              : i > 0 && i % layers.family.layers.every == 0;
    if (!attends) layers.at(i).type = layers.family.layers.other;
  }
  layers.note_choice("layer_types", "full attention in some layers", full);
}

// Which layers have an indexer of their own, where others take what a layer before has picked: a
// list, a word with a letter for each layer (F, S), or each index_topk_freq-th behind the first
// index_skip_topk_offset.
void pickers(LayerDraft& layers) {
  const Section& config = layers.config;
  const auto types = config.words("indexer_types");
  const Json* const raw = config.raw("index_topk_pattern");
  const bool spelled = raw && raw->get<std::string>();
  const auto letters = spelled ? config.word("index_topk_pattern") : std::nullopt;
  const auto words = types || spelled ? types : config.words("index_topk_pattern");
  if (config.reading.error) return;
  if (words || letters) {
    const std::string& key = words ? words->key : letters->key;
    if (!layers.covers_layers(key, words ? std::ssize(words->value) : std::ssize(letters->value),
                              words ? "entry" : "letter"))
      return;
    for (std::size_t i = 0; i < layers.kinds.size(); ++i)
      layers.kinds[i].picks = words ? words->value[i] != "shared" : letters->value[i] != 'S';
    return note(layers.notes, "indexer", "where it is full", Origin::file, key);
  }
  const auto frequency = config.integer("index_topk_freq", at_least_one);
  const auto offset = config.integer("index_skip_topk_offset", not_negative);
  if (!frequency || frequency->value == 1) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).picks =
        std::max<std::int64_t>(i - (offset ? offset->value : 2) + 1, 0) % frequency->value == 0;
  note(layers.notes, "indexer", "in each " + std::to_string(frequency->value) + "th layer",
       Origin::file, frequency->key);
}

// HY V4: the first layer, and from the second on each fourth.
void pickers_each_fourth(LayerDraft& layers) {
  if (layers.config.has("indexer_types")) return pickers(layers);
  for (std::int64_t i = 0; i < layers.count(); ++i) layers.at(i).picks = i == 0 || (i - 1) % 4 == 0;
  note(layers.notes, "indexer", "the first layer, and from the second on each fourth",
       Origin::family, "rule of " + layers.config.reading.family);
}

// DeepSeek V3.2 and A.X K2: halves, where the heads pair neighbours.
constexpr FamilyIndexer indexed{.most = 2048, .width = 128, .heads = 64, .pairing = halves};
constexpr FamilyIndexer indexed_by_few{.most = 2048, .width = 128, .heads = 16, .pairing = halves};
constexpr FamilyIndexer indexed_by_some{.most = 2048, .width = 128, .heads = 32, .rule = pickers};
constexpr FamilyIndexer indexed_with_temperature{
    .most = 2048, .width = 128, .heads = 32, .learned_temperature = true, .rule = pickers};
// HY V4: the last channels rotate.
constexpr FamilyIndexer indexed_by_a_fourth{.most = 2048,
                                            .width = 128,
                                            .heads = 16,
                                            .slice = SliceEnd::trailing,
                                            .rule = pickers_each_fourth};
constexpr FamilyIndexer indexed_beside_pictures{.most = 2048,
                                                .width = 128,
                                                .heads = 32,
                                                .slice = SliceEnd::trailing,
                                                .rule = pickers_each_fourth};
constexpr FamilyIndexer indexed_in_pools{.most = 2048,
                                         .width = 128,
                                         .heads = 32,
                                         .block_keys = "index_kpool",
                                         .block = 16,
                                         .most_in_tokens = true,
                                         .caches_gates = true,
                                         .rule = pickers};
constexpr FamilyIndexer indexed_entries{.most = 512,
                                        .width = 128,
                                        .heads = 64,
                                        .kind = "compressed_sparse_attention",
                                        .slice = SliceEnd::trailing};

// Mistral Large 4: q × (s_h·ln(p + 1) + b_h) in all layers, s and b being softmax_scaling's of the
// checkpoint.
void learned_temperature(const Section&, LayerGroup& group) {
  group.logits.temperature = Temperature::heads;
  group.logits.offset = 1;
  if (!group.logits_note.empty()) group.logits_note += ", ";
  group.logits_note += "softmax_scaling.scale and bias of the checkpoint";
}

// DeepSeek-VL2's and DeepSeek-OCR's small text models are of this type and attend as Llama does.
void read_latent_if_used(const Section& config, const Family& family) {
  const auto latent = config.flag("use_mla");
  if (!latent || latent->value) return read_decoder(config, family);
  Family plain = family;
  plain.attention = {};
  plain.rope.pairing = halves;
  plain.other_keys = "v_head_dim";
  read_decoder(config, plain);
}

// LongCat-Flash: a layer attends twice, and each attention has weights and a cache of its own.
void read_twice(const Section& config, const Family& family) {
  const auto layers = config.integer("num_layers", Range{.least = 1, .most = most_layers / 2.0});
  if (config.reading.error) return;
  Json::Object whole = config.members();
  std::erase_if(whole, [](const JsonMember& member) {
    return member.key == "num_hidden_layers" || member.key == "num_layers";
  });
  whole.push_back({"num_hidden_layers", {layers ? 2 * layers->value : family.sizes.layers}});
  const Json json{std::move(whole)};
  read_decoder(Section(config.reading, &json, config.path()), family);
  for (LayerGroup& group : config.reading.model.groups)
    for (Provenance& value : group.provenance) {
      if (value.field != "layers") continue;
      value.origin = Origin::derived;
      value.detail = "2 · num_layers: each layer attends twice";
    }
}

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family latent[] = {
    {.types = "deepseek_v2", .read = read_latent_if_used, .context = 2048, .sizes = {4096, 32, 32},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "sarvam_mla", .context = 4096, .sizes = {4096, 32, 64},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "deepseek_v3 kimi_k2", .context = 4096, .sizes = {7168, 61, 128, 128},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "deepseek_v32", .context = 160 * K, .sizes = {7168, 61, 128, 128},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .layers = {.types = true},
     .attention = {.mla = {128, 64, 512}, .indexer = indexed, .scale_logits = true}},
    {.types = "glm4_moe_lite", .context = 202752, .sizes = {2048, 47, 20, 20},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .heads = {.dim_rotates = true}, .attention = {.mla = {192, 64, 512}, .scale_logits = true}},
    {.types = "youtu", .context = 128 * K, .sizes = {2048, 32, 16, 16},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "mistral4", .context = 1024 * K, .sizes = {4096, 36, 32, 32},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys,
       .parameters = R"({"rope_type": "yarn", "rope_theta": 10000, "factor": 128,
                       "original_max_position_embeddings": 8192, "beta_fast": 32, "beta_slow": 1,
                       "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1})"},
     .attention = {.mla = {64, 64, 256}, .scale_logits = true}},
    {.types = "mistral_large4_text", .context = 1024 * K, .sizes = {6144, 72, 64, 64},
     .rope = {.pairing = interleaved,
       .parameters = R"({"rope_type": "yarn", "rope_theta": 10000, "factor": 2048,
                       "original_max_position_embeddings": 512, "beta_fast": 32, "beta_slow": 1,
                       "attention_factor": 1})", .learned_factors = true},
     .layers = {.types = true, .every = 4, .rotates = listed_layers},
     .attention = {.mla = {64, 64, 512}, .indexer = indexed_with_temperature, .logits = learned_temperature,
       .scale_logits = true},
     .remark = "mistral_large4_text: the checkpoint multiplies frequencies by learned factors "
               "e^alpha (rotary_emb.alpha), which the plan has where the weights lie beside the file"},
    {.types = "deepseek_v4", .read = read_deepseek_v4, .context = 1024 * K,
     .sizes = {4096, 43, 64, 1, 512},
     .rope = {.pairing = interleaved, .theta = 10000, .by_layer_type = true},
     .slice = {.partial = 0.125, .partial_keys = partial_factor}, .layers = {.types = true},
     .window = {.size = 128},
     .attention = {.indexer = indexed_entries, .sinks = Sinks::all, .keys_are_values = true},
     .remark = "deepseek_v4: entries that stand for several tokens are keys at the position of their "
               "first one, rotated alike, as the keys of its indexer are"},
    {.types = "minicpm3", .context = 32 * K, .sizes = {2560, 62, 40, 40},
     .rope = {.pairing = halves, .theta = 10000},
     .attention = {.mla = {64, 32, 256}, .scale_logits = true}},
    {.types = "plm", .context = 4096, .sizes = {2048, 32, 16}, .own_code = true,
     .rope = {.pairing = interleaved, .theta = 100000}, .attention = {.mla = {128, 64, 512}}},
    {.types = "glm_moe_dsa", .context = 202752, .sizes = {6144, 78, 64, 64},
     .rope = {.pairing = interleaved, .theta = 10000}, .layers = {.types = true},
     .attention = {.mla = {192, 64, 512}, .indexer = indexed_by_some, .scale_logits = true}},
    {.types = "axk1", .context = 32 * K, .sizes = {7168, 61, 64, 64},
     .rope = {.pairing = interleaved, .pairing_key = interleave_keys, .theta = 10000},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "axk2", .context = 128 * K, .sizes = {2048, 48, 32, 32},
     .rope = {.pairing = interleaved, .theta = 10000}, .layers = {.types = true},
     .attention = {.mla = {64, 32, 128}, .indexer = indexed_by_few, .scale_logits = true}},
    {.types = "hy_v4", .context = 256 * K, .sizes = {2816, 34, 32, 32},
     .rope = {.pairing = halves, .theta = 10000}, .layers = {.types = true},
     .attention = {.mla = {192, 64, 512}, .indexer = indexed_by_a_fourth, .sinks = Sinks::all,
       .scale_logits = true}},
    {.types = "hy_v4_vl_text", .context = 256 * K, .sizes = {6144, 78, 64},
     .rope = {.pairing = interleaved, .theta = 10000},
     .axes = {.sections = "12 10 10", .interleaved = true}, .layers = {.types = true},
     .attention = {.mla = {192, 64, 512}, .indexer = indexed_beside_pictures, .sinks = Sinks::all,
       .scale_logits = true}},
    {.types = "longcat_flash", .read = read_twice, .context = 128 * K, .sizes = {6144, 56, 64},
     .rope = {.pairing = interleaved, .theta = 1e7}, .heads = {.dim_rotates = true},
     .attention = {.mla = {128, 64, 512}, .scale_logits = true},
     .remark = "longcat_flash: layers 2i and 2i + 1 are the two attentions of the model's layer i"},
    {.types = "bailing_hybrid", .context = 256 * K, .sizes = {2560, 42, 32, 32},
     .rope = {.pairing = interleaved, .theta = 6e6},
     .layers = {.types = true, .pattern = every_last, .every = 6, .every_keys = "layer_group_size",
       .other = "linear_attention"}, .attention = {.mla = {128, 64, 512}, .scale_logits = true}},
    {.types = "kimi_linear", .context = 1024 * K, .sizes = {2304, 27, 32, 32},
     .layers = {.types = true, .pattern = {full_layers_of_kimi}, .every = 4,
       .other = "linear_attention", .rotates = no_layer}, .attention = {.mla = {128, 64, 512}}},
    {.types = "glm5_next_text", .context = 1024 * K, .sizes = {4096, 45, 64, 64},
     .layers = {.types = true, .other = "linear_attention", .rotates = no_layer},
     .attention = {.mla = {256, 0, 512}, .indexer = indexed_in_pools}},
};
// clang-format on

}  // namespace

std::span<const Family> rows_latent() { return latent; }

}  // namespace posenc::detail
