// What people reported, a row a report: the files or tensors that they had, the command, and what
// it must name. The table in docs/reports.md has the same reports.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/cli/arrays.h"
#include "tests/random.h"

namespace {

using posenc::cli::NpyType;
using posenc::test::has;
using posenc::test::Outcome;

struct Report {
  const char* id;       // on GitHub
  const char* make;     // "": nothing; a command that makes the evidence, as the engine did
  const char* command;  // "@" is tests/data/reports/
  int code;
  const char* names;
};

const Report reports[] = {
    {"huggingface/transformers#48630", "",
     "doctor @doctor/neox-japanese.json --engine transformers@5.14", 1,
     "its class of GPT-NeoX-Japanese makes angles for whole heads"},
    {"cline/cline#9651", "",
     "doctor \"Cline requests the full context window of MiniMax M2.5 on OpenRouter as "
     "max_output_tokens, so even 'hi' exceeds the maximum context by a small margin\"",
     0, "tokens kept for the answer (max_new_tokens) are taken off the context"},
    {"danny-avila/LibreChat#9917", "",
     "doctor @doctor/other-model-answers.log \"LibreChat with gpt-5-mini, which has a 400,000 "
     "context "
     "window\"",
     1, "of a provider it may be another one than was chosen"},
    {"hiyouga/LlamaFactory#6599", "",
     "doctor @doctor/max-length-filled.yaml @doctor/max-length-filled.log", 1,
     "transformers' max_length counts prompt and answer together"},
    {"BerriAI/litellm#18927", "",
     "doctor @doctor/configured-limit.log \"litellm with gpt-5.1 which has a documented context "
     "window "
     "of 400k\"",
     1, "prompt and answer share the provider's window"},
    {"JamePeng/llama-cpp-python#75", "", "doctor @doctor/find-slot.log", 1,
     "the new tokens do not follow the last cached position"},
    {"BytedTsinghua-SIA/MemAgent#5", "",
     "doctor \"vllm serve Qwen/Qwen2.5-14B --tensor_parallel_size 4 --max_seq_len 400000\"", 1,
     "--max_seq_len is no flag of vllm for the length"},
    {"stepfun-ai/Step-Audio-R1#3", "", "doctor @doctor/answer-too-large.log", 1, "16,384 → 32,423"},
    {"xming521/WeClone#77", "", "doctor @doctor/prompt-length.log", 1,
     "--max-model-len LENGTH where vLLM is started"},
    {"taresh18/orpheus-streaming#7", "",
     "doctor \"vllm serve canopylabs/orpheus-3b-0.1-ft --max-model-len 16384\" "
     "@doctor/orpheus-left.log \"vllm 0.15.1 claims max_model_len is 0, I have set "
     "max_tokens=16384 "
     "and max_model_len=16384\"",
     1, "(max_tokens) takes all 16,384 tokens, so that 0 are left"},
    {"modelscope/ms-swift#9287", "",
     "doctor @doctor/swift-grid.log \"Qwen3.5-9B GRPO training with ms-swift 4.1.3, transformers "
     "5.3.0, image inputs, crashes after some steps\"",
     1, "a model that is sampled (GRPO) may have written <|image_pad|> itself"},
    {"ml-explore/mlx-lm#1776", "", "doctor @doctor/mlx-empty-mask.log", 1,
     "a mask over no keys stands beside a cache of 3,118"},
    {"ml-explore/mlx-lm#1914", "",
     "doctor gemma-3-12b-it \"mlx_lm.server --model mlx-community/gemma-3-12b-it-4bit "
     "--draft-model "
     "mlx-community/gemma-3-1b-it-4bit\" \"RotatingKVCache grows past max_size with speculative "
     "decoding, wrong answers\"",
     0, "a step of several tokens (a draft, a chunk) must drop as many"},
    {"hiyouga/LlamaFactory#7723", "",
     "doctor @doctor/factory-maxlen.yaml @doctor/factory-maxlen.log \"LLaMA-Factory with vllm: I "
     "set "
     "cutoff_len and it has no effect, how do I change the 4096?\"",
     1, "cure: vllm_maxlen in the YAML of LLaMA-Factory"},
    {"xorbitsai/inference#3785", "",
     "doctor deepseek-r1-distill-qwen-7b @doctor/xinference-limit.log \"ragflow with xinference, "
     "Max "
     "Tokens set to 128000 in ragflow, to what does max_model_len apply and how do I change it?\"",
     1, "cure: max_model_len where the model is launched (xinference launch"},
    {"intel/ipex-llm#12736", "",
     "doctor qwen2.5-7b-instruct \"ipex-llm on NPU with qwen2.5-7B: vpux-compiler error when "
     "--max-context-len >= 10000, what limits the prompt?\"",
     0, "a model that is compiled for an NPU has fixed lengths"},
    {"microsoft/foundry-dev-tools#156", "",
     "doctor deepseek-r1-distill-qwen-1.5b \"with the NPU optimized DeepSeek R1 in AI Toolkit the "
     "context length cannot go higher than 3840, if I set max tokens to 4096 it throws an "
     "exception\"",
     0, "a model that is compiled for an NPU has fixed lengths"},
    {"unslothai/unsloth#2904", "",
     "doctor llama-3.1-8b \"trl 0.19.1 SFTTrainer max_seq_length is ignored, the tokens are "
     "clipped "
     "at 1024\"",
     0, "TRL cuts texts at max_length of SFTConfig, 1,024 where nobody sets it"},
    {"ollama/ollama#8614", "",
     "doctor deepseek-r1 @doctor/ollama-k-shift.log \"ollama 0.5.7 crashes on long answers with "
     "deepseek-r1:671b, num_ctx 4096\"",
     1, "(Ollama: num_ctx, and num_predict below the rest"},
    {"QwenLM/Qwen3#1361", "",
     "doctor qwen3-235b-a22b \"vllm serve Qwen/Qwen3-235B-A22B-FP8 --max-model-len 131072 "
     "--tensor-parallel-size 4\" \"vllm 0.8.5.post1 says max_model_len is greater than "
     "max_position=40960, I want 128K context\"",
     1, "--rope-scaling '{\"rope_type\":\"yarn\",\"factor\":4.0"},
    {"NVIDIA/TensorRT-LLM#3806", "", "doctor qwen2.5-vl-7b @doctor/trtllm-default.log", 1,
     "TensorRT-LLM 0.17 and older have no scaling named default"},
    {"ikawrakow/ik_llama.cpp#686", "",
     "doctor deepseek-v3 @doctor/mla-shift.sh @doctor/mla-shift.log", 1,
     "keys of a latent attention (MLA) cannot be moved"},
    {"gpustack/gpustack#1409", "",
     "doctor @doctor/nomic-trained.json @doctor/nomic-keys.txt \"llama-box --embeddings --ctx-size "
     "8192 --rope-scaling yarn --rope-freq-scale 0.75 --model N\"",
     0, "the model was trained at 2,048, and reaches its context by a scaling such as this"},
    {"eugr/spark-vllm-docker#405", "",
     "doctor @doctor/qsa.json @doctor/qsa-recipe.yaml @doctor/qsa-limit.log", 1,
     "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 lets vLLM start for more tokens"},
    {"hiyouga/LlamaFactory#8277", "", "doctor qwen3-8b @doctor/factory-packing.yaml", 1,
     "neat_packing: true, by which attention and positions begin anew"},
    {"lmstudio-ai/lmstudio-bug-tracker#2318", "",
     "doctor \"lms load google/gemma-4-e4b -c 4096 --parallel 1\" @doctor/lms-ps.txt", 1,
     "loaded the model for 131,072 tokens, and not for the 4,096 of -c"},
    {"lmstudio-ai/mlx-engine#180", "",
     "doctor qwen3-8b \"lms load qwen3-8b -c 131072\" --engine mlx-lm", 1,
     "--engine mlx-lm writes rope_scaling for the config.json"},
    {"huggingface/diffusers#12656", "", "doctor @doctor/auraflow.json @doctor/auraflow.log", 1,
     "sides of at most 1,536 px fit"},
    {"benjiyaya/HeartMuLa_ComfyUI#93", "", "doctor @doctor/rope-cache.log", 1,
     "call rope_init() of each such module"},
    {"ggml-org/llama.cpp#24820", "",
     "doctor @doctor/phi4-rope-parameters.json @doctor/phi4-dump.txt", 1,
     "a converter that reads rope_scaling alone leaves the lists out"},
    {"axolotl-ai-cloud/axolotl#2739", "",
     "check-positions 0,1,2,3,4,5,0,0,0,0,1,2,3 --cu_seqlens 0,6,9,13", 1,
     "filler tokens all stand at 0"},
    {"sgl-project/sglang#13495", "", "doctor @doctor/deepseek-v32.json --engine sglang@0.5.5", 1,
     "the indexer of DeepSeek V3.2"},
    {"NVIDIA-NeMo/RL#3960", "",
     R"(doctor qwen3-8b @doctor/draft-2048.json "vllm serve Q --max-model-len 40960 --speculative-config '{\"model\":\"E\"}'")",
     1, "raise max_position_embeddings of the draft's config.json"},
    {"huggingface/lerobot#3648", "", "doctor qwen2.5-vl-7b @doctor/lerobot-pip.txt", 1,
     "5.5.4 or later → 5.4.0"},
    {"InternLM/lmdeploy#3544", "",
     "doctor qwen3-8b \"lmdeploy serve api_server Q --rope-scaling-factor 4.0 --session-len "
     "131072\" @doctor/turbomind-yaml.log",
     1, "TurboMind cannot read a number in the settings"},
    {"agentscope-ai/Trinity-RFT#197", "", "doctor @doctor/trinity.yaml @doctor/trinity.log", 1,
     "raise max_prompt_tokens above 42,861"},
    {"vllm-project/vllm#13209", "",
     "doctor deepseek-v3 \"vllm serve D --max-model-len 65536\" @doctor/batched-tokens.log", 1,
     "the limit is max_num_batched_tokens"},
    {"theroyallab/tabbyAPI#401", "", "doctor @doctor/tabby-prompt.log", 1, "4,096 → 5,243"},
    {"InternLM/lmdeploy#3036", "", "doctor @doctor/empty-answer.json", 1,
     "has no token of an answer"},
    {"ralphgrewe/TradingAgents#168", "", "doctor @doctor/ollama-full.json", 1,
     "Ollama's context was full"},
    {"vllm-project/vllm#19489", "", "doctor phi-3.5-mini \"pip install vllm==0.9.1\"", 1,
     "LongRoPE's lists change in the middle of a text"},
    {"sgl-project/sglang#22711", "",
     "doctor @doctor/ministral3.json \"pip install sglang==0.5.10\"", 1,
     "mscale and mscale_all_dim beside YaRN are not read"},
    {"unslothai/unsloth#1642", "", "doctor @doctor/grpo-1024.py @doctor/grpo-1024.log", 1,
     "room for them and their answers, 2,523 tokens"},
    {"modelscope/ms-swift#6591", "", "doctor @doctor/swift-delete.sh @doctor/swift-delete.log", 1,
     "--max_length 34127 or more"},
    {"ml-explore/mlx-lm#1545",
     "rotate q.npy after.npy --scheme rope --rope_theta 500000 --rope_type linear "
     "--factor 0.5 --positions 0:200",
     "identify --before q.npy --after after.npy", 1, "rotated_twice"},
    {"unslothai/unsloth#6197",
     "rotate k.npy after.npy --scheme rope --rope_theta 500000 --positions 0:200",
     "identify --after after.npy --repeated", 0, "base 500000, no scaling"},
    {"Blaizzy/mlx-vlm#1710",
     "rotate k.npy after.npy --scheme rope --rope_theta 1e6 --positions 0:200",
     "identify --after after.npy --repeated", 0, "base 1000000, no scaling"},
    {"Blaizzy/mlx-vlm#1621", "", "check-positions 0,1,2,3 --first 4096", 1, "offset_lost"},
    {"sgl-project/sglang#31232",
     "rotate q.npy after.npy --scheme rope --rope_type yarn --factor 16 "
     "--original_max_position_embeddings 16384 --rope_theta 1e6 --positions 0:200",
     "identify --before q.npy --after after.npy", 0, "amplitude   ×1.27726"},
    {"sgl-project/sglang#26187",
     "rotate k.npy after.npy --scheme rope --rope_theta 1000000 --pairing halves --positions 0:200",
     "identify --after after.npy --repeated", 0, "no scaling"},
    {"deepseek-ai/DeepSeek-R1#684", "", "lint @../doctor/deepseek-r1-0528-qwen3-8b.json", 1,
     "attn_factor"},
    {"ikawrakow/ik_llama.cpp#1298", "", "diff @kimi.json --log @kimi-without-yarn.log", 1,
     "yarn factor 64 original_max_position_embeddings 4096 → none; layers 0–3; line 7"},
    {"meta-models/meta-oss-cookbook#37", "",
     "extend @qwen3-no-scaling.json --trained 32k --to 128k --engine llama.cpp", 0,
     "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768 -c 131072"},
    {"vllm-project/recipes#856", "", "translate @qwen3-yarn.json --to vllm", 0,
     "\"rope_theta\":1000000.0"},
    {"ggml-org/llama.cpp#11008", "", "diff @llama3.json @llama3-without-base.gguf", 1,
     "500000 → 10000"},
    {"ikawrakow/ik_llama.cpp#402", "", "diff @llama3.json @llama3-without-rope-freqs.gguf", 1,
     "pairs 29–63 of 64"},
    {"ggml-org/llama.cpp#21403", "", "diff gemma-4-e2b --log @../logs/gemma-4-converter.log", 1,
     "unknown_rope_type"},
    {"ggml-org/llama.cpp#12957", "", "diff @glm4.json @glm4-whole.json", 1,
     "64 of 128 → 128 of 128"},
    {"ggml-org/llama.cpp#24875", "", "diff phi-3.5-mini --engines llama.cpp,mlx-lm --at 4k", 1,
     "longrope: the long list at every length"},
    {"ohdearquant/lattice#96",
     "rotate q.npy after.npy --scheme rope --pairing interleaved --positions 0:200",
     "identify --before q.npy --after after.npy", 0, "interleaved: channels (0, 1)"},
    {"pekkah/SharpInference#7",
     "rotate k.npy after.npy --scheme rope --pairing interleaved --positions 0:200",
     "identify --after after.npy --repeated", 0, "interleaved: channels (0, 1)"},
    {"jmaczan/tiny-vllm#4",
     "rotate k.npy after.npy --scheme rope --pairing interleaved --rope_theta 500000 --positions "
     "0:200",
     "identify --after after.npy --repeated", 0, "base 500000, no scaling"},
    {"apple/coreai-models#66",
     "rotate wide.npy after.npy --scheme rope --rope_theta 1e6 --partial_rotary_factor 0.25 "
     "--positions 0:200",
     "identify --before wide.npy --after after.npy", 0, "channels    128 from 0 on"},
    {"Avarok-Cybersecurity/atlas#276", "", "diff @gemma3.json @gemma3-one-base.json", 1,
     "10000 → 1000000; layers 0–4"},
    {"antonellof/ferrox#65", "", "diff @gemma3.json @gemma3-logits.json", 1,
     "the logits are scaled otherwise"},
    {"NVIDIA-NeMo/Automodel#2549", "", "precision llama-3.1-8b", 0, "frequencies in bfloat16"},
    {"NVIDIA-NeMo/Automodel#2377", "rotate q.npy after.npy --scheme rope  --positions 0:200",
     "identify --before q.npy --after after.npy --positions 40:240", 0, "offset      -40"},
    {"NVIDIA-NeMo/Automodel#2399", "", "diff @qwen3-yarn.json @qwen3-llama3.json", 1,
     "yarn factor 4 original_max_position_embeddings 32768 → llama3"},
    {"vllm-project/speculators#574", "", "diff @qwen3-yarn.json @qwen3-no-scaling.json", 1,
     "original_max_position_embeddings 32768 → none"},
    {"wejoncy/sfllm#32", "", "diff @llama3.json @llama3-base-10000.json", 1, "500000 → 10000"},
    {"vllm-project/vllm-ascend#6612",
     "rotate k.npy after.npy --scheme rope --rope_theta 1e6 --positions 0:200",
     "identify --after after.npy --repeated", 0, "base 1000000"},
    {"NVIDIA-NeMo/Megatron-Bridge#1776", "", "check-positions 0,1,2,3,4,5 --cu_seqlens 0,3,6", 1,
     "packing_ignored"},
    {"huggingface/transformers#45381", "",
     "check-positions '0,1,1,1,1,1,1,1,1,3;0,1,1,2,2,1,1,2,2,3;0,1,2,1,2,1,2,1,2,3' --ids "
     "'1,151656,151656,151656,151656,151656,151656,151656,151656,2' --video_grid 2x4x4",
     1, "2 → 1"},
    {"vllm-project/vllm#16878", "", "check-positions 1,2,3,4", 1, "every id is off by 1"},
    {"hiyouga/LlamaFactory#10589", "",
     "check-positions '0,1,2,3,4,5' --ids '1,151655,151655,151655,151655,2' --image_grid 1x4x4", 1,
     "flat"},
    {"vllm-project/vllm-omni#1784", "", "diff @qwen3-vl.json @qwen3-vl-sections.json", 1,
     "interleaved 24 20 20 → sections 24 20 20"},
    {"vllm-project/vllm-omni#4443", "", "check-positions 0,1,2,4,5", 1, "offset_from"},
    {"baidu/ERNIE-Image#6", "", "identify --before q.npy --after mixed.npy", 1,
     "interleaved_table"},
    {"huggingface/transformers#48161", "", "check-positions 4 --mask 1,1,0,0,1 --cached 4", 1,
     "every id is off by 2"},
    {"unslothai/unsloth#3699", "", "check-positions '0,1,2,3;0,1,2,3' --mask '0,0,1,1;1,1,1,1'", 1,
     "row_shared"},
    {"ml-explore/mlx-lm#1076", "", "precision llama-3.1-8b --at 524288", 0, "524,288"},
    {"openvinotoolkit/openvino#29556", "", "precision llama-3.1-8b", 0, "all of it in bfloat16"},
    {"turboderp-org/exllamav2#704",
     "rotate q.npy after.npy --scheme rope --rope_theta 10000 --positions 0:200",
     "identify --before q.npy --after after.npy", 0, "base 10000, no scaling"},
    {"arcee-ai/mergekit#325", "", "diff @llama3.json @llama-base-2e7.json", 1, "500000 → 20000000"},
    {"openvinotoolkit/openvino_notebooks#3327",
     "table pe.npy --scheme sinusoidal --width 64 --layout interleaved --positions 0:200",
     "identify --table pe.npy", 0,
     "layout interleaved, sines first frequencies base 10000, spacing width"},
    {"wenet-e2e/wenet#2141",
     "table pe.npy --scheme sinusoidal --width 64 --layout concatenated --spacing ends --positions "
     "0:200",
     "identify --table pe.npy", 0,
     "layout concatenated, sines first frequencies base 10000, spacing ends"},
    {"MiroMindAI/MiroTrain#5", "", "lint @qwen3-card.json", 0, "original_is_max"},
    {"quic/efficient-transformers#1250", "rotate q.npy after.npy --scheme rope  --positions 1:201",
     "identify --before q.npy --after after.npy", 0, "offset      +1"},
    {"EleutherAI/gpt-neox#1003", "", "precision llama-2-7b", 0, "frequencies in bfloat16"},
    {"Dao-AILab/flash-attention#823", "", "diff llama-3.1-8b --engines vllm", 0,
     "cos and sin are kept in bfloat16"},
    {"karpathy/nanochat#264",
     "rotate q.npy after.npy --scheme rope --pairing interleaved --positions 0:200",
     "identify --before q.npy --after after.npy", 0, "interleaved"},
    {"vllm-project/vllm#48351", "", "diff @qwen3-attention-factor.json --engines mlx-lm", 1,
     "rope_scaling.attention_factor is not read"},
    {"vllm-project/vllm#48621", "", "lint @../engines/cases/qwen3-yarn-mscale-alone.json", 0,
     "mscale_alone"},
    {"ggml-org/llama.cpp#22612", "", "diff @ministral-params.json @ministral.json", 1,
     "×1 → ×1.27726"},
    {"vllm-project/vllm#27414", "", "lint phi-3.5-mini --at 32k", 0, "stale_keys"},
    {"huggingface/transformers#25104", "", "lint internlm2.5-7b --at 64k", 0, "stale_keys"},
    {"huggingface/transformers#25306",
     "rotate q.npy after.npy --scheme rope --rope_type ntk --factor 4 --positions 0:200",
     "identify --before q.npy --after after.npy", 0, "base 40889"},
    {"vllm-project/vllm#3488", "", "diff internlm2.5-7b --engines sglang", 1,
     "the base is grown once"},
    {"ollama/ollama#2379", "", "diff llama-3.1-8b --log @../logs/llama-3.1-without-base.log", 1,
     "500000 → 10000; layers 0–31; line 19"},
    {"sgl-project/sglang#14745", "", "diff @qwen3-parameters.json --engines transformers@4", 1,
     "reads rope_scaling and nothing of rope_parameters"},
    {"huggingface/transformers#38224", "", "lint @qwen3-context-40960.json", 0,
     "factor_vs_lengths"},
    {"lablup/mlxcel#1355", "", "diff @llama3-2-factor-32.json @llama3.json", 1, "llama3 factor 32"},
    {"Blaizzy/mlx-vlm#1709", "", "diff @gemma3.json @gemma3-one-base.json", 1, "layers 0–4"},
    {"ml-explore/mlx-lm#1698", "", "diff @../engines/cases/partial-llama.json --engines mlx-lm", 1,
     "32 of 64 → 64 of 64"},
    {"NVIDIA-NeMo/Megatron-Bridge#4195",
     "rotate wide.npy after.npy --scheme rope --partial_rotary_factor 0.25 --positions 0:200",
     "identify --before wide.npy --after after.npy", 0, "halves: channels (0, 64)"},
    {"alibaba/MNN#4133", "", "diff @qwen3-vl-sections.json @qwen3-vl.json", 1, "mrope"},
    {"vllm-project/vllm-omni#1784",
     "rotate q.npy after.npy --scheme rope --rope_theta 5e6 --mrope_section 24,20,20 --positions "
     "ids.npy",
     "identify --before q.npy --after after.npy --positions ids.npy --model qwen3-vl-4b", 1,
     "mrope interleaved"},
    {"Avarok-Cybersecurity/atlas#276",
     "rotate tall.npy after.npy --model gemma-3-4b --layer 5 --positions 0:200",
     "identify --before tall.npy --after after.npy --model gemma-3-4b", 1, "those of layers 5, 11"},
    // 1e24 is the base whose exponents over the whole head are those of 1e6 over a quarter of it.
    {"aws-neuron/neuronx-distributed-inference#106",
     "rotate wide.npy after.npy --scheme rope --rope_type proportional --partial_rotary_factor "
     "0.25 --rope_theta 1e24 --positions 0:200",
     "identify --before wide.npy --after after.npy --model gemma-4-e2b --layer 4", 1,
     "are divided by 128"},
    {"huggingface/transformers#22161", "", "check-positions 0,1,2,3 --mask 0,0,1,1", 1,
     "padding_counted"},
    {"NVIDIA/Megatron-LM#453", "", "check-positions 0,1,2,3,4 --cu_seqlens 0,3,5", 1,
     "packing_ignored"},
    {"vllm-project/vllm#14404", "", "diff llama-2-7b --engines vllm --at 8k", 1, "table_end"},
    {"vllm-project/vllm#17306", "", "doctor @doctor/qwq.json @doctor/window-refused.log", 1,
     "window_refused"},
    {"vllm-project/vllm#48894", "",
     R"(doctor llama-3.1-8b @doctor/eagle3.json "vllm serve L --max-model-len 8192 --speculative-config '{\"model\":\"E\"}'")",
     1, "draft_length"},
    {"SafeAILab/EAGLE#311", "",
     R"(doctor llama-3.1-8b @doctor/eagle3-llama3.json "vllm serve L --max-model-len 32768 --speculative-config '{\"method\":\"eagle3\",\"model\":\"E\"}'")",
     1, "draft_length"},
    {"sgl-project/sglang#3574", "",
     "doctor @doctor/llama3-8k.json @doctor/eagle.json 'python3 -m sglang.launch_server "
     "--speculative-algo EAGLE --speculative-draft E --context-length 8192'",
     1, "The draft is of no use beyond 2,048"},
    {"modelscope/ms-swift#4893", "",
     "doctor qwen3-8b @doctor/swift.log 'swift infer --infer_backend vllm --rope_scaling yarn "
     "--max_model_len 131072'",
     1, "wrapper_scaling"},
    {"modelscope/ms-swift#7018", "",
     "doctor qwen3-8b 'swift pt --train_type full --max_length 64000'", 1,
     "training_beyond_context"},
    {"NVIDIA/TensorRT-LLM#6539", "",
     "doctor qwen3-8b @doctor/trtllm.log 'trtllm-serve Q --max_num_tokens 8192'", 1,
     "enable_chunked_prefill"},
    {"verl-project/verl#856", "", "doctor qwen3-vl-4b @doctor/mrope.log", 1, "mrope_mask"},
    {"vllm-project/vllm#44158", "", "doctor @doctor/llama-transformers5.json @doctor/pip.txt", 1,
     "500000 → 10000"},
    {"vllm-project/vllm#29945", "", "doctor qwen3-8b @doctor/mtp.log", 1, "draft_context"},
    {"NovaSky-AI/SkyRL#974", "", "doctor qwen3-8b @doctor/hydra.log", 1, "++trainer.rope_scaling"},
    {"NVIDIA-NeMo/Megatron-Bridge#3077", "", "doctor qwen3-8b @doctor/nemo-rl.yaml", 1,
     "theta_missing"},
    {"ggml-org/llama.cpp#16693", "", "doctor @doctor/slots.log", 1, "16,384 → 21,544"},
    {"ggml-org/llama.cpp#12468", "", "doctor @doctor/minicpm.log", 1, "LongRoPE's two lists"},
    {"lmstudio-ai/lmstudio-bug-tracker#2112", "", "doctor qwen3-8b @doctor/lmstudio.txt", 1,
     "does not lift it"},
    {"ollama/ollama#17903", "", "doctor qwen3-8b @doctor/sections.log", 1, "gguf_key_shape"},
    {"turboderp-org/exllamav3#332", "", "doctor qwen3-vl-4b @doctor/exllamav3.log", 1,
     "mrope_section_missing"},
    {"ggml-org/llama.cpp#19901", "", "doctor @doctor/positions.log", 1, "21,106 → 21,103"},
    {"comfyanonymous/ComfyUI#12006", "", "doctor @doctor/axes.log", 1, "axes_sum"},
    {"huggingface/diffusers#12083", "", "doctor @doctor/lengths.log", 1, "983 → 1,024"},
    {"open-webui/open-webui#26457", "", "doctor @doctor/ollama.log", 1, "context_capped"},
    {"deepseek-ai/DeepSeek-R1#695", "", "doctor llama-3.1-8b @doctor/tokenizer.log", 0,
     "nothing is wrong"},
    {"kvcache-ai/ktransformers#140", "",
     "doctor deepseek-v3 @doctor/cache-lens.log 'ktransformers --cache_lens 1536'", 1,
     "--cache_lens"},
    {"can1357/oh-my-pi#3752", "", "doctor @doctor/client.log", 1, "123,904 → 124,071"},
    {"huggingface/open-r1#645", "", "doctor @doctor/qwen2.5-yarn.json @doctor/limit.log", 1,
     "the server, and not the model"},
    {"vllm-project/vllm#25865", "", "doctor @doctor/bge --engine vllm", 1, "sentence_length"},
    {"theroyallab/tabbyAPI#389", "", "doctor @doctor/tabby.yml @doctor/tabby.log", 1,
     "cache_smaller"},
    {"microsoft/agent-lightning#334", "", "doctor @doctor/four-rows.log", 1, "position_rows"},
    {"ISEEKYAN/mbridge#48", "", "doctor @doctor/thd.log", 1, "packing_ignored"},
    {"ollama/ollama#17889", "", "doctor @doctor/ollama-ps.txt", 1, "40,960 → 4,096"},
    {"kijai/ComfyUI-WanVideoWrapper#1296", "", "doctor @doctor/grid.log", 1, "grid_rounded"},
    {"axolotl-ai-cloud/axolotl#3608", "", "doctor llama-3.1-8b @doctor/axolotl.yml", 0,
     "packing_ignored"},
    {"meta-pytorch/torchforge#495", "", "doctor @doctor/torchforge.yaml", 1, "16,896 → 2,048"},
    {"sgl-project/sglang#8016", "",
     R"(doctor qwen3-8b "python -m sglang.launch_server --json-model-override-args '{\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32768}}'")",
     1, "--context-length 131072"},
    {"ritzz-ai/GUI-R1#32", "", "doctor @doctor/verl.sh @doctor/prompt.log", 1,
     "max_prompt_length 3,072"},
    {"unslothai/unsloth#5678", "", "doctor @doctor/deltas.log", 1, "mrope_deltas_stale"},
    {"THUDM/slime#641", "", "doctor qwen2.5-7b-yarn4 @doctor/slime.log", 1,
     "--rotary-base 1000000"},
    {"radixark/miles#742", "", "doctor @doctor/qwen3-30b-thinking.json @doctor/qwen3-30b.sh", 1,
     "megatron-core@0.16.1: 10000000 → 1000000"},
    {"THUDM/slime#1720", "", "doctor @doctor/glm4v.json @doctor/slime-check.log", 1,
     "the argument is right"},
    {"vllm-project/vllm#20241", "", "doctor @doctor/internvl3.json @doctor/internvl3.log", 1,
     "12,288 → 18,425"},
    {"vllm-project/vllm#17924", "", "doctor llama-2-7b @doctor/longer.log", 1,
     "this model's max_position_embeddings"},
    {"lmstudio-ai/lmstudio-bug-tracker#2201", "", "doctor @doctor/memory-slot.log", 1,
     "Max Concurrent Predictions 1"},
    {"huggingface/transformers#39814", "", "doctor @doctor/fa2-ids.log", 1, "packing_mistaken"},
    {"UKPLab/sentence-transformers#3879", "", "doctor bge-m3 @doctor/xlm-r-ids.py", 1,
     "a row 2 too early"},
    {"Dao-AILab/flash-attention#2381", "", "doctor @doctor/three-rows.log", 1, "256 → 768"},
    {"huggingface/text-embeddings-inference#723", "", "doctor @doctor/tei-info.json", 1,
     "never fits a batch"},
    {"InternLM/lmdeploy#4147", "", "doctor @doctor/lmdeploy-end.log", 1, "--session-len"},
    {"openvinotoolkit/openvino#34167", "", "doctor @doctor/openvino.log --engine openvino", 1,
     "MAX_PROMPT_LEN is of the NPU"},
    {"openvinotoolkit/model_server#3519", "", "doctor @doctor/ovms.log", 1, "512 → 1,287"},
    {"hiyouga/LlamaFactory#7376", "", "doctor @doctor/video_sft.yaml @doctor/video-cut.log", 1,
     "cutoff_len 2,048"},
    {"unslothai/unsloth#2666", "", "doctor @doctor/unsloth-grpo.py @doctor/unsloth-256.log", 1,
     "max_seq_length=5120"},
    {"deepspeedai/DeepSpeed#8340", "", "doctor @doctor/deepspeed.log", 1,
     "replace_with_kernel_inject=False"},
    {"Tencent-Hunyuan/HunyuanVideo#272", "", "doctor @doctor/clip-77.log", 0,
     "the LLaMA of HunyuanVideo"},
    {"lfnovo/open-notebook#350", "", "doctor @doctor/notebook.json", 1, "512 of mxbai-embed-large"},
    {"RooCodeInc/Roo-Code#7159", "", "doctor @doctor/roo.Modelfile @doctor/roo.log", 1,
     "num_ctx in the client's settings"},
    {"posit-dev/chatlas#327", "", "doctor @doctor/chatlas.py", 1, "answer_cut"},
    {"ggml-org/llama.cpp#14157", "", "doctor @doctor/again.log", 1, "--swa-full"},
    {"SillyTavern/SillyTavern#3543", "", "doctor @doctor/tabby-length.log", 1, "65,536 → 71,599"},
    {"unslothai/unsloth#3036", "", "doctor @doctor/unsloth-table.log", 1, "table_end"},
    {"huggingface/trl#5697", "", "doctor @doctor/clipped.log", 1, "answers_clipped"},
    {"InternLM/lmdeploy#3377", "",
     "doctor @doctor/lmdeploy-tokens.log @doctor/request-picture.json", 1, "image_url"},
    {"InternLM/lmdeploy#3451", "", "doctor @doctor/lmdeploy.py", 1, "answer_cut"},
    {"jjang-ai/vmlx#255", "", "doctor @doctor/embedding.py", 1, "texts_cut"},
    {"EvolvingLMMs-Lab/lmms-eval#1393", "", "doctor qwen2.5-vl-7b @doctor/flat-time.txt", 1,
     "mrope_time_flat"},
    {"numz/ComfyUI-SeedVR2_VideoUpscaler#610", "", "doctor @doctor/float8.txt", 1, "5 of 21 are 0"},
    {"hiyouga/LlamaFactory#8329", "",
     "doctor @doctor/qwen2_5vl_lora_sft.yaml @doctor/picture-cut.log", 1, "cutoff_len 2,048"},
    {"TIGER-AI-Lab/verl-tool#85", "", "doctor @doctor/verl-tool.sh @doctor/verl-tool.log", 1,
     "the messages grow while a tool answers"},
    {"ml-explore/mlx-lm#615", "",
     "doctor qwen3-8b 'python -m mlx_lm.server --model Qwen3-8B-4bit --max-kv-size 4096'", 1,
     "no such flag"},
    {"vllm-project/semantic-router#3388", "", "doctor @doctor/candle-index.log", 1, "table_end"},
    {"vllm-project/vllm#19798", "", "doctor @doctor/embedding-512.log", 1, "learned table"},
    {"EleutherAI/lm-evaluation-harness#2880", "", "doctor @doctor/fills.log", 1,
     "leaves no token to the answer"},
    {"sgl-project/sglang#8096", "", "doctor @doctor/sglang-engine.py @doctor/sglang-85050.log", 1,
     "allow_auto_truncate"},
    {"LostRuins/koboldcpp#1895", "",
     "doctor qwen3-next-80b-a3b 'koboldcpp-nocuda.exe --contextsize 32768 --model Q.gguf'", 0,
     "--smartcache"},
    {"intel/ipex-llm#13106", "", "doctor @doctor/ipex-llm.log @doctor/ipex-llm.env", 1,
     "OLLAMA_NUM_CTX"},
    {"gpustack/gpustack#1616", "", "doctor @doctor/llama-box.log", 1, "update llama-box"},
    {"hiyouga/LlamaFactory#7754", "", "doctor @doctor/packed-mask.txt", 1, "packed_mask"},
    {"kvcache-ai/ktransformers#1122", "",
     "doctor deepseek-v3 'python ktransformers/server/main.py --cache_lens 131072'", 0,
     "ran out of memory"},
    {"ollama/ollama#11283", "", "doctor @doctor/ollama-compose.yml @doctor/ollama-limit.log", 1,
     "100,000 → 8,192"},
    {"QwenLM/Qwen2.5-Omni#373", "", "doctor @doctor/omni.log", 0, "the line may be passed over"},
    {"huggingface/transformers#42189", "", "doctor gpt-oss-20b @doctor/truncate.log", 0,
     "the line may be passed over"},
    {"huggingface/transformers#45887", "",
     "doctor @doctor/nested-yarn.json @doctor/nested-yarn.log", 1, "the file is right"},
    {"runpod-workers/worker-vllm#257", "", "doctor @doctor/medgemma.json @doctor/rope-type.log", 1,
     "a dictionary for each kind of layer"},
    {"lyogavin/airllm#368", "", "doctor llama-3.1-8b @doctor/airllm.txt", 1, "500000 → 10000"},
    {"kijai/ComfyUI-WanVideoWrapper#1376", "", "doctor @doctor/animate.log", 1,
     "64,260 tokens, and 63,788 are rotated"},
    {"EricLBuehler/candle-vllm#277", "", "doctor @doctor/candle.log --at 200k", 1,
     "settings as a program printed them"},
    {"wtdcode/vllm-backport#40", "", "doctor @doctor/qwen3.5-moe.json @doctor/compose.yml", 1,
     "262,144 tokens of the target's 1,048,576"},
    {"gpustack/gpustack#4236", "", "doctor qwen3-8b @doctor/gpustack.log", 1,
     "{\"rope_theta\":1000000,\"rope_type\":\"yarn\""},
    {"vllm-project/vllm#21986", "",
     "doctor llama-3.1-8b @doctor/eagle3.json @doctor/eagle-table.log", 1,
     "a position is behind the last row"},
    {"ggml-org/llama.cpp#23652", "", "doctor @doctor/slots-full.log", 1,
     "several slots over one cache"},
    {"gsanhueza/pi-llama-cpp#15", "", "doctor @doctor/qwen3.5-moe.json @doctor/presets.ini", 0,
     "1,048,576 → 262,144"},
    {"just1nseo/verifying-the-verifiers#1", "", "doctor qwen2.5-7b-yarn4 @doctor/few-shot.log", 1,
     "32,768 → 34,144"},
    {"wileewang/TransPixeler#8", "", "doctor @doctor/rgba.log", 1, "half of them, are rotated"},
    {"InternLM/lmdeploy#3013", "",
     "doctor @doctor/qwen2.5-yarn.json 'lmdeploy serve api_server Q --rope-scaling-factor 4.0' "
     "--engine lmdeploy@0.6.5",
     1, "yarn factor 4 original_max_position_embeddings 32768 → dynamic factor 4"},
    {"microsoft/onnxruntime-genai#1932", "",
     "doctor phi-3.5-mini --engine onnxruntime-genai --at 10096", 1, "stale_keys"},
    {"ollama/ollama#17427", "", "doctor @doctor/ollama-half.log", 1, "just half of num_ctx 65,536"},
    {"ollama/ollama#9452", "", "doctor @doctor/ollama-default.log", 1,
     "the server itself has no OLLAMA_CONTEXT_LENGTH"},
    {"lmstudio-ai/lmstudio-bug-tracker#2250", "", "doctor @doctor/auto-fit.log", 1,
     "16,384 → 208,384"},
    {"verl-project/verl#2603", "", "doctor @doctor/parts.yaml @doctor/parts.log", 1,
     "ulysses_sequence_parallel_size 2 of"},
    {"lrzjason/T2ITrainer#94", "", "doctor @doctor/pair.log", 1, "2 of them stand in a row"},
    {"gpustack/gpustack#1365", "", "doctor @doctor/embedding.log", 1, "8,192 → 2,048"},
    {"nbrg-ppcu/prokbert#107", "", "doctor @doctor/rope-init.log", 1, "transformers_mismatch"},
    {"Wan-Video/Wan2.1#298", "",
     "doctor 'python generate.py --task t2v-1.3B --size 832*480 --frame_num 201 --ckpt_dir "
     "./Wan2.1-T2V-1.3B'",
     1, "81 → 201"},
    {"jundot/omlx#3594", "", "doctor @doctor/mrope-yarn.json 'python -m mlx_vlm.server --model M'",
     1, "scaling_lost"},
    {"vllm-project/vllm#17747", "",
     "doctor @doctor/params-without-length.json 'vllm serve M --config-format mistral "
     "--max-model-len 131072'",
     1, "--max-model-len 128000"},
    {"ggml-org/llama.cpp#13322", "", "doctor @doctor/qwen3-moe-yarn.json @doctor/qwen3-moe.log", 1,
     "--rope-scaling yarn --rope-scale 4 --yarn-orig-ctx 32768"},
    {"modelscope/ms-swift#5146", "", "doctor qwen3-8b @doctor/swift-grpo.sh", 1, "wrapper_scaling"},
    {"abetlen/llama-cpp-python#2216", "", "doctor @doctor/sequences.log", 1,
     "shared among 256 sequences"},
    {"hiyouga/LlamaFactory#7771", "",
     "doctor @doctor/llama3-8k.json 'llamafactory-cli api --model_name_or_path L --infer_backend "
     "vllm --vllm_maxlen 8192 --cutoff_len 8192'",
     1, "cuts the texts of a data set, and no request"},
    {"Comfy-Org/ComfyUI#11414", "", "doctor @doctor/nf4.log", 1, "packed weights"},
    {"hiyouga/LlamaFactory#7096", "", "doctor qwen2.5-7b-yarn4 @doctor/sdpa.log", 0,
     "the line may be passed over"},
    {"tinyhumansai/openhuman#3550", "", "doctor @doctor/n-keep.log", 1, "4,096 → 10,247"},
    {"lmstudio-ai/lmstudio-bug-tracker#1902", "", "doctor @doctor/estimate.log", 0,
     "estimate of memory alone"},
    {"lightseekorg/TorchSpec#101", "", "doctor @doctor/default-type.log", 1,
     "default is no scaling"},
    {"ilkerkesen/pixel-m4#3", "", "doctor @doctor/learned.log", 1, "interpolate_pos_encoding=True"},
    {"huggingface/transformers#40154", "", "doctor qwen2.5-vl-7b @doctor/env.txt", 1,
     "version_fault"},
    {"lmstudio-ai/lmstudio-bug-tracker#1256", "", "doctor @doctor/kimi-linear.json", 0,
     "context_key"},
    {"unslothai/unsloth#7028", "", "doctor llama-3.1-8b @doctor/unsloth.py", 1,
     "in place of the file's own llama3"},
    {"vllm-project/vllm#56279", "", "doctor @doctor/sarvam.json @doctor/sarvam.log", 1,
     "--max-model-len 131072"},
    {"mlc-ai/mlc-llm#3202", "",
     "doctor @doctor/llama3-8k.json 'mlc_llm serve HF://L --overrides "
     "\"max_total_seq_length=20000;context_window_size=20000\"'",
     1, "8,192 → 20,000"},
    {"ikawrakow/ik_llama.cpp#873", "", "doctor @doctor/ling.json @doctor/slot-released.log", 1,
     "32,768 → 131,072"},
    {"modelscope/ms-swift#5742", "", "doctor @doctor/rows.log", 1, "position_rows"},
    {"microsoft/Olive#1873", "", "doctor @doctor/factors.log", 1, "factors_count"},
    {"xencon/aixcl#1707", "", "doctor @doctor/ollama-default-ps.txt", 1,
     "runs with Ollama's default"},
    {"NousResearch/hermes-agent#43900", "", "doctor @doctor/openai-num-ctx.txt", 1,
     "takes no num_ctx, and passes it over"},
    {"fynnfluegge/doc-comments-ai#54", "", "doctor @doctor/llama-cpp-512.log", 1,
     "without n_ctx it takes 512"},
    {"infiniflow/ragflow#5743", "", "doctor @doctor/messages.log", 1,
     "left the oldest messages out"},
    {"jundot/omlx#572", "", "doctor @doctor/mask.log", 1, "a mask for 1,027 keys meets 2,051"},
    {"ggml-org/llama.cpp#22554", "", "doctor @doctor/draft-full.log", 1, "cannot be shifted"},
    {"ollama/ollama#18509", "", "doctor @doctor/qwopus.Modelfile @doctor/ollama-default-ps.txt", 1,
     "65,536 → 4,096"},
    {"kijai/ComfyUI-HunyuanVideoWrapper#460", "", "doctor @doctor/clip-width.log", 1,
     "vectors of 768 channels in the checkpoint meet a model of 512"},
    {"Gourieff/ComfyUI-ReActor#20", "", "doctor @doctor/vit-grid.log", 1,
     "577 (24×24 and 1) rows in the checkpoint"},
    {"huggingface/sentence-transformers#3347", "", "doctor @doctor/bert-rows.log", 1,
     "set max_position_embeddings to the checkpoint's, 512"},
    {"Liuziyu77/Visual-RFT#201", "", "doctor @doctor/mask-one-more.log", 1,
     "the attention mask has 198 entries"},
    {"vllm-project/vllm#21452", "", "doctor @doctor/dual-chunks.log", 1,
     "take dual_chunk_attention_config out"},
    {"anomalyco/opencode#6871", "", "doctor @doctor/opencode.json", 1, "tells no server of it"},
    {"huggingface/candle#2809", "", "doctor @doctor/candle-cache.log", 1, "context_full"},
    {"Lightricks/ComfyUI-LTXVideo#408", "", "doctor @doctor/two-sizes.log", 1,
     "squares of patches (56×56, 14×14)"},
    {"deepbeepmeep/Wan2GP#1953", "", "doctor @doctor/layout.log", 1, "frames of the form 8k + 1"},
    {"huggingface/text-embeddings-inference#356", "", "doctor @doctor/embeddings.json", 1,
     "text-embeddings-inference: truncate: true"},
    {"openclaw/openclaw#85921", "", "doctor @doctor/whole-answer.log", 1,
     "leaves no room for a prompt"},
    {"agent0ai/agent-zero#1196", "", "doctor @doctor/tokenizer-512.log", 1,
     "learned tables of most encoders"},
    {"sgl-project/sglang#33558", "", "doctor @doctor/laguna.json @doctor/laguna-pip.txt", 1,
     "0.5.18 or later"},
    {"Lightning-AI/litgpt#2217", "", "doctor @doctor/mistral-v0.2.json @doctor/litgpt.yaml", 1,
     "1000000 → 10000"},
    {"vllm-project/vllm#10548", "", "doctor @doctor/gemma2-9b.json --at 128k --engine vllm", 1,
     "Text breaks beyond 8,192"},
    {"vllm-project/vllm#2518", "", "doctor @doctor/med42.json @doctor/prompt-2380.log", 1,
     "dynamic scaling reaches 4,096"},
    {"ollama/ollama#11964", "", "doctor @doctor/ollama-runner.txt", 0,
     "each of 5 requests at a time has 8,192 tokens"},
    {"ollama/ollama#9519", "", "doctor @doctor/ollama.service", 1,
     "OLLAMA_CONTEXT_LENGTH before `ollama serve`"},
    {"ollama/ollama#11711", "", "doctor @doctor/ollama-gpt-oss.txt", 1,
     "raises a num_ctx below 8,192"},
    {"lmstudio-ai/lmstudio-bug-tracker#546", "", "doctor @doctor/keep-first.log", 1,
     "32,768 → 111,490"},
    {"lmstudio-ai/lmstudio-bug-tracker#1024", "", "doctor @doctor/lmstudio-full.log", 1,
     "32,000 tokens"},
    {"unslothai/unsloth#406", "", "doctor @doctor/unsloth-mistral.log", 1, "4,096 → 8,192"},
    {"unslothai/unsloth#1236", "", "doctor @doctor/unsloth-length.log", 1, "16,384 → 25,600"},
    {"abetlen/llama-cpp-python#331", "", "doctor @doctor/llama-7b.json @doctor/ggjt.log", 1,
     "2,048 → 8,192"},
    {"ggml-org/llama.cpp#2599", "", "doctor llama-2-7b @doctor/base-model.log", 1,
     "whatever the file is made for"},
    {"ls1intum/edutelligence#744", "", "doctor @doctor/qwen3.8.json @doctor/qwen3.8.sh", 0,
     "it is what the model cards of Qwen 3.5 publish"},
    {"TheAiSingularity/graphrag-local-ollama#24", "", "doctor @doctor/input-truncated.log", 1,
     "cut the middle of the prompt out"},
    {"Blaizzy/mlx-vlm#2323", "",
     "doctor @doctor/deepseek-vl2.json 'python -m mlx_vlm.generate --model M --prompt x'", 1,
     "pairs neighbours"},
    {"Blaizzy/mlx-vlm#2196", "",
     "doctor @doctor/rnj-1.json 'python -m mlx_vlm.generate --model M --prompt x'", 1,
     "10000 → 1000000"},
    {"zycyc/LAMBDA#2", "", "doctor @doctor/longest-sentence.log", 1, "2,048 → 2,822"},
    {"vllm-project/vllm-ascend#7252", "", "doctor @doctor/rotary-coeff.log", 1,
     "rotate whole heads"},
    {"NVIDIA/TensorRT-LLM#2630", "", "doctor qwen2.5-7b-yarn4 @doctor/unrecognized-yarn.log", 0,
     "the line may be passed over"},
    {"langgenius/dify-official-plugins#1750", "", "doctor @doctor/ollama-mistral3.txt", 1,
     "4,096 → 9,561"},
    {"kvcache-ai/ktransformers#101", "", "doctor @doctor/ktransformers.log", 1,
     "--cache_lens of prompt and answer together"},
    {"ggml-org/llama.cpp#2768", "",
     "doctor @../zoo/codellama-7b.json @doctor/convert-codellama.log", 1, "1000000 → 10000"},
    {"QwenLM/Qwen3#1383", "", "doctor qwen3-8b @doctor/qwen3-sglang.sh @doctor/total-46169.log", 1,
     "the server was not started for it"},
    {"Yuanshi9815/OminiControl#58", "", "doctor @doctor/flux-ids.log", 1, "have an axis too few"},
    {"ggml-org/llama.cpp#16876", "", "doctor @doctor/picture-in-batches.log", 1,
     "-b 1536 -ub 1536, as many as the picture's tokens"},
    {"ggml-org/llama.cpp#22439", "",
     "doctor @doctor/picture-and-draft.sh @doctor/picture-and-draft.log", 1,
     "until then run without the draft"},
    {"vllm-project/vllm#12385", "",
     "doctor @doctor/ministral-8b.json \"vllm serve M --max-model-len 131072\"", 1,
     "no layer that rotates sees further back than 32,768"},
    {"RLHFlow/Online-DPO-R1#2", "",
     "doctor @doctor/qwen2.5-math.json @doctor/verl-sum.sh @doctor/verl-sum.log", 1,
     "Wrong: verl stops: max_prompt_length 1,024 + max_response_length 4,000 = 5,024 is more"},
    {"continuedev/continue#9797", "", "doctor @doctor/one-slot.sh @doctor/one-slot.log", 1,
     "-c 32768, which is as far as the model reaches"},
    {"canonical/inference-snaps#91", "", "doctor @doctor/openvino-npu.log", 1,
     "MAX_PROMPT_LEN above the prompt"},
    {"haotian-liu/LLaVA#1906", "", "doctor @doctor/llava.sh @doctor/llava.log", 1,
     "a text of 2,071 tokens is cut there"},
    {"microsoft/onnxruntime-genai#1425", "", "doctor @doctor/genai-max-length.log", 1,
     "at most 2176"},
    {"huggingface/trl#3067", "", "doctor @doctor/sft-packing.py", 1,
     "a sample sees those before it"},
    {"ollama/ollama#9702", "", "doctor gemma-3-4b @doctor/gemma3-keys.txt --engine ollama", 1,
     "--override-kv gemma3.context_length=int:131072"},
    {"NVIDIA-NeMo/Automodel#2172", "", "doctor @doctor/automodel-packing.yaml", 1,
     "pictures lose their rows and columns"},
    {"kortix-ai/suna#172", "", "doctor @doctor/anthropic-limit.log", 1, "at most 25833"},
    {"mlc-ai/mlc-llm#3375", "", "doctor phi-4-mini --engine mlc-llm --at 2000", 1,
     "texts of 2,000 want the short ones"},
    {"GeeeekExplorer/nano-vllm#167", "", "doctor qwen3-0.6b @doctor/nano-vllm.log", 1,
     "pip install 'transformers<5'"},
    {"NVIDIA/TensorRT-LLM#9277", "", "doctor @doctor/trtllm-num-tokens.log", 1,
     "enable_chunked_prefill: true"},
    {"vllm-project/vllm#55116", "", "doctor @doctor/telechat3.json @doctor/telechat3.log", 1,
     "32,768 → 131,072"},
    {"vllm-project/vllm#56066", "", "doctor @doctor/ling.json \"pip install vllm==0.24.0\"", 1,
     "rope_parameters on without the file's rope_theta"},
    {"ggml-org/llama.cpp#18004", "", "doctor gpt-oss-20b @doctor/gpt-oss-build.log", 1,
     "a newer llama.cpp, or b7370"},
    {"vllm-project/vllm#27722", "", "doctor gpt-oss-20b --engine vllm@0.11.0", 1,
     "Look at this: truncate false is not read"},
    {"sgl-project/sglang#14270", "", "doctor gpt-oss-20b --engine sglang@0.5.5", 1,
     "0.5.6 or later"},
    {"NVIDIA/TensorRT-LLM#16378", "", "doctor gpt-oss-20b --engine tensorrt-llm", 1,
     "angles differ from position 453 on"},
    {"vllm-project/vllm#49795", "", "doctor @doctor/vaultgemma.json --engine vllm@0.24.0", 1,
     "gives each layer that window"},
    {"ollama/ollama#13444", "", "doctor gemma-3-4b --engine ollama@0.13.3", 1, "0.13.4 or later"},
    {"ml-explore/mlx-lm#1563", "", "doctor @doctor/qwen3-nested.json @doctor/mlx-theta.log", 1,
     "write \"rope_theta\": 1000000"},
    {"FlashML-org/FreeToken#508", "", "doctor @doctor/qwen3-next-raised.json --at 400000", 1,
     "262,144 → 524,288"},
    {"huggingface/diffusers#13920", "", "doctor @doctor/ids-bf16.txt", 1, "rounded to bfloat16"},
    {"huggingface/candle#2891", "", "doctor gemma-3-4b @doctor/gemma3-listing.txt", 0,
     "those that slide turn by 10000"},
    {"floneum/kalosm#340", "", "doctor llama-3.2-3b @doctor/llama32-keys.log", 0,
     "rope_freqs.weight"},
    {"lablup/mlxcel#1358", "", "doctor phi-3.5-mini @doctor/phi-long.txt --at 2048", 1,
     "the frequencies are those of long_factor"},
    {"Anbeeld/beellama.cpp#27", "", "doctor @doctor/dflash.log", 1, "draft"},
    {"huggingface/optimum-intel#1504", "",
     "doctor phi-3.5-mini \"optimum-cli export openvino --model microsoft/Phi-3.5-mini-instruct "
     "out\" --at 8k",
     1, "kept the short list at any length"},
    {"lm-sys/FastChat#3470", "", "doctor @doctor/fastchat-factor.log", 1, ".get('factor', 1)"},
    {"b4rtaz/distributed-llama#120", "", "doctor @doctor/distributed-llama-phi.log", 1,
     "takes every rope_scaling for llama3's"},
    {"QwenLM/Qwen3-VL#247", "", "doctor @doctor/vllm-assert-factor.log", 1, "0.6.2 or later"},
    {"SYSTRAN/faster-whisper#1022", "", "doctor @doctor/whisper-448.log", 1,
     "shorter initial_prompt"},
    {"ASLP-lab/OSUM#7", "", "doctor @doctor/wenet-max-len.log", 1, "pieces of 30 seconds"},
    {"kkacsh321/robotf-ai-suite#7", "", "doctor @doctor/localai-exhausted.log", 1, "context_size"},
    {"nomic-ai/gpt4all#664", "", "doctor @doctor/gpt4all-prompt.log", 1, "2,048 → 9,884"},
    {"naver-ai/rope-vit#31", "", "doctor @doctor/rope-vit-grid.log", 1,
     "leave them out of the checkpoint"},
    {"mit-han-lab/llm-awq#222", "", "doctor @doctor/awq-rope-theta.log", 1, "before 4.33"},
    {"ggml-org/llama.cpp#10355", "",
     "doctor qwen2.5-7b 'llama-server -m q.gguf --ctx-size 131072 --rope-scaling yarn "
     "--rope-scale 4' @doctor/llama-yarn-flags.log",
     0, "the flags took effect"},
    {"ggml-org/llama.cpp#7709", "", "doctor phi-3-mini-4k-instruct @doctor/llama-b3015.log", 1,
     "no sliding window for Phi 3"},
    {"InternLM/lmdeploy#2235", "", "doctor qwen2.5-7b-yarn4 --engine lmdeploy@0.5.2", 1,
     "knows no YaRN"},
    {"turboderp-org/exllamav2#537", "", "doctor phi-3-mini-128k-instruct --engine exllamav2@0.1.6",
     1, "knows su and not longrope"},
    {"meta-pytorch/gpt-fast#179", "",
     "doctor 'Meta-Llama-3-8B-Instruct generates gibberish for long prompts in gpt-fast'", 1,
     "rope_base=500000"},
    {"unslothai/unsloth#1199", "",
     "doctor 'Phi-3.5-mini generation becomes incoherent after 4096 tokens'", 1,
     "keys cached before are stale"},
    {"unslothai/unsloth#2405", "", "doctor llama-3.1-8b --engine unsloth --at 50000", 1,
     "scaling_lost"},
    {"ollama/ollama#5877", "",
     "doctor 'ollama does not see anything but the latest message, though the text is 45000 tokens "
     "and Phi3 128k should be fine'",
     1, "num_ctx"},
    {"ollama/ollama#8531", "",
     "doctor 'Ollama truncates beginning of user messages and system prompt'", 1,
     "OLLAMA_CONTEXT_LENGTH"},
    {"kijai/ComfyUI-WanVideoWrapper#1342", "",
     "doctor 'First and last frame pingponging, Wan 2.2 beyond 120 frames'", 1, "frames_beyond"},
    {"NVIDIA/TensorRT-LLM#1881", "",
     "doctor 'llava batch infer, only the result corresponding to the longest prompt is correct, "
     "while other results are incorrect'",
     0, "padding_side"},
    {"huggingface/text-generation-inference#816", "",
     "doctor llama-2-7b 'text-generation-launcher --rope-factor 2 --rope-scaling dynamic' "
     "--engine tgi@1.0.0",
     1, "version_fault"},
    {"mosaicml/llm-foundry#331", "", "doctor mpt-7b --at 4096", 1, "ALiBi has no scaling"},
    {"FlagOpen/FlagEmbedding#900", "", "doctor @doctor/bge-671.log", 1, "max_seq_length"},
    {"sgl-project/sglang#2108", "",
     "doctor @doctor/qwen2.5-yarn.json 'Is Yarn supported in sglang? I recently discovered that "
     "qwen2.5 can achieve 128k when run in Yarn.'",
     1, "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1"},
    {"QwenLM/Qwen3#1227", "",
     "doctor qwq-32b --engine vllm 'How does qwq32b support 64k context? The readme says 32k.'", 1,
     "YaRN by 4 of 32,768"},
    {"ollama/ollama#6286", "", "doctor @doctor/ollama-client.py", 1, "num_ctx → n_ctx"},
    {"EleutherAI/lm-evaluation-harness#2953", "", "doctor qwen3-32b @doctor/lm-eval.log", 1,
     "max_gen_toks"},
    {"kijai/ComfyUI-HunyuanVideoWrapper#392", "",
     "doctor 'Static Noise at ~193rd Frame of SkyReels-V1-Hunyuan_comfy'", 1, "frames_beyond"},
    {"Shelton1013/Whisper_MCE#1", "", "doctor @doctor/whisper-444.log", 1, "448 → 2,052"},
    {"vllm-project/vllm#3676", "", "doctor @doctor/command-r.json @doctor/command-r.log", 1,
     "\"max_position_embeddings\": 131072"},
    {"QwenLM/Qwen3-VL#488", "",
     "doctor qwen2-vl-2b-instruct 'Was M-ROPE used in training? I found that llama-factory uses "
     "1D-ROPE for text, images and videos. Is this normal?'",
     1, "seen_on_axes"},
    {"vllm-project/vllm#5236", "",
     "doctor 'LLM.generate() collapses with some padding side in vLLM 0.4.2'", 0,
     "without padding"},
    {"Comfy-Org/ComfyUI#7538", "", "doctor @doctor/longclip.log", 1, "LongCLIP"},
    {"facebookresearch/dinov2#506", "",
     "doctor 'Non-square image sizes hit an assert as the number of tokens in self.pos_embed is "
     "not a square number, is it meant so?'",
     0, "seen_on_sides"},
    {"LostRuins/koboldcpp#1084", "",
     "doctor gemma-2-27b 'Context shifting issues. koboldcpp 1.73.1. My story is mostly coherent "
     "at first, then broken, with 24576 context'",
     0, "--noshift"},
    {"ggml-org/llama.cpp#11681", "",
     "doctor deepseek-v3 'llama-server -m d.gguf -c 0 --parallel 6' 'Misc. bug: llama-server "
     "--ctx-size is divided by --parallel and cannot be increased?'",
     1, "--kv-unified"},
    {"jundot/omlx#689", "",
     "doctor qwen3-vl-30b-a3b-instruct 'Image request returns nothing on my oMLX. The decode model "
     "applies standard 1D RoPE.'",
     1, "seen_on_axes"},
    {"microsoft/onnxruntime-genai#954", "",
     "doctor phi-3.5-mini-instruct 'garbage results with input length around 3000 and 8000, my "
     "max_length is 12K'",
     1, "must be rotated again"},
    {"microsoft/foundry-dev-tools#180", "", "doctor @doctor/ort-cos-cache.log", 1, "table_end"},
    {"ollama/ollama#18107", "",
     "doctor 'Context truncation drops the user message, causing misleading HTTP 500: no user "
     "query found on agent tool use. Requests that exceed the default 4,096 token context window "
     "cause Ollama to drop earlier messages, as it seems to me.'",
     1, "OLLAMA_CONTEXT_LENGTH"},
    {"pegainfer-project/pegainfer#220", "",
     "doctor qwen3-8b 'RoPE cache covers 4096 positions. Serve it and send a >4096-token prompt. "
     "Output degrades with no error.'",
     1, "seen_at_edge"},
    {"huggingface/optimum-neuron#439", "",
     "doctor deepseek-coder-1.3b-instruct 'Rope_scaling not implemented. I am trying to evaluate "
     "it, and get blank lines.'",
     1, "seen_unscaled"},
    {"oobabooga/textgen#6159", "", "doctor @doctor/webui-truncation.log", 1, "prompt_limit"},
    {"ggml-org/whisper.cpp#3986", "", "doctor @doctor/whisper-cpp-rows.log", 1,
     "max_target_positions"},
    {"huggingface/diffusers#14194", "",
     "doctor '[Bug] QwenImageEdit produces incorrect outputs with transformers >=5 due to missing "
     "mm_token_type_ids'",
     1, "4.57"},
    {"lllyasviel/stable-diffusion-webui-forge#1712", "",
     "doctor 'Flux adds horizontal stripes to images around 2K resolution. I use default "
     "settings.'",
     1, "size_beyond"},
    {"axolotl-ai-cloud/axolotl#1375", "",
     "doctor 'Multipacking should not attend to previous sub-sequences packed in the same row. I "
     "suspect that cu_seqlens are ignored.'",
     0, "seen_packed"},
    {"runpod-workers/worker-sglang#14", "", "doctor @doctor/sglang-pool.log", 1,
     "--mem-fraction-static"},
    {"ggml-org/llama.cpp#22923", "",
     "doctor gemma-2-27b 'SWA seems to forget key details in llama-server. With swa-full, I do not "
     "experience this issue.'",
     0, "--ctx-checkpoints"},
    {"huggingface/trl#2834", "",
     "doctor 'Can the loss become significantly high at the beginning when using padding-free?'", 0,
     "model_init_kwargs"},
    {"michaelfeil/infinity#330", "", "doctor @doctor/ort-gather.log", 1, "table_end"},
    {"SYSTRAN/faster-whisper#948", "",
     "doctor 'Error: Maximum decoding length >0. I am getting this with an initial prompt and "
     "hotwords of 401.'",
     1, "condition_on_previous_text"},
    {"OpenNMT/CTranslate2#2074", "",
     "doctor 'Using faster-whisper with large-v3, my sample stopped at exactly 224 tokens though "
     "the model has a 448-position context.'",
     1, "seen_at_table"},
    {"vllm-project/vllm#9825", "",
     "doctor qwen2-7b-instruct '[Bug]: garbled output when generating long texts in the latest "
     "version v0.6.3.post1 of vllm. In v0.6.2 it works, v0.6.2 works correctly with my model'",
     0, "seen_in_one_version"},
    {"huggingface/candle#2358", "", "doctor @doctor/candle-nemo.log", 1, "head_dim"},
    {"Blaizzy/mlx-vlm#1755", "",
     "doctor qwen2.5-vl-3b-instruct 'any prompt longer than prefill_step_size (default 2048) "
     "degenerates in my tests, with endless repetition beyond 2048 tokens'",
     1, "seen_by_chunks"},
    {"keras-team/keras-hub#2729", "",
     "doctor 'rope_theta extraction is inconsistent under transformers 5. It moved rope_theta into "
     "a nested rope_parameters dict, and my converter fails.'",
     0, "seen_moved_keys"},
    {"InternLM/lmdeploy#1204", "",
     "doctor 'lmdeploy 0.2.4: I get the message exceed session max length. PLease restart the "
     "session by reset button.'",
     1, "--session-len"},
    {"anhnh2002/XTTSv2-Finetuning-for-New-Languages#57", "", "doctor @doctor/xtts-characters.log",
     1, "enable_text_splitting"},
    {"DrewThomasson/ebook2audiobook#56", "", "doctor @doctor/xtts-tokens.log", 1, "table_end"},
    {"mlc-ai/mlc-llm#2692", "",
     "doctor 'mlc-llm: Despite setting max_single_sequence_length to 131072, I still get this "
     "error: `Request prompt has 38726 tokens in total, larger than the model input length limit "
     "8192.`'",
     1, "38,726 tokens against a limit of 8,192"},
    {"mlc-ai/web-llm#478", "",
     "doctor 'web-llm: Only one of context_window_size and sliding_window_size can be positive. "
     "For Mistral 7B (I think), which one should I set to -1?'",
     1, "Mistral 7B v0.1"},
    {"ollama/ollama#8493", "",
     "doctor qwen2.5-7b-instruct 'ollama: The instructions for Qwen2.5 state that everything has "
     "128k context: add to the config.json {\"rope_scaling\": {\"type\": \"yarn\"}}. What is "
     "the ollama method of achieving this, as I would like to use it?'",
     1, "convert it anew"},
    {"QwenLM/Qwen3-VL#946", "",
     "doctor 'I am using vllm to serve qwen2.5VL. I still get the error Prompt length of 16601 is "
     "longer than the maximum model length 10000. How could the prompt be that long?'",
     1, "16,601 tokens against a limit of 10,000"},
    {"vllm-project/vllm#12165", "",
     "doctor 'ValueError: The prompt (total length 25938) is too long to fit into the model "
     "(context length 4096).'",
     1, "4,096 → 25,938"},
    {"openmedlab/PathoDuet#11", "",
     "doctor 'size mismatch for pos_embed: copying a param with shape torch.Size([1, 198, 768]) "
     "from checkpoint, the shape in current model is torch.Size([1, 197, 768]).'",
     1, "the same grid"},
    {"InternLM/lmdeploy#1080", "",
     "doctor 'lmdeploy serve api_server internlm/internlm2-chat-7b --session-len 32768 "
     "--cache-max-entry-count 0.01'",
     1, "cache_memory"},
    {"hiyouga/LlamaFactory#10736", "", "doctor @doctor/packed-sdpa.yaml @doctor/packed-sdpa.log", 1,
     "packing: false"},
    {"verl-project/verl#5024", "", "doctor @doctor/video-grid.log", 1, "do_sample_frames"},
    {"EvolvingLMMs-Lab/lmms-eval#1404", "",
     "doctor qwen3-vl-8b-instruct 'the chat vllm model drops video timestamps, and emits each "
     "frame as a bare image. They silently underperform on motion.'",
     1, "seen_in_time"},
    {"karpathy/nanochat#514", "",
     "doctor 'nanochat: prompts exceed the static RoPE cache. When max_seq_len is 256, the cache "
     "is capped at 2560. These prompts frequently exceed 2560 tokens, and it crashes.'",
     1, "rotary_seq_len"},
    {"AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#6", "",
     "doctor 'why avg draft acceptance rate so low?' 'SpecDecoding metrics: Mean acceptance "
     "length: 2.33, Accepted throughput: 12.30 tokens/s, Avg Draft acceptance rate: 9.1%'",
     0, "seen_with_draft"},
    {"JIA-Lab-research/LongLoRA#42", "",
     "doctor llama-2-7b 'Do you have to set rope parameters and rope theta when inferencing sft "
     "models? Llama-2-7b-longlora-32k-ft has \"rope_scaling\": null'",
     1, "positions divided by 8 for 32,768 tokens"},
    {"thinking-machines-lab/tinker-feedback#81", "",
     "doctor \"BadRequestError: Error code: 400 - {'error': '33000 prompt tokens + 1 max_tokens > "
     "32768.'}\"",
     1, "against a limit of 32,768"},
    {"QwenLM/Qwen3.8#104", "",
     "doctor '[Bug] Flash Attention crashes with illegal memory access on Qwen3.5 due to 3D "
     "position_ids being misinterpreted as packed sequence'",
     0, "seen_axes_as_packed"},
    {"areal-project/AReaL#217", "",
     "doctor qwen2.5-vl-7b-instruct 'Qwen2.5 VL uses different position IDs for t, w, h. The "
     "native packed format does not handle them'",
     1, "seen_on_axes"},
    {"ollama/ollama#16828", "",
     "doctor qwen3-32b 'num_ctx cannot be overridden in ollama, I create it with PARAMETER num_ctx "
     "131072'",
     1, "40,960 of the 131,072 asked for"},
    {"huggingface/trl#5785", "",
     "doctor 'GRPOTrainer: padding-direction mismatch silently corrupts multimodal context in VLM "
     "training'",
     0, "seen_in_batch"},
    {"unslothai/unsloth#2215", "",
     "doctor qwen2.5-7b-instruct 'Max prompt length of 256 unsloth GRPO Finetuned Qwen 2.5 7B'", 0,
     "max_prompt_length of TRL"},
    {"ggml-org/llama.cpp#14367", "",
     "doctor gemma-3-4b 'Inconsistent Gemma3 implementation in rope factor'", 0,
     "two sets of angles by design"},
    {"vllm-project/vllm#57941", "",
     "doctor 'the max_position_embeddings of the draft model is smaller, and vLLM 0.29.0 crashes "
     "with an illegal memory access, CUDA error'",
     0, "the engine stops where a table of the draft ends"},
    {"ikawrakow/ik_llama.cpp#960", "",
     "doctor 'once my context limit is exceeded, the full prompt always gets reprocessed'", 0,
     "prompt_again"},
    {"kyutai-labs/pocket-tts#18", "",
     "doctor 'The size of tensor a (1000) must match the size of tensor b (1001) at non-singleton "
     "dimension 2'",
     1, "a cache or table of 1,000 steps is full"},
    {"Comfy-Org/ComfyUI#13585", "",
     "doctor gemma-3-4b 'When len of whole prompt over 1024 tokens, gemma forgot start of prompt, "
     "because it is eliminated by 1024 attention sliding window. ComfyUI'",
     1, "29 of 34 layers see the last 1,024 tokens by design"},
    {"xorbitsai/inference#1715", "",
     "doctor 'ValueError: User-specified max_model_len (4096) is greater than the derived "
     "max_model_len (seq_length=2048 or model_max_length=None in model config)'",
     1, "--max-model-len 2048 at most"},
    {"zircote/rlm-rs#302", "",
     "doctor bge-m3 'FastEmbedEmbedder initializes BGE-M3 without overriding the 512-token default "
     "of FastEmbed, so longer inputs are truncated'",
     1, "the program cuts texts at 512 tokens of its own"},
    {"huggingface/community-events#178", "",
     "doctor whisper-small 'decoder positional embedding size(small model case is [448,768]) "
     "should not bigger than 448'",
     0, "a learned table of 448 positions"},
    {"ml-explore/mlx-lm#35", "",
     "doctor gemma-3-4b 'Gemma 3 and Command A become unusable after 5000 tokens' 'with the latest "
     "mlx-lm v0.22.1'",
     0, "seen_by_window_cache"},
    {"vllm-project/vllm#6220", "",
     "doctor gemma-2-27b 'Gemma 2 uses sliding window attention for every odd layer, which is "
     "currently not supported by vLLM. Disabling sliding window and capping the max length to the "
     "sliding window size (4096).'",
     1, "serves the model up to its window"},
    {"vllm-project/vllm#6253", "",
     "doctor gemma-2-9b 'vllm serve M --max-model-len 8192 --enable-prefix-caching "
     "--disable-sliding-window'",
     1, "drop --disable-sliding-window"},
    {"langchain-ai/langchain#20710", "",
     "doctor llama-3-70b 'Nonsensical output for long context (above 4k) with langchain, LlamaCpp; "
     "llama.cpp main gives meaningful output'",
     1, "rope_freq_base=500000"},
    {"open-webui/open-webui#11568", "",
     "doctor 'context limit not applied from user settings. Open WebUI 0.5.20, Ollama 0.5.13. "
     "Ollama still shows 2048 despite the setting being changed'",
     0, "seen_by_front_end"},
    {"open-webui/open-webui#11958", "",
     "doctor 'When using TabbyAPI as a OpenAI compatible backend, context length limit is ignored "
     "in the admin model settings of Open WebUI'",
     0, "tabbyAPI's max_seq_len"},
    {"huggingface/transformers#31848", "",
     "doctor 'Gemma 2 crashes with CUDA error on long context input. About 4k tokens. "
     "RuntimeError: CUDA error: device-side assert triggered' gemma-2-27b",
     1, "layers have a window of 4,096"},
    {"huggingface/transformers#36151", "",
     "doctor 'if one adds past_key_values to the input in generate, at some point the "
     "cache_position becomes an empty torch.tensor, leading to an IndexError on "
     "cache_position[-1]'",
     1, "hold as many tokens as input_ids has"},
    {"NVIDIA/TensorRT-LLM#2064", "",
     "doctor llama-3-8b 'trtllm-build --checkpoint_dir c --max_input_len 8192 --max_output_len "
     "8192 --max_num_tokens 16384'",
     1, "the two within 8192 in all"},
    {"Lightning-AI/litgpt#1717", "",
     "doctor phi-3.5-mini 'ValueError: Cannot attend to 9904, block size is only 4096'", 1,
     "litgpt makes its table of cos and sin for block_size tokens"},
    {"lmstudio-ai/lmstudio-bug-tracker#1484", "",
     "doctor 'LM studio 0.4.1. have two long chats, before it finished start generating in chat 2, "
     "both generations fail'",
     0, "requests that run at once share the context"},
    {"meta-llama/llama-models#240", "",
     "doctor \"Llama 3.2:3b-instruct: 'This model's maximum context length is 2048 tokens. "
     "However, "
     "you requested 2049 tokens (1681 in the messages, 368 in the completion).' why is there "
     "this limit?\"",
     1, "the model itself reaches 131,072"},
    {"huggingface/trl#3569", "",
     "doctor 'The decoder prompt (length 3353) is longer than the maximum model length of 2560. I "
     "was using GRPO of trl'",
     1, "max_prompt_length and max_completion_length of GRPOConfig"},
    {"Comfy-Org/ComfyUI#6200", "",
     "doctor 'Token indices sequence length is longer than the specified maximum sequence length "
     "for this model (124 > 77). Running this sequence through the model will result in indexing "
     "errors'",
     0, "encode longer prompts in pieces of 75"},
    {"huggingface/diffusers#9799", "",
     "doctor 'RuntimeError: The size of tensor a (4173) must match the size of tensor b (16461) at "
     "non-singleton dimension 2. diffusers, Flux LoRA training'",
     1, "latents are packed by 2×2"},
    {"LostRuins/koboldcpp#2131", "",
     "doctor '[Context Shifting: Erased 4 tokens at position 2000]'", 1, "--noshift"},
    {"oobabooga/text-generation-webui#5995", "",
     "doctor 'Truncation length: 4096, max_new_tokens: 4096 (is it too high?), Available context "
     "length: 0'",
     1, "nothing is left for the prompt"},
    {"sgl-project/sglang#10145", "",
     "doctor qwen3-8b 'Does the qwen3 model extrapolate automatically, or do I need to set the "
     "rope_scaling parameter?' --engine sglang",
     0, "asks_longer"},
    {"ggml-org/llama.cpp#12253", "",
     "doctor phi-4-mini 'I get garbage output (which stays until server restart) as soon as "
     "KV-cache defragmentation occurs once' 'llama-server -c 4096 --parallel 2 -fa'",
     1, "seen_across_lists"},
    {"huggingface/nanotron#241", "", "doctor 'convert_nt_to_hf is broken for non-interleaved RoPE'",
     0, "a converter permutes rows of q and k where the two files differ in that"},
    {"huggingface/transformers#22495", "",
     "doctor 'python run_mlm.py --model_type roberta --max_seq_length 512' 'IndexError: index out "
     "of range in self'",
     1, "512 tokens take a table of 514 rows"},
    {"huggingface/candle#3410", "",
     "doctor qwen2.5-coder-32b-instruct 'candle: quantized_llama.rs uses wrong RoPE convention for "
     "NEOX-style models. It generates 30 tokens of coherent text and then degenerates.'",
     0, "quantized_qwen2"},
    {"lmstudio-ai/lmstudio-bug-tracker#2339", "",
     "doctor 'LM Studio: a prompt larger than the loaded context returns nothing. It is loaded at "
     "32768 context, and my prompt of ~36k tokens comes back empty.'",
     1, "32,768 → 36,000"},
    {"k2-fsa/icefall#1891", "",
     "doctor 'icefall: error in decoding with whisper_encoder. Maybe there is something wrong with "
     "the positional embedding, as I see it'",
     0, "30 seconds of sound"},
    {"vllm-project/vllm#18728", "", "doctor qwen3-8b @doctor/qwen3-yarn.sh", 0,
     "leave it out where no text is longer than 40,960"},
    {"TsinghuaC3I/Unify-Post-Training#5", "",
     "doctor qwen2.5-math-1.5b-instruct 'the response length is set to 8192, but "
     "max_position_embeddings of qwen2.5 math is only 4096, how do you solve this?'",
     1, "an answer of 8,192 tokens leaves no room for a prompt"},
    {"docker/model-runner#726", "",
     "doctor 'docker model configure --context-size 16384 ai/qwen3-vl:8B -- -c 16384 -np 4' "
     "@doctor/docker-slots.log",
     0, "each of 4 slots has 1/4 of -c"},
    {"docker/desktop-feedback#188", "",
     "doctor @doctor/docker-4096.json 'docker model configure --context-size 65536 ai/gpt-oss'", 1,
     "Docker Model Runner runs 4,096 tokens where nobody sets it"},
    {"axolotl-ai-cloud/axolotl#3817", "",
     "doctor 'the packed collator of axolotl emits 2-D position_ids (B, L), and get_rope_index() "
     "is skipped entirely for qwen2_5_vl'",
     0, "the model does not make its own"},
    {"ggml-org/llama.cpp#27515", "", "doctor @doctor/no-shift.log", 0,
     "no key is moved, and a text ends where the context is full"},
    {"sbryngelson/ANEForge#58", "",
     "doctor llama-3.1-8b 'short context is fine, long context degenerates into repetition: our "
     "engine computed RoPE from rope_theta alone'",
     1, "the file scales (llama3 factor 8"},
    {"BlinkDL/RWKV-LM#318", "",
     "doctor 'RWKV gives wrong output under very long context in LM Studio'", 0,
     "RWKV and Mamba keep a state and have no positions"},
    {"huggingface/trl#3788", "", "doctor @doctor/step-below-context.log", 1,
     "vLLM takes a whole prompt in one step where chunked prefill is off"},
    {"software-mansion/react-native-executorch#201", "",
     "doctor 'ExecuTorch app crashes when the conversation exceeds 128 tokens'", 1,
     "ExecuTorch runs a context of 128 tokens"},
    {"huggingface/transformers#45902", "", "doctor 'inv_freq is uninitialized after to_empty'", 0,
     "the frequencies are a buffer that no file holds"},
    {"rajveer43/VeloxQuant-MLX#389", "",
     "doctor 'PyramidKVCache resets its offset to the number of retained rows, and the RoPE "
     "position is wrong after eviction in mlx_lm'",
     0, "must go on counting all tokens"},
    {"gpustack/llama-box#21", "", "doctor @doctor/mrope-shift.log", 1,
     "keys of M-RoPE (three rows of positions) were to be moved"},
    {"volcengine/verl#4159", "",
     "doctor 'response_position_ids of verl are left padded and response_ids right padded, for "
     "Qwen2-VL'",
     0, "ids that are padded on another side than their tokens"},
    {"can1357/oh-my-pi#847", "", "doctor 'deepseek-v4-flash:cloud in ollama forgets'", 0,
     "models of Ollama's cloud run there"},
    {"deepseek-ai/DeepSeek-R1#334", "",
     "doctor deepseek-v3 'vllm serve M --max-model-len 65536 --kv-cache-dtype fp8_e5m2' 'incorrect "
     "outputs when the context exceeds 18K tokens in vLLM'",
     0, "cached keys of few bits"},
    {"sgl-project/sglang#27974", "",
     "doctor qwen3-vl-8b-instruct \"python -m sglang.launch_server --model-path M "
     "--json-model-override-args '{\\\"text_config\\\":{\\\"rope_scaling\\\":{\\\"rope_type\\\":"
     "\\\"yarn\\\",\\\"factor\\\":2.0,\\\"original_max_position_embeddings\\\":262144}}}'\"",
     1, "the override replaces all of rope_parameters, and has no rope_theta"},
    {"ggml-org/llama.cpp#8995", "", "doctor @doctor/phi3-long-list.log", 1,
     "texts of up to 4,096 tokens lose, longer ones do not"},
    {"vllm-project/vllm#16904", "",
     "doctor 'glm-4-9b-chat-hf in vllm 0.8.4 answers garbage: rotary_dim is halved again in each "
     "layer'",
     1, "halves rotary_dim of the rotation that all layers share"},
    {"microsoft/onnxruntime-genai#383", "",
     "doctor phi-3-mini-128k-instruct @doctor/cos-cache-rows.log", 1,
     "LongRoPE (Phi 3 with 128k) has a table of 4,096 for short prompts"},
    {"ollama/ollama#7741", "", "doctor @doctor/embed-num-ctx.py", 1,
     "2,048 of nomic-embed-text and snowflake-arctic-embed:137m"},
    {"EricLBuehler/mistral.rs#246", "",
     "doctor phi-3-mini-4k-instruct 'gibberish on long inputs in mistral.rs, short prompts are "
     "fine'",
     0, "layers have a window of 2,047 tokens"},
    {"ml-explore/mlx-lm#1384", "",
     "doctor @doctor/gemma3n-served.json @doctor/gemma3n-batch.log 'the server answers garbage; "
     "mlx_lm.generate is fine'",
     1, "class of Gemma 3n takes a cache's state for two arrays"},
    {"unslothai/unsloth#1066", "",
     "doctor llama-3.1-8b 'unsloth: batch inference with left padding, the shorter prompt gives "
     "abnormal output'",
     0, "padding moves the positions"},
    {"meta-llama/llama-models#241", "",
     "doctor @doctor/llama-3.2-1b-scaled.json @doctor/meta-scaling.py 'bad output after 80k "
     "tokens'",
     1, "all numbers of the file's scaling, in place of scale_factor 8"},
    {"LLaVA-VL/LLaVA-NeXT#458", "", "doctor @doctor/siglip-in-clip.log", 1,
     "SigLIP has none, and CLIP's class makes one"},
    {"huggingface/text-embeddings-inference#146", "",
     "doctor all-minilm-l6-v2 'TEI and SentenceTransformer give different embeddings for text "
     "longer than 256 tokens'",
     0, "sentence-transformers cuts a text at max_seq_length"},
    {"volcengine/verl#673", "", "doctor @doctor/verl-limit.log", 1,
     "4,096 is max_prompt_length 3,072 + max_response_length 1,024"},
    {"NVIDIA/Megatron-LM#1429", "",
     "doctor deepseek-v2-lite 'Megatron-LM MLA softmax scale uses mscale instead of "
     "mscale_all_dim'",
     0, "mscale_all_dim alone, squared, with the softmax's scale"},
    {"ohdearquant/lattice#392", "",
     "doctor qwen3.5-9b 'our Q8 forward uses interleaved RoPE pairing (2i, 2i+1) instead of "
     "stride-half (i, half+i): worse perplexity'",
     0, "this model pairs halves"},
    {"jjang-ai/vmlx#113", "", "doctor @doctor/kept-positions.log", 1,
     "the positions kept from the request before"},
    {"facebookresearch/dinov2#378", "", "doctor @doctor/pos-rounded-down.log", 1,
     "the product was rounded down to one row too few"},
    {"Blaizzy/mlx-vlm#1527", "",
     "doctor qwen2.5-vl-7b-instruct \"mlx-vlm 0.6.4: Qwen2.5-VL generate prints 'This is is is is' "
     "at temperature 0, in 0.6.3 it was right\"",
     0, "mlx-vlm makes the positions of M-RoPE with the prompt and keeps them on the model"},
    {"huggingface/diffusers#10121", "",
     "doctor 'FLUX.1-dev at 4096x4096 in diffusers gives noisy meaningless artifacts, 1024 is "
     "fine'",
     1, "the model was trained on pictures of about 1448 pixels a side"},
    {"huggingface/transformers#47436", "", "doctor @doctor/yarn-outside-text.log", 1,
     "rope_parameters stand in a part of the configuration that has no length"},
    {"InternLM/lmdeploy#1896", "",
     "doctor @doctor/zephyr.json 'lmdeploy serve api_server HuggingFaceH4/zephyr-7b-beta --backend "
     "turbomind --session-len 32768' 'garbage beyond 10k tokens'",
     0, "layers have a window of 4,096 tokens"},
    {"turboderp-org/exllamav2#642", "",
     "doctor qwen2.5-7b-yarn4 'exllamav2 0.2.2: repeats like crazy at 80K context'", 1,
     "it knows no YaRN, and rotates as without a scaling"},
    {"microsoft/onnxruntime#29618", "", "doctor @doctor/onnx-one-row.log", 1,
     "the export has one row of positions for all texts of a batch"},
    {"huggingface/transformers#29419", "",
     "doctor llama-2-7b 'transformers 4.38.2: logits with left padding and right padding differ by "
     "0.002'",
     0, "a difference of 0.002 is rounding"},
    {"docker/model-runner#485", "",
     "doctor 'docker model run ai/gemma3' @doctor/docker-default.json", 1,
     "docker model configure --context-size LENGTH MODEL"},
    {"unslothai/unsloth#1193", "",
     "doctor 'unsloth: Phi-3.5-mini-instruct output after 4096 tokens is gibberish, but if the "
     "input is beyond 4096 already it is good'",
     1, "changes LongRoPE's list in the middle"},
    {"ollama/ollama#8598", "", "doctor @doctor/n-rot-of-ollama.log", 1,
     "ollama create's own converter takes hidden_size over heads"},
    {"huggingface/pytorch-image-models#2549", "", "doctor @doctor/timm-axes.log", 1,
     "axis 1 of the queries are 12 heads"},
    {"huggingface/pytorch-image-models#2155", "", "doctor @doctor/timm-unsplit.log", 1,
     "tokens are rotated before they are split into heads"},
    {"baaivision/EVA#172", "", "doctor @doctor/eva-cosines.log", 1, "nothing of them was trained"},
    {"pytorch/torchtune#2202", "",
     "doctor @doctor/torchtune-lora.yaml \"TypeError: lora_llama3_1_8b() got an unexpected keyword "
     "argument 'max_seq_len'\"",
     1, "max_seq_len under tokenizer: alone"},
    {"pytorch/torchtune#1311", "",
     "doctor llama-3-8b 'ValueError: seq_len (9274) of input tensor should be smaller than "
     "max_seq_len (8192)'",
     1, "tokenizer.max_seq_len: 8192 in the YAML"},
    {"huggingface/diffusers#10722", "", "doctor @doctor/flux-two-prompts.log", 1,
     "just the 512 tokens of T5's prompt apart"},
    {"huggingface/diffusers#10925", "",
     "doctor 'ValueError: Sequence length must be less than max_position_embeddings (got `sequence "
     "length`: 77 and max_position_embeddings: 0'",
     1, "the table of positions is empty"},
    {"huggingface/transformers#29496", "", "doctor @doctor/mistral-buffer.py", 1,
     "inv_freq is a buffer"},
    {"casper-hansen/AutoAWQ#660", "",
     "doctor \"AttributeError: 'Qwen2Model' object has no attribute 'rotary_emb'\"", 1,
     "this transformers is older"},
    {"deepseek-ai/DeepSeek-R1#554", "", "doctor @doctor/inv-freq-cpu.log", 1,
     "inv_freq stayed on the CPU"},
    {"huggingface/trl#3243", "",
     "doctor 'RuntimeError: cu_seqlens_q must have shape (batch_size + 1)'", 1,
     "squeeze cu_seqlens"},
    {"2U1/Qwen-VL-Series-Finetune#45", "",
     "doctor 'TypeError: apply_rotary_pos_emb_flashatt_fp32() takes 2 positional arguments but 4 "
     "were given'",
     1, "was written for another version of it"},
    {"schwartz-lab-NLP/TOVA#10", "", "doctor @doctor/tova.py", 1,
     "rotary_emb(value_states, position_ids)"},
    {"fla-org/flash-linear-attention#515", "", "doctor 'Error during processing: TR must be >= T,'",
     1, "shorter than the padded batch"},
    {"Intellindust-AI-Lab/DEIMv2#68", "",
     "doctor 'Missing key(s) in state_dict: \"cls_token\", \"storage_tokens\", "
     "\"rope_embed.periods\", \"blocks.0.norm1.weight\"'",
     1, "every weight of the model is missing"},
    {"huggingface/transformers#33993", "",
     "doctor \"siglip interpolate_pos_encoding=True: TypeError: unsupported operand type(s) for +: "
     "'Tensor' and 'Embedding'\"",
     1, "SigLIP's of transformers 4.45.0 and 4.45.1"},
    {"InternLM/lmdeploy#1020", "", "doctor @doctor/turbomind-blocks.log", 1,
     "its blocks of keys and values have no room for more"},
    {"spiritbuun/buun-llama-cpp#57", "", "doctor @doctor/mtp-slots.log", 1,
     "these are positions of the draft's context"},
    {"ikawrakow/ik_llama.cpp#893", "", "doctor @doctor/ik-cosines.log", 1,
     "leave -rcache (--rope-cache) out"},
    {"ggml-org/llama.cpp#12857", "", "doctor @doctor/adapter-as-model.log", 1,
     "an adapter goes beside its model"},
    {"mlc-ai/web-llm#385", "",
     "doctor 'Check failed: (!free_page_ids_.empty()) is false: The KV cache is full. No page can "
     "be allocated.'",
     1, "more than context_window_size"},
    {"mtkresearch/BreezeApp#21", "", "doctor @doctor/executorch-128.log", 1,
     "export the model again with its length"},
    {"NotPunchnox/rkllama#60", "",
     "doctor \"E rkllm: max_context[16384] must be less than the model's max_context_limit[4096]\"",
     1, "num_ctx of at most 4096"},
    {"EricLBuehler/mistral.rs#375", "", "doctor 'Prompt sequence length is greater than 4096'", 1,
     "4,096 where it could not read context_length"},
    {"ggml-org/llama.cpp#28433", "",
     "doctor 'llama-server -m m.gguf --ctx-size 1048576 -np 4 --spec-type ngram-mod,draft-mtp'", 1,
     "MTP's draft has a context of the whole -c"},
    {"bobbyjohnstx/tinycode#210", "",
     "doctor 'step_finish reason:\"length\" "
     "tokens:{\"total\":4096,\"input\":2050,\"output\":2046}'",
     1, "prompt and answer are 4,096 tokens together"},
    {"oobabooga/textgen#7095", "", "doctor qwen3-4b @doctor/textgen-8192.log", 1,
     "loads a model with ctx-size 8,192"},
    {"vllm-project/vllm#23072", "",
     "doctor llama-3.1-8b @doctor/eagle3-2048.json 'index out of bounds: 0 <= tmp < 2048'", 1,
     "a draft that was trained for more than its file says"},
    {"jundot/omlx#1687", "",
     "doctor 'oMLX 0.4.1: Qwen3-Embedding-8B embeddings are silently truncated at 512 tokens, "
     "max_context_window: 200000 is ignored'",
     1, "made of the first 512 tokens"},
    {"huggingface/transformers#33783", "",
     "doctor @doctor/qwen2-yarn-kept.json --engine transformers@4.51.3", 1,
     "as Qwen's cards have it, is scaled by 1"},
    {"RooCodeInc/Roo-Code#7343", "",
     "doctor 'Roo Code ignores the context of my Ollama model: glm45-48k has num_ctx 48k in the "
     "Modelfile, ollama run loads it right, but Roo Code loads it with 131k context'",
     0, "options stands above that of the Modelfile"},
    {"jundot/omlx#312", "",
     "doctor 'Claude Code shows Qwen3.5-35B-A3B-4bit 62k/200k tokens with omlx, but I can only run "
     "64k; how do I tell it the real context window'",
     0, "takes a window of 200,000 tokens for each model that it does not know"},
    {"ollama/ollama#16346", "",
     "doctor 'OLLAMA_CONTEXT_LENGTH=65536 is set but ollama ps shows CONTEXT 32768, Modelfile "
     "PARAMETER num_ctx 65536 is ignored too, qwen2.5:7b-instruct-q4_K_M'",
     1, "32,768 of the 65,536 asked for"},
    {"ml-explore/mlx-examples#1329", "",
     "doctor \"mlx_lm.convert of Qwen2.5-Coder-32B-Instruct-128k-yarn: Error: rope_scaling 'type' "
     "currently only supports 'linear'\"",
     1, "this mlx-lm knows no other scaling"},
    {"SYSTRAN/faster-whisper#1248", "",
     "doctor 'faster-whisper outputs incomplete text and cuts off the last characters, "
     "transformers is ok; the length is limited to 224'",
     1, "half of the 448 rows of Whisper's decoder"},
    {"NVIDIA/kvpress#16", "",
     "doctor 'kvpress with Llama-3.1-8B: gibberish output for long contexts after compressing the "
     "KV cache with SnapKV, positional encodings are not adjusted'",
     0, "By your words: a cache that drops keys must go on counting all tokens"},
    {"ml-explore/mlx-lm#1699", "",
     "doctor 'gemma3n in mlx-lm 0.31.3 with BatchKVCache repeats HierHierHierHier, plain cache is "
     "right'",
     0, "takes a cache's state for two arrays"},
    {"lemonade-sdk/lemonade#3574", "",
     "doctor 'lemonade reports context_length 524288 for a model of 262144, llama.cpp started with "
     "ctx_size=524288 --parallel 2 --no-kv-unified'",
     0, "524,288 is the sum of 2 slots, each of which has 262,144"},
    {"ggml-org/llama.cpp#16880", "",
     "doctor 'Qwen3-VL-8B GGUF in llama-server gives incorrect bounding boxes for images that are "
     "not 1000x1000 or not square, the y coordinate is off'",
     0, "By your words: llama.cpp before pull request 25781 stretches Qwen3-VL's learned table"},
    {"kijai/ComfyUI-KJNodes#205", "",
     "doctor \"Apply RifleXRoPE HunuyanVideo node: I inserted it after Hunyuan and LoRA loader "
     "node but it doesn't seem to extend the video\"",
     0, "RIFLEx makes no frames"},
    {"hiyouga/LlamaFactory#9648", "",
     "doctor 'finetune mobilellm-R1-base in LLaMA-Factory with llama3 rope scaling, but the rope "
     "scaling is not used: the final model has null for rope_scaling and the max length does not "
     "change'",
     0, "scales only where cutoff_len is above"},
    {"zai-org/CogVideo#532", "",
     "doctor 'CogvideoX1.5 I2V training patch_size_t = 2, makes num_frame=49 cannot be divided by "
     "2'",
     0, "49 make 13, an odd number"},
    {"NovaSky-AI/SkyRL#1709", "", "doctor @doctor/fsdp-inv-freq.txt", 0,
     "the frequencies are a buffer that no file holds"},
    {"pytorch/torchtitan#335", "",
     "doctor 'torchtitan RoPE implementation does not match, loading weights from "
     "https://huggingface.co/meta-llama/Meta-Llama-3-8B does not work'",
     0, "torchtitan rotates neighbours"},
    {"huggingface/candle#2286", "",
     "doctor 'DINOv2 candle: interpolate_pos_encoding returns xs.clone() in the case without "
     "interpolation, should it return self.pos_embed?'",
     0, "these are added to themselves"},
    {"arcee-ai/mergekit#667", "",
     "doctor 'Qwen2.5 Math and Qwen2.5 Coder share the same architecture but have different "
     "max_position_embeddings. Would merging them with mergekit yield good results?'",
     1, "rope_theta 10000 against 1000000"},
    {"theroyallab/tabbyAPI#400", "",
     "doctor 'tabbyAPI: there is no way for the front-end to set the context length. It is set via "
     "max_seq_len in a config file, whatever Cline asks for'",
     0, "no chat request sets them"},
    {"turboderp-org/exllamav2#641", "",
     "doctor 'Qwen 2.5 in exllamav2 needs yarn to support more than 32K, exllamav2 does not "
     "support it, output is not great at 70K'",
     0, "reads YaRN of config.json from 0.2.3 on"},
    {"2U1/Qwen-VL-Series-Finetune#250", "", "doctor @doctor/qwen3vl-grids.log", 1,
     "get_rope_index runs out of rows"},
    {"huggingface/peft#2131", "",
     "doctor 'prompt tuning of PEFT: The expanded size of the tensor (37) must match the existing "
     "size (57) at non-singleton dimension 2.  Target sizes: [16, 37, 37].  Tensor sizes: [16, 1, "
     "57]'",
     1, "20 of the 57 are virtual tokens of prompt tuning"},
    {"kijai/ComfyUI-CogVideoXWrapper#206", "",
     "doctor 'ComfyUI-CogVideoXWrapper: The size of tensor a (4050) must match the size of tensor "
     "b (2700) at non-singleton dimension 2'",
     1, "3 and 2 times 1,350"},
    {"LostRuins/koboldcpp#788", "",
     "doctor mistral-7b-v0.1 'when I go over 8k koboldcpp started returning gibberish, LM Studio "
     "easily reaches 11K without the same issue'",
     1, "were trained on 8,192 tokens with a window of 4,096"},
    {"opendatalab/MinerU#4868", "", "doctor @doctor/mineru-too-large.log", 1,
     "max_tokens of the request (the client's longest answer) at most 6982"},
    {"vllm-project/vllm#33418", "", "doctor @doctor/llama-194m-2045.txt", 1,
     "takes 2,045 of 2,048 tokens, so that 3 are left"},
    {"gpustack/gpustack#950", "", "doctor @doctor/llama-box-embeddings.log", 1,
     "must be within one physical batch"},
    {"nextcloud/context_chat_backend#283", "",
     "doctor 'Nextcloud context chat with LocalAI embedding. We have tried setting a dozen "
     "different places for adjusting the physical_batch_size in various configs, in localai or "
     "even in our model yaml files, but context chat always seems to hit the same limit no matter "
     "what we do: batch size: 512'",
     0, "llama.cpp embeds a text within one physical batch"},
    {"huggingface/trl#6961", "", "doctor @doctor/layer-types-unrecognized.log", 0,
     "these are types of layers"},
    {"AnswerDotAI/ModernBERT#215", "",
     "doctor @doctor/flexbert-theta.json 'converted a ModernBERT checkpoint to HF, output logits "
     "are nan, and rotary_emb is nan in local attention layers'",
     0, "write 10000, which -1 stands for in FlexBERT"},
    {"vllm-project/vllm-ascend#12765", "",
     "doctor 'vllm-ascend: AscendMRotaryEmbedding.forward_oot hardcodes Neox-style (chunk-half) "
     "rotation for the torch_npu.npu_mrope path, producing wrong results for GPT-J style models "
     "(e.g. GLM-OCR).'",
     0, "npu_mrope rotates halves"},
    {"lmstudio-ai/mlx-engine#152", "",
     "doctor 'when i use mlx_lm.server, the context length could be pretty big, but in lm studio, "
     "the max context length is 2048, is it a bug?'",
     0, "the number is what LM Studio offers"},
    {"aaif-goose/goose#7672", "",
     "doctor 'goose 1.26.1, ollama nemotron-3-nano:latest: the models cannot access their past "
     "actions or context, it does not know what it did in the previous message'",
     0, "GOOSE_INPUT_LIMIT=32768"},
    {"infiniflow/ragflow#10283", "", "doctor @doctor/ragflow-rerank.log", 1, "8,192 → 20,673"},
    {"OpenMOSS/MOSS-TTS-Nano#28", "", "doctor @doctor/moss-tts-buffers.txt", 0,
     "the frequencies are a buffer that no file holds"},
    {"agent0ai/agent-zero#1436", "", "doctor @doctor/agent-zero-8193.txt", 1,
     "cut the text by the model's own tokenizer"},
    {"QwenLM/Qwen3-VL#1306", "", "doctor @doctor/merge-size-4.txt", 0,
     "merge_size in preprocessor_config.json as spatial_merge_size"},
    {"ggml-org/llama.cpp#25026", "", "doctor @doctor/qwen3-keep.txt", 1, "seen_after_shift"},
    {"BoltAI/BoltAI#156", "",
     "doctor 'BoltAI ignores the context length setting with ollama: set 8192, ollama logs say "
     "n_ctx "
     "= 2048'",
     0, "OpenAI-compatible /v1, by which many clients go, takes no num_ctx"},
    {"ollama/ollama#16901", "", "doctor @doctor/qwen36-shift.txt", 0,
     "keep a state in place of keys"},
    {"ollama/ollama#5862", "",
     "doctor 'ollama show mistral-nemo reports context length 1.024e+06, 1 million, but it should "
     "be "
     "128k'",
     0, "is nominal: its authors trained it for 128k tokens"},
    {"vllm-project/vllm#5342", "", "doctor @doctor/short-draft.txt", 0,
     "the draft reaches fewer tokens than its target"},
    {"hiyouga/LlamaFactory#5773", "",
     "doctor 'RuntimeError: shape mismatch: value tensor of shape [3, 1049] cannot be broadcast'",
     1, "ids were cut (cutoff_len, max_length) within a picture"},
    {"alimama-creative/FLUX-Controlnet-Inpainting#19", "", "doctor @doctor/flux-inpainting.log", 1,
     "is FLUX's of diffusers up to 0.30"},
    {"youssofal/MTPLX#297", "",
     "doctor 'Does MTPLX support context window scaling using Yarn? I am running Qwen 3.8 27B "
     "locally, which has a context window of 262K tokens, and I want to scale it up to 1M.'",
     0, "the length that is wanted over the one that was trained"},
    {"NVIDIA-NeMo/RL#1575", "", "doctor @doctor/mask-4d.log", 1,
     "takes the padding mask [batch, tokens]"},
    {"NousResearch/hermes-agent#105090", "", "doctor @doctor/hermes-65536.txt", 1,
     "it has 121,171 characters"},
    {"AIDotNet/OpenCowork#82", "", "doctor @doctor/opencowork-128000.txt", 1,
     "one token less will not do"},
    {"turboderp-org/exllamav3#145", "", "doctor @doctor/exllamav3-pages.log", 1,
     "counts pages of 256 tokens"},
    {"huggingface/trl#4358", "", "doctor @doctor/trl-20.txt", 1, "vLLM is started for their sum"},
    {"ollama/ollama#14073", "",
     "doctor 'ollama 0.15.5 with 52 GB VRAM: every model now defaults to a 262,144 context, "
     "spills to CPU and becomes unresponsive; before it was 4096'",
     0, "follows the memory of the GPUs"},
    {"unslothai/unsloth#4971", "", "doctor @doctor/unsloth-studio.log", 1, "48,128 → 8,960"},
    {"kvcache-ai/ktransformers#1375", "", "doctor @doctor/cache-lens.txt", 0,
     "holds prompt and answer together"},
    {"waybarrios/vllm-mlx#678", "",
     "doctor 'vllm-mlx with gemma-4 (50 of 60 layers are sliding window 1024): with the "
     "prefix cache on, replies continue a different users conversation, then repeat one token "
     "forever'",
     0, "is a ring, which cannot be cut back"},
    {"fla-org/flash-linear-attention#766", "",
     "doctor 'flash-linear-attention: cached decode gives different logits from the full "
     "forward for a hybrid attention model. get_seq_length() returns past_len+1 for the upper "
     "layers because _seen_tokens is incremented at layer 0, so RoPE is off by one.'",
     0, "the count of tokens is raised at the first layer"},
    {"tenstorrent/tt-metal#54516", "",
     "doctor 'inv_freq is kept in a bf16 buffer: 0.75 where the true value is 0.7498942. PCC "
     "0.997590 at 1024 tokens falls to 0.946176 at 5120 tokens'",
     0, "has 8 bits for good"},
    {"huggingface/diffusers#12348", "",
     "doctor 'diffusers WanImageToVideoPipeline with Wan2.2-TI2V-5B: height=720, width=1280 "
     "fails with a tensor size mismatch, 640x624 fails too, 1280x704 and 832x480 work. The "
     "docs say multiples of 16.'",
     0, "must be multiples of 32"},
    {"felafax/felafax#59", "",
     "doctor 'In the original llama implementation an additional scaling of frequencies is "
     "applied to process longer context (8k in llama3 and 128k in llama3.1). It seems that "
     "this repository (felafax, JAX) does not implement it when applying rope.'",
     0, "were trained with scaled frequencies at every length"},
    {"huggingface/transformers#40136", "",
     "doctor qwen2.5-vl-7b 'Qwen2.5-VL-7B-Instruct: significant accuracy regression on MMMU "
     "benchmark with transformers >=4.54.0. transformers 4.53.3: 86.67%, transformers 4.54.0: "
     "73.33% (lm-eval hf-multimodal, batch_size 8).'",
     0, "4.54 and 4.55 make"},
    {"ollama/ollama#15975", "",
     "doctor @doctor/mistral-medium-35.json 'mistral-medium-3.5:128b in ollama produces "
     "nonsense outputs; lowering the context to 50k does reduce memory per GPU but all it "
     "does is speed up the gibberish output' --engine ollama",
     0, "cancels YaRN"},
    {"hasso5703/dgx-spark-qwen38#2", "",
     "doctor 'I run qwen3.8-27b on SGLang with 262k context and Claude Code goes beyond it. "
     "Is increasing the context size to 1M possible, and what do I have to do?'",
     0, "texts become longer by a scaling that the engine must read"},
    {"bytedance/UI-TARS#153", "", "doctor @doctor/tgi-swapped.log", 1,
     "TGI counts prompt and answer together"},
    {"lmstudio-ai/lmstudio-bug-tracker#1926", "",
     "doctor @doctor/qwen36-mlx.json \"Error when loading model: KeyError: 'mrope_section'\"", 1,
     "what loads it looks at another level"},
    {"vllm-project/vllm#27505", "", "doctor qwen2.5-vl-7b @doctor/rope-type-conflict.log", 1,
     "this vLLM takes one of them alone"},
    {"ml-explore/mlx-swift-lm#443", "",
     "doctor qwen2.5-vl-7b 'mlx-swift-lm: a prompt cache with pictures that is saved to disk and "
     "loaded again gives other boxes than the session that went on, with Qwen2.5-VL'",
     0, "a file that holds keys and values alone loses the delta"},
    {"huggingface/text-generation-inference#3105", "",
     "doctor gemma-3-4b 'gemma 3 on 4 GPUs with text-generation-inference: good with 23k tokens, "
     "CUDA out of memory with 64k' --engine tgi",
     1, "By your words: it is memory that is short"},
    {"mlc-ai/web-llm#752", "",
     "doctor qwen3-8b 'web-llm: the prebuilt WASMs have context_window_size=4096, and I need 16K "
     "for documents. How do I get more?'",
     0, "WebLLM's prebuilt models run context_window_size 4,096"},
    {"Blaizzy/mlx-vlm#1526", "",
     "doctor 'mlx-vlm==0.6.4 writes garbage for Qwen3.6-35B-A3B, and works under mlx-vlm==0.6.3'",
     0, "hands decoding no rope_deltas"},
    {"vllm-project/vllm-ascend#3521", "", "doctor @doctor/ascend-arguments.log", 1,
     "was written for another vLLM"},
    {"huggingface/transformers#38007", "",
     "doctor 'transformers, Qwen2.5-VL: I pack samples and hand position_ids to flash attention, "
     "whose position_ids are expanded 3 times in dim 0: illegal memory access'",
     0, "are taken for texts packed into one row"},
    {"NVIDIA/Megatron-LM#1648", "",
     "doctor 'Megatron-LM: MTP rolls the input ids and does not roll the rotary embeddings. Does "
     "this hurt?'",
     0, "no fault"},
    {"huggingface/transformers#39048", "", "doctor @doctor/megatron-gpt2.log", 1,
     "the checkpoint has none"},
    {"janhq/jan#8764", "",
     "doctor @doctor/jan-slots.log 'Jan: I set the context size to 345000, and 165.1K are usable "
     "with 2 slots'",
     1, "a text has one slot's 172,544"},
    {"janhq/jan#8610", "",
     "doctor @doctor/jan-router.preset.ini 'Jan: Context Shift is on, and it hard-stops all the "
     "same when the chat reaches the full context: ran out of context size'",
     0, "a context shift makes room only while an answer is written"},
    {"kijai/ComfyUI-KJNodes#491", "", "doctor @doctor/kjnodes-import.log", 1,
     "was written for another version of comfy"},
    {"xorbitsai/inference#3783", "",
     "doctor bge-m3 'xinference with bge-m3: a text of more than 8192 tokens still succeeds. "
     "Should it not raise an error? Why does it not raise?'",
     0, "cuts a longer text at the model's maximum"},
    {"pie-project/pie#602", "",
     "doctor 'rope_partial rotates the first rotary_dim/2 pairs by theta^(-2i/head_dim) and pairs "
     "(i, i + head_dim/2); long contexts get worse with Qwen3.6'",
     0, "that part is taken for a head of its own"},
    {"Biohub/esm#179", "",
     "doctor 'I embed proteins with ESM C. Is there a maximum sequence length?'", 0,
     "up to 2,048 residues"},
    {"control-spiderman/ECGFM-KED#11", "", "doctor @doctor/position-ids-key.log", 0,
     "position_ids_stored"},
    {"LostRuins/koboldcpp#1535", "", "doctor @doctor/kobold-no-slot.log", 1,
     "the cache has no room for the next part of the prompt"},
    {"ggml-org/llama.cpp#13581", "",
     "doctor llama-4-scout @doctor/llama4-view.log 'llama-cli -m Scout.gguf -c 0'", 1,
     "-c 0 makes of what the model promises"},
    {"lablup/mlxcel#1324", "", "doctor @doctor/internlm3-dynamic.json @doctor/doubled-scale.py", 1,
     "multiplies every position by 2"},
    {"LostRuins/koboldcpp#1617", "",
     "doctor 'koboldcpp 1.94 ends with an error when the context window overflows with SWA and "
     "FastForwarding, and 1.93.2 does not'",
     0, "koboldcpp 1.94.2 or later"},
    {"verl-project/verl#3653", "",
     "doctor 'verl: position_ids mismatch of qwen2_vl, (4, batch_size, seq_length) is expected and "
     "(batch_size, 3, seq_length) is returned'",
     0, "text first and then time, row and column"},
    {"local-inference-lab/vllm#313", "",
     "doctor 'vLLM: image inputs of more than 2,048 tokens are truncated, as the tokenizer has "
     "max_length=2048 among its init kwargs'",
     0, "the tokenizer was saved with max_length"},
    {"rasbt/reasoning-from-scratch#42", "",
     "doctor 'every Qwen3 config says 40_960, and the card of 0.6B says 32,768; can it be scaled "
     "to "
     "131k tokens?'",
     0, "32,768 that were trained, and 8,192 for the answer"},
    {"PrimeIntellect-ai/prime-rl#2392", "",
     "doctor 'context parallelism with cp=2 and packed texts: rank 1 makes cu_seqlens=[1024, 3072] "
     "for a local length of 1024 and crashes'",
     0, "those of a rank begin at 0"},
    {"kijai/ComfyUI-WanVideoWrapper#373", "",
     "doctor 'do you go beyond 81 frames with WanVideoWrapper (Wan 2.1)?'", 0, "context windows"},
    {"NousResearch/hermes-agent#91914", "",
     "doctor 'hermes: Context length exceeded (6,000 tokens), cannot compress further. I run LM "
     "studio with Gemma 4 26B'",
     0, "an agent counts by a number of its own"},
    {"vllm-project/vllm#38735", "",
     "doctor @doctor/ernie-vl-moe.json @doctor/ernie-missing-theta.log", 1,
     "it was written for transformers 4"},
    {"tdrussell/diffusion-pipe#379", "",
     "doctor 'what is the maximum token length of a qwen-image caption, and is it truncated?'", 0,
     "up to 1,024 tokens"},
    {"scouzi1966/maclocal-api#68", "",
     "doctor 'Mistral writes garbage in concurrent batches with mlx-lm, and alone it is right'", 0,
     "until then one request at a time"},
    {"sgl-project/sglang#4048", "", "doctor deepseek-v3 @doctor/sglang-pool-limit.log", 1,
     "the cache has room for 59,868"},
    {"IQuestLab/IQuest-Coder-V1#20", "", "doctor @doctor/iquest.json --engine vllm@0.11.0", 1,
     "has no class for iquestcoder"},
    {"sgl-project/sglang#26187", "",
     "doctor @doctor/lfm2-moe-yarn.json 'lmsysorg/sglang:v0.5.12 --model-path M'", 1,
     "hands rope_scaling on and not rope_parameters"},
    {"InternLM/lmdeploy#4557", "",
     "doctor qwen3-8b 'lmdeploy serve api_server Q --rope-scaling-factor 2.0'", 1,
     "0.14 and later read it nowhere"},
    {"vllm-project/vllm#41236", "", "doctor internlm2.5-7b --engine vllm@0.8.5", 1,
     "it grows the base once"},
    {"ml-explore/mlx-lm#1606", "", "doctor internlm2.5-7b --engine mlx-lm@0.31.3", 1,
     "double every position"},
    {"ml-explore/mlx-lm#660", "", "doctor phi-3.5-mini 'mlx-lm 0.28.4'", 1,
     "long factors whatever the length"},
    {"rajveer43/VeloxQuant-MLX#148", "", "doctor llama-3.2-1b @doctor/plain-remap.py", 1,
     "this code makes the frequencies of the base alone"},
    {"vllm-project/vllm-ascend#6060", "",
     "doctor 'RopeOperation setup failed in _rope_forward_oot where rotary_dim < head_size, "
     "vllm-ascend'",
     0, "head_size on where rotary_dim is meant"},
    {"microsoft/onnxruntime-genai#1910", "",
     "doctor 'onnxruntime-genai: phi3 drops from 35 to 14 tps at token 4090'", 0,
     "makes all cached keys anew where a text crosses 4,096 tokens"},
};

// "@doctor/a.log" lies in the folder of reports; behind an engine (vllm@0.24.0) stands a version.
std::string with_paths(std::string command) {
  const std::string folder = posenc::test::data_path("reports/");
  for (std::size_t at = 0; (at = command.find('@', at)) != command.npos; ++at)
    if (const char next = (command + " ")[at + 1]; next < '0' || next > '9')
      command.replace(at, 1, folder);
  return command;
}

class Reports : public posenc::test::ArrayTest, public testing::WithParamInterface<Report> {
 protected:
  static constexpr std::int64_t heads = 2, tokens = 200;

