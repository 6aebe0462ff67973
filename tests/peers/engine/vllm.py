"""vLLM: the whole model made on the CPU platform, from the configuration as its own loader standardises it."""

import contextlib
import glob
import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.update(VLLM_LOGGING_LEVEL="CRITICAL", TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1")

import torch

from . import Refused, read, stubs

FILES = [
    "vllm/transformers_utils/config.py",
    "vllm/config/model.py",
    "vllm/model_executor/layers/rotary_embedding/*.py",
    "vllm/model_executor/models/*.py",
]
HERE = next(p for p in sys.path if glob.glob(p + "/vllm/version.py"))
stubs.install(HERE)
stubs.stand_in("transformers.models.qwen2_vl.image_processing_qwen2_vl")  # wants torchvision

import vllm.platforms
from vllm.platforms.cpu import CpuPlatform

vllm.platforms._current_platform = CpuPlatform()
import vllm.model_executor.models.registry as registry

registry._run_in_subprocess = lambda function: function()  # a fresh process would lack the stand-ins
from vllm.config import ModelConfig, VllmConfig, set_current_vllm_config
from vllm.distributed import init_distributed_environment, initialize_model_parallel
from vllm.model_executor.layers.rotary_embedding import _ROPE_DICT
from vllm.model_executor.model_loader.utils import initialize_model
from vllm.utils.torch_utils import set_default_torch_dtype

logging.disable(logging.CRITICAL)


def version():
    return Path(glob.glob(HERE + "/vllm-*.dist-info")[0]).name.split("-")[1].removesuffix(".dist")


def run(config, length):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        try:
            given = ModelConfig(model=folder, skip_tokenizer_init=True, dtype="bfloat16", max_model_len=length or None)
            # Tables as served, and the same before they are rounded to the model's type.
            served, exact = (made(given, dtype) for dtype in (torch.bfloat16, torch.float32))
        except Exception as error:
            raise Refused(reason(error)) from error
    for layer in sorted(exact):
        rotary, scale, head_dim = exact[layer]
        frequency, amplitude, pairing, rotary_dim = read.of_matrix(matrix(rotary))
        table = table_of(served[layer][0])
        yield read.record(
            frequency,
            amplitude,
            pairing,
            rotary_dim,
            logits=read.logits(scale, head_dim),
            table_dtype=str(table.dtype).removeprefix("torch."),
            table_rows=len(table),
        )


def reason(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[1] if len(lines) > 1 and "validation error" in lines[0] else (lines or [""])[0]
    return f"{type(error).__name__}: {text.partition(' [type=')[0][:200]}"


def made(given, dtype):
    """Layer: (rotary module, scale of the logits, head_dim)."""
    _ROPE_DICT.clear()  # its key does not have the length that longrope depends on
    whole = VllmConfig(model_config=given)
    if given.hf_config.model_type == "qwen2_vl":  # its language model, as Qwen2VLForConditionalGeneration makes it
        whole = whole.with_hf_config(given.hf_text_config, architectures=["Qwen2ForCausalLM"])
    with set_current_vllm_config(whole), set_default_torch_dtype(dtype):
        once()
        model = initialize_model(whole, model_config=whole.model_config)
    text = given.hf_text_config
    latent = getattr(text, "qk_rope_head_dim", None)
    layers = {}
    for name, module in model.named_modules(remove_duplicate=False):
        found = re.search(r"layers\.(\d+)\.", name)
        if not found:
            continue
        layer = layers.setdefault(int(found[1]), [None, None, None])
        if hasattr(module, "_compute_cos_sin_cache"):
            layer[0] = module
        if hasattr(getattr(module, "impl", None), "scale"):
            layer[1] = module.impl.scale
            layer[2] = latent + text.qk_nope_head_dim if latent else given.get_head_size()
    return layers


def once(done=[]):
    if not done:
        address = "file://" + tempfile.mktemp()
        init_distributed_environment(1, 0, address, 0, "gloo")
        initialize_model_parallel(1, 1)
        done.append(True)


def table_of(rotary):
    long_and_short = getattr(rotary, "long_short_cos_sin_cache", None)
    return rotary.cos_sin_cache if long_and_short is None else long_and_short


def matrix(rotary):
    size = rotary.head_size
    position = torch.ones(1, dtype=torch.int64)
    heads = torch.eye(size).reshape(1, -1)
    if hasattr(rotary, "mrope_section"):
        position = position.expand(3, 1)
    rotate = getattr(rotary, "forward_native", None) or rotary.forward
    with torch.no_grad(), contextlib.redirect_stdout(None):
        if "Deepseek" in type(rotary).__name__:
            rotated, _ = rotate(position, torch.eye(size)[None], torch.eye(size)[None])
        else:
            rotated, _ = rotate(position, heads, heads.clone())
    return rotated.reshape(size, size)
