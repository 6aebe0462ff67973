"""Where tokens stand: `posenc.positions.from_mask(attention_mask)` and its kin give what `position_ids=` takes."""

from ._posenc import Positions
from ._posenc import positions_from_mask as from_mask
from ._posenc import positions_ids as ids
from ._posenc import positions_packed as packed
from ._posenc import positions_patches as patches
from ._posenc import positions_range as range
from ._posenc import positions_vision as vision

__all__ = ["Positions", "from_mask", "ids", "packed", "patches", "range", "vision"]
