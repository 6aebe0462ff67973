"""llama.cpp: its converter writes a small model of random weights, its library loads and runs that for one token, and
each rotation of the graph that ran (its parameters, its frequency factors) is run again by ggml on heads whose one channel is 1.
The converter asks for transformers 4.57.6, which reads the configuration for it.

The package is the source of llama-cpp-python, which has the converter (engines.py --fetch); the library is the installed one.
"""

import contextlib
import copy
import ctypes
import json
import logging
import multiprocessing
import os
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")
HERE = next(p for p in sys.path if Path(p, "vendor/llama.cpp").is_dir())
os.environ["LLAMA_CPP_LIB_PATH"] = HERE + "/lib"
sys.path[:0] = [HERE + "/vendor/llama.cpp", HERE + "/vendor/llama.cpp/gguf-py"]

import gguf
import numpy as np
import tokenizers
import torch

sys.modules.setdefault("torchao", None)  # which transformers would import, and wants another torch
import transformers
from conversion import get_model_class

from . import Refused, read, stubs

FILES = [
    "conversion/*.py",
    "src/llama-model.cpp",
    "src/llama-context.cpp",
    "src/models/*.cpp",
    "ggml/src/ggml-cpu/ops.cpp",
]
FILES = ["vendor/llama.cpp/" + name for name in FILES]
stubs.install(HERE)
logging.disable(logging.CRITICAL)
torch.set_num_threads(1)


def version():
    return Path(HERE).name.rpartition("-")[2]


def run(config, length):
    """In a process of its own, as ggml ends the process where it refuses."""
    here, there = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=answer, args=(there, config, length))
    child.start()
    there.close()
    try:
        result = here.recv()
    except EOFError:
        result = "the library ends the process"
    child.join()
    if isinstance(result, str):
        raise Refused(result)
    return result


def answer(pipe, config, length):
    silence = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silence, stream)
    try:
        with tempfile.TemporaryDirectory() as folder:
            pipe.send(list(layers_of(converted(config, Path(folder)), config, length)))
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {str(error)[:200]}")


