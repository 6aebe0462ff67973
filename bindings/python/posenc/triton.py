"""Rotation by Triton: on NVIDIA's, AMD's and Intel's devices, with exact angles at every position and nothing to compile beforehand.

    q2, k2 = posenc.triton.rotate(q, k, position_ids, plan)       # new tensors, with their gradients; torch.compile, torch.export
    posenc.triton.rotate_(q, k, position_ids, plan)               # in place
    posenc.triton.rotate_(q, k, None, plan, norm=Norm(q_norm.weight, k_norm.weight, 1e-6), pages=Pages(keys, values, v, slots=slots))

Queries and keys go in one launch, with the RMS norm of each before the rotation and the way of keys and values to a paged cache after
it. Needs torch and triton, which `pip install torch` brings on Linux; on a CPU it runs in Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from . import cuda
from ._posenc import Plan
from .errors import Error
from .torch_cuda import HAS_OPERATORS, _dense, _must_lie
from .torch_rotation import _ids, _known, _need_no_gradient
from .triton_kernels import INTERPRETED, launch

if TYPE_CHECKING:
    from .types import PositionIds

__all__ = ["Norm", "Pages", "Rotation", "rotate", "rotate_"]

WHERE = "posenc.triton"
PAGES = {"NHD": [0, 2, 1, 3], "HND": [0, 1, 2, 3]}  # where page, head, token in page and channel are
TYPES = (torch.float32, torch.float16, torch.bfloat16)


def _refused(rule: str, got: Any, cure: str = "") -> Error:
    return Error(f"{WHERE}: {rule}, got {got}" + (f"; {cure}" if cure else ""), WHERE, rule, str(got), cure)


@dataclass
class Norm:
    """The RMS norm of a head before its rotation: x / √(mean(x²) + eps) · weight, all in float32. Weights [head_dim] of float32, float16 or
    bfloat16, of queries and of keys; where a model keeps weights less 1 (Gemma), add it."""

    q: torch.Tensor
    k: torch.Tensor | None = None
    eps: float = 1e-6


@dataclass
class Pages:
    """A paged cache, to which rotated keys, and values v as they are, are written. keys, values: [page, token, kv_head, head_dim] (NHD) or
    [page, kv_head, token, head_dim] (HND); v: in the layout of q and k. A token goes to slots [batch, seq], page · page size + token in
    page, or, where block_table [batch, or texts of cu_seqlens; pages of each] says the pages of a sequence, behind the tokens that stand
    before it there. Nowhere go tokens whose slot or page is negative or not there, and rows behind the last text: padding."""

    keys: torch.Tensor
    values: torch.Tensor
    v: torch.Tensor
    slots: torch.Tensor | None = None
    block_table: torch.Tensor | None = None
    layout: str = "NHD"


# --- plans as tensors ---------------------------------------------------------------------------------------------


class Rotation:
    """A plan's rotation as numbers, which torch.compile and torch.export read. Several plans that differ in frequencies and attention
    factor alone are a table: plan_ids say which of them a token uses."""

    def __init__(self, plan: Plan | Sequence[Plan]) -> None:
        self.plans = [plan] if isinstance(plan, Plan) else list(plan)
        for each in self.plans:
            if not isinstance(each, Plan):
                raise _refused(
                    "a Rotation is of plans", type(each).__name__, "make one by posenc.plan or a model's plan()"
                )
        if not self.plans:
            raise _refused("a Rotation must have a plan", "none")
        geometry = cuda.geometry_of(self.plans, WHERE, "posenc.triton")
        words = [*geometry, len(self.plans), *(float(each.attention_factor) for each in self.plans)]
        words += [f"{word:x}" for each in self.plans for word in each.turns.ravel().tolist()]
        self.text = " ".join(map(str, words))
        self.axes = self.plans[0].axes
        self.rotates_values = any("rotated_values" in each.features for each in self.plans)


@dataclass(frozen=True)
class _Table:
    """A Rotation's text, read again, and its numbers on a device."""

    interleaved: bool
    first_dim: int
    blocks: int
    heads: int
    axes: int
    pairs: int
    plans: int
    turns: torch.Tensor
    amplitude: torch.Tensor | None


