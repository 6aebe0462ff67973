#!/usr/bin/env python3
"""What other libraries' own code adds at the input on one axis or several: sinusoids of pictures, videos and time steps, points as
random Fourier features, learned rows and columns, and learned tables for a grid of another size; recorded in tests/data/golden/added.json as scheme, real positions and vectors.

  tests/peers/added.py > tests/data/golden/added.json
"""

import json
import math
import os
import sys
import types

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "critical")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import diffusers
import timm
import torch
import transformers
from diffusers.models import embeddings
from timm.layers import pos_embed
from transformers import vision_utils
from transformers.models.canary import modeling_canary
from transformers.models.conditional_detr import modeling_conditional_detr
from transformers.models.dab_detr import configuration_dab_detr, modeling_dab_detr
from transformers.models.deformable_detr import modeling_deformable_detr
from transformers.models.detr import modeling_detr
from transformers.models.dinov2 import modeling_dinov2
from transformers.models.gemma4 import configuration_gemma4, modeling_gemma4
from transformers.models.kosmos2_5 import configuration_kosmos2_5, modeling_kosmos2_5
from transformers.models.musicgen import modeling_musicgen
from transformers.models.pix2struct import configuration_pix2struct, modeling_pix2struct
from transformers.models.rt_detr import modeling_rt_detr
from transformers.models.sam import configuration_sam, modeling_sam
from transformers.models.sam2 import modeling_sam2
from transformers.models.sam3 import modeling_sam3
from transformers.models.siglip2 import modeling_siglip2
from transformers.models.table_transformer import modeling_table_transformer
from transformers.models.vit import modeling_vit
from transformers.models.vit_mae import configuration_vit_mae, modeling_vit_mae

F64 = torch.float64
CPU = torch.device("cpu")


def numbers(x):
    return [float(f"{v:.9g}") for v in torch.as_tensor(x).detach().double().flatten().tolist()]


def grid(*sizes):
    """Coordinates of all cells, [axis][cell]."""
    axes = torch.meshgrid(*(torch.arange(n, dtype=F64) for n in sizes), indexing="ij")
    return torch.stack(axes).flatten(1)


def record(model, scheme, at, rows, **more):
    """at [axis][token], rows [token][width]."""
    at = [torch.as_tensor(axis, dtype=F64) for axis in at]
    return {
        "model": model,
        "scheme": scheme,
        "width": rows.shape[-1],
        "at": [numbers(axis) for axis in at],
        "rows": [numbers(row) for row in rows],
        **more,
    }


