#!/usr/bin/env python3
"""Other projects' rotations on a CUDA device, as JSON lines: what they take, and what their cosines are off by far out.

  peers.py                    all that can be imported; a peer that cannot run is a line that says why
  peers.py --sources FOLDER   besides, kernels of FlashInfer, vLLM and TransformerEngine, and flash-attn's file of Triton, from
                              checkouts or unpacked wheels anywhere in FOLDER, compiled by NVCC (or nvcc on the path)
  peers.py --only Liger       one
  peers.py --cpu              without a device: the errors alone, of peers in PyTorch and Triton (by its interpreter) as they run on the
                              CPU, of others by their arithmetic; numpy alone suffices for that

Each runs in a process of its own. Before it is timed its numbers have to be those of the formula in float64. Times are medians of CUDA
graphs of 20 calls over memory that the device's cache does not hold (twice its size is written before each run), as posenc_cuda_device
measures posenc. Errors are of unit vectors rotated at 41 positions around 10^3, 10^5, 10^6 and 10^7: cosines in the tensors' type.
"""

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import arithmetic

# As posenc_cuda_device: 32 + 8 heads of 128 channels.
DECODE, MANY = (1, 2, 4, 8, 16, 32, 64, 128), (4096, 65_536)
CALLS, RUNS, WARM_UP = 20, 21, 2
FLUSHED = 256 << 20
# Enough to tell another convention from another rounding, at positions to 4096.
TOLERANCE = {"bfloat16": 0.1, "float32": 5e-3}

# Without torch: each peer, how it forms a cosine, and its types.
ARITHMETIC = {
    "torch eager": ("hugging_face", ("bfloat16", "float32")),
    "torch.compile": ("hugging_face", ("bfloat16", "float32")),
    "Liger": ("hugging_face", ("bfloat16", "float32")),
    "flash-attn": ("hugging_face", ("bfloat16", "float32")),
    "vLLM": ("hugging_face", ("bfloat16", "float32")),
    "SGLang": ("hugging_face", ("bfloat16",)),
    "FlashInfer": ("hugging_face", ("bfloat16",)),
    "FlashInfer, no table": ("on_the_fly", ("bfloat16", "float32")),
    "TransformerEngine": ("hugging_face", ("bfloat16", "float32")),
}


def say(**row):
    print(json.dumps(row), flush=True)


def by_arithmetic(name, reason, but=()):
    """Rows of its types but for some, and why it was not timed"""
    form, types = ARITHMETIC[name]
    for dtype in types:
        if dtype in but:
            continue
        say(
            peer=name,
            dtype=dtype,
            cos_error=arithmetic.errors(getattr(arithmetic, form), dtype),
            how="by its arithmetic" + (", at least" if form == "on_the_fly" else ""),
        )
    say(peer=name, absent=reason)


# --- on a device --------------------------------------------------------------------------------------------------


def exact(x, positions, interleaved, backwards):
    """A float64 rotation of [token, head, channel]"""
    import torch

    pair = torch.arange(0, arithmetic.HEAD_DIM, 2, dtype=torch.float64, device=x.device)
    angles = positions.double()[:, None] * arithmetic.THETA ** (-pair / arithmetic.HEAD_DIM)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None] * (-1 if backwards else 1)
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else x.double().chunk(2, -1)
    a, b = a * cos - b * sin, b * cos + a * sin
    return torch.stack((a, b), -1).flatten(-2) if interleaved else torch.cat((a, b), -1)


def wrong(peer, case):
    """How far the first call's queries and keys, and what is in the pages, are from the formula, at positions to 4096"""
    few = slice(0, 4096)
    before = [x[0][few].double() for x in (case.q, case.k)]
    after = peer.calls(case)(0)
    wanted = [exact(x, case.positions[few], case.interleaved, case.work == "transpose") for x in before]
    pairs = [(found[few].double(), want) for found, want in zip(after, wanted, strict=True)]
    if case.work == "append":
        for cache, want in zip(case.caches[0], (wanted[1], case.v[0][few].double()), strict=True):
            pairs.append((cache.flatten(0, 1)[case.slots[few]].double(), want))
    return max((found - want).abs().max().item() for found, want in pairs)


