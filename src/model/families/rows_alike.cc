// Families whose layers all rotate alike.
#include <cmath>

#include "src/model/families/layer_rules.h"
#include "src/model/families/logit_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// Unlimited OCR: its windows are of what it writes itself, and the prompt is seen whole.
void all_see_the_prompt(LayerDraft& layers) {
  for (std::int64_t i = 0; i < layers.count(); ++i) layers.at(i).type = "full_attention";
}

// Molmo 2 may scale the rotation of some layers alone.
void read_molmo(const Section& config, const Family& family) {
  const auto scaled = config.integers("rope_scaling_layers", not_negative);
  const auto layers = config.integer("num_hidden_layers");
  const auto type = config.section("rope_parameters rope_scaling").word("rope_type type");
  if (scaled && layers && std::ssize(scaled->value) != layers->value && type &&
      type->value != "default") {
    config.reading.refuse(
        scaled->key, "must list every layer: scaling in some is not covered",
        std::to_string(scaled->value.size()) + " of " + std::to_string(layers->value));
  }
  read_decoder(config, family);
}

// Granite Docling says attention_multiplier as Granite does, and has another default.
void sixty_fourth(const Section& config, LayerGroup& group) {
  group.logits.multiplier = noted_number(config, group, "attention_multiplier", 1.0 / 64) *
                            std::sqrt(static_cast<double>(group.geometry.head_dim));
}

// Ernie 4.5 VL: height and width take pairs in turns, time the last ones; sections are said in that
// order.
std::vector<std::int64_t> height_width_then_time(const std::vector<std::int64_t>& sections) {
  std::vector<std::int64_t> axes;
  if (sections.size() != 3) return axes;
  for (std::int64_t r = 0; r < sections[0] + sections[1] && r < most_head_dim; ++r)
    axes.push_back(1 + r % 2);
  for (std::int64_t r = 0; r < sections[2] && r < most_head_dim; ++r) axes.push_back(0);
  return axes;
}

