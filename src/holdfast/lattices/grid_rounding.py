"""True answers to a grid of multiples of a step g, through the lattice of moves and never cell by cell ([theory T120]).

Cell by cell, (.4, .4, .2) and (.6, .2, .2) have the same total and round to totals 0 and 1: noise that keeps totals would tell them apart.
Here t = f(x) / g is rounded by nearest plane in a basis of all of Z^d that begins with one of L. The coefficients outside L are settled
first; they depend on the kept totals A t alone, and are right wherever integers have those totals. Then come those of L.

    free, exposed     every cell by itself
    one sum           the total, then cell after cell: what is left of the total's error is shared out among the cells not yet done
    grid, levels      from coarse level vectors to fine ones, kept ones among them, as under one sum along every axis ([theory R20])
    general           class totals by dense nearest plane, then the cells of every class as one sum ([theory R19])

Everything is held in integers: T = Q t, Q a common denominator of a block's values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise, product
from math import lcm, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.lattices import algebra
from holdfast.lattices.gram_schmidt import GramSchmidt, gram_schmidt
from holdfast.lattices.lattice import Lattice
from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum, Pinned, Shape
from holdfast.lattices.shapes.levels import LevelVector
from holdfast.lattices.trees import Tree

Whole: TypeAlias = NDArray[Any]
"""Integers of any size: an array of dtype object."""

LIMIT = 2**62
MANY = 1000
MOST_BITS = 1 << 14
"""Common denominators of a block's values have at most so many bits: those of all doubles, as decimals, together have 1,077."""


@dataclass(frozen=True, eq=False)
class OnGrid:
    """Answers as integers times g. The integers are confidential, as the answers are; they are not shown."""

    integers: NDArray[np.int64]
    moved_totals: tuple[int, ...]
    """Rows of `lattice.matrix` whose total no multiples of g have, so that it was rounded too: a function of the kept totals alone."""

    def __repr__(self) -> str:
        return f"OnGrid({len(self.integers)} answers, {len(self.moved_totals)} kept totals moved)"


