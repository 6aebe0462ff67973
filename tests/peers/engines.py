#!/usr/bin/env python3
"""Writes tests/data/engines/ENGINE.json: what each engine's own code computes for the configurations in
tests/data/engines/cases. One engine a run, as two of them want different versions of one package.

  tests/peers/engines.py --fetch [--engine NAME]  unpacks the packages (pip) under build/engines
  tests/peers/engines.py --engine NAME            prints the records
  tests/peers/engines.py --engine NAME --write tests/data/engines
  tests/peers/engines.py --table                  where engines differ from transformers 5, by case

Packages are unpacked, not installed: an engine's files run as published, and what they import that is not here
(kernels, servers) stands in as nothing (engine/stubs.py).
"""

import argparse
import importlib
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "tests/data/engines/cases"
FOUR = ["transformers==4.57.6", "huggingface-hub==0.36.2 tokenizers==0.22.1"]
# Engine: its module, and the packages that are put before others on the path.
ENGINES = {
    "transformers": ("hf", []),
    "transformers-4": ("hf", FOUR),
    "vllm": ("vllm", ["vllm==0.33.0", "transformers==5.20.2"]),
    "sglang": (
        "sglang",
        ["sglang==0.5.23", "transformers==5.19.0", "msgspec==0.22.0", "pillow==12.0.0", "dill==0.4.0", "psutil"],
    ),
    "mlx-lm": ("mlx_lm", ["mlx-lm==0.32.2", "mlx==0.32.4 mlx-cpu==0.32.4"]),
    "onnxruntime-genai": ("ort_genai", ["onnxruntime-genai==0.18.0", "onnx onnx-ir ml_dtypes protobuf"]),
    "llama.cpp": ("llama_cpp", ["llama-cpp-python==0.3.36", *FOUR]),
    "lmdeploy": ("lmdeploy", ["lmdeploy==0.18.0"]),
    "megatron-core": ("megatron", ["megatron-core==0.16.1"]),
    "exllamav2": ("exllamav2", ["exllamav2==0.3.2"]),
    "exllamav3": ("exllamav3", ["exllamav3==1.6.5"]),
}


