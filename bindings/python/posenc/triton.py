"""Rotation by Triton: on NVIDIA's, AMD's and Intel's devices, with exact angles at every position and nothing to compile beforehand.

    q2, k2 = posenc.triton.rotate(q, k, position_ids, plan)       # new tensors, with their gradients; torch.compile, torch.export
    posenc.triton.rotate_(q, k, position_ids, plan)               # in place
    posenc.triton.rotate_(q, k, None, plan, norm=Norm(q_norm.weight, k_norm.weight, 1e-6), pages=Pages(keys, values, v, slots=slots))

Queries and keys go in one launch, with the RMS norm of each before the rotation and the way of keys and values to a paged cache after
it. Needs torch and triton, which `pip install torch` brings on Linux; on a CPU it runs in Triton's interpreter (TRITON_INTERPRET=1).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from . import cuda
from ._posenc import Plan
from .errors import Error
from .torch_cuda import HAS_OPERATORS
from .torch_cuda import _dense as _integers
from .torch_rotation import _ids, _need_no_gradient
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
    """The RMS norm of a head before its rotation: x / √(mean(x²) + eps) · weight, all in float32. Weights [head_dim], of queries and of
    keys; where a model keeps weights less 1 (Gemma), add it."""

    q: torch.Tensor
    k: torch.Tensor | None = None
    eps: float = 1e-6


@dataclass
class Pages:
    """A paged cache, to which rotated keys, and values [batch, kv_head, seq, head_dim] as they are, are written: [page, token, kv_head,
    head_dim] (NHD) or [page, kv_head, token, head_dim] (HND). A token goes to slots [batch, seq], page · page size + token in page (-1:
    nowhere), or, where block_table [sequence, page] says the pages of each sequence, behind the tokens that stand before it."""

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
            each.check("posenc.triton", WHERE)
        geometry = {cuda._geometry(each) for each in self.plans}
        if len(geometry) != 1:
            raise _refused(
                "plans of one table must have one slice, pairing, heads and axes",
                f"{len(geometry)} of them",
                "make a table for each",
            )
        words = [*geometry.pop(), len(self.plans), *(float(each.attention_factor) for each in self.plans)]
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
        pairing == "interleaved", first_dim, blocks, heads, axes, pairs, turns.to(device),
        amplitude.to(device) if gains else None,
    )  # fmt: skip


def _known(plan: Plan | Sequence[Plan] | Rotation) -> Rotation:
    """The Rotation of a plan, made once."""
    if isinstance(plan, Rotation):
        return plan
    if not isinstance(plan, Plan):
        return Rotation(plan)
    known: Rotation | None = vars(plan).get("_triton")
    if known is None:
        known = vars(plan)["_triton"] = Rotation(plan)
    return known


# --- a launch -------------------------------------------------------------------------------------------------------


def _launch(
    xs, outs, text, position_ids, first, cu_seqlens, cached, plan_ids, layout, transposed, weights=(), eps=0.0,
    v=None, caches=(), slots=None, block_table=None, cache_layout="NHD",
):  # fmt: skip
    q = xs[0]
    letters = cuda.letters_of(layout, q.dim(), WHERE)
    axes = [letters.find(letter) for letter in "bhsd"]
    for x in (*xs, *caches, *([v] if v is not None else [])):
        if x.dtype not in TYPES or x.dtype != q.dtype:
            raise _refused("tensors must be of float32, float16 or bfloat16, all of one call alike", x.dtype)
        if x.device != q.device:
            raise _refused(f"tensors of a call must lie on one device, {q.device}", x.device)
    if q.device.type == "cpu" and not INTERPRETED:
        raise _refused(
            "tensors must lie on a device that Triton compiles for", q.device,
            "call posenc.torch.rotate, or set TRITON_INTERPRET=1 before triton is imported",
        )  # fmt: skip
    count = q.shape[axes[2]]
    batch = 1 if axes[0] < 0 else q.shape[axes[0]]
    table = _table(text, q.device)
    _check(table, xs, axes, q.shape[axes[3]], batch, count)

    def integers(numbers, shape, name, kinds=(torch.int64, torch.int32)):
        return None if numbers is None else _integers(numbers, list(kinds), shape, name, q)

    ids = integers(position_ids, (table.axes, batch, count), "position_ids")
    texts = 0 if cu_seqlens is None else cu_seqlens.numel() - 1
    where = "ids" if ids is not None else "range" if cu_seqlens is None else "texts"
    if block_table is not None and where == "ids":
        raise _refused("block_table counts tokens", "position_ids", "pass slots, or cu_seqlens and cached")
    launch(
        xs, outs, axes, (batch, count), where, (table.turns, table.amplitude, (0, 0)),
        (ids, integers(cu_seqlens, (texts + 1,), "cu_seqlens"), integers(cached, (texts,), "cached"), texts, first),
        plan_ids=integers(plan_ids, (batch, count), "plan_ids", [torch.int32]),
        pairs=table.pairs, first_dim=table.first_dim, blocks=table.blocks, position_axes=table.axes,
        frequency_heads=table.heads, interleaved=table.interleaved, transposed=transposed, weights=weights, eps=eps,
        v=v, caches=caches, page_axes=PAGES[cache_layout], slots=integers(slots, (batch, count), "slots"),
        block_table=block_table,
    )  # fmt: skip


def _check(table: _Table, xs, axes, head_dim: int, batch: int, count: int) -> None:
    """Refuses tensors that the plan does not fit."""
    if table.first_dim + 2 * table.pairs > head_dim:
        raise _refused(f"the plan rotates channels to {table.first_dim + 2 * table.pairs}", f"heads of {head_dim}")
    for x in xs:
        shape = [1 if axis < 0 else x.shape[axis] for axis in axes]
        if shape[3] != head_dim or shape[2] != count or shape[0] != batch:
            raise _refused("queries and keys must have the same tokens and channels", f"{list(x.shape)}")
        if table.heads not in (1, shape[1]):
            raise _refused(f"heads must be {table.heads}, as the plan's frequencies are of each", shape[1])


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
    known = _known(plan)
    first, ids = 0, position_ids
    if cu_seqlens is None and known.axes == 1 and (ids is None or isinstance(ids, int)):
        first, ids = ids or 0, None
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
    """(q, k) rotated, with their gradients: [batch, head, seq, head_dim] or another layout, k with as many heads or fewer, or None.

    positions: None (from 0), a number, or integers [seq], [batch, seq] or [axes, batch, seq]; or in their place cu_seqlens [texts + 1]
    (and cached [texts], tokens of each that stand before) of packed texts. plan_ids [batch, seq] choose among the plans of a Rotation.
    norm: of each head, before it is turned. In a function that is compiled pass `Rotation(plan)`, made outside of it.
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
    _need_no_gradient("rotate_", q=q, k=k)
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
        if _known(plan).rotates_values:
            raise _refused(
                "values must not rotate on their way to a cache", "a plan that rotates them", "use posenc-cuda"
            )
        into = (pages.v, [pages.keys, pages.values], pages.slots, pages.block_table, pages.layout)
    where = _there(plan, q, positions, layout, plan_ids, cu_seqlens, cached)
    _operator_(x, *_norm_of(norm, k), *into, *where, layout)
    return q, k
