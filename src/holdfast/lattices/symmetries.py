"""Permutations of cells that map the moves of a block onto themselves: cells that they move to one another are alike.

A permutation of the cells maps the moves onto the moves exactly where it leaves the projection on the row space as it is. Cells of one
class (equal columns) may be exchanged freely, so that permutations of classes of equal size say the rest. They are searched for without
turning back, and every one found is checked with exact numbers: what is missed costs accuracy of an estimate, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import flint
import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes import Shape

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_CLASSES = 48
"""Classes up to which permutations of them are searched for: about a tenth of a second."""


@dataclass(frozen=True, eq=False)
class Alike:
    """Which cells of a block, and which pairs of them, have equal moments under every law that such permutations leave as it is.

    class_of: the class of each cell.
    single:   for each class the kind of its cells.
    pairs:    for each two classes the kind of two different cells of them.
    """

    class_of: Ints
    single: Ints
    pairs: Ints

    def squares(self, draws: Floats) -> Floats:
        """For each draw the mean square of the cells of each kind."""
        return self._sums(draws**2, self.single[self.class_of]) / self._cells_of_kind

    def matrix(self, draws: Floats, weights: Floats) -> Floats:
        """The second moments of weighted draws, averaged over what is alike."""
        sums, squares = self._sums(draws, self.class_of), weights @ self._sums(draws**2, self.class_of) / weights.sum()
        products = (sums.T * weights) @ sums / weights.sum() - np.diag(squares)
        sizes = np.bincount(self.class_of)
        number = np.multiply.outer(sizes, sizes) - np.diag(sizes)
        kinds = self.pairs.ravel()
        means = np.bincount(kinds, weights=products.ravel()) / np.maximum(np.bincount(kinds, weights=number.ravel()), 1)
        own = np.bincount(self.single, weights=squares) / self._cells_of_kind
        out = means[self.pairs[np.ix_(self.class_of, self.class_of)]]
        np.fill_diagonal(out, own[self.single[self.class_of]])
        return np.asarray(out)

    @property
    def _cells_of_kind(self) -> Ints:
        return np.bincount(self.single[self.class_of])

    @staticmethod
    def _sums(values: Floats, group_of: Ints) -> Floats:
        from scipy.sparse import csr_array

        cells = np.arange(len(group_of))
        return np.asarray(values @ csr_array((np.ones(len(cells)), (cells, group_of))))


@lru_cache(maxsize=64)
def alike(shape: Shape) -> Alike | None:
    """Symmetries of a block by its rows; None if these are not listed, or no two cells were found to be alike."""
    rows = shape.matrix()
    if rows is None:
        return None
    columns, class_of = np.unique(np.vstack([rows, np.zeros_like(rows, shape=(1, shape.size))]), axis=1, return_inverse=True)
    class_of, count = class_of.reshape(-1), columns.shape[1]
    found = list(_permutations(_marks(columns[:-1], np.bincount(class_of)))) if 1 < count <= MOST_CLASSES else []
    if count == shape.size and not found:
        return None
    places = np.arange(count**2).reshape(count, count)
    kinds = np.minimum(places, places.T)
    if found:
        kinds = _join_kinds(kinds, [kinds[np.ix_(moved, moved)] for moved in found])
    return Alike(class_of, np.unique(np.diag(kinds), return_inverse=True)[1], kinds)


def _join_kinds(kinds: Ints, others: list[Ints]) -> Ints:
    """Numbers of kinds, the same where a place has two kinds in two of the tables."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    starts, ends = np.tile(kinds.ravel(), len(others)), np.concatenate([other.ravel() for other in others])
    graph = coo_array((np.ones(len(starts)), (starts, ends)), shape=(kinds.size, kinds.size))
    return np.asarray(connected_components(graph, directed=False)[1][kinds], dtype=np.int64)


def _marks(columns: Ints, sizes: Ints) -> Ints:
    """A number for each entry of the projection on the row space, of one cell of each class; equal for equal entries, and different on the
    diagonal for classes of different size.
    """
    rows, weighted = (flint.fmpq_mat(flint.fmpz_mat(table.tolist())) for table in (columns, columns * sizes))
    projection = rows.transpose() * (weighted * rows.transpose()).solve(rows)
    seen: dict[tuple[int, int, int], int] = {}
    out = np.empty((len(sizes), len(sizes)), dtype=np.int64)
    for i, j in np.ndindex(out.shape):
        entry = projection[i, j]
        key = (int(entry.p), int(entry.q), int(sizes[i]) if i == j else 0)
        out[i, j] = seen.setdefault(key, len(seen))
    return out


def _permutations(marks: Ints) -> Iterator[Ints]:
    """Permutations p of the classes with marks[p, p] == marks, at most one for each class: one that moves an earlier class to it."""
    count = len(marks)
    orbit = np.arange(count)
    for last in range(1, count):
        for first in dict.fromkeys(orbit[:last].tolist()):
            moved = None if orbit[last] == orbit[first] else _moving(marks, first, last)
            if moved is not None:
                yield moved
                for one, other in enumerate(moved.tolist()):
                    orbit[orbit == max(orbit[one], orbit[other])] = min(orbit[one], orbit[other])
                break


def _moving(marks: Ints, first: int, last: int) -> Ints | None:
    """One that moves `first` to `last`: both are marked, then classes told apart by what is marked, and so on; checked at the end."""
    count = len(marks)
    colours = np.zeros((2, count), dtype=np.int64)
    one, other = first, last
    for step in range(count):
        colours[0, one] = colours[1, other] = 2 * count + step
        colours = _told_apart(marks, colours)
        if not np.array_equal(np.sort(colours[0]), np.sort(colours[1])):
            return None
        number = np.bincount(colours[0])
        if number.max() == 1:
            break
        several = int(np.argmax(number > 1))
        one, other = (int(np.argmax(side == several)) for side in colours)
    moved = np.empty(count, dtype=np.int64)
    moved[np.argsort(colours[0])] = np.argsort(colours[1])
    return moved if np.array_equal(marks[np.ix_(moved, moved)], marks) else None


def _told_apart(marks: Ints, colours: Ints) -> Ints:
    """Colours such that classes of one colour see the same marks with the same colours; alike on both sides."""
    before = 0
    while True:
        colours = np.unique(colours, return_inverse=True)[1].reshape(colours.shape)
        if colours.max() + 1 == before:
            return colours
        before = int(colours.max()) + 1
        seen = np.sort(marks[None] * before + colours[:, None, :], axis=2)
        own = np.stack([colours, np.broadcast_to(np.diag(marks), colours.shape)], axis=2)
        rows = np.concatenate([own, seen], axis=2).reshape(-1, marks.shape[0] + 2)
        colours = np.unique(rows, axis=0, return_inverse=True)[1].reshape(colours.shape)
