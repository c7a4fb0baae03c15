"""What conditioning on bounds costs: the noise of a conditioned mechanism, from public facts, for all tables with the same kept totals.

The law of a block is P_x[y] proportional to exp(-rate |y - x|_1) over its tables y within the bounds. Its normaliser Z(x) depends on x, so
two tables at distance d differ by the exponent rate d + log(Z(x') / Z(x)), which is (1 + gamma) rate d at most [theory R12]. Here gamma is
bounded for all tables within the bounds and for all totals at once, so nothing about the data is needed, not even its kept totals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.lattices.norms import L1
from holdfast.lattices.shapes import Shape
from holdfast.lattices.shapes.bounded import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED

BITS = 128
STEPS = 10_000
"""The rate is found as a multiple of epsilon / STEPS: a short number to print, and no more than .02 % below the best."""

Basis: TypeAlias = Literal["equalities", "moves", "default"]


@dataclass(frozen=True)
class BestRate:
    """rate: of the noise, on the safe side. one_plus_gamma: epsilon / rate, which bounds 1 + gamma at this rate for every block.

    basis: what bounds the block that decides. "equalities": there are no inequalities. "moves": along the moves of the lattice, for all
    totals. "default": gamma is 1.
    """

    rate: Fraction
    one_plus_gamma: Fraction
    basis: Basis


def best_rate(shapes: Iterable[Shape], epsilon: Fraction) -> BestRate:
    """The largest rate found at which the conditioned Laplace law keeps epsilon per unit of l1 distance.

    Given:       the shapes of all blocks.
    Guarantees:  for every table within the bounds, whatever its totals, any other such table with the same totals at l1 distance d, and
                 every output: the logarithm of the ratio of probabilities is epsilon d at most. Certified; between epsilon / 2 and epsilon.
                 What a block keeps at one rate it keeps at every lower one ([theory T74] (c)).
    Reference:   [theory R12], [theory T70], [theory T72], [theory T73], [theory T79]
    """
    growths = {_growth(shape) for shape in map(Bounded.of, shapes)}
    return min(
        (_largest(growth, epsilon) for growth in growths),
        key=lambda best: (best.rate, best.basis == "equalities", best.basis),
        default=BestRate(epsilon, Fraction(1), "equalities"),
    )


def gamma_bound(shape: Shape, rate: Fraction) -> Fraction:
    """An upper bound of gamma for a block of this shape at this rate, whatever its totals; between 0 and 1."""
    return _growth(Bounded.of(shape)).excess(rate) / rate


class _Growth(ABC):
    """How the normaliser of a block grows, with what says so. Values: equal ones are found once."""

    basis: Basis = "moves"

    @abstractmethod
    def excess(self, rate: Fraction) -> Fraction:
        """An upper bound of gamma * rate: by how much log Z grows per unit of distance."""


@dataclass(frozen=True)
class _Constant(_Growth):
    """gamma = 0 where all tables have one normaliser, and 1 at most anywhere. [theory R12], [theory T74]"""

    gamma: int
    basis: Basis

    def excess(self, rate: Fraction) -> Fraction:
        return self.gamma * rate


@dataclass(frozen=True)
class _AlongMoves(_Growth):
    """log(1 - e^(-2 rate) + e^((D - 2) rate)) / D for elementary moves of length D; on folded grids at `folds` times the rate.

    [theory T72], [theory T79]
    """

    longest: int
    folds: int = 1

    def excess(self, rate: Fraction) -> Fraction:
        with precision(BITS):
            folded = ball(self.folds * rate)
            growth = (1 - (-2 * folded).exp() + ((self.longest - 2) * folded).exp()).log() / self.longest / self.folds
            return min(enclosure(growth).upper, rate)


@dataclass(frozen=True)
class _OneSided(_Growth):
    """log(2 - b - (1 - b)^n) / 2, b = e^(-2 rate), for one sum of n cells with bounds on one side. [theory T73]"""

    cells: int

    def excess(self, rate: Fraction) -> Fraction:
        with precision(BITS):
            rest = 1 - (-2 * ball(rate)).exp()
            return min(enclosure((1 + rest - rest**self.cells).log() / 2).upper, rate)


@dataclass(frozen=True)
class _Line(_Growth):
    """log(1 + q - q^2) / D, q = e^(-D rate): all tables of the block lie on one line in steps of length D. [theory T72]"""

    length: int

    def excess(self, rate: Fraction) -> Fraction:
        with precision(BITS):
            q = (-self.length * ball(rate)).exp()
            return enclosure((1 + q - q * q).log() / self.length).upper


def _growth(shape: Bounded) -> _Growth:
    base = shape.shape
    if not shape.has_bounds or base.is_pinned:
        return _Constant(0, "equalities")
    folds = _folds(shape)
    if ((base.is_free and not shape.rows) or folds is not None) and _is_binary(shape):
        return _Constant(0, "moves")
    if shape.dimension == 1 and base.is_listed:
        return _Line(int(np.abs(shape.basis()).sum()))
    if folds == 1 and _is_one_sided(shape):
        return _OneSided(shape.size)
    if folds is not None:
        return _AlongMoves(2, folds)
    longest = None if shape.rows else base.longest_move()
    return _Constant(1, "default") if longest is None else _AlongMoves(longest)


def _keeps(growth: _Growth, rate: Fraction, epsilon: Fraction) -> bool:
    """gamma is at most 1: half of epsilon always holds."""
    return 2 * rate <= epsilon or rate + growth.excess(rate) <= epsilon


def _largest(growth: _Growth, epsilon: Fraction) -> BestRate:
    """By bisection; whatever it meets, the rate it returns was checked."""
    if _keeps(growth, epsilon, epsilon):
        return BestRate(epsilon, Fraction(1), growth.basis)
    low, high = STEPS // 2, STEPS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _keeps(growth, epsilon * middle / STEPS, epsilon) else (low, middle)
    rate = epsilon * low / STEPS
    return BestRate(rate, epsilon / rate, growth.basis)


def _folds(shape: Bounded) -> int | None:
    """How many cells move together, where the moves are those of one sum over the longest axis: the others have two places. [theory T79]"""
    is_folded = shape.shape.keeps_axis_sums and not shape.rows and all(n == 2 for n in sorted(shape.axes)[:-1])
    return 2 ** (len(shape.axes) - 1) if is_folded else None


def _is_binary(shape: Bounded) -> bool:
    """Whether each cell of one sum or of none, or each slice across the long axis of a folded grid, has two values at most. [theory T74]"""
    lower, upper = shape.lower_cells(), shape.upper_cells()
    narrow = (lower > -UNBOUNDED) & (upper < UNBOUNDED) & (upper <= lower + 1)
    axes = shape.axes
    long = int(np.argmax(axes))
    return bool(narrow.reshape(axes).any(axis=tuple(i for i in range(len(axes)) if i != long)).all())


def _is_one_sided(shape: Bounded) -> bool:
    """Whether, with cells of sign -1 turned round, no cell has an upper bound, or none a lower one."""
    signs = shape.kept_rows()[0]
    has_lower, has_upper = shape.lower_cells() > -UNBOUNDED, shape.upper_cells() < UNBOUNDED
    below, above = np.where(signs > 0, has_lower, has_upper), np.where(signs > 0, has_upper, has_lower)
    return not above.any() or not below.any()


def gaussian_factor(shapes: Iterable[Shape]) -> int:
    """What rho is multiplied by when the Gaussian law on these blocks is conditioned on their bounds: 1 or 2.

    Law:         P_x[y] proportional to exp(-|y - x|_2^2 / (2 sigma^2)) over the tables within the bounds.
    Guarantees:  factor / (2 sigma^2) zCDP per unit of squared l2 distance, for every sigma and all tables within the bounds with the same
                 totals: 1 where there are no inequalities or one free dimension; 2 with bounds of cells for one sum, rows and columns,
                 other unimodular rows, and grids whose axes but one have two places. InvalidParameter for other blocks: the discrete
                 law can cost more there, and no bound was proved.
    Reference:   [theory T75], [theory T76], [theory T79]
    """
    return max((_gaussian_factor(shape) for shape in map(Bounded.of, shapes)), default=1)


def _gaussian_factor(shape: Bounded) -> int:
    base = shape.shape
    if not shape.has_bounds or shape.dimension <= 1 or (base.is_free and not shape.rows):
        return 1
    if not shape.rows and (base.longest_move() is not None or _folds(shape) is not None):  # longest moves are of unimodular rows
        return 2
    raise InvalidParameter(
        f"Gaussian noise conditioned on bounds has no proven cost for every kind of block. There is one of {shape.size:,} cells with "
        "inequality rows, or with kept totals that are not one sum, not rows and columns, and not known to have rows whose nonzero minors "
        "of full size are all equal up to sign. Use Laplace noise, or leave the bounds out.",
        field="noise",
    )


NeighbourhoodKind: TypeAlias = Literal["kept", "disrupted", "destroyed", "not known"]


@dataclass(frozen=True)
class Neighbourhood:
    """What kept totals and bounds leave of the neighbourhood of a table ([GM20] section 5.1).

    kind:       "kept": there are two conforming tables that one person tells apart. "disrupted": there are two, but none as near as
                that. "destroyed": there is one table only, and nothing to promise. "not known": it depends on totals that are not given.
    smallest:   the smallest l1 distance of two conforming tables, None where there are not two. Where it is a lower bound only, bounds and
                totals may leave still less than `kind` says.
    """

    kind: NeighbourhoodKind
    smallest: int | None
    status: Literal["exact", "lower bound"]


def neighbourhood(shape: Shape) -> Neighbourhood:
    """What is left of one person's neighbourhood in a block, from public facts.

    Given:       one person changes one cell of a block under no kept sum by 1, and else moves from one cell to another, which is 2.
    Guarantees:  see Neighbourhood; exact for cells under no kept sum.
    Reference:   [theory T77]
    """
    shape = Bounded.of(shape)
    base = shape.shape
    person = 1 if base.is_free else 2
    shortest = shape.shortest(L1)
    if shortest is None:
        return Neighbourhood("destroyed", None, "exact")
    if not shape.has_bounds:
        kind: NeighbourhoodKind = "disrupted" if shortest.value > person else "kept" if shortest.status == "exact" else "not known"
        return Neighbourhood(kind, shortest.value, shortest.status)
    if base.is_free and not shape.rows:  # no totals to know
        can_move = bool((shape.lower_cells() < shape.upper_cells()).any())
        return Neighbourhood("kept", 1, "exact") if can_move else Neighbourhood("destroyed", None, "exact")
    return Neighbourhood("disrupted" if shortest.value > person else "not known", shortest.value, "lower bound")
