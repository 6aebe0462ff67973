"""Rotation on NVIDIA's devices for posenc.torch and posenc.jax, which say a tensor by its address: nothing here knows PyTorch or JAX.

Importing it needs no driver. Where there is no device the first `rotations` raises posenc.Error; backend="emulated" computes the
same bits on the host, slowly, for tests.
"""

from ._posenc_cuda import Positions, Rotations, Tensor, has_device_code, rotations, xla_targets
from ._posenc_cuda import __version__ as __version__

__all__ = ["Positions", "Rotations", "Tensor", "has_device_code", "rotations", "xla_targets"]
