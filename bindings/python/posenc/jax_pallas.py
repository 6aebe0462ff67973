"""The rotation of posenc.jax as a Pallas kernel, for TPUs and for GPUs without posenc-cuda; on a CPU it is interpreted.

Angles are turns in fixed point, and cosines polynomials in integers, all in words of 32 bits as TPUs have no wider ones: the same bits
as posenc's CUDA kernels (docs/cuda.md). A program takes some tokens of some heads, which share cosines.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl

from ._posenc import Plan
from .errors import Error
from .jax import WHERE

TYPES = ("float32", "float16", "bfloat16")

# --- integers ---------------------------------------------------------------------------------------------------------


def _word(number: int) -> Any:
    return np.uint32(number)


def _high(a, b):
    """The upper word of a product, by halves of words."""
    a0, a1, b0, b1 = a & _word(0xFFFF), a >> _word(16), b & _word(0xFFFF), b >> _word(16)
    middle = a1 * b0 + (a0 * b0 >> _word(16))
    other = a0 * b1 + (middle & _word(0xFFFF))
    return a1 * b1 + (middle >> _word(16)) + (other >> _word(16))


def _sum(a, b):
    """a + b of (high, low)."""
    low = a[1] + b[1]
    return a[0] + b[0] + _flag(low < a[1]), low


def _flag(truth):
    return jnp.where(truth, _word(1), _word(0))


def _difference(a, b):
    return a[0] - b[0] - _flag(a[1] < b[1]), a[1] - b[1]


def phase_of(position, turns):
    """position · turns modulo 1, in units of 2^-64 turns: (high, low). position: a word, signed, or (high, low) of a number of 64 bits;
    turns: four words, the highest first."""
    t3, t2, t1, t0 = turns
    wide = isinstance(position, tuple)
    p1, p = position if wide else (None, position)
    behind = (p1 if wide else p) >> _word(31) != _word(0)
    # Bits 32 and on of p · turns, whose lowest word only carries: a number of 96 bits (high, low, below).
    below = p * t1
    rest = below + _high(p, t0)
    phase = _sum((p * t3 + _high(p, t2), p * t2), (jnp.zeros_like(p * t3), _high(p, t1) + _flag(rest < below)))
    if not wide:
        # p is 2^32 too large where it is negative.
        return _difference(phase, (jnp.where(behind, t2, _word(0)), jnp.where(behind, t1, _word(0))))
    carried = rest + p1 * t0
    phase = _sum(phase, (p1 * t2 + _high(p1, t1), p1 * t1))
    phase = _sum(phase, (jnp.zeros_like(carried), _high(p1, t0)))
    phase = _sum(phase, (jnp.zeros_like(carried), _flag(carried < rest)))
    return _difference(phase, (jnp.where(behind, t1, _word(0)), jnp.where(behind, t0, _word(0))))


def _float(word):
    """The nearest float of a word, of which TPUs convert signed ones alone: only the sum is rounded."""
    halves = (word >> _word(16)).astype(jnp.int32), (word & _word(0xFFFF)).astype(jnp.int32)
    return halves[0].astype(jnp.float32) * np.float32(65536) + halves[1].astype(jnp.float32)


def cosines(phase):
    """The cosine and sine of a phase in float32: 1 - z C(z) and u S(z) in fixed point, where u is twice the distance from the next
    quarter of a turn and z = u²."""
    high, low = phase
    quarter = high + _word(1 << 29) >> _word(30)
    rest = high - (quarter << _word(30))
    behind = rest >> _word(31) != _word(0)
    rest, low = jnp.where(behind, ~rest, rest), jnp.where(behind, ~low, low)
    u = rest << _word(3) | low >> _word(29)
    z = _high(u, u)
    c = _word(1399910) - _high(_word(15167), z)
    c = _word(68093819) - _high(c, z)
    c = _word(1324675872) - _high(c, z)
    c = _word(0x80000000) - (_high(c, z) >> _word(1))
    s = _word(157073) - _high(_word(1325), z)
    s = _word(10696154) - _high(s, z)
    s = _word(346799333) - _high(s, z)
    s = _high(_word(3373259426) - _high(s, z), u)
    near, far = _float(c) * np.float32(2**-31), _float(s) * np.float32(2**-32)
    far = jnp.where(behind, -far, far)
    exchanged = quarter & _word(1) != _word(0)
    cosine, sine = jnp.where(exchanged, far, near), jnp.where(exchanged, near, far)
    cosine = jnp.where(quarter + _word(1) & _word(2) != _word(0), -cosine, cosine)
    return cosine, jnp.where(quarter & _word(2) != _word(0), -sine, sine)


# --- the kernel -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Shape:
    """What a kernel knows of its plans and of a tensor [batch, head, seq, head_dim], or [batch, seq, head, head_dim]."""

    interleaved: bool
    first_dim: int
    block_pairs: int
    rotary_dim: int
    own_frequencies: bool  # each head has
    axes: int
    gains: tuple[float, ...]  # of each plan
    wide: bool  # positions have two words
    transposed: bool
    heads_first: bool
    heads: int
    tokens: int
    head_dim: int
    at_once: tuple[int, int, int]  # tokens, heads and channels of a program
    gathers: bool  # loads the other channel of each pair, as GPUs do; else moves channels within the program


def _lanes(shape: _Shape, of: tuple[int, ...]):
    """Of each channel: whether it rotates, whether it is the second of its pair, and how far on the other one is."""
    channel = lax.broadcasted_iota(jnp.int32, of, len(of) - 1) - shape.first_dim
    rotates = (channel >= 0) & (channel < shape.rotary_dim)
    step = 1 if shape.interleaved else shape.block_pairs
    second = lax.rem(jnp.where(rotates, channel, 0), jnp.int32(2 * step)) >= step
    return rotates, second, step


def _kernel(shape: _Shape, turns, words, plan_ids, x, out):
    tokens, heads, channels = shape.at_once

    def of_tokens(numbers):  # [tokens, 1] as the cosines are
        return _beside_heads(shape, numbers) if shape.own_frequencies else numbers

    def of_frequencies(plan, axis, word):  # [head or 1, channel]
        numbers = turns[plan, :, axis, word, :]
        if shape.own_frequencies:
            return numbers[:, None, :] if shape.heads_first else numbers[None, :, :]
        return numbers

    chosen = of_tokens(plan_ids[...]) if plan_ids is not None else None
    phase: Any = None
    for axis in range(shape.axes):
        held = [of_tokens(words[axis, word, :, :]) for word in range(2 if shape.wide else 1)]
        numbers = [of_frequencies(0, axis, word) for word in range(4)]
        for plan in range(1, len(shape.gains)):
            numbers = [
                jnp.where(chosen == plan, of_frequencies(plan, axis, word), each) for word, each in enumerate(numbers)
            ]
        one = phase_of(tuple(held) if shape.wide else held[0], numbers)
        phase = one if phase is None else _sum(phase, one)
    if shape.transposed:
        phase = _difference(tuple(map(jnp.zeros_like, phase)), phase)
    cosine, sine = cosines(phase)
    if any(gain != 1 for gain in shape.gains):
        gain = np.float32(shape.gains[0])
        for plan, each in enumerate(shape.gains[1:], 1):
            gain = jnp.where(chosen == plan, np.float32(each), gain)
        cosine, sine = cosine * gain, sine * gain
    if not shape.own_frequencies:
        cosine, sine = _beside_heads(shape, cosine), _beside_heads(shape, sine)
    rotates, second, step = _lanes(shape, (1, 1, channels))
    sine = jnp.where(second, sine, -sine)

    if shape.gathers:
        from jax.experimental.pallas import triton

        block = (heads, tokens, channels) if shape.heads_first else (tokens, heads, channels)
        rows = lax.broadcasted_iota(jnp.int32, block, 0), lax.broadcasted_iota(jnp.int32, block, 1)
        head, token = rows if shape.heads_first else rows[::-1]
        channel = lax.broadcasted_iota(jnp.int32, block, 2)
        here = (channel < shape.head_dim) & (token < shape.tokens - pl.program_id(1) * tokens)
        here &= head < shape.heads - pl.program_id(2) * heads
        rotated, after, _ = _lanes(shape, block)
        other = channel + jnp.where(rotated, jnp.where(after, -step, step), 0)
        given = triton.load(x.at[...], mask=here, other=0)
        partner = triton.load(x.at[rows[0], rows[1], other], mask=here, other=0).astype(jnp.float32)
    else:
        given = x[...]
        wide = given.astype(jnp.float32)
        partner = jnp.where(second, jnp.roll(wide, step, 2), jnp.roll(wide, -step, 2))
    made = jnp.where(rotates, given.astype(jnp.float32) * cosine + partner * sine, given.astype(jnp.float32))
    if shape.gathers:
        triton.store(out.at[...], made.astype(out.dtype), mask=here)
    else:
        out[...] = made.astype(out.dtype)


def _beside_heads(shape: _Shape, numbers):
    return numbers[None, :, :] if shape.heads_first else numbers[:, None, :]


def _power_of_2(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _at_once(heads: int, tokens: int, head_dim: int, gathers: bool) -> tuple[int, int, int]:
    if gathers:  # Triton's blocks are powers of 2, here of 4,096 numbers.
        channels = _power_of_2(head_dim)
        together = min(_power_of_2(heads), 8)
        return min(_power_of_2(tokens), max(4096 // (together * channels), 1)), together, channels
    # A tile of a TPU has 8 by 128 words, and blocks are whole tiles, or reach to the ends; here of 1 MB.
    together = heads if heads <= 64 else 32
    return min(tokens, max((1 << 18) // (together * head_dim) // 32 * 32, 32)), together, head_dim


# --- what is called ---------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def _turns(plans: tuple[Plan, ...], channels: int) -> np.ndarray:
    """[plan, head, axis, word, channel]: the turns of the pair that a channel belongs to; 0 where it rotates not."""
    words = np.stack([np.asarray(plan.turns) for plan in plans])  # [plan, head, axis, pair, (high, low)]
    plan = plans[0]
    pairs, step = plan.rotary_dim // 2, plan.rotary_dim // 2 // plan.blocks
    channel = np.arange(plan.rotary_dim)
    pair = channel // 2 if plan.pairing == "interleaved" else channel // (2 * step) * step + channel % step
    assert words.shape[-2:] == (pairs, 2)
    table = np.zeros((*words.shape[:3], 4, channels), np.uint32)
    for word in range(4):
        of_pairs = words[..., word // 2] >> np.uint64(32 if word % 2 == 0 else 0) & np.uint64(0xFFFFFFFF)
        table[..., word, plan.first_dim : plan.first_dim + plan.rotary_dim] = of_pairs[..., pair]
    return table


def words_of(ids, first: int, rows: tuple[int, int]):
    """Positions [axis, word, batch, seq] as words, one or the higher and the lower of two; ids [axis, batch, seq], or empty: from first on."""
    if ids.size == 0:
        low = _word(first & 0xFFFFFFFF) + lax.iota(jnp.uint32, rows[1])
        words = [low]
        if not -(1 << 31) <= first <= (1 << 31) - rows[1]:
            words = [_word(first >> 32 & 0xFFFFFFFF) + _flag(low < _word(first & 0xFFFFFFFF)), low]
        return jnp.broadcast_to(jnp.stack(words)[None, :, None, :], (1, len(words), *rows))
    if ids.dtype == jnp.int64:
        return jnp.stack([(ids >> 32).astype(jnp.uint32), ids.astype(jnp.uint32)], 1)
    return lax.bitcast_convert_type(ids, jnp.uint32)[:, None]


def rotate(
    plans: Sequence[Plan], x: jax.Array, ids: jax.Array, plan_ids: jax.Array, *, layout: str, first: int, transposed: bool, gathers: bool = False,
    interpret: bool = False,
) -> jax.Array:  # fmt: skip
    """x in a layout of named axes, rotated; ids [axis, batch, seq] or empty: from first on; plan_ids [batch, seq] or empty."""
    plans = tuple(plans)
    plan = plans[0]
    letters = layout
    for letter in "bh":
        if letter not in letters:
            x, letters = x[None], letter + letters
    heads_first = letters.index("h") < letters.index("s")
    order = "bhsd" if heads_first else "bshd"
    x = jnp.transpose(x, [letters.index(letter) for letter in order])
    extent = dict(zip(order, x.shape, strict=True))
    heads, tokens, head_dim = (extent[letter] for letter in "hsd")
    _need_fit(plan, x.dtype, heads, head_dim)
    at_once = _at_once(heads, tokens, head_dim, gathers)
    words = words_of(ids, first, (extent["b"], tokens))
    own = plan.frequency_heads > 1
    shape = _Shape(
        plan.pairing == "interleaved", plan.first_dim, plan.rotary_dim // 2 // plan.blocks, plan.rotary_dim, own, plan.axes,
        tuple(float(each.attention_factor) for each in plans), words.shape[1] == 2, transposed, heads_first, heads, tokens,
        head_dim, at_once, gathers,
    )  # fmt: skip

    table = jnp.asarray(_turns(plans, at_once[2]))
    block = (None, at_once[1], at_once[0]) if heads_first else (None, at_once[0], at_once[1])
    of_x = pl.BlockSpec((*block, at_once[2]), lambda b, s, h: (b, h, s, 0) if heads_first else (b, s, h, 0))
    inputs = [table, words[..., None]]
    specs = [
        pl.BlockSpec(
            (*table.shape[:1], at_once[1] if own else 1, *table.shape[2:]),
            lambda b, s, h: (0, h if own else 0, 0, 0, 0),
        ),
        pl.BlockSpec((*words.shape[:2], None, at_once[0], 1), lambda b, s, h: (0, 0, b, s, 0)),
    ]
    if len(plans) > 1:
        inputs.append(plan_ids[..., None])
        specs.append(pl.BlockSpec((None, at_once[0], 1), lambda b, s, h: (b, s, 0)))

    def kernel(*refs):
        turns, of_tokens, *rest, given, out = refs
        _kernel(shape, turns, of_tokens, rest[0] if rest else None, given, out)

    made = pl.pallas_call(
        kernel,
        out_shape=_like(x, *inputs),
        grid=(extent["b"], pl.cdiv(tokens, at_once[0]), pl.cdiv(heads, at_once[1])),
        in_specs=[*specs, of_x],
        out_specs=of_x,
        interpret=interpret,
        compiler_params=_by_triton() if gathers and not interpret else None,
        name="posenc_rotate",
    )(*inputs, x)
    made = jnp.transpose(made, [order.index(letter) for letter in letters])
    return made.reshape([extent[letter] for letter in layout])


def _need_fit(plan: Plan, dtype, heads: int, head_dim: int) -> None:
    end = plan.first_dim + plan.rotary_dim
    for holds, rule, got, cure in (
        (
            str(dtype) in TYPES,
            "x must be of float32, float16 or bfloat16 on this device",
            dtype,
            "x.astype(jax.numpy.float32)",
        ),
        (end <= head_dim, f"the plan rotates channels to {end}", f"heads of {head_dim}", ""),
        (
            plan.frequency_heads in (1, heads),
            f"heads must be {plan.frequency_heads}, which have frequencies",
            heads,
            "",
        ),
    ):
        if not holds:
            raise Error(f"{WHERE}: {rule}, got {got}" + (f"; {cure}" if cure else ""), WHERE, rule, str(got), cure)


def _by_triton():
    """GPUs have two compilers of kernels: this one is AMD's too."""
    from jax.experimental.pallas import triton

    return triton.CompilerParams(num_warps=4)


def _like(x, *others):
    """The shape of x, with the axes of a mesh over which any array of the call varies (jax.shard_map)."""
    types = [jax.typeof(each) if hasattr(jax, "typeof") else None for each in (x, *others)]
    if hasattr(types[0], "manual_axis_type"):
        axes = [each.manual_axis_type for each in types]
        varying = frozenset().union(*(each.varying for each in axes))
        return jax.ShapeDtypeStruct(x.shape, x.dtype, manual_axis_type=type(axes[0])(varying=varying))
    if hasattr(types[0], "vma"):  # JAX before 0.10
        return jax.ShapeDtypeStruct(x.shape, x.dtype, vma=frozenset().union(*(each.vma for each in types)))
    return jax.ShapeDtypeStruct(x.shape, x.dtype)
