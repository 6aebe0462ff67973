// Released versions that are known to read some models' position wrongly, each with its report. A
// range ends below the first version that is known to be right, or at the last that was looked at.
#include <algorithm>
#include <string>

#include "posenc/engines.h"

namespace posenc {
namespace {

bool says(const Model& model, std::string_view field, std::string_view place = {}) {
  return std::ranges::any_of(model.groups, [&](const LayerGroup& group) {
    return std::ranges::any_of(group.provenance, [&](const Provenance& value) {
      return value.field == field && value.origin == Origin::file &&
             (place.empty() || value.detail.contains(place));
    });
  });
}

// Layers that slide beside others which have a scaling.
bool slides_beside_scaled(const Model& model) {
  bool slides = false, scales = false;
  for (const LayerGroup& group : model.groups)
    for (const Scheme& scheme : group.schemes)
      if (const auto* rope = std::get_if<Rope>(&scheme)) {
        slides |= group.window.has_value();
        scales |= !group.window && !std::holds_alternative<Unscaled>(rope->scaling);
      }
  return slides && scales;
}

bool is_ling2(const Model& model) { return model.family == "bailing_moe_v2"; }

template <class Told>
bool any_rope(const Model& model, const Told& told) {
  return std::ranges::any_of(model.groups, [&](const LayerGroup& group) {
    return std::ranges::any_of(group.schemes, [&](const Scheme& scheme) {
      const auto* rope = std::get_if<Rope>(&scheme);
      return rope && told(*rope);
    });
  });
}

template <class Scaling>
bool is_scaled_by(const Model& model) {
  return any_rope(model,
                  [](const Rope& rope) { return std::holds_alternative<Scaling>(rope.scaling); });
}

// told(factor, promised length over trained length) of YaRN, where the file says all three.
template <class Told>
bool any_yarn_with(const Model& model, const Told& told) {
  return any_rope(model, [&](const Rope& rope) {
    const auto* yarn = std::get_if<Yarn>(&rope.scaling);
    return yarn && yarn->factor && yarn->original_max_position_embeddings > 0 &&
           model.context > 0 &&
           told(*yarn->factor, static_cast<double>(model.context) /
                                   static_cast<double>(yarn->original_max_position_embeddings));
  });
}

bool is_yarn_between_pairs(const Model& model) {
  return any_rope(model, [](const Rope& rope) {
    const auto* yarn = std::get_if<Yarn>(&rope.scaling);
    return yarn && !yarn->truncate;
  });
}

bool is_scaled_gemma3(const Model& model) {
  return model.family.starts_with("gemma3") && slides_beside_scaled(model);
}

constexpr std::string_view factor_of_gemma3 =
    "this version gives Gemma 3's scaling factor to the wrong layers: those that see everything "
    "want the file's 8, those that slide none; text turns into nonsense, of the QAT files most of "
    "all";
constexpr std::string_view rounds_yarn =
    "truncate false is not read: the ends of YaRN's ramp are rounded to whole pairs, so that some "
    "pairs rotate a little otherwise (log-probabilities differ, text hardly)";

// transformers 5 writes rope_parameters, and nothing at the top.
bool is_of_transformers5(const Model& model) {
  return says(model, "rope_theta", "rope_parameters.");
}

constexpr std::string_view theta_at_the_top =
    "it reads rope_theta and rope_scaling at the top alone, and transformers 5 has written them "
    "into rope_parameters: it rotates by base 10000 and without a scaling, and text falls apart "
    "after some hundred tokens";

struct Row {
  VersionFault fault;
  bool (*concerns)(const Model& model);
};

constexpr Row rows[] = {
    {{"transformers", "4.0.0", "4.43.0",
      "it knows no scaling of type llama3, and refuses the file ('`rope_scaling` must be a "
      "dictionary with two fields')",
      "pip install -U transformers (4.43 or later)",
      "modeling_rope_utils.py of transformers 4.43.0"},
     is_scaled_by<Llama3>},
    {{"transformers", "4.40.0", "4.43.0",
      "its class of Phi 3 takes the types su and yarn alone, and refuses longrope ('field must be "
      "one of')",
      "pip install -U transformers (4.43 or later)", "models/phi3 of transformers 4.43.0"},
     [](const Model& model) { return model.family == "phi3" && is_scaled_by<LongRope>(model); }},
    {{"transformers", "4.45.0", "4.51.0",
      "it reads no original_max_position_embeddings beside YaRN and takes max_position_embeddings "
      "for the trained length: the ramp lies at other pairs than the file means",
      "pip install -U transformers (4.56 or later), or max_position_embeddings of the trained "
      "length in config.json, which is right for these versions alone",
      "modeling_rope_utils.py of transformers 4.45.2 and 4.50.3"},
     [](const Model& model) {
       // Classes of its own; others then brought theirs (DeepSeek), which read it.
       const bool is_its = model.family == "llama" || model.family == "qwen2";
       return is_its && any_yarn_with(model, [](double, double promised) { return promised != 1; });
     }},
    {{"transformers", "4.51.0", "4.56.0",
      "it takes max_position_embeddings over original_max_position_embeddings for YaRN's factor, "
      "whatever factor says: a file that keeps its trained length, as Qwen's cards have it, is "
      "scaled by 1, or nearly",
      "pip install -U transformers (4.56 or later), or max_position_embeddings of factor times the "
      "trained length in config.json",
      "modeling_rope_utils.py of transformers 4.51.0 and 4.55.4"},
     [](const Model& model) {
       return any_yarn_with(model, [](double factor, double promised) {
         return promised < 0.99 * factor || promised > 1.01 * factor;
       });
     }},
    {{"transformers", "4.0.0", "4.51.0", "it has no class for Qwen 3, and refuses the file",
      "pip install -U transformers (4.51 or later)", "models/qwen3 of transformers 4.51.0"},
     [](const Model& model) { return model.family == "qwen3" || model.family == "qwen3_moe"; }},
    {{"transformers", "4.0.0", "4.55.0", "it has no class for gpt-oss, and refuses the file",
      "pip install -U transformers (4.55 or later)", "models/gpt_oss of transformers 4.55.0"},
     [](const Model& model) { return model.family == "gpt_oss"; }},
    {{"transformers", "4.0.0", "4.50.0", "it has no class for Gemma 3, and refuses the file",
      "pip install -U transformers (4.50 or later)", "models/gemma3 of transformers 4.50.0"},
     [](const Model& model) { return model.family.starts_with("gemma3"); }},
    {{"transformers", "4.43.0", "4.49.0",
      "its class of Phi 3 rotates whole heads and does not read partial_rotary_factor: it refuses "
      "the file, whose lists of factors are for a part of each head (Phi-4-mini)",
      "pip install -U transformers (4.49 or later)", "huggingface/transformers#35947"},
     [](const Model& model) {
       return model.family == "phi3" &&
              any_rope(model, [](const Rope& rope) { return rope.partial_rotary_factor != 1; });
     }},
    {{"vllm", "0.6.5", "0.8.5",
      "its class of GLM halves rotary_dim of the rotation that all layers share, once for each "
      "layer, until nothing is left of it: garbage",
      "pip install -U vllm (0.8.5 or later)", "vllm-project/vllm#16904"},
     [](const Model& model) { return model.family == "glm"; }},
    {{"exllamav2", "0.0.1", "0.2.3", "it knows no YaRN, and rotates as without a scaling",
      "pip install -U exllamav2 (0.2.3 or later)", "turboderp-org/exllamav2#642"},
     is_scaled_by<Yarn>},
    {{"llama.cpp", "b1", "b6085", "it knows no architecture glm4moe, and loads nothing",
      "update llama.cpp (b6085 or later)", "ggml-org/llama.cpp#14939"},
     [](const Model& model) { return model.family == "glm4_moe"; }},
    {{"transformers", "4.54.0", "4.57.0",
      "4.54 to 4.56 take the first of Qwen-VL's three rows of positions for those of packed text: "
      "prompts with pictures are generated from a wrong mask, and answers get worse",
      "pip install -U transformers (4.57), or 4.53", "huggingface/transformers#40154"},
     [](const Model& model) {
       return model.family == "qwen2_vl" || model.family == "qwen2_5_vl" ||
              model.family == "qwen2_5_omni";
     }},
    {{"transformers", "5.3.0", "5.5.4",
      "these versions multiply the time of a still picture by tokens_per_second, too, so that the "
      "text behind a picture stands too far on: answers about pictures get worse",
      "pip install -U transformers (5.5.4 or later)", "huggingface/transformers#45325"},
     [](const Model& model) { return model.family == "qwen2_5_vl"; }},
    {{"transformers", "5.3.0", "5.4.0",
      "with flash_attention_2 this version takes the three rows of positions for three packed "
      "texts (cu_seqlens reaches three times as far as the tokens), which ends in an illegal "
      "memory access",
      "pip install -U transformers, or attn_implementation='sdpa'",
      "huggingface/transformers#44643"},
     [](const Model& model) { return model.family.starts_with("qwen3_5"); }},
    {{"transformers", "5.0.0", "5.8.0",
      "its class of Olmo 3 has one rotation for all layers: those that slide are scaled by YaRN as "
      "well, which they were not trained with",
      "pip install -U transformers (the newest gives each kind of layer its own), or 4.57",
      "huggingface/transformers#45945"},
     [](const Model& model) { return model.family == "olmo3" && slides_beside_scaled(model); }},
    {{"transformers", "5.0.0", "5.18.0",
      "its class of GPT-NeoX-Japanese makes angles for whole heads and rotates rotary_pct of each: "
      "the first forward raises an error about sizes",
      "pip install -U transformers (5.18 or later), or 4.57", "huggingface/transformers#48630"},
     [](const Model& model) {
       return model.family == "gpt_neox_japanese" && any_rope(model, [](const Rope& rope) {
                return rope.partial_rotary_factor != 1 || rope.rotary_dim.has_value();
              });
     }},
    {{"sglang", "0.5.0", "0.5.14",
      "mscale and mscale_all_dim beside YaRN are not read for models without a latent: cos and sin "
      "are multiplied by YaRN's own factor where the file means 1, and text repeats itself",
      "pip install -U sglang (0.5.16 or later)", "sgl-project/sglang#22711"},
     [](const Model& model) {
       return any_rope(model,
                       [](const Rope& rope) {
                         const auto* yarn = std::get_if<Yarn>(&rope.scaling);
                         return yarn && yarn->mscale && yarn->mscale_all_dim && !yarn->scale_logits;
                       }) &&
              std::ranges::none_of(model.groups, [](const LayerGroup& group) {
                return group.cache_note.contains("MLA");
              });
     }},
    {{"sglang", "0.5.3", "0.5.6",
      "the indexer of DeepSeek V3.2, which chooses the tokens that each token sees, rotates "
      "neighbours here, and its weights are made for halves: what stands far back is found less "
      "often, from some 8,000 tokens on",
      "pip install -U sglang (0.5.6 or later)", "sgl-project/sglang#13495"},
     [](const Model& model) { return model.family == "deepseek_v32"; }},
    {{"lmdeploy", "0.5.0", "0.6.0",
      "TurboMind of 0.5 knows no YaRN (its --rope-scaling-factor is dynamic NTK): texts beyond the "
      "trained length come out as nonsense",
      "pip install -U lmdeploy, or another engine", "InternLM/lmdeploy#2235"},
     is_scaled_by<Yarn>},
    {{"tgi", "1.0.0", "1.0.1",
      "dynamic scaling of this version also divides positions by the factor: texts come out worse "
      "at any length (--rope-scaling dynamic and rope_scaling of the file alike)",
      "update TGI, or leave --rope-scaling and --rope-factor out",
      "huggingface/text-generation-inference#816"},
     is_scaled_by<DynamicNtk>},
    {{"exllamav2", "0.1.6", "0.1.7",
      "this version knows su and not longrope, as the files say since July 2024: nothing is "
      "scaled, and text is nonsense",
      "pip install -U exllamav2", "turboderp-org/exllamav2#537"},
     is_scaled_by<LongRope>},
    {{"llama.cpp", "b1", "b3472",
      "builds before the end of July 2024 know no factors of Llama 3.1 (rope_freqs.weight): text "
      "falls apart beyond 8,192 tokens or so",
      "a newer build, and a GGUF converted by it", "ggml-org/llama.cpp#8676"},
     is_scaled_by<Llama3>},
    {{"llama.cpp", "b2700", "b3400",
      "builds before the end of July 2024 know no sliding window for Phi 3: text breaks beyond it "
      "(2,047 tokens of Phi 3 mini 4k)",
      "a newer build, and a GGUF converted by it (it has the key phi3.attention.sliding_window)",
      "ggml-org/llama.cpp#7709"},
     [](const Model& model) {
       return model.family == "phi3" &&
              std::ranges::any_of(model.groups, [](const LayerGroup& group) {
                return group.window.has_value() && *group.window > 0;
              });
     }},
    {{"vllm", "0.4.1", "0.11.1",
      "LongRoPE's lists change in the middle of a text here, at the original length, while cached "
      "keys stay by the short one: what goes on beyond it turns into nonsense",
      "pip install -U vllm (0.11.1 or later), or --max-model-len of the original length",
      "vllm-project/vllm#19489"},
     is_scaled_by<LongRope>},
    {{"sglang", "0.4.4", "0.4.5",
      "this version runs Gemma 3 without its window: texts longer than that come out as nonsense",
      "pip install -U sglang (0.4.5 or later)", "sgl-project/sglang#4807"},
     [](const Model& model) { return model.family.starts_with("gemma3"); }},
    {{"vllm", "0.9.1", "0.9.2",
      "this version serves no more than model_max_length of tokenizer_config.json (12,288 of "
      "InternVL3), whatever --max-model-len says",
      "pip install -U vllm (0.9.2 or later), or raise model_max_length in tokenizer_config.json",
      "vllm-project/vllm#20241"},
     [](const Model& model) { return model.family == "internvl_chat"; }},
    {{"vllm", "0.11.0", "0.22.0",
      "its class of Ling 2 reads rotary_dim and not partial_rotary_factor: whole heads rotate "
      "where the file says a part",
      "write rotary_dim into the config.json and rope_theta into its rope_parameters: a newer vLLM "
      "reads the part, and loses a base that stands at the top (vllm-project/vllm#56066)",
      "vllm-project/vllm#43770"},
     [](const Model& model) {
       return is_ling2(model) && says(model, "partial_rotary_factor") && !says(model, "rotary_dim");
     }},
    {{"vllm", "0.24.0", "0.29.1",
      "its class of Ling 2 hands rope_parameters on without the file's rope_theta, which "
      "transformers 5 leaves at the top: the base is 10000, and the text repeats itself from the "
      "first token on",
      "write rope_theta into rope_parameters of the config.json", "vllm-project/vllm#56066"},
     [](const Model& model) {
       return is_ling2(model) && !says(model, "rope_theta", "rope_parameters");
     }},
    {{"sglang", "0.5.12", "0.5.18",
      "its class of Laguna takes attention_factor, which is the whole factor on cos and sin, for a "
      "multiplier of YaRN's own: the two are multiplied, and the layers that see everything have "
      "logits that are too large at any length",
      "pip install -U sglang (0.5.18 or later)", "sgl-project/sglang#33558"},
     [](const Model& model) {
       return model.family == "laguna" && says(model, "attention_factor");
     }},
    {{"llama.cpp", "b7371", "b7381",
      "these builds multiply cos and sin by a wrong factor of YaRN for models whose GGUF has no "
      "rope.scaling.yarn_log_multiplier, such as gpt-oss: answers get worse at any length",
      "a newer llama.cpp, or b7370", "ggml-org/llama.cpp#18004"},
     [](const Model& model) {
       return any_rope(model, [](const Rope& rope) {
         const auto* yarn = std::get_if<Yarn>(&rope.scaling);
         return yarn && !yarn->mscale_all_dim;
       });
     }},
    {{"vllm", "0.10.1", "0.11.1", rounds_yarn, "pip install -U vllm", "vllm-project/vllm#27722",
      true},
     is_yarn_between_pairs},
    {{"sglang", "0.5.0", "0.5.6", rounds_yarn, "pip install -U sglang (0.5.6 or later)",
      "sgl-project/sglang#14270", true},
     is_yarn_between_pairs},
    {{"vllm", "0.24.0", "0.24.1",
      "where every layer sees all tokens and the file gives a sliding_window all the same, this "
      "version gives each layer that window: what is further back is not seen",
      "pip install -U vllm, or --hf-overrides '{\"sliding_window\": null}'",
      "vllm-project/vllm#49795"},
     [](const Model& model) { return model.family == "vaultgemma"; }},
    {{"vllm", "0.17.0", "0.20.1",
      "partial_rotary_factor, which is that of the layers with linear attention, is taken for the "
      "latent ones too: half of their rotary channels stand still",
      "pip install -U vllm (0.20.1 or later)",
      "bailing_moe_linear.py of vLLM 0.20.0 and 0.20.1 (vllm-project/vllm#41185)"},
     [](const Model& model) { return model.family == "bailing_hybrid"; }},
    {{"ollama", "0.12.0", "0.12.1", factor_of_gemma3, "update Ollama (0.12.1 or later)",
      "ollama/ollama#12360"},
     is_scaled_gemma3},
    {{"ollama", "0.13.3", "0.13.4", factor_of_gemma3, "update Ollama (0.13.4 or later)",
      "ollama/ollama#13444"},
     is_scaled_gemma3},
    {{"ollama", "0.13.0", "0.13.3",
      "its Ministral 3 rotates by the scaling's factor alone (linear) and knows no YaRN: fast "
      "pairs, which tell neighbours apart, are slowed too, and text rambles",
      "update Ollama (0.13.3 or later)", "ollama/ollama#13432"},
     [](const Model& model) {
       const bool is_its = model.family == "mistral3" || model.family == "ministral3";
       return is_its && is_scaled_by<Yarn>(model);
     }},
    {{"exllamav3", "0.0.1", "0.0.17", theta_at_the_top,
      "pip install -U exllamav3 (0.0.17 or later), or write rope_theta and rope_scaling at the top",
      "exllamav3 1fa6071"},
     is_of_transformers5},
    {{"lmdeploy", "0.1.0", "0.12.2", theta_at_the_top,
      "pip install -U lmdeploy (0.12.2 or later), or write rope_theta and rope_scaling at the top",
      "InternLM/lmdeploy#4303, #4304"},
     is_of_transformers5},
    {{"lmdeploy", "0.6.0", "0.10.1",
      "its PyTorch backend takes LongRoPE's long factors for the short ones, and another trained "
      "length: texts within the trained length rotate wrongly",
      "pip install -U lmdeploy (0.10.1 or later)", "InternLM/lmdeploy#3968"},
     is_scaled_by<LongRope>},
    {{"mlx-lm", "0.1.0", "0.29.0",
      "it rotates by LongRoPE's long factors whatever the length: texts within the trained length "
      "lose by it",
      "pip install -U mlx-lm (0.29 or later)", "ml-explore/mlx-lm#660"},
     is_scaled_by<LongRope>},
    {{"mlx-lm", "0.1.0", "0.32.0",
      "its classes of InternLM 2 and 3 double every position where the file's scaling is not "
      "linear: pair 0 turns by 2 radians a token",
      "pip install -U mlx-lm (0.32 or later)", "ml-explore/mlx-lm#1606"},
     [](const Model& model) {
       const bool is_its = model.family == "internlm2" || model.family == "internlm3";
       return is_its && !is_scaled_by<Linear>(model);
     }},
    {{"mlx-lm", "0.27.0", "0.30.4", "its class of LongCat knows no YaRN: long texts fall apart",
      "pip install -U mlx-lm (0.30.4 or later)", "ml-explore/mlx-lm#768"},
     [](const Model& model) {
       return model.family.starts_with("longcat") && is_scaled_by<Yarn>(model);
     }},
    {{"mlx-lm", "0.30.7", "0.32.0",
      "the indexer of DeepSeek V3.2 rotates neighbours in place of halves: it picks other keys, "
      "and "
      "long texts lose what stands far back",
      "pip install -U mlx-lm (0.32 or later)", "ml-explore/mlx-lm#1431"},
     [](const Model& model) { return model.family == "deepseek_v32"; }},
    {{"mlx-lm", "0.24.0", "0.32.0",
      "its class of Qwen 3 wants rope_theta at the top, where transformers 5 does not write it, "
      "and "
      "ends with a TypeError (missing argument 'rope_theta')",
      "pip install -U mlx-lm (0.32 or later), or write rope_theta at the top of the config.json",
      "ml-explore/mlx-lm#1563"},
     [](const Model& model) { return model.family == "qwen3" && is_of_transformers5(model); }},
    {{"vllm", "0.2.0", "0.22.0",
      "dynamic: it grows the base once, by factor² − factor + 1 whatever the length, so that short "
      "texts rotate otherwise too",
      "pip install -U vllm (0.22 or later, which leaves the base alone, but of Nomic's), or no "
      "rope_scaling of type dynamic for texts within the trained length",
      "vllm-project/vllm#41236"},
     is_scaled_by<DynamicNtk>},
    {{"sglang", "0.3.0", "0.4.5",
      "its class of Phi 3 rotates whole heads and does not read partial_rotary_factor: garbage",
      "pip install -U sglang (0.4.5 or later)", "sgl-project/sglang#3935"},
     [](const Model& model) {
       return model.family == "phi3" &&
              any_rope(model, [](const Rope& rope) { return rope.partial_rotary_factor != 1; });
     }},
    {{"sglang", "0.5.0", "0.5.13",
      "its class of LFM2 MoE hands rope_scaling on and not rope_parameters: the scaling is dropped "
      "without a word",
      "pip install -U sglang (0.5.13 or later), or write rope_scaling beside rope_parameters",
      "sgl-project/sglang#26187"},
     [](const Model& model) {
       return model.family == "lfm2_moe" && is_scaled_by<Yarn>(model) && is_of_transformers5(model);
     }},
    {{"transformers", "5.0.0", "5.13.0",
      "its indexer of GLM-5 rotates halves, and the weights pair neighbours "
      "(indexer_rope_interleave): beyond index_topk tokens it picks the wrong keys",
      "pip install -U transformers (5.13 or later)", "huggingface/transformers#46842"},
     [](const Model& model) { return model.family == "glm_moe_dsa"; }},
    {{"mlx-vlm", "0.1.0", "0.6.15",
      "its class declares the file's scaling and does not apply it: layers that see everything "
      "rotate as if they had none, and texts of some thousand tokens repeat themselves",
      "pip install -U mlx-vlm (0.6.15 or later), or mlx_lm.generate for text alone",
      "Blaizzy/mlx-vlm#1710, #1927"},
     [](const Model& model) {
       return is_scaled_gemma3(model) ||
              (model.family == "mllama" && is_scaled_by<Llama3>(model)) ||
              (model.family.starts_with("phi4") && is_scaled_by<LongRope>(model));
     }},
};

}  // namespace

std::vector<VersionFault> version_faults(const Model& model, std::string_view engine) {
  std::vector<VersionFault> found;
  const std::size_t at = engine.find('@');
  if (at == engine.npos) return found;
  // A package's name is written both ways.
  std::string name(engine.substr(0, at));
  std::ranges::replace(name, '_', '-');
  const std::string_view version = engine.substr(at + 1);
  for (const Row& row : rows)
    if (row.fault.engine == name && !is_before(version, row.fault.from) &&
        is_before(version, row.fault.below) && row.concerns(model))
      found.push_back(row.fault);
  return found;
}

}  // namespace posenc
