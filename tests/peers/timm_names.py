#!/usr/bin/env python3
"""What timm builds by its names of ViTs: sizes, and the rows of the table of positions.

  tests/peers/timm_names.py > tests/data/golden/timm.json
"""

import json
import re

import timm
import torch

KINDS = {"VisionTransformer", "VisionTransformerDistilled", "VisionTransformerRelPos", "Eva", "Beit"}


def row(name):
    with torch.device("meta"):
        model = timm.create_model(name)
    kind = type(model).__name__
    if kind not in KINDS:
        return None
    table = getattr(model, "pos_embed", None)
    rows = table.shape[1] if kind.startswith("VisionTransformer") and isinstance(table, torch.Tensor) else 0
    patches = model.patch_embed
    heads = getattr(getattr(model.blocks[0], "attn", None), "num_heads", None)
    return [name, model.embed_dim, len(model.blocks), heads, patches.patch_size[0], patches.img_size[0], rows]


def main():
    names = [n for n in timm.list_models() if re.match(r"(vit|deit|deit3|flexivit|eva|eva02|beit|beitv2)_", n)]
    rows = [made for made in map(row, names) if made]
    notes = "tests/peers/timm_names.py; [name, width, layers, heads, patch, image, rows of the learned table]; 0: none"
    generator = f"timm {timm.__version__}, torch {torch.__version__.split('+')[0]}"
    print(json.dumps({"generator": generator, "notes": notes, "models": rows}, separators=(",", ":")))


if __name__ == "__main__":
    main()