// Qwen: a query at p takes max(1, ln(p + 1)/ln seq_length).
void log_of_seq_length(const Section& config, LayerGroup& group) {
  // Engines lose what the file has switched on, as both are by default.
  if (const auto grows = config.flag("use_dynamic_ntk"); grows && !grows->value)
    note(group.provenance, "use_dynamic_ntk", "false", Origin::file, grows->key);
  const auto wanted = config.flag("use_logn_attn");
  if (wanted && !wanted->value) return;
  const auto length =
      config.integer("seq_length", {.least = 2, .most = static_cast<double>(most_length)});
  const double trained = length ? static_cast<double>(length->value) : 8192;
  group.logits.temperature = Temperature::log;
  group.logits.beta = 1 / std::log(trained);
  group.logits.floor = trained;
  group.logits.offset = 1;
  group.logits_note = "use_logn_attn, seq_length " + number_text(trained);
  note(group.provenance, "seq_length", number_text(trained), length ? Origin::file : Origin::family,
       length ? length->key : "default of " + config.reading.family);
}

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family alike[] = {
    // --- rotate halves ---------------------------------------------------------------------------
    {.types = "llama llama2 code_llama llava llava_next vipllava idefics3 smolvlm", .context = 2048,
     .sizes = {4096, 32, 32}, .plain_files = true, .rope = {.theta = 10000},
     .slice = {.partial_keys = partial_factor, .partial_disputed = true}},
    {.types = "mistral mistral3 llava_mistral", .context = 128 * K, .sizes = {4096, 32, 32, 8},
     .plain_files = true, .rope = {.theta = 10000}, .layers = {.pattern = all_slide}, .window = {.size = 4096}},
    {.types = "ministral", .context = 128 * K, .sizes = {4096, 32, 32, 8},
     .layers = {.types = true, .pattern = all_slide}, .window = {.size = 4096}},
    {.types = "ministral3", .context = 256 * K, .sizes = {4096, 34, 32, 8, 128},
     .rope = {.parameters = R"({"rope_type": "yarn", "rope_theta": 1000000, "factor": 16,
                       "original_max_position_embeddings": 16384, "beta_fast": 32, "beta_slow": 1,
                       "mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1})"},
     .layers = {.pattern = all_slide}},
    {.types = "mixtral", .context = 128 * K, .sizes = {4096, 32, 32, 8}, .plain_files = true, .rope = {.theta = 1e6},
     .layers = {.pattern = all_slide}},
    {.types = "phi", .context = 2048, .sizes = {2048, 24, 32}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "phi-msft mixformer-sequential", .context = 2048, .rope = {.theta = 10000},
     .slice = {.reads_rotary_dim = true}},
    {.types = "phi3 phi3_v", .context = 4096, .sizes = {3072, 32, 32},
     .rope = {.theta = 10000, .original = 4096}, .slice = {.partial_keys = partial_factor},
     .layers = {.pattern = all_slide}},
    {.types = "phi4_multimodal phi4mm", .context = 128 * K, .sizes = {3072, 32, 32, 8},
     .rope = {.theta = 10000, .original = 4096}, .slice = {.partial_keys = partial_factor},
     .layers = {.pattern = all_slide}},
    {.types = "phimoe", .context = 128 * K, .sizes = {4096, 32, 32, 8},
     .rope = {.theta = 1e6, .short_factors = true}, .layers = {.pattern = all_slide}},
    {.types = "gemma", .context = 8192, .sizes = {3072, 28, 16, 16, 256}, .plain_files = true, .rope = {.theta = 10000}},
    {.types = "gpt_neox", .context = 2048, .sizes = {6144, 44, 64}, .plain_files = true,
     .rope = {.theta = 10000, .theta_keys = "rotary_emb_base"},
     .slice = {.partial = 0.25, .partial_keys = "rotary_pct"}, .heads = {.share_width = true}},
    {.types = "gpt_neox_japanese", .context = 2048, .sizes = {2560, 32, 32},
     .rope = {.theta = 10000, .theta_keys = "rotary_emb_base"},
     .slice = {.partial_keys = "rotary_pct"}, .heads = {.share_width = true}},
    {.types = "dbrx", .read = read_dbrx, .context = 2048, .sizes = {2048, 24, 16, 1},
     .rope = {.theta = 10000}},
    {.types = "falcon RefinedWeb RefinedWebModel", .read = read_falcon, .context = 2048,
     .sizes = {4544, 32, 71}, .rope = {.theta = 10000}},
    {.types = "stablelm", .context = 4096, .sizes = {2560, 32, 32, 32}, .rope = {.theta = 10000},
     .slice = {.partial = 0.25, .partial_keys = partial_factor}},
    {.types = "stablelm_epoch", .context = 4096, .sizes = {2560, 32, 32, 32},
     .rope = {.theta = 10000},
     .slice = {.partial = 0.25, .partial_keys = "rope_pct partial_rotary_factor"}},
    {.types = "starcoder2", .context = 4096, .sizes = {3072, 30, 24, 2}, .rope = {.theta = 10000},
     .layers = {.pattern = all_slide}},
    {.types = "persimmon fuyu", .context = 16 * K, .sizes = {4096, 36, 64},
     .rope = {.theta = 10000, .theta_before = 25000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "nemotron", .context = 4096, .sizes = {6144, 32, 48}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "olmo olmo2", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 10000}},
    {.types = "olmoe", .context = 4096, .sizes = {2048, 16, 16}, .rope = {.theta = 10000}},
    {.types = "flex_olmo", .context = 4096, .sizes = {4096, 32, 32}, .rope = {.theta = 500000}},
    {.types = "apertus apertus1p5_text", .context = 64 * K, .sizes = {4096, 32, 32},
     .rope = {.theta = 12e6,
       .parameters = R"({"rope_type": "llama3", "rope_theta": 12000000, "factor": 8,
                       "original_max_position_embeddings": 8192, "low_freq_factor": 1,
                       "high_freq_factor": 4})"}},
    {.types = "arcee", .context = 4096, .sizes = {2560, 32, 32}, .rope = {.theta = 10000}},
    {.types = "aria_text", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 10000}},
    {.types = "bitnet", .context = 2048, .sizes = {2560, 30, 20, 5}, .rope = {.theta = 500000}},
    {.types = "seed_oss", .context = 512 * K, .sizes = {4096, 64, 80, 8, 128},
     .rope = {.theta = 10000}},
    {.types = "minimax_m2", .context = 192 * K, .sizes = {3072, 62, 48, 8, 128},
     .rope = {.theta = 5e6}, .slice = {.partial_keys = partial_factor, .reads_rotary_dim = true}},
    {.types = "glm4_moe", .context = 128 * K, .sizes = {4096, 46, 96, 8}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "emu3_text_model", .context = 9216, .sizes = {4096, 32, 32, 8},
     .rope = {.theta = 1e6}},
    {.types = "hunyuan_v1_dense hunyuan_v1_moe hunyuan", .context = 2048, .sizes = {4096, 32, 32},
     .rope = {.theta = 10000, .alpha = true}},
    {.types = "hunyuan_vl hunyuan_vl_text", .context = 2048, .sizes = {4096, 32, 32},
     .rope = {.theta = 10000, .alpha = true}, .axes = {.disputed = true}},
    {.types = "internlm2 internlm", .context = 2048,
     .rope = {.theta = 10000, .rotary_object = true}},
    {.types = "internlm3", .context = 32 * K, .sizes = {4096, 48, 32, 2, 128},
     .rope = {.theta = 10000}},
    {.types = "exaone", .context = 4096, .sizes = {4096, 32, 32, 8},
     .rope = {.theta = 500000, .theta_before = 10000, .theta_changed = {5, 24}}},
    {.types = "sarvam_moe", .context = 128 * K, .sizes = {4096, 19, 64, 4, 64},
     .rope = {.theta = 8e6}, .slice = {.partial_keys = partial_factor}},
    {.types = "deepseek orion minicpm aquila xverse Yi", .rope = {.theta = 10000}},
    {.types = "qwen", .context = 8192,
     .rope = {.theta = 10000, .theta_keys = "rotary_emb_base rope_theta"},
     .slice = {.partial_keys = "rotary_pct"}, .attention = {.logits = log_of_seq_length},
     .remark = "qwen: beyond seq_length its own code stretches the base (use_dynamic_ntk); the "
               "plan has the base of lengths up to seq_length"},
    {.types = "baichuan", .read = read_baichuan, .context = 4096, .rope = {.theta = 10000}},
    {.types = "granite granitemoe granitemoeshared granite4_vision_text", .context = 2048,
     .sizes = {4096, 32, 32}, .rope = {.theta = 10000},
     .attention = {.logits = attention_multiplier}},
    {.types = "granite_docling_text", .context = 32 * K, .sizes = {1024, 28, 16, 4},
     .rope = {.theta = 10000}, .attention = {.logits = sixty_fourth}},
    {.types = "hyperclovax", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 10000},
     .attention = {.logits = attention_multiplier_if_said}},
    {.types = "hy_v3", .context = 128 * K, .sizes = {4096, 80, 64, 8, 128},
     .rope = {.theta = 11158840}},
    {.types = "jais2", .context = 8192, .sizes = {3328, 32, 26}, .rope = {.theta = 10000}},
    {.types = "solar_open", .context = 128 * K, .sizes = {4096, 48, 64, 8, 128},
     .rope = {.theta = 1e6}},
    {.types = "iquestcoder", .context = 128 * K, .sizes = {5120, 80, 40, 8, 128},
     .rope = {.theta = 10000}},
    {.types = "jetmoe", .context = 4096, .sizes = {2048, 12, 32, 16, 128},
     .rope = {.theta = 10000}},
    {.types = "evolla EvollaModel", .context = 8192, .sizes = {4096, 32, 32, 8},
     .rope = {.theta = 500000}},
    {.types = "higgs_audio_v2", .context = 2048, .sizes = {3072, 28, 24, 8, 128},
     .rope = {.theta = 10000,
       .parameters = R"({"rope_type": "llama3", "rope_theta": 500000, "factor": 32,
                       "original_max_position_embeddings": 1024, "low_freq_factor": 0.125,
                       "high_freq_factor": 0.5})"}},
    {.types = "gradium_phonon_tts", .context = 8192, .sizes = {768, 6, 12, 0, 64},
     .rope = {.theta = 10000}},
    {.types = "pocket_tts", .context = 8192, .sizes = {1024, 6, 16, 0, 64},
     .rope = {.theta = 10000}},
    {.types = "hrm_text", .context = 2048, .sizes = {1536, 128, 12, 0, 128},
     .rope = {.theta = 10000}},
    {.types = "molmo2 molmo2_text", .read = read_molmo, .context = 36 * K,
     .sizes = {4096, 36, 32, 8, 128}, .rope = {.theta = 10000}},
    {.types = "unlimited_ocr_text", .context = 32 * K, .sizes = {1280, 12, 10, 0, 128},
     .rope = {.theta = 10000}, .layers = {.types = true, .forced = all_see_the_prompt},
     .remark = "unlimited_ocr: a token that is written sees the prompt and the last "
               "sliding_window tokens"},
    {.types = "nanochat", .context = 2048, .sizes = {768, 12, 6, 6},
     .rope = {.theta = 10000, .reversed = true}},
    {.types = "chameleon", .context = 4096, .sizes = {4096, 32, 32}, .rope = {.theta = 10000}},
    {.types = "idefics", .context = 2048, .sizes = {4096, 32, 32}, .rope = {.theta = 10000}},
    {.types = "deepseek_ocr2_text", .context = 2048, .sizes = {4096, 32, 32, 32, 128},
     .rope = {.theta = 10000}},
    {.types = "doge", .context = 2048, .sizes = {1024, 32, 8}, .rope = {.theta = 10000},
     .remark = "doge: a bias of the keys' values is added, and of many keys only the largest "
               "keep_window_size count; neither is in the plan"},
    {.types = "timesfm2_5", .context = 16 * K, .sizes = {1280, 20, 16, 16, 80},
     .rope = {.theta = 10000},
     .remark = "timesfm2_5: each channel of a query is multiplied by a learned number instead of "
               "1/√head_dim"},
    {.types = "timesfm", .context = 512, .sizes = {1280, 50, 16, 0, 80},
     .layers = {.rotates = no_layer},
     .remark = "timesfm: each channel of a query is multiplied by a learned number instead of "
               "1/√head_dim; with use_positional_embedding sinusoids are added"},
    {.types = "qwen3_omni_moe_talker_code_predictor", .context = 32 * K,
     .sizes = {1024, 5, 16, 8, 128}, .rope = {.theta = 10000}},
    {.types = "qwen3_omni_moe_talker_text", .context = 32 * K, .sizes = {1024, 20, 16, 2},
     .rope = {.theta = 10000}, .axes = {.sections = "24 20 20", .interleaved = true}},
    {.types = "paddleocr_vl_text", .context = 128 * K, .sizes = {1024, 18, 16, 2, 128},
     .rope = {.theta = 500000}, .axes = {.sections = "16 24 24"}},
    {.types = "glm_image_text", .context = 128 * K, .sizes = {4096, 40, 32, 2},
     .rope = {.theta = 10000}, .slice = {.partial_keys = partial_factor},
     .axes = {.sections = "8 12 12"}},
    {.types = "csm", .context = 2048, .sizes = {2048, 16, 32, 8}, .rope = {.theta = 500000}},
    {.types = "csm_depth_decoder_model", .context = 33, .sizes = {1024, 4, 8, 2},
     .rope = {.theta = 500000}},
    {.types = "diffllama", .context = 2048, .sizes = {2048, 16, 32}, .rope = {.theta = 10000}},
    {.types = "cosmos3_edge_text", .context = 128 * K, .sizes = {2048, 28, 16, 8, 128},
     .rope = {.theta = 1e8}, .axes = {.sections = "24 20 20", .interleaved = true}},
    {.types = "qwen3_vl qwen3_vl_text", .context = 128000, .sizes = {4096, 32, 32, 32, 128},
     .axes = {.sections = "24 20 20", .interleaved = true}},
    {.types = "qwen3_vl_moe qwen3_vl_moe_text", .context = 128000, .sizes = {2048, 24, 16, 16},
     .axes = {.sections = "24 20 20", .interleaved = true}},
    {.types = "interns1_pro interns1_pro_text intern_s1_pro", .context = 32 * K,
     .rope = {.theta = 5000000, .mixes = true},
     .remark = "vLLM to 0.33 and SGLang give pairs without a mixture a sine of 1, as the model was "
               "trained; vLLM's next version 0"},
    {.types = "qwen3_omni_moe_text", .context = 32 * K, .sizes = {2048, 28, 28, 4},
     .rope = {.theta = 1e6}, .axes = {.sections = "24 20 20", .interleaved = true}},
    {.types = "glm4v_moe glm4v_moe_text Glm4vMoe_text", .context = 64 * K,
     .sizes = {4096, 46, 96, 8}, .rope = {.theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}, .axes = {.sections = "8 12 12"}},
    {.types = "flava_multimodal_model", .sizes = {768, 6, 12}, .causal = false,
     .layers = {.rotates = no_layer}},
    {.types = "blip_2_qformer", .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .layers = {.rotates = no_layer}},
    {.types = "eurobert", .context = 8192, .sizes = {768, 12, 12}, .causal = false},
    {.types = "esmc", .context = 2048, .sizes = {2560, 80, 40}, .causal = false,
     .rope = {.theta = 10000}},
    {.types = "gte", .context = 8192, .sizes = {768, 12, 12}, .causal = false,
     .rope = {.theta = 160000}},
    {.types = "jina_embeddings_v3", .context = 8194, .sizes = {1024, 24, 16}, .causal = false,
     .rope = {.theta = 20000}},
    {.types = "new", .context = 2048, .sizes = {768, 12, 12}, .causal = false,
     .rope = {.theta = 10000, .ntk_divides = true}},
    {.types = "nomic_bert", .context = 2048, .sizes = {768, 12, 12}, .causal = false,
     .rope = {.pairing_key = "rotary_emb_interleaved", .theta = 1000,
       .theta_keys = "rope_theta rotary_emb_base",
       .own_code = "rotary_emb_base rotary_emb_fraction rotary_emb_interleaved",
       .stretch = "rotary_scaling_factor"},
     .slice = {.partial_keys = "rotary_emb_fraction"}},

    // --- rotate neighbours -----------------------------------------------------------------------
    {.types = "gptj codegen", .context = 2048, .sizes = {4096, 28, 16},
     .rope = {.pairing = interleaved, .theta = 10000, .theta_keys = "",
       .unread_parameters = both_spellings}, .slice = {.rotary_dim = 64, .reads_rotary_dim = true},
     .heads = {.share_width = true}},
    {.types = "cohere", .context = 8192, .sizes = {8192, 40, 64}, .rope = {.pairing = interleaved}},
    {.types = "glm glm4", .context = 128 * K, .sizes = {4096, 40, 32, 2, 128},
     .rope = {.pairing = interleaved, .theta = 10000},
     .slice = {.partial = 0.5, .partial_keys = partial_factor}},
    {.types = "glm4v glm4v_text", .context = 32 * K, .sizes = {4096, 40, 32, 2},
     .rope = {.pairing = interleaved, .theta = 10000}, .slice = {.partial_keys = partial_factor},
     .axes = {.sections = "8 12 12"}},
    {.types = "glm_ocr glm_ocr_text", .context = 128 * K, .sizes = {1024, 16, 16, 8},
     .rope = {.pairing = interleaved}, .slice = {.partial_keys = partial_factor},
     .axes = {.sections = "8 12 12"}},
    {.types = "chatglm",
     .rope = {.pairing = interleaved, .theta = 10000, .ratio_key = "rope_ratio"},
     .slice = {.rotary_half = true}, .heads = {.count_groups = true}},
    {.types = "ernie4_5", .context = 128 * K, .sizes = {1024, 18, 16, 2, 128},
     .rope = {.pairing = interleaved, .theta = 500000}},
    {.types = "ernie4_5_vl_moe ernie4_5_vl_moe_text ernie4_5_moe_vl", .context = 128 * K,
     .sizes = {2560, 28, 20, 4}, .rope = {.pairing = interleaved, .theta = 500000},
     .axes = {.sections = "22 22 20", .of_pairs = height_width_then_time}},
    {.types = "ernie4_5_moe", .context = 128 * K, .sizes = {2560, 28, 20, 4},
     .rope = {.pairing = interleaved, .theta = 500000}},
    {.types = "blt blt_global_transformer", .context = 4096, .sizes = {2048, 25, 16},
     .rope = {.pairing = interleaved, .theta = 500000}},
    {.types = "blt_local_encoder blt_local_decoder", .context = 24576, .sizes = {1024, 0, 16},
     .rope = {.pairing = interleaved, .theta = 500000}, .layers = {.pattern = all_slide}},
    {.types = "blt_patcher", .context = 8192, .sizes = {768, 14, 12},
     .rope = {.pairing = interleaved, .theta = 10000}, .layers = {.pattern = all_slide},
     .window = {.size = 512}},
    {.types = "openai_privacy_filter", .context = 128 * K, .sizes = {640, 8, 14, 2, 64},
     .causal = false,
     .rope = {.pairing = interleaved, .theta = 150000,
       .parameters = R"({"rope_type": "yarn", "factor": 32, "beta_fast": 32, "beta_slow": 1,
                       "truncate": false, "original_max_position_embeddings": 4096})"},
     .layers = {.pattern = all_slide}, .window = {.size = 128, .each_side = true},
     .attention = {.sinks = Sinks::all}},
    {.types = "helium", .context = 4096, .sizes = {2560, 24, 20, 20, 128},
     .rope = {.pairing = interleaved, .theta = 100000}},
    {.types = "roformer", .context = 1536, .sizes = {768, 12, 12}, .causal = false,
     .rope = {.pairing = interleaved, .theta = 10000, .values_key = "rotary_value"}},
};
// clang-format on

}  // namespace

std::span<const Family> rows_alike() { return alike; }

}  // namespace posenc::detail
