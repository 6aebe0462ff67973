// llama.cpp: a config.json by way of its converter, a GGUF as our own reader has it, which follows
// llama.cpp.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void lose_mscales(EngineRope& rope, Yarn& yarn) {
  if (!yarn.mscale || !yarn.mscale_all_dim || rope.model_is("mistral3 ministral3")) return;
  rope.lost(
      "mscale and mscale_all_dim are written for the families of DeepSeek and Ministral alone");
  yarn.mscale.reset();
  yarn.mscale_all_dim.reset();
}

// deepseek2 keeps one number of the two, mscale_all_dim, and multiplies the logits by a magnitude
// in any case.
void read_deepseek_magnitude(EngineRope& rope, Yarn& yarn) {
  const bool given = yarn.mscale && yarn.mscale_all_dim;
  if (given && *yarn.mscale != *yarn.mscale_all_dim) {
    rope.approximated("mscale is taken to be mscale_all_dim");
    yarn.attention_factor = 1;
  } else if (!yarn.mscale_all_dim) {
    rope.approximated(
        "without mscale_all_dim YaRN's magnitude multiplies the logits, beside cos and sin");
    rope.scale_logits(rope.amplitude() * rope.amplitude());
  }
}

void read_converted_yarn(EngineRope& rope, Yarn& yarn) {
  lose_attention_factor(rope);
  if (rope.is_latent())
    read_deepseek_magnitude(rope, yarn);
  else
    lose_mscales(rope, yarn);
  always_truncate(rope);
  // Architectures whose loader reads the betas.
  if (rope.model_is("grok mistral3 ministral3")) return;
  lose_betas(rope,
             "beta_fast and beta_slow are not read for this architecture: 32 and 1 hold "
             "(--yarn-beta-fast and --yarn-beta-slow set them)");
}

void read_converted_longrope(EngineRope& rope, LongRope& longrope) {
  if (rope.model_is("minicpm minicpm3")) {
    if (rope.amplitude() != 1)
      rope.lost("longrope's factor on cos and sin: the converter of this family writes none");
    longrope.attention_factor = 1;
    // Nor does it write the trained length: the loader takes the context for it.
    if (rope.model.context > 0) longrope.original_max_position_embeddings = rope.model.context;
  } else if (!rope.model_is("phi3 phimoe")) {
    lose_scaling(rope, "the converter writes the lists of Phi-3, PhiMoE and MiniCPM alone");
    return;
  } else {
    lose_longrope_amplitude(rope);
  }
  fix_longrope(rope, rope.length);
}

void llama_cpp_reads(EngineRope& rope) {
  if (is_named_ntk(rope))
    lose_scaling(rope, "the converter knows no type " + std::string(*rope.stated("rope_type")) +
                           ", warns of it and writes none");
  if (rope.format() == FileFormat::gguf) {
    if (rope.warned("sections_count"))
      rope.refuse(
          "its loader demands four numbers in rope.dimension_sections, and stops: take a "
          "GGUF that llama.cpp's converter made");
    return;
  }
  if (rope.warned("two_spellings"))
    rope.refuse(
        "the converter reads rope_parameters before rope_scaling, and they differ: keep one");
  read_type_first(rope);
  lose_growth_of_qwen(rope);
  take_ratio_for_base(rope);
  if (rope.warned("partial_disputed")) lose_partial(rope);
  if (rope.scaling<DynamicNtk>())
    lose_scaling(rope, "the converter writes no rope.scaling keys for it");
  if (rope.scaling<Yarn>() && rope.warned("original_length_missing"))
    rope.refuse("the converter ends with a KeyError: write original_max_position_embeddings");
  if (rope.scaling<Yarn>() && rope.warned("factor_missing"))
    lose_scaling(rope, "the converter writes none without its factor");
  if (auto* yarn = rope.scaling<Yarn>()) read_converted_yarn(rope, *yarn);
  if (rope.scaling<Llama3>()) default_original_length(rope, 8192);
  if (rope.scaling<Proportional>() && !rope.model_is("gemma4 gemma4_text"))
    lose_scaling(rope, "the converter writes rope_freqs.weight for it in Gemma 4 alone");
  if (auto* longrope = rope.scaling<LongRope>()) read_converted_longrope(rope, *longrope);
}

}  // namespace

const EngineProfile llama_cpp_profile{
    {"llama.cpp", "llamacpp llama_cpp", "llama.cpp", "0.3.36",
     "vendor/llama.cpp of llama-cpp-python: conversion/, src/llama-context.cpp"},
    "config.json GGUF params.json",
    Spelling::llama_flags,
    llama_cpp_reads,
    "- longcat_flash"};

}  // namespace posenc::detail
