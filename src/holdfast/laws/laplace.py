"""The generalized Laplace laws."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2, Norm
from holdfast.lattices.shapes import Free, OneSum, Shape
from holdfast.laws import moments, tails
from holdfast.laws.target import ON_THE_LATTICE, Field, Target, Variance, number_field


@dataclass(frozen=True)
class Laplace(Target):
    """Law:         P[z] proportional to exp(-epsilon |z|) for z in L, in the norm of the subclass.
    Guarantees:  pure privacy: tables x, x' with equal kept totals give outputs within a factor exp(epsilon |x - x'|).
    Reference:   [DGGY22] Definition 9; [theory R8].
    """

    epsilon: Fraction

    norm: ClassVar[Norm]

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("laplace", self.norm.name, number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-{self.epsilon} |z|_{self.norm.power}) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float(self.epsilon) * float(np.linalg.norm(z.astype(np.float64), self.norm.power))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.laplace_log_tail(lattice.dimension, self.epsilon, t)


@dataclass(frozen=True)
class L1Laplace(Laplace):
    """In the l1 norm: blocks are drawn independently. No kept total at all gives independent two-sided geometric noise.

    Reference:   [theory R4] for one total.
    """

    norm = L1

    def block_variance(self, shape: Shape) -> Variance | None:
        if isinstance(shape, Free):
            return Variance(moments.free_laplace_variance(self.epsilon), relative_error=1e-14)
        if isinstance(shape, OneSum):
            cell, error = moments.one_sum_laplace_variance(shape.size, self.epsilon)
            return Variance(cell * shape.size / (shape.size - 1), relative_error=error)
        return None


@dataclass(frozen=True)
class L2Laplace(Laplace):
    """In the l2 norm. It never factorises: the lattice is drawn whole."""

    norm = L2
    splits = False
