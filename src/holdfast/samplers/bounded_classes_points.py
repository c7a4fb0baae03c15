"""The class totals that a draw can have: points of a lattice of few dimensions, in an order that a wider window only continues."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.samplers.protocol import Ints

MOST_DIMENSIONS = 2


@dataclass(frozen=True)
class ClassPoints:
    """Integer combinations of the rows of `moves`, sorted by their largest entry in size, then entry by entry: a value.

    Given:  rows that are linearly independent, MOST_DIMENSIONS at most.
    """

    moves: tuple[tuple[int, ...], ...]
    classes: int

    @property
    def dimension(self) -> int:
        return len(self.moves)

    def within(self, reach: int) -> Ints:
        """All points whose entries are at most `reach` in size."""
        return _within(self, reach)

    def at(self, index: int) -> tuple[int, ...]:
        """The point at this place of the order."""
        reach = 1
        while len(self.within(reach)) <= index:
            reach *= 2
        return tuple(self.within(reach)[index].tolist())

    def count_bound(self, reach: int) -> float:
        """A bound of how many points `within` lists."""
        return float(np.prod([2 * span + 1 for span in self._spans(reach)], dtype=np.float64))

    def _spans(self, reach: int) -> list[int]:
        """For each move the largest multiple that a listed point can have: Cramer's rule on the best choice of entries."""
        basis: NDArray[Any] = np.array(self.moves, dtype=object).reshape(self.dimension, self.classes)
        if self.dimension == 0:
            return []
        if self.dimension == 1:
            return [reach // max(abs(int(v)) for v in basis[0])]
        best: list[int] = []
        for i, j in combinations(range(self.classes), 2):
            (a, b), (c, d) = ((int(basis[0, k]), int(basis[1, k])) for k in (i, j))
            determinant = abs(a * d - b * c)
            if determinant:
                spans = [(abs(b) + abs(d)) * reach // determinant, (abs(a) + abs(c)) * reach // determinant]
                best = min(best or spans, spans, key=lambda s: s[0] * s[1])
        return best


@lru_cache(maxsize=64)
def _within(points: ClassPoints, reach: int) -> Ints:
    axes = [np.arange(-span, span + 1, dtype=np.int64) for span in points._spans(reach)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, points.dimension) if axes else np.zeros((1, 0), dtype=np.int64)
    listed = grid @ np.array(points.moves, dtype=np.int64).reshape(points.dimension, points.classes)
    size = abs(listed).max(axis=1, initial=0)
    kept = listed[size <= reach]
    order = np.lexsort((*kept.T[::-1], size[size <= reach]))
    out: Ints = np.ascontiguousarray(kept[order])
    out.flags.writeable = False
    return out
