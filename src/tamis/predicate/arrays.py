"""What kinds of numpy arrays there are, by the names that signatures use."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy import typing as npt

__all__ = ["SIGN_BIT", "Int64s", "Mask", "UInt32s", "UInt64s"]

Mask = npt.NDArray[np.bool_]
"""A truth value for each file, row or value."""
Int64s = npt.NDArray[np.int64]
"""Counts, keys, or places in another array."""
UInt32s = npt.NDArray[np.uint32]
UInt64s = npt.NDArray[np.uint64]

SIGN_BIT: Final = np.uint64(1 << 63)
"""Of a 64-bit word: turned round, signed numbers sort as unsigned ones do."""
