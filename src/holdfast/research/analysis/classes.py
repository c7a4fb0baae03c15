"""Cells with equal columns of kept sums, as classes: totals of classes first, then cells given these ([theory T63])."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.research.analysis.one_sum import GivenSum
from holdfast.research.analysis.tables import Floats, Ints, list_tables

MAX_CLASS_TOTALS = 20_000


def tightened(low: Ints, high: Ints, kept: Ints, y: Ints) -> tuple[Ints, Ints]:
    """Bounds of cells by what kept sums of coefficients of zero or more leave, the other cells being at their least."""
    high = high.copy()
    for row in kept:
        inside = row > 0
        if (row < 0).any() or not inside.any():
            continue
        rest = int(row @ y) - int(row @ low)
        high[inside] = np.minimum(high[inside], low[inside] + rest // row[inside])
    return low, high


@dataclass(frozen=True, eq=False)
class Classes:
    """Which cells are alike, and all class totals that give the published kept totals, one a row."""

    of_cell: Ints
    totals: Ints
    start: Ints
    """The class totals of the published counts."""
    rows: Ints
    """The kept sums as functions of class totals."""

    @classmethod
    def of(cls, y: Ints, low: Ints, high: Ints, kept: Ints, cuts: Ints, floors: Ints) -> Classes | None:
        """Of tables between low and high with the kept sums of y and cuts x >= floors; None where class totals are too many."""
        columns, of_cell = np.unique(np.vstack([kept, cuts]), axis=1, return_inverse=True)
        of_cell = of_cell.ravel()
        start, least, most = (np.bincount(of_cell, weights=v).astype(np.int64) for v in (y, low, high))
        rows = columns[: len(kept)]
        moves: NDArray[np.object_] | Ints = Lattice(rows).basis if len(rows) else np.eye(len(start), dtype=np.int64)
        totals = list_tables(moves, start, least, most, MAX_CLASS_TOTALS) if moves.shape[1] else start[None, :]
        if totals is None:
            return None
        return cls(of_cell, totals[(totals @ columns[len(kept) :].T >= floors).all(axis=1)], start, rows)

    def __len__(self) -> int:
        return len(self.start)


class ClassTables:
    """Law:         P[x] proportional to the product of the cells' weights over all tables with the kept totals; weights as logarithms over
    windows, row i for the values first[i], first[i] + 1, ...
    """

    def __init__(self, classes: Classes, first: Ints, log_weights: Floats) -> None:
        self._classes = classes
        self._parts = []
        logs = np.zeros(len(classes.totals))
        for number in range(len(classes)):
            mine = classes.of_cell == number
            part = GivenSum(first[mine], log_weights[mine], int(classes.start[number]))
            begin, weights = part.sums()
            places = classes.totals[:, number] - begin
            known = (places >= 0) & (places < len(weights))
            logs += np.where(known, weights[np.where(known, places, 0)], -np.inf)
            self._parts.append((np.flatnonzero(mine), part))
        top = float(logs.max(initial=-np.inf))
        self.is_possible = bool(np.isfinite(top))
        p = np.exp(logs - top) if self.is_possible else np.zeros(len(logs))
        self._p = p / max(float(p.sum()), 1e-300)

    def draw(self, n: int, random: np.random.Generator) -> Ints:
        """n independent tables, one a row."""
        totals = self._classes.totals[random.choice(len(self._p), size=n, p=self._p)]
        out = np.empty((n, len(self._classes.of_cell)), dtype=np.int64)
        for number, (cells, part) in enumerate(self._parts):
            out[:, cells] = part.draw(n, random, totals[:, number])
        return out
