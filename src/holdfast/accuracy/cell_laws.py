"""The law of a cell of a block of noise, for pictures: which way there is to it, and how far its probabilities may be off.

    cell_probabilities   free cells and cells under one total, rounded projection of these and of two-way tables
    two rows             a column is x and -x, so that the first row is noise of half the variance, or twice the rate, under one total
    few sums             narrow Gaussian noise under few kept sums, or in tables with a short side [theory T199]
    lattice sum          all other Gaussian noise: a discrete Gaussian up to known factors [theory T198]

Cells of a block may differ: the law is that of a cell picked from all of them. No privacy rests on it. `cell_probabilities` has floats,
to 1e-12 in all:

    free cells           the law itself
    one sum, Laplace     P[z_1 = k] = p(k) q_(n-1)(-k) / q_n(0), q_m the law of a sum of m independent cells: the rest makes up for k
    one sum, Gaussian    the same
    rounded projection   where every cell goes to its floor or its ceiling (one sum, two-way tables, [theory R10] (b), (c)):
                         P[z_1 = k] = E[max(0, 1 - |u_1 - k|)], u_1 a sum of multiples of independent cells

Laws of sums are found by Fourier transforms over a range that holds all but a negligible part of the mass. Other cells (grids, general
blocks), and laws too wide for a transform, have no figure here.

Few sums, by means over roots of unity ([theory T199]).

Independent cells have a characteristic function f > 0. Given that sums of theirs are 0, a cell is k with a probability proportional to

    exp(-k^2 / (2 sigma^2)) mean over y of cos(k <a, y>) prod over the other cells c of f(<a_c, y>),

a_c the coefficients of cell c in the sums, y as many angles as there are sums. Finitely many roots of unity in place of all angles add
tables whose sums are multiples of their number, which the noise hardly reaches. In a two-way table the angles of the columns can be taken
one after the other, given those of the rows: so only the shorter side counts. Doubles; probabilities are off by ERROR at most.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.accuracy.convolved import GaussianCell
from holdfast.accuracy.lattice_sums import LatticeSum, flatness, flatness_of, log_theta
from holdfast.accuracy.sequential import sequential_steps
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
from holdfast.laws import Sequential
from holdfast.laws.families import Gaussian, L1Laplace, Rounded, Target, free_laplace_variance
from holdfast.laws.level_gaussian import LevelGaussian

Floats = NDArray[np.float64]
AllCells = tuple[Floats, NDArray[np.bool_], tuple[float, float]]
"""(variance of each cell, whether one move alone changes it, what is lost to others: if not, and if so)."""


ERROR = 1e-8
"""Error of each probability: twice WRAPPED, and far more than rounding."""
WRAPPED = 1e-9
WIDEST = 4.0
"""Variance up to which this is tried: beyond, [theory T198] gives all laws, and f comes near the rounding of doubles."""
MAX_PRODUCTS = 1 << 27
"""Most roots of unity for all sums together; and with those for a column, or with the cells: a tenth of a second or two."""


def cell_of_table(rows: int, columns: int, variance: float) -> Floats | None:
    """P[z = -r], ..., P[z = r] of a cell of a table whose row and column sums are kept; None where there would be too many points.

    Given:  rows and columns of two or more.
    """
    few, many = sorted((rows, columns))
    if variance > WIDEST:
        return None
    across = _roots(4 * few * variance, many)
    down = _roots(4 * many * variance, few - 1)
    if down ** (few - 1) > MAX_POINTS or down ** (few - 1) * across > MAX_PRODUCTS:
        return None
    cell = GaussianCell(variance)
    s = 2 * math.pi * np.arange(across) / across
    f = cell.transform(2 * math.pi * np.arange(down)[:, None] / down + s)
    half = (few - 1) // 2
    left, right = _combine(f, half), _combine(f, few - 1 - half)
    column = np.maximum((left * cell.transform(s)) @ right.T, 0.0)
    whole = (left * ((column / column.max()) ** (many - 1) @ right)).sum(axis=0)
    return _mark(variance, whole)


def _combine(f: Floats, times: int) -> Floats:
    """Products of f over so many angles, one row for each choice of them."""
    out = np.ones((1, f.shape[1]))
    for _ in range(times):
        out = (out[:, None] * f).reshape(-1, f.shape[1])
    return out


def cells_of_rows(rows: Sequence[Sequence[int]], sizes: Sequence[int], variance: float) -> list[Floats] | None:
    """The same for a cell of each class, under sums with any whole coefficients: one column of `rows` for each class of alike cells.

    Given:  independent rows, as many classes as columns.
    """
    matrix, counts = np.array(rows, dtype=np.int64).reshape(len(rows), len(sizes)), np.array(sizes, dtype=np.int64)
    largest = float(np.linalg.eigvalsh((matrix * counts) @ matrix.T)[-1]) * (1 + 1e-9)
    roots = _roots(2 * largest * variance, len(rows))
    if variance > WIDEST or roots ** len(rows) > MAX_POINTS or roots ** len(rows) * len(sizes) > MAX_PRODUCTS:
        return None
    log_f = np.log(GaussianCell(variance).transform(2 * math.pi * np.arange(roots) / roots))
    places = np.indices((roots,) * len(rows)).reshape(len(rows), -1)
    angles = [column @ places % roots for column in matrix.T]
    logs = sum(count * (log_f[angle] - log_f[0]) for count, angle in zip(counts.tolist(), angles, strict=True))
    rests = [np.asarray(np.bincount(angle, np.exp(logs - log_f[angle]), roots), dtype=np.float64) for angle in angles]
    return [_mark(variance, rest) for rest in rests]


def _roots(scale: float, sums: int) -> int:
    """The least N with sums * log theta_3(exp(-N^2 / scale)) <= WRAPPED: theta_3(q) <= 1 + 2 q / (1 - q), and q <= 1 / 2 here."""
    return math.ceil(math.sqrt(scale * math.log(4 * max(sums, 1) / WRAPPED)))


def _mark(variance: float, weights: Floats) -> Floats:
    """exp(-k^2 / (2 variance)) times the transform of weights at roots of unity, as probabilities."""
    reach = math.ceil(12 * math.sqrt(variance)) + 2
    k = np.arange(-reach, reach + 1)
    rest = np.fft.fft(weights).real[k % len(weights)]
    found = np.exp(-(k**2) / (2 * variance)) * np.maximum(rest, 0.0)
    return np.asarray(found / found.sum())


MAX_POINTS = 1 << 21
"""Largest size of a transform: a tenth of a second."""


def cell_probabilities(target: Target, shape: Shape) -> Floats | None:
    """P[z = -r], ..., P[z = r] of a cell of a block of this shape, for an r beyond which it hardly goes; None where there is no figure."""
    if isinstance(target, Rounded) and shape.is_network and not shape.is_free:
        return _rounded_law(tuple(shape.axes), float(target.epsilon))
    if not isinstance(target, L1Laplace | Gaussian | Rounded) or not (shape.is_free or shape.is_one_sum):
        return None
    reach = _reach(target, 1)
    if 2 * reach >= MAX_POINTS:
        return None
    own = _weights(target, np.arange(-reach, reach + 1))
    if shape.is_free:
        return np.asarray(own / own.sum())
    points = 1 << (2 * _reach(target, shape.size)).bit_length()
    if points > MAX_POINTS:
        return None
    wrapped = np.zeros(points)
    places = np.arange(-points // 2, points // 2)
    wrapped[places] = _weights(target, places)
    others = np.fft.irfft(np.fft.rfft(wrapped / wrapped.sum()) ** (shape.size - 1), points)
    joint = own * np.maximum(others[np.arange(-reach, reach + 1)], 0.0)
    return np.asarray(joint / joint.sum())


def _reach(target: L1Laplace | Gaussian | Rounded, cells: int) -> int:
    """Beyond which a sum of so many cells has a probability below 1e-16: twelve standard deviations, and a Laplace tail."""
    if isinstance(target, Gaussian):
        return math.ceil(12 * math.sqrt(cells * float(target.sigma_squared))) + 2
    return math.ceil(12 * math.sqrt(cells * free_laplace_variance(target.epsilon)) + 40 / float(target.epsilon)) + 2


def _weights(target: L1Laplace | Gaussian | Rounded, k: NDArray[np.int64]) -> Floats:
    if isinstance(target, Gaussian):
        return np.exp(-(k.astype(np.float64) ** 2) / (2 * float(target.sigma_squared)))
    return np.exp(-float(target.epsilon) * np.abs(k))


@lru_cache(maxsize=8)
def _rounded_law(axes: tuple[int, ...], epsilon: float) -> Floats | None:
    """Law of a cell that goes to the floor or the ceiling of its projection. N u_1 is an integer, N the number of cells."""
    cells = math.prod(axes)
    spread = 2 * math.exp(-epsilon) / math.expm1(-epsilon) ** 2
    reach = math.ceil(12 * math.sqrt(spread) + 40 / epsilon) + 2
    points = 2 * reach * cells
    if points > MAX_POINTS:
        return None
    turns = np.arange(points // 2 + 1)
    log_phi = np.zeros(len(turns))
    for elsewhere in itertools.product((False, True), repeat=len(axes)):
        multiple = math.prod(-1 if away else n - 1 for n, away in zip(axes, elsewhere, strict=True))
        count = math.prod(n - 1 if away else 1 for n, away in zip(axes, elsewhere, strict=True))
        half = np.pi * (multiple * turns % points) / points
        log_phi -= count * np.log1p(2 * spread * np.sin(half) ** 2)
    law = np.fft.irfft(np.exp(log_phi), points)  # of N u_1, wrapped around: place s is N u_1 = s
    table = np.roll(law, points // 2).reshape(2 * reach, cells)  # row j, place r: N u_1 = (j - reach) N + r
    above = np.arange(cells) / cells
    stay, rise = table @ (1 - above), table @ above
    made = np.maximum(np.concatenate((stay, [0.0])) + np.concatenate(([0.0], rise)), 0.0)
    found = np.asarray(made / made.sum())
    found.flags.writeable = False  # it is kept
    return found


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
    """Law of a cell picked from a block of this shape; None if only draws can show it. Of the sequential law the lattice law's, no
    probability of which is further off than the two laws are.
    """
    if isinstance(target, Sequential):
        law, distance = cell_law(target.of, shape), sequential_steps(target, shape).total_variation
        near = None if law is None else replace(law, error=law.error + distance)
        return near if near is None or near.share <= COARSE else None
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


def _all_of_units(target: LevelGaussian, shape: Units) -> AllCells:
    return target.form(shape).diagonal(), np.zeros(shape.size, dtype=np.bool_), (log_theta(units_s_squared(target, shape) / 4), 0.0)


def _all_of_levels(target: Gaussian, shape: Levels) -> AllCells:
    alone = np.ones((), dtype=np.bool_)
    for tree in shape.trees:
        alone = np.logical_and.outer(alone, tree.siblings(tree.depth) > 1)
    losses = log_theta(levels_s_squared(target, shape) / 4), log_theta(last_s_squared(target, shape))
    return float(target.sigma_squared) * shape.projection_diagonal(), alone.ravel(), losses


ALL_CELLS: dict[type[Shape], Callable[[Any, Any], AllCells]] = {Units: _all_of_units, Levels: _all_of_levels}
