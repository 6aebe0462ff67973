#!/usr/bin/env python3
"""The positions of pictures, sound and text beside them, as transformers' own modules have them; recorded in
tests/data/golden/towers.json with a config.json that names the type alone, so that the class's own defaults count.

  rotations   towers that rotate: their rotary module and their attention, on one vector at several rows and columns
  tables      models that add learned vectors: the rows and the width of the table, the layers, the width of a head
  waves       models that add sinusoids: the vectors of the first positions

  tests/peers/towers.py > tests/data/golden/towers.json
"""

import inspect
import json
import sys

import census
import compare
import explained
import hugging_face
import structure
import torch
import transformers

ROTATED = """cohere_compass_vision dots3_note_vision_encoder ernie4_5_vl_moe_vision exaone4_5_vision glm4v_vision
    glm4v_moe_vision glm5_next_vision glm_ocr_vision inkling2_vision kimi_k25_vision lfm3_vl_vision
    minimax_m3_vl_vision mlcd muse_glimmer_vision muse_spark_vision paddleocr_vl_vision qwen2_vl_vision
    qwen2_5_vl_vision qwen2_5_omni_vision_encoder qwen3_vl_vision qwen3_vl_moe_vision qwen3_5_vision
    qwen3_5_moe_vision qwen3_omni_moe_vision_encoder qwen4_exp_vision step3p5_vision video_llama_3_vision""".split()
COLUMN_FIRST = ("muse_glimmer_vision", "muse_spark_vision")  # their forward hands columns before rows to the module
PLACES = [(1, 0), (0, 1), (3, 5), (63, 29)]  # row and column


def weightless(module):
    for name, child in list(module.named_modules()):
        for each, layer in list(child.named_children()):
            if isinstance(layer, torch.nn.Linear):
                setattr(child, each, hugging_face.Constant(layer.out_features, len(name + each)))


def rotation(kind):
    """Keys of one vector at every place, behind the tower's own attention."""
    raw = census.default(kind)
    raw.pop("model_type")
    config = transformers.AutoConfig.for_model(kind, **raw)
    config._attn_implementation = "probe"
    model = structure.made(config)
    rotary = next(m for m in model.modules() if "Rotary" in type(m).__name__)
    attention = next(
        m for n, m in model.named_modules() if "Attention" in type(m).__name__ and not structure.OTHER.search(n)
    )
    for part in (torch.nn.ModuleList([rotary]), attention):
        weightless(part)
        hugging_face.restored(part, config)
    frames = len(rotary.inv_freq) * 3 == explained_pairs(kind)
    ids = torch.tensor([(2, *p) if frames else p for p in PLACES])
    x = torch.zeros(1, len(ids), config.hidden_size)
    cos, sin = rotary(x, ids.flip(-1) if kind in COLUMN_FIRST else ids)
    angles = {"position_embeddings": (cos, sin), "cos": cos, "sin": sin}
    seen = []
    for zero in (True, False):
        hugging_face.records.clear()
        where = angles if not zero else {"position_embeddings": (torch.ones_like(cos), torch.zeros_like(sin))}
        names = inspect.signature(attention.forward).parameters
        given = {k: v for k, v in where.items() if k in names}
        if "cu_seqlens" in names:
            given["cu_seqlens"] = torch.tensor([0, len(ids)])
        with torch.no_grad():
            try:
                attention(x, **given)
            except (RuntimeError, ValueError):  # its tokens have no batch in front
                attention(x[0], **given)
        seen.append(hugging_face.records[-1]["key"][0, 0].double())
    plain, turned = seen
    return {
        "config": {"model_type": kind},
        "tokens": len(ids),
        "axes": ids.shape[1],
        "head_dim": plain.shape[-1],
        "ids": ids.T.flatten().tolist(),
        "x": rounded(plain),
        "out": rounded(turned),
    }


def rounded(rows):
    return [round(value, 7) for value in rows.flatten().tolist()]


def explained_pairs(kind):
    group = explained.explain({"model_type": kind})["groups"][0]
    return len(group["plan"]["rotate"]["frequencies"][0]) if group["plan"]["rotate"]["axes"] == 3 else 0


# What a file of the type always says.
SAID = {
    "lfm3_vl_vision": ["layer_types"],
    "vitpose_backbone": ["image_size"],
    "mgp-str": ["image_size"],
    "yolos": ["image_size"],
}


