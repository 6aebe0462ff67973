"""Exact angles in a live model: its rotary modules replaced."""

from __future__ import annotations

import torch

from .. import models
from ..torch import RotaryEmbedding
from .live import distance, rotary_modules, rotating_groups, text_config


class Patched:
    """What patch() did: `changes`, one a rotary module, and how to undo it."""

    def __init__(self, model) -> None:
        self.model, self.changes, self._before = model, [], {}

    def unpatch(self) -> None:
        """Puts the model's own modules back."""
        for name, module in self._before.items():
            _replace(self.model, name, module)
        self._before = {}

    def __enter__(self) -> Patched:
        return self

    def __exit__(self, *_) -> None:
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


def _replace(model, name: str, module) -> None:
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def _probe(module, position_ids, layer_type):
    x = torch.zeros(1, 1, dtype=torch.float32, device=position_ids.device)
    return module(x, position_ids, layer_type) if layer_type else module(x, position_ids)


def _style(made, halves) -> str | None:
    """How a module's answer lays out the numbers of pairs."""
    if isinstance(made, torch.Tensor):
        return "complex" if made.is_complex() else None
    cos = made[0]
    if cos.shape != (*halves.shape[:-1], 2 * halves.shape[-1]):
        return None
    double = halves.to(cos.dtype)
    errors = {
        "cat": (cos - torch.cat((double, double), -1)).abs().max().item(),
        "repeat": (cos - double.repeat_interleave(2, -1)).abs().max().item(),
    }
    return min(errors, key=errors.get)


def _served(said, module) -> int | None:
    """A layer that a module serves, where it does not take the kind of layers as an argument: of the groups whose rotations
    differ the one that its frequencies are nearest to (Gemma 3 of transformers 4 has a module for each kind)."""
    if hasattr(module, "layer_types"):
        return None
    buffer = getattr(module, "inv_freq", None)
    layers = [group.layers[0] for group in rotating_groups(said) if group.stack == "text"]
    return min(layers, key=lambda layer: distance(said.plan(layer=layer), buffer), default=None)


def patch(model) -> Patched:
    """Replaces a model's rotary modules by posenc.torch.RotaryEmbedding: frequencies in float64 that no cast reaches, exact
    angles. Everything else stays. What cannot be replaced (three axes of pictures among text) is left, and said."""
    done, said = Patched(model), models.read(model)
    for name, module in rotary_modules(model).items():
        if isinstance(module, RotaryEmbedding):
            continue
        change = {"module": name, "class": type(module).__name__, "left": "", "largest_difference": None, "length": 0}
        done.changes.append(change)
        try:
            exact = RotaryEmbedding(model.config, layer=_served(said, module))
            kinds = sorted(getattr(module, "layer_types", [])) if hasattr(module, "layer_types") else []
            length = min(int(getattr(text_config(model.config), "max_position_embeddings", 0) or 4096), 8192)
            ids = torch.cat((torch.arange(64), torch.arange(length - 64, length)))[None]
            ids = ids.to(next(module.buffers()).device)
            largest = 0.0
            for kind in kinds or [None]:
                plan = exact.plan(kind, length)
                made = _probe(module, ids, kind)
                halves = plan.cos_sin(ids.cpu(), dtype=torch.float32, halves=True)[0].to(ids.device)
                style = _style(made, halves)
                if style is None:
                    raise ValueError(f"left as it is: what {type(module).__name__} gives is of another shape")
                exact.style = style
                ours = _probe(exact, ids, kind)
                pairs = [(made, ours)] if style == "complex" else zip(made, ours, strict=True)
                largest = max(largest, *((a - b).abs().max().item() for a, b in pairs))
            change.update(largest_difference=largest, length=length)
        except (ValueError, TypeError, RuntimeError) as reason:
            change["left"] = str(reason)
            continue
        done._before[name] = module
        _replace(model, name, exact)
    return done
