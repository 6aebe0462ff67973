"""Tokens that a rank holds of a text that is shared out: where they stand, for kernels and for tensors of any device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from ._posenc import Layout, Positions
from .positions import range as _range

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Tokens:
    """Some tokens of a text, in the order in which a rank holds them."""

    at: Positions
    places: np.ndarray | range  # in the text, counted from 0

    @staticmethod
    def of_rank(shares: Layout, rank: int, whole: Positions) -> Tokens:
        """Those of one rank."""
        return Tokens(shares.positions(rank, whole), shares.indices(rank))

    @staticmethod
    def of_all(shares: Layout, whole: Positions) -> Tokens:
        """Those of all ranks, in the order of the text."""
        return Tokens(whole, range(shares.tokens))

    @staticmethod
    def none() -> Tokens:
        """No tokens."""
        return Tokens(_range(0, 0), range(0))

    def ids(self, device: torch.device) -> torch.Tensor:
        """int64 [batch or 1, tokens], or [axis, batch or 1, tokens]."""
        return torch.from_numpy(self.at.numpy()).to(device)

    def order(self, device: torch.device) -> torch.Tensor:
        """What masks and distances compare, int64 [batch or 1, tokens]: positions, or the order of the text where there are several
        axes."""
        if self.at.axes == 1:
            return self.ids(device)
        return torch.as_tensor(self.places, dtype=torch.int64)[None].to(device)

    def texts(self, device: torch.device) -> torch.Tensor:
        """Which of packed texts each token is of, int64 [tokens]."""
        return torch.tensor(self.at.segments, dtype=torch.int64, device=device)

    @property
    def packed(self) -> bool:
        """Whether there are several texts."""
        return any(self.at.segments)
