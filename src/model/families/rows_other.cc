// The models around text models.
#include <algorithm>
#include <span>
#include <utility>

#include "src/model/families/rows.h"

namespace posenc::detail {
namespace {

// A model around a text model and its towers has a type of its own, and its text part may not say
// which family it is.
struct Inner {
  std::string_view outer, inner;
  std::string_view remark = {};
};
constexpr Inner inner_types[] = {
    {"llama4", "llama4_text"},
    {"mistral_large4", "mistral_large4_text"},
    {"gemma3", "gemma3_text", picture_blocks},
    {"gemma3n", "gemma3n_text"},
    {"gemma4", "gemma4_text"},
    {"qwen3_vl", "qwen3_vl_text"},
    {"qwen3_5", "qwen3_5_text"},
    {"clip", "clip_text_model"},
    {"siglip", "siglip_text_model"},
    {"mllama", "mllama_text_model"},
    {"qwen2_5_omni", "qwen2_5_omni_text"},
    {"qwen3_omni_moe", "qwen3_omni_moe_text"},
    {"muse_glimmer", "muse_glimmer_text"},
    {"muse_spark", "muse_spark_text"},
    {"gemma4_unified", "gemma4_unified_text"},
    {"embedding_gemma2", "embedding_gemma2_text"},
    {"qwen4_exp", "qwen4_exp_text"},
    {"glm5_next", "glm5_next_text"},
    {"minimax_m3_vl", "minimax_m3_vl_text"},
    {"cosmos3_edge", "cosmos3_edge_text"},
    {"granite4_vision", "granite4_vision_text"},
    {"granite_docling", "granite_docling_text"},
    {"emu3", "emu3_text_model"},
    {"clap", "clap_text_model"},
    {"step3p7", "step3p5"},
    {"inkling", "inkling_text"},
    {"inkling_mm_model", "inkling_text"},
    {"inkling2", "inkling2_text"},
    {"inkling2_loop", "inkling2_loop_text"},
    {"hy_v4_vl", "hy_v4_vl_text"},
    {"apertus1p5", "apertus1p5_text"},
    {"omniasr", "llama"},
    {"paligemma", "gemma",
     "the picture and the prompt see each other both ways, and what is generated is causal; "
     "positions count from 1"},
    {"bark", "semantic", "three models of one build follow each other; the first is explained"},
    {"clvp", "clvp_encoder",
     "the encoder of texts is explained: that of speech is of its build, and the decoder that "
     "stands "
     "apart (decoder_config) is a clvp_decoder"},
    {"rag", "bart", "the model that finds passages is not explained"},
};

// A class, and the model_type that it is of.
using TypeOfClass = std::pair<std::string_view, std::string_view>;

std::string_view type_in(std::span<const TypeOfClass> all, std::string_view class_name) {
  const auto found = std::ranges::find(all, class_name, &TypeOfClass::first);
  return found == all.end() ? "" : found->second;
}

}  // namespace

std::string_view type_of_misnamed(std::string_view class_name) {
  static constexpr TypeOfClass all[] = {{"BailingMoeV2ForCausalLM", "bailing_moe_v2"},
                                        {"Grok1ForCausalLM", "grok-1"}};
  return type_in(all, class_name);
}

std::string_view type_named_otherwise(std::string_view class_name) {
  static constexpr TypeOfClass all[] = {
      {"HunYuanDenseV1", "hunyuan_v1_dense"},
      {"HunYuanMoEV1", "hunyuan_v1_moe"},
      {"MixFormerSequential", "mixformer-sequential"},
      {"RW", "RefinedWebModel"},
      {"RefinedWeb", "RefinedWeb"},
      {"StableLMEpoch", "stablelm_epoch"},
      {"Yi", "Yi"},
  };
  return type_in(all, class_name);
}

std::string_view inner_type(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? outer : found->inner;
}

std::string_view outer_remark(std::string_view outer) {
  const auto found = std::ranges::find(inner_types, outer, &Inner::outer);
  return found == std::end(inner_types) ? std::string_view() : found->remark;
}

}  // namespace posenc::detail