@functools.lru_cache(maxsize=256)
def _table(text: str, device: torch.device) -> _Table:
    pairing, *rest = text.split(" ")
    first_dim, blocks, heads, axes, pairs, plans = map(int, rest[:6])
    amplitude = torch.tensor([float(word) for word in rest[6 : 6 + plans]], dtype=torch.float32)
    words = [int(word, 16) for word in rest[6 + plans :]]
    turns = torch.tensor([word - (1 << 64) if word >> 63 else word for word in words], dtype=torch.int64)
    gains = bool((amplitude != 1).any())
    return _Table(
        pairing == "interleaved", first_dim, blocks, heads, axes, pairs, plans, turns.to(device),
        amplitude.to(device) if gains else None,
    )  # fmt: skip


# --- a launch -------------------------------------------------------------------------------------------------------


def _launch(
    xs, outs, text, position_ids, first, cu_seqlens, cached, plan_ids, layout, transposed, weights=(), eps=0.0,
    v=None, caches=(), slots=None, block_table=None, cache_layout="NHD",
):  # fmt: skip
    q = xs[0]
    letters = cuda.letters_of(layout, q.dim(), WHERE)
    axes = [letters.find(letter) for letter in "bhsd"]
    if q.device.type == "cpu" and not INTERPRETED:
        raise _refused(
            "tensors must lie on a device that Triton compiles for", q.device,
            "call posenc.torch.rotate, or set TRITON_INTERPRET=1 before triton is imported",
        )  # fmt: skip
    count = q.shape[axes[2]]
    batch = 1 if axes[0] < 0 else q.shape[axes[0]]
    table = _table(text, q.device)
    _check(table, xs, outs, axes, weights)

    def integers(numbers, shape, name, kinds=(torch.int64, torch.int32)):
        return None if numbers is None else _dense(numbers, list(kinds), shape, name, q, WHERE)

    ids = integers(position_ids, (table.axes, batch, count), "position_ids")
    where, texts = ("ids" if ids is not None else "range"), 0
    if cu_seqlens is not None:
        where, texts = "texts", cu_seqlens.numel() - 1
        if texts < 1 or batch > 1:
            raise _refused("packed texts must be 1 or more, in tensors of batch 1", f"{texts}, {batch}")
    page_axes = PAGES.get(cache_layout, ())
    if caches:
        _check_pages(xs[1], v, caches, axes, page_axes)
    if block_table is not None:
        if where == "ids":
            raise _refused("block_table counts tokens", "position_ids", "pass slots, or cu_seqlens and cached")
        sequences = texts or batch
        if block_table.dim() != 2 or len(block_table) != sequences or block_table.shape[1] == 0:
            raise _refused(f"block_table must be [{sequences}, pages of each]", list(block_table.shape))
        block_table = integers(block_table, tuple(block_table.shape), "block_table")
    launch(
        xs, outs, axes, (batch, count), where, (table.turns, table.amplitude, (table.plans, 0)),
        (ids, integers(cu_seqlens, (texts + 1,), "cu_seqlens"), integers(cached, (texts,), "cached"), texts, first),
        plan_ids=integers(plan_ids, (batch, count), "plan_ids"),
        pairs=table.pairs, first_dim=table.first_dim, blocks=table.blocks, position_axes=table.axes,
        frequency_heads=table.heads, interleaved=table.interleaved, transposed=transposed, weights=weights, eps=eps,
        v=v, caches=caches, page_axes=page_axes, slots=integers(slots, (batch, count), "slots"), block_table=block_table,
    )  # fmt: skip


