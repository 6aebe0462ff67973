"""ggml, the tensors of llama.cpp, by the libraries that llama-cpp-python has beside it: ggml_rope_ext and ggml_rope_multi, its softmax with
ALiBi's slopes and learned sinks. What llama.cpp's converter makes of a configuration is not asked here: plain RoPE, linear and YaRN alone."""

import ctypes
import math
from ctypes import c_bool, c_float, c_int, c_int64, c_size_t, c_void_p
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from protocol import head_dim, refuse, rope_settings, serve

LIB = Path(find_spec("llama_cpp").origin).parent / "lib"
BASE, CPU = (ctypes.CDLL(str(LIB / f"libggml-{name}.so"), mode=ctypes.RTLD_GLOBAL) for name in ("base", "cpu"))
F32, I32 = 0, 26
NORMAL, NEOX, MROPE, IMROPE = 0, 2, 8, 40
THETA = 10000.0


class Memory(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("buffer", c_void_p), ("no_alloc", c_bool)]


def function(name, result, *arguments, library=BASE):
    made = getattr(library, f"ggml_{name}")
    made.restype, made.argtypes = result, arguments
    return made


init = function("init", c_void_p, Memory)
free = function("free", None, c_void_p)
new_tensor = function("new_tensor", c_void_p, c_void_p, c_int, c_int, ctypes.POINTER(c_int64))
get_data = function("get_data", c_void_p, c_void_p)
new_graph = function("new_graph", c_void_p, c_void_p)
expand = function("build_forward_expand", None, c_void_p, c_void_p)
compute = function("graph_compute_with_ctx", c_int, c_void_p, c_void_p, c_int, library=CPU)
tail = (c_int, c_float, c_float, c_float, c_float, c_float, c_float)
rope_ext = function("rope_ext", c_void_p, c_void_p, c_void_p, c_void_p, c_void_p, c_int, c_int, *tail)
sections_of = ctypes.POINTER(c_int)
rope_multi = function("rope_multi", c_void_p, *[c_void_p] * 4, c_int, sections_of, c_int, *tail)
soft_max_ext = function("soft_max_ext", c_void_p, c_void_p, c_void_p, c_void_p, c_float, c_float)
add_sinks = function("soft_max_add_sinks", None, c_void_p, c_void_p)


def run(build, shape, *arrays):
    """build(context, tensors…) is a tensor of `shape`, slowest axis first; arrays None are no tensors."""
    context = init(Memory(sum(4 * np.size(a) for a in arrays) + 4 * math.prod(shape) * 2 + (1 << 20), None, False))
    tensors = []
    for array in arrays:
        if array is None:
            tensors.append(None)
            continue
        array = np.ascontiguousarray(array, dtype=np.int32 if array.dtype.kind in "iu" else np.float32)
        extents = (c_int64 * array.ndim)(*reversed(array.shape))
        tensors.append(new_tensor(context, I32 if array.dtype == np.int32 else F32, array.ndim, extents))
        ctypes.memmove(get_data(tensors[-1]), array.ctypes.data, array.nbytes)
    made = build(context, *tensors)
    graph = new_graph(context)
    expand(graph, made)
    compute(context, graph, 1)
    out = np.ctypeslib.as_array(ctypes.cast(get_data(made), ctypes.POINTER(c_float)), shape=shape).copy()
    free(context)
    return out


def turned(x, positions, mode, dims, factors=None, sections=None, theta=THETA, scaling=(0, 1.0, 0.0, 1.0, 0.0, 0.0)):
    """x: [token][head][channel], whose first `dims` channels turn; scaling: the trained length and what follows the base."""
    length, *rest = scaling
    positions = np.array(positions, dtype=np.int64)
    refuse(np.abs(positions).max() < 1 << 31, "positions of 32 bits alone")

    def build(context, x, at, factors):
        if sections is None:
            return rope_ext(context, x, at, factors, dims, mode, length, theta, *rest)
        return rope_multi(context, x, at, factors, dims, (c_int * 4)(*sections), mode, length, theta, *rest)

    return run(build, x.shape, x, positions.astype(np.int32).ravel(), factors)


