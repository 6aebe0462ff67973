"""The kernel of posenc.triton and its launch: text that Triton compiles for NVIDIA's, AMD's and Intel's devices, and runs on a CPU in its interpreter.

A program takes some tokens and a group of their heads, makes the cosines of each pair once and turns all these heads by them. Angles
are turns in fixed point, and cosines polynomials in integers, as in posenc's CUDA kernels (docs/cuda.md): the same bits from every compiler.
"""

# The types of a kernel's arguments are Triton's, which a checker of Python does not know.
# mypy: disable-error-code="no-untyped-def,no-untyped-call,misc"
from __future__ import annotations

import contextlib

import torch
import triton
import triton.language as tl

# Whether kernels are run by Triton's interpreter, on the CPU (TRITON_INTERPRET=1 when triton was imported).
INTERPRETED: bool = triton.knobs.runtime.interpret if hasattr(triton, "knobs") else False


@triton.jit
def phase_of(position, high, low):
    """position · turns modulo 1, in units of 2^-64 turns: position int64, turns two words uint64."""
    p = position.to(tl.uint64, bitcast=True)
    return p * high + tl.umulhi(p, low) - tl.where(position < 0, low, low * 0)


@triton.jit
def cosines(phase):
    """The cosine and sine of a phase in float32: 1 - z C(z) and u S(z) in fixed point, where u is twice the distance from the next
    quarter of a turn and z = u²."""
    quarter = ((phase >> 61) + 1) >> 1
    rest = (phase - (quarter << 62)).to(tl.int64, bitcast=True)
    behind = rest < 0
    u = (tl.where(behind, ~rest, rest) >> 29).to(tl.uint32)
    z = tl.umulhi(u, u)
    c = 1399910 - tl.umulhi(z * 0 + 15167, z)
    c = 68093819 - tl.umulhi(c, z)
    c = 1324675872 - tl.umulhi(c, z)
    c = 0x80000000 - (tl.umulhi(c, z) >> 1)
    s = 157073 - tl.umulhi(z * 0 + 1325, z)
    s = 10696154 - tl.umulhi(s, z)
    s = 346799333 - tl.umulhi(s, z)
    s = tl.umulhi(3373259426 - tl.umulhi(s, z), u)
    near = c.to(tl.float32) * 4.656612873077393e-10  # 2^-31
    far = s.to(tl.float32) * 2.3283064365386963e-10  # 2^-32
    far = tl.where(behind, -far, far)
    exchanged = (quarter & 1) != 0
    cosine = tl.where(exchanged, far, near)
    sine = tl.where(exchanged, near, far)
    return tl.where(((quarter + 1) & 2) != 0, -cosine, cosine), tl.where((quarter & 2) != 0, -sine, sine)


@triton.jit
def _load(pointers, mask, AS_BITS: tl.constexpr):
    x = tl.load(pointers, mask=mask, other=0)
    if AS_BITS:  # bfloat16 as the integers that it is, where the interpreter would round it its own way
        return (x.to(tl.uint16, bitcast=True).to(tl.uint32) << 16).to(tl.float32, bitcast=True)
    return x.to(tl.float32)


@triton.jit
def _store(pointers, x, mask, AS_BITS: tl.constexpr):
    if AS_BITS:
        bits = x.to(tl.uint32, bitcast=True)
        rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        quiet = (bits >> 16) | 0x40
        kept = tl.where((bits & 0x7FFFFFFF) > 0x7F800000, quiet, rounded)
        tl.store(pointers, kept.to(tl.uint16).to(tl.int16, bitcast=True), mask=mask)
    else:
        tl.store(pointers, x.to(pointers.dtype.element_ty), mask=mask)


@triton.jit
def _text_of(tokens, row, here):
    """Of packed texts the last one that begins at the row or before it, and its first row."""
    _ids, bounds, _before, texts, _first, _count, _rows = tokens
    text = row * 0
    end = text + texts
    for _ in range(32):
        several = end - text > 1
        middle = text + (end - text) // 2
        later = several & (tl.load(bounds + middle, mask=here, other=0) <= row)
        end = tl.where(several & (later == 0), middle, end)
        text = tl.where(later, middle, text)
    return text, tl.load(bounds + text, mask=here, other=0)


