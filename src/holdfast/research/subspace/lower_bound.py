"""What no private mechanism can go below: total squared error of a linear query, from weights on its changes.

For every mechanism that is (epsilon, delta)-private for each pair of neighbours, its squared error at the worst database of any size is at
least (tr M(w)^(1/2))^2 / kappa for any weights w, with

    kappa(epsilon, delta) = 4 sinh^2(epsilon / 2) + 4 delta / (1 - delta) cosh^2(epsilon / 2)

([theory T102]). The best weights are those of the best Gaussian covariance, so a Gaussian of that covariance is within c^2 kappa of every
mechanism, whatever the query and its size.
"""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.errors import InvalidParameter


def information(epsilon: Fraction | float, delta: Fraction | float = 0) -> float:
    """kappa: the most that a neighbour's change can weigh against the covariance of the answers."""
    if not (epsilon > 0 and 0 <= delta < 1):
        raise InvalidParameter(f"epsilon is above 0, and delta at least 0 and below 1. Got {epsilon} and {delta}.")
    half, delta = float(epsilon) / 2, float(delta)
    return 4 * math.sinh(half) ** 2 + 4 * delta / (1 - delta) * math.cosh(half) ** 2


def least_squared_error(least_trace: float, epsilon: Fraction | float, delta: Fraction | float = 0) -> float:
    """The bound, from (tr M(w)^(1/2))^2: `least` of `optimal_covariance`."""
    return least_trace / information(epsilon, delta)
