"""The released table: codes, noisy counts, and how far off they may be. Public."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.tables import Universe
from holdfast.tables.columns import arrow_numbers
from holdfast.tables.saving import save_frame

SD_COLUMN = "standard_deviation"


class ReleasedTable:
    """Released counts, one for each cell of the universe, in its order. Counts may be negative: cutting them off would bias every sum."""

    def __init__(
        self,
        universe: Universe,
        counts: NDArray[np.int64],
        count_name: str,
        deviations: NDArray[np.float64] | None,
        published: NDArray[np.bool_] | None,
    ) -> None:
        self.universe = universe
        self.count_name = count_name
        self._counts = counts
        self._counts.setflags(write=False)
        self._deviations = deviations
        self._published = published

    @property
    def cells(self) -> list[str]:
        """The names of the columns of codes."""
        return list(self.universe.columns)

    @property
    def counts(self) -> NDArray[np.int64]:
        """The released counts, read-only; of cells that are not published (suppression) the entry is 0."""
        return self._counts

    @property
    def standard_deviations(self) -> NDArray[np.float64] | None:
        """Of the noise in each count; None where it depends on the data."""
        return self._deviations

    @property
    def published(self) -> NDArray[np.bool_]:
        """Which cells have a published count: all of them, unless cells were suppressed."""
        return np.ones(len(self), dtype=np.bool_) if self._published is None else self._published

    @property
    def frame(self) -> Any:
        """A pyarrow.Table: codes, released count, standard deviation."""
        frame = self.universe.frame().append_column(self.count_name, arrow_numbers(self._counts, self._published))
        known = np.zeros(len(self), dtype=np.bool_) if self._deviations is None else self._published
        deviations = np.zeros(len(self)) if self._deviations is None else self._deviations
        return frame.append_column(self.deviation_name, arrow_numbers(deviations, known))

    @property
    def deviation_name(self) -> str:
        """The name of the column of standard deviations."""
        name = SD_COLUMN
        while name in (*self.universe.columns, self.count_name):
            name = f"{self.count_name}_{name}"
        return name

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table to a .csv or .parquet file, whole or not at all; an existing file is refused."""
        save_frame(self.frame, path)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self.universe)

    def __repr__(self) -> str:
        return f"ReleasedTable({len(self)} cells by {', '.join(self.universe.columns)})"
