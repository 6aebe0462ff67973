"""transformers: the family's own model without weights (../hugging_face.py)."""

import hugging_face
from . import Refused, read

FILES = ["modeling_rope_utils.py", "configuration_utils.py", "models/*/configuration_*.py", "models/*/modeling_*.py"]


def version():
    return hugging_face.VERSION


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
            rotation["pairing"],
            rotation["rotary_dim"],
            logits=read.logits(layer["scaling"], layer["head_dim"]),
        )
