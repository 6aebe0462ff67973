#!/usr/bin/env python3
"""Attention that reads the content by flash-linear-attention's own plain functions, recorded in tests/data/golden/content.json
with what went in. The functions are loaded from their files, since the package itself asks for triton, and its running sum,
which is a kernel, is torch's here.

  tests/peers/content.py > tests/data/golden/content.json      needs torch, einops and fla-core, without what it depends on
"""

import importlib.metadata
import importlib.util
import json
import pathlib
import sys
import types

import torch

HEADS, KV_HEADS, TOKENS, HEAD_DIM = 2, 1, 70, 4  # more than a chunk of 64


def running_sum(x, cu_seqlens=None, scale=1.0):
    bounds = [0, x.shape[1]] if cu_seqlens is None else cu_seqlens.tolist()
    return torch.cat([x[:, a:b].cumsum(1) for a, b in zip(bounds, bounds[1:])], 1) * scale


def stub(name, **members):
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__dict__.update(members)


def module_of(path):
    """The file's, under a name of its folder's and its own."""
    name = f"{path.parent.name}_{path.stem}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function_of(path, name):
    return getattr(module_of(path), name)


def random(*shape):
    """Numbers of few digits."""
    return torch.randn(*shape).to(torch.bfloat16).float()


def log_gates(*shape):
    return torch.nn.functional.logsigmoid(random(*shape) + 1).to(torch.bfloat16).float()


def numbers(x):
    """A tensor [batch, tokens, heads, ...] in the order [batch, heads, tokens, ...]."""
    return [float(f"{number:.9g}") for number in x.detach().transpose(1, 2).flatten().tolist()]


def main():
    torch.manual_seed(2026)
    ops = pathlib.Path(importlib.util.find_spec("fla").submodule_search_locations[0]) / "ops"
    for package in ("fla", "fla.ops", "fla.ops.utils"):
        stub(package)
    stub("fla.ops.utils.constant", RCP_LN2=1.4426950216293335)
    stub("fla.ops.utils.cumsum", chunk_global_cumsum=running_sum)
    wall = function_of(ops / "wall_attn" / "naive.py", "naive_wall_attn")
    path = function_of(ops / "path_attn" / "naive.py", "naive_path_attn")
    q, k, v = random(1, TOKENS, HEADS, HEAD_DIM), *random(2, 1, TOKENS, KV_HEADS, HEAD_DIM)
    scale = HEAD_DIM**-0.5
    channels, gates = log_gates(1, TOKENS, HEADS, HEAD_DIM), log_gates(1, TOKENS, HEADS)
    w = torch.nn.functional.normalize(random(1, TOKENS, KV_HEADS, HEAD_DIM), dim=-1).to(torch.bfloat16).float()
    beta = (2 * random(1, TOKENS, KV_HEADS).sigmoid()).to(torch.bfloat16).float()
    bounds = torch.tensor([0, 3, 20, TOKENS])
    records = [
        {"name": "wall", "out_f32": wall(q, k, v, channels, scale=scale)},
        {"name": "wall beside a forget gate", "gated": True, "out_f32": wall(q, k, v, channels, scale=scale, g_scalar=gates)},
        {"name": "wall in a window", "window": 9, "out_f32": wall(q, k, v, channels, scale=scale, window_size=9)},
        {
            "name": "wall of packed texts",
            "packed": bounds.tolist(),
            "out_f32": wall(q, k, v, channels, scale=scale, cu_seqlens=bounds),
        },
        {"name": "path", "out_f32": path(q, k, v, w, beta, torch.zeros_like(gates), scale)},
        {"name": "path beside a forget gate", "gated": True, "out_f32": path(q, k, v, w, beta, gates, scale)},
    ]
    for record in records:
        record["out_f32"] = numbers(record["out_f32"])
    given = {"q": q, "k": k, "v": v, "channel_gates": channels, "log_gates": gates, "w": w, "beta": beta}
    given = {name: numbers(x) for name, x in given.items()}
    print(
        json.dumps(
            {
                "generator": f"fla-core {importlib.metadata.version('fla-core')}, naive functions, torch {torch.__version__}",
                "notes": "tests/peers/content.py; tensors [1, heads, tokens, ...]; of path the gates' sum is scaled with the rest",
                "heads": HEADS,
                "kv_heads": KV_HEADS,
                "tokens": TOKENS,
                "head_dim": HEAD_DIM,
                "given": given,
                "records": records,
            },
            separators=(",", ":"),
        )
    )


if __name__ == "__main__":
    main()