def _sizes(x, axes) -> list[int]:
    """Batch, heads, tokens and channels of a tensor, 1 where it has no such axis."""
    return [1 if axis < 0 else x.shape[axis] for axis in axes]


def _check_tensor(x, like, rank: int) -> None:
    if not isinstance(x, torch.Tensor) or x.dtype not in TYPES or x.dtype != like.dtype:
        got = getattr(x, "dtype", type(x).__name__)
        raise _refused("tensors must be of float32, float16 or bfloat16, all of one call alike", got)
    _must_lie(x, like, WHERE)
    if x.dim() != rank:
        raise _refused(f"tensors of a call must have {rank} axes", list(x.shape))


def _check(table: _Table, xs, outs, axes, weights) -> None:
    """Refuses tensors that the plan, or each other, do not fit."""
    batch, _, count, head_dim = _sizes(xs[0], axes)
    if table.first_dim + 2 * table.pairs > head_dim:
        raise _refused(f"the plan rotates channels to {table.first_dim + 2 * table.pairs}", f"heads of {head_dim}")
    for x, out in zip(xs, outs, strict=True):
        _check_tensor(x, xs[0], xs[0].dim())
        sizes = _sizes(x, axes)
        if (sizes[0], *sizes[2:]) != (batch, count, head_dim):
            raise _refused("queries and keys must have the same tokens and channels", f"{list(x.shape)}")
        if table.heads not in (1, sizes[1]):
            raise _refused(f"heads must be {table.heads}, as the plan's frequencies are of each", sizes[1])
        if out is x and any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
            raise _refused("what is rotated in place must have memory of its own for each number", "an expanded tensor")
    if len(xs) > 1 and outs[0] is xs[0] and xs[0].data_ptr() == xs[1].data_ptr() and xs[0].numel() > 0:
        raise _refused("queries and keys that are rotated in place must be two tensors", "one twice")
    for weight in weights:
        if weight.shape != (head_dim,) or weight.dtype not in TYPES or weight.device != xs[0].device:
            raise _refused(
                f"weights of a norm must be [{head_dim}] floats on {xs[0].device}",
                f"{weight.dtype} {list(weight.shape)}",
            )


def _check_pages(k, v, caches, axes, page_axes) -> None:
    """Refuses values and pages that are not of the keys' tokens and heads."""
    _check_tensor(v, k, k.dim())
    if _sizes(v, axes)[:3] != _sizes(k, axes)[:3]:
        raise _refused("values must be of the keys' tokens and heads", list(v.shape), f"keys are {list(k.shape)}")
    for x, cache in zip((k, v), caches, strict=True):
        _check_tensor(cache, k, 4)
        _, heads, _, channels = _sizes(x, axes)
        if (cache.shape[page_axes[1]], cache.shape[page_axes[3]]) != (heads, channels):
            raise _refused(f"pages must hold {heads} heads of {channels} channels", list(cache.shape))
    keys, values = ([cache.shape[axis] for axis in (page_axes[0], page_axes[2])] for cache in caches)
    if keys != values:
        raise _refused("keys and values must have the same pages", f"{keys} and {values} (pages, tokens of each)")


# --- the operators ---------------------------------------------------------------------------------------------------


def _rotate(x, weights, eps, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout, transposed):
    outs = [torch.empty_like(each) for each in x]
    _launch(x, outs, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout, transposed, weights, eps)
    return outs


def _rotate_(
    x, weights, eps, v, caches, slots, block_table, cache_layout, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout
):  # fmt: skip
    _launch(
        x, x, plans, position_ids, first, cu_seqlens, cached, plan_ids, layout, False, weights, eps, v, caches, slots,
        block_table, cache_layout,
    )  # fmt: skip


_WHERE = "str plans, Tensor? position_ids, int first, Tensor? cu_seqlens, Tensor? cached, Tensor? plan_ids, str layout"