def shape(kind):
    """Tables and layers of a model whose configuration says little but its type."""
    try:
        raw = census.default(kind)
        seen = structure.of(raw)
        said = {key: raw[key] for key in SAID.get(kind, [])}
        explained.explain({"model_type": kind, **said})
    except (structure.Refused, explained.Refused, KeyError):
        return None
    widths = {}
    for _, head_dim, layers in seen["attention"]:
        widths.setdefault(head_dim, []).append(layers)
    if None in widths or not widths:
        return None
    return {
        "config": {"model_type": kind, **said},
        "tables": sorted(set(seen["tables"])),
        "attention": [[head_dim, *layers] for head_dim, layers in sorted(widths.items())],
    }


# Modules of sinusoids, by the models that have them: the path to the module and how it is asked for five positions.
WAVES = {
    "qwen2_5_omni_audio_encoder": "positional_embedding",
    "qwen3_omni_moe_audio_encoder": "positional_embedding",
    "speech_to_text": "encoder.embed_positions",
    "fsmt": "encoder.embed_positions",
    "kosmos_2_text_model": "embed_positions",
    "kosmos_2_5_text_model": "embed_positions",
    "pegasus_x": "decoder.embed_positions",
    "tipsv2_text_model": "embeddings.position_embedding",
    "videoprism_text_model": "embeddings.position_embedding",
    "time_series_transformer": "encoder.embed_positions",
    "informer": "encoder.embed_positions",
    "musicgen_decoder": "decoder.embed_positions.weights",
    "musicgen_melody_decoder": "decoder.embed_positions.weights",
    "canary_decoder": "pos_emb",
}


def vectors(kind, path):
    raw = census.default(kind)
    config = transformers.AutoConfig.for_model(kind, **{k: v for k, v in raw.items() if k != "model_type"})
    for key in ("num_hidden_layers", "encoder_layers", "decoder_layers", "layers"):
        if isinstance(getattr(config, key, None), int):
            setattr(config, key, 1)
    model = next(m for m in made_small(config) if find(m, path) is not None)
    module = find(model, path)
    if isinstance(module, torch.Tensor):
        rows = module[:5]
    else:
        ids = torch.full((1, 5), 7)
        asked = (
            (ids,),
            (torch.zeros(1, 5, config.hidden_size),),
            (torch.arange(5)[None],),
            (5,),
            (torch.Size((1, 5)),),
        )
        asks = {"canary_decoder": 2, "tipsv2_text_model": 2, "pegasus_x": 1, "informer": 4, "time_series_transformer": 4}
        ask = asks.get(kind, 3 if "audio" in kind else 0)
        rows = module(*asked[ask])
    rows = rows.reshape(5, -1).double()
    return {
        "config": {"model_type": kind},
        "width": rows.shape[1],
        "rows": [[row[i].item() for i in sample(rows.shape[1])] for row in rows],
    }


def sample(width):
    """Some channels of each half."""
    return sorted({0, 1, 2, width // 4, width // 2 - 1, width // 2, width // 2 + 1, width - 2, width - 1})


def find(model, path):
    for name in path.split("."):
        model = getattr(model, name, None)
    return model


def made_small(config):
    for each in structure.classes(config):
        try:
            yield each(config)
        except Exception:
            continue


def main():
    lists = {
        "rotations": [rotation(kind) for kind in ROTATED],
        "tables": [found for kind in explained_alone() if (found := shape(kind))],
        "waves": [vectors(kind, path) for kind, path in WAVES.items()],
    }
    text = ",\n".join(
        f'"{name}": [\n' + ",\n".join(json.dumps(each, separators=(",", ":")) for each in records) + "\n]"
        for name, records in lists.items()
    )
    generator = f"transformers {hugging_face.VERSION}: each model's own modules, by tests/peers/towers.py"
    sys.stdout.write('{"generator": ' + json.dumps(generator) + ",\n" + text + "}\n")


def explained_alone():
    """Types that transformers cannot run on words, and that posenc explains."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    for kind in sorted(CONFIG_MAPPING_NAMES):
        try:
            outcome = compare.judge(census.default(kind))[0]
        except Exception:
            continue
        if outcome in (compare.BUILT, compare.BUILT_WARNED):
            yield kind


if __name__ == "__main__":
    main()
