// Families whose layers alternate: some have a window, some have no position, some no attention.
#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "src/model/families/layer_rules.h"
#include "src/model/families/logit_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// OLMo's hybrid: where the base is null, inside the parameters or instead of them, no layer
// rotates.
void unless_null(LayerDraft& layers) {
  const Section parameters = layers.config.section("rope_parameters rope_scaling");
  const Json* theta = (parameters ? parameters : layers.config).raw("rope_theta");
  if (theta && theta->is_null()) no_layer(layers);
}

// Step 3.5: 1/√query_pre_attn_scalar, 128 by default.
void step_queries(const Section& config, LayerGroup& group) {
  group.logits.multiplier = std::sqrt(static_cast<double>(group.geometry.head_dim) /
                                      noted_number(config, group, "query_pre_attn_scalar", 128));
}

// --- conventions of one family -------------------------------------------------------------------

// Llama 3.2 Vision: some layers attend to the picture alone, and nothing in them has a position.
void cross_attention_layers(LayerDraft& layers) {
  const auto said = layers.config.integers("cross_attention_layers", not_negative);
  const std::vector<std::int64_t> cross =
      said ? said->value : std::vector<std::int64_t>{3, 8, 13, 18, 23, 28, 33, 38};
  for (const std::int64_t layer : cross)
    if (layer < layers.count()) layers.at(layer) = {std::string(cross_attention), false};
  layers.note_choice("cross_attention_layers", std::to_string(cross.size()) + " layers", said,
                     "default");
}

// Gemma 4: the last layer sees everything, even where layer_types says that it slides.
void last_layer_full(LayerDraft& layers) {
  if (layers.count() == 0 || !has_window(layers.kinds.back().type)) return;
  layers.kinds.back().type = "full_attention";
  note(layers.notes, "layer_types", "the last layer is full attention", Origin::family,
       "rule of " + layers.config.reading.family);
}

// Granite 4: no position unless the file says rope.
void all_if_rope_is_said(LayerDraft& layers) {
  const auto type = layers.config.word("position_embedding_type");
  const bool rope = type && type->value == "rope";
  for (LayerKind& kind : layers.kinds) kind.rotates = rope;
  layers.note_choice("position_embedding_type", rope ? "rope" : "nope", type, "default");
}

// Llama 4: the layers that rotate see a chunk, and those without position see everything, unless
// layer_types says who sees what.
void listed_layers_in_chunks(LayerDraft& layers) {
  listed_layers(layers);
  if (layers.config.words("layer_types")) return;
  for (LayerKind& kind : layers.kinds)
    kind.type = kind.rotates && layers.window ? "chunked_attention" : "full_attention";
}

// Cohere 2 MoE: where the dense layers in front attend fully by a pattern of 1, all dense layers
// rotate all the same.
void windowed_layers_and_dense(LayerDraft& layers) {
  windowed_layers(layers);
  const Section& config = layers.config;
  const auto front = config.integer("first_k_dense_replace", not_negative);
  const auto kinds = config.words("mlp_layer_types");
  const auto pattern = config.integer("prefix_dense_sliding_window_pattern", at_least_one);
  const std::int64_t every = pattern ? pattern->value : 1;
  const std::int64_t dense = std::min(front ? front->value : 0, layers.count());
  if (dense > 0 && !config.has("layer_types")) {  // the usual pattern starts behind them
    const auto rest = config.integer("sliding_window_pattern", at_least_one);
    const std::int64_t usual = rest ? rest->value : layers.family.layers.every;
    for (std::int64_t i = 0; i < layers.count(); ++i) {
      const bool sees_all = i < dense ? (i + 1) % every == 0 : (i - dense + 1) % usual == 0;
      layers.at(i).type = sees_all ? "full_attention" : layers.family.layers.other;
      layers.at(i).rotates = !sees_all;
    }
  }
  if (every != 1 || (!kinds && dense == 0)) return;
  if (kinds && !layers.covers_layers(kinds->key, std::ssize(kinds->value), "entry")) return;
  std::int64_t rotating = 0;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    if (kinds ? kinds->value[static_cast<std::size_t>(i)] != "dense" : i >= dense) continue;
    layers.at(i).rotates = true;
    ++rotating;
  }
  note(layers.notes, "rotates", std::to_string(rotating) + " dense layers rotate", Origin::file,
       kinds ? kinds->key : front->key);
}

// SmolLM3: with use_sliding_window the layers that do not rotate are those that slide.
void listed_layers_or_windows(LayerDraft& layers) {
  listed_layers(layers);
  const auto on = layers.config.flag("use_sliding_window");
  if (!on || !on->value || !layers.window || layers.config.has("layer_types")) return;
  for (LayerKind& kind : layers.kinds)
    if (!kind.rotates) kind.type = layers.family.layers.other;
  note(layers.notes, "layer_types", "layers without position slide", Origin::file, on->key);
}

// Llama 4's layers without position: q × (1 + attn_scale·ln(1 + ⌊(p + 1)/floor_scale⌋)).
void position_temperature(const Section& config, LayerGroup& group) {
  if (!std::holds_alternative<NoPe>(group.schemes.front())) return;
  const Json* tuning = config.raw("attn_temperature_tuning");
  const bool counts = tuning && tuning->get<std::int64_t>();  // the first files say 4 for true
  if (counts) {
    if (tuning->text() == "0") return;
    note(group.provenance, "attn_temperature_tuning", tuning->text(), Origin::file,
         config.where("attn_temperature_tuning"));
  } else if (!config.flag_or(group.provenance, "attn_temperature_tuning", "attn_temperature_tuning",
                             true)) {
    return;
  }
  const auto scale = config.number("attn_scale", not_negative),
             floor = config.number("floor_scale", at_least_one);
  group.logits.beta = scale ? scale->value : 0.1;
  group.logits.floor = floor ? floor->value : 8192;
  group.logits.offset = 1;
  group.logits_note = "attn_temperature_tuning";
}

