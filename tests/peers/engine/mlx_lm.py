"""mlx-lm: the family's model, made from its ModelArgs; its rotary modules run on the processor."""

import glob
import sys
from pathlib import Path

import mlx.core as mx
import numpy as np
from mlx_lm.utils import _get_classes

from . import Refused, read

FILES = ["mlx_lm/utils.py", "mlx_lm/models/rope_utils.py", "mlx_lm/models/*.py"]

mx.set_default_device(mx.cpu)


def version():
    found = next(f for p in sys.path for f in glob.glob(p + "/mlx_lm-*.dist-info"))
    return Path(found).name.split("-")[1].removesuffix(".dist")


def run(config, length):
    try:
        family, arguments = _get_classes(config)
        model = family(arguments.from_dict(config))
        attentions = [m for _, m in sorted(model.named_modules(), key=lambda named: layer_of(named[0])) if "rope" in m]
        layers = [(matrix(a["rope"], length), scale_of(a), size_of(a)) for a in attentions]
    except Exception as error:
        raise Refused(f"{type(error).__name__}: {str(error)[:200]}") from error
    for rotated, scale, head_dim in layers:
        yield read.record(*read.of_matrix(rotated), logits=read.logits(scale, head_dim or len(rotated)))


def layer_of(name):
    return [int(part) for part in name.split(".") if part.isdigit()]


def scale_of(attention):
    return next((s for n in ("scale", "sm_scale") if (s := getattr(attention, n, None))), None)


def size_of(attention):
    return getattr(attention, "q_head_dim", None) or getattr(attention, "head_dim", None)


def matrix(rope, length):
    """Of position 1 among `length` tokens: heads whose one channel is 1."""
    size = max(64, getattr(rope, "dims", 0), getattr(rope, "dim", 0))
    tokens = np.zeros((1, size, max(length, 2), size), np.float32)
    tokens[0, range(size), 1, range(size)] = 1
    return np.array(rope(mx.array(tokens)))[0, :, 1]
