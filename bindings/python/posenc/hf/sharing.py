"""A model of transformers over the ranks of torch.distributed: each has its own tokens of a text, and loss and gradients are those of
one process. posenc.distributed.context_parallel is what is here."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

from ..distributed import Layout, layout, whole_positions
from ..distributed_exchange import said_of_ranks
from ..distributed_torch import Ranks, attend
from ..errors import Error
from ..models import bare, explain, judge_layout, read
from .attention import attended
from .live import attention_modules

if TYPE_CHECKING:
    from ..distributed_torch import Strategy

_WHERE = "distributed.context_parallel"
_shared: weakref.WeakKeyDictionary[torch.nn.Module, SharedModel] = weakref.WeakKeyDictionary()
_bucket = 2**24  # gradients that are summed at once
_words = {
    "contiguous": "contiguous",
    "zigzag": "zigzag",
    "striped": "round_robin",
    "balanced": "balanced",
}  # of the judge


def _refuse(rule: str, value: str, cure: str) -> Error:
    return Error(f"{_WHERE}: {rule}, got {value}; {cure}", _WHERE, rule, value, cure)


class SharedModel:
    """A model whose attention sees the tokens of all ranks, and what its ranks do with a text.

    text = shared.share(input_ids, labels)      # this rank's part of the batch, for model(**text)
    loss = model(**text).loss                   # this rank's part of the loss
    loss.backward()
    shared.sum_gradients()                      # where no DDP or FSDP sums them
    whole = shared.sum(loss)                    # the loss of the text
    """

    layout: Layout | None
    """of the text that was shared last"""

    def __init__(self, model: Any, how: Strategy, group: Any, name: str) -> None:
        self._model, self._ranks, self._group, self._name = model, Ranks(how, group), group, name
        self._read = read(model)
        for each in explain(self._read).groups:
            if each.chunked:
                raise _refuse(
                    "layers must not see chunks", f"layers {each.layers}", "transformers tells chunks by a mask alone"
                )
        self._whole: Any = None
        self._keep: torch.Tensor | None = None
        self.layout = None
        words = f"{_words.get(name, 'zigzag')}:{self._ranks.ranks}:by={'ring' if 'ring' in how else 'gather'}"
        judged = judge_layout(self._read, words) if self._ranks.ranks > 1 else None
        for group_of_layers in judged.groups if judged is not None else ():
            if group_of_layers.verdict != "survives":
                reason = group_of_layers.reasons[0]
                raise _refuse(
                    "the model must survive the layout", f"{words}: {reason.why}", reason.cure or "take one rank"
                )

    def share(
        self,
        input_ids: torch.Tensor,
        labels: torch.Tensor | None = None,
        *,
        attention_mask: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        cu_seqlens: Sequence[int] | None = None,
        **more: torch.Tensor,
    ) -> dict[str, Any]:
        """The part of a batch that this rank has, as the model takes it: every tensor, whose last axis is that of the text's tokens,
        cut by the layout, and labels of the next token, which may be another rank's. All ranks give the same whole batch.

        position_ids: by default counted from 0, in each of packed texts (cu_seqlens, a batch of 1) anew; [axes, batch, tokens] of
        M-RoPE are given. attention_mask [batch, tokens] hides padding. more: tensors of tokens for the model. The loss that the model
        gives is a part of the mean over all tokens: `sum` makes the whole of it."""
        tokens, rank = input_ids.shape[-1], self._ranks.rank
        bounds = tokens if cu_seqlens is None else [int(each) for each in cu_seqlens]
        self._whole = whole_positions(bounds)
        if len(self._whole) != tokens:
            raise _refuse(
                "cu_seqlens must end with the number of tokens", f"{len(self._whole)} of {tokens}", "give all bounds"
            )
        self.layout = layout(self._name, bounds, self._ranks.ranks)
        if position_ids is None:
            position_ids = torch.from_numpy(self._whole.numpy()).expand(len(input_ids), -1)
        self._check_lengths(position_ids)
        given = dict(more, input_ids=input_ids, position_ids=position_ids)
        if attention_mask is not None:
            given["attention_mask"] = attention_mask
        if labels is not None:
            following = torch.nn.functional.pad(labels, (0, 1), value=-100)[..., 1:]
            given["labels"] = given["shift_labels"] = following
        own = torch.from_numpy(self.layout.indices(rank))
        for name, each in given.items():
            if each.shape[-1] != tokens:
                raise _refuse(
                    "tensors must have the text's tokens last", f"{name} {tuple(each.shape)}", "cut it yourself"
                )
        part = {name: each[..., own.to(each.device)].contiguous() for name, each in given.items()}
        self._keep = part.get("attention_mask")
        if labels is not None:
            part["num_items_in_batch"] = (following != -100).sum()
        return part

    def _check_lengths(self, position_ids: torch.Tensor) -> None:
        """A rotary module that compiles for the length of its own ids must find the same on each rank."""
        assert self.layout is not None
        length = int(position_ids.max()) + 1
        for group in range(self._read.group_count):
            plan = self._read.plan(group=group, length=length)
            if not plan.rotates or plan.valid is None:
                continue
            for rank in range(self._ranks.ranks):
                ids = position_ids[..., torch.from_numpy(self.layout.indices(rank))]
                own = int(ids.max()) + 1 if ids.numel() else length
                if own < plan.valid[0]:
                    raise _refuse(
                        "the model's rotation must not depend on a rank's own length",
                        f"{own} tokens on rank {rank} of a text of {length}, which rotates otherwise",
                        "fix the scaling for the whole text's length in the configuration (YaRN, or a larger rope_theta)",
                    )

    def attend(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, keep: Any = None, **how: Any
    ) -> torch.Tensor:
        """posenc.distributed.attend of queries and keys that the model has rotated."""
        if self.layout is None:
            raise _refuse(
                "a text must be shared first", "a call of the model", "call share, and the model with what it gives"
            )
        return attend(
            q, k, v, self.layout, how=self._ranks.how, group=self._group, whole=self._whole, keep=self._keep, **how
        )  # fmt: skip

    def sum(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of what all ranks have, without a gradient: of their losses that of the text."""
        total = x.detach().clone()
        with said_of_ranks(_WHERE):
            for each in self._ranks.groups:
                dist.all_reduce(total, group=each)
        return total

    def sum_gradients(self) -> None:
        """Sums the gradients of the model's parameters over the ranks. DDP and FSDP average them instead: there multiply the loss by
        the number of ranks."""
        bucket: list[torch.Tensor] = []
        parameters = [each for each in self._model.parameters() if each.requires_grad]
        for parameter, following in zip(parameters, [*parameters[1:], None], strict=True):
            if parameter.grad is None:  # no token of this rank came by: an expert, say
                parameter.grad = torch.zeros_like(parameter)
            bucket.append(parameter.grad)
            full = sum(each.numel() for each in bucket) > _bucket
            if following is None or full or following.dtype != parameter.dtype or following.device != parameter.device:
                summed = self.sum(torch.cat([each.flatten() for each in bucket]))
                for each, total in zip(bucket, summed.split([each.numel() for each in bucket]), strict=True):
                    each.copy_(total.view_as(each))
                bucket = []


