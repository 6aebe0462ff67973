"""Taps in a live model: its arguments, its rotary modules, its rotating function, its attention, and its cache."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any

import torch

from .. import models
from ..errors import Error
from ..reports import Report
from .live import attention_modules, indexer_modules, rotary_modules, rotates, text_config, tower


class Capture:
    """What a model did while it was watched. Taps: the arguments that it was called with (mask, cached tokens), its rotary
    modules (ids, cos, sin, buffers), its rotating function (queries and keys before and after, layer by layer), its attention
    (what it is given, layer by layer), and the keys of its cache."""

    def __init__(self, model: torch.nn.Module, layers: str | Iterable[int] = "one per group") -> None:
        self.model: Any = models.bare(model)
        self.said = models.read(self.model)
        self.layers = self._wanted(layers)
        self.calls: list[dict[str, Any]] = []
        self.rotary: list[dict[str, Any]] = []
        self.applied: list[dict[str, Any]] = []
        self.attended: list[dict[str, Any]] = []
        self.cached: list[dict[str, Any]] = []
        self.replaced: dict[str, str] = {}
        self._layer: int | None = None
        self._depth = 0  # one rotating function may call another
        self._part = "attention"  # or "indexer", while that picks keys
        self._undo: list[Any] = []

    def _wanted(self, layers: str | Iterable[int]) -> set[int]:
        if layers == "all":
            return set(attention_modules(self.model))
        if layers == "one per group":
            return {group.layers[0] for group in self.said.groups if group.stack in ("text", "decoder")}
        if isinstance(layers, str):
            rule = "layers must be 'one per group', 'all' or numbers"
            raise Error(f"posenc.hf.capture: {rule}, got {layers!r}", "posenc.hf.capture", rule, repr(layers))
        return set(layers)

    # --- taps

    def __enter__(self) -> Capture:
        self._run_eagerly()
        self._undo.append(self.model.register_forward_pre_hook(self._called, with_kwargs=True).remove)
        self._undo.append(self.model.register_forward_hook(self._returned).remove)
        for name, module in rotary_modules(self.model).items():
            if tower(name):
                continue
            hook = module.register_forward_hook(self._rotary_hook(name), with_kwargs=True)
            self._undo.append(hook.remove)
        modules = set()
        for layer, module in attention_modules(self.model).items():
            self._undo.append(module.register_forward_pre_hook(self._enter_layer(layer)).remove)
            self._undo.append(module.register_forward_hook(self._leave_layer(layer), with_kwargs=True).remove)
            modules.add(type(module).__module__)
            for indexer in indexer_modules(module):
                self._undo.append(indexer.register_forward_pre_hook(self._enter_part("indexer")).remove)
                self._undo.append(indexer.register_forward_hook(self._enter_part("attention")).remove)
        for name in sorted(modules):
            self._wrap(sys.modules[name])
            self._wrap_attention(sys.modules[name])
        return self

    def __exit__(self, *_: object) -> None:
        while self._undo:
            self._undo.pop()()

    def _run_eagerly(self) -> None:
        """A compiled graph that was made before calls no hook, so that nothing would be seen of it."""
        compiler: Any = getattr(torch, "compiler", None)
        if hasattr(compiler, "set_stance"):
            stance = compiler.set_stance("force_eager")
            self._undo.append(lambda: stance.__exit__(None, None, None))

    def _called(self, module, args, kwargs):
        kwargs = {**dict(zip(inspect.signature(module.forward).parameters, args)), **kwargs}  # noqa: B905
        cache = cache_of(kwargs.get)
        tokens = _kept(kwargs.get("input_ids"))
        grids = {name: _kept(kwargs.get(name)) for name in ("image_grid_thw", "video_grid_thw")}
        self.calls.append(
            {
                "mask": _kept(kwargs.get("attention_mask"), 2),
                "cache": id(cache),
                "cached": int(cache.get_seq_length()) if hasattr(cache, "get_seq_length") else 0,
                "tokens": tokens,
                "alike": _one_token(tokens),
                "given": _kept(kwargs.get("position_ids"), 2),
                "bounds": _kept(kwargs.get("cu_seq_lens_q"), 1),
                "grids": {name: grid.numpy() for name, grid in grids.items() if grid is not None},
            }
        )

    def _returned(self, module, args, output):
        cache = cache_of(lambda name: getattr(output, name, None))
        if self.calls and cache is not None:
            self.calls[-1]["cache"] = id(cache)  # made by the call, or handed to it
        layers = getattr(cache, "layers", [])
        for layer in self.layers:
            keys = getattr(layers[layer], "keys", None) if layer < len(layers) else None
            if isinstance(keys, torch.Tensor) and keys.dim() == 4:
                self.cached.append({"call": len(self.calls) - 1, "layer": layer, "keys": keys.detach().cpu().clone()})

    def _enter_layer(self, layer: int):
        def enter(module, args):
            self._layer = layer

        return enter

    def _enter_part(self, part: str):
        def enter(*_):
            self._part = part

        return enter

    def _leave_layer(self, layer: int):
        """Of attention that is code of its own, and no function of a list, at least the mask is seen."""

        def leave(module, args, kwargs, output):
            mask, call = kwargs.get("attention_mask"), len(self.calls) - 1
            seen = self.attended[-1] if self.attended else {"call": None}
            if layer not in self.layers or (seen["call"], seen.get("layer")) == (call, layer):
                return
            if isinstance(mask, torch.Tensor) and mask.dim() == 4 and call >= 0:
                self.attended.append(
                    {
                        "call": call,
                        "layer": layer,
                        "queries": None,
                        "count": mask.shape[2],
                        "keys": min(mask.shape[3], self.calls[call]["cached"] + mask.shape[2]),
                        "mask": mask.detach().cpu().clone(),
                        "scaling": None,
                    }
                )

        return leave

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
                            "part": self._part,
                            "before": (q.detach().cpu().clone(), k.detach().cpu().clone()),
                            "after": tuple(each.detach().cpu().clone() for each in after),
                        }
                    )
                return after

            setattr(module, name, watched)
            self._undo.append(lambda m=module, n=name, f=function: setattr(m, n, f))

    def _wrap_attention(self, module) -> None:
        """The function that a file's attention is handed to: its own where it is eager, else one of transformers' list."""
        name = getattr(text_config(self.model.config), "_attn_implementation", None)
        functions = getattr(module, "ALL_ATTENTION_FUNCTIONS", None)
        if name == "eager" and hasattr(module, "eager_attention_forward"):
            function = module.eager_attention_forward
            module.eager_attention_forward = self._attending(function)
            self._undo.append(lambda: setattr(module, "eager_attention_forward", function))
        elif functions is not None and name in functions and not hasattr(functions[name], "_watches"):
            local = vars(functions).get("_local_mapping", {})
            before = local.get(name)
            functions[name] = self._attending(functions[name])
            self._undo.append(lambda: functions.__setitem__(name, before) if before else functions.__delitem__(name))

    def _attending(self, function):
        def watched(module, query, key, *args, **kwargs):
            layer = getattr(module, "layer_idx", None)
            if layer in self.layers:
                mask = args[1] if len(args) > 1 else kwargs.get("attention_mask")
                self.attended.append(
                    {
                        "call": len(self.calls) - 1,
                        "layer": layer,
                        "queries": query.detach().cpu().clone(),
                        "count": query.shape[2],
                        "keys": key.shape[2],
                        "mask": mask.detach().cpu().clone() if isinstance(mask, torch.Tensor) else mask,
                        "scaling": kwargs.get("scaling"),
                    }
                )
            return function(module, query, key, *args, **kwargs)

        watched._watches = self
        return watched

    # --- what they tell

    def check(self, *, strict: bool = False) -> Report:
        """Compares what was seen with the model's configuration. strict: raises posenc.Error where an error is found."""
        from .checks import Checks

        report = Checks(self).report()
        if strict and not report.ok:
            raise Error(str(report), "posenc.hf.capture")
        return report


