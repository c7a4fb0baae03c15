"""One budget in several kinds, so that mechanisms of other kinds can be compared with the one that was asked for.

epsilon           implies rho = epsilon^2 / 2 ([theory T35]); no rho implies an epsilon
rho               is implied by epsilon = sqrt(2 rho), rounded down
(epsilon, delta)  is implied by epsilon alone, and by a rho that is proved to imply it ([theory T36])
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

from holdfast.privacy.calibration import pair_sigma_squared
from holdfast.privacy.parameters import Asked

_DIGITS = 9
"""Significant digits of a root that is rounded down."""


@dataclass(frozen=True)
class Exchange:
    """A budget for what the table protects, and what a mechanism of another kind gets for it."""

    asked: Asked

    @property
    def in_rho(self) -> bool:
        """Whether rho was asked for."""
        return self.asked.rho is not None

    @property
    def epsilon(self) -> Fraction:
        """The epsilon that was asked for; or the largest, of nine digits, that implies the rho that was."""
        if self.asked.rho is not None:
            return below_root(2 * self.asked.rho)
        assert self.asked.epsilon is not None
        return self.asked.epsilon

    @property
    def rho(self) -> Fraction:
        """The rho that was asked for; or the one that epsilon implies; or one that implies epsilon and delta."""
        if self.asked.rho is not None:
            return self.asked.rho
        if self.asked.delta is None:
            return self.epsilon**2 / 2
        return 1 / (2 * pair_sigma_squared(self.epsilon, self.asked.delta, distance_squared=1))


def below_root(square: Fraction) -> Fraction:
    """A short rational just below the square root: nine significant digits, rounded down.

    Given:       square > 0.
    Guarantees:  result^2 <= square, and (result * (1 + 10^-8))^2 > square.
    """
    scale = 1
    while square * scale * scale < 10 ** (2 * _DIGITS - 2):
        scale *= 10
    return Fraction(isqrt(square.numerator * scale * scale // square.denominator), scale)
