"""The same as layers, which `kernels` puts in place of a model's function."""

import torch


class apply_rotary_transformers(torch.nn.Module):
    can_torch_compile = True
    has_backward = True

    def forward(self, q, k, cos, sin, unsqueeze_dim: int = 1):
        from . import apply_rotary_transformers as apply

        return apply(q, k, cos, sin, unsqueeze_dim)


class apply_rotary_interleaved_transformers(torch.nn.Module):
    can_torch_compile = True
    has_backward = True

    def forward(self, q, k, cos, sin, unsqueeze_dim: int = 1):
        from . import apply_rotary_interleaved_transformers as apply

        return apply(q, k, cos, sin, unsqueeze_dim)
