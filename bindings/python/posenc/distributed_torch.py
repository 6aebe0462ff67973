"""Attention over the ranks of torch.distributed: what posenc.distributed.ring_attend is.

Each rank has its own tokens of a text (posenc.distributed.layout) at the positions that they have in it. Keys and values travel
unrotated, one rank's at a time, and are met by posenc's own kernels; parts merge in float (double for float64) by the logarithms of
their sums and are rounded once. The transport is torch.distributed's point-to-point, so that gloo and NCCL differ in nothing here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from . import _posenc
from ._posenc import Layout, Plan, Positions
from .errors import Error
from .positions import range as _range

_dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _group_of(group: Any) -> Any:
    """A process group, the one of a DeviceMesh of one dimension, or None: all ranks."""
    return group.get_group() if hasattr(group, "get_group") else group


def _agree(group: Any, rank: int, error: str, what: str) -> None:
    """One error on every rank, before anything is sent, where a rank cannot go on or means something else than the others."""
    told: list[tuple[str, str]] = [("", "")] * dist.get_world_size(group)
    dist.all_gather_object(told, (error, what), group=group)
    for other, (says, _) in enumerate(told):
        if says:
            raise Error(f"ring_attend: rank {other}: {says}")
    for other, (_, means) in enumerate(told):
        if means != told[0][1]:
            raise Error(
                "ring_attend: ranks must agree, got rank "
                f"{other} with {means}, rank 0 with {told[0][1]}; give all the same plan, mask, dtype and layout"
            )


def _wrong(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, shares: Layout, rank: int, ranks: int) -> str:
    """What a rank's own arguments lack; "" if nothing."""
    if shares.ranks != ranks:
        return f"the layout has {shares.ranks} ranks and the group {ranks}"
    for name, each in (("q", q), ("k", k), ("v", v)):
        if each.dim() != 4:
            return f"{name} must be [batch, heads, tokens, channels], got {tuple(each.shape)}"
        if each.shape[2] != shares.size(rank):
            return (
                f"{name} must have the {shares.size(rank)} tokens that the layout gives the rank, got {each.shape[2]}"
            )
        if each.dtype not in _dtypes or each.dtype != q.dtype:
            return f"{name} must be of q's dtype, float64, float32, bfloat16 or float16, got {each.dtype}"
        if each.device.type != "cpu":
            return f"{name} must be on the CPU, got {each.device}"
    return ""


class _Ring:
    """The ranks in a circle: block n of a rank is that of the rank n before it."""

    def __init__(self, group: Any, shares: Layout, whole: Positions) -> None:
        self.group, self.shares, self.whole = group, shares, whole
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        peer: Callable[[int], int] = (lambda r: r) if group is None else (lambda r: dist.get_global_rank(group, r))
        self.next, self.previous = peer((self.rank + 1) % self.ranks), peer((self.rank - 1) % self.ranks)

    def positions(self, rank: int) -> Positions:
        return self.shares.positions(rank, self.whole)

    def hand_on(self, blocks: list[torch.Tensor], of: int) -> Callable[[], list[torch.Tensor]]:
        """Sends blocks to the next rank and receives those of the previous, whose blocks were of the rank before `of`: what waits."""
        tokens = self.shares.size((of - 1) % self.ranks)
        received = [each.new_empty(*each.shape[:2], tokens, each.shape[3]) for each in blocks]
        calls = [dist.P2POp(dist.isend, each, self.next, self.group) for each in blocks if each.numel()]
        calls += [dist.P2POp(dist.irecv, each, self.previous, self.group) for each in received if each.numel()]
        work = dist.batch_isend_irecv(calls) if calls else []

        def wait() -> list[torch.Tensor]:
            for each in work:
                each.wait()
            return received

        return wait


def _forward(ring: _Ring, q: Any, k: Any, v: Any, plan: Plan | None, how: dict[str, Any], sinks: Any) -> Any:
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    shape = (*q.shape[:3], v.shape[3])
    out, sums = torch.zeros(shape, dtype=exact), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    own, blocks = ring.positions(ring.rank), [k.contiguous(), v.contiguous()]
    for step in range(ring.ranks):
        of = (ring.rank - step) % ring.ranks
        wait = ring.hand_on(blocks, of) if step + 1 < ring.ranks else None
        if q.shape[2] and blocks[0].shape[2]:
            part, log_part = torch.empty(shape, dtype=exact), torch.empty(q.shape[:3], dtype=torch.float64)
            _posenc.attend(
                q, blocks[0], blocks[1], plan, position_ids=own, key_position_ids=ring.positions(of),
                sink_logits=sinks if step == 0 else None,  # they count once
                out=part, log_sums=log_part, **how,
            )  # fmt: skip
            both = torch.logaddexp(sums, log_part)
            for share, each in ((sums, out), (log_part, part)):
                weight = torch.where(both == -torch.inf, 0.0, torch.exp(share - both)).to(exact)
                each *= weight.unsqueeze(-1)
            out += part
            sums = both
        if wait:
            blocks = wait()
    return out, sums


