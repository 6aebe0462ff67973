#!/usr/bin/env python3
"""Times what a user would pick instead of posenc, beside posenc, on the same shapes.

Every peer runs in a process of its own, on as many processors as there are threads, and first has to
give the same numbers as the published formula, computed here in double. Peers that are handed cos and
sin get them for nothing: only the rotation is timed. A peer that is absent or fails is a line that says why.

  evidence/bench/peers/peers.py                       all that can be imported
  evidence/bench/peers/peers.py --only ggml --quick
  evidence/bench/peers/peers.py --threads 2 --json > peers.json

`pip install -r evidence/bench/peers/requirements.txt` fetches them all; `make bench PEERS=1` does it in build/.
"""

import argparse
import glob
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path

import ggml
from cases import BYTES, Case, expected
from ggml import Missing
from libraries import PEERS

ROOT = Path(__file__).resolve().parents[3]
# Enough to tell another convention from another rounding: at position 134,143 an angle made in float, as
# some peers make it, is off by 0.02.
TOLERANCE = 5e-2


def last_level_cache():
    sizes = [Path(p).read_text().strip() for p in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size")]
    return max((int(s[:-1]) << {"K": 10, "M": 20}[s[-1]] for s in sizes), default=32 << 20)


def memory_available():
    for line in open("/proc/meminfo"):
        if line.startswith("MemAvailable"):
            return int(line.split()[1]) << 10
    return 4 << 30


def cases(quick):
    """Queries from memory (four times the last-level cache, but at most a tenth of the free memory: some
    peers keep five copies) and from cache, one head, and a table."""
    result = []
    if not quick:
        for dtype in ("float32", "float16", "bfloat16"):
            token = 32 * 128 * BYTES[dtype]
            wanted = (4 * last_level_cache() // (token * 1024) + 1) * 1024
            most = max(memory_available() // 10 // (token * 1024), 1) * 1024
            name = "memory" if wanted <= most else "memory, capped"
            result.append(Case(name, "rotate", 32, min(wanted, most), dtype))
    for dtype in ("float32", "float16", "bfloat16"):
        result.append(Case("cache", "rotate", 8, 4096, dtype))
    result.append(Case("cache", "rotate", 8, 4096, pairing="interleaved"))
    result.append(Case("one head", "rotate", 1, 4096))
    result.append(Case("sines", "table", 8, 32768))
    return result


# --- measuring --------------------------------------------------------------------------------------


def measure(make, case, threads, seconds):
    """The median of three runs or more, after one whose result is checked and one to warm up."""
    # As posenc does: on one thread other programs have no part in the process's own time.
    clock = time.process_time if threads == 1 else time.perf_counter
    import numpy as np

    peer = make(case, threads)
    which = sorted({0, 1, case.length // 2, case.length - 1})
    peer.run()
    error = float(np.max(np.abs(peer.rows(which) - expected(np, case, which))))
    if not error < TOLERANCE:
        return {"failed": f"is off by {error:.2g} from the formula", "version": peer.version}
    peer.run()
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 1000):
        before = clock()
        peer.run()
        times.append(clock() - before)
    return {"seconds": statistics.median(times), "error": error, "version": peer.version}


def child(name, threads, seconds):
    """Measures the cases on standard input; one line of JSON each."""
    make = PEERS[name]
    for case in json.load(sys.stdin):
        try:
            result = measure(make, Case(**case), threads, seconds)
        except Missing as reason:
            result = {"missing": str(reason)}
        except Exception as error:  # whatever a peer throws is its line
            result = {"failed": f"{type(error).__name__}: {error}".split("\n")[0][:160]}
        print("\n" + json.dumps(result), flush=True)


def results_of(name, wanted, arguments):
    """Yields a result a case, in order. A peer that dies is started again for the cases after."""
    left = [asdict(c) for c in wanted]
    while left:
        command = [sys.executable, __file__, "--child", name, "--threads", str(arguments.threads),
                   "--seconds", str(arguments.seconds)]
        peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)
        late = threading.Timer(arguments.patience, peer.kill)
        late.start()
        peer.stdin.write(json.dumps(left))
        peer.stdin.close()
        for line in peer.stdout:
            if line.startswith("{"):
                left.pop(0)
                yield json.loads(line)
        code = peer.wait()
        if left:
            if not late.is_alive():
                yield from ({"failed": f"took longer than {arguments.patience} s"} for _ in left)
                return
            left.pop(0)
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            yield {"failed": how}
        late.cancel()


def ours(case, arguments):
    command = [arguments.posenc, "bench", case.op, "--heads", case.heads, "--head_dim", case.head_dim,
               "--length", case.length, "--dtype", case.dtype, "--pairing", case.pairing,
               "--threads", arguments.threads, "--json"]
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"peers: {done.stderr.strip()}")
    return json.loads(done.stdout)[0]


def absent(name):
    for package in PEERS[name].packages:
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed"
    if importlib.util.find_spec("numpy") is None:
        return "numpy is not installed"
    if name == "ggml":
        try:
            ggml.libraries()
        except Missing as reason:
            return str(reason)
    return None


def span(seconds):
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms" if seconds < 1 else f"{seconds:.2f} s"


def line_of_ours(case, mine):
    return f"  {case.title():<58}{span(mine['seconds']):>10}{mine['gbps']:>7.1f}   {mine['ratio']:.2f} of the limit"


def line_of(case, mine, result):
    if "seconds" not in result:
        return f"  {case.title():<58}{'-':>10}   {result.get('missing') or result['failed']}"
    faster = result["seconds"] / mine["seconds"]
    gbps = case.bytes / result["seconds"] * 1e-9
    return f"  {case.title():<58}{span(result['seconds']):>10}{gbps:>7.1f}   posenc {faster:.1f} x as fast"


def row_of(name, case, mine, result):
    return {"peer": name, "version": result.get("version"), **asdict(case), "bytes": case.bytes,
            "threads": mine["threads"], "seconds": result.get("seconds"), "error": result.get("error"),
            "posenc_seconds": mine["seconds"], "posenc_limit_ratio": mine["ratio"],
            "ratio": result["seconds"] / mine["seconds"] if "seconds" in result else None,
            "why": result.get("missing") or result.get("failed")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", default=ROOT / "build/release/posenc", help="the command (build/release/posenc)")
    parser.add_argument("--threads", type=int, default=1, help="for all of them (1)")
    parser.add_argument("--only", help="peers to measure, separated by commas: " + ", ".join(PEERS))
    parser.add_argument("--quick", action="store_true", help="leave out what does not fit the cache")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1, help="for one peer and case, at least three runs (1)")
    parser.add_argument("--patience", type=int, default=300, help="seconds that one peer may take in all (300)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.threads < 1:
        parser.error(f"--threads must be 1 or more, got {arguments.threads}")
    if arguments.child:
        return child(arguments.child, arguments.threads, arguments.seconds)

    names = [n.strip() for n in arguments.only.split(",")] if arguments.only else list(PEERS)
    for name in names:
        if name not in PEERS:
            parser.error(f"no such peer, got {name}; there are {', '.join(PEERS)}")
    if not Path(arguments.posenc).exists():
        parser.error(f"{arguments.posenc} is not built; run make build")
    # Not every peer can be told how many threads to use: all get as many processors.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-arguments.threads :])
    for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = str(arguments.threads)

    def show(text):
        if not arguments.json:
            print(text, flush=True)

    wanted, mine, rows, missing = cases(arguments.quick), [], [], []
    show(f"{'posenc':<60}{'time':>10}{'GB/s':>7}")
    for case in wanted:
        mine.append(ours(case, arguments))
        show(line_of_ours(case, mine[-1]))
    for name in names:
        if why := absent(name):
            missing.append({"peer": name, "why": why})
            show(f"\n{name}: {why}")
            continue
        show(f"\n{name}: {PEERS[name].__doc__.strip()}")
        for case, our, result in zip(wanted, mine, results_of(name, wanted, arguments)):
            rows.append(row_of(name, case, our, result))
            show(line_of(case, our, result))
    if arguments.json:
        print(json.dumps({"rows": rows, "absent": missing}, indent=1))


if __name__ == "__main__":
    main()
