"""How bugs get into a live model: other functions in its file, other angles, masks and queries."""

import inspect
import sys
import types
from unittest.mock import patch

import torch
from live_models import prompt, run

import posenc
import posenc.hf as hf
from posenc.hf.live import rotary_modules, rotates, tower


class NotHere(Exception):
    """The family has nothing that could have the bug."""


def rotary(model) -> list:
    return [module for name, module in rotary_modules(model).items() if not tower(name)]


def attention(model) -> list:
    found = [module for _, module in sorted(hf.attention_modules(model).items())]
    return found or skip("no attention by layer")


def skip(why):
    raise NotHere(why)


def buffers(module) -> list[str]:
    return [
        name for name, _ in module.named_buffers(recurse=False) if name.endswith("inv_freq") and "original" not in name
    ]


def file_of(model):
    """The file that a model's attention is written in."""
    return sys.modules[type(attention(model)[0]).__module__]


def rewritten(model, **names):
    """A model whose layers' code takes other functions by these names than its file has, as a file of another would."""
    for layer in attention(model):
        forward = inspect.unwrap(type(layer).forward)
        for name in names:
            if name not in forward.__code__.co_names:
                skip(f"its attention has no {name}")
        copy = types.FunctionType(
            forward.__code__, {**forward.__globals__, **names}, None, forward.__defaults__, forward.__closure__
        )
        copy.__kwdefaults__ = forward.__kwdefaults__
        layer.forward = types.MethodType(copy, layer)


def rotating(model, undo, made):
    """Puts made(own, q, k, cos, sin, ...) in the place of the functions that rotate."""
    module = file_of(model)

    def planted(own):
        return lambda q, k, *rest, **more: (
            made(own, q, k, *rest, **more) if len(rest) > 1 else skip("its rotation takes no cos and sin")
        )

    names = [name for name in vars(module) if rotates(name) and name in named(model)]
    for name in names or skip("its attention calls no function that rotates"):
        undo.enter_context(patch.object(module, name, planted(getattr(module, name))))
    return run(model)[0]


def with_angles(model, made):
    """Puts made(own, x, ids, ...) in the place of what makes cos and sin."""
    for module in rotary(model) or skip("no module makes its angles"):
        own = module.forward
        module.forward = lambda x, position_ids, *rest, _own=own, **more: made(_own, x, position_ids, *rest, **more)


def style(cos) -> str:
    """How cos lays out the numbers of pairs."""
    half = cos.shape[-1] // 2
    return "cat" if torch.equal(cos[..., :half], cos[..., half:]) else "repeat"


def pairs_of(cos):
    return cos[..., : cos.shape[-1] // 2] if style(cos) == "cat" else cos[..., ::2]


def pairing(model) -> str:
    """How the functions of a file pair channels, which is not always how cos is laid out."""
    return "cat" if plans(model)[0].pairing == "halves" else "repeat"


def in_style(pairs, of: str):
    return torch.cat((pairs, pairs), -1) if of == "cat" else pairs.repeat_interleave(2, -1)


OTHER = {"cat": "repeat", "repeat": "cat"}


def mixed(x, c, s, of: str, unsqueeze_dim=1):
    """x rotated by pairs in halves, or of neighbours."""
    c, s = (each.unsqueeze(unsqueeze_dim) for each in (in_style(c, of), in_style(s, of)))
    half = x.shape[-1] // 2
    if of == "cat":
        return x * c + torch.cat((-x[..., half:], x[..., :half]), -1) * s
    return x * c + torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2) * s


def unscaled(model) -> list:
    """The frequencies that its groups of layers would have without their scaling, of those that have one."""
    said = posenc.model(model)
    groups = [torch.tensor([pair[2:4] for pair in said.pairs(group=group)]) for group in range(said.group_count)]
    return [pairs[:, 1] for pairs in groups if len(pairs) and not torch.allclose(pairs[:, 0], pairs[:, 1], atol=0)]


def plans(model) -> list:
    said = posenc.model(model)
    made = [said.plan(group=group) for group in range(said.group_count)]
    return [plan for plan in made if plan.rotates]


def of_layers(model) -> list:
    said = posenc.model(model)
    return [said.plan(layer=layer) for layer in range(len(attention(model)))]


def usual(own, q, k, cos, sin):
    """That a function rotates whole tensors, as most do."""
    if not isinstance(cos, torch.Tensor) or cos.shape[-1] != q.shape[-1]:
        skip("its rotation is not of the usual form")


def handed(model, undo, made):
    """What is seen of a model that hands other queries to its attention than its layers rotated."""
    module = file_of(model)
    own = getattr(module, "eager_attention_forward", None) or skip("its attention is code of its own")
    rewritten(model, eager_attention_forward=lambda layer, q, *rest, **more: own(layer, made(q), *rest, **more))
    undo.enter_context(patch.object(module, "eager_attention_forward", own))
    with hf.capture(model, layers="all") as seen, torch.no_grad():
        rewritten(
            model,
            eager_attention_forward=lambda layer, q, *rest, **more: module.eager_attention_forward(
                layer, made(q) if of_layers(model)[layer.layer_idx].rotates else q, *rest, **more
            ),
            **{name: _late(module, name) for name in vars(module) if rotates(name) and name in named(model)},
        )
        model(prompt())
    return seen


def named(model):
    return inspect.unwrap(type(attention(model)[0]).forward).__code__.co_names


def _late(module, name):
    return lambda *args, **more: getattr(module, name)(*args, **more)


def masked(model, made):
    """Hands made(mask) to each layer's attention."""
    for layer in attention(model):
        layer.register_forward_pre_hook(
            lambda layer, args, kwargs: (args, {**kwargs, "attention_mask": made(kwargs)}), with_kwargs=True
        )


def mask_of(kwargs):
    mask = kwargs.get("attention_mask")
    return mask if isinstance(mask, torch.Tensor) and mask.dim() == 4 else skip("its layers are handed no mask")
