"""lmdeploy's PyTorch engine: the whole model made with its default operators, and its rotary module run."""

import glob
import importlib
import logging
import os
import sys
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")

import torch
import transformers

from . import Refused, read, stubs

FILES = [
    "lmdeploy/pytorch/nn/rotary_embedding.py",
    "lmdeploy/pytorch/backends/default/rotary_embedding.py",
    "lmdeploy/pytorch/models/*.py",
]
HERE = next(p for p in sys.path if Path(p, "lmdeploy").is_dir())
stubs.install(HERE)
logging.disable(logging.CRITICAL)

from lmdeploy.pytorch.models.module_map import MODULE_MAP

torch.compile = lambda function=None, **_: function or (lambda f: f)  # one call is faster as it is


def version():
    found = next(iter(glob.glob(HERE + "/lmdeploy-*.dist-info")))
    return Path(found).name.split("-")[1].removesuffix(".dist")


def run(config, length):
    try:
        known = transformers.AutoConfig.for_model(**config)
        text = known.get_text_config()
        known.pad_token_id = text.pad_token_id = 0  # an embedding wants it within the vocabulary
        vision = known.model_type == "qwen2_vl"
        family = family_of("Qwen2ForCausalLM" if vision else config["architectures"][0])
        model = family(text if vision else known, None, torch.float32, "cpu").model
        attentions = [layer.self_attn for layer in model.layers]
        layers = [(table(rotary_of(model, config, i), length), scale_of(a)) for i, a in enumerate(attentions)]
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:200]}") from error
    latent = config.get("qk_rope_head_dim")
    head_dim = config["qk_nope_head_dim"] + latent if latent else config.get("head_dim", 64)
    for (cos, sin), scale in layers:
        frequency, amplitude = read.of_cos_sin(cos, sin)
        # glm4 reorders the channels of a pair in its forward, deepseek_v2 the rows of the weights that it loads.
        moved = config["model_type"] == "glm4" or latent and config["model_type"] != "minicpm3"
        pairing = "interleaved" if moved else "halves"
        yield read.record(frequency, amplitude, pairing, 2 * len(cos), logits=read.logits(scale, head_dim))


def family_of(architecture):
    if architecture not in MODULE_MAP:
        raise ValueError(f"{architecture} is not in its module map")
    module, _, name = MODULE_MAP[architecture].rpartition(".")
    return getattr(importlib.import_module(module), name)


def rotary_of(model, config, layer):
    slides = config.get("layer_types", {layer: ""})[layer] == "sliding_attention"
    return model.rotary_emb_local if slides and hasattr(model, "rotary_emb_local") else model.rotary_emb


def scale_of(attention):
    return getattr(attention, "softmax_scale", None) or getattr(attention, "scaling", None)


def table(rotary, length):
    """Cosines and sines of position 1 among `length`, one a pair."""
    positions = torch.tensor([[0, 1, max(1, length - 1)]])
    with torch.no_grad():
        cos, sin = rotary(torch.zeros(1, 3, 1), positions)
    cos, sin = (part.reshape(3, -1)[1] for part in (cos, sin))
    return cos[: len(cos) // 2], sin[: len(sin) // 2]
