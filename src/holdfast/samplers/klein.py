"""The Gaussian law on any lattice: Klein's sequential sampler with the accept step that makes it exact.

Legend: B has the basis as its columns; b*_i, mu_ji are its Gram-Schmidt vectors and coefficients (lattices/gram_schmidt.py). Coefficients
v_i are drawn from the last to the first, each from the discrete Gaussian on the integers with

    centre c_i = -sum_{j > i} mu_ji v_j,   parameter s_i^2 = sigma_squared / |b*_i|^2,

and the whole vector is kept with probability prod theta_{s_i}(c_i) / theta_{s_i}(0) (theta.py), else drawn anew ([theory R7]).

One coefficient. Centres move, so there is no table for them. With c_0 an integer near c and d = c - c_0, a proposal p comes from the
fixed discrete Gaussian of centre 0 and parameter V > s^2, and is kept with probability exp(-(t(p) - min t)), where t(p) is the exponent
of target over proposal, (p - d)^2 / (2 s^2) - p^2 / (2 V), up to a constant K (p - p*)^2:

    K = (V - s^2) / (2 s^2 V),   p* = d V / (V - s^2),   t(p) - min t = (p - q) (K (p + q) - d / s^2),   q an integer nearest to p*.

The minimum over the integers, not over the reals: for small s they are far apart. Rejected proposals are repeated for this coefficient
alone; any integer c_0 gives the same law, a near one gives few repetitions. c_0 = floor(C + 1/2) with C = -sum M_ji v_j / 2^62, M_ji =
mu_ji 2^62 rounded to an integer (halves up): integers alone, the same on every machine.

Doubles. C modulo 4 is exact in wrapping 64-bit integers, so C - c_0 is known to a relative 2^-53; c_0 itself follows from a sum in
doubles that is right to 1/8 (checked against the actual v; else Python integers). |C - c| <= delta = 2^-63 sum |v_j|. With |y| = |q - p*|
<= 1/2, x = p - p*, the exponent E = K (x^2 - y^2) is computed with an error of at most (|x| + 1/2) (2^-51 K (|x| + 1/2) + (2^-50 + delta)
/ s^2), plus (delta + 2^-50) / s^2 where q is the wrong one of two almost equally near integers. By K (|x| + 1/2)^2 <= 2 E + K, and
exp(-E) (2 E + K) <= K + 1, exp(-E) sqrt(2 E + K) <= sqrt K + 1, the probability is off by at most 2^-51 (K + 1) + (2 + 1 / sqrt K) (2^-50
+ delta) / s^2 + 2^-50; the band is four times that, or BAND where that is more. log theta_s(c) has slope at most 1 / (2 s^2), so its
error is `log_theta_error` plus delta / (2 s^2).

`Coordinate` is one coefficient: what is fixed about it, exactly or enclosed.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache, partial, reduce
from math import floor, prod, sqrt
from typing import Any, Self, TypeAlias

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, PrecisionExhausted, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball, enclosure
from holdfast.exact.law import Sampler
from holdfast.exact.parameters import Exact, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below, settle
from holdfast.lattices import algebra
from holdfast.lattices.enclosed_gram_schmidt import FIRST_BITS, EnclosedGramSchmidt, orthogonalise
from holdfast.lattices.gram_schmidt import GramSchmidt
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers.sequence_gaussian import proposal_variance
from holdfast.samplers.steps import Steps, steps_with
from holdfast.samplers.theta import log_theta_error, log_theta_ratio, theta_ratio_ball, theta_ratio_enclosed, tries_bound

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
        raise PrecisionExhausted("A coefficient of this block lies on the border of two numbers. Drop one of the kept totals.")

    def _balls(self, v: Sequence[int]) -> tuple[arb, arb]:
        """s^2 and c_i, at flint's current precision."""
        known = self.orthogonal.at(ctx.prec)
        low, high = known.squared_length(self.index)
        least, most = known.combination(self.index, v[self.index + 1 :])
        return ball(self.sigma_squared / high).union(ball(self.sigma_squared / low)), -ball(least).union(ball(most))

    def chance(self, p: int, start: int, v: Sequence[int]) -> Balls:
        def enclose_kept() -> arb:
            s_squared, centre = self._balls(v)
            V, d = ball(self.V), centre - start
            K = (V - s_squared) / (2 * s_squared * V)
            middle = d * V / (V - s_squared)
            # On the border of two nearest integers both give nearly the same number; the ball has both.
            nearest = {floor(end + Fraction(1, 2)) for end in enclosure(middle)}
            found = [(-(p - q) * (K * (p + q) - d / s_squared)).exp() for q in nearest]
            return reduce(arb.union, found)

        return enclose_kept

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
    least = proposal_variance(s_squared)
    unit = Fraction(2) ** (floor(least).bit_length() - 5)
    return -(-least // unit) * unit


Ints: TypeAlias = NDArray[np.int64]
Doubles: TypeAlias = NDArray[np.float64]

CHUNK_DRAWS = 1 << 15
"""Draws made side by side. A constant: the order in which words are read depends on it."""
MOST_TRIES_AT_ONCE = 1 << 9
"""Tries made side by side for one draw that was thrown away often: a hundred cost hardly more time than one. A constant, as above."""
FLAT = Fraction(5, 2)
"""From this s^2 on a theta ratio misses 1 by less than 2^-60 ([theory T17]: 39.5 exp(-2 pi^2 s^2) / 4)."""
PILOT_DRAWS = 512


class KleinGaussian:
    """The discrete Gaussian on a lattice, coefficient by coefficient.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) for z in the lattice that the columns of `basis` span.
    Given:       independent integer columns (checked). The law depends on the lattice alone; the basis decides about speed (LLL-reduce
                 long ones with `holdfast.lattices.algebra.reduced_basis`) and about which draw belongs to which words.
    Guarantees:  exact over uniform words; a proposal that is thrown away is followed by the next words.
    Reference:   [theory R7]; [Brakerski et al. 2013] Lemma 2.3.

    `weights`: whole positive ones, for exp(-sum w_i z_i^2 / (2 sigma_squared)) instead.
    `whole`: whether the accept step follows; without it, every coefficient final when drawn, the law is the sequential one ([theory R22]).
    `band` exists for tests: a wide one changes nothing but the time.
    """

    @property
    def name(self) -> str:
        return "Klein's sampler with accept step" if self.whole else "Klein's sampler without accept step"

    def __init__(
        self, basis: algebra.Matrix, sigma_squared: Exact, band: float = BAND, weights: Sequence[int] | None = None, *, whole: bool = True
    ) -> None:
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        self.orthogonal = orthogonalise(basis, weights)
        if self.orthogonal.dimension == 0:
            raise InvalidParameter("A basis has at least one column. Got none: the kept totals fix every cell of this block.")
        self._band, self.whole = band, whole
        self.cells, self.dimension = self.orthogonal.cells, self.orthogonal.dimension
        self.coordinates = coordinates_of(self.orthogonal, self.sigma_squared)

    @cached_property
    def expected_tries(self) -> float:
        """The proven bound prod theta3(exp(-2 pi^2 s_i^2)); where it is above 2, what a pilot with public words finds, if that is less."""
        bound = tries_bound(self._variances) if self.whole else 1.0
        if bound <= 2:
            return bound
        words = NoiseKey.for_tests("pilot of Klein's sampler").stream(self.dimension)
        chance = float(np.exp(self.propose(PILOT_DRAWS, words)[1]).mean())
        return min(bound, 1 / chance) if chance > 0 else bound

    @property
    def _variances(self) -> Doubles:
        return np.array([float(c.s_squared) for c in self.coordinates])

    @cached_property
    def steps(self) -> Steps:
        """The variances of its coefficients; only those whose centre moves have a price."""
        moving = [c.s_squared for c in self.coordinates if len(c.later)]
        return steps_with(self._variances, 1, min(moving), moving.count(min(moving))) if moving else Steps()

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells)."""
        out = np.empty((sample_size(n), self.cells), dtype=np.int64)
        for begin in range(0, n, CHUNK_DRAWS):
            piece = out[begin : begin + CHUNK_DRAWS]
            pending, rounds = np.arange(len(piece)), 0
            while len(pending):
                tries = tries_at_once(rounds, len(pending))
                v, logs, error = self.propose(tries * len(pending), words)
                kept = self._keep(v, logs, error, words).reshape(tries, len(pending))
                done = kept.any(axis=0)
                first = kept.argmax(axis=0) * len(pending) + np.arange(len(pending))
                piece[pending[done]] = self._vectors(v[:, first[done]])
                pending, rounds = pending[~done], rounds + 1
        return out

    def at(self, sigma_squared: Fraction) -> KleinGaussian:
        """The same basis with another parameter: its Gram-Schmidt form is not computed again."""
        other = copy.copy(self)
        for known in ("expected_tries", "steps"):
            other.__dict__.pop(known, None)
        other.sigma_squared = sigma_squared
        other.coordinates = [coordinate.at(sigma_squared) for coordinate in self.coordinates]
        return other

    def squared_lengths(self) -> list[arb]:
        """|b*_i|^2 of every basis vector, as balls at flint's current precision."""
        if isinstance(self.orthogonal, GramSchmidt):
            return [ball(length) for length in self.orthogonal.squared_lengths]
        known = self.orthogonal.at(ctx.prec)
        return [ball(low).union(ball(high)) for low, high in map(known.squared_length, range(self.dimension))]

    def tries(self, n: int, words: Words) -> tuple[Ints, NDArray[np.bool_]]:
        """n single tries: vectors, and which of them the accept step keeps. For samplers that draw the parameter anew with every try."""
        v, logs, error = self.propose(n, words)
        return self._vectors(v), self._keep(v, logs, error, words)

    def propose(self, n: int, words: Words) -> tuple[Ints, Doubles, float]:
        """Coefficients (dimension, n) before the accept step, the logarithm of its probability, and that number's largest error."""
        v = np.zeros((self.dimension, n), dtype=np.int64)
        logs, error = np.zeros(n), 2.0**-50
        for coordinate in reversed(self.coordinates):
            if coordinate.has_table:
                v[coordinate.index] = coordinate.sampler.draw(n, words)
                continue
            start, d, delta = _centres(coordinate, v)
            v[coordinate.index] = start + self._coefficient(coordinate, start, d, delta, v, words)
            if coordinate.s_squared < FLAT and self.whole:
                logs += log_theta_ratio(float(coordinate.s_squared), d)
                error += float(log_theta_error(float(coordinate.s_squared))) + delta * coordinate.inverse
            else:
                error += 2.0**-60
        return v, logs, error

    def _coefficient(self, coordinate: Coordinate, start: Ints, d: Doubles, delta: float, v: Ints, words: Words) -> Ints:
        """p for every draw: the fixed proposal, kept or repeated."""
        out = np.empty(len(d), dtype=np.int64)
        band = max(self._band, coordinate.error(delta))
        pending = np.arange(len(d))
        while len(pending):
            p = coordinate.sampler.draw(len(pending), words)
            base = words.position
            cells = words.take(len(pending)).astype(np.float64)
            mine = d[pending]
            drift = mine * coordinate.inverse
            nearest = np.rint(drift / (2 * coordinate.K_double))
            exponent = (p - nearest) * (coordinate.K_double * (p + nearest) - drift)
            verdict = settle(cells, 32, np.exp(-np.maximum(exponent, 0.0)), band)
            for k in np.flatnonzero(verdict == 0):
                column = v[:, pending[k]]
                chance = coordinate.chance(int(p[k]), int(start[pending[k]]), column.tolist())
                below = is_below(int(cells[k]), 32, chance, words, base + int(k))
                verdict[k] = 1 if below else -1
            kept = verdict > 0
            out[pending[kept]] = p[kept]
            pending = pending[~kept]
        return out

    def _keep(self, v: Ints, logs: Doubles, error: float, words: Words) -> NDArray[np.bool_]:
        """The accept step for the whole vectors."""
        if not self.whole:
            return np.ones(v.shape[1], dtype=np.bool_)
        base = words.position
        cells = words.take(v.shape[1]).astype(np.float64)
        verdict = settle(cells, 32, np.exp(logs), max(self._band, 4 * error))
        for k in np.flatnonzero(verdict == 0):
            chance = self.chance([int(entry) for entry in v[:, k]])
            verdict[k] = 1 if is_below(int(cells[k]), 32, chance, words, base + int(k)) else -1
        return verdict > 0

    def chance(self, v: list[int]) -> Callable[[], arb]:
        """The accept step's probability as a function giving balls."""
        ratios = [coordinate.theta_ratio(v) for coordinate in self.coordinates]
        return lambda: prod((ratio() for ratio in ratios), start=arb(1))

    def _vectors(self, v: Ints) -> Ints:
        """B v for every column of v."""
        basis: NDArray[Any] = self.orthogonal.basis
        reach = np.abs(basis) @ [max(abs(int(row.max())), abs(int(row.min()))) if row.size else 0 for row in v]
        if max(reach.tolist()) < 2**63:
            return v.T @ basis.astype(np.int64).T
        return np.asarray(v.T.astype(object) @ basis.T).astype(np.int64)


