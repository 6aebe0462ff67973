// llama.cpp: a config.json by way of its converter, a GGUF as our own reader has it, which follows llama.cpp.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

void llama_cpp_reads(EngineRope& rope) {
  if (rope.format() == FileFormat::gguf) return;
  if (rope.scaling<DynamicNtk>())
    lose_scaling(rope, "the converter writes no rope.scaling keys for it");
  if (auto* yarn = rope.scaling<Yarn>()) {
    lose_attention_factor(rope);
    always_truncate(rope);
    // Architectures whose loader reads the betas.
    if (!rope.model_is("grok mistral3 ministral3") &&
        (yarn->beta_fast != 32 || yarn->beta_slow != 1)) {
      rope.lost(
          "beta_fast and beta_slow are written and not read for this architecture: 32 and 1 hold "
          "(--yarn-beta-fast and --yarn-beta-slow set them)");
      yarn->beta_fast = 32;
      yarn->beta_slow = 1;
    }
  }
  if (rope.scaling<Proportional>() && !rope.model_is("gemma4 gemma4_text"))
    lose_scaling(rope, "the converter writes rope_freqs.weight for it in Gemma 4 alone");
  if (const auto* longrope = rope.scaling<LongRope>())
    fix_longrope(rope, rope.length > longrope->original_max_position_embeddings);
}

}  // namespace

const EngineProfile llama_cpp_profile{{"llama.cpp", "llamacpp llama_cpp ollama", "llama.cpp",
                                       "0c1e570", "src/llama-context.cpp, convert_hf_to_gguf.py"},
                                      "config.json GGUF",
                                      llama_cpp_reads};

}  // namespace posenc::detail
