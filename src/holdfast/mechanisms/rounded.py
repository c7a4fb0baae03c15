"""Rounded projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from holdfast.exact.parameters import Exact
from holdfast.lattices import Lattice
from holdfast.laws.rounded import RoundedLaw
from holdfast.mechanisms import keys
from holdfast.mechanisms.base import PER, BaseMechanism, Per
from holdfast.mechanisms.promise import promise
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.parameters import budget, format_exact


@dataclass(frozen=True, init=False, repr=False)
class RoundedProjection(BaseMechanism):
    """y = x + z, z independent Laplace noise projected on the moves that keep the totals and rounded to integers without bias.

    Given:       epsilon per unit of l1 distance; with `per="person"` for one person who changes cell, as for GeneralizedLaplace.
    Guarantees:  pure, as GeneralizedLaplace; unbiased; every kept total exact; any kept totals of any size, at a little more noise.
    Reference:   math.md R10.
    """

    epsilon: Fraction
    per: Per

    name = "rounded-projection"
    run_file_keys = (keys.Key("epsilon", keys.budget, '"0.25"', required=True),)

    def __init__(self, epsilon: Exact, *, per: Per = "unit") -> None:
        self._set(epsilon=budget(epsilon, "epsilon"), per=check_choice(per, PER, "per"))

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: Per) -> Self:
        return cls._made(epsilon=values["epsilon"], per=per)

    @property
    def parameters(self) -> dict[str, str]:
        return {"epsilon": format_exact(self.epsilon), **self._said_per}

    def _converted(self, m: int) -> Self:
        return self._with(epsilon=self.epsilon / (2 * m), per="unit")

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> RoundedLaw:
        epsilon = self.per_unit(max_records).epsilon
        return RoundedLaw(lattice, epsilon, promise(lattice, "pure", "l1", unit, max_records, epsilon=epsilon))
