"""Cached keys as engines keep them: in pages, in 8 bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import _posenc
from ._posenc import Plan
from .errors import Error

if TYPE_CHECKING:
    from .types import ArrayLike, PositionIds

__all__ = ["CodedKeys", "KeyPages", "rekey_"]


class CodedKeys:
    """Keys of 8 bits: a number is its code times the scale of its block of channels.

    codes: uint8, int8 or float8_e4m3fn, [batch, kv_head, seq, head_dim], or as rekey_'s layout names the axes. scales: [batch,
    kv_head, seq, block] in that order too, an extent of 1 where all share one; None: all are 1. block: channels that share a scale,
    0 for a head's. keep_scales: else each is made anew, so that the largest of its numbers has the largest code.
    code "q8_0" is llama.cpp's: bytes [batch, seq, kv_heads · head_dim / 32 · 34], with kv_heads and head_dim; their scales are within.
    """

    # Not a dataclass, which would take longer to import than all else here.

    def __init__(
        self,
        codes: ArrayLike,
        code: Literal["e4m3", "int8", "q8_0"] = "e4m3",
        scales: ArrayLike | None = None,
        block: int = 0,
        keep_scales: bool = True,
        kv_heads: int = 0,
        head_dim: int = 0,
    ) -> None:
        self.codes = codes
        self.code = code
        self.scales = scales
        self.block = block
        self.keep_scales = keep_scales
        self.kv_heads = kv_heads
        self.head_dim = head_dim


class KeyPages:
    """Keys of several sequences in pages of a pool.

    keys: [page, kv_head, token of the page, head_dim] (HND), or with layout="bshd" [page, token of the page, kv_head, head_dim]
    (NHD), floats or CodedKeys. table: [sequence][column] of page numbers, a block table as engines have it; what stands behind a
    sequence's last page is not read. tokens: of each sequence.
    """

    def __init__(self, keys: ArrayLike | CodedKeys, table: Any, tokens: Sequence[int]) -> None:
        self.keys = keys
        self.table = table
        self.tokens = tokens


def rekey_(
    keys: ArrayLike | CodedKeys | KeyPages,
    plan_from: Plan,
    from_positions: PositionIds | None,
    plan_to: Plan | None = None,
    to_positions: PositionIds | None = None,
    *,
    side: Literal["key", "value"] = "key",
    layout: str = "",
    threads: int = 0,
) -> None:
    """As rekey, in the memory of the keys: an array, CodedKeys, or KeyPages of either.

    Of pages positions are as many as the longest sequence has tokens, a row for each sequence or one for all. Codes are read as
    floats, turned and written once: beside keys that are turned exactly a number is off by half a step of its code.
    Raises posenc.Error besides for pages that the pool does not have or that two sequences share, for blocks that do not divide
    head_dim, for scales of another shape, and for scales anew that several tokens share.
    """
    going = (plan_from, from_positions, plan_to, to_positions)
    pages, tokens = (None, None)
    if isinstance(keys, KeyPages):
        pages, tokens = _numbers(keys.table), _numbers(keys.tokens)
        keys = keys.keys
        if not isinstance(keys, CodedKeys):
            _posenc.rekey_pages_(keys, pages, tokens, *going, side, layout, threads)
            return
    if not isinstance(keys, CodedKeys):
        _posenc.rekey_(keys, *going, side=side, layout=layout, threads=threads)
        return
    codes = _bytes(keys.codes)
    if keys.code == "q8_0":
        if pages is not None or layout:
            rule, cure = "rows of q8_0 are a cache's own, without pages or a layout", "give codes and scales apart"
            raise Error(f"rekey_: {rule}, got {layout or 'pages'}; {cure}", "rekey_", rule, layout or "pages", cure)
        _posenc.rekey_q8_0_(codes, keys.kv_heads, keys.head_dim, *going, side, threads)
        return
    _posenc.rekey_coded_(
        codes, keys.scales, keys.code, keys.block, keys.keep_scales, pages, tokens, *going, side, layout, threads
    )


def _numbers(given: Any) -> list[int]:
    """Of a table or a list, in a row."""
    given = given.tolist() if hasattr(given, "tolist") else given
    return [int(each) for row in given for each in (row if isinstance(row, (list, tuple, range)) else (row,))]


def _bytes(codes: Any) -> Any:
    """The same memory as a type that arrays of every library hand over: float8 they do not."""
    if "float8_e4m3fn" not in str(getattr(codes, "dtype", "")):
        return codes
    if hasattr(codes, "new_empty"):
        import torch

        return codes.view(torch.uint8)
    return codes.view("uint8")
