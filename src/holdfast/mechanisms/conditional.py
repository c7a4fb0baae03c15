"""The conditional mechanism of 002: noise conditioned on kept totals and on inequalities."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias

from holdfast.channels import Channel, Facts
from holdfast.channels.bounds import BoundsLayout
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.invariants.inequalities import Inequality
from holdfast.lattices.bounded_blocks import bounded_blocks
from holdfast.lattices.bounded_consistency import check_possible
from holdfast.lattices.norms import L1
from holdfast.laws import ConditionalLaplace, L1Laplace
from holdfast.mechanisms import keys
from holdfast.mechanisms.bounds import (
    Bounds,
    bounds_key,
    bounds_text,
    bounds_value,
    compiled,
    read_bounds,
    read_rows,
    rows_key,
    rows_text,
    used_columns,
)
from holdfast.mechanisms.keys import GOT, InvalidKey
from holdfast.mechanisms.mechanism import PER, Mechanism, Per
from holdfast.mechanisms.promise import promise
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.conditioning import best_rate
from holdfast.privacy.guarantee import Conditioning
from holdfast.privacy.parameters import budget, format_exact, ordinary

Gamma: TypeAlias = Literal[0, 1, "best"]
_GAMMAS = (0, 1, "best")
_ROW = '[{margin = ["county"], at_least = 5}]'


def _gamma_key(key: keys.Key, raw: object) -> Gamma:
    if isinstance(raw, bool) or raw not in _GAMMAS:
        raise InvalidKey(key.name, f'must be 0, 1 or "best". Got {GOT}. Write {key.line}.')
    return raw  # type: ignore[return-value]


@dataclass(frozen=True, init=False, repr=False)
class Conditional(Mechanism):
    """A table y with the kept totals of the true one, x, and within the bounds: P[y] proportional to exp(-rate |y - x|_1).

    Given:       epsilon per unit of l1 distance, or for one person with `per="person"`: it is the whole budget. `lower`, `upper`: bounds of
                 cells: one number for all, one for each, a public column ("beds", "3 beds"), or None. `rows`: inequalities of sums
                 (`hf.at_least`, `hf.at_most`).
    Guarantees:  pure: two tables with the same kept totals, both within the bounds, give outputs within a factor exp(epsilon |x - x'|_1).
                 The normaliser depends on x, which costs up to as much again: rate = epsilon / (1 + gamma). gamma is 0 without
                 inequalities and 1 with them; "best" takes the smallest one that is proved for these bounds and kept totals, whatever
                 the counts. Every kept total and bound holds exactly. Not unbiased: bounds push counts away from them.
    Reference:   [GM20] Theorem 2.1; [theory R5].
    """

    epsilon: Fraction
    lower: Bounds
    upper: Bounds
    rows: tuple[Inequality, ...]
    gamma: Gamma | None
    per: Per

    name = "conditional"
    run_file_keys = (
        keys.Key("epsilon", keys.budget, '"0.25"', required=True),
        keys.Key("lower", bounds_key, "0"),
        keys.Key("upper", bounds_key, "1"),
        keys.Key("rows", rows_key, _ROW),
        keys.Key("gamma", _gamma_key, '"best"'),
    )

    def __init__(
        self,
        epsilon: Exact,
        lower: Any = 0,
        upper: Any = None,
        rows: Sequence[Inequality] = (),
        *,
        gamma: Gamma | None = None,
        per: Per = "unit",
    ) -> None:
        if gamma is not None and (isinstance(gamma, bool) or gamma not in _GAMMAS):
            raise InvalidParameter(f"gamma must be 0, 1 or 'best', or None for what the bounds need. Got {gamma!r}.", field="gamma")
        self._set(
            epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"),
            lower=read_bounds(lower, "lower"),
            upper=read_bounds(upper, "upper"),
            rows=read_rows(rows),
            gamma=gamma,
            per=check_choice(per, PER, "per"),
        )

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: Per) -> Self:
        named = {"lower": 0, "upper": None, "rows": (), "gamma": None}
        return cls._from_checked(epsilon=values["epsilon"], per=per, **{name: values.get(name, usual) for name, usual in named.items()})

    @property
    def parameters(self) -> dict[str, str]:
        out = {"epsilon": format_exact(self.epsilon), **self._per_field, "lower": bounds_text(self.lower), "upper": bounds_text(self.upper)}
        if self.rows:
            out["rows"] = rows_text(self.rows)
        return out if self.gamma is None else {**out, "gamma": str(self.gamma)}

    @classmethod
    def _keys_of(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        given = dict(parameters)
        try:
            for name in ("lower", "upper", "gamma"):
                if name in given:
                    given[name] = bounds_value(given[name])
            if "rows" in given:
                given["rows"] = json.loads(given["rows"])
        except (TypeError, ValueError):
            raise InvalidKey("rows", "these are no bounds.") from None
        return given

    def _converted(self, records: int) -> Self:
        return self._with(epsilon=self.epsilon / L1.person_moving(records), per="unit")

    def channel(self, facts: Facts) -> Channel:
        epsilon = self.per_unit(facts.records).epsilon
        made = promise(facts, "pure", "l1", asked=self.asked, epsilon=epsilon)
        given = compiled(facts, self.lower, self.upper, self.rows)
        check_possible(given, facts.lattice.universe, facts.lattice.kept, facts.published_totals)
        if not given.any:  # conditioning on equalities alone is the generalized Laplace law
            return Channel(facts, L1Laplace(epsilon), replace(made, conditioning=Conditioning(epsilon, Fraction(0), "equalities")))
        if self.gamma == 0:
            raise InvalidParameter(
                "gamma = 0 holds where totals are kept and nothing else. There are inequalities here: leave gamma out, or write 1 or "
                "'best'.",
                field="gamma",
            )
        layout = BoundsLayout(bounded_blocks(facts.lattice.blocks, given), given)
        rate, basis = epsilon / 2, "default"
        if self.gamma == "best":
            best = best_rate(layout.shapes(), epsilon)
            rate, basis = best.rate, best.basis
        exposed = replace(made.exposed, columns=used_columns(facts, self.lower, self.upper, self.rows))
        guarantee = replace(
            made,
            conditioning=Conditioning(rate, epsilon / rate - 1, basis),
            relation=replace(made.relation, within_bounds=True),
            exposed=exposed,
            smallest_secret_status="lower bound",
        )
        return Channel(facts, ConditionalLaplace(rate), guarantee, layout=layout)
