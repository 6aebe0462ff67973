// vLLM: rotations are tables of cosines and sines, made when the engine starts.
#include <cmath>

#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

std::int64_t times(std::int64_t length, double factor) {
  return static_cast<std::int64_t>(static_cast<double>(length) * factor);
}

std::int64_t rows_of(EngineRope& rope) {
  const std::int64_t context = rope.model.context;
  if (!rope.rope.mrope_section.empty()) return context * 4;  // mrope.py: pictures count further
  if (const auto* yarn = rope.scaling<Yarn>())
    return times(yarn->original_max_position_embeddings, yarn->factor.value_or(1));
  // A family's own NTK is a divisor here, and its table is no longer for it.
  if (const auto* linear = rope.scaling<Linear>(); linear && rope.scaling_name() != "NTK")
    return times(context, linear->factor);
  if (const auto* longrope = rope.scaling<LongRope>())  // a table for each list
    return context + longrope->original_max_position_embeddings;
  return context;
}

// deepseek_scaling_rope.py: an attention_factor of 1 stands for the variant without YaRN's
// magnitudes.
void read_deepseek_yarn(EngineRope& rope, Yarn& yarn) {
  if (yarn.attention_factor == 1) {
    rope.approximated(rope.key("attention_factor") + " 1 also takes the magnitude from the logits");
    yarn.scale_logits = false;
    return;
  }
  lose_attention_factor(rope);
  default_mscales(rope);
}

// Nomic's base is grown once, for what is served; below what was trained that is no growth.
void read_nomic_dynamic(EngineRope& rope, const DynamicNtk& dynamic) {
  const double s = dynamic.factor;
  const auto stated = rope.stated_number("trained_length");
  const std::int64_t served = rope.length,
                     trained = stated ? std::llround(*stated) : dynamic.max_position_embeddings;
  const double growth = s * static_cast<double>(served) / static_cast<double>(trained) - s + 1;
  if (served <= 0) return;
  if (growth <= 0)
    return rope.refuse("served for " + std::to_string(served) +
                       " tokens its base is negative, and embeddings are NaN (vllm#52665): serve " +
                       std::to_string(trained) + " or more, or a version that has vllm#52675");
  rope.fixed("dynamic: the base is grown once, for " + std::to_string(served) +
             " tokens, and short texts have it too");
  rope.rope.scaling = NtkAware{.factor = growth};
}

// mistral.py: a params.json that says max_seq_len alone is given max_position_embeddings 128,000
// beside it, and the shorter of the two is served (vllm#57279).
void shorten_params(EngineRope& rope) {
  constexpr std::int64_t usual = 128000;
  if (rope.format() != FileFormat::params || rope.key("context") != "max_seq_len" ||
      rope.model.context <= usual)
    return;
  rope.defaulted(
      "of a params.json without max_position_embeddings it serves 128,000 tokens, "
      "whatever max_seq_len says: write both, or --config-format hf");
  rope.serves(usual);
}

// ntk_scaling_rope.py has the ntk of GTE's models, which divides every frequency besides.
void take_ntk_of_gte(EngineRope& rope) {
  if (!is_named_ntk(rope)) return;
  if (rope.stated("rope_type") != "ntk")
    return rope.refuse("no scaling is called " + std::string(*rope.stated("rope_type")) +
                       " there: NTK-aware scaling is a larger rope_theta");
  const double s = rope.scaling<NtkAware>()->factor,
               channels = static_cast<double>(rope.rotated_channels());
  if (channels <= 0) return;
  rope.lost("type ntk is GTE's there: base × " + number_text(s) +
            ", and every frequency over s^(2/d); NTK-aware scaling multiplies the base by "
            "s^(d/(d−2)) and leaves pair 0 alone");
  rope.rope.rope_theta *= s;
  rope.rope.scaling = Linear{.factor = std::pow(s, 2 / channels)};
}

void vllm_reads(EngineRope& rope) {
  if (rope.warned("type_conflict"))
    rope.refuse("type and rope_type that differ are an error there");
  refuse_with_transformers(rope);
  lose_growth_of_qwen(rope);
  take_ratio_for_base(rope);
  shorten_params(rope);
  if (const std::int64_t rows = rows_of(rope); rows > 0) rope.table_rows(rows);
  take_ntk_of_gte(rope);
  if (auto* yarn = rope.scaling<Yarn>(); yarn && rope.is_latent()) read_deepseek_yarn(rope, *yarn);
  if (auto* longrope = rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    read_mscales(rope);
    // Started without --max-model-len it serves the trained length, where that stands beside the
    // scaling.
    const std::int64_t trained = longrope->original_max_position_embeddings;
    const bool beside = !rope.key("original_max_position_embeddings").contains('.');
    const bool as_trained = rope.asked == 0 && beside && trained < rope.length;
    if (as_trained) {
      rope.defaulted("it serves " + std::to_string(trained) +
                     " tokens, as trained, unless --max-model-len asks for more");
      rope.serves(trained);
    }
    fix_longrope(rope, as_trained ? trained : rope.length);
  }
  lose_factor_of_nomic(rope);
  if (const auto* dynamic = rope.scaling<DynamicNtk>(); dynamic && rope.model_is("nomic_bert"))
    read_nomic_dynamic(rope, *dynamic);
  else if (dynamic)
    lose_scaling(
        rope, "the base is grown for max_position_embeddings tokens, where it is still as it was");
  lose_proportional_factor(rope);
  round_tables(rope);
}

}  // namespace

const EngineProfile vllm_profile{
    {"vllm", "", "vLLM", "0.33.0", "vllm/model_executor/layers/rotary_embedding/"},
    "config.json params.json",
    Spelling::vllm_flags,
    vllm_reads,
    {},
    "vLLM reads GGUF by its plugin vllm-gguf-plugin alone since 0.24, and posenc knows neither "
    "that "
    "nor what older versions read of it"};

}  // namespace posenc::detail
