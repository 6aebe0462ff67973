"""Attention over the ranks of torch.distributed: what posenc.distributed.attend is.

Each rank has its own tokens of a text (posenc.distributed.layout) at the positions that they have in it. Keys and values travel
unrotated and are met by posenc's own kernels; in a ring the parts merge in float (double for float64) by the logarithms of their sums
and are rounded once.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from . import _posenc
from ._posenc import Layout, Plan, Positions, layout_of_ranges
from .distributed_content import AttendContent, ContentCall, content_print, gathered_tables, of_queries, wrong_content
from .distributed_exchange import Circle, Exchange, Gathered, ToHeads, ToTokens, agree
from .errors import Error
from .positions import range as _range

if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    from .values import Value

    Strategy: TypeAlias = Literal["ring", "gather", "heads", "ring+heads"]

WHERE = "distributed.attend"
_strategies = ("ring", "gather", "heads", "ring+heads")
_masks = {"causal", "window", "chunk", "prefix", "threads"}
_dtypes = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """In which parts are merged and gradients summed."""
    return torch.float64 if dtype == torch.float64 else torch.float32


@dataclass
class _Text:
    """Queries at positions, blocks of keys that pass in a circle, and how they see each other."""

    circle: Circle
    own: Positions
    keys: list[Positions]  # of each rank of the circle
    keep: torch.Tensor | None  # uint8 [batch, 1, keys of the rank, 1]
    plan: Plan | None
    mask: dict[str, Any]

    def against(self, of: int, keep: torch.Tensor | None) -> dict[str, Any]:
        """The keywords of a call whose keys are those of rank `of`."""
        seen = {} if keep is None else {"keep": keep[:, 0, :, 0].contiguous()}
        return {"position_ids": self.own, "key_position_ids": self.keys[of], **self.mask, **seen}


def _forward(text: _Text, q: Any, k: Any, v: Any, sinks: Any) -> Any:
    circle, exact = text.circle, _exact(q.dtype)
    shape = (*q.shape[:3], v.shape[3])
    out, sums = torch.zeros(shape, dtype=exact), torch.full(q.shape[:3], -torch.inf, dtype=torch.float64)
    blocks = [k.contiguous(), v.contiguous()] + ([] if text.keep is None else [text.keep])
    for step in range(circle.ranks):
        of = (circle.rank - step) % circle.ranks
        wait = circle.hand_on(blocks, of) if step + 1 < circle.ranks else None
        if q.shape[2] and blocks[0].shape[2]:
            part, log_part = torch.empty(shape, dtype=exact), torch.empty(q.shape[:3], dtype=torch.float64)
            _posenc.attend(
                q, blocks[0], blocks[1], text.plan, sink_logits=sinks if step == 0 else None,  # they count once
                out=part, log_sums=log_part, **text.against(of, blocks[2] if len(blocks) > 2 else None),
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


def _backward(text: _Text, saved: Any, gradient: Any, sinks: Any) -> Any:
    q, k, v, out, sums = saved
    circle, exact = text.circle, _exact(q.dtype)
    q_, gradient = q.to(exact).contiguous(), gradient.to(exact).contiguous()
    dots = (out * gradient).sum(-1).double()
    dq = torch.zeros_like(q_)
    keys = [k.to(exact).contiguous(), v.to(exact).contiguous()]
    sent = [torch.zeros_like(each) for each in keys]  # their gradients go round with them, and come home
    keys += [] if text.keep is None else [text.keep]
    for step in range(circle.ranks):
        of = (circle.rank - step) % circle.ranks
        wait = circle.hand_on(keys, of) if step + 1 < circle.ranks else None
        if q_.shape[2] and keys[0].shape[2]:
            made = _posenc.attend_backward(
                q_, keys[0], keys[1], gradient, text.plan, log_sums=sums, dots=dots,
                **text.against(of, keys[2] if len(keys) > 2 else None),
            )  # fmt: skip
            dq += made["q"]
            sent[0] += made["k"]
            sent[1] += made["v"]
        if wait:
            keys = wait()
        sent = circle.hand_on(sent, of)()
    d_sinks = None
    if sinks is not None:
        weight = torch.where(sums == -torch.inf, 0.0, torch.exp(sinks.double()[:, None] - sums))
        d_sinks = -(weight * dots).sum((0, 2)).to(sinks.dtype)
    return dq.to(q.dtype), sent[0].to(k.dtype), sent[1].to(v.dtype), d_sinks


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, sinks: Any, text: _Text) -> Any:
        shown = None if sinks is None else sinks.detach()
        out, sums = _forward(text, q.detach(), k.detach(), v.detach(), shown)
        ctx.save_for_backward(q, k, v, out, sums, *(() if sinks is None else (sinks,)))
        ctx.text = text
        return out.to(q.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
        q, k, v, out, sums, *sinks = ctx.saved_tensors  # once: a checkpoint computes them anew
        return (*_backward(ctx.text, (q, k, v, out, sums), gradient, sinks[0] if sinks else None), None)


# --- who takes part -----------------------------------------------------------------------------------------------


class Ranks:
    """The groups of a strategy, and which rank of the layout this process is."""

    def __init__(self, how: Strategy, group: Any) -> None:
        if how not in _strategies:
            rule, cure = "how must be a strategy", f"one of: {', '.join(_strategies)}"
            raise Error(f"{WHERE}: {rule}, got {how!r}; {cure}", WHERE, rule, repr(how), cure)
        axes = group.ndim if hasattr(group, "get_group") else 1
        if axes != (2 if how == "ring+heads" else 1):
            rule = f"how={how!r} must have a " + (
                "DeviceMesh of two dimensions, the ring and the heads" if axes == 1 else "group of one dimension"
            )
            raise Error(f"{WHERE}: {rule}, got {axes}", WHERE, rule, str(axes))
        mesh = hasattr(group, "get_group")
        self.how: Strategy = how
        self.groups = [group.get_group(axis) for axis in range(axes)] if mesh else [group]
        self.sizes = [dist.get_world_size(each) for each in self.groups]
        self.ranks, self.rank = 1, 0
        for each, size in zip(self.groups, self.sizes, strict=True):  # the last dimension is the quickest
            self.ranks, self.rank = self.ranks * size, self.rank * size + dist.get_rank(each)
        self.ring = self.groups[0] if "ring" in how else None
        self.heads = self.groups[-1] if "heads" in how else None
        self.among = self.sizes[-1] if "heads" in how else 1  # that share heads out


@functools.lru_cache(64)
def _plan_print(plan: Plan | None) -> str:
    """All that a plan says, learned tables too, in 16 letters. Plans do not change."""
    text = hashlib.blake2b(digest_size=8)
    if plan is not None:
        text.update(plan.to_json().encode())
        for part in ("bias", "query", "key", "value"):
            table = plan.table(part)
            text.update(part.encode() if table is None else repr(table.shape).encode() + table.tobytes())
    return text.hexdigest()


def _places_print(shares: Layout, whole: Positions | None) -> str:
    """Who holds which token, and where the tokens stand."""
    text = hashlib.blake2b(digest_size=8)
    for rank in range(shares.ranks):
        text.update(shares.indices(rank).tobytes() + b"|")
    if whole is not None:
        text.update(whole.numpy().tobytes() + repr(whole.segments).encode())
    return text.hexdigest()


def _wrong(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, keep: torch.Tensor | None, shares: Layout, ranks: Ranks
) -> str:
    """What the shapes of a rank's own arguments lack; "" if nothing."""
    if shares.ranks != ranks.ranks:
        return f"the layout has {shares.ranks} ranks and the group {ranks.ranks}"
    own = shares.size(ranks.rank)
    for name, each in (("q", q), ("k", k), ("v", v)):
        if each.dim() != 4:
            return f"{name} must be [batch, heads, tokens, channels], got {tuple(each.shape)}"
        if each.shape[2] != own:
            return f"{name} must have the {own} tokens that the layout gives the rank, got {each.shape[2]}"
        if each.dtype not in _dtypes or each.dtype != q.dtype:
            return f"{name} must be of q's dtype, float64, float32, bfloat16 or float16, got {each.dtype}"
        if each.device.type != "cpu":
            return f"{name} must be on the CPU, got {each.device}"
    if keep is not None and tuple(keep.shape) != (k.shape[0], own):
        return f"keep must be [batch, own tokens], got {tuple(keep.shape)}"
    if k.shape[1] < ranks.among:
        return f"there must be a key head for each of the {ranks.among} ranks that share heads out, got {k.shape[1]}; take how='ring'"
    return ""