def _backward(ring: _Ring, saved: Any, gradient: Any, plan: Plan | None, how: dict[str, Any], sinks: Any) -> Any:
    q, k, v, out, sums = saved
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    q_, gradient = q.to(exact).contiguous(), gradient.to(exact).contiguous()
    dots = (out * gradient).sum(-1).double()
    own, dq = ring.positions(ring.rank), torch.zeros_like(q_)
    blocks = [k.to(exact).contiguous(), v.to(exact).contiguous()]
    blocks += [torch.zeros_like(each) for each in blocks]  # their gradients go round with them, and come home
    for step in range(ring.ranks):
        of = (ring.rank - step) % ring.ranks
        if q_.shape[2] and blocks[0].shape[2]:
            made = _posenc.attend_backward(
                q_, blocks[0], blocks[1], gradient, plan, position_ids=own, key_position_ids=ring.positions(of),
                log_sums=sums, dots=dots, **how,
            )  # fmt: skip
            dq += made["q"]
            blocks[2] += made["k"]
            blocks[3] += made["v"]
        if ring.ranks > 1:
            blocks = ring.hand_on(blocks, of)()
    d_sinks = None
    if sinks is not None:
        weight = torch.where(sums == -torch.inf, 0.0, torch.exp(sinks.double()[:, None] - sums))
        d_sinks = -(weight * dots).sum((0, 2)).to(sinks.dtype)
    return dq.to(q.dtype), blocks[2].to(k.dtype), blocks[3].to(v.dtype), d_sinks


class _RingAttend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, sinks: Any, ring: Any, plan: Any, how: Any) -> Any:
        shown = None if sinks is None else sinks.detach()
        out, sums = _forward(ring, q.detach(), k.detach(), v.detach(), plan, how, shown)
        ctx.save_for_backward(q, k, v, out, sums, *(() if sinks is None else (sinks,)))
        ctx.ring, ctx.plan, ctx.how = ring, plan, how
        return out.to(q.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
        *saved, sinks = ctx.saved_tensors if len(ctx.saved_tensors) > 5 else (*ctx.saved_tensors, None)
        return (*_backward(ctx.ring, saved, gradient, ctx.plan, ctx.how, sinks), None, None, None)


def ring_attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    shares: Layout,
    plan: Plan | None = None,
    *,
    group: Any = None,
    whole: Positions | None = None,
    sink_logits: torch.Tensor | None = None,
    **mask: Any,
) -> torch.Tensor:
    """Attention of a rank's tokens over the keys of all: what posenc.torch.attention gives for the whole text, to rounding, with
    its gradients by q, k, v and sink logits (those of the rank's own queries: replicated parameters are summed over ranks by who
    trains). q [batch, heads, tokens of the rank, head_dim], k and v with the key heads, unrotated, on the CPU. `group`: a process
    group, a DeviceMesh of one dimension, or None. `whole`: positions of the whole text (packed texts, several axes), by default
    counted from 0. `mask`: causal, window, chunk, prefix, threads. The plan is compiled for the whole text's length. Every rank calls it
    alike, and raises the same posenc.Error where one of them cannot, or differs; a rank that dies is the group's timeout."""
    group = _group_of(group)
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    unknown = sorted(set(mask) - {"causal", "window", "chunk", "prefix", "threads"})
    error = _wrong(q, k, v, shares, rank, ranks) or (f"no such keyword as {unknown[0]}" if unknown else "")
    places = whole or _range(0, shares.tokens)
    if not error:
        try:  # all but the numbers, without a query
            _posenc.attend(
                q.detach()[:, :, :0], k.detach(), v.detach(), plan,
                sink_logits=None if sink_logits is None else sink_logits.detach(),
                position_ids=shares.positions(rank, places).slice(0, 0, 0), key_position_ids=shares.positions(rank, places), **mask,
            )  # fmt: skip
        except Error as bad:
            error = str(bad)
    text = plan.to_json() if plan is not None else ""
    means = f"plan {hashlib.sha256(text.encode()).hexdigest()[:12]}, mask {sorted(mask.items())}, {q.dtype}, "
    means += f"batch {q.shape[0]}, heads {q.shape[1] if q.dim() > 1 else 0} and {k.shape[1] if k.dim() > 1 else 0}, {shares.tokens} tokens"
    _agree(group, rank, error, means)
    made: torch.Tensor = _RingAttend.apply(q, k, v, sink_logits, _Ring(group, shares, places), plan, mask)
    return made
