"""The libraries that are timed beside posenc.

Each is a class made with (case, threads). run() does the work once; rows(which) gives tokens of the
first run's result as float arrays, [token][head][head_dim] or [token][width]. Missing says that a case
is not theirs.
"""

import os

import ggml
from cases import BASE, frequencies, input_of
from ggml import Missing


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
