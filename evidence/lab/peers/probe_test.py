#!/usr/bin/env python3
"""Runs `posenc probe` against real servers on this machine, healthy ones and ones with a fault planted. `make probe-test` runs it.

  evidence/lab/peers/probe_test.py MODEL.gguf --folder build/probe                       all cases, one seed
  evidence/lab/peers/probe_test.py MODEL.gguf --folder build/probe --seeds 1,2,3 --only linear,theta
  evidence/lab/peers/probe_test.py --table evidence/lab/results/probe.jsonl              the table of docs/probe.md

Servers: transformers behind probe_server.py; vLLM's; llama.cpp's, which is llama-server or, by wheels that need no compiler,
llama_server.py; llama-cpp-python's. Each runs where a flag names it. Other quantisations are made of MODEL by llama-quantize or
llama_quantize.py.
"""

import argparse
import json
import math
import operator
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
YARN4 = 0.1 * math.log(4) + 1


@dataclass
class Case:
    name: str
    server: str  # transformers, vllm, llama_python, llama_server
    words: list
    expected: list = field(default_factory=list)  # ids of hypotheses; none: healthy
    model: str = ""  # "q8_0": another file that is served
    kind: str = ""  # of fault


def rope(**values):
    return ["--set", "rope_parameters=" + json.dumps({"rope_theta": 100000, "rope_type": "default", **values})]


def yarn(factor, **values):
    return rope(rope_type="yarn", factor=factor, original_max_position_embeddings=8192, **values)


def transformers_cases():
    def case(name, words, *expected, kind="", model=""):
        return Case(name, "transformers", words, list(expected), model, kind)

    def plant(text, *expected, kind=""):
        return case(text, ["--plant", text], *(expected or (text,)), kind=kind)

    return [
        case("float32", []),
        case("bfloat16", ["--dtype", "bfloat16"]),
        case("float16", ["--dtype", "float16"]),
        case("int8", ["--int8"]),
        case("eager", ["--attention", "eager"]),
        case("dynamic NTK, which changes nothing below 8192", rope(rope_type="dynamic", factor=4)),
        plant("none", kind="no rotation"),
        case("linear 2", rope(rope_type="linear", factor=2), "linear:2", kind="linear"),
        case("linear 4", rope(rope_type="linear", factor=4), "linear:4", kind="linear"),
        case("linear 3, in no list", rope(rope_type="linear", factor=3), "linear:3", kind="linear"),
        case("linear 4, bfloat16", [*rope(rope_type="linear", factor=4), "--dtype", "bfloat16"], "linear:4", kind="linear"),
        case("YaRN 2", yarn(2), "yarn:2", kind="YaRN"),
        case("YaRN 4", yarn(4), "yarn:4", kind="YaRN"),
        case("YaRN 8, int8", [*yarn(8), "--int8"], "yarn:8", kind="YaRN"),
        case("YaRN 4, factor 1", yarn(4, attention_factor=1.0), "yarn_flat:4", kind="factor dropped"),
        case("YaRN 8, factor 1", yarn(8, attention_factor=1.0), "yarn_flat:8", kind="factor dropped"),
        plant(f"amplitude:{YARN4:.4f}", "amplitude:1.1386", kind="factor alone"),
        case("Llama 3 by 8", rope(rope_type="llama3", factor=8, low_freq_factor=1, high_freq_factor=4,
             original_max_position_embeddings=8192), "llama3:8", kind="Llama 3"),
        case("base 10000", rope(rope_theta=10000), "theta:10000", kind="base"),
        case("base 500000", rope(rope_theta=500000), "theta:500000", kind="base"),
        case("base 1e6, bfloat16", [*rope(rope_theta=1000000), "--dtype", "bfloat16"], "theta:1000000", kind="base"),
        case("base 30000, in no list", rope(rope_theta=30000), "theta:30000", kind="base"),
        plant("pairing", "pairing_hf", kind="pairing"),
        plant("reversed", kind="direction"),
        plant("half_head", "half_head_hf", kind="half of the head"),
        plant("restart:64", kind="ids of chunks"),
        plant("restart:256", kind="ids of chunks"),
        plant("restart:512", kind="ids of chunks"),
        plant("behind:1", kind="ids behind the prompt"),
        plant("behind:-1", kind="ids behind the prompt"),
        plant("padding:64", kind="padding counted"),
        plant("padding:256", kind="padding counted"),
        plant("keys:1", kind="keys shifted"),
        plant("keys:-1", kind="keys shifted"),
        plant("keys:2", kind="keys shifted"),
        plant("bfloat16_angles", kind="rounded angles"),
        case("bfloat16 angles, float16", ["--plant", "bfloat16_angles", "--dtype", "float16"], "bfloat16_angles", kind="rounded angles"),
        case("window 256", ["--window", "256"], "window:256", kind="window"),
        case("window 512", ["--window", "512"], "window:512", kind="window"),
        case("the file's window of 256", ["--window", "256"], model="windows"),
        case("the file's window of 256 is lost", [], "window_lost", kind="window lost", model="windows"),
        case("window 512 for the file's 256", ["--window", "512"], "window:512", kind="window", model="windows"),
    ]  # fmt: skip