def frequencies(asked):
    config = asked["config"]
    theta, block = rope_settings(config)
    _, part = head_dim(config)
    kind = block["type"]
    refuse(kind in ("default", "linear", "yarn"), "other scalings are factors that llama.cpp's converter writes")
    refuse(not {"attention_factor", "mscale", "mscale_all_dim"} & set(block), "the factor is the converter's")
    refuse(block.get("truncate", True), "YaRN's bounds are whole numbers")
    scaling = (0, 1.0, 0.0, 1.0, 0.0, 0.0)
    if kind == "linear":
        scaling = (0, 1 / block["factor"], 0.0, 1.0, 0.0, 0.0)
    if kind == "yarn":
        trained = block.get("original_max_position_embeddings") or config["max_position_embeddings"]
        bounds = (block.get("beta_fast") or 32.0, block.get("beta_slow") or 1.0)
        scaling = (trained, 1 / block["factor"], 1.0, 1.0, *bounds)
    x = np.concatenate([np.ones((1, 1, part // 2)), np.zeros((1, 1, part // 2))], axis=-1)
    y = turned(x, [1], NEOX, part, theta=theta, scaling=scaling)[0, 0].astype(np.float64)
    cos, sin = y[: part // 2], y[part // 2 :]
    return {"inv_freq": np.arctan2(sin, cos), "attention_factor": float(np.hypot(cos, sin)[0])}


def axes_of(asked):
    """(mode, sections) of M-RoPE's pairs: axis after axis, or in turn."""
    pairs = asked["axis_of_pair"]
    counts = [pairs.count(axis) for axis in range(4)]
    refuse(asked["pairing"] == "halves", "several axes of halves alone")
    refuse(len(asked["positions"]) <= 4, "four axes at most")
    if pairs == sorted(pairs):
        return MROPE, counts
    in_turn = [next((a for a in (i % 3,) if a and i < 3 * counts[a]), 0) for i in range(len(pairs))]
    refuse(pairs == in_turn, "axes one after another, or three in turn")
    return IMROPE, counts


def rotated(asked, x, positions):
    x = np.array(x, dtype=np.float32)
    first, part = asked["first_dim"], asked["rotary_dim"]
    own = THETA ** (-2 * np.arange(part // 2) / part)
    factors = (own / np.array(asked["inv_freq"])).astype(np.float32)
    mode, sections = (NEOX if asked["pairing"] == "halves" else NORMAL), None
    if "axis_of_pair" in asked:
        mode, sections = axes_of(asked)
        positions = np.array(positions + [[0] * len(positions[0])] * (4 - len(positions)))
    if np.allclose(factors, 1, rtol=1e-7):
        factors = None
    scaling = (0, 1.0, 0.0, asked["attention_factor"], 0.0, 0.0)
    x[..., first : first + part] = turned(
        x[..., first : first + part], positions, mode, part, factors, sections, scaling=scaling
    )
    return x


def rotate(asked):
    return {name: rotated(asked, asked[name], asked["positions"]) for name in ("q", "k")}


def rekey(asked):
    refuse("axis_of_pair" not in asked, "a shift along one axis alone")
    step = [b - a for a, b in zip(asked["from"], asked["to"], strict=True)]
    return {"k": rotated(asked | {"attention_factor": 1.0}, asked["k"], step)}


def cos_sin(asked):
    n = len(asked["inv_freq"])
    x = [[[1.0] * n + [0.0] * n]] * len(asked["positions"])
    y = rotated(asked | {"first_dim": 0, "rotary_dim": 2 * n, "pairing": "halves"}, x, asked["positions"])
    return {"cos": y[:, 0, :n], "sin": y[:, 0, n:]}


def bias(asked):
    refuse(asked["kind"] == "alibi" and "local_heads" not in asked, "ALiBi of all heads alone")
    # Two keys whose logits are the slope apart.
    logits, mask = np.zeros((asked["heads"], 1, 2)), np.array([[0.0, -1.0]])
    p = run(lambda c, x, m: soft_max_ext(c, x, m, 1.0, 8.0), logits.shape, logits, mask).astype(np.float64)
    slopes = np.log(p[:, 0, 0] / p[:, 0, 1])
    if "queries" not in asked:
        return {"slopes": slopes}
    distance = np.abs(np.subtract.outer(asked["queries"], asked["keys"]))
    return {"bias": -slopes[:, None, None] * distance}


def scores(asked):
    refuse(not asked.get("softcap") and not asked.get("temperature"), "caps and temperatures are in the model's graph")
    q, k = np.array(asked["q"]), np.array(asked["k"])
    at = np.array(asked["positions"])
    hidden = np.where(np.arange(len(k))[None, :] > at[:, None], -np.inf, 0.0)
    sink = None if asked.get("sink") is None else np.array([asked["sink"]])

    def build(context, logits, mask, sink):
        made = soft_max_ext(context, logits, mask, asked["scale"], 0.0)
        if sink:
            add_sinks(made, sink)
        return made

    return {"probabilities": run(build, (1, len(q), len(k)), (q @ k.T)[None], hidden, sink)[0]}


serve(
    "llama_cpp_python",
    {
        "frequencies": frequencies,
        "rotate": rotate,
        "rekey": rekey,
        "cos_sin": cos_sin,
        "bias": bias,
        "scores": scores,
    },
)
