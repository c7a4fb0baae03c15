"""Checks of what callers pass to streams."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.randomness.labels import MAX_LANE


def check_count(count: int) -> int:
    """A number of words: an int >= 0."""
    if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
        raise InvalidParameter(f"A number of words is an int of at least 0; found {count!r}. Pass how many 32-bit words are wanted.")
    return int(count)


def check_depth(depth: int) -> int:
    """A depth of extra bits: an int from 0 to 2^32 - 2."""
    if not isinstance(depth, (int, np.integer)) or isinstance(depth, bool) or not 0 <= depth < MAX_LANE:
        raise InvalidParameter(f"A depth is an int from 0 to 2^32 - 2; found {depth!r}. Ask for depth 0 first, then 1, 2, ...")
    return int(depth)


def check_indices(indices: NDArray[Any]) -> NDArray[np.uint64]:
    """Integers >= 0 on one axis, as uint64. An empty list is allowed whatever its type."""
    array = np.asarray(indices)
    if array.ndim != 1 or (array.dtype.kind not in "ui" and array.size):
        raise InvalidParameter(
            f"Indices are integers on one axis; found {describe(array)}. Pass for example np.array([0, 5], dtype=np.uint64)."
        )
    if array.dtype.kind == "i" and array.size and int(array.min()) < 0:
        raise InvalidParameter(f"Indices count from 0; found {int(array.min())}. Pass the index of a word already taken.")
    return np.ascontiguousarray(array, dtype=np.uint64)


def check_out(out: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """A writable contiguous uint32 array on one axis."""
    is_array = isinstance(out, np.ndarray) and out.dtype == np.uint32 and out.ndim == 1
    if not is_array or not out.flags.c_contiguous or not out.flags.writeable:
        raise InvalidParameter(
            f"Words are written into a writable contiguous uint32 array with 1 axis; found {describe(out)}. Make one with np.empty."
        )
    return out


def describe(value: object) -> str:
    """Type, shape and layout of a value, never its content."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    notes = ("" if value.flags.c_contiguous else ", not contiguous") + ("" if value.flags.writeable else ", read-only")
    return f"an array of {value.dtype} with shape {value.shape}{notes}"
