#!/usr/bin/env python3
"""Times posenc from Python beside what one would write or install instead, in one run, each case in turns.

    build/python-venv/bin/python evidence/bench/python.py                 what is installed there (make python PEERS=1 has PyTorch)
    build/python-venv/bin/python evidence/bench/python.py --threads 2 --json
    build/python-venv/bin/pip install rotary-embedding-torch onnxruntime onnx 'jax[cpu]' 'mlx[cpu]'    more peers

Rotation: 32 heads x 4096 tokens x 128 channels, queries alone. Peers are handed cos and sin; posenc makes its own. Attention: 16 heads x
2048 x 64, causal. A cell is the fastest of the runs in milliseconds; `ratio` is the peer's time over posenc's.
"""

import argparse
import json
import os
import subprocess
import sys
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--compiled", action="store_true", help="torch.compile as well (a minute)")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


ask = arguments()
os.environ["OMP_NUM_THREADS"] = str(ask.threads)
# Some peers have threads of their own, and ask the system how many.
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: ask.threads])

import numpy as np  # noqa: E402

import posenc  # noqa: E402

try:
    import torch
except ImportError:
    torch = None
else:
    torch.set_num_threads(ask.threads)


def fastest(contenders: dict) -> dict:
    """Milliseconds of each, the fastest of runs that take turns. On one thread other programs have no part in the time."""
    clock = time.process_time if ask.threads == 1 else time.perf_counter
    best = dict.fromkeys(contenders, float("inf"))
    for run in range(ask.runs + 1):
        for name, call in contenders.items():
            before = clock()
            call()
            if run:
                best[name] = min(best[name], (clock() - before) * 1e3)
    return best


# --- rotation -----------------------------------------------------------------------------------------------------


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def as_transformers(x, cos, sin):
    """What apply_rotary_pos_emb of every llama-like model does to a tensor."""
    return x * cos + rotate_half(x) * sin


def as_flash_attn(x, cos, sin):
    """What apply_rotary_emb_torch of flash-attn does to [batch, seq, head, head_dim], cos and sin [seq, pairs]."""
    c, s = (torch.cat((each, each), -1)[:, None] for each in (cos, sin))
    dim = c.shape[-1]
    return torch.cat((x[..., :dim] * c + rotate_half(x[..., :dim]) * s, x[..., dim:]), -1)


def as_numpy(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + np.concatenate((-x[..., half:], x[..., :half]), axis=-1) * sin


def rotations(dtype: str) -> dict:
    plan = posenc.plan(posenc.Rope(), head_dim=128)
    shape = (1, 32, ask.tokens, 128)
    threads = ask.threads
    if torch is None:
        x = np.random.default_rng(0).standard_normal(shape, dtype="float32").astype(dtype)
        cos, sin = plan.cos_sin(seq=ask.tokens, dtype=dtype)
        return {
            "posenc rotate_": lambda: plan.rotate_(x, threads=threads),
            "posenc rotate": lambda: plan.rotate(x, threads=threads),
            "numpy": lambda: as_numpy(x, cos, sin),
        }
    kind = getattr(torch, dtype)
    x = torch.randn(shape).to(kind)
    cos, sin = (each.to(kind) for each in posenc.torch.cos_sin(plan, torch.arange(ask.tokens)))
    contenders = {
        "posenc rotate_": lambda: plan.rotate_(x, threads=threads),
        "posenc rotate": lambda: plan.rotate(x, threads=threads),
        "transformers' formula": lambda: as_transformers(x, cos, sin),
    }
    seq_first, pairs = x.transpose(1, 2).contiguous(), (cos[:, :64], sin[:, :64])
    contenders["flash-attn's formula"] = lambda: as_flash_attn(seq_first, *pairs)
    if ask.compiled:
        compiled = torch.compile(as_transformers)
        compiled(x, cos, sin)
        contenders["transformers' formula, torch.compile"] = lambda: compiled(x, cos, sin)
    for name, peer in {
        "apply_rotary_pos_emb": of_transformers,
        "rotary-embedding-torch": of_rotary_embedding_torch,
        "ONNX Runtime, RotaryEmbedding": of_onnxruntime,
        "JAX, jit": of_jax,
        "MLX, fast.rope": of_mlx,
    }.items():
        try:
            contenders[name] = peer(x, cos, sin)
        except ImportError as missing:
            print(f"without {name}: {missing}", file=sys.stderr)
        except (RuntimeError, TypeError, ValueError) as reason:  # a dtype that it lacks
            print(f"without {name} in {dtype}: {reason}", file=sys.stderr)
    return contenders


# Each gives a call without arguments, and has been called once.


def of_transformers(x, cos, sin):
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    k = x[:, :1]
    return lambda: apply_rotary_pos_emb(x, k, cos[None], sin[None])


def of_rotary_embedding_torch(x, cos, sin):
    from rotary_embedding_torch import RotaryEmbedding

    module = RotaryEmbedding(dim=x.shape[-1])
    module.rotate_queries_or_keys(x)  # which caches its angles
    return lambda: module.rotate_queries_or_keys(x)


def of_onnxruntime(x, cos, sin):
    import onnxruntime as ort
    from onnx import TensorProto, helper

    kind = {torch.float32: TensorProto.FLOAT, torch.float16: TensorProto.FLOAT16}.get(x.dtype)
    if kind is None:
        raise TypeError("numpy has no bfloat16 to hand over")
    names = ("x", "cos", "sin", "ids")
    graph = helper.make_graph(
        [helper.make_node("RotaryEmbedding", names, ["y"])],
        "rotate",
        [helper.make_tensor_value_info(name, TensorProto.INT64 if name == "ids" else kind, None) for name in names],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    options = ort.SessionOptions()
    options.intra_op_num_threads = ask.threads
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    session = ort.InferenceSession(model.SerializeToString(), options)
    ids = np.arange(x.shape[2], dtype=np.int64)[None]
    half = x.shape[-1] // 2
    given = (x, cos[:, :half].contiguous(), sin[:, :half].contiguous())
    bound = session.io_binding()
    for name, array in zip(names, (*(each.numpy() for each in given), ids), strict=True):
        bound.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    bound.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.empty_like(x.numpy())))
    session.run_with_iobinding(bound)
    return lambda: session.run_with_iobinding(bound)


