"""What was seen in a live model, compared with what its configuration says."""

from __future__ import annotations

import json
import math

import torch

from .. import positions, tools
from .._posenc import Plan
from ..reports import Report
from ..torch import RotaryEmbedding
from .live import distance, rotating_groups, text_config


def _slice_plan(plan: Plan, channels: int) -> Plan:
    """The plan for what a model hands to its rotating function: whole heads, or the channels that rotate alone."""
    if channels != plan.rotary_dim or (not plan.first_dim and plan.head_dim in (0, channels)):
        return plan
    return Plan.of_frequencies(plan.inv_freq, pairing=plan.pairing, attention_factor=plan.attention_factor)


def _tolerance(dtype, length: int, plan: Plan) -> float:
    """What rounding explains: of the dtype, and of angles that a model forms in float."""
    epsilon = torch.finfo(dtype).eps
    return (4 * epsilon + 2.0**-22 * length) * max(1.0, plan.attention_factor)


class Checks:
    """The findings of a Capture, one tap after the other; of each layer and module the first that differs."""

    def __init__(self, seen) -> None:
        self.seen = seen

    def report(self) -> Report:
        findings = [*self._ids(), *self._rotary(), *self._applied(), *self._replaced()]
        order = {"error": 0, "warning": 1, "note": 2}
        findings.sort(key=lambda each: order[each["severity"]])
        seen = self.seen
        return Report(
            json.dumps({"model": seen.said.name, "layers": sorted(seen.layers), "findings": findings}), "capture"
        )

    def _layers_of(self, kind: str | None) -> list[int]:
        types = getattr(text_config(self.seen.model.config), "layer_types", None) or []
        return [layer for layer, each in enumerate(types) if each == kind] if kind else []

    def _plan(self, layer: int, length: int) -> Plan:
        for stack in ("text", "decoder"):
            try:
                return self.seen.said.plan(layer=layer, stack=stack, length=length)
            except ValueError as error:
                last = error
        raise last

    def _served(self, record) -> Plan | None:
        """The plan of the layers that a rotary module serves. Where nothing says which these are (Gemma 3 of transformers 4 has a
        module for local layers and one for the others), the one that its frequencies are nearest to."""
        module, length = record["module"], int(record["ids"].max()) + 1
        if isinstance(module, RotaryEmbedding):
            return None
        layers = self._layers_of(record["layer_type"])
        if layers:
            plan = self._plan(layers[0], length)
            return plan if plan.rotates else None
        plans = [self._plan(group.layers[0], length) for group in rotating_groups(self.seen.said)]
        return min(plans, key=lambda plan: distance(plan, getattr(module, "inv_freq", None)), default=None)

    def _ids(self):
        checked = set()
        for record in self.seen.rotary:
            ids, call = (
                record["ids"],
                self.seen.calls[record["call"]] if record["call"] >= 0 else {"mask": None, "cached": 0},
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

    def _rotary(self):
        told = set()
        for record in self.seen.rotary:
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
            found = _frequency_finding(self.seen.said, plan, buffer.detach().cpu().double(), layers, record["name"])
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

    def _replaced(self):
        for name, other in self.seen.replaced.items():
            yield _finding(
                "replaced", [], f"{name} is {other}.",
                "its rotation is compared like any other; where it is not seen, posenc.identify tells it from a dump",
                name, other, severity="note",
            )  # fmt: skip

    def _applied(self):
        seen: dict = {}
        for record in self.seen.applied:
            seen.setdefault((record["call"], record["layer"]), []).append(record)
        told = set()
        for (call, layer), records in seen.items():
            if layer in told:
                continue
            found = list(self._layer_findings(call, layer, records))
            if found:
                told.add(layer)
            yield from found
        if self.seen.applied or not self.seen.rotary:
            return
        yield _finding(
            "not_seen", [], "No layer called a rotating function of its file.",
            "posenc.identify tells the rotation from queries or keys of a dump", severity="note",
        )  # fmt: skip

    def _layer_findings(self, call: int, layer: int, records):
        ids = [each["ids"] for each in self.seen.rotary if each["call"] == call]
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
    found = tools.identify(heads[1][0].float(), before=heads[0][0].float(), position_ids=ids[0]).to_dict()
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
