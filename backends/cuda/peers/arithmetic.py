"""How each peer forms a cosine, in its own precision, without a device: for the column of errors where it cannot run.

Library functions round their result to float here; a device's approximations (`__powf`, `__sincosf`) are off by more, so that
those errors are lower bounds.
"""

import numpy as np

HEAD_DIM, THETA = 128, 10_000.0
POSITIONS = (1_000, 100_000, 1_000_000, 10_000_000)
NEAR = 40  # positions around each that are tried
F = np.float32
# The number 2 pi in the 64 bits of x86's long double is off by 1e-19: at position 10^7 the truth is within 1e-12.
TURN = 2 * np.longdouble("3.14159265358979323846264338327950288")


def near(position):
    return np.arange(position - NEAR // 2, position + NEAR // 2 + 1)


def exact(positions):
    """[position, pair] cosines of theta^(-2i/d), in long double"""
    frequency = np.longdouble(THETA) ** (-np.arange(0, HEAD_DIM, 2).astype(np.longdouble) / HEAD_DIM)
    return np.cos(np.fmod(positions[:, None].astype(np.longdouble) * frequency, TURN))


def hugging_face(positions):
    """Float frequencies and positions, multiplied in float: transformers, and whoever takes its table"""
    frequency = F(1) / F(THETA) ** (np.arange(0, HEAD_DIM, 2).astype(F) / F(HEAD_DIM))
    return np.cos((positions.astype(F)[:, None] * frequency.astype(F)).astype(np.float64)).astype(F)


def on_the_fly(positions):
    """FlashInfer's without a table: a power by exp2 and log2 in float, then a float product"""
    power = (np.arange(0, HEAD_DIM, 2).astype(F) / F(HEAD_DIM)) * np.log2(F(1) / F(THETA))
    frequency = np.exp2(power.astype(F)).astype(F)
    return np.cos((positions.astype(F)[:, None] * frequency).astype(np.float64)).astype(F)


def rounded(numbers, dtype):
    """To the nearest number of the type, in float"""
    if dtype == "float32":
        return numbers.astype(F)
    if dtype == "float16":
        return numbers.astype(np.float16).astype(F)
    bits = numbers.astype(F).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) & np.uint32(0xFFFF0000)).view(F)


def key(position):
    return f"1e{len(str(position)) - 1}"


def errors(cosines, dtype):
    """{"1e3": largest error of a cosine, ...} of a peer whose result has the type"""
    return {key(p): float(f"{np.abs(rounded(cosines(near(p)), dtype) - exact(near(p))).max():.3g}") for p in POSITIONS}
