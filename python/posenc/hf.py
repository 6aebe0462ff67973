"""posenc on a live transformers model: what it really does about position, against what its configuration says.

with posenc.hf.capture(model) as seen:
    model(**inputs)
report = seen.check()            # findings: layer, code, expected, found, cure; true where there is none

with posenc.hf.patch(model) as patched:     # exact angles in every rotary module, until unpatch()
    print(patched)
"""

from __future__ import annotations

import json
import math
import sys

import torch

from . import _posenc, models, positions, tools
from ._posenc import Plan
from .reports import Report
from .torch import RotaryEmbedding

# --- what there is in a model -----------------------------------------------------------------------------------


def _rotates(name: str) -> bool:
    """Whether a function of a modeling file is one that rotates: apply_rotary_pos_emb and its kin."""
    return name.startswith("apply_") and "rotary" in name and "vision" not in name


def rotary_modules(model) -> dict:
    """The modules that make cos and sin, by name."""
    found = {}
    for name, module in model.named_modules():
        buffers = [buffer for buffer, _ in module.named_buffers(recurse=False)]
        if isinstance(module, RotaryEmbedding) or (
            "Rotary" in type(module).__name__ and any(buffer.endswith("inv_freq") for buffer in buffers)
        ):
            found[name] = module
    return found


def attention_modules(model) -> dict:
    """The self-attention of each layer of text: {layer: module}."""
    found: dict = {}
    for name, module in model.named_modules():
        layer = getattr(module, "layer_idx", None)
        if isinstance(layer, int) and "Attention" in type(module).__name__ and "vision" not in name.lower():
            found.setdefault(layer, module)
    return found


def _slice_plan(plan: Plan, channels: int) -> Plan:
    """The plan for what a model hands to its rotating function: whole heads, or the channels that rotate alone."""
    if channels != plan.rotary_dim or (not plan.first_dim and plan.head_dim in (0, channels)):
        return plan
    return Plan.of_frequencies(plan.inv_freq, pairing=plan.pairing, attention_factor=plan.attention_factor)


def _tolerance(dtype, length: int, plan: Plan) -> float:
    """What rounding explains: of the dtype, and of angles that a model forms in float."""
    epsilon = torch.finfo(dtype).eps
    return (4 * epsilon + 2.0**-22 * length) * max(1.0, plan.attention_factor)


def _text_of(config):
    return getattr(config, "text_config", None) or config


# --- patch ------------------------------------------------------------------------------------------------------


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


def patch(model) -> Patched:
    """Replaces a model's rotary modules by posenc.torch.RotaryEmbedding: frequencies in float64 that no cast reaches, exact
    angles. Everything else stays. What cannot be replaced (three axes of pictures among text) is left, and said."""
    done = Patched(model)
    for name, module in rotary_modules(model).items():
        if isinstance(module, RotaryEmbedding):
            continue
        change = {"module": name, "class": type(module).__name__, "left": "", "largest_difference": None, "length": 0}
        done.changes.append(change)
        config = getattr(module, "config", None) or model.config
        try:
            exact = RotaryEmbedding(config)
            kinds = sorted(getattr(module, "layer_types", [])) if hasattr(module, "layer_types") else []
            length = min(int(getattr(_text_of(config), "max_position_embeddings", 0) or 4096), 8192)
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


# --- capture ----------------------------------------------------------------------------------------------------


