"""Bayes' rule by listing every table, in certified balls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, fmpq

from holdfast.exact.balls import precision

BITS = 200


def ball_exp(x: Fraction) -> arb:
    return arb(fmpq(x.numerator, x.denominator)).exp()


def tables_in(box: Iterable[range], rows: np.ndarray, y: Iterable[int]) -> list[tuple[int, ...]]:
    """Every table of the box with the kept totals of y."""
    totals = (rows @ np.array(list(y))).tolist()
    return [x for x in product(*box) if (rows @ np.array(x)).tolist() == totals]


def laplace(epsilon: Fraction) -> Callable[[tuple[int, ...]], arb]:
    return lambda z: ball_exp(-epsilon * sum(map(abs, z)))


def gaussian(sigma_squared: Fraction) -> Callable[[tuple[int, ...]], arb]:
    return lambda z: ball_exp(-Fraction(sum(k * k for k in z)) / (2 * sigma_squared))


def l2_laplace(epsilon: Fraction) -> Callable[[tuple[int, ...]], arb]:
    return lambda z: (-arb(fmpq(epsilon.numerator, epsilon.denominator)) * arb(sum(k * k for k in z)).sqrt()).exp()


def posterior_of_sum(
    tables: Iterable[tuple[int, ...]],
    y: Iterable[int],
    likelihood: Callable[[tuple[int, ...]], arb],
    prior: Callable[[tuple[int, ...]], Fraction],
    coefficients: Iterable[int],
    normaliser: Callable[[tuple[int, ...]], arb] | None = None,
) -> dict[int, float]:
    """P[sum of coefficients times x = value | y] for every value, rounded once at the end."""
    published, weights = tuple(y), tuple(coefficients)
    with precision(BITS):
        found: dict[int, arb] = {}
        for x in tables:
            w = likelihood(tuple(b - a for a, b in zip(x, published, strict=True))) * arb(fmpq(prior(x).numerator, prior(x).denominator))
            if normaliser is not None:
                w = w / normaliser(x)
            value = sum(c * a for c, a in zip(weights, x, strict=True))
            found[value] = found.get(value, arb(0)) + w
        total = sum(found.values(), arb(0))
        return {value: float((w / total).mid()) for value, w in sorted(found.items())}
