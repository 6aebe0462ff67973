#!/usr/bin/env python3
"""FoPE by SGLang's class and by vLLM's, each out of the file that ships, on random vectors and coefficients; what they make of
queries and keys is recorded in tests/data/golden/fope.json.

  tests/peers/fope.py SGLANG VLLM > tests/data/golden/fope.json

needs torch. SGLANG and VLLM are the folders sglang/srt/layers/rotary_embedding and
vllm/model_executor/layers/rotary_embedding of the wheels (0.5.23 and 0.33.0), unpacked: the packages themselves need a GPU."""

import ast
import json
import sys
import typing

import torch
from torch import nn

TOKENS = 6


def run(space, path, *names):
    """The functions and classes of these names, without the decorators that register them."""
    found = [node for node in ast.parse(open(path).read()).body if getattr(node, "name", None) in names]
    for node in found:
        node.decorator_list = []
    exec(compile(ast.Module(found, []), path, "exec"), space)


def sglang(folder):
    space = {"torch": torch, "nn": nn, "F": nn.functional, **{n: getattr(typing, n) for n in ("Optional", "Tuple", "Union")}}
    run(space, folder + "/utils.py", "rotate_half", "apply_rotary_pos_emb_native", "apply_rotary_pos_emb_native_eager")
    run(space, folder + "/rope_variant.py", "FourierRotaryEmbedding")
    return space["FourierRotaryEmbedding"]


def vllm(folder):
    class RotaryEmbedding(nn.Module):
        def __init__(self, init_cache, **sizes):
            super().__init__()
            self.__dict__.update(sizes)

    space = {"torch": torch, "nn": nn, "F": nn.functional, "Parameter": nn.Parameter, "RotaryEmbedding": RotaryEmbedding}
    run(space, folder + "/common.py", "rotate_neox")
    run(space, folder + "/fope.py", "FourierRotaryEmbedding")
    return space["FourierRotaryEmbedding"]


def few_digits(*shape):
    return torch.randn(*shape).to(torch.bfloat16).float()


def record(name, make, call, heads, kv_heads, dim, kept, first, length):
    sizes = {"head_size": dim, "rotary_dim": dim, "max_position_embeddings": length, "base": 10000, "is_neox_style": True}
    torch.set_default_dtype(torch.float32)
    rope = make(dtype=torch.float32, fope_sep_head=True, fope_init_factor=0.5, num_inv_freq=kept, **sizes)
    inputs = rope.inv_freq.shape[-1]
    coefficients = [(torch.eye(inputs) + 0.3 * torch.randn(kv_heads, inputs, inputs)).to(torch.bfloat16).float() for _ in range(2)]
    with torch.no_grad():
        rope.cos_coef.copy_(coefficients[0])
        rope.sin_coef.copy_(coefficients[1])
    q, k = few_digits(TOKENS, heads * dim), few_digits(TOKENS, kv_heads * dim)
    out = call(rope, torch.arange(first, first + TOKENS), q.clone(), k.clone())
    numbers = {"cos_coef": coefficients[0], "sin_coef": coefficients[1], "q": q, "k": k, "q_out": out[0], "k_out": out[1]}
    return {
        "name": name,
        "first": first,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": dim,
        "length": length,
        "kept": kept,
        **{key: value.detach().flatten().tolist() for key, value in numbers.items()},
    }


def main():
    torch.manual_seed(17739)
    of_sglang, of_vllm = sglang(sys.argv[1]), vllm(sys.argv[2])

    def make_sglang(kv_heads):
        return lambda **sizes: of_sglang(num_kv_heads=kv_heads, device="cpu", **sizes)

    def make_vllm(kv_heads):
        return lambda **sizes: of_vllm(num_key_value_heads=kv_heads, init_cache=False, **sizes)

    def forward(rope, *given):
        return rope(*given)

    def native(rope, *given):
        return rope.forward_native(*given)

    records = [
        record("sglang, frequencies above a turn", make_sglang(2), forward, 4, 2, 16, None, 3, 64),
        record("sglang, five frequencies", make_sglang(1), forward, 3, 1, 16, 5, 40, 64),
        record("vllm, frequencies above a turn", make_vllm(2), native, 6, 2, 12, None, 0, 200),
        record("vllm, all frequencies", make_vllm(2), native, 2, 2, 8, 4, 90, 100),
    ]
    json.dump({"records": records}, sys.stdout, separators=(",", ":"))
    print()


main()
