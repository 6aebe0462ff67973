#!/usr/bin/env python3
"""ONNX Runtime's RotaryEmbedding with what `posenc translate --to onnx --tables` writes, beside `posenc rotate`.

  tests/peers/onnx_tables.py          the largest difference, model by model; exit code 1 above 1e-5

Both domains' operators run: com.microsoft's, and ai.onnx's of opset 23.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy
import onnxruntime
from onnx import TensorProto, helper

POSENC = Path(__file__).resolve().parents[2] / "build/release/posenc"
# Halves, neighbours, a part of each head, a scaling with a factor on cos and sin, layers of two kinds.
MODELS = ["llama-3.1-8b", "chatglm3-6b", "gpt-oss-20b", "phi-3.5-mini", "gemma-3-4b", "qwen2.5-7b-yarn4"]
LENGTH = 8192


def posenc(*arguments):
    done = subprocess.run([POSENC, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return done.stdout


def operator(domain, attributes, x, ids, cos, sin):
    """x [batch, head, token, channel], ids [batch, token]."""
    inputs = ["x", "ids", "cos", "sin"] if domain else ["x", "cos", "sin", "ids"]
    node = helper.make_node("RotaryEmbedding", inputs, ["y"], domain=domain, **attributes)
    given = {"x": x, "ids": ids, "cos": cos, "sin": sin}
    kinds = {"x": TensorProto.FLOAT, "ids": TensorProto.INT64, "cos": TensorProto.FLOAT, "sin": TensorProto.FLOAT}
    graph = helper.make_graph(
        [node],
        "rotary",
        [helper.make_tensor_value_info(name, kinds[name], value.shape) for name, value in given.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    versions = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=versions, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, given)[0]


def compare(model, folder):
    target = json.loads(posenc("translate", model, "--to", "onnx", "--at", LENGTH, "--tables", folder, "--json"))
    groups = json.loads(posenc("explain", model, "--json"))["groups"]
    worst = 0
    rotations = target["target"]["rotations"]
    for number, one in enumerate(rotations):
        tail = f"_{number}" if len(rotations) > 1 else ""
        cos, sin = (numpy.load(folder / f"{name}_cache{tail}.npy") for name in ("cos", "sin"))
        attributes = one["RotaryEmbedding"]
        layer = one["layers"][0]
        group = next(g for g in groups if layer in g["layers"] and g["stack"] == "text")
        random = numpy.random.default_rng(number)
        shape = (attributes["num_heads"], 64, group["head_dim"])
        x = random.standard_normal(shape).astype(numpy.float32)
        ids = random.integers(0, LENGTH, 64)
        numpy.save(folder / "x.npy", x)
        numpy.save(folder / "ids.npy", ids)
        posenc("rotate", folder / "x.npy", folder / "y.npy", "--positions", folder / "ids.npy", "--model", model,
               "--layer", layer, "--at", LENGTH)  # fmt: skip
        ours = numpy.load(folder / "y.npy")
        for domain in ("com.microsoft", ""):
            theirs = operator(domain, attributes, x[None], ids[None], cos, sin)[0]
            worst = max(worst, float(abs(theirs - ours).max()))
    return worst


def main():
    failed = False
    for model in MODELS:
        with tempfile.TemporaryDirectory() as folder:
            worst = compare(model, Path(folder))
        failed |= worst > 1e-5
        print(f"{model:18} {worst:.1e}")
    return failed


sys.exit(main())