  // [head][token][dim] normal numbers; `repeated`: the first token's in place of all.
  void make_tokens(const std::string& name, std::int64_t dim, bool repeated) const {
    posenc::cli::Array array = *posenc::cli::make_array(NpyType::f32, {heads, tokens, dim});
    const std::vector<double> numbers = posenc::random(heads * tokens * dim);
    const posenc::Tensor view = tensor(array);
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const std::int64_t from = repeated ? i / (tokens * dim) * tokens * dim + i % dim : i;
      view.set(i, numbers[static_cast<std::size_t>(from)]);
    }
    ASSERT_TRUE(posenc::cli::write_npy(path(name), array));
  }

  // [axis][token] of frames of 5 x 10 patches.
  void make_video_ids(const std::string& name) const {
    posenc::cli::Array array = *posenc::cli::make_array(NpyType::i64, {3, tokens});
    const auto ids = reinterpret_cast<std::int64_t*>(array.data.data());
    for (std::int64_t t = 0; t < tokens; ++t)
      ids[t] = t / 50, ids[tokens + t] = t / 10 % 5, ids[2 * tokens + t] = t % 10;
    ASSERT_TRUE(posenc::cli::write_npy(path(name), array));
  }

  // Cosines and sines as neighbours want them, and the partner that halves have.
  void make_mixed(const std::string& name, const std::string& from) const {
    posenc::cli::Array array = this->array(from);
    const std::vector<double> x = values(from);
    const posenc::Tensor view = tensor(array);
    constexpr std::int64_t dim = 128;
    for (std::int64_t i = 0; i < array.size(); ++i) {
      const std::int64_t channel = i % dim, token = i / dim % tokens;
      const double angle = static_cast<double>(token) *
                           std::pow(10000, -2 * std::floor(channel / 2) / static_cast<double>(dim));
      const bool low = channel < dim / 2;
      const double partner = x[static_cast<std::size_t>(low ? i + dim / 2 : i - dim / 2)];
      view.set(i, x[static_cast<std::size_t>(i)] * std::cos(angle) +
                      (low ? -partner : partner) * std::sin(angle));
    }
    ASSERT_TRUE(posenc::cli::write_npy(path(name), array));
  }