class Capture:
    """What a model did while it was watched. Taps: its rotary modules (ids, cos, sin, buffers), its rotating function (queries
    and keys before and after, layer by layer), and the arguments that it was called with (mask, cached tokens)."""

    def __init__(self, model, layers="one per group") -> None:
        self.model = model
        self.said = models.model(model)
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
        for name in filter(_rotates, list(vars(module))):
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
        findings = [*self._check_ids(), *self._check_rotary(), *self._check_applied()]
        order = {"error": 0, "warning": 1, "note": 2}
        findings.sort(key=lambda each: order[each["severity"]])
        report = Report(
            json.dumps({"model": self.said.name, "layers": sorted(self.layers), "findings": findings}), "capture"
        )
        if strict and not report.ok:
            from .errors import Error

            raise Error(str(report), "posenc.hf.capture")
        return report

    def _layers_of(self, kind: str | None) -> list[int]:
        types = getattr(_text_of(self.model.config), "layer_types", None) or []
        return [layer for layer, each in enumerate(types) if each == kind] if kind else []

    def _plan(self, layer: int, length: int) -> Plan:
        for stack in ("text", "decoder"):
            try:
                return self.said.plan(layer=layer, stack=stack, length=length)
            except ValueError as error:
                last = error
        raise last

    def _served(self, record) -> Plan | None:
        """The plan of the layers that a rotary module serves."""
        module, length = record["module"], int(record["ids"].max()) + 1
        if isinstance(module, RotaryEmbedding):
            return None
        layers = self._layers_of(record["layer_type"])
        if layers:
            plan = self._plan(layers[0], length)
            return plan if plan.rotates else None
        for group in self.said.groups:
            if group.stack in ("text", "decoder"):
                plan = self._plan(group.layers[0], length)
                if plan.rotates:
                    return plan
        return None

    def _check_ids(self):
        checked = set()
        for record in self.rotary:
            ids, call = (
                record["ids"],
                self.calls[record["call"]] if record["call"] >= 0 else {"mask": None, "cached": 0},
            )
            if record["call"] in checked or ids.dim() != 2:
                continue
            checked.add(record["call"])
            mask, cached, tokens = call["mask"], call["cached"], ids.shape[-1]
            if mask is not None and mask.shape[-1] == cached + tokens:
                expected = positions.from_mask(mask.numpy(), cached)
                keep = mask[:, cached:].to(torch.uint8).contiguous()
            else:
                expected, keep = positions.range(cached, tokens), None
            report = tools.check_positions(ids.numpy(), expected, keep=None if keep is None else keep.numpy())
            for finding in report.findings:
                data = dict(finding.to_dict())
                if _shifted_alike(ids, torch.as_tensor(expected.numpy()), keep):
                    data["severity"] = "note"
                    data["message"] += " Every token of a sequence is shifted alike, which a rotation does not see."
                yield data

    def _check_rotary(self):
        told = set()
        for record in self.rotary:
            key = record["name"], record["layer_type"]
            plan = self._served(record)
            if key in told or plan is None:
                continue
            found = list(self._module_findings(record, plan))
            if found:
                told.add(key)
            yield from found

    def _module_findings(self, record, plan: Plan):
        module, kind = record["module"], record["layer_type"]
        layers = self._layers_of(kind)
        prefix = f"{kind}_" if kind and hasattr(module, f"{kind}_inv_freq") else ""
        buffer = getattr(module, prefix + "inv_freq", None)
        if buffer is not None and buffer.dtype not in (torch.float32, torch.float64):
            yield _finding(
                "inv_freq_dtype", layers, f"{record['name']} keeps its frequencies with fewer digits than angles need.",
                "load the model in this dtype (dtype=) instead of casting it with .to(), or posenc.hf.patch(model)",
                "float32", str(buffer.dtype).removeprefix("torch."),
            )  # fmt: skip
            return
        if buffer is not None and plan.axes == 1 and plan.frequency_heads == 1:
            found = _frequency_finding(self.said, plan, buffer.detach().cpu().double(), layers, record["name"])
            if found:
                yield found
                return
        factor = getattr(module, prefix + "attention_scaling", None)
        if isinstance(record["output"], tuple):
            cos, sin = (each.detach().cpu().double() for each in record["output"])
            factor = (cos**2 + sin**2).sqrt().max().item()
        if factor is not None and not math.isclose(
            factor, plan.attention_factor, rel_tol=2e-2 if _coarse(record) else 1e-4
        ):
            yield _finding(
                "attention_factor", layers, f"cos and sin of {record['name']} have another factor than the scaling asks for.",
                "set attention_scaling to what the configuration says, or posenc.hf.patch(model)",
                f"{plan.attention_factor:.6g}", f"{factor:.6g}",
            )  # fmt: skip
            return
        if isinstance(record["output"], tuple) and record["ids"].dim() == 2 and plan.axes == 1:
            yield from self._angles_findings(record, plan, layers)

    def _angles_findings(self, record, plan: Plan, layers):
        made = record["output"][0].detach().cpu()
        exact = plan.cos_sin(record["ids"], dtype=torch.float64, halves=True)[0]
        if made.shape[-1] != 2 * exact.shape[-1] or made.shape[:-1] != exact.shape[:-1]:
            return
        both = (torch.cat((exact, exact), -1), exact.repeat_interleave(2, -1))
        errors = [(made.double() - each).abs() for each in both]
        error = min(errors, key=lambda each: each.max().item())
        if error.max().item() > _tolerance(made.dtype, int(record["ids"].max()) + 1, plan):
            where = int(error.amax((0, 2)).argmax())
            yield _finding(
                "cos_sin", layers, f"cos of {record['name']} is off by up to {error.max().item():.2g}.",
                "angles are formed with too few digits, or of other ids: posenc.hf.patch(model) forms them in double",
                position=int(record["ids"][0, where]),
            )  # fmt: skip

    def _check_applied(self):
        seen: dict = {}
        for record in self.applied:
            seen.setdefault((record["call"], record["layer"]), []).append(record)
        told = set()
        for (call, layer), records in seen.items():
            if layer in told:
                continue
            found = list(self._layer_findings(call, layer, records))
            if found:
                told.add(layer)
            yield from found
        if self.applied or not self.rotary:
            return
        how = ", ".join(f"{name} is {other}" for name, other in self.replaced.items())
        yield _finding(
            "not_seen", [], "No layer called its module's rotating function" + (f": {how}." if how else "."),
            "posenc.identify tells the rotation from queries or keys of a dump", severity="note",
        )  # fmt: skip

    def _layer_findings(self, call: int, layer: int, records):
        ids = [each["ids"] for each in self.rotary if each["call"] == call]
        if not ids or ids[0].dim() != 2:
            return
        ids = ids[0]
        plan = self._plan(layer, int(ids.max()) + 1)
        first, last = records[0], records[-1]
        if not plan.rotates:
            yield _finding(
                "rotated",
                [layer],
                "The layer rotates, and its configuration says that it does not.",
                "",
                "no rotation",
                "a rotation",
            )
            return
        if len(records) > 1 and torch.equal(records[1]["before"][0], first["after"][0]):
            yield _finding(
                "rotated_twice",
                [layer],
                "Queries and keys are rotated, and then rotated again.",
                "rotate once",
                "1",
                str(len(records)),
            )
            return
        if plan.axes > 1 or plan.grows:
            return
        for which, before, after in zip(("queries", "keys"), first["before"], last["after"], strict=True):
            finding = _rotation_finding(plan, layer, which, before, after, ids)
            if finding:
                yield finding
                return