def _operators():
    from torch.library import custom_op

    rotate = custom_op(
        "posenc::triton_rotate",
        _rotate,
        mutates_args=(),
        schema=f"(Tensor[] x, Tensor[] weights, float eps, {_WHERE}, bool transposed) -> Tensor[]",
    )
    rotate_ = custom_op(
        "posenc::triton_rotate_",
        _rotate_,
        mutates_args=("x", "caches"),
        schema="(Tensor(a!)[] x, Tensor[] weights, float eps, Tensor? v, Tensor(b!)[] caches, Tensor? slots, "
        f"Tensor? block_table, str cache_layout, {_WHERE}) -> ()",
    )
    rotate.register_fake(lambda x, *rest: [torch.empty_like(each) for each in x])
    rotate_.register_fake(lambda *_: None)

    def saved(ctx, inputs, output):
        (
            x,
            weights,
            ctx.eps,
            ctx.plans,
            position_ids,
            ctx.first,
            cu_seqlens,
            cached,
            plan_ids,
            ctx.layout,
            ctx.transposed,
        ) = inputs
        ctx.normed = len(weights)
        ctx.save_for_backward(position_ids, cu_seqlens, cached, plan_ids, *weights, *(x if weights else []))

    def backward(ctx, gradients):
        position_ids, cu_seqlens, cached, plan_ids, *kept = ctx.saved_tensors
        back = rotate(
            [each.contiguous() for each in gradients], [], 0.0, ctx.plans, position_ids, ctx.first, cu_seqlens, cached,
            plan_ids, ctx.layout, not ctx.transposed,
        )  # fmt: skip
        of_weights = [None] * ctx.normed
        if ctx.normed:
            axis = cuda.letters_of(ctx.layout, back[0].dim(), WHERE).index("d")
            both = [
                _norm_backward(g, x, weight, ctx.eps, axis)
                for g, x, weight in zip(back, kept[ctx.normed :], kept[: ctx.normed], strict=True)
            ]
            back, of_weights = [one for one, _ in both], [other for _, other in both]
        return (back, of_weights, *[None] * 9)

    rotate.register_autograd(backward, setup_context=saved)
    return rotate, rotate_


def _norm_backward(gradient, x, weight, eps: float, axis: int):
    """The gradients of an RMS norm by x and by its weights, in float32."""
    gradient, wide = gradient.float().movedim(axis, -1), x.float().movedim(axis, -1)
    scale = (wide.square().mean(-1, keepdim=True) + eps).rsqrt()
    unit = wide * scale
    weighed = gradient * weight.float()
    of_x = scale * (weighed - unit * (weighed * unit).mean(-1, keepdim=True))
    of_weight = (gradient * unit).flatten(0, -2).sum(0)
    return of_x.movedim(-1, axis).to(x.dtype), of_weight.to(weight.dtype)


_operator: Any
_operator_: Any
_operator, _operator_ = _operators() if HAS_OPERATORS else (_rotate, _rotate_)


# --- what is called ---------------------------------------------------------------------------------------------------


def _there(plan, x, position_ids, layout: str, plan_ids, cu_seqlens, cached):
    """The arguments of an operator: plans, where tokens stand, and which plan they use."""
    known = _known(plan, Rotation, "_triton")
    if len(known.plans) > 1 and plan_ids is None:
        raise _refused(f"{len(known.plans)} plans must be chosen from by plan_ids", "none")
    if cu_seqlens is not None and position_ids is not None:
        raise _refused(
            "packed texts have their positions by cu_seqlens and cached", "positions as well", "pass one of them"
        )
    if cached is not None and cu_seqlens is None:
        raise _refused("cached is of packed texts", "no cu_seqlens", "pass positions")
    first, ids = 0, position_ids
    if (
        cu_seqlens is None
        and known.axes == 1
        and (ids is None or hasattr(ids, "__index__"))
        and not isinstance(ids, torch.Tensor)
    ):
        first, ids = 0 if ids is None else operator.index(ids), None
        if not -(2**62) <= first <= 2**62:
            raise _refused("positions must be within 2^62", first)
    elif cu_seqlens is None:
        ids = _ids(ids, x, layout).to(x.device, non_blocking=True)
    return known.text, ids, first, cu_seqlens, cached, plan_ids


