// Families whose code stands beside their weights (trust_remote_code) and not in transformers. What
// an engine makes of them is another matter: each has a port of its own, or none.
#include <cmath>
#include <string>

#include "src/model/families/layer_rules.h"
#include "src/model/families/logit_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// --- conventions of one family -------------------------------------------------------------------

// A list of the file with a 0 or a 1 for each layer; nothing where it is absent or refused.
std::optional<Found<std::vector<std::int64_t>>> flags_of(const LayerDraft& layers,
                                                         std::string_view key) {
  auto said = layers.config.integers(key, Range{.least = 0, .most = 1});
  if (said && !layers.covers_layers(said->key, std::ssize(said->value), "entry")) said.reset();
  return said;
}

// MiniMax-Text-01 and M1: a 1 attends, a 0 is lightning attention, a recurrence.
void attend_where_one(LayerDraft& layers) {
  const auto said = flags_of(layers, "attn_type_list");
  if (!said) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    if (said->value[static_cast<std::size_t>(i)] == 0)
      layers.at(i).type = layers.family.layers.other;
  note(layers.notes, "layer_types", "1 attends, 0 is linear", Origin::file, said->key);
}

void slide_where_one_in(LayerDraft& layers, std::string_view key) {
  const auto said = flags_of(layers, key);
  if (!said) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    if (said->value[static_cast<std::size_t>(i)] == 1) layers.at(i).type = "sliding_attention";
  note(layers.notes, "layer_types", "1 slides, 0 attends fully", Origin::file, said->key);
}

// SmallThinker: two lists, of the layers that slide and of those that rotate.
void slide_where_one(LayerDraft& layers) { slide_where_one_in(layers, "sliding_window_layout"); }

// MiMo-V2.5 and later.
void slide_in_hybrid(LayerDraft& layers) { slide_where_one_in(layers, "hybrid_layer_pattern"); }

void rotate_where_one(LayerDraft& layers) {
  const auto said = flags_of(layers, "rope_layout");
  if (!said) return;
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).rotates = said->value[static_cast<std::size_t>(i)] == 1;
  note(layers.notes, "no_rope_layers", "1 rotates, 0 does not", Origin::file, said->key);
}

// Grok: c·tanh(q·k / (√d·c)). Grok 2's file says its scaling beside the sizes, and "original" is
// none.
void read_grok(const Section& config, const Family& family) {
  const auto type = config.word("rope_type");
  if (type && type->value != "original") {
    config.reading.refuse(type->key, "must be original: its other scalings are not covered",
                          "'" + type->value + "'");
    return;
  }
  if (type && config.has("scaling_factor original_max_position_embeddings"))
    config.reading.warn("family_remark",
                        config.reading.family +
                            ": rope_type \"original\" is no scaling in SGLang's code, and the plan "
                            "has none; llama.cpp's converter reads the keys beside it as YaRN "
                            "(scaling_factor, original_max_position_embeddings, beta_fast, "
                            "beta_slow), so that a GGUF of it runs another rotation");
  const auto length = config.integer("attn_temperature_len");
  if (length && length->value > 0)
    config.reading.warn("family_remark",
                        config.reading.family + ": from " + std::to_string(length->value) +
                            " tokens on, logits are multiplied by log(p)/log(" +
                            std::to_string(length->value) +
                            ") behind their softcap (attn_temperature_len), which no plan says");
  read_decoder(config, family);
}

void capped_at_thirty(const Section& config, LayerGroup& group) {
  const auto cap = config.number("attn_logit_softcapping max_attn_value", positive);
  group.logits.softcap = cap ? cap->value : 30;
  note(group.provenance, "attn_logit_softcapping", number_text(group.logits.softcap),
       cap ? Origin::file : Origin::family, cap ? cap->key : "default of " + config.reading.family);
}

