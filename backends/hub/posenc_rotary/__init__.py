"""Rotary position embedding for transformers, in Triton: whole heads and parts of them, halves and neighbours, with gradients.

    from kernels import get_local_kernel
    kernel = get_local_kernel(Path("dist/hub"))
    q, k = kernel.apply_rotary_transformers(q, k, cos, sin)

q, k [batch, head, seq, head_dim] (or [batch, seq, head, head_dim] with unsqueeze_dim=2), k None or of fewer heads; cos, sin
[batch or 1, seq, rotary_dim] as transformers' rotary modules give them, each pair's twice. Channels from rotary_dim on stay as
they are (partial rotation). Products are formed in float32 and rounded once.
"""

import torch

from . import layers
from .kernel import INTERPRETED, launch

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


def _check(q, k, cos, sin, unsqueeze_dim: int):
    """Refuses what the kernel, which checks nothing, would read or write beyond."""

    def refuse(rule, got):
        raise ValueError(f"posenc_rotary: {rule}, got {got}")

    if unsqueeze_dim not in (1, 2):
        refuse("unsqueeze_dim must be 1 or 2", unsqueeze_dim)
    if q.device.type == "cpu" and not INTERPRETED:
        refuse(
            "tensors must lie on a device that Triton compiles for (or TRITON_INTERPRET=1 before triton is imported)",
            q.device,
        )
    for x in (q, *([] if k is None else [k])):
        if x.dim() != 4 or x.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            refuse("q and k must be of four axes, float32, float16 or bfloat16", f"{x.dtype} {list(x.shape)}")
        if (x.dtype, x.device) != (q.dtype, q.device):
            refuse("q and k must be alike", f"{x.dtype} on {x.device}")
    batch, count, head_dim = q.shape[0], q.shape[3 - unsqueeze_dim], q.shape[3]
    if k is not None and (k.shape[0], k.shape[3 - unsqueeze_dim], k.shape[3]) != (batch, count, head_dim):
        refuse("k must have the tokens and channels of q", list(k.shape))
    fits = cos.dim() == 3 and cos.shape[0] in (1, batch) and cos.shape[1] == count
    if not fits or cos.shape != sin.shape or cos.shape[2] % 2 != 0 or not 0 < cos.shape[2] <= head_dim:
        refuse(f"cos and sin must be [{batch} or 1, {count}, rotary_dim of {head_dim} at most]", list(cos.shape))
    if not cos.device == sin.device == q.device or not cos.is_floating_point() or cos.dtype != sin.dtype:
        refuse(f"cos and sin must be floats on {q.device}", f"{cos.dtype} on {cos.device}")
    if torch.is_grad_enabled() and (cos.requires_grad or sin.requires_grad):
        refuse("cos and sin must need no gradient", "some that do")


def _apply(q, k, cos, sin, unsqueeze_dim: int, interleaved: bool):
    _check(q, k, cos, sin, unsqueeze_dim)
    made = _operator([q] if k is None else [q, k], cos, sin, unsqueeze_dim, interleaved, False)
    return made[0], None if k is None else made[1]


def apply_rotary_transformers(q, k, cos, sin, unsqueeze_dim: int = 1):
    """Pairs are channels r and r + rotary_dim / 2 (Llama, Qwen, GPT-NeoX)."""
    return _apply(q, k, cos, sin, unsqueeze_dim, False)


def apply_rotary_interleaved_transformers(q, k, cos, sin, unsqueeze_dim: int = 1):
    """Pairs are channels 2r and 2r + 1, and the first half of cos and sin is theirs (GLM, Cohere)."""
    return _apply(q, k, cos, sin, unsqueeze_dim, True)
