"""The exact delta of Gaussian noise on a lattice, for two tables that differ by v: Theorem 6 of [CKS20] with Z replaced by the lattice.

Noise Z has weights exp(-|z|_2^2 / (2 s2)) on the lattice L, and v is in L. The loss at z is (2 <z, v> - |v|^2) / (2 s2), so the best event
is a half-space, and

    delta(v) = P[<Z, v> > epsilon s2 - |v|^2 / 2] - e^epsilon P[<Z, v> > epsilon s2 + |v|^2 / 2].

epsilon is here what the PAIR is promised, not what a unit of distance is. Three ways:

Cells without kept totals: for one, v = k e_1, the discrete Gaussian itself. For several, the loss depends on X = sum of v_i Z_i
alone, and X has the generating function that is the product over i of T(x^|v_i|), T(x) the sum of exp(-z^2 / (2 s2)) x^z. T is cut off at
|z| <= K; what is cut off weighs at most `cut` for one factor, so the product misses at most (kept + cut)^k - kept^k in all, spread
anywhere. k equal queries compose to just this, so that their composition is known exactly and in balls.

One kept sum over n cells, v = k (e_1 - e_2): D = Z_1 - Z_2 and S = Z_1 + Z_2 have D^2 + S^2 = 2 (Z_1^2 + Z_2^2) and equal parity, so

    P[D = d] is proportional to exp(-d^2 / (4 s2)) C(d mod 2),   C(j) = sum over S = j mod 2 of exp(-S^2 / (4 s2)) W(-S),

W(S) the weight of n - 2 integers with sum S. So D is a discrete Gaussian but for one number, b = (C(0) - C(1)) / (C(0) + C(1)). Write f(x)
for the sum of exp(-z^2 / (2 s2) + 2 pi i z x) over the integers, which is positive (Poisson). Then b is the integral of
f(x + 1/2)^2 f(x)^(n-2) over a period, divided by that of f^n. Multiplied out, f(x) f(x + 1/2) is at most
M = (sum over j of (-1)^j e^(-j^2/s2)) (sum over j of e^(-j^2/s2)), and the integral of f^n is at least that of f^(n-4) (Chebyshev's
inequality for f^(n-4) and f^4; the integral of f is 1): so 0 <= b <= M^2 for n >= 4, which is below 2^-150 from s2 = 24 on. For smaller s2
the C(j) are summed, with W from a power of a polynomial and what was cut off bounded.

Anything else: every lattice point up to a radius, counted by |z|^2 and <z, v>. What lies beyond has probability at most
(t^2 / (s2 m))^(m/2) exp((m - t^2 / s2) / 2) for t^2 >= m s2, m the dimension: with Y(s) the sum of exp(-|z|^2 / (2 s^2)), Poisson summation
gives Y(s') / Y(s) <= (s'/s)^m for s' > s; Markov's inequality for exp(|z|^2 (1/s^2 - 1/s'^2) / 2) with s'^2 = t^2 / m does the rest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, arb_poly
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian, Enclosure
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction
from holdfast.lattices import Block, Lattice
from holdfast.lattices.algebra import block_diagonal, reduced_basis, to_numpy
from holdfast.lattices.gram_schmidt import gram_schmidt
from holdfast.privacy.conversions import LARGE_EPSILON, discrete_gaussian_delta_bounds, zcdp_epsilon
from holdfast.privacy.parameters import not_negative, probability

BITS = 384
NEGLIGIBLE = 2.0**-150
MAX_SUMMED_CELLS = 300
"""Cells under one sum up to which parity weights are summed; beyond, b is only known to lie in [0, M^2]."""
TAIL_NATS = 70
"""Enumeration stops where the probability of lying beyond is below e^-70."""
MAX_POINTS = 2_000_000
MAX_DIMENSION = 12
LARGEST_ENTRY = 2**24
"""Largest entry of a move, so that inner products stay inside 64-bit integers."""
SLACK = 1e-6
"""Widens every range of coordinates in the enumeration, by far more than rounding in doubles can narrow it."""

Ints = NDArray[np.int64]

PRODUCT_BITS = 448
NATS = 200
"""Each factor is cut off where a single weight is below e^-200."""
MAX_DEGREE = 20_000
"""Longer products take seconds; then zCDP and loss distributions are left."""
HALVINGS = 50


def lattice_gaussian_delta(lattice: Lattice, move: Any, sigma_squared: Exact, epsilon: Exact) -> float:
    """The smallest delta, rounded up, at which two tables that differ by this move are (epsilon, delta)-indistinguishable."""
    return min(lattice_gaussian_delta_bounds(lattice, move, sigma_squared, epsilon).up(), 1.0) + 0.0


def lattice_gaussian_delta_bounds(lattice: Lattice, move: Any, sigma_squared: Exact, epsilon: Exact) -> Enclosure:
    """Encloses delta(v) for Gaussian noise on the lattice.

    Given:       a move of the lattice, other than zero, one integer for each cell; sigma_squared > 0 and epsilon >= 0, exact, epsilon for
                 this very pair.
    Guarantees:  certified. RequestTooLarge where the blocks that v touches have too many points to count.
    Reference:   module docstring; [theory R7], [theory T18].
    """
    sigma_squared, epsilon = positive_fraction(sigma_squared, "sigma_squared"), not_negative(epsilon, "epsilon")
    if not lattice.contains(move):
        raise InvalidParameter(
            "The two tables differ in a kept total: no delta below 1 covers such a pair. Give a move that keeps the totals."
        )
    if max((abs(int(entry)) for entry in move), default=0) > LARGEST_ENTRY:
        raise RequestTooLarge(f"An entry of the move is above {LARGEST_ENTRY} in size. Use zcdp_delta, which always holds.")
    vector = np.asarray(move).astype(np.int64)
    support = np.flatnonzero(vector)
    if support.size == 0:
        raise InvalidParameter("The move is zero: both tables are the same. Give a move with an entry other than zero.")
    blocks = _touched_blocks(lattice, support)
    sizes = sorted({abs(int(entry)) for entry in vector[support]})
    if all(block.shape.is_free for block in blocks):
        if support.size == 1:
            return discrete_gaussian_delta_bounds(sigma_squared, epsilon, sizes[0])
        return independent_delta_bounds([int(entry) for entry in vector[support]], sigma_squared, epsilon)
    if len(blocks) == 1 and blocks[0].shape.is_one_sum and support.size == 2 and len(sizes) == 1:
        return one_sum_delta_bounds(int(blocks[0].cells.size), sigma_squared, epsilon, sizes[0])
    basis, cells = _joined_basis(blocks, support)
    return enumerated_delta_bounds(basis, vector[cells], sigma_squared, epsilon)


def one_sum_delta_bounds(cells: int, sigma_squared: Exact, epsilon: Exact, people: int = 1) -> Enclosure:
    """Encloses delta for v = people (e_1 - e_2) where one sum over the cells is kept (coefficients 1 or -1: signs change no law).

    Given:       cells >= 2, people >= 1; sigma_squared > 0, epsilon >= 0, exact.
    Guarantees:  certified.
    """
    cells, people = exact_integer(cells, "cells"), exact_integer(people, "people")
    sigma_squared, epsilon = positive_fraction(sigma_squared, "sigma_squared"), not_negative(epsilon, "epsilon")
    if cells < 2 or people < 1:
        raise InvalidParameter(f"One kept sum needs two cells or more, and a pair differs by 1 or more. Got {cells} and {people}.")
    middle = epsilon * sigma_squared / people
    even, odd = _parities(cells, sigma_squared)
    near, far = _difference_tail(sigma_squared, middle - people), _difference_tail(sigma_squared, middle + people)
    if epsilon > LARGE_EPSILON:
        return Enclosure(Fraction(0), min(max(near[0].upper, near[1].upper), Fraction(1)))
    lower, upper = Fraction(0), Fraction(0)
    with precision(BITS):
        factor = enclosure(ball(epsilon).exp())
    for chance, gain, loss in ((even, near[0], far[0]), (odd, near[1], far[1])):
        low, high = gain.lower - factor.upper * loss.upper, gain.upper - factor.lower * loss.lower
        lower += (chance.lower if low > 0 else chance.upper) * low
        upper += (chance.upper if high > 0 else chance.lower) * high
    return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1)))


def enumerated_delta_bounds(basis: Any, move: Any, sigma_squared: Exact, epsilon: Exact) -> Enclosure:
    """Encloses delta(v) by counting the points of the lattice that the columns of `basis` generate.

    Given:       independent integer columns; v an integer vector of that lattice (not checked here).
    Guarantees:  certified. RequestTooLarge where there are too many points.
    """
    sigma_squared, epsilon = positive_fraction(sigma_squared, "sigma_squared"), not_negative(epsilon, "epsilon")
    columns, vector = to_numpy(reduced_basis(np.asarray(basis))).astype(np.int64), np.asarray(move).astype(np.int64)
    dimension = columns.shape[1]
    if dimension > MAX_DIMENSION:
        raise RequestTooLarge(
            f"The lattice has {dimension} dimensions here, too many to count its points. Use zcdp_delta, which always holds."
        )
    radius_squared = _radius_squared(dimension, sigma_squared)
    norms, inner = _points(columns, vector, radius_squared)
    size, middle = int(vector @ vector), epsilon * sigma_squared
    with precision(BITS):
        unit = -1 / (2 * ball(sigma_squared))
        weights: dict[int, arb] = {}
        total, gain, loss = arb(0), arb(0), arb(0)
        values, counts = np.unique(np.stack([norms, inner]), axis=1, return_counts=True)
        for norm, product, count in zip(values[0].tolist(), values[1].tolist(), counts.tolist(), strict=True):
            weight = weights.get(norm)
            if weight is None:
                weight = weights[norm] = (unit * norm).exp()
            total += count * weight
            if product > middle - Fraction(size, 2):
                gain += count * weight
            if product > middle + Fraction(size, 2):
                loss += count * weight
        beyond = enclosure(_tail(dimension, sigma_squared, radius_squared)).upper
        if epsilon > LARGE_EPSILON:
            return Enclosure(Fraction(0), min(enclosure(gain / total).upper + beyond, Fraction(1)))
        factor = ball(epsilon).exp()
        within = (gain - factor * loss) / total * (1 - arb(0).union(ball(beyond)))  # the part beyond has between 0 and `beyond`
        lower, upper = enclosure(within)
        lower -= enclosure(factor).upper * beyond
    return Enclosure(max(lower, Fraction(0)), min(max(upper + beyond, Fraction(0)), Fraction(1)))


def _touched_blocks(lattice: Lattice, support: Ints) -> list[Block]:
    return [lattice.blocks[int(i)] for i in np.unique(lattice.blocks.block_of()[support])]


def _joined_basis(blocks: list[Block], support: Ints) -> tuple[Ints, Ints]:
    """A basis of the blocks that v touches (of a free block only the cells that v touches), and their cells."""
    parts: list[tuple[Ints, Ints]] = []
    for block in blocks:
        if block.shape.is_free:
            own = np.intersect1d(block.cells, support)
            parts.append((np.eye(own.size, dtype=np.int64), own))
        else:
            if block.shape.dimension > MAX_DIMENSION:
                raise RequestTooLarge(
                    f"A block that this move touches has {block.shape.dimension} free dimensions, too many to count its points. "
                    "Use zcdp_delta, which always holds."
                )
            parts.append((block.shape.basis(), block.cells.ravel()))
    return block_diagonal([part for part, _ in parts]), np.concatenate([cells for _, cells in parts])


def _difference_tail(sigma_squared: Fraction, x: Fraction) -> tuple[Enclosure, Enclosure]:
    """P[D > x] given that D = Z_1 - Z_2 is even, and given that it is odd: D/2 and (D - 1)/2 are discrete Gaussians of half the s2."""
    reach = 2**60
    first, second = math.floor(x / 2) + 1, math.floor((x - 1) / 2) + 1
    even, odd = DiscreteGaussian(sigma_squared / 2), DiscreteGaussian(sigma_squared / 2, Fraction(-1, 2))
    return _tail_from(even, first, reach), _tail_from(odd, second, reach)


def _tail_from(law: DiscreteGaussian, k: int, reach: int) -> Enclosure:
    if k > reach:
        return Enclosure(Fraction(0), law.tail_bounds(reach).upper)
    return law.tail_bounds(k) if k >= -reach else Enclosure(law.tail_bounds(-reach).lower, Fraction(1))


def _parities(cells: int, sigma_squared: Fraction) -> tuple[Enclosure, Enclosure]:
    """(P[D even], P[D odd]); they need not be known to add up to 1, each end is valid by itself."""
    with precision(BITS):
        whole, half, signed = _theta(sigma_squared)
        limit = (signed * whole) ** 2  # M^2
        if cells >= 4 and (cells > MAX_SUMMED_CELLS or limit < NEGLIGIBLE):
            bias = arb(0).union(limit.min(arb(1)))
            even, odd = 1 + bias, 1 - bias
        else:
            even, odd = _parity_weights(cells - 2, sigma_squared)
        total = even * whole + odd * half
        return enclosure(even * whole / total), enclosure(odd * half / total)


def _theta(sigma_squared: Fraction) -> tuple[arb, arb, arb]:
    """Sums over j of e^(-j^2/s2), of e^(-(j+1/2)^2/s2), and of (-1)^j e^(-j^2/s2); through Poisson summation where s2 >= 1."""
    terms = 30
    wide = sigma_squared >= 1
    rate = arb.pi() ** 2 * ball(sigma_squared) if wide else 1 / ball(sigma_squared)
    squares = [(-rate * (k * k)).exp() for k in range(1, terms + 1)]
    shifted = [(-rate * ball(Fraction((2 * k + 1) ** 2, 4))).exp() for k in range(terms + 1)]
    # Each series beyond is below twice its first term, that one below e^(-rate terms^2), on both sides: rate is at least 1.
    rest = 4 * (-rate * (terms * terms)).exp()
    ball_rest = (-rest).union(rest)
    plain = 1 + 2 * sum(squares, arb(0)) + ball_rest
    alternating = 1 + 2 * sum(((-1) ** k * term for k, term in enumerate(squares, start=1)), arb(0)) + ball_rest
    halves = 2 * sum(shifted, arb(0)) + ball_rest
    if not wide:
        return plain, halves, alternating
    scale = (arb.pi() * ball(sigma_squared)).sqrt()
    return scale * plain, scale * alternating, scale * halves


def _parity_weights(others: int, sigma_squared: Fraction) -> tuple[arb, arb]:
    """(C(0), C(1)) of the module docstring, for n - 2 = others."""
    unit = -1 / (2 * ball(sigma_squared))
    reach = math.isqrt(math.ceil(2 * 160 * sigma_squared)) + 2
    weights = [(unit * (z * z)).exp() for z in range(-reach, reach + 1)]
    kept = sum(weights, arb(0))
    cut = 2 * (unit * (reach + 1) ** 2).exp() / -(unit * (2 * reach + 3)).expm1()  # a geometric series
    power = arb_poly(weights) ** others
    sums = [arb(0), arb(0)]
    for place in range(2 * reach * others + 1):
        total = place - reach * others
        sums[total % 2] += (unit * (total * total) / 2).exp() * power[place]
    missing = (kept + cut) ** others - kept**others
    return sums[0] + arb(0).union(missing.upper()), sums[1] + arb(0).union(missing.upper())


def _radius_squared(dimension: int, sigma_squared: Fraction) -> int:
    """A whole number R^2 with P[|Z|^2 > R^2] below about e^-TAIL_NATS; a search in floats, the bound itself is taken in balls."""
    ratio = float(dimension)
    while dimension / 2 * math.log(ratio / dimension) + (dimension - ratio) / 2 > -TAIL_NATS:
        ratio += 1
    return math.ceil(Fraction(ratio) * sigma_squared) + 1


def _tail(dimension: int, sigma_squared: Fraction, radius_squared: int) -> arb:
    ratio = ball(Fraction(radius_squared) / sigma_squared)
    return ((ratio / dimension).log() * dimension / 2 + (dimension - ratio) / 2).exp()


def _points(basis: Ints, vector: Ints, radius_squared: int) -> tuple[Ints, Ints]:
    """(|z|^2, <z, v>) of lattice points: all with |z|^2 <= radius_squared, and perhaps a few beyond."""
    mu, lengths = _gram_schmidt(basis)
    m = len(lengths)
    spread = math.sqrt(sum(lengths)) / 2 + math.sqrt(radius_squared)
    log_points = m / 2 * math.log(math.pi) - math.lgamma(m / 2 + 1) + m * math.log(spread) - sum(map(math.log, lengths)) / 2
    if log_points > math.log(MAX_POINTS):
        raise RequestTooLarge(f"About e^{log_points:.0f} lattice points would have to be counted. Use zcdp_delta, which always holds.")
    first, first_norm, first_inner = basis[:, 0], int(basis[:, 0] @ basis[:, 0]), int(basis[:, 0] @ vector)
    norms: list[Ints] = []
    inner: list[Ints] = []

    def descend(level: int, chosen: list[int], point: Ints, left: float) -> None:
        centre = -sum(mu[j][level] * chosen[m - 1 - j] for j in range(level + 1, m))
        width = math.sqrt(max(left, 0.0) / lengths[level]) + SLACK
        low, high = math.ceil(centre - width), math.floor(centre + width)
        if level == 0:
            c = np.arange(low, high + 1, dtype=np.int64)
            norms.append(int(point @ point) + 2 * c * int(point @ first) + c * c * first_norm)
            inner.append(int(point @ vector) + c * first_inner)
            return
        for value in range(low, high + 1):
            descend(level - 1, [*chosen, value], point + value * basis[:, level], left - (value - centre) ** 2 * lengths[level] + SLACK)

    descend(m - 1, [], np.zeros(basis.shape[0], dtype=np.int64), float(radius_squared) * (1 + SLACK))
    return np.concatenate(norms), np.concatenate(inner)


def _gram_schmidt(basis: Ints) -> tuple[list[list[float]], list[float]]:
    """(mu, |b*|^2) as doubles nearest to the exact rationals: b_j = b*_j + sum over i < j of mu[j][i] b*_i."""
    exact = gram_schmidt(basis)
    mu = [[float(exact.mu(j, i)) for i in range(j)] for j in range(exact.dimension)]
    return mu, [float(length) for length in exact.squared_lengths]


def independent_delta_bounds(move: Sequence[int], sigma_squared: Exact, epsilon: Exact) -> Enclosure:
    """Encloses the delta of discrete Gaussian noise on each number of a vector, for two vectors that differ by `move`.

    Given:       integers, not all zero; sigma_squared > 0, epsilon >= 0, exact, epsilon for this very pair.
    Guarantees:  certified. RequestTooLarge where the polynomial would be too long.
    """
    return IndependentGaussians(move, sigma_squared).delta_bounds(not_negative(epsilon, "epsilon"))


class IndependentGaussians:
    """The law of <Z, v>, summed once, for any number of epsilons."""

    def __init__(self, move: Sequence[int], sigma_squared: Exact) -> None:
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        sizes = Counter(abs(exact_integer(entry, "an entry of the move")) for entry in move)
        del sizes[0]
        if not sizes:
            raise InvalidParameter("The move is zero: both tables are the same. Give a move with an entry other than zero.")
        self.length_squared = sum(size * size * count for size, count in sizes.items())
        reach = math.isqrt(math.ceil(2 * NATS * self.sigma_squared)) + 1
        self.offset = reach * sum(size * count for size, count in sizes.items())
        if 2 * self.offset > MAX_DEGREE:
            raise RequestTooLarge("The law of this difference has too many points to sum. Use zcdp_delta, which always holds.")
        with precision(PRODUCT_BITS):
            unit = -1 / (2 * ball(self.sigma_squared))
            weights = [(unit * (z * z)).exp() for z in range(-reach, reach + 1)]
            kept = sum(weights, arb(0))
            cut = 2 * (unit * (reach + 1) ** 2).exp() / -(unit * (2 * reach + 3)).expm1()  # a geometric series
            product = arb_poly([1])
            for size, count in sizes.items():
                product *= _spread(weights, size) ** count
            numbers = sum(sizes.values())
            missing = (kept + cut) ** numbers - kept**numbers
            self.missing = arb(0).union(missing.upper())
            self.total = kept**numbers + self.missing
            self.tails = [arb(0)] * (2 * self.offset + 2)  # tails[i]: weight of the places from i on
            for place in range(2 * self.offset, -1, -1):
                self.tails[place] = self.tails[place + 1] + product[place]

    def delta_bounds(self, epsilon: Fraction) -> Enclosure:
        middle, half = epsilon * self.sigma_squared, Fraction(self.length_squared, 2)
        with precision(PRODUCT_BITS):
            gain = self._beyond(middle - half)
            if epsilon > LARGE_EPSILON:
                return Enclosure(Fraction(0), min(enclosure(gain / self.total).upper, Fraction(1)))
            lower, upper = enclosure((gain - ball(epsilon).exp() * self._beyond(middle + half)) / self.total)
        return Enclosure(max(lower, Fraction(0)), min(max(upper, Fraction(0)), Fraction(1)))

    def epsilon(self, delta: Exact) -> float:
        """An epsilon at which delta is proved, found by halving: the smallest but for about 2^-50 of the range."""
        allowed = probability(delta, "delta")
        low, high = 0.0, zcdp_epsilon(Fraction(self.length_squared) / (2 * self.sigma_squared), allowed)  # valid for any such law
        if self.delta_bounds(Fraction(0)).upper <= allowed:
            return 0.0
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_bounds(Fraction(middle)).upper <= allowed else (middle, high)
        return high

    def _beyond(self, x: Fraction) -> arb:
        """Weight of X > x."""
        place = min(max(math.floor(x) + 1 + self.offset, 0), 2 * self.offset + 1)
        return self.tails[place] + self.missing


def _spread(weights: list[arb], step: int) -> arb_poly:
    """T(x^step), moved to begin at power 0."""
    if step == 1:
        return arb_poly(weights)
    coefficients = [arb(0)] * ((len(weights) - 1) * step + 1)
    coefficients[::step] = weights
    return arb_poly(coefficients)
