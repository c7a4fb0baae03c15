"""Steps that several compiled loops of samplers share.

Numba's cache does not notice a change in a function imported from elsewhere: after a change here, delete the code kept in __pycache__.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers import theta

WIDTH = 2.0**-32
SAFE_FOUR_PI_SQUARED = theta.SAFE_FOUR_PI_SQUARED
CROSSOVER = float(theta.CROSSOVER)


@loop(inline="always")
def nearest(numerator, full, reciprocal):  # type: ignore[no-untyped-def]
    """(c0, numerator - c0 full) with c0 = ceil(c - 1/2), c = numerator / full: a double finds it, integers correct it."""
    c0 = np.int64(np.rint(numerator * reciprocal))
    left = numerator - c0 * full
    while 2 * left > full:
        left -= full
        c0 += 1
    while 2 * left <= -full:
        left += full
        c0 -= 1
    return c0, left


@loop(_nrt=False)
def log_ratio(variance, d):  # type: ignore[no-untyped-def]
    """Scalar twin of theta.log_theta_ratio, d the distance to the nearest integer."""
    if variance >= CROSSOVER:
        x = variance * (2.0 * math.pi * math.pi)
        numerator, denominator = 0.0, 1.0
        for n in range(1, 4):
            power = math.exp(-n * n * x)
            numerator += power * math.sin(math.pi * n * d) ** 2
            denominator += 2.0 * power
        return math.log1p(-4.0 * numerator / denominator)
    half = 0.5 / variance
    above, below = 1.0, 1.0
    for k in range(1, 5):
        above += math.exp(-k * (k - 2.0 * d) * half) + math.exp(-k * (k + 2.0 * d) * half)
        below += 2.0 * math.exp(-k * k * half)
    return math.log(above / below) - d * d * half


@loop
def coin(word, numerator, denominator):  # type: ignore[no-untyped-def]
    """(1 or 0, 0), or (-1, remainder) where the word is the very cell that holds numerator / denominator; denominator < 2^47."""
    high = (numerator << 16) // denominator
    left = (numerator << 16) - high * denominator
    low = (left << 16) // denominator
    remainder = (left << 16) - low * denominator
    threshold = (high << 16) + low
    value = np.int64(word)
    if value < threshold:
        return 1, np.int64(0)
    if value > threshold or remainder == 0:
        return 0, np.int64(0)
    return -1, remainder