@triton.jit
def _place(tokens, row, here, WHERE: tl.constexpr):
    """The sequence that a row belongs to, and how many tokens stand before it there."""
    _ids, _bounds, before, _texts, first, count, _rows = tokens
    if WHERE == "texts":
        text, begin = _text_of(tokens, row, here)
        index = row - begin
        if before is not None:
            index += tl.load(before + text, mask=here, other=0)
        return text, index
    return row // count, first + row % count


@triton.jit
def _position(tokens, axis, row, here, WHERE: tl.constexpr):
    """Where tokens stand on an axis: ids [axis, batch, token], or bounds of packed texts, or a range."""
    if WHERE == "ids":
        ids, rows = tokens[0], tokens[6]
        return tl.load(ids + axis * rows + row, mask=here, other=0).to(tl.int64)
    _sequence, index = _place(tokens, row, here, WHERE)
    return index


@triton.jit
def _angles(
    table, plan, head, pair, tokens, row, here, there,
    PAIRS: tl.constexpr, AXES: tl.constexpr, HEADS: tl.constexpr, WHERE: tl.constexpr, BACK: tl.constexpr,
):  # fmt: skip
    """Cosines and sines of pairs, of the shape that plan, head, pair and row broadcast to. here: which tokens are; there: which of
    their heads."""
    turns, amplitude, strides = table
    if WHERE == "cos_sin":
        # Cosines and sines that somebody formed, of a token, in place of turns and amplitude.
        at = row // tokens[5] * strides[0] + row % tokens[5] * strides[1] + pair
        cosine = tl.load(turns + at, mask=here & (pair < PAIRS), other=0).to(tl.float32)
        sine = tl.load(amplitude + at, mask=here & (pair < PAIRS), other=0).to(tl.float32)
        if BACK:
            sine = -sine
        return cosine, sine
    at = turns + 2 * ((plan * HEADS + head) * AXES * PAIRS + pair)
    is_pair = there & (pair < PAIRS)
    phase = (row * 0 + head * 0 + pair * 0).to(tl.uint64, bitcast=True)
    for axis in tl.static_range(AXES):
        position = _position(tokens, axis, row, here, WHERE)
        high = tl.load(at + 2 * axis * PAIRS, mask=is_pair, other=0).to(tl.uint64, bitcast=True)
        low = tl.load(at + 2 * axis * PAIRS + 1, mask=is_pair, other=0).to(tl.uint64, bitcast=True)
        phase += phase_of(position, high, low)
    if BACK:
        phase = phase * 0 - phase
    cosine, sine = cosines(phase)
    if amplitude is not None:
        by = tl.load(amplitude + plan, mask=here, other=0)
        cosine, sine = cosine * by, sine * by
    return cosine, sine


