"""cards.py POSENC: asks each engine, and writes what `posenc conform` says between the markers of docs/conformance.md."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PAGE = ROOT / "docs" / "conformance.md"
ENGINES = [
    "transformers",
    "mlx",
    "ggml",
    "torchtitan",
    "x_transformers",
    "rotary_embedding_torch",
    "onnxruntime",
    "litgpt",
]
CANDLE = HERE / "candle"


def card(posenc, *program):
    ran = subprocess.run(
        [posenc, "conform", "--json", "--", *program],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode not in (0, 1):
        sys.exit(f"{program[-1]} must answer, got {ran.stderr.strip()[-500:]}; run it by hand")
    return json.loads(ran.stdout)


def row(of):
    asked = of["passed"] + of["wrong"] + of["loss"] + of["failed"]
    by = [
        f"{o['operation']} {sum(t['outcome'] == 'passed' for t in o['tests'])}/{n}"
        for o in of["operations"]
        if (n := sum(t["outcome"] != "unsupported" for t in o["tests"]))
    ]
    mistakes = [(m["mistake"], m["tests"]) for o in of["operations"] for m in o["mistakes"]]
    unknown = sum(o["unknown"] for o in of["operations"])
    shown = [f"`{name}` {count}" for name, count in mistakes]
    shown += [f"{word} {count}" for word, count in (("unknown", unknown), ("failed", of["failed"])) if count]
    return f"| {of['engine']} {of['engine_version']} | {of['dtype']} | {of['passed']} of {asked} | {', '.join(by)} | {', '.join(shown) or 'nothing'} |"


def candle(posenc):
    """candle's card, of a program that cargo builds."""
    if not shutil.which("cargo"):
        sys.exit(
            "cargo must be there for candle's adapter, got none; install it (https://rustup.rs), or leave candle out of cards.py"
        )
    target = ROOT / "build" / "candle"
    subprocess.run(["cargo", "build", "-q", "--release", "--locked", "--target-dir", target], cwd=CANDLE, check=True)
    return card(posenc, str(target / "release" / "candle_adapter"))


def main():
    posenc = sys.argv[1]
    cards = [card(posenc, str(Path(posenc).parent / "posenc_adapter"))]
    for engine in ENGINES:
        if sys.stdout.isatty():
            print(f"{engine} …", end="\r", flush=True)
        cards.append(card(posenc, sys.executable, str(HERE / f"{engine}_adapter.py")))
    cards.append(candle(posenc))
    lines = [
        "| engine | type | right | by operation | what the rest shows |",
        "|---|---|---|---|---|",
        *map(row, cards),
    ]
    text, begin, end = PAGE.read_text(), "<!-- made: cards -->\n", "<!-- end -->"
    before, rest = text.split(begin)
    PAGE.write_text(before + begin + "\n" + "\n".join(lines) + "\n\n" + end + rest.split(end, 1)[1])
    print("\n".join(lines))


if __name__ == "__main__":
    main()
