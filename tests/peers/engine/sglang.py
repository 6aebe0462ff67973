"""SGLang: the whole model made on the processor, from the configuration as its own loader standardises it."""

import json
import logging
import os
import re
import sys
import tempfile
from pathlib import Path

os.environ.update(TRANSFORMERS_VERBOSITY="critical", HF_HUB_OFFLINE="1", SGLANG_USE_CPU_ENGINE="1")
os.environ["SGLANG_ROPE_CACHE_FP32"] = "1"  # as on CUDA, where tables are not rounded to the model's type

import torch
import transformers.audio_utils  # before the stand-ins, which it would take for what is installed
import transformers.image_utils
import transformers.video_utils
from transformers import AutoProcessor

from . import Refused, own_code, read, stubs

FILES = [
    "sglang/srt/configs/model_config.py",
    "sglang/srt/utils/hf_transformers/*.py",
    "sglang/srt/layers/rotary_embedding/*.py",
    "sglang/srt/models/*.py",
]
HERE = next(p for p in sys.path if Path(p, "sglang").is_dir())
stubs.install(HERE)
logging.disable(logging.CRITICAL)

from sglang.srt.configs.model_config import ModelConfig
from sglang.srt.distributed import init_distributed_environment, initialize_model_parallel
from sglang.srt.layers.rotary_embedding.factory import _ROPE_DICT
from sglang.srt.models.registry import ModelRegistry
from sglang.srt.runtime_context import SpawnRanks, publish
from sglang.srt.server_args import ServerArgs
from sglang.version import __version__


def version():
    return __version__


def run(config, length):
    own_code.register(config["model_type"])
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "config.json").write_text(json.dumps(config))
        once(folder)
        try:
            # Tables as served, and the same before they are rounded to the model's type.
            given = ModelConfig(model_path=folder, dtype="bfloat16", context_length=length or None)
            served, exact = (made(given, dtype) for dtype in (torch.bfloat16, torch.float32))
        except Exception as error:
            raise Refused(f"{type(error).__name__}: {str(error).replace(folder, '')[:200]}") from error
    for layer in sorted(exact):
        rotary, scale, head_dim = exact[layer]
        frequency, amplitude, pairing, rotary_dim = read.of_matrix(matrix(rotary, length))
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


def once(folder, done=[]):
    if done:
        return
    given = ServerArgs(model_path=folder, device="cpu", skip_tokenizer_init=True, attention_backend="torch_native")
    publish(given, role="scheduler", ranks=SpawnRanks(world_rank=0))
    init_distributed_environment(1, 0, distributed_init_method="file://" + tempfile.mktemp(), backend="gloo")
    initialize_model_parallel()
    done.append(True)


def made(given, dtype):
    """Layer: (rotary module, scale of the logits, head_dim)."""
    _ROPE_DICT.clear()
    # qwen2_vl: its language model, from the text's part of the configuration
    vision = given.hf_config.model_type == "qwen2_vl"
    config = given.hf_text_config if vision else given.hf_config
    family, _ = ModelRegistry.resolve_model_cls(["Qwen2ForCausalLM"] if vision else config.architectures)
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        model = family(config)
    finally:
        torch.set_default_dtype(before)
    text = given.hf_text_config
    latent = getattr(text, "qk_rope_head_dim", None)
    layers, unread = {}, set()
    for name, module in model.named_modules(remove_duplicate=False):
        found = re.search(r"layers\.(\d+)\.", name)
        if not found:
            continue
        # Gemma 3's layers are handed cos and sin by the model; their own module runs on processors with AMX alone, and
        # has no scaling, so that only the layers with a window, which have none either, can be read by it.
        if type(module).__name__ == "Gemma3Attention" and not module.is_sliding:
            unread.add(int(found[1]))
        layer = layers.setdefault(int(found[1]), [None, None, latent + text.qk_nope_head_dim if latent else 64])
        if hasattr(module, "_compute_cos_sin_cache"):
            layer[0] = module
        if type(module).__name__ == "RadixAttention":
            layer[1] = module.scaling
    return {layer: what for layer, what in layers.items() if layer not in unread}


def table_of(rotary):
    long_and_short = getattr(rotary, "long_short_cos_sin_cache", None)
    return rotary.cos_sin_cache if long_and_short is None else long_and_short


def matrix(rotary, length):
    """Of position 1, in a call that also has the last of `length` tokens: longrope chooses its factors by call."""
    size = rotary.head_size
    positions = torch.tensor([1, max(1, min(length, len(table_of(rotary))) - 1)])
    heads = torch.eye(size).expand(2, -1, -1)
    if "Deepseek" not in type(rotary).__name__:
        heads = heads.reshape(2, -1)
    rotate = getattr(rotary, "forward_native", None) or rotary.forward
    with torch.no_grad():
        rotated, _ = rotate(positions, heads.clone(), heads.clone())
    return rotated.reshape(2, size, size)[0]
