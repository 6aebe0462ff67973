#!/usr/bin/env python3
"""Times attention as a user would have it otherwise, beside posenc: causal, 16 heads x 4096 x 64 float, no
position and ALiBi. Every peer must first give the softmax of the formula in double for four queries.

  bench/peers/attend.py                  all that can be imported
  bench/peers/attend.py --only PyTorch --length 2048
  bench/peers/attend.py --json > attend.json

One process a peer; one thread is timed by its own processor time. Needs what peers.py needs.
"""

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

from peers import ROOT, Ggml, Missing

MOST_SECONDS = 300
TOLERANCE = 2e-2  # ggml keeps keys and values in halves


class Problem:
    def __init__(self, heads, length, dim, scheme):
        import numpy as np

        self.heads, self.length, self.dim, self.scheme = heads, length, dim, scheme
        random = np.random.default_rng(0)
        self.q, self.k, self.v = (random.standard_normal((heads, length, dim), dtype=np.float32) for _ in range(3))
        self.slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)

    def bias(self):
        """[heads][queries][keys], -inf in the future: what eager code materialises."""
        import numpy as np

        distance = np.arange(self.length)[None, :] - np.arange(self.length)[:, None]
        hidden = np.where(distance > 0, -np.inf, 0).astype(np.float32)
        if self.scheme == "nope":
            return hidden[None]
        return (self.slopes[:, None, None] * distance + hidden).astype(np.float32)

    def expected(self, rows):
        import numpy as np

        out = []
        for i in rows:
            q, k, v = self.q[:, i].astype(float), self.k[:, : i + 1].astype(float), self.v[:, : i + 1].astype(float)
            logits = np.einsum("hd,hjd->hj", q, k) / np.sqrt(self.dim)
            if self.scheme == "alibi":
                logits -= self.slopes[:, None] * (i - np.arange(i + 1))
            weights = np.exp(logits - logits.max(1, keepdims=True))
            out.append(np.einsum("hj,hjd->hd", weights / weights.sum(1, keepdims=True), v))
        return np.stack(out, 1)  # [heads][row][dim]


# Each is made with (problem, threads); run() gives [heads][queries][dim] as an array.


class Eager:
    """Matrix product, a materialised bias, softmax, matrix product."""

    def __init__(self, p, threads):
        import torch

        torch.set_num_threads(threads)
        self.version = torch.__version__.split("+")[0]
        self.q, self.k, self.v = (torch.from_numpy(x) for x in (p.q, p.k, p.v))
        self.bias = torch.from_numpy(p.bias())
        self.scale = p.dim**-0.5

    def run(self):
        import torch

        with torch.no_grad():
            logits = torch.matmul(self.q, self.k.transpose(1, 2)) * self.scale + self.bias
            return torch.matmul(torch.softmax(logits, -1), self.v).numpy()


class Sdpa(Eager):
    """scaled_dot_product_attention: is_causal without position, the bias as its mask with ALiBi."""

    def __init__(self, p, threads):
        super().__init__(p, threads)
        self.causal = p.scheme == "nope"

    def run(self):
        import torch

        with torch.no_grad():
            return torch.nn.functional.scaled_dot_product_attention(
                self.q[None], self.k[None], self.v[None], attn_mask=None if self.causal else self.bias[None],
                is_causal=self.causal)[0].numpy()


class Mlx:
    """mx.fast.scaled_dot_product_attention on the CPU."""

    def __init__(self, p, threads):
        import importlib.metadata

        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.version = importlib.metadata.version("mlx")
        self.q, self.k, self.v = (mx.array(x[None]) for x in (p.q, p.k, p.v))
        self.mask = "causal" if p.scheme == "nope" else mx.array(p.bias()[None])
        self.scale = p.dim**-0.5

    def run(self):
        import mlx.core as mx
        import numpy as np

        out = mx.fast.scaled_dot_product_attention(self.q, self.k, self.v, scale=self.scale, mask=self.mask)
        mx.eval(out)
        return np.array(out)[0]


class GgmlFlash:
    """ggml_flash_attn_ext; keys, values and the mask in halves, as it is used."""

    def __init__(self, p, threads):
        import importlib.metadata

        import numpy as np

        base_path, cpu_path, package = Ggml.libraries()
        self.version = importlib.metadata.version({"llama_cpp": "llama-cpp-python", "libggml": "libggml-python"}[package])
        base, cpu = (ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL) for path in (base_path, cpu_path))
        pointer, integer, real, wide = ctypes.c_void_p, ctypes.c_int, ctypes.c_float, ctypes.c_int64

        def function(library, name, result, *arguments):
            found = getattr(library, name, None)
            if found is None:
                raise Missing(f"its library does not expose {name}")
            found.restype, found.argtypes = result, arguments
            return found

        init = function(base, "ggml_init", pointer, Ggml.Params)
        tensor = function(base, "ggml_new_tensor_3d", pointer, pointer, integer, wide, wide, wide)
        data_of = function(base, "ggml_get_data", pointer, pointer)
        flash = function(base, "ggml_flash_attn_ext", pointer, *[pointer] * 5, *[real] * 3)
        graph_of = function(base, "ggml_new_graph", pointer, pointer)
        expand = function(base, "ggml_build_forward_expand", None, pointer, pointer)
        compute = function(cpu, "ggml_graph_compute_with_ctx", integer, pointer, pointer, integer)
        function(cpu, "ggml_cpu_init", None)()
        context = init(Ggml.Params(p.length * p.length * 2 + p.q.nbytes * 6 + (256 << 20), None, False))

        def filled(values, kind):
            made = tensor(context, {"float32": 0, "float16": 1}[kind], values.shape[2], values.shape[1], values.shape[0])
            size = values.size * np.dtype(kind).itemsize
            np.frombuffer((ctypes.c_char * size).from_address(data_of(made)), kind).reshape(values.shape)[:] = values
            return made

        hidden = np.triu(np.full((p.length, p.length), -np.inf, dtype=np.float32), 1)
        if p.scheme == "alibi":  # the distance; ggml multiplies it by the head's slope
            hidden += np.tril(np.arange(p.length)[None, :] - np.arange(p.length)[:, None])
        result = flash(context, filled(p.q, "float32"), filled(p.k, "float16"), filled(p.v, "float16"),
                       filled(hidden[None], "float16"), p.dim**-0.5, 8.0 if p.scheme == "alibi" else 0.0, 0.0)
        graph = graph_of(context)
        expand(graph, result)
        self.work = lambda: compute(context, graph, threads)
        size = p.q.nbytes
        self.out = lambda: np.frombuffer((ctypes.c_char * size).from_address(data_of(result)), "float32").reshape(
            p.length, p.heads, p.dim).swapaxes(0, 1)

    def run(self):
        if self.work() != 0:
            raise RuntimeError("ggml_graph_compute failed")
        return self.out()


