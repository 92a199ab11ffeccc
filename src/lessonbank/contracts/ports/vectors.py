"""The type of a vector, so that the contracts load no numpy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    """Unit rows, shape (n, dimensions), or one row (dimensions,)."""
else:
    Vectors: TypeAlias = Any
