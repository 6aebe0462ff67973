"""Schemes that read the content over ranks: each has the keys of all in the order of the text, since these schemes count or weigh those
between. posenc.distributed.attend(scheme=) is what is here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import _posenc
from ._posenc import Plan, Positions
from .distributed_exchange import Exchange, Gathered
from .values import Value


@dataclass
class ContentCall:
    """A scheme, the names of its tables of tokens, and how the rank's queries see the keys of all."""

    scheme: Value
    names: Sequence[str]
    plan: Plan | None
    own: Positions
    whole: Positions
    keep: torch.Tensor | None  # uint8 [batch, 1, all keys, 1]
    mask: dict[str, Any]

    def keywords(self, tables: Sequence[torch.Tensor]) -> dict[str, Any]:
        """Of a call of the kernels, with these tables."""
        scheme = self.scheme.replace(**dict(zip(self.names, (each.detach() for each in tables), strict=True)))
        keep = {} if self.keep is None else {"keep": self.keep[:, 0, :, 0].contiguous()}
        return {"scheme": scheme, "position_ids": self.own, "key_position_ids": self.whole, **self.mask, **keep}


class AttendContent(torch.autograd.Function):
    """posenc.attend with a scheme that reads the content, with gradients by q, k, v, sink logits and its tables of tokens."""

    @staticmethod
    def forward(ctx: Any, q: Any, k: Any, v: Any, sinks: Any, call: ContentCall, *tables: Any) -> Any:
        ctx.call, ctx.has_sinks = call, sinks is not None
        ctx.save_for_backward(q, k, v, *(() if sinks is None else (sinks,)), *tables)
        more = {} if sinks is None else {"sink_logits": sinks.detach()}
        out = q.new_empty(*q.shape[:3], v.shape[3])
        if q.shape[2]:
            q_, k_, v_ = (each.detach().contiguous() for each in (q, k, v))
            _posenc.attend(q_, k_, v_, call.plan, out=out, **call.keywords(tables), **more)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:  # type: ignore[override]
        q, k, v, *more = ctx.saved_tensors
        sinks, tables = (more[0], more[1:]) if ctx.has_sinks else (None, more)
        if not q.shape[2]:
            zeros = [None if each is None else torch.zeros_like(each) for each in (q, k, v, sinks, *tables)]
            return (*zeros[:4], None, *zeros[4:])
        names = [*ctx.call.names, *([] if sinks is None else ["sink_logits"])]
        keywords = ctx.call.keywords(tables) | ({} if sinks is None else {"sink_logits": sinks})
        q_, k_, v_, by = (each.contiguous() for each in (q, k, v, gradient))
        made = _posenc.attend_backward(q_, k_, v_, by, ctx.call.plan, parameters=names, **keywords)
        of_tables = [made[name].to(each.dtype).view_as(each) for name, each in zip(ctx.call.names, tables, strict=True)]
        of_sinks = None if sinks is None else made["sink_logits"].to(sinks.dtype)
        return (made["q"], made["k"], made["v"], of_sinks, None, *of_tables)


def content_print(scheme: Value | None) -> str:
    """What a scheme says, its own tables too, in 16 letters."""
    text = hashlib.blake2b(repr(scheme).encode(), digest_size=8)
    for name in scheme._value.tables if scheme is not None else ():
        table = scheme.table(name) if scheme is not None else None
        text.update(name.encode() if table is None else repr(table.shape).encode() + table.tobytes())
    return text.hexdigest()


def wrong_content(scheme: Value | None, tables: dict[str, torch.Tensor], how: str, batch: int, own: int) -> str:
    """What a scheme and its tables of tokens lack; "" if nothing."""
    if scheme is None:
        return "tables are those of a scheme= that reads the content" if tables else ""
    if how != "gather":
        return f"a scheme that reads the content must see keys in the order of the text, got how={how!r}; take how='gather'"
    for name, table in tables.items():
        if name not in scheme._value.tables:
            return f"{scheme.name} has no table {name}; there is {', '.join(scheme._value.tables) or 'none'}"
        if table.dim() not in (3, 4) or (table.shape[0], table.shape[2]) != (batch, own):
            return f"{name} must be [batch, heads, own tokens] or [batch, heads, own tokens, channels], got {tuple(table.shape)}"
    return ""


def of_queries(name: str) -> bool:
    """Whether a table is of queries and not of keys."""
    return name.endswith("queries")


def gathered_tables(tables: dict[str, torch.Tensor], exchange: Exchange, exact: torch.dtype) -> list[torch.Tensor]:
    """Tables of all tokens; those of queries stay the rank's own."""

    def all_of(name: str, table: torch.Tensor) -> torch.Tensor:
        if of_queries(name):
            return table.to(exact)
        wide = table if table.dim() == 4 else table.unsqueeze(-1)
        made: torch.Tensor = Gathered.apply(wide.contiguous(), exchange, exact)
        return made if table.dim() == 4 else made.squeeze(-1)

    return [all_of(name, table) for name, table in tables.items()]
