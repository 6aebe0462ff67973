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

sys.modules.setdefault("torchao", None)  # which wants another torch
import diffusers
import torch
import transformers
from diffusers.models.attention_processor import Attention
from diffusers.models.embeddings import (
    apply_rotary_emb,
    get_1d_rotary_pos_embed,
    get_2d_rotary_pos_embed,
    get_2d_rotary_pos_embed_lumina,
    get_3d_rotary_pos_embed,
)
from diffusers.models.transformers import (
    transformer_bria_fibo,
    transformer_cogview4,
    transformer_cosmos,
    transformer_cosmos3,
    transformer_ernie_image,
    transformer_flux,
    transformer_flux2,
    transformer_flux3,
    transformer_glm_image,
    transformer_helios,
    transformer_hidream_image,
    transformer_hunyuan_video,
    transformer_hunyuanimage,
    transformer_kandinsky,
    transformer_kandinsky6,
    transformer_kandinsky6_sr,
    transformer_ideogram4,
    transformer_krea2,
    transformer_longcat_audio_dit,
    transformer_lumina2,
    transformer_minimax_h3,
    transformer_minimax_music3,
    transformer_mochi,
    transformer_prx,
    transformer_qwenimage,
    transformer_stable_audio3,
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


def cogview4():
    """Halves pair over both axes; rows and columns as they are counted where the grid is rope_axes_dim."""
    x, ids = vectors(6, 40), grid_ids(GRID[1:])
    embed = transformer_cogview4.CogView4RotaryPosEmbed(40, 1, GRID[1:])
    out = apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID[1:])), sequence_dim=1, use_real_unbind_dim=-2)
    yield record({"_class_name": "CogView4Transformer2DModel", "attention_head_dim": 40}, ids, x, out)


def glm_image():
    x, ids = vectors(6, 40), grid_ids(GRID[1:])
    embed = transformer_glm_image.GlmImageRotaryPosEmbed(40, 1)
    out = apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID[1:])), sequence_dim=1, use_real_unbind_dim=-2)
    yield record({"_class_name": "GlmImageTransformer2DModel", "attention_head_dim": 40}, ids, x, out)


def ernie_image():
    """The processor's own rotation is within it; its two lines are these."""
    axes = [8, 12, 12]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    angles = transformer_ernie_image.ErnieImageEmbedND3(32, 256, axes)(ids[None])
    attention = Attention(32, heads=1, dim_head=32, bias=False)
    attention.to_q = attention.to_k = torch.nn.Identity()
    seen = {}

    def dispatched(query, key, value, **_):
        seen["query"] = query
        return query

    attention.norm_q = attention.norm_k = None
    transformer_ernie_image.dispatch_attention_fn = dispatched
    attention.double()
    transformer_ernie_image.ErnieImageSingleStreamAttnProcessor()(attention, x[:, :, 0], freqs_cis=angles)
    config = {
        "_class_name": "ErnieImageTransformer2DModel", "hidden_size": 64, "num_attention_heads": 2, "rope_axes_dim": axes,
    }  # fmt: skip
    yield record(config, ids, x, seen["query"])


def of_flux(name, module, embedder, theta, config):
    """Classes that copied Flux's embedder."""
    axes = [8, 12, 12]
    ids, x = random_ids(3), vectors(TOKENS, 32)
    embed = getattr(module, embedder)(theta=theta, axes_dim=axes)
    config = {"_class_name": name, "attention_head_dim": 32, "axes_dims_rope": axes, **config}
    yield record(config, ids, x, apply_rotary_emb(x, embed(ids), sequence_dim=1))


def fluxes():
    yield from of_flux("BriaFiboTransformer2DModel", transformer_bria_fibo, "BriaFiboEmbedND", 500, {"rope_theta": 500})
    yield from of_flux("Flux3Transformer2DModel", transformer_flux3, "Flux3PosEmbed", 10000, {})
    yield from of_flux("Krea2Transformer2DModel", transformer_krea2, "Krea2RotaryPosEmbed", 1000, {"num_key_value_heads": 4})


def prx():
    axes = [16, 16]
    ids, x = random_ids(2), vectors(TOKENS, 32)
    turned = transformer_prx.PRXEmbedND(32, 10000, axes)(ids[None])
    out = transformer_prx.apply_rope(x.transpose(1, 2), turned).transpose(1, 2)
    yield record({"_class_name": "PRXTransformer2DModel", "hidden_size": 64, "num_heads": 2, "axes_dim": axes}, ids, x, out)


