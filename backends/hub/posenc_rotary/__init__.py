"""Rotary position embedding for transformers, in Triton: whole heads and parts of them, halves and neighbours, with gradients.

    from kernels import get_local_kernel
    kernel = get_local_kernel(Path("dist/hub"))
    q, k = kernel.apply_rotary_transformers(q, k, cos, sin)

q, k [batch, head, seq, head_dim] (or [batch, seq, head, head_dim] with unsqueeze_dim=2), k None or of fewer heads; cos, sin
[batch or 1, seq, rotary_dim] as transformers' rotary modules give them, pairs once or twice. Channels from rotary_dim on stay as
they are (partial rotation). Products are formed in float32 and rounded once.
"""

import torch

from . import layers
from .kernel import launch

__all__ = ["apply_rotary_interleaved_transformers", "apply_rotary_transformers", "layers"]


def _turned(x, cos, sin, unsqueeze_dim: int, interleaved: bool, transposed: bool):
    outs = [torch.empty_like(each) for each in x]
    axes = [0, 1, 2, 3] if unsqueeze_dim == 1 else [0, 2, 1, 3]
    batch, count = x[0].shape[axes[0]], x[0].shape[axes[2]]
    cos, sin = (each.expand(batch, -1, -1) for each in (cos, sin))
    if cos.stride(-1) != 1 or cos.stride() != sin.stride():
        cos, sin = cos.contiguous(), sin.contiguous()
    table = (cos, sin, (cos.stride(0), cos.stride(1)))
    launch(
        x, outs, axes, (batch, count), "cos_sin", table, (None, None, None, 0, 0), pairs=cos.shape[-1] // 2,
        interleaved=interleaved, transposed=transposed,
    )  # fmt: skip
    return outs


_operator = torch.library.custom_op(
    "posenc_rotary::turned",
    _turned,
    mutates_args=(),
    schema="(Tensor[] x, Tensor cos, Tensor sin, int unsqueeze_dim, bool interleaved, bool transposed) -> Tensor[]",
)
_operator.register_fake(lambda x, *rest: [torch.empty_like(each) for each in x])


def _saved(ctx, inputs, output):
    _, cos, sin, *ctx.how, ctx.transposed = inputs
    ctx.save_for_backward(cos, sin)


def _backward(ctx, gradients):
    cos, sin = ctx.saved_tensors
    back = _operator([each.contiguous() for each in gradients], cos, sin, *ctx.how, not ctx.transposed)
    return (back, *[None] * 5)


_operator.register_autograd(_backward, setup_context=_saved)


def _apply(q, k, cos, sin, unsqueeze_dim: int, interleaved: bool):
    if unsqueeze_dim not in (1, 2) or cos.shape != sin.shape or cos.dim() != 3 or cos.shape[-1] > q.shape[-1]:
        raise ValueError(
            "posenc_rotary: cos and sin must be [batch or 1, seq, rotary_dim of a head at most] and unsqueeze_dim 1 or 2, "
            f"got {list(cos.shape)}, {list(sin.shape)} and {unsqueeze_dim}"
        )
    made = _operator([q] if k is None else [q, k], cos, sin, unsqueeze_dim, interleaved, False)
    return made[0], None if k is None else made[1]


def apply_rotary_transformers(q, k, cos, sin, unsqueeze_dim: int = 1):
    """Pairs are channels r and r + rotary_dim / 2 (Llama, Qwen, GPT-NeoX)."""
    return _apply(q, k, cos, sin, unsqueeze_dim, False)


def apply_rotary_interleaved_transformers(q, k, cos, sin, unsqueeze_dim: int = 1):
    """Pairs are channels 2r and 2r + 1, and the first half of cos and sin is theirs (GLM, Cohere)."""
    return _apply(q, k, cos, sin, unsqueeze_dim, True)
