"""The generalized Gaussian mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Self

from holdfast.channels import Channel, Facts
from holdfast.channels.channel import SamplerRequest
from holdfast.channels.gaussian import settle
from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.lattices import Lattice
from holdfast.lattices.norms import L2
from holdfast.laws import Gaussian
from holdfast.mechanisms import keys
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.levels import Shares, level_channel, read_rows, read_shares, rows_of
from holdfast.mechanisms.mechanism import promise, read_per
from holdfast.mechanisms.requests import DEFAULT_ETA, SAMPLER_KEYS, ChainMechanism, check_choice, request_from_keys, sampler_request
from holdfast.privacy.calibration import (
    check_says_something,
    pair_sigma_squared,
    paper_sigma_squared,
    simple_sigma_squared,
    tight_sigma_squared,
)
from holdfast.privacy.exchange import Exchange
from holdfast.privacy.guarantee import AskedLaw
from holdfast.privacy.parameters import DISTANCE, budget, ordinary, probability

Calibration = Literal["tight", "simple", "paper"]

_CALIBRATIONS = ("tight", "simple", "paper")
_LAWS = ("auto", "lattice", "sequential")
_WAYS = ("rho", "sigma_squared", "epsilon")
_NEEDS_ONE = "give rho, or sigma_squared, or epsilon and delta"
_CHAIN_NEEDS = "a Markov chain needs a promise in epsilon and delta per unit of distance"
_NO_BUDGET = "sigma_squared is the noise itself and no budget. Leave per out."
_ONE_DISTANCE = "one person is at one distance, and the least noise for it is taken"
_BY_CHAIN = "a Markov chain draws the lattice law. Leave law out, or the sampler"
_OF_PAPER = 'calibration = "paper" is proved for the lattice law. Write law = "lattice", or calibration = "tight"'


@dataclass(frozen=True, init=False, repr=False)
class GeneralizedGaussian(ChainMechanism):
    """y = x + z, z in the lattice of moves that keep the totals, P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)).

    Given:       one of rho (sigma_squared = 1 / (2 rho)), sigma_squared, or epsilon with delta. A budget is for one person (or what the
                 table protects) who changes cell, at squared l2 distance 2 m^2, m the table's max_records; (epsilon, delta) becomes the
                 least sigma_squared proved for that distance. With `per="distance"` it is per unit of l2 distance. sigma_squared is the
                 noise itself and is for nobody: it takes no `per`.
                 `law` says which law draws it: "lattice", the law above; "sequential", its cells one after the other, each final when
                 drawn, which costs (1 + kappa) rho; or "auto", the lattice law for blocks that expect at most four tries, and otherwise
                 whichever of the two has the least noise for the budget. sigma_squared is drawn as given, and costs what it costs.
                 `calibration` says how (epsilon, delta) per unit becomes sigma_squared: "tight" (default) and "simple" hold for tables of
                 every size, "paper" is the constant of the paper's order, which grows with the dimension, for comparison.
                 `levels`: shares of rho for levels and margins, exact and adding up to one: {"state": "1/10", "county": {"total": "1/5",
                 ("sex", "age"): "1/5", "detailed": "1/2"}}. A level is named by a level of a hierarchy, a column, or a tuple of nested
                 columns; "total" is the whole table. A share alone is for the unit by all other columns. Then z has weight exp(-rho sum
                 of share |margin of z|_2^2): one count more or less costs rho in all, a person who moves at most 2 rho.
    Guarantees:  (|x - x'|_2^2 (1 + kappa) / (2 sigma_squared))-zCDP between tables with the same kept totals, in every dimension, kappa = 0
                 for the lattice law; never more than the budget. With epsilon and delta per unit also the (epsilon, delta) of [DGGY22]
                 Definition 2. Unbiased; every kept total exact. Exact samplers; a Markov chain where one is asked for or
                 `allow_estimated=True`, for (epsilon, delta) per unit only.
    Reference:   [DGGY22] Definition 13; [theory R7]; [theory R22]; [CKS20].
    """

    rho: Fraction | None
    sigma_squared: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None
    calibration: Calibration
    request: SamplerRequest
    per: str | None
    asked_law: AskedLaw
    levels: Shares | None

    name = "generalized-gaussian"
    is_unbiased = True
    run_file_keys = (
        keys.Key("rho", keys.budget, '"1/10"'),
        keys.Key("sigma_squared", keys.exact_number(), '"100"'),
        keys.Key("epsilon", keys.budget, '"0.25"'),
        keys.delta_key("generalized-laplace"),
        keys.Key("calibration", keys.one_of(*_CALIBRATIONS), '"tight"'),
        *SAMPLER_KEYS,
        keys.Key("law", keys.one_of(*_LAWS), '"auto"'),
        keys.Key("levels", read_rows, '[{level = "county", share = "1"}]'),
    )

    def __init__(
        self,
        *,
        rho: Exact | None = None,
        sigma_squared: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        calibration: Calibration = "tight",
        sampler: str = "auto",
        allow_estimated: bool = False,
        eta: Exact = DEFAULT_ETA,
        per: str | None = None,
        law: AskedLaw = "auto",
        levels: Mapping[Any, Any] | None = None,
    ) -> None:
        given = [name for name, value in zip(_WAYS, (rho, sigma_squared, epsilon), strict=True) if value is not None]
        if len(given) != 1 or (delta is None) != (epsilon is None):
            raise InvalidParameter(
                "A Gaussian takes exactly one of rho, sigma_squared, or epsilon with delta. "
                f"Got {', '.join([*given, *(['delta'] if delta is not None else [])]) or 'none of them'}."
            )
        if sigma_squared is not None and per is not None:
            raise InvalidParameter(_NO_BUDGET, field="per")
        self._set(
            rho=None if rho is None else ordinary(budget(rho, "rho"), "rho"),
            sigma_squared=None if sigma_squared is None else ordinary(positive_fraction(sigma_squared, "sigma_squared"), "sigma_squared"),
            epsilon=None if epsilon is None else ordinary(budget(epsilon, "epsilon"), "epsilon"),
            delta=None if delta is None else ordinary(probability(delta, "delta"), "delta"),
            calibration=check_choice(calibration, _CALIBRATIONS, "calibration"),
            request=sampler_request(sampler, allow_estimated, eta),
            per=read_per(per),
            asked_law=check_choice(law, _LAWS, "law"),
            levels=None if levels is None else read_shares(levels),
        )
        if self.levels is not None and (self.rho is None or self.request.names_a_chain or self.request.allow_estimated):
            raise InvalidParameter("levels goes with rho, which its shares divide, and with exact samplers. Give rho alone.")
        if not self.per_distance and self.request.names_a_chain:
            raise InvalidParameter(f"sampler={sampler!r}: {_CHAIN_NEEDS}. Give both with per='distance', or sampler='auto'.")
        if not self.per_distance and calibration != "tight":
            raise InvalidParameter(f"calibration={calibration!r} goes with per='distance': {_ONE_DISTANCE}. Leave it out.")
        if (wrong := self._wrong_law) is not None:
            raise InvalidParameter(f"law={law!r}: {wrong}.", field="law")

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        if "delta" in values and "epsilon" not in values:
            raise InvalidKey("epsilon", "this key is missing: delta goes with epsilon. Give both, or rho alone.")
        ways = [key for key in _WAYS if key in values]
        if len(ways) > 1:
            raise InvalidKey(ways[1], f"{' and '.join(ways)} are given together, and each sets the noise: {_NEEDS_ONE}.")
        if not ways:
            raise InvalidKey("rho", f"the budget is missing: {_NEEDS_ONE}.")
        if ways == ["epsilon"] and "delta" not in values:
            advice = 'Add delta = "1e-9", or use rho; mechanism = "generalized-laplace" takes epsilon alone.'
            raise InvalidKey("delta", f"this key is missing: a Gaussian promises epsilon only together with delta. {advice}")
        request = request_from_keys(values)
        if "levels" in values and (ways != ["rho"] or request.names_a_chain or request.allow_estimated):
            raise InvalidKey("levels", "this key divides rho, and goes with exact samplers only. Give rho, and leave the sampler out.")
        if request.names_a_chain and (ways != ["epsilon"] or per != DISTANCE):
            raise InvalidKey("sampler", f'{_CHAIN_NEEDS}. Give both with per = "distance", or sampler = "auto".')
        if "calibration" in values and ways != ["epsilon"]:
            raise InvalidKey("calibration", "this key goes with epsilon and delta. Leave it out.")
        if "calibration" in values and per != DISTANCE:
            raise InvalidKey("calibration", f'this key goes with per = "distance": {_ONE_DISTANCE}. Leave it out.')
        made = cls._from_checked(
            **{key: values.get(key) for key in (*_WAYS, "delta")},
            calibration=values.get("calibration", "tight"),
            request=request,
            per=None if ways == ["sigma_squared"] else per,
            asked_law=values.get("law", "auto"),
            levels=values.get("levels"),
        )
        if (wrong := made._wrong_law) is not None:
            raise InvalidKey("law", f"{wrong}.")
        return made

    @property
    def _wrong_law(self) -> str | None:
        """What the sequential law does not go with; None where it is not asked for, or all is well."""
        if self.asked_law != "sequential":
            return None
        return _BY_CHAIN if self.request.names_a_chain else _OF_PAPER if self.calibration == "paper" else None

    @classmethod
    def at_budget(cls, budget: Exchange) -> Self:
        pair = budget.asked.delta is not None
        return cls(epsilon=budget.epsilon, delta=budget.asked.delta) if pair else cls(rho=budget.rho)

    @property
    def has_budget(self) -> bool:
        return self.sigma_squared is None

    @property
    def parameters(self) -> dict[str, str]:
        named = {"rho": self.rho, "sigma_squared": self.sigma_squared, "epsilon": self.epsilon, "delta": self.delta}
        out = {name: format_exact(value) for name, value in named.items() if value is not None}
        calibrated = self.epsilon is not None and self.per_distance
        if self.levels is not None:
            out["levels"] = self.levels.text
        law = {} if self.asked_law == "auto" else {"law": self.asked_law}
        return {**out, **self._per_field, **({"calibration": self.calibration} if calibrated else {}), **self._said_of_chains, **law}

    @classmethod
    def _keys_of(cls, parameters: dict[str, Json]) -> dict[str, Json]:
        given = super()._keys_of(parameters)
        if "levels" not in given:
            return given
        try:
            return {**given, "levels": rows_of(given["levels"])}
        except ValueError:
            raise InvalidKey("levels", "these are no shares.") from None

    def _convert(self, records: int) -> Self:
        squared = L2.person_moving(records)
        if self.rho is not None:
            return self._with(rho=self.rho / squared, per=DISTANCE)
        assert self.epsilon is not None
        assert self.delta is not None
        least = pair_sigma_squared(self.epsilon, self.delta, distance_squared=squared)
        return self._with(sigma_squared=least, epsilon=None, delta=None, per=None)

    def make_channel(self, facts: Facts) -> Channel:
        """See the base class; `settle` takes the law, and the width that keeps the budget."""
        converted = self.for_distance(facts.records)
        law: AskedLaw = "lattice" if self.calibration == "paper" else self.asked_law
        if converted.levels is not None:
            assert converted.rho is not None
            return settle(level_channel(facts, converted.rho, converted.levels), law, is_budget=True)
        sigma_squared = converted._variance(facts.lattice)
        rho = converted.rho if converted.rho is not None else 1 / (2 * sigma_squared)
        if converted.epsilon is None or converted.delta is None:
            guarantee = promise(facts, "zcdp", "l2", rho=rho)
        else:
            guarantee = promise(facts, "approximate", "l2", epsilon=converted.epsilon, delta=converted.delta, rho=rho)
        return settle(Channel(facts, Gaussian(sigma_squared), guarantee, self.request), law, is_budget=self.sigma_squared is None)

    def _variance(self, lattice: Lattice) -> Fraction:
        """The sigma_squared used on this lattice, from parameters for one unit of distance."""
        if self.sigma_squared is not None:
            return self.sigma_squared
        if self.rho is not None:
            return 1 / (2 * self.rho)
        assert self.epsilon is not None
        assert self.delta is not None
        smallest = lattice.shortest("l2").value
        check_says_something(self.epsilon, self.delta, smallest)
        if self.calibration == "simple":
            return simple_sigma_squared(self.epsilon, self.delta)
        if self.calibration == "paper":
            return paper_sigma_squared(self.epsilon, self.delta, lattice.dimension, lattice.log_gram_determinant())
        return tight_sigma_squared(self.epsilon, self.delta, smallest)
