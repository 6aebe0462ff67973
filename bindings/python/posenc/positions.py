"""Where tokens stand: `posenc.positions.from_mask(attention_mask)` and its kin give what `position_ids=` takes."""

from ._posenc import Positions
from ._posenc import positions_from_mask as from_mask
from ._posenc import positions_grid as grid
from ._posenc import positions_ids as ids
from ._posenc import positions_packed as packed
from ._posenc import positions_patches as patches
from ._posenc import positions_range as range
from ._posenc import positions_signed_ids as signed_ids
from ._posenc import positions_vision as vision

__all__ = ["Positions", "from_mask", "grid", "ids", "packed", "patches", "range", "signed_ids", "vision"]
