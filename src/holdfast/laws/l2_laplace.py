"""The generalized Laplace law of the l2 norm."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.lattices import Lattice
from holdfast.laws import tails
from holdfast.laws.target import ON_THE_LATTICE, Field, Target, number_field


@dataclass(frozen=True)
class L2Laplace(Target):
    """Law:         P[z] proportional to exp(-epsilon |z|_2) for z in L. It never factorises: the lattice is drawn whole.
    Guarantees:  pure privacy, epsilon per unit of l2 distance.
    Reference:   [DGGY22] Definition 9; [theory R8].
    """

    epsilon: Fraction

    splits = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("laplace", "l2", number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-{self.epsilon} |z|_2) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float(self.epsilon) * float(np.sqrt((z.astype(np.float64) ** 2).sum()))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.laplace_log_tail(lattice.dimension, self.epsilon, t)
