"""Each peer's rotation of queries and keys on a device, as its users call it. Imported where there is torch.

A peer is a class: what it does of `WORKS`, `TYPES` and `PAIRINGS`; `missing(sources)` says why it cannot run; `calls(case)` makes a
function of the number of a call. Out of place or in place, as the peer has it: what counts is that the result is there.
"""

import ctypes
import importlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import torch

from arithmetic import HEAD_DIM, THETA

BOTH = ("halves", "interleaved")
SIXTEEN, ALL = ("bfloat16",), ("bfloat16", "float32")
DEVICE = "cuda"  # or "cpu", where errors alone are asked for


def inverse_frequencies():
    return 1.0 / THETA ** (torch.arange(0, HEAD_DIM, 2, dtype=torch.int64, device=DEVICE).float() / HEAD_DIM)


class Case:
    """Tensors of one row: [token, head, channel] as engines have them, in as many copies as a cache does not hold."""

    def __init__(self, work, dtype, pairing, positions, heads=32, kv_heads=8, copies=1):
        self.work, self.dtype, self.pairing = work, dtype, pairing
        self.type = getattr(torch, dtype)
        self.positions = positions.to(DEVICE, torch.int64)
        self.tokens, self.heads, self.kv_heads = len(positions), heads, kv_heads
        angles = self.positions.float()[:, None] * inverse_frequencies()
        self.angles = torch.cat((angles, angles), -1)  # [token, 128]
        self.table = torch.cat((angles.cos(), angles.sin()), -1)  # [token, 64 cosines and 64 sines]
        # A row of the table for each token, whatever its position: no peer forms a table while it is timed.
        self.rows = torch.arange(self.tokens, device=DEVICE)
        self.slots = torch.arange(self.tokens, device=DEVICE).flip(0)
        generator = torch.Generator(DEVICE).manual_seed(1)

        def random(count):
            # Twice the memory: a peer that writes elsewhere writes behind.
            made = torch.randn(
                2 * self.tokens, count, HEAD_DIM, generator=generator, device=DEVICE, dtype=torch.float32
            )
            return made.to(self.type)[: self.tokens]

        self.q = [random(heads) for _ in range(copies)]
        self.k = [random(kv_heads) for _ in range(copies)]
        self.v = [random(kv_heads) for _ in range(copies if work == "append" else 0)]
        pages = (self.tokens + 15) // 16
        self.caches = [
            [torch.zeros(pages, 16, kv_heads, HEAD_DIM, device=DEVICE, dtype=self.type) for _ in range(2)]
            for _ in self.v
        ]

    @property
    def interleaved(self):
        return self.pairing == "interleaved"

    def cos_sin(self, dtype=None):
        """[1, token, 128] of transformers, in the tensors' type"""
        angles = self.angles.repeat_interleave(2, -1)[:, :HEAD_DIM] if self.interleaved else self.angles
        return angles.cos().to(dtype or self.type)[None], angles.sin().to(dtype or self.type)[None]


def rotated_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat((-b, a), -1)


def rotated_neighbours(x):
    return torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


class Peer:
    name = package = ""
    works, types, pairings = ("rotate",), ALL, BOTH
    on_cpu = False  # it is PyTorch, or Triton, whose interpreter runs on the CPU

    def __init__(self, sources=None):
        self.sources = sources

    def missing(self):
        if importlib.util.find_spec(self.package.split(".")[0]) is None:
            return f"there is no package {self.package.split('.')[0]}"
        return None

    def version(self):
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""


class Eager(Peer):
    name, package, on_cpu = "torch eager", "torch", True

    def apply(self, q, k, cos, sin, turned):
        return q * cos + turned(q) * sin, k * cos + turned(k) * sin

    def calls(self, case):
        cos, sin = (x[0][:, None] for x in case.cos_sin())
        turned = rotated_neighbours if case.interleaved else rotated_half

        def call(i):
            return self.apply(case.q[i], case.k[i], cos, sin, turned)

        return call


class Compiled(Eager):
    name, on_cpu = "torch.compile", False  # its code for the CPU is another

    def __init__(self, sources=None):
        super().__init__(sources)
        self.apply = torch.compile(super().apply, dynamic=False)


