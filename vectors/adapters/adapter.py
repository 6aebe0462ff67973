"""An adapter in 30 lines: stands for an engine before `posenc conform`. Replace rotate() by the engine's own."""

import json
import math
import sys


def rotate(x, inv_freq, attention_factor, pairing, first_dim, rotary_dim, positions, axis_of_pair=None):
    half, out = rotary_dim // 2, [[list(head) for head in token] for token in x]
    for t, token in enumerate(x):
        for h, head in enumerate(token):
            for r, f in enumerate(inv_freq):
                a, b = (r, r + half) if pairing == "halves" else (2 * r, 2 * r + 1)
                a, b = a + first_dim, b + first_dim
                at = positions[axis_of_pair[r]][t] if axis_of_pair else positions[t]
                cos, sin = math.cos(at * f) * attention_factor, math.sin(at * f) * attention_factor
                out[t][h][a], out[t][h][b] = head[a] * cos - head[b] * sin, head[b] * cos + head[a] * sin
    return out


def answer(request):
    if request["operation"] == "hello":
        return {"name": "adapter.py", "version": "1", "dtype": "float64"}
    if request["operation"] != "rotate":
        return {"unsupported": "this example has rotate alone"}
    asked = dict(request["input"])
    q, k = asked.pop("q"), asked.pop("k")
    return {"output": {"q": rotate(q, **asked), "k": rotate(k, **asked)}}


for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