def cache_of(get):
    """The cache among a call's arguments or in what it gives: `cache` from transformers 5.24 on, which warns at the older name."""
    cache = get("cache")
    return get("past_key_values") if cache is None else cache


def _kept(tensor, axes: int | None = None):
    """A copy of what may change, where it is a tensor of so many axes."""
    if not isinstance(tensor, torch.Tensor) or axes not in (None, tensor.dim()):
        return None
    return tensor.detach().cpu().clone()


def _one_token(ids) -> bool:
    """Whether a prompt repeats one token: keys then differ by their rotation alone."""
    return isinstance(ids, torch.Tensor) and ids.dim() == 2 and ids.shape[1] > 1 and bool((ids == ids[:, :1]).all())


def capture(model: torch.nn.Module, layers: str | Iterable[int] = "one per group") -> Capture:
    """Watches a model while it runs, also through what wraps it (DataParallel, DDP, FSDP, torch.compile, which runs eagerly
    meanwhile). layers: "one per group" of layers that treat position alike, "all", or numbers."""
    return Capture(model, layers)


def probe(model: torch.nn.Module, tokens: int = 64) -> Report:
    """Runs a model on one token, repeated, and checks what it did. The keys of its cache alone then show how they were rotated,
    whatever code rotates them."""
    said = text_config(models.bare(model).config)
    special = {getattr(said, name, None) for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    token = next(each for each in range(3, 100) if each not in special)
    device = next(model.parameters()).device
    with torch.no_grad(), capture(model) as seen:
        model(torch.full((1, tokens), token, device=device), use_cache=True)
    return seen.check()