def kandinsky():
    axes, ids = [8, 12, 12], grid_ids(GRID)
    grid = tuple(torch.arange(size) for size in GRID)
    for name, module, made, config in (
        ("Kandinsky5Transformer3DModel", transformer_kandinsky, lambda e: e((1, *GRID), grid), {}),
        ("Kandinsky6Transformer3DModel", transformer_kandinsky6, lambda e: e(grid, (1.0, 2.0, 2.0)), {}),
        ("Kandinsky6SRTransformer3DModel", transformer_kandinsky6_sr, lambda e: e(grid, (2.0, 3.0, 4.0)),
         {"scale_factor": [2.0, 3.0, 4.0]}),
    ):  # fmt: skip
        embed = next(v for k, v in vars(module).items() if k.endswith("RoPE3D"))(axes)
        x = vectors(len(ids), 32)
        turned = made(embed).reshape(len(ids), 1, 16, 2, 2).double()
        out = (turned * x.reshape(len(ids), 1, 16, 1, 2)).sum(-1).reshape(1, len(ids), 1, 32)
        yield record({"_class_name": name, "model_dim": 64, "axes_dims": axes, **config}, ids, x, out)


def helios():
    axes, ids = [12, 10, 10], grid_ids(GRID)
    x = vectors(len(ids), 32)
    embed = transformer_helios.HeliosRotaryPosEmbed(axes, 10000.0)
    turned = embed(torch.arange(GRID[0])[None], *GRID[1:], "cpu").flatten(2).transpose(1, 2)
    out = transformer_helios.apply_rotary_emb_transposed(x, turned)
    yield record({"_class_name": "HeliosTransformer3DModel", "attention_head_dim": 32, "rope_dim": axes}, ids, x, out)


def minimax_h3():
    """Halves of the channels that rotate, 48 of 64."""
    ids, x = random_ids(3), vectors(TOKENS, 64)
    cos, sin = transformer_minimax_h3.MiniMaxH3RotaryPosEmbed(8)(ids)
    turned = apply_rotary_emb(x[..., :48], (cos, sin), sequence_dim=1, use_real_unbind_dim=-2)
    config = {"_class_name": "MiniMaxH3Transformer3DModel", "attention_head_dim": 64, "rope_freq_dim": 8}
    yield record(config, ids, x, torch.cat([turned, x[..., 48:]], -1))


def cog_video():
    """As its pipeline makes them of version 1.5, which counts."""
    ids = grid_ids(GRID)
    x = vectors(len(ids), 64)
    turned = get_3d_rotary_pos_embed(64, None, GRID[1:], GRID[0], grid_type="slice", max_size=GRID[1:])
    for name in ("CogVideoXTransformer3DModel", "ConsisIDTransformer3DModel"):
        config = {"_class_name": name, "attention_head_dim": 64, "use_rotary_positional_embeddings": True}
        yield record(config, ids, x, apply_rotary_emb(x, turned, sequence_dim=1))


def hunyuan_dit():
    """Where the grid is that of training; the first axis is the column."""
    ids = grid_ids(GRID[1:])
    x = vectors(len(ids), 32)
    turned = get_2d_rotary_pos_embed(32, ((0, 0), GRID[1:]), GRID[1:], use_real=True, output_type="pt")
    out = apply_rotary_emb(x, turned, sequence_dim=1)
    yield record({"_class_name": "HunyuanDiT2DModel", "attention_head_dim": 32}, ids.flip(-1), x, out)


def lumina_next():
    ids = grid_ids(GRID[1:])
    x = vectors(len(ids), 32)
    turned = get_2d_rotary_pos_embed_lumina(32, *GRID[1:]).flatten(0, 1)
    out = apply_rotary_emb(x, turned[None], use_real=False)
    yield record({"_class_name": "LuminaNextDiT2DModel", "hidden_size": 64, "num_attention_heads": 2}, ids, x, out)


def sections():
    """Axes that take pairs in turns; time has those that are left."""
    for name, embed, config in (
        ("Ideogram4Transformer2DModel", lambda ids: transformer_ideogram4.Ideogram4MRoPE(32, 5000000, (6, 3, 3))(ids[None]),
         {"mrope_section": [6, 3, 3]}),
        ("Cosmos3OmniTransformer", lambda ids: transformer_cosmos3.Cosmos3VLTextRotaryEmbedding(32, 5000000, (6, 5, 5))(
            ids.T[:, None], ids.device, torch.float64), {"rope_axes_dim": [6, 5, 5]}),
    ):  # fmt: skip
        ids, x = random_ids(3), vectors(TOKENS, 32)
        cos, sin = embed(ids)
        out = apply_rotary_emb(x, (cos[0], sin[0]), sequence_dim=1, use_real_unbind_dim=-2)
        yield record({"_class_name": name, "attention_head_dim": 32, **config}, ids, x, out)