@triton.jit
def _operand(
    operand, eps, table, tokens, plan, row, here, slot, page_size, cosine, sine, group, groups,
    PAIRS: tl.constexpr, P: tl.constexpr, AXES: tl.constexpr, FREQUENCY_HEADS: tl.constexpr, FIRST: tl.constexpr,
    BLOCK_PAIRS: tl.constexpr, INTERLEAVED: tl.constexpr, HEAD_DIM: tl.constexpr, R: tl.constexpr, HB: tl.constexpr,
    WHERE: tl.constexpr, BACK: tl.constexpr, AS_BITS: tl.constexpr, DENSE: tl.constexpr,
):  # fmt: skip
    """Some heads of some tokens of one tensor: [token, head, pair]. R: as many channels as do not rotate, or 0 where they stay."""
    x, strides, heads, out, out_strides, rest_stays, weight, cache, cache_strides = operand
    pair = tl.arange(0, P)[None, None, :]
    both = tl.arange(0, 2 * P)[None, None, :]
    # Channels of the first of each pair, and how far the second is; interleaved, of both together.
    if INTERLEAVED:
        channel, is_channel = FIRST + both, both < 2 * PAIRS
    else:
        channel, is_channel = FIRST + pair + (pair // BLOCK_PAIRS) * BLOCK_PAIRS, pair < PAIRS
    if not DENSE:  # an offset of 32 bits might not hold it
        channel = channel.to(tl.int64)
    other = channel + BLOCK_PAIRS
    if R > 0:
        rest = tl.arange(0, R)[None, None, :]
        is_rest = rest < HEAD_DIM - 2 * PAIRS
        # Side by side where all lie behind or before the slice, so that they are loaded together.
        if FIRST == 0:
            rest = rest + 2 * PAIRS
        elif FIRST + 2 * PAIRS < HEAD_DIM:
            rest = rest + tl.where(rest < FIRST, 0, 2 * PAIRS)
        if not DENSE:
            rest = rest.to(tl.int64)
    batch, token = row // tokens[5], row % tokens[5]
    from_token = x + batch * strides[0] + token * strides[2]
    if out is not None:
        to_token = out + batch * out_strides[0] + token * out_strides[2]
    if cache is not None:
        to_slot = cache + slot // page_size * cache_strides[0] + slot % page_size * cache_strides[2]
        kept = slot >= 0
    for begin in range(group * HB, heads, groups * HB):
        head = (begin + tl.arange(0, HB)[None, :, None]).to(tl.int64)
        there = here & (head < heads)
        from_head = from_token + head * strides[1]
        if PAIRS > 0:
            a = _load(from_head + channel * strides[3], there & is_channel, AS_BITS)
            if INTERLEAVED:
                a, b = tl.split(tl.reshape(a, [a.shape[0], HB, P, 2]))
            else:
                b = _load(from_head + other * strides[3], there & is_channel, AS_BITS)
        if R > 0:
            r = _load(from_head + rest * strides[3], there & is_rest, AS_BITS)
        if weight is not None:
            squares = tl.sum(a * a + b * b, 2)
            if R > 0:
                squares += tl.sum(r * r, 2)
            scale = (1 / tl.sqrt_rn(squares / HEAD_DIM + eps))[:, :, None]
            wa = _load(weight + channel, is_channel, False)
            if INTERLEAVED:
                wa, wb = tl.split(tl.reshape(wa, [1, 1, P, 2]))
            else:
                wb = _load(weight + other, is_channel, False)
            a, b = a * scale * wa, b * scale * wb
            if R > 0:
                r = r * scale * _load(weight + rest, is_rest, False)
        if PAIRS > 0:
            if FREQUENCY_HEADS > 1:
                c, s = _angles(
                    table, plan, head, pair, tokens, row, here, there, PAIRS, AXES, FREQUENCY_HEADS, WHERE, BACK
                )
            else:
                c, s = cosine, sine
            a, b = a * c - b * s, a * s + b * c
            if INTERLEAVED:
                a = tl.reshape(tl.join(a, b), [a.shape[0], HB, 2 * P])
        if out is not None:
            to_head = to_token + head * out_strides[1]
            if PAIRS > 0:
                _store(to_head + channel * out_strides[3], a, there & is_channel, AS_BITS)
                if not INTERLEAVED:
                    _store(to_head + other * out_strides[3], b, there & is_channel, AS_BITS)
            if R > 0 and not rest_stays:
                _store(to_head + rest * out_strides[3], r, there & is_rest, AS_BITS)
        if cache is not None:
            to_head = to_slot + head * cache_strides[1]
            if PAIRS > 0:
                _store(to_head + channel * cache_strides[3], a, there & kept & is_channel, AS_BITS)
                if not INTERLEAVED:
                    _store(to_head + other * cache_strides[3], b, there & kept & is_channel, AS_BITS)
            if R > 0:
                _store(to_head + rest * cache_strides[3], r, there & kept & is_rest, AS_BITS)


@triton.jit
def rotate_kernel(
    q, k, v, eps, table, plan_ids, tokens, slots, pages, pages_of_each, page_size, slot_count, groups,
    PAIRS: tl.constexpr, P: tl.constexpr, AXES: tl.constexpr, FREQUENCY_HEADS: tl.constexpr, FIRST: tl.constexpr,
    BLOCK_PAIRS: tl.constexpr, INTERLEAVED: tl.constexpr, HEAD_DIM: tl.constexpr, VALUE_DIM: tl.constexpr,
    RQ: tl.constexpr, RK: tl.constexpr, RV: tl.constexpr, TB: tl.constexpr, HB: tl.constexpr, WHERE: tl.constexpr,
    BACK: tl.constexpr, AS_BITS: tl.constexpr, DENSE: tl.constexpr,
):  # fmt: skip
    """Queries, keys and values of one call, each (tensor, strides, heads, out, its strides, whether what does not rotate stays there,
    weights of its norm, pages, their strides) or None; strides are of batch, head, token and channel, those of pages of page, head,
    token and channel. table: turns [plan, head, axis, pair, 2], amplitude [plan] or None, (plans, 0); or, where WHERE is cos_sin, cosines and
    sines [batch, token, pair] and their strides of batch and token. tokens: ids [axis, row], bounds [texts + 1],
    before [texts], texts, the first position, tokens of a sequence, rows (all tokens). RQ, RK, RV: a power of 2 that holds what does
    not rotate, 0 where that stays as it is; RK -1: no keys; RV 0: no values."""
    row = (tl.program_id(0).to(tl.int64) * TB + tl.arange(0, TB).to(tl.int64))[:, None, None]
    group = tl.program_id(1)
    here = row < tokens[6]
    plan = row * 0
    if plan_ids is not None:
        plan = tl.load(plan_ids + row, mask=here, other=0).to(tl.int64)
        plan = tl.where((plan >= 0) & (plan < table[2][0]), plan, 0)
    slot = row * 0 - 1
    if slots is not None:
        slot = tl.load(slots + row, mask=here, other=-1).to(tl.int64)
    if pages is not None:
        sequence, index = _place(tokens, row, here, WHERE)
        listed = here & (index >= 0) & (index < pages_of_each * page_size)
        page = tl.load(pages + sequence * pages_of_each + index // page_size, mask=listed, other=-1).to(tl.int64)
        slot = tl.where(page < 0, page, page * page_size + index % page_size)
    slot = tl.where(slot < slot_count, slot, -1)
    if WHERE == "texts":
        # Rows behind the last text, or before the first, are padding.
        slot = tl.where((row >= tl.load(tokens[1])) & (row < tl.load(tokens[1] + tokens[3])), slot, -1)
    cosine, sine = 0.0, 0.0
    if FREQUENCY_HEADS == 1:
        pair = tl.arange(0, P)[None, None, :]
        cosine, sine = _angles(table, plan, 0, pair, tokens, row, here, here, PAIRS, AXES, FREQUENCY_HEADS, WHERE, BACK)
    _operand(
        q, eps, table, tokens, plan, row, here, slot, page_size, cosine, sine, group, groups,
        PAIRS, P, AXES, FREQUENCY_HEADS, FIRST, BLOCK_PAIRS, INTERLEAVED, HEAD_DIM, RQ, HB, WHERE, BACK, AS_BITS, DENSE,
    )  # fmt: skip
    if RK >= 0:
        _operand(
            k, eps, table, tokens, plan, row, here, slot, page_size, cosine, sine, group, groups,
            PAIRS, P, AXES, FREQUENCY_HEADS, FIRST, BLOCK_PAIRS, INTERLEAVED, HEAD_DIM, RK, HB, WHERE, BACK, AS_BITS, DENSE,
        )  # fmt: skip
    if RV > 0:
        _operand(
            v, eps, table, tokens, plan, row, here, slot, page_size, cosine, sine, group, groups,
            0, P, AXES, 1, 0, 1, False, VALUE_DIM, RV, HB, WHERE, BACK, AS_BITS, DENSE,
        )  # fmt: skip


# --- its launch -------------------------------------------------------------------------------------------------------


def _power_of_2(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def _tiles(heads: int, pairs: int, rows: int, wide: bool) -> tuple[int, int, int]:
    """Tokens and heads (of so many pairs) that a program takes at once, programs of a token. Heads share cosines, so that a program has
    all of a token's, 1,024 pairs at once; where tokens are few, heads are shared out, and where heads are few, tokens are taken together:
    the fastest of a dozen tiles on an H200. wide: neighbours make a pair, or numbers are of 32 bits."""
    at_once = (256 if rows < 512 else 512 if rows < 4096 else 2048 if wide else 1024) // pairs
    at_once = min(_power_of_2(heads), max(at_once, 1))
    groups = -(-heads // at_once) if rows < 4096 else 1
    tokens = max(1, min(1024 // (pairs * at_once), _power_of_2(rows))) if groups == 1 else 1
    return tokens, at_once, groups


def _given(x):
    """What the kernel takes of a tensor: the interpreter, which rounds bfloat16 its own way, gets the bits."""
    return x.view(torch.int16) if INTERPRETED and x is not None and x.dtype == torch.bfloat16 else x


def _tensor(x, out, axes, weight=None, cache=None, page_axes=()):
    def strides(of, order):
        return None if of is None else tuple(0 if axis < 0 else of.stride(axis) for axis in order)

    return (
        _given(x), strides(x, axes), 1 if axes[1] < 0 else x.shape[axes[1]],
        _given(out), strides(out, axes), out is x and weight is None,
        weight, _given(cache), strides(cache, page_axes),
    )  # fmt: skip


def launch(
    xs, outs, axes, extent, where, table, tokens, *, pairs, interleaved, first_dim=0, blocks=1, position_axes=1,
    frequency_heads=1, transposed=False, plan_ids=None, weights=(), eps=0.0, v=None, caches=(), page_axes=(), slots=None,
    block_table=None,
):  # fmt: skip
    """Rotates xs (queries, and keys or not) into outs, which may be the same. axes: where batch, head, token and channel are, -1 where
    they are not; extent: (batch, tokens). where, table and tokens as rotate_kernel has them, tokens without its last two. Nothing is
    checked."""
    q, k = xs[0], xs[1] if len(xs) > 1 else None
    batch, count = extent
    if batch * count == 0:
        return
    head_dim = q.shape[axes[3]]
    rest = head_dim - 2 * pairs
    more = _power_of_2(rest) if rest else 0
    moved = outs[0] is not q or len(weights) > 0
    padded = _power_of_2(pairs)
    heads = max(1 if axes[1] < 0 else x.shape[axes[1]] for x in xs)
    wide = (interleaved or q.element_size() == 4) and not caches
    # What does not rotate, and lies in registers as well, counts as so many pairs.
    loaded = max(padded, _power_of_2(pairs + rest // 2)) if moved or caches else padded
    tokens_at_once, heads_at_once, groups = _tiles(heads, loaded, batch * count, wide)
    dense = all(x.stride(axes[3]) == 1 for x in (*xs, *outs, *([] if v is None else [v]))) and all(
        cache.stride(page_axes[3]) == 1 for cache in caches
    )
    weights = [(weight.float() if INTERPRETED else weight).contiguous() for weight in weights]
    weight, cache = [*weights, None, None], caches or (None, None)
    page_size = cache[0].shape[page_axes[2]] if caches else 1
    with torch.cuda.device(q.device) if q.device.type == "cuda" else contextlib.nullcontext():
        rotate_kernel[(triton.cdiv(batch * count, tokens_at_once), groups)](
            _tensor(q, outs[0], axes, weight[0]),
            None if k is None else _tensor(k, outs[1], axes, weight[1], cache[0], page_axes),
            None if v is None else _tensor(v, None, axes, None, cache[1], page_axes),
            eps, table, plan_ids, (*tokens, count, batch * count), slots, block_table,
            0 if block_table is None else block_table.shape[1], page_size,
            cache[0].shape[0] * page_size if caches else 0, groups,
            PAIRS=pairs, P=padded, AXES=position_axes, FREQUENCY_HEADS=frequency_heads, FIRST=first_dim,
            BLOCK_PAIRS=pairs // blocks, INTERLEAVED=interleaved, HEAD_DIM=head_dim,
            VALUE_DIM=0 if v is None else v.shape[axes[3]],
            RQ=more if moved else 0, RK=-1 if k is None else more if moved or caches else 0,
            RV=0 if v is None else _power_of_2(v.shape[axes[3]]),
            TB=tokens_at_once, HB=heads_at_once, WHERE=where, BACK=transposed,
            AS_BITS=INTERPRETED and q.dtype == torch.bfloat16, DENSE=dense,
            num_warps=4 if weights or loaded > padded else 2,  # where more is held in registers
        )  # fmt: skip
