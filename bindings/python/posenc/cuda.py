"""What posenc.torch and posenc.jax share of posenc-cuda: where it is, and the plans that it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ._posenc import Plan
from .errors import Error

try:
    import posenc_cuda

    module: Any = posenc_cuda
except ImportError:
    module = None

CURE = "pip install posenc-cuda, or make cuda-wheel in posenc's sources"


def available(backend: str = "device") -> bool:
    """Whether there is posenc-cuda, with kernels for a device or with the emulated grid, which every one has."""
    return module is not None and (backend == "emulated" or module.has_device_code)


def needed(where: str, backend: str = "device"):
    """posenc-cuda, or an error that says how it comes."""
    if not available(backend):
        rule = "tensors of a CUDA device take posenc-cuda"
        got = "none installed" if module is None else "one built without CUDA"
        raise Error(f"{where}: {rule}, got {got}; {CURE}", where, rule, got, CURE)
    return module


def text_of(plans: Sequence[Plan]) -> str:
    """Rotations as posenc-cuda reads them: numbers, which cross from one extension module to another and into exported graphs where
    a handle would not. Plans of one table differ in frequencies and attention factor alone."""
    words = [*geometry_of(plans, "posenc.cuda"), len(plans)]
    for plan in plans:
        words += [float(plan.attention_factor), *_flat(plan.inv_freq)]
    return " ".join(map(str, words))


def geometry_of(plans: Sequence[Plan], where: str, room: str = "posenc.torch.Rotation") -> tuple:
    """What the plans of one table have alike; refuses those that differ in it, or that the room does not take."""
    for plan in plans:
        plan.check(room, where)
    geometry = {_geometry(plan) for plan in plans}
    if len(geometry) != 1:
        rule, cure = "plans of one table must have one slice, pairing, heads and axes", "make a table for each"
        got = f"{len(geometry)} of them"
        raise Error(f"{where}: {rule}, got {got}; {cure}", where, rule, got, cure)
    return geometry.pop()


def _geometry(plan: Plan) -> tuple:
    return plan.pairing, plan.first_dim, plan.blocks, plan.frequency_heads, plan.axes, plan.rotary_dim // 2


def _flat(numbers) -> list[float]:
    return numbers.ravel().tolist() if hasattr(numbers, "ravel") else list(numbers)


def letters_of(layout: str, rank: int, where: str) -> str:
    """A layout with every axis named, of b, h, s and d."""
    letters = (layout or "bhsd"[-rank:]).replace("t", "s")
    if len(letters) != rank or len(set(letters)) != rank or not set("sd") <= set(letters) <= set("bhsd"):
        rule = f"layout must name each of the tensor's {rank} axes by b, h, s (or t) and d"
        raise Error(f"{where}: {rule}, got {layout!r}; write 'bhsd' or 'bshd'", where, rule, repr(layout))
    return letters
