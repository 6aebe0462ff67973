"""The lab's trainer beside PyTorch: the same decoder, weights, texts and AdamW in both, one thread each.

    python evidence/lab/peers/torch_train.py build/release/posenc [--sizes 0.8,2.7,6.3] [--lengths 128,256,512,1024] [--no-compile]

Prints losses of both and tokens a processor second of each: posenc's from two runs of `posenc lab run`, a long one and
a short one, so that start and tests fall out. Processor time, since other work on the machine takes none of it.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import tempfile
import time

import numpy as np
import torch
from torch.nn.functional import cross_entropy, rms_norm, scaled_dot_product_attention

SIZES = {"0.8": (128, 4, 4), "2.7": (192, 6, 6), "6.3": (256, 8, 4)}  # million: width, layers, heads
TOKENS = 2048  # a step
SYMBOLS, EQUALS, STOP = 10, 10, 11
MASK = (1 << 64) - 1


class Random:
    """std::mt19937_64 and what evidence/lab/train/parameters.cc makes of it."""

    def __init__(self, seed):
        state = [seed & MASK]
        for i in range(1, 312):
            state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & MASK)
        self.state = np.array(state, np.uint64)
        self.ready = np.empty(0)

    def block(self):
        old, new = self.state, np.empty(312, np.uint64)

        def twisted(a, b):
            joined = (a & np.uint64(0xFFFFFFFF80000000)) | (b & np.uint64(0x7FFFFFFF))
            return (joined >> np.uint64(1)) ^ ((joined & np.uint64(1)) * np.uint64(0xB5026F5AA96619E9))

        new[:156] = old[156:] ^ twisted(old[:156], old[1:157])
        new[156:311] = new[:155] ^ twisted(old[156:311], old[157:])
        new[311:] = new[155:156] ^ twisted(old[311:], new[:1])
        self.state = new
        x = new ^ ((new >> np.uint64(29)) & np.uint64(0x5555555555555555))
        x ^= (x << np.uint64(17)) & np.uint64(0x71D67FFFEDA60000)
        x ^= (x << np.uint64(37)) & np.uint64(0xFFF7EEE000000000)
        x ^= x >> np.uint64(43)
        return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def uniform(self, count):
        blocks = [self.ready]
        while sum(map(len, blocks)) < count:
            blocks.append(self.block())
        drawn = np.concatenate(blocks)
        self.ready = drawn[count:]
        return drawn[:count]

    def below(self, end):
        return int(self.uniform(1)[0] * end)

    def normal(self, count):
        drawn = self.uniform(2 * count)
        return np.sqrt(-2 * np.log1p(-drawn[::2])) * np.cos(2 * np.pi * drawn[1::2])


def parameter(seed, name, shape, deviation):
    mark = 0xCBF29CE484222325 ^ seed
    for byte in name.encode():
        mark = ((mark ^ byte) * 0x100000001B3) & MASK
    values = deviation * Random(mark).normal(math.prod(shape)) if deviation else np.ones(shape)
    return torch.nn.Parameter(torch.tensor(values, dtype=torch.float32).reshape(shape))


class Decoder(torch.nn.Module):
    """evidence/lab/train/decoder.cc with RoPE."""

    def __init__(self, cell):
        super().__init__()
        width, hidden, self.layers, self.heads = (cell[k] for k in ("width", "hidden", "layers", "heads"))
        fan, depth = width**-0.5, (2 * self.layers) ** -0.5
        shapes = {"embedding": ((cell["vocabulary"], width), fan), "last_norm": ((width,), 0)}
        for i in range(self.layers):
            shapes |= {
                f"layer{i}.norm1": ((width,), 0),
                f"layer{i}.qkv": ((3 * width, width), fan),
                f"layer{i}.out": ((width, width), fan * depth),
                f"layer{i}.norm2": ((width,), 0),
                f"layer{i}.up": ((hidden, width), fan),
                f"layer{i}.down": ((width, hidden), depth * hidden**-0.5),
            }
        self.weights = torch.nn.ParameterDict(
            {name.replace(".", "_"): parameter(cell["seed"], name, *how) for name, how in shapes.items()}
        )
        head_dim = width // self.heads
        angles = torch.outer(
            torch.arange(cell["length"], dtype=torch.float64),
            10000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim),
        )
        self.register_buffer("cos", angles.cos().float().repeat(1, 2))
        self.register_buffer("sin", angles.sin().float().repeat(1, 2))

    def rotated(self, x):
        low, high = x.chunk(2, -1)
        return x * self.cos + torch.cat((-high, low), -1) * self.sin

    def forward(self, tokens, targets):
        w = self.weights
        x = w["embedding"][tokens]
        texts, length, width = x.shape
        for i in range(self.layers):
            own = {name: w[f"layer{i}_{name}"] for name in ("norm1", "qkv", "out", "norm2", "up", "down")}
            qkv = rms_norm(x, (width,), own["norm1"], 1e-5) @ own["qkv"].T
            q, k, v = qkv.view(texts, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            seen = scaled_dot_product_attention(self.rotated(q), self.rotated(k), v, is_causal=True)
            x = x + seen.transpose(1, 2).reshape(texts, length, width) @ own["out"].T
            raised = rms_norm(x, (width,), own["norm2"], 1e-5) @ own["up"].T
            x = x + raised.relu().square() @ own["down"].T
        logits = rms_norm(x, (width,), w["last_norm"], 1e-5) @ w["embedding"].T
        return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def copying(random, cell):
    """task_texts() of evidence/lab/train/data.cc, for copy."""
    tokens, targets = [], []
    for _ in range(cell["texts"]):
        size = cell["least"] + random.below(cell["most"] - cell["least"] + 1)
        symbols = [int(u * SYMBOLS) for u in random.uniform(size)]
        text = symbols + [EQUALS] + symbols
        text += [STOP] * (cell["length"] + 1 - len(text))
        tokens.append(text[:-1])
        targets.append([text[i + 1] if size <= i <= 2 * size else -1 for i in range(cell["length"])])
    return torch.tensor(tokens), torch.tensor(targets)


def torch_run(cell, compiled, warm=3):
    """Losses of all steps and tokens a processor second of those after `warm`."""
    model, random = Decoder(cell), Random(cell["seed"])
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    adam = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}], betas=(0.9, 0.95)
    )
    run = torch.compile(model) if compiled else model
    losses, begin = [], 0.0
    for i in range(cell["steps"]):
        if i == warm:
            begin = time.process_time()
        at = (i + 1) / cell["steps"]
        for group in adam.param_groups:
            group["lr"] = cell["rate"] * min(20 * at, 1) * (0.55 + 0.45 * math.cos(math.pi * at))
        loss = run(*copying(random, cell))
        adam.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        losses.append(loss.item())
    return losses, (cell["steps"] - warm) * TOKENS / (time.process_time() - begin)


def posenc_run(posenc, cell):
    """Its result and the processor seconds that it took."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "out.json")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [posenc, "lab", "run", "--cell", "-", "--out", path]
        subprocess.run(command, input=json.dumps(cell), text=True, check=True, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        with open(path) as file:
            result = json.load(file)
    return result, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("posenc")
    flags.add_argument("--sizes", default=",".join(SIZES))
    flags.add_argument("--lengths", default="128,256,512,1024")
    flags.add_argument("--steps", type=int, default=20)
    flags.add_argument("--no-compile", action="store_true")
    asked = flags.parse_args()
    torch.set_num_threads(1)
    kinds = [False] if asked.no_compile else [False, True]
    print("| million | T | posenc | eager | compiled | posenc / best | losses apart |\n|---|---|---|---|---|---|---|")
    for size in asked.sizes.split(","):
        for length in map(int, asked.lengths.split(",")):
            width, layers, heads = SIZES[size]
            cell = json.loads(
                subprocess.run(
                    [asked.posenc, "lab", "cells"], capture_output=True, text=True, check=True
                ).stdout.splitlines()[0]
            )
            cell |= {"arm": "rope", "scheme": "rope", "task": "copy", "vocabulary": 13, "width": width}
            cell |= {"layers": layers, "heads": heads, "hidden": 4 * width, "length": length, "tests": [1]}
            cell |= {"texts": TOKENS // length, "most": length // 2 - 1, "steps": asked.steps, "afterwards": []}
            long, spent = posenc_run(asked.posenc, cell)
            _, start = posenc_run(asked.posenc, cell | {"steps": 2})
            rates = [(cell["steps"] - 2) * TOKENS / (spent - start)]
            said = [m["value"] for m in long["measured"] if m["metric"] == "training"]
            apart = 0.0
            for compiled in kinds:
                losses, rate = torch_run(cell, compiled)
                rates.append(rate)
                means = np.mean(np.reshape(losses, (10, -1)), 1)
                apart = max(apart, float(np.max(np.abs(means - said))))
            numbers = " | ".join(f"{rate:,.0f}" for rate in rates) + (" | –" if asked.no_compile else "")
            print(f"| {size} | {length} | {numbers} | {rates[0] / max(rates[1:]):.2f} | {apart:.6f} |", flush=True)


if __name__ == "__main__":
    main()