def microseconds(call, copies):
    import torch

    stream = torch.cuda.Stream()
    flush = torch.empty(FLUSHED, dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(stream):
        for i in range(3):
            call(i % copies)  # compiles, allocates
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(CALLS):
                call(i % copies)
        times = []
        for i in range(RUNS + WARM_UP):
            flush.fill_(1)
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            if i >= WARM_UP:
                times.append(1000 * begin.elapsed_time(end) / CALLS)
    return sorted(times)[RUNS // 2]


def measured_errors(peer, dtype, pairing):
    import torch

    from engines import Case

    found = {}
    for position in arithmetic.POSITIONS:
        near = arithmetic.near(position)
        case = Case("rotate", dtype, pairing, torch.from_numpy(near), heads=1, kv_heads=1)
        for x in (*case.q, *case.k):
            x.zero_()
            x[..., :: 2 if pairing == "interleaved" else 1][..., : arithmetic.HEAD_DIM // 2] = 1
        q = peer.calls(case)(0)[0][:, 0].double().cpu().numpy()
        cosines = q[:, ::2] if pairing == "interleaved" else q[:, : arithmetic.HEAD_DIM // 2]
        found[arithmetic.key(position)] = float(f"{abs(cosines - arithmetic.exact(near)).max():.3g}")
    return found


# Shapes that say most come first, where there is not time for all.
FIRST = (65_536, 1, 64, 4096)


def cases(peer):
    """(tokens, dtype, pairing, work) of all that it takes, those of `FIRST` first"""
    order = (*FIRST, *(tokens for tokens in DECODE if tokens not in FIRST))
    for tokens, dtype, pairing in itertools.product(order, peer.types, peer.pairings):
        for work in peer.works:
            if work != "transpose" or tokens in MANY:
                yield tokens, dtype, pairing, work


def measure(peer, until):
    import torch

    from engines import Case

    size = {"bfloat16": 2, "float32": 4}
    errors = {}
    for tokens, dtype, pairing, work in cases(peer):
        if time.monotonic() > until:
            say(peer=peer.name, work=work, absent=f"no time was left for {dtype}, {pairing}, {tokens} tokens")
            return
        bytes_of_call = (32 + 8 * (2 if work == "append" else 1)) * 128 * tokens * size[dtype]
        copies = min(max(FLUSHED // bytes_of_call + 1, 2), CALLS)
        case = Case(work, dtype, pairing, torch.arange(tokens), copies=copies)
        off = wrong(peer, case)
        row = {"peer": peer.name, "version": peer.version(), "work": work, "dtype": dtype, "pairing": pairing}
        row |= {"heads": 32, "kv_heads": 8, "head_dim": 128, "tokens": tokens}
        if not off <= TOLERANCE[dtype]:
            say(**row, wrong=off)
            continue
        if (dtype, pairing) not in errors:
            errors[dtype, pairing] = measured_errors(peer, dtype, pairing)
        us = round(microseconds(peer.calls(case), copies), 3)
        say(**row, us=us, cos_error=errors[dtype, pairing], how="measured")
        del case


def on_device(name, sources, seconds):
    """One peer, in this process."""
    import torch

    from engines import PEERS

    peer = next(peer for peer in PEERS if peer.name == name)(sources)
    reason = peer.missing()
    if reason is None:
        try:
            with torch.no_grad():
                return measure(peer, time.monotonic() + seconds)
        except Exception as error:  # whatever a peer raises is what is said of it
            traceback.print_exc()
            reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    by_arithmetic(name, reason) if name in ARITHMETIC else say(peer=name, absent=reason)


def on_cpu(name, sources):
    """The errors of a peer that runs without a device, in this process, in the types in which its numbers are right there."""
    import torch

    import engines

    engines.DEVICE = "cpu"
    peer = next(peer for peer in engines.PEERS if peer.name == name)(sources)
    if not peer.on_cpu or peer.missing() is not None:
        return
    with torch.no_grad():
        for dtype in peer.types:
            off = [
                wrong(peer, engines.Case(work, dtype, pairing, torch.arange(20), heads=4, kv_heads=2))
                for work in peer.works
                for pairing in peer.pairings
            ]
            if not all(one <= TOLERANCE[dtype] for one in off):
                print(f"{name} on the CPU, {dtype}: off by {off}", file=sys.stderr)
                continue
            errors = measured_errors(peer, dtype, peer.pairings[0])
            say(peer=name, version=peer.version(), dtype=dtype, cos_error=errors, how="measured on the CPU")


def without_device(options, reason):
    for name in ("posenc.torch", "posenc.triton", *ARITHMETIC):
        if options.only not in (None, name):
            continue
        command = [sys.executable, __file__, "--cpu", "--alone", "--only", name]
        command += ["--sources", options.sources] if options.sources else []
        environment = os.environ | {"TRITON_INTERPRET": "1"}
        runs = importlib.util.find_spec("torch") is not None
        rows = []
        if runs:
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=600)
            rows = [json.loads(line) for line in done.stdout.splitlines()]
        for row in rows:
            say(**row)
        if name in ARITHMETIC:
            by_arithmetic(name, reason, [row["dtype"] for row in rows])
        else:
            say(peer=name, absent=reason)


def no_device():
    """Why no peer can run here, or None"""
    try:
        import torch
    except ImportError:
        return "there is no torch"
    return None if torch.cuda.is_available() else "there is no CUDA device"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", help="a folder with other projects' sources")
    parser.add_argument("--only", help="the peer of this name")
    parser.add_argument("--limit", type=float, default=600, help="seconds, shared by the peers")
    parser.add_argument("--cpu", action="store_true", help="errors alone, by arithmetic")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)  # in this process
    options = parser.parse_args()

    reason = no_device()
    if options.cpu and options.alone:
        on_cpu(options.only, options.sources)
        return
    if options.cpu or reason:
        without_device(options, reason or "errors alone were asked for")
        return
    if options.alone:
        on_device(options.only, options.sources, options.limit)
        return
    from engines import PEERS

    names = [peer.name for peer in PEERS if options.only in (None, peer.name)]
    end = time.monotonic() + options.limit
    for index, name in enumerate(names):
        seconds = max((end - time.monotonic()) / (len(names) - index), 1)
        command = [sys.executable, __file__, "--alone", "--only", name, "--limit", str(seconds)]
        command += ["--sources", options.sources] if options.sources else []
        try:
            done = subprocess.run(command, timeout=2 * seconds + 10, cwd=Path.cwd())
            if done.returncode != 0:
                say(peer=name, absent=f"its process ended with {done.returncode}")
        except subprocess.TimeoutExpired:
            say(peer=name, absent=f"took longer than {2 * seconds + 10:.0f} seconds")


if __name__ == "__main__":
    main()
