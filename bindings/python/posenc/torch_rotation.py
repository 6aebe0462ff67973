"""Rotation within PyTorch, with its gradients: operators on the CPU, posenc-cuda's on its devices, torch's own elsewhere.
posenc.torch has the public names."""

from __future__ import annotations

import functools
import importlib.util
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import torch

from . import _posenc, cuda, torch_cuda
from ._posenc import Plan
from .errors import Error

if TYPE_CHECKING:
    from .types import PositionIds

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


def _gradients(ctx, gradient, verb, by_frequency):
    """By x, where the verb takes the gradient back, and by the frequency where it is learned; nothing by the rest."""
    frequency, position_ids, *output = ctx.saved_tensors
    of_x = verb(gradient, frequency, position_ids, *ctx.rest) if ctx.needs_input_grad[0] else None
    of_frequency = None
    if output and ctx.needs_input_grad[1]:
        of_frequency = by_frequency(output[0], gradient, frequency, position_ids, *ctx.rest)
    return (of_x, of_frequency, *[None] * 6)


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
        return lambda ctx, gradient: _gradients(ctx, gradient, verb, by_frequency)

    rotate.register_autograd(backward_by(transpose), setup_context=_saved)
    transpose.register_autograd(backward_by(rotate), setup_context=_not_learned)
    return rotate, transpose, by_frequency


def _not_learned(ctx, inputs, output):
    _, frequency, position_ids, *rest = inputs
    ctx.save_for_backward(frequency, position_ids)
    ctx.rest = rest


def function_of(forward, saved, backward, **more):
    """An autograd.Function of three functions, in the form that torch.func takes where PyTorch has it (2.0)."""

    def both(ctx, *inputs):
        made = forward(*inputs)
        saved(ctx, inputs, made)
        return made

    parts = {"forward": forward, "setup_context": saved} if hasattr(torch, "func") else {"forward": both}
    parts = {name: staticmethod(part) for name, part in {**parts, "backward": backward}.items()}
    return type("_Function", (torch.autograd.Function,), {**parts, **more})


def derivative_of(where: str, forward, **more):
    """A function that is a derivative, and has none itself: torch.func hands its tensors to a backward pass wrapped."""

    def refuse(ctx, *_):
        rule, cure = "the derivative is a first one", "use posenc.torch.flex_attention or torch's own for the second"
        raise Error(f"{where}: {rule}, got a second; {cure}", where, rule, "a second", cure)

    return function_of(forward, lambda ctx, inputs, output: None, refuse, **more)


HAS_OPERATORS = torch_cuda.HAS_OPERATORS
_operator, _transpose_operator, _frequency_operator = (
    _operators() if HAS_OPERATORS else (_forward, _transposed, _by_frequency)
)


def _function_saved(ctx, inputs, output):
    _x, frequency, position_ids, ctx.transposed, *ctx.rest = inputs
    ctx.save_for_backward(frequency, position_ids, output)
    ctx.set_materialize_grads(False)
    if hasattr(ctx, "save_for_forward"):
        ctx.save_for_forward(frequency, position_ids)


def _function_backward(ctx, gradient):
    frequency, position_ids, output = ctx.saved_tensors
    of_x = of_frequency = None
    if gradient is None:
        return (None,) * 9
    if ctx.needs_input_grad[0]:
        of_x = _Function.apply(gradient, frequency, position_ids, not ctx.transposed, *ctx.rest)
    if ctx.needs_input_grad[1] and not ctx.transposed:
        of_frequency = _ByFrequency.apply(output, gradient, frequency, position_ids, *ctx.rest)
    return (of_x, of_frequency, *[None] * 7)


def _function_jvp(ctx, of_x, of_frequency, *_):
    if of_frequency is not None:
        rule = "forward derivatives are those by x"
        raise Error(
            f"posenc.torch.rotate: {rule}, got one by frequency; use torch.func.grad", "posenc.torch.rotate", rule
        )
    return None if of_x is None else _Function.apply(of_x, *ctx.saved_tensors[:2], ctx.transposed, *ctx.rest)


