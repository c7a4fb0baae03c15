"""Rounded projection."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.exact.parameters import Exact
from holdfast.lattices import Lattice
from holdfast.laws.rounded import RoundedLaw
from holdfast.mechanisms.promise import promise
from holdfast.privacy.parameters import budget, format_exact


@dataclass(frozen=True, init=False)
class RoundedProjection:
    """y = x + z, z independent Laplace noise projected on the moves that keep the totals and rounded to integers without bias.

    Given:       epsilon per unit of l1 distance.
    Guarantees:  pure, as GeneralizedLaplace; unbiased; every kept total exact; any kept totals of any size, at a little more noise.
    Reference:   math.md R10.
    """

    epsilon: Fraction

    name = "rounded-projection"

    def __init__(self, epsilon: Exact) -> None:
        object.__setattr__(self, "epsilon", budget(epsilon, "epsilon"))

    @property
    def parameters(self) -> dict[str, str]:
        return {"epsilon": format_exact(self.epsilon)}

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> RoundedLaw:
        """The law of the noise on this lattice."""
        guarantee = promise(lattice, "pure", "l1", unit, max_records, epsilon=self.epsilon)
        return RoundedLaw(lattice, self.epsilon, guarantee)
