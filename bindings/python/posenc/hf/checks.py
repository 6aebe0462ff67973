"""What was seen in a live model, compared with what its configuration says."""

from __future__ import annotations

import copy
import json
import math

import torch

from .._posenc import Plan
from ..reports import Report
from ..torch import RotaryEmbedding
from .attending import attention_findings, cache_findings
from .ids import ids_findings
from .live import distance, layers_of, rotating_groups
from .rotations import finding, rotation_finding, tolerance


class Checks:
    """The findings of a Capture, one tap after the other; of each layer and module the first that differs."""

    def __init__(self, seen) -> None:
        self.seen = seen

    def report(self) -> Report:
        findings = [*self._unseen(), *ids_findings(self.seen), *self._rotary(), *self._layers(), *self._replaced()]
        order = {"error": 0, "warning": 1, "note": 2}
        findings.sort(key=lambda each: order[each["severity"]])
        seen = self.seen
        return Report(
            json.dumps({"model": seen.said.name, "layers": sorted(seen.layers), "findings": findings}), "capture"
        )

    def _unseen(self):
        """What never ran is not right by that."""
        seen = self.seen
        if not seen.calls:
            yield finding(
                "nothing_seen", [], "The model was not called while it was watched, so that nothing of it is known.",
                "call it within the with block, in this process: a copy and a worker's model are others",
            )  # fmt: skip
        elif not (seen.rotary or seen.applied or seen.attended or seen.cached):
            yield finding(
                "nothing_seen", [], "The model was called, and none of its layers showed anything.",
                "call it with use_cache=True; where its layers are code of its own, posenc.identify takes their tensors",
            )  # fmt: skip

    def _layers_of(self, record) -> list[int]:
        return layers_of(self.seen.model.config, record["layer_type"] or record["name"])

    def _plan(self, layer: int, length: int, part: str = "attention") -> Plan:
        for stack in ("text", "decoder"):
            try:
                return self.seen.said.plan(layer=layer, stack=stack, length=length, part=part)
            except ValueError as error:
                last = error
        raise last

    def _served(self, record) -> Plan | None:
        """The plan of the layers that a rotary module serves. Where nothing says which these are (Gemma 3 of transformers 4 has a
        module for local layers and one for the others), the one that its frequencies are nearest to."""
        module, length = record["module"], int(record["ids"].max()) + 1
        if isinstance(module, RotaryEmbedding):
            return None
        layers = self._layers_of(record)
        if layers:
            plan = self._plan(layers[0], length)
            return plan if plan.rotates else None
        plans = [self._plan(group.layers[0], length) for group in rotating_groups(self.seen.said)]
        return min(plans, key=lambda plan: distance(plan, getattr(module, "inv_freq", None)), default=None)

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
        layers = self._layers_of(record)
        prefix = f"{kind}_" if kind and hasattr(module, f"{kind}_inv_freq") else ""
        buffer = getattr(module, prefix + "inv_freq", None)
        if buffer is not None and buffer.dtype not in (torch.float32, torch.float64):
            yield finding(
                "inv_freq_dtype", layers, f"{record['name']} keeps its frequencies with fewer digits than angles need.",
                "load the model in this dtype (dtype=) instead of casting it with .to(), or posenc.hf.patch(model)",
                "float32", str(buffer.dtype).removeprefix("torch."),
            )  # fmt: skip
            return
        if buffer is not None and plan.frequency_heads == 1:
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
            yield finding(
                "attention_factor", layers, f"cos and sin of {record['name']} have another factor than the scaling asks for.",
                "set attention_scaling to what the configuration says, or posenc.hf.patch(model)",
                f"{plan.attention_factor:.6g}", f"{factor:.6g}",
            )  # fmt: skip
            return
        if isinstance(record["output"], tuple) and record["ids"].dim() in (2, 3):
            yield from self._angles_findings(record, plan, layers)

    def _angles_findings(self, record, plan: Plan, layers):
        made, ids = record["output"][0].detach().cpu(), record["ids"]
        error = _angle_error(made, ids, plan)
        if error is None:
            return
        if error.max().item() > tolerance(made.dtype, int(ids.max()) + 1, plan):
            where = int(error.amax((*range(error.dim() - 2), -1)).argmax())
            yield finding(
                "cos_sin", layers, f"cos of {record['name']} is off by up to {error.max().item():.2g}.",
                "angles are formed with too few digits, or of other ids: posenc.hf.patch(model) forms them in double",
                position=int(ids.flatten(0, -2)[0, where]),
            )  # fmt: skip
            return
        asked = ids + 1  # of a copy: some modules keep what they were asked for
        again = _asked(record, asked)
        if again is not None and torch.equal(again.cpu(), made) and _angle_error(made, asked, plan).max() > 0.1:
            yield finding(
                "ids_ignored", layers, f"{record['name']} gives the same angles for other position ids.",
                "form angles of the values of position_ids, not of their shape",
                "angles of the ids", "angles of 0, 1, 2, …",
            )  # fmt: skip

    def _replaced(self):
        for name, other in self.seen.replaced.items():
            yield finding(
                "replaced", [], f"{name} is {other}.",
                "its rotation is compared like any other; where it is not seen, posenc.identify tells it from a dump",
                name, other, severity="note",
            )  # fmt: skip

    def _layers(self):
        """Layer by layer what its rotating function, its attention and its cache showed, of the first call that shows anything."""
        seen: dict = {}
        for kind in ("applied", "attended", "cached"):
            for record in getattr(self.seen, kind):
                seen.setdefault((record["call"], record["layer"]), {}).setdefault(kind, []).append(record)
        told = set()
        for (call, layer), records in sorted(seen.items(), key=lambda item: item[0]):
            if layer in told:
                continue
            found = next(self._layer_findings(call, layer, records), None)
            if found:
                told.add(layer)
                yield found
        if (
            self.seen.applied
            or not self.seen.rotary
            or any(self.seen.calls[each["call"]]["alike"] for each in self.seen.cached)
        ):
            return
        yield finding(
            "not_seen", [], "No layer called a rotating function of its file.",
            "posenc.hf.probe(model) tells the rotation from the keys of its cache", severity="note",
        )  # fmt: skip

    def _layer_findings(self, call: int, layer: int, records):
        ids = next((each["ids"] for each in self.seen.rotary if each["call"] == call), None)
        if ids is None or call < 0 or ids.dim() not in (2, 3):
            return
        length, said = int(ids.max()) + 1, self.seen.calls[call]
        plan = self._plan(layer, length)
        parts: dict[str, list[object]] = {"attention": [], "indexer": []}
        for record in records.get("applied", []):
            parts[record["part"]].append(record)
        applied = parts["attention"]
        if applied:
            yield from self._rotation_findings(plan, layer, applied, ids)
        if parts["indexer"] and self._group(layer).indexer:
            for found in self._rotation_findings(self._plan(layer, length, "indexer"), layer, parts["indexer"], ids):
                yield {**found, "code": _of_indexer(found["code"]), "message": "Of the indexer: " + found["message"]}
        for record in records.get("attended", []):
            yield from attention_findings(record, self._group(layer), plan, said, applied, ids)
        for record in records.get("cached", []):
            yield from cache_findings(record, plan, said, applied, ids)

    def _group(self, layer: int):
        groups = [each for each in self.seen.said.groups if each.stack in ("text", "decoder")]
        return next(each for each in groups if layer in each.layers)

    def _rotation_findings(self, plan: Plan, layer: int, records, ids):
        first, last = records[0], records[-1]
        if not plan.rotates:
            yield finding(
                "rotated",
                [layer],
                "The layer rotates, and its configuration says that it does not.",
                "",
                "no rotation",
                "a rotation",
            )
            return
        if len(records) > 1 and torch.equal(records[1]["before"][0], first["after"][0]):
            yield finding(
                "rotated_twice",
                [layer],
                "Queries and keys are rotated, and then rotated again.",
                "rotate once",
                "1",
                str(len(records)),
            )
            return
        if "growth" in plan.features:
            return
        for which, before, after in zip(("queries", "keys"), first["before"], last["after"], strict=True):
            found = rotation_finding(plan, layer, which, before, after, ids)
            if found:
                yield found
                return


