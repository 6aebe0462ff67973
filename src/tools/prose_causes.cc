// Causes that a person names: by a program, what it is asked for, and what it does.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "src/core/contains_any.h"
#include "src/core/small_letters.h"
#include "src/core/words.h"
#include "src/tools/prose.h"

namespace posenc::detail::prose {
namespace {

// A text has one phrase of each list, and none of the last; | parts the phrases, and an empty list
// asks for nothing.
struct Cause {
  When when;
  std::array<std::string_view, 4> phrases;
  std::string_view never = {};
};
constexpr Cause causes[] = {
    {When::of_client,
     {"ollama",
      "roo code|roo-code|roocode| cline|kilo code|kilocode|continue.dev|continue extension|open "
      "webui|open-webui|openwebui|anythingllm| aider",
      "modelfile|num_ctx",
      "ignor|instead of|shows|loads|overrid|overwrit|not respect|n't respect|not use|n't use|no "
      "effect|larger|bigger"}},
    {When::of_claude_code,
     {"claude code|claude-code|claudecode",
      "200k|200,000|200000|context window|context size|context length|compact",
      "local|omlx|ollama|llama.cpp|llama-server|lm studio|lmstudio|vllm|mlx|sglang|qwen|glm|gpt-oss"
      "|devstral|kimi|minimax|deepseek",
      "200k|200,000|200000|thinks|assumes|tell it|overflow|exceed|real context|actual "
      "context|too late"}},
    {When::of_half_table,
     {"whisper",
      " 224 tokens| 224 token |224 tokens|limited to 224|length is 224|length of 224|max "
      "224|224 max|after 224",
      "token|length|limit|cut|stop|incomplete|missing"},
     "initial_prompt|initial prompt|prompt is|prompts of|224x224|224 x 224"},
    {When::of_cache_state,
     {"gemma3n|gemma-3n|gemma 3n",
      "batchkvcache|batchrotatingkvcache|cache.state|batch cache|batched cache|batch_generate"}},
    {When::of_corners,
     {"qwen3-vl|qwen3vl|qwen3 vl|qwen 3 vl|qwen3_vl",
      "bounding box|bbox|boxes|coordinate|grounding",
      "gguf|llama.cpp|llama-server|llama-mtmd|mmproj|ollama|lm studio|lmstudio|koboldcpp"}},
    {When::of_riflex, {"riflex|rifle x", "extend|longer|length|more frames|same duration"}},
    {When::of_cutoff,
     {"llama-factory|llamafactory|llama_factory|llama factory", "rope scaling|rope_scaling|yarn",
      "not used|not applied|n't applied|no effect|null|not change|n't change|unchanged|ignor|disabl"
      "|not take effect|not in the config|does nothing|不生效|没有生效"}},
    {When::of_latents,
     {"patch_size_t|cogvideox1.5|cogvideox-1.5|cogvideox 1.5|cogvideox1_5", "frame",
      "divi|multiple|odd |remainder|even number"}},
    {When::of_permuted,
     {"torchtitan", "rope|rotary|permut",
      "huggingface|hugging face|hf |hf-|meta-llama/|safetensors|from_pretrained",
      "match|differ|convert|load|weights|permut|garbage|nonsense|gibberish"},
     "scaling|yarn"},
    {When::of_exllama, {"exllama", "yarn", "support|implement|needs|read"}, "vllm"},
    {When::of_reserved,
     {"tabbyapi|tabby api|tabby-api", "max_seq_len|context length|context size|context control",
      "front-end|frontend|front end|client|cline|request"}},
    {When::of_goose,
     {"goose", "ollama",
      "forget|past action|past message|previous message|remember|its history|lose|truncat|access "
      "their"}},
    {When::of_ps,
     {"ollama ps", "num_ctx|context_length|contextlength|modelfile|set the context|set context",
      "shows|still|only|stays|remains|says|instead|reports",
      "4096|4,096|4k|2048|2,048|8192|8,192"}},
    {When::of_nemo,
     {"mistral-nemo|mistral nemo|nemo-instruct|nemo 12b|nemo:12b",
      "1024000|1,024,000|1024k|1m |1.024e+06"},
     "megatron|nvidia nemo"},
    {When::of_v1,
     {"ollama", "boltai|/v1|openai-compatible|openai compatible|openai api",
      "num_ctx|context length|context window|n_ctx",
      "ignor|nothing|no effect|not respect|n't respect|not set|can't set|cannot set|2048|4096"}},
    {When::of_state,
     {"qwen3.6|qwen3.5|qwen3-next|qwen 3.5|qwen 3.6|jamba|granite-4|granite "
      "4|nemotron-h|falcon-h1|lfm2",
      "context shift|context-shift|context window fills|num_keep|n_keep|--keep",
      "fail|stop|empty|n't work|not work|not support|unsupported|cannot"}},
    {When::of_short_draft,
     {"speculative|draft model|draft_model|speculative_model", "numel",
      "nonetype|'none'|none type"}},
    {When::of_vram,
     {"ollama", "262144|262,144|262k|256k|32768|32,768|32k",
      "default|every model|all models|by itself", "vram|memory|spill|cpu|slow|unresponsive|0.15."}},
    {When::of_wan_sizes,
     {"wan2|wan 2|wanimagetovideo|wan-ai|ti2v", "height|width|720|1280|resolution",
      "mismatch|fails|error|multiple", "diffusers|pipeline|ti2v|comfy"}},
    {When::of_bf16_buffer,
     {"inv_freq", "bf16 buffer|bfloat16 buffer|in bfloat16|bf16",
      "low bits|upcast|.float()|pcc|drift|grows with|0.75 where|lost"},
     "kept in float32"},
    {When::of_layer_count,
     {"get_seq_length|_seen_tokens|seen_tokens|cache_position",
      "off by one|off-by-one|past_len+1|incremented at layer"}},
    {When::of_mistral_mscale,
     {"mistral-medium-3.5|mistral medium 3.5|mistral-medium 3.5",
      "nonsense|gibberish|garbage|incoherent"}},
    {When::of_rotating_cache,
     {"prefix cach|prompt cach",
      "sliding window|sliding-window|rotatingkvcache|gemma-3|gemma-4|gemma 4",
      "vllm-mlx|mlx-lm|mlx_lm|mlx-vlm|omlx|mlx",
      "another|different user|other user|wrong|repeat|leak|garbage|garbled"}},
    {When::of_regression_vl,
     {"qwen2.5-vl|qwen2_5_vl|qwen2.5vl", "transformers", "4.54|4.55|4.56",
      "regression|accuracy|worse|drop|lower|mmmu|degrad"}},
    {When::of_missing_llama3,
     {"llama3.1|llama-3.1|llama 3.1|llama3 ",
      "additional scaling|scaling of freq|scaled rope|rope scal",
      "not implement|n't implement|does not apply|missing|lacks|not applied"}},
    {When::of_cache_lens,
     {"ktransformers|--cache_lens|cache_lens", "cache_lens", "max_new_tokens",
      "cut|short|stop|truncat|ends"}},
    {When::of_lms_offer,
     {"lm studio|lmstudio",
      "context length is 2048|context length is 4096|context length is 2,048|context length is "
      "4,096|"
      "max context is 2048|max context is 4096|limited to 2048|limited to 4096|only allows "
      "2048|only "
      "allows 4096"},
     "llama-2|llama 2|llama2|tinyllama|4k-instruct|phi-2|gemma-2b|all good|correct,"},
    {When::of_one_batch,
     {"physical_batch|physical batch|ubatch|u_batch", "embed|rerank|context chat",
      "limit|too large|error|fail|refus|too long"},
     "i raised it|works now"},
    {When::of_mrope_on_npu,
     {"glm-ocr|glm ocr|glm_ocr", "vllm-ascend|npu_mrope|ascend",
      "neox-style|neox style|is_neox|gpt-j|gptj|interleav|halves|chunk-half|pairing"}},
    {When::of_demo_indexer,
     {"deepseek", "v3.2|v32|v3_2", "demo|inference code|reference code|inference/",
      "retriev|worse|quality|wrong|degrad|recall|needle"},
     "vllm|sglang|llama.cpp|ollama|ktransformers"},
    {When::of_rolled_inputs,
     {"mtp|multi-token prediction|multi token prediction", "roll", "rotary|rope"},
     "garbage|nonsense|gibberish|crash|learned|absolute|alibi|sinusoid|packed|cu_seqlens|context "
     "parallel|cp=|cp_size|nan |spike|wrong by|acceptance"},
    {When::of_saved_deltas,
     {"qwen2-vl|qwen2.5-vl|qwen3-vl|qwen2_vl|qwen2_5_vl|qwen3_vl|m-rope|mrope|vlm|vision|picture|"
      "image",
      "prompt "
      "cache|promptcache|savecache|save_prompt_cache|loadpromptcache|load_prompt_cache|saved "
      "cache|cache file|kv cache to disk",
      "restor|reload|disk|load", "differ|flip|wrong|other|shift|diverge|garbage"},
     "out of memory|now works|fixed"},
    {When::of_full_prompt,
     {"context shift|context-shift|context_shift|ctx-shift",
      "hard-stop|hard stop|ran out of context|out of context size|exceeds the available|exceed the "
      "available|refus|400|still stops|still fails|stops when|error when",
      "enabled|is on|: on|true|turned on|even though|even with|despite"},
     "not supported|unsupported|qwen3.5|qwen3.6|qwen3-next|mamba|jamba|disabled|swa|n_predict|"
     "max_tokens|eos|works fine|works now|thanks"},
    {When::of_part_of_head,
     {"rotary_dim|rope_partial|partial rope|partial rotary|partial_rotary|partial rotation",
      "head_dim|head dim|head size",
      "2i/head_dim|2i / head_dim|2*i/head_dim|i + head_dim/2|i + head_dim / 2|i+head_dim/2|over "
      "the "
      "whole head|over head_dim|of the full head|full head_dim|whole head_dim|instead of "
      "rotary_dim|"
      "rather than rotary_dim"},
     "gemma-4|gemma 4|gemma4|proportional"},
    {When::of_silent_cut,
     {"embed|bge|rerank|e5-|gte-|向量|嵌入",
      "超过|长度|longer than|more than|exceed|beyond|over 512|over 8192|above",
      "还是能|仍然|不报错|不应该报错|没有报错|no error|without error|without an error|no "
      "warning|still "
      "work|still succeed|still embed|does not raise|doesn't raise|not raise|silently|instead of "
      "rais|why does it not|expected an error"},
     "index out of range|crash|exceeds the maximum|truncate=false|auto-truncate off|chunk|splits|"
     "average|alibi|max_seq_length="},
    {When::of_proteins,
     {"esm c |esm c.|esm c,|esm c?|esmc|esm-c|esm cambrian",
      "sequence length|residues|how long|longest|longer than|maximum length|max length|length "
      "limit"},
     "index|crash|out of memory|oom|embedding dim|vocabulary|logits|pool"},
    {When::of_whole_japanese,
     {"gptneoxjapanese|gpt_neox_japanese|gpt-neox-japanese", "rotary_pct|partial_rotary_factor",
      "crash|error|mismatch|ignore|wrong|fail|any value|raises"},
     "fixed|all fine|gpt-neox-20b|tokenizer"},
    {When::of_mlx_release,
     {"mlx-vlm|mlx_vlm", "0.6.4", "qwen3.5|qwen3.6|qwen3_5|qwen3-next",
      "garbage|garbled|gibberish|nonsense|wrong|worse|repeat|broken|regress"},
     "out of memory|was broken|fixed|works great|tool call"},
    {When::of_agent_length,
     {"lm studio|lmstudio|ollama|llama.cpp|llama-server|vllm",
      "context length exceeded|context window exceeded|context size exceeded|cannot compress",
      "hermes|agent|cline|roo code|opencode|openclaw"}},
    {When::of_four_rows,
     {"position_ids|position ids", "(4, b|[4, b|(4,b|4, batch|4 x b|4×b",
      "(batch_size, 3|(3, batch|(b, 3|[b, 3|(3, b|(b,3|3, seq"}},
    {When::of_cut_pictures,
     {
         "max_length",
         "image|picture|multimodal|video|mm_processor",
         "truncat|cut",
         "vllm|processor|tokenizer",
     }},
    {When::of_kobold_release,
     {"koboldcpp|kobold.cpp", "1.94", "swa|sliding", "fastforward|fast forward|fast-forward"}},
    {When::of_shard_bounds,
     {"cu_seqlens|cu_seq_lens", "context parallel|cp=|cp =|cp_size|sequence parallel",
      "local|shard|rank 1|rank>0|rank > 0"},
     "works now|fixed"},
    {When::of_more_frames,
     {"wan2|wan 2|wan-2|wanvideo", "81 frames|beyond 81|more than 81|over 81|longer than 81",
      "beyond|more than|over 81|longer|exceed"}},
    {When::of_captions,
     {"qwen-image|qwen image|qwen_image", "caption|prompt|text",
      "max|limit|truncat|longest|how long", "token"}},
    {When::of_ascend_kernel,
     {"ropeoperation setup failed|_rope_forward_oot|rope_forward_oot", "rotary_dim"}},
    {When::of_qwen3_promise,
     {"qwen3|qwen 3|qwen-3", "40960|40,960|40_960", "32768|32,768|32_768|32k"}},
    {When::of_lists_speed,
     {"onnxruntime-genai|onnxruntime genai|ort-genai|ort genai|onnx",
      "phi-3|phi3|phi 3|phi-4-mini|phi4-mini", "slow|tps|tokens per second|tok/s|token/s|drop",
      "4096|4,096|4097|4090|4k"}},
    {When::of_merge_size,
     {"spatial_merge_size", "reshape|shape '|fewer|invalid|error", "chang|set |to 4|to 3|from 2"}},
    {When::in_buffers,
     {"inv_freq", "corrupt|uninitial|not initial|garbage value",
      "from_pretrained|loading|load |loaded|materializ|meta device|to_empty"},
     "not the problem|it matches|zip"},
    {When::of_doubled,
     {"interpolate_pos_encoding|interpolate_pos_embed|pos_embed|position embedding|positional "
      "embedding",
      "xs.clone()|returns xs|return xs|returns x |return x |returns the tokens|returns the input"
      "|added to themselves|added to itself|tokens are doubled"}}};

// "Would merging A and B with mergekit work?"; of what came of a merge, or of an adapter that is
// merged into its base, other things are true.
bool asks_of_merge(Words words, std::string_view text, Seen seen) {
  const bool merges =
      text.contains("be merged") || std::ranges::any_of(words, [](std::string_view word) {
        return contains_word("merge merging mergekit", word);
      });
  const bool of_models =
      contains_any(text, {"mergekit", "the two", "two models", "these models", "both models",
                          "slerp", "dare_ties", "merge them", "merging them"});
  const bool of_others = contains_any(
      text, {"lora", "adapter", "peft", "pull request", "branch", " pr ", "support for", "i merged",
             "after merging", "was merged", "tokenizer", "merge q", "q and k", "qkv"});
  const bool asks =
      text.contains('?') ||
      contains_any(text, {"can i ", "can the", "could i ", "would ", "should ", "is it possible"});
  return merges && of_models && !of_others && asks &&
         (seen == Seen::nothing || seen == Seen::differs);
}

}  // namespace

void read_named_causes(Words words, std::string_view text, Symptom& out) {
  const std::string padded = " " + std::string(text) + " ";  // " cline" is no part of "decline"
  const auto has = [&](std::string_view list) { return contains_one_of(padded, list); };
  for (const Cause& one : causes)
    if (!out.is(one.when) && std::ranges::all_of(one.phrases, has) &&
        (one.never.empty() || !has(one.never)))
      out.when.push_back(one.when);
  if (asks_of_merge(words, text, out.seen)) out.when.push_back(When::of_merge);
}

}  // namespace posenc::detail::prose

namespace posenc::detail {

bool names_a_cause(std::string_view text) {
  const std::string small = small_letters(text);
  Symptom out;
  prose::read_named_causes(prose::words_of(small), small, out);
  return !out.when.empty();
}

}  // namespace posenc::detail
