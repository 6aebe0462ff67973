// Vision towers, one row each. Sizes are defaults of the configuration class, used only where the
// file is silent.
#include <algorithm>
#include <span>

#include "src/model/families/vision.h"

namespace posenc::detail {
namespace {

constexpr std::string_view tiled =
    "the learned table is of a smaller picture, repeated over the patches of a larger one";
constexpr std::string_view resized =
    "the learned table is stretched to the picture's grid; rows are those stored";
constexpr std::string_view rows_by_share =
    "a patch reads the row at its share of the picture's height and width, so that a picture of "
    "another shape reads rows further apart";

constexpr std::string_view counted_from_one =
    "rows and columns of patches count from 1; row 0 of either table is that of padding";

// clang-format off: one row a tower, as dense as it can be read.
constinit const Tower learned[] = {
    {.types = "clip_vision_model clip chinese_clip_vision_model altclip_vision_model "
              "clipseg_vision_model metaclip_2_vision_model xclip_vision_model", .patch = 32},
    {.types = "siglip_vision_model siglip ijepa", .extra_rows = 0},
    {.types = "groupvit_vision_model", .width = 384, .heads = 6, .extra_rows = 0},
    {.types = "vit vit_msn flava_image_model git_vision_model "
              "timesformer"},
    {.types = "lw_detr_vit", .image_key = "pretrain_image_size", .remark = resized},
    {.types = "deit", .extra_rows = 2},
    {.types = "dpt blip_vision_model", .image = 384},
    {.types = "dinov2 rf_detr_dinov2", .patch = 14, .remark = resized},
    {.types = "dinov2_with_registers", .remark = resized},
    {.types = "tipsv2_vision_model", .image = 448, .patch = 14, .remark = resized},
    {.types = "aimv2_vision_model", .width = 1024, .layers = 24, .heads = 8, .patch = 14,
     .extra_rows = 0},
    {.types = "ovis2_vision", .width = 1024, .layers = 24, .heads = 8, .patch = 14,
     .extra_rows = 0, .remark = resized},
    {.types = "blip_2_vision_model instructblip_vision_model instructblipvideo_vision_model",
     .width = 1408, .layers = 39, .heads = 16, .patch = 14},
    {.types = "bridgetower_vision_model", .image = 288},
    {.types = "kosmos_2_vision_model", .width = 1024, .layers = 24, .heads = 16, .patch = 14},
    {.types = "unlimited_ocr_vision_encoder", .width = 1024, .layers = 24, .heads = 16,
     .patch = 14, .remark = resized},
    {.types = "idefics_vision", .layers = 32, .heads = 16, .patch = 14},
    {.types = "idefics2_vision", .patch = 32, .extra_rows = 0, .remark = rows_by_share},
    {.types = "idefics3_vision smolvlm_vision", .width = 1152, .heads = 16, .patch = 32,
     .extra_rows = 0, .remark = rows_by_share},
    {.types = "minicpm_ocr_vision minicpmv4_6_vision minicpmv4_7_vision", .extra_rows = 0,
     .remark = rows_by_share},
    {.types = "phi4_multimodal_vision", .width = 1152, .layers = 27, .heads = 16, .image = 448,
     .patch = 14, .extra_rows = 0, .remark = rows_by_share},
    {.types = "granite_docling_vision", .image = 512, .extra_rows = 0, .remark = resized},
    {.types = "janus_vision_model", .width = 1024, .layers = 24, .heads = 16, .image = 384,
     .extra_rows = 0, .remark = resized},
    {.types = "siglip2_vision_model", .rows = 256, .rows_key = "num_patches", .remark = resized},
    {.types = "cosmos3_edge_vision", .width = 1152, .layers = 27, .heads = 16, .rows = 256,
     .rows_key = "num_patches", .remark = resized},
    {.types = "molmo2_vision", .width = 1152, .layers = 25, .heads = 16, .rows = 729},
    {.types = "owlvit_vision_model", .image = 768, .patch = 32},
    {.types = "owlv2_vision_model", .image = 768},
    {.types = "mllama_vision_model", .width = 1280, .layers = 32, .heads = 16, .image = 448,
     .patch = 14,
     .remark = "each tile of a picture adds vectors of its own by its place among the tiles, which "
               "are not in the plan"},
    {.types = "internvl_vision qianfan_ocr_vision", .width = 1024, .layers = 24, .heads = 16,
     .image = 448, .patch = 14},
    {.types = "hunyuan_vl_vision", .width = 1152, .layers = 27, .heads = 16, .image = 2048,
     .image_key = "max_image_size", .remark = resized},
    {.types = "hy_v4_vl_vision", .width = 1536, .layers = 40, .heads = 16, .image = 2048,
     .image_key = "max_image_size", .remark = resized},
    {.types = "glm_image_vision", .width = 1536, .layers = 40, .heads = 16, .image = 2048,
     .extra_rows = 0, .remark = resized},
    {.types = "radio", .width = 1280, .layers = 32, .heads = 16, .image = 2048, .extra_rows = 0,
     .image_key = "max_img_size", .remark = resized},
    {.types = "pixio", .width = 1280, .layers = 32, .heads = 16, .image = 256, .extra_rows = 8,
     .remark = resized},
    {.types = "eomt videomt", .width = 1024, .layers = 24, .heads = 16, .image = 640,
     .extra_rows = 0,
     .remark = "the table is of patches; queries without position join them in the last layers"},
    {.types = "mgp-str", .image = 32, .patch = 4},
    {.types = "vitpose_backbone", .image = 256},
    {.types = "yolos", .image = 512, .extra_rows = 101,
     .remark = "behind the patches stand a hundred tokens of detections; each layer in the middle "
               "may add a table of its own"},
    {.types = "vivit", .frames = 32},
    {.types = "videomae", .kind = TowerKind::waves},
    {.types = "vit_mae", .kind = TowerKind::waves, .by_axis_waves = true,
     .remark = "in training three patches of four are left out; the decoder that fills them in is "
               "not explained, and the class token adds nothing"},
    {.types = "pix2struct_vision_model", .rows = 4096, .rows_key = "seq_len", .by_axis = true,
     .unscaled = true, .remark = counted_from_one},
    {.types = "kosmos_2_5_vision_model", .width = 1536, .layers = 18, .heads = 24, .rows = 4096,
     .rows_key = "max_num_patches", .by_axis = true, .remark = counted_from_one},
};

constexpr std::string_view swin_remark =
    "where a window reaches over the edge of the moved picture, its parts do not see each other";
constexpr std::string_view sam_remark =
    "the learned table is added once, by the patch's place in the picture, and is not of windows";
constexpr std::string_view bare_remark =
    "attention without positions, whose keys are fewer than its queries";
constinit const Tower by_distance[] = {
    {.types = "swin donut-swin maskformer-swin", .kind = TowerKind::grid_bias, .read = read_stages,
     .width = 96, .patch = 4, .depths = "2 2 6 2", .stage_heads = "3 6 12 24", .window = 7,
     .remark = swin_remark},
    {.types = "clap_audio_model", .kind = TowerKind::grid_bias, .read = read_stages, .width = 96,
     .image = 256, .patch = 4, .image_key = "spec_size", .depths = "2 2 6 2",
     .stage_heads = "4 8 16 32", .window = 8, .remark = swin_remark},
    {.types = "swinv2", .kind = TowerKind::log_cpb, .read = read_stages, .width = 96, .patch = 4,
     .depths = "2 2 6 2", .stage_heads = "3 6 12 24", .window = 7, .remark = swin_remark},
    {.types = "swin2sr", .kind = TowerKind::log_cpb, .read = read_stages, .width = 180, .image = 64,
     .patch = 1, .depths = "6 6 6 6 6 6", .stage_heads = "6 6 6 6 6 6", .merges = false,
     .window = 8, .remark = swin_remark},
    {.types = "levit", .kind = TowerKind::grid_bias, .read = read_shrinking,
     .depths = "4 4 4", .stage_heads = "4 8 12"},
    {.types = "segformer glpn pvt_v2", .kind = TowerKind::bare, .read = read_narrowing, .patch = 4,
     .depths = "2 2 2 2", .stage_heads = "1 2 5 8", .stage_widths = "32 64 160 256",
     .remark = bare_remark},
    {.types = "cvt", .kind = TowerKind::bare, .read = read_narrowing, .patch = 4,
     .depths = "1 2 10", .stage_heads = "1 3 6", .stage_widths = "64 192 384",
     .remark = bare_remark},
    {.types = "mobilevit", .kind = TowerKind::bare, .read = read_narrowing, .patch = 2,
     .depths = "2 4 3", .stage_heads = "4 4 4", .stage_widths = "144 192 240",
     .remark = "tokens that stand alike in their patches attend to each other, without positions"},
    {.types = "pvt", .kind = TowerKind::learned, .read = read_narrowing, .patch = 4,
     .patch_key = "patch_sizes", .depths = "2 2 2 2", .stage_heads = "1 2 5 8",
     .stage_widths = "64 128 320 512",
     .remark = "each stage adds a table of its own, the last with a class token; keys are fewer "
               "than queries"},
    {.types = "sam2_hiera_det_model", .read = read_hiera, .width = 96, .image = 1024, .patch = 4,
     .patch_key = "patch_stride", .depths = "1 2 7 2", .stage_heads = "1 2 4 8",
     .stage_widths = "96 192 384 768",
     .remark = "the table that stage 1 adds is the sum of two: a small one stretched to the "
               "picture's patches, bicubic, and one of a window, repeated (posenc resample --onto)"},
    {.types = "hiera", .read = read_mask_units, .width = 96, .patch = 4,
     .patch_key = "patch_stride", .depths = "2 3 16 3", .stage_heads = "1 2 4 8", .window = 8,
     .remark = resized},
    {.types = "dinat", .kind = TowerKind::grid_bias, .read = read_neighbourhoods, .width = 64,
     .patch = 4, .depths = "3 4 6 5", .stage_heads = "2 4 8 16", .window = 7,
     .remark = "which keys a query sees is neighbourhood()'s list (positions.h); the file says no "
               "size of pictures, and grids are those of 224 × 224"},
    {.types = "beit data2vec-vision", .kind = TowerKind::grid_bias, .read = read_class_and_grid},
    {.types = "sam_vision_model sam_hq_vision_model got_ocr2_vision deepseek_ocr2_sam_vision_model "
              "unlimited_ocr_sam_vision_model",
     .kind = TowerKind::decomposed, .read = read_windows, .image = 1024, .extra_rows = 0,
     .window = 14, .full_layers = "2 5 8 11", .remark = sam_remark},
    {.types = "slanext_vision pp_formulanet_vision", .kind = TowerKind::decomposed,
     .read = read_windows, .image = 512, .extra_rows = 0, .window = 14,
     .full_layers = "2 5 8 11", .remark = sam_remark},
    {.types = "vitdet", .kind = TowerKind::decomposed, .read = read_windows, .relative = false,
     .pretrain_image = 224, .remark = resized},
    {.types = "seggpt", .kind = TowerKind::decomposed, .read = read_windows, .width = 1024,
     .layers = 24, .heads = 16, .image = 448, .pretrain_image = 224, .remark = resized},
    {.types = "sam3_vit_model", .kind = TowerKind::rotated_windows, .read = read_windows,
     .axial = {.rope_theta = 10000}, .width = 1024, .layers = 32, .heads = 16, .image = 1008,
     .patch = 14, .extra_rows = 0, .window = 24, .full_layers = "7 15 23 31", .relative = false,
     .pretrain_image = 336, .remark = tiled},
};

constexpr Axial qwen{
    .rope_theta = 10000, .pairing = Pairing::halves, .order = AxisOrder::height_width};
constexpr Axial unlike(Axial axial, AxisOrder order, Pairing pairing) {
  axial.order = order;
  axial.pairing = pairing;
  return axial;
}
constexpr Axial lfm3{
    .rope_theta = 1e6, .pairing = Pairing::halves, .order = AxisOrder::height_width};
constexpr Axial dinov3{.rope_theta = 100, .pairing = Pairing::halves,
                       .order = AxisOrder::height_width, .normalised = true};
constexpr Axial pixtral{.rope_theta = 10000, .pairing = Pairing::halves,
                        .order = AxisOrder::height_width,
                        .frequencies = AxisFrequencies::alternating};
constexpr Axial kimi{.rope_theta = 10000, .pairing = Pairing::halves,
                     .order = AxisOrder::width_height, .frequencies = AxisFrequencies::in_turns};

constexpr auto rotated = TowerKind::rotated, both = TowerKind::rotated_and_learned;
constinit const Tower turning[] = {
    {.types = "vjepa2", .kind = rotated,
     .axial = {.rope_theta = 10000, .pairing = Pairing::interleaved, .tiled = true},
     .thirds = true, .width = 1024, .layers = 24, .heads = 16, .image = 256,
     .image_key = "crop_size",
     .remark = "the predictor behind, of pred_hidden_size, rotates in the same way"},
    {.types = "dinov3_vit", .kind = rotated, .axial = dinov3, .width = 384, .heads = 6},
    {.types = "sapiens2 eomt_dinov3", .kind = rotated, .axial = dinov3, .width = 1024,
     .layers = 24, .heads = 16},
    {.types = "pixtral", .kind = rotated, .axial = pixtral, .width = 1024, .layers = 24,
     .heads = 16, .image = 1024},
    // The same tower in a params.json: neighbours, not halves; sizes have no default there.
    {.types = "mistral-inference", .kind = rotated,
     .axial = unlike(pixtral, AxisOrder::height_width, Pairing::interleaved), .width = 0,
     .layers = 0, .heads = 0},

    // Qwen2-VL's layout.
    {.types = "qwen2_vl_vision qwen2_vl ernie4_5_vl_moe_vision ernie4_5_vl_moe", .kind = rotated,
     .axial = qwen, .width = 1280, .layers = 32, .heads = 16},
    {.types = "qwen2_5_vl_vision qwen2_5_vl qwen2_5_omni_vision_encoder exaone4_5_vision",
     .kind = rotated, .axial = qwen, .width = 3584, .layers = 32, .heads = 16, .patch = 14},
    {.types = "glm_ocr_vision glm5_next_vision", .kind = rotated, .axial = qwen, .width = 1024,
     .layers = 24, .heads = 16, .patch = 14},
    {.types = "dots3_note_vision_encoder", .kind = rotated, .axial = qwen, .width = 1536,
     .layers = 42, .heads = 24, .patch = 14},
    {.types = "video_llama_3_vision", .kind = rotated, .axial = qwen},
    {.types = "lfm3_vl_vision", .kind = rotated, .axial = lfm3, .width = 1024, .layers = 14,
     .heads = 16},
    {.types = "mlcd mlcd_vision_model", .kind = rotated, .axial = qwen, .width = 1664,
     .layers = 48, .heads = 16, .image = 336, .patch = 14,
     .remark = "the class token rotates by angles of its own, which are learned"},
    {.types = "qwen3_vl_vision qwen3_vl qwen3_vl_moe_vision qwen3_vl_moe qwen3_5_vision qwen3_5 "
              "qwen3_5_moe_vision qwen3_5_moe qwen3_omni_moe_vision_encoder qwen4_exp_vision "
              "cohere_compass_vision interns1_pro_vision",
     .kind = both, .axial = qwen, .width = 1152, .layers = 27, .heads = 16, .extra_rows = 0,
     .rows = 2304, .remark = resized},
    {.types = "glm4v_vision glm4v_moe_vision", .kind = both, .axial = qwen, .width = 1536,
     .layers = 24, .heads = 12, .image = 336, .patch = 14, .extra_rows = 0, .remark = resized},
    {.types = "paddleocr_vl_vision", .kind = both, .axial = qwen, .width = 1152, .layers = 27,
     .heads = 16, .image = 384, .patch = 14, .extra_rows = 0, .remark = resized},

    // Others.
    {.types = "kimi_k25_vision", .kind = both, .axial = kimi, .width = 1152, .layers = 27,
     .heads = 16, .image = 64, .extra_rows = 0, .image_key = "pos_emb_height", .patch_key = "",
     .remark = "the learned table is stretched to the picture's grid; frames of a video add a "
               "sinusoid of their number, which is not in the plan"},
    {.types = "muse_glimmer_vision muse_spark_vision", .kind = both,
     .axial = unlike(qwen, AxisOrder::width_height, Pairing::halves), .width = 1536, .layers = 50,
     .heads = 16, .patch = 14, .rows = 1024, .rows_key = "max_position_embeddings",
     .remark = "the learned table is stretched to the picture's grid; the tower counts rows and "
               "columns from 1"},
    {.types = "step3p5_vision", .kind = both,
     .axial = unlike(qwen, AxisOrder::width_height, Pairing::halves), .width = 1536, .layers = 47,
     .heads = 16, .image = 728, .patch = 14, .rows = 2704, .rows_key = "max_position_embeddings",
     .remark = resized},
    {.types = "inkling2_vision", .kind = both,
     .axial = unlike(qwen, AxisOrder::width_height, Pairing::interleaved), .width = 1024,
     .layers = 23, .heads = 16, .image = 32, .extra_rows = 0, .image_key = "posemb_grid_size",
     .patch_key = "",
     .remark = "the learned table is stretched to the picture's grid; the tower counts rows and "
               "columns from 1, and the class token stands at (0, 0)"},
    {.types = "minimax_m3_vl_vision", .kind = rotated,
     .axial = unlike(qwen, AxisOrder::width_height, Pairing::halves), .thirds = true,
     .width = 1280, .layers = 32, .heads = 16, .patch = 14},
    {.types = "gemma4_vision gemma4", .kind = both,
     .axial = {.rope_theta = 100, .pairing = Pairing::halves, .order = AxisOrder::width_height,
               .blocks = true},
     .layers = 16, .rows = 10240, .rows_key = "position_embedding_size", .by_axis = true,
     .unscaled = true},
    {.types = "llama4_vision_model llama4", .kind = both,
     .axial = unlike(qwen, AxisOrder::width_height, Pairing::interleaved), .layers = 34,
     .heads = 16, .image = 448, .patch = 14,
     .remark = "the tower counts rows and columns from 1, and the class token is not rotated"},
};
// clang-format on

}  // namespace

const Tower* find_tower(std::string_view type) {
  if (type.empty()) return nullptr;
  const auto has_type = [&](const Tower& tower) { return contains_word(tower.types, type); };
  for (const std::span<const Tower> towers :
       {std::span<const Tower>(learned), std::span<const Tower>(turning),
        std::span<const Tower>(by_distance)}) {
    const auto found = std::ranges::find_if(towers, has_type);
    if (found != towers.end()) return &*found;
  }
  return nullptr;
}

}  // namespace posenc::detail
