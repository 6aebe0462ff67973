#!/usr/bin/env python3
"""Rotations by several axes: diffusers' transformers, Ernie 4.5 VL, NeoMME, HunYuan VL and HY V4 VL, each by its own position module and its own
code of applying it, on random vectors; recorded in tests/data/golden/axes.json with the ids and a small config.json.

  tests/peers/axes.py > tests/data/golden/axes.json      needs diffusers beside transformers
"""

import copy
import importlib
import inspect
import json
import os
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import diffusers
import torch
import transformers
from diffusers.models.embeddings import apply_rotary_emb
from diffusers.models.transformers import (
    transformer_cosmos,
    transformer_flux,
    transformer_flux2,
    transformer_hidream_image,
    transformer_hunyuan_video,
    transformer_hunyuanimage,
    transformer_lumina2,
    transformer_mochi,
    transformer_qwenimage,
    transformer_wan,
    transformer_z_image,
)
from transformers.models.hunyuan_vl import configuration_hunyuan_vl, modeling_hunyuan_vl
from transformers.models.hy_v4_vl import configuration_hy_v4_vl, modeling_hy_v4_vl
from transformers.models.neomme import configuration_neomme, modeling_neomme
from transformers.models.ernie4_5_vl_moe import configuration_ernie4_5_vl_moe, modeling_ernie4_5_vl_moe

TOKENS = 6
GRID = (2, 2, 3)


def random_ids(axes):
    return torch.randint(0, 60, (TOKENS, axes))


def grid_ids(sizes):
    return torch.stack([each.flatten() for each in torch.meshgrid(*map(torch.arange, sizes), indexing="ij")], -1)


def vectors(tokens, dim):
    """Numbers of few digits, [1, tokens, heads = 1, dim]."""
    return torch.randn(1, tokens, 1, dim).to(torch.bfloat16).to(torch.float64)


def record(config, ids, x, out):
    return {
        "config": config,
        "tokens": ids.shape[0],
        "axes": ids.shape[1],
        "head_dim": x.shape[-1],
        "ids": ids.T.flatten().tolist(),
        "x": x.flatten().tolist(),
        "out": out.double().flatten().tolist(),
    }


def flux():
    axes = [8, 12, 12]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    embed = transformer_flux.FluxPosEmbed(theta=10000, axes_dim=axes)
    config = {"_class_name": "FluxTransformer2DModel", "attention_head_dim": 32, "axes_dims_rope": axes}
    yield record(config, ids, x, apply_rotary_emb(x, embed(ids), sequence_dim=1))


def flux2():
    axes = [8, 8, 8, 8]
    ids, x = random_ids(4), vectors(TOKENS, 32)
    embed = transformer_flux2.Flux2PosEmbed(theta=2000, axes_dim=axes)
    config = {"_class_name": "Flux2Transformer2DModel", "attention_head_dim": 32, "axes_dims_rope": axes}
    yield record(config, ids, x, apply_rotary_emb(x, embed(ids), sequence_dim=1))


def hidream():
    axes = [16, 8, 8]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    embed = transformer_hidream_image.HiDreamImageEmbedND(theta=10000, axes_dim=axes)
    config = {"_class_name": "HiDreamImageTransformer2DModel", "attention_head_dim": 32, "axes_dims_rope": axes}
    yield record(config, ids, x, transformer_hidream_image.apply_rope(x, x, embed(ids[None]))[0])


def hunyuan_video():
    axes = [8, 12, 12]
    ids = grid_ids(GRID)
    x = vectors(len(ids), 32)
    embed = transformer_hunyuan_video.HunyuanVideoRotaryPosEmbed(1, 1, axes, 256.0)
    config = {"_class_name": "HunyuanVideoTransformer3DModel", "attention_head_dim": 32, "rope_axes_dim": axes}
    yield record(config, ids, x, apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID)), sequence_dim=1))


def hunyuan_image():
    axes = [16, 16]
    ids = grid_ids(GRID[1:])
    x = vectors(len(ids), 32)
    embed = transformer_hunyuanimage.HunyuanImageRotaryPosEmbed((1, 1), axes, 256.0)
    config = {"_class_name": "HunyuanImageTransformer2DModel", "attention_head_dim": 32, "rope_axes_dim": axes}
    yield record(config, ids, x, apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID[1:])), sequence_dim=1))


def z_image():
    axes = [8, 12, 12]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    embed = transformer_z_image.RopeEmbedder(256.0, axes, [64, 64, 64])
    config = {"_class_name": "ZImageTransformer2DModel", "dim": 64, "n_heads": 2, "n_kv_heads": 2, "axes_dims": axes}
    yield record(config, ids, x, apply_rotary_emb(x, embed(ids)[None], use_real=False))


