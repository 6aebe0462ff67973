"""Queries and keys of a patched model rotated by posenc-cuda: its rotating functions take cos and sin, which say by which plan and
ids they were made."""

from __future__ import annotations

import functools
import sys
from dataclasses import dataclass

import torch

from .. import torch as pt
from .._posenc import Plan
from ..torch_rotation import _is_there
from .live import attention_modules, rotates
from .rotations import slice_plan

TOLD = "_posenc_told"


@dataclass
class Told:
    """How a table of cos and sin was made, which goes with it through the layers."""

    kernels: Kernels
    plan: Plan
    ids: torch.Tensor
    style: str

    def rotation(self, channels: int) -> pt.Rotation:
        """The rotation of what a model hands to its function: whole heads, or the channels that rotate alone."""
        known: dict[int, pt.Rotation] = vars(self.plan).setdefault("_by_channels", {})
        if channels not in known:
            known[channels] = pt.Rotation(slice_plan(self.plan, channels))
        return known[channels]


def _compiling() -> bool:
    """Whether torch.compile reads along: its graphs hold tensors without what is written on them."""
    return hasattr(torch, "compiler") and torch.compiler.is_compiling()


def _flat(made) -> tuple:
    return made if isinstance(made, tuple) else (made,)


class Kernels:
    """The rotating functions of a model's files, wrapped: where a table says how it was made, posenc-cuda rotates. Before a function is
    passed over for the first time it is tried on the CPU with a few numbers, and stays where it does anything else."""

    def __init__(self, backend: str | None) -> None:
        self.backend = backend
        self.taken: set[str] = set()  # functions that posenc-cuda did the work of
        self._layouts: dict = {}
        self._wrapped: list = []

    def tell(self, made, plan: Plan, ids, style: str) -> None:
        """Writes on a table how it was made, where posenc-cuda works on its device."""
        table = _flat(made)[0]
        plain = not plan.refused_by("posenc.torch.cos_sin")
        if plain and not _compiling() and _is_there(table, self.backend):
            setattr(table, TOLD, Told(self, plan, ids, style))

    def __getstate__(self) -> dict:
        """Of a copy: it wraps no function, so that it has none to give back; those of its model's files may well be wrapped."""
        return {"backend": self.backend, "taken": set(), "_layouts": {}, "_wrapped": []}

    def install(self, model) -> None:
        """Wraps the functions of a model's files, once for all models that are patched."""
        for name in {type(module).__module__ for module in attention_modules(model).values()}:
            home = sys.modules[name]
            for each in filter(rotates, list(vars(home))):
                function = getattr(home, each)
                if not callable(function):
                    continue
                if not hasattr(function, "_posenc_users"):
                    function = _wrapper(function)
                    setattr(home, each, function)
                function._posenc_users += 1
                self._wrapped.append((home, each, function))

    def remove(self) -> None:
        """Puts back what no patched model wants any more."""
        for home, name, function in self._wrapped:
            function._posenc_users -= 1
            if function._posenc_users == 0 and getattr(home, name) is function:
                setattr(home, name, function.__wrapped__)
        self._wrapped = []

    def rotated(self, function, inputs, told: Told, rest: tuple, kwargs: dict):
        """What a function would give for queries and keys, by posenc-cuda; None where it does anything else."""
        if any(x.device != told.ids.device or x.dim() != 4 for x in inputs) or len(inputs) > 2:
            return None
        channels = tuple(x.shape[-1] for x in inputs)
        plan = told.plan
        key = (
            function, channels, repr((rest, sorted(kwargs.items()))), told.style,
            plan.pairing, plan.first_dim, plan.rotary_dim, plan.blocks, plan.axes,
        )  # fmt: skip
        if key not in self._layouts:
            self._layouts[key] = _layout(function, channels, told, rest, kwargs)
        layout = self._layouts[key]
        if layout is None:
            return None
        self.taken.add(f"{function.__module__}.{function.__name__}")
        made = tuple(told.rotation(x.shape[-1])(x, told.ids, layout=layout, backend=self.backend) for x in inputs)
        return made if len(made) > 1 else made[0]


def _wrapper(function):
    @functools.wraps(function)
    def rotated(*args, **kwargs):
        at = 0 if _compiling() else next((i for i, each in enumerate(args) if hasattr(each, TOLD)), 0)
        made = None
        if at:
            told, tables = getattr(args[at], TOLD), 1 if args[at].is_complex() else 2
            made = told.kernels.rotated(function, args[:at], told, args[at + tables :], kwargs)
        return function(*args, **kwargs) if made is None else made

    rotated._posenc_users = 0
    return rotated


def _layout(function, channels, told: Told, rest: tuple, kwargs: dict) -> str | None:
    """The layout in which a function does what the plan says, tried on the CPU; None where it does so in none."""
    if any(isinstance(each, torch.Tensor) for each in (*rest, *kwargs.values())):
        return None
    extent = {"b": 2, "h": 3, "s": 5}
    numbers = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 64, (told.plan.axes, 2, 5)[told.plan.axes == 1 :], generator=numbers)
    table = _flat(pt.RotaryEmbedding.laid_out(told.plan, ids, torch.float32, told.style))
    for layout in ("bhsd", "bshd"):
        tried = [torch.randn(*(extent[axis] for axis in layout[:-1]), each, generator=numbers) for each in channels]
        try:
            made = _flat(function(*(x.clone() for x in tried), *table, *rest, **kwargs))
            exact = [told.rotation(x.shape[-1])(x, ids, layout=layout) for x in tried]
        except (RuntimeError, ValueError, TypeError, IndexError):  # shapes that do not go together in this layout
            continue
        if len(made) == len(exact) and all(
            a.shape == b.shape and torch.allclose(a, b, atol=1e-4) for a, b in zip(made, exact, strict=True)
        ):
            return layout
    return None
