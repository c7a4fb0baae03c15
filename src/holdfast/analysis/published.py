"""What a reader has: the published counts and the public law they were drawn from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter
from holdfast.laws import Reads
from holdfast.publication.plan import Plan
from holdfast.publication.release import Release
from holdfast.publication.verify import read_verified
from holdfast.tables import Universe

Ints = NDArray[np.int64]
Query = int | Mapping[str, Any] | Any
"""A cell's number; codes, such as {"state": "17"} or {"state": ["17", "18"]}, for the sum of all cells with them; or whole numbers, one for
each cell."""


@dataclass(frozen=True, eq=False)
class Published:
    """Released counts, and the plan that says their law. Nothing confidential."""

    universe: Universe
    counts: Ints
    plan: Plan

    @property
    def drawing(self) -> Drawing:
        return self.plan.drawing


def published(source: Release | str | os.PathLike[str]) -> Published:
    """From a release, or from its folder, which is verified first."""
    if isinstance(source, Release):
        found = Published(source.table.universe, source.table.counts, source.plan)
    elif isinstance(source, str | os.PathLike):
        again = read_verified(source)
        found = Published(again.table.universe, again.table.counts, again.plan)
    else:
        raise InvalidParameter(f"Give a release, or the folder it was saved in. Got {type(source).__name__}.")
    target = found.drawing.channel.target
    if not target.publishes_cells:
        raise InvalidParameter("This release publishes no cells, only totals: they are exact, and there is nothing to infer from.")
    if target.reads is Reads.CELL_KEYS:
        raise InvalidParameter("This release looked its noise up by keys: it has no law from which a posterior follows.")
    return found


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
