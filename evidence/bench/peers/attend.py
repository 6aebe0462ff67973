#!/usr/bin/env python3
"""Times attention as a user would have it otherwise, beside posenc: causal, 16 heads x 4096 x 64, no
position and ALiBi. Every peer must first give the softmax of the formula in double for four queries.

  evidence/bench/peers/attend.py                  all that can be imported
  evidence/bench/peers/attend.py --only PyTorch --length 2048
  evidence/bench/peers/attend.py --dtype bfloat16 --threads 2
  evidence/bench/peers/attend.py --json > attend.json

One process a peer; one thread is timed by its own processor time. Needs what peers.py needs.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import ggml
from ggml import Missing
from peers import ROOT

MOST_SECONDS = 300
TOLERANCE = 2e-2  # ggml keeps keys and values in halves


class Problem:
    def __init__(self, heads, length, dim, scheme, dtype="float32"):
        import numpy as np

        self.heads, self.length, self.dim, self.scheme, self.dtype = heads, length, dim, scheme, dtype
        random = np.random.default_rng(0)
        self.q, self.k, self.v = (random.standard_normal((heads, length, dim), dtype=np.float32) for _ in range(3))
        if dtype == "bfloat16":  # floats that it holds
            for x in (self.q, self.k, self.v):
                bits = x.view(np.uint32)
                bits += 0x7FFF + (bits >> 16 & 1)
                bits &= 0xFFFF0000
        self.slopes = 2.0 ** (-8 * np.arange(1, heads + 1) / heads)

    def bias(self):
        """[heads][queries][keys], -inf in the future: what eager code materialises."""
        import numpy as np

        distance = (np.arange(self.length)[None, :] - np.arange(self.length)[:, None]).astype(np.float32)
        distance[distance > 0] = -np.inf
        if self.scheme == "nope":
            return np.maximum(distance, 0, out=distance, where=~np.isinf(distance))[None]
        return self.slopes.astype(np.float32)[:, None, None] * distance  # powers of two: exact

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
        kind = getattr(torch, p.dtype)
        self.q, self.k, self.v = (torch.from_numpy(x).to(kind) for x in (p.q, p.k, p.v))
        self.bias = torch.from_numpy(p.bias()).to(kind)
        self.scale = p.dim**-0.5

    def run(self):
        import torch

        with torch.no_grad():
            logits = torch.matmul(self.q, self.k.transpose(1, 2)) * self.scale + self.bias
            return torch.matmul(torch.softmax(logits, -1), self.v).float().numpy()


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
                is_causal=self.causal)[0].float().numpy()


class Mlx:
    """mx.fast.scaled_dot_product_attention on the CPU."""

    def __init__(self, p, threads):
        import importlib.metadata

        import mlx.core as mx

        mx.set_default_device(mx.cpu)
        self.version = importlib.metadata.version("mlx")
        kind = getattr(mx, p.dtype)
        self.q, self.k, self.v = (mx.array(x[None]).astype(kind) for x in (p.q, p.k, p.v))
        self.mask = "causal" if p.scheme == "nope" else mx.array(p.bias()[None]).astype(kind)
        self.scale = p.dim**-0.5

    def run(self):
        import mlx.core as mx
        import numpy as np

        out = mx.fast.scaled_dot_product_attention(self.q, self.k, self.v, scale=self.scale, mask=self.mask)
        mx.eval(out)
        return np.array(out.astype(mx.float32))[0]


class GgmlFlash:
    """ggml_flash_attn_ext; keys, values and the mask in halves, as it is used."""

    def __init__(self, p, threads):
        import numpy as np

        graph = ggml.Graph(p.length * p.length * 2 + p.q.nbytes * 6 + (256 << 20))
        self.version = graph.version
        flash = graph.function("ggml_flash_attn_ext", ggml.POINTER, *[ggml.POINTER] * 5, *[ggml.REAL] * 3)
        hidden = np.triu(np.full((p.length, p.length), -np.inf, dtype=np.float32), 1)
        if p.scheme == "alibi":  # the distance; ggml multiplies it by the head's slope
            hidden += np.tril(np.arange(p.length)[None, :] - np.arange(p.length)[:, None])
        result = flash(graph.context, graph.tensor(p.q), *(graph.tensor(x.astype("float16")) for x in (p.k, p.v)),
                       graph.tensor(hidden[None].astype("float16")), p.dim**-0.5, 8.0 if p.scheme == "alibi" else 0.0,
                       0.0)
        self.work = graph.compute(result, threads)
        self.out = graph.view(result, (p.length, p.heads, p.dim), "float32").swapaxes(0, 1)

    def run(self):
        self.work()
        return self.out


class OnnxRuntime:
    """com.microsoft's MultiHeadAttention: unidirectional without position, the bias as its own with ALiBi."""

    def __init__(self, p, threads):
        import numpy as np
        import onnxruntime as ort
        from onnx import TensorProto, helper

        self.version, self.p = ort.__version__, p
        width, kind = p.heads * p.dim, TensorProto.FLOAT
        shapes = {name: [1, p.length, width] for name in ("q", "k", "v")}
        self.memory = {name: np.ascontiguousarray(x.swapaxes(0, 1)).reshape(1, p.length, width)
                       for name, x in (("q", p.q), ("k", p.k), ("v", p.v))}
        inputs = ["q", "k", "v"]
        if p.scheme == "alibi":
            shapes["bias"] = [1, p.heads, p.length, p.length]
            self.memory["bias"] = p.bias()[None]
            inputs += ["", "", "bias"]  # no bias of a projection, no padding
        node = helper.make_node("MultiHeadAttention", inputs, ["out"], domain="com.microsoft", num_heads=p.heads,
                                unidirectional=int(p.scheme == "nope"), scale=p.dim**-0.5)
        model = helper.make_model(
            helper.make_graph([node], "attention",
                              [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()],
                              [helper.make_tensor_value_info("out", kind, [1, p.length, width])]),
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)], ir_version=8)
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])

    def run(self):
        out = self.session.run(None, self.memory)[0]
        return out.reshape(self.p.length, self.p.heads, self.p.dim).swapaxes(0, 1)


