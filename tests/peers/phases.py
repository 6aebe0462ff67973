#!/usr/bin/env python3
"""Rotations with a phase: PoPE by x-transformers and by PoPE-pytorch, RoPE++ by its paper's own code, each on random
vectors; the logits before their scale are recorded in tests/data/golden/phases.json.

  tests/peers/phases.py modeling_llama_rope_pp.py > tests/data/golden/phases.json

needs torch, x-transformers and PoPE-pytorch, and of OpenMOSS/rope_pp the file rope_pp/modeling_llama_rope_pp.py, of which
two functions run."""

import ast
import json
import sys
import types

import torch
from PoPE_pytorch import PoPE
from x_transformers.x_transformers import PolarEmbedding, apply_polar_pos_emb

TOKENS = 5


def vectors(heads, dim):
    """Numbers of few digits, [1, heads, tokens, dim]."""
    return torch.randn(1, heads, TOKENS, dim).to(torch.bfloat16).double()


def record(name, first, q, k, phases, q_out, k_out, **rest):
    """`phases` as the peer has them, before it clamps."""
    k_out = k_out.repeat_interleave(q_out.shape[1] // k_out.shape[1], 1)
    return {
        "name": name,
        "first": first,
        "heads": q.shape[1],
        "kv_heads": k.shape[1],
        "head_dim": q.shape[-1],
        "q": q.flatten().tolist(),
        "k": k.flatten().tolist(),
        "phases": phases.flatten().tolist(),
        "logits": (q_out.double() @ k_out.double().transpose(-1, -2)).flatten().tolist(),
        **rest,
    }


def x_transformers(heads, dim, first):
    embed = PolarEmbedding(dim, heads)
    with torch.no_grad():
        embed.learned_bias.uniform_(-8, 1)
    embed.inv_freq = embed.inv_freq.double()
    q, k = vectors(heads, dim), vectors(heads, dim)
    freqs, bias = embed(torch.arange(first, first + TOKENS))
    out = [apply_polar_pos_emb(x, angle) for x, angle in ((q, freqs), (k, freqs + bias))]
    return record(f"x-transformers {dim}", first, q, k, embed.learned_bias.detach(), *(x.detach() for x in out))


def pope_pytorch(heads, dim, rotated, first):
    pope = PoPE(rotated, heads=heads, theta=500)
    with torch.no_grad():
        pope.bias.uniform_(-8, 1)
    pope.inv_freqs = pope.inv_freqs.double()
    q, k = vectors(heads, dim), vectors(heads, dim)
    out = pope.apply_pope_to_qk(pope(torch.arange(first, first + TOKENS).double()), q, k)
    return record(
        f"PoPE-pytorch {rotated} of {dim}", first, q, k, pope.bias.detach(), *(x.detach() for x in out), theta=500, rotary_dim=rotated
    )


def rope_pp_rotation(path):
    """The two functions of the file that rotate."""
    module = ast.parse(open(path).read())
    wanted = ("rotate_half", "apply_rotary_pos_emb")
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef) and node.name in wanted]
    space = {"torch": torch}
    exec(compile(ast.Module(functions, []), path, "exec"), space)
    return space["apply_rotary_pos_emb"]


def rope_pp(rotation, mode, imaginary, heads, kv_heads, dim):
    config = types.SimpleNamespace(rope_config={"imag": True, "imag_mode": mode})
    q, k = vectors(heads, dim), vectors(kv_heads, dim)
    angle = torch.outer(torch.arange(TOKENS).double(), 10000 ** (-torch.arange(0, dim, 2).double() / dim))
    angle = torch.cat((angle, angle), -1)[None]
    out = rotation(types.SimpleNamespace(config=config), q.clone(), k.clone(), angle.cos(), angle.sin())
    if out[0].shape[1] > heads:  # each query makes two heads beside each other
        q = q.repeat_interleave(2, 1)
    return record("rope_pp " + mode, 0, q, k, torch.zeros(0), *out, imaginary=imaginary)


def main():
    torch.manual_seed(10534)
    rotation = rope_pp_rotation(sys.argv[1])
    records = [
        x_transformers(2, 6, 0),
        x_transformers(3, 5, 1000),
        pope_pytorch(2, 8, 8, 7),
        pope_pytorch(2, 8, 5, 100),
        rope_pp(rotation, "imagh", "second_half", 4, 2, 8),
        rope_pp(rotation, "imagx", "alternating", 4, 2, 8),
        rope_pp(rotation, "imago", "all", 2, 2, 8),
        rope_pp(rotation, "imag2", "alternating", 2, 1, 8),
    ]
    json.dump({"records": records}, sys.stdout, separators=(",", ":"))
    print()


main()
