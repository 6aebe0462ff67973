"""Attention over the ranks of torch.distributed: what posenc.distributed.attend is.

Each rank has its own tokens of a text (posenc.distributed.layout) at the positions that they have in it. Keys and values travel
unrotated and are met by posenc's own kernels, or by FlexAttention on other devices than the CPU; in a ring the parts merge in float
(double for float64) by the logarithms of their sums and are rounded once.
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
from .distributed_tokens import Tokens
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


class _Kernels:
    """Blocks of keys met by posenc's own kernels: in exact's precision, with the keywords that a call of them takes."""

    def __init__(self, plan: Plan | None, own: Tokens, mask: dict[str, Any]) -> None:
        self.plan, self.own, self.mask = plan, own, mask

    def _against(self, of: Tokens, keep: torch.Tensor | None) -> dict[str, Any]:
        seen = {} if keep is None else {"keep": keep.contiguous()}
        return {"position_ids": self.own.at, "key_position_ids": of.at, **self.mask, **seen}

    def forward(self, at: int, of: Tokens, q: Any, k: Any, v: Any, keep: torch.Tensor | None) -> Any:
        """What the queries take from a block of keys, and the logarithms of the sums of its weights."""
        out = torch.empty(*q.shape[:3], v.shape[3], dtype=_exact(q.dtype))
        sums = torch.empty(q.shape[:3], dtype=torch.float64)
        # In float, as the gradients are computed, which meet these sums.
        against = self._against(of, keep)
        _posenc.attend(q, k, v, self.plan, out=out, log_sums=sums, allow_bfloat16_products=False, **against)
        return out, sums

    def backward(
        self, at: int, of: Tokens, q: Any, k: Any, v: Any, keep: Any, gradient: Any, sums: Any, dots: Any
    ) -> Any:
        """Gradients by q, k and v of that part of attention. sums: of all blocks; dots: out · gradient."""
        made = _posenc.attend_backward(
            q, k, v, gradient, self.plan, log_sums=sums, dots=dots, **self._against(of, keep)
        )  # fmt: skip
        return made["q"], made["k"], made["v"]


@dataclass
class _Text:
    """Queries, blocks of keys that pass in a circle, and what attends to them."""

    circle: Circle
    own: Tokens
    keys: list[Tokens]  # of each rank of the circle
    keep: torch.Tensor | None  # uint8 [batch, 1, keys of the rank, 1]
    plan: Plan | None
    mask: dict[str, Any]
    length: int  # positions of the whole text end below it
    flex: bool
    compiled: bool

    @functools.cached_property
    def attention(self) -> Any:
        """What meets one block of keys after the other."""
        if not self.flex:
            return _Kernels(self.plan, self.own, self.mask)
        from .distributed_flex import FlexBlocks

        return FlexBlocks(self.plan, self.own, self.length, self.mask, self.compiled)


def _kept(blocks: Sequence[torch.Tensor]) -> torch.Tensor | None:
    return blocks[2][:, 0, :, 0] if len(blocks) > 2 else None


def _forward(text: _Text, q: Any, k: Any, v: Any, sinks: Any) -> Any:
    circle, exact, attention = text.circle, _exact(q.dtype), text.attention
    out = torch.zeros(*q.shape[:3], v.shape[3], dtype=exact, device=q.device)
    # A sink is a key whose value is zero, which is met first.
    sums = torch.full(q.shape[:3], -torch.inf, dtype=torch.float64, device=q.device)
    if sinks is not None:
        sums = sinks.double()[:, None].expand(sums.shape)
    blocks = [k.contiguous(), v.contiguous()] + ([] if text.keep is None else [text.keep])
    for step in range(circle.ranks):
        of = (circle.rank - step) % circle.ranks
        wait = circle.hand_on(blocks, of) if step + 1 < circle.ranks else None
        if q.shape[2] and blocks[0].shape[2]:
            part, log_part = attention.forward(of, text.keys[of], q, blocks[0], blocks[1], _kept(blocks))
            both = torch.logaddexp(sums, log_part)
            shares = (torch.where(both == -torch.inf, 0.0, torch.exp(each - both)) for each in (sums, log_part))
            ours, its = (each.to(exact).unsqueeze(-1) for each in shares)
            out = out * ours + part.to(exact) * its
            sums = both
        if wait:
            blocks = wait()
    return out, sums


def _backward(text: _Text, saved: Any, gradient: Any, sinks: Any) -> Any:
    q, k, v, out, sums = saved
    circle, exact, attention = text.circle, _exact(q.dtype), text.attention
    gradient = gradient.to(exact).contiguous()
    dots = (out * gradient).sum(-1).double()
    # FlexAttention takes the dtype that its kernels were made for, and gradients are summed in the exact one.
    met = q.dtype if text.flex else exact
    q_, dq = q.to(met).contiguous(), torch.zeros(q.shape, dtype=exact, device=q.device)
    keys = [k.to(met).contiguous(), v.to(met).contiguous()]
    sent = [torch.zeros_like(each, dtype=exact) for each in keys]  # their gradients go round with them, and come home
    keys += [] if text.keep is None else [text.keep]
    for step in range(circle.ranks):
        of = (circle.rank - step) % circle.ranks
        wait = circle.hand_on(keys, of) if step + 1 < circle.ranks else None
        if q_.shape[2] and keys[0].shape[2]:
            made = attention.backward(of, text.keys[of], q_, keys[0], keys[1], _kept(keys), gradient, sums, dots)
            for total, part in zip((dq, *sent), made, strict=True):
                total += part
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
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    keep: torch.Tensor | None,
    shares: Layout,
    ranks: Ranks,
    flex: bool,
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
        if each.device != q.device:
            return f"{name} must be on q's device {q.device}, got {each.device}"
    if q.device.type != "cpu" and not flex:
        return f"posenc's kernels must have tensors of the CPU, got {q.device}; take by='flex'"
    if keep is not None and tuple(keep.shape) != (k.shape[0], own):
        return f"keep must be [batch, own tokens], got {tuple(keep.shape)}"
    if k.shape[1] < ranks.among:
        return f"there must be a key head for each of the {ranks.among} ranks that share heads out, got {k.shape[1]}; take how='ring'"
    return ""


def _by_flex(by: str | None, q: torch.Tensor) -> bool:
    if by not in (None, "kernels", "flex"):
        rule, cure = "by must be None, 'kernels' or 'flex'", "leave it out, and the device decides"
        raise Error(f"{rule}, got {by!r}; {cure}", WHERE, rule, repr(by), cure)
    return by == "flex" or (by is None and q.device.type != "cpu")


def _beyond(plan: Plan | None, whole: Positions) -> str:
    """Whether a text is longer than its plan was made for."""
    if plan is None or plan.valid is None or plan.valid[1] is None or whole.length <= plan.valid[1]:
        return ""
    return f"the plan must hold for the whole text's length {whole.length}, got one for lengths up to {plan.valid[1]}"


def _unseen_by_flex(q: torch.Tensor, k: torch.Tensor, plan: Plan | None, whole: Positions, scheme: Value | None) -> str:
    """What FlexAttention does not say; "" if nothing."""
    from .flex import score_mod

    if scheme is not None:
        return f"FlexAttention takes no scheme that reads the content, got {scheme.name}; take by='kernels' with tensors of the CPU"
    if plan is None:
        return ""
    try:
        plan.check("posenc.flex.flex_attention")
        score_mod(plan, q.shape[1], 1, q.device, q=q.detach()[:, :, :0], k=k.detach()[:, :, :0])
    except Error as bad:
        return str(bad)
    told = plan.to_dict()
    if whole.axes > 1 and (told["bias"] or told["relative"]):
        return f"distances must be of one axis for FlexAttention, got {whole.axes} axes; take by='kernels' with tensors of the CPU"
    return ""


def _unseen(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan | None, own: Positions, mask: dict[str, Any],
    keep: torch.Tensor | None, sinks: torch.Tensor | None, scheme: Value | None, tables: dict[str, torch.Tensor],
) -> str:  # fmt: skip
    """What the kernels refuse, told by a call without queries, or with one where a scheme has tables of them; "" if nothing."""
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
        text.keys = [Tokens.of_rank(shares, each, whole) for each in range(rows)]
    else:
        text.circle, text.keys = Circle(None, [shares.tokens], WHERE, alone=True), [Tokens.of_all(shares, whole)]
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
        call = ContentCall(scheme, list(tables), text.plan, text.own.at, whole, text.keep, text.mask)
        made = AttendContent.apply(q.to(exact), k, v, sinks, call, *gathered_tables(tables, exchange, exact))
    else:
        text.circle, text.keys = Circle(None, [shares.tokens], WHERE, alone=True), [Tokens.of_all(shares, whole)]
        # Gradients of keys are summed over ranks in `exact`; FlexAttention meets what its kernels were made for.
        met = q.dtype if text.flex else exact
        made = _Attend.apply(q.to(met), k.to(met), v.to(met), sinks, text)
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
    by: Literal["kernels", "flex"] | None = None,
    compiled: bool | None = None,
    **mask: Any,
) -> torch.Tensor:
    """Attention of a rank's tokens over the keys of all: what posenc.torch.attention gives for the whole text, to rounding, with
    its gradients by q, k, v and sink logits (those of the rank's own queries: replicated parameters are summed over ranks by who
    trains). q [batch, heads, tokens of the rank, head_dim], k and v with the key heads, unrotated, on one device.

    how: "ring" (blocks of keys go round), "gather" (each has all keys), "heads" (each has the whole text of some heads; no more ranks
    than key heads) or "ring+heads" (a ring of rows of ranks that share heads out). group: a process group, a DeviceMesh of one
    dimension, or None: all ranks; of "ring+heads" a DeviceMesh of two, the ring's and the heads', whose ranks the layout counts row by
    row. whole: positions of the whole text (packed texts, several axes), by default counted from 0. keep [batch, tokens of the rank]:
    false hides a key (padding). mask: causal, window, chunk, prefix, threads. The plan is compiled for the whole text's length.
    scheme: one that reads the content, with how="gather" alone; tables: its tables of the rank's own tokens [batch, heads, tokens, …] by
    name ({"log_gates": …}), with gradients, on the CPU.

    by: "kernels" are posenc's, for tensors of the CPU; "flex" is torch's FlexAttention with the plan as its score_mod, for any device and
    what `score_mod` says of a plan, where parts and their gradients are as exact as the tensors' dtype. None: as the device asks.
    compiled: FlexAttention by torch.compile, as it is meant to run; None: on other devices than the CPU.

    Every rank calls it alike, and raises the same posenc.Error where one of them cannot, or differs; a rank that dies is an error on
    those that wait for it, within the group's timeout."""
    ranks, said = Ranks(how, group), tables or {}
    places = _range(0, shares.tokens) if whole is None else whole
    seen = None if keep is None else keep.to(torch.uint8).contiguous()
    own, error, means, flex = Tokens.none(), "", "", False
    try:
        flex = _by_flex(by, q)
        error = _wrong(q, k, v, seen, shares, ranks, flex) or wrong_content(scheme, said, how, q.shape[0], q.shape[2])
        unknown = sorted(set(mask) - _masks)
        error = f"no such keyword as {unknown[0]}" if unknown else error
        if not error:
            own = Tokens.of_rank(shares, ranks.rank, places)
            error = _beyond(plan, places)
        if not error and flex:
            error = _unseen_by_flex(q, k, plan, places, scheme)
        elif not error:
            error = _unseen(q, k, v, plan, own.at, mask, seen, sink_logits, scheme, said)
        means = f"how {how} by {'flex' if flex else 'kernels'}, plan {_plan_print(plan)}, mask {sorted(mask.items())}, {q.dtype}, batch {q.shape[0]}, "
        means += f"heads {[tuple(each.shape[1::2]) for each in (q, k, v)]}, {shares.tokens} tokens, "
        means += f"layout and positions {_places_print(shares, whole)}, scheme {content_print(scheme)} with "
        means += f"{[(name, tuple(each.shape[:2]), tuple(each.shape[3:])) for name, each in said.items()]}, "
        means += f"{'no ' if keep is None else ''}padding, {'no ' if sink_logits is None else ''}sinks"
    except Exception as bad:  # whatever it is, the others wait for this rank
        error = error or (str(bad) if isinstance(bad, Error) else f"{type(bad).__name__}: {bad}")
    fast = compiled if compiled is not None else isinstance(q, torch.Tensor) and q.device.type != "cpu"
    device = q.device if isinstance(q, torch.Tensor) else torch.device("cpu")
    agree(ranks.groups, ranks.rank, error, means, WHERE, device)
    padding = None if seen is None else seen[:, None, :, None].contiguous()
    alone = Circle(None, [0], WHERE, alone=True)
    text = _Text(alone, own, [], padding, plan, mask, max(places.length, shares.tokens), flex, fast)
    if how == "gather":
        return _by_gathering(ranks, q, k, v, shares, places, sink_logits, text, scheme, said)
    if ranks.among > 1 or how != "ring":
        return _by_heads(ranks, q, k, v, shares, places, sink_logits, text)
    text.circle = Circle(ranks.ring, [shares.size(each) for each in range(ranks.ranks)], WHERE)
    text.keys = [Tokens.of_rank(shares, each, places) for each in range(ranks.ranks)]
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
