"""How far noise on a lattice can reach: bounds that hold for every lattice and every radius, with explicit constants.

Let Z(e) = sum over z in L of exp(-e |z|), m = dim L, and e' < e. Then Z(e') / Z(e) <= (e / e')^m. Proof: exp(-|x|) in l1 or l2 is a
mixture of centred Gaussians, so on span(L) its Fourier transform f is positive and falls along every ray; by Poisson summation
Z(e) = e^-m det^-1 sum over the dual of f(w / e), and w / e' is longer than w / e. The same holds for exp(-|x|^2 / (2 s^2)) with e = 1/s.
Markov's inequality for exp(lambda |z|), with the best lambda, gives

    P[|z| >= t]   <= (e t / m)^m exp(m - e t)                          for e t >= m           (Theorem 12 of [DGGY22] with K = (e e / m)^m)
    P[|z|_2 >= t] <= (t / (s sqrt m))^m exp((m - t^2 / s^2) / 2)       for t >= s sqrt m      (Theorem 15 with K = (e / (m s^2))^(m/2))

where the paper has "for t large enough". Lemma 11, the number of lattice points in a ball, is here for every radius too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

MARGIN = 1e-9
"""Raises a logarithm computed in doubles by far more than rounding can have taken away."""


def laplace_log_tail(dimension: int, epsilon: Fraction, t: float) -> float:
    """Natural logarithm of the bound of P[|z| >= t] under weights exp(-epsilon |z|), in the law's own norm; 0 where it says nothing."""
    if dimension == 0:
        return -math.inf if t > 0 else 0.0
    reach = float(epsilon) * t
    if reach <= dimension:
        return 0.0
    return min(0.0, sum_upwards(dimension * math.log(reach / dimension), dimension - reach))


def gaussian_log_tail(dimension: int, sigma_squared: Fraction, t: float) -> float:
    """Natural logarithm of the bound of P[|z|_2 >= t] under weights exp(-|z|_2^2 / (2 sigma_squared)); 0 where it says nothing."""
    if dimension == 0:
        return -math.inf if t > 0 else 0.0
    ratio = t * t / float(sigma_squared)
    if ratio <= dimension:
        return 0.0
    return min(0.0, sum_upwards(dimension / 2 * math.log(ratio / dimension), (dimension - ratio) / 2))


def reach(log_tail: Callable[[float], float], target_bits: int) -> int:
    """A power of two t with log_tail(t) <= -target_bits ln 2."""
    t = 1
    while log_tail(float(t)) > -target_bits * math.log(2):
        t *= 2
        if t > 1 << 200:
            return t
    return t


def sum_upwards(*terms: float) -> float:
    """The sum, raised by more than what rounding can have taken away."""
    return math.fsum(terms) + MARGIN * (1 + sum(map(abs, terms)) * 2.0**-10)
