"""Theta ratios: the probability with which sequential Gaussian samplers keep a whole draw.

Legend: theta_s(c) = sum over integers k of exp(-(k - c)^2 / (2 s^2)); q = exp(-2 pi^2 s^2); d = distance of c to the nearest integer. By
Poisson summation theta_s(c) = sqrt(2 pi) s (1 + 2 sum_{n >= 1} q^(n^2) cos(2 pi n c)), so that

    loss = 1 - theta_s(c) / theta_s(0) = 4 sum q^(n^2) sin^2(pi n c) / (1 + 2 sum q^(n^2)) >= 0,

a sum of positive terms: no cancellation, however small the loss. Below s^2 = CROSSOVER the sum over k converges faster.

A sequential sampler draws coordinate i from the discrete Gaussian of centre c_i and parameter s_i^2 and keeps the whole draw with
probability prod theta_{s_i}(c_i) / theta_{s_i}(0) ([theory R6], [theory R7]). Three ways to know it, from cheap to certain: the
bound of the loss in [theory T17], `log_theta_ratio` with `log_theta_error`, `theta_ratio_ball`.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike, NDArray

from holdfast.exact.balls import ball

CROSSOVER = Fraction(1, 6)
"""Value of s^2 from which on the Poisson sum is used; three of its terms, and four on each side of the direct sum, leave below 2^-80."""
SAFE_FOUR_PI_SQUARED = 39.5
"""Above 4 pi^2 = 39.478... by more than what a sum of 10^12 positive doubles can lose."""


def log_theta_ratio(s_squared: ArrayLike, c: ArrayLike) -> NDArray[np.float64]:
    """log(theta_s(c) / theta_s(0)) in doubles, 0 or below.

    Given:       s^2 and the distance d of c to the nearest integer are correct to a relative 2^-50.
    Guarantees:  off by at most `log_theta_error(s_squared)`. Take c from an exact remainder, not from a large double.

    Proof: s^2 >= 1/6: q <= .0373. With x = 2 pi^2 s^2 the exponent is off by at most 2^-48 x, so q^(n^2) by 2^-48 n^2 x exp(-n^2 x)
    <= 2^-48 / e; d enters through sin^2, relative 2^-48. The loss is below .15 and log1p has slope below 1.2 there: 2^-47 covers it, with
    few units in the last place for the operations; terms left out are below 4 q^16 < 2^-74.
    s^2 < 1/6: log = -d^2 / (2 s^2) + log(N / D), N = sum exp(-(k^2 - 2 k d) / (2 s^2)), D the same at d = 0. The first term is off
    by 2^-48 / (8 s^2). In N the exponent y = (k^2 - 2 k d) / (2 s^2) is off by 2^-49 y from s^2, harmless since y exp(-y) <= 1/e, and
    by 2^-50 k / (2 s^2) = 2^-48 k / (8 s^2) from d, with weights whose sum over k is below 1.3 N; N, D >= 1. Together below
    2^-46 (1 + 1 / (8 s^2)). Terms left out: exp(-(25 - 5) 3) each, below 2^-85 together.
    """
    variance, centre = np.broadcast_arrays(np.asarray(s_squared, dtype=np.float64), np.asarray(c, dtype=np.float64))
    d = np.abs(centre - np.rint(centre))
    wide = variance >= float(CROSSOVER)
    x = np.where(wide, variance, 1.0) * (2 * math.pi**2)
    numerator, denominator = np.zeros_like(x), np.ones_like(x)
    for n in (1, 2, 3):
        power = np.exp(-n * n * x)
        numerator += power * np.sin(math.pi * n * d) ** 2
        denominator += 2 * power
    poisson = np.log1p(-4 * numerator / denominator)
    half = 0.5 / np.where(wide, 1.0, variance)
    above, below = np.ones_like(half), np.ones_like(half)
    for k in (1, 2, 3, 4):
        above += np.exp(-k * (k - 2 * d) * half) + np.exp(-k * (k + 2 * d) * half)
        below += 2 * np.exp(-k * k * half)
    return np.where(wide, poisson, np.log(above / below) - d * d * half)


def log_theta_error(s_squared: ArrayLike) -> NDArray[np.float64]:
    """The proved error of `log_theta_ratio`: 2^-46 (1 + 1 / (8 s^2))."""
    return np.asarray(2.0**-46 * (1 + 1 / (8 * np.asarray(s_squared, dtype=np.float64))))


def theta_ratio_ball(s_squared: Fraction, c: Fraction) -> arb:
    """theta_s(c) / theta_s(0) as a ball at flint's current precision."""
    d = abs(c - round(c))
    if d == 0:
        return arb(1)
    return _ratio(s_squared, ball(s_squared), ball(d))