def llama_cases(server, flags):
    def case(name, words, *expected, model="", kind=""):
        return Case(name, server, words, list(expected), model, kind)

    # The two servers spell alike what llama.cpp takes.
    made = [case(quant, [], model=quant) for quant in ("", "f16", "q8_0", "q4_k_m")]
    for name, wanted, expected, quant, kind in (
        ("linear 2", {"scaling": "linear", "scale": 0.5}, "linear:2", "", "linear"),
        ("linear 8, q4_K", {"scaling": "linear", "scale": 0.125}, "linear:8", "q4_k_m", "linear"),
        ("YaRN 2", {"scaling": "yarn", "scale": 0.5, "original": 8192}, "yarn:2", "", "YaRN"),
        ("YaRN 4, q8_0", {"scaling": "yarn", "scale": 0.25, "original": 8192}, "yarn:4", "q8_0", "YaRN"),
        ("YaRN 4, factor 1", {"scaling": "yarn", "scale": 0.25, "original": 8192}, "yarn_flat:4", "factor", "factor dropped"),
        ("base 10000", {"base": 10000}, "theta:10000", "", "base"),
        ("base 10000, q4_K", {"base": 10000}, "theta:10000", "q4_k_m", "base"),
        ("base 1e6", {"base": 1000000}, "theta:1000000", "f16", "base"),
        ("base 250000, in no list", {"base": 250000}, "theta:250000", "", "base"),
    ):  # fmt: skip
        made.append(case(name, flags(**wanted), expected, model=quant, kind=kind))
    return made


def python_flags(scaling=None, scale=None, original=None, base=None):
    kinds = {None: [], "linear": ["--rope_scaling_type", "1"], "yarn": ["--rope_scaling_type", "2"]}
    named = {"rope_freq_scale": scale, "yarn_orig_ctx": original, "rope_freq_base": base}
    return kinds[scaling] + [w for k, v in named.items() if v is not None for w in (f"--{k}", f"{v:g}")]


def server_flags(scaling=None, scale=None, original=None, base=None):
    named = {"rope-scaling": scaling, "rope-freq-scale": scale, "yarn-orig-ctx": original, "rope-freq-base": base}
    return [w for k, v in named.items() if v is not None for w in (f"--{k}", v if isinstance(v, str) else f"{v:g}")]


