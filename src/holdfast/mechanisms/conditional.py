"""The conditional mechanism of 002: noise conditioned on kept totals and on inequalities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from holdfast.channels import Channel, Facts
from holdfast.channels.bounds import BoundsLayout
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.lattices.bounded_blocks import Inequalities, bounded_blocks
from holdfast.lattices.norms import L1
from holdfast.laws import ConditionalLaplace, L1Laplace
from holdfast.mechanisms import keys
from holdfast.mechanisms.bounds import Bounds, bounds_text, of_cells, read_bounds
from holdfast.mechanisms.mechanism import PER, Mechanism, Per
from holdfast.mechanisms.promise import promise
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.parameters import budget, format_exact, ordinary

Gamma: TypeAlias = Literal[0, 1, "best"]


@dataclass(frozen=True, init=False, repr=False)
class Conditional(Mechanism):
    """A table y with the kept totals of the true one, x, and within the bounds: P[y] proportional to exp(-rate |y - x|_1).

    Given:       epsilon per unit of l1 distance, or for one person with `per="person"`: it is the whole budget. `lower`, `upper`: bounds of
                 cells, one for all or one for each, None where there is none.
    Guarantees:  pure: two tables with the same kept totals, both within the bounds, give outputs within a factor exp(epsilon |x - x'|_1).
                 The normaliser depends on x, which costs up to as much again: rate = epsilon / (1 + gamma), gamma = 1 with inequalities
                 and 0 without. Every kept total and bound holds exactly. Not unbiased: bounds push counts away from them.
    Reference:   [GM20] Theorem 2.1; [theory R5].
    """

    epsilon: Fraction
    lower: Bounds
    upper: Bounds
    per: Per

    name = "conditional"
    run_file_keys = (
        keys.Key("epsilon", keys.budget, '"0.25"', required=True),
        keys.Key("lower", keys.whole_number(-(2**62) + 1), "0"),
        keys.Key("upper", keys.whole_number(-(2**62) + 1), "1"),
    )

    def __init__(self, epsilon: Exact, lower: Any = 0, upper: Any = None, *, per: Per = "unit") -> None:
        self._set(
            epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"),
            lower=read_bounds(lower, "lower"),
            upper=read_bounds(upper, "upper"),
            per=check_choice(per, PER, "per"),
        )

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: Per) -> Self:
        return cls._from_checked(epsilon=values["epsilon"], lower=values.get("lower", 0), upper=values.get("upper"), per=per)

    @property
    def parameters(self) -> dict[str, str]:
        return {
            "epsilon": format_exact(self.epsilon),
            **self._per_field,
            "lower": bounds_text(self.lower),
            "upper": bounds_text(self.upper),
        }

    def _converted(self, records: int) -> Self:
        return self._with(epsilon=self.epsilon / L1.person_moving(records), per="unit")

    def channel(self, facts: Facts) -> Channel:
        epsilon = self.per_unit(facts.records).epsilon
        made = promise(facts, "pure", "l1", asked=self.asked, epsilon=epsilon)
        given = Inequalities(of_cells(facts, self.lower, "lower"), of_cells(facts, self.upper, "upper"))
        if (given.lower > given.upper).any():
            cell = int(np.flatnonzero(given.lower > given.upper)[0])
            name = str(cell) if facts.lattice.universe is None else facts.universe.cell_name(cell)
            raise InvalidParameter(
                f"lower is above upper in the cell {name}: no count lies between them. Correct one of the two.", field="lower"
            )
        if not given.any:  # conditioning on equalities alone is the generalized Laplace law
            return Channel(facts, L1Laplace(epsilon), made)
        layout = BoundsLayout(bounded_blocks(facts.lattice.blocks, given), given)
        return Channel(facts, ConditionalLaplace(epsilon / 2), made, layout=layout)
