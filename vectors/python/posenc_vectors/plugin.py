"""pytest's end: which mistakes the vectors showed, the most frequent first."""

from __future__ import annotations

from collections import Counter
from typing import Any

from posenc_vectors.judge import mistakes
from posenc_vectors.tests import shown


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if not shown:
        return
    terminalreporter.section("mistakes that the vectors show")
    known = mistakes()
    for name, count in Counter(name for _, name in shown).most_common():
        terminalreporter.write_line(f"{name} ({count} of the failures): {known[name].title}")
        terminalreporter.write_line(f"  cure: {known[name].cure}")