def lengths(config):
    """0: as constructed. What depends on the length is also run for one below and one above its threshold."""
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    types = {scaling.get("type"), scaling.get("rope_type")}
    longest = config["max_position_embeddings"]
    if "dynamic" in types:
        return [0, longest // 2, longest * 2]
    if types & {"longrope", "su"}:
        original = scaling.get("original_max_position_embeddings") or config["original_max_position_embeddings"]
        return [0, original, original * 4]
    return [0]


def by_layer(config, layers):
    """One record where all layers are alike, else the first of each kind."""
    distinct = []
    for index, layer in enumerate(layers):
        if all(layer != other for _, other in distinct):
            distinct.append((index, layer))
    if len(distinct) == 1:
        return [layer for _, layer in distinct]
    types = config.get("layer_types")
    return [{"layer": i, **({"layer_type": types[i]} if types else {}), **layer} for i, layer in distinct]


def records(engine, wanted):
    from engine import Refused

    for path in sorted(CASES.glob("*.json")):
        if wanted and path.stem not in wanted:
            continue
        config = json.loads(path.read_text())
        for length in lengths(config):
            head = {"case": path.stem, "length": length}
            try:
                for layer in by_layer(config, list(engine.run(json.loads(path.read_text()), length))):
                    yield {**head, **layer}
            except Refused as refused:
                yield {**head, "error": str(refused)}


def folder_of(package):
    return package.replace("==", "-").replace(" ", "+")


def fetch(folder, engines):
    """Unpacks what the engines run. llama.cpp's is source, for its converter; its library is the installed package's."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in sorted({package for engine in engines for package in ENGINES[engine][1]}):
        target = folder / folder_of(package)
        if target.exists():
            continue
        pip = [sys.executable, "-m", "pip"]
        if not package.startswith("llama-cpp-python"):
            subprocess.run([*pip, "install", "-q", "--no-deps", "--target", target, *package.split()], check=True)
            continue
        name = package.partition("==")[0]
        with tempfile.TemporaryDirectory() as source:
            subprocess.run([*pip, "download", "-q", "--no-deps", "--no-binary", name, "-d", source, package], check=True)
            shutil.unpack_archive(next(Path(source).iterdir()), source)
            shutil.move(next(p for p in Path(source).iterdir() if p.is_dir()), target)
        installed = Path(importlib.util.find_spec("llama_cpp").origin).parent  # of the same version: requirements.txt
        (target / "lib").symlink_to(installed / "lib")


def table(folder):
    """What each engine makes of a case otherwise than transformers 5, in a few words."""
    read = {p.stem: json.loads(p.read_text())["records"] for p in sorted(folder.glob("*.json"))}
    standard = {key(r): r for r in read.pop("transformers")}
    found = {}
    for name, records in read.items():
        for r in records:
            if (said := word(r, standard.get(key(r)))) != "same":
                found.setdefault(key(r), {}).setdefault(said, []).append(name)
    for (case, length, layer), words in sorted(found.items(), key=lambda one: [str(part) for part in one[0]]):
        print(case, f"at {length}" if length else "", f"layer {layer}" if layer else "")
        for said, names in words.items():
            print(f"  {said}: {', '.join(names)}")


def key(r):
    return r["case"], r["length"], r.get("layer", 0)


def word(r, other):
    if other is None:
        return "transformers: alike in all layers"
    if "error" in r:
        return "same" if "error" in other else r["error"].split("\n")[0][:100]
    if "error" in other:
        return "runs; transformers: " + other["error"][:60]
    words = []
    for what in ("amplitude", "logits", "pairing", "rotary_dim"):
        one, two = r.get(what, 1), other.get(what, 1)
        if one != two and not (isinstance(one, (int, float)) and abs(one - two) < 1e-5 * abs(two)):
            words.append(f"{what} {one}, not {two}")
    one, two = r["frequency"], other["frequency"]
    if any(abs(a - b) > 2e-6 * max(abs(b), 1e-9) for a, b in zip(one, two)):
        words.append(f"{shape(one)}, not {shape(two)}")
    return ", ".join(words) or "same"


def shape(frequency):
    """A geometric series by its base, another by its middle and its last."""
    count, ratio = len(frequency), frequency[1] / frequency[0]
    steps = [b / a if a else 0 for a, b in zip(frequency, frequency[1:])]
    if all(abs(step - ratio) < 1e-5 for step in steps):
        slower = "" if abs(frequency[0] - 1) < 1e-6 else f" / {1 / frequency[0]:.4g}"
        return f"base {ratio**-count:.4g}{slower}"
    return f"pairs {count // 2} and {count - 1} {frequency[count // 2]:.4g} and {frequency[-1]:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=ENGINES)
    parser.add_argument("--write", type=Path)
    parser.add_argument("--packages", type=Path, default=ROOT / "build/engines")
    parser.add_argument("--fetch", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("case", nargs="*")
    given = parser.parse_args()
    if given.fetch:
        fetch(given.packages, [given.engine] if given.engine else ENGINES)
        return
    if given.table:
        table(CASES.parent)
    if not given.engine:
        return
    module, needs = ENGINES[given.engine]
    sys.path[:0] = [str(given.packages / folder_of(package)) for package in needs]
    engine = importlib.import_module(f"engine.{module}")
    lines = [json.dumps(r, separators=(",", ":")) for r in records(engine, given.case)]
    head = json.dumps({"engine": given.engine, "version": engine.version(), "files": engine.FILES})
    text = head[:-1] + ',"records":[\n' + ",\n".join(lines) + "\n]}\n"
    if given.write:
        (given.write / f"{given.engine}.json").write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
