"""The generalized Gaussian law."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.exact import DiscreteGaussian
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Free, General, Shape
from holdfast.laws import tails
from holdfast.laws.target import ON_THE_LATTICE, Field, Target, Variance, number_field

MATRIX_DIMENSION = 150
"""Free dimensions of a general block up to which its covariance is one matrix; beyond, projections are made by classes of cells."""


@dataclass(frozen=True)
class Gaussian(Target):
    """Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) for z in L.
    Guarantees:  |x - x'|_2^2 / (2 sigma_squared)-zCDP for tables x, x' with equal kept totals, on every lattice of every dimension.
                 No kept total at all gives independent discrete Gaussian noise.
    Reference:   [DGGY22] Definition 13; [theory R7] for the guarantee; [CKS20].
    """

    sigma_squared: Fraction

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("gaussian", number_field(self.sigma_squared))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-|z|_2^2 / (2 x {self.sigma_squared})) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float((z.astype(np.float64) ** 2).sum()) / (2 * float(self.sigma_squared))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.gaussian_log_tail(lattice.dimension, self.sigma_squared, t)

    def block_variance(self, shape: Shape) -> Variance:
        """The continuous form, which is never too small: the law is sub-Gaussian with proxy sigma in every direction ([theory R7])."""
        if isinstance(shape, Free):
            return Variance(DiscreteGaussian(self.sigma_squared).variance(), relative_error=1e-15)
        if isinstance(shape, General) and shape.dimension <= MATRIX_DIMENSION:
            frame, _ = np.linalg.qr(shape.reduced_basis().astype(np.float64))
            return Variance(0.0, float(self.sigma_squared) * frame @ frame.T, "upper bound")
        return Variance(float(self.sigma_squared), None, "upper bound")
