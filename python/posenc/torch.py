"""posenc within PyTorch: rotation and attention with gradients, and a rotary module for transformers' models.

    rotated = posenc.torch.rotate(plan, q, position_ids)       # autograd, torch.compile (from PyTorch 2.4 on), gradcheck
    out = posenc.torch.attention(q, k, v, plan)                # any plan, its backward pass too
    model.model.rotary_emb = posenc.torch.RotaryEmbedding(model.config)   # exact angles, on any device

The kernels run on the CPU. Elsewhere cos and sin are formed in float64 on the device, and torch does the rest.
"""

from __future__ import annotations

import torch

from . import _posenc, models
from ._posenc import Plan
from .errors import Error
from .flex import flex_attention, score_mod

__all__ = [
    "RotaryEmbedding", "Rotation", "attention", "cos_sin", "flex_attention", "frequencies", "rotate", "rotate_", "score_mod",
]  # fmt: skip

# --- rotation ---------------------------------------------------------------------------------------------------

# Operators take a plan as its numbers, so that an exported graph needs no handle: frequency [heads, axes, pairs].


def _plan(frequency, pairing: str, first_dim: int, blocks: int, attention_factor: float) -> Plan:
    return Plan.of_frequencies(
        frequency.detach(), pairing=pairing, first_dim=first_dim, blocks=blocks, attention_factor=attention_factor
    )


def _forward(x, frequency, position_ids, pairing, first_dim, blocks, attention_factor, layout):
    plan = _plan(frequency, pairing, first_dim, blocks, attention_factor)
    return plan.rotate(x.detach(), position_ids=position_ids, layout=layout)


def _transposed(x, frequency, position_ids, pairing, first_dim, blocks, attention_factor, layout):
    plan = _plan(frequency, pairing, first_dim, blocks, attention_factor)
    return plan.rotate_transpose(x.detach(), position_ids, layout=layout)


def _by_frequency(rotated, gradient, frequency, position_ids, pairing, first_dim, blocks, attention_factor, layout):
    plan = _plan(frequency, pairing, first_dim, blocks, attention_factor)
    made = plan.frequency_gradient(rotated.detach(), gradient.detach(), position_ids, layout=layout)
    return made.reshape(frequency.shape).to(frequency.dtype)


def _saved(ctx, inputs, output):
    _x, frequency, position_ids, *rest = inputs
    learned = frequency.requires_grad
    ctx.save_for_backward(frequency, position_ids, *([output] if learned else []))
    ctx.rest = rest


def _operators():
    """Operators of torch.library where it has them: they trace, compile and export."""
    from torch.library import custom_op

    kind = "Tensor x, Tensor frequency, Tensor position_ids, str pairing, int first_dim, int blocks, float attention_factor, str layout"
    rotate = custom_op("posenc::rotate", _forward, mutates_args=(), device_types="cpu", schema=f"({kind}) -> Tensor")
    transpose = custom_op(
        "posenc::rotate_transpose", _transposed, mutates_args=(), device_types="cpu", schema=f"({kind}) -> Tensor"
    )
    by_frequency = custom_op(
        "posenc::rotate_frequency_gradient",
        _by_frequency,
        mutates_args=(),
        device_types="cpu",
        schema=f"({kind.replace('Tensor x', 'Tensor rotated, Tensor gradient')}) -> Tensor",
    )
    rotate.register_fake(lambda x, *rest: torch.empty_like(x))
    transpose.register_fake(lambda x, *rest: torch.empty_like(x))
    by_frequency.register_fake(lambda rotated, gradient, frequency, *rest: torch.empty_like(frequency))

    def backward_by(verb):
        def backward(ctx, gradient):
            frequency, position_ids, *output = ctx.saved_tensors
            of_x = verb(gradient, frequency, position_ids, *ctx.rest) if ctx.needs_input_grad[0] else None
            of_frequency = None
            if output and ctx.needs_input_grad[1]:
                of_frequency = by_frequency(output[0], gradient, frequency, position_ids, *ctx.rest)
            return (of_x, of_frequency, *[None] * 6)

        return backward

    rotate.register_autograd(backward_by(transpose), setup_context=_saved)
    transpose.register_autograd(backward_by(rotate), setup_context=_not_learned)
    return rotate


