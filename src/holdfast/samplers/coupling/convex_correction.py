"""The correction for summing a Gaussian over the integers instead of integrating it, and convex functions above it.

Legend: H(x) = log sum_n exp(-2 pi^2 n^2 / x), the logarithm of (sum over the integers) / (integral) of exp(-k^2 x / 2); x = 1 / s^2. In
the terms of samplers/theta.py H(1 / s^2) = log(theta_s(0) / (s sqrt(2 pi))): normalised, unlike theta_s.

    majorant(x) = H(x) up to KNEE, then H(KNEE) + SLOPE (x - KNEE).

Increasing, convex and nowhere below H [theory T161]. `certify` proves by ball arithmetic what the proof leaves to computation.

The correction of coupling from the past is Phi(tau) = sum_i G(X_i), X_i = sum_f w_if x(tau_f), over the coordinates i, with w_if at or
above (b*_if)^2, b*_i the Gram-Schmidt vector orthogonal to those drawn later, x(tau) at or above 1 / tau and falling, G convex and at or
above H. It is at or above sum_i H(1 / s_i^2), and the coupling stays monotone [theory T191]. All three are dyadic tables, rounded up: w and
x of so few bits that every X_i is a 64-bit integer, G linear between knots [theory T192].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import InternalError, NoExactSampler
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.samplers.coupling.mixture import Mixture

KNEE = Fraction(83, 10)
"""H is convex up to here; its inflection is at 8.3889."""
SLOPE = Fraction(4497, 100_000)
"""Above the largest slope of H, .0449648."""
POISSON_FROM = Fraction(2)
"""Below this x the proof is by hand."""
LARGE = Fraction(12)
"""From here on H'(x) <= 1 / (2 x) < SLOPE."""
HALVINGS = 20


def log_theta(x: arb) -> arb:
    """H(x) for x > 0, as a ball at flint's current precision."""
    return log_theta_by_poisson(x) if x > 6 else log_theta_by_definition(x)


def majorant(x: arb) -> arb:
    """The convex majorant at x > 0, as a ball at flint's current precision."""
    knee = ball(KNEE)
    if x <= knee:
        return log_theta(x)
    line = log_theta(knee) + ball(SLOPE) * (x - knee)
    if x >= knee:
        return line
    return log_theta(x.lower()).union(line)  # both increase, and they meet at the knee


def log_theta_by_definition(x: arb) -> arb:
    """H by its definition: good for x up to about 6."""
    step = 2 * arb.pi() ** 2 / x
    last = 1 + math.isqrt(int(ctx.prec / max(1.0, float(step.lower()))))
    terms = [(-(n * n) * step).exp() for n in range(1, last + 2)]
    rest = arb(0).union(2 * terms[-1])  # the ratio of terms falls from below 1/2 on
    return (2 * sum(terms[:-1], rest)).log1p()


def log_theta_by_poisson(x: arb) -> arb:
    """H by Poisson summation: log sqrt(x / 2 pi) + log sum_k exp(-k^2 x / 2)."""
    last = 1 + math.isqrt(int(ctx.prec / max(1.0, float(x.lower()) / 2)))
    terms = [(-(k * k) * x / 2).exp() for k in range(1, last + 2)]
    rest = arb(0).union(2 * terms[-1])
    return (x / (2 * arb.pi())).log() / 2 + (2 * sum(terms[:-1], rest)).log1p()


@cache
def certify() -> bool:
    """Prove parts (ii) and (iii) of [theory T161] by ball arithmetic: H'' > 0 on [2, KNEE], H' < SLOPE on [KNEE, LARGE]."""
    with precision(64):
        slope = ball(SLOPE)
        bent = _holds(lambda x: log_theta_derivatives(x)[1] > 0, POISSON_FROM, KNEE)
        return bent and _holds(lambda x: log_theta_derivatives(x)[0] < slope, KNEE, LARGE)


def check_certified() -> None:
    """Before a table is made of the majorant: the proof by computation, once in a process (30 ms)."""
    if not certify():
        raise InternalError("The correction was not proved convex and steep enough: nothing is drawn.")


