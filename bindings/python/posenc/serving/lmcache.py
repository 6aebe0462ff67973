"""The interface of lmcache.v1.compute.positional_encoding: rotations that put keys of CacheBlend's chunks where they are used again.

There a part of a head, a scaling and several axes are refused, and with them most models of today; here they are not.
"""

from __future__ import annotations

import logging
from typing import Any

import torch

from .. import _posenc, models, tools
from .._posenc import Plan
from ..errors import Error
from .rotations import as_ids, axes_of, moved, plan_of

__all__ = ["BasicReverseRope", "FusedRope", "get_fused_rope", "validate_rope_params"]

logger = logging.getLogger(__name__)


def _plan(
    head_size: int,
    rotary_dim: int,
    max_position: int,
    base: float,
    is_neox_style: bool,
    rope_scaling: dict[str, Any] | None,
    partial_rotary_factor: float,
    length: int | None,
) -> Plan:
    """As vLLM understands these words."""
    if partial_rotary_factor < 1 and rotary_dim == head_size:
        rotary_dim = int(rotary_dim * partial_rotary_factor)
    scaling = dict(rope_scaling or {})
    section, interleaved = scaling.pop("mrope_section", None), bool(scaling.pop("mrope_interleaved", False))
    kind = str(scaling.pop("type", None) or scaling.pop("rope_type", None) or "default")
    scaling.pop("rope_type", None)
    kind = {"mrope": "default", "deepseek_yarn": "yarn"}.get(kind, kind)
    config: dict[str, Any] = {
        "model_type": "llama", "hidden_size": rotary_dim, "num_attention_heads": 1, "num_key_value_heads": 1,
        "num_hidden_layers": 1, "head_dim": rotary_dim, "rope_theta": base, "max_position_embeddings": max_position,
    }  # fmt: skip
    if kind != "default":
        config["rope_scaling"] = {"rope_type": kind, **scaling}
        if "original_max_position_embeddings" in scaling:
            config["original_max_position_embeddings"] = scaling["original_max_position_embeddings"]
    said = tools.read_as(models.read(config), "vllm").plan(length=length or max_position)
    return Plan.of_frequencies(
        torch.tensor(axes_of(list(said.inv_freq), section, interleaved), dtype=torch.float64),
        pairing="halves" if is_neox_style else "interleaved",
        attention_factor=said.attention_factor,
    )


class BasicReverseRope:
    """Takes a rotation back: q and k [tokens, heads · head_size] as they were before `rope`, a module of vLLM or a posenc.Plan, rotated them."""

    def __init__(self, rope: Any, rotary_dim: int, is_neox_style: bool) -> None:
        self.rope, self.rotary_dim, self.is_neox_style = rope, rotary_dim, is_neox_style
        self.plan = plan_of(rope)
        self.head_size = getattr(rope, "head_size", rotary_dim)

    def reverse_encode(
        self, positions: torch.Tensor, q: torch.Tensor, k: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self._back(positions, q), self._back(positions, k)

    def _back(self, positions: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        heads = x.detach().cpu().reshape(x.shape[0], -1, self.head_size)
        made = self.plan.rotate_inverse(heads, position_ids=as_ids(positions.cpu()), layout="shd")
        return torch.as_tensor(made).reshape(x.shape).to(x.device)

    __call__ = reverse_encode


class FusedRope:
    """Moves keys [tokens, heads · head_size], or [tokens, heads, head_size], from old positions to new ones: in their memory, which it
    also returns as [tokens, heads · head_size]. Positions are [tokens], or [axes, tokens] of pictures."""

    def __init__(self, rope: Any, is_neox_style: bool = True, head_size: int | None = None) -> None:
        self.rope, self.is_neox_style = rope, is_neox_style
        self.plan = plan_of(rope)
        self.head_size = head_size or rope.head_size

    def fused_encode(self, old_positions: torch.Tensor, new_positions: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        keys = k.view(k.shape[0], -1, self.head_size)
        if keys.device.type == "cpu":
            old, new = (as_ids(each.cpu()) for each in (old_positions, new_positions))
            _posenc.rekey_(keys.detach(), self.plan, old, to_positions=new, layout="shd")
        else:
            keys.copy_(moved(keys, self.plan, old_positions, self.plan, new_positions))
        return keys.view(k.shape[0], -1)

    __call__ = fused_encode


def validate_rope_params(
    head_size: int,
    rotary_dim: int,
    max_position: int,
    base: float,
    is_neox_style: bool = True,
    rope_scaling: dict[str, Any] | None = None,
    dtype: torch.dtype | None = None,
    partial_rotary_factor: float = 1.0,
) -> bool:
    """Whether get_fused_rope has a rotation for these."""
    try:
        _plan(head_size, rotary_dim, max_position, base, is_neox_style, rope_scaling, partial_rotary_factor, None)
    except Error as reason:
        logger.error("%s", reason)
        return False
    return True


def get_fused_rope(
    head_size: int,
    rotary_dim: int,
    max_position: int,
    base: float,
    is_neox_style: bool = True,
    rope_scaling: dict[str, Any] | None = None,
    dtype: torch.dtype | None = None,
    partial_rotary_factor: float = 1.0,
    *,
    length: int | None = None,
) -> FusedRope | None:
    """What moves keys of such a rotation, in the words of vLLM's get_rope; None, with the reason in the log, where there is none.

    length: of the text, where the rotation depends on it (LongRoPE); else max_position. Any dtype: it is that of the keys.
    """
    if not validate_rope_params(
        head_size, rotary_dim, max_position, base, is_neox_style, rope_scaling, dtype, partial_rotary_factor
    ):
        logger.warning("these keys cannot be used again at other positions")
        return None
    plan = _plan(head_size, rotary_dim, max_position, base, is_neox_style, rope_scaling, partial_rotary_factor, length)
    return FusedRope(plan, is_neox_style, head_size)