// Phi-3-small: mup_attn_multiplier/head_dim, and not its root.
void divided_by_width(const Section& config, LayerGroup& group) {
  if (const auto scaled = config.flag("mup_use_scaling"); scaled && !scaled->value) return;
  group.logits.multiplier = noted_number(config, group, "mup_attn_multiplier", 1) /
                            std::sqrt(static_cast<double>(group.geometry.head_dim));
}

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family remote[] = {
    // --- rotate halves ---------------------------------------------------------------------------
    {.types = "mimo_v2", .context = 1024 * K, .sizes = {6144, 70, 128, 8, 192}, .own_code = true,
     .rope = {.theta = 5000000}, .slice = {.partial_keys = partial_factor},
     .layers = {.pattern = {slide_in_hybrid}},
     .window = {.size = 129, .before = "sliding_window_size"},
     .local = {.rope = LocalRope::own_theta, .theta = 10000, .theta_keys = "swa_rope_theta"},
     .heads = {.local_kv_key = "swa_num_key_value_heads"},
     .attention = {.sinks = Sinks::windowed}},
    {.types = "arctic", .context = 4096, .sizes = {4096, 32, 32}, .own_code = true,
     .rope = {.theta = 1e6}},
    {.types = "codeshell", .context = 8192, .sizes = {4096, 42, 32, 8}, .own_code = true,
     .rope = {.theta = 10000}},
    {.types = "plamo", .context = 2048, .sizes = {4096, 32, 32}, .own_code = true,
     .rope = {.theta = 10000}, .heads = {.sharers = "n_shared_head"}},
    {.types = "PanguEmbedded", .context = 32 * K, .sizes = {4096, 34, 32, 8}, .own_code = true,
     .rope = {.theta = 1.6e7}},
    {.types = "skywork", .context = 4096, .sizes = {4096, 32, 32}, .own_code = true,
     .rope = {.theta = 10000}},
    {.types = "minicpmv minicpmo", .context = 32 * K, .own_code = true, .rope = {.theta = 10000}},
    {.types = "molmo", .context = 2048, .own_code = true, .rope = {.theta = 10000}},
    {.types = "step3_text", .context = 64 * K, .sizes = {7168, 61, 64, 1, 256}, .own_code = true,
     .rope = {.theta = 500000}},
    // fish-speech's (OpenAudio S1).
    {.types = "dual_ar", .context = 2048, .sizes = {4096, 32, 32}, .own_code = true,
     .rope = {.pairing = interleaved, .theta = 10000, .theta_keys = "rope_base"},
     .remark = "dual_ar: a second decoder (n_fast_layer, fast_head_dim) speaks the codebooks of a "
               "token, and rotates by its own positions; the plan is that of the text"},
    {.types = "telechat", .context = 8192, .sizes = {4096, 30, 32}, .own_code = true,
     .rope = {.theta = 10000},
     .remark = "telechat: beyond the trained length (training_seqlen, base_seqlen) its own code "
               "stretches the base in steps and scales cos and sin; the plan is that of texts up "
               "to it"},
    {.types = "telechat3", .context = 2048, .sizes = {6144, 64, 48, 0, 128}, .own_code = true,
     .rope = {.theta = 1e6, .flatter_yarn = true}},
    {.types = "bailing_moe bailing_moe_v2", .context = 16 * K, .own_code = true,
     .rope = {.theta = 10000},
     .slice = {.partial_keys = partial_factor, .reads_rotary_dim = true}},
    {.types = "phi3small", .context = 8192, .sizes = {4096, 32, 32, 8}, .own_code = true,
     .rope = {.theta = 1e6, .theta_keys = "rope_embedding_base", .original = 8192},
     .attention = {.logits = divided_by_width},
     .remark = "phi3small: each second layer sees blocks of tokens, near ones and each "
               "blocksparse_vert_stride-th, which no mask says"},
    {.types = "grok-1 grok", .read = read_grok, .context = 8192, .sizes = {6144, 64, 48, 8, 128},
     .own_code = true, .rope = {.theta = 10000}, .attention = {.logits = capped_at_thirty}},

    // --- rotate halves in some layers ------------------------------------------------------------
    {.types = "minimax_text_01 minimax_m1", .own_code = true,
     .slice = {.reads_rotary_dim = true},
     .layers = {.types = true, .pattern = {attend_where_one}, .other = "linear_attention"}},
    {.types = "smallthinker", .own_code = true, .rope = {.theta = 10000},
     .layers = {.types = true, .pattern = {slide_where_one, true}, .rotates = rotate_where_one},
     .window = {.size = 4096, .keys = "sliding_window_size"}},

    // --- rotate halves and see both ways ---------------------------------------------------------
    {.types = "llada", .context = 4096, .causal = false, .own_code = true,
     .rope = {.theta = 10000}},
    {.types = "llada_moe Dream", .context = 8192, .causal = false, .own_code = true,
     .rope = {.theta = 10000}},
    {.types = "sdar sdar_moe", .context = 32 * K, .own_code = true, .rope = {.theta = 10000},
     .remark = "its block of drafted tokens sees both ways, and text before it is causal by blocks"},
    {.types = "llada2_moe", .context = 16 * K, .own_code = true, .rope = {.theta = 10000},
     .slice = {.partial_keys = partial_factor},
     .remark = "its block of drafted tokens sees both ways, and text before it is causal by blocks"},

    // --- rotate neighbours -----------------------------------------------------------------------
    {.types = "moss", .context = 2048, .sizes = {4096, 28, 16}, .own_code = true,
     .rope = {.pairing = interleaved, .theta = 10000, .theta_keys = "",
       .unread_parameters = both_spellings},
     .slice = {.rotary_dim = 64, .reads_rotary_dim = true}, .heads = {.share_width = true}},
    {.types = "neobert", .context = 4096, .sizes = {768, 28, 12}, .causal = false,
     .own_code = true, .rope = {.pairing = interleaved, .theta = 10000}},

    // --- biases ----------------------------------------------------------------------------------
    {.types = "gpt_refact", .read = read_bloom, .own_code = true},
};
// clang-format on

}  // namespace

std::span<const Family> rows_remote() { return remote; }

}  // namespace posenc::detail
