"""What tools return: findings and the numbers behind them, as attributes, JSON, text and pages of notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any


class Keys:
    """A JSON object with its keys as attributes."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    if not TYPE_CHECKING:  # what has a class of its own says which keys there are

        def __getattr__(self, name):
            if name.startswith("_"):
                raise AttributeError(name)
            try:
                return _wrapped(self._data[name])
            except KeyError:
                raise AttributeError(f"there is no {name!r} here; there is {', '.join(self._data)}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrapped(self._data[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __eq__(self, other: object) -> bool:
        return self._data == (other._data if isinstance(other, Keys) else other)

    def __hash__(self) -> int:
        import json  # an import of posenc is to be quick

        return hash(json.dumps(self._data, sort_keys=True))

    def to_dict(self) -> dict[str, Any]:
        """The same as a dict of JSON."""
        return self._data

    def __repr__(self) -> str:
        return "Record(" + ", ".join(f"{name}={_short(value)}" for name, value in self._data.items()) + ")"


class Record(Keys):
    """An object within an answer: its keys are those of docs/json.md."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrapped(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [Record(each) for each in value]
    return value


class Finding(Keys):
    """One thing that a tool found (docs/codes.md). An engine's has engine, where, what, effect and sure besides."""

    code: str
    """stable, by which docs/codes.md has it"""
    severity: str
    """error, warning or note"""
    stack: str | None
    """text, encoder, decoder, vision or audio; None: of none"""
    layer: int | None
    layers: list[int]
    pair: int | None
    """of channels"""
    position: int | None
    expected: str
    found: str
    message: str
    cure: str
    """empty where there is none"""
    engines: list[str]
    """that do otherwise; empty: no engine is meant"""
    line: int | None
    """of the file"""
    engine: str
    version: str
    where: str
    what: str
    effect: str
    sure: str
    finding: Record

    def __str__(self) -> str:
        layers = self._data.get("layers") or []
        where = f" (layer{'s' if len(layers) > 1 else ''} {_ranges(layers)})" if layers else ""
        text = f"{self._data['severity']} {self._data['code']}{where}: {self._data['message']}"
        return text + (f"\n    {self._data['cure']}" if self._data.get("cure") else "")

    __repr__ = __str__


def _ranges(numbers: list[int]) -> str:
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)


class Report(Keys):
    """What a tool answers. True where nothing was found that changes a text: all findings are notes."""

    def __init__(self, text: str, name: str = "", page: Callable[[], str] | None = None) -> None:
        import json

        data = json.loads(text)
        super().__init__(data if isinstance(data, dict) else {"rows": data})
        self._text, self._name, self._page = text, name, page

    @property
    def findings(self) -> list[Finding]:
        """What was found, the gravest first."""
        found = self._data.get("findings", [])
        return [Finding({**each.get("finding", {}), **each}) for each in found]

    @property
    def ok(self) -> bool:
        """Whether nothing was found that changes a text."""
        return all(each["severity"] == "note" for each in self._data.get("findings", []))

    def __bool__(self) -> bool:
        return self.ok

    def to_json(self) -> str:
        """What the command of the same name prints with --json, as text."""
        return self._text

    def facts(self) -> str:
        """What it tells beside findings, a line each: all of what `identify` answers."""
        facts = {
            name: value for name, value in self._data.items() if name != "findings" and value not in (None, [], "")
        }
        return "\n".join(f"{name}: {_short(value)}" for name, value in facts.items())

    def __str__(self) -> str:
        if self._page:
            return self._page()
        findings = "\n".join(map(str, self.findings))
        if self._name == "identify":
            return f"{self.facts()}\n{findings}".rstrip()
        if self._name == "doctor":
            return f"{self._data['verdict']}\n{findings}".rstrip()
        return findings or (self.facts() if "findings" not in self._data else "nothing found")

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from . import display

        return display.report_html(self)


