"""Which sum of a published table is asked about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import nearest, nearest_code, shorten
from holdfast.errors import InvalidConstraint, InvalidParameter, RequestTooLarge
from holdfast.invariants.conditions import cells_meeting
from holdfast.invariants.levels import groupings, named_levels, unit_of
from holdfast.tables import Universe

Ints = NDArray[np.int64]
Query = int | str | Mapping[str, str | Iterable[str]] | Any
"""A cell's number; codes of columns or of levels of hierarchies, such as {"state": "17"} or {"state": ["17", "18"]}, for the sum of all
cells with them; a condition such as "age >= 18 and sex = 'F'", for the sum of all cells that meet it; or whole numbers, one for each
cell."""
LARGEST_COEFFICIENT = 2**24
LEVEL = 0.95
"""Default level of an interval."""


def coefficients(query: Query, universe: Universe) -> Ints:
    """The query as one whole number for each cell."""
    cells = len(universe)
    if isinstance(query, Mapping):
        return _with_codes(query, universe)
    if isinstance(query, str):
        return _meeting(query, universe)
    if isinstance(query, int | np.integer) and not isinstance(query, bool):
        if not 0 <= query < cells:
            raise InvalidParameter(f"The table has the cells 0 to {cells - 1}. Got {query}.")
        out = np.zeros(cells, dtype=np.int64)
        out[query] = 1
        return out
    try:
        found = np.asarray(query)
    except ValueError:  # rows of different lengths
        found = np.zeros(0)
    if found.dtype.kind not in "iu" or found.shape != (cells,):
        raise InvalidParameter(
            f"A query is a cell's number, codes such as {{{universe.columns[0]!r}: ...}}, a condition on codes, or {cells} whole numbers, "
            "one for each cell."
        )
    if not found.any():
        raise InvalidParameter("All coefficients of this query are 0: it asks about no cell.")
    if max(int(found.max()), -int(found.min())) > LARGEST_COEFFICIENT:  # before 64 bits could wrap
        raise RequestTooLarge(f"Coefficients of a query are {LARGEST_COEFFICIENT:,} at most in size.")
    return found.astype(np.int64)


def _meeting(condition: str, universe: Universe) -> Ints:
    try:
        inside = cells_meeting(condition, universe, quoted_codes=True)
    except InvalidConstraint as error:  # what is asked is wrong, and no kept total
        raise InvalidParameter(str(error), field="query") from None
    if not inside.any():
        raise InvalidParameter(f"No cell meets the condition {shorten(condition)!r}.")
    return inside.astype(np.int64)


def _with_codes(query: Mapping[str, str | Iterable[str]], universe: Universe) -> Ints:
    inside = np.ones(len(universe), dtype=np.bool_)
    for column, wanted in query.items():
        codes, of_cell = _codes_of(column, universe)
        asked = list(wanted) if isinstance(wanted, Iterable) and not isinstance(wanted, str) else [wanted]
        for code in asked:
            if not isinstance(code, str):
                first = shorten(next(iter(codes)))
                raise InvalidParameter(f"Codes of {column!r} are texts, in quotes, such as {first!r}. Got {shorten(repr(code))}.")
        unknown = [code for code in asked if code not in codes]
        if unknown:
            if label := universe.labels.taken_for_code(column, unknown[0], codes):
                raise InvalidParameter(f"{label}. Write the code.")
            near = nearest_code(unknown[0], codes)
            raise InvalidParameter(f"{shorten(unknown[0])!r} is not a code of the column {column!r}. {near}")
        inside &= np.isin(of_cell, [codes[code] for code in asked])
    if not inside.any():
        raise InvalidParameter("No cell has these codes.")
    return inside.astype(np.int64)


def _codes_of(name: str, universe: Universe) -> tuple[Mapping[str, int], Ints]:
    """(the number of each code, the number of each cell) of a column, or of a level of a hierarchy."""
    if name in universe.columns:
        return universe.codes.places(name), universe.code_indices(name).astype(np.int64)
    try:
        (level,) = groupings(universe, [str(name)], "query")
    except InvalidConstraint as error:
        levels = [level for tree in universe.hierarchies.values() for level in named_levels(tree)]
        near = nearest(str(name), [*universe.columns, *levels], "{!r}")
        raise InvalidParameter(f"There is no column {name!r}. {near}The table has the columns {', '.join(universe.columns)}.") from error
    return {unit: number for number, (unit, _) in enumerate(level.units)}, unit_of(universe, level)


def margin_cells(names: Sequence[str], universe: Universe) -> tuple[Ints, dict[str, tuple[str, ...]]]:
    """(the number of the sum that each cell goes into; by name the code of each sum) of the margin by columns or levels of hierarchies."""
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameter("A margin has one column or more, each by its name, such as by=['state', 'sex'].", field="by")
    number = np.zeros(len(universe), dtype=np.int64)
    codes: dict[str, tuple[str, ...]] = {}
    for name in names:
        places, of_cell = _codes_of(name, universe)
        written = list(places)
        present, number = np.unique(number * len(written) + of_cell, return_inverse=True)
        above, own = np.divmod(present, len(written))
        codes = {known: tuple(row[k] for k in above.tolist()) for known, row in codes.items()}
        codes[name] = tuple(written[k] for k in own.tolist())
    return number.astype(np.int64), codes
