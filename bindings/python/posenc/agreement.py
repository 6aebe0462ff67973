"""Rolled out beside trained: whether a trainer and the engine that generates for it compute the same positions."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

from . import _posenc
from ._posenc import Model, Plan
from .errors import Error
from .models import bare, explain, read
from .reports import Report
from .tools import engines, identify_table

if TYPE_CHECKING:
    from .types import ArrayLike, ModelSource

    Side: TypeAlias = (
        ModelSource | Plan | ArrayLike | tuple[ArrayLike, ArrayLike] | Sequence[ArrayLike] | dict[str, Any] | Any
    )

_WHERE = "agree"
_needs_model = "pass model="
_largest = 2**20  # bytes of settings, as the readers have it


class Agreement(Report):
    """What posenc.agree answers: true where both compute the same positions."""

    verdict: str
    """in a sentence"""
    trainer: str
    """how it was taken"""
    engine: str
    """how it was taken"""
    length: int
    """tokens that it is told for"""
    cannot_tell: list[str]
    """what neither side shows"""

    def __str__(self) -> str:
        return f"{self._data['verdict']}\n{super().__str__() if self.findings else ''}".rstrip()


def _refuse(rule: str, value: str, cure: str) -> Error:
    return Error(f"{_WHERE}: {rule}, got {value}; {cure}", _WHERE, rule, value, cure)


@dataclass
class _Side:
    """What one of both computes: a model, frequencies that were seen, or both."""

    said: str
    model: Model | None = None
    seen: list[tuple[Any, float | None]] = field(
        default_factory=list
    )  # frequencies, float64, and their factor if known
    pairing: str | None = None  # of channels, where what was seen tells it
    findings: list[dict[str, Any]] = field(default_factory=list)
    length: int = 0


def _array(x: Any) -> Any:
    import numpy as np

    if hasattr(x, "detach"):
        x = x.detach().cpu().double()
    return np.asarray(x, dtype=np.float64)


def _is_array(x: Any) -> bool:
    return hasattr(x, "__dlpack__") or hasattr(x, "__array__")


def _of_plan(plan: Plan, said: str) -> _Side:
    return _Side(said, seen=[(_array(plan.inv_freq), plan.attention_factor)], pairing=plan.pairing)


def _of_module(x: Any) -> _Side | None:
    """A live model, or the rotary module of an engine; None: neither."""
    if hasattr(x, "cos_sin_cache"):
        from .serving.rotations import plan_of

        return _of_plan(plan_of(x), f"the table of a {type(x).__name__}")
    if not hasattr(x, "named_modules"):
        return None
    from .hf.live import rotary_modules, tower
    from .torch import RotaryEmbedding

    seen: list[tuple[Any, float | None]] = []
    for name, module in rotary_modules(bare(x)).items():
        if tower(name) or isinstance(module, RotaryEmbedding):  # posenc's own are the model's
            continue
        for buffer, frequencies in module.named_buffers(recurse=False):
            if buffer.endswith("inv_freq") and "original" not in buffer:
                factor = getattr(module, buffer.removesuffix("inv_freq") + "attention_scaling", None)
                seen.append((_array(frequencies), None if factor is None else float(factor)))
    return _Side(f"a live {type(bare(x)).__name__}", read(x), seen)


def _of_text(x: str, base: Model | None) -> _Side:
    """A command line, settings, or the name of an engine: how the doctor takes it."""
    kinds = json.loads(_posenc.doctor_json([("text", x.encode())], [], 0))["evidence"]
    # A model that the text names stands before it.
    kind, said = (kinds[-1]["kind"], kinds[-1]["as"].split(";")[0]) if kinds else ("unusable", "nothing")
    name = x.strip().partition("@")[0]
    of_engine = name in {each["name"] for each in engines()}
    if not of_engine and kind not in ("command", "training"):
        raise _refuse("a side must be a model, frequencies, settings of a training or an engine's command line", said,
                      "numbers come as an array, (cos, sin) as two")  # fmt: skip
    if base is None:
        raise _refuse("settings and command lines must have a model beside them", said, _needs_model)
    if of_engine:
        return _Side(f"{x.strip()}, by its profile", _posenc.read_as(base, x.strip(), 0)[0])
    model, _, found, length = _posenc.read_command(base, x) if kind == "command" else _posenc.read_trainer(base, x)
    return _Side(said, model, findings=json.loads(found), length=length)


def _of_settings(x: dict[str, Any], base: Model | None) -> _Side:
    """The settings of a training as a dict: a key a line, as their reader has it."""
    if base is None:
        raise _refuse("settings and command lines must have a model beside them", "a dict", _needs_model)
    model, _, found, length = _posenc.read_trainer(base, json.dumps(x, indent=1, default=str))
    return _Side("the settings of a training", model, findings=json.loads(found), length=length)


def _is_settings(x: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(x, dict) and not {"model_type", "architectures", "text_config"} & set(x)


def _taken(x: Side, base: Model | None) -> _Side:
    """What one side is."""
    if isinstance(x, Model):
        return _Side(f"the model {x.name}", x)
    if isinstance(x, Plan):
        return _of_plan(x, "a plan")
    if _is_settings(x):
        return _of_settings(x, base)
    if isinstance(x, tuple) and len(x) == 2 and all(map(_is_array, x)) and _array(x[0]).ndim == 2:
        found = identify_table(*(each.detach().cpu().float() if hasattr(each, "detach") else each for each in x))
        if found.verdict != "rotation":
            raise _refuse("tables of cos and sin must be those of a rotation", found.verdict, "give inv_freq")
        frequencies = _array([each.frequency for each in found.pairs])
        findings = list(found.to_dict()["findings"])
        if found.exchanged:
            findings.append(_finding("exchanged", [], "cos and sin are exchanged", "give (cos, sin)"))
        return _Side("tables of cos and sin", seen=[(frequencies, float(found.amplitude))], findings=findings)
    if _is_array(x):
        return _Side("frequencies", seen=[(_array(x), None)])
    if isinstance(x, (list, tuple)) and x and all(map(_is_array, x)):
        return _Side("frequencies", seen=[(_array(each), None) for each in x])
    live = _of_module(x)
    if live is not None:
        return live
    if (
        isinstance(x, str)
        and not os.path.exists(x)
        and (" " in x.strip() or "\n" in x)
        and not x.lstrip().startswith("{")
    ):
        return _of_text(x, base)
    if isinstance(x, str) and x.partition("@")[0] in {each["name"] for each in engines()}:
        return _of_text(x, base)
    if isinstance(x, (str, os.PathLike)) and os.path.isfile(x) and os.path.getsize(x) <= _largest:
        text = Path(x).read_bytes()
        try:
            said = json.loads(text)
        except ValueError:
            said = None
        if _is_settings(said):
            return _of_settings(said, base)
        kind = json.loads(_posenc.doctor_json([(os.fspath(x), text)], [], 0))["evidence"][-1]["kind"]
        if kind in ("command", "training"):
            return _of_text(text.decode(errors="replace"), base)
    made = read(x)
    return _Side(f"the model {made.name}", made)


# --- both -------------------------------------------------------------------------------------------------------------


def _finding(code: str, layers: Sequence[int], message: str, cure: str) -> dict[str, Any]:
    return {
        "code": code, "severity": "error", "stack": "text", "layers": list(layers), "pair": None, "position": None,
        "expected": "", "found": "", "message": message, "cure": cure,
    }  # fmt: skip


def _plan_like(own: Plan, seen: tuple[Any, float | None], pairing: str | None) -> Plan | None:
    """A plan that rotates the channels of `own` by frequencies that were seen; None where they are not as many."""
    import numpy as np

    frequencies, factor = seen
    exact = _array(own.inv_freq)
    if exact.ndim == 2 and frequencies.ndim == 1 and exact.shape[1] == len(frequencies):
        frequencies = np.where(exact != 0, frequencies, 0.0)  # each pair's axis is the configuration's
    if frequencies.shape != exact.shape:
        return None
    return Plan.of_frequencies(
        frequencies, pairing=pairing or own.pairing, first_dim=own.first_dim,
        attention_factor=own.attention_factor if factor is None else factor,
    )  # fmt: skip


def _apart(a: Plan, b: Plan) -> float:
    """How far apart the frequencies of two plans are, in logarithms."""
    import numpy as np

    x, y = (np.log(np.maximum(_array(each.inv_freq), 1e-300)) for each in (a, b))
    return float(np.abs(x - y).max())


def _nearest(own: Plan, seen: list[tuple[Any, float | None]], pairing: str | None) -> Plan | None:
    """Of what was seen, what is nearest to a plan; None: nothing is of its size."""
    like = [_plan_like(own, each, pairing) for each in seen]
    return min((each for each in like if each is not None), key=lambda each: _apart(own, each), default=None)


def _plan_of(side: _Side, own: Plan, group: Any, length: int) -> Plan | None:
    """By which a side rotates a group of layers: of what was seen of it the nearest, else as its model says."""
    if side.seen:
        return _nearest(own, side.seen, side.pairing)
    assert side.model is not None
    plan = side.model.plan(layer=group.layers[0], stack=group.stack, length=length)
    return Plan.of_frequencies(
        plan.inv_freq, pairing=plan.pairing, first_dim=plan.first_dim, attention_factor=plan.attention_factor
    )


def _differ(a: Plan | None, b: Plan | None, layers: Sequence[int], length: int) -> list[dict[str, Any]]:
    if a is None or b is None:
        message = f"the {'trainer' if a is None else 'engine'} rotates another number of pairs of channels"
        return [_finding("rotary_dim", layers, message, "check head_dim and partial_rotary_factor")]
    found = json.loads(_posenc.plan_diff_json(a, b, length))["findings"]
    return [{**each, "layers": list(layers)} for each in found]


def _of_groups(known: Model, a: _Side, b: _Side, length: int) -> list[dict[str, Any]]:
    """Findings of each group of layers that rotates, where frequencies of a side were seen."""
    found = []
    for group in explain(known).groups:
        if group.stack in ("text", "decoder"):
            own = known.plan(layer=group.layers[0], stack=group.stack, length=length)
            if own.rotates:
                mine, theirs = (_plan_of(side, own, group, length) for side in (a, b))
                found += _differ(mine, theirs, group.layers, length)
    return found


def _of_frequencies(a: _Side, b: _Side, length: int) -> list[dict[str, Any]]:
    """The same where no model is known: each of the trainer's frequencies has its like on the other side."""
    found = []
    for frequencies, factor in a.seen:
        own = Plan.of_frequencies(
            frequencies, pairing=a.pairing or b.pairing or "halves", attention_factor=factor or 1.0
        )
        found += _differ(own, _nearest(own, b.seen, b.pairing), [], length)
    return found