_ByFrequency = derivative_of(
    "posenc.torch.rotate", lambda *inputs: _frequency_operator(*inputs), generate_vmap_rule=HAS_OPERATORS
)
# Where there are no operators, and under torch.func, whose transforms do not take an operator's gradient.
_Function = function_of(
    lambda x, frequency, position_ids, transposed, *rest: (_transpose_operator if transposed else _operator)(
        x, frequency, position_ids, *rest
    ),
    _function_saved,
    _function_backward,
    jvp=staticmethod(_function_jvp),
    generate_vmap_rule=HAS_OPERATORS,  # of a function that calls operators alone
)


def _transforming() -> bool:
    """Whether a transform of torch.func is at work."""
    active = getattr(torch._C, "_are_functorch_transforms_active", None)
    return active is not None and not torch.compiler.is_compiling() and active()


def _rotate(x: torch.Tensor, frequency: torch.Tensor, position_ids: torch.Tensor, *rest: Any) -> Any:
    if HAS_OPERATORS and not _transforming():
        return _operator(x, frequency, position_ids, *rest)
    return _Function.apply(x, frequency, position_ids, False, *rest)


def frequencies(plan: Plan) -> torch.Tensor:
    """A plan's frequencies in float64, [heads, axes, pairs]: what `rotate(frequency=)` learns."""
    made = torch.as_tensor(plan.inv_freq, dtype=torch.float64)
    return made.reshape(plan.frequency_heads, plan.axes, -1)


def _ids(position_ids, x, layout: str) -> torch.Tensor:
    if isinstance(position_ids, torch.Tensor):
        return position_ids
    if position_ids is None or hasattr(position_ids, "__index__"):
        axis = (layout or "bhsd"[-x.dim() :]).replace("t", "s").index("s")
        first = 0 if position_ids is None else operator.index(position_ids)
        return torch.arange(first, first + x.shape[axis], device="cpu")
    if isinstance(position_ids, _posenc.Positions):
        return torch.as_tensor(position_ids.numpy())
    if isinstance(position_ids, range):
        position_ids = list(position_ids)
    return torch.as_tensor(position_ids, device="cpu")  # of another type than integers: whoever takes them refuses


class Rotation:
    """A plan's rotation as tensors and numbers, which torch.compile and torch.export read: call it as `rotate`. Several plans that
    differ in frequencies and attention factor alone are a table on a CUDA device: plan_ids say which of them a token uses."""

    def __init__(self, plan: Plan | Sequence[Plan]) -> None:
        self.plans = [plan] if isinstance(plan, Plan) else list(plan)
        for each in self.plans:
            each.check("posenc.torch.Rotation", "posenc.torch.rotate")
        self.text = cuda.text_of(self.plans)
        self.plan = self.plans[0]
        self.frequency = frequencies(self.plan)
        self.numbers = (self.plan.pairing, self.plan.first_dim, self.plan.blocks, self.plan.attention_factor)
        # Made here, as a function that is being compiled imports nothing.
        self.by_triton = _triton().Rotation(self.plans) if _triton() and not self._triton_refuses() else None

    def _triton_refuses(self) -> bool:
        return any(each.refused_by("posenc.triton") for each in self.plans)

    def __repr__(self) -> str:
        return f"<posenc.torch.Rotation of {', '.join(map(repr, self.plans))}>"

    def __call__(
        self,
        x: torch.Tensor,
        position_ids: PositionIds | None = None,
        *,
        layout: str = "",
        frequency: torch.Tensor | None = None,
        backend: str | None = None,
        **there: Any,
    ) -> torch.Tensor:
        if frequency is None and _is_there(x, backend):
            return torch_cuda.rotate(x, *self.there(x, position_ids, layout, **there), layout, False)
        if frequency is None and _goes_to_triton(x, self):
            return _triton().rotate(x, None, position_ids, self.by_triton, layout=layout, **there)[0]
        self.must_be_plain("posenc.torch.rotate", **there)
        ids = _ids(position_ids, x, layout)
        if x.device.type != "cpu":
            return _rotated_elsewhere(self.plan, x, ids, layout, frequency)
        frequency = self.frequency if frequency is None else frequency
        return _rotate(x, frequency, ids, *self.numbers, layout)

    def there(
        self,
        x: torch.Tensor,
        position_ids: Any,
        layout: str,
        plan_ids: Any = None,
        cu_seqlens: Any = None,
        cached: Any = None,
    ) -> tuple[Any, ...]:
        """The arguments of an operator of posenc-cuda: plans, where tokens stand, and which plan they use."""
        first, ids = 0, position_ids
        if cu_seqlens is None and self.frequency.shape[1] == 1 and (ids is None or isinstance(ids, int)):
            first, ids = ids or 0, None
        elif cu_seqlens is None:
            ids = _ids(ids, x, layout).to(x.device, non_blocking=True)
        return self.text, ids, first, cu_seqlens, cached, plan_ids

    def must_be_plain(self, where: str, **there: Any) -> None:
        """Refuses what posenc-cuda alone has."""
        named = [name for name, value in there.items() if value is not None] + ["plans"] * (len(self.plans) > 1)
        if named:
            rule = "plan_ids, cu_seqlens and several plans are for tensors of a CUDA device with posenc-cuda"
            cure = f"{cuda.CURE}; on the CPU posenc.positions.packed makes ids, and backend='emulated' is for tests"
            raise Error(f"{where}: {rule}, got {', '.join(named)}; {cure}", where, rule, ", ".join(named), cure)


