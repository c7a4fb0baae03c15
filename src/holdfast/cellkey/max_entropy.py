"""Symmetric noise of maximum entropy: P[Z = z] = C exp(-gamma z^2) on -D, ..., D [SC22, (6)].

Among all laws on -D, ..., D with mean 0 and variance at most V it has the largest entropy; gamma is the one root of the equation that the
variance is V [theory T81]. A certified root: the variance falls strictly with gamma, and at both ends of an interval, made as short as the
caller's precision asks for, balls decide whether it is above V.
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from typing import NamedTuple

from flint import arb, ctx

from holdfast.cellkey.noise import NoiseLaw, narrow
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure, Real, affine, ball, enclosure, precision
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.privacy.parameters import at_least_one, ordinary

LARGEST_D = 20_000
"""Supports beyond this are refused: nobody publishes such noise, and the figures would take minutes."""

_COARSE_STEPS = 24


def check_support(D: int) -> int:
    """The largest noise: an int from 1 to LARGEST_D."""
    support = at_least_one(D, "D")
    if support > LARGEST_D:
        raise InvalidParameter(f"D must be at most {LARGEST_D}. Got {support}. Take a smaller support.", field="D")
    return support


class SymmetricNoise(NoiseLaw):
    """P[Z = z] = C exp(-gamma z^2), -D <= z <= D, gamma > 0.

    Guarantees:  unbiased; every figure enclosed; `losses` are for both counts at least D, where no result is negative.
    Reference:   [SC22, Propositions 1 and 2]; [theory T81], [theory T82].
    """

    def __init__(self, D: int, gamma: Real) -> None:
        self.D = check_support(D)
        self.gamma = gamma
        noise = range(-self.D, self.D + 1)
        super().__init__(noise, [affine(gamma, Fraction(-z * z), Fraction(0)) for z in noise], count=self.D)

    def _compute(self) -> list[arb]:
        half = _weights(self.D, ball(self.gamma))
        total = 2 * sum(half[1:], arb(0)) + 1
        chances = [weight / total for weight in half]
        return [*reversed(chances), *chances[1:]]

    def gamma_bounds(self) -> Enclosure:
        return narrow(lambda: ball(self.gamma))

    def mean_bounds(self) -> Enclosure:
        return Enclosure(Fraction(0), Fraction(0))  # by symmetry

    def __repr__(self) -> str:
        return f"{type(self).__name__}(D = {self.D}, gamma = {self.gamma_bounds().nearest():.6g}; counts of at least {self.D})"


def max_entropy(D: int, V: Exact) -> SymmetricNoise:
    """The noise of largest entropy on -D, ..., D with mean 0 and variance V.

    Given:       0 < V < D (D + 1) / 3, exact. The bound is the variance of uniform noise; beyond it probabilities would grow towards the
                 ends.
    Guarantees:  gamma is the root of the variance equation, enclosed as narrowly as needed.
    Reference:   [SC22, Proposition 1]; [theory T81].
    """
    support = check_support(D)
    variance = ordinary(positive_fraction(V, "V"), "V")
    if 3 * variance >= support * (support + 1):
        need = (isqrt(int(12 * variance) + 1) + 1) // 2
        need += need * (need + 1) <= 3 * variance
        raise InvalidParameter(
            f"V must be below D (D + 1) / 3 = {format_exact(Fraction(support * (support + 1), 3))}, the variance of uniform noise from "
            f"{-support} to {support}. Got {format_exact(variance)}. Take a smaller V, or D of at least {need}.",
            field="V",
        )
    return SymmetricNoise(support, VarianceRoot(support, variance))


class VarianceRoot:
    """gamma with variance V, as a computable real."""

    def __init__(self, D: int, V: Fraction) -> None:
        self.D, self.V = D, V
        self._known: dict[int, tuple[Fraction, Fraction]] = {}

    def ball(self) -> arb:
        bits = ctx.prec
        if bits not in self._known:
            self._known[bits] = self._bracket(bits)
        low, high = self._known[bits]
        return ball(low).union(ball(high))

    def _bracket(self, bits: int) -> tuple[Fraction, Fraction]:
        """low <= gamma <= high with high - low <= 2^-bits of gamma, both ends proved."""
        low, high = Fraction(1, 2), Fraction(1)
        while self._is_below(high):
            low, high = high, 2 * high
        while not self._is_below(low):
            low, high = low / 2, low
        for _ in range(_COARSE_STEPS):
            low, high = self._halve(low, high)
        guess, correct = (low + high) / 2, _COARSE_STEPS
        while correct < bits + 8:
            correct = min(2 * correct - 6, bits + 64)
            guess = self._newton(guess, 2 * correct + 64)
            width = guess / (1 << (bits + 4))
            if correct >= bits + 8 and self._is_below(guess - width) and not self._is_below(guess + width):
                return guess - width, guess + width
        while (high - low) * (1 << bits) > low:  # Newton went astray: halve to the end
            low, high = self._halve(low, high)
        return low, high

    def _halve(self, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        middle = (low + high) / 2
        return (middle, high) if self._is_below(middle) else (low, middle)

    def _newton(self, gamma: Fraction, bits: int) -> Fraction:
        """One step, as a dyadic number: d variance / d gamma = variance^2 - E[Z^4]."""
        with precision(bits):
            moments = _moments(self.D, ball(gamma))
            step = (moments.second - ball(self.V)) / (moments.fourth - moments.second * moments.second)
            low, high = enclosure(ball(gamma) + step)
        scale = 1 << bits
        return Fraction(int((low + high) / 2 * scale), scale)

    def _is_below(self, gamma: Fraction) -> bool:
        """Whether this is below the root: whether the variance there is above V. Never equal: e^-gamma is transcendental."""
        bits = 128
        while True:
            with precision(bits):
                difference = _moments(self.D, ball(gamma)).second - ball(self.V)
                if difference > 0:
                    return True
                if difference < 0:
                    return False
            bits *= 2

    def __float__(self) -> float:
        return narrow(self.ball).nearest()

    def __repr__(self) -> str:
        return f"VarianceRoot(D = {self.D}, V = {format_exact(self.V)}: {float(self):.12g})"

    def __getstate__(self) -> dict[str, object]:
        return {"D": self.D, "V": self.V, "_known": {}}


class _Moments(NamedTuple):
    second: arb
    fourth: arb


def _moments(D: int, gamma: arb) -> _Moments:
    total, second, fourth = arb(1), arb(0), arb(0)
    for z, weight in enumerate(_weights(D, gamma)[1:], 1):
        total += 2 * weight
        second += 2 * z * z * weight
        fourth += 2 * z**4 * weight
    return _Moments(second / total, fourth / total)


def _weights(D: int, gamma: arb) -> list[arb]:
    """exp(-gamma z^2) for z = 0, ..., D, two products each: z^2 grows by 2 z + 1."""
    weight, factor = arb(1), (-gamma).exp()
    square = factor * factor
    found = [weight]
    for _ in range(D):
        weight *= factor
        factor *= square
        found.append(weight)
    return found