class Liger(Peer):
    name, package, works, pairings = "Liger", "liger_kernel", ("rotate", "transpose"), ("halves",)
    on_cpu = True

    def version(self):
        return importlib.metadata.version("liger-kernel")

    def calls(self, case):
        rope = importlib.import_module("liger_kernel.ops.rope")
        cos, sin = case.cos_sin()
        work = rope.rope_backward if case.work == "transpose" else rope.rope_forward

        def call(i):
            # [1, head, token, channel] whose transpose is dense, which it wants for working in place.
            q, k = (x[i][None].transpose(1, 2) for x in (case.q, case.k))
            q, k = work(q, k, cos, sin)[:2]
            return q.transpose(1, 2)[0], k.transpose(1, 2)[0]

        return call


class FlashAttention(Peer):
    """Its Triton kernel, of the package or of a file triton/rotary.py among the sources"""

    name, package, works = "flash-attn", "flash_attn", ("rotate", "transpose")
    on_cpu = True

    def missing(self):
        if super().missing() is None or found(self.sources, "triton/rotary.py"):
            return None
        return f"{super().missing()}, nor flash_attn/ops/triton/rotary.py among the sources"

    def calls(self, case):
        if super().missing() is None:
            rotary = importlib.import_module("flash_attn.ops.triton.rotary")
        else:
            spec = importlib.util.spec_from_file_location("rotary", found(self.sources, "triton/rotary.py"))
            rotary = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(rotary)
        half = HEAD_DIM // 2
        cos, sin = case.table[:, :half].to(case.type), case.table[:, half:].to(case.type)  # of the tensors' type
        backwards = case.work == "transpose"

        def call(i):
            return tuple(
                rotary.apply_rotary(
                    x[i][None], cos, sin, interleaved=case.interleaved, inplace=True, conjugate=backwards
                )[0]
                for x in (case.q, case.k)
            )

        return call


class Vllm(Peer):
    name, package, works = "vLLM", "vllm", ("rotate", "append")

    def calls(self, case):
        ops = importlib.import_module("vllm._custom_ops")
        table = case.table.to(case.type)  # the query's type, as its layer casts it
        one = torch.ones(1, device=DEVICE)

        def call(i):
            ops.rotary_embedding(case.rows, case.q[i], case.k[i], HEAD_DIM, table, not case.interleaved)
            if case.work == "append":
                ops.reshape_and_cache_flash(case.k[i], case.v[i], *case.caches[i], case.slots, "auto", one, one)
            return case.q[i], case.k[i]

        return call


class Sglang(Peer):
    name, package, works, types = "SGLang", "sglang", ("rotate", "append"), SIXTEEN

    def calls(self, case):
        try:
            rope = importlib.import_module("sglang.kernels.ops.attention.rope")
        except ImportError:
            rope = importlib.import_module("sglang.jit_kernel.rope")
        neox = not case.interleaved

        def call(i):
            if case.work == "append":
                flat = [cache.view(-1, case.kv_heads * HEAD_DIM) for cache in case.caches[i]]
                rope.apply_rope_inplace_with_kvcache(
                    case.q[i], case.k[i], case.v[i], *flat, case.table, case.rows, case.slots, is_neox=neox
                )
            else:
                rope.apply_rope_inplace(case.q[i], case.k[i], case.table, case.rows, is_neox=neox)
            return case.q[i], case.k[i]

        return call


class FlashInfer(Peer):
    name, package, types = "FlashInfer", "flashinfer", SIXTEEN

    def version(self):
        return importlib.metadata.version("flashinfer-python")

    def calls(self, case):
        flashinfer = importlib.import_module("flashinfer")

        def call(i):
            flashinfer.apply_rope_with_cos_sin_cache_inplace(
                case.rows, case.q[i].flatten(1), case.k[i].flatten(1), HEAD_DIM, case.table, not case.interleaved
            )
            return case.q[i], case.k[i]

        return call


class FlashInferOnTheFly(FlashInfer):
    name = "FlashInfer, no table"

    def calls(self, case):
        flashinfer = importlib.import_module("flashinfer")
        ids = case.positions.int()

        def call(i):
            flashinfer.apply_rope_pos_ids_inplace(
                case.q[i], case.k[i], ids, interleave=case.interleaved, rope_theta=THETA
            )
            return case.q[i], case.k[i]

        return call


