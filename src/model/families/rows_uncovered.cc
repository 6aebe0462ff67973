// Families that are known and not covered, by the reason: what their attention or their positions
// need, and no scheme of posenc says.
#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// clang-format off: one row a reason, as dense as it can be read.
constexpr Family uncovered[] = {
    // --- what stands before the attention, or in its place ---------------------------------------
    {.types = "fnet", .read = read_not_covered,
     .remark = "Fourier transforms mix tokens, whose learned rows are added before"},
    {.types = "autoformer", .read = read_not_covered,
     .remark = "autocorrelation stands for attention: delays are weighed, not tokens"},
    {.types = "reformer", .read = read_not_covered,
     .remark = "its table is a sum over two axes, and its attention sorts tokens by hashes"},
    {.types = "fun_asr_nano_encoder", .read = read_not_covered,
     .remark = "convolutions over values stand beside attention, and sinusoids are added to the "
               "spectrum before it is widened"},
    {.types = "canine", .read = read_not_covered,
     .remark = "its table is of characters, of which layers between see every fourth"},
    {.types = "perceiver patchtst sapiens2_head", .read = read_not_covered,
     .remark = "its inputs decide what position is: each kind has vectors of its own, or none"},

    // --- convolutions as positions ---------------------------------------------------------------
    {.types = "sew-d", .read = read_not_covered,
     .remark = "a convolution gives its sounds their positions, beside products with vectors by "
               "distance"},
    {.types = "xcodec higgs_audio_v2_tokenizer mobilevitv2 swiftformer florence_vision "
              "sam3_lite_text_text_model", .read = read_not_covered,
     .remark = "convolutions over neighbours give tokens their positions, which no plan says"},
    {.types = "speecht5", .read = read_not_covered,
     .remark = "convolutions give its sounds their positions, beside vectors by distance"},

    // --- relative, as Transformer-XL and its kin -------------------------------------------------
    {.types = "transfo-xl", .read = read_not_covered,
     .remark = "a memory of earlier segments stands before its keys, and distances from clamp_len "
               "on share a vector, beside the terms of the scheme transformer_xl"},
    {.types = "funnel", .read = read_not_covered,
     .remark = "queries and learned biases meet projected sinusoids of the distance (the scheme "
               "transformer_xl), in stages that have fewer and fewer tokens, and queries fewer than "
               "keys between them"},
    {.types = "cpmant", .read = read_not_covered,
     .remark = "its buckets depend on the segments of the prompt as well"},
    {.types = "prophetnet xlm-prophetnet", .read = read_not_covered,
     .remark = "its decoder predicts several tokens at once, by biases that are products with the "
               "query's content"},

    // --- relative, of pictures -------------------------------------------------------------------
    {.types = "pp_formulanet pp_formulanet_text pp_chart2table_vision deepseek_ocr2_vision "
              "unlimited_ocr_vision", .read = read_not_covered,
     .remark = "behind SAM's tower stands another model, described by a part of the file"},

    // --- added, of pictures and sound ------------------------------------------------------------
    {.types = "deformable_detr lw_detr rf_detr omdet-turbo grounding-dino mm-grounding-dino",
     .read = read_not_covered,
     .remark = "a few sampled places stand for keys, so that no logit knows a position; sinusoids "
               "by axis (the scheme sinusoidal) tell where to sample"},
    {.types = "dab-detr", .read = read_not_covered,
     .remark = "sinusoids by axis (the scheme sinusoidal with axis_base) of boxes that its layers "
               "correct are projected, and multiplied by the boxes' sizes"},
    {.types = "edgetam edgetam_vision_model edgetam_video", .read = read_not_covered,
     .remark = "convolutions stand before what clicks say (the type edgetam_prompt_encoder)"},
    {.types = "sam3_detr_decoder sam3_lite_text_detr_decoder", .read = read_not_covered,
     .remark = "sinusoids of boxes that its layers correct are projected (the scheme sinusoidal), "
               "and logits get a perceptron's bias of how patches lie to a box's edges"},
    {.types = "sam3_geometry_encoder sam3_mask_decoder sam3_lite_text_geometry_encoder "
              "sam3_lite_text_mask_decoder", .read = read_not_covered,
     .remark = "what meets the picture's features are points and boxes, each of which has a "
               "projection, sinusoids and features cut out of the picture"},
    {.types = "videoprism_vision_model", .read = read_not_covered,
     .remark = "a stack for the patches of a frame, then one for the frames, each with a table"},
    {.types = "sam3_video", .read = read_not_covered,
     .remark = "a detector (the type sam3) and a tracker (sam3_tracker_video), each described by a "
               "part of the file"},
    {.types = "depth_pro", .read = read_not_covered,
     .remark = "three towers of pictures, each described by a part of the file"},
    {.types = "lxmert", .read = read_not_covered,
     .remark = "three stacks, of which one has a table and another the boxes of its objects"},
    {.types = "superglue lightglue efficientloftr esmfold2", .read = read_not_covered,
     .remark = "positions are points in a picture or in space, not numbers of tokens"},
    {.types = "decision_transformer", .read = read_not_covered,
     .remark = "its positions are the time steps of an episode, three tokens at each"},

    // --- diffusion transformers, by diffusers' class ---------------------------------------------
    {.types = "SD3Transformer2DModel", .read = read_not_covered,
     .remark = "sinusoids by axis (the scheme sinusoidal) of a grid of pos_embed_max_size are "
               "cropped around its middle to the picture, and added once"},
    {.types = "CogView3PlusTransformer2DModel", .read = read_not_covered,
     .remark = "sinusoids by axis (the scheme sinusoidal) of a grid of pos_embed_max_size are "
               "added once, from its corner"},
    {.types = "DiTTransformer2DModel Transformer2DModel LatteTransformer3DModel", .read = read_not_covered,
     .remark = "sinusoids by axis (the scheme sinusoidal) are added once, to patches alone"},
    {.types = "SanaTransformer2DModel", .read = read_not_covered,
     .remark = "its attention is linear and has no position but that of the convolutions between, "
               "unless interpolation_scale asks for sinusoids by axis: where that is null, no size of "
               "a picture needs a setting"},
    {.types = "AuraFlowTransformer2DModel", .read = read_not_covered,
     .remark = "a learned table of pos_embed_max_size rows (the scheme learned), a square, is "
               "cropped around its middle and added once"},
    {.types = "PriorTransformer", .read = read_not_covered,
     .remark = "a learned table (the scheme learned) is added once to some tens of embeddings"},
    {.types = "TransformerTemporalModel DreamLiteTransformer2DModel", .read = read_not_covered,
     .remark = "frames or texts have sinusoids (the scheme sinusoidal) where the file asks for them, "
               "and no position else"},
    {.types = "AllegroTransformer3DModel", .read = read_not_covered,
     .remark = "each of three thirds of a head pairs its own halves, at positions that are divided "
               "by interpolation_scale: rotate each third by the scheme rope"},
    {.types = "OmniGenTransformer2DModel", .read = read_not_covered,
     .remark = "the transformer is a Phi-3 (LongRoPE by the lists of rope_scaling), and patches have "
               "sinusoids by axis besides"},
    {.types = "T5FilmDecoder MiniMaxMusic3RVQDepthDecoder", .read = read_not_covered,
     .remark = "a learned table (the scheme learned) is added once"},
    {.types = "SanaWMTransformer3DModel", .read = read_not_covered,
     .remark = "layers of linear attention with convolutions stand between layers that rotate as "
               "Wan's"},
    {.types = "RFD4ProteinaTransformer", .read = read_not_covered,
     .remark = "positions are residues of a protein and distances in space"},
    {.types = "PixArtTransformer2DModel", .read = read_not_covered,
     .remark = "sinusoids by axis (the scheme sinusoidal) are added once, at positions that are "
               "divided by interpolation_scale and stretched to sample_size"},
    {.types = "LTXVideoTransformer3DModel LTX2VideoTransformer3DModel "
              "SanaWMLTX2RefinerTransformer3DModel", .read = read_not_covered,
     .remark = "frequencies grow from π/2 to θ·π/2 over the whole width, at positions that are "
               "fractions of 20 seconds and of 2,048 pixels"},
    {.types = "MochiTransformer3DModel", .read = read_not_covered,
     .remark = "frequencies are learned for each head and axis, a tensor of the weights "
               "(pos_frequencies); rows and columns are stretched to an area of 192 × 192, so that no "
               "size meets new ones, and frames (6 of them make one position) count on"},

    // --- attention of a kind of its own ----------------------------------------------------------
    {.types = "dots3_note dots3_note_text", .read = read_not_covered,
     .remark = "layers that slide have latent heads of another width"},
    {.types = "zaya", .read = read_not_covered,
     .remark = "convolutions mix tokens before they are rotated"},
    {.types = "diffusion_gemma diffusion_gemma_text", .read = read_not_covered,
     .remark = "an encoder and a decoder share layers, and the decoder's block sees both ways"},
    {.types = "muse_glimmer_assistant", .read = read_not_covered,
     .remark = "its block of drafted tokens sees both ways and reads another model's keys"},
};
// clang-format on

}  // namespace

std::span<const Family> rows_uncovered() { return uncovered; }

}  // namespace posenc::detail