def _of_indexer(code: str) -> str:
    """docs/codes.md has two codes of what picks keys: other pairs, and all else."""
    return "indexer_pairing" if code == "pairing" else "indexer"


def _angle_error(made, ids, plan: Plan):
    """How far cos is from the plan's, however a module lays out the numbers of pairs; None where its shape is another."""
    style = RotaryEmbedding.style_of(made, plan, ids)
    if style is None:
        return None
    return (made.double() - RotaryEmbedding.laid_out(plan, ids, torch.float64, style)[0]).abs()


def _asked(record, ids):
    """cos of a copy of a module, for other ids."""
    if isinstance(record["module"], RotaryEmbedding):
        return None
    module, kind = copy.deepcopy(record["module"]), record["layer_type"]
    x = record["output"][0]
    with torch.no_grad():
        return module.forward(x, ids.to(x.device), *([kind] if kind else []))[0]


def _coarse(record) -> bool:
    return record["output"][0].dtype not in (torch.float32, torch.float64)


def _frequency_finding(said, plan: Plan, found, layers, name: str):
    expected = torch.as_tensor(plan.inv_freq)
    if plan.axes > 1:  # each pair belongs to one axis, and a module may have them in another order
        expected, found = (each.sort(descending=True).values for each in (expected.sum(0), found))
    if found.shape != expected.shape:
        return finding(
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
            return finding(
                "scaling_lost", layers, f"{name} has the frequencies that the model has without its scaling.",
                "the scaling was dropped when the module was made: posenc.hf.patch(model) puts it back", **numbers,
            )  # fmt: skip
    series = found[1].item() if len(found) > 1 and found[0] == 1 else 0
    geometric = series > 0 and torch.allclose(
        found, series ** torch.arange(len(found), dtype=torch.float64), rtol=1e-4, atol=0
    )
    base = f" They are those of base {series ** -len(found):.6g}." if geometric else ""
    return finding(
        "rope_theta" if geometric else "frequencies", layers, f"{name} has other frequencies than the configuration says.{base}",
        "load the model with its own configuration, or posenc.hf.patch(model)", **numbers,
    )  # fmt: skip
