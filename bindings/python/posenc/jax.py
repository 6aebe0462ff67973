"""posenc within JAX: rotation with its gradient, under jit and vmap.

    rotated = posenc.jax.rotate(plan, q, position_ids)

On a CUDA device it is a custom call of XLA, by posenc-cuda, in the device's stream and in place where XLA lets the argument go. On the
CPU the host's kernels are called back.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
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
    emulated: bool
    plan: Plan = field(compare=False)
    several: bool = False
    transposed: bool = False


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
        verb = call.plan.rotate_transpose if call.transposed else call.plan.rotate
        ids = np.asarray(ids)
        positions = call.first if ids.size == 0 else ids[0] if len(ids) == 1 else ids
        return verb(np.asarray(x), position_ids=positions, layout=call.layout)

    return jax.pure_callback(run, jax.ShapeDtypeStruct(x.shape, x.dtype), x, ids, vmap_method="sequential")


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _rotate(call: _Call, x, ids, plan_ids):
    if call.emulated:
        return _custom_call(call, x, ids, plan_ids)
    if cuda.module and "CUDA" in cuda.module.xla_targets:
        host = _of_one_plan if call.several else _called_back
        branches = {"cpu": host, "cuda": _custom_call}
        return jax.lax.platform_dependent(
            x, ids, plan_ids, **{name: functools.partial(branch, call) for name, branch in branches.items()}
        )
    if jax.default_backend() == "gpu":
        cuda.needed(WHERE)
    return (_of_one_plan if call.several else _called_back)(call, x, ids, plan_ids)


def _of_one_plan(call: _Call, x, ids, plan_ids):
    rule = "several plans are for a CUDA device with posenc-cuda"
    raise Error(f"{WHERE}: {rule}; {cuda.CURE}", WHERE, rule, "", cuda.CURE)


def _forward(call, x, ids, plan_ids):
    return _rotate(call, x, ids, plan_ids), (ids, plan_ids)


def _backward(call, where, gradient):
    return _rotate(replace(call, transposed=not call.transposed), gradient, *where), None, None


_rotate.defvjp(_forward, _backward)


def _integers(numbers, shape, name: str):
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
    number, or integers [seq], [batch, seq] or [axes, batch, seq], which may be traced. On a CUDA device several plans that differ in
    frequencies and attention factor alone are a table, and plan_ids [batch, seq] say which of them a token uses. backend="emulated"
    is posenc-cuda's kernels in a loop on the host, for tests."""
    if backend not in (None, "emulated"):
        rule = "backend must be None or 'emulated'"
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
        cuda.text_of(plans), layout, position_ids if isinstance(position_ids, int) else 0, backend == "emulated", plans[0],
        several=len(plans) > 1,
    )  # fmt: skip
    return _rotate(call, x, ids if ids.dtype == jnp.int64 else ids.astype(jnp.int32), chosen)
