"""Rounded projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from holdfast.channels import Channel, Facts
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact
from holdfast.lattices.norms import L1
from holdfast.laws import Rounded
from holdfast.mechanisms import keys
from holdfast.mechanisms.mechanism import Mechanism, read_per
from holdfast.mechanisms.promise import promise
from holdfast.privacy.asked import DISTANCE
from holdfast.privacy.parameters import budget, ordinary


@dataclass(frozen=True, init=False, repr=False)
class RoundedProjection(Mechanism):
    """y = x + z, z independent Laplace noise projected on the moves that keep the totals and rounded to integers without bias.

    Given:       epsilon for one person (or what the table protects) who changes cell, or with `per="distance"` per unit of l1 distance,
                 as for GeneralizedLaplace.
    Guarantees:  pure, as GeneralizedLaplace; unbiased; every kept total exact; any kept totals of any size, at a little more noise.
    Reference:   [theory R10].
    """

    epsilon: Fraction
    per: str | None

    name = "rounded-projection"
    run_file_keys = (keys.Key("epsilon", keys.budget, '"0.25"', required=True),)

    def __init__(self, *, epsilon: Exact, per: str | None = None) -> None:
        self._set(epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"), per=read_per(per))

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: str | None) -> Self:
        return cls._from_checked(epsilon=values["epsilon"], per=per)

    @property
    def parameters(self) -> dict[str, str]:
        return {"epsilon": format_exact(self.epsilon), **self._per_field}

    def _convert(self, records: int) -> Self:
        return self._with(epsilon=self.epsilon / L1.person_moving(records), per=DISTANCE)

    def make_channel(self, facts: Facts) -> Channel:
        epsilon = self.for_distance(facts.records).epsilon
        return Channel(facts, Rounded(epsilon), promise(facts, "pure", "l1", asked=self.asked, epsilon=epsilon))
