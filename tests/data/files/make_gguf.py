"""Writes the .gguf files of this folder with the official writer: pip install gguf==0.19.0 numpy.

Each holds the keys that llama.cpp's converter writes for a real model's configuration, cut to few
layers, a vocabulary of three words, and small tensors only. Run it in this folder.
"""

import json
import math

import gguf
import numpy as np

Key = gguf.Keys


def writer(name, arch, layers, width, heads, kv_heads, context, **more):
    w = gguf.GGUFWriter(name + ".gguf", arch)
    w.add_name(name)
    w.add_context_length(context)
    w.add_embedding_length(width)
    w.add_block_count(layers)
    w.add_head_count(heads)
    if kv_heads:
        w.add_head_count_kv(kv_heads)
    if more.get("theta"):
        w.add_rope_freq_base(more["theta"])
    if more.get("head_dim"):
        w.add_key_length(more["head_dim"])
        w.add_value_length(more["head_dim"])
    if more.get("rotary_dim"):
        w.add_rope_dimension_count(more["rotary_dim"])
    w.add_file_type(gguf.LlamaFileType.ALL_F32)
    w.add_tokenizer_model("llama")
    w.add_token_list(["<s>", "a", "b"])
    w.add_token_scores([0.0, 0.0, 0.0])
    return w


def finish(w, **tensors):
    for name, values in tensors.items():
        w.add_tensor(name.replace("__", "."), np.asarray(values, dtype=np.float32))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def llama3_factors(dim, base, factor, low, high, original):
    """Divisors of the frequencies, as the converter computes them from rope_scaling."""
    factors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * base ** (i / dim)
        if wavelength < original / high:
            factors.append(1.0)
        elif wavelength > original / low:
            factors.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            factors.append(1 / ((1 - smooth) / factor + smooth))
    return factors


# Llama 3.1 8B: the scaling is a tensor of divisors, and no key says so.
w = writer("llama-3.1", "llama", 32, 4096, 32, 8, 131072, theta=500000.0, rotary_dim=128)
finish(w, rope_freqs__weight=llama3_factors(128, 500000.0, 8.0, 1.0, 4.0, 8192))

# Yarn-Llama-2-7b-64k: linear positions stretched by YaRN.
w = writer("llama-yarn", "llama", 32, 4096, 32, 32, 65536, theta=10000.0, rotary_dim=128)
w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
w.add_rope_scaling_factor(16.0)
w.add_rope_scaling_orig_ctx_len(4096)
w.add_rope_scaling_finetuned(True)
finish(w, output_norm__weight=np.ones(16))

# Phi-3.5-mini: LongRoPE's two lists are tensors, its amplitude a key.
scaling = json.load(open("../../../models/phi-3.5-mini.json"))["rope_scaling"]
short, long = scaling["short_factor"], scaling["long_factor"]
w = writer("phi-3.5", "phi3", 32, 3072, 32, 32, 131072, theta=10000.0, rotary_dim=96)
w.add_rope_scaling_orig_ctx_len(4096)
w.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(32) / math.log(4096)))
w.add_sliding_window(262144)
finish(w, rope_factors_long__weight=long, rope_factors_short__weight=short)

# Qwen2.5-VL-7B: three axes in sections, and a fourth that has none.
w = writer("qwen2.5-vl", "qwen2vl", 28, 3584, 28, 4, 128000, theta=1000000.0)
w.add_rope_dimension_sections([16, 24, 24, 0])
finish(w, output_norm__weight=np.ones(16))

# BERT: learned rows, no cache.
w = writer("bert", "bert", 12, 32, 4, 0, 64)
w.add_causal_attention(False)
finish(w, position_embd__weight=np.arange(64 * 32).reshape(64, 32) / 2048)

# BLOOM: ALiBi, and no key says so.
w = writer("bloom", "bloom", 70, 14336, 112, 112, 2048)
finish(w, output_norm__weight=np.ones(16))

# Gemma 3 4B: five sliding layers with a base of their own for each full one, which is scaled by 8.
w = writer("gemma-3", "gemma3", 34, 2560, 8, 4, 131072, theta=1000000.0, head_dim=256)
w.add_rope_freq_base_swa(10000.0)
w.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
w.add_rope_scaling_factor(8.0)
w.add_sliding_window(1024)
finish(w, output_norm__weight=np.ones(16))

# Gemma 4 E2B: full layers have wider heads, and a tensor that stills three quarters of their pairs.
w = writer("gemma-4", "gemma4", 35, 1536, 8, 1, 131072, theta=1000000.0, head_dim=512, rotary_dim=512)
w.add_key_length_swa(256)
w.add_value_length_swa(256)
w.add_rope_dimension_count_swa(256)
w.add_rope_freq_base_swa(10000.0)
w.add_sliding_window(512)
w.add_sliding_window_pattern([i % 5 != 4 for i in range(35)])
w.add_shared_kv_layers(20)
finish(w, rope_freqs__weight=[1.0] * 64 + [1e30] * 192)

# GLM-5: latent attention as DeepSeek's.
w = writer("glm-5", "glm-dsa", 78, 6144, 64, 1, 202752, theta=1000000.0, rotary_dim=64)
w.add_key_length(576)
w.add_value_length(512)
w.add_key_length_mla(256)
w.add_value_length_mla(256)
w.add_kv_lora_rank(512)
finish(w, output_norm__weight=np.ones(16))

# YaRN with keys that llama.cpp reads for other architectures alone.
w = writer("yarn-keys", "qwen2", 28, 3584, 28, 4, 131072, theta=1000000.0)
w.add_rope_scaling_type(gguf.RopeScalingType.YARN)
w.add_rope_scaling_factor(4.0)
w.add_rope_scaling_orig_ctx_len(32768)
w.add_rope_scaling_yarn_beta_fast(16.0)
w.add_rope_scaling_yarn_attn_factor(0.9)
finish(w, output_norm__weight=np.ones(16))

# Two lists that say what a layer is: no key heads in layers 0, 2 and 5, a window in all but layers 3 and 5.
w = writer("layer-lists", "lfm2", 6, 256, 4, [0, 2, 0, 2, 2, 0], 4096, theta=1000000.0, head_dim=64)
w.add_sliding_window(512)
w.add_sliding_window_pattern([True, True, True, False, True, False])
finish(w, output_norm__weight=np.ones(16))

# An architecture that nobody knows.
w = writer("unknown", "newarch", 4, 256, 4, 2, 4096, theta=50000.0, rotary_dim=32)
finish(w, output_norm__weight=np.ones(16))

# Version 2 of the format: the same bytes behind another number.
w = writer("version-2", "qwen2", 2, 256, 4, 2, 4096, theta=1000000.0)
finish(w, output_norm__weight=np.ones(16))
with open("version-2.gguf", "r+b") as file:
    file.seek(4)
    file.write((2).to_bytes(4, "little"))
