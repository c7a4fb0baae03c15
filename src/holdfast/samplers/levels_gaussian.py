"""Gaussian noise on one sum, on a grid, and on a product of hierarchies under any kept levels: exact, linear time.

One sum and a grid are products of plain axes: all line sums are kept, and one level vector is free ([theory R6], [theory R7] (g)).
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact.parameters import exact_integer, positive_fraction
from holdfast.lattices.shapes.levels import Levels
from holdfast.lattices.trees import Tree
from holdfast.samplers.level_sequence import sequence_of
from holdfast.samplers.sequence_gaussian import MOST_AXES, SequenceGaussian, check_reach
from holdfast.samplers.theta import log_theta3, log_theta_ratio

CLOSE_TO_ONE = 0.0005
"""Bounds of the tries, as logarithms, below which nothing sharper is computed."""
ROW_NEAR = 1 << 16
"""Cells of a row whose variances count separately in expected tries."""


class LevelsGaussian(SequenceGaussian):
    """Gaussian noise on a product of hierarchies, cell by cell from coarse levels to fine ones.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) on integer tables all of whose sums at kept level vectors are zero.
    Given:       at most 16 axes.
    Guarantees:  those of SequenceGaussian.
    Reference:   [theory R20].
    """

    small_draw = 1 << 9

    def __init__(self, shape: Levels, sigma_squared: Fraction, **others: Any) -> None:
        self.shape = shape
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        axes = len(shape.trees)
        if axes > MOST_AXES:
            raise RequestTooLarge(f"A product of hierarchies of {axes} axes is not drawn; up to {MOST_AXES} are. Use fewer columns.")
        if shape.dimension == 0:
            raise InvalidParameter("The kept totals fix every cell of this block: nothing is left to draw.")
        super().__init__(sequence_of(shape), self.sigma_squared, **others)
        under = max(self.sequence.places_under(stage.vector) for stage in self.sequence.stages)
        check_reach(self.cells, axes, self.sequence.largest_scale, self.sigma_squared * under)

    def __repr__(self) -> str:
        return f"LevelsGaussian({' x '.join(map(str, self.shape.axes))} places, sigma_squared='{self.sigma_squared}')"


class SequentialGaussian(LevelsGaussian):
    """Gaussian noise on one sum or a grid, cell by cell.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) on integer arrays of the given shape whose sums along every axis
                 are all zero.
    Given:       every axis has at least two places.
    """

    name = "sequential Gaussian"
    small_draw = 1 << 11

    def __init__(self, shape: tuple[int, ...], sigma_squared: Fraction, **others: Any) -> None:
        axes = tuple(exact_integer(n, "an axis") for n in shape)
        if not axes or min(axes) < 2:
            raise InvalidParameter(f"Every axis must have at least two places. Got shape {axes}: nothing is left to draw.")
        kept = tuple(tuple(int(other != k) for other in range(len(axes))) for k in range(len(axes)))
        super().__init__(Levels(tuple(map(Tree.plain, axes)), kept), sigma_squared, **others)

    def __repr__(self) -> str:
        return f"SequentialGaussian(shape={self.shape.axes}, sigma_squared='{self.sigma_squared}')"

    @cached_property
    def expected_tries(self) -> float:
        """Expected whole-block tries for one draw. One sum: their value in doubles. Grids: the proven bound of theta.tries_bound."""
        is_sum = self.whole and len(self.shape.axes) == 1
        return one_sum_tries(self.cells, self.sigma_squared) if is_sum else super().expected_tries


def one_sum_tries(cells: int, sigma_squared: Fraction) -> float:
    """prod theta_{s_j}(0) / (theta_sigma(0)^n P[a sum of n independent N_Z(0, sigma_squared) is 0]) in doubles, for plans.

    The characteristic function of N_Z(0, sigma_squared) at 2 pi t is itself a theta ratio, of centre t and s^2 = 1 / (4 pi^2
    sigma_squared); P is the integral of its n-th power over one period. The variances multiply to sigma_squared^(n-1) / n.
    """
    variance = float(sigma_squared)
    bound = _log_one_sum_bound(cells, variance)
    if bound < CLOSE_TO_ONE:
        return math.exp(bound)

    def log_kernel(t: ArrayLike) -> NDArray[np.float64]:
        return cells * log_theta_ratio(1 / (4 * math.pi**2 * variance), t)

    low, high = 0.0, 0.5
    if log_kernel(0.5) < -50:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if log_kernel(middle) > -50 else (low, middle)
    values = np.exp(log_kernel(np.linspace(0, high, 4097)))
    log_chance = math.log(2 * high * (float(values.sum()) - (values[0] + values[-1]) / 2) / 4096)
    total = -float(log_theta3(variance)) * cells - 0.5 * math.log(2 * math.pi * variance * cells) - log_chance + bound
    return math.exp(total) if total < 700 else math.inf


def _log_one_sum_bound(cells: int, variance: float) -> float:
    """Logarithm of prod theta3(exp(-2 pi^2 s_j^2)), s_j^2 = variance (1 - 1/j), j = 2 .. cells; far along the row all s_j are as one."""
    near = min(cells, ROW_NEAR)
    total = float(log_theta3(variance * (1 - 1 / np.arange(2, near + 1))).sum())
    return total + (cells - near) * float(log_theta3(variance * (1 - 1 / near)))