def lumina2():
    axes = [8, 12, 12]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    embed = transformer_lumina2.Lumina2RotaryPosEmbed(theta=10000, axes_dim=axes, axes_lens=[64, 64, 64])
    config = {
        "_class_name": "Lumina2Transformer2DModel", "hidden_size": 64, "num_attention_heads": 2, "num_kv_heads": 1,
        "axes_dim_rope": axes,
    }
    yield record(config, ids, x, apply_rotary_emb(x, embed._get_freqs_cis(ids[None]), use_real=False))


def wan():
    ids = grid_ids(GRID)
    x = vectors(len(ids), 44)
    cos, sin = transformer_wan.WanRotaryPosEmbed(44, (1, 1, 1), 64)(torch.zeros(1, 4, *GRID))
    a, b, cos, sin = x[..., 0::2], x[..., 1::2], cos[..., 0::2], sin[..., 1::2]
    out = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    yield record({"_class_name": "WanTransformer3DModel", "attention_head_dim": 44}, ids, x, out)


def qwen_image():
    """Counted from the picture's middle, so that ids are negative."""
    axes = [8, 12, 12]
    embed = transformer_qwenimage.QwenEmbedRope(theta=10000, axes_dim=axes, scale_rope=True)
    picture, _ = embed([GRID], max_txt_seq_len=0, device=torch.device("cpu"))
    ids = grid_ids(GRID) - torch.tensor([0, GRID[1] - GRID[1] // 2, GRID[2] - GRID[2] // 2])
    x = vectors(len(ids), 32)
    turned = transformer_qwenimage.apply_rotary_emb_qwen(x, picture, use_real=False)
    config = {"_class_name": "QwenImageTransformer2DModel", "attention_head_dim": 32, "axes_dims_rope": axes}
    yield record(config, ids, x, turned)


def ernie():
    config = {
        "model_type": "ernie4_5_vl_moe_text", "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_hidden_layers": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 500000.0, "mrope_section": [5, 5, 6]},
    }
    made = configuration_ernie4_5_vl_moe.Ernie4_5_VLMoeTextConfig(**config)
    embed = modeling_ernie4_5_vl_moe.Ernie4_5_VLMoeTextRotaryEmbedding(made)
    ids, x = random_ids(3), vectors(TOKENS, 32)
    cos, sin = embed(x, ids.T[:, None])
    out, _ = modeling_ernie4_5_vl_moe.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)
    yield record(config, ids, x, out)


def neomme():
    """Two axes that alternate, of layers of two kinds."""
    config = {"model_type": "neomme", "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 32}
    for kind in ("full_attention", "sliding_attention"):
        config["num_hidden_layers"] = 1 if kind == "full_attention" else 2
        config["layer_types"] = ["sliding_attention", "full_attention"][-config["num_hidden_layers"] :]
        made = configuration_neomme.NeoMMEConfig(**config)
        embed = modeling_neomme.NeoMMERotaryEmbedding(made)
        ids, x = random_ids(2), vectors(TOKENS, 32)
        cos, sin = embed(x, ids.T[:, None], kind)
        out, _ = modeling_neomme.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)
        yield record(dict(config), ids, x, out)


def hunyuan_vl():
    """Text, which stands at the same place on each axis. Of pictures this class makes no rotation."""
    config = {
        "model_type": "hunyuan_vl_text", "hidden_size": 64, "num_attention_heads": 2, "num_key_value_heads": 2,
        "num_hidden_layers": 2, "head_dim": 32,
        "rope_scaling": {"type": "xdrope", "alpha": 1000.0, "factor": 1.0, "xdrope_section": [4, 4, 4, 4]},
    }
    made = configuration_hunyuan_vl.HunYuanVLTextConfig(**copy.deepcopy(config))
    embed = modeling_hunyuan_vl.HunYuanVLRotaryEmbedding(made)
    ids, x = random_ids(1).expand(-1, 4), vectors(TOKENS, 32)
    cos, sin = embed(x, ids.T[:, None])
    out, _ = modeling_hunyuan_vl.apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)
    yield record(config, ids, x, out)


def hy_v4():
    """Three axes that take pairs of the rotated channels in turns, behind channels without position."""
    config = {
        "model_type": "hy_v4_vl_text", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 1,
        "qk_nope_head_dim": 16, "qk_rope_head_dim": 16, "kv_lora_rank": 32, "q_lora_rank": 32, "v_head_dim": 16,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [4, 2, 2]},
    }  # fmt: skip
    made = configuration_hy_v4_vl.HYV4VLTextConfig(**copy.deepcopy(config))
    embed = modeling_hy_v4_vl.HYV4VLRotaryEmbedding(made)
    with torch.random.fork_rng():  # the families behind it draw what they drew without it
        torch.manual_seed(2)
        ids, x = random_ids(3), vectors(TOKENS, 32)
    cos, sin = embed(x, ids.T[:, None])
    out, _ = modeling_hy_v4_vl.apply_rotary_pos_emb(x[..., 16:], x[..., 16:], cos, sin, unsqueeze_dim=2)
    yield record(config, ids, x, torch.cat([x[..., :16], out], -1))


