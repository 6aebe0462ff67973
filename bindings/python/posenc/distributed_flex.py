"""Blocks of keys met by torch's FlexAttention, on any device: what posenc.distributed.attend does where posenc's kernels, which are of
the CPU, do not reach. What is sent, when, and how parts merge is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._posenc import Plan
from .distributed_tokens import Tokens
from .flex import score_mod
from .torch_rotation import rotate


def _seen(mask: dict[str, Any], own: Tokens, of: Tokens, keep: torch.Tensor | None, device: torch.device) -> Any:
    """Which keys a query sees, as FlexAttention's mask_mod; None where it sees all. keep: [batch, keys]."""
    causal = mask.get("causal", True)
    window, chunk, prefix = (mask.get(name, 0) for name in ("window", "chunk", "prefix"))
    q_at, k_at = own.order(device), of.order(device)
    texts = (own.texts(device), of.texts(device)) if own.packed or of.packed else None
    if not (causal or window or chunk or texts or keep is not None):
        return None

    def seen(batch: Any, head: Any, q_idx: Any, kv_idx: Any) -> Any:
        query, key = q_at[batch % len(q_at), q_idx], k_at[batch % len(k_at), kv_idx]
        near = query >= key if causal else query == query
        if chunk:
            near = near & (query.div(chunk, rounding_mode="floor") == key.div(chunk, rounding_mode="floor"))
        if window:
            near = near & (query - key < window) & (key - query < window)
        if prefix:
            near = near | ((key >= 0) & (key < prefix))
        if texts is not None:
            near = near & (texts[0][q_idx] == texts[1][kv_idx])
        return near if keep is None else near & (keep[batch, kv_idx] != 0)

    return seen


class FlexBlocks:
    """A rank's queries beside one block of keys after the other. compiled: FlexAttention by torch.compile, as it is meant to run."""

    def __init__(self, plan: Plan | None, own: Tokens, length: int, mask: dict[str, Any], compiled: bool) -> None:
        self.plan, self.own, self.length, self.mask, self.compiled = plan, own, length, mask, compiled
        self.masks: dict[int, Any] = {}  # backward meets the blocks of forward again

    def _run(self, of: Tokens, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block_mask: Any) -> Any:
        from torch.nn.attention.flex_attention import flex_attention as flex

        plan, modified = self.plan, None
        if plan is not None:
            plan.check("posenc.flex.flex_attention")
            places = self.own.order(q.device).clamp(min=0), of.order(q.device).clamp(min=0)
            modified = score_mod(plan, q.shape[1], self.length, q.device, q=q, k=k, places=places)
            if plan.rotates:
                q, k = rotate(plan, q, self.own.ids(q.device)), rotate(plan, k, of.ids(q.device))
        run: Callable[..., Any] = torch.compile(flex) if self.compiled else flex
        grouped = k.shape[1] != q.shape[1]
        return run(q, k, v, score_mod=modified, block_mask=block_mask, enable_gqa=grouped, return_lse=True)

    def _mask(self, at: int, of: Tokens, q: torch.Tensor, k: torch.Tensor, keep: torch.Tensor | None) -> Any:
        from torch.nn.attention.flex_attention import create_block_mask

        if at not in self.masks:
            seen = _seen(self.mask, self.own, of, keep, q.device)
            several = len(self.own.order(q.device)) > 1 or len(of.order(q.device)) > 1 or keep is not None
            self.masks[at] = seen and create_block_mask(
                seen, q.shape[0] if several else None, None, q.shape[2], k.shape[2], device=q.device
            )
        return self.masks[at]

    def forward(self, at: int, of: Tokens, q: Any, k: Any, v: Any, keep: torch.Tensor | None) -> Any:
        """What the queries take from the block of rank `at`, whose tokens are `of`, and the logarithms of the sums of its weights."""
        with torch.no_grad():
            out, sums = self._run(of, q, k, v, self._mask(at, of, q, k, keep))
        return out, sums.double()

    def backward(
        self, at: int, of: Tokens, q: Any, k: Any, v: Any, keep: Any, gradient: Any, sums: Any, dots: Any
    ) -> Any:
        """Gradients by q, k and v of that part of attention: by those of its output and of the logarithm of its sums."""
        q, k, v = (each.detach().requires_grad_() for each in (q, k, v))
        with torch.enable_grad():
            out, own_sums = self._run(of, q, k, v, self._mask(at, of, q, k, keep))
            share = torch.where(own_sums.detach() == -torch.inf, 0.0, torch.exp(own_sums.detach() - sums))
            by_out = (share.unsqueeze(-1) * gradient).to(out.dtype)
            by_sums = share * ((gradient * out.detach()).sum(-1) - dots)
            return torch.autograd.grad((out, own_sums), (q, k, v), (by_out, by_sums.to(own_sums.dtype)))