def tries_at_once(rounds: int, pending: int) -> int:
    """Tries for each draw still pending after so many rounds: 1, 2, 4, ... A draw takes its first kept try, the later ones are not used."""
    return max(1, min(1 << min(rounds, 32), MOST_TRIES_AT_ONCE, CHUNK_DRAWS // pending))


def _centres(coordinate: Coordinate, v: Ints) -> tuple[Ints, Doubles, float]:
    """c_0, the double nearest to C - c_0, and a bound of |C - c|, for every draw."""
    n = v.shape[1]
    if not len(coordinate.later):
        return np.zeros(n, dtype=np.int64), np.zeros(n), 0.0
    later = v[coordinate.later]
    largest = np.maximum(-later.min(axis=1), later.max(axis=1)).astype(np.float64)
    delta = 2.0**-62 * float(largest.sum())
    half = np.uint64(1 << (FRACTION_BITS - 1))
    shifted = half - coordinate.wrapped @ later.astype(np.uint64)  # wraps around: exact modulo 2^64
    mask = np.uint64((1 << FRACTION_BITS) - 1)
    d: Doubles = ((shifted & mask).astype(np.int64) - np.int64(half)).astype(np.float64) * 2.0**-FRACTION_BITS
    reach = float(np.abs(coordinate.mu) @ largest)
    if (len(largest) + 8) * 2.0**-52 * reach + delta < 0.125:
        return np.rint(-(coordinate.mu @ later) - d).astype(np.int64), d, delta
    start = [coordinate.start(column.tolist()) for column in v.T]
    if max(map(abs, start)) >= 2**62:
        raise RequestTooLarge(
            "Coefficients in this basis leave 64-bit integers. Reduce the basis first with holdfast.lattices.algebra.reduced_basis."
        )
    return np.array(start, dtype=np.int64), d, delta