// Beam and NeoMME: each sixth layer and the last attend fully.
void mark_sixth_and_last(LayerDraft& layers) {
  for (std::int64_t i = 0; i + 1 < layers.count(); ++i)
    if ((i + 1) % 6 != 0) layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "each sixth layer and the last attend fully", Origin::family,
       "rule of " + layers.config.reading.family);
}
// Beam: what has no parameters has no position.
void with_parameters(LayerDraft& layers) {
  const Json* const parameters = layers.config.raw("rope_parameters");
  for (LayerKind& kind : layers.kinds) {
    const Json* const own = parameters ? parameters->find(kind.type) : nullptr;
    kind.rotates = own != nullptr ? !own->is_null() : has_window(kind.type);
  }
}

// Its layers without position: q × (1 + (p + 1)/2048)^0.1, which no key says.
void beam_temperature(const Section& config, LayerGroup& group) {
  if (!std::holds_alternative<NoPe>(group.schemes.front())) return;
  group.logits.temperature = Temperature::power;
  group.logits.beta = 0.1;
  group.logits.floor = 2048;
  group.logits.offset = 1;
  group.logits_note = "the code of " + config.reading.family;
}

// Full attention is that of the last layer and of each fourth before it (Muse), which have no
// position where the file gives no bases.
bool counts_from_the_end(const LayerDraft& layers, std::int64_t layer) {
  return (layers.count() - 1 - layer) % layers.family.layers.every == 0;
}

void mark_from_the_end(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i)
    if (!counts_from_the_end(layers, i)) layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "the last layer and each fourth before it attend fully",
       Origin::family, "rule of " + layers.config.reading.family);
}

// A base for each layer, 0 for one without position.
auto bases_of_layers(LayerDraft& layers) {
  auto bases = layers.config.integers("layer_rope_theta", not_negative);
  if (bases && !layers.covers_layers(bases->key, std::ssize(bases->value), "entry")) bases.reset();
  for (std::int64_t i = 0; bases && i < layers.count(); ++i)
    layers.at(i).rotates = bases->value[static_cast<std::size_t>(i)] != 0;
  if (bases) note(layers.notes, "rotates", "where its base is not 0", Origin::file, bases->key);
  return bases;
}

// Muse rotates by the base of all layers, and asks its list for the layers that rotate alone.
void switched_by_bases(LayerDraft& layers) {
  if (bases_of_layers(layers) || layers.config.reading.error) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).rotates = !counts_from_the_end(layers, i);
}

// Granite's windowed models have as many rotations as there are bases.
void by_own_bases(LayerDraft& layers) {
  const auto bases = bases_of_layers(layers);
  if (!bases) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).theta = static_cast<double>(bases->value[static_cast<std::size_t>(i)]);
}

// UltraBERT's first files have a window for each layer, null or 0 for none, of which the first is
// that of all,
void mark_by_windows(LayerDraft& layers) {
  const Json* const raw = layers.config.raw("attention_windows");
  const auto* const windows = raw ? raw->get<Json::Array>() : nullptr;
  if (!windows) return mark_all_but_last_of(layers);
  const std::string key = layers.config.where("attention_windows");
  if (!layers.covers_layers(key, std::ssize(*windows), "entry")) return;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const Json& window = (*windows)[static_cast<std::size_t>(i)];
    constexpr std::int64_t none = 0;
    const auto* const tokens = window.is_null() ? &none : window.get<std::int64_t>();
    if (!tokens || *tokens < 0 || *tokens > most_length) {
      return layers.config.reading.refuse(key, "must be windows in tokens, null for none",
                                          window.text(), "correct the file");
    }
    if (*tokens == 0) continue;
    layers.at(i).type = layers.family.layers.other;
    if (!layers.window) layers.window = *tokens;
  }
  note(layers.notes, "layer_types", "sliding where there is a window", Origin::file, key);
}
// and a base for each, of which a kind of layer has the last.
void bases_by_kind(LayerDraft& layers) {
  const Json* const raw = layers.config.raw("rope_theta");
  if (!raw || !raw->get<Json::Array>() || layers.config.has("rope_parameters")) return;
  const auto bases = layers.config.integers("rope_theta", above_one);
  if (!bases || !layers.covers_layers(bases->key, std::ssize(bases->value), "entry")) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    for (std::int64_t j = 0; j < layers.count(); ++j)
      if (layers.at(j).type == layers.at(i).type)
        layers.at(i).theta = static_cast<double>(bases->value[static_cast<std::size_t>(j)]);
}

// Step 3.5's published files have a list of bases, one of the parts that rotate, and the kinds of
// layer that the scaling is of.
void lists_by_kind(LayerDraft& layers) {
  bases_by_kind(layers);
  if (layers.config.reading.error || layers.config.has("rope_parameters")) return;
  const auto parts = layers.config.numbers("partial_rotary_factors", fraction);
  if (parts && layers.covers_layers(parts->key, std::ssize(parts->value), "entry"))
    for (std::int64_t i = 0; i < layers.count(); ++i)
      layers.at(i).part = parts->value[static_cast<std::size_t>(i)];
  const Json* const raw = layers.config.raw("yarn_only_types");
  const auto* const types = raw ? raw->get<Json::Array>() : nullptr;
  if (!types || types->empty()) return;
  for (LayerKind& kind : layers.kinds)
    kind.scaled = std::ranges::any_of(*types, [&](const Json& type) {
      const auto* word = type.get<std::string>();
      return word && *word == kind.type;
    });
}