def converted(config, folder):
    """The file that the converter makes of the configuration, with random weights."""
    plain = {k: v for k, v in config.items() if k not in ("rope_scaling", "rope_parameters", "architectures")}
    plain["pad_token_id"] = 0  # an embedding wants it within the vocabulary
    plain["model_type"] = {"qwen2_vl": "qwen2", "ministral3": "mistral"}.get(config["model_type"], config["model_type"])
    if config["model_type"] == "minicpm3":  # its code stands beside its weights, which are named as these
        plain |= {"model_type": "deepseek_v2", "first_k_dense_replace": config["num_hidden_layers"]}
        plain |= {"v_head_dim": config["hidden_size"] // config["num_attention_heads"]}
    known = transformers.AutoConfig.for_model(**copy.deepcopy(plain))
    transformers.AutoModelForCausalLM.from_config(known, dtype=torch.float32).save_pretrained(folder)
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({str(i): i for i in range(64)}, "0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words).save_pretrained(folder)  # some families look into it
    (folder / "config.json").write_text(json.dumps(config))
    out = folder / "model.gguf"
    writer = get_model_class(config["architectures"][0])(folder, gguf.LlamaFileType.ALL_F32, out)
    of_family = type(getattr(writer, "impl", writer))
    of_family.set_vocab = no_vocabulary
    of_family.get_vocab_base_pre = lambda *_: "default"
    writer.write()
    return out


def no_vocabulary(self):
    self.gguf_writer.add_tokenizer_model("no_vocab")
    with contextlib.suppress(ValueError):  # where the family writes it, too
        self.gguf_writer.add_vocab_size(self.hparams["vocab_size"])


class Tensor(ctypes.Structure):
    """ggml_tensor (ggml.h)."""


Tensor._fields_ = [
    ("type", ctypes.c_int),
    ("buffer", ctypes.c_void_p),
    ("ne", ctypes.c_int64 * 4),
    ("nb", ctypes.c_size_t * 4),
    ("op", ctypes.c_int),
    ("op_params", ctypes.c_int32 * 16),
    ("flags", ctypes.c_int32),
    ("src", ctypes.POINTER(Tensor) * 10),
    ("view_src", ctypes.c_void_p),
    ("view_offs", ctypes.c_size_t),
    ("data", ctypes.c_void_p),
    ("name", ctypes.c_char * 64),
]


def layers_of(path, config, length):
    import llama_cpp.llama_cpp as library

    base = ctypes.CDLL(HERE + "/lib/libggml-base.so")
    base.ggml_op_name.restype = ctypes.c_char_p
    rotations, scales = [], []

    def see(address, ask, _):
        tensor = ctypes.cast(address, ctypes.POINTER(Tensor)).contents
        name = base.ggml_op_name(tensor.op).decode()
        if name in ("ROPE", "SOFT_MAX", "FLASH_ATTN_EXT", "SCALE"):
            if not ask and name == "SCALE":
                scales.append((tensor.ne[0], real(tensor)))
            elif not ask and name == "ROPE":
                factors = tensor.src[2]
                count = factors.contents.ne[0] if factors else 0
                rotations.append((list(tensor.op_params), floats(factors.contents.data, count) if factors else None))
            elif not ask:
                scales.append((0, real(tensor)))
            return True
        return not ask

    library.llama_backend_init()
    model = library.llama_model_load_from_file(str(path).encode(), library.llama_model_default_params())
    if not model:
        raise ValueError("llama_model_load_from_file refuses the file")
    parameters = library.llama_context_default_params()
    parameters.n_ctx = length or (0 if "short_factor" in json.dumps(config) else 512)
    parameters.n_threads = parameters.n_threads_batch = 1
    callback = library.ggml_backend_sched_eval_callback(see)
    parameters.cb_eval = callback
    context = library.llama_init_from_model(model, parameters)
    if not context:
        raise ValueError("llama_init_from_model refuses the model")
    token = (ctypes.c_int32 * 1)(1)
    rotations.clear()  # of a run that may have warmed up or measured the graph
    scales.clear()
    library.llama_decode(context, library.llama_batch_get_one(token, 1))
    seen = []  # queries and keys of a layer rotate alike
    count = config["num_hidden_layers"]
    step = max(1, len(rotations) // count)
    size = (
        config.get("qk_rope_head_dim")
        or config.get("head_dim")
        or config["hidden_size"] // config["num_attention_heads"]
    )
    head_dim = config.get("qk_nope_head_dim", 0) + size
    # Some families scale the queries, then not the logits.
    queries = [scale for width, scale in scales if width == size]
    products = [scale for width, scale in scales if width == 0]
    if len(queries) == len(products) == count:
        products = [a * b for a, b in zip(queries, products)]
    for layer in range(count):
        rotated = matrix(rotations[layer * step], size)
        frequency, amplitude, pairing, rotary_dim = read.of_matrix(rotated)
        if pairing == "interleaved" and permuted(path, layer):
            pairing = "halves"  # of the published weights, whose rows the converter has moved
        scale = products[layer] if len(products) == count else None
        seen.append(read.record(frequency, amplitude, pairing, rotary_dim, logits=read.logits(scale, head_dim)))
    return seen


def real(tensor):
    return float(np.array(tensor.op_params[:1], np.int32).view(np.float32)[0])


def floats(address, count):
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (count,)).copy()


def permuted(path, layer):
    from safetensors.numpy import load_file

    written = {t.name: t.data for t in gguf.GGUFReader(path).tensors}.get(f"blk.{layer}.attn_q.weight")
    published = load_file(path.parent / "model.safetensors").get(f"model.layers.{layer}.self_attn.q_proj.weight")
    return written is not None and published is not None and not np.array_equal(written, published)


class InitParams(ctypes.Structure):
    _fields_ = [("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool)]


def matrix(rotation, size):
    """What ggml's rotation makes of heads whose one channel is 1, at position 1."""
    parameters, factors = rotation
    base = ctypes.CDLL(HERE + "/lib/libggml-base.so")
    processor = ctypes.CDLL(HERE + "/lib/libggml-cpu.so")
    pointer, void, number, real = ctypes.POINTER(Tensor), ctypes.c_void_p, ctypes.c_int, ctypes.c_float
    base.ggml_init.restype, base.ggml_init.argtypes = void, [InitParams]
    base.ggml_new_tensor_3d.restype = base.ggml_new_tensor_1d.restype = pointer
    base.ggml_new_tensor_3d.argtypes = [void, number, *[ctypes.c_int64] * 3]
    base.ggml_new_tensor_1d.argtypes = [void, number, ctypes.c_int64]
    base.ggml_rope_multi.restype = pointer
    base.ggml_rope_ext.restype = pointer
    base.ggml_rope_ext.argtypes = [void, pointer, pointer, pointer, number, number, number, *[real] * 6]
    base.ggml_rope_multi.argtypes = [
        *[void, pointer, pointer, pointer, number],
        *[ctypes.POINTER(number), number, number, *[real] * 6],
    ]
    base.ggml_new_graph.restype, base.ggml_new_graph.argtypes = void, [void]
    base.ggml_build_forward_expand.argtypes = [void, pointer]
    processor.ggml_graph_compute_with_ctx.argtypes = [void, void, number]

    context = base.ggml_init(InitParams(1 << 24, None, False))
    heads = base.ggml_new_tensor_3d(context, 0, size, size, 1)
    floats_in(heads, np.eye(size, dtype=np.float32))
    words = np.array(parameters, np.int32)
    dims, mode, original = (int(words[i]) for i in (1, 2, 4))
    more = [float(x) for x in words[5:11].view(np.float32)]
    many = bool(mode & 8)  # GGML_ROPE_TYPE_MROPE
    positions = base.ggml_new_tensor_1d(context, 26, 4 if many else 1)  # GGML_TYPE_I32
    ctypes.memmove(positions.contents.data, np.ones(4, np.int32).ctypes.data, 16 if many else 4)
    divisors = None
    if factors is not None:
        divisors = base.ggml_new_tensor_1d(context, 0, len(factors))
        floats_in(divisors, factors)
    if many:
        sections = (number * 4)(*[int(x) for x in words[11:15]])
        out = base.ggml_rope_multi(context, heads, positions, divisors, dims, sections, mode, original, *more)
    else:
        out = base.ggml_rope_ext(context, heads, positions, divisors, dims, mode, original, *more)
    # The last parameter is where in a head the channels that rotate begin: here they are the whole head.
    assert list(out.contents.op_params)[:15] == list(parameters)[:15], "not the parameters of the graph that ran"
    graph = base.ggml_new_graph(context)
    base.ggml_build_forward_expand(graph, out)
    processor.ggml_graph_compute_with_ctx(context, graph, 1)
    return floats(out.contents.data, size * size).reshape(size, size)


def floats_in(tensor, values):
    values = np.ascontiguousarray(values, np.float32)
    ctypes.memmove(tensor.contents.data, values.ctypes.data, values.nbytes)