def _is_there(x, backend: str | None, must: str = "") -> bool:
    """Whether posenc-cuda rotates x. "emulated" is its kernels in a loop on the host, which takes tensors of the CPU: for tests.
    must: the function that has no other way for tensors of a CUDA device."""
    if backend not in (None, "emulated"):
        rule = "backend must be None or 'emulated'"
        raise Error(f"posenc.torch: {rule}, got {backend!r}", "posenc.torch", rule, repr(backend))
    cuda_tensor = x.device.type == "cuda" and torch.version.hip is None
    if backend == "emulated" or (must and cuda_tensor):
        cuda.needed(must or "posenc.torch", backend or "device")
    return backend == "emulated" or (cuda_tensor and cuda.available())


@functools.cache
def _triton() -> Any:
    """posenc.triton where there are Triton and a device that it compiles for, else None."""
    device = torch.cuda.is_available() or (hasattr(torch, "xpu") and torch.xpu.is_available())
    if not device or not HAS_OPERATORS or importlib.util.find_spec("triton") is None:
        return None
    from . import triton

    return triton


def _goes_to_triton(x, known: Rotation) -> bool:
    """Whether Triton rotates x, as posenc-cuda does not: x lies on its device, and it takes type and plan."""
    return known.by_triton is not None and x.device.type in ("cuda", "xpu") and x.dtype in _triton().TYPES


def _without_posenc_cuda(x, backend: str | None) -> bool:
    return backend is None and x.device.type != "cpu" and not (x.device.type == "cuda" and cuda.available())


def _known(plan: Any, kind: Any = Rotation, kept: str = "_rotation") -> Any:
    """The Rotation of a plan, made once. kind: posenc.triton has its own, which a plan keeps by another name."""
    if isinstance(plan, kind):
        return plan
    if not isinstance(plan, Plan):
        return kind(plan)
    known = vars(plan).get(kept)
    if known is None:
        known = vars(plan)[kept] = kind(plan)
    return known


