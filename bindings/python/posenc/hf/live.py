"""What there is in a model: the modules that make cos and sin, the attention of each layer, the functions that rotate."""

from __future__ import annotations

import math

import torch

from .._posenc import Plan
from ..torch import RotaryEmbedding


def rotates(name: str) -> bool:
    """Whether a function of a modeling file is one that rotates: apply_rotary_pos_emb and its kin."""
    return name.startswith("apply_") and "rotary" in name and "vision" not in name


def tower(name: str) -> bool:
    """Whether a module belongs to a tower of pictures or sound, whose positions are not those of the text."""
    return any(part in name.lower() for part in ("vision", "visual", "audio"))


def rotary_modules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The modules that make cos and sin, by name."""
    found: dict[str, torch.nn.Module] = {}
    for name, module in model.named_modules():
        buffers = [buffer for buffer, _ in module.named_buffers(recurse=False)]
        if isinstance(module, RotaryEmbedding) or (
            "Rotary" in type(module).__name__ and any(buffer.endswith("inv_freq") for buffer in buffers)
        ):
            found[name] = module
    return found


def replace(model, name: str, module) -> None:
    """Puts a module in the place of the one of that name."""
    parent, _, last = name.rpartition(".")
    setattr(model.get_submodule(parent), last, module)


def attention_modules(model: torch.nn.Module) -> dict[int, torch.nn.Module]:
    """The self-attention of each layer of text: {layer: module}."""
    found: dict[int, torch.nn.Module] = {}
    for name, module in model.named_modules():
        layer = getattr(module, "layer_idx", None)
        if isinstance(layer, int) and "Attention" in type(module).__name__ and not tower(name):
            found.setdefault(layer, module)
    return found


def indexer_modules(attention: torch.nn.Module) -> list[torch.nn.Module]:
    """What picks the keys that an attention sees (DeepSeek V3.2's lightning indexer and its kin)."""
    return [module for module in attention.modules() if type(module).__name__.endswith("Indexer")]


def text_config(config):
    return getattr(config, "text_config", None) or config


def layers_of(config, kind: str | None) -> list[int]:
    """The layers of a kind: as layer_types names them, or the name of a module that belongs to one."""
    types = getattr(text_config(config), "layer_types", None) or []
    kind = (kind or "").rpartition(".")[2]
    return [layer for layer, each in enumerate(types) if each == kind]


def rotating_groups(said) -> list:
    """A model's groups of layers of text that rotate, as constructed."""
    groups = [group for group in said.groups if group.stack in ("text", "decoder")]
    return [group for group in groups if said.plan(layer=group.layers[0], stack=group.stack).rotates]


def distance(plan: Plan, frequencies) -> float:
    """How far off a module's frequencies are from a plan's, in logarithms; what cannot be compared is as far as any."""
    expected = torch.as_tensor(plan.inv_freq)
    if frequencies is None or frequencies.shape != expected.shape:
        return math.inf
    found = frequencies.detach().cpu().double()
    return (found.clamp_min(1e-300).log() - expected.clamp_min(1e-300).log()).abs().max().item()