def picture(width, **fields):
    return {"type": "sinusoidal", "layout": "concatenated", "axes_dim": [width // 2, width // 2], **fields}


def mae():
    rows = modeling_vit_mae.build_2d_sinusoidal_position_embedding(3, 4, 16, dtype=F64)
    yield record("ViTMAE's grid, before its halves change places", picture(16), grid(3, 4), rows)
    config = configuration_vit_mae.ViTMAEConfig(hidden_size=16, num_attention_heads=2, image_size=12, patch_size=4)
    embeddings_of = modeling_vit_mae.ViTMAEEmbeddings(config).double()
    embeddings_of.initialize_weights()
    yield record("ViTMAE", picture(16, axis_order=[1, 0]), grid(3, 3), embeddings_of.position_embeddings[0, 1:])


def rt_detr():
    module = modeling_rt_detr.RTDetrSinePositionEmbedding(24, temperature=5000)
    yield record("RT-DETR", picture(24, base=5000), grid(3, 2), module(2, 3, CPU, F64)[0])


def detr():
    """Rows, then columns, counted from 1; or in shares of the picture times 2π."""
    cells, shape = grid(3, 5), torch.Size((1, 1, 3, 5))
    halves = {"type": "sinusoidal", "axes_dim": [8, 8], "row_offset": 1}
    plain = modeling_detr.DetrSinePositionEmbedding(8)(shape, CPU, F64)
    yield record("DETR, from 1", halves, cells, plain[0].flatten(1).T)
    sizes = torch.tensor([[3.0], [5.0]], dtype=F64)
    shares = {"type": "sinusoidal", "axes_dim": [8, 8], "position_scale": [2 * math.pi]}
    for model, module, at in [
        ("DETR", modeling_detr.DetrSinePositionEmbedding, (cells + 1) / sizes),
        ("Conditional DETR", modeling_conditional_detr.ConditionalDetrSinePositionEmbedding, (cells + 1) / sizes),
        ("Deformable DETR", modeling_deformable_detr.DeformableDetrSinePositionEmbedding, (cells + 0.5) / sizes),
    ]:
        yield record(model, shares, at, module(8, normalize=True)(shape, CPU, F64)[0].flatten(1).T)
    mask = torch.tensor([[[1, 1, 1, 0], [1, 1, 1, 0], [0, 0, 0, 0]]])
    padded = modeling_detr.DetrSinePositionEmbedding(8, normalize=True)(torch.Size((1, 1, 3, 4)), CPU, F64, mask.double())
    held = (grid(2, 3) + 1) / torch.tensor([[2.0], [3.0]], dtype=F64)
    yield record("DETR, padded", shares, held, padded[0, :, :2, :3].flatten(1).T)
    table = modeling_table_transformer.TableTransformerSinePositionEmbedding(8, normalize=True)
    yield record("Table Transformer", shares, (cells + 1) / sizes, table(torch.zeros(1), torch.ones(1, 3, 5))[0].flatten(1).T)


def dab_detr():
    config = configuration_dab_detr.DabDetrConfig(hidden_size=16, temperature_height=20, temperature_width=30)
    rows = modeling_dab_detr.DabDetrSinePositionEmbedding(config)(torch.zeros(1), torch.ones(1, 3, 5))
    at = (grid(3, 5) + 1) / torch.tensor([[3.0], [5.0]], dtype=F64)
    scheme = {"type": "sinusoidal", "axes_dim": [8, 8], "axis_base": [20, 30], "position_scale": [2 * math.pi]}
    yield record("DAB-DETR", scheme, at, rows[0].flatten(1).T)


def sam3_boxes():
    """y, x, width and height of a box."""
    boxes = torch.tensor([[[0.25, 0.5, 0.125, 0.75], [0.9, 0.1, 0.3, 0.2]]], dtype=F64)
    rows = modeling_sam3.Sam3SinePositionEmbedding(6, normalize=True).encode_boxes(boxes)
    scheme = {"type": "sinusoidal", "axes_dim": [6, 6, 6, 6], "position_scale": [2 * math.pi]}
    yield record("SAM 3, boxes", scheme, boxes[0].T[[1, 0, 2, 3]], rows[0])


def musicgen():
    rows = modeling_musicgen.MusicgenSinusoidalPositionalEmbedding(7, 10)
    scheme = {"type": "sinusoidal", "layout": "concatenated", "spacing": "ends", "cosine_first": True}
    yield record("MusicGen", scheme, [torch.arange(7)], rows.weights)
    odd = modeling_musicgen.MusicgenSinusoidalPositionalEmbedding(5, 9)
    yield record("MusicGen, odd", {**scheme, "odd": "zero"}, [torch.arange(5)], odd.weights)


def canary():
    rows = modeling_canary.CanaryPositionalEmbedding(6, 12)(torch.arange(6))
    scheme = {"type": "sinusoidal", "layout": "concatenated", "divide_vectors": True}
    yield record("Canary", scheme, [torch.arange(6)], rows)


def time_steps():
    """diffusers' Timesteps, at steps between whole ones too."""
    at = torch.tensor([0, 1, 0.5, 17.25, 999])
    for flip in (False, True):
        for shift, spacing in ((0, "width"), (1, "ends")):
            for scale, width in ((1, 8), (1000, 12)):
                t = at if scale == 1 else at / 1000
                rows = embeddings.Timesteps(width, flip, shift, scale)(t)
                scheme = {"type": "sinusoidal", "layout": "concatenated", "spacing": spacing, "cosine_first": flip}
                yield record(f"Timesteps({width}, {flip}, {shift}, {scale})", {**scheme, "position_scale": [scale]}, [t], rows)


def dit():
    """diffusers' pictures: columns before rows, at a grid stretched to that of training."""
    rows = embeddings.get_2d_sincos_pos_embed(16, (4, 4), interpolation_scale=2.0, base_size=8)
    scheme = picture(16, position_scale=[8 / 4 / 2], axis_order=[1, 0])
    yield record("DiT, PixArt", scheme, grid(4, 4), rows)


def cogvideo():
    rows = embeddings.get_3d_sincos_pos_embed(32, (3, 2), 2, spatial_interpolation_scale=1.875, temporal_interpolation_scale=1.5)
    scheme = {"type": "sinusoidal", "layout": "concatenated", "axes_dim": [8, 12, 12], "axis_order": [0, 2, 1]}
    at = grid(2, 2, 3) / torch.tensor([[1.5], [1.875], [1.875]], dtype=F64)
    yield record("CogVideoX", scheme, at, rows.flatten(0, 1))


def sam_points():
    module = modeling_sam.SamPositionalEmbedding(configuration_sam.SamVisionConfig(num_pos_feats=6, scale=2)).double()
    points = torch.tensor([[[[0.0, 0.0], [0.5, 0.25], [0.9, 1.0]]]], dtype=F64)
    scheme = {"type": "fourier_features"}
    yield record(
        "SAM", scheme, (2 * points[0, 0] - 1).T, module(points)[0, 0],
        tables={"frequencies": [numbers(row) for row in module.positional_embedding]},
    )  # fmt: skip


def noise_levels():
    module = embeddings.GaussianFourierProjection(5, scale=4, log=True, flip_sin_to_cos=True).double()
    levels = torch.tensor([0.01, 1.0, 80.0], dtype=F64)
    yield record(
        "GaussianFourierProjection", {"type": "fourier_features", "axes": 1, "cosine_first": True},
        [levels.log()], module(levels), tables={"frequencies": [numbers(module.weight)]},
    )  # fmt: skip


def rows_and_columns():
    """Learned rows of the patch's row and of its column."""
    at = torch.tensor([[0, 1, 2, 0], [3, 0, 1, 2]])
    config = configuration_pix2struct.Pix2StructVisionConfig(hidden_size=6, patch_embed_hidden_size=4, seq_len=5)
    module = modeling_pix2struct.Pix2StructVisionEmbeddings(config).double().eval()
    patches = torch.zeros(1, 4, 2 + 4, dtype=F64)
    patches[0, :, :2] = at.T
    with torch.no_grad():
        module.patch_projection.bias.zero_()
        rows = module(patches)[0]
    table = torch.cat((module.row_embedder.weight, module.column_embedder.weight))
    scheme = {"type": "learned", "rows": 10, "axis_rows": [5, 5]}
    yield record("Pix2Struct", scheme, at, rows, tables={"table": [numbers(row) for row in table]})

    config = configuration_kosmos2_5.Kosmos2_5VisionConfig(hidden_size=6, patch_embed_hidden_size=4, max_num_patches=5)
    module = modeling_kosmos2_5.Kosmos2_5VisionEmbeddings(config).double().eval()
    with torch.no_grad():
        module.patch_projection.bias.zero_()
        rows = module(patches)
        rows = (rows[0] if isinstance(rows, tuple) else rows)[0]
    table = torch.cat((module.row_embedder.weight, module.column_embedder.weight))
    yield record("Kosmos-2.5", {**scheme, "rows": table.shape[0], "axis_rows": [len(table) // 2] * 2}, at, rows, tables={"table": [numbers(row) for row in table]})

    config = configuration_gemma4.Gemma4VisionConfig(hidden_size=6, patch_size=2, position_embedding_size=5)
    module = modeling_gemma4.Gemma4VisionPatchEmbedder(config).double().eval()
    with torch.no_grad():
        module.position_embedding_table.copy_(torch.randn(2, 5, 6))
        pixels = torch.full((1, 4, 12), 0.5, dtype=F64)  # becomes 0
        rows = module(pixels, at.flip(0).T[None], torch.zeros(1, 4, dtype=torch.bool))[0]
    table = module.position_embedding_table.flatten(0, 1)
    yield record("Gemma 4", scheme, at.flip(0), rows, tables={"table": [numbers(row) for row in table]})


def resampled():
    """Learned tables of a grid, as models make them for a picture of another size."""
    def rows_of(table):
        return [numbers(row) for row in table]

    def case(model, old, new, how, table, rows):
        return {"model": model, "from": list(old), "to": list(new), "how": how, "table": rows_of(table), "rows": rows_of(rows)}

    old = (4, 4)
    table = torch.randn(16, 3, dtype=F64)
    for mode in ("bilinear", "bicubic"):
        for align in (False, True):
            for new in ((4, 4), (7, 3), (1, 9)):
                grid_of = table.T.reshape(1, 3, *old)
                rows = torch.nn.functional.interpolate(grid_of, new, mode=mode, align_corners=align)
                how = {"interpolation": mode, "align_corners": align}
                yield case("F.interpolate", old, new, how, table, rows[0].flatten(1).T)
    wide = torch.randn(2 + 6 * 9, 3, dtype=F64)
    for mode in ("bilinear", "bicubic"):
        for new in ((2, 4), (5, 14)):
            rows = pos_embed.resample_abs_pos_embed(wide[None], list(new), [6, 9], 2, mode, antialias=True)
            yield case("timm", (6, 9), new, {"interpolation": mode, "antialias": True, "kept_rows": 2}, wide, rows[0])
    for new in ((2, 6), (3, 5)):
        rows = modeling_siglip2.Siglip2VisionEmbeddings.resize_positional_embeddings(
            table.reshape(*old, 3), torch.tensor([new]), new[0] * new[1]
        )
        yield case("SigLIP 2", old, new, {"interpolation": "bilinear", "antialias": True}, table, rows[0])
    for mode, align, padding, merge in (
        ("bilinear", True, "border", 2),  # Qwen3-VL
        ("bicubic", False, "border", 1),  # Kimi
        ("bilinear", False, "zeros", 1),
        ("bicubic", False, "zeros", 2),
    ):
        new = (6, 4)
        indices, weights = vision_utils.get_vision_interpolation_indices_and_weights(
            torch.tensor([[1, *new]]), old[0], mode, align, merge, padding
        )
        rows = (table[indices] * weights[..., None]).sum(1)
        how = {"interpolation": mode, "align_corners": align, "zeros_outside": padding == "zeros", "spatial_merge_size": merge}
        yield case("transformers", old, new, how, table, rows)
    # DINOv2's own code: a scale_factor of sides a tenth larger, so that rounding gives them.
    for antialias in (False, True):
        for new in ((5, 7), (3, 2)):
            scale = [(side + 0.1) / 4 for side in new]
            rows = torch.nn.functional.interpolate(
                table.T.reshape(1, 3, *old), scale_factor=scale, mode="bicubic", antialias=antialias
            )
            assert rows.shape[2:] == new
            how = {"interpolation": "bicubic", "antialias": antialias, "offset": 0.1}
            yield case("DINOv2's own", old, new, how, table, rows[0].flatten(1).T)
    for model, module, patch in (
        ("DINOv2", modeling_dinov2.Dinov2Embeddings, (2, 2)),
        ("ViT", modeling_vit.ViTEmbeddings, 2),
    ):
        holder = types.SimpleNamespace(
            position_embeddings=torch.cat((wide[:1], table))[None],
            patch_embeddings=types.SimpleNamespace(patch_size=patch),
            patch_size=patch,
        )
        rows = module.interpolate_pos_encoding(holder, torch.zeros(1, 36, 3), 10, 14)
        how = {"interpolation": "bicubic", "kept_rows": 1}
        yield case(model, old, (5, 7), how, holder.position_embeddings[0], rows[0])
    # A small table stretched, and a window's beside it, again and again.
    window = torch.randn(2 * 2, 3, dtype=F64)
    holder = types.SimpleNamespace(
        pos_embed=table.T.reshape(1, 3, *old), pos_embed_window=window.T.reshape(1, 3, 2, 2)
    )
    rows = modeling_sam2.Sam2HieraDetModel._get_pos_embed(holder, (6, 8))
    yield {
        **case("SAM 2", old, (6, 8), {"interpolation": "bicubic"}, table, rows[0].flatten(0, 1)),
        "window": rows_of(window),
        "window_grid": [2, 2],
    }


FAMILIES = [mae, rt_detr, detr, dab_detr, sam3_boxes, musicgen, canary, time_steps, dit, cogvideo, sam_points, noise_levels, rows_and_columns]  # fmt: skip


def main():
    torch.manual_seed(1)
    records = [each for family in FAMILIES for each in family()]
    generator = (
        f"tests/peers/added.py, diffusers {diffusers.__version__}, timm {timm.__version__}, transformers {transformers.__version__}, "
        f"torch {torch.__version__.split('+')[0]}"
    )
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in records)
    tables = ",\n".join(json.dumps(each, separators=(",", ":")) for each in resampled())
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ',\n"records": [\n' + lines)
    sys.stdout.write('\n],\n"resampled": [\n' + tables + "\n]}\n")


if __name__ == "__main__":
    main()
