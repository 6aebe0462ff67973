"""Tests, files of them, and the rule that a mistake which shows nowhere is not written."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from make.numbers import double, flat, mapped

DTYPES = ("float64", "float32", "float16", "bfloat16")


def shortened(value) -> Any:
    """Wrong answers are to be told apart: six digits do."""
    if value is None or isinstance(value, (bool, int)):
        return value
    return float(f"{double(value):.6g}")


def written(value) -> Any:
    if isinstance(value, (bool, int, str)) or value is None:
        return value
    made = double(value)
    return int(made) if made.is_integer() and abs(made) < 2**53 else made


@dataclass
class Test:
    id: str
    input: dict[str, Any]
    output: dict[str, Any]
    about: str = ""
    source: str = ""
    mistakes: dict[str, dict[str, Any]] = field(default_factory=dict)
    within: dict[str, dict[str, Any]] = field(default_factory=dict)

    def wrong(self, name: str, **output) -> None:
        """What the mistake makes of this test; outputs that it leaves right are left out."""
        assert name not in self.mistakes, (self.id, name)
        self.mistakes[name] = output


@dataclass
class File:
    """A file of one operation. `tolerance` by dtype is (absolute, relative): |got − right| ≤ absolute + relative·|right|."""

    operation: str
    about: str
    made_by: str
    tolerance: dict[str, tuple[float, float]]
    tests: list[Test] = field(default_factory=list)

    def close(self, a, b, dtype: str) -> bool:
        a, b = flat(a), flat(b)
        absolute, relative = self.tolerance[dtype]
        return len(a) == len(b) and all(
            y is None or (x is not None and abs(double(x) - double(y)) <= absolute + relative * abs(double(y)))
            for x, y in zip(a, b, strict=True)
        )

    def add(self, test: Test) -> Test:
        self.tests.append(test)
        return test

    def json(self, version: int) -> dict[str, Any]:
        tests = []
        for test in self.tests:
            wrong = {}
            for name, outputs in sorted(test.mistakes.items()):
                shown = {
                    key: value for key, value in outputs.items() if not self.close(value, test.output[key], "float32")
                }
                if shown:
                    wrong[name] = {key: mapped(value, shortened) for key, value in shown.items()}
            made = {"id": test.id}
            for key, value in (("about", test.about), ("source", test.source)):
                if value:
                    made[key] = value
            made |= {
                "input": test.input,
                "output": {k: mapped(v, written) for k, v in test.output.items()},
                "mistakes": wrong,
            }
            if test.within:
                made["within"] = {
                    name: {key: mapped(value, shortened) for key, value in outputs.items()}
                    for name, outputs in test.within.items()
                }
            tests.append(made)
        assert len({test["id"] for test in tests}) == len(tests), self.operation
        return {
            "schema": f"schemas/{self.operation}.schema.json",
            "version": version,
            "operation": self.operation,
            "about": self.about,
            "made_by": self.made_by,
            "tolerance": {dtype: {"absolute": t[0], "relative": t[1]} for dtype, t in self.tolerance.items()},
            "tests": tests,
        }


def text(document: dict[str, Any]) -> str:
    """A test a line: differences between two versions read as tests that changed."""
    head = {key: value for key, value in document.items() if key != "tests"}
    lines = [json.dumps(test, ensure_ascii=False, separators=(",", ":")) for test in document["tests"]]
    opened = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    return opened + ',\n "tests": [\n' + ",\n".join(lines) + "\n ]\n}\n"


def save(path: Path, content: str, check: bool) -> bool:
    """Whether the file is, or was, as it is made now."""
    same = path.exists() and path.read_text() == content
    if not same and not check:
        path.write_text(content)
    return same
