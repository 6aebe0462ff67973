// Families that add vectors to the embedding, or biases to the logits.
#include "src/model/families/logit_rules.h"
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// All sines, then all cosines. XGLM has fairseq's two rows before the first position, the second of
// them the zeros of padding.
constexpr Sinusoidal concatenated{.layout = WaveLayout::concatenated};
constexpr Sinusoidal fairseq_behind_padding{.layout = WaveLayout::concatenated,
                                            .spacing = WaveSpacing::ends,
                                            .odd = OddWidth::zero,
                                            .row_offset = 2,
                                            .padding_idx = 1};

constexpr std::string_view page_boxes =
    "positions have three axes, the place in the text and a word's left and lower edge in "
    "thousandths of the page; learned rows of each box, and patches, are added as well and are not "
    "in the plan";

constexpr std::string_view detector =
    "a patch stands at its shares of the picture, (row + 1)/rows and (column + 1)/columns";
constexpr std::string_view conditional =
    "a patch stands at its shares of the picture, (row + 1)/rows and (column + 1)/columns; rows of "
    "the decoder's queries are projected on their own";
constexpr std::string_view prompts =
    "points lie from -1 to 1 across the picture, and their vector, beside which a learned one says "
    "what kind of point it is, stands for a click or a corner of a box; frequencies are a tensor "
    "of the checkpoint, and nothing attends here";
constexpr std::string_view masks =
    "the vectors are those that the prompt encoder makes of clicks, and of patches by the same "
    "frequencies; between clicks and patches heads are narrower by attention_downsample_rate";
constexpr std::string_view resampled =
    "learned queries attend to the picture's features and to themselves: what the tower added is "
    "all that tells where features stand";
constexpr std::string_view hybrid =
    "the decoder, whose queries sample a few places, is not explained";

