"""transformers: the family's own model without weights (../hugging_face.py)."""

import hugging_face
from . import Refused, read

FILES = ["modeling_rope_utils.py", "configuration_utils.py", "models/*/configuration_*.py", "models/*/modeling_*.py"]


def version():
    return hugging_face.VERSION


def reorders(config):
    """Whether channels 2i and 2i + 1 are moved to i and i + d/2 first, and halves rotate then (deepseek_v3)."""
    known = hugging_face.transformers.AutoConfig.for_model(**config)
    return getattr(known.get_text_config(), "rope_interleave", False)


def run(config, length):
    try:
        layers = hugging_face.run(config, length or None)
    except hugging_face.Refused as refused:
        raise Refused(str(refused)) from refused
    for layer in layers:
        rotation = layer["rotation"]
        if not isinstance(rotation, dict):
            raise ValueError(f"rotation {rotation}")
        yield read.record(
            rotation["inv_freq"],
            rotation["attention_factor"],
            "interleaved" if reorders(config) else rotation["pairing"],
            rotation["rotary_dim"],
            logits=read.logits(layer["scaling"], layer["head_dim"]),
        )
