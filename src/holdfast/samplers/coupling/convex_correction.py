"""The correction of coupling from the past for any basis: the convex majorant itself, which is monotone as it stands.

Legend: b*_i, for every coordinate i, is the Gram-Schmidt vector of its basis vector, orthogonal to those drawn later. Drawing i has
1 / s_i^2 <= sum_f (b*_if)^2 / tau_f. With w_if at or above (b*_if)^2, x(tau) at or above 1 / tau and falling, G convex and at or above H,

    Phi(tau) = sum_i G(X_i),   X_i = sum_f w_if x(tau_f),

is at or above sum_i H(1 / s_i^2). A convex function of a sum has mixed differences that are not negative, so the coupling is monotone
[theory T191]. All three are dyadic tables, rounded up: w and x of so few bits that every X_i and every change of it is exact in doubles,
G linear between knots [theory T192].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import NoExactSampler
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.samplers.coupling.majorant import KNEE, SLOPE, check_certified, majorant
from holdfast.samplers.coupling.mixture import Mixture

Ints = NDArray[np.int64]
Doubles = NDArray[np.float64]

NEAR = 16
"""Atoms from here on share one x: what they add to X_i hardly changes any more."""
DOUBLE_BITS = 52
INVERSE_BITS = 20
LEAST_BITS = 24
"""Bits of w and x together, below which rounding them up would cost too much."""
KNOT_BITS = 6
"""Knots of G lie 2^-this apart."""
HEIGHT_BITS = 50
"""G and its rises are whole multiples of 2^-this."""
TABLE_BITS = 128
LARGEST_EXPONENT = 600.0
"""Of what a cell adds: its exponential is a double, and no try would ever be accepted beyond."""
TOO_LONG = "Coupling from the past has no hope here: the vectors of a basis of this block are too long."


class Tables(NamedTuple):
    """What compiled loops read. The weights of cell e are squares[starts[e] : starts[e + 1]], of the coordinates beside them."""

    starts: Ints
    coordinates: Ints
    squares: Doubles
    inverses: Doubles
    heights: Doubles
    rises: Doubles


@dataclass(frozen=True, eq=False)
class ConvexCorrection:
    """Phi for a basis; see above. `orthogonal` has basis vectors in the reverse of the order in which they are drawn."""

    orthogonal: GramSchmidt
    mixture: Mixture

    @cached_property
    def near(self) -> int:
        """Atoms that have an x of their own; the last of these stands for all later ones."""
        return min(self.mixture.atoms, int(np.searchsorted(self.mixture.taus, float(NEAR))) + 1)

    @cached_property
    def _bits(self) -> tuple[int, int]:
        """(bits of w, bits of x) after the binary point: X stays below 2^52 units, with every square rounded up by at most 1."""
        longest = max(self.orthogonal.squared_lengths) + self.orthogonal.cells
        spare = DOUBLE_BITS - int(longest * (1 / self.mixture.tau(0) + 1)).bit_length()
        if spare < LEAST_BITS:
            raise NoExactSampler(TOO_LONG)
        of_x = min(INVERSE_BITS, spare // 2)
        return spare - of_x, of_x

    @cached_property
    def square_units(self) -> list[dict[int, int]]:
        """For every cell f: w_if by coordinate i, where it is not 0, in units of 2^-(bits of w)."""
        of_w = self._bits[0]
        found: list[dict[int, int]] = [{} for _ in range(self.orthogonal.cells)]
        for i, vector in enumerate(self.orthogonal.integral_vectors):
            scale = self.orthogonal.determinants[i] ** 2
            for f, entry in enumerate(vector):
                if entry:
                    found[f][i] = -((-(int(entry) ** 2) << of_w) // scale)
        return found

    @cached_property
    def inverse_units(self) -> list[int]:
        """x of the near atoms in units of 2^-(bits of x): 1 / tau rounded up."""
        return [-((-1 << self._bits[1]) // self.mixture.tau(j)) for j in range(self.near)]

    @cached_property
    def tables(self) -> Tables:
        of_w, of_x = self._bits
        cells = self.square_units
        starts = np.cumsum([0, *map(len, cells)])
        coordinates = np.array([i for cell in cells for i in cell], dtype=np.int64)
        squares = np.array([float(w) for cell in cells for w in cell.values()]) * 2.0**-of_w
        inverses = np.array(self.inverse_units, dtype=np.float64) * 2.0**-of_x
        heights, rises = (np.array(units, dtype=np.float64) * 2.0**-HEIGHT_BITS for units in _heights())
        most = max(sum(cell.values()) for cell in cells) * 2.0**-of_w * inverses[0] * rises[-1] * (1 << KNOT_BITS)
        if most > LARGEST_EXPONENT:
            raise NoExactSampler(TOO_LONG)
        return Tables(starts, coordinates, squares, inverses, heights, rises)

    @cached_property
    def totals(self) -> list[int]:
        """sum_f w_if for every coordinate, in units: X_i is this times x where all cells have one atom."""
        found = [0] * self.orthogonal.dimension
        for cell in self.square_units:
            for i, w in cell.items():
                found[i] += w
        return found

    @cached_property
    def ends(self) -> Doubles:
        """X_i where every cell has the first atom, and where every one has the last."""
        unit = 2.0 ** -sum(self._bits)
        return np.array([[float(total * x) * unit for total in self.totals] for x in (self.inverse_units[0], self.inverse_units[-1])])

    # Exactly, in rationals.

    def inverse(self, j: int) -> int:
        return self.inverse_units[min(j, self.near - 1)]

    def sums(self, indices: list[int]) -> list[int]:
        """X_i in units of 2^-(bits of w and x)."""
        found = [0] * self.orthogonal.dimension
        for cell, j in zip(self.square_units, indices, strict=True):
            x = self.inverse(j)
            for i, w in cell.items():
                found[i] += w * x
        return found

    def value(self, indices: list[int]) -> Fraction:
        """Phi."""
        return sum(self._height(x) for x in self.sums(indices)) * self._unit

    def exponents(self, indices: list[int], cell: int) -> list[Fraction]:
        """Phi with each near atom in place of the cell's own, minus Phi with the last of them; the other cells as they are."""
        sums, now = self.sums(indices), self.inverse(indices[cell])
        return self._differences(cell, {i: sums[i] - w * now for i, w in self.square_units[cell].items()})

    def flattest(self, cell: int) -> list[Fraction]:
        """The same where every other cell has the last atom: nowhere steeper than in any state."""
        last = self.inverse_units[-1]
        return self._differences(cell, {i: (self.totals[i] - w) * last for i, w in self.square_units[cell].items()})

    def _differences(self, cell: int, others: dict[int, int]) -> list[Fraction]:
        squares = self.square_units[cell]
        found = [sum(self._height(others[i] + w * x) for i, w in squares.items()) for x in self.inverse_units]
        return [(value - found[-1]) * self._unit for value in found]

    def _height(self, x: int) -> int:
        """G(x) in units of `_unit`, x in units too."""
        heights, rises = _heights()
        knot = 1 << (sum(self._bits) - KNOT_BITS)
        k = min(x // knot, len(rises) - 1)
        return heights[k] * knot + rises[k] * (x - k * knot)

    @property
    def _unit(self) -> Fraction:
        return Fraction(1, 1 << (HEIGHT_BITS + sum(self._bits) - KNOT_BITS))

    def in_doubles(self, indices: Ints) -> tuple[float, float]:
        """(Phi, its error)."""
        tables, near = self.tables, self.near - 1
        x = np.repeat(tables.inverses[np.minimum(indices, near)], np.diff(tables.starts))
        sums = np.bincount(tables.coordinates, weights=tables.squares * x, minlength=self.orthogonal.dimension) * (1 << KNOT_BITS)
        k = np.minimum(sums.astype(np.int64), len(tables.rises) - 1)
        value = float((tables.heights[k] + tables.rises[k] * (sums - k)).sum())
        return value, value * (self.orthogonal.dimension + 8) * 2.0**-52


@cache
def _heights() -> tuple[list[int], list[int]]:
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
            before = Fraction(found.lower)
    rises.append(max(rises[-1], math.ceil(SLOPE * (1 << (HEIGHT_BITS - KNOT_BITS)))))
    heights = [0]
    for rise in rises[:-1]:
        heights.append(heights[-1] + rise)
    return heights, rises
