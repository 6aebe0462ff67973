#!/usr/bin/env python3
"""Runs `posenc probe` against real servers on this machine, healthy ones and ones with a fault planted. `make probe-test` runs it.

  evidence/lab/peers/probe_test.py MODEL.gguf --folder build/probe                       all cases, one seed
  evidence/lab/peers/probe_test.py MODEL.gguf --folder build/probe --seeds 1,2,3 --only linear,theta
  evidence/lab/peers/probe_test.py --table evidence/lab/results/probe.jsonl              the table of docs/probe.md

Servers: llama-cpp-python's own and llama.cpp's llama-server, where --llama_python and --llama_server name them, and transformers
behind probe_server.py. Other quantisations are made of MODEL by llama-quantize, where --llama_quantize names it.
"""

import argparse
import json
import math
import os
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
    server: str  # transformers, llama_python, llama_server
    words: list
    expected: list = field(default_factory=list)  # ids of hypotheses; none: healthy
    model: str = ""  # "q8_0": another file that is served
    kind: str = ""  # of fault


def rope(**values):
    return ["--set", "rope_parameters=" + json.dumps({"rope_theta": 100000, "rope_type": "default", **values})]


def yarn(factor, **values):
    return rope(rope_type="yarn", factor=factor, original_max_position_embeddings=8192, **values)


def transformers_cases():
    def case(name, words, *expected, kind=""):
        return Case(name, "transformers", words, list(expected), kind=kind)

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
        ("YaRN 4, factor 1", {"scaling": "yarn", "scale": 0.25, "original": 8192, "attention": 1 / YARN4}, "yarn_flat:4", "", "factor dropped"),
        ("base 10000", {"base": 10000}, "theta:10000", "", "base"),
        ("base 10000, q4_K", {"base": 10000}, "theta:10000", "q4_k_m", "base"),
        ("base 1e6", {"base": 1000000}, "theta:1000000", "f16", "base"),
        ("base 250000, in no list", {"base": 250000}, "theta:250000", "", "base"),
    ):  # fmt: skip
        made.append(case(name, flags(**wanted), expected, model=quant, kind=kind))
    return made


def factor_key(attention):
    """llama.cpp makes the flag's factor anew under YaRN, and multiplies by the file's."""
    return f"llama.rope.scaling.attn_factor=float:{attention:.6f}"


def python_flags(scaling=None, scale=None, original=None, attention=None, base=None):
    kinds = {None: [], "linear": ["--rope_scaling_type", "1"], "yarn": ["--rope_scaling_type", "2"]}
    named = {"rope_freq_scale": scale, "yarn_orig_ctx": original, "rope_freq_base": base}
    flags = kinds[scaling] + [w for k, v in named.items() if v is not None for w in (f"--{k}", f"{v:g}")]
    return flags + (["--kv_overrides", factor_key(attention)] if attention else [])


def server_flags(scaling=None, scale=None, original=None, attention=None, base=None):
    named = {"rope-scaling": scaling, "rope-freq-scale": scale, "yarn-orig-ctx": original,
             "override-kv": factor_key(attention) if attention else None, "rope-freq-base": base}  # fmt: skip
    return [w for k, v in named.items() if v is not None for w in (f"--{k}", v if isinstance(v, str) else f"{v:g}")]


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """One server, for as long as it is asked."""

    def __init__(self, case, given, port):
        file = Path(given.folder) / f"{case.model}.gguf" if case.model else Path(given.model)
        threads = str(given.threads)
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        if case.server == "transformers":
            words = [given.transformers_python, HERE / "probe_server.py", Path(given.folder) / "hf", "--port", port]
        elif case.server == "llama_python":
            words = [
                given.llama_python,
                "-m",
                "llama_cpp.server",
                "--model",
                file,
                "--host",
                "127.0.0.1",
                "--port",
                port,
            ]
            words += ["--n_ctx", "1536", "--logits_all", "true", "--n_threads", threads, "--n_threads_batch", threads]
            words += ["--verbose", "false"]
        else:
            words = [given.llama_server, "-m", file, "--host", "127.0.0.1", "--port", port, "-c", "1536", "-np", "1"]
            words += ["-t", threads, "--no-webui"]
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


