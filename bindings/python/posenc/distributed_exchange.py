"""What ranks of torch.distributed send each other: one error of all, blocks in a circle, heads for tokens, keys of all.

The calls are point-to-point and all_to_all_single, which gloo and NCCL both have, so that nothing here asks for the backend. What
fails within them, since a rank is gone or does not come, is one posenc.Error on each rank that waits for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist

from .errors import Error


@contextmanager
def said_of_ranks(what: str) -> Iterator[None]:
    """An error of the transport as one that says what it means."""
    try:
        yield
    except Error:
        raise
    except RuntimeError as lost:
        rule = "every rank must answer within the group's timeout"
        cure = "a rank died, stopped, or did not make the same calls: look at the logs of the others"
        value = str(lost).strip().splitlines()[0]
        raise Error(f"{what}: {rule}, got {value}; {cure}", what, rule, value, cure) from lost


def _digest(error: str, means: str) -> list[int]:
    """The first number says whether there is an error, and the others what the rank means."""
    text = hashlib.blake2b(means.encode(), digest_size=32).digest()
    return [int(bool(error)), *(int.from_bytes(text[at : at + 8], "little", signed=True) for at in range(0, 32, 8))]


def agree(groups: Sequence[Any], rank: int, error: str, means: str, what: str, device: torch.device) -> None:
    """One error on every rank, before anything is sent, where a rank cannot go on or means something else than the others.

    groups: of one mesh dimension each, so that what a row of ranks knows comes to all rows. Each sends 40 bytes where all is
    well, and sentences only where it is not."""
    error = error and f"rank {rank}: {error}"
    for group in groups:
        with said_of_ranks(what):
            mine = torch.tensor(_digest(error, means), device=device)
            told = [torch.empty_like(mine) for _ in range(dist.get_world_size(group))]
            dist.all_gather(told, mine, group=group)
            numbers = torch.stack(told)
            if not numbers[:, 0].any() and bool((numbers == numbers[0]).all()):
                continue
            said: list[tuple[int, str, str]] = [(0, "", "")] * len(told)
            dist.all_gather_object(said, (rank, error, means), group=group)
        errors = [each for _, each, _ in said if each]
        others = [each for each in said if each[2] != said[0][2]]
        if errors:
            error = errors[0]
        elif others:
            error = (
                f"ranks must agree, got rank {others[0][0]} with {others[0][2]}, rank {said[0][0]} with {said[0][2]}; "
                "give all the same plan, mask, dtype and layout"
            )
    if error:
        raise Error(f"{what}: {error}", what)


class Circle:
    """The ranks of a group one behind the other; without a group a rank by itself. sizes: tokens that each of them holds."""

    def __init__(self, group: Any, sizes: Sequence[int], what: str, alone: bool = False) -> None:
        self.group, self.sizes, self.what = group, sizes, what
        self.rank: int = 0 if alone else dist.get_rank(group)
        self.ranks: int = 1 if alone else dist.get_world_size(group)
        if not alone:
            peer: Callable[[int], int] = (lambda r: r) if group is None else (lambda r: dist.get_global_rank(group, r))
            self.next, self.previous = peer((self.rank + 1) % self.ranks), peer((self.rank - 1) % self.ranks)

    def hand_on(self, blocks: list[torch.Tensor], of: int) -> Callable[[], list[torch.Tensor]]:
        """Sends blocks [batch, heads, tokens, channels] of rank `of` to the next rank, and receives those of the previous, which
        are of the rank before `of`: what waits for them."""
        if self.ranks == 1:
            return lambda: blocks
        tokens = self.sizes[(of - 1) % self.ranks]
        received = [each.new_empty(*each.shape[:2], tokens, each.shape[3]) for each in blocks]
        with said_of_ranks(self.what):
            calls = [dist.P2POp(dist.isend, each, self.next, self.group) for each in blocks if each.numel()]
            calls += [dist.P2POp(dist.irecv, each, self.previous, self.group) for each in received if each.numel()]
            work = dist.batch_isend_irecv(calls) if calls else []

        def wait() -> list[torch.Tensor]:
            with said_of_ranks(self.what):
                for each in work:
                    each.wait()
            return received

        return wait


class Exchange:
    """Tokens for heads among the ranks of a group, and back; or all tokens for each.

    own: tokens of each rank. order: where the tokens of all ranks, one rank's behind the other's, stand in what is made of them."""

    def __init__(self, group: Any, sizes: Sequence[int], order: torch.Tensor, what: str) -> None:
        self.group, self.sizes, self.order, self.what = group, list(sizes), order, what
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.back = torch.argsort(order)

    def heads_of(self, heads: int, kv_heads: int, rank: int | None = None) -> tuple[int, int]:
        """(first, count) of the heads that a rank computes, as many query heads to each key head."""
        at = self.rank if rank is None else rank
        first, last = (kv_heads * each // self.ranks for each in (at, at + 1))
        each = heads // kv_heads
        return first * each, (last - first) * each

    def _sent(self, parts: list[torch.Tensor], shapes: Sequence[tuple[int, ...]]) -> list[torch.Tensor]:
        """A part to each rank, one of these shapes from each."""
        counts = [torch.Size(shape).numel() for shape in shapes]
        given = torch.cat([each.reshape(-1) for each in parts])
        taken = given.new_empty(sum(counts))
        with said_of_ranks(self.what):
            dist.all_to_all_single(taken, given, counts, [each.numel() for each in parts], group=self.group)
        return [each.view(shape) for each, shape in zip(taken.split(counts), shapes, strict=True)]

    def to_heads(self, x: torch.Tensor, kv_heads: int) -> torch.Tensor:
        """[batch, heads, own tokens, channels] to [batch, own heads, all tokens, channels]."""
        shares = [self.heads_of(x.shape[1], kv_heads, rank) for rank in range(self.ranks)]
        own = shares[self.rank][1]
        parts = [x[:, first : first + count] for first, count in shares]
        shapes = [(x.shape[0], own, size, x.shape[3]) for size in self.sizes]
        return torch.cat(self._sent(parts, shapes), 2)[:, :, self.order]

    def to_tokens(self, x: torch.Tensor, heads: int, kv_heads: int) -> torch.Tensor:
        """And back, of `heads` heads in all."""
        shares = [self.heads_of(heads, kv_heads, rank)[1] for rank in range(self.ranks)]
        parts = list(x[:, :, self.back].split(self.sizes, 2))
        shapes = [(x.shape[0], count, self.sizes[self.rank], x.shape[3]) for count in shares]
        return torch.cat(self._sent(parts, shapes), 1)

    def gathered(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, heads, own tokens, channels] to [batch, heads, all tokens, channels]."""
        shapes = [(*x.shape[:2], size, x.shape[3]) for size in self.sizes]
        return torch.cat(self._sent([x] * self.ranks, shapes), 2)[:, :, self.order]

    def summed(self, x: torch.Tensor) -> torch.Tensor:
        """The transpose: of what all ranks have for all tokens, the sum for one's own, in the order of the ranks."""
        parts = list(x[:, :, self.back].split(self.sizes, 2))
        taken = self._sent(parts, [parts[self.rank].shape] * self.ranks)
        return torch.stack(taken).sum(0)


class ToHeads(torch.autograd.Function):
    """Exchange.to_heads with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: Exchange, kv_heads: int) -> torch.Tensor:
        ctx.how = exchange, x.shape[1], kv_heads
        return exchange.to_heads(x, kv_heads)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        exchange, heads, kv_heads = ctx.how
        return exchange.to_tokens(gradient, heads, kv_heads), None, None


class ToTokens(torch.autograd.Function):
    """Exchange.to_tokens with its gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: Exchange, heads: int, kv_heads: int) -> torch.Tensor:
        ctx.how = exchange, kv_heads
        return exchange.to_tokens(x, heads, kv_heads)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        exchange, kv_heads = ctx.how
        return exchange.to_heads(gradient, kv_heads), None, None, None


class Gathered(torch.autograd.Function):
    """Exchange.gathered in `exact`, in which the gradients of all ranks are summed before they are rounded."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, exchange: Exchange, exact: torch.dtype) -> torch.Tensor:
        ctx.how = exchange, x.dtype
        return exchange.gathered(x).to(exact)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # type: ignore[override]
        exchange, dtype = ctx.how
        return exchange.summed(gradient).to(dtype), None, None
