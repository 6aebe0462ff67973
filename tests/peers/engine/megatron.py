"""Megatron-core: its rotary modules, and its rotation of heads whose one channel is 1.

Megatron reads no config.json: whoever trains gives arguments. arguments() says which ones a configuration becomes, by name;
what no argument can say is refused, and what the configuration leaves out stays at Megatron's default.
"""

import glob
import importlib.metadata
import sys
from pathlib import Path

import torch

from . import Refused, read, stubs

FILES = [
    "megatron/core/models/common/embeddings/rotary_pos_embedding.py",
    "megatron/core/models/common/embeddings/yarn_rotary_pos_embedding.py",
    "megatron/core/models/common/embeddings/rope_utils.py",
]
HERE = next(p for p in sys.path if Path(p, "megatron").is_dir())
stubs.install(HERE)
known = importlib.metadata.version


def version_of(name):
    try:
        return known(name)
    except importlib.metadata.PackageNotFoundError:
        return "0"  # of a stand-in


importlib.metadata.version = version_of
torch.cuda.current_device = lambda: "cpu"  # where it moves its frequencies on their first use

from megatron.core.models.common.embeddings.rope_utils import _apply_rotary_pos_emb_bshd
from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding
from megatron.core.models.common.embeddings.yarn_rotary_pos_embedding import YarnRotaryEmbedding, _yarn_get_mscale

YARN = {
    "factor": "scaling_factor",
    "original_max_position_embeddings": "original_max_position_embeddings",
    "beta_fast": "beta_fast",
    "beta_slow": "beta_slow",
    "mscale": "mscale",
    "mscale_all_dim": "mscale_all_dim",
    "truncate": "correction_range_round_to_int",
}


def version():
    found = next(iter(glob.glob(HERE + "/megatron_core-*.dist-info")))
    return Path(found).name.split("-")[1].removesuffix(".dist")


def run(config, length):
    config = config.get("text_config") or config
    latent = "qk_rope_head_dim" in config
    heads = config["num_attention_heads"]
    size = config.get("qk_rope_head_dim") or config.get("head_dim") or config["hidden_size"] // heads
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    family, given = arguments(config, scaling)
    module = family(size, use_cpu_initialization=True, cp_group=None, **given)
    made = module.get_emb(2)
    angles, amplitude = made if isinstance(made, tuple) else (made, 1.0)
    unit = torch.eye(size).expand(2, 1, -1, -1).clone()
    interleaved = given.get("rotary_interleaved", False)
    rotated = _apply_rotary_pos_emb_bshd(unit, angles, interleaved, latent, amplitude)[1, 0]
    scale = None
    if latent:  # multi_latent_attention.py; its rotation moves the channels of a pair to where halves have them
        rotated = rotated[:, torch.arange(size).reshape(2, -1).T.flatten()]
        scale = _yarn_get_mscale(given["scaling_factor"], given.get("mscale_all_dim", 0.0)) ** 2 * size**-0.5
    yield read.record(*read.of_matrix(rotated), logits=read.logits(scale, size))


def arguments(config, scaling):
    if config.get("rope_scaling") and config.get("rope_parameters") or "full_attention" in scaling:
        raise Refused("no argument: one set of parameters")
    kind = scaling.get("rope_type") or scaling.get("type") or "default"
    given = {"rotary_base": scaling.get("rope_theta", config.get("rope_theta", 10000))}
    given |= {"rotary_percent": config.get("partial_rotary_factor", 1.0)}
    if config["model_type"] == "glm4":
        given |= {"rotary_interleaved": True}
    if config.keys() & {"rope_local_base_freq", "local_rope_theta"}:
        raise Refused("no argument: one base for all layers")
    if kind in ("default", "mrope"):
        return RotaryEmbedding, given
    if kind == "linear":
        return RotaryEmbedding, {**given, "seq_len_interpolation_factor": scaling["factor"]}
    if kind == "llama3":
        # --rope-scaling-factor is read, and gpt_builders.py hands it to no model (Megatron-LM#6305).
        return RotaryEmbedding, {**given, "rope_scaling": True}
    if kind == "yarn" and "factor" in scaling:
        return YarnRotaryEmbedding, {**given, **{YARN[key]: scaling[key] for key in scaling.keys() & YARN}}
    raise Refused(f"no argument: {kind}" + (" without factor" if kind == "yarn" else ""))
