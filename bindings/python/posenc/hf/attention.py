"""posenc's attention as an implementation that transformers' models can be switched to."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..errors import Error
from ..models import bare
from ..torch import attention


def attended(
    by,
    module,
    query,
    key,
    value,
    attention_mask,
    scaling=None,
    dropout=0.0,
    sliding_window=None,
    softcap=None,
    s_aux=None,
    **_,
):
    """What `by` attends, posenc.torch.attention or its like: query [batch, heads, queries, head_dim], rotated by the model already;
    attention_mask [batch, keys], zero where padding is."""
    if softcap or dropout:
        rule = "attention must have neither softcap nor dropout"
        raise Error(f"posenc.hf.use_attention: {rule}; keep the model's own", "posenc.hf.use_attention", rule)
    if scaling is not None and not math.isclose(scaling, query.shape[-1] ** -0.5):
        query = query * (scaling * query.shape[-1] ** 0.5)
    keep = None if attention_mask is None else attention_mask[:, : key.shape[2]].to(torch.uint8).contiguous()
    made = by(
        query, key, value,
        causal=getattr(module, "is_causal", True), window=sliding_window or 0, keep=keep, sink_logits=s_aux,
    )  # fmt: skip
    return made.transpose(1, 2).contiguous(), None


def _attend(*module_and_tensors, **how):
    return attended(attention, *module_and_tensors, **how)


def use_attention(model: Any) -> None:
    """Switches a model on the CPU to posenc's attention; model.set_attn_implementation("sdpa") switches back. Padding is told by
    the mask that the model is called with; gradients flow."""
    model = bare(model)
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

    AttentionInterface.register("posenc", _attend)
    AttentionMaskInterface.register("posenc", ALL_MASK_ATTENTION_FUNCTIONS["flash_attention_2"])
    model.set_attn_implementation("posenc")
