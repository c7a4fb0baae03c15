"""The conditional mechanism of 002: noise conditioned on kept totals and on inequalities."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, Self, TypeAlias, cast

from holdfast.channels import Channel, Facts
from holdfast.channels.layout import BoundsLayout
from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.invariants.constraints import is_whole
from holdfast.invariants.inequalities import Inequality
from holdfast.lattices.bounded_blocks import bounded_blocks, check_possible
from holdfast.lattices.norms import L1, L2
from holdfast.laws import ConditionalGaussian, ConditionalLaplace, Gaussian, L1Laplace
from holdfast.mechanisms import keys
from holdfast.mechanisms.bounds import (
    Bounds,
    bounds_key,
    bounds_text,
    bounds_value,
    compile_inequalities,
    read_bounds,
    read_rows,
    rows_key,
    rows_text,
    used_columns,
)
from holdfast.mechanisms.keys import GOT, InvalidKey
from holdfast.mechanisms.mechanism import Mechanism, promise, read_per
from holdfast.mechanisms.requests import check_choice
from holdfast.privacy.conditioning import best_rate, gaussian_factor, neighbourhood
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.guarantee import Conditioning
from holdfast.privacy.parameters import DISTANCE, budget, ordinary

Noise: TypeAlias = Literal["laplace", "gaussian"]
_NOISES = ("laplace", "gaussian")
Gamma: TypeAlias = Literal[0, 1, "best"]
_GAMMAS = (0, 1, "best")
_ROW = '[{margin = ["county"], at_least = 5}]'


def _is_gamma(value: object) -> bool:
    return value == "best" if isinstance(value, str) else not isinstance(value, bool) and is_whole(value) and value in _GAMMAS


@keys.declare_shape({"enum": list(_GAMMAS)})
def _gamma_key(key: keys.Key, raw: object) -> Gamma:
    if not _is_gamma(raw):
        raise InvalidKey(key.name, f'must be 0, 1 or "best". Got {GOT}. Write {key.line}.')
    return raw  # type: ignore[return-value]


@dataclass(frozen=True, init=False, repr=False)
class Conditional(Mechanism):
    """A table y with the kept totals of the true one, x, and within the bounds: P[y] proportional to exp(-rate |y - x|_1).

    Given:       epsilon for one person (or what the table protects), or with `per="distance"` per unit of l1 distance: it is the whole
                 budget. With `noise="gaussian"` rho instead, of squared l2 distance; the weight is exp(-|y - x|_2^2 / (2 sigma_squared)).
                 `lower`, `upper`: bounds of cells: one number for all, one for each, a public column ("beds", "3 beds"), or None.
                 `rows`: inequalities of sums (`hf.at_least`, `hf.at_most`).
    Guarantees:  pure: two tables with the same kept totals, both within the bounds, give outputs within a factor exp(epsilon |x - x'|_1).
                 The normaliser depends on x, which costs up to as much again: rate = epsilon / (1 + gamma). gamma is 0 without
                 inequalities and 1 with them; "best" takes the smallest one that is proved for these bounds and kept totals, whatever
                 the counts. Gaussian: rho-zCDP, sigma_squared = (1 + gamma) / (2 rho), where a gamma is proved, else refused. Every kept
                 total and bound holds exactly. Not unbiased: bounds push counts away from them.
    Reference:   [GM20] Theorem 2.1; [theory R12], [theory T75].
    """

    epsilon: Fraction | None
    rho: Fraction | None
    noise: Noise
    lower: Bounds
    upper: Bounds
    rows: tuple[Inequality, ...]
    gamma: Gamma | None
    per: str | None

    name = "conditional"
    run_file_keys = (
        keys.Key("epsilon", keys.budget, '"0.25"'),
        keys.Key("rho", keys.budget, '"1/10"'),
        keys.Key("noise", keys.one_of(*_NOISES), '"laplace"'),
        keys.Key("lower", bounds_key, "0"),
        keys.Key("upper", bounds_key, "1"),
        keys.Key("rows", rows_key, _ROW),
        keys.Key("gamma", _gamma_key, '"best"'),
    )

    def __init__(
        self,
        *,
        epsilon: Exact | None = None,
        lower: Any = 0,
        upper: Any = None,
        rows: Sequence[Inequality] = (),
        gamma: Gamma | None = None,
        noise: Noise = "laplace",
        rho: Exact | None = None,
        per: str | None = None,
    ) -> None:
        if gamma is not None and not _is_gamma(gamma):
            raise InvalidParameter(f"gamma must be 0, 1 or 'best', or None for what the bounds need. Got {gamma!r}.", field="gamma")
        check_choice(noise, _NOISES, "noise")
        wrong = _mismatch(noise, {"epsilon": epsilon, "rho": rho, "gamma": gamma})
        if wrong is not None:
            raise InvalidParameter(f"{wrong[1][0].upper()}{wrong[1][1:]} Got noise={noise!r}.", field=wrong[0])
        self._set(
            epsilon=None if epsilon is None else ordinary(budget(epsilon, "epsilon"), "epsilon"),
            rho=None if rho is None else ordinary(budget(rho, "rho"), "rho"),
            noise=noise,
            lower=read_bounds(lower, "lower"),
            upper=read_bounds(upper, "upper"),
            rows=read_rows(rows),
            gamma=gamma,
            per=read_per(per),
        )

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        named = {"epsilon": None, "rho": None, "noise": "laplace", "lower": 0, "upper": None, "rows": (), "gamma": None}
        given = {name: values.get(name, usual) for name, usual in named.items()}
        wrong = _mismatch(cast(Noise, given["noise"]), given)
        if wrong is not None:
            raise InvalidKey(*wrong)
        return cls._from_checked(per=per, **given)

    @classmethod
    def at_budget(cls, budget: Exchange) -> Self:
        return cls(rho=budget.rho, noise="gaussian") if budget.in_rho else cls(epsilon=budget.epsilon, gamma="best")

    @property
    def parameters(self) -> dict[str, str]:
        noise = {} if self.noise == "laplace" else {"noise": self.noise}
        out = {**super().parameters, **noise, "lower": bounds_text(self.lower), "upper": bounds_text(self.upper)}
        if self.rows:
            out["rows"] = rows_text(self.rows)
        return out if self.gamma is None else {**out, "gamma": str(self.gamma)}

    @classmethod
    def _keys_of(cls, parameters: dict[str, Json]) -> dict[str, Json]:
        given = dict(parameters)
        try:
            for name in ("lower", "upper", "gamma"):
                if name in given:
                    given[name] = bounds_value(str(given[name]))
            if "rows" in given:
                given["rows"] = json.loads(str(given["rows"]))
        except (TypeError, ValueError, RecursionError):
            raise InvalidKey("rows", "these are no bounds.") from None
        return given

    def _convert(self, records: int) -> Self:
        if self.rho is not None:
            return self._with(rho=self.rho / L2.person_moving(records), per=DISTANCE)
        assert self.epsilon is not None
        return self._with(epsilon=self.epsilon / L1.person_moving(records), per=DISTANCE)

    def make_channel(self, facts: Facts) -> Channel:
        converted = self.for_distance(facts.records)
        given = compile_inequalities(facts, self.lower, self.upper, self.rows)
        check_possible(given, facts.lattice.universe, facts.lattice.kept, facts.published_totals)
        if converted.rho is not None:
            made, whole = promise(facts, "zcdp", "l2", rho=converted.rho), converted.rho
        else:
            assert converted.epsilon is not None
            made, whole = promise(facts, "pure", "l1", epsilon=converted.epsilon), converted.epsilon
        if not given.any:  # conditioning on equalities alone is the generalized law
            target = L1Laplace(whole) if converted.rho is None else Gaussian(1 / (2 * whole))
            return Channel(facts, target, replace(made, conditioning=Conditioning(whole, Fraction(0), "equalities")))
        if self.gamma == 0:
            raise InvalidParameter(
                "gamma = 0 holds where totals are kept and nothing else. There are inequalities here: leave gamma out, or write 1 or "
                "'best'.",
                field="gamma",
            )
        columns = used_columns(facts, self.lower, self.upper, self.rows)
        layout = BoundsLayout(bounded_blocks(facts.lattice.blocks, given), given, {name: facts.columns[name] for name in columns})
        rate, basis = self._rate(layout, whole)
        guarantee = replace(
            made,
            conditioning=Conditioning(rate, whole / rate - 1, basis, **_neighbourhoods(layout)),
            relation=replace(made.relation, within_bounds=True),
            exposed=replace(made.exposed, columns=columns),
            smallest_secret_status="lower bound",
        )
        law = ConditionalLaplace(rate) if converted.rho is None else ConditionalGaussian(1 / (2 * rate))
        return Channel(facts, law, guarantee, layout=layout)

    def _rate(self, layout: BoundsLayout, whole: Fraction) -> tuple[Fraction, str]:
        """What the bounds leave of the whole budget, for the law, and how that is known."""
        if self.noise == "gaussian":
            return whole / gaussian_factor(layout.shapes()), "gaussian"
        if self.gamma == "best":
            best = best_rate(layout.shapes(), whole)
            return best.rate, best.basis
        return whole / 2, "default"


def _neighbourhoods(layout: BoundsLayout) -> dict[str, int]:
    """How many blocks there are, and in how many kept totals and bounds leave no two tables that one person tells apart."""
    counts = {shape: count for _, shape, count in layout.blocks.moving_shapes()}
    kinds = {shape: neighbourhood(shape).kind for shape in counts}
    left = {kind: sum(count for shape, count in counts.items() if kinds[shape] == kind) for kind in ("disrupted", "destroyed")}
    return {"blocks": sum(counts.values()), **left}


def _mismatch(noise: Noise, given: Mapping[str, object]) -> tuple[str, str] | None:
    """The key that does not go with the noise, and why; None where all go together."""
    needs, other = ("epsilon", "rho") if noise == "laplace" else ("rho", "epsilon")
    if given[other] is not None:
        return other, f"{noise} noise takes {needs}, not {other}: leave {other} out."
    if given[needs] is None:
        return needs, f"the budget is missing: {noise} noise takes {needs}."
    if noise == "gaussian" and given["gamma"] is not None:
        return "gamma", "gamma is for Laplace noise: with Gaussian noise it follows from the kept totals. Leave it out."
    return None