// Muse multiplies its queries behind their norm.
void glimmer_queries(const Section& config, LayerGroup& group) {
  group.logits.multiplier *= noted_number(config, group, "qk_scale_factor", 3.87);
}
void spark_queries(const Section& config, LayerGroup& group) {
  group.logits.multiplier *= noted_number(config, group, "qk_scale_factor", 5.4730064863875);
}

// Flint: the first two layers, each fourth and the last attend fully.
void mark_flint(LayerDraft& layers) {
  for (std::int64_t i = 2; i + 1 < layers.count(); ++i)
    if (i % 4 != 1) layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "the first two layers, each fourth and the last attend fully",
       Origin::family, "rule of " + layers.config.reading.family);
}

// MiMo: the first layer and each sixth attend fully.
void mark_mimo(LayerDraft& layers) {
  for (std::int64_t i = 1; i < layers.count(); ++i)
    if ((i + 1) % 6 != 0) layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "the first layer and each sixth attend fully", Origin::family,
       "rule of " + layers.config.reading.family);
}

// NeoMME: a window for each layer, in an object by the layer's number; without it each second
// sliding layer has 1024.
void windows_of_layers(LayerDraft& layers) {
  const Section own = layers.config.section("per_layer_config");
  const Range tokens{.least = 1, .most = static_cast<double>(most_length)};
  const std::int64_t usual = layers.window.value_or(0);
  bool said = false;
  for (std::int64_t i = 0, slides = 0; i < layers.count(); ++i) {
    if (!has_window(layers.at(i).type)) continue;
    const bool far = slides++ % 2 == 1;
    const std::string number = std::to_string(i);
    const Section layer = own.section(number + " " + (i < 10 ? "0" + number : number));
    const auto window = layer.integer("sliding_window", tokens);
    said = said || window.has_value();
    layers.at(i).window = window ? window->value : far && !own ? 1024 : usual;
  }
  note(layers.notes, "windows", "of each layer", said ? Origin::file : Origin::family,
       said ? own.path() : "each second sliding layer sees 1024 to each side");
}

// LFM 3: convolutions, with full attention and windows between them.
void mark_lfm3(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).type = i % 4 == 2            ? "full_attention"
                        : i % 4 == 0 && i > 0 ? layers.family.layers.other
                                              : "conv";
  note(layers.notes, "layer_types", "layer 2 of 4 attends, layer 0 of 4 slides", Origin::family,
       "rule of " + layers.config.reading.family);
}

// RecurrentGemma: what attends, slides.
void attention_slides(LayerDraft& layers) {
  for (LayerKind& kind : layers.kinds)
    if (kind.type == "full_attention") kind.type = "sliding_attention";
}
// MiniMax: the same where the file has a window.
void attention_slides_if_windowed(LayerDraft& layers) {
  if (layers.config.integer("sliding_window", not_negative)) attention_slides(layers);
}
void mark_third(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i)
    if (i % 3 != 2) layers.at(i).type = "recurrent";
}

// Zamba: the layers where attention stands beside a recurrence. Zamba 2 has a list for it.
void mark_zamba(LayerDraft& layers) {
  const auto period = layers.config.integer("attn_layer_period", at_least_one),
             offset = layers.config.integer("attn_layer_offset", not_negative);
  const std::int64_t every = period ? period->value : layers.family.layers.every;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const bool attends = i == 2 || (i > 2 && (i - 3) % every == (offset ? offset->value : 4));
    if (!attends) layers.at(i).type = layers.family.layers.other;
  }
  layers.note_choice("layer_types", "layer 2 and each " + std::to_string(every) + "th attend",
                     period);
}

// PLaMo 2: in the middle of each mamba_step layers one attends.
void mark_mamba_steps(LayerDraft& layers) {
  const auto on = layers.config.flag("mamba_enabled");
  if (on && !on->value) return;
  const auto step = layers.config.integer("mamba_step", at_least_one);
  const std::int64_t every = step ? step->value : layers.family.layers.every;
  const bool last_alone = layers.count() <= every / 2;
  for (std::int64_t i = 0; i < layers.count(); ++i) {
    const bool attends = last_alone ? i == layers.count() - 1 : i % every == every / 2;
    if (!attends) layers.at(i).type = layers.family.layers.other;
  }
  layers.note_choice("layer_types", "one of " + std::to_string(every) + " attends", step);
}
// It sees a window, but for the layers of a list.
void window_but_listed(LayerDraft& layers) {
  const auto full = layers.config.integers("full_attention_idx", not_negative);
  for (std::int64_t i = 0; i < layers.count(); ++i)
    if (has_attention(layers.at(i).type) &&
        !(full && std::ranges::find(full->value, i) != full->value.end()))
      layers.at(i).type = "sliding_attention";
}

void all_if_use_mem_rope(LayerDraft& layers) {
  const auto rope = layers.config.flag("use_mem_rope");
  for (LayerKind& kind : layers.kinds) kind.rotates = rope && rope->value;
  layers.note_choice("use_mem_rope", rope && rope->value ? "true" : "false", rope, "default");
}

