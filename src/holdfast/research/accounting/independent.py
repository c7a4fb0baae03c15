"""The exact delta of independent discrete Gaussians with one sigma_squared, for a difference v: the law of <Z, v>, by polynomials.

Theorem 6 of [CKS20] for Z^k (lattice_delta.py has the formula): the loss depends on X = sum of v_i Z_i alone, and X has the generating
function that is the product over i of T(x^|v_i|), T(x) the sum of exp(-z^2 / (2 s2)) x^z. T is cut off at |z| <= K; what is cut off weighs
at most `cut` for one factor, so the product misses at most (kept + cut)^k - kept^k in all, spread anywhere.

k equal queries compose to just this, so that their composition is known exactly and in balls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from flint import arb, arb_poly

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.balls import Enclosure, ball, enclosure, precision
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction
from holdfast.privacy.conversions import LARGE_EPSILON, zcdp_epsilon
from holdfast.privacy.parameters import not_negative, probability

BITS = 448
NATS = 200
"""Each factor is cut off where a single weight is below e^-200."""
MAX_DEGREE = 20_000
"""Longer products take seconds; then zCDP and loss distributions are left."""
HALVINGS = 50


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
        with precision(BITS):
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
        with precision(BITS):
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