  void make_evidence(const Report& report) const {
    const std::string both = std::string(report.make) + " " + report.command;
    if (has(both, "k.npy")) make_tokens("k.npy", 128, true);
    if (has(both, "q.npy")) make_tokens("q.npy", 128, false);
    if (has(both, "wide.npy")) make_tokens("wide.npy", 512, false);
    if (has(both, "tall.npy")) make_tokens("tall.npy", 256, false);
    if (has(both, "ids.npy")) make_video_ids("ids.npy");
    if (has(both, "mixed.npy")) make_mixed("mixed.npy", "q.npy");
    if (*report.make == 0) return;
    const Outcome made = posenc(report.make);
    ASSERT_EQ(made.code, 0) << made.err;
  }
};

TEST_P(Reports, IsNamed) {
  const Report& report = GetParam();
  make_evidence(report);
  const Outcome said = posenc(with_paths(report.command));
  EXPECT_EQ(said.code, report.code) << said.out << said.err;
  // Lines are wrapped at any blank.
  const auto words = [](const std::string& text) {
    std::istringstream in(text);
    std::string all;
    for (std::string word; in >> word;) all += (all.empty() ? "" : " ") + word;
    return all;
  };
  EXPECT_TRUE(has(words(said.out), words(report.names))) << report.command << "\n" << said.out;
}

TEST_P(Reports, StandsInTheTable) {
  std::ifstream page(posenc::test::data_path("../../docs/reports.md"));
  const std::string id = GetParam().id, hash = "#";
  const std::string link =
      "github.com/" + id.substr(0, id.find(hash)) + "/issues/" + id.substr(id.find(hash) + 1) + ")";
  const std::string verb =
      std::string(GetParam().command).substr(0, std::string(GetParam().command).find(' '));
  for (std::string line; std::getline(page, line);)
    if (has(line, link)) {
      EXPECT_TRUE(has(line, "`" + verb)) << line;
      return;
    }
  ADD_FAILURE() << "docs/reports.md has no row of " << id;
}

INSTANTIATE_TEST_SUITE_P(Field, Reports, testing::ValuesIn(reports), [](const auto& test) {
  const std::string command = test.param.command;
  std::string name = test.param.id + ("_by_" + command.substr(0, command.find(' ')));
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