def _not_learned(ctx, inputs, output):
    _, frequency, position_ids, *rest = inputs
    ctx.save_for_backward(frequency, position_ids)
    ctx.rest = rest


class _Rotate(torch.autograd.Function):
    """What PyTorch before 2.4 has instead: gradients, and a break in a compiled graph."""

    @staticmethod
    def forward(ctx, x, *rest):
        rotated = _forward(x, *rest)
        _saved(ctx, (x, *rest), rotated)
        return rotated

    @staticmethod
    def backward(ctx, gradient):
        frequency, position_ids, *output = ctx.saved_tensors
        of_x = _transposed(gradient, frequency, position_ids, *ctx.rest) if ctx.needs_input_grad[0] else None
        of_frequency = None
        if output and ctx.needs_input_grad[1]:
            of_frequency = _by_frequency(output[0], gradient, frequency, position_ids, *ctx.rest)
        return (of_x, of_frequency, *[None] * 6)


HAS_OPERATORS = hasattr(torch, "library") and hasattr(torch.library, "custom_op")
_rotate = _operators() if HAS_OPERATORS else _Rotate.apply


def frequencies(plan: Plan) -> torch.Tensor:
    """A plan's frequencies in float64, [heads, axes, pairs]: what `rotate(frequency=)` learns."""
    made = torch.as_tensor(plan.inv_freq, dtype=torch.float64)
    return made.reshape(plan.frequency_heads, plan.axes, -1)


def _ids(position_ids, x, layout: str) -> torch.Tensor:
    if isinstance(position_ids, torch.Tensor):
        return position_ids
    if position_ids is None or isinstance(position_ids, int):
        axis = (layout or "bhsd"[-x.dim() :]).replace("t", "s").index("s")
        first = position_ids or 0
        return torch.arange(first, first + x.shape[axis])
    if isinstance(position_ids, _posenc.Positions):
        return torch.as_tensor(position_ids.numpy())
    return torch.as_tensor(position_ids, dtype=torch.int64)


class Rotation:
    """A plan's rotation as tensors and numbers, which torch.compile and torch.export read: call it as `rotate`."""

    def __init__(self, plan: Plan) -> None:
        if plan.grows or plan.angles_of != "exact":
            rule = "the plan must be a plain rotation with exact angles"
            raise Error(
                f"posenc.torch.rotate: {rule}; plan.rotate takes any, without gradients", "posenc.torch.rotate", rule
            )
        self.plan = plan
        self.frequency = frequencies(plan)
        self.numbers = (plan.pairing, plan.first_dim, plan.blocks, plan.attention_factor)

    def __call__(self, x: torch.Tensor, position_ids=None, *, layout: str = "", frequency=None) -> torch.Tensor:
        ids = _ids(position_ids, x, layout)
        if x.device.type != "cpu":
            return _rotated_elsewhere(self.plan, x, ids, layout)
        frequency = self.frequency if frequency is None else frequency
        return _rotate(x, frequency, ids, *self.numbers, layout)


def rotate(plan: Plan | Rotation, x: torch.Tensor, position_ids=None, *, layout="", frequency=None) -> torch.Tensor:
    """x [batch, head, seq, head_dim] (or another layout) rotated by its positions, with the gradient by x and by `frequency`:
    a tensor like `frequencies(plan)` to take in place of the plan's own (2-D mixed RoPE learns it). In a function that is
    compiled pass `Rotation(plan)`, made outside of it."""
    if not isinstance(plan, Rotation):
        known = getattr(plan, "_rotation", None)
        if known is None:
            known = plan._rotation = Rotation(plan)
        plan = known
    return plan(x, position_ids, layout=layout, frequency=frequency)