def _norm_of(norm: Norm | None, k) -> tuple[list[torch.Tensor], float]:
    if norm is None:
        return [], 0.0
    if k is not None and norm.k is None:
        raise _refused("the norm of keys must have weights", "none", "pass Norm(q_weight, k_weight)")
    return [norm.q, *([norm.k] if k is not None else [])], norm.eps


def rotate(
    q: torch.Tensor,
    k: torch.Tensor | None,
    positions: PositionIds | torch.Tensor | None,
    plan: Plan | Sequence[Plan] | Rotation,
    *,
    layout: str = "",
    norm: Norm | None = None,
    plan_ids: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
    cached: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """(q, k) rotated, with their gradients: [batch, head, seq, head_dim] or another layout, k of any number of heads, or None.

    positions: None (from 0), a number, or integers [seq], [batch, seq] or [axes, batch, seq], of either sign; or in their place cu_seqlens
    [texts + 1] (and cached [texts], tokens of each that stand before) of packed texts in one row, [seq, head, head_dim] by layout="thd".
    plan_ids [batch, seq] choose among the plans of a Rotation; one that there is not takes the first. norm: of each head, before it is
    turned. In a function that is compiled pass `Rotation(plan)`, made outside of it. The transforms of torch.func are posenc.torch's.
    """
    x = [q] if k is None else [q, k]
    made = _operator(
        x, *_norm_of(norm, k), *_there(plan, q, positions, layout, plan_ids, cu_seqlens, cached), layout, False
    )
    return made[0], made[1] if k is not None else None


def rotate_(
    q: torch.Tensor,
    k: torch.Tensor | None,
    positions: PositionIds | torch.Tensor | None,
    plan: Plan | Sequence[Plan] | Rotation,
    *,
    layout: str = "",
    norm: Norm | None = None,
    pages: Pages | None = None,
    plan_ids: torch.Tensor | None = None,
    cu_seqlens: torch.Tensor | None = None,
    cached: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The same in place, for tensors that need no gradient. pages: a cache to which keys and values are written in the same launch."""
    _need_no_gradient("rotate_", q=q, k=k, **({} if norm is None else {"norm.q": norm.q, "norm.k": norm.k}))
    if pages is not None:
        _need_no_gradient("rotate_", **{"pages.keys": pages.keys, "pages.values": pages.values, "pages.v": pages.v})
    if pages is not None and k is None:
        raise _refused("a cache takes keys", "none")
    x = [q] if k is None else [q, k]
    into: tuple[Any, ...] = (None, [], None, None, "NHD")
    if pages is not None:
        if pages.layout not in PAGES or pages.keys.dim() != 4 or pages.values.dim() != 4:
            raise _refused(
                "caches must be [page, token, kv_head, head_dim] (NHD) or [page, kv_head, token, head_dim] (HND)",
                f"{pages.layout} {list(pages.keys.shape)}",
            )
        if (pages.slots is None) == (pages.block_table is None):
            raise _refused("Pages must have slots or block_table", "both" if pages.slots is not None else "neither")
        if _known(plan, Rotation, "_triton").rotates_values:
            raise _refused(
                "values must not rotate on their way to a cache", "a plan that rotates them", "use posenc-cuda"
            )
        into = (pages.v, [pages.keys, pages.values], pages.slots, pages.block_table, pages.layout)
    where = _there(plan, q, positions, layout, plan_ids, cu_seqlens, cached)
    _operator_(x, *_norm_of(norm, k), *into, *where, layout)
    return q, k
