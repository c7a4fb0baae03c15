"""The released table: codes, noisy counts, how far off they may be, and which of them everyone can compute. Public."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import count_of, html_table
from holdfast.tables import Universe
from holdfast.tables.columns import arrow_numbers, free_name
from holdfast.tables.formats import save_frame
from holdfast.tables.frames import Frames
from holdfast.tables.measure import COUNTS, Measure

SD_COLUMN = "standard_deviation"
EXPOSED_COLUMN = "exposed"
HTML_CELLS = 10
"""Cells that a notebook shows; the rest is counted."""


def value_columns(columns: Sequence[str], count_name: str) -> tuple[str, str, str]:
    """The columns of a released table after its codes: count, standard deviation, exposed."""
    taken = (*columns, count_name)
    deviation = free_name(SD_COLUMN, taken, count_name)
    return count_name, deviation, free_name(EXPOSED_COLUMN, (*taken, deviation), count_name)


class ReleasedTable(Frames):
    """Released counts, one for each cell of the universe, in its order. Counts may be negative: cutting them off would bias every sum.

    Of real-valued answers `counts` are in steps of the grid that is the `measure`, and `values` what they stand for.
    """

    def __init__(
        self,
        universe: Universe,
        counts: NDArray[np.int64],
        count_name: str,
        deviations: NDArray[np.float64] | None,
        published: NDArray[np.bool_] | None,
        exposed: NDArray[np.int64],
        measure: Measure = COUNTS,
    ) -> None:
        self.universe = universe
        self.count_name = count_name
        self.measure = measure
        self._counts = counts
        self._counts.setflags(write=False)
        self._deviations = deviations
        self._published = published
        self._exposed = np.zeros(len(universe), dtype=np.bool_)
        self._exposed[exposed] = True
        self._exposed.setflags(write=False)

    @property
    def cells(self) -> list[str]:
        """The names of the columns of codes."""
        return list(self.universe.columns)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The released counts, read-only; of cells that are not published (suppression) the entry is 0."""
        return self._counts

    @property
    def values(self) -> NDArray[np.float64]:
        """The released numbers as doubles; answers are exact up to 2^53 steps of their grid, and `frame` has them as decimals."""
        return self.measure.floats(self._counts)

    @property
    def standard_deviations(self) -> NDArray[np.float64] | None:
        """Standard deviations of the noise in each count; None if they depend on the data, nan where not estimated."""
        return self._deviations

    @property
    def published(self) -> NDArray[np.bool_]:
        """Which cells have a published count: all of them, unless cells were suppressed."""
        return np.ones(len(self), dtype=np.bool_) if self._published is None else self._published

    @property
    def exposed(self) -> NDArray[np.bool_]:
        """Which cells' true counts follow from the published totals, so that anyone can compute them; exposed.csv says why."""
        return self._exposed

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: codes, released count, standard deviation, whether the true count is exposed."""
        import pyarrow as pa

        frame = self.universe.frame().append_column(self.count_name, self.measure.column(self._counts, self._published))
        deviations = np.full(len(self), np.nan) if self._deviations is None else self._deviations
        known = ~np.isnan(deviations)
        shown = np.where(known, deviations, 0.0)  # under a missing value stands nothing
        valid = None if self._published is None and known.all() else known & self.published
        frame = frame.append_column(self.deviation_name, arrow_numbers(shown, valid))
        bits = pa.py_buffer(np.packbits(self._exposed, bitorder="little"))
        return frame.append_column(self.exposed_name, pa.Array.from_buffers(pa.bool_(), len(self), [None, bits]))

    @property
    def deviation_name(self) -> str:
        """The name of the column of standard deviations."""
        return value_columns(self.universe.columns, self.count_name)[1]

    @property
    def exposed_name(self) -> str:
        """The name of the column that says which cells are exposed."""
        return value_columns(self.universe.columns, self.count_name)[2]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a .csv or .parquet file, whole or not at all; an existing file is refused."""
        save_frame(self.frame, path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.universe)

    def __repr__(self) -> str:
        return f"ReleasedTable({len(self)} cells by {', '.join(self.universe.columns)})"

    def _repr_html_(self) -> str:
        """The first cells with their released numbers, for notebooks."""
        columns = self.universe.columns
        shown = self.frame.slice(0, HTML_CELLS).to_pylist()
        rows: list[tuple[str, object]] = [(", ".join(str(row[name]) for name in columns), _shown(row[self.count_name])) for row in shown]
        more = [("...", f"{len(self) - HTML_CELLS:,} more")] if len(self) > HTML_CELLS else []
        exposed = [("exposed", f"the true counts of {count_of(int(self._exposed.sum()), 'cell')}")] if self._exposed.any() else []
        return html_table(f"Released {self.count_name} by {', '.join(columns)}", [*rows, *more, *exposed])


def _shown(value: object) -> str:
    return "not published" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
