// A profile of an engine: a row that names it, and what it does to each rotation of a model.
// Profiles change fields of schemes and compute no angle: what an engine does is a scheme of ours,
// or it is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "posenc/engines.h"

namespace posenc::detail {

// One rotation of a model as an engine reads it.
class EngineRope {
 public:
  EngineRope(const Model& model, std::int64_t asked, LayerGroup& group, Rope& rope,
             EngineReading& out)
      : model(model),
        asked(asked),
        length(asked > 0 ? asked : model.context),
        rope(rope),
        group_(group),
        out_(out) {}

  const Model& model;         // as the file says
  const std::int64_t asked;   // length that the engine is started for, 0: it has its own default
  const std::int64_t length;  // the same, or the model's context; 0 where nobody says
  Rope& rope;                 // as the engine has it, so far

  template <class S>
  S* scaling() {
    return std::get_if<S>(&rope.scaling);
  }

  FileFormat format() const;
  bool model_is(std::string_view families) const;  // one of these words
  bool is_latent() const;                          // multi-head latent attention (DeepSeek)
  bool is_sliding() const;                         // layers with a window
  bool has_several_bases() const;                  // layers rotate by different ones
  bool warned(std::string_view code) const;        // by read_model()

  // The file's own value, not one that was derived or is the family's.
  bool states(std::string_view field) const { return !!stated(field); }
  std::optional<std::string_view> stated(std::string_view field) const;
  std::optional<double> stated_number(std::string_view field) const;
  // "linear"; "NTK" of a family's own, which is a base and a linear divisor here.
  std::string scaling_name() const;
  // The key as the file spells it: "rope_scaling.factor".
  std::string key(std::string_view field) const;

  // Whether the file has what is asked in rope_parameters, as transformers 5 spells it, or there in
  // an entry of a layer type.
  bool is_new_spelling(std::string_view field) const;
  bool is_by_layer_type(std::string_view field) const;

  void lost(std::string what) { note(EngineNote::Kind::lost, std::move(what)); }
  void approximated(std::string what) { note(EngineNote::Kind::approximated, std::move(what)); }
  void defaulted(std::string what) { note(EngineNote::Kind::defaulted, std::move(what)); }
  void fixed(std::string what) { note(EngineNote::Kind::fixed, std::move(what)); }
  void rounded(std::string what) { note(EngineNote::Kind::rounded, std::move(what)); }
  void refuse(std::string why);
  void table_rows(std::int64_t rows);
  // The tokens that it serves where nobody asks for a length, if they are fewer than the file's.
  void serves(std::int64_t tokens);
  // The factor on cos and sin, as the scheme has it so far; 1 where it does not compile.
  double amplitude() const;
  std::int64_t rotated_channels() const;  // of a head; 0 where the scheme does not compile
  void scale_logits(double by);
  bool has_temperature() const;  // logits that grow with the length
  void lose_temperature();

 private:
  Expected<Plan> plan() const;                         // of the scheme as it is so far
  void note(EngineNote::Kind kind, std::string what);  // once for all groups that it holds for

