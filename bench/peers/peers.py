#!/usr/bin/env python3
"""Times what a user would pick instead of posenc, beside posenc, on the same shapes.

Every peer runs in a process of its own, on as many processors as there are threads, and first has to
give the same numbers as the published formula, computed here in double. Peers that are handed cos and
sin get them for nothing: only the rotation is timed. A peer that is absent or fails is a line that says why.

  bench/peers/peers.py                       all that can be imported
  bench/peers/peers.py --only ggml --quick
  bench/peers/peers.py --threads 2 --json > peers.json

`pip install -r bench/peers/requirements.txt` fetches them all; `make bench PEERS=1` does it in build/.
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
from dataclasses import asdict, dataclass
from pathlib import Path

import ggml
from ggml import Missing

ROOT = Path(__file__).resolve().parents[2]
BASE = 10000.0
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
# Enough to tell another convention from another rounding: at position 134,143 an angle made in float, as
# some peers make it, is off by 0.02.
TOLERANCE = 5e-2


@dataclass
class Case:
    name: str
    op: str
    heads: int
    length: int
    dtype: str = "float32"
    pairing: str = "halves"
    head_dim: int = 128

    @property
    def bytes(self):
        elements = self.heads * self.length * self.head_dim
        return elements * BYTES[self.dtype] * (1 if self.op == "table" else 2)

    def shape(self):
        if self.op == "table":
            return f"{self.length} x {self.heads * self.head_dim}"
        return f"{self.heads} x {self.length} x {self.head_dim}"

    def title(self):
        return f"{self.op} {self.name} {self.shape()} {self.dtype} {self.pairing}"


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


# --- the formula, in double -------------------------------------------------------------------------


def frequencies(np, dim):
    return BASE ** (-np.arange(0, dim, 2) / dim)


def input_of(np, case):
    """[tokens][heads][head_dim] in float32: one block of random tokens, over and over."""
    block = min(case.length, 1024)
    tokens = np.random.default_rng(0).random((block, case.heads, case.head_dim), dtype=np.float32) * 2 - 1
    return np.resize(tokens, (case.length, case.heads, case.head_dim))


def expected(np, case, rows):
    if case.op == "table":
        angle = np.outer(rows, frequencies(np, case.heads * case.head_dim))
        return np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    x = input_of(np, case)[rows].astype(np.float64)
    angle = np.outer(rows, frequencies(np, case.head_dim))[:, None, :]
    half = case.head_dim // 2
    a, b = (x[..., :half], x[..., half:]) if case.pairing == "halves" else (x[..., 0::2], x[..., 1::2])
    turned = [a * np.cos(angle) - b * np.sin(angle), a * np.sin(angle) + b * np.cos(angle)]
    if case.pairing == "halves":
        return np.concatenate(turned, axis=-1)
    return np.stack(turned, axis=-1).reshape(x.shape)


# --- the peers --------------------------------------------------------------------------------------
# Each is a class made with (case, threads). run() does the work once; rows(which) gives tokens of the
# first run's result as float arrays, [token][head][head_dim] or [token][width]. Missing says that a case
# is not theirs.


class Torch:
    """Queries as a projection leaves them, seen as [batch, heads, tokens, head_dim]; cos and sin given."""

    packages = ["torch"]
    compiled = False

    def __init__(self, case, threads):
        import numpy as np
        import torch

        torch.set_num_threads(threads)
        self.version = torch.__version__
        self.torch, self.case = torch, case
        kind = getattr(torch, case.dtype)
        dim = case.head_dim if case.op == "rotate" else case.heads * case.head_dim
        frequency = torch.tensor(frequencies(np, dim))

        if case.op == "table":
            frequency = frequency.float()

            def work():
                angle = torch.arange(case.length).float()[:, None] * frequency
                return torch.cat((angle.sin(), angle.cos()), dim=-1).to(kind)
        else:
            x = torch.from_numpy(input_of(np, case)).to(kind)[None].transpose(1, 2)
            angle = torch.arange(case.length).double()[:, None] * frequency
            half = case.head_dim // 2
            if case.pairing == "halves":
                cos, sin = (torch.cat((f, f), dim=-1).to(kind) for f in (angle.cos(), angle.sin()))

                def work():
                    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
                    return x * cos + turned * sin
            elif case.dtype == "float32":
                turn = torch.polar(torch.ones_like(angle), angle).to(torch.complex64)

                def work():
                    pairs = torch.view_as_complex(x.unflatten(-1, (half, 2)))
                    return torch.view_as_real(pairs * turn).flatten(-2)
            else:
                raise Missing("complex numbers are float32")
        self.work = torch.compile(work) if self.compiled else work

    def run(self):
        with self.torch.inference_mode():
            self.result = self.work()

    def rows(self, which):
        if self.case.op == "table":
            return self.result[which].float().numpy()
        return self.result[0, :, which].transpose(0, 1).float().numpy()


class TorchCompile(Torch):
    """The same through torch.compile."""

    compiled = True

    def __init__(self, case, threads):
        import torch

        if not hasattr(torch, "compile"):
            raise Missing(f"torch {torch.__version__} has no torch.compile")
        super().__init__(case, threads)


class OnnxRuntime:
    """com.microsoft RotaryEmbedding; cos and sin given, memory bound beforehand."""

    packages = ["onnxruntime", "onnx"]

    def __init__(self, case, threads):
        import numpy as np
        import onnx
        import onnxruntime as ort
        from onnx import TensorProto, helper

        if case.op == "table":
            raise Missing("has no operator for a table of sines")
        kind = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}[case.dtype]
        self.version, self.case = ort.__version__, case
        width, half = case.heads * case.head_dim, case.head_dim // 2
        inputs = [
            helper.make_tensor_value_info("x", kind, [1, case.length, width]),
            helper.make_tensor_value_info("positions", TensorProto.INT64, [1, case.length]),
            helper.make_tensor_value_info("cos", kind, [case.length, half]),
            helper.make_tensor_value_info("sin", kind, [case.length, half]),
        ]
        output = helper.make_tensor_value_info("y", kind, [1, case.length, width])
        node = helper.make_node(
            "RotaryEmbedding", ["x", "positions", "cos", "sin"], ["y"],
            domain="com.microsoft", interleaved=int(case.pairing == "interleaved"),
        )
        model = helper.make_model(
            helper.make_graph([node], "rope", inputs, [output]),
            opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
            ir_version=8,
        )
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        try:
            self.session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            if "Could not find an implementation" in str(error):
                raise Missing(f"its RotaryEmbedding has no {case.dtype} on CPU") from error
            raise
        type_ = np.dtype(case.dtype)  # of bfloat16 there is no session
        angle = np.outer(np.arange(case.length), frequencies(np, case.head_dim))
        self.memory = {
            "x": input_of(np, case).astype(type_).reshape(1, case.length, width),
            "positions": np.arange(case.length)[None],
            "cos": np.cos(angle).astype(type_),
            "sin": np.sin(angle).astype(type_),
        }
        self.result = np.empty((1, case.length, width), type_)
        self.binding = self.session.io_binding()
        for name, array in self.memory.items():
            self.binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        self.binding.bind_output("y", "cpu", 0, type_, self.result.shape, self.result.ctypes.data)

    def run(self):
        self.session.run_with_iobinding(self.binding)

    def rows(self, which):
        return self.result[0][which].reshape(len(which), self.case.heads, self.case.head_dim).astype("float32")


class Mlx:
    """mx.fast.rope on the CPU, queries [1, heads, tokens, head_dim]."""

    packages = ["mlx"]

    def __init__(self, case, threads):
        import importlib.metadata

        import mlx.core as mx
        import numpy as np

        if threads != 1:
            raise Missing("its CPU backend has no setting for threads")
        mx.set_default_device(mx.cpu)
        self.version, self.mx, self.case = importlib.metadata.version("mlx"), mx, case
        kind = getattr(mx, case.dtype)
        if case.op == "table":
            frequency = mx.array(frequencies(np, case.heads * case.head_dim).astype("float32"))

            def work():
                angle = mx.arange(case.length).astype(mx.float32)[:, None] * frequency
                return mx.concatenate([mx.sin(angle), mx.cos(angle)], axis=-1).astype(kind)
        else:
            x = mx.contiguous(mx.array(input_of(np, case)).astype(kind)[None].swapaxes(1, 2))
            mx.eval(x)
            interleaved = case.pairing == "interleaved"

            def work():
                return mx.fast.rope(x, case.head_dim, traditional=interleaved, base=BASE, scale=1.0, offset=0)
        self.work = work

    def run(self):
        self.result = self.work()
        self.mx.eval(self.result)

    def rows(self, which):
        import numpy as np

        picked = self.mx.array(which)
        if self.case.op == "table":
            return np.array(self.result[picked].astype(self.mx.float32))
        return np.array(self.result[0][:, picked].swapaxes(0, 1).astype(self.mx.float32))


class Jax:
    """The formula under jit; cos and sin given."""

    packages = ["jax"]

    def __init__(self, case, threads):
        os.environ["JAX_PLATFORMS"] = "cpu"
        import jax
        import jax.numpy as jnp
        import numpy as np

        self.version, self.case = jax.__version__, case
        kind = jnp.dtype(case.dtype)
        if case.op == "table":
            frequency = jnp.asarray(frequencies(np, case.heads * case.head_dim), jnp.float32)

            @jax.jit
            def work(f):
                angle = jnp.arange(case.length, dtype=jnp.float32)[:, None] * f
                return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1).astype(kind)

            arguments = (frequency,)
        else:
            angle = np.outer(np.arange(case.length), frequencies(np, case.head_dim))[:, None, :]
            half = case.head_dim // 2

            @jax.jit
            def work(x, cos, sin):
                if case.pairing == "halves":
                    a, b = x[..., :half], x[..., half:]
                    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)
                a, b = x[..., 0::2], x[..., 1::2]
                return jnp.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)

            arguments = tuple(jnp.asarray(v, kind) for v in (input_of(np, case), np.cos(angle), np.sin(angle)))
        self.work = lambda: work(*arguments)

    def run(self):
        self.result = self.work().block_until_ready()

    def rows(self, which):
        import numpy as np

        return np.asarray(self.result[np.array(which)].astype("float32"))


class Ggml:
    """ggml_rope_ext in place, in a graph of its own; from llama-cpp-python or libggml-python."""

    packages = []

    def __init__(self, case, threads):
        import numpy as np

        if case.op == "table":
            raise Missing("has no operator for a table of sines")
        if case.dtype not in ggml.TYPES:
            raise Missing("its rotation has no bfloat16 on CPU")
        graph = ggml.Graph(case.bytes // 2 + case.length * 4 + (256 << 20))
        self.version = graph.version
        rope = graph.function("ggml_rope_ext_inplace", ggml.POINTER, *[ggml.POINTER] * 4, *[ggml.INTEGER] * 3,
                              *[ggml.REAL] * 6)
        shape = (case.length, case.heads, case.head_dim)
        x = graph.tensor(input_of(np, case).astype(case.dtype).reshape(shape))
        self.x = graph.view(x, shape, case.dtype)
        mode = 2 if case.pairing == "halves" else 0
        turned = rope(graph.context, x, graph.tensor(np.arange(case.length, dtype="int32")), None, case.head_dim, mode,
                      0, BASE, 1.0, 0.0, 1.0, 32.0, 1.0)
        self.run = graph.compute(turned, threads)

    def rows(self, which):
        return self.x[which].astype("float32")


PEERS = {"ggml": Ggml, "PyTorch eager": Torch, "torch.compile": TorchCompile, "ONNX Runtime": OnnxRuntime,
         "MLX": Mlx, "JAX": Jax}


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