# --- real positions -----------------------------------------------------------------------------------


def real_record(name, rotation, at, x, out):
    """rotation: pairing and frequency [head][axis][pair]; x [token][head][channel]."""
    tokens, heads, dim = x.shape
    return {
        "model": name, **rotation, "tokens": tokens, "heads": heads, "axes": at.shape[1], "head_dim": dim,
        "at": at.double().T.flatten().tolist(), "x": x.flatten().tolist(), "out": out.double().flatten().tolist(),
    }  # fmt: skip


def cosmos():
    """Frames stand at frame · 24/fps, each axis has a base of its own."""
    dim, fps = 44, 30
    embed = transformer_cosmos.CosmosRotaryPosEmbed(dim, (8, 8, 8), (1, 1, 1), rope_scale=(2.0, 1.0, 1.0))
    at = grid_ids(GRID).double() * torch.tensor([embed.base_fps / fps, 1, 1])
    x = vectors(len(at), dim)
    out = apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID), fps), sequence_dim=1, use_real_unbind_dim=-2)
    widths = [embed.dim_t, embed.dim_h, embed.dim_w]
    bases = [10000 * f for f in (embed.t_ntk_factor, embed.h_ntk_factor, embed.w_ntk_factor)]
    frequency, pair = torch.zeros(1, 3, dim // 2, dtype=torch.float64), 0
    for axis, (width, base) in enumerate(zip(widths, bases)):
        for k in range(width // 2):
            frequency[0, axis, pair] = base ** (-2 * k / width)
            pair += 1
    rotation = {"pairing": "halves", "frequency": frequency.flatten().tolist()}
    yield real_record("Cosmos 1", rotation, at, x[0], out[0])


def mochi():
    """Frequencies are learned for each axis, head and pair; a picture's area is always the same."""
    heads, dim = 2, 12
    embed = transformer_mochi.MochiRoPE()
    learned = torch.randn(3, heads, dim // 2).to(torch.bfloat16).to(torch.float64) * 0.1
    at = embed._get_positions(*GRID, dtype=torch.float64)
    x = torch.randn(len(at), heads, dim).to(torch.bfloat16).to(torch.float64)
    cos, sin = embed(learned, *GRID, dtype=torch.float64)
    a, b = x[..., 0::2], x[..., 1::2]
    out = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    rotation = {"pairing": "interleaved", "frequency": learned.permute(1, 0, 2).flatten().tolist()}
    yield real_record("Mochi", rotation, at, x, out)


def defaults():
    """What a class has that is given nothing."""
    keys = {
        "axes_dim": ("axes_dims_rope", "rope_axes_dim", "axes_dims", "axes_dim_rope"),
        "rope_theta": ("rope_theta",),
        "heads": ("num_attention_heads", "n_heads"),
        "kv_heads": ("num_kv_heads", "n_kv_heads"),
        "head_dim": ("attention_head_dim",),
        "layers": ("num_layers", "n_layers"),
        "single_layers": ("num_single_layers",),
    }
    modules = """flux chroma longcat_image bria ovis_image flux2 hidream_image qwenimage hunyuan_video hunyuan_video15
        hunyuanimage z_image lumina2 wan wan_vace skyreels_v2""".split()
    for module in modules:
        found = importlib.import_module(f"diffusers.models.transformers.transformer_{module}")
        for name, each in vars(found).items():
            if not name.endswith(("Transformer2DModel", "Transformer3DModel")) or each.__module__ != found.__name__:
                continue
            given = {key: p.default for key, p in inspect.signature(each.__init__).parameters.items()}
            said = {key: given[n] for key, names in keys.items() for n in names if n in given}
            yield {"class": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in said.items()}}


REALS = [cosmos, mochi]
ROTATIONS = [flux, flux2, hidream, hunyuan_video, hunyuan_image, z_image, lumina2, wan, qwen_image, ernie, neomme, hunyuan_vl, hy_v4]


def main():
    torch.manual_seed(1)
    records = [each for family in ROTATIONS for each in family()]
    reals = ",\n".join(json.dumps(each) for family in REALS for each in family())
    generator = (
        f"tests/peers/axes.py, diffusers {diffusers.__version__}, transformers {transformers.__version__}, "
        f"torch {torch.__version__.split('+')[0]}"
    )
    lines = ",\n".join(json.dumps(each) for each in records)
    classes = ",\n".join(json.dumps(each) for each in defaults())
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines)
    sys.stdout.write('\n],\n"real_positions": [\n' + reals)
    sys.stdout.write('\n],\n"defaults": [\n' + classes + "\n]}\n")


if __name__ == "__main__":
    main()
