"""Who holds which tokens where a text is shared out among ranks (context parallelism), for those who have the ring already.

    from posenc.distributed import LoadBalancer, layout, position_ids
    shares = layout("zigzag", tokens, ranks)          # contiguous, zigzag, striped, by-document, balanced, auto
    ids = position_ids(shares, rank)                  # what the rank's layers take as position_ids, [1, tokens of the rank]
    balancer = LoadBalancer(shares, device="cuda")    # for torch's context_parallel
    out = attend(q, k, v, shares, plan, how="ring")   # of the rank's own tokens, over torch.distributed
    with context_parallel(model, how="heads") as shared: ...   # a model of transformers that trains so

A rank's tokens keep the positions that they have in the whole text. Ids that count from 0 on every rank are the commonest
mistake of context parallelism; `posenc.check_positions` and `posenc check-positions --layout` find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ._posenc import Layout, Positions, balance, layout_of_ranges
from ._posenc import layout as _layout
from .positions import packed
from .positions import range as _range

if TYPE_CHECKING:
    from .distributed_torch import PosencAttention, attend
    from .hf.sharing import context_parallel

__all__ = [
    "Layout", "LoadBalancer", "PosencAttention", "attend", "balance", "context_parallel", "layout", "layout_of_ranges", "position_ids", "whole_positions",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # torch and transformers are read when they are first needed.
    if name in ("PosencAttention", "attend"):
        from . import distributed_torch

        return getattr(distributed_torch, name)
    if name == "context_parallel":
        from .hf.sharing import context_parallel

        return context_parallel
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _bounds(tokens: int | Sequence[int]) -> list[int]:
    return [0, tokens] if isinstance(tokens, int) else [int(bound) for bound in tokens]


def layout(
    name: str,
    tokens: int | Sequence[int],
    ranks: int,
    *,
    block: int = 1,
    causal: bool = True,
    window: int = 0,
    chunk: int = 0,
    prefix: int = 0,
) -> Layout:
    """A layout by name. `tokens`: how many, or the cu_seqlens of packed texts. `block` is of "striped"; "auto" chooses by
    the mask: by document where there are several, contiguous where a window or chunk is no longer than a rank's share or
    where all see all, else zigzag."""
    return _layout(name, _bounds(tokens), ranks, block, causal, window, chunk, prefix)


def whole_positions(tokens: int | Sequence[int]) -> Positions:
    """Those of all tokens: counted from 0, in each of packed texts anew."""
    return _range(0, tokens) if isinstance(tokens, int) else packed(tokens)


def position_ids(shares: Layout, rank: int, whole: Positions | None = None) -> Any:
    """The position ids of a rank's tokens, int64 [1, tokens], or [axis, batch, tokens] of several axes: a part of `whole`,
    by default of one text counted from 0."""
    return shares.positions(rank, whole or _range(0, shares.tokens)).numpy()


class LoadBalancer:
    """torch's `_LoadBalancer` of a layout: `context_parallel` lays the text out by it before it cuts it into equal parts.
    A class of torch's own (torch.distributed.tensor.experimental) is made of it, so that importing this needs no torch."""

    def __new__(cls, shares: Layout, device: Any = None) -> Any:
        """Raises ValueError where the ranks' parts differ in size, since torch cuts equal ones."""
        import torch
        from torch.distributed.tensor.experimental._context_parallel._load_balancer import _LoadBalancer

        sizes = {shares.size(rank) for rank in range(shares.ranks)}
        if len(sizes) != 1:
            raise ValueError(f"torch gives each rank as many tokens as the others, and these have {sorted(sizes)}")
        places = torch.cat([torch.from_numpy(shares.indices(rank)) for rank in range(shares.ranks)])

        class OfLayout(_LoadBalancer):
            def _generate_indices(self, restore: bool = False) -> torch.Tensor:
                order = torch.argsort(places) if restore else places
                return order.to(device=device, dtype=torch.int).unsqueeze(0)

        return OfLayout()
