"""How probable a sum of squares of Gaussian noise is, from bounds of its covariance alone."""

from __future__ import annotations

import math


def sum_of_squares_p_value(total: float, mean: float, trace_of_square: float, largest: float) -> float:
    """The probability that a sum of squares of Gaussians is as far from its mean, at most.

    Given:       covariance C with tr C = mean, tr C^2 <= trace_of_square, |C| <= largest.
    Guarantees:  outside [tr C - 2 sqrt(x tr C^2), tr C + 2 sqrt(x tr C^2) + 2 x |C|] with probability at most 2 exp(-x) (Laurent and
                 Massart 2000, Lemma 1); this is 2 exp(-x) for the x whose interval ends at `total`. Noise in whole numbers of variance s^2
                 differs by the order of exp(-2 pi^2 s^2).
    """
    away, root = abs(total - mean), math.sqrt(trace_of_square)
    below, above = away / (2 * root), (math.sqrt(root**2 + 2 * largest * away) - root) / (2 * largest)
    return min(1.0, 2 * math.exp(-((above if total > mean else below) ** 2)))
