// Written by first_versions.py: the types of models that each release was the first to have a class
// for. What the oldest release that was looked at has is not here.
#pragma once

#include <string_view>

namespace posenc {

struct Release {
  std::string_view version, types;
};

// clang-format off: as the script writes it.
inline constexpr Release of_transformers[] = {
    {"4.39.0",
     "cohere llava_next mamba musicgen_melody pvt_v2 seggpt starcoder2 superpoint udop"},
    {"4.40.0",
     "dbrx grounding-dino jamba olmo qwen2_moe recurrent_gemma"},
    {"4.41.0",
     "jetmoe phi3"},
    {"4.42.0",
     "gemma2 rt_detr rt_detr_resnet"},
    {"4.43.0",
     "chameleon hiera"},
    {"4.44.0",
     "mamba2 nemotron"},
    {"4.45.0",
     "clip_text_model dac falcon_mamba granite granitemoe mimi mllama olmoe "
     "omdet-turbo pixtral qwen2_audio_encoder qwen2_vl"},
    {"4.46.0",
     "glm idefics3 moshi phimoe zamba"},
    {"4.47.0",
     "ijepa olmo2"},
    {"4.48.0",
     "aria_text bamba cohere2 diffllama dinov2_with_registers idefics3_vision "
     "modernbert moonshine textnet timm_wrapper vitpose_backbone"},
    {"4.49.0",
     "dab-detr depth_pro granitemoeshared helium qwen2_5_vl rt_detr_v2 superglue "
     "zamba2"},
    {"4.50.0",
     "aya_vision gemma3 gemma3_text mistral3 smolvlm smolvlm_vision"},
    {"4.51.0",
     "deepseek_v3 llama4 llama4_text phi4_multimodal qwen3 qwen3_moe sam_vision_model"},
    {"4.51.3",
     "glm4"},
    {"4.52.0",
     "bitnet blip_2_qformer csm d_fine granitemoehybrid hgnet_v2 internvl "
     "internvl_vision mlcd qwen2_5_vl_text qwen2_vl_text sam_hq sam_hq_vision_model "
     "timesfm"},
    {"4.53.0",
     "arcee dia dots1 falcon_h1 gemma3n gemma3n_audio gemma3n_text gemma3n_vision "
     "glm4v glm4v_text kyutai_speech_to_text lightglue minimax smollm3 t5gemma vjepa2"},
    {"4.54.0",
     "aimv2_vision_model deepseek_v2 doge efficientloftr eomt ernie4_5 ernie4_5_moe "
     "evolla exaone4 fastspeech2_conformer_with_hifigan glm4_moe lfm2 "
     "modernbert-decoder voxtral_encoder xlstm"},
    {"4.55.0",
     "cohere2_vision gpt_oss mm-grounding-dino"},
    {"4.56.0",
     "apertus dinov3_convnext dinov3_vit glm4v_moe glm4v_moe_text hunyuan_v1_dense "
     "hunyuan_v1_moe sam2 sam2_hiera_det_model sam2_video seed_oss xcodec"},
    {"4.57.0",
     "blt edgetam edgetam_video edgetam_vision_model flex_olmo longcat_flash ministral "
     "olmo3 parakeet_ctc parakeet_encoder qwen3_next qwen3_vl qwen3_vl_moe "
     "qwen3_vl_moe_text qwen3_vl_text siglip2_vision_model vaultgemma"},
    {"5.0.0",
     "afmoe audioflamingo3_encoder cwm ernie4_5_vl_moe glm4_moe_lite glm4v_moe_vision "
     "glm4v_vision glm_image_text glm_image_vision glm_image_vqmodel glmasr_encoder "
     "jais2 lasr_ctc lasr_encoder layoutxlm lfm2_moe lw_detr lw_detr_vit minimax_m2 "
     "ministral3 nanochat pe_audio_encoder pe_audio_video_encoder pe_video_encoder "
     "pixio sam3_tracker sam3_tracker_video sam3_video sam3_vit_model solar_open "
     "t5gemma2 video_llama_3_vision"},
    {"5.1.0",
     "eomt_dinov3 exaone_moe glm_ocr glm_ocr_text glm_ocr_vision youtu"},
    {"5.2.0",
     "glm_moe_dsa moonshine_streaming moonshine_streaming_encoder qwen3_5 qwen3_5_moe "
     "qwen3_5_moe_text qwen3_5_text vibevoice_acoustic_tokenizer "
     "voxtral_realtime_encoder voxtral_realtime_text"},
    {"5.3.0",
     "eurobert higgs_audio_v2 higgs_audio_v2_tokenizer nemotron_h olmo_hybrid "
     "pp_doclayout_v2 timesfm2_5 vibevoice_acoustic_tokenizer_decoder "
     "vibevoice_acoustic_tokenizer_encoder"},
    {"5.4.0",
     "cohere_asr jina_embeddings_v3 mistral4 mlcd_vision_model pp_lcnet pp_lcnet_v3 "
     "pp_ocrv5_mobile_det pp_ocrv5_server_det slanext uvdoc uvdoc_backbone videomt"},
    {"5.5.0",
     "gemma4 gemma4_audio gemma4_text gemma4_vision nomic_bert"},
    {"5.6.0",
     "aimv2_text_model align_text_model align_vision_model altclip_text_model "
     "altclip_vision_model blip_2_vision_model blip_text_model blip_vision_model "
     "blt_global_transformer blt_local_decoder blt_local_encoder blt_patcher "
     "bridgetower_text_model bridgetower_vision_model chameleon_vqgan "
     "chinese_clip_text_model clap_audio_model clap_text_model clipseg_text_model "
     "clipseg_vision_model clvp_decoder clvp_encoder csm_depth_decoder_model "
     "dia_decoder dia_encoder emu3_text_model emu3_vqgan ernie4_5_vl_moe_text "
     "ernie4_5_vl_moe_vision fastspeech2_conformer_hifigan flava_image_model "
     "flava_multimodal_model flava_text_model florence_vision git_vision_model "
     "granite_speech_encoder groupvit_text_model groupvit_vision_model hy_v3 "
     "idefics2_perceiver idefics2_vision idefics_perciever idefics_vision "
     "instructblip_qformer instructblip_vision_model instructblipvideo_qformer "
     "instructblipvideo_vision_model janus_vision_model janus_vqgan "
     "kosmos_2_5_text_model kosmos_2_5_vision_model kosmos_2_text_model "
     "kosmos_2_vision_model llama4_vision_model metaclip_2_text_model "
     "metaclip_2_vision_model mllama_text_model mllama_vision_model moshi_depth "
     "musicgen_decoder musicgen_melody_decoder openai_privacy_filter owlv2_text_model "
     "owlv2_vision_model owlvit_text_model owlvit_vision_model paddleocr_vl_text "
     "paddleocr_vl_vision phi4_multimodal_audio phi4_multimodal_vision "
     "pix2struct_text_model pix2struct_vision_model qianfan_ocr_vision "
     "qwen2_5_omni_audio_encoder qwen2_5_omni_bigvgan qwen2_5_omni_dit "
     "qwen2_5_omni_talker qwen2_5_omni_text qwen2_5_omni_token2wav "
     "qwen2_5_omni_vision_encoder qwen2_5_vl_vision qwen2_vl_vision qwen3_5_moe_vision "
     "qwen3_5_vision qwen3_omni_moe_audio_encoder qwen3_omni_moe_talker_code_predictor "
     "qwen3_omni_moe_talker_text qwen3_omni_moe_text qwen3_omni_moe_vision_encoder "
     "qwen3_vl_moe_vision qwen3_vl_vision sam3_detr_decoder sam3_detr_encoder "
     "sam3_geometry_encoder sam3_lite_text_detr_decoder sam3_lite_text_detr_encoder "
     "sam3_lite_text_geometry_encoder sam3_lite_text_mask_decoder "
     "sam3_lite_text_text_model sam3_mask_decoder siglip2_text_model siglip_text_model "
     "speecht5_hifigan t5_gemma_module t5gemma2_decoder t5gemma2_text xclip_text_model "
     "xclip_vision_model"},
    {"5.7.0",
     "deimv2 laguna minicpmv4_6_vision"},
    {"5.8.0",
     "deepseek_v4 exaone4_5_vision granite4_vision_text granite_speech_plus_encoder "
     "pp_formulanet"},
    {"5.9.0",
     "cohere2_moe hrm_text hyperclovax parakeet_tdt rf_detr rf_detr_dinov2"},
    {"5.10.0",
     "gemma4_unified_audio gemma4_unified_text gemma4_unified_vision pp_lcnet_v4 "
     "pp_ocrv6_medium_det pp_ocrv6_small_det"},
    {"5.10.1",
     "deepseek_ocr2_encoder deepseek_ocr2_sam_vision_model deepseek_ocr2_text "
     "deepseek_ocr2_vision mellum sapiens2 sapiens2_head"},
    {"5.11.0",
     "deepseek_v32 diffusion_gemma diffusion_gemma_text"},
    {"5.12.0",
     "minimax_m3_vl_text minimax_m3_vl_vision parakeet_rnnt"},
    {"5.13.0",
     "hunyuan_vl hunyuan_vl_text hunyuan_vl_vision kimi_k25_vision mimo_v2_flash "
     "minicpm3 nemotron3_5_asr nemotron_asr_streaming nemotron_asr_streaming_encoder "
     "qwen3_asr_encoder radio videoprism_text_model videoprism_vision_model xcodec2 "
     "zaya"},
    {"5.14.0",
     "inkling_audio inkling_text inkling_vision tipsv2_text_model tipsv2_vision_model"},
    {"5.15.0",
     "axk1 axk2 cosmos3_edge_text cosmos3_edge_vision granite_swa granitemoe_swa "
     "muse_glimmer_assistant muse_glimmer_text muse_glimmer_vision"},
    {"5.16.0",
     "cohere_compass_vision esmc esmfold2 granite_speech5_ctc granite_speech5_encoder "
     "qwen4_exp_text qwen4_exp_vision step3p5 step3p5_vision"},
    {"5.16.1",
     "glm5_next_text glm5_next_vision"},
    {"5.17.0",
     "canary canary_decoder fun_asr_nano_encoder hy_v4 kimi_linear neomme neucodec"},
    {"5.18.0",
     "gte minicpmv4_7_vision nemotron3_diarization nemotron3_diarization_audio"},
    {"5.19.0",
     "embedding_gemma2_text"},
    {"5.20.0",
     "bailing_hybrid edgetam_mask_decoder edgetam_prompt_encoder "
     "edgetam_video_mask_decoder edgetam_video_prompt_encoder flava_image_codebook "
     "got_ocr2_vision kolibri1 molmo2 molmo2_adapter molmo2_text molmo2_vision "
     "moss_transcribe_diarize_audio muse_spark_audio muse_spark_text muse_spark_vision "
     "ovis2_vision pp_chart2table_vision pp_doclayout_v4 pp_formulanet_text "
     "pp_formulanet_vision sam2_mask_decoder sam2_prompt_encoder "
     "sam2_video_mask_decoder sam2_video_prompt_encoder sam3_tracker_mask_decoder "
     "sam3_tracker_prompt_encoder sam3_tracker_video_mask_decoder "
     "sam3_tracker_video_prompt_encoder sam_hq_mask_decoder sam_hq_prompt_encoder "
     "sam_mask_decoder sam_prompt_encoder slanext_vision ultrabert "
     "unlimited_ocr_sam_vision_model unlimited_ocr_text unlimited_ocr_vision "
     "unlimited_ocr_vision_encoder vibevoice_diffusion"},
    {"5.20.1",
     "beam"},
    {"5.21.0",
     "flint gradium_phonon_tts minicpm_ocr_vision pocket_tts "
     "pocket_tts_audio_tokenizer"},
    {"5.22.0",
     "mistral_large4_text nemotron3_5_transcribe_asr_audio "
     "nemotron3_5_transcribe_audio nemotron3_5_transcribe_word_timestamp"},
    {"5.23.0",
     "dots3_note dots3_note_audio_encoder dots3_note_text dots3_note_vision_encoder "
     "granite_docling_text granite_docling_vision inkling2_text inkling2_vision "
     "internlm3 iquestcoder lfm3 lfm3_vl_vision"},
    {"5.24.0",
     "apertus1p5_text apertus1p5_vision_tokenizer dory exaone hy_v4_vl_text "
     "hy_v4_vl_vision inkling2_loop_text lara_mini omniasr_audio omniasr_ctc "
     "sarvam_mla sarvam_moe wavtokenizer"},
};

inline constexpr Release of_vllm[] = {
    {"0.4.1",
     "minicpm"},
    {"0.4.2",
     "phi3"},
    {"0.4.3",
     "arctic phi3small"},
    {"0.5.0",
     "llava_next"},
    {"0.5.1",
     "deepseek_v2 gemma2 jamba phi3_v"},
    {"0.5.2",
     "fuyu medusa persimmon"},
    {"0.5.3",
     "chameleon"},
    {"0.5.4",
     "minicpmv nemotron"},
    {"0.5.5",
     "bart"},
    {"0.6.0",
     "exaone granite phimoe"},
    {"0.6.1",
     "pixtral qwen2_vl"},
    {"0.6.2",
     "minicpm3 mllama olmoe"},
    {"0.6.3",
     "granitemoe mamba molmo"},
    {"0.6.4",
     "bert falcon_mamba idefics3 roberta xlm-roberta"},
    {"0.6.5",
     "cohere2 glm olmo2"},
    {"0.6.6",
     "deepseek_v3"},
    {"0.7.0",
     "internlm3 whisper"},
    {"0.7.1",
     "minicpmo"},
    {"0.7.2",
     "qwen2_5_vl"},
    {"0.7.3",
     "bamba glm4v mamba2"},
    {"0.8.0",
     "gemma3 granitemoeshared grok-1 phi4mm zamba2"},
    {"0.8.3",
     "aya_vision llama4 minimax_text_01 mistral3"},
    {"0.8.4",
     "glm4 qwen3 qwen3_moe smolvlm"},
    {"0.8.5",
     "gte nomic_bert plamo2"},
    {"0.9.0",
     "falcon_h1 granitemoehybrid mimo modernbert"},
    {"0.9.1",
     "nemotron_h"},
    {"0.9.2",
     "dots1 ernie4_5 ernie4_5_moe gemma3n minimax_m1"},
    {"0.10.0",
     "arcee bailing_moe exaone4 glm4_moe minimax"},
    {"0.10.1",
     "cohere2_vision glm4v_moe gpt_oss mbart phi4_multimodal smollm3 step3_text"},
    {"0.10.2",
     "apertus ernie4_5_vl_moe gemma3_text internvl lfm2 qwen3_next seed_oss"},
    {"0.11.0",
     "bailing_moe_v2 cwm deepseek_v32 longcat_flash olmo3 qwen3_vl qwen3_vl_moe"},
    {"0.11.1",
     "PanguEmbedded afmoe clip flex_olmo kimi_linear lfm2_moe minimax_m2 siglip"},
    {"0.12.0",
     "hunyuan_vl telechat"},
    {"0.13.0",
     "jais2"},
    {"0.14.0",
     "exaone_moe iquestcoder mimo_v2_flash"},
    {"0.15.0",
     "glm4_moe_lite molmo2"},
    {"0.15.1",
     "step3p5"},
    {"0.16.0",
     "glm_moe_dsa glm_ocr interns1_pro"},
    {"0.17.0",
     "axk1 qwen3_5 qwen3_5_moe"},
    {"0.18.0",
     "ernie hyperclovax olmo_hybrid sarvam_mla sarvam_moe"},
    {"0.19.0",
     "cohere_asr gemma4"},
    {"0.20.0",
     "deepseek_v4 hy_v3 ministral3 telechat3"},
    {"0.21.0",
     "cohere2_moe laguna mimo_v2"},
    {"0.22.1",
     "mellum"},
    {"0.24.0",
     "hrm_text"},
    {"0.27.0",
     "vaultgemma"},
    {"0.28.0",
     "dots3_note muse_glimmer_assistant"},
    {"0.29.0",
     "granite_swa granitemoe_swa hy_v4"},
    {"0.33.0",
     "beam dory flint kolibri1"},
};

inline constexpr Release of_sglang[] = {
    {"0.3.1",
     "baichuan minicpm3 xverse"},
    {"0.3.2",
     "olmoe"},
    {"0.3.4",
     "olmo"},
    {"0.3.5",
     "gpt2 mllama qwen2_vl"},
    {"0.3.6",
     "phi3small"},
    {"0.4.0",
     "olmo2"},
    {"0.4.1",
     "deepseek_v3 granite"},
    {"0.4.2",
     "cohere2 internlm3 minicpmv"},
    {"0.4.4",
     "qwen2_5_vl"},
    {"0.4.5",
     "clip gemma3 llama4 minicpmo"},
    {"0.4.6",
     "bert qwen3 qwen3_moe xlm-roberta"},
    {"0.4.7",
     "llava mimo mistral3 phi4mm"},
    {"0.4.8",
     "glm4"},
    {"0.4.9",
     "gemma3n"},
    {"0.4.10",
     "arcee glm4_moe granitemoe persimmon phi phimoe"},
    {"0.5.1",
     "bailing_moe ernie4_5 ernie4_5_moe glm4v glm4v_moe gpt_oss"},
    {"0.5.2",
     "longcat_flash opt qwen3_next"},
    {"0.5.3",
     "apertus bailing_moe_v2 deepseek_v32 falcon_h1 qwen3_vl qwen3_vl_moe starcoder2"},
    {"0.5.4",
     "nemotron_h"},
    {"0.5.5",
     "kimi_linear minimax_m2"},
    {"0.5.6",
     "orion"},
    {"0.5.7",
     "mimo_v2_flash ministral3 pixtral"},
    {"0.5.8",
     "afmoe glm4_moe_lite iquestcoder"},
    {"0.5.9",
     "ernie4_5_vl_moe exaone4 exaone_moe glm_moe_dsa glm_ocr gptj granitemoehybrid "
     "interns1_pro lfm2 lfm2_moe qwen3_5 qwen3_5_moe sdar sdar_moe step3p5"},
    {"0.5.10",
     "sarvam_mla sarvam_moe whisper"},
    {"0.5.11",
     "gemma4 hy_v3 mimo_v2"},
    {"0.5.12",
     "deepseek_v4 laguna"},
    {"0.5.13",
     "cohere2_moe cohere2_vision"},
    {"0.5.14",
     "zaya"},
    {"0.5.15",
     "hrm_text"},
    {"0.5.16",
     "mellum"},
    {"0.5.18",
     "muse_glimmer_assistant"},
    {"0.5.19",
     "dots3_note granite_swa granitemoe_swa granitemoeshared"},
    {"0.5.20",
     "falcon_mamba hy_v4 mamba mamba2"},
    {"0.5.23",
     "beam"},
};
// clang-format on

}  // namespace posenc