def sound():
    """One axis, of whole heads or of their first channels."""
    ids = random_ids(1)
    at = ids[:, 0].float()
    halves = {"use_real": True, "repeat_interleave_real": False}
    longest = int(ids.max()) + 1

    def of_table(made):
        cos, sin = made
        return cos[ids[:, 0]], sin[ids[:, 0]]

    def of_angles(made):
        return of_table((made.cos(), made.sin()))

    ace = get_1d_rotary_pos_embed(64, at, theta=1e6, **halves)
    stable = get_1d_rotary_pos_embed(32, at, **halves)
    third = of_angles(transformer_stable_audio3.StableAudio3RotaryEmbedding(32)(longest, ids.device))
    longcat = of_table(transformer_longcat_audio_dit.AudioDiTRotaryEmbedding(64, 8, 100000.0)(torch.zeros(1, longest)))
    minimax = of_table(transformer_minimax_music3.MiniMaxMusic3RotaryEmbedding(16)(longest, ids.device))
    for config, turned in (
        ({"_class_name": "AceStepTransformer1DModel", "head_dim": 64}, ace),
        ({"_class_name": "StableAudioDiTModel", "attention_head_dim": 64}, stable),
        ({"_class_name": "StableAudio3DiTModel", "embed_dim": 128, "num_heads": 2}, third),
        ({"_class_name": "LongCatAudioDiTTransformer", "dit_dim": 128, "dit_heads": 2}, longcat),
        ({"_class_name": "MiniMaxMusic3Transformer1DModel", "attention_head_dim": 64, "rotary_dim": 16}, minimax),
    ):
        x, wide = vectors(TOKENS, 64), turned[0].shape[-1]
        out = apply_rotary_emb(x[..., :wide], turned, sequence_dim=1, use_real_unbind_dim=-2)
        yield record(config, ids, x, torch.cat([out, x[..., wide:]], -1))


def cosmos_stretched():
    ids = grid_ids(GRID)
    x = vectors(len(ids), 44)
    embed = transformer_cosmos.CosmosRotaryPosEmbed(44, (8, 8, 8), (1, 1, 1), rope_scale=(2.0, 1.0, 3.0))
    out = apply_rotary_emb(x, embed(torch.zeros(1, 4, *GRID)), sequence_dim=1, use_real_unbind_dim=-2)
    config = {"_class_name": "CosmosTransformer3DModel", "attention_head_dim": 44, "rope_scale": [2.0, 1.0, 3.0]}
    yield record(config, ids, x, out)


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
        "axes_dim": ("axes_dims_rope", "rope_axes_dim", "axes_dims", "axes_dim_rope", "rope_dim", "rope_dim_list"),
        "rope_theta": ("rope_theta", "theta"),
        "heads": ("num_attention_heads", "n_heads", "num_heads"),
        "kv_heads": ("num_kv_heads", "n_kv_heads", "num_key_value_heads"),
        "head_dim": ("attention_head_dim",),
        "layers": ("num_layers", "n_layers", "depth", "num_visual_blocks"),
        "single_layers": ("num_single_layers",),
    }
    modules = """flux chroma longcat_image bria ovis_image flux2 hidream_image qwenimage hunyuan_video hunyuan_video15
        hunyuanimage z_image lumina2 wan wan_vace skyreels_v2 flux3 krea2 ernie_image prx nucleusmoe_image qwenimage21
        joyimage joyimage_edit_plus hunyuan_video_framepack motif_video bria_fibo bria_fibo2 wan_animate wan_animate_2
        ideogram4 anyflow anyflow_far chronoedit helios sana_video kandinsky kandinsky6 kandinsky6_sr cosmos minimax_h3
        easyanimate glm_image""".split()
    for module in modules:
        found = importlib.import_module(f"diffusers.models.transformers.transformer_{module}")
        for name, each in vars(found).items():
            if not name.endswith(("Transformer2DModel", "Transformer3DModel")) or each.__module__ != found.__name__:
                continue
            given = {key: p.default for key, p in inspect.signature(each.__init__).parameters.items()}
            said = {key: given[n] for key, names in keys.items() for n in names if given.get(n) is not None}
            yield {"class": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in said.items()}}


def transformers_of_diffusers():
    """The names of all of its classes of transformers."""
    for name, each in sorted(vars(diffusers.models.transformers).items()):
        if inspect.isclass(each) and issubclass(each, diffusers.ModelMixin):
            yield name


REALS = [cosmos, mochi]
ROTATIONS = [flux, flux2, hidream, hunyuan_video, hunyuan_image, z_image, lumina2, wan, qwen_image, ernie, neomme, hunyuan_vl, hy_v4]
LATER = [
    *(cogview4, glm_image, ernie_image, fluxes, prx, kandinsky, helios, minimax_h3, cog_video, hunyuan_dit, lumina_next),
    *(cosmos_stretched, sections, sound),
]  # which draw after the others


def main():
    torch.manual_seed(1)
    records = [each for family in ROTATIONS for each in family()]
    reals = ",\n".join(json.dumps(each) for family in REALS for each in family())
    records += [each for family in LATER for each in family()]
    generator = (
        f"tests/peers/axes.py, diffusers {diffusers.__version__}, transformers {transformers.__version__}, "
        f"torch {torch.__version__.split('+')[0]}"
    )
    lines = ",\n".join(json.dumps(each) for each in records)
    classes = ",\n".join(json.dumps(each) for each in defaults())
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines)
    sys.stdout.write('\n],\n"real_positions": [\n' + reals)
    sys.stdout.write('\n],\n"defaults": [\n' + classes)
    sys.stdout.write('\n],\n"classes": ' + json.dumps(list(transformers_of_diffusers())) + "}\n")


if __name__ == "__main__":
    main()