class TransformerEngine(Peer):
    name, package = "TransformerEngine", "transformer_engine"

    def missing(self):
        return super().missing() or (
            "transformer_engine has no PyTorch part"
            if importlib.util.find_spec("transformer_engine_torch") is None
            else None
        )

    def calls(self, case):
        rope = importlib.import_module("transformer_engine.pytorch.attention.rope")
        angles = case.angles.repeat_interleave(2, -1)[:, :HEAD_DIM] if case.interleaved else case.angles
        freqs = angles[:, None, None].contiguous()  # [token, 1, 1, 128]

        def call(i):
            return tuple(
                rope.apply_rotary_pos_emb(
                    x[i][None], freqs, tensor_format="bshd", interleaved=case.interleaved, fused=True
                )[0]
                for x in (case.q, case.k)
            )

        return call


class Posenc(Peer):
    """posenc.torch with posenc-cuda, by the same clock as the others"""

    name, package, works, on_cpu = "posenc.torch", "posenc_cuda", ("rotate", "append"), True

    def version(self):
        return importlib.metadata.version("posenc")

    def calls(self, case):
        posenc, pt = importlib.import_module("posenc"), importlib.import_module("posenc.torch")
        plan = posenc.plan(
            posenc.Rope(pairing=case.pairing), head_dim=HEAD_DIM, heads=case.heads, kv_heads=case.kv_heads
        )
        how = {"layout": "thd", "backend": None if DEVICE == "cuda" else "emulated"}

        def call(i):
            q, k = case.q[i], case.k[i]
            if case.work == "append":
                # Keys are written back as well, as the others do.
                pt.rotate_append_(
                    plan, q, k, case.v[i], *case.caches[i], case.slots, case.positions, keep_k=False, **how
                )
            else:
                pt.rotate_(plan, q, case.positions, k=k, **how)
            return q, k

        return call


class PosencTriton(Peer):
    """posenc.triton, which needs nothing beside PyTorch"""

    name, package, works, on_cpu = "posenc.triton", "triton", ("rotate", "transpose", "append"), True

    def version(self):
        return f"{importlib.metadata.version('posenc')}, Triton {importlib.metadata.version('triton')}"

    def calls(self, case):
        posenc, triton = importlib.import_module("posenc"), importlib.import_module("posenc.triton")
        plan = posenc.plan(
            posenc.Rope(pairing=case.pairing), head_dim=HEAD_DIM, heads=case.heads, kv_heads=case.kv_heads
        )
        text = triton.Rotation(plan).text

        def call(i):
            q, k = case.q[i], case.k[i]
            if case.work == "transpose":
                where = (text, case.positions, 0, None, None, None, "thd")
                return tuple(torch.ops.posenc.triton_rotate([q, k], [], 0.0, *where, True))
            pages = triton.Pages(*case.caches[i], case.v[i], slots=case.slots) if case.work == "append" else None
            return triton.rotate_(q, k, case.positions, plan, layout="thd", pages=pages)

        return call


# --- kernels alone, of a folder of sources -------------------------------------------------------------------------


def found(sources, end):
    """The path below a folder that ends so, else None"""
    if sources is None:
        return None
    return next((path for path in sorted(Path(sources).rglob(Path(end).name)) if str(path).endswith("/" + end)), None)


