"""onnxruntime-genai's model builder: the tables of cosines and sines that it writes into the ONNX file.

The builder makes its model from the configuration and stops before it asks for weights.
"""

import contextlib
import glob
import io
import json
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")

import transformers

from . import Refused, own_code, read, stubs

HERE = next(p for p in sys.path if Path(p, "onnxruntime_genai").is_dir())
MODELS = HERE + "/onnxruntime_genai/models"
FILES = ["onnxruntime_genai/models/builder.py", "onnxruntime_genai/models/builders/*.py"]
sys.path.insert(0, MODELS)  # from where its modules import each other
stubs.install(HERE)

import builder
import builders.base
from onnx_ir.tensor_adapters import to_torch_dtype


class Made(Exception):
    """Raised in place of reading weights, with the model."""


def stop(self, *_, **__):
    raise Made(self)


def families(family):
    yield family
    for below in family.__subclasses__():
        yield from families(below)


for family in families(builders.base.Model):
    if "make_model" in vars(family):
        family.make_model = stop

tables = []  # (cosines, sines) in the order in which they are made


def recorded(original):
    def wrapped(self):
        tables.append(original(self))
        return tables[-1]

    return wrapped


for family in families(builders.base.Model):
    if "make_rotary_embedding_caches_from_scratch" in vars(family):
        family.make_rotary_embedding_caches_from_scratch = recorded(family.make_rotary_embedding_caches_from_scratch)


def version():
    found = next(iter(glob.glob(HERE + "/onnxruntime_genai-*.dist-info")))
    return Path(found).name.split("-")[1].removesuffix(".dist")


def run(config, length):
    own_code.register(config["model_type"])
    try:
        model = made(config)
    except Exception as error:
        text = re.sub(r"/\S+", config["architectures"][0], str(error))  # where the configuration lay for a moment
        raise Refused(f"{type(error).__name__}: {text[:200]}") from error
    if "multi_cache" in model.rope_attrs:  # long first, then short
        use = tables[0] if length > model.original_context_length or not length else tables[1]
        layers = [use] * model.num_layers
    elif len(tables) > 1:  # gemma3: global first, then local
        layers = [tables[0] if kind == "full_attention" else tables[1] for kind in config["layer_types"]]
    else:
        layers = tables * model.num_layers
    attributes = model.rope_attrs
    dtype = "float32" if attributes["cast"]["use_fp32"] else str(to_torch_dtype(model.io_dtype)).removeprefix("torch.")
    for cos, sin in layers:
        pairs = cos.shape[-1] if cos.shape[-1] <= model.head_size // 2 else cos.shape[-1] // 2
        if attributes["partial_rotary_factor"] != 1.0:
            pairs = attributes["rotary_embedding_dim"] // 2
        frequency, amplitude = read.of_cos_sin(cos[1, :pairs], sin[1, :pairs])
        yield read.record(
            frequency,
            amplitude,
            "interleaved" if attributes["interleaved"] else "halves",
            2 * pairs,
            logits=read.logits(model.attention_attrs["scale"], model.head_size),
            table_dtype=dtype,
            table_rows=len(cos),
        )


def made(config):
    """The builder's model of float16 on CUDA, whose tables lie in `tables`."""
    tables.clear()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        Path(folder, "config.json").write_text(json.dumps(config))
        details = {
            "extra_kwargs": {},
            "hf_name": folder,
            "hf_config": transformers.AutoConfig.from_pretrained(folder),
        }
        try:
            builder.create_model("", folder, folder, "fp16", "cuda", folder, hf_details=details)
        except Made as stopped:
            model = stopped.args[0]
        if "multi_cache" in model.rope_attrs and not tables:
            model.make_rotary_embedding_multi_cache()
        elif not tables:
            model.make_rotary_embedding_caches()
    return model