def capture(model, layers="one per group") -> Capture:
    """Watches a model while it runs. layers: "one per group" of layers that treat position alike, "all", or numbers."""
    return Capture(model, layers)


# --- findings ---------------------------------------------------------------------------------------------------


def _finding(code, layers, message, cure, expected="", found="", *, severity="error", pair=None, position=None) -> dict:
    return {
        "code": code, "severity": severity, "stack": "text", "layers": list(layers), "pair": pair, "position": position,
        "expected": expected, "found": found, "message": message, "cure": cure,
    }  # fmt: skip


def _coarse(record) -> bool:
    return record["output"][0].dtype not in (torch.float32, torch.float64)


def _shifted_alike(found, expected, keep) -> bool:
    for row in range(found.shape[0]):
        shift = found[row] - expected[row if expected.shape[0] > 1 else 0]
        if keep is not None:
            shift = shift[keep[row].bool()]
        if shift.numel() and (shift != shift[0]).any():
            return False
    return True


def _frequency_finding(said, plan: Plan, found, layers, name: str):
    expected = torch.as_tensor(plan.inv_freq)
    if found.shape != expected.shape:
        return _finding(
            "rotary_dim", layers, f"{name} has another number of frequencies.", "check head_dim and partial_rotary_factor",
            str(2 * len(expected)), str(2 * len(found)),
        )  # fmt: skip
    error = ((found - expected).abs() / expected.abs().clamp_min(1e-300)).where(expected != 0, found.abs())
    worst = int(error.argmax())
    if error[worst] < 1e-5:
        return None
    numbers = {"pair": worst, "expected": f"{expected[worst].item():.6g}", "found": f"{found[worst].item():.6g}"}
    for group in range(said.group_count):
        used, unscaled = (
            torch.tensor([pair[i] for pair in said.pairs(group=group)], dtype=torch.float64) for i in (2, 3)
        )
        scaled = used.shape == expected.shape and torch.allclose(used, expected) and not torch.allclose(used, unscaled)
        if scaled and torch.allclose(found, unscaled, rtol=1e-5, atol=0):
            return _finding(
                "scaling_lost", layers, f"{name} has the frequencies that the model has without its scaling.",
                "the scaling was dropped when the module was made: posenc.hf.patch(model) puts it back", **numbers,
            )  # fmt: skip
    series = found[1].item() if len(found) > 1 and found[0] == 1 else 0
    geometric = series > 0 and torch.allclose(
        found, series ** torch.arange(len(found), dtype=torch.float64), rtol=1e-4, atol=0
    )
    base = f" They are those of base {series ** -len(found):.6g}." if geometric else ""
    return _finding(
        "rope_theta" if geometric else "frequencies", layers, f"{name} has other frequencies than the configuration says.{base}",
        "load the model with its own configuration, or posenc.hf.patch(model)", **numbers,
    )  # fmt: skip