def _of_ranks(module, query, key, value, attention_mask, **how):
    shared = _shared.get(module)
    if shared is None:
        raise _refuse("attention must be that of the text", type(module).__name__, "run a tower of pictures beside it")
    if attention_mask is not None and attention_mask.dim() != 2:
        raise _refuse(
            "a layer must see all keys that causality and its window show", "a mask of its own", "take one rank"
        )
    return attended(shared.attend, module, query, key, value, None, **how)


@contextmanager
def context_parallel(
    model: Any, *, how: Strategy = "ring", group: Any = None, layout: str = "zigzag"
) -> Iterator[SharedModel]:
    """A model of transformers on CPU whose attention sees the tokens of all ranks while the context lasts; gradients flow.

        with posenc.distributed.context_parallel(model, how="ring") as shared:
            text = shared.share(input_ids, labels)
            model(**text).loss.backward()
            shared.sum_gradients()

    how and group as posenc.distributed.attend has them; layout by name. The model rotates by the ids of the whole text, which `share`
    gives it. Refused are layers that a layout breaks (`posenc.judge_layout`), masks of a layer's own, dropout and softcaps, and rotations
    that a rank would compile for its own length (dynamic NTK, LongRoPE). Auxiliary losses of experts are those of a rank's own tokens."""
    from transformers import AttentionInterface

    model = bare(model)
    shared = SharedModel(model, how, group, layout)
    before = model.config._attn_implementation
    AttentionInterface.register("posenc_ranks", _of_ranks)
    modules = list(attention_modules(model).values())
    for each in modules:
        _shared[each] = shared
    model.set_attn_implementation("posenc_ranks")
    try:
        yield shared
    finally:
        model.set_attn_implementation(before)
        for each in modules:
            _shared.pop(each, None)
