"""One coefficient of Klein's sampler: what is fixed about it, exactly or enclosed (samplers/klein.py has the legend and the proofs)."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache, partial, reduce
from math import floor, sqrt
from typing import Self, TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import PrecisionExhausted
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball, enclosure
from holdfast.exact.law import Sampler
from holdfast.lattices.enclosed_gram_schmidt import FIRST_BITS, EnclosedGramSchmidt
from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.samplers.theta import theta_ratio_ball, theta_ratio_enclosed

Balls: TypeAlias = Callable[[], arb]
"""A real number as a ball at flint's current precision."""

FRACTION_BITS = 62
LONGEST_TABLE_PARAMETER = 2**256
"""Numerators and denominators of s^2 beyond this are not given to a table of their own."""
NOMINAL_BITS = 100
"""Leading bits of the s^2 that proposals and doubles are made for, where s^2 itself is enclosed."""
MOST_BITS = 1 << 12
"""Digits at which a number that will not be rounded is given up. None is known to come near."""


class Coordinate(ABC):
    """What is fixed about one coefficient: its parameter, its proposal, its doubles.

    s_squared:   exact, or within a relative 2^-NOMINAL_BITS: doubles and the choice of V do not see the difference.
    fixed:       mu_ji 2^FRACTION_BITS for j in `later`, rounded, halves up. mu_ji = 0 for the others.
    """

    def __init__(self, i: int, s_squared: Fraction, later: NDArray[np.int64], fixed: list[int], *, has_table: bool) -> None:
        self.index, self.later, self.fixed = i, later, fixed
        self.wrapped = np.array([value % 2**64 for value in fixed], dtype=np.uint64)
        self.mu = np.array([value / 2**FRACTION_BITS for value in fixed])
        self._set_parameter(s_squared, has_table=has_table)

    def _set_parameter(self, s_squared: Fraction, *, has_table: bool) -> None:
        self.s_squared, self.has_table = s_squared, has_table
        self.V = s_squared if has_table else proposal_parameter(s_squared)
        self.sampler = _table(self.V)
        K = (self.V - s_squared) / (2 * s_squared * self.V)
        self.K_double, self.inverse = float(K), float(1 / s_squared)

    @abstractmethod
    def at(self, sigma_squared: Fraction) -> Self:
        """The same coefficient for another sigma_squared; what the basis alone fixes is shared."""

    def start(self, v: Sequence[int]) -> int:
        """c_0, exactly; v has all coefficients, those before this one not yet drawn."""
        total: int = sum(a * v[j] for a, j in zip(self.fixed, self.later.tolist(), strict=True))
        return ((1 << (FRACTION_BITS - 1)) - total) >> FRACTION_BITS

    @abstractmethod
    def chance(self, p: int, start: int, v: Sequence[int]) -> Balls:
        """exp(-(t(p) - min t)): the probability with which a proposal is kept."""

    @abstractmethod
    def theta_ratio(self, v: Sequence[int]) -> Balls:
        """theta_s(c) / theta_s(0)."""

    def error(self, delta: float) -> float:
        """How far the double of the accept probability can be off, four times over."""
        return 4 * (2**-51 * (self.K_double + 1) + (2 + 1 / sqrt(self.K_double)) * (2**-50 + delta) * self.inverse + 2**-50)


class ExactCoordinate(Coordinate):
    """From an exact Gram-Schmidt form: every decision from fractions. `table` exists for tests."""

    def __init__(self, i: int, orthogonal: GramSchmidt, sigma_squared: Fraction, *, table: bool = True) -> None:
        self.squared_length = orthogonal.squared_lengths[i]
        s_squared = sigma_squared / self.squared_length
        self.denominator = orthogonal.determinants[i + 1]
        later = np.flatnonzero(orthogonal.lambdas[i + 1 :, i] != 0) + i + 1
        self.lambdas = [int(orthogonal.lambdas[j, i]) for j in later]
        fixed = [floor(Fraction(a, self.denominator) * 2**FRACTION_BITS + Fraction(1, 2)) for a in self.lambdas]
        self.may_have_table = table and not fixed
        super().__init__(i, s_squared, later, fixed, has_table=self.may_have_table and _is_short(s_squared))

    def at(self, sigma_squared: Fraction) -> Self:
        other = copy.copy(self)
        s_squared = sigma_squared / self.squared_length
        other._set_parameter(s_squared, has_table=self.may_have_table and _is_short(s_squared))
        return other

    @property
    def K(self) -> Fraction:
        return (self.V - self.s_squared) / (2 * self.s_squared * self.V)

    def exponent(self, p: int, d: Fraction) -> Fraction:
        """t(p) - min t, exactly."""
        nearest = round(d * self.V / (self.V - self.s_squared))
        return (p - nearest) * (self.K * (p + nearest) - d / self.s_squared)

    def centre(self, v: Sequence[int]) -> Fraction:
        """c_i, exactly."""
        return Fraction(-sum(a * v[j] for a, j in zip(self.lambdas, self.later.tolist(), strict=True)), self.denominator)

    def chance(self, p: int, start: int, v: Sequence[int]) -> Balls:
        t = self.exponent(p, self.centre(v) - start)
        return lambda: (-ball(t)).exp()

    def theta_ratio(self, v: Sequence[int]) -> Balls:
        return partial(theta_ratio_ball, self.s_squared, self.centre(v))


