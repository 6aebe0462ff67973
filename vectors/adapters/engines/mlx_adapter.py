"""MLX: mx.fast.rope and mlx.nn's Alibi and sinusoids; the scalings of mlx-lm's rope_utils, measured by what they do to (1, 0)."""

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.rope_utils import initialize_rope
from protocol import head_dim, refuse, rope_settings, serve

mx.set_default_device(mx.cpu)


def frequencies(asked):
    theta, scaling = rope_settings(asked["config"])
    _, part = head_dim(asked["config"])
    inner = asked["config"].get("text_config", asked["config"])
    length = asked.get("length", 0)
    block = None if scaling["type"] == "default" else dict(scaling)
    if scaling["type"] == "longrope":
        block["original_max_position_embeddings"] = inner.get(
            "original_max_position_embeddings", scaling.get("original_max_position_embeddings")
        )
    rope = initialize_rope(part, theta, False, block, inner.get("max_position_embeddings"))
    x = mx.concatenate([mx.ones((1, 1, 2, part // 2)), mx.zeros((1, 1, 2, part // 2))], axis=-1)
    if length:
        x = mx.broadcast_to(x[:, :, :1], (1, 1, length, part))
    y = rope(x)[0, 0]
    factor = float(mx.sqrt(y[0, 0] ** 2 + y[0, part // 2] ** 2))
    return {"inv_freq": mx.arctan2(y[1, part // 2 :], y[1, : part // 2]), "attention_factor": factor}


def rotated(x, asked, positions):
    first, part = asked["first_dim"], asked["rotary_dim"]
    periods = 1 / mx.array(asked["inv_freq"])
    tokens = []
    for t, at in enumerate(positions):
        head = mx.array(x[t])[:, None, :]
        turned = mx.fast.rope(
            head[..., first : first + part],
            part,
            traditional=asked["pairing"] == "interleaved",
            base=None,
            scale=1.0,
            offset=at,
            freqs=periods,
        )
        turned = turned * asked["attention_factor"]
        tokens.append(mx.concatenate([head[..., :first], turned, head[..., first + part :]], axis=-1)[:, 0])
    return mx.stack(tokens)


def rotate(asked):
    refuse("axis_of_pair" not in asked, "one axis alone")
    return {name: rotated(asked[name], asked, asked["positions"]) for name in ("q", "k")}


def rekey(asked):
    step = [b - a for a, b in zip(asked["from"], asked["to"], strict=False)]
    return {"k": rotated(asked["k"], asked | {"attention_factor": 1}, step)}


def cos_sin(asked):
    n = len(asked["inv_freq"])
    x = [[[1.0] * n + [0.0] * n]] * len(asked["positions"])
    y = rotated(x, asked | {"first_dim": 0, "rotary_dim": 2 * n, "pairing": "halves"}, asked["positions"])
    return {"cos": y[:, 0, :n], "sin": y[:, 0, n:]}


def bias(asked):
    refuse(asked["kind"] == "alibi" and "local_heads" not in asked, "ALiBi alone")
    slopes = nn.ALiBi.create_alibi_slope(num_heads=asked["heads"]).flatten()
    if "queries" not in asked:
        return {"slopes": slopes}
    refuse(len(asked["queries"]) == len(asked["keys"]), "as many queries as keys")
    return {"bias": nn.ALiBi.create_alibi_matrix(len(asked["queries"]), len(asked["keys"]), asked["heads"])[0]}


serve("mlx", {"frequencies": frequencies, "rotate": rotate, "rekey": rekey, "cos_sin": cos_sin, "bias": bias})
