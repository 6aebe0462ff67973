#!/usr/bin/env python3
"""Blocks of quantized numbers, as gguf-py (ggml's own package) restores them.

  tests/peers/quantized.py > tests/data/golden/quantized.json
"""

import json
from importlib.metadata import version

import gguf
import numpy

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K"]
# Where a block's half-precision scales stand; any other bits are any numbers.
HALVES = {
    "Q4_0": [0],
    "Q4_1": [0, 2],
    "Q5_0": [0],
    "Q5_1": [0, 2],
    "Q8_0": [0],
    "Q4_K": [0, 2],
    "Q5_K": [0, 2],
    "Q6_K": [208],
}
# Not in blocks: bits of a normal number, the least ones, and both zeros.
PLAIN = {"F16": (16, [0x0001, 0x03FF, 0x0000, 0x8000]), "BF16": (16, [0x0001, 0x007F, 0x0000, 0x8000]), "F32": (32, [1, 1 << 31])}


def case(name, random):
    kind = getattr(gguf.GGMLQuantizationType, name)
    _, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (3, size), dtype=numpy.uint8)
    for at in HALVES[name]:
        scale = random.normal(0, 0.1, 3).astype(numpy.float16)
        blocks[:, at : at + 2] = scale[:, None].view(numpy.uint8)
    numbers = gguf.dequantize(blocks, kind).astype(numpy.float32).ravel()
    return {"type": name, "bytes": blocks.tobytes().hex(), "numbers_f32": [float(f"{x:.9g}") for x in numbers]}


def plain(name, random):
    width, special = PLAIN[name]
    numbers = random.normal(0, 1, 32).astype(numpy.float16 if name == "F16" else numpy.float32)
    bits = numbers.view(numpy.uint16 if name == "F16" else numpy.uint32)
    if name == "BF16":
        bits = bits >> 16
    bits = numpy.concatenate([bits, special]).astype(numpy.uint16 if width == 16 else numpy.uint32)
    found = gguf.dequantize(bits.view(numpy.uint8), getattr(gguf.GGMLQuantizationType, name))
    numbers = [float(f"{x:.9g}") for x in found.astype(numpy.float32).ravel()]
    return {"type": name, "bytes": bits.tobytes().hex(), "numbers_f32": numbers}


random = numpy.random.default_rng(7)
print(f'{{"generator": "gguf {version("gguf")} (tests/peers/quantized.py)",')
print(' "notes": "three blocks of a type, or 32 numbers and more: `bytes` as they lie in a file, `numbers_f32` as gguf-py restores them",')
print(' "records": [')
cases = [case(name, random) for name in TYPES] + [plain(name, random) for name in PLAIN]
print(",\n".join("  " + json.dumps(one) for one in cases))
print("]}")
