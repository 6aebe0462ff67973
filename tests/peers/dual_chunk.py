#!/usr/bin/env python3
"""Dual chunk attention by vLLM's rotations, out of the file that ships: the logits before their scale, of random vectors, with
the query of the region that the pair is in, are recorded in tests/data/golden/dual_chunk.json.

  tests/peers/dual_chunk.py VLLM > tests/data/golden/dual_chunk.json

needs torch. VLLM is the folder vllm/model_executor/layers/rotary_embedding of the wheel (0.33.0), unpacked: the package itself
needs a GPU. The class returns three queries beside each other: for keys of the chunk, of the one before and of those before that."""

import ast
import json
import sys

import torch


def run(space, path, *names):
    """The functions and classes of these names, without the decorators that register them."""
    found = [node for node in ast.parse(open(path).read()).body if getattr(node, "name", None) in names]
    for node in found:
        node.decorator_list = []
    exec(compile(ast.Module(found, []), path, "exec"), space)


def rotations(folder):
    space = {"torch": torch, "CustomOp": torch.nn.Module}
    run(space, folder + "/common.py", "rotate_neox", "rotate_gptj")
    run(space, folder + "/dual_chunk_rope.py", "DualChunkRotaryEmbedding")
    # What its constructor does without asking for a GPU.
    torch.accelerator.current_device_index = lambda: 0
    space["torch"].device = lambda _: "cpu"
    return space["DualChunkRotaryEmbedding"]


def record(make, name, heads, kv_heads, dim, rotary, neox, chunk, local, tokens):
    rope = make(dim, rotary, tokens, 10000, neox, torch.float32, chunk, local)
    q, k = (torch.randn(tokens, h * dim).to(torch.bfloat16).float() for h in (heads, kv_heads))
    query, key = rope.forward_native(torch.arange(tokens), q.clone(), k.clone())
    queries = query.view(tokens, 5, heads, dim).transpose(1, 2)
    key = key.view(tokens, kv_heads, dim).repeat_interleave(heads // kv_heads, 1)
    length = chunk - local
    logits = torch.einsum("ihrd,jhd->hrij", queries.double(), key.double())
    at = torch.arange(tokens) // length
    region = (at[:, None] - at[None]).clamp(0, 2)
    chosen = torch.stack([logits[:, r] for r in range(3)], 0).gather(0, region.expand(1, heads, -1, -1))[0]
    return {
        "name": name,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": dim,
        "rotary_dim": rotary,
        "pairing": "halves" if neox else "interleaved",
        "chunk_size": chunk,
        "local_size": local,
        "q": q.view(tokens, heads, dim).transpose(0, 1).flatten().tolist(),
        "k": k.view(tokens, kv_heads, dim).transpose(0, 1).flatten().tolist(),
        "logits": [round(x, 6) for x in chosen.tril().flatten().tolist()],
    }


def main():
    torch.manual_seed(17463)
    make = rotations(sys.argv[1])
    records = [
        record(make, "halves", 2, 1, 8, 8, True, 7, 2, 24),
        record(make, "neighbours, part of a head", 2, 2, 8, 4, False, 10, 5, 22),
    ]
    json.dump({"records": records}, sys.stdout, separators=(",", ":"))
    print()


main()
