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
    fields = [(field["name"], type_of(field), field) for field in entry["fields"]]
    keywords = [f"{name}: {kind}{' | None' if field.get('optional') else ''} = ..." for name, kind, field in fields]
    if class_name == "Rope":
        keywords.append("scaling: Value | dict = ...")
    keywords += [f"{table['name']}: Any = ..." for table in entry.get("tables", [])]
    lines = [f"class {class_name}(Value):", f'    """{entry["title"]}: {entry["formula"]}"""', ""]
    arguments = ", ".join(["self", *(["*", *keywords] if keywords else []), "**aliases: Any"])
    lines.append(f"    def __init__({arguments}) -> None: ...")
    for name, kind, field in fields:
        lines += [f"    {name}: {kind}{' | None' if field.get('optional') else ''}", f'    """{field["doc"]}"""']
    if class_name == "Rope":
        lines += ["    scaling: Value"]
    return "\n".join(lines)


def main() -> None:
    entries = {(entry["kind"], entry["name"]): entry for entry in json.loads(_posenc.schemes_json())}
    classes = [(name, entries[kind, word]) for name, kind, word in _posenc.value_classes()]
    text = f"""from collections.abc import Sequence
from typing import Any, Literal

__all__ = {["Value", *(name for name, _ in classes)]}

class Value:
    kind: str
    name: str
    title: str
    formula: str
    paper: str
    def __init__(self, **fields: Any) -> None: ...
    def fields(self) -> dict[str, Any]: ...
    def table(self, name: str) -> Any: ...
    def replace(self, **fields: Any) -> Value: ...

"""
    Path(sys.argv[1]).write_text(text + "\n\n".join(stub(*each) for each in classes) + "\n")


if __name__ == "__main__":
    main()
