"""exllamav3: its model's attention modules as made from the configuration, and the RoPE that each of them makes on loading."""

import json
import sys
import tempfile
from pathlib import Path

from . import Refused, read, stubs

FILES = ["exllamav3/model/config.py", "exllamav3/architecture/*.py", "exllamav3/util/rope.py"]
HERE = next(p for p in sys.path if Path(p, "exllamav3").is_dir())
stubs.install(HERE)
stubs.stand_in("exllamav3.ext")  # kernels, built on import

from exllamav3.model.config import Config
from exllamav3.model.model import Model
from exllamav3.util.rope import RoPE, RopeStyle
from exllamav3.version import __version__


def version():
    return __version__


def run(config, length):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        try:
            known = Config.from_directory(folder)
            if length:
                known.override_dynamic_seq_len(length)
            attentions = attention_of(Model.from_config(known).modules)
            ropes = [RoPE("cpu", a.rope_settings) for a in attentions]
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {str(error).replace(folder, '')[:200]}") from error
    for attention, rope in zip(attentions, ropes):
        frequency = rope.inv_freq.double()
        scale = getattr(attention, "sm_scale", None) or None
        head_dim = getattr(attention, "qk_head_dim", None) or attention.head_dim
        yield read.record(
            frequency,
            rope.attn_factor,
            "halves" if rope.rope_settings.rope_style == RopeStyle.NEOX else "interleaved",
            2 * len(frequency),
            logits=read.logits(scale, head_dim),
        )


def attention_of(modules):
    found = []
    for module in modules:
        if getattr(module, "rope_settings", None) and hasattr(module, "num_q_heads"):
            found.append(module)
        else:
            found += attention_of(getattr(module, "modules", None) or [])
    return found