def to_grid(lattice: Lattice, values: Sequence[Fraction | int], step: Fraction) -> OnGrid:
    """The answers `values`, one for each cell, as integers y with answers near y g, g the step.

    Given:       exact numbers.
    Guarantees:  y = t = values / g where all t are integers. A y is a function of A t alone, and equals A t wherever some integers have
                 these totals. Answers with equal totals that differ by v end v + e apart, |e| at most `movement(lattice)`.
    Reference:   [theory T120].
    """
    if len(values) != lattice.cells:
        raise InvalidParameter(f"There is one answer for each of the {lattice.cells} cells. Got {len(values)}.")
    scaled = [Fraction(value) / step for value in values]
    out = np.array([t.numerator // t.denominator for t in scaled], dtype=object)
    rest = np.array([t.denominator != 1 for t in scaled], dtype=np.bool_)
    for number, shape, _ in lattice.blocks.used_shapes() if rest.any() else ():
        for cells in lattice.blocks.cells_of(number):
            if rest[cells].any():  # integers stay as they are
                out[cells] = _round_values(shape, [scaled[cell] for cell in cells])
    if max(map(abs, out), default=0) >= LIMIT:
        raise RequestTooLarge("An answer is 2^62 steps of the grid or more. Use a larger step, or give the answers in a larger unit.")
    off = [integer - value for integer, value in zip(out, scaled, strict=True)] if rest.any() else []
    return OnGrid(out.astype(np.int64), tuple(row for row, total in enumerate(row_sums(lattice, off)) if total) if off else ())


@dataclass(frozen=True)
class RoundingMovement:
    """How far rounding can take two answers apart that have equal kept totals, in units of g: a public fact of the kept rows."""

    l1: Fraction
    """sum |b*_i|_1 over the directions of L that are rounded."""
    l2_squared: Fraction
    """sum |b*_i|_2^2: their errors are orthogonal. Of many cells under one sum slightly more (`_add`)."""


def movement(lattice: Lattice) -> RoundingMovement:
    """What rounding to the grid may add to the distance of two answers with equal kept totals, block by block."""
    l1, l2_squared = Fraction(0), Fraction(0)
    for _, shape, count in lattice.blocks.used_shapes():
        one = _movement(shape)
        l1, l2_squared = l1 + count * one.l1, l2_squared + count * one.l2_squared
    return RoundingMovement(l1, l2_squared)


def displacement(lattice: Lattice, weights: NDArray[np.int64], *, totals_kept: bool) -> Fraction:
    """How far rounding to the grid can move the sum of the answers with these weights, in units of g: half the sum of |w . b*_i|.

    Given:       `totals_kept` where every kept total is known to be one that integers have: then only directions of L are rounded.
    Guarantees:  |w . (y - t)| is at most this, which is 2^-64 for each direction too large at most.
    Reference:   [theory T120] (f).
    """
    whole = 0
    for number, shape, _ in lattice.blocks.used_shapes():
        cells = lattice.blocks.cells_of(number)
        for w in weights[cells[weights[cells].any(axis=1)]]:
            for numerators, denominators in WAYS[type(shape)].along(shape, shape.apply_signs(w.astype(object)), not totals_kept):
                whole -= int((-abs(numerators) * 2**64 // denominators).sum())  # each rounded up
    return Fraction(whole, 1 << 65)


def nearest(numerator: Any, denominator: int) -> Any:
    """The nearest integer, halves up; entry by entry for arrays."""
    return (2 * numerator + denominator) // (2 * denominator)


# ---- rounding, one shape after the other


def _round_values(shape: Shape, values: Sequence[Fraction]) -> Whole:
    Q = lcm(*(value.denominator for value in values))
    if Q.bit_length() > MOST_BITS:
        raise RequestTooLarge("The answers have no common denominator of reasonable size. Give decimals or floating-point numbers.")
    T = np.array([int(value * Q) for value in values], dtype=object)
    return shape.apply_signs(WAYS[type(shape)].round(shape, shape.apply_signs(T), Q))


def _line(T: Whole, Q: int, total: int, weights: Sequence[int]) -> Whole:
    """Integers near T / Q with this total: the error left so far is shared out by weight. The last one is forced."""
    out = np.empty(len(T), dtype=object)
    left, rest = Q * total - T.sum(), sum(weights)
    for i, (target, w) in enumerate(zip(T, weights, strict=True)):
        out[i] = nearest(target * rest + left * w, Q * rest)
        left -= Q * out[i] - target
        rest -= w
    return out


def _table(T: Whole, Q: int, sums: list[Any], weights: list[list[int]]) -> Whole:
    """Integers near T / Q with these sums along each axis: slice after slice of the first one, a slice by the other axes."""
    if len(weights) == 1:
        return _line(T, Q, sums[0], weights[0])
    out = np.empty(T.shape, dtype=object)
    left, rest = Q * sums[0] - T.sum(axis=0), sum(weights[0])
    for i, w in enumerate(weights[0]):
        out[i] = _table(T[i] * rest + left * w, Q * rest, [along[i] for along in sums[1:]], weights[1:])
        left = left - (Q * out[i] - T[i])
        rest -= w
    return out


def _level_by_level(given: Grid | Levels, T: Whole, Q: int) -> Whole:
    """The sums at every level vector, kept ones among them: a vector's depend on its own and on those of coarser vectors only."""
    shape = given.as_levels
    tables: dict[LevelVector, Whole] = {}
    for s in shape.vectors():
        target = shape.sums(T, s)
        axes = [k for k, level in enumerate(s) if level]
        out = np.empty(target.shape, dtype=object)
        if not axes:
            out[...] = nearest(target, Q)
        for unit in product(*(range(shape.trees[k].units(s[k] - 1)) for k in axes)) if axes else ():
            at: list[slice] = [slice(None)] * len(s)
            for k, parent in zip(axes, unit, strict=True):
                at[k] = slice(*shape.trees[k].starts(s[k] - 1)[parent : parent + 2])
            sums = []
            for k, parent in zip(axes, unit, strict=True):
                place: list[slice | int] = [own if s[axis] else 0 for axis, own in enumerate(at)]
                place[k] = parent
                sums.append(tables[(*s[:k], s[k] - 1, *s[k + 1 :])][tuple(place)])
            weights = [shape.trees[k].sizes(s[k])[at[k]].tolist() for k in axes]
            grid = tuple(map(len, weights))
            out[tuple(at)] = _table(target[tuple(at)].reshape(grid), Q, sums, weights).reshape(target[tuple(at)].shape)
        tables[s] = out
    return tables[shape.depths].ravel()


def _by_classes(shape: General, T: Whole, Q: int) -> Whole:
    frame, ends = _class_frame(shape), np.cumsum(shape.class_sizes)
    parts = np.split(T, ends[:-1])
    totals = np.array([part.sum() for part in parts], dtype=object)
    v = np.zeros(frame.dimension, dtype=object)
    for i in reversed(range(frame.dimension)):
        along = int(frame.integral_vectors[i] @ totals) - Q * int(frame.lambdas[i + 1 :, i] @ v[i + 1 :])
        v[i] = nearest(along, Q * frame.determinants[i + 1])
    chosen = frame.basis @ v
    return np.concatenate([_line(part, Q, total, [1] * len(part)) for part, total in zip(parts, chosen, strict=True)])


@lru_cache(maxsize=64)
def _class_frame(shape: General) -> GramSchmidt:
    """Class totals t weigh sum t_c^2 / n_c, times the least common multiple of the n_c; first a basis of those that moves have, then what
    makes it one of all integers.
    """
    kernel = shape.class_basis()
    assert shape.rows is not None  # class_basis refuses blocks whose rows are not listed
    complement = algebra.to_numpy(algebra.complement_and_kernel(algebra.as_matrix(np.array(shape.rows)))[0])
    common = lcm(*shape.class_sizes)
    return gram_schmidt(np.concatenate([kernel, complement], axis=1), [common // size for size in shape.class_sizes])


# ---- how far it moves


@lru_cache(maxsize=256)
def _movement(shape: Shape) -> RoundingMovement:
    return WAYS[type(shape)].movement(shape)


def _classes_movement(shape: General) -> RoundingMovement:
    frame, common = _class_frame(shape), lcm(*shape.class_sizes)
    sizes = np.array(shape.class_sizes, dtype=object)
    inside = [_within(size) for size in shape.class_sizes]
    l1, l2_squared = sum((one.l1 for one in inside), Fraction(0)), sum((one.l2_squared for one in inside), Fraction(0))
    for i in range(shape.class_dimension):
        # Row i is D_i times W b*_i, W the weights common / n_c; b*_i is spread evenly over the cells of a class.
        l1 += Fraction(int((abs(frame.integral_vectors[i]) * sizes).sum()), common * frame.determinants[i])
        l2_squared += frame.squared_lengths[i] / common
    return RoundingMovement(l1, l2_squared)


def _within(size: int) -> RoundingMovement:
    """Cells with one total: b* is a cell less its share of k later ones, k = size - 1, ..., 1."""
    return RoundingMovement(Fraction(2 * (size - 1)), size - 1 + _add([Fraction(1, k) for k in range(1, size)]))


def _levels_movement(given: Grid | Levels) -> RoundingMovement:
    """The b* of a free level vector are products over its axes of 1_c / w_c - 1_later / w_later, c a child but the last of its siblings,
    and of 1 / n on an axis at level 0.
    """
    shape = given.as_levels
    l1, l2_squared = Fraction(0), Fraction(0)
    for s in shape.free():
        axes = [k for k, level in enumerate(s) if level]
        children = [_contrasts(shape.trees[k], s[k]) for k in axes]
        l1 += 2 ** len(axes) * prod(count for count, _ in children)
        outside = prod(places for k, places in enumerate(shape.axes) if k not in axes)
        l2_squared += prod((square for _, square in children), start=Fraction(1, outside))
    return RoundingMovement(l1, l2_squared)


def _contrasts(tree: Tree, level: int) -> tuple[int, Fraction]:
    """(children but the last of their siblings, the sum of 1 / w_c + 1 / w_later over them)."""
    terms = []
    starts, sizes = tree.starts(level - 1).tolist(), tree.sizes(level).tolist()
    for begin, end in pairwise(starts):
        later = sum(sizes[begin:end])
        for w in sizes[begin : end - 1]:
            later -= w
            terms.append(Fraction(1, w) + Fraction(1, later))
    return len(terms), _add(terms)


Along: TypeAlias = Iterator[tuple[Whole, Whole]]
"""w . b*_i as numerators and denominators: over the directions of L, and those outside it where it is asked."""


def _along_cells(shape: Free | Pinned, w: Whole, outside: bool) -> Along:
    if outside or shape.is_free:
        yield w, np.ones(len(w), dtype=object)


def _along_classes(shape: General, w: Whole, outside: bool) -> Along:
    frame, common = _class_frame(shape), lcm(*shape.class_sizes)
    parts = np.split(w, np.cumsum(shape.class_sizes)[:-1])
    totals = np.array([part.sum() for part in parts], dtype=object)
    used = frame.dimension if outside else shape.class_dimension
    along = [int(frame.integral_vectors[i] @ totals) for i in range(used)]
    yield np.array(along, dtype=object), np.array([common * frame.determinants[i] for i in range(used)], dtype=object)
    for part in parts:
        yield _less_later(part, Tree.plain(len(part)), 1, 0)


def _along_levels(given: OneSum | Grid | Levels, w: Whole, outside: bool) -> Along:
    """Means over the units of a level vector, less those of later siblings along every axis."""
    shape = given.as_levels
    for s in shape.vectors() if outside else shape.free():
        numerators, denominators = shape.sums(w, s), np.ones((), dtype=object)
        for axis, (tree, level) in enumerate(zip(shape.trees, s, strict=True)):
            own = np.array([tree.places], dtype=object)
            if level:
                numerators, own = _less_later(numerators, tree, level, axis)
            denominators = np.multiply.outer(denominators, own)
        yield numerators, denominators


def _less_later(sums: Whole, tree: Tree, level: int, axis: int) -> tuple[Whole, Whole]:
    """Along one axis: the mean of each unit but the last of its siblings, less that of its later siblings."""
    table, numerators, denominators = np.moveaxis(sums, axis, 0), [], []
    starts, sizes = tree.starts(level - 1).tolist(), tree.sizes(level).tolist()
    for begin, end in pairwise(starts):
        places, later = sum(sizes[begin:end]), table[begin:end].sum(axis=0)
        for unit in range(begin, end - 1):
            places, later = places - sizes[unit], later - table[unit]
            numerators.append(table[unit] * places - later * sizes[unit])
            denominators.append(sizes[unit] * places)
    made = np.array(numerators, dtype=object).reshape(-1, *table.shape[1:])
    return np.moveaxis(made, 0, axis), np.array(denominators, dtype=object)


class Way(NamedTuple):
    """How blocks of one shape are rounded, and what that does to distances and sums."""

    round: Callable[[Any, Whole, int], Whole]
    movement: Callable[[Any], RoundingMovement]
    along: Callable[[Any, Whole, bool], Along]


WAYS: dict[type[Shape], Way] = {
    **dict.fromkeys(
        (Free, Pinned),
        Way(lambda _, T, Q: np.asarray(nearest(T, Q)), lambda shape: RoundingMovement(*2 * (Fraction(shape.dimension),)), _along_cells),
    ),
    OneSum: Way(lambda _, T, Q: _line(T, Q, nearest(T.sum(), Q), [1] * len(T)), lambda shape: _within(shape.size), _along_levels),
    **dict.fromkeys((Grid, Levels), Way(_level_by_level, _levels_movement, _along_levels)),
    General: Way(_by_classes, _classes_movement, _along_classes),
}


def _add(terms: Sequence[Fraction]) -> Fraction:
    """Their sum; of more than MANY each is rounded up to a multiple of 2^-64, since the exact sum would have as many digits as terms."""
    if len(terms) <= MANY:
        return sum(terms, Fraction(0))
    return Fraction(sum(-((-term.numerator << 64) // term.denominator) for term in terms), 1 << 64)


def row_sums(lattice: Lattice, values: Sequence[Fraction]) -> Iterator[Fraction]:
    """The kept sums of exact numbers, in the order of `lattice.matrix`."""
    matrix = lattice.matrix
    for begin, end in pairwise(matrix.indptr.tolist()):
        cells, factors = matrix.indices[begin:end].tolist(), matrix.data[begin:end].tolist()
        yield sum((factor * values[cell] for factor, cell in zip(factors, cells, strict=True)), Fraction(0))