def theta_ratio_enclosed(nominal: Fraction, s_squared: arb, c: arb) -> arb:
    """theta_s(c) / theta_s(0) for an s^2 and a c that are known as balls; `nominal` is s^2 within a relative 2^-50."""
    whole = c.mid().floor() if c.mid() - c.mid().floor() < 0.5 else c.mid().ceil()
    d = c - whole
    # Both formulas hold for |d| up to 3/4, so that a ball on the border of two integers does no harm; a wide ball says nothing yet.
    return _ratio(nominal, s_squared, d) if abs(d) < 0.75 else arb(0).union(1)


def _ratio(nominal: Fraction, s_squared: arb, d: arb) -> arb:
    return _ratio_by_poisson(nominal, s_squared, d) if nominal >= CROSSOVER else _ratio_directly(nominal, s_squared, d)


def _ratio_by_poisson(nominal: Fraction, s_squared: arb, d: arb) -> arb:
    nome = (-2 * arb.pi() ** 2 * s_squared).exp()
    numerator, denominator = arb(0), arb(1)
    last = 1 + math.isqrt(int(ctx.prec / (19 * nominal)))  # q^(n^2) < 2^-prec from here on
    for n in range(1, last + 1):
        power = nome ** (n * n)
        sine = arb.sin_pi(n * d)
        numerator += power * sine * sine  # a power of a ball around 0 is not a number
        denominator += 2 * power
    left_out = arb(0).union(nome ** ((last + 1) ** 2) / (1 - nome))  # of sum q^(n^2), n > last
    return 1 - 4 * (numerator + left_out) / (denominator + 2 * left_out)


def _ratio_directly(nominal: Fraction, s_squared: arb, d: arb) -> arb:
    def side(shift: arb, last: int) -> arb:
        """Sum over k >= 1 of exp(-k (k - 2 shift) / (2 s^2)), |shift| <= 3/4: from k = 2 on the exponents grow by at least 1 / s^2."""
        terms = [(-(k * (k - 2 * shift) / (2 * s_squared))).exp() for k in range(1, last + 2)]
        return sum(terms[:-1], arb(0)) + arb(0).union(terms[-1] / (1 - (-1 / s_squared).exp()))

    last = 2 + math.isqrt(int(2 * nominal * ctx.prec))
    ratio = (1 + side(d, last) + side(-d, last)) / (1 + 2 * side(arb(0), last))
    return ratio * (-(d * d / (2 * s_squared))).exp()


def log_theta3(s_squared: ArrayLike) -> NDArray[np.float64]:
    """log theta3(q) = log(theta_s(0) / (sqrt(2 pi) s)) in doubles, for plans: how far a coordinate's sum is from its integral."""
    variance = np.asarray(s_squared, dtype=np.float64)
    wide = variance >= float(CROSSOVER)
    x = np.where(wide, variance, 1.0) * (2 * math.pi**2)
    half = 0.5 / np.where(wide, 1.0, variance)
    poisson = np.log1p(2 * (np.exp(-x) + np.exp(-4 * x) + np.exp(-9 * x)))
    direct = np.log1p(2 * sum(np.exp(-k * k * half) for k in (1, 2, 3, 4))) - 0.5 * np.log(math.pi / half)
    return np.asarray(np.where(wide, poisson, direct))


def tries_bound(s_squared: ArrayLike, counts: ArrayLike = 1) -> float:
    """prod theta3(exp(-2 pi^2 s_i^2))^count_i: expected tries of a sequential sampler are at most this ([theory R7]); may be infinity.

    Expected tries are prod theta_{s_i}(0) / rho(L), and rho(L) >= prod sqrt(2 pi) s_i by Poisson summation on L.
    """
    total = float(np.sum(log_theta3(s_squared) * np.asarray(counts)))
    return math.exp(total) if total < 700 else math.inf