FLOAT_ONLY = {"ggml", "ONNX Runtime"}  # in float32 and halves
PEERS = {"ggml": GgmlFlash, "PyTorch": Eager, "PyTorch sdpa": Sdpa, "ONNX Runtime": OnnxRuntime, "MLX": Mlx}


def measured(name, problem, threads, seconds):
    clock = time.process_time if threads == 1 else time.perf_counter
    if problem.dtype == "bfloat16" and name in FLOAT_ONLY:
        raise Missing("has no attention in bfloat16 on a CPU")
    peer = PEERS[name](problem, threads)
    rows = sorted({0, 1, problem.length // 2, problem.length - 1})
    before = clock()
    first = peer.run()
    times = [clock() - before]
    error = float(abs(first[:, rows] - problem.expected(rows)).max())
    if not error < TOLERANCE:
        return {"failed": f"is off by {error:.2g} from the formula", "version": peer.version}
    # Of a run this long the first is as good as any; else it warms up and does not count.
    if times[0] < seconds:
        times, start = [], time.perf_counter()
        while len(times) < 3 or (time.perf_counter() - start < seconds and len(times) < 100):
            before = clock()
            peer.run()
            times.append(clock() - before)
    return {"seconds": statistics.median(times), "error": error, "version": peer.version}


def child(arguments):
    problem = Problem(arguments.heads, arguments.length, arguments.head_dim, arguments.scheme, arguments.dtype)
    try:
        result = measured(arguments.child, problem, arguments.threads, arguments.seconds)
    except (Missing, ImportError) as reason:
        result = {"missing": str(reason)}
    except Exception as reason:  # whatever a package raises is a line of the table
        result = {"failed": f"{type(reason).__name__}: {reason}"[:200]}
    print("result " + json.dumps(result))


def result_of(name, scheme, a):
    command = [sys.executable, __file__, "--child", name, "--scheme", scheme, "--threads", str(a.threads), "--heads",
               str(a.heads), "--dtype", a.dtype, "--length", str(a.length), "--head_dim", str(a.head_dim), "--seconds", str(a.seconds)]
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
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--seconds", type=float, default=1, help="for one measurement: three runs or more, or one if it takes longer")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--scheme", default="nope", help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.child:
        return child(a)
    ours = json.loads(subprocess.run(
        [a.posenc, "bench", "attend", "--scheme", "nope,alibi", "--heads", str(a.heads), "--length", str(a.length),
         "--head_dim", str(a.head_dim), "--threads", str(a.threads), "--dtype", a.dtype, "--json"],
        check=True, capture_output=True, text=True).stdout)
    rows = [{"name": "posenc", "scheme": row["scheme"], "seconds": row["seconds"]} for row in ours]
    seconds = {row["scheme"]: row["seconds"] for row in rows}
    names = [name for name in PEERS if not a.only or name in a.only.split(",")]
    rows += [{"name": name, "scheme": scheme, **result_of(name, scheme, a)} for name in names for scheme in seconds]
    if a.json:
        return print(json.dumps(rows))
    print(f"causal attention, {a.heads} x {a.length} x {a.head_dim} {a.dtype}, threads: {a.threads}")
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
