"""Independent cells given their sums: one sum, by convolution ([theory T62]); several, by classes of cells with equal columns of kept sums,
the totals of the classes first, then the cells given these ([theory T63]).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.research.analysis.tables import Floats, Ints, Numbers, list_tables

NEGLIGIBLE = 45.0
"""Weights below exp of minus this, beside the whole of a cell, are left out: 3e-20."""
FIRST_REACH, MAX_REACH = 32, 1 << 17
MAX_WORK = 4e9
"""Multiplications of all convolutions together: some seconds."""
TRIM = 1e-40
MAX_TILT = 700.0

MAX_CLASS_TOTALS = 20_000


class GivenSum:
    """Law:         integers v_1, ..., v_n with P[v] proportional to the product of w_i(v_i) over all with sum `total`.
    Given:       weights as logarithms over windows, row i for the values first[i], first[i] + 1, ...
    Guarantees:  floating point; all terms are positive, so that rounding stays near 1e-15 for each convolution. Weights are first tilted,
                 w_i(v) exp(t v), with a t at which the means sum to the total: given the sum that changes nothing, and the total is
                 then in the middle of every convolution.
    """

    def __init__(self, first: Ints, log_weights: Floats, total: int, tilt: float | None = None) -> None:
        self.first, self.total = first, total
        self.tilt = find_tilt(first, log_weights, total) if tilt is None else tilt
        self.p = tilt_weights(log_weights, self.tilt)
        self.cells = len(first)

    def subset_law(self, inside: NDArray[np.bool_]) -> tuple[Ints, Floats]:
        """(values, probabilities) of the sum over some of the cells."""
        start, part = self._sum(np.flatnonzero(inside))
        other_start, others = self._sum(np.flatnonzero(~inside))
        values = np.arange(start, start + len(part))
        places = self.total - values - other_start
        known = (places >= 0) & (places < len(others))
        joint = np.where(known, part * others[np.where(known, places, 0)], 0.0)
        kept = joint > 0
        return values[kept], joint[kept] / joint.sum()

    def sums(self) -> tuple[int, Floats]:
        """(first value, logarithms of weights) of the sum of all cells, not given; up to a constant."""
        start, law = self._rests[0]
        with np.errstate(divide="ignore"):
            return start, np.log(law) - self.tilt * np.arange(start, start + len(law))

    def draw(self, n: int, random: np.random.Generator, totals: Ints | None = None) -> Ints:
        """n tables: one cell after the other, each given what is left for the rest. `totals`: one for each table, in place of `total`."""
        out = np.empty((n, self.cells), dtype=np.int64)
        left = np.full(n, self.total, dtype=np.int64) if totals is None else totals.copy()
        steps = np.arange(self.p.shape[1])
        for cell in range(self.cells - 1):
            start, rest = self._rests[cell + 1]
            remaining, which = np.unique(left, return_inverse=True)
            places = remaining[:, None] - self.first[cell] - steps - start
            known = (places >= 0) & (places < len(rest))
            weights = np.where(known, self.p[cell] * rest[np.where(known, places, 0)], 0.0)
            rising = np.cumsum(weights, axis=1)
            goal = random.uniform(size=n) * rising[which, -1]
            out[:, cell] = self.first[cell] + np.minimum((rising[which] <= goal[:, None]).sum(axis=1), len(steps) - 1)
            left -= out[:, cell]
        out[:, -1] = left
        return out

    @cached_property
    def _rests(self) -> list[tuple[int, Floats]]:
        """For each cell the law of the sum of it and all later ones."""
        found: list[tuple[int, Floats]] = [(0, np.ones(1))]
        for cell in range(self.cells - 1, -1, -1):
            start, law = found[-1]
            found.append(_trim_law(start + int(self.first[cell]), np.convolve(law, self.p[cell])))
        return found[::-1]

    def _sum(self, cells: Ints) -> tuple[int, Floats]:
        start, law = 0, np.ones(1)
        for cell in cells.tolist():
            start, law = _trim_law(start + int(self.first[cell]), np.convolve(law, self.p[cell]))
        return start, law


def _trim_law(start: int, law: Floats) -> tuple[int, Floats]:
    known = np.flatnonzero(law > TRIM)
    if not len(known):
        return start, law
    return start + int(known[0]), law[known[0] : known[-1] + 1]


def tilt_weights(log_weights: Floats, t: float) -> Floats:
    """w_i(v) exp(t v), scaled to sum 1 in every cell."""
    logs = log_weights + t * np.arange(log_weights.shape[1])
    made = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def find_tilt(first: Ints, log_weights: Floats, total: int) -> float:
    """A t at which the means of the tilted cells sum to the total, or nearly: any t is right, a good one keeps rounding small.

    Algorithm:   Newton's method (the sum of means increases, with the sum of variances as its slope), kept inside the bracket so far.
    """
    steps = np.arange(log_weights.shape[1], dtype=np.float64)
    wanted = float(total - first.sum())
    low, high, t = -MAX_TILT, MAX_TILT, 0.0
    for _ in range(60):
        p = tilt_weights(log_weights, t)
        means = p @ steps
        excess = float(means.sum()) - wanted
        low, high = (low, t) if excess > 0 else (t, high)
        variance = float((p @ steps**2 - means**2).sum())
        if abs(excess) <= 0.01 * np.sqrt(variance) + 1e-9 or high - low < 1e-9:
            break
        step = t - excess / variance if variance > 0 else np.inf
        t = step if low < step < high else (low + high) / 2
    return t


def given_sum(centres: Ints, low: Ints, high: Ints, log_weight: Callable[[Ints], Floats], total: int, least_reach: int) -> GivenSum | None:
    """Cells around their centres, within low and high (both may be far out), with windows wide enough that what is left out is negligible.

    `log_weight` takes one row of values for each cell; beyond `least_reach` weights only fall. None where windows or
    convolutions would be too large, or no table has the total.
    """
    reach = max(FIRST_REACH, least_reach)
    while reach <= MAX_REACH:
        first, last = np.maximum(low, centres - reach), np.minimum(high, centres + reach)
        if (first > last).any() or not int(first.sum()) <= total <= int(last.sum()):
            if (first == low).all() and (last == high).all():
                return None
            reach *= 2
            continue
        width = int((last - first).max()) + 1
        if width * len(centres) > MAX_WORK / 100:
            return None
        values = first[:, None] + np.arange(width)
        with np.errstate(invalid="ignore"):
            logs = np.where(values <= last[:, None], log_weight(values), -np.inf)
        if not np.isfinite(logs.max(axis=1)).all():
            if (first == low).all() and (last == high).all():
                return None
            reach *= 2
            continue
        tilt = find_tilt(first, logs, total)
        p = tilt_weights(logs, tilt)
        small = np.exp(-NEGLIGIBLE)
        ends = (p[:, 0] <= small) | (first == low)
        last_places = (last - first).astype(np.intp)
        ends &= (p[np.arange(len(p)), last_places] <= small) | (last == high)
        if ends.all():
            spread = float(np.sqrt((p @ np.arange(width) ** 2.0 - (p @ np.arange(width)) ** 2).sum()))
            if len(centres) * width * min(30 * spread + width, float(width * len(centres))) > MAX_WORK:
                return None
            return GivenSum(first, logs, total, tilt)
        reach *= 2
    return None


class OneSumPosterior:
    """A block under one kept sum of signs s_i: v_i = s_i x_i given their sum."""

    def __init__(self, cells: GivenSum, signs: Ints, draws: int, random: np.random.Generator) -> None:
        self.cells, self.signs = cells, signs
        self._draws, self._random = draws, random

    def law(self, coefficients: Ints) -> Numbers:
        """By convolution where the coefficients of the v_i take two values at most; else from exact draws."""
        own = coefficients * self.signs
        kinds = np.unique(own)
        if len(kinds) == 1:
            return Numbers(np.array([int(kinds[0]) * self.cells.total]), np.ones(1), "convolution", None)
        if len(kinds) == 2:
            values, p = self.cells.subset_law(own == kinds[1])
            made = int(kinds[0]) * self.cells.total + (int(kinds[1]) - int(kinds[0])) * values
            return Numbers(made, p, "convolution", None)
        drawn, where = np.unique(self.draw(self._draws, self._random) @ coefficients, return_inverse=True)
        return Numbers(drawn, np.bincount(where) / self._draws, "monte carlo", float(self._draws))

    def draw(self, n: int, random: np.random.Generator) -> Ints:
        return self.cells.draw(n, random) * self.signs


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