def vllm_cases():
    def case(name, rope, *expected, kind="", dtype="float32"):
        words = ["--dtype", dtype]
        if rope:
            values = {"rope_theta": 100000, "rope_type": "default", **rope}
            words += ["--hf-overrides", json.dumps({"rope_parameters": values})]
        return Case(name, "vllm", words, list(expected), kind=kind)

    scaled = {"rope_type": "yarn", "original_max_position_embeddings": 8192}
    return [
        case("float32", {}),
        case("bfloat16", {}, dtype="bfloat16"),
        case("linear 4", {"rope_type": "linear", "factor": 4.0}, "linear:4", kind="linear"),
        case("YaRN 2", {**scaled, "factor": 2.0}, "yarn:2", kind="YaRN"),
        case("YaRN 4, bfloat16", {**scaled, "factor": 4.0}, "yarn:4", kind="YaRN", dtype="bfloat16"),
        case("YaRN 4, factor 1", {**scaled, "factor": 4.0, "attention_factor": 1.0}, "yarn_flat:4", kind="factor dropped"),
        case("base 10000", {"rope_theta": 10000}, "theta:10000", kind="base"),
        case("Llama 3 by 8, bfloat16", {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
             "original_max_position_embeddings": 8192}, "llama3:8", kind="Llama 3", dtype="bfloat16"),
    ]  # fmt: skip


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """One server, for as long as it is asked."""

    def __init__(self, case, given, port):
        file = Path(given.folder) / f"{case.model}.gguf" if case.model else Path(given.model)
        threads = str(given.threads)
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": threads,
            "HF_HUB_OFFLINE": "1",
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        }
        words = {
            "transformers": [given.transformers_python, HERE / "probe_server.py", Path(given.folder) / "hf"],
            "vllm": [given.vllm_python, "-m", "vllm.entrypoints.openai.api_server", "--model", Path(given.folder) / "hf",
                     "--max-model-len", "1536", "--enforce-eager"],
            "llama_python": [given.llama_python, "-m", "llama_cpp.server", "--model", file, "--n_ctx", "1536",
                             "--logits_all", "true", "--n_threads", threads, "--n_threads_batch", threads, "--verbose", "false"],
            "llama_server": [*shlex.split(given.llama_server or ""), "-m", file, "-c", "1536", "-np", "1", "-t", threads],
        }[case.server]  # fmt: skip
        words += ["--port", port] + ([] if case.server == "transformers" else ["--host", "127.0.0.1"])
        self.log = open(Path(given.folder) / "server.log", "wb")
        self.process = subprocess.Popen(
            [*map(str, words), *case.words],
            stdout=self.log,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
        self.url = f"http://127.0.0.1:{port}"

    def wait(self, seconds=180):
        end = time.time() + seconds
        while time.time() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}: see {self.log.name}")
            try:
                urllib.request.urlopen(self.url + "/v1/models", timeout=5).read()
                return
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                time.sleep(0.5)
        raise RuntimeError("the server did not begin to answer")

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()