PEERS = {"ggml": GgmlFlash, "PyTorch": Eager, "PyTorch sdpa": Sdpa, "MLX": Mlx}


def measured(name, problem, threads, seconds):
    clock = time.process_time if threads == 1 else time.perf_counter
    peer = PEERS[name](problem, threads)
    rows = sorted({0, 1, problem.length // 2, problem.length - 1})
    error = float(abs(peer.run()[:, rows] - problem.expected(rows)).max())
    if not error < TOLERANCE:
        return {"failed": f"is off by {error:.2g} from the formula", "version": peer.version}
    times, start = [], time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 100):
        before = clock()
        peer.run()
        times.append(clock() - before)
    return {"seconds": statistics.median(times), "error": error, "version": peer.version}


def child(arguments):
    problem = Problem(arguments.heads, arguments.length, arguments.head_dim, arguments.scheme)
    try:
        result = measured(arguments.child, problem, arguments.threads, arguments.seconds)
    except (Missing, ImportError) as reason:
        result = {"missing": str(reason)}
    except Exception as reason:  # whatever a package raises is a line of the table
        result = {"failed": f"{type(reason).__name__}: {reason}"[:200]}
    print("result " + json.dumps(result))


def result_of(name, scheme, a):
    command = [sys.executable, __file__, "--child", name, "--scheme", scheme, "--threads", str(a.threads), "--heads",
               str(a.heads), "--length", str(a.length), "--head_dim", str(a.head_dim), "--seconds", str(a.seconds)]
    env = os.environ | {f"{x}_NUM_THREADS": str(a.threads) for x in ("OMP", "MKL", "OPENBLAS")}
    if hasattr(os, "sched_getaffinity"):  # what cannot be told how many threads gets so many processors
        cores = sorted(os.sched_getaffinity(0))[: a.threads]
        command = ["taskset", "-c", ",".join(map(str, cores))] + command
    try:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=MOST_SECONDS)
    except subprocess.TimeoutExpired:
        return {"failed": f"took longer than {MOST_SECONDS} s"}
    for line in done.stdout.splitlines():
        if line.startswith("result "):
            return json.loads(line[7:])
    return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", default=ROOT / "build/release/posenc")
    parser.add_argument("--only", default="", help="names, with commas between: " + ", ".join(PEERS))
    for flag, usual in (("heads", 16), ("length", 4096), ("head_dim", 64), ("threads", 1)):
        parser.add_argument(f"--{flag}", type=int, default=usual)
    parser.add_argument("--seconds", type=float, default=3, help="for one measurement, at least three runs")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--scheme", default="nope", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        return child(a)
    ours = json.loads(subprocess.run(
        [a.posenc, "bench", "attend", "--scheme", "nope,alibi", "--heads", str(a.heads), "--length", str(a.length),
         "--head_dim", str(a.head_dim), "--threads", str(a.threads), "--json"],
        check=True, capture_output=True, text=True).stdout)
    rows = [{"name": "posenc", "scheme": row["scheme"], "seconds": row["seconds"]} for row in ours]
    seconds = {row["scheme"]: row["seconds"] for row in rows}
    names = [name for name in PEERS if not a.only or name in a.only.split(",")]
    rows += [{"name": name, "scheme": scheme, **result_of(name, scheme, a)} for name in names for scheme in seconds]
    if a.json:
        return print(json.dumps(rows))
    print(f"causal attention, {a.heads} x {a.length} x {a.head_dim} float32, threads: {a.threads}")
    pairs = a.length * (a.length + 1) / 2
    for row in rows:
        title = f"  {row['name']:<14}{row['scheme']:<8}"
        if "seconds" not in row:
            print(title + "-  " + (row.get("missing") or row.get("failed")))
            continue
        rate = 4e-9 * a.heads * a.head_dim * pairs / row["seconds"]
        times = "" if row["name"] == "posenc" else f"  posenc {row['seconds'] / seconds[row['scheme']]:.1f} x as fast"
        print(f"{title}{row['seconds'] * 1e3:10.1f} ms {rate:7.1f} GFLOP/s{times}")


if __name__ == "__main__":
    main()
