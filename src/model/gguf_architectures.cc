// llama.cpp's architectures, one row each: the kind of its rotation (llama_model_rope_type) and the
// family whose layers it builds. One that is not here is read by the generic rule, with a warning.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "src/model/families/layer_rules.h"
#include "src/model/families/logit_rules.h"
#include "src/model/gguf.h"

namespace posenc::detail {
namespace {

// --- rules of one architecture -------------------------------------------------------------------

// T5 has words of its own for its sizes.
constexpr GgufKey t5_keys[] = {{"embedding_length", "d_model"},
                               {"attention.head_count", "num_heads"},
                               {"attention.key_length", "d_kv"},
                               {"block_count", "num_layers"},
                               {"context_length", "n_positions"}};

void alibi(GgufTranslation& gguf) {
  gguf.put("position_embedding_type", {std::string("alibi")}, gguf.rule());
}

void divide_by_head_dim(GgufTranslation& gguf) {
  gguf.put("scale_qk_dot_by_d", {true}, gguf.rule());
}

// What llama.cpp takes for the width of a head.
std::int64_t head_width(const GgufTranslation& gguf) {
  const auto key = gguf.whole("attention.key_length"), width = gguf.whole("embedding_length"),
             heads = gguf.whole("attention.head_count");
  if (key) return *key;
  return width && heads && *heads > 0 ? *width / *heads : 0;
}

// Gemma's logits are divided by √head_dim, those of the 27B by √(width / heads). No key says which
// it is; llama.cpp knows the 27B by its number of layers.
template <std::int64_t layers_of_largest>
void query_scale(GgufTranslation& gguf) {
  const auto width = gguf.whole("embedding_length"), heads = gguf.whole("attention.head_count");
  const bool largest = gguf.layers() == layers_of_largest;
  if (width && heads && *heads > 0)
    gguf.put("query_pre_attn_scalar", {largest ? *width / *heads : head_width(gguf)}, gguf.rule());
}

// Gemma 4: heads of full layers are as wide as key_length says, those of layers that slide as
// key_length_swa, and all of both rotates.
void two_widths(GgufTranslation& gguf) {
  const std::int64_t wide = head_width(gguf);
  const auto said = gguf.whole("attention.key_length_swa");
  const std::int64_t narrow = said ? *said : wide;
  if (wide == 0) return;
  gguf.drop("head_dim v_head_dim");
  if (gguf.whole("rope.dimension_count") == wide) gguf.drop("rotary_dim");
  gguf.put("head_dim", {narrow},
           gguf.path(said ? "attention.key_length_swa" : "attention.key_length"));
  gguf.put("global_head_dim", {wide}, gguf.path("attention.key_length"));
}

// MPT has ALiBi where the file has its largest bias.
void alibi_if_biased(GgufTranslation& gguf) {
  const auto most = gguf.number("attention.max_alibi_bias");
  Json::Object attention = {{"alibi", {most.value_or(0) > 0}}};
  if (most && *most > 0) attention.push_back({"alibi_bias_max", {*most}});
  gguf.put("attn_config", {std::move(attention)}, gguf.path("attention"));
  gguf.spell("attn_config.alibi_bias_max", gguf.path("attention.max_alibi_bias"));
  gguf.spell("attn_config.alibi", gguf.path("attention.max_alibi_bias"));
}

// EXAONE 4's window is for the 32B alone, which llama.cpp knows by its number of layers.
void window_of_largest(GgufTranslation& gguf) {
  if (gguf.layers() != 64) gguf.nothing_slides();
}

// A window of 0 means Llama 4 without chunks, where llama.cpp has no length for the temperature
// that its graph asks for, and stops.
void chunks_are_needed(GgufTranslation& gguf) {
  const auto window = gguf.number("attention.sliding_window");
  if (window && *window == 0) {
    gguf.reading().refuse(gguf.path("attention.sliding_window"),
                          "must not be 0: llama.cpp stops at such a file", "0",
                          "its graph asks for a temperature that it has for chunks alone");
  }
}

// HunYuan's NTK-aware base, which the converter leaves to the loader for pictures' models.
void base_by_alpha(GgufTranslation& gguf) {
  const auto alpha = gguf.number("rope.scaling.alpha");
  const std::int64_t head = head_width(gguf);
  if (!alpha || *alpha <= 0 || head <= 2) return;
  const auto d = static_cast<double>(head);
  const double base = gguf.number("rope.freq_base").value_or(10000);
  gguf.drop("rope_theta");
  gguf.put("rope_theta", {base * std::pow(*alpha, d / (d - 2))},
           gguf.path("rope.freq_base") + " · " + gguf.path("rope.scaling.alpha") + "^(d/(d−2))");
}

// Step 3.5: dimension_count is that of layers that slide, and of others half as many channels
// rotate.
void half_in_full_layers(GgufTranslation& gguf) {
  const auto said = gguf.whole("rope.dimension_count");
  const std::int64_t rotated = said ? *said : head_width(gguf);
  const std::string why = gguf.path(said ? "rope.dimension_count" : "attention.key_length");
  gguf.drop("rotary_dim");
  gguf.put("rotary_dim", {rotated / 2}, why + " / 2");
  if (!gguf.find("rope.dimension_count_swa")) gguf.put("local_rotary_dim", {rotated}, why);
}

// Gemma 3n: the layers behind the twentieth use the keys of earlier ones, whatever a key says.
void shared_from_twentieth(GgufTranslation& gguf) {
  gguf.put("num_kv_shared_layers", {std::max<std::int64_t>(gguf.layers() - 20, 0)}, gguf.rule());
}

// All keys are those of the target model, which a draft reads.
void all_shared(GgufTranslation& gguf) {
  two_widths(gguf);
  gguf.put("num_kv_shared_layers", {gguf.layers()}, gguf.rule());
}

void values_are_scaled(GgufTranslation& gguf) {
  const auto scale = gguf.number("attention.value_scale");
  if (scale && *scale != 1 && *scale != 0) {
    gguf.reading().warn("family_remark", gguf.path("attention.value_scale") + " is " +
                                             number_text(*scale) +
                                             ": what attention gives is multiplied by it");
  }
}

void draft_of_blocks(GgufTranslation& gguf) {
  values_are_scaled(gguf);
  if (gguf.find("attention.q_lora_rank")) {
    gguf.reading().refuse(gguf.path("attention.q_lora_rank"), "makes it a draft of DeepSeek-V4", "",
                          "its layers are read from a config.json alone");
  }
}

// --- which layers rotate -------------------------------------------------------------------------

constexpr std::int64_t still_period = 4;  // of layers without position, where no key says one

void all_but_each_fourth(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i)
    layers.at(i).rotates = (i + 1) % still_period != 0;
  note(layers.notes, "no_rope_layers", "(i + 1) % 4 = 0 has no position", Origin::family,
       "rule of " + layers.config.reading.family);
}

// SmallThinker: from the first layer on, and only if layers slide.
void all_but_first_of_four(LayerDraft& layers) {
  if (!layers.window) return;
  for (std::int64_t i = 0; i < layers.count(); ++i) layers.at(i).rotates = i % still_period != 0;
  note(layers.notes, "no_rope_layers", "i % 4 = 0 has no position", Origin::family,
       "rule of " + layers.config.reading.family);
}

// Command A+: layers that slide, and the dense ones in front.
void windows_and_dense_front(LayerDraft& layers) {
  windowed_layers(layers);
  const auto front = layers.config.integer("first_k_dense_replace", not_negative);
  const std::int64_t dense = std::min(front ? front->value : 0, layers.count());
  for (std::int64_t i = 0; i < dense; ++i) layers.at(i).rotates = true;
}

// Granite's converter says by rope.scaling.finetuned whether any layer rotates.
void all_if_finetuned(LayerDraft& layers) {
  const auto on = layers.config.flag("rope_finetuned");
  for (LayerKind& kind : layers.kinds) kind.rotates = !on || on->value;
  if (on) layers.note_choice("rope", on->value ? "in all layers" : "in no layer", on);
}

void listed_if_said(LayerDraft& layers) {
  if (layers.config.has("no_rope_layers")) listed_layers(layers);
}

// --- logits --------------------------------------------------------------------------------------

double head_root(const LayerGroup& group) {
  return std::sqrt(static_cast<double>(group.geometry.head_dim));
}

const Rope* rope_of(const LayerGroup& group) {
  return group.schemes.empty() ? nullptr : std::get_if<Rope>(&group.schemes.front());
}

// q·k is divided by the root of the channels that rotate.
void by_rotated(const Section&, LayerGroup& group) {
  const Rope* rope = rope_of(group);
  if (!rope || !rope->rotary_dim || *rope->rotary_dim == group.geometry.head_dim) return;
  group.logits.multiplier = head_root(group) / std::sqrt(static_cast<double>(*rope->rotary_dim));
  group.logits_note = "q·k is divided by √" + std::to_string(*rope->rotary_dim) + ", what rotates";
}

// Grok: c·tanh(q·k · output_scale / c).
void grok_logits(const Section& config, LayerGroup& group) {
  group.logits.multiplier =
      noted_number(config, group, "attn_output_multiplier", 0.08838834764831845) * head_root(group);
  const auto cap = config.number("attn_logit_softcapping", positive);
  group.logits.softcap = cap ? cap->value : 30;
  note(group.provenance, "attn_logit_softcapping", number_text(group.logits.softcap),
       cap ? Origin::file : Origin::family, cap ? cap->key : "default of " + config.reading.family);
}

// DeepSeek's graph squares YaRN's amplitude into the logits. Where a file has a multiplier the
// amplitude is 1 before it, and elsewhere it counts twice.
void amplitude_squared(const Section& config, LayerGroup& group) {
  const Rope* rope = rope_of(group);
  const Yarn* yarn = rope ? std::get_if<Yarn>(&rope->scaling) : nullptr;
  if (!yarn || yarn->mscale_all_dim || yarn->factor.value_or(1) <= 1) return;
  const double amplitude = yarn->attention_factor.value_or(0.1 * std::log(*yarn->factor) + 1);
  group.logits.multiplier *= amplitude * amplitude;
  group.logits_note = "YaRN's amplitude squared, beside that on cos and sin: the file has no " +
                      std::string("yarn_log_multiplier");
  config.reading.warn(
      "gguf_log_multiplier",
      "rope.scaling.yarn_log_multiplier is not there: YaRN's amplitude, " +
          number_text(std::round(1e4 * amplitude) / 1e4) +
          ", multiplies cos and sin and, squared, the logits; the authors' own files say "
          "mscale_all_dim, of which the key is a tenth, and leave cos and sin as they are");
}

// --- keys that rows read -------------------------------------------------------------------------

constexpr std::string_view scale_key = "attention.scale";
constexpr std::string_view switched = "attention.scale rope.scaling.finetuned";
constexpr std::string_view yarn_and_temperature =
    "rope.scaling.yarn_log_multiplier attention.temperature_scale attention.temperature_length";
constexpr std::string_view log_multiplier = "rope.scaling.yarn_log_multiplier";
constexpr std::string_view recurrence = "full_attention_interval attention.recurrent_layers";
constexpr std::string_view compressed_keys = "attention.key_length_mla attention.value_length_mla";
constexpr std::string_view causal_key = "attention.causal";

constexpr GgufKey granite_keys[] = {{"rope.scaling.finetuned", "rope_finetuned"},
                                    {"attention.rope_pattern", "no_rope_layers"}};
constexpr GgufKey grok_keys[] = {{"attention.output_scale", "attn_output_multiplier"}};
constexpr GgufKey cohere_keys[] = {{"leading_dense_block_count", "first_k_dense_replace"}};

// --- the rows ------------------------------------------------------------------------------------

constexpr Rotation none = Rotation::none;
constexpr Rotation normal = Rotation::normal;
constexpr Rotation mrope = Rotation::mrope;
constexpr Slides if_said = Slides::if_said;
constexpr Slides always = Slides::always;
constexpr LocalRope unscaled = LocalRope::unscaled;
constexpr LocalRope own = LocalRope::own_theta;
constexpr LocalRope own_scaled = LocalRope::own_theta_scaled;

// clang-format off: one row an architecture.
constexpr Architecture architectures[] = {
    // --- neighbours pair -------------------------------------------------------------------------
    {.names = "llama llama-embed deci internlm2 minicpm xverse olmo arctic deepseek arcee "
              "maincoder chameleon neo-bert",
     .family = "llama", .rotation = normal, .leaves_out = "deci"},
    {.names = "pockettts eagle3", .rotation = normal},
    {.names = "bailingmoe", .family = "llama", .rotation = normal, .logits = by_rotated},
    {.names = "nanbeige", .family = "llama", .rotation = normal, .reads = "num_loops"},
    {.names = "llada", .family = "llama", .rotation = normal, .causal = false,
     .unread = causal_key},
    {.names = "mistral3", .family = "ministral3", .rotation = normal,
     .reads = "rope.scaling.yarn_beta_fast rope.scaling.yarn_beta_slow "
              "rope.scaling.yarn_log_multiplier attention.temperature_scale"},
    {.names = "granite", .family = "granite", .rotation = normal, .rotates = all_if_finetuned,
     .reads = switched, .keys = granite_keys},
    {.names = "granitemoe", .family = "granite", .rotation = normal, .reads = scale_key},
    {.names = "graniteswitch", .rotation = normal, .rotates = all_if_finetuned, .reads = switched,
     .keys = granite_keys,
     .remark = "graniteswitch: a layer more, of one head without position, picks the adapter of "
               "each token; it is not among these"},
    {.names = "granite_swa", .rotation = normal, .rotates = listed_if_said, .slides = always,
     .sinks = Sinks::all, .reads = "attention.scale attention.rope_pattern",
     .keys = granite_keys},
    {.names = "granitehybrid", .family = "granitemoehybrid", .rotation = normal,
     .rotates = all_if_finetuned, .reads = switched, .keys = granite_keys},
    {.names = "baichuan", .family = "baichuan", .rotation = normal},
    {.names = "smollm3", .family = "smollm3", .rotation = normal, .rotates = all_but_each_fourth},
    {.names = "llama4", .family = "llama4_text", .rotation = normal,
     .rotates = all_but_each_fourth, .slides = always, .pattern = every_last, .every = 4,
     .window = 8192, .window_fixed = true, .local = own_scaled, .rule = chunks_are_needed},
    {.names = "command-r", .family = "cohere", .rotation = normal},
    {.names = "cohere2", .family = "cohere2", .rotation = normal, .slides = always,
     .pattern = every_last, .every = 4},
    {.names = "cohere2moe", .rotation = normal, .rotates = windows_and_dense_front,
     .slides = always, .pattern = every_first, .every = 4, .keys = cohere_keys},
    {.names = "muse-glimmer", .rotation = normal, .rotates = windowed_layers, .slides = always,
     .pattern = every_last, .every = 4, .local = own},
    {.names = "chatglm", .family = "glm", .rotation = normal},
    {.names = "glm4", .family = "glm4", .rotation = normal, .may_have_sections = true},
    {.names = "ernie4_5 ernie4_5-moe", .family = "ernie4_5", .rotation = normal},
    {.names = "deepseek2", .family = "deepseek_v3", .rotation = normal,
     .logits = amplitude_squared, .reads = yarn_and_temperature, .equal_mscales = true},
    {.names = "mistral4", .family = "deepseek_v3", .rotation = normal,
     .logits = amplitude_squared, .reads = yarn_and_temperature},
    {.names = "deepseek32", .family = "deepseek_v32", .rotation = normal,
     .logits = amplitude_squared, .reads = log_multiplier},
    {.names = "glm-dsa", .family = "glm_moe_dsa", .rotation = normal,
     .logits = amplitude_squared},
    {.names = "plm", .family = "minicpm3", .rotation = normal, .unread = compressed_keys},
    {.names = "hy_v4", .family = "hy_v4", .rotation = normal,
     .remark = "hy_v4: the indexer that picks tokens rotates on its own, pairing neighbours"},
    {.names = "bailingmoe3", .family = "bailing_hybrid", .rotation = normal,
     .may_have_sections = true},

    // --- halves pair -----------------------------------------------------------------------------
    {.names = "qwen qwen2moe qwen3 qwen3moe stablelm orion plamo plamo2 gemma starcoder2 "
              "gptneox codeshell nemotron exaone dots1 bitnet dbrx olmoe "
              "seed_oss apertus minimax-m2 bailingmoe2 falcon-h1 openelm grovemoe "
              "pangu-embedded hy_v3 jais2 talkie",
     .rotates_part = "gptneox stablelm nemotron minimax-m2 bailingmoe2"},
    {.names = "glm4moe", .may_have_sections = true, .rotates_part = "glm4moe"},
    // convert_hf_to_gguf.py: "There is no consistent way to calculate ctx from alpha".
    {.names = "hunyuan-moe hunyuan-dense", .converted_context = 262144},
    {.names = "hunyuan_vl", .may_have_sections = true, .reads = "rope.scaling.alpha",
     .rule = base_by_alpha},
    {.names = "qwen2", .family = "qwen2"},
    {.names = "dream llada-moe rnd1", .causal = false, .unread = causal_key},
    {.names = "phi2", .family = "phi"},
    {.names = "phi3", .family = "phi3", .stretched_by_lists = true},
    {.names = "phimoe", .stretched_by_lists = true},
    {.names = "falcon", .family = "falcon"},
    {.names = "minicpm3", .family = "minicpm3", .stretched_by_lists = true,
     .unread = compressed_keys},
    {.names = "gemma2", .family = "gemma2", .slides = always, .pattern = every_last, .every = 2,
     .window = 4096, .local = own_scaled, .reads = "attn_logit_softcapping",
     .rule = query_scale<46>},
    {.names = "gemma3", .family = "gemma3_text", .slides = if_said, .pattern = every_last,
     .every = 6, .local = own, .local_theta = 10000, .rule = query_scale<62>},
    {.names = "gemma3n", .family = "gemma3n_text", .slides = always, .pattern = every_last,
     .every = 5, .local = own, .local_theta = 10000, .rule = shared_from_twentieth},
    {.names = "gemma4", .family = "gemma4_text", .slides = always, .local = own,
     .local_theta = 10000,
     .reads = "attention.key_length_swa attention.value_length_swa attention.shared_kv_layers "
              "rope.dimension_count_swa",
     .rule = two_widths},
    {.names = "gemma4-assistant", .family = "gemma4_text", .slides = always, .local = own,
     .local_theta = 10000,
     .reads = "attention.key_length_swa attention.value_length_swa rope.dimension_count_swa",
     .rule = all_shared,
     .remark = "gemma4-assistant: a draft whose keys and values are those of its target model"},
    {.names = "gemma-embedding", .family = "gemma3_text", .causal = false, .slides = always,
     .pattern = every_last, .every = 6, .local = own, .local_theta = 10000, .unread = causal_key,
     .rule = query_scale<-1>},
    {.names = "gpt-oss", .family = "gpt_oss", .logits = by_rotated, .slides = always,
     .pattern = every_last, .every = 2, .local = own_scaled,
     .remark = "gpt-oss: the model's own YaRN does not round the ends of its ramp; no GGUF key "
               "says so, and llama.cpp rounds them"},
    {.names = "olmo2", .family = "olmo3", .slides = if_said, .pattern = every_last, .every = 4,
     .local = unscaled},
    {.names = "mellum", .slides = if_said, .pattern = every_last, .every = 4, .local = unscaled},
    {.names = "exaone4", .family = "exaone4", .slides = always, .pattern = every_last, .every = 4,
     .window = 4096, .rule = window_of_largest},
    {.names = "exaone-moe", .rotates = windowed_layers, .slides = always, .pattern = every_last,
     .every = 4},
    {.names = "afmoe", .family = "afmoe", .rotates = all_but_each_fourth, .slides = if_said,
     .pattern = every_last, .every = 4, .local = own_scaled},
    {.names = "smallthinker", .rotates = all_but_first_of_four, .slides = if_said,
     .pattern = every_first, .every = 4, .window = 4096, .window_fixed = true,
     .local = own_scaled},
    {.names = "plamo3", .slides = if_said, .pattern = every_last, .every = 8, .local = own,
     .local_theta = 10000},
    {.names = "laguna", .slides = if_said, .pattern = every_first, .every = 4, .local = own,
     .reads = "rope.dimension_count_swa"},
    {.names = "mimo2", .slides = always, .local = own, .local_theta = 10000,
     .sinks_if_stored = true, .reads = "attention.value_scale", .rule = values_are_scaled},
    {.names = "step35", .slides = always, .local = own, .local_theta = 10000,
     .reads = "rope.dimension_count_swa", .rule = half_in_full_layers},
    {.names = "maple", .rotates = windowed_layers, .slides = always, .local = own_scaled,
     .reads = "rope.dimension_count_swa"},
    {.names = "spark2_5", .slides = always, .local = own_scaled,
     .reads = "rope.dimension_count_swa"},
    {.names = "lfm2", .family = "lfm2", .slides = if_said, .pattern = all_slide,
     .unread = "attention.sliding_window_pattern"},
    {.names = "lfm2moe", .family = "lfm2"},
    {.names = "qwen3next", .family = "qwen3_next", .pattern = every_last, .every = 4,
     .reads = recurrence},
    {.names = "minimax-01", .family = "minimax", .pattern = every_last, .every = 8,
     .reads = recurrence},
    {.names = "minimax-m3",
     .remark = "minimax-m3: an indexer of its own, with the same rotation, picks the blocks of "
               "keys that are seen"},
    {.names = "grok", .logits = grok_logits,
     .reads = "rope.scaling.yarn_ext_factor rope.scaling.yarn_beta_fast "
              "rope.scaling.yarn_beta_slow attention.output_scale attn_logit_softcapping",
     .beta_fast = 8, .keys = grok_keys},
    {.names = "deepseek2-ocr",
     .unread = "rope.dimension_count rope.scaling.type rope.scaling.factor rope.scale_linear "
               "rope.scaling.attn_factor"},
    {.names = "cogvlm",
     .unread = "rope.freq_base rope.dimension_count rope.scaling.type rope.scaling.factor "
               "rope.scale_linear rope.scaling.attn_factor"},
    {.names = "hrm_text",
     .remark = "hrm_text: two stacks run in turns over the same tokens, and each run of a layer "
               "counts as one here"},
    {.names = "dflash", .slides = if_said, .sinks_if_stored = true,
     .reads = "attention.scale attention.value_scale", .rule = draft_of_blocks,
     .remark = "dflash: a draft; keys and values of what stands before its block are made of its "
               "target model's layers"},
    {.names = "modern-bert", .family = "modernbert", .slides = if_said,
     .pattern = every_first, .every = 3, .local = own, .local_theta = 10000},
    {.names = "nomic-bert nomic-bert-moe jina-bert-v3 eurobert", .family = "eurobert"},

    // --- several position axes -------------------------------------------------------------------
    {.names = "qwen2vl paddleocr", .family = "qwen2_vl_text", .rotation = mrope},
    {.names = "qwen3vl qwen3vlmoe qwen3tts", .family = "qwen3_vl_text", .rotation = mrope},
    {.names = "qwen35 qwen35moe", .family = "qwen3_5_text", .rotation = mrope,
     .pattern = every_last, .every = 4, .reads = recurrence},
    {.names = "qwen4exp", .family = "qwen4_exp_text", .rotation = mrope, .pattern = every_last,
     .every = 4, .reads = recurrence,
     .remark = "qwen4exp: an indexer of its own, with the same rotation, picks the blocks of keys "
               "that are seen"},

    // --- no rotation -----------------------------------------------------------------------------
    {.names = "bert", .family = "bert", .rotation = none},
    {.names = "jina-bert-v2", .family = "bert", .rotation = none, .rule = alibi},
    {.names = "gpt2", .family = "gpt2", .rotation = none},
    {.names = "starcoder", .family = "gpt_bigcode", .rotation = none},
    {.names = "bloom refact", .family = "bloom", .rotation = none},
    {.names = "mpt", .family = "mpt", .rotation = none, .reads = "attention.max_alibi_bias",
     .rule = alibi_if_biased},
    {.names = "jais", .family = "jais", .rotation = none, .reads = "attention.max_alibi_bias",
     .rule = divide_by_head_dim},
    {.names = "t5", .family = "t5", .rotation = none, .keys = t5_keys},
    {.names = "t5encoder", .family = "t5", .rotation = none, .keys = t5_keys, .only_encoder = true},
    {.names = "jamba", .family = "jamba", .rotation = none},
    {.names = "nemotron_h nemotron_h_moe", .family = "nemotron_h", .rotation = none},
    {.names = "kimi-linear kimi-k3", .family = "kimi_linear", .rotation = none},
    {.names = "glm5-next", .family = "glm5_next_text", .rotation = none,
     .remark = "glm5-next: an indexer of its own picks the pools of keys that are seen"},

    // --- known, and not covered ------------------------------------------------------------------
    {.names = "mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7", .family = "mamba", .rotation = none},
    {.names = "deepseek4",
     .not_covered = "which of its layers compress is read from a config.json alone: give that"},
    {.names = "dots3note", .not_covered = "layers that slide have latent heads of another width"},
    {.names = "wavtokenizer-dec",
     .not_covered = "it makes sound of tokens by convolutions, and its one attention has no "
                    "position"},
    {.names = "gptj", .not_covered = "llama.cpp knows the name and builds no such model"},
    {.names = "clip", .refused = "is a projector of pictures (mmproj), not a model"},
};
// clang-format on

}  // namespace

const Architecture* find_architecture(std::string_view name) {
  const auto* found = std::ranges::find_if(
      architectures, [&](const Architecture& row) { return contains_word(row.names, name); });
  return found == std::end(architectures) ? nullptr : found;
}

std::span<const Architecture> all_architectures() { return architectures; }

}  // namespace posenc::detail
