#!/usr/bin/env python3
"""Compares posenc lab with llama.cpp's own tokenizer and perplexity tool, built out of PyPI's llama-cpp-python.

  evidence/lab/peers/llama_cpp.py MODEL.gguf TEXT...                   `make lab PEERS=1` runs it
  evidence/lab/peers/llama_cpp.py MODEL.gguf TEXT --length 12288 --scaling yarn --factor 2

Token ids must be equal on every text. Losses are those of the second halves of windows, as llama.cpp scores them, under no
scaling and under each that it has; its products are of 8-bit numbers and its cache is float16, ours are float, which over
one window of 2048 tokens comes to some thousandths of a nat.
Processor time is that of the whole process on one thread, loading included.
"""

import argparse
import json
import math
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
VERSION = "0.3.36"
# |difference| allowed in nats, of a loss and of what a scaling changes.
CLOSE = 0.005


def built(folder):
    """The folder of llama.cpp's programs, made where it is not there yet."""
    programs = folder / "build" / "bin"
    if (programs / "llama-perplexity").exists() and (programs / "llama-tokenize").exists():
        return programs
    folder.mkdir(parents=True, exist_ok=True)
    log = open(folder / "log.txt", "w")
    print(f"building llama.cpp of llama-cpp-python {VERSION} in {folder}: some minutes (log.txt)", file=sys.stderr)

    def run(*command):
        if subprocess.run(command, stdout=log, stderr=log).returncode:
            sys.exit(f"{command[0]} failed, see {folder}/log.txt")

    python = [sys.executable, "-m", "pip"]
    run(*python, "download", "--no-deps", "--no-binary", ":all:", f"llama-cpp-python=={VERSION}", "-d", str(folder))
    (archive,) = folder.glob("llama_cpp_python-*.tar.gz")
    run("tar", "xzf", str(archive), "-C", str(folder))
    source = folder / f"llama_cpp_python-{VERSION}" / "vendor" / "llama.cpp"
    options = ["LLAMA_BUILD_TESTS=OFF", "LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_CURL=OFF", "BUILD_SHARED_LIBS=OFF"]
    run(
        "cmake",
        "-S",
        str(source),
        "-B",
        str(folder / "build"),
        "-G",
        "Ninja",
        "-DCMAKE_BUILD_TYPE=Release",
        *(f"-D{o}" for o in options),
    )
    run("ninja", "-C", str(folder / "build"), "llama-perplexity", "llama-tokenize")
    return programs


def timed(command, **more):
    """What a command prints, and its seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr[-2000:]}")
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout + done.stderr, seconds


def same_tokens(posenc, programs, model, text):
    theirs, _ = timed(
        [
            str(programs / "llama-tokenize"),
            "-m",
            model,
            "-f",
            text,
            "--ids",
            "--no-parse-special",
            "--no-escape",
            "--log-disable",
        ]
    )
    theirs = json.loads(theirs[theirs.index("[") : theirs.rindex("]") + 1])
    ours, _ = timed([posenc, "lab", "tokens", model, text, "--json"])
    ours = json.loads(ours)["tokens"]
    first = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), None)
    if first is None and len(ours) == len(theirs):
        print(f"  {Path(text).name}: {len(ours):,} tokens, all equal")
        return True
    print(f"  {Path(text).name}: {len(ours):,} tokens against {len(theirs):,}, the first other one at {first}")
    return False


def flags_of(scaling, factor, model_base, pairs, trained):
    if scaling == "none":
        return []
    if scaling == "linear":
        return ["--rope-scaling", "linear", "--rope-scale", str(factor)]
    if scaling == "yarn":
        return ["--rope-scaling", "yarn", "--rope-scale", str(factor), "--yarn-orig-ctx", str(trained)]
    return ["--rope-freq-base", str(model_base * factor ** (pairs / (pairs - 1)))]  # ntk


def their_loss(programs, given, length, flags):
    """Nats a token over the second halves of the first windows, and seconds."""
    command = f"-c {length} -b {length} --chunks {given.windows} -t 1 -tb 1 --no-escape".split()
    files = ["-m", given.model, "-f", given.texts[0]]
    out, seconds = timed([str(programs / "llama-perplexity"), *files, *command, *flags])
    return math.log(float(re.search(rf"\[{given.windows}\]([0-9.]+)", out)[1])), seconds


def our_loss(given, length, scaling):
    scored, seconds = [], 0
    for window in range(given.windows):
        command = f"--skip {window * length} --length {length} --block 1 --threads 1 --json".split()
        command += ["--scalings", scaling, "--factor", str(given.factor)]
        out, more = timed(
            [given.posenc, "lab", "perplexity", given.model, given.texts[0], *command],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        blocks = json.loads(out)["curves"][0]["blocks"]
        scored += [block["nats"] for block in blocks if block["from"] > length // 2]
        seconds += more
    return sum(scored) / len(scored), seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"))
    parser.add_argument("--folder", default=str(ROOT / "build/lab-peers"), help="where llama.cpp is built")
    parser.add_argument("--length", type=int, nargs="+", default=[2048])
    parser.add_argument("--windows", type=int, default=6, help="one after another, from the beginning")
    parser.add_argument("--scaling", nargs="+", default=["none", "linear", "ntk", "yarn"])
    parser.add_argument("--factor", type=float, default=2)
    parser.add_argument("--no_tokens", action="store_true")
    given = parser.parse_args()
    programs = built(Path(given.folder))
    explained = json.loads(timed([given.posenc, "explain", given.model, "--json"])[0])
    group = explained["groups"][0]
    base, pairs, trained = group["scheme"]["rope_theta"], group["head_dim"] / 2, explained["trained_context"]
    good = True
    if not given.no_tokens:
        print("token ids")
        good = all([same_tokens(given.posenc, programs, given.model, text) for text in given.texts])
    columns = "{:>7} {:<8} {:>10} {:>10} {:>9} {:>13} {:>9} {:>8} {:>6}".format
    print(columns("length", "scaling", "llama.cpp", "posenc", "apart", "change apart", "seconds", "seconds", "ratio"))
    for length in given.length:
        reference = None
        for scaling in given.scaling:
            theirs, their_time = their_loss(
                programs, given, length, flags_of(scaling, given.factor, base, pairs, trained)
            )
            ours, our_time = our_loss(given, length, scaling)
            apart = ours - theirs
            reference = apart if reference is None else reference
            good = good and abs(apart) < CLOSE and abs(apart - reference) < CLOSE
            losses = [f"{theirs:.4f}", f"{ours:.4f}", f"{apart:+.4f}", f"{apart - reference:+.4f}"]
            times = [f"{their_time:.1f}", f"{our_time:.1f}", f"{our_time / their_time:.2f}"]
            print(columns(length, scaling, *losses, *times), flush=True)
    print(f"all within {CLOSE} nats" if good else f"NOT all within {CLOSE} nats, or other tokens")
    sys.exit(0 if good else 1)


main()
