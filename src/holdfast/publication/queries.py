"""Which sum of a published table is asked about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.tables import Universe

Ints = NDArray[np.int64]
Query = int | Mapping[str, Any] | Any
"""A cell's number; codes, such as {"state": "17"} or {"state": ["17", "18"]}, for the sum of all cells with them; or whole numbers, one for
each cell."""


def coefficients(query: Query, universe: Universe) -> Ints:
    """The query as one whole number for each cell."""
    cells = len(universe)
    if isinstance(query, Mapping):
        return _with_codes(query, universe)
    if isinstance(query, int | np.integer) and not isinstance(query, bool):
        if not 0 <= query < cells:
            raise InvalidParameter(f"The table has the cells 0 to {cells - 1}. Got {query}.")
        out = np.zeros(cells, dtype=np.int64)
        out[query] = 1
        return out
    found = np.asarray(query)
    if found.dtype.kind not in "iu" or found.shape != (cells,):
        raise InvalidParameter(
            f"A query is a cell's number, codes such as {{{universe.columns[0]!r}: ...}}, or {cells} whole numbers, one for each cell."
        )
    return found.astype(np.int64)


def _with_codes(query: Mapping[str, Any], universe: Universe) -> Ints:
    inside = np.ones(len(universe), dtype=np.bool_)
    for column, wanted in query.items():
        if column not in universe.columns:
            raise InvalidParameter(f"The table has the columns {', '.join(universe.columns)}. Got {column!r}.")
        codes = universe.codes[column]
        asked = [wanted] if isinstance(wanted, str) else list(wanted)
        unknown = [code for code in asked if code not in codes]
        if unknown:
            raise InvalidParameter(f"{unknown[0]!r} is no code of the column {column!r}.")
        inside &= np.isin(universe.code_indices(column), [codes.index(code) for code in asked])
    if not inside.any():
        raise InvalidParameter("No cell has these codes.")
    return inside.astype(np.int64)