def rotate_(plan: Plan, x: torch.Tensor, position_ids=None, *, layout: str = "") -> torch.Tensor:
    """The same in place, for tensors that need no gradient."""
    if x.requires_grad and torch.is_grad_enabled():
        raise Error(
            "posenc.torch.rotate_: x must need no gradient; call rotate, which makes a new tensor",
            "posenc.torch.rotate_",
            "x must need no gradient",
        )
    plan.rotate_(x, position_ids=position_ids, layout=layout)
    return x


def cos_sin(plan: Plan, position_ids: torch.Tensor, dtype=torch.float32, *, halves: bool = False):
    """(cos, sin) [batch, seq, rotary_dim] times the attention factor, on the device of the ids, which are [seq], [batch, seq] or
    [axes, batch, seq]. On the CPU they are Plan.cos_sin's; elsewhere angles are formed in float64 from the integer positions (on
    the CPU where the device has none)."""
    if position_ids.is_cpu:
        return plan.cos_sin(position_ids, dtype=dtype, halves=halves)
    if plan.frequency_heads > 1 or plan.grows or position_ids.device.type == "mps":
        return tuple(
            each.to(position_ids.device) for each in plan.cos_sin(position_ids.cpu(), dtype=dtype, halves=halves)
        )
    cos, sin = _cos_sin_of(frequencies(plan)[0], plan.attention_factor, position_ids, dtype)
    if halves:
        return cos, sin
    return _laid_out(cos, sin, "cat" if plan.pairing == "halves" else "repeat")


def _cos_sin_of(frequency, factor: float, position_ids, dtype):
    """The same of frequencies [axes, pairs], once for each pair, in torch alone."""
    frequency = frequency.to(position_ids.device)
    ids = position_ids.to(torch.float64)[..., None]
    several = position_ids.dim() == 3  # else ids of one axis stand for all
    angles = (ids * frequency[:, None, None]).sum(0) if several else ids * frequency.sum(0)
    return (angles.cos() * factor).to(dtype), (angles.sin() * factor).to(dtype)


def _laid_out(cos, sin, style: str):
    """The numbers of pairs as a model's code takes them."""
    if style == "once":
        return cos, sin
    if style == "repeat":
        return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)


def _rotated_elsewhere(plan: Plan, x, ids, layout: str):
    cos, sin = cos_sin(plan, ids.to(x.device), torch.float32)
    layout = (layout or "bhsd"[-x.dim() :]).replace("t", "s")
    for axis, letter in enumerate(layout):
        if letter == "h":
            cos, sin = (each.unsqueeze(axis if each.dim() >= axis else 0) for each in (cos, sin))
    first, last = plan.first_dim, plan.first_dim + plan.rotary_dim
    part = x[..., first:last].float()
    half = plan.rotary_dim // 2
    if plan.pairing == "halves":
        other = torch.cat((-part[..., half:], part[..., :half]), -1)
    else:
        other = torch.stack((-part[..., 1::2], part[..., ::2]), -1).flatten(-2)
    rotated = (part * cos + other * sin).to(x.dtype)
    return torch.cat((x[..., :first], rotated, x[..., last:]), -1)


# --- attention --------------------------------------------------------------------------------------------------


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, plan, how):
        ctx.save_for_backward(q, k, v)
        ctx.plan, ctx.how = plan, how
        return _posenc.attend(q.detach(), k.detach(), v.detach(), plan, **how)

    @staticmethod
    def backward(ctx, gradient):
        q, k, v = ctx.saved_tensors
        made = _posenc.attend_backward(q.detach(), k.detach(), v.detach(), gradient, ctx.plan, **ctx.how)
        return made["q"], made["k"], made["v"], None, None