class Difference(Report):
    """What posenc.diff answers, of two models or a model and an engine."""

    equal: bool
    expected: str
    """the models' names"""
    found: str
    engine: str
    """of `diff(model, engine=)`"""
    version: str
    source: str
    """where the engine's code was read"""
    refused: str | None
    """why the engine does not run the model; None: it does"""
    table_rows: int
    """that the engine's table has; 0: it has none"""
    notes: list[Record]
    """kind and what, of all that the engine does otherwise"""
    engines: list[Record]
    """what each makes of both models"""


class Diagnosis(Report):
    """What posenc.doctor answers."""

    verdict: str
    """in a sentence"""
    evidence: list[Record]
    """name, kind and as: how each piece was taken"""
    next: str
    """what to do first"""


class Probe(Report):
    """What posenc.probe answers."""

    verdict: str
    """one of as_file, named, unknown, other_weights and undecided"""
    sentence: str
    """the verdict in a sentence"""
    sure: float
    """the probability of what the sentence says; 0 where it is unknown or undecided"""
    hypothesis: str | None
    """the likeliest, "file" of the file's own"""
    next_best: str | None
    """the likeliest that the texts tell from it"""
    tokens: int
    """prompt tokens that were asked about"""
    hypotheses: list[Record]
    """id, title, score, probability, scale and alike of each, the likeliest first"""

    def __init__(self, text: str) -> None:
        import json

        super().__init__(json.dumps(json.loads(text)["servers"][0]), "probe")

    @property
    def ok(self) -> bool:
        """Whether it rotates as the file says."""
        return self._data["verdict"] == "as_file"

    def __str__(self) -> str:
        return (
            f"{self._data['sentence']}\n{super().__str__()}".rstrip() if self.findings else str(self._data["sentence"])
        )


class Translation(Report):
    """What posenc.translate answers."""

    engine: str
    version: str
    target: Any
    """the engine's own words: a configuration, or flags"""
    notes: list[Record]
    """kind and what, of all that is lost"""
    length: int
    largest_angle_difference: float
    """radians"""
    amplitude_difference: float


class Extension(Report):
    """What posenc.extend answers."""

    to: int
    """tokens asked for"""
    trained: int
    """tokens that training has shown"""
    trained_by: str
    scheme: str
    layers: list[int]
    untouched: list[int]
    """layers that need nothing"""
    base: float
    least_base: float
    turns: list[float]
    recommended: str
    """the scaling's name"""
    rule: str
    reason: str
    source: str
    options: list[Record]
    """every scaling with what it does"""
    flags: Any
    """the recommended one in the words of a configuration"""
    engine: Record
    """the same in an engine's words"""
    remarks: list[str]
    cache: list[Record]
    """bytes of keys and values, by stack and layers"""
    unknown: list[str]


class Identification(Report):
    """What posenc.identify and identify_table answer. What is told of a rotation alone is there where the verdict is one."""

    verdict: str
    """rotation, not a rotation, not rotated, …"""
    pairing: str
    first_dim: int
    rotary_dim: int
    blocks: int
    base: float | None
    scaling: Record
    """type and fields; type default: none"""
    amplitude: float
    offset: int
    """of all positions"""
    sign: int
    """-1: rotated backwards"""
    angles: list[float]
    """radians per position, a pair each"""
    residual: float
    runner_up: Record | None
    pairs: list[Record]
    cannot_tell: list[str]
    beside_model: list[Record]
    """findings, where model= was given"""
    columns: str
    """of a table: pairs, halves or interleaved"""
    exchanged: bool
    """of a table: cos and sin were"""
    kept: str
    """of a table: the dtype that it was kept in"""


class VectorIdentification(Report):
    """What posenc.identify_vectors answers."""

    sinusoidal: bool
    layout: str
    cosine_first: bool
    spacing: str
    base: float
    scale: float
    offset: int
    zero_rows: list[int]
    kept: str
    residual: float
    cannot_tell: list[str]


class Precision(Report):
    """What posenc.precision answers."""

    model: str
    context: int
    groups: list[Record]
    """positions, and of each engine's arithmetic the error in radians"""


class Verification(Report):
    """What posenc.verify answers."""

    rows: list[Record]
    """each claim with its verdict, what was computed, and whether both agree"""
