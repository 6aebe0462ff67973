#!/usr/bin/env python3
"""Times PaTH and Wall attention in flash-linear-attention's plain functions, by torch on one thread, beside posenc: causal,
4 heads x 64, float32. The plain functions hold every pair of tokens (Wall's, every pair and channel), so that texts are short.

  evidence/bench/peers/content.py build/release/posenc            needs torch, einops and fla-core, without what it depends on
"""

import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "tests" / "peers"))
from content import function_of, running_sum, stub

HEADS, DIM, SECONDS = 4, 64, 3
LENGTHS = {"path": (256, 1024, 4096), "wall": (256, 1024)}


def plain_functions():
    ops = pathlib.Path(importlib.util.find_spec("fla").submodule_search_locations[0]) / "ops"
    for package in ("fla", "fla.ops", "fla.ops.utils"):
        stub(package)
    stub("fla.ops.utils.constant", RCP_LN2=1.4426950216293335)
    stub("fla.ops.utils.cumsum", chunk_global_cumsum=running_sum)
    return {
        "path": function_of(ops / "path_attn" / "naive.py", "naive_path_attn"),
        "wall": function_of(ops / "wall_attn" / "naive.py", "naive_wall_attn"),
    }


def call_of(scheme, plain, length):
    q, k, v = torch.randn(3, 1, length, HEADS, DIM)
    if scheme == "wall":
        gates = -0.01 * torch.rand(1, length, HEADS, DIM)
        return lambda: plain(q, k, v, gates, scale=DIM**-0.5)
    w = torch.nn.functional.normalize(torch.randn(1, length, HEADS, DIM), dim=-1)
    beta, gates = 2 * torch.rand(1, length, HEADS), torch.zeros(1, length, HEADS)
    return lambda: plain(q, k, v, w, beta, gates, scale=DIM**-0.5)


def seconds_of(call):
    call()
    took, until = [], time.monotonic() + SECONDS
    while len(took) < 3 or time.monotonic() < until:
        start = time.process_time()
        call()
        took.append(time.process_time() - start)
    return statistics.median(took)


def main():
    torch.set_num_threads(1)
    plain = plain_functions()
    print("| scheme | tokens | posenc | plain | plain / posenc |")
    print("|---|---:|---:|---:|---:|")
    for scheme, lengths in LENGTHS.items():
        for length in lengths:
            command = [sys.argv[1], "bench", "attend", "--scheme", scheme, "--length", str(length), "--heads", str(HEADS), "--json"]
            ours = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[0]["seconds"]
            with torch.no_grad():
                theirs = seconds_of(call_of(scheme, plain[scheme], length))
            print(f"| {scheme} | {length} | {1e3 * ours:.2f} ms | {1e3 * theirs:.2f} ms | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    main()