// clang-format off: one row a family, as dense as it can be read.
// sizes: width, layers, heads, key-value heads (0: as many), head_dim (0: width / heads).
constexpr Family added[] = {
    // --- vectors added to the embedding ----------------------------------------------------------
    {.types = "gpt2 gpt-sw3", .read = read_gpt2, .context = 1024, .sizes = {768, 12, 12},
     .attention = {.logits = scale_attn_weights}},
    {.types = "imagegpt", .read = read_gpt2, .context = 1024, .sizes = {512, 24, 8},
     .attention = {.logits = scale_attn_weights}},
    {.types = "openai-gpt", .read = read_learned, .context = 512, .sizes = {768, 12, 12}},
    {.types = "gpt_bigcode", .read = read_learned, .context = 1024, .sizes = {768, 12, 12, 1},
     .attention = {.logits = scale_attn_weights}},
    {.types = "gpt_neo", .read = read_gpt_neo, .context = 2048, .sizes = {2048, 24, 16}},
    {.types = "opt", .read = read_learned, .context = 2048, .sizes = {768, 12, 12},
     .added = {.row_offset = 2, .rows_beyond = true}},
    {.types = "biogpt", .read = read_learned, .context = 1024, .sizes = {1024, 24, 16},
     .added = {.row_offset = 2, .rows_beyond = true, .scale_embedding = true}},
    {.types = "clip clip_text_model clipseg_text_model metaclip_2_text_model xclip_text_model",
     .read = read_learned, .context = 77, .sizes = {512, 12, 8}},
    {.types = "groupvit_text_model", .read = read_learned, .context = 77, .sizes = {256, 12, 4}},
    {.types = "owlvit_text_model owlv2_text_model", .read = read_learned, .context = 16,
     .sizes = {512, 12, 8}},
    {.types = "aimv2_text_model", .read = read_learned, .context = 77, .sizes = {768, 12, 6}},
    {.types = "siglip siglip_text_model siglip2_text_model", .read = read_learned, .context = 64,
     .sizes = {768, 12, 12}, .causal = false},
    {.types = "git", .read = read_learned, .context = 1024, .sizes = {768, 6, 12},
     .remark = "git: patches stand in front of the text and see each other both ways"},
    {.types = "blip_text_model", .read = read_learned, .context = 512, .sizes = {768, 12, 8}},
    {.types = "bros", .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .remark = "bros: queries meet projected sinusoids of how the corners of two boxes differ, "
               "which is a rotation by axes of W^T q beside each head and is not in the plan "
               "(docs/axes.md)"},
    {.types = "bert ernie visual_bert roc_bert splinter squeezebert dpr align_text_model "
              "chinese_clip_text_model flava_text_model instructblip_qformer "
              "instructblipvideo_qformer", .read = read_learned, .context = 512,
     .sizes = {768, 12, 12}, .causal = false},
    {.types = "layoutlm", .read = read_learned, .context = 512, .sizes = {768, 12, 12},
     .causal = false,
     .remark = "learned rows of each word's box on the page are added as well; they are not in "
               "the plan"},
    {.types = "tapas", .read = read_learned, .context = 1024, .sizes = {768, 12, 12},
     .causal = false,
     .remark = "tapas: positions begin anew in each cell of the table (reset_position_index_per_"
               "cell), whose row and column add rows of their own"},
    {.types = "rembert", .read = read_learned, .context = 512, .sizes = {1152, 32, 18},
     .causal = false, .added = {.table_width = "input_embedding_size"}},
    {.types = "vilt", .read = read_learned, .context = 40, .sizes = {768, 12, 12}, .causal = false,
     .remark = "vilt: patches stand behind the text, with a learned table of their own that is "
               "stretched to the picture"},
    {.types = "tvp", .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .remark = "tvp: patches stand beside the text, with learned rows of frame, row and column"},
    {.types = "mra", .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .added = {.row_offset = 2, .rows_beyond = true}},
    {.types = "nystromformer", .read = read_learned, .context = 510, .sizes = {768, 12, 12},
     .causal = false, .added = {.row_offset = 2, .rows_beyond = true}},
    {.types = "yoso", .read = read_learned, .context = 4096, .sizes = {768, 12, 12},
     .causal = false, .added = {.row_offset = 2, .rows_beyond = true}},
    {.types = "mobilebert", .read = read_learned, .context = 512, .sizes = {512, 24, 4},
     .causal = false, .heads = {.width_key = "intra_bottleneck_size", .width = 128}},
    {.types = "megatron-bert bert-generation", .read = read_learned, .context = 512,
     .sizes = {1024, 24, 16}, .causal = false},
    {.types = "big_bird", .read = read_learned, .context = 4096, .sizes = {768, 12, 12},
     .causal = false},
    {.types = "electra", .read = read_learned, .context = 512, .sizes = {256, 12, 4},
     .causal = false, .added = {.table_width = "embedding_size"}},
    {.types = "convbert", .read = read_learned, .context = 512, .sizes = {768, 12, 12},
     .causal = false, .added = {.table_width = "embedding_size"},
     .remark = "convbert: head_ratio convolutions stand for as many heads"},
    {.types = "albert", .read = read_learned, .context = 512, .sizes = {4096, 12, 64},
     .causal = false, .added = {.table_width = "embedding_size"}},
    {.types = "distilbert", .read = read_waves_if_said, .context = 512, .sizes = {768, 6, 12},
     .causal = false},
    {.types = "roberta xlm-roberta camembert roberta-prelayernorm data2vec-text xmod ibert "
              "luke", .read = read_learned, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .added = {.row_offset = 2}},
    {.types = "bridgetower_text_model clap_text_model", .read = read_learned, .context = 514,
     .sizes = {768, 12, 12}, .causal = false, .added = {.row_offset = 2}},
    {.types = "altclip_text_model", .read = read_learned, .context = 514, .sizes = {1024, 24, 16},
     .causal = false, .added = {.row_offset = 2}},
    {.types = "lilt markuplm", .read = read_learned, .context = 512, .sizes = {768, 12, 12},
     .causal = false, .added = {.row_offset = 2},
     .remark = "what a word's place on the page adds is not in the plan"},
    {.types = "layoutlmv2 layoutxlm", .read = read_page, .context = 512, .sizes = {768, 12, 12},
     .causal = false, .bias = {.page = PageBias::after_the_scale}, .remark = page_boxes},
    {.types = "layoutlmv3", .read = read_page, .context = 512, .sizes = {768, 12, 12},
     .causal = false, .added = {.row_offset = 2}, .bias = {.page = PageBias::with_the_product},
     .remark = page_boxes},
    {.types = "longformer", .read = read_longformer, .context = 512, .sizes = {768, 12, 12},
     .causal = false, .window = {.size = 512}, .added = {.row_offset = 2},
     .remark = "longformer: tokens marked global attend to all, and all to them"},
    {.types = "xlm-roberta-xl", .read = read_learned, .context = 514, .sizes = {2560, 36, 32},
     .causal = false, .added = {.row_offset = 2}},
    {.types = "mpnet", .read = read_mpnet, .context = 512, .sizes = {768, 12, 12}, .causal = false,
     .added = {.row_offset = 2}},
    {.types = "esm", .read = read_esm, .context = 1026, .sizes = {768, 12, 12}, .causal = false,
     .added = {.row_offset = 2}},
    {.types = "xlm flaubert", .read = read_waves_if_said, .context = 512, .sizes = {2048, 12, 16},
     .causal = false},
    {.types = "ctrl", .read = read_waves, .context = 256, .sizes = {1280, 48, 16},
     .added = {.waves = concatenated, .scale_embedding = true}},
    {.types = "xglm", .read = read_waves, .context = 2048, .sizes = {1024, 24, 16},
     .added = {.waves = fairseq_behind_padding, .scale_embedding = true}},
    {.types = "kosmos_2_text_model", .read = read_waves, .context = 2048, .sizes = {2048, 24, 32},
     .added = {.waves = fairseq_behind_padding, .scale_embedding = true}},
    {.types = "kosmos_2_5_text_model", .read = read_waves, .context = 4096, .sizes = {1536, 24, 16},
     .added = {.waves = fairseq_behind_padding, .scale_embedding = true}},
    {.types = "tipsv2_text_model", .read = read_waves, .context = 64, .sizes = {768, 12, 12},
     .causal = false, .added = {.waves = fairseq, .scale_embedding = true}},
    {.types = "videoprism_text_model", .read = read_waves, .context = 64, .sizes = {768, 12, 12},
     .attention = {.logits = capped}, .added = {.waves = concatenated, .scale_embedding = true}},
    {.types = "trocr", .read = read_waves_if_said, .context = 512, .sizes = {1024, 12, 16},
     .side = "decoder",
     .added = {.row_offset = 2, .rows_beyond = true, .waves = fairseq_behind_padding}},

    // --- detectors: sinusoids of rows and columns ------------------------------------------------
    {.types = "detr table-transformer", .read = read_detector, .context = 100, .sizes = {256, 6, 8},
     .added = {.shares = true}, .remark = detector},
    {.types = "conditional_detr", .read = read_detector, .context = 300, .sizes = {256, 6, 8},
     .added = {.shares = true}, .remark = conditional},
    {.types = "rt_detr rt_detr_v2 d_fine deimv2 pp_doclayout_v2 pp_doclayout_v4",
     .read = read_detector, .sizes = {256, 1, 8}, .added = {.waves = concatenated},
     .remark = hybrid},

    {.types = "sam3_detr_encoder sam3_lite_text_detr_encoder", .read = read_detector,
     .sizes = {256, 6, 8}, .added = {.shares = true}, .remark = detector},
    {.types = "sam_prompt_encoder sam_hq_prompt_encoder sam2_prompt_encoder "
              "sam2_video_prompt_encoder edgetam_prompt_encoder edgetam_video_prompt_encoder "
              "sam3_tracker_prompt_encoder sam3_tracker_video_prompt_encoder", .read = read_prompts,
     .sizes = {256, 1}, .remark = prompts},
    {.types = "sam_mask_decoder sam_hq_mask_decoder sam2_mask_decoder sam2_video_mask_decoder "
              "edgetam_mask_decoder edgetam_video_mask_decoder sam3_tracker_mask_decoder "
              "sam3_tracker_video_mask_decoder", .read = read_prompts, .sizes = {256, 2, 8},
     .remark = masks},
    {.types = "idefics2_perceiver", .read = read_resampler, .sizes = {4096, 3, 16, 4, 96},
     .remark = resampled},
    {.types = "idefics_perciever", .read = read_resampler, .sizes = {1536, 6, 16, 0, 96},
     .remark = resampled},
    {.types = "molmo2_adapter", .read = read_resampler, .sizes = {1152, 1, 16, 16, 72},
     .remark = "each query is the mean of a few neighbouring patches and attends to those alone: what "
               "the tower added is all that tells where they stand"},

    // --- biases and vectors by distance ----------------------------------------------------------
    {.types = "bloom", .read = read_bloom, .sizes = {64, 2, 8}},
    {.types = "mpt", .read = read_mpt, .context = 2048, .sizes = {2048, 24, 16}},
    {.types = "jais", .read = read_jais, .context = 1024, .sizes = {768, 12, 12}},
    {.types = "deberta", .read = read_deberta, .context = 512, .sizes = {768, 12, 12},
     .causal = false},
    {.types = "deberta-v2", .read = read_deberta, .context = 512, .sizes = {1536, 24, 24},
     .causal = false},
    {.types = "t5", .read = read_t5, .sizes = {512, 6, 8, 0, 64}},
    {.types = "udop", .read = read_t5, .sizes = {1024, 24, 16, 0, 64},
     .bias = {.page = PageBias::after_the_scale},
     .remark = "patches stand among the words by their boxes, and learned rows of each box are "
               "added, which the plan does not say"},
    {.types = "mt5", .read = read_t5, .sizes = {512, 8, 6, 0, 64}},
    {.types = "umt5", .read = read_t5, .sizes = {512, 8, 6, 0, 64},
     .bias = {.table_each_layer = true}},
    {.types = "pop2piano", .read = read_t5, .sizes = {512, 6, 8, 0, 64}},
    {.types = "pix2struct_text_model", .read = read_t5, .sizes = {768, 12, 12, 0, 64},
     .side = "decoder"},
    {.types = "switch_transformers", .read = read_t5, .sizes = {768, 12, 12, 0, 64}},
    {.types = "longt5", .read = read_t5, .sizes = {512, 6, 8, 0, 64},
     .remark = "longt5: the encoder attends to a neighbourhood of local_radius and, as tglobal, "
               "to summaries of blocks with a bias of their own"},

    // --- encoder and decoder with added vectors --------------------------------------------------
    {.types = "bart mbart mvp", .read = read_bart, .context = 1024, .sizes = {1024, 12, 16},
     .added = {.row_offset = 2}},
    {.types = "plbart", .read = read_bart, .context = 1024, .sizes = {768, 6, 12},
     .added = {.row_offset = 2}},
    {.types = "led", .read = read_led, .context = 1024, .sizes = {1024, 12, 16}},
    {.types = "blenderbot", .read = read_bart, .context = 128, .sizes = {2560, 0, 32}},
    {.types = "blenderbot-small", .read = read_bart, .context = 512, .sizes = {512, 8, 16}},
    {.types = "bigbird_pegasus", .read = read_bart, .context = 4096, .sizes = {1024, 16, 16},
     .added = {.scale_embedding = true}},
    {.types = "marian pegasus", .read = read_marian, .context = 1024, .sizes = {1024, 12, 16},
     .added = {.waves = concatenated}},
    {.types = "pegasus_x", .read = read_marian, .context = 16 * K, .sizes = {1024, 16, 16},
     .added = {.waves = fairseq, .scale_embedding = true},
     .remark = "pegasus_x: the encoder attends within blocks of block_size, every other layer half "
               "a block further, and to global tokens with vectors of their own"},
    {.types = "informer time_series_transformer", .read = read_marian, .sizes = {64, 2, 2},
     .added = {.waves = concatenated}},
    {.types = "fsmt", .read = read_m2m, .context = 1024, .sizes = {1024, 12, 16},
     .added = {.waves = fairseq, .scale_embedding = true}},
    {.types = "encoder-decoder vision-encoder-decoder speech-encoder-decoder", .read = read_parts},
    {.types = "m2m_100 nllb-moe", .read = read_m2m, .context = 1024, .sizes = {1024, 12, 16},
     .added = {.waves = fairseq, .scale_embedding = true}},
    {.types = "whisper", .read = read_whisper, .context = 448, .sizes = {384, 4, 6},
     .added = {.waves = fairseq}},
};
// clang-format on

}  // namespace

std::span<const Family> rows_added() { return added; }

}  // namespace posenc::detail
