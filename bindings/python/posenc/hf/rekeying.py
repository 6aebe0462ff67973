"""A cache of transformers whose tokens stand elsewhere: cropped from the front, merged, shifted."""

from __future__ import annotations

import copy
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .. import _posenc, models
from .._posenc import Plan
from ..errors import Error
from ..torch_rotation import _ids
from .live import attention_modules, text_config
from .rotations import slice_plan

if TYPE_CHECKING:
    from ..types import PositionIds

WHERE = "posenc.hf.rekey"


def rekey(
    cache: Any,
    model: Any,
    *,
    keep: Sequence[int] | torch.Tensor | None = None,
    from_positions: PositionIds | Sequence[PositionIds | None] | None = None,
    to_positions: PositionIds | None = None,
) -> Any:
    """A cache of transformers (DynamicCache) with its tokens at other positions: a new one, those given stay as they are.

        posenc.hf.rekey(cache, model, keep=range(100, 512))        # crop from the front; [0, 1, 2, 3, *range(100, 512)] with sinks
        posenc.hf.rekey([system, document], model)                 # merge: the tokens of one behind those of the other
        posenc.hf.rekey(cache, model, to_positions=1000)           # shift: where the model's position_ids shall go on

    cache: [batch, kv_head, seq, head_dim] in each layer, of the same model; a list is joined along seq. keep: numbers of the
    tokens that stay, ascending; None: all. from_positions: where the tokens stand (from 0), of a list of caches a list; to_positions:
    where those that stay shall stand (from 0). Both as posenc.Plan.rotate takes ids, [axes, batch, seq] with pictures.
    A rotation that depends on the length of the text is taken of the length that the positions show.
    Keys equal those of a fresh prefill in the first layer; deeper ones hold besides what their tokens read of tokens before
    them, which may have left (docs/cache.md). On another device than the CPU keys come to it and go back.
    Raises posenc.Error where posenc.reuse(model) forbids it, with its reason; for caches with layers that are not dynamic,
    windows that no longer hold a token that is to stay, and keys of an indexer.
    """
    joined = isinstance(cache, (list, tuple))
    caches: list[Any] = list(cache) if joined else [cache]
    model = models.bare(model)
    said = models.read(model)
    _allowed(said)
    counts = [_checked(each).get_seq_length() for each in caches]
    given: Any = (from_positions or [None] * len(caches)) if joined else [from_positions]
    if len(given) != len(caches):
        _refuse(
            "from_positions must be a list, as cache is", f"{len(given)} for {len(caches)} caches", "None counts from 0"
        )
    stood = torch.cat(
        _on_axes([_ids(ids, torch.empty(count, 0), "") for ids, count in zip(given, counts, strict=True)]), -1
    )
    kept = torch.arange(sum(counts)) if keep is None else torch.as_tensor(keep, dtype=torch.int64)
    if kept.numel() and (kept.min() < 0 or kept.max() >= sum(counts) or (kept.diff() <= 0).any()):
        _refuse("keep must be ascending numbers of tokens", f"{kept[0]} to {kept[-1]} of {sum(counts)}")
    stand = _ids(to_positions, torch.empty(len(kept), 0), "")
    if stood.shape[-1] != sum(counts) or stand.shape[-1] != len(kept):
        _refuse(
            "positions must be as many as the tokens",
            f"{stood.shape[-1]} of {sum(counts)}, {stand.shape[-1]} of {len(kept)}",
        )
    made = copy.copy(caches[0])
    made.layers = [
        _moved([each.layers[layer] for each in caches], counts, kept, _Move(model, said, layer, stood, stand))
        for layer in range(len(made.layers))
    ]
    return made


def _refuse(rule: str, got: str, cure: str = "") -> None:
    raise Error(f"{WHERE}: {rule}, got {got}" + (f"; {cure}" if cure else ""), WHERE, rule, got, cure)


def _allowed(said) -> None:
    for group in models.reuse(said):
        if group.verdict != "exact":
            _refuse(
                "the keys of every layer must know their position by a rotation alone, or not at all",
                f"{said.name}, layer {group.layers[0]} ({group.why})",
                "read the text again; posenc.reuse(model) says it of each group of layers",
            )