class EnclosedCoordinate(Coordinate):
    """From an enclosed Gram-Schmidt form: a decision takes as many digits as it needs."""

    def __init__(self, i: int, orthogonal: EnclosedGramSchmidt, sigma_squared: Fraction) -> None:
        self.orthogonal, self.sigma_squared = orthogonal, sigma_squared
        later = np.arange(i + 1, orthogonal.dimension)
        super().__init__(i, self._nominal(i), later, self._fixed_point(i), has_table=False)

    def at(self, sigma_squared: Fraction) -> Self:
        other = copy.copy(self)
        other.sigma_squared = sigma_squared
        other._set_parameter(other._nominal(self.index), has_table=False)
        return other

    def _nominal(self, i: int) -> Fraction:
        """s^2 rounded to NOMINAL_BITS bits: the same for every enclosure, and thus on every machine."""
        bits = FIRST_BITS
        while bits <= MOST_BITS:
            low, high = self.orthogonal.at(bits).squared_length(i)
            if (rounded := nominal(self.sigma_squared / high)) == nominal(self.sigma_squared / low):
                return rounded
            bits *= 2
        raise PrecisionExhausted("A variance in this block lies on the border of two numbers. Change sigma_squared a little.")

    def _fixed_point(self, i: int) -> list[int]:
        bits = FIRST_BITS
        while bits <= MOST_BITS:
            if (fixed := self.orthogonal.at(bits).rounded_mu(i, FRACTION_BITS)) is not None:
                return [int(value) for value in fixed]
            bits *= 2
        raise PrecisionExhausted("A coefficient of this block lies on the border of two numbers. Keep one total less.")

    def _balls(self, v: Sequence[int]) -> tuple[arb, arb]:
        """s^2 and c_i, at flint's current precision."""
        known = self.orthogonal.at(ctx.prec)
        low, high = known.squared_length(self.index)
        least, most = known.combination(self.index, v[self.index + 1 :])
        return ball(self.sigma_squared / high).union(ball(self.sigma_squared / low)), -ball(least).union(ball(most))

    def chance(self, p: int, start: int, v: Sequence[int]) -> Balls:
        def kept() -> arb:
            s_squared, centre = self._balls(v)
            V, d = ball(self.V), centre - start
            K = (V - s_squared) / (2 * s_squared * V)
            middle = d * V / (V - s_squared)
            # On the border of two nearest integers both give nearly the same number; the ball has both.
            nearest = {floor(end + Fraction(1, 2)) for end in enclosure(middle)}
            found = [(-(p - q) * (K * (p + q) - d / s_squared)).exp() for q in nearest]
            return reduce(arb.union, found)

        return kept

    def theta_ratio(self, v: Sequence[int]) -> Balls:
        return lambda: theta_ratio_enclosed(self.s_squared, *self._balls(v))


def nominal(value: Fraction) -> Fraction:
    """A positive number rounded to NOMINAL_BITS leading bits, halves up. It never falls: two equal ends tell all between."""
    length = value.numerator.bit_length() - value.denominator.bit_length()
    length += value >= Fraction(2) ** length  # 2^(length - 1) <= value < 2^length, however the fraction is reduced
    unit = Fraction(2) ** (length - NOMINAL_BITS)
    return floor(value / unit + Fraction(1, 2)) * unit


def _is_short(s_squared: Fraction) -> bool:
    return max(s_squared.numerator, s_squared.denominator) < LONGEST_TABLE_PARAMETER


def coordinates_of(orthogonal: GramSchmidt | EnclosedGramSchmidt, sigma_squared: Fraction) -> list[Coordinate]:
    """One for each column of the basis."""
    if isinstance(orthogonal, GramSchmidt):
        return [ExactCoordinate(i, orthogonal, sigma_squared) for i in range(orthogonal.dimension)]
    return [EnclosedCoordinate(i, orthogonal, sigma_squared) for i in range(orthogonal.dimension)]


@lru_cache(maxsize=128)
def _table(parameter: Fraction) -> Sampler:
    """The centred discrete Gaussian, prepared once for all coefficients that propose from it."""
    return DiscreteGaussian(parameter).sampler()


def proposal_parameter(s_squared: Fraction) -> Fraction:
    """V: above s^2 by a factor, by 1/4 at least where s is small, so that p* stays near; rounded up to five bits: few tables are needed."""
    g = next(
        (g for limit, g in ((4, Fraction(5, 4)), (64, Fraction(9, 8)), (1024, Fraction(33, 32))) if s_squared < limit), Fraction(65, 64)
    )
    least = max(g * s_squared, s_squared + Fraction(1, 4))
    unit = Fraction(2) ** (floor(least).bit_length() - 5)
    return -(-least // unit) * unit
