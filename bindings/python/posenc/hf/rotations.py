"""One rotation of a live model beside the one that its configuration says."""

from __future__ import annotations

from typing import Any

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


def finding(
    code, layers, message, cure, expected="", found="", *, severity="error", pair=None, position=None
) -> dict[str, Any]:
    return {
        "code": code, "severity": severity, "stack": "text", "layers": list(layers), "pair": pair, "position": position,
        "expected": expected, "found": found, "message": message, "cure": cure,
    }  # fmt: skip


def off_by(a, b) -> float:
    """The largest difference of two tensors."""
    return (a.double() - b.double()).abs().max().item()


def _in_halves(x):
    return torch.cat((x[..., ::2], x[..., 1::2]), -1)


def rotation_finding(plan: Plan, layer: int, which: str, before, after, ids, dtype=None):
    """Where `after` is not the plan's rotation of `before`, what it is. Ids are [batch, seq] or [axes, batch, seq]."""
    tokens = ids.shape[-1]
    layout = "bshd" if before.shape[1] == tokens and before.shape[2] != tokens else "bhsd"
    mine = slice_plan(plan, before.shape[-1])
    if before.shape[-1] < mine.first_dim + mine.rotary_dim:
        return None
    exact = mine.rotate(before.double(), position_ids=ids, layout=layout)
    size = exact.abs().max().item()
    limit = 2 * size * tolerance(dtype or after.dtype, int(ids.max()) + 1, plan)
    if off_by(after, exact) <= limit:
        return None
    halves = _in_halves(exact) if mine.pairing == "interleaved" else exact  # as DeepSeek's code leaves them
    if off_by(after, halves) <= limit:
        return None
    again = [mine.rotate(each, position_ids=ids, layout=layout) for each in (exact, halves)]
    if min(off_by(after, again[0]), off_by(after, _in_halves(again[1]))) <= limit:
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
    heads = [each if layout == "bhsd" else each.transpose(1, 2) for each in (before, after)]
    found = _identified(heads[0], heads[1], ids)
    if mine.pairing == "interleaved" and found["verdict"] != "rotation":
        neighbours = torch.stack(heads[1].chunk(2, -1), -1).flatten(-2)
        other = _identified(heads[0], neighbours, ids)
        found = other if other["verdict"] == "rotation" else found
    return _named(found, mine, layer, which, f"off by {off_by(after, exact):.2g} of {size:.2g}")


def _identified(before, after, ids) -> dict[str, Any]:
    return tools.identify(after[0].float(), before=before[0].float(), position_ids=ids.flatten(0, -2)[0]).to_dict()


def _named(found: dict[str, Any], mine: Plan, layer: int, which: str, off: str) -> dict[str, Any]:
    """What identify() tells of a rotation that is not the plan's, as a finding. Of several axes it sees the first alone."""
    if found["verdict"] == "not a rotation" and mine.axes == 1:
        return finding(
            "not_a_rotation", [layer], f"The layer's {which} are mixed in a way that is no rotation of pairs of channels.",
            "a table made for one pairing and applied with another does this: lay out cos and sin as the function pairs them",
            f"a rotation of {mine.pairing}", "none",
        )  # fmt: skip
    if found["verdict"] == "rotation" and mine.axes == 1:
        if found["pairing"] != mine.pairing and found["rotary_dim"] > 2:  # of one pair both are the same
            return finding(
                "pairing", [layer], f"The layer's {which} are rotated in other pairs of channels.",
                "permute the rows of the projections, or take the rotation of this family", mine.pairing, found["pairing"],
            )  # fmt: skip
        if found["sign"] < 0:
            return finding(
                "rotated_backwards", [layer], f"The layer's {which} are rotated the other way round.",
                "exchange the signs of sin", "forwards", "backwards",
            )  # fmt: skip
        if found["offset"]:
            return finding(
                "offset", [layer], f"The layer's {which} are rotated by other positions than its tokens have.",
                "hand the ids of the tokens to this layer too", "0", f"{found['offset']:+d}",
            )  # fmt: skip
        if found["rotary_dim"] != mine.rotary_dim and not mine.first_dim:
            return finding(
                "rotary_dim", [layer], f"The layer's {which} have another number of channels that rotate.",
                "check head_dim and partial_rotary_factor", str(mine.rotary_dim), str(found["rotary_dim"]),
            )  # fmt: skip
    fit = found.get("base") if mine.axes == 1 else None
    return finding(
        "rotation", [layer], f"The layer's {which} are not rotated as the configuration says; {off}.",
        "posenc.identify(after, before=before) shows which rotation it is", "",
        f"{found['verdict']}" + (f", base {fit:.6g}" if fit else ""),
    )  # fmt: skip