def rotate(
    plan: Plan | Rotation,
    x: torch.Tensor,
    position_ids: PositionIds | None = None,
    *,
    layout: str = "",
    frequency: torch.Tensor | None = None,
    backend: str | None = None,
    **there: Any,
) -> torch.Tensor:
    """x [batch, head, seq, head_dim] (or another layout) rotated by its positions, with the gradient by x and by `frequency`:
    a tensor like `frequencies(plan)` to take in place of the plan's own (2-D mixed RoPE learns it). In a function that is
    compiled pass `Rotation(plan)`, made outside of it.

    On a CUDA device with posenc-cuda: cu_seqlens [texts + 1] (and cached [texts], tokens of each that stand before) in place of
    position_ids for packed texts; plan_ids [batch, seq] with a Rotation of several plans. All are read there.
    """
    return _known(plan)(x, position_ids, layout=layout, frequency=frequency, backend=backend, **there)


def _need_no_gradient(where: str, **tensors) -> None:
    for name, x in tensors.items():
        if x is not None and x.requires_grad and torch.is_grad_enabled():
            rule = f"{name} must need no gradient"
            raise Error(
                f"posenc.torch.{where}: {rule}; call rotate, which makes a new tensor", f"posenc.torch.{where}", rule
            )


@overload
def rotate_(
    plan: Plan | Rotation,
    x: torch.Tensor,
    position_ids: PositionIds | None = None,
    *,
    k: None = None,
    layout: str = "",
    backend: str | None = None,
    **there: Any,
) -> torch.Tensor: ...


@overload
def rotate_(
    plan: Plan | Rotation,
    x: torch.Tensor,
    position_ids: PositionIds | None = None,
    *,
    k: torch.Tensor,
    layout: str = "",
    backend: str | None = None,
    **there: Any,
) -> tuple[torch.Tensor, torch.Tensor]: ...


