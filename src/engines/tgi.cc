// Text Generation Inference: PositionRotaryEmbedding.static, whose tables grow with the longest
// text so far. ROPE_SCALING and ROPE_FACTOR, which the launcher sets, stand above the file.
#include "src/engines/profile.h"

namespace posenc::detail {
namespace {

// What it has a class of its own for; the others run by transformers' code, where the version that
// is installed beside it (4.51) knows them.
constexpr std::string_view tgi_families =
    "baichuan bloom cohere dbrx deepseek_v2 deepseek_v3 falcon galactica gemma gemma2 gemma3 "
    "gemma3_text gpt2 gpt_bigcode gpt_neox gptj granite idefics idefics2 idefics3 llama llama4 "
    "llama4_text llava_next mamba mistral mixtral mllama mpt opt paligemma phi phi-msft phi3 "
    "phimoe qwen2 qwen2_5_vl qwen2_vl santacoder smolvlm starcoder2 t5";

void tgi_reads(EngineRope& rope) {
  lose_rope_parameters(rope, 10000);
  if (rope.scaling<Linear>())
    lose_scaling(rope, "the branch for it does nothing, and the factor is not read");
  if (rope.scaling<NtkAware>() || rope.scaling<Proportional>())
    rope.refuse("it knows no " + std::string(info(rope.rope.scaling).name) +
                " scaling, and raises NotImplementedError");
  if (rope.scaling<DynamicNtk>())
    rope.approximated("a text beyond the context leaves its base to the shorter ones after it");
  if (auto* yarn = rope.scaling<Yarn>()) {
    if (!rope.key("original_max_position_embeddings").contains('.'))
      rope.refuse(
          "yarn without original_max_position_embeddings beside it is a KeyError: write it");
    if (!yarn->factor) rope.refuse("yarn without its factor is a KeyError: write it");
    lose_attention_factor(rope);
    default_mscales(rope);
    lose_betas(rope);
    always_truncate(rope);
  }
  if (rope.scaling<LongRope>()) {
    lose_longrope_amplitude(rope);
    rope.approximated(
        "longrope: within one text positions below the trained length have the short list and "
        "those beyond it the long one");
  }
  round_tables(rope);
}

}  // namespace

const EngineProfile tgi_profile{
    {"tgi", "text-generation-inference", "TGI", "3.3",
     "server/text_generation_server/layers/rotary.py at 0666316", "", true},
    "config.json",
    Spelling::rope_scaling,
    tgi_reads,
    tgi_families};

}  // namespace posenc::detail
