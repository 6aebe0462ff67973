"""The types that the package's signatures name.

def mine(m: posenc.types.ModelSource, ids: posenc.types.PositionIds) -> posenc.Plan: ...
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

from ._posenc import Model, Positions

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer = Any  # collections.abc has it from Python 3.12 on

__all__ = [
    "Array", "ArrayLike", "Configuration", "Configured", "ModelSource", "PositionIds", "Side", "Tensor",
]  # fmt: skip


class Exporter(Protocol):
    """An array of numpy, PyTorch, JAX, MLX or CuPy: what speaks DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...


class TensorLike(Protocol):
    """A tensor of PyTorch, by a method that nobody else has."""

    def new_empty(self, *size: Any, **how: Any) -> Any: ...


class Configuration(Protocol):
    """A configuration of transformers."""

    def to_dict(self) -> dict[str, Any]: ...


class Configured(Protocol):
    """A module that has one."""

    @property
    def config(self) -> Any: ...


ArrayLike: TypeAlias = Exporter | Buffer
"""What functions read: an array of any library, or a buffer of floats."""
Array = TypeVar("Array", bound=Exporter | Buffer)
"""What they give back: an array of the same library."""
Tensor = TypeVar("Tensor", bound=TensorLike)
PositionIds: TypeAlias = int | range | Positions | Exporter | Buffer | Sequence[Any]
"""A number (from there on), a range, ids [seq], [batch, seq] or [axes, batch, seq], or what posenc.positions makes."""
Side: TypeAlias = Literal["query", "key", "value"]
ModelSource: TypeAlias = (
    Model | str | os.PathLike[str] | bytes | bytearray | memoryview | dict[str, Any] | Configuration | Configured
)
"""What posenc.model takes."""
