"""The posterior of a block as a list of tables with probabilities: all of them, or drawn ones with weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import algebra

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Method: TypeAlias = Literal["enumeration", "convolution", "monte carlo"]


class Numbers(NamedTuple):
    """A law on whole numbers: increasing values with their probabilities, and how it was found."""

    values: Ints
    probabilities: Floats
    method: Method
    effective: float | None
    """Effective number of independent draws; None where nothing was drawn."""


class BlockPosterior(Protocol):
    """The belief about the true counts of one block after reading."""

    def law(self, coefficients: Ints) -> Numbers:
        """Law of the sum of coefficients times counts."""

    def draw(self, n: int, random: np.random.Generator) -> Ints:
        """n tables, one a row; from weighted draws with replacement."""


@dataclass(frozen=True, eq=False)
class Tables:
    """Tables, one a row, with probabilities that sum to 1."""

    tables: Ints
    probabilities: Floats
    method: Method
    effective: float | None = None

    @classmethod
    def from_log_weights(cls, tables: Ints, log_weights: Floats, method: Method = "monte carlo") -> Tables:
        """From logarithms of weights; drawn tables count by Kish's effective number (sum w)^2 / sum w^2."""
        top = float(log_weights.max(initial=-np.inf))
        weights = np.exp(log_weights - top) if np.isfinite(top) else np.zeros(len(log_weights))
        total = float(weights.sum())
        if not total > 0:
            return cls(tables[:0], np.zeros(0), method, 0.0)
        kept = weights > 0
        p = weights[kept] / total
        return cls(tables[kept], p, method, None if method == "enumeration" else float(1 / (p**2).sum()))

    def law(self, coefficients: Ints) -> Numbers:
        values, where = np.unique(self.tables @ coefficients, return_inverse=True)
        p = np.bincount(where, weights=self.probabilities, minlength=len(values)).astype(np.float64)
        return Numbers(values, p, self.method, self.effective)

    def draw(self, n: int, random: np.random.Generator) -> Ints:
        return self.tables[random.choice(len(self.tables), size=n, p=self.probabilities / self.probabilities.sum())]


def list_tables(moves: NDArray[np.object_] | Ints, start: Ints, low: Ints, high: Ints, most: int) -> Ints | None:
    """All tables start + integer combinations of the moves (columns) within the box, one a row; None where they are more than `most`.

    Algorithm:   moves in echelon form: each one's pivot cell is untouched by later ones, so that the box bounds its multiple. Partial
                 tables are extended all at once; None too where those are many more than `most`.
    """
    hermite = algebra.as_matrix(np.asarray(moves, dtype=object).T).hnf().tolist()
    echelon = np.array([[int(entry) for entry in row] for row in hermite if any(row)], dtype=np.int64).reshape(-1, len(start))
    pivots = [int(np.flatnonzero(row)[0]) for row in echelon]
    found = start[None, :].astype(np.int64)
    done = 0
    for row, pivot in zip(echelon, pivots, strict=True):
        found = found[_inside(found, low, high, slice(done, pivot))]
        step = int(row[pivot])
        first = -((found[:, pivot] - low[pivot]) // step)
        counts = np.maximum((high[pivot] - found[:, pivot]) // step - first + 1, 0)
        if counts.sum() > 20 * most:
            return None
        offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.repeat(found, counts, axis=0) + (np.repeat(first, counts) + offsets)[:, None] * row
        done = pivot + 1
    found = found[_inside(found, low, high, slice(0, len(start)))]
    return found if len(found) <= most else None


def _inside(tables: Ints, low: Ints, high: Ints, cells: slice) -> NDArray[np.bool_]:
    part = tables[:, cells]
    return np.asarray(((part >= low[cells]) & (part <= high[cells])).all(axis=1))
