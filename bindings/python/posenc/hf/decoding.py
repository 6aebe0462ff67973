"""Decoding a live model through posenc.KvCache, whose keys can follow a rotation that changes with the length of the text."""

from __future__ import annotations

from typing import Any

import torch

from .. import models
from .._posenc import KvCache
from .live import replace, rotary_modules, tower


class _Unrotated(torch.nn.Module):
    """A rotary module whose angles are 0: queries and keys reach the attention as they left their projections."""

    def __init__(self, own) -> None:
        super().__init__()
        self.own = own

    def forward(self, *args, **kwargs):
        made = self.own(*args, **kwargs)
        return (
            torch.ones_like(made)
            if isinstance(made, torch.Tensor)
            else (torch.ones_like(made[0]), torch.zeros_like(made[1]))
        )


class Decoder:
    """A model on the CPU with a posenc.KvCache for each layer, until close(). Call it with the next tokens [batch, tokens] of all
    sequences: it gives their logits, and remembers them. Keys are cached unrotated, so that under dynamic NTK or LongRoPE all of
    them rotate by the plan of the length that the text has by now, whereas transformers' own cache mixes keys of several bases.
    What earlier steps made of earlier tokens stays: a text computed anew from its beginning differs by that."""

    def __init__(self, model: Any) -> None:
        from transformers import AttentionInterface, AttentionMaskInterface
        from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

        model = models.bare(model)
        self.model, self.said, self.length = model, models.read(model), 0
        self._caches: dict[int, Any] = {}
        self._before = {name: each for name, each in rotary_modules(model).items() if not tower(name)}
        self._attention = model.config._attn_implementation
        for name, own in self._before.items():
            replace(model, name, _Unrotated(own))
        AttentionInterface.register("posenc_cache", self._attend)
        AttentionMaskInterface.register("posenc_cache", ALL_MASK_ATTENTION_FUNCTIONS["flash_attention_2"])
        model.set_attn_implementation("posenc_cache")

    def _attend(self, module, query, key, value, attention_mask, sliding_window=None, s_aux=None, **_):
        plan = self.said.plan(layer=module.layer_idx, length=self.length)
        if module.layer_idx not in self._caches:
            cache = KvCache(
                kv_heads=key.shape[1], head_dim=key.shape[3], value_dim=value.shape[3],
                dtype=str(key.dtype).removeprefix("torch."),
            )  # fmt: skip
            self._caches[module.layer_idx] = cache, [cache.add() for _ in range(len(key))]
        cache, sequences = self._caches[module.layer_idx]
        cache.append(sequences, key.detach(), value.detach(), plan)
        made = cache.attend(sequences, query.detach(), plan, window=sliding_window or 0, sink_logits=s_aux)
        return made.transpose(1, 2).contiguous(), None

    @torch.no_grad()
    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """The logits [batch, tokens, vocabulary] of the next tokens of each sequence."""
        first, self.length = self.length, self.length + ids.shape[1]
        at = torch.arange(first, self.length)[None]
        logits: torch.Tensor = self.model(ids, position_ids=at, use_cache=False).logits
        return logits

    def generate(self, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        """ids and the most likely tokens behind them."""
        text = ids
        for _ in range(max_new_tokens):
            ids = self(ids)[:, -1:].argmax(-1)
            text = torch.cat((text, ids), -1)
        return text

    def close(self) -> None:
        """Gives the model its own modules and attention back."""
        for name, own in self._before.items():
            replace(self.model, name, own)
        self._before = {}
        self.model.set_attn_implementation(self._attention)

    def __enter__(self) -> Decoder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def decode(model: torch.nn.Module) -> Decoder:
    """Decodes through posenc.KvCache: `with posenc.hf.decode(model) as decoder: text = decoder.generate(ids, 100)`."""
    return Decoder(model)