  LayerGroup& group_;
  EngineReading& out_;
};

// How an engine is told a rotation.
enum class Spelling {
  rope_parameters,  // config.json, as transformers 5 has it
  rope_scaling,     // config.json, as transformers 4 had it
  vllm_flags,       // --hf-overrides
  sglang_flags,     // --json-model-override-args
  llama_flags,      // --rope-scaling and its kin
  megatron_flags,   // --rotary-base and its kin
  gguf_keys,        // metadata of a GGUF, behind general.architecture
  params,           // params.json, as Mistral publishes it
};

struct EngineProfile {
  Engine engine;
  // Formats it reads, the others are refused: words of name(FileFormat).
  std::string_view formats;
  Spelling spelling;
  void (*read)(EngineRope& rope);
  // The words of model_type that have a class in it; behind a "-" those that have none. "": nobody
  // has looked.
  std::string_view families = {};
  // What is said of a GGUF where formats lack it; "": that it reads none.
  std::string_view on_gguf = {};
};
std::span<const EngineProfile> engine_profiles();
Expected<const EngineProfile*> find_profile(std::string_view asked);
extern const EngineProfile transformers_profile, transformers5_12_profile, transformers4_profile,
    vllm_profile, sglang_profile, llama_cpp_profile, ollama_profile, mlx_lm_profile,
    exllamav2_profile, exllamav3_profile, onnxruntime_genai_profile, tensorrt_llm_profile,
    lmdeploy_profile, tgi_profile, lightllm_profile, deepspeed_profile, megatron_profile;

// --- What several engines do alike --------------------------------------------------------------

// Qwen 1's growing base and logits (use_dynamic_ntk, use_logn_attn) exist only in the model's own
// code.
void lose_growth_of_qwen(EngineRope& rope);
// Nomic's factor stands beside the sizes, for its own code.
void lose_factor_of_nomic(EngineRope& rope);
// rope_ratio multiplies the base, as in ChatGLM3, where ChatGLM2's own code divides positions.
void take_ratio_for_base(EngineRope& rope);
// What transformers 5 refuses when it reads a configuration, and with it all who read by it.
void refuse_with_transformers(EngineRope& rope);
// A config.json whose scaling is called ntk, which transformers does not know and vLLM takes for
// GTE's.
bool is_named_ntk(EngineRope& rope);
// `error`: what the engine raises.
void refuse_named_ntk(EngineRope& rope, std::string_view error);
// A scaling that depends on the length of each text, as one that is made for the longest: dynamic
// NTK's base grown for s·M positions; longrope's long list, where it serves more than the trained
// length, or its short one.
void fix_dynamic(EngineRope& rope);
void fix_longrope(EngineRope& rope, std::int64_t served);
void take_long_list(EngineRope& rope);  // whatever it serves
// attention_factor is not read: the amplitude follows from the factor (and mscale).
void lose_attention_factor(EngineRope& rope);
// YaRN's beta_fast and beta_slow are 32 and 1, whatever the file says; `why` is the note.
void lose_betas(EngineRope& rope,
                std::string_view why = "beta_fast and beta_slow are not read: 32 and 1 hold");
// The ends of YaRN's ramp are rounded to whole pairs, whatever `truncate` says.
void always_truncate(EngineRope& rope);
void lose_scaling(EngineRope& rope, std::string_view why);

// Whether any engine has it, under whatever name: false for those that are posenc's words alone.
bool engines_have(const Scaling& scaling);
// The base that the engine takes where it finds none.
void default_base(EngineRope& rope, double theta);
// A part of the head is asked for in a family whose class knows none: all of it rotates.
void lose_partial(EngineRope& rope);
// Of type and rope_type that differ the first is read.
void read_type_first(EngineRope& rope);
// Nothing of rope_parameters is read, only rope_scaling and a rope_theta beside it; `theta` is the
// class's own.
void lose_rope_parameters(EngineRope& rope, double theta);
// longrope's mscales are read where transformers passes over them.
void read_mscales(EngineRope& rope);
// Of longrope's amplitude only M/L is read: no factor, no attention_factor.
void lose_longrope_amplitude(EngineRope& rope);
// mscale is 1 and mscale_all_dim 0 where the file has none, instead of neither where one is
// missing.
void default_mscales(EngineRope& rope);
// The trained length, where the scaling does not have it itself.
void default_original_length(EngineRope& rope, std::int64_t length);
// longrope's trained length is not read in the scaling: max_position_embeddings stands for it.
void lose_original_length(EngineRope& rope, LongRope& longrope);
// p-RoPE's division of all frequencies is not read.
void lose_proportional_factor(EngineRope& rope);
// Cosines and sines are kept in the model's own type, where that has 16 bits.
void round_tables(EngineRope& rope);

}  // namespace posenc::detail