def of_jax(x, cos, sin):
    import jax
    from jax import numpy as jnp

    def formula(x, cos, sin):
        half = x.shape[-1] // 2
        return x * cos + jnp.concatenate((-x[..., half:], x[..., :half]), -1) * sin

    compiled = jax.jit(formula)
    given = [jax.dlpack.from_dlpack(each.contiguous()) for each in (x, cos, sin)]
    compiled(*given).block_until_ready()
    return lambda: compiled(*given).block_until_ready()


def of_mlx(x, cos, sin):
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    array = mx.array(x.float().numpy()).astype(getattr(mx, str(x.dtype).removeprefix("torch.")))

    def call():
        mx.eval(mx.fast.rope(array, x.shape[-1], traditional=False, base=10000.0, scale=1.0, offset=0))

    call()
    return call


# --- attention ------------------------------------------------------------------------------------------------------


def attentions() -> dict:
    """Attention with a plan beside scaled_dot_product_attention with what one would hand to it."""
    heads, tokens, dim = 16, 2048, 64
    q, k, v = (torch.randn(1, heads, tokens, dim) for _ in range(3))
    nope, alibi = None, posenc.plan(posenc.Alibi(), heads=heads, head_dim=dim)
    hidden = torch.full((tokens, tokens), float("-inf")).triu(1)
    bias = torch.as_tensor(alibi.bias(tokens)) + hidden
    sdpa = torch.nn.functional.scaled_dot_product_attention
    contenders = {
        "posenc, no position": lambda: posenc.attend(q, k, v, nope, threads=ask.threads),
        "sdpa, no position": lambda: sdpa(q, k, v, is_causal=True),
        "posenc, ALiBi": lambda: posenc.attend(q, k, v, alibi, threads=ask.threads),
        "sdpa, ALiBi as a mask": lambda: sdpa(q, k, v, attn_mask=bias),
    }
    if ask.compiled:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        flex = torch.compile(flex_attention)
        causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, tokens, tokens, device="cpu")
        score = posenc.torch.score_mod(alibi, heads, tokens)
        with torch.no_grad():
            flex(q, k, v, score_mod=score, block_mask=causal)

        def flexible():
            with torch.no_grad():
                flex(q, k, v, score_mod=score, block_mask=causal)

        contenders["FlexAttention, ALiBi"] = flexible
    return contenders


def main() -> None:
    rows = []
    for dtype in ("float32", "bfloat16", "float16"):
        if torch is None and dtype == "bfloat16":
            continue
        times = fastest(rotations(dtype))
        rows += [("rotate", dtype, name, took, took / times["posenc rotate_"]) for name, took in times.items()]
    if torch is not None:
        times = fastest(attentions())
        for name, took in times.items():
            mine = times["posenc, " + name.split(", ")[1].removesuffix(" as a mask")]
            rows.append(("attend", "float32", name, took, took / mine))
    one = np.zeros((1, 1, 1, 128), "float32")
    plan = posenc.plan(posenc.Rope(), head_dim=128)

    def calls():
        for _ in range(10000):
            plan.rotate_(one)

    rows.append(("call", "float32", "one token of one head, microseconds", fastest({"": calls})[""] / 10, 1.0))
    script = "import time; t = time.process_time(); import posenc; print(time.process_time() - t)"
    took = min(float(subprocess.check_output([sys.executable, "-c", script])) for _ in range(ask.runs))
    rows.append(("import", "", "posenc, without numpy and PyTorch, ms", took * 1e3, 1.0))
    if ask.json:
        json.dump([dict(zip(("case", "dtype", "name", "ms", "ratio"), row, strict=True)) for row in rows], sys.stdout)
        return
    for case, dtype, name, took, ratio in rows:
        print(f"{case:8} {dtype:9} {name:36} {took:10.2f} {ratio:7.2f}")


if __name__ == "__main__":
    main()
