"""Exact angles in a live model: its rotary modules replaced, and on a CUDA device what its functions do with them."""

from __future__ import annotations

from typing import Any

import torch

from .. import cuda, models
from ..torch import RotaryEmbedding
from .kernels import Kernels
from .live import distance, layers_of, replace, rotary_modules, rotating_groups, text_config, tower


class Patched:
    """What patch() did: `changes`, one a rotary module, and how to undo it. `kernels.taken` names the rotating functions that
    posenc-cuda has done the work of so far."""

    def __init__(self, model: torch.nn.Module, backend: str | None = None) -> None:
        self.model = model
        self.changes: list[dict[str, Any]] = []
        self._before: dict[str, torch.nn.Module] = {}
        self.kernels = Kernels(backend)

    def unpatch(self) -> None:
        """Puts the model's own modules and functions back."""
        self.kernels.remove()
        for name, module in self._before.items():
            replace(self.model, name, module)
        self._before = {}

    def __enter__(self) -> Patched:
        return self

    def __exit__(self, *_: object) -> None:
        self.unpatch()

    def __str__(self) -> str:
        return "\n".join(
            f"{each['module']} ({each['class']}): "
            + (
                each["left"]
                or f"replaced; cos and sin differ by up to {each['largest_difference']:.2g} up to {each['length']:,}"
            )
            for each in self.changes
        )

    __repr__ = __str__


def _probe(module, position_ids, layer_type):
    x = torch.zeros(1, 1, dtype=torch.float32, device=position_ids.device)
    return module(x, position_ids, layer_type) if layer_type else module(x, position_ids)


def _served(said, config, name: str, module) -> int | None:
    """A layer that a module serves, where it does not take the kind of layers as an argument: of the groups whose rotations
    differ the one that its frequencies are nearest to (Gemma 3 of transformers 4 has a module for each kind)."""
    if hasattr(module, "layer_types"):
        return None
    named = layers_of(config, name)
    if named:
        return named[0]
    buffer = getattr(module, "inv_freq", None)
    layers = [group.layers[0] for group in rotating_groups(said) if group.stack == "text"]
    return min(layers, key=lambda layer: distance(said.plan(layer=layer), buffer), default=None)


def _compared(module, exact: RotaryEmbedding, length: int) -> float:
    """The largest difference of what a module and its successor give, which is told the module's style."""
    kinds = sorted(getattr(module, "layer_types", [])) if hasattr(module, "layer_types") else []
    largest = 0.0
    for kind in kinds or [None]:
        plan = exact.plan(kind, length)
        ids = torch.cat((torch.arange(64), torch.arange(length - 64, length)))[None]
        if plan.axes > 1:  # rows, columns and frames come apart
            ids = torch.stack([ids // (1 + axis) for axis in range(plan.axes)])
        ids = ids.to(next(module.buffers()).device)
        made = _probe(module, ids, kind)
        style = RotaryEmbedding.style_of(made, plan, ids)
        if style is None:
            raise ValueError(f"left as it is: what {type(module).__name__} gives is of another shape")
        exact.style = style
        ours = _probe(exact, ids, kind)
        pairs = [(made, ours)] if style == "complex" else zip(made, ours, strict=True)
        largest = max(largest, *((a - b).abs().max().item() for a, b in pairs))
    return largest


def patch(model: Any, backend: str | None = None) -> Patched:
    """Replaces a model's rotary modules by posenc.torch.RotaryEmbedding: frequencies in float64 that no cast reaches, exact
    angles. What cannot be replaced (a tower's own) is left, and said. On a CUDA device with posenc-cuda its kernels rotate the
    queries and keys where the model's function is found to do what the plan says. Everything else stays.

    backend="emulated": those kernels in a loop on the host, for tests.
    """
    model = models.bare(model)
    done, said = Patched(model, backend), models.read(model)
    for name, module in rotary_modules(model).items():
        if isinstance(module, RotaryEmbedding):
            continue
        change: dict[str, Any] = {
            "module": name,
            "class": type(module).__name__,
            "left": "",
            "largest_difference": None,
            "length": 0,
        }
        done.changes.append(change)
        try:
            if tower(name):
                raise ValueError("left as it is: it belongs to a tower, whose positions are not those of the text")
            exact = RotaryEmbedding(model.config, layer=_served(said, model.config, name, module))
            length = min(int(getattr(text_config(model.config), "max_position_embeddings", 0) or 4096), 8192)
            change.update(largest_difference=_compared(module, exact, length), length=length)
        except (ValueError, TypeError, RuntimeError) as reason:
            change["left"] = str(reason)
            continue
        done._before[name] = module
        replace(model, name, exact)
        exact.tell = done.kernels.tell
    if backend:
        cuda.needed("posenc.hf.patch", backend)
    if done._before and cuda.available(backend or "device"):
        done.kernels.install(model)
    return done