def _rotation_finding(plan: Plan, layer: int, which: str, before, after, ids):
    """Where `after` is not the plan's rotation of `before`, what it is."""
    layout = "bshd" if before.shape[1] == ids.shape[1] and before.shape[2] != ids.shape[1] else "bhsd"
    mine = _slice_plan(plan, before.shape[-1])
    if before.shape[-1] < mine.first_dim + mine.rotary_dim:
        return None
    exact = mine.rotate(before.double(), position_ids=ids, layout=layout)
    size = exact.abs().max().item()
    tolerance = 2 * size * _tolerance(after.dtype, int(ids.max()) + 1, plan)

    def off(other) -> float:
        return (after.double() - other).abs().max().item()

    if off(exact) <= tolerance:
        return None
    if mine.pairing == "interleaved" and off(torch.cat((exact[..., ::2], exact[..., 1::2]), -1)) <= tolerance:
        return None  # DeepSeek's, which leaves the pairs in halves
    if off(mine.rotate(exact, position_ids=ids, layout=layout)) <= tolerance:
        return _finding("rotated_twice", [layer], f"The layer's {which} are rotated twice.", "rotate once")
    if off(before.double()) <= tolerance:
        return _finding(
            "not_rotated",
            [layer],
            f"The layer's {which} come out as they went in.",
            "rotate them",
            "a rotation",
            "none",
        )
    heads = (before, after) if layout == "bhsd" else (before.transpose(1, 2), after.transpose(1, 2))
    found = json.loads(_posenc.identify_json(heads[1][0].float(), heads[0][0].float(), ids[0], False))
    if found.get("verdict") == "rotation" and found.get("pairing") != mine.pairing:
        return _finding(
            "pairing", [layer], f"The layer's {which} are rotated in other pairs of channels.",
            "permute the rows of the projections, or take the rotation of this family", mine.pairing, found["pairing"],
        )  # fmt: skip
    fit = found.get("base")
    return _finding(
        "rotation", [layer], f"The layer's {which} are not rotated as the configuration says; off by {off(exact):.2g} of {size:.2g}.",
        "posenc.identify(after, before=before) shows which rotation it is", "",
        f"{found.get('verdict')}" + (f", base {fit:.6g}" if fit else ""),
    )  # fmt: skip