def _checked(cache):
    layers = getattr(cache, "layers", None)
    if not layers:
        _refuse("cache must be a DynamicCache that holds tokens", type(cache).__name__, "pass the model's .cache")
    for number, layer in enumerate(layers):
        kind = type(layer).__name__
        if kind not in ("DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer"):
            _refuse(
                "layers must be dynamic, of keys and values alone",
                f"{kind} in layer {number}",
                "move keys with posenc.rekey; an indexer's have a rotation of their own",
            )
    return cache


def _on_axes(ids: list) -> list:
    """Ids that can stand one behind the other: of as many axes and sequences."""
    shape = max((each.shape[:-1] for each in ids), key=len)
    return [each.expand(*shape, each.shape[-1]) for each in ids]


class _Move:
    """From where to where the keys of a layer go, and by which rotations."""

    def __init__(self, model, said, layer: int, stood, stand) -> None:
        self.stood, self.stand = stood, stand
        self.before, self.after = (
            self._plan(said, layer, int(ids.max()) + 1 if ids.numel() else 0) for ids in (stood, stand)
        )
        own = attention_modules(model).get(layer)
        # A file with such a function puts neighbours in halves before it rotates them, and caches them so.
        self.halved = hasattr(sys.modules.get(type(own).__module__), "apply_rotary_pos_emb_interleave")
        self.latent = getattr(text_config(model.config), "kv_lora_rank", None)

    @staticmethod
    def _plan(said, layer: int, length: int) -> Plan:
        stack = next((each.stack for each in said.groups if layer in each.layers and each.stack != "vision"), "text")
        return said.plan(layer=layer, stack=stack, length=length)

    def keys_and_values(self, keys, values, tokens, at):
        """Those of a layer, whose tokens are of these numbers in the old cache, and of those in the new one."""
        if not (self.before.rotates or self.after.rotates):
            return keys, values
        # What is rotated of a latent cache stands where other caches have values.
        rotated = values if self._is_latent(keys, values) else keys
        moved = self._rekeyed(rotated, tokens, at, "key")
        if rotated is values:
            return keys, moved
        if "rotated_values" in self.before.features:
            values = self._rekeyed(values, tokens, at, "value")
        return moved, values

    def _is_latent(self, keys, values) -> bool:
        return keys.shape[-1] == self.latent and values.shape[-1] == self.before.rotary_dim and keys.shape[1] == 1

    def _rekeyed(self, x, tokens, at, side):
        before, after = (self._cached(plan, x.shape[-1]) for plan in (self.before, self.after))
        made = _posenc.rekey(x.detach().cpu(), before, self.stood[..., tokens], after, self.stand[..., at], side=side)
        return made.to(x.device)

    def _cached(self, plan: Plan, channels: int) -> Plan:
        plan = slice_plan(plan, channels)
        if not self.halved or plan.pairing != "interleaved":
            return plan
        return Plan.of_frequencies(plan.inv_freq, first_dim=plan.first_dim, attention_factor=plan.attention_factor)


def _moved(layers: list, counts: list[int], kept, move: _Move):
    """The layer of the new cache, of those at its place in the old ones."""
    made = copy.copy(layers[0])
    if not getattr(made, "is_initialized", False):
        return made
    # Of each token that some layer holds, its number; a window holds its last.
    firsts = torch.tensor([0, *counts]).cumsum(0)
    held = torch.cat(
        [torch.arange(end - layer.keys.shape[-2], end) for layer, end in zip(layers, firsts[1:].tolist(), strict=True)]
    )
    window = getattr(made, "sliding_window", None)
    at = torch.arange(len(kept))
    if window is not None:
        at = at[max(0, len(kept) - window + 1) :]
        made.cumulative_length = len(kept)
    tokens = kept[at]
    places = torch.searchsorted(held, tokens)
    if len(tokens) and (places.max() >= len(held) or not torch.equal(held[places], tokens)):
        _refuse(
            "a window must still hold the tokens that stay", f"a window of {window}", "keep its last tokens together"
        )
    keys, values = (
        torch.cat([getattr(layer, name) for layer in layers], -2).index_select(-2, places.to(made.keys.device))
        for name in ("keys", "values")
    )
    made.keys, made.values = move.keys_and_values(keys, values, tokens, at)
    return made