def _holds(test: Callable[[arb], bool], begin: Fraction, end: Fraction, halvings: int = HALVINGS) -> bool:
    """Whether balls that together hold [begin, end] all pass the test; a ball that does not is halved, a few times."""
    if test(ball(begin).union(ball(end))):
        return True
    middle = (begin + end) / 2
    return halvings > 0 and all(_holds(test, *half, halvings - 1) for half in ((begin, middle), (middle, end)))


def log_theta_derivatives(x: arb) -> tuple[arb, arb]:
    """H' and H'' on a ball, from the terms n = 1, ..., 8 of the definition; x <= 12, so that the others are below 10^-50."""
    theta, first, second = arb(1), arb(0), arb(0)
    for n in range(1, 9):
        u = n * n * 2 * arb.pi() ** 2 / x
        term = 2 * (-u).exp()
        theta += term
        first += term * u / x
        second += term * (u * u - 2 * u) / (x * x)
    left_out = arb(0, 1e-50)
    theta, first, second = theta + left_out, first + left_out, second + left_out
    slope = first / theta
    return slope, second / theta - slope * slope


Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

NEAR = 16
"""Atoms from here on share one x: what they add to X_i hardly changes any more."""
SUM_BITS = 62
INVERSE_BITS, SQUARE_BITS = 20, 32
LEAST_BITS = 24
"""Bits of w and x together, below which rounding them up would cost too much."""
GRID_INVERSE_BITS, GRID_SQUARE_BITS = 17, 19
"""On a grid w is a product of two numbers of so many bits."""
WINDOW = 64
"""Rows, and columns, that a coordinate's vector uses at most. More would hardly shorten it, and cost time on long axes."""
KNOT_BITS = 4
"""Knots of G lie 2^-this apart."""
MOST_KNOTS = 1 << 14
"""Most knots of the table that loops read; on a grid no sum reaches beyond."""
HEIGHT_BITS = 50
"""G and its rises are whole multiples of 2^-this."""
TABLE_BITS = 128
LARGEST_EXPONENT = 600.0
"""Largest exponent that a cell adds: its exponential is a double, and no try would ever be accepted beyond."""
TOO_LONG = "Coupling from the past has no hope here: the vectors of a basis of this block are too long."


class Curve(NamedTuple):
    """x of the near atoms, in units; G at its knots and how much it rises from each to the next; a knot in units, and one over it."""

    inverses: Ints
    heights: Doubles
    rises: Doubles
    knot_bits: int
    scale: float


