"""Whether an answer is right, and which mistakes would give it. The rules are those of README.md, "How an answer is judged"."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

# In the wheel the files lie beside this one, in the repository in vectors/.
_OWN = Path(__file__).parent / "data"
DATA = _OWN if _OWN.is_dir() else Path(__file__).resolve().parents[2]
SIX_DIGITS = 1e-5  # wrong answers have six


@dataclass(frozen=True)
class Mistake:
    """What an engine that gives a wrong answer does, and its cure."""

    name: str
    title: str
    cure: str
    report: str | None = None
    loss: bool = False  # right but for precision


class Vector(SimpleNamespace):
    """The inputs of a test as attributes; `id`, `about`, and `asked`: the inputs as a dictionary."""

    id: str
    operation: str
    about: str
    asked: dict[str, Any]


@dataclass(frozen=True)
class Verdict:
    right: bool
    shows: list[Mistake] = field(default_factory=list)  # the mistakes that give this answer
    off: float = 0.0  # the largest |got − right|

    def __bool__(self) -> bool:
        return self.right

    def __str__(self) -> str:
        if self.right:
            return "right"
        if not self.shows:
            return f"wrong by {self.off:.3g}, and by no mistake that is known"
        return "; or ".join(
            f"{m.name}: {m.title}\n  cure: {m.cure}" + (f"\n  seen: {m.report}" if m.report else "") for m in self.shows
        )


@functools.cache
def _read(name: str) -> dict[str, Any]:
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


def operations() -> list[str]:
    return sorted(path.stem for path in DATA.glob("*.json") if path.stem not in ("mistakes", "package", "package-lock"))


def mistakes() -> dict[str, Mistake]:
    return {name: Mistake(name, **entry) for name, entry in _read("mistakes")["mistakes"].items()}


def load(operation: str) -> list[Vector]:
    """The tests of an operation: "rotate", "frequencies", "model" … (operations())."""
    return [
        Vector(
            **{
                **test["input"],
                "id": test["id"],
                "operation": operation,
                "about": test.get("about", ""),
                "asked": test["input"],
            }
        )
        for test in _read(operation)["tests"]
    ]


def _flat(value: Any) -> list[Any]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [item for part in value for item in _flat(part)]
    return [value]


def _close(got: list[Any], wanted: list[Any], absolute: float, relative: float) -> bool:
    return len(got) == len(wanted) and all(
        w is None or (g is not None and abs(g - w) <= absolute + relative * abs(w))
        for g, w in zip(got, wanted, strict=False)
    )


def judge(vector: Vector, answer: Mapping[str, Any], dtype: str = "float32") -> Verdict:
    """The answer by names of outputs, each of them or some; in row-major order, nested or flat."""
    document = _read(vector.operation)
    test = next(test for test in document["tests"] if test["id"] == vector.id)
    if dtype not in document["tolerance"]:
        raise ValueError(f"dtype must be one of {', '.join(document['tolerance'])}, got {dtype!r}")
    tolerance = document["tolerance"][dtype]
    absolute, relative = tolerance["absolute"], tolerance["relative"]
    right = {name: _flat(value) for name, value in test["output"].items()}
    got = {name: _flat(value) for name, value in answer.items() if name in right}
    if not got:
        raise ValueError(f"an answer must have one of {', '.join(right)}, got {', '.join(map(str, answer)) or 'none'}")
    if all(_close(values, right[name], absolute, relative) for name, values in got.items()):
        return Verdict(True)
    off = 0.0
    for name, values in got.items():
        pairs = [(g, w) for g, w in zip(values, right[name], strict=False) if w is not None]
        same = len(values) == len(right[name]) and all(g is not None and math.isfinite(g) for g, _ in pairs)
        off = max([off, *(abs(g - w) for g, w in pairs)]) if same else math.inf
    shows = _shown(test, right, got, absolute, relative)
    if not shows and len(got) > 1:  # two mistakes at once: one in the frequencies, say, and one in the factor
        apart = [{name: values} for name, values in got.items() if not _close(values, right[name], absolute, relative)]
        each = [
            [
                m
                for m in _shown(test, right, part, absolute, relative)
                if set(test["mistakes"].get(m.name, part)) <= set(part)
            ]
            for part in apart
        ]
        shows = [found[0] for found in each] if all(each) else []
    return Verdict(False, shows, off)


def _shown(
    test: dict[str, Any], right: dict[str, list[Any]], got: dict[str, list[Any]], absolute: float, relative: float
) -> list[Mistake]:
    """The mistakes that give what was answered."""
    shows = []
    for name, changed in test["mistakes"].items():
        wrong = {**right, **{key: _flat(value) for key, value in changed.items()}}
        slack = {key: relative + (SIX_DIGITS if key in changed else 0) for key in wrong}
        visible = any(key in got and not _close(wrong[key], right[key], absolute, relative) for key in changed)
        if visible and all(_close(values, wrong[key], absolute, slack[key]) for key, values in got.items()):
            shows.append(mistakes()[name])
    for name, bounds in test.get("within", {}).items():
        near = {key: _flat(value) for key, value in bounds.items()}
        if mistakes()[name] not in shows and all(
            len(values) == len(right[key]) == len(near[key])
            and all(abs(g - w) <= absolute + b for g, w, b in zip(values, right[key], near[key], strict=False))
            for key, values in got.items()
        ):
            shows.append(mistakes()[name])
    return shows