def attention(q, k, v, plan: Plan | None = None, **how) -> torch.Tensor:
    """softmax(logits) v for any plan, with its gradients by q, k and v. q [batch, heads, queries, head_dim] and k
    [batch, kv_heads, keys, head_dim] come unrotated: rotation, bias and logit scales are the plan's. The keywords are
    those of posenc.attend: position_ids, key_position_ids, causal, window, chunk, prefix, keep, sink_logits, layout, threads."""
    return _Attention.apply(q, k, v, plan, how)


# --- a module of transformers ---------------------------------------------------------------------------------------


class RotaryEmbedding(torch.nn.Module):
    """A drop-in for a model's rotary module: forward(x, position_ids, layer_type=None) -> (cos, sin) in x's dtype.

    config: transformers' configuration, or whatever posenc.model takes. layer_type, or the number of a layer: for a module that
    serves one kind of layers and is not told which.
    style: how the model's own code takes the numbers of pairs, "cat" (twice, one after the other), "repeat" (each twice),
    "once", "complex" (once, as cos + i sin), or "axes" (as "cat", for each axis of the ids by itself: M-RoPE of transformers 4).
    Frequencies are kept in float64 and never cast with the model. A scaling that goes by the length of the text (dynamic NTK, LongRoPE) is
    compiled anew for the length that the ids show. Ids of M-RoPE are [axes, batch, seq].
    """

    def __init__(
        self, config, device=None, *, layer_type: str | None = None, layer: int | None = None, style: str = "cat"
    ) -> None:
        super().__init__()
        self.model = models.read(config)
        self.layer_type, self.layer, self.style = layer_type, layer, style
        self._layers = _layers_by_type(config)
        self._plans: dict = {}
        self._numbers: dict = {}

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
    def forward(self, x, position_ids, layer_type: str | None = None, **_):
        """(cos, sin) of the dtype of x, as the module that it replaces gives them."""
        kind = layer_type or self.layer_type
        if torch.compiler.is_compiling() if hasattr(torch, "compiler") else False:
            known = self._numbers.get(kind)  # tensors, which a graph holds
            if known is not None and self.style in ("cat", "repeat", "once"):
                return _laid_out(*_cos_sin_of(*known, position_ids, x.dtype), self.style)
        plan = self.plan(layer_type)
        if plan.valid is not None:
            plan = self.plan(layer_type, int(position_ids.max()) + 1)
        elif kind not in self._numbers and plan.frequency_heads == 1 and not plan.grows:
            self._numbers[kind] = frequencies(plan)[0], plan.attention_factor
        return self.laid_out(plan, position_ids, x.dtype, self.style)

    @staticmethod
    def laid_out(plan: Plan, position_ids, dtype, style: str):
        """cos and sin of a plan as a style has them."""
        if style == "complex":
            return torch.complex(*cos_sin(plan, position_ids, torch.float32, halves=True))
        if style == "axes":
            whole = Plan.of_frequencies(
                plan.inv_freq.sum(0), pairing=plan.pairing, attention_factor=plan.attention_factor
            )
            rows = cos_sin(whole, position_ids.flatten(0, 1), dtype, halves=True)
            return _laid_out(*(each.unflatten(0, position_ids.shape[:2]) for each in rows), "cat")
        return _laid_out(*cos_sin(plan, position_ids, dtype, halves=True), style)

    @staticmethod
    def style_of(made, plan: Plan, position_ids) -> str | None:
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


def _contains(lengths, length: int) -> bool:
    first, last = lengths
    return (length or 1) >= first and (last is None or length <= last)


def _layers_by_type(config) -> dict:
    """The first layer of each kind that the configuration names."""
    config = getattr(config, "text_config", None) or config
    types = config.get("layer_types") if isinstance(config, dict) else getattr(config, "layer_types", None)
    return {kind: types.index(kind) for kind in dict.fromkeys(types or [])}