def run(case, seed, given):
    server = Server(case, given, free_port())
    row = {"case": case.name, "server": case.server, "model": case.model, "kind": case.kind, "expected": case.expected,
           "seed": seed, "at": given.at}  # fmt: skip
    try:
        server.wait()
        words = [given.posenc, "probe", server.url, "--model", given.model, "--json", "--seed", str(seed)]
        words += ["--at", str(given.at), "--threads", str(given.threads)]
        done = subprocess.run(words, capture_output=True, text=True)
        if done.returncode == 2:
            return {**row, "error": done.stderr.strip().splitlines()[-1]}
        said = json.loads(done.stdout)["servers"][0]
    except RuntimeError as error:
        return {**row, "error": str(error)}
    finally:
        server.end()
    alike = [one["id"] for one in said["hypotheses"] if one["alike"]]
    healthy = not case.expected
    right = (
        said["verdict"] == "as_file" if healthy else said["verdict"] == "named" and bool({*alike} & {*case.expected})
    )
    return {**row, "right": right, "verdict": said["verdict"], "hypothesis": said["hypothesis"], "alike": alike,
            "next_best": said["next_best"], "sentence": said["sentence"], "sure": said["sure"], "tokens": said["tokens"],
            "requests": said["requests"], "seconds": said["seconds"], "noise": said["noise"], "late": said["late"],
            "ahead": next((-one["score"] for one in said["hypotheses"] if not one["alike"]), None)}  # fmt: skip


def quantised(given):
    folder = Path(given.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for quant in ("f16", "q8_0", "q4_k_m"):
        file = folder / f"{quant}.gguf"
        if file.exists():
            continue
        if given.llama_quantize:
            words = [given.llama_quantize, "--allow-requantize", given.model, str(file), quant]
        elif given.llama_python:
            words = [given.llama_python, "-c", QUANTIZE, given.model, str(file), quant]
        else:
            continue
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if given.transformers_python and not (folder / "hf").exists():
        subprocess.run([given.transformers_python, "-c", RESTORE, given.model, str(folder / "hf")], check=True)


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


def table(rows):
    names = {"transformers": "transformers", "llama_python": "llama-cpp-python", "llama_server": "llama-server"}
    print("| server | what it runs | said | off by / floor | ahead of the next, ln | tokens | seconds |")
    print("|---|---|---|---:|---:|---:|---:|")
    for row in rows:
        what = row["case"] or "Q4_1"
        if "error" in row:
            print(f"| {names[row['server']]} | {what} | error: {row['error']} | | | | |")
            continue
        said = row["hypothesis"] if row["verdict"] in ("as_file", "named") else row["verdict"]
        mark = "" if row["right"] else " **wrong**"
        noise = row["noise"]
        ahead = "" if row["ahead"] is None else f"{row['ahead']:.0f}"
        print(f"| {names[row['server']]} | {what} | `{said}`{mark} | {noise['scale'] / noise['floor']:.1f} | {ahead} "
              f"| {row['tokens']:,} | {row['seconds']:.0f} |")  # fmt: skip
    healthy = [row for row in rows if not row["expected"]]
    faulty = [row for row in rows if row["expected"]]
    kinds = {row["kind"] for row in faulty if row.get("right")}
    print(f"\n{sum(row.get('right', False) for row in faulty)} of {len(faulty)} faults named, of {len(kinds)} kinds; "
          f"{sum(row.get('verdict') in ('named', 'unknown', 'other_weights') for row in healthy)} of {len(healthy)} healthy "
          f"servers accused")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("--table", help="print the table of rows that were kept")
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"))
    parser.add_argument("--folder", default=str(ROOT / "build/probe"), help="models that are made, and logs")
    parser.add_argument("--out", help="keep a line of JSON a case; cases that are there already are not run again")
    parser.add_argument("--transformers_python", help="a Python with torch, transformers and gguf")
    parser.add_argument("--llama_python", help="a Python with llama-cpp-python[server]")
    parser.add_argument("--llama_server", help="llama-server")
    parser.add_argument("--llama_quantize", help="llama-quantize, in place of what llama-cpp-python brings")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--only", help="words, one of which a case's name has")
    parser.add_argument("--at", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    if given.table:
        return table([json.loads(line) for line in Path(given.table).read_text().splitlines()])
    quantised(given)
    cases = transformers_cases() if given.transformers_python else []
    cases += llama_cases("llama_python", python_flags) if given.llama_python else []
    cases += llama_cases("llama_server", server_flags) if given.llama_server else []
    cases = [case for case in cases if not case.model or (Path(given.folder) / f"{case.model}.gguf").exists()]
    if given.only:
        wanted = given.only.split(",")
        cases = [case for case in cases if any(word in (case.name or "Q4_1") for word in wanted)]
        cases.sort(key=lambda case: next(i for i, word in enumerate(wanted) if word in (case.name or "Q4_1")))
    out = Path(given.out) if given.out else None
    kept = [json.loads(line) for line in out.read_text().splitlines()] if out and out.exists() else []
    rows = list(kept)
    for seed in map(int, given.seeds.split(",")):
        for case in cases:
            if any(
                (r["case"], r["server"], r["model"], r["seed"]) == (case.name, case.server, case.model, seed)
                for r in kept
            ):
                continue
            row = run(case, seed, given)
            rows.append(row)
            print(f"{'ok   ' if row.get('right') else 'WRONG'} {case.server:<13} {case.name or 'Q4_1':<28} "
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
