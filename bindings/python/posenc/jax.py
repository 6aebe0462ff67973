"""posenc within JAX: rotation with its gradient, under jit and vmap.

    rotated = posenc.jax.rotate(plan, q, position_ids)

On a CUDA device it is a custom call of XLA, by posenc-cuda, in the device's stream and in place where XLA lets the argument go; without
posenc-cuda, on other GPUs and on TPUs it is a Pallas kernel. On the CPU the host's kernels are called back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import jax
import jax.numpy as jnp
import numpy as np

from . import cuda
from ._posenc import Plan
from .errors import Error
from .types import PositionIds

__all__ = ["rotate"]

WHERE = "posenc.jax.rotate"
TARGET = "posenc_rotate"

for _platform, _handler in (cuda.module.xla_targets if cuda.module else {}).items():
    jax.ffi.register_ffi_target(TARGET, _handler, platform=_platform)


@dataclass(frozen=True)
class _Call:
    """What of a call is known when it is traced."""

    plans: str
    layout: str
    first: int
    backend: str | None
    plan_list: tuple[Plan, ...] = field(compare=False)
    transposed: bool = False

    @property
    def several(self) -> bool:
        return len(self.plan_list) > 1


def _custom_call(call: _Call, x, ids, plan_ids):
    # The answer may lie where x lay: XLA copies x before where something else still reads it.
    run = jax.ffi.ffi_call(
        TARGET, jax.ShapeDtypeStruct(x.shape, x.dtype), input_output_aliases={0: 0}, vmap_method="sequential"
    )
    return run(
        x, ids, plan_ids, plans=call.plans, layout=call.layout, transposed=call.transposed, first=np.int64(call.first)
    )


def _called_back(call: _Call, x, ids, plan_ids):
    def run(x, ids):
        plan = call.plan_list[0]
        verb = plan.rotate_transpose if call.transposed else plan.rotate
        ids = np.asarray(ids)
        positions = call.first if ids.size == 0 else ids[0] if len(ids) == 1 else ids
        return verb(np.asarray(x), position_ids=positions, layout=call.layout)

    return jax.pure_callback(run, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ids, vmap_method="sequential")


def _pallas(call: _Call, x, ids, plan_ids, **how):
    from . import jax_pallas

    plans = call.plan_list
    return jax_pallas.rotate(
        plans, x, ids, plan_ids, layout=call.layout, first=call.first, transposed=call.transposed, **how
    )


# The ways of a Pallas kernel, by platform; on a CPU it is interpreted.
PALLAS: dict[str, Callable[..., jax.Array]] = {
    "tpu": _pallas,
    "cuda": functools.partial(_pallas, gathers=True),
    "rocm": functools.partial(_pallas, gathers=True),
    "cpu": functools.partial(_pallas, interpret=True),
}


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rotate(call: _Call, x, ids, plan_ids):
    if call.backend == "emulated":
        return _custom_call(call, x, ids, plan_ids)
    host = _of_one_plan if call.several else _called_back
    branches = dict(PALLAS)
    if call.backend != "pallas":
        if cuda.module and "CUDA" in cuda.module.xla_targets:
            branches["cuda"] = _custom_call
        elif jax.default_backend() == "cpu":
            return host(call, x, ids, plan_ids)
        branches["cpu"] = host
    return jax.lax.platform_dependent(
        x, ids, plan_ids, **{name: functools.partial(branch, call) for name, branch in branches.items()}
    )


def _of_one_plan(call: _Call, x, ids, plan_ids):
    rule, cure = "several plans are for a GPU or a TPU", "backend='pallas' interprets their kernel on a CPU"
    raise Error(f"{WHERE}: {rule}; {cure}", WHERE, rule, "", cure)


def _forward(call, x, ids, plan_ids):
    return _rotate(call, x, ids, plan_ids), (ids, plan_ids)


def _backward(call, where, gradient):
    return _rotate(replace(call, transposed=not call.transposed), gradient, *where), None, None


_rotate.defvjp(_forward, _backward)


def _need_32_bits(numbers, name: str):
    """JAX would cut what is longer."""
    if numbers.size and not -(1 << 31) <= numbers.min() <= numbers.max() < 1 << 31:
        rule, cure = f"{name} must be of 32 bits", "jax.config.update('jax_enable_x64', True) has those of 64"
        got = str(numbers.max() if numbers.max() >= 1 << 31 else numbers.min())
        raise Error(f"{WHERE}: {rule}, got {got}; {cure}", WHERE, rule, got, cure)


def _integers(numbers, shape, name: str):
    if isinstance(numbers, np.ndarray) and numbers.dtype.kind in "iu" and not jax.config.jax_enable_x64:
        _need_32_bits(numbers, name)
    numbers = jnp.asarray(numbers)
    if not jnp.issubdtype(numbers.dtype, jnp.integer) or numbers.shape[-1:] != shape[-1:] or numbers.ndim > len(shape):
        rule = f"{name} must be integers {list(shape)}, or their last axes"
        got = f"{numbers.dtype} {list(numbers.shape)}"
        raise Error(f"{WHERE}: {rule}, got {got}", WHERE, rule, got)
    return jnp.broadcast_to(numbers, shape)


def rotate(
    plan: Plan | Sequence[Plan],
    x: jax.Array,
    position_ids: PositionIds | jax.Array | None = None,
    *,
    layout: str = "",
    plan_ids: jax.Array | None = None,
    backend: str | None = None,
) -> jax.Array:
    """x [batch, head, seq, head_dim] (or another layout) rotated by its positions, with its gradient. position_ids: None (from 0), a
    number, or integers [seq], [batch, seq] or [axes, batch, seq], which may be traced. On a GPU or a TPU several plans that differ in
    frequencies and attention factor alone are a table, and plan_ids [batch, seq] say which of them a token uses. backend="pallas" is
    the Pallas kernel, also where posenc-cuda is there; on a CPU it is interpreted. backend="emulated" is posenc-cuda's kernels in a
    loop on the host. Both are there for tests."""
    if backend not in (None, "pallas", "emulated"):
        rule = "backend must be None, 'pallas' or 'emulated'"
        raise Error(f"{WHERE}: {rule}, got {backend!r}", WHERE, rule, repr(backend))
    if backend == "emulated":
        cuda.needed(WHERE, backend)
    plans = [plan] if isinstance(plan, Plan) else list(plan)
    layout = cuda.letters_of(layout, x.ndim, WHERE)
    extent = dict(zip(layout, x.shape, strict=True))
    rows = (extent.get("b", 1), extent["s"])
    none = jnp.zeros(0, jnp.int32)
    numbered = position_ids is None or isinstance(position_ids, int)
    if numbered and plans[0].axes > 1:
        numbered, position_ids = False, jnp.arange(rows[1]) + (position_ids or 0)
    ids = none if numbered else _integers(position_ids, (plans[0].axes, *rows), "position_ids")
    chosen = none if plan_ids is None else _integers(plan_ids, rows, "plan_ids").astype(jnp.int32)
    call = _Call(
        cuda.text_of(plans), layout, position_ids if isinstance(position_ids, int) else 0, backend, tuple(plans)
    )
    return _rotate(call, x, ids if ids.dtype == jnp.int64 else ids.astype(jnp.int32), chosen)
