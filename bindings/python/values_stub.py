"""Writes values.pyi, which tells type checkers and editors of every scheme with its fields: values_stub.py FILE, with _posenc
on the path."""

import json
import sys
from pathlib import Path

import _posenc

TYPES = {
    "boolean": "bool",
    "integer": "int",
    "number": "float",
    "numbers": "Sequence[float]",
    "integers": "Sequence[int]",
}


def type_of(field: dict) -> str:
    return f"Literal{field['choices']}" if field["kind"] == "choice" else TYPES[field["kind"]]


def stub(class_name: str, entry: dict) -> str:
    fields = [(field, f"{type_of(field)}{' | None' if field.get('optional') else ''}") for field in entry["fields"]]
    names = [(name, kind) for field, kind in fields for name in (field["name"], *field["aliases"])]
    if class_name == "Rope":
        names.append(("scaling", "Value | dict[str, Any]"))
    names += [(table["name"], "Any") for table in entry.get("tables", [])]
    keywords = "".join(f", {name}: {kind} = ..." for name, kind in dict(names).items() if name.isidentifier())
    keywords = f", *{keywords}" if keywords else ""
    lines = [f"class {class_name}(Value):", f'    """{entry["title"]}: {entry["formula"]}"""', ""]
    lines.append(f"    def __init__(self{keywords}) -> None: ...")
    lines.append(f"    def replace(self{keywords}) -> Self: ...  # type: ignore[override]")
    for field, kind in fields:
        lines += [f"    {field['name']}: {kind}", f'    """{field["doc"]}"""']
    if class_name == "Rope":
        lines += ["    scaling: Value"]
    return "\n".join(lines)


def main() -> None:
    entries = {(entry["kind"], entry["name"]): entry for entry in json.loads(_posenc.schemes_json())}
    classes = [(name, entries[kind, word]) for name, kind, word in _posenc.value_classes()]
    text = f'''from collections.abc import Sequence
from typing import Any, Literal

from numpy import float64
from numpy.typing import NDArray
from typing_extensions import Self

from . import _posenc

__all__ = {["Value", *(name for name, _ in classes)]}

class Value:
    """A scheme, scaling or content scheme with its fields. Fields are keywords, by every name and alias that files use."""

    _value: _posenc.Value
    kind: str
    """scheme, scaling or content"""
    name: str
    title: str
    """what it is called in full"""
    formula: str
    """its mathematics in a line"""
    paper: str
    """its number at arXiv; empty where there is none"""
    def __init__(self, **fields: Any) -> None: ...
    def fields(self) -> dict[str, Any]:
        """Every field with its value, defaults among them."""
    def table(self, name: str) -> NDArray[float64] | None:
        """A tensor of a scheme that reads the content, in float64; None where it was not given."""
    def replace(self, **fields: Any) -> Self:
        """The same with other fields."""
    def _repr_html_(self) -> str: ...

def of_value(value: _posenc.Value) -> Value: ...
def of_dict(said: dict[str, Any]) -> Value: ...

'''
    Path(sys.argv[1]).write_text(text + "\n\n".join(stub(*each) for each in classes) + "\n")


if __name__ == "__main__":
    main()