// Zamba's heads are twice as wide as the model's, and its logits are scaled for the model's.
void half_of_head_dim(const Section& config, LayerGroup& group) {
  group.logits.multiplier = std::sqrt(2.0);
  group.logits_note = "logits × 1/√(head_dim/2), as " + config.reading.family + " does";
}

// Falcon H1 multiplies its keys by a number, which the logits get.
void key_multiplier(const Section& config, LayerGroup& group) {
  const auto keys = config.number("key_multiplier", positive);
  if (!keys) return;
  group.logits.multiplier *= keys->value;
  group.logits_note = "key_multiplier " + number_text(keys->value);
  note(group.provenance, "key_multiplier", number_text(keys->value), Origin::file, keys->key);
}

// --- the rows ------------------------------------------------------------------------------------

// Lara Mini: a period of five.
void mark_lara(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).type = i % 5 == 1 || i % 5 == 4 ? layers.family.layers.other
                        : i % 5 == 3             ? "full_attention"
                                                 : "linear_attention";
  note(layers.notes, "layer_types", "layers 1 and 4 of 5 slide, layer 3 of 5 attends fully",
       Origin::family, "rule of " + layers.config.reading.family);
}

// Dory: the layers between the first and the last n run again and again, in the mode "per_loop"
// with keys of their own each time.
void dory_passes(LayerDraft& layers) {
  const Section& config = layers.config;
  const auto first = config.integer("n_input_layers", not_negative),
             last = config.integer("n_output_layers", not_negative),
             middle = config.integer("n_recurrent_layers", not_negative),
             loops = config.integer("n_recurrent_loops", at_least_one);
  const auto mode = config.word("recurrent_kv_cache_mode");
  const std::int64_t from = first ? first->value : 8,
                     until =
                         middle ? from + middle->value : layers.count() - (last ? last->value : 8);
  const std::int64_t times = loops ? loops->value : 2;
  const bool kept_once = mode && mode->value == "last_loop";
  layers.note_choice("passes", std::to_string(times) + (kept_once ? ", the last is cached" : ""),
                     loops, "default");
  for (std::int64_t i = from; i < std::min(until, layers.count()) && !kept_once; ++i)
    layers.at(i).passes = times;
}

// Its released files count blocks, an attention and a perceptron in turns, of which two are a
// layer.
void read_dory(const Section& config, const Family& family) {
  const Json* const types = config.raw("layer_types");
  const auto* const blocks = types ? types->get<Json::Array>() : nullptr;
  const auto is_mlp = [](const Json& each) {
    const auto* const word = each.get<std::string>();
    return word && *word == "mlp";
  };
  if (!blocks || std::ranges::none_of(*blocks, is_mlp)) return read_decoder(config, family);
  Json::Object whole = config.members();
  for (JsonMember& member : whole) {
    constexpr std::string_view counted =
        "num_hidden_layers n_input_layers n_recurrent_layers n_output_layers";
    const auto* const count = member.value.get<std::int64_t>();
    if (contains_word(counted, member.key) && count) member.value = {*count / 2};
    if (member.key != "layer_types") continue;
    Json::Array layers;
    for (std::size_t i = 0; i < blocks->size(); i += 2) layers.push_back((*blocks)[i]);
    member.value = {std::move(layers)};
  }
  const Json json{std::move(whole)};
  read_decoder(Section(config.reading, &json, config.path()), family);
  for (LayerGroup& group : config.reading.model.groups)
    for (Provenance& value : group.provenance)
      if (value.field == "layers") {
        value.origin = Origin::derived;
        value.detail += ", which counts blocks: attention and mlp are one layer";
      }
}

// MiniMax-M3: what its first files say in a section of their own, in the words of later ones.
void read_minimax_m3(const Section& config, const Family& family) {
  const Section sparse = config.section("sparse_attention_config");
  if (!sparse) return read_decoder(config, family);
  Json::Object whole = config.members();
  const auto say = [&](std::string_view key, std::string_view old, Json value) {
    std::erase_if(whole, [&](const JsonMember& member) { return member.key == key; });
    whole.push_back({std::string(key), std::move(value)});
    config.reading.spelled.emplace_back(config.where(key), sparse.where(old));
  };
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"index_topk_blocks", "sparse_topk_blocks"},
      {"index_head_dim", "sparse_index_dim"},
      {"index_n_heads", "sparse_num_index_heads"},
      {"index_block_size", "sparse_block_size"},
      {"index_local_blocks", "sparse_local_block"}};
  for (const auto& [key, old] : words)
    if (const Json* const value = sparse.raw(old)) say(key, old, *value);
  const auto is_sparse = config.has("layer_types")
                             ? std::nullopt
                             : sparse.integers("sparse_attention_freq", not_negative);
  if (is_sparse) {
    Json::Array types;
    for (const std::int64_t each : is_sparse->value)
      types.push_back({std::string(each != 0 ? "minimax_m3_sparse" : "full_attention")});
    say("layer_types", "sparse_attention_freq", {std::move(types)});
  }
  const Json json{std::move(whole)};
  read_decoder(Section(config.reading, &json, config.path()), family);
}

constexpr FamilyIndexer picks_blocks{.most = 16,
                                     .width = 128,
                                     .heads = 4,
                                     .most_keys = "index_topk_blocks",
                                     .block_keys = "index_block_size",
                                     .block = 128,
                                     .local = 1,
                                     .kind = "minimax_m3_sparse"};
