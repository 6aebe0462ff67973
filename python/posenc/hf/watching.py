"""Taps in a live model: its arguments, its rotary modules, and its rotating function."""

from __future__ import annotations

import sys

import torch

from .. import models
from ..reports import Report
from .live import attention_modules, rotary_modules, rotates


class Capture:
    """What a model did while it was watched. Taps: its rotary modules (ids, cos, sin, buffers), its rotating function (queries
    and keys before and after, layer by layer), and the arguments that it was called with (mask, cached tokens)."""

    def __init__(self, model, layers="one per group") -> None:
        self.model = model
        self.said = models.read(model)
        self.layers = self._wanted(layers)
        self.calls: list[dict] = []
        self.rotary: list[dict] = []
        self.applied: list[dict] = []
        self.replaced: dict[str, str] = {}
        self._layer: int | None = None
        self._depth = 0  # one rotating function may call another
        self._undo: list = []

    def _wanted(self, layers) -> set[int]:
        if layers == "all":
            return set(attention_modules(self.model))
        if layers == "one per group":
            return {group.layers[0] for group in self.said.groups if group.stack in ("text", "decoder")}
        return set(layers)

    # --- taps

    def __enter__(self) -> Capture:
        self._undo.append(self.model.register_forward_pre_hook(self._called, with_kwargs=True).remove)
        for name, module in rotary_modules(self.model).items():
            hook = module.register_forward_hook(self._rotary_hook(name), with_kwargs=True)
            self._undo.append(hook.remove)
        modules = set()
        for layer, module in attention_modules(self.model).items():
            self._undo.append(module.register_forward_pre_hook(self._enter_layer(layer)).remove)
            modules.add(type(module).__module__)
        for name in sorted(modules):
            self._wrap(sys.modules[name])
        return self

    def __exit__(self, *_) -> None:
        while self._undo:
            self._undo.pop()()

    def _called(self, module, args, kwargs):
        cache = kwargs.get("past_key_values")
        mask = kwargs.get("attention_mask")
        self.calls.append(
            {
                "mask": mask.detach().cpu().clone() if isinstance(mask, torch.Tensor) and mask.dim() == 2 else None,
                "cached": int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0,
            }
        )

    def _enter_layer(self, layer: int):
        def enter(module, args):
            self._layer = layer

        return enter

    def _rotary_hook(self, name: str):
        def hook(module, args, kwargs, output):
            ids = args[1] if len(args) > 1 else kwargs.get("position_ids")
            kind = args[2] if len(args) > 2 else kwargs.get("layer_type")
            self.rotary.append(
                {
                    "call": len(self.calls) - 1,
                    "name": name,
                    "module": module,
                    "layer_type": kind,
                    "ids": ids.detach().cpu().clone(),
                    "output": output,
                }
            )

        return hook

    def _wrap(self, module) -> None:
        for name in filter(rotates, list(vars(module))):
            function = getattr(module, name)
            home = getattr(function, "__module__", "")
            if not home.startswith("transformers.") and home != module.__name__:
                self.replaced[f"{module.__name__}.{name}"] = f"{home}.{getattr(function, '__qualname__', function)}"

            def watched(q, k, *args, _function=function, **kwargs):
                self._depth += 1
                try:
                    after = _function(q, k, *args, **kwargs)
                finally:
                    self._depth -= 1
                if self._depth == 0 and self._layer in self.layers and isinstance(after, tuple) and len(after) == 2:
                    self.applied.append(
                        {
                            "call": len(self.calls) - 1,
                            "layer": self._layer,
                            "before": (q.detach().cpu().clone(), k.detach().cpu().clone()),
                            "after": tuple(each.detach().cpu().clone() for each in after),
                        }
                    )
                return after

            setattr(module, name, watched)
            self._undo.append(lambda m=module, n=name, f=function: setattr(m, n, f))

    # --- what they tell

    def check(self, *, strict: bool = False) -> Report:
        """Compares what was seen with the model's configuration. strict: raises posenc.Error where an error is found."""
        from .checks import Checks

        report = Checks(self).report()
        if strict and not report.ok:
            from ..errors import Error

            raise Error(str(report), "posenc.hf.capture")
        return report


def capture(model, layers="one per group") -> Capture:
    """Watches a model while it runs. layers: "one per group" of layers that treat position alike, "all", or numbers."""
    return Capture(model, layers)
