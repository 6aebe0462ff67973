"""ONNX Runtime's operator RotaryEmbedding (ai.onnx, opset 23): tables in, rotated tensors out."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper
from protocol import refuse, serve


def session(interleaved, rotary_dim, heads):
    node = helper.make_node(
        "RotaryEmbedding",
        ["x", "cos", "sin", "positions"],
        ["y"],
        interleaved=interleaved,
        rotary_embedding_dim=rotary_dim,
        num_heads=heads,
    )
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "rotary",
        [
            value("x", TensorProto.FLOAT, [1, heads, None, None]),
            value("cos", TensorProto.FLOAT, [None, None]),
            value("sin", TensorProto.FLOAT, [None, None]),
            value("positions", TensorProto.INT64, [1, None]),
        ],
        [value("y", TensorProto.FLOAT, [1, heads, None, None])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


def rotate(asked):
    refuse(asked["first_dim"] == 0 and "axis_of_pair" not in asked, "the first channels of one axis alone")
    at = np.arange(max(len(asked["positions"]), max(asked["positions"]) + 1))[:, None] * np.array(asked["inv_freq"])
    tables = {
        name: (f(at) * asked["attention_factor"]).astype(np.float32) for name, f in (("cos", np.cos), ("sin", np.sin))
    }
    whole, out = len(asked["q"][0][0]), {}
    for name in ("q", "k"):
        x = np.array(asked[name], dtype=np.float32).transpose(1, 0, 2)[None]
        part = asked["rotary_dim"] if asked["rotary_dim"] < whole else 0
        run = session(int(asked["pairing"] == "interleaved"), part, x.shape[1])
        (y,) = run.run(None, {"x": x, "positions": np.array([asked["positions"]]), **tables})
        out[name] = y[0].transpose(1, 0, 2)
    return out


serve("onnxruntime", {"rotate": rotate})
