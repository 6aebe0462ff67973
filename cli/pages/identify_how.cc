#include "cli/pages/identify_how.h"

namespace posenc::cli {
namespace {

constexpr std::string_view transformers =
    R"(# One ordinary token 512 times, no beginning-of-text token: keys then differ by rotation alone.
import torch
from safetensors.torch import save_file
ids = torch.full((1, 512), tokenizer.encode(' the', add_special_tokens=False)[0])
cache = model(ids.to(model.device), use_cache=True).past_key_values
keys = [layer.keys[0] for layer in cache.layers]  # transformers 4: [k[0] for k, v in cache]
save_file({f'k_{i}': k.contiguous().cpu() for i, k in enumerate(keys)}, 'k.safetensors')
# posenc identify --after k.safetensors --repeated
)";

constexpr std::string_view mlx =
    R"(# One ordinary token 512 times, no beginning-of-text token: keys then differ by rotation alone.
import mlx.core as mx
from mlx_lm.models.cache import make_prompt_cache
cache = make_prompt_cache(model)
model(mx.full((1, 512), tokenizer.encode(' the', add_special_tokens=False)[0]), cache=cache)
keys = {f'k_{i}': layer.state[0][0, :, :512] for i, layer in enumerate(cache)}
mx.save_safetensors('k.safetensors', keys)
# posenc identify --after k.safetensors --repeated
)";

constexpr std::string_view llama =
    R"sh(# One token 512 times, as a list, so that no beginning-of-text token is put before it.
llama-server -m MODEL.gguf --slot-save-path . &
TOKEN=$(curl -s localhost:8080/tokenize -d '{"content": " the"}' | jq '.tokens[0]')
PROMPT=$(jq -n --argjson t $TOKEN '{prompt: [range(512) | $t], n_predict: 0, id_slot: 0}')
curl -s localhost:8080/completion -d "$PROMPT"
curl -s 'localhost:8080/slots/0?action=save' -d '{"filename": "k.bin"}'
posenc identify --after k.bin --model MODEL.gguf

# llama_state_seq_save_file writes the same file. Keys of -ctk f32 have no rounding; quantized ones tell little.
# Whether neighbours rotate can be read off text, too:
llama-eval-callback -m MODEL.gguf -p 'one two three four five six seven' > eval.txt
posenc identify --after eval.txt
)sh";

// vLLM and SGLang call a module with positions, queries and keys, in place; a hook of all modules
// sees it in any process.
constexpr std::string_view hook = R"(# sitecustomize.py, in an empty folder
import numpy as np, torch
from torch.nn.modules import module as hooks

def asked(module, args):
    rotary = type(module).__name__.endswith('RotaryEmbedding') and len(args) > 2
    return rotary and not hasattr(module, 'shown') and int(args[0].max()) >= 200

def save(name, keys, size):
    keys = keys.detach().reshape(keys.shape[0], -1, size).transpose(0, 1)
    np.save(name, keys.float().cpu().numpy())

def before(module, args):
    if asked(module, args):
        save('k.npy', args[2], module.head_size)

def after(module, args, out):
    if asked(module, args):
        np.save('ids.npy', args[0].cpu().numpy())
        save('k_rotated.npy', out[1], module.head_size)
        module.shown = True

hooks.register_module_forward_pre_hook(before)
hooks.register_module_forward_hook(after)
)";
constexpr std::string_view vllm = R"(
# Then, in that folder, and with any prompt of more than 200 tokens:
# PYTHONPATH=. vllm serve MODEL --enforce-eager
# posenc identify --before k.npy --after k_rotated.npy --positions ids.npy
)";
constexpr std::string_view sglang = R"(
# Then, in that folder, and with any prompt of more than 200 tokens:
# PYTHONPATH=. python -m sglang.launch_server --model-path MODEL --disable-cuda-graph
# posenc identify --before k.npy --after k_rotated.npy --positions ids.npy
)";

constexpr std::string_view onnxruntime =
    R"(# A decoder with a cache (input past_key_values.0.key, output present.0.key), one ordinary token 512 times.
import numpy as np, onnxruntime
session = onnxruntime.InferenceSession('model.onnx')
token = tokenizer.encode(' the', add_special_tokens=False)[0]
of_names = {'input_ids': np.full((1, 512), token), 'attention_mask': np.ones((1, 512), np.int64),
            'position_ids': np.arange(512)[None]}
types = {'tensor(float)': np.float32, 'tensor(float16)': np.float16, 'tensor(int64)': np.int64}
feed = {i.name: of_names[i.name] if i.name in of_names else
        np.zeros((1, i.shape[1], 0, i.shape[3]), types[i.type]) for i in session.get_inputs()}
np.save('k.npy', session.run(['present.0.key'], feed)[0][0].astype(np.float32))
# posenc identify --after k.npy --repeated
)";

constexpr std::string_view any =
    R"(Let the engine read one ordinary token 512 times, without a beginning-of-text token, and save the keys of
layer 0 as they enter the products, [head][seq][dim], as .npy or safetensors:

  posenc identify --after k.npy --repeated

Better still, save queries or keys of any text before and after rotation:

  posenc identify --before q.npy --after q_rotated.npy --positions 0:512

Or what the engine computes once, its cosines and sines [position][pair or channel], or the vectors that it adds:

  posenc identify --cos cos.npy --sin sin.npy
  posenc identify --table embedding.npy
)";

}  // namespace

Expected<std::string_view> how_to_dump(const std::string& engine) {
  static const std::string for_vllm = std::string(hook) + std::string(vllm),
                           for_sglang = std::string(hook) + std::string(sglang);
  const std::pair<std::string_view, std::string_view> recipes[] = {{"transformers", transformers},
                                                                   {"vllm", for_vllm},
                                                                   {"sglang", for_sglang},
                                                                   {"mlx-lm", mlx},
                                                                   {"llama.cpp", llama},
                                                                   {"onnxruntime", onnxruntime},
                                                                   {"any", any}};
  std::string known;
  for (const auto& [name, text] : recipes) {
    if (engine == name) return text;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return fail("--how", "an engine whose words are known", engine, "one of: " + known);
}

}  // namespace posenc::cli
