"""Short moves of a block of Gaussian noise, what a query makes of them, and the variance of the query: what [theory T140] is computed from.

Legend: a move b of squared length Q(b) in the law's own form has s^2 = 1 / Q(b). The moves listed for a block are a basis of its lattice.
Those that change no query come with the s^2 of their Gram-Schmidt lengths where these are known; all other s^2 are of the moves
themselves, which are no larger.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Shape, Units
from holdfast.lattices.trees import Tree
from holdfast.laws.families import Gaussian
from holdfast.laws.level_gaussian import LevelGaussian

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
GaussianTarget = Gaussian | LevelGaussian

ROUNDING = 1e-10
"""Error of a projection in doubles, relative to the length of the projected vector: far more than its rounding."""


@dataclass(frozen=True, eq=False)
class ShortMoves:
    """A basis of the moves of one block, or of free cells, for q queries.

    still:   s^2 of the moves that change no query.
    values:  what the other moves add to each query, one row a move; s_squared: theirs.
    apart:   whether the moves in `values` are orthogonal to each other: free cells, each a block of its own.
    """

    still: Floats
    values: Ints
    s_squared: Floats
    apart: bool = False


def covers(target: object, shape: Shape) -> bool:
    """Whether short moves are known for blocks of this shape under this law."""
    return (type(target), type(shape)) in MOVES and shape.is_listed


def short_moves(target: GaussianTarget, shape: Shape, queries: Ints) -> ShortMoves:
    """Short moves of one block: `queries` has one row of whole coefficients for each query, in the order of the block's cells. For free
    cells, of all of them together.
    """
    values, s_squared = _join(MOVES[type(target), type(shape)](target, shape, queries), len(queries))
    moving = values.any(axis=1)
    return ShortMoves(s_squared[~moving], values[moving], s_squared[moving], apart=shape.is_free)


def form_variance(target: GaussianTarget, shape: Shape, query: Ints) -> float:
    """Variance of a query in the continuous law of one block, or of free cells; never below the truth, and above it by rounding only."""
    values = query.astype(np.float64)
    length = float(np.sqrt((values**2).sum()))  # no product by BLAS, whose threads cost more than they save
    if isinstance(target, LevelGaussian):
        form = target.form(shape)
        return float(form.of(values[None])[0]) * (1 + ROUNDING) + ROUNDING**2 * length**2 * float(form.diagonal().max())
    projected = shape.project(values[None])
    return float(target.sigma_squared) * (float(np.sqrt((projected**2).sum())) + ROUNDING * length) ** 2 * (1 + ROUNDING)


Found = tuple[Ints, Floats]
"""(values, s^2) of moves."""


def _join(parts: Iterator[Found], queries: int) -> Found:
    found = [(np.zeros((0, queries), dtype=np.int64), np.zeros(0)), *parts]
    return np.concatenate([values for values, _ in found]), np.concatenate([s for _, s in found])


def _of_free(target: Gaussian, shape: Free, queries: Ints) -> Iterator[Found]:
    used = queries.T[queries.any(axis=0)]
    yield used, np.full(len(used), float(target.sigma_squared))


def _chain(queries: Ints, sigma_squared: float) -> Found:
    """Differences of neighbours, the cells sorted by their coefficients: inside a run of equal ones the i-th has the Gram-Schmidt length
    of (i + 1) / i; between two runs it is taken as it is, of squared length 2.
    """
    order = np.lexsort(queries)
    values = np.diff(queries[:, order], axis=1).T
    return values, _along_runs(np.asarray(~values.any(axis=1)), sigma_squared / 2)


def _along_runs(still: NDArray[np.bool_], s_squared: float | Floats) -> Floats:
    """s^2 of the differences of neighbours: s_squared, and along a run of still ones the i-th 2 i / (i + 1) times it."""
    place = np.arange(1, len(still) + 1)
    last = np.maximum.accumulate(np.where(still, 0, place))
    run = place - last
    return np.asarray(s_squared * np.where(still, 2 * run / (run + 1), 1.0))


def _of_grid(target: Gaussian, shape: Grid, queries: Ints) -> Iterator[Found]:
    """Products of differences of neighbours, along each axis those places first where the queries have as much as at most places: the moves
    of one cell are then the same whichever cell it is, and those of a sum that kept sums make of one.
    """
    table = queries.reshape(-1, *shape.axes)
    for axis in range(1, table.ndim):
        weight = np.abs(np.moveaxis(table, axis, 0)).reshape(shape.axes[axis - 1], -1).sum(axis=1)
        known, counts = np.unique(weight, return_counts=True)
        table = np.take(table, np.argsort(np.abs(weight - known[counts.argmax()]), kind="stable"), axis=axis)
    for axis in range(1, table.ndim):
        table = np.diff(table, axis=axis)
    places: list[Ints | None] = [np.arange(1, n) for n in shape.axes]
    yield table.reshape(len(queries), -1).T, float(target.sigma_squared) * _products(np.asarray(~table.any(axis=0)), places).ravel()


def _products(still: NDArray[np.bool_], places: Sequence[Ints | None]) -> Floats:
    """s^2 of products of differences, one entry for each, for sigma^2 = 1: the i-th along an axis gives i / (i + 1), after those before it,
    if no product up to here along all axes changes a query; else 1 / 2 ([theory T197]).

    Given:  for each axis the number i of each difference among those of its unit, which stand together; None where there is none.
    """
    own, plain = np.ones([1] * still.ndim), 1.0
    for axis, place in enumerate(places):
        if place is None:
            continue
        if not still.all():
            changed = np.cumsum(~still, axis=axis)
            before = np.take(np.insert(changed, 0, 0, axis=axis), np.arange(1, len(place) + 1) - place, axis=axis)
            still = changed == before
        own = own * (place / (place + 1)).reshape([-1 if k == axis else 1 for k in range(still.ndim)])
        plain /= 2
    return np.where(still, own, plain)


def _of_levels(target: Gaussian, shape: Levels, queries: Ints) -> Iterator[Found]:
    """The basis of `Levels`, one table of products of contrasts for each free level vector. Along axes that are divided evenly, units and
    places come first where the queries have least: the moves of one cell are then the same whichever cell it is.
    """
    table = queries.reshape(-1, *shape.axes)
    for axis, tree in enumerate(shape.trees, start=1):
        if tree.is_even:
            weight = np.abs(np.moveaxis(table, axis, 0)).reshape(tree.places, -1).sum(axis=1)
            table = np.take(table, _least_first(tree, weight), axis=axis)
    for s in shape.free():
        part = table
        places: list[Ints | None] = []
        for axis, (tree, level) in enumerate(zip(shape.trees, s, strict=True), start=1):
            part = np.take(part, tree.firsts(level), axis=axis)
            places.append(None)
            if level:
                begins = tree.starts(level - 1)
                reference = np.repeat(begins[:-1], np.diff(begins))
                place = np.arange(len(reference)) - reference
                part = np.take(part - np.take(part, reference, axis=axis), np.flatnonzero(place), axis=axis)
                places[-1] = place[place > 0]
        yield part.reshape(len(queries), -1).T, float(target.sigma_squared) * _products(np.asarray(~part.any(axis=0)), places).ravel()


def _least_first(tree: Tree, weight: Ints) -> Ints:
    """Places in an order that exchanges units below one unit only, those of least weight first."""
    keys: list[Ints] = []
    for level in range(1, tree.depth + 1):
        unit = tree.unit_of(level)
        keys += [np.bincount(unit, weights=weight)[unit], unit]
    return np.lexsort(keys[::-1])


def _of_classes(target: Gaussian, shape: General, queries: Ints) -> Iterator[Found]:
    """Chains inside classes of equal columns, and moves of class totals, each made at the first cells of its classes."""
    sigma_squared = float(target.sigma_squared)
    ends = np.cumsum(shape.class_sizes)
    starts = ends - np.array(shape.class_sizes)
    first = np.zeros((len(queries), len(ends)), dtype=np.int64)
    for number, (begin, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        inside = queries[:, begin:end]
        first[:, number] = inside[:, np.lexsort(inside)[0]]
        if end - begin > 1:
            yield _chain(inside, sigma_squared)
    basis = shape.class_basis()
    if basis.shape[1]:
        lengths = np.array([sum(int(x) ** 2 for x in column) for column in basis.T], dtype=np.float64)
        yield (basis.T.astype(object) @ first.T.astype(object)).astype(np.int64), sigma_squared / lengths


def _contrasts(shape: Units, queries: Ints) -> Iterator[tuple[Ints, int]]:
    """(values, S) for every set S of axes: of the queries at contrasts with the first place along the axes of S and at the first place of
    the others; (contrasts, queries, leaves).
    """
    for mask in shape.masks:
        part = queries.reshape(-1, *shape.axes)
        for axis in range(2, part.ndim):
            first = np.take(part, [0], axis=axis)
            part = np.delete(part, 0, axis=axis) - first if mask >> (axis - 2) & 1 else first
        yield np.moveaxis(part.reshape(len(queries), shape.leaves, -1), 2, 0), mask


def _of_units(target: LevelGaussian, shape: Units, queries: Ints) -> Iterator[Found]:
    """For every S, at each contrast: differences of neighbouring leaves inside the units whose sums are kept, and where none are kept the
    first leaf alone ([theory R16]). The squared length of such a move is 2^|S| times 2 rho times the shares of the measured margins that
    hold S, twice for two leaves, and for those at levels below the deepest unit that holds both.
    """
    common = _common_levels(shape)
    for table, mask in _contrasts(shape, queries):
        below = _weights_below(target, shape, mask)
        kept = shape.deepest(mask)
        if kept is None:
            alone = table[:, :, 0]
            yield alone, np.full(len(alone), 1 / below[0])
        inside = np.ones(len(common), dtype=np.bool_) if kept is None else common >= kept
        s_squared = 1 / (2 * below[common + 1])
        bottom = common == shape.levels - 1
        for contrast in table:
            values = np.diff(contrast, axis=1).T
            still = ~values.any(axis=1) & bottom
            yield values[inside], _along_runs(still, s_squared)[inside]


MOVES: dict[tuple[type[GaussianTarget], type[Shape]], Callable[[Any, Any, Ints], Iterator[Found]]] = {
    (Gaussian, Free): _of_free,
    (Gaussian, OneSum): lambda target, shape, queries: iter([_chain(shape.apply_signs(queries), float(target.sigma_squared))]),
    (Gaussian, Grid): _of_grid,
    (Gaussian, Levels): _of_levels,
    (Gaussian, General): _of_classes,
    (LevelGaussian, Units): _of_units,
}


def last_s_squared(target: Gaussian, shape: Levels) -> Floats:
    """s^2 of moves of a product of hierarchies that are a basis, of a cell that is last along every axis all but the last change none."""
    return _join(_of_levels(target, shape, np.zeros((1, shape.size), dtype=np.int64)), 1)[1]


def levels_s_squared(target: Gaussian, shape: Levels) -> Floats:
    """s^2 of all moves of `short_moves`, each as it is: for a bound that holds for many queries."""
    free = list(shape.free())
    counts = [math.prod(tree.units(k) - (tree.units(k - 1) if k else 0) for tree, k in zip(shape.trees, s, strict=True)) for s in free]
    return np.repeat([float(target.sigma_squared) / 2 ** sum(level > 0 for level in s) for s in free], counts)


def units_s_squared(target: LevelGaussian, shape: Units) -> Floats:
    """The same for units."""
    common, out = _common_levels(shape), []
    for mask in shape.masks:
        below, kept = _weights_below(target, shape, mask), shape.deepest(mask)
        times = math.prod(n - 1 for k, n in enumerate(shape.lengths) if mask >> k & 1)
        alone = [] if kept is not None else [1 / below[0]]
        inside = common if kept is None else common[common >= kept]
        out.append(np.tile(np.concatenate([alone, 1 / (2 * below[inside + 1])]), times))
    return np.concatenate(out)


def _weights_below(target: LevelGaussian, shape: Units, mask: int) -> Floats:
    """For l = 0, 1, ... the squared length of one contrast at one leaf in the measured margins of levels l and deeper; the last is 0."""
    out = np.zeros(shape.levels + 2)
    for height, measured, share in target.measured:
        level = shape.levels - height
        if level >= 0 and mask & measured == mask:
            out[: level + 1] += float(2 * target.rho * share) * 2 ** mask.bit_count()
    return out


def _common_levels(shape: Units) -> Ints:
    """For every leaf but the last the deepest level at which it and the next leaf are in one unit."""
    out = np.zeros(shape.leaves - 1, dtype=np.int64)
    for level in range(1, shape.levels):
        assert shape.tree is not None
        out += np.diff(shape.tree.unit_of(level)) == 0
    return out