def _unseen(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan | None, own: Positions, whole: Positions, mask: dict[str, Any],
    keep: torch.Tensor | None, sinks: torch.Tensor | None, scheme: Value | None, tables: dict[str, torch.Tensor],
) -> str:  # fmt: skip
    """What the kernels refuse, told by a call without queries, or with one where a scheme has tables of them; "" if nothing."""
    if plan is not None and plan.valid is not None and plan.valid[1] is not None and whole.length > plan.valid[1]:
        return (
            f"the plan must hold for the whole text's length {whole.length}, got one for lengths up to {plan.valid[1]}"
        )
    some = int(scheme is not None)
    if some > q.shape[2]:
        return ""
    how = dict(mask, keep=keep, sink_logits=None if sinks is None else sinks.detach())
    if scheme is not None:
        here = {name: each.detach() for name, each in tables.items()}
        here |= {name: each[:, :, :some].contiguous() for name, each in here.items() if of_queries(name)}
        how["scheme"] = scheme.replace(**here)
    # Keys in order, as a scheme meets them in the whole text.
    keys = _range(0, k.shape[2]) if some else own
    queries = q.detach()[:, :, :some].contiguous()
    try:
        _posenc.attend(
            queries, k.detach(), v.detach(), plan, position_ids=own.slice(0, 0, some), key_position_ids=keys, **how
        )
    except (Error, TypeError) as bad:
        return str(bad)
    return ""


