"""mutate.py POSENC [ENGINE...]: plants each mistake of planted.py in each engine, and says how many `posenc conform` names.

A mistake that changes no answer of an engine (it has no such operation, or refuses the question) is not counted."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from planted import PLANTED

HERE = Path(__file__).parent
ENGINES = ["x_transformers", "rotary_embedding_torch", "mlx", "ggml", "torchtitan", "transformers", "onnxruntime"]


def card(posenc, engine, operation, plant=None):
    env = {**os.environ, "PYTHONWARNINGS": "ignore"} | ({"PLANT": plant} if plant else {})
    command = [
        posenc,
        "conform",
        "--json",
        *(["--only", operation] if operation else []),
        "--",
        sys.executable,
        str(HERE / f"{engine}_adapter.py"),
    ]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    return json.loads(ran.stdout) if ran.returncode in (0, 1) else {"operations": [], "passed": 0, "wrong": 0}


def outcomes(of, *words):
    return {t["id"]: t["mistakes"] for o in of["operations"] for t in o["tests"] if t["outcome"] in words}


def main():
    posenc, engines = sys.argv[1], sys.argv[2:] or ENGINES
    counted, named, missed, began = 0, 0, [], time.monotonic()
    for engine in engines:
        healthy = {
            operation: outcomes(card(posenc, engine, operation), "passed")
            for operation in sorted({p[0] for p in PLANTED.values()})
        }
        for plant, (operation, *_) in PLANTED.items():
            # Of the answers that were right: what is off already would be off by two mistakes in one output.
            shows = outcomes(card(posenc, engine, operation, plant), "wrong", "loss")
            fresh = {test: mistakes for test, mistakes in shows.items() if test in healthy[operation]}
            if not fresh:
                continue
            counted += 1
            right = [plant in mistakes for mistakes in fresh.values()]
            if all(right):
                named += 1
            else:
                missed.append(
                    f"{plant} in {engine}: {right.count(False)} of {len(right)} tests say {sorted({m for v in fresh.values() for m in v}) or 'unknown'}"
                )
            print(
                f"{engine}: {plant}: {'named' if all(right) else 'MISSED'} in {sum(right)} of {len(right)} tests",
                flush=True,
            )
    print(
        f"{named} of {counted} planted mistakes named in {len(engines)} engines, {len(set(PLANTED))} kinds; {time.monotonic() - began:.0f} s"
    )
    for line in missed:
        print(f"  {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
