"""Rounded projection: independent Laplace noise, projected on the moves that keep the totals, rounded without bias."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free, General, Levels, OneSum, Pinned, Shape
from holdfast.laws import moments, tails
from holdfast.laws.gaussian import MATRIX_DIMENSION
from holdfast.laws.target import Field, Target, Variance, number_field


@dataclass(frozen=True)
class Rounded(Target):
    """Law:         z = R(P e), e independent with P[e_i = k] proportional to exp(-epsilon |k|), P the projection on span(L), R an unbiased
                 random rounding to L that commutes with shifts by L. There is no closed form of P[z], hence no weight.
    Guarantees:  pure privacy, epsilon per unit of l1 distance: x + z is a random function of x + e and the kept totals.
    Reference:   [theory R10]; Cox (1987) for the rounding of two-way tables.
    """

    epsilon: Fraction

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("rounded projection", number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return (
            f"independent noise with P[k] proportional to exp(-{self.epsilon} |k|), projected on the tables that change no kept total and "
            "rounded to integers without bias"
        )

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """Bound on the logarithm of P[|z|_2 >= t]: projecting shortens, and rounding moves z by at most the rounding radius."""
        return tails.laplace_log_tail(lattice.cells, self.epsilon, max(t - rounding_radius(lattice), 0.0))

    def block_variance(self, shape: Shape) -> Variance | None:
        spread = moments.free_laplace_variance(self.epsilon)
        if isinstance(shape, Free):
            return Variance(spread, relative_error=1e-14)
        if isinstance(shape, OneSum):  # a random subset: variance f (1 - f) of each cell, and all cells are alike
            rounding = moments.fraction_variance(shape.axes, self.epsilon)
            return Variance(spread + rounding / (1 - 1 / shape.size), relative_error=1e-12)
        if isinstance(shape, Levels) or (
            isinstance(shape, General) and shape.dimension > MATRIX_DIMENSION
        ):  # nearest plane: a coin of variance 1/4 at most along every Gram-Schmidt vector
            return Variance(spread, None, "upper bound", rounding=0.25)
        return None


def rounding_radius(lattice: Lattice) -> float:
    """l2 length by which rounding can move the projection: below one a cell where roundings are controlled; by nearest plane at most
    (sum |b*_i|^2)^(1/2), and a reduced basis has |b*_i| <= |b_i|.
    """
    blocks = lattice.blocks
    squares = (_rounding_square(shape) * int(count) for shape, count in zip(blocks.shapes, blocks.counts, strict=True) if count)
    return math.sqrt(math.fsum(squares))


def _rounding_square(shape: Shape) -> float:
    if isinstance(shape, Pinned | Free):
        return 0.0
    if isinstance(shape, Levels) or (isinstance(shape, General) and shape.dimension > MATRIX_DIMENSION):
        return shape.rounding_square()
    if isinstance(shape, General):
        return float((shape.reduced_basis().astype(np.float64) ** 2).sum())
    return shape.size * (1.0 if len(shape.axes) <= 2 else 2.0 ** len(shape.axes))
