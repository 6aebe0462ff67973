"""x-transformers: RotaryEmbedding and apply_rotary_pos_emb (neighbours), AlibiPositionalBias, RelativePositionBias (T5)."""

import torch
from protocol import Unsupported, head_dim, refuse, rope_settings, serve
from x_transformers.x_transformers import (
    AlibiPositionalBias,
    RelativePositionBias,
    RotaryEmbedding,
    apply_rotary_pos_emb,
)


def embedding(inv_freq):
    made = RotaryEmbedding(2 * len(inv_freq))
    made.inv_freq = torch.tensor(inv_freq, dtype=torch.float32)
    return made


def frequencies(asked):
    theta, scaling = rope_settings(asked["config"])
    _whole, part = head_dim(asked["config"])
    if scaling["type"] == "default":
        return {"inv_freq": RotaryEmbedding(part, base=theta).inv_freq}
    if scaling["type"] == "linear":
        made = RotaryEmbedding(part, base=theta, interpolation_factor=scaling["factor"])
        return {"inv_freq": made.inv_freq / made.interpolation_factor}
    raise Unsupported("scalings other than interpolation and NTK-aware are not there")


def rotate(asked):
    refuse(asked["pairing"] == "interleaved", "neighbours alone")
    refuse(asked["first_dim"] == 0, "the first channels alone")
    refuse("axis_of_pair" not in asked, "one axis alone")
    refuse(asked["attention_factor"] == 1, "no attention factor")
    freqs, scale = embedding(asked["inv_freq"])(torch.tensor(asked["positions"]))
    return {
        name: apply_rotary_pos_emb(torch.tensor(asked[name]).transpose(0, 1)[None], freqs, scale)[0].transpose(0, 1)
        for name in ("q", "k")
    }


def cos_sin(asked):
    refuse(asked["attention_factor"] == 1, "no attention factor")
    freqs, _ = embedding(asked["inv_freq"])(torch.tensor(asked["positions"]))
    return {"cos": freqs[0, :, ::2].cos(), "sin": freqs[0, :, ::2].sin()}


def bias(asked):
    if asked["kind"] == "t5":
        relative = torch.tensor(asked["relative_positions"])
        return {
            "buckets": RelativePositionBias._relative_position_bucket(
                relative,
                causal=not asked["bidirectional"],
                num_buckets=asked["num_buckets"],
                max_distance=asked["max_distance"],
            )
        }
    refuse("local_heads" not in asked, "no tensor parallelism")
    made = AlibiPositionalBias(asked["heads"])
    if "queries" not in asked:
        return {"slopes": made.slopes.flatten()}
    return {"bias": made.forward_custom_pos(torch.tensor(asked["queries"]), torch.tensor(asked["keys"]))}


serve("x-transformers", {"frequencies": frequencies, "rotate": rotate, "cos_sin": cos_sin, "bias": bias})
