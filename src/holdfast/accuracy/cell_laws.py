"""The law of a cell of a block of noise, for pictures: which way there is to it, and how far its probabilities may be off.

    cell_probabilities   free cells and cells under one total, rounded projection of these and of two-way tables
    two rows             a column is x and -x, so that the first row is noise of half the variance, or twice the rate, under one total
    few sums             narrow Gaussian noise under few kept sums, or in tables with a short side [theory T199]
    lattice sum          all other Gaussian noise: a discrete Gaussian up to known factors [theory T198]

Cells of a block may differ: the law is that of a cell picked from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.few_sums import ERROR, cell_of_table, cells_of_rows
from holdfast.accuracy.lattice_sums import LatticeSum, flatness, flatness_of, log_theta
from holdfast.accuracy.marginals import cell_probabilities
from holdfast.accuracy.short_moves import (
    GaussianTarget,
    covers,
    form_variance,
    last_s_squared,
    levels_s_squared,
    short_moves,
    units_s_squared,
)
from holdfast.lattices.shapes import General, Grid, Levels, OneSum, Shape, Units
from holdfast.laws.families import Gaussian, L1Laplace
from holdfast.laws.level_gaussian import LevelGaussian
from holdfast.laws.target import Target

Floats = NDArray[np.float64]

FINE, COARSE = 1e-4, 0.02
"""Errors, as parts of the largest probability: up to the first nothing better is looked for; beyond the second draws tell more."""
EACH, WHOLE = 64, 512
"""Different cells of a block up to which each is looked at by itself; cells of a block up to which its moves are made orthogonal."""
MAX_VALUES, LARGEST_ENTRY = 1 << 22, 1 << 20
ROUNDING = 1e-8
"""Far more than the relative error of a probability within nine standard deviations, from that of a variance, 1e-10."""


@dataclass(frozen=True, eq=False)
class CellLaw:
    """probabilities: P[z = -r], ..., P[z = r] for an r beyond which z hardly goes; each is off by `error` at most."""

    probabilities: Floats
    error: float = 0.0

    @property
    def share(self) -> float:
        """The error as a part of the largest probability."""
        return self.error / float(self.probabilities.max())


def cell_law(target: Target, shape: Shape) -> CellLaw | None:
    """Law of a cell picked from a block of this shape; None if only draws can show it."""
    found = cell_probabilities(target, shape)
    if shape.is_two_way and min(shape.axes) == 2 and isinstance(target, L1Laplace | Gaussian):
        found = cell_probabilities(_of_two_rows(target), OneSum(max(shape.axes)))
    if found is not None:
        return CellLaw(found)
    enclosed = enclosed_law(target, shape) if isinstance(target, Gaussian | LevelGaussian) else None
    if enclosed is not None and enclosed.share <= FINE:
        return enclosed
    narrow = few_sums(target, shape) if isinstance(target, Gaussian) else None
    return narrow or (enclosed if enclosed is not None and enclosed.share <= COARSE else None)


def _of_two_rows(target: L1Laplace | Gaussian) -> Target:
    return L1Laplace(2 * target.epsilon) if isinstance(target, L1Laplace) else Gaussian(target.sigma_squared / 2)


def few_sums(target: Gaussian, shape: Shape) -> CellLaw | None:
    """By [theory T199]; None for shapes and sizes that it does not take."""
    find = FEW_SUMS.get(type(shape))
    found = None if find is None else find(shape, float(target.sigma_squared))
    return None if found is None else CellLaw(found, ERROR)


def _of_table(shape: Grid, variance: float) -> Floats | None:
    return cell_of_table(shape.axes[0], shape.axes[1], variance) if shape.is_two_way else None


def _of_rows(shape: General, variance: float) -> Floats | None:
    laws = None if shape.rows is None else cells_of_rows(shape.rows, shape.class_sizes, variance)
    return None if laws is None else np.asarray(np.average(laws, axis=0, weights=shape.class_sizes))


FEW_SUMS: dict[type[Shape], Callable[[Any, float], Floats | None]] = {
    Grid: _of_table,
    Levels: lambda shape, variance: _of_rows(shape.as_general(), variance) if shape.size <= EACH else None,
    General: _of_rows,
}


def enclosed_law(target: GaussianTarget, shape: Shape) -> CellLaw | None:
    """By [theory T198]; the mean over the cells of a block."""
    kinds = _kinds(target, shape) if covers(target, shape) else None
    if kinds is None or not all(law.flatness for law, _ in kinds):
        return None
    spread = math.sqrt(max(law.variance for law, _ in kinds))
    reach = math.ceil(9 * spread) + 2
    if reach * len(kinds) > MAX_VALUES:
        return None
    out, k = np.zeros(2 * reach + 1), np.arange(-reach, reach + 1, dtype=np.float64)
    for law, share in kinds:
        weights = np.exp(-(k**2) / (2 * law.variance)) * (k % law.step == 0) if law.variance else (k == 0).astype(np.float64)
        out += share * weights / weights.sum()
    off = max(1 / law.flatness - 1 for law, _ in kinds) + ROUNDING
    return CellLaw(out, off * float(out.max()))


def _kinds(target: GaussianTarget, shape: Shape) -> list[tuple[LatticeSum, float]] | None:
    """(law, share of the cells that have it) for every kind of cell."""
    if shape.is_irreducible or (shape.cells_alike and shape.size <= WHOLE):
        return [(_one_cell(target, shape, 0), 1.0)]
    ends = shape.class_ends()
    if len(ends) <= EACH:
        return [(_one_cell(target, shape, end - 1), size / shape.size) for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)]
    return all_cells(target, shape)


def _one_cell(target: GaussianTarget, shape: Shape, cell: int) -> LatticeSum:
    shape, cell = shape.put_last(cell)  # most moves leave it alone there
    query = np.zeros(shape.size, dtype=np.int64)
    query[cell] = 1
    moves = short_moves(target, shape, query[None])
    if not len(moves.values):
        return LatticeSum(1, 0.0, 1.0)
    rows, flat = flatness([moves])
    if isinstance(target, Gaussian) and not shape.is_irreducible and shape.size <= WHOLE:
        flat = max(flat, _by_elimination(shape.short_basis(), cell, float(target.sigma_squared)))
    return LatticeSum(math.gcd(*rows.ravel().tolist()), form_variance(target, shape, query), flat)


def _by_elimination(basis: NDArray[Any], cell: int, sigma_squared: float) -> float:
    """The flatness by the Gram-Schmidt lengths of moves that leave the cell alone, short ones first; 0 where that finds none."""
    moves = basis.T.astype(np.float64)
    changes = moves[:, cell]
    pivot = min(np.flatnonzero(changes).tolist(), key=lambda move: (abs(changes[move]), float((moves[move] ** 2).sum())))
    if (changes % changes[pivot]).any() or np.abs(moves).max() > LARGEST_ENTRY:
        return 0.0
    rest = np.delete(moves - np.outer(changes / changes[pivot], moves[pivot]), pivot, axis=0)
    if not len(rest):
        return 1.0
    ordered = rest[np.argsort((rest**2).sum(axis=1), kind="stable")]
    lengths = np.diag(np.linalg.qr(ordered.T, mode="r")) ** 2
    return flatness_of(log_theta(sigma_squared / (lengths * (1 + ROUNDING))))


def all_cells(target: GaussianTarget, shape: Shape) -> list[tuple[LatticeSum, float]] | None:
    """With one bound for all cells: any move may be the one that is subtracted from others, which makes these twice as long at most; in a
    product of hierarchies no other move changes a cell that has a sibling along every axis, if it is put last ([theory T197]). Moves of
    these shapes have entries of 1 and -1, so that the step of each cell is 1.
    """
    find = ALL_CELLS.get(type(shape))
    if find is None:
        return None
    variances, alone, losses = find(target, shape)
    top = float(variances.max())
    flat = list(map(flatness_of, losses))
    parts = np.round(np.maximum(variances, 0.0) / top, 12) * np.where(alone, 1, -1)  # cells without noise have exactly 0
    known, counts = np.unique(parts, return_counts=True)
    return [
        (LatticeSum(1, abs(part) * top, flat[part > 0] if part else 1.0), count / shape.size)
        for part, count in zip(known.tolist(), counts.tolist(), strict=True)
    ]


AllCells = tuple[Floats, NDArray[np.bool_], tuple[float, float]]
"""(variance of each cell, whether one move alone changes it, what is lost to others: if not, and if so)."""


def _all_of_units(target: LevelGaussian, shape: Units) -> AllCells:
    return target.form(shape).diagonal(), np.zeros(shape.size, dtype=np.bool_), (log_theta(units_s_squared(target, shape) / 4), 0.0)


def _all_of_levels(target: Gaussian, shape: Levels) -> AllCells:
    alone = np.ones((), dtype=np.bool_)
    for tree in shape.trees:
        alone = np.logical_and.outer(alone, tree.siblings(tree.depth) > 1)
    losses = log_theta(levels_s_squared(target, shape) / 4), log_theta(last_s_squared(target, shape))
    return float(target.sigma_squared) * shape.projection_diagonal(), alone.ravel(), losses


ALL_CELLS: dict[type[Shape], Callable[[Any, Any], AllCells]] = {Units: _all_of_units, Levels: _all_of_levels}