def ask(server, case, seed, given):
    row = {"case": case.name, "server": case.server, "model": case.model, "kind": case.kind, "expected": case.expected,
           "seed": seed, "at": given.at}  # fmt: skip
    model = Path(given.folder) / case.model if case.model == "windows" else given.model
    words = [given.posenc, "probe", server.url, "--model", model, "--json", "--seed", str(seed)]
    words += ["--at", str(given.at), "--threads", str(given.threads)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode == 2:
        return {**row, "error": done.stderr.strip().splitlines()[-1]}
    said = json.loads(done.stdout)["servers"][0]
    alike = [one["id"] for one in said["hypotheses"] if one["alike"]]
    healthy = not case.expected
    right = (
        said["verdict"] == "as_file" if healthy else said["verdict"] == "named" and bool({*alike} & {*case.expected})
    )
    return {**row, "right": right, "verdict": said["verdict"], "hypothesis": said["hypothesis"], "alike": alike,
            "next_best": said["next_best"], "sentence": said["sentence"], "sure": said["sure"], "tokens": said["tokens"],
            "requests": said["requests"], "seconds": said["seconds"], "noise": said["noise"], "late": said["late"],
            "ahead": next((-one["score"] for one in said["hypotheses"] if not one["alike"]), None)}  # fmt: skip


def run(case, seeds, given):
    """One server, asked with the texts of each seed; one that does not begin is left out."""
    server = Server(case, given, free_port())
    try:
        server.wait()
        for seed in seeds:
            yield ask(server, case, seed, given)
    except RuntimeError as error:
        print(f"left  {case.server:<13} {case.name or 'Q4_1':<28} {error}", flush=True)
    finally:
        server.end()


def quantised(given):
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for quant in ("f16", "q8_0", "q4_k_m"):
        file = folder / f"{quant}.gguf"
        if file.exists():
            continue
        if given.llama_quantize:
            words = [*shlex.split(given.llama_quantize), "--allow-requantize", given.model, str(file), quant]
        elif given.llama_python:
            words = [given.llama_python, "-c", QUANTIZE, given.model, str(file), quant]
        else:
            continue
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if given.transformers_python and not (folder / "hf").exists():
        subprocess.run([given.transformers_python, "-c", RESTORE, given.model, str(folder / "hf")], check=True)
    if given.transformers_python:
        windowed(folder)
    if given.transformers_python and not (folder / "factor.gguf").exists():
        subprocess.run(
            [given.transformers_python, "-c", FACTOR, given.model, str(folder / "factor.gguf"), str(1 / YARN4)],
            check=True,
        )


def windowed(folder):
    """The weights beside a file whose layers have a window: Mistral's are Llama's."""
    made = folder / "windows"
    made.mkdir(exist_ok=True)
    for file in (folder / "hf").iterdir():
        if file.name != "config.json" and not (made / file.name).exists():
            (made / file.name).symlink_to(file.resolve())
    config = json.loads((folder / "hf" / "config.json").read_text())
    config |= {"model_type": "mistral", "architectures": ["MistralForCausalLM"], "sliding_window": 256}
    (made / "config.json").write_text(json.dumps(config))


# llama-quantize by the library that llama-cpp-python brings.
QUANTIZE = """
import sys
import llama_cpp
file, made, quant = sys.argv[1:]
options = llama_cpp.llama_model_quantize_default_params()
options.ftype = {
    "f16": llama_cpp.LLAMA_FTYPE_MOSTLY_F16,
    "q8_0": llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0,
    "q4_k_m": llama_cpp.LLAMA_FTYPE_MOSTLY_Q4_K_M,
}[quant]
options.allow_requantize = True
sys.exit(llama_cpp.llama_model_quantize(file.encode(), made.encode(), options))
"""

# A GGUF with a factor that voids YaRN's of 4: llama.cpp makes its flag's factor anew under YaRN, and multiplies by the file's.
FACTOR = """
import sys
import gguf
from gguf.scripts.gguf_new_metadata import MetadataDetails, copy_with_new_metadata
file, made, factor = sys.argv[1:]
reader = gguf.GGUFReader(file)
writer = gguf.GGUFWriter(made, arch="llama", endianess=reader.endianess)
detail = MetadataDetails(gguf.GGUFValueType.FLOAT32, float(factor))
copy_with_new_metadata(reader, writer, {"llama.rope.scaling.attn_factor": detail}, [])
"""

# The weights of the GGUF as transformers has them.
RESTORE = """
import sys
from pathlib import Path
from transformers import AutoModelForCausalLM, AutoTokenizer
file, folder = Path(sys.argv[1]).absolute(), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype="float32")
model.hf_quantizer = None
if hasattr(model.config, "quantization_config"):
    del model.config.quantization_config
AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name).save_pretrained(folder)
model.save_pretrained(folder)
"""


SERVERS = {
    "transformers": "transformers",
    "vllm": "vLLM",
    "llama_python": "llama-cpp-python",
    "llama_server": "llama.cpp",
}
PLANTED = {
    "none": "no rotation",
    "pairing": "neighbours where halves are paired",
    "reversed": "the other direction",
    "half_head": "half of each head alone",
    "restart": "ids that begin anew every",
    "behind": "ids behind the prompt off by",
    "padding": "padding counted, to multiples of",
    "keys": "keys shifted by",
    "amplitude": "YaRN's factor alone,",
    "bfloat16_angles": "bfloat16 angles",
}
ACCUSED = ("named", "unknown", "other_weights")


def spread(numbers, digits):
    """Of one number a seed: the least and the most, once where they are written alike."""
    shown = dict.fromkeys(
        f"{n:,.{digits}f}" if n >= 10.0**-digits or not digits else "< 0.001" for n in sorted(numbers)
    )
    return " to ".join([*shown][:: max(len(shown) - 1, 1)])


def told(row):
    if "error" in row:
        return "error: " + row["error"]
    return row["hypothesis"] if row["verdict"] in ("as_file", "named") else row["verdict"]


def table(rows):
    """A line a server, with the spread over its seeds."""
    cases = {}
    for row in rows:
        cases.setdefault((row["server"], row["case"] or "Q4_1", row["model"], row["at"]), []).append(row)
    print(
        "| server | what it runs | right, of seeds | said | off by, nats | ahead of the next, ln | prompt tokens | seconds |"
    )
    print("|---|---|---:|---|---:|---:|---:|---:|")
    order = [*SERVERS]
    for (server, what, model, at), each in sorted(cases.items(), key=lambda one: order.index(one[0][0])):
        plant, _, amount = what.partition(":")
        what = f"{PLANTED[plant]} {amount}".strip() if plant in PLANTED else what
        what += f", {model}" * (
            server.startswith("llama") and model not in ("", what.lower(), "factor") and model[:4] not in what.lower()
        )
        what += f", up to {at:,} tokens" * (at != 1024)
        said = ", ".join(f"`{one}`" for one in dict.fromkeys(map(told, each)))
        ran = [row for row in each if "error" not in row]
        decided = [row for row in ran if row["verdict"] != "undecided" and row["ahead"] is not None]
        numbers = [
            spread([row["noise"]["scale"] for row in decided], 3)
            or "floor " + spread([row["noise"]["floor"] for row in ran], 2),
            spread([row["ahead"] for row in decided], 0),
            spread([row["tokens"] for row in ran], 0),
            spread([row["seconds"] for row in ran], 0),
        ]
        right = sum(row.get("right", False) for row in each)
        print(f"| {SERVERS[server]} | {what} | {right} of {len(each)} | {said} | {' | '.join(numbers)} |")
    healthy = [row for row in rows if not row["expected"]]
    faulty = [row for row in rows if row["expected"]]
    kinds = {row["kind"] for row in faulty if row.get("right")}
    print(f"\n{sum(row.get('right', False) for row in faulty)} of {len(faulty)} faults named, of {len(kinds)} kinds; "
          f"{sum(row.get('verdict') in ACCUSED for row in healthy)} of {len(healthy)} healthy servers accused; "
          f"{len({row['seed'] for row in rows})} seeds")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--table", help="print the table of rows that were kept")
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"))
    parser.add_argument("--folder", default=str(ROOT / "build/probe"), help="models that are made, and logs")
    parser.add_argument("--out", help="keep a line of JSON a case; what is there already is not run again")
    parser.add_argument("--transformers_python", help="a Python with torch, transformers and gguf")
    parser.add_argument("--vllm_python", help="a Python with vLLM")
    parser.add_argument("--llama_python", help="a Python with llama-cpp-python[server]")
    parser.add_argument("--llama_server", help="llama-server, or 'PYTHON llama_server.py'")
    parser.add_argument("--llama_quantize", help="llama-quantize, or 'PYTHON llama_quantize.py'")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--only", help="words, one of which a case's name has")
    parser.add_argument("--at", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.table:
        return table([json.loads(line) for line in Path(given.table).read_text().splitlines()])
    quantised(given)
    cases = transformers_cases() if given.transformers_python else []
    cases += vllm_cases() if given.vllm_python else []
    cases += llama_cases("llama_python", python_flags) if given.llama_python else []
    cases += llama_cases("llama_server", server_flags) if given.llama_server else []
    cases = [
        case
        for case in cases
        if case.model in ("", "windows") or (Path(given.folder) / f"{case.model}.gguf").exists()
    ]
    if given.only:
        wanted = given.only.split(",")
        cases = [case for case in cases if any(word in (case.name or "Q4_1") for word in wanted)]
        cases.sort(key=lambda case: next(i for i, word in enumerate(wanted) if word in (case.name or "Q4_1")))
    out = Path(given.out) if given.out else None
    kept = [json.loads(line) for line in out.read_text().splitlines()] if out and out.exists() else []
    rows = list(kept)
    key = operator.itemgetter("case", "server", "model", "at", "seed")
    for case in cases:
        seeds = [int(one) for one in given.seeds.split(",")]
        there = {key(row) for row in kept}
        left = [one for one in seeds if (case.name, case.server, case.model, given.at, one) not in there]
        for row in run(case, left, given) if left else []:
            rows.append(row)
            print(f"{'ok   ' if row.get('right') else 'WRONG'} {case.server:<13} {case.name or 'Q4_1':<28} seed {row['seed']} "
                  f"{row.get('verdict', row.get('error'))} {row.get('hypothesis', '')} "
                  f"{row.get('tokens', 0)} tokens {row.get('seconds', 0):.0f} s", flush=True)  # fmt: skip
            if out:
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
    print()
    table(rows)
    sys.exit(0 if all(row.get("right") for row in rows) else 1)


if __name__ == "__main__":
    main()