constexpr FamilyIndexer picks_by_budget{.most = no_default,
                                        .width = no_default,
                                        .most_keys = "indexer_budget",
                                        .width_keys = "indexer_head_dim",
                                        .block_keys = "indexer_compress_ratio",
                                        .heads_keys = "indexer_n_heads",
                                        .most_in_tokens = true};

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family alternating[] = {
    // --- rotate halves ---------------------------------------------------------------------------
    {.types = "mllama mllama_text_model", .context = 128 * K, .sizes = {4096, 40, 32, 8},
     .rope = {.theta = 500000}, .layers = {.forced = cross_attention_layers}},
    {.types = "beam", .context = 8192, .sizes = {5120, 52, 48, 8, 128},
     .rope = {.theta = 10000, .by_layer_type = true},
     .layers = {.types = true, .pattern = {mark_sixth_and_last}, .rotates = with_parameters},
     .window = {.size = 512}, .attention = {.logits = beam_temperature}},
    {.types = "qwen2 internvl mimo", .context = 32 * K, .sizes = {4096, 32, 32, 32},
     .rope = {.theta = 10000}, .layers = {.types = true, .pattern = past_layer, .every = 28},
     .window = {.size = 4096, .needs_switch = true}},
    {.types = "qwen2_moe", .context = 32 * K, .sizes = {2048, 24, 16, 16}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = each_second_before, .every = 28},
     .window = {.size = 4096, .needs_switch = true}},
    {.types = "qwen3", .context = 32 * K, .sizes = {4096, 32, 32, 32, 128}, .plain_files = true,
     .rope = {.theta = 10000}, .layers = {.types = true, .pattern = past_layer, .every = 28},
     .window = {.size = 4096, .needs_switch = true}},
    {.types = "qwen3_moe", .context = 32 * K, .sizes = {2048, 24, 32, 4}, .rope = {.theta = 10000},
     .layers = {.pattern = all_slide}, .window = {.size = 4096, .needs_switch = true}},
    {.types = "dots1", .context = 2048, .sizes = {4608, 62, 32, 32}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = past_layer, .every = 62}, .window = {.size = 4096}},
    {.types = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text", .context = 32 * K,
     .sizes = {8192, 80, 64, 8}, .rope = {.theta = 1e6}, .axes = {.sections = "16 24 24"},
     .layers = {.types = true, .pattern = past_layer, .every = 80},
     .window = {.size = 4096, .needs_switch = true}},
    {.types = "qwen2_5_omni_text qwen2_5_omni_talker", .context = 32 * K,
     .sizes = {3584, 28, 28, 4}, .rope = {.theta = 1e6}, .axes = {.sections = "16 24 24"},
     .layers = {.types = true, .pattern = past_layer, .every = 28},
     .window = {.size = 32 * K, .needs_switch = true}},
    {.types = "deepseek_ocr2_encoder", .context = 32 * K, .sizes = {4096, 32, 32, 32},
     .rope = {.theta = 10000}, .layers = {.types = true, .pattern = past_layer, .every = 28},
     .window = {.size = 4096, .needs_switch = true},
     .remark = "deepseek_ocr2: patches see each other both ways, and the queries behind them are "
               "causal"},
    {.types = "olmo_hybrid", .context = 64 * K, .sizes = {3840, 32, 30}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 4, .other = "linear_attention",
       .rotates = unless_null}},
    {.types = "step3p5", .context = 128000, .sizes = {4096, 45, 64, 8, 128},
     .rope = {.theta = 10000}, .slice = {.partial_keys = partial_factor}, .layers = {.types = true, .rotates = lists_by_kind},
     .attention = {.logits = step_queries}},
    {.types = "qwen3_next", .context = 32 * K, .sizes = {2048, 48, 16, 2, 256},
     .rope = {.theta = 10000}, .slice = {.partial = 0.25, .partial_keys = partial_factor},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "full_attention_interval", .other = "linear_attention"}},
    {.types = "qwen3_5 qwen3_5_text", .context = 32 * K, .sizes = {4096, 32, 16, 4, 256},
     .rope = {.theta = 10000}, .slice = {.partial = 0.25, .partial_keys = partial_factor},
     .axes = {.sections = "11 11 10", .interleaved = true},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "full_attention_interval", .other = "linear_attention"}},
    {.types = "qwen3_5_moe qwen3_5_moe_text", .context = 32 * K, .sizes = {2048, 40, 16, 2, 256},
     .rope = {.theta = 10000}, .slice = {.partial = 0.25, .partial_keys = partial_factor},
     .axes = {.sections = "11 11 10", .interleaved = true},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "full_attention_interval", .other = "linear_attention"}},
    {.types = "gemma2", .context = 8192, .sizes = {2304, 26, 8, 4, 256}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 2}, .window = {.size = 4096},
     .attention = {.logits = query_pre_attn_capped}},
    {.types = "t5_gemma_module", .context = 8192, .sizes = {2304, 26, 8, 4, 256},
     .rope = {.theta = 10000}, .layers = {.types = true, .pattern = every_last, .every = 2},
     .window = {.size = 4096, .each_side = true}, .attention = {.logits = query_pre_attn_capped}},
    {.types = "t5gemma t5gemma2", .read = read_parts},
    {.types = "t5gemma2_text t5gemma2_decoder", .context = 128 * K, .sizes = {2304, 26, 8, 4, 256},
     .rope = {.theta = 1e6},
     .layers = {.types = true, .pattern = every_last, .every = 6,
       .every_keys = "sliding_window_pattern"}, .window = {.size = 4096, .with_itself = true},
     .local = {.rope = LocalRope::own_theta, .theta = 10000, .theta_keys = "rope_local_base_freq"},
     .attention = {.logits = query_pre_attn}},
    {.types = "vaultgemma", .context = 8192, .sizes = {2304, 26, 8, 4, 256},
     .rope = {.theta = 10000}, .layers = {.types = true, .pattern = every_last, .every = 2},
     .window = {.size = 4096}, .attention = {.logits = query_pre_attn_capped}},
    {.types = "gemma3 gemma3_text", .context = 128 * K, .sizes = {2304, 26, 8, 4, 256},
     .reads_bidirectional = true, .rope = {.theta = 1e6},
     .layers = {.types = true, .pattern = every_last, .every = 6,
       .every_keys = "sliding_window_pattern"}, .window = {.size = 4096},
     .local = {.rope = LocalRope::own_theta, .theta = 10000, .theta_keys = "rope_local_base_freq"},
     .attention = {.logits = query_pre_attn}},
    {.types = "gemma3n gemma3n_text", .context = 32 * K, .sizes = {2048, 35, 8, 2, 256},
     .reads_bidirectional = true, .rope = {.theta = 1e6},
     .layers = {.types = true, .pattern = every_last, .every = 5}, .window = {.size = 512},
     .local = {.rope = LocalRope::own_theta, .theta = 10000, .theta_keys = "rope_local_base_freq"},
     .heads = {.shared_kv = 15}, .attention = {.logits = undivided}},
    {.types = "gemma4 gemma4_text", .context = 128 * K, .sizes = {2304, 30, 8, 4, 256},
     .reads_bidirectional = true,
     .rope = {.parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_type": "proportional", "rope_theta": 1000000,
                                          "partial_rotary_factor": 0.25}})"},
     .layers = {.types = true, .pattern = every_last, .every = 6, .forced = last_layer_full},
     .window = {.size = 512, .grows = true}, .heads = {.full_dim = 512},
     .attention = {.logits = undivided}},
    {.types = "gemma4_unified_text", .context = 256 * K, .sizes = {2304, 30, 8, 4, 256},
     .reads_bidirectional = true,
     .rope = {.parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_type": "proportional", "rope_theta": 1000000,
                                          "partial_rotary_factor": 0.25}})"},
     .layers = {.types = true, .pattern = every_last, .every = 6, .forced = last_layer_full},
     .window = {.size = 1024, .grows = true}, .heads = {.full_dim = 512},
     .attention = {.logits = undivided}},
    {.types = "embedding_gemma2_text", .context = 256 * K, .sizes = {512, 24, 4, 2, 256},
     .causal = false,
     .rope = {.parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_theta": 1000000}})"},
     .layers = {.types = true, .pattern = every_last, .every = 6,
       .every_keys = "sliding_window_pattern", .forced = last_layer_full},
     .window = {.size = 512, .each_side = true}, .heads = {.full_dim = 512},
     .attention = {.logits = undivided}},
    {.types = "qwen4_exp_text", .context = 32 * K, .sizes = {2048, 40, 16, 2, 256},
     .rope = {.theta = 10000}, .slice = {.partial_keys = partial_factor},
     .axes = {.sections = "11 11 10", .interleaved = true},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "full_attention_interval", .other = "linear_attention"},
     .attention = {.indexer = picks_by_budget}},
    {.types = "lara_mini", .context = 128 * K, .sizes = {1024, 34, 16, 4, 128},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = {mark_lara}, .rotates = windowed_layers},
     .window = {.size = 512}},
    {.types = "dory", .read = read_dory, .context = 8192, .sizes = {2560, 36, 16, 4, 256},
     .rope = {.theta = 10000, .parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_theta": 10000000}})"},
     .layers = {.types = true, .pattern = every_last, .every = 4, .passes = dory_passes},
     .window = {.size = 1024},
     .remark = "dory: channels of a query are multiplied by learned numbers behind the rotation, so "
               "that a logit depends on where both tokens stand and not on their distance alone"},
    {.types = "minimax_m3_vl_text", .read = read_minimax_m3, .context = 512 * K,
     .sizes = {6144, 60, 64, 4, 128}, .rope = {.theta = 5e6},
     .slice = {.partial_keys = partial_factor}, .layers = {.types = true},
     .attention = {.indexer = picks_blocks}},
    // Its text as the first files and mlx-lm have it.
    {.types = "minimax_m3", .read = read_minimax_m3, .context = 512 * K,
     .sizes = {6144, 60, 64, 4, 128}, .rope = {.theta = 5e6},
     .slice = {.partial = 0.5, .partial_keys = partial_factor, .reads_rotary_dim = true},
     .layers = {.types = true}, .attention = {.indexer = picks_blocks}},
    {.types = "gpt_oss", .context = 128 * K, .sizes = {2880, 36, 64, 8, 64},
     .rope = {.theta = 150000,
       .parameters = R"({"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1,
                       "truncate": false, "original_max_position_embeddings": 4096})"},
     .layers = {.types = true, .pattern = every_last, .every = 2}, .window = {.size = 128},
     .attention = {.sinks = Sinks::all}},
    {.types = "olmo3", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 500000},
     .layers = {.types = true, .pattern = every_last, .every = 4}, .window = {.size = 4096},
     .local = {.rope = LocalRope::unscaled, .theta = 500000}},
    {.types = "cwm", .context = 128 * K, .sizes = {6144, 64, 48, 8, 128},
     .rope = {.theta = 1e6,
       .parameters = R"({"rope_type": "llama3", "rope_theta": 1000000, "factor": 16,
                       "original_max_position_embeddings": 8192, "low_freq_factor": 1,
                       "high_freq_factor": 4})"},
     .layers = {.types = true, .pattern = every_first, .every = 4}, .window = {.size = 8192}},
    {.types = "exaone4 exaone_moe", .context = 2048, .sizes = {4096, 32, 32, 32},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "sliding_window_pattern", .rotates = windowed_layers},
     .window = {.size = 4096}},
    {.types = "afmoe", .context = 16 * K, .sizes = {2048, 32, 16, 0, 128}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "global_attn_every_n_layers", .rotates = windowed_layers},
     .window = {.size = 1024}},
    {.types = "smollm3", .context = 32 * K, .sizes = {2048, 36, 16, 4}, .rope = {.theta = 2e6},
     .layers = {.types = true, .every = 4, .rotates = listed_layers_or_windows},
     .window = {.needs_switch = true}},
    {.types = "granitemoehybrid", .context = 2048, .sizes = {4096, 32, 32},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = listed_attend, .other = "mamba",
       .rotates = all_if_rope_is_said}, .attention = {.logits = attention_multiplier}},
    {.types = "lfm2 lfm2_moe", .context = 128000, .sizes = {2560, 32, 32, 8},
     .rope = {.theta = 1e6}, .layers = {.types = true, .other = "conv"}},
    {.types = "falcon_h1", .context = 8192, .sizes = {4096, 32, 32, 8}, .layers = {.types = true},
     .attention = {.logits = key_multiplier}},
    {.types = "bamba", .context = 256 * K, .sizes = {4096, 32, 32, 8}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5},
     .layers = {.types = true, .pattern = listed_attend, .other = "mamba"}},
    {.types = "jamba", .context = 256 * K, .sizes = {4096, 32, 32, 8},
     .layers = {.types = true, .pattern = at_offset, .every = 8, .other = "mamba",
       .rotates = no_layer}},
    {.types = "plamo2", .sizes = {4096, 32, 32, 4, 128}, .rope = {.theta = 10000, .theta_keys = ""},
     .layers = {.types = true, .pattern = {mark_mamba_steps, true}, .every = 2, .other = "mamba",
       .forced = window_but_listed},
     .window = {.keys = "attention_window_size"}},
    {.types = "nemotron-nas", .context = 128 * K, .sizes = {8192, 80, 64},
     .rope = {.theta = 500000}, .layers = {.types = true}},
    {.types = "openelm", .context = 2048, .sizes = {1280, 16, 12, 0, 64},
     .rope = {.theta = 10000, .theta_keys = "rope_freq_constant"},
     .heads = {.of_layers = "num_query_heads", .kv_of_layers = "num_kv_heads"}},
    {.types = "nemotron_h", .context = 4096, .sizes = {4096, 0, 32, 8, 128},
     .layers = {.types = true, .other = unsaid_layer, .rotates = no_layer}},
    {.types = "muse_glimmer_text", .context = 128 * K, .sizes = {6656, 52, 32, 2, 128},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = {mark_from_the_end}, .every = 4,
       .rotates = switched_by_bases}, .window = {.size = 2048},
     .attention = {.logits = glimmer_queries}},
    {.types = "muse_spark_text", .context = 1024 * K, .sizes = {8192, 62, 128, 16, 64},
     .rope = {.theta = 10000, .parameters = R"({"rope_type": "default", "rope_theta": 500000})"},
     .layers = {.types = true, .pattern = {mark_from_the_end}, .every = 4,
       .rotates = switched_by_bases}, .window = {.size = 2048},
     .attention = {.logits = spark_queries}},
    {.types = "granite_swa", .context = 8192, .sizes = {2560, 24, 20, 4}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_first, .every = 4, .rotates = by_own_bases},
     .window = {.size = 128}, .attention = {.logits = attention_multiplier, .sinks = Sinks::all}},
    {.types = "granitemoe_swa", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_first, .every = 4, .rotates = by_own_bases},
     .window = {.size = 128}, .attention = {.logits = attention_multiplier, .sinks = Sinks::all}},
    {.types = "kolibri1", .context = 256 * K, .sizes = {2560, 50, 48, 4, 128},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 5, .rotates = windowed_layers},
     .window = {.size = 513}},
    {.types = "flint", .context = 256 * K, .sizes = {2048, 49, 32, 4, 128},
     .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = {mark_flint}, .rotates = windowed_layers},
     .window = {.size = 513}, .attention = {.sinks = Sinks::all}},
    {.types = "mimo_v2_flash", .context = 128 * K, .sizes = {4096, 48, 64, 4, 192},
     .rope = {.parameters = R"({"full_attention":
                        {"rope_theta": 5000000, "partial_rotary_factor": 0.334},
                       "sliding_attention":
                        {"rope_theta": 10000, "partial_rotary_factor": 0.334}})"},
     .slice = {.partial_keys = partial_factor}, .layers = {.types = true, .pattern = {mark_mimo}},
     .window = {.size = 129, .before = "sliding_window_size"},
     .attention = {.sinks = Sinks::windowed},
     .remark = "mimo_v2_flash: layers that slide have twice the key-value heads, and values are "
               "multiplied by attention_value_scale"},
    {.types = "laguna", .context = 128 * K, .sizes = {2048, 40, 48, 8, 128},
     .rope = {.parameters = R"({"full_attention":
                        {"rope_theta": 500000, "partial_rotary_factor": 0.5},
                       "sliding_attention": {"rope_theta": 10000}})"},
     .slice = {.partial_keys = partial_factor}, .layers = {.types = true}, .window = {.size = 512},
     .remark = "laguna: layers may differ in their number of query heads"},
    {.types = "mellum", .context = 128 * K, .sizes = {2304, 28, 32, 4, 128},
     .rope = {.parameters = R"({"full_attention": {"rope_theta": 500000},
                       "sliding_attention": {"rope_theta": 10000}})"}, .layers = {.types = true},
     .window = {.size = 1024}},
    {.types = "lfm3", .context = 128000, .sizes = {2048, 24, 16, 4, 128},
     .rope = {.parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_type": "proportional", "rope_theta": 1000000,
                                          "partial_rotary_factor": 0.5}})"},
     .layers = {.types = true, .pattern = {mark_lfm3}}, .window = {.size = 256}},
    {.types = "minimax", .context = 128 * K, .sizes = {4096, 32, 32, 8}, .rope = {.theta = 1e6},
     .layers = {.types = true, .pattern = every_first, .every = 2, .other = "linear_attention",
       .forced = attention_slides_if_windowed}},
    {.types = "recurrent_gemma", .context = 8192, .sizes = {2560, 26, 10}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor},
     .layers = {.types = true, .pattern = {mark_third}, .other = "recurrent",
       .forced = attention_slides}, .window = {.size = 2048, .keys = "attention_window_size"}},
    {.types = "neomme neomme_text", .context = 16 * K, .sizes = {1024, 17, 16, 4, 64},
     .causal = false,
     .rope = {.parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_theta": 1000000, "partial_rotary_factor": 0.25}})"},
     .slice = {.partial_keys = partial_factor}, .axes = {.alternating = 2},
     .layers = {.types = true, .pattern = {mark_sixth_and_last}, .rotates = windows_of_layers},
     .window = {.size = 256, .each_side = true}},
    {.types = "zamba", .context = 4096, .sizes = {3712, 76, 16, 16},
     .layers = {.types = true, .pattern = {mark_zamba}, .every = 6, .other = "mamba",
       .rotates = no_layer}, .heads = {.width_key = "attention_hidden_size", .times = 2},
     .attention = {.logits = half_of_head_dim}},
    {.types = "zamba2", .context = 4096, .sizes = {2560, 54, 32}, .rope = {.theta = 10000},
     .layers = {.types = true, .other = "mamba", .rotates = all_if_use_mem_rope},
     .heads = {.width_key = "attention_hidden_size", .times = 2},
     .attention = {.logits = half_of_head_dim}},
    {.types = "ultrabert", .context = 32 * K, .sizes = {4096, 32, 32}, .causal = false,
     .rope = {.theta_keys = "", .parameters = R"({"sliding_attention": {"rope_theta": 10000},
                       "full_attention": {"rope_theta": 2560000}})"},
     .layers = {.types = true, .pattern = {mark_by_windows}, .every = 3, .rotates = bases_by_kind},
     .window = {.size = 128, .each_side = true}},
    {.types = "modernbert", .context = 8192, .sizes = {768, 22, 12}, .causal = false,
     .rope = {.theta = 160000, .theta_keys = "global_rope_theta"},
     .layers = {.types = true, .pattern = every_first, .every = 3,
       .every_keys = "global_attn_every_n_layers"},
     .window = {.size = 128, .keys = "local_attention"},
     .local = {.rope = LocalRope::own_theta_scaled, .theta = 10000,
       .theta_keys = "local_rope_theta"}},
    {.types = "modernbert-decoder", .context = 8192, .sizes = {768, 22, 12},
     .rope = {.theta = 160000, .theta_keys = "global_rope_theta"},
     .layers = {.types = true, .pattern = every_first, .every = 3,
       .every_keys = "global_attn_every_n_layers"},
     .window = {.size = 64, .keys = "sliding_window local_attention", .half = true},
     .local = {.rope = LocalRope::own_theta_scaled, .theta = 10000,
       .theta_keys = "local_rope_theta"}},

    // --- rotate neighbours -----------------------------------------------------------------------
    {.types = "cohere2 aya_vision cohere2_vision", .context = 8192, .sizes = {8192, 40, 64},
     .rope = {.pairing = interleaved, .theta = 10000},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "sliding_window_pattern", .rotates = windowed_layers},
     .window = {.size = 4096}},
    {.types = "cohere2_moe", .context = 8192, .sizes = {8192, 40, 64, 0, 128},
     .rope = {.pairing = interleaved, .theta = 10000, .unread_parameters = "rope_scaling"},
     .layers = {.types = true, .pattern = every_last, .every = 4,
       .every_keys = "sliding_window_pattern", .rotates = windowed_layers_and_dense},
     .window = {.size = 4096}},
    {.types = "llama4 llama4_text", .context = 128 * K, .sizes = {5120, 48, 40, 8, 128},
     .rope = {.pairing = interleaved, .theta = 500000, .steps = true},
     .layers = {.types = true, .every = 4, .other = "chunked_attention",
       .rotates = listed_layers_in_chunks},
     .window = {.size = 8192, .keys = "attention_chunk_size"},
     .attention = {.logits = position_temperature}},
};
// clang-format on

}  // namespace

std::span<const Family> rows_alternating() { return alternating; }

}  // namespace posenc::detail