# --- strategies ---------------------------------------------------------------------------------------------------


def _ranges(places: torch.Tensor) -> list[tuple[int, int]]:
    """Runs of consecutive places, (first, last + 1)."""
    ends = torch.cat([(places.diff() != 1).nonzero().flatten() + 1, torch.tensor([len(places)])])
    starts = [0, *ends.tolist()[:-1]]
    return [
        (int(places[at]), int(places[end - 1]) + 1) for at, end in zip(starts, ends.tolist(), strict=True) if end > at
    ]


@functools.lru_cache(16)
def _order(places: tuple[bytes, ...]) -> torch.Tensor:
    """Where the tokens of several ranks, one rank's behind the other's, come in the order of the text."""
    held = [torch.frombuffer(bytearray(each), dtype=torch.int64) for each in places if each]
    return torch.argsort(torch.cat(held)) if held else torch.zeros(0, dtype=torch.int64)


def _exchange(ranks: Ranks, group: Any, shares: Layout, members: Sequence[int]) -> Exchange:
    """Among ranks of the layout that are those of a group."""
    order = _order(tuple(shares.indices(each).tobytes() for each in members))
    return Exchange(group, [shares.size(each) for each in members], order, WHERE)


def _by_heads(
    ranks: Ranks, q: Any, k: Any, v: Any, shares: Layout, whole: Positions, sinks: Any, text: _Text
) -> torch.Tensor:
    """The tokens of a row of ranks, each computing some of the heads: all of them, or a ring's part."""
    heads, kv_heads, rows = q.shape[1], k.shape[1], ranks.ranks // ranks.among
    row = ranks.rank // ranks.among
    members = [list(range(each * ranks.among, (each + 1) * ranks.among)) for each in range(rows)]
    exchange = _exchange(ranks, ranks.heads, shares, members[row])
    first, count = exchange.heads_of(heads, kv_heads)
    kv_first, kv_count = exchange.heads_of(kv_heads, kv_heads)
    if rows > 1:
        held = [torch.cat([torch.from_numpy(shares.indices(each)) for each in of]).sort().values for of in members]
        shares = layout_of_ranges([_ranges(each) for each in held])
        text.circle = Circle(ranks.ring, [shares.size(each) for each in range(rows)], WHERE)
        text.keys = [shares.positions(each, whole) for each in range(rows)]
    else:
        text.circle, text.keys = Circle(None, [shares.tokens], WHERE, alone=True), [whole]
    text.own = text.keys[row]
    if text.plan is not None:
        text.plan = text.plan.of_heads(first, count, kv_first, kv_count)
    if text.keep is not None:
        text.keep = exchange.gathered(text.keep)
    q, k, v = (ToHeads.apply(each, exchange, kv_heads) for each in (q, k, v))
    made = _Attend.apply(q, k, v, None if sinks is None else sinks[first : first + count], text)
    out: torch.Tensor = ToTokens.apply(made, exchange, heads, kv_heads)
    return out


