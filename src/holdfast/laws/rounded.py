"""Rounded projection: independent Laplace noise, projected on the moves that keep the totals, rounded without bias."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.lattices.shapes import General, Shape
from holdfast.lattices.shapes.stream_text import stream_text
from holdfast.laws import moments, tails
from holdfast.laws.law import LatticeLaw
from holdfast.samplers.choose import Choice, rounded_choice

if TYPE_CHECKING:
    from holdfast.privacy import Guarantee


class RoundedLaw(LatticeLaw):
    """Law:         z = R(P e), e independent with P[e_i = k] proportional to exp(-epsilon |k|), P the projection on span(L), R an unbiased
                 random rounding to L that commutes with shifts by L.
    Guarantees:  pure privacy, epsilon per unit of l1 distance: x + z is a random function of x + e and the kept totals.
    Reference:   math.md R10; Cox (1987) for the rounding of two-way tables.

    There is no closed form of P[z], hence no log_weight.
    """

    def __init__(self, lattice: Lattice, epsilon: Fraction, guarantee: Guarantee) -> None:
        self.epsilon = epsilon
        super().__init__(lattice, guarantee)

    def __repr__(self) -> str:
        return f"RoundedLaw(epsilon='{self.epsilon}')"

    @property
    def formula(self) -> str:
        return (
            f"independent noise with P[k] proportional to exp(-{self.epsilon} |k|), projected on the tables that change no kept total and "
            "rounded to integers without bias"
        )

    def log_tail(self, t: float) -> float:
        """Of P[|z|_2 >= t]: projecting shortens, and rounding moves z by at most the rounding radius."""
        return tails.laplace_log_tail(self.lattice.cells, self.epsilon, max(t - self._rounding_radius, 0.0))

    @cached_property
    def _rounding_radius(self) -> float:
        """l2 length by which rounding can move the projection: below one a cell where roundings are controlled; by nearest plane at most
        (sum |b*_i|^2)^(1/2), and a reduced basis has |b*_i| <= |b_i|.
        """
        total = 0.0
        blocks = self.lattice.blocks
        for _, template, number in blocks.used():
            if template.name in ("pinned", "free"):
                continue
            if isinstance(template, General):
                square = float((template.reduced_basis().astype(np.float64) ** 2).sum())
            else:
                square = template.size * (1.0 if len(template.axes) <= 2 else 2.0 ** len(template.axes))
            total += number * square
        return math.sqrt(total)

    def _choice(self, template: Shape) -> Choice:
        return rounded_choice(template, self.epsilon)

    def _block_variance(self, template: Shape) -> tuple[float, NDArray[np.float64] | None, str, float]:
        spread = moments.free_laplace_variance(self.epsilon)
        if template.name == "free":
            return spread, None, "exact", 1e-14
        name = f"{self!r} on {stream_text(template)}"
        if template.name in ("one sum", "grid"):
            share = math.prod(1 - 1 / n for n in template.axes)
            if len(template.axes) == 1:  # a random subset: variance f (1 - f) of each cell
                return spread + 0.25 / share, None, "upper bound", 0.0
            cell, error = moments.estimated_variance(self._choice(template).sampler, name)
            return cell / share, None, "estimated", error
        matrix, error = moments.estimated_covariance(self._choice(template).sampler, name)
        return 0.0, matrix, "estimated", error
