"""The interface of sglang.srt.mem_cache.fuzzy_match.rope_correction: a donor's keys and values copied to slots of their own, with the keys
at the positions where they are used again.

There keys are rotated back by rounded cosines, rounded to the pool's type, and rotated anew; one rotation serves all layers, positions
have one axis, and pools of 8 bits do not compute. Here they turn once, each layer by its own rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .._posenc import Plan
from ..keys import CodedKeys, rekey_
from .rotations import as_ids, moved, plan_of, refuse

__all__ = ["as_long_tensor", "copy_kv_with_rope_correction", "copy_mla_kv_with_rope_correction"]


def as_long_tensor(obj: Any, device: Any) -> torch.Tensor:
    """A list, an array or a tensor as positions or slots on that device; None is none of them."""
    return torch.as_tensor([] if obj is None else obj).to(device=device, dtype=torch.long)


class _Move:
    """From where to where, and by which plans in a layer."""

    def __init__(
        self, rotary: Any, old: torch.Tensor, new: torch.Tensor, lengths: tuple[int | None, int | None]
    ) -> None:
        self.old, self.new, self.lengths = old, new, lengths
        self.rotary = rotary
        self.known: dict[int, tuple[Plan, Plan]] = {}

    def plans(self, layer: int) -> tuple[Plan, Plan] | None:
        """None: the layer's keys do not rotate."""
        of_layers = isinstance(self.rotary, Sequence)
        rotary = self.rotary[layer] if of_layers else self.rotary
        if rotary is None:
            return None
        if id(rotary) not in self.known:
            before, after = (plan_of(rotary, length) for length in self.lengths)
            self.known[id(rotary)] = (before, after)
        return self.known[id(rotary)]

    def keys(self, layer: int, keys: torch.Tensor, of: Any = None) -> torch.Tensor:
        """[tokens, head, head_dim], anew. `of`: the type that codes of 8 bits stand for."""
        plans = self.plans(layer)
        if plans is None:
            return keys
        before, after = plans
        stored = of if keys.dtype == torch.uint8 and of is not None else keys.dtype
        if keys.element_size() > 1:
            return moved(keys, before, self.old, after, self.new)
        if stored != getattr(torch, "float8_e4m3fn", None):
            refuse("keys of 8 bits must be float8_e4m3fn", str(stored), "posenc.rekey_ takes int8 with its scales")
        # A layer's one scale is kept, and so is of no effect on what turns.
        codes = keys.cpu().clone()
        rekey_(CodedKeys(codes), before, as_ids(self.old.cpu()), after, as_ids(self.new.cpu()), layout="shd")
        return codes.to(keys.device)


def _masked(mask: Sequence[bool] | None, layer: int) -> bool:
    return bool(mask) and layer < len(mask or ()) and bool((mask or ())[layer])


def _checked(pool: Any) -> None:
    for name in ("index_k_with_scale_buffer", "index_k_buffer"):
        if getattr(pool, name, None) is not None:
            refuse(
                "a pool must hold keys and values alone",
                f"{type(pool).__name__} with an indexer's keys",
                "these have a rotation of their own: read the text again",
            )


def copy_kv_with_rope_correction(
    pool: Any,
    rotary_emb: Any,
    old_locs: torch.Tensor,
    new_locs: torch.Tensor,
    old_positions: torch.Tensor,
    new_positions: torch.Tensor,
    layer_recompute_mask: Sequence[bool] | None = None,
    *,
    layer_zero_mask: Sequence[bool] | None = None,
    apply_rotary_emb: Any = None,
    reverse_rotary_emb: Any = None,
    old_length: int | None = None,
    new_length: int | None = None,
) -> None:
    """Keys and values of old_locs into new_locs, in every layer, the keys turned from old_positions to new_positions.

    pool: with k_buffer and v_buffer [layer][slot, head, head_dim] and layer_num, of any float type or float8_e4m3fn (or uint8 with
    pool.dtype). rotary_emb: a rotary module, a posenc.Plan, or a list of them, one for each layer, None where it does not rotate.
    Positions: [tokens], or [axes, tokens] where rotary_emb has mrope_section. Layers of the mask are zeroed. old_length, new_length: of
    the donor's text and of this one, where the rotation depends on it (LongRoPE). apply_rotary_emb and reverse_rotary_emb, which tests
    of the original put in, are of no use here.
    Raises posenc.Error for positions that are not as many as slots, for other types, and for an indexer's keys.
    """
    _checked(pool)
    _as_many(old_locs, new_locs, old_positions, new_positions)
    move = _Move(rotary_emb, old_positions, new_positions, (old_length, new_length))
    mask = layer_zero_mask if layer_zero_mask is not None else layer_recompute_mask
    for layer in range(pool.layer_num):
        keys, values = pool.k_buffer[layer], pool.v_buffer[layer]
        if _masked(mask, layer):
            keys[new_locs] = 0
            values[new_locs] = 0
            continue
        copied = values[old_locs]
        keys[new_locs] = move.keys(layer, keys[old_locs], getattr(pool, "dtype", None))
        values[new_locs] = copied


def copy_mla_kv_with_rope_correction(
    pool: Any,
    attn_layers: Sequence[Any],
    rotary_emb: Any,
    old_locs: torch.Tensor,
    new_locs: torch.Tensor,
    old_positions: torch.Tensor,
    new_positions: torch.Tensor,
    layer_recompute_mask: Sequence[bool] | None = None,
    *,
    layer_zero_mask: Sequence[bool] | None = None,
    apply_rotary_emb: Any = None,
    reverse_rotary_emb: Any = None,
    old_length: int | None = None,
    new_length: int | None = None,
) -> None:
    """The same of a pool of latents (DeepSeek's), which hands out and takes [slot, 1, channels] of a layer by get_mla_kv_buffer and
    set_mla_kv_buffer, the part that rotates apart."""
    _checked(pool)
    _as_many(old_locs, new_locs, old_positions, new_positions)
    move = _Move(rotary_emb, old_positions, new_positions, (old_length, new_length))
    mask = layer_zero_mask if layer_zero_mask is not None else layer_recompute_mask
    for number, layer in enumerate(attn_layers):
        if _masked(mask, number):
            pool.kv_buffer[layer.layer_id - getattr(pool, "start_layer", 0)][new_locs] = 0
            continue
        latent, rotated = pool.get_mla_kv_buffer(layer, old_locs)
        pool.set_mla_kv_buffer(
            layer, new_locs, latent, move.keys(number, rotated.clone(), getattr(pool, "dtype", None))
        )


def _as_many(old_locs: Any, new_locs: Any, old: torch.Tensor, new: torch.Tensor) -> None:
    counts = [len(old_locs), len(new_locs), old.shape[-1], new.shape[-1]]
    if len(set(counts)) > 1:
        refuse("slots and positions must be as many, before and after", ", ".join(map(str, counts)))
