"""Bounds of cells: read from Python, from run files and from cards."""

from __future__ import annotations

import json
import numbers
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from holdfast.channels import Facts
from holdfast.errors import InexactParameter, InvalidParameter
from holdfast.lattices.shapes.shape import UNBOUNDED, Ints

LARGEST = 2**62
"""Bounds are smaller than this in size: so are counts."""

Bounds: TypeAlias = int | tuple[int | None, ...] | None
"""One for all cells, or one for each in the table's order; None: there is none."""


def read_bounds(given: Any, name: str) -> Bounds:
    """Bounds as they are given in Python: whole numbers or None, one or a list."""
    if given is None or isinstance(given, numbers.Integral | float):
        return _one(given, name)
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        return tuple(_one(value, name) for value in (given.tolist() if isinstance(given, np.ndarray) else given))
    raise InvalidParameter(
        f"{name} is a whole number for all cells, a list with one for each cell, or None. Got {type(given).__name__}.", field=name
    )


def _one(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, float):
        raise InexactParameter(f"{name} must be a whole number, because published counts are. Got a number with a fraction.", field=name)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidParameter(f"{name} must be a whole number or None. Got {type(value).__name__}.", field=name)
    if abs(int(value)) >= LARGEST:
        raise InvalidParameter(f"{name} must lie between -2^62 and 2^62.", field=name)
    return int(value)


def bounds_text(bounds: Bounds) -> str:
    """For cards; `bounds_of` reads it back."""
    return json.dumps(bounds)


def of_cells(facts: Facts, bounds: Bounds, name: str) -> Ints:
    """One bound for each cell of the table; UNBOUNDED, with the sign of the side, where there is none."""
    none = -UNBOUNDED if name == "lower" else UNBOUNDED
    cells = facts.lattice.cells
    if not isinstance(bounds, tuple):
        return np.full(cells, none if bounds is None else bounds, dtype=np.int64)
    if len(bounds) != cells:
        raise InvalidParameter(f"{name} has {len(bounds)} bounds, and the table has {cells} cells. Give one for each cell.", field=name)
    return np.array([none if bound is None else bound for bound in bounds], dtype=np.int64)