def _by_gathering(
    ranks: Ranks,
    q: Any,
    k: Any,
    v: Any,
    shares: Layout,
    whole: Positions,
    sinks: Any,
    text: _Text,
    scheme: Any,
    tables: Any,
) -> torch.Tensor:
    exchange, exact = _exchange(ranks, ranks.groups[0], shares, range(ranks.ranks)), _exact(q.dtype)
    k, v = (Gathered.apply(each, exchange, exact) for each in (k, v))
    if text.keep is not None:
        text.keep = exchange.gathered(text.keep)
    if scheme is not None:
        call = ContentCall(scheme, list(tables), text.plan, text.own, whole, text.keep, text.mask)
        made = AttendContent.apply(q.to(exact), k, v, sinks, call, *gathered_tables(tables, exchange, exact))
    else:
        text.circle, text.keys = Circle(None, [shares.tokens], WHERE, alone=True), [whole]
        made = _Attend.apply(q.to(exact), k, v, sinks, text)
    out: torch.Tensor = made.to(q.dtype)
    return out


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    shares: Layout,
    plan: Plan | None = None,
    *,
    how: Strategy = "ring",
    group: Any = None,
    whole: Positions | None = None,
    keep: torch.Tensor | None = None,
    sink_logits: torch.Tensor | None = None,
    scheme: Value | None = None,
    tables: dict[str, torch.Tensor] | None = None,
    **mask: Any,
) -> torch.Tensor:
    """Attention of a rank's tokens over the keys of all: what posenc.torch.attention gives for the whole text, to rounding, with
    its gradients by q, k, v and sink logits (those of the rank's own queries: replicated parameters are summed over ranks by who
    trains). q [batch, heads, tokens of the rank, head_dim], k and v with the key heads, unrotated, on the CPU.

    how: "ring" (blocks of keys go round), "gather" (each has all keys), "heads" (each has the whole text of some heads; no more ranks
    than key heads) or "ring+heads" (a ring of rows of ranks that share heads out). group: a process group, a DeviceMesh of one
    dimension, or None: all ranks; of "ring+heads" a DeviceMesh of two, the ring's and the heads', whose ranks the layout counts row by
    row. whole: positions of the whole text (packed texts, several axes), by default counted from 0. keep [batch, tokens of the rank]:
    false hides a key (padding). mask: causal, window, chunk, prefix, threads. The plan is compiled for the whole text's length.
    scheme: one that reads the content, with how="gather" alone; tables: its tables of the rank's own tokens [batch, heads, tokens, …] by
    name ({"log_gates": …}), with gradients.

    Every rank calls it alike, and raises the same posenc.Error where one of them cannot, or differs; a rank that dies is an error on
    those that wait for it, within the group's timeout."""
    ranks, said = Ranks(how, group), tables or {}
    places = _range(0, shares.tokens) if whole is None else whole
    seen = None if keep is None else keep.to(torch.uint8).contiguous()
    own, error, means = _range(0, 0), "", ""
    try:
        error = _wrong(q, k, v, seen, shares, ranks) or wrong_content(scheme, said, how, q.shape[0], q.shape[2])
        unknown = sorted(set(mask) - _masks)
        error = f"no such keyword as {unknown[0]}" if unknown else error
        if not error:
            own = shares.positions(ranks.rank, places)
            error = _unseen(q, k, v, plan, own, places, mask, seen, sink_logits, scheme, said)
        means = f"how {how}, plan {_plan_print(plan)}, mask {sorted(mask.items())}, {q.dtype}, batch {q.shape[0]}, "
        means += f"heads {[tuple(each.shape[1::2]) for each in (q, k, v)]}, {shares.tokens} tokens, "
        means += f"layout and positions {_places_print(shares, whole)}, scheme {content_print(scheme)} with "
        means += f"{[(name, tuple(each.shape[:2]), tuple(each.shape[3:])) for name, each in said.items()]}, "
        means += f"{'no ' if keep is None else ''}padding, {'no ' if sink_logits is None else ''}sinks"
    except Exception as bad:  # whatever it is, the others wait for this rank
        error = error or f"{type(bad).__name__}: {bad}"
    device = q.device if isinstance(q, torch.Tensor) else torch.device("cpu")
    agree(ranks.groups, ranks.rank, error, means, WHERE, device)
    padding = None if seen is None else seen[:, None, :, None].contiguous()
    alone = Circle(None, [0], WHERE, alone=True)
    text = _Text(alone, own, [], padding, plan, mask)
    if how == "gather":
        return _by_gathering(ranks, q, k, v, shares, places, sink_logits, text, scheme, said)
    if ranks.among > 1 or how != "ring":
        return _by_heads(ranks, q, k, v, shares, places, sink_logits, text)
    text.circle = Circle(ranks.ring, [shares.size(each) for each in range(ranks.ranks)], WHERE)
    text.keys = [shares.positions(each, places) for each in range(ranks.ranks)]
    made: torch.Tensor = _Attend.apply(q, k, v, sink_logits, text)
    return made


class PosencAttention(torch.nn.Module):
    """attend as a module, for models that are written with it: it knows plan, strategy, group and mask, and is called with q, k, v
    and the layout of their text."""

    def __init__(self, plan: Plan | None = None, *, how: Strategy = "ring", group: Any = None, **mask: Any) -> None:
        super().__init__()
        self.plan, self.how, self.group, self.mask = plan, how, group, mask

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, shares: Layout, **more: Any) -> torch.Tensor:
        """attend(q, k, v, shares, …); more: whole, keep, sink_logits, and a mask for this call."""
        return attend(q, k, v, shares, self.plan, how=self.how, group=self.group, **{**self.mask, **more})

    def extra_repr(self) -> str:
        """What PyTorch prints of it."""
        return ", ".join([f"how={self.how!r}", *(f"{name}={value!r}" for name, value in self.mask.items())])