class Alone(Peer):
    """kernels.cu with the kernels of one project, compiled by nvcc: no framework of theirs is needed"""

    macro = file = ""

    def missing(self):
        if found(self.sources, self.file) is None:
            return f"no {self.file} among the sources"
        if self.nvcc() is None:
            return "there is no nvcc to compile it (NVCC=...)"
        return None

    def version(self):
        return "sources"

    @staticmethod
    def nvcc():
        return os.environ.get("NVCC") or shutil.which("nvcc")

    def options(self, folder):
        raise NotImplementedError

    def compile(self, folder, arch):
        """The library's path. Raises what nvcc says."""
        made = Path(folder) / f"{self.macro.lower()}.so"
        nvcc = self.nvcc()
        command = [nvcc, "-shared", "-Xcompiler", "-fPIC", "-O3", "-std=c++20", f"-arch={arch}"]
        command += [f"-L{Path(nvcc).parents[1] / 'lib'}", *self.options(folder)]
        command += [str(Path(__file__).with_name("kernels.cu")), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            errors = [line for line in done.stderr.splitlines() if "error" in line] or [done.stderr[-200:]]
            raise RuntimeError(f"does not compile: {errors[0]}")
        return made

    def calls(self, case):
        major, minor = torch.cuda.get_device_capability()
        self.folder = tempfile.TemporaryDirectory()
        library = ctypes.CDLL(str(self.compile(self.folder.name, f"sm_{major}{minor}")))
        dtype = {"float32": 0, "float16": 1, "bfloat16": 2}[case.dtype]
        pointer = ctypes.c_void_p
        table = None if self.no_table else pointer(case.table.data_ptr())
        ids = case.positions if self.no_table else case.rows

        def call(i):
            q, k = case.q[i], case.k[i]
            error = library.posenc_peer_rotate(
                dtype, pointer(q.data_ptr()), pointer(k.data_ptr()), table, pointer(case.angles.data_ptr()),
                pointer(ids.data_ptr()), case.tokens, case.heads, case.kv_heads, int(case.interleaved),
                int(case.work == "transpose"), ctypes.c_float(THETA), pointer(torch.cuda.current_stream().cuda_stream),
            )  # fmt: skip
            if error != 0:
                raise RuntimeError(f"error {error}")
            return self.out(q, k)

        return call

    no_table = False

    @staticmethod
    def out(q, k):
        return q, k


class FlashInferAlone(Alone):
    name, macro, file, types = "FlashInfer's kernel", "PEER_FLASHINFER", "flashinfer/pos_enc.cuh", SIXTEEN

    def options(self, folder):
        include = found(self.sources, self.file).parents[1]
        # Its own copy of CUDA's C++ library, where the package brings one.
        cccl = [include.parent / "cccl" / part for part in ("libcudacxx/include", "cub", "thrust")]
        return [f"-D{self.macro}", *(f"-I{path}" for path in [*cccl, include] if path.is_dir())]


class FlashInferAloneOnTheFly(FlashInferAlone):
    name, no_table = "FlashInfer's kernel, no table", True


def cut(path, begin, end):
    """A part of a source from one pattern to before another"""
    text = Path(path).read_text()
    first = re.search(begin, text, re.M)
    last = first and re.compile(end, re.M).search(text, first.start())
    if not last:
        raise RuntimeError(f"{path} is of another version: no {end if first else begin}")
    return text[first.start() : last.start()]


class VllmAlone(Alone):
    name, macro, file, works = "vLLM's kernel", "PEER_VLLM", "pos_encoding_kernels.cu", ("rotate", "transpose")

    def options(self, folder):
        part = Path(folder) / "vllm.cuh"
        part.write_text(cut(found(self.sources, self.file), r"^namespace vllm \{", r"^\}  // namespace vllm") + "}\n")
        return [f'-D{self.macro}="{part}"']


class TransformerEngineAlone(Alone):
    name, macro, file = "TransformerEngine's kernel", "PEER_TE", "fused_rope/fused_rope.cu"

    def options(self, folder):
        part = Path(folder) / "te.cuh"
        end = r"^template <typename scalar_t>\s+void fused_rope_forward_launcher"
        formats = cut(found(self.sources, "transformer_engine/fused_attn.h"), r"^enum NVTE_QKV_Format", r"^\};")
        text = cut(found(self.sources, self.file), r"^namespace transformer_engine \{", end)
        part.write_text(formats + "};\n" + text + "}\n")
        return [f'-D{self.macro}="{part}"']

    @staticmethod
    def out(q, k):
        """Behind the input, where kernels.cu lets it write"""
        return tuple(torch.as_strided(x, x.shape, x.stride(), x.storage_offset() + x.numel()) for x in (q, k))


PEERS = [
    Posenc,
    PosencTriton,
    Eager,
    Compiled,
    Liger,
    FlashAttention,
    Vllm,
    VllmAlone,
    Sglang,
    FlashInfer,
    FlashInferAlone,
    FlashInferOnTheFly,
    FlashInferAloneOnTheFly,
    TransformerEngine,
    TransformerEngineAlone,
]
