// Families whose layers have no attention, or whose few attend without positions among convolutions:
// what carries the order in its place.
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// clang-format off: one row a reason, as dense as it can be read.
constexpr Family without_attention[] = {
    {.types = "mamba mamba2 falcon_mamba rwkv rwkv5 rwkv6 rwkv7 xlstm", .read = read_recurrence,
     .remark = "its recurrence carries the order of tokens"},
    {.types = "convnext convnextv2 resnet regnet efficientnet align_vision_model bit "
              "mobilenet_v1 mobilenet_v2 hgnet_v2 dinov3_convnext textnet superpoint pp_lcnet "
              "pp_lcnet_v3 pp_lcnet_v4 rt_detr_resnet uvdoc uvdoc_backbone gemma3n_vision "
              "timm_backbone timm_wrapper pp_ocrv5_mobile_det pp_ocrv5_server_det "
              "pp_ocrv6_medium_det pp_ocrv6_small_det pp_ocrv6_tiny_det dac encodec univnet "
              "vibevoice_acoustic_tokenizer vibevoice_acoustic_tokenizer_encoder "
              "vibevoice_acoustic_tokenizer_decoder wavtokenizer_encoder "
              "fastspeech2_conformer_hifigan "
              "speecht5_hifigan qwen2_5_omni_bigvgan glm_image_vqmodel flava_image_codebook "
              "inkling_vision inkling_audio gemma4_unified_audio gemma4_unified_vision "
              "poolformer focalnet muse_spark_audio",
     .read = read_convolutions, .remark = "convolutions or patches alone carry the place"},
    {.types = "wavtokenizer apertus1p5_vision_tokenizer janus_vqgan chameleon_vqgan emu3_vqgan",
     .read = read_convolutions,
     .remark = "the attention that stands among its convolutions has no positions: they carry the place"},
    {.types = "mlp_speculator medusa", .read = read_perceptrons, .own_code = true,
     .remark = "a draft of perceptrons on the target's last hidden state: the target's positions are all there are"},
    {.types = "patchtsmixer vibevoice_diffusion", .read = read_perceptrons,
     .remark = "perceptrons mix what other models mix by attention"},
};
// clang-format on

}  // namespace

std::span<const Family> rows_without_attention() { return without_attention; }

}  // namespace posenc::detail
