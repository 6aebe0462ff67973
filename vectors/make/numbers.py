"""Exact numbers: 60 digits (mpmath), and what a narrower type makes of them."""

import struct
from collections.abc import Callable, Iterable

from mpmath import mp, mpf

mp.dps = 60


def double(value) -> float:
    """Rounded once, to nearest."""
    return float(value)


def float32(value) -> float:
    return struct.unpack("f", struct.pack("f", float(value)))[0]


def float16(value) -> float:
    return struct.unpack("e", struct.pack("e", float(value)))[0]


def bfloat16(value) -> float:
    bits = struct.unpack("I", struct.pack("f", float(value)))[0]
    bits += 0x7FFF + (bits >> 16 & 1)
    return struct.unpack("f", struct.pack("I", bits & 0xFFFF0000))[0]


def flat(values) -> list:
    """Nested lists as one, row-major."""
    if not isinstance(values, (list, tuple)):
        return [values]
    return [item for part in values for item in flat(part)]


def mapped(values, function: Callable):
    if isinstance(values, (list, tuple)):
        return [mapped(part, function) for part in values]
    return function(values)


def grid(count: int, seed: int) -> Iterable[float]:
    """Inputs that every type holds exactly, bfloat16 too: sixteenths within ±4, from a small generator that any language can write."""
    state = seed
    for _ in range(count):
        state = (state * 1103515245 + 12345) % 2**31
        yield ((state >> 16) % 128 - 64) / 16


def dot(a, b):
    return sum((mpf(x) * mpf(y) for x, y in zip(a, b, strict=True)), mpf(0))
