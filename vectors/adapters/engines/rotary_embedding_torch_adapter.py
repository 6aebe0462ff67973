"""rotary-embedding-torch: RotaryEmbedding and apply_rotary_emb (neighbours, any first channel)."""

import torch
from protocol import Unsupported, head_dim, refuse, rope_settings, serve
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb


def made(inv_freq):
    return RotaryEmbedding(
        2 * len(inv_freq), custom_freqs=torch.tensor(inv_freq, dtype=torch.float32), cache_if_possible=False
    )


def frequencies(asked):
    theta, scaling = rope_settings(asked["config"])
    _, part = head_dim(asked["config"])
    if scaling["type"] == "default":
        return {"inv_freq": RotaryEmbedding(part, theta=theta).freqs.detach()}
    if scaling["type"] == "linear":
        rope = RotaryEmbedding(part, theta=theta, interpolate_factor=scaling["factor"])
        return {"inv_freq": rope.freqs.detach() / rope.interpolate_factor}
    raise Unsupported("scalings other than interpolation and NTK-aware are not there")


def rotate(asked):
    refuse(asked["pairing"] == "interleaved", "neighbours alone")
    refuse("axis_of_pair" not in asked, "axes have frequencies of their own")
    freqs = made(asked["inv_freq"])(torch.tensor(asked["positions"], dtype=torch.float32)).detach()
    return {
        name: apply_rotary_emb(
            freqs,
            torch.tensor(asked[name]).transpose(0, 1),
            start_index=asked["first_dim"],
            scale=asked["attention_factor"],
        ).transpose(0, 1)
        for name in ("q", "k")
    }


def cos_sin(asked):
    freqs = made(asked["inv_freq"])(torch.tensor(asked["positions"], dtype=torch.float32)).detach()
    return {
        "cos": freqs[:, ::2].cos() * asked["attention_factor"],
        "sin": freqs[:, ::2].sin() * asked["attention_factor"],
    }


serve("rotary-embedding-torch", {"frequencies": frequencies, "rotate": rotate, "cos_sin": cos_sin})
