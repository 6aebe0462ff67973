"""One rotation of a live model beside the one that its configuration says."""

from __future__ import annotations

import torch

from .. import tools
from .._posenc import Plan


def slice_plan(plan: Plan, channels: int) -> Plan:
    """The plan for what a model hands to its rotating function: whole heads, or the channels that rotate alone."""
    if channels != plan.rotary_dim or (not plan.first_dim and plan.head_dim in (0, channels)):
        return plan
    return Plan.of_frequencies(plan.inv_freq, pairing=plan.pairing, attention_factor=plan.attention_factor)


def tolerance(dtype, length: int, plan: Plan) -> float:
    """What rounding explains: of the dtype, and of angles that a model forms in float."""
    epsilon = torch.finfo(dtype).eps
    return (4 * epsilon + 2.0**-22 * length) * max(1.0, plan.attention_factor)


def finding(code, layers, message, cure, expected="", found="", *, severity="error", pair=None, position=None) -> dict:
    return {
        "code": code, "severity": severity, "stack": "text", "layers": list(layers), "pair": pair, "position": position,
        "expected": expected, "found": found, "message": message, "cure": cure,
    }  # fmt: skip


def off_by(a, b) -> float:
    """The largest difference of two tensors."""
    return (a.double() - b.double()).abs().max().item()


def rotation_finding(plan: Plan, layer: int, which: str, before, after, ids, dtype=None):
    """Where `after` is not the plan's rotation of `before`, what it is."""
    layout = "bshd" if before.shape[1] == ids.shape[1] and before.shape[2] != ids.shape[1] else "bhsd"
    mine = slice_plan(plan, before.shape[-1])
    if before.shape[-1] < mine.first_dim + mine.rotary_dim:
        return None
    exact = mine.rotate(before.double(), position_ids=ids, layout=layout)
    size = exact.abs().max().item()
    limit = 2 * size * tolerance(dtype or after.dtype, int(ids.max()) + 1, plan)
    if off_by(after, exact) <= limit:
        return None
    if mine.pairing == "interleaved" and off_by(after, torch.cat((exact[..., ::2], exact[..., 1::2]), -1)) <= limit:
        return None  # DeepSeek's, which leaves the pairs in halves
    if off_by(after, mine.rotate(exact, position_ids=ids, layout=layout)) <= limit:
        return finding("rotated_twice", [layer], f"The layer's {which} are rotated twice.", "rotate once")
    if off_by(after, before) <= limit:
        return finding(
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
        return finding(
            "pairing", [layer], f"The layer's {which} are rotated in other pairs of channels.",
            "permute the rows of the projections, or take the rotation of this family", mine.pairing, found["pairing"],
        )  # fmt: skip
    fit = found.get("base")
    return finding(
        "rotation", [layer], f"The layer's {which} are not rotated as the configuration says; off by {off_by(after, exact):.2g} of {size:.2g}.",
        "posenc.identify(after, before=before) shows which rotation it is", "",
        f"{found.get('verdict')}" + (f", base {fit:.6g}" if fit else ""),
    )  # fmt: skip
