"""Variances that have a closed form, for error statements: floats, no privacy rests on them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
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


def fraction_variance(axes: Sequence[int], epsilon: Fraction) -> float:
    """E[f (1 - f)], f the fractional part of a cell of P e: e independent two-sided geometric, P taking off the means along every axis.

    With N cells, N (P e)_1 is a sum of integer multiples of the cells of e: (n_1 - 1) ... (n_K - 1) times the cell itself, and -1 in place
    of n_k - 1 for cells elsewhere on axis k. Its characteristic function Phi at 2 pi m / N is a product of powers, and s (N - s) / N^2 has
    the discrete Fourier coefficients (1 - 1/N^2) / 6 at 0 and -1 / (2 N^2 sin^2(pi m / N)) elsewhere.
    """
    cells = math.prod(axes)
    if cells == 1:
        return 0.0
    m = np.arange(1, cells // 2 + 1)  # m and N - m are alike
    log_phi = np.zeros(len(m))
    for elsewhere in itertools.product((False, True), repeat=len(axes)):
        multiple = math.prod(-1 if away else n - 1 for n, away in zip(axes, elsewhere, strict=True))
        count = math.prod(n - 1 if away else 1 for n, away in zip(axes, elsewhere, strict=True))
        # log (1 - a)^2 / (1 - 2 a cos x + a^2) = -log(1 + 4 a sin^2(x/2) / (1 - a)^2); the multiple modulo N, so that x stays exact
        half = np.pi * ((multiple % cells) * m % cells) / cells
        log_phi -= count * np.log1p(2 * free_laplace_variance(epsilon) * np.sin(half) ** 2)
    times = np.where(2 * m == cells, 1.0, 2.0)
    taken = float((times * np.exp(log_phi) / np.sin(np.pi * m / cells) ** 2).sum()) / (2 * cells**2)
    return max(0.0, (1 - 1 / cells**2) / 6 - taken)
