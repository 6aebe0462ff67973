"""posenc within PyTorch: rotation and attention with gradients, and a rotary module for transformers' models.

    rotated = posenc.torch.rotate(plan, q, position_ids)       # autograd, torch.compile (from PyTorch 2.4 on), gradcheck
    out = posenc.torch.attention(q, k, v, plan)                # any plan, its backward pass too
    model.model.rotary_emb = posenc.torch.RotaryEmbedding(model.config)   # exact angles, on any device

The kernels run on the CPU, and on CUDA devices where posenc-cuda is installed. Elsewhere cos and sin are formed in float64 on the
device, and torch does the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from . import _posenc, models
from ._posenc import Plan
from .errors import Error
from .flex import flex_attention, score_mod
from .torch_rotation import (
    Rotation,
    _cos_sin_of,
    _laid_out,
    _rotated_elsewhere,  # noqa: F401  # its tests, on a machine without other devices
    cos_sin,
    derivative_of,
    frequencies,
    function_of,
    rotate,
    rotate_,
    rotate_append_,
)

if TYPE_CHECKING:
    from .types import ModelSource

__all__ = [
    "RotaryEmbedding", "Rotation", "attention", "cos_sin", "flex_attention", "frequencies", "rotate", "rotate_", "rotate_append_",
    "score_mod",
]  # fmt: skip

# --- attention --------------------------------------------------------------------------------------------------


def _attend(q, k, v, plan, how):
    return _posenc.attend(q.detach(), k.detach(), v.detach(), plan, **how)


def _attended(ctx, inputs, output):
    q, k, v, ctx.plan, ctx.how = inputs
    ctx.save_for_backward(q, k, v)


def _attend_backward(q, k, v, gradient, plan, how):
    made = _posenc.attend_backward(q.detach(), k.detach(), v.detach(), gradient.detach(), plan, **how)
    return made["q"], made["k"], made["v"]


_AttentionBackward = derivative_of("posenc.torch.attention", _attend_backward)
_Attention = function_of(
    _attend,
    _attended,
    lambda ctx, gradient: (*_AttentionBackward.apply(*ctx.saved_tensors, gradient, ctx.plan, ctx.how), None, None),
)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan | None = None, **how: Any) -> torch.Tensor:
    """softmax(logits) v for any plan, with its gradients by q, k and v. q [batch, heads, queries, head_dim] and k
    [batch, kv_heads, keys, head_dim] come unrotated: rotation, bias and logit scales are the plan's. The keywords are
    those of posenc.attend: position_ids, key_position_ids, causal, window, chunk, prefix, keep, keys, sink_logits, layout,
    threads."""
    made: torch.Tensor = _Attention.apply(q, k, v, plan, how)
    return made


# --- a module of transformers ---------------------------------------------------------------------------------------


class RotaryEmbedding(torch.nn.Module):
    """A drop-in for a model's rotary module: forward(x, position_ids, layer_type=None) -> (cos, sin) in x's dtype.

    config: transformers' configuration, or whatever posenc.model takes. layer_type, or the number of a layer: for a module that
    serves one kind of layers and is not told which.
    style: how the model's own code takes the numbers of pairs, "cat" (twice, one after the other), "repeat" (each twice),
    "once", "complex" (once, as cos + i sin), or "axes" (as "cat", for each axis of the ids by itself: M-RoPE of transformers 4).
    Frequencies are kept in float64 and never cast with the model. A scaling that depends on the length of the text (dynamic NTK, LongRoPE) is
    compiled anew for the length that the ids show. Ids of M-RoPE are [axes, batch, seq].
    """

    def __init__(
        self,
        config: ModelSource,
        device: Any = None,
        *,
        layer_type: str | None = None,
        layer: int | None = None,
        style: str = "cat",
    ) -> None:
        super().__init__()
        self.model = models.read(config)
        self.layer_type, self.layer, self.style = layer_type, layer, style
        self._layers = _layers_by_type(config)
        self._plans: dict[str | None, Plan] = {}
        self._numbers: dict[str | None, tuple[torch.Tensor, float]] = {}
        self.tell: Callable[..., None] | None = None  # called with what forward gives, its plan, its ids and the style

    def plan(self, layer_type: str | None = None, length: int = 0) -> Plan:
        """The plan of a kind of layers, for a length."""
        kind = layer_type or self.layer_type
        known = self._plans.get(kind)
        if known is not None and (known.valid is None or _contains(known.valid, length)):
            return known
        made = self._compiled(kind, length)
        self._plans[kind] = made
        return made

    def _compiled(self, kind: str | None, length: int) -> Plan:
        if kind is not None and kind in self._layers:
            return self.model.plan(layer=self._layers[kind], length=length)
        if kind is None and self.layer is not None:
            return self.model.plan(layer=self.layer, length=length)
        for group in range(self.model.group_count):
            made = self.model.plan(group=group, length=length)
            if made.rotates:
                return made
        raise Error(
            f"RotaryEmbedding: the model must rotate, got {self.model.name}", "RotaryEmbedding", "the model must rotate"
        )

    @torch.no_grad()
    def forward(self, x: torch.Tensor, position_ids: torch.Tensor, layer_type: str | None = None, **_: Any) -> Any:
        """(cos, sin) of the dtype of x, as the module that it replaces gives them."""
        kind = layer_type or self.layer_type
        if torch.compiler.is_compiling() if hasattr(torch, "compiler") else False:
            known = self._numbers.get(kind)  # tensors, which a graph holds
            if known is not None and self.style in ("cat", "repeat", "once"):
                cos, sin = _cos_sin_of(known[0], known[1], position_ids, x.dtype)
                return _laid_out(cos, sin, self.style)
        plan = self.plan(layer_type)
        if plan.valid is not None:
            plan = self.plan(layer_type, int(position_ids.max()) + 1)
        elif kind not in self._numbers and not plan.refused_by("posenc.torch.cos_sin"):
            self._numbers[kind] = frequencies(plan)[0], plan.attention_factor
        made = self.laid_out(plan, position_ids, x.dtype, self.style)
        if self.tell is not None:
            self.tell(made, plan, position_ids, self.style)
        return made

    @staticmethod
    def laid_out(plan: Plan, position_ids: torch.Tensor, dtype: torch.dtype, style: str) -> Any:
        """cos and sin of a plan as a style has them."""
        if style == "complex":
            return torch.complex(*cos_sin(plan, position_ids, torch.float32, halves=True))
        if style == "axes":
            whole = Plan.of_frequencies(
                plan.inv_freq.sum(0), pairing=plan.pairing, attention_factor=plan.attention_factor
            )
            rows = cos_sin(whole, position_ids.flatten(0, 1), dtype, halves=True)
            cos, sin = (each.unflatten(0, position_ids.shape[:2]) for each in rows)
            return _laid_out(cos, sin, "cat")
        cos, sin = cos_sin(plan, position_ids, dtype, halves=True)
        return _laid_out(cos, sin, style)

    @staticmethod
    def style_of(made: Any, plan: Plan, position_ids: torch.Tensor) -> str | None:
        """The style of what a module gave for these ids (its answer, or cos alone); None where it is of another shape."""
        if isinstance(made, torch.Tensor) and made.is_complex():
            return "complex"
        cos = made[0] if isinstance(made, tuple) else made
        rows = (*position_ids.shape[-2:], plan.rotary_dim)
        if position_ids.dim() == 3 and plan.axes > 1 and cos.shape == (len(position_ids), *rows):
            return "axes"
        if cos.shape == (*rows[:-1], plan.rotary_dim // 2):
            return "once"
        if cos.shape != rows:
            return None
        exact = {
            style: RotaryEmbedding.laid_out(plan, position_ids, cos.dtype, style)[0] for style in ("cat", "repeat")
        }
        return min(exact, key=lambda style: (cos - exact[style]).abs().max().item())

    def extra_repr(self) -> str:
        """What PyTorch prints of it."""
        return f"{self.model.name}, {self.plan()!r}"


def _contains(lengths: tuple[int, int | None], length: int) -> bool:
    first, last = lengths
    return (length or 1) >= first and (last is None or length <= last)


def _layers_by_type(config: Any) -> dict[str, int]:
    """The first layer of each kind that the configuration names."""
    config = getattr(config, "text_config", None) or config
    types = config.get("layer_types") if isinstance(config, dict) else getattr(config, "layer_types", None)
    types = list(types or [])
    return {kind: types.index(kind) for kind in types}
