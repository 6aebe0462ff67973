"""What tools return: findings and the numbers behind them, as attributes, JSON, text and pages of notebooks."""

from __future__ import annotations

import json


class Record:
    """A JSON object with its keys as attributes."""

    def __init__(self, data: dict) -> None:
        self._data = data

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return _wrapped(self._data[name])
        except KeyError:
            raise AttributeError(f"there is no {name!r} here; there is {', '.join(self._data)}") from None

    def __getitem__(self, name):
        return _wrapped(self._data[name])

    def __iter__(self):
        return iter(self._data)

    def __dir__(self):
        return [*super().__dir__(), *self._data]

    def __eq__(self, other) -> bool:
        return self._data == (other._data if isinstance(other, Record) else other)

    def __hash__(self) -> int:
        return hash(json.dumps(self._data, sort_keys=True))

    def to_dict(self) -> dict:
        return self._data

    def __repr__(self) -> str:
        return "Record(" + ", ".join(f"{name}={_short(value)}" for name, value in self._data.items()) + ")"


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _wrapped(value):
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return [Record(each) for each in value]
    return value


class Finding(Record):
    """One thing that a tool found: code, severity, layers, expected, found, message, cure (docs/doctor.md)."""

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


class Report(Record):
    """What a tool answers. True where nothing was found that changes a text: all findings are notes."""

    def __init__(self, text: str, name: str = "", page=None) -> None:
        data = json.loads(text)
        super().__init__(data if isinstance(data, dict) else {"rows": data})
        self._text, self._name, self._page = text, name, page

    @property
    def findings(self) -> list[Finding]:
        found = self._data.get("findings", [])
        return [Finding({**each.get("finding", {}), **each}) for each in found]

    @property
    def ok(self) -> bool:
        return all(each["severity"] == "note" for each in self._data.get("findings", []))

    def __bool__(self) -> bool:
        return self.ok

    def to_json(self) -> str:
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
