"""Sums that the kept totals give, whatever the mechanism: whole combinations of kept rows, found and checked in exact numbers."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.channels import Facts
from holdfast.exposure.cells import zero_cells
from holdfast.invariants.rows import RowFamily
from holdfast.lattices import algebra
from holdfast.lattices.columns import distinct_columns

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class KeptSums:
    """For facts whose totals are public.

    Guarantees:  `value` is the true sum in every table with these totals. None where the totals do not give it, or where rows of several
                 constraints had to be combined over more different cells than exact algebra takes (`distinct_columns`).
    """

    def __init__(self, facts: Facts) -> None:
        self._rows, self._totals = facts.kept.rows, facts.published_totals or ()
        self._kept = facts.kept
        self._measure = facts.measure

    def value(self, cells: Ints, coefficients: Ints) -> int | None:
        """The sum of coefficients[i] * true number of cells[i]; each cell is named once."""
        if not self._totals:
            return None
        wanted = np.zeros(len(self._kept.universe), dtype=np.int64)
        wanted[cells] = coefficients
        for rows, totals in zip(self._rows, self._totals, strict=True):
            if isinstance(rows, RowFamily) and (found := self._of_one(rows, wanted)) is not None:
                return sum(int(factor) * int(total) for factor, total in zip(found, totals, strict=True))
        return self._of_several(wanted)

    @cached_property
    def _zero(self) -> Bools:
        """Cells that are 0 because a total is."""
        if self._measure.nonnegative:
            return zero_cells(self._kept, self._totals)
        return np.zeros(len(self._kept.universe), dtype=np.bool_)

    def _of_one(self, rows: RowFamily, wanted: Ints) -> Ints | None:
        """One factor for each row of a constraint, where these give the sum."""
        inside = (rows.group >= 0) & ~self._zero
        factors = np.zeros(rows.count, dtype=np.int64)
        factors[rows.group[inside]] = wanted[inside]
        given = np.where(rows.group >= 0, factors[rows.group], 0)
        return factors if (given == wanted)[~self._zero].all() else None

    @cached_property
    def _classes(self) -> tuple[Ints, Ints] | None:
        """(the different columns of the kept rows over cells that may not be 0, the class of each of these cells)."""
        return distinct_columns(self._kept.matrix()[:, np.flatnonzero(~self._zero)])

    @cached_property
    def _independent(self) -> tuple[list[int], list[int]]:
        """Rows and as many columns that make a square matrix of full rank."""
        assert self._classes is not None
        columns, _ = self._classes
        rows = list(algebra.independent_rows(columns))
        return rows, list(algebra.pivot_columns(algebra.as_matrix(columns[rows])))

    def _of_several(self, wanted: Ints) -> int | None:
        """By solving c A = wanted over the different columns of A; any solution gives the same sum."""
        if self._classes is None:
            return None
        columns, class_of = self._classes
        left = wanted[~self._zero]
        of_class = np.zeros(columns.shape[1], dtype=np.int64)
        of_class[class_of] = left
        if (of_class[class_of] != left).any():
            return None
        if not columns.any():
            return None if of_class.any() else 0
        rows, pivots = self._independent
        chosen = columns[rows].T.copy()
        numerators, denominator = algebra.solve(algebra.as_matrix(chosen[pivots]), algebra.as_matrix(of_class[pivots][:, None]))
        if algebra.as_matrix(chosen) * numerators != algebra.as_matrix(of_class[:, None]) * denominator:
            return None
        totals = [int(total) for given in self._totals for total in given]
        found = sum(int(numerators[place, 0]) * totals[row] for place, row in enumerate(rows))
        return found // denominator if found % denominator == 0 else None  # no table has other totals
