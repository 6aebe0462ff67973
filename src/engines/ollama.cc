// Ollama: a config.json by way of its own converter, a GGUF as llama.cpp reads it, except where a
// class of its own runs the family. It is written in Go and on no package index, so that this
// profile was read and never run.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// Families whose part of its converter was read; of all others llama.cpp's makes the GGUF.
constexpr std::string_view converted_families =
    "llama mixtral qwen2 gpt_oss deepseek_v3 ministral3 phi phi3";

bool is_called_by(const EngineRope& rope, std::string_view key) {
  return rope.key("rope_type").ends_with("rope_scaling." + std::string(key));
}

void take_magnitude(EngineRope& rope, Yarn& yarn, double amplitude, std::string_view why) {
  if (rope.amplitude() == amplitude) return;
  rope.lost("YaRN's factor on cos and sin is " + number_text(amplitude) + ": " + std::string(why));
  yarn.attention_factor = amplitude;
}

// Written as 0 where rope_theta does not stand outside of the scaling, and every angle is then no
// number.
void need_base_outside(EngineRope& rope) {
  if (rope.is_new_spelling("rope_theta") || !rope.states("rope_theta"))
    rope.refuse("the converter looks for rope_theta outside of rope_parameters: write it there");
}

void read_llama(EngineRope& rope) {
  lose_rope_parameters(rope, 10000);
  if (rope.scaling<Linear>()) {
    if (!is_called_by(rope, "type"))
      lose_scaling(rope, "the converter knows it by the key type, and not by rope_type");
  } else if (rope.scaling<Llama3>()) {
    if (is_called_by(rope, "rope_type"))
      default_original_length(rope, 8192);
    else
      lose_scaling(rope, "the converter knows it by the key rope_type, and not by type");
  } else if (!rope.scaling<Unscaled>()) {
    lose_scaling(rope, "the converter writes linear and llama3 alone for this family");
  }
}

// convert_qwen2.go declares factor as a list.
void read_qwen2(EngineRope& rope) {
  if (rope.states("factor") && !rope.is_new_spelling("factor"))
    rope.refuse(
        "the converter reads factor as a list of numbers, and ends with an error: make the GGUF by "
        "llama.cpp's");
  need_base_outside(rope);
}

void read_gpt_oss(EngineRope& rope) {
  lose_attention_factor(rope);
  lose_betas(rope);
  always_truncate(rope);
}

// Classes divide by the magnitude with which ggml multiplies; the logits have mscale_all_dim's as
// in the file.
void read_deepseek(EngineRope& rope, Yarn& yarn) {
  lose_betas(rope);
  take_magnitude(rope, yarn, 1, "mscale and attention_factor are not read");
}

void read_ministral(EngineRope& rope, Yarn& yarn) {
  lose_attention_factor(rope);
  if (yarn.mscale.value_or(0) != 0 && yarn.mscale_all_dim.value_or(0) != 0)
    take_magnitude(rope, yarn, 1, "with both mscales it is divided away, whatever they are");
  always_truncate(rope);
}

void read_phi3(EngineRope& rope, LongRope& longrope) {
  lose_longrope_amplitude(rope);
  if (!is_called_by(rope, "type")) {
    rope.lost("longrope's factor on cos and sin: the converter knows the scaling by the key type");
    longrope.attention_factor = 1;
  }
  fix_longrope(rope, rope.length);
}

void read_yarn(EngineRope& rope, Yarn& yarn) {
  if (rope.model_is("deepseek_v3")) return read_deepseek(rope, yarn);
  if (rope.model_is("ministral3")) return read_ministral(rope, yarn);
  if (rope.model_is("gpt_oss")) return read_gpt_oss(rope);
  rope.approximated(
      "of YaRN the converter writes the magnitude alone: the frequencies are as trained");
}

void convert(EngineRope& rope) {
  if (rope.model_is("llama mixtral"))
    read_llama(rope);
  else if (rope.model_is("qwen2"))
    read_qwen2(rope);
  else if (auto* longrope = rope.scaling<LongRope>())
    read_phi3(rope, *longrope);
  else if (auto* yarn = rope.scaling<Yarn>())
    read_yarn(rope, *yarn);
  else if (!rope.scaling<Unscaled>())
    lose_scaling(rope, "the converter writes none of its keys for this family");
}

void ollama_reads(EngineRope& rope) {
  if (rope.format() == FileFormat::config && rope.model_is(converted_families))
    return convert(rope);
  if (rope.format() == FileFormat::config) llama_cpp_profile.read(rope);
  if (auto* yarn = rope.scaling<Yarn>(); yarn && rope.model_is("qwen3 qwen3_moe qwen3moe"))
    take_magnitude(rope, *yarn, 1, "the class of Qwen3 divides it away");
}

}  // namespace

const EngineProfile ollama_profile{
    {"ollama", "", "Ollama", "01cf744", "convert/, model/models/, ml/backend/ggml/ggml.go"},
    "config.json GGUF",
    Spelling::gguf_keys,
    ollama_reads,
    "- longcat_flash"};

}  // namespace posenc::detail
