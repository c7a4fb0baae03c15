"""Variances that have a closed form, for error statements: floats, no privacy rests on them."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

MOMENT_POINTS = 1 << 12
"""Terms summed one by one. Beyond, larger steps are taken: still over a hundred points per standard deviation, and sums of a smooth bell
with different steps differ by less than rounding does (three cells and more: measured against exact sums)."""


def free_laplace_variance(epsilon: Fraction) -> float:
    """2 a / (1 - a)^2 with a = exp(-epsilon)."""
    rate = float(epsilon)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def one_sum_laplace_variance(cells: int, epsilon: Fraction) -> tuple[float, float]:
    """(variance of one cell of the l1 Laplace law on `cells` cells with sum zero, bound of its relative error).

    Given the common total S of the two compositions ([theory R4]) a cell is the difference of two independent parts of a uniform
    composition, each of variance S (S + n) (n - 1) / (n^2 (n + 1)); S has weight (C(S + n - 1, S) a^S)^2.
    """
    n, rate = cells, float(epsilon)
    if n == 1:
        return 0.0, 0.0
    if n == 2:  # z and -z: one Laplace variable. The sum below has an edge at 0 that steps above one would feel (2e-7 off).
        return free_laplace_variance(2 * epsilon), 1e-14
    a = math.exp(-rate)
    middle = n * a / (1 - a)
    spread = math.sqrt(n * a) / (1 - a) + 1 / rate + 1
    low, high = max(0, math.floor(middle - 14 * spread)), math.ceil(middle + 14 * spread + 40 / rate)
    step = max(1, (high - low) // MOMENT_POINTS)
    points = range(low, high + 1, step)
    logs = np.array([2 * (math.lgamma(s + n) - math.lgamma(s + 1) - rate * s) for s in points])
    totals, weights = np.array(points, dtype=np.float64), np.exp(logs - logs.max())
    mean = float((weights * totals * (totals + n)).sum() / weights.sum())
    # A log-gamma of size g is off by less than g 2^-50; the weights' relative errors carry over to the mean.
    error = 8 * math.lgamma(high + n) * 2.0**-50 + 1e-12
    return 2 * mean * (n - 1) / (n**2 * (n + 1)), error
