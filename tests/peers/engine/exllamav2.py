"""exllamav2: its configuration as read from the file, and the RoPE that its tables are made of."""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

from . import Refused, read, stubs

FILES = ["exllamav2/config.py", "exllamav2/architecture.py", "exllamav2/rope.py", "exllamav2/device.py"]
HERE = next(p for p in sys.path if Path(p, "exllamav2").is_dir())
stubs.install(HERE)
stubs.stand_in("exllamav2.ext")  # kernels, built on import
for kernels in ("flash_attn", "xformers"):
    sys.modules[kernels] = None  # not here

from exllamav2 import rope
from exllamav2.architecture import ExLlamaV2ArchParams, RopeStyle
from exllamav2.config import ExLlamaV2Config
from exllamav2.version import __version__


def version():
    return __version__


def run(config, length):
    if config["model_type"] == "qwen2_vl" and "vision_config" not in config:
        raise Refused("this model is not currently supported: its text alone, without vision_config")
    with contextlib.redirect_stdout(sys.stderr):
        architecture = ExLlamaV2ArchParams(config["architectures"][0], config)
    if architecture.arch_string not in config["architectures"]:
        raise Refused("Unknown architecture: it is run as a Llama")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        known = ExLlamaV2Config()
        known.model_dir = folder
        try:
            known.prepare(no_tensors=True)
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {str(error).replace(folder, '')[:200]}") from error
    if length:
        known.max_seq_len = length
    # device.py makes a table for each of these, and attention modules name one by layer.
    bases = [(known.rotary_embedding_base, known.scale_pos_emb)]
    if known.rotary_embedding_base_alt:
        bases.append((known.rotary_embedding_base_alt, known.scale_pos_emb_alt))
    tables = [(*rope.get_rope_params("cpu", known, base), scale or 1) for base, scale in bases]
    for layer in range(known.num_hidden_layers):
        pattern = known.sliding_window_pattern
        local = len(tables) > 1 and (layer + 1) % pattern != 0
        frequency, amplitude, scale = tables[int(local)]
        yield read.record(
            frequency.double() / scale,
            amplitude,
            "halves" if known.arch.lm.rope_style == RopeStyle.NEOX else "interleaved",
            2 * len(frequency),
            table_rows=known.max_seq_len,
        )
