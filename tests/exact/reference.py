"""Slow, obvious probabilities for comparison: one ball exponential per point, no recurrence, no table."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from holdfast.exact.balls import ball, enclosure, precision


def log_weight_gaussian(sigma_squared: Fraction, center: Fraction = Fraction(0), tilt: Fraction = Fraction(0)) -> Callable[[int], Fraction]:
    return lambda k: -((k - center) ** 2) / (2 * sigma_squared) + tilt * k


def log_weight_laplace(scale: Fraction, tilt: Fraction = Fraction(0)) -> Callable[[int], Fraction]:
    return lambda k: -abs(k) / scale + tilt * k


def weights(log_weight: Callable[[int], Fraction], lower: int, upper: int, bits: int = 600) -> dict[int, arb]:
    """Balls of the weights on a window, relative to the largest."""
    exponents = {k: log_weight(k) for k in range(lower, upper + 1)}
    top = max(exponents.values())
    with precision(bits):
        return {k: ball(value - top).exp() for k, value in exponents.items()}


def probabilities(log_weight: Callable[[int], Fraction], lower: int, upper: int) -> dict[int, float]:
    """Probabilities on a window wide enough that nothing outside matters at double precision."""
    with precision(600):
        balls = weights(log_weight, lower, upper)
        total = sum(balls.values(), arb(0))
        return {k: enclosure(value / total).nearest() for k, value in balls.items()}
