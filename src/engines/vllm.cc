// vLLM: rotations are tables of cosines and sines, made when the engine starts.
#include <cmath>

#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void vllm_reads(EngineRope& rope) {
  const std::int64_t context = rope.model.context;
  if (const auto* yarn = rope.scaling<Yarn>()) {
    // deepseek_scaling_rope.py has a class of its own.
    if (yarn->scale_logits) lose_attention_factor(rope);
    const double rows =
        static_cast<double>(yarn->original_max_position_embeddings) * yarn->factor.value_or(1);
    rope.table_rows(static_cast<std::int64_t>(rows));
  } else if (const auto* dynamic = rope.scaling<DynamicNtk>()) {
    rope.table_rows(static_cast<std::int64_t>(static_cast<double>(context) * dynamic->factor));
  } else if (const auto* linear = rope.scaling<Linear>()) {
    rope.table_rows(static_cast<std::int64_t>(static_cast<double>(context) * linear->factor));
  } else if (context > 0) {
    rope.table_rows(context);
  }
  if (auto* longrope = rope.scaling<LongRope>()) {
    lose_attention_factor(rope);
    if (longrope->factor) {
      rope.lost(rope.key("factor") +
                " is not read by longrope: the factor is max_position_embeddings over the trained "
                "length");
      longrope->factor.reset();
    }
  }
  lose_proportional_factor(rope);
  fix_dynamic(rope);
  fix_longrope(rope);
  round_tables(rope);
}

}  // namespace

const EngineProfile vllm_profile{
    {"vllm", "", "vLLM", "0.33.0", "vllm/model_executor/layers/rotary_embedding/"},
    "config.json params.json",
    vllm_reads};

}  // namespace posenc::detail