def rotate_(
    plan: Plan | Rotation,
    x: torch.Tensor,
    position_ids: PositionIds | None = None,
    *,
    k: torch.Tensor | None = None,
    layout: str = "",
    backend: str | None = None,
    **there: Any,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """The same in place, for tensors that need no gradient. k: keys [batch, kv_head, seq, head_dim] of the same tokens, in the same
    pass; (x, k) comes back."""
    _need_no_gradient("rotate_", x=x, k=k)
    where = "posenc.torch.rotate_"
    if _without_posenc_cuda(x, backend) and _goes_to_triton(x, _known(plan)):
        _triton().rotate_(x, k, position_ids, _known(plan).by_triton, layout=layout, **there)
    elif _is_there(x, backend, where):
        torch_cuda.rotate_(x, k, *_known(plan).there(x, position_ids, layout, **there), layout)
    else:
        if there or not isinstance(plan, Plan):  # a plan that grows is the CPU's alone, and has no Rotation
            known: Rotation = _known(plan)
            known.must_be_plain(where, **there)
            plan = known.plan
        plan.rotate_(x, k, position_ids, layout=layout)
    return x if k is None else (x, k)


def rotate_append_(
    plan: Plan | Rotation, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor,
    slots: torch.Tensor, position_ids: PositionIds | None = None, *, keep_k: bool = True, layout: str = "",
    cache_layout: str = "NHD", backend: str | None = None, **there: Any,
) -> torch.Tensor:  # fmt: skip
    """Queries rotated in place, and in the same pass rotated keys and values as they are written to the pages of a cache on a CUDA
    device: [page, token, kv_head, head_dim] (NHD) or [page, kv_head, token, head_dim] (HND). slots [batch, seq] say where a token
    goes, page · page size + token in page; -1 is padding. keep_k: k stays as it is, else it is rotated too. Takes posenc-cuda;
    on the CPU posenc.KvCache is the cache."""
    _need_no_gradient("rotate_append_", q=q, k=k, v=v)
    where = "posenc.torch.rotate_append_"
    if keep_k is False and _without_posenc_cuda(q, backend) and _goes_to_triton(q, _known(plan)):
        pages = _triton().Pages(key_cache, value_cache, v, slots=slots, layout=cache_layout)
        _triton().rotate_(q, k, position_ids, _known(plan).by_triton, layout=layout, pages=pages, **there)
        return q
    if not _is_there(q, backend, where):
        rule = "tensors must lie on a CUDA device"
        raise Error(
            f"{where}: {rule}, got {q.device}; on the CPU posenc.KvCache is a cache", where, rule, str(q.device)
        )
    known = _known(plan).there(q, position_ids, layout, **there)
    torch_cuda.rotate_append_(q, k, v, key_cache, value_cache, slots, *known, layout, cache_layout, keep_k)
    return q


def cos_sin(
    plan: Plan, position_ids: torch.Tensor, dtype: torch.dtype = torch.float32, *, halves: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """(cos, sin) [batch, seq, rotary_dim] times the attention factor, on the device of the ids, which are [seq], [batch, seq] or
    [axes, batch, seq]. On the CPU they are Plan.cos_sin's; elsewhere angles are formed in float64 from the integer positions (on
    the CPU where the device has none)."""
    if position_ids.is_cpu:
        return plan.cos_sin(position_ids, dtype=dtype, halves=halves)
    if plan.refused_by("posenc.torch.cos_sin") or position_ids.device.type == "mps":
        cos, sin = plan.cos_sin(position_ids.cpu(), dtype=dtype, halves=halves)
        return cos.to(position_ids.device), sin.to(position_ids.device)
    cos, sin = _cos_sin_of(frequencies(plan)[0], plan.attention_factor, position_ids, dtype)
    if halves:
        return cos, sin
    return _laid_out(cos, sin, "cat" if plan.pairing == "halves" else "repeat")


def _cos_sin_of(
    frequency: torch.Tensor, factor: float, position_ids: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same of frequencies [axes, pairs], once for each pair, in torch alone."""
    frequency = frequency.to(position_ids.device)
    ids = position_ids.to(torch.float64)[..., None]
    several = position_ids.dim() == 3  # else ids of one axis stand for all
    angles = (ids * frequency[:, None, None]).sum(0) if several else ids * frequency.sum(0)
    return (angles.cos() * factor).to(dtype), (angles.sin() * factor).to(dtype)


def _laid_out(cos: torch.Tensor, sin: torch.Tensor, style: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The numbers of pairs as a model's code takes them."""
    if style == "once":
        return cos, sin
    if style == "repeat":
        return cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    return torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)


def _rotated_elsewhere(plan: Plan, x, ids, layout: str, frequency=None):
    """The rotation in torch alone, whose gradients it has by itself."""
    layout = cuda.letters_of(layout, x.dim(), "posenc.torch.rotate")
    ids = ids.to(x.device)
    ids = ids[None] if ids.dim() == 1 else ids
    kind = torch.promote_types(x.dtype, torch.float32)
    if frequency is None and plan.frequency_heads == 1:
        heads = [cos_sin(plan, ids, kind, halves=True)]
    else:
        frequency = frequencies(plan) if frequency is None else frequency
        heads = [_cos_sin_of(each, plan.attention_factor, ids, kind) for each in frequency]
    cos, sin = (_in_layout(torch.stack(each, 1), layout) for each in zip(*heads, strict=True))
    first, last = plan.first_dim, plan.first_dim + plan.rotary_dim
    pairs = (
        x[..., first:last].to(kind).unflatten(-1, (plan.blocks, *((2, -1) if plan.pairing == "halves" else (-1, 2))))
    )
    both = -2 if plan.pairing == "halves" else -1
    a, b = (each.flatten(-2) for each in pairs.unbind(both))
    rotated = torch.stack(
        [each.unflatten(-1, (plan.blocks, -1)) for each in (a * cos - b * sin, a * sin + b * cos)], both
    )
    return torch.cat((x[..., :first], rotated.flatten(-3).to(x.dtype), x[..., last:]), -1)


def _in_layout(table, layout: str):
    """A table [batch, heads, seq, pairs] in the order of another layout's axes, without those that it does not name."""
    left_out = [axis for axis in "bh" if axis not in layout]
    first = (..., *[0] * len(left_out))
    return table.permute(["bhsd".index(axis) for axis in (*layout, *left_out)])[first]