class ConvexCorrection(ABC):
    """Phi; see above. A form says what the squares w are, and how many bits they and x have."""

    def __init__(self, mixture: Mixture, square_bits: int, inverse_bits: int) -> None:
        self.mixture, self.bits = mixture, square_bits + inverse_bits
        self.near = min(mixture.atoms, int(np.searchsorted(mixture.taus, float(NEAR))) + 1)
        """Atoms that have an x of their own; the last of these stands for all later ones."""
        self.inverses = np.array([-((-1 << inverse_bits) // mixture.tau(j)) for j in range(self.near)], dtype=np.int64)

    @abstractmethod
    def column(self, cell: int) -> tuple[Ints, Ints]:
        """(coordinates with w_if > 0 at cell f, those w in units)."""

    @abstractmethod
    def sums_of(self, x: Ints) -> Ints:
        """sum_f w_if x_f for all coordinates i."""

    @cached_property
    def curve(self) -> Curve:
        heights, rises = heights_and_rises()
        knot_bits = self.bits - KNOT_BITS
        more = min(MOST_KNOTS, int(self.ends[0].max() >> knot_bits) + 2) - len(rises)
        far = [heights[-1] + n * rises[-1] for n in range(1, more + 1)]
        unit = 2.0**-HEIGHT_BITS
        return Curve(self.inverses, np.array(heights + far) * unit, np.array(rises + rises[-1:] * more) * unit, knot_bits, 2.0**-knot_bits)

    @cached_property
    def ends(self) -> tuple[Ints, Ints]:
        """X_i where every cell has the first atom, and where every one has the last."""
        totals = self.sums_of(np.ones(self.cells, dtype=np.int64))
        return totals * self.inverses[0], totals * self.inverses[-1]

    @property
    @abstractmethod
    def cells(self) -> int: ...

    # Exactly, in integers.

    def sums(self, indices: list[int] | Ints) -> Ints:
        """X_i in units of 2^-bits."""
        return self.sums_of(self.inverses[np.minimum(indices, self.near - 1)])

    def value(self, indices: list[int]) -> Fraction:
        """Phi."""
        return int(self._heights(self.sums(indices)).sum()) * self._unit

    def exponents(self, indices: list[int], cell: int) -> list[Fraction]:
        """Phi with each near atom in place of the cell's own, minus Phi with the last of them; the other cells as they are."""
        return self._differences(cell, self.sums(indices), self.inverses[min(indices[cell], self.near - 1)])

    def flattest(self, cell: int) -> list[Fraction]:
        """The same where every other cell has the last atom: nowhere steeper than in any state."""
        return self._differences(cell, self.ends[1], self.inverses[-1])

    def _differences(self, cell: int, sums: Ints, now: np.int64) -> list[Fraction]:
        coordinates, squares = self.column(cell)
        others = sums[coordinates] - squares * now
        found = [int(self._heights(others + squares * x).sum()) for x in self.inverses]
        return [(value - found[-1]) * self._unit for value in found]

    def _heights(self, x: Ints) -> NDArray[np.object_]:
        """G(x) in units of `_unit`."""
        heights, rises = (np.array(units, dtype=object) for units in heights_and_rises())
        knot_bits = self.bits - KNOT_BITS
        k = np.minimum(x >> knot_bits, len(rises) - 1)
        return np.asarray((heights[k] << knot_bits) + rises[k] * (x - (k << knot_bits)).astype(object))

    @property
    def _unit(self) -> Fraction:
        return Fraction(1, 1 << (HEIGHT_BITS + self.bits - KNOT_BITS))

    def in_doubles(self, indices: Ints) -> tuple[float, float]:
        """(Phi, its error)."""
        curve, x = self.curve, self.sums(indices)
        k = np.minimum(x >> curve.knot_bits, len(curve.rises) - 1)
        value = float((curve.heights[k] + curve.rises[k] * ((x - (k << curve.knot_bits)) * curve.scale)).sum())
        return value, value * (x.size + 8) * 2.0**-52


class BasisCorrection(ConvexCorrection):
    """For any basis; `orthogonal` has its vectors in the reverse of the order in which they are drawn."""

    def __init__(self, orthogonal: GramSchmidt, mixture: Mixture) -> None:
        # Rounded up, no square gains more than 1.
        largest = (max(orthogonal.squared_lengths) + orthogonal.cells) * (1 / mixture.tau(0) + 1)
        spare = SUM_BITS - int(largest).bit_length()
        if spare < LEAST_BITS:
            raise NoExactSampler(TOO_LONG)
        inverse_bits = min(INVERSE_BITS, spare // 2)
        square_bits = min(SQUARE_BITS, spare - inverse_bits)
        super().__init__(mixture, square_bits, inverse_bits)
        self.squares = np.zeros((orthogonal.dimension, orthogonal.cells), dtype=np.int64)
        """w, shape (coordinates, cells)."""
        for i, vector in enumerate(orthogonal.integral_vectors):
            scale = orthogonal.determinants[i] ** 2
            self.squares[i] = [-((-(int(entry) ** 2) << square_bits) // scale) for entry in vector]
        steepest = heights_and_rises()[1][-1] * 2.0 ** (KNOT_BITS - HEIGHT_BITS)
        if float(self.squares.sum(axis=0).max()) * float(self.inverses[0]) * 2.0**-self.bits * steepest > LARGEST_EXPONENT:
            raise NoExactSampler(TOO_LONG)

    @property
    def cells(self) -> int:
        return int(self.squares.shape[1])

    def column(self, cell: int) -> tuple[Ints, Ints]:
        found = np.flatnonzero(self.squares[:, cell])
        return found, self.squares[found, cell]

    def sums_of(self, x: Ints) -> Ints:
        return np.asarray(self.squares @ x)

    @cached_property
    def lists(self) -> tuple[Ints, Ints, Ints]:
        """(starts, coordinates, w): those of cell e stand from starts[e] to starts[e + 1]."""
        columns = [self.column(e) for e in range(self.cells)]
        starts = np.cumsum([0, *(len(found) for found, _ in columns)], dtype=np.int64)
        return starts, np.concatenate([found for found, _ in columns]), np.concatenate([squares for _, squares in columns])


class GridCorrection(ConvexCorrection):
    """For a grid drawn row by row, the last row and column forced: w at (k, l) of coordinate (i, j) is u_i[k] v_j[l] for k >= i, l >= j,
    u_i[i] = 1 and u_i[k] = 1 / p^2 on the p rows after i, WINDOW of them at most; v likewise.
    """

    def __init__(self, rows: int, columns: int, mixture: Mixture) -> None:
        super().__init__(mixture, 2 * GRID_SQUARE_BITS, GRID_INVERSE_BITS)
        self.rows, self.columns = rows, columns
        self.one = 1 << GRID_SQUARE_BITS
        self.row_squares, self.column_squares = (
            np.array([-(-self.one // int(n * n)) for n in _reach(length)], dtype=np.int64) for length in (rows, columns)
        )
        # At most (1 + 1/p + p / one) (1 + 1/s + s / one) / tau_0, and x is rounded up.
        longest = (2 + Fraction(WINDOW, self.one)) ** 2 * (1 / mixture.tau(0) + 1)
        if longest * (1 << self.bits) >= 1 << SUM_BITS:
            raise NoExactSampler(TOO_LONG)

    @property
    def cells(self) -> int:
        return self.rows * self.columns

    def column(self, cell: int) -> tuple[Ints, Ints]:
        k, l = divmod(cell, self.columns)
        rows, columns = (np.arange(max(0, n - WINDOW), min(n + 1, length - 1)) for n, length in ((k, self.rows), (l, self.columns)))
        u, v = np.where(rows == k, self.one, self.row_squares[rows]), np.where(columns == l, self.one, self.column_squares[columns])
        return (rows[:, None] * (self.columns - 1) + columns).ravel(), np.outer(u, v).ravel()

    def sums_of(self, x: Ints) -> Ints:
        table = x.reshape(self.rows, self.columns)
        table = self.one * table[:-1] + self.row_squares[:, None] * _after(table)
        return np.asarray(self.one * table[:, :-1] + self.column_squares * _after(table.T).T).ravel()


def _reach(length: int) -> Ints:
    """How many of the later ones each but the last of an axis uses."""
    return np.minimum(np.arange(length - 1, 0, -1), WINDOW)


def _after(values: Ints) -> Ints:
    """Sums of the later rows that each row but the last uses."""
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values, axis=0)])
    first = np.arange(1, len(values))
    return np.asarray(sums[first + _reach(len(values))] - sums[first])


@cache
def heights_and_rises() -> tuple[list[int], list[int]]:
    """(G at its knots 0, 2^-KNOT_BITS, ..., how much it rises from each to the next), in units; the last rise goes on for ever.

    Rises are at or above those of the majorant and never fall: so G is convex, and at or above the majorant at the knots, hence between.
    """
    check_certified()
    knots = int(KNEE * (1 << KNOT_BITS)) + 2
    rises: list[int] = []
    with precision(TABLE_BITS):
        before = Fraction(0)
        for k in range(1, knots + 1):
            found = enclosure(majorant(ball(Fraction(k, 1 << KNOT_BITS))))
            rise = math.ceil((found.upper - before) * (1 << HEIGHT_BITS))
            rises.append(max([rise, *rises[-1:]]))
            before = found.lower
    rises.append(max(rises[-1], math.ceil(SLOPE * (1 << (HEIGHT_BITS - KNOT_BITS)))))
    heights = [0]
    for rise in rises[:-1]:
        heights.append(heights[-1] + rise)
    return heights, rises
