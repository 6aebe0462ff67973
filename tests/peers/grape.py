#!/usr/bin/env python3
"""GRAPE by its authors' own modules on random weights, recorded in tests/data/golden/grape.json: GRAPE-AP's attention, and what
GRAPE-M's frequencies of each head make of queries and keys.

  tests/peers/grape.py CHECKOUT > tests/data/golden/grape.json      needs torch

CHECKOUT is that of github.com/model-architectures/GRAPE. Its mask is infinite where nothing is seen, and its attention is told to be
causal besides, which PyTorch refuses by now: the second is dropped. Its cosines are rounded to bfloat16, so p of the keys is recorded as it came out.
"""

import json
import pathlib
import sys
import types

import torch
import torch.nn.functional as F

from content import module_of, random

HEADS, TOKENS, HEAD_DIM, P_DIM = 3, 70, 4, 8  # more than a block of 64 keys


def listed(x):
    return [float(f"{number:.9g}") for number in x.detach().flatten().tolist()]


def path_integral(module):
    width = HEADS * HEAD_DIM
    config = types.SimpleNamespace(
        n_head=HEADS,
        n_embd=width,
        n_layer=1,
        head_dim=HEAD_DIM,
        p_head_dim=P_DIM,
        using_groupnorm=False,
        use_qk_rmsnorm=False,
        use_fp32_rmsnorm=True,
    )
    attention = module.CausalSelfAttention(config)
    for name in ("c_q", "c_k", "c_v", "c_p"):
        weight = getattr(attention, name).weight
        weight.data = 0.5 * random(*weight.shape)
    attention.c_proj = torch.nn.Identity()
    seen = {}
    rotated, attend = module.apply_rotary_emb, F.scaled_dot_product_attention

    def rotate(x, cos, sin):
        seen["normalized"], seen["p_keys"] = x, rotated(x, cos, sin)
        return seen["p_keys"]

    def attend_with_mask(q, k, v, attn_mask, is_causal):
        seen["q"], seen["k"], seen["v"] = q, k, v
        return attend(q, k, v, attn_mask=attn_mask)

    module.apply_rotary_emb = rotate
    module.F.scaled_dot_product_attention = attend_with_mask
    x = random(1, TOKENS, width)
    out = attention(x).view(1, TOKENS, HEADS, HEAD_DIM)
    F.scaled_dot_product_attention = attend
    by_head = {name: seen[name].transpose(1, 2) for name in ("normalized", "p_keys")}
    p = attention.c_p(x).view(1, TOKENS, HEADS, P_DIM).transpose(1, 2)
    return {
        "name": "grape_ap",
        "p_dim": P_DIM,
        **{name: listed(seen[name]) for name in "qkv"},
        "p": listed(p),
        "p_keys": listed(by_head["p_keys"]),
        "out_f32": listed(out.transpose(1, 2)),
    }


def multiplicative(module):
    rotary = module.MSGRAPECommuting(HEADS, HEAD_DIM, share_across_heads=False, cache_dtype=torch.float32)
    rotary.log_freq.data = random(*rotary.log_freq.shape)
    q, k = random(2, 1, 9, HEADS, HEAD_DIM)
    rotated = rotary(q, k)
    return {
        "name": "grape_m of heads",
        "frequencies": listed(rotary.freq),
        "q": listed(q.transpose(1, 2)),
        "k": listed(k.transpose(1, 2)),
        "q_f32": listed(rotated[0].transpose(1, 2)),
        "k_f32": listed(rotated[1].transpose(1, 2)),
    }


def main():
    torch.manual_seed(2026)
    model = pathlib.Path(sys.argv[1]) / "model"
    print(
        json.dumps(
            {
                "generator": "GRAPE 135ee30, torch " + torch.__version__,
                "notes": "tests/peers/grape.py; tensors [1, heads, tokens, ...]",
                "heads": HEADS,
                "head_dim": HEAD_DIM,
                "records": [
                    path_integral(module_of(model / "llama-mha-grape-a-pi.py")),
                    multiplicative(module_of(model / "llama-mha-grape-m-nonctx.py")),
                ],
            },
            separators=(",", ":"),
        )
    )


if __name__ == "__main__":
    main()
