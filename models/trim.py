#!/usr/bin/env python3
"""Leaves of a config.json what posenc reads, for models/published/.

    models/trim.py build/release/posenc config.json > models/published/qwen3-32b.json

A key stays if posenc says something else without it: explain, lint, or the translation to four
engines. Lists stay whole.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

QUESTIONS = [
    ["explain", "--json"],
    ["lint", "--json"],
    *(["translate", "--json", "--to", engine] for engine in ("transformers", "vllm", "llama.cpp", "sglang")),
]


def answers(posenc: str, config: dict) -> list[tuple[int, str]]:
    """What posenc says of the configuration, without the folder that it lay in."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(config))
        runs = [
            subprocess.run([posenc, *question, str(path)], capture_output=True, text=True, cwd=folder, check=False)
            for question in QUESTIONS
        ]
    return [(run.returncode, (run.stdout + run.stderr).replace(folder, "")) for run in runs]


def trim(posenc: str, config: dict) -> dict:
    wanted = answers(posenc, config)

    def without(path: list[str]) -> dict:
        copy = json.loads(json.dumps(config))
        inner = copy
        for key in path[:-1]:
            inner = inner[key]
        del inner[path[-1]]
        return copy

    def visit(part: dict, path: list[str]) -> None:
        nonlocal config
        for key in list(part):
            fewer = without([*path, key])
            if key != "model_type" and answers(posenc, fewer) == wanted:
                config = fewer
            elif isinstance(part[key], dict):
                visit(part[key], [*path, key])

    visit(config, [])
    return config


def as_text(config: dict) -> str:
    """A line for each key, lists on the line of theirs."""
    text = json.dumps(config, indent=1, ensure_ascii=False)
    return (
        re.sub(r"\[[^][{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]).replace("[ ", "[").replace(" ]", "]"), text)
        + "\n"
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    trimmed = trim(str(Path(sys.argv[1]).resolve()), json.loads(Path(sys.argv[2]).read_text()))
    print(as_text(trimmed), end="")
