"""The generalized Laplace law of the l1 norm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free, OneSum, Shape
from holdfast.laws import moments, tails
from holdfast.laws.target import ON_THE_LATTICE, Field, Target, Variance, number_field


@dataclass(frozen=True)
class L1Laplace(Target):
    """Law:         P[z] proportional to exp(-epsilon |z|_1) for z in L.
    Guarantees:  pure privacy: tables x, x' with equal kept totals give outputs within a factor exp(epsilon |x - x'|_1). No kept total at
                 all gives independent two-sided geometric noise.
    Reference:   [DGGY22] Definition 9; [theory R4], [theory R8].
    """

    epsilon: Fraction

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("laplace", "l1", number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-{self.epsilon} |z|_1) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float(self.epsilon) * float(np.abs(z).sum())

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.laplace_log_tail(lattice.dimension, self.epsilon, t)

    def block_variance(self, shape: Shape) -> Variance | None:
        if isinstance(shape, Free):
            return Variance(moments.free_laplace_variance(self.epsilon), relative_error=1e-14)
        if isinstance(shape, OneSum):
            cell, error = moments.one_sum_laplace_variance(shape.size, self.epsilon)
            return Variance(cell * shape.size / (shape.size - 1), relative_error=error)
        return None