def _rotation(finding: dict[str, Any]) -> bool:
    """Whether it is of files what frequencies that were seen tell better."""
    return finding["code"].startswith("rope_") or finding["code"] in ("pairing", "rotary_dim")


def agree(trainer: Side, engine: Side, *, model: ModelSource | None = None, at: int = 0) -> Agreement:
    """Whether a trainer and the engine that generates for it compute the same positions: `report.ok`, or the report as a bool.

    Each side: a live model (its rotary modules' inv_freq is read), frequencies as an array (or a list of them, where kinds of layers
    rotate differently), tables (cos, sin), an engine's rotary module with a cos_sin_cache, what posenc.model takes, the settings of a
    training (YAML, TOML, a dict, a path or a command line: verl, NeMo-RL, slime, torchtitan and other trainers that the doctor
    knows), an engine's command line, or an engine's name ("vllm", by its profile). model: what settings and command lines are
    about, where neither side is a model. at: tokens to tell it for; 0: what the sides say, or the model's context.

    Takes milliseconds, so that a start-up can call it. Raises posenc.Error where a side is none of these."""
    base = None if model is None else read(model)
    given: tuple[Side, Side] = (trainer, engine)
    taken: list[_Side | None] = [None, None]
    if base is None:  # the side that has a model tells what the other's words are about
        for which, side in enumerate(given):
            try:
                taken[which] = _taken(side, None)
            except Error as refused:
                if refused.cure != _needs_model:
                    raise
        base = next((each.model for each in taken if each is not None and each.model is not None), None)
    a, b = (_taken(side, base) if had is None else had for side, had in zip(given, taken, strict=True))
    known = a.model or b.model or base
    length = at or max(a.length, b.length) or (explain(known).context if known is not None else 0) or 4096

    findings = [*a.findings, *b.findings]
    seen = bool(a.seen or b.seen)
    if a.model is not None and b.model is not None:
        of_files = json.loads(_posenc.diff_json(a.model, b.model, length))["findings"]
        findings += [each for each in of_files if not (seen and _rotation(each))]
    if seen:
        findings += _of_groups(known, a, b, length) if known is not None else _of_frequencies(a, b, length)
    cannot_tell = []
    if any(factor is None for side in (a, b) for _, factor in side.seen):
        cannot_tell.append("frequencies alone do not show what cos and sin are multiplied by")
    if any(side.pairing is None and side.model is None for side in (a, b)):
        cannot_tell.append("frequencies alone do not show which channels make a pair")
    order = {"error": 0, "warning": 1, "note": 2}
    findings = [each for which, each in enumerate(findings) if each not in findings[:which]]
    findings.sort(key=lambda each: order[each["severity"]])
    wrong = [each for each in findings if each["severity"] != "note"]
    verdict = (
        f"They do not agree: {wrong[0]['message'] or wrong[0]['code']}."
        if wrong
        else f"Both compute the same positions, for texts of {length:,} tokens."
    )
    said = {
        "verdict": verdict, "trainer": a.said, "engine": b.said, "length": length, "cannot_tell": cannot_tell, "findings": findings,
    }  # fmt: skip
    return Agreement(json.dumps(said), "agree")
