"""The mechanisms with Laplace noise: the generalized Laplace mechanism, and rounded projection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, Self

from holdfast.channels import Channel, Facts
from holdfast.channels.channel import SamplerRequest
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.lattices.norms import L1, NORMS, norm_of
from holdfast.laws import L1Laplace, L2Laplace, Rounded
from holdfast.mechanisms import keys
from holdfast.mechanisms.keys import InvalidKey
from holdfast.mechanisms.mechanism import Mechanism, promise, read_per
from holdfast.mechanisms.requests import (
    DEFAULT_ETA,
    SAMPLERS,
    ChainMechanism,
    check_choice,
    request_from_keys,
    sampler_keys,
    sampler_request,
)
from holdfast.privacy.exchange import below_root
from holdfast.privacy.parameters import DISTANCE, budget, ordinary
from holdfast.samplers.table import COUPLING

LAPLACE_SAMPLERS = (*SAMPLERS, COUPLING)
_L1_ONLY = "coupling_from_past draws the l1 law"
_TARGETS = {"l1": L1Laplace, "l2": L2Laplace}


@dataclass(frozen=True, init=False, repr=False)
class GeneralizedLaplace(ChainMechanism):
    """y = x + z, z in the lattice of moves that keep the totals, P[z] proportional to exp(-epsilon |z|).

    Given:       epsilon for one person (or what the table protects) who changes cell, at l1 = 2 m and l2 = m sqrt 2, m the table's
                 max_records: epsilon per unit is what the distance leaves, under l2 rounded down. With `per="distance"` epsilon is per
                 unit of distance, in l1 (default) or l2.
    Guarantees:  pure: outputs for two tables with the same kept totals differ by a factor of at most exp(epsilon |x - x'|); unbiased;
                 every kept total exact. `sampler="auto"` picks an exact sampler for each block; what none can draw in reasonable time is
                 refused, or drawn by a Markov chain where `allow_estimated=True`. "coupling_from_past" (l1 only) takes that exact sampler
                 wherever a block has more than one total, and may take longer. A chain ("metropolis", "line_gibbs") has
                 no pure promise: its error eta, estimated before anything is drawn, adds a delta.
    Reference:   [DGGY22] Definition 9, Theorem 10.
    """

    epsilon: Fraction
    norm: Literal["l1", "l2"]
    request: SamplerRequest
    per: str | None

    name = "generalized-laplace"
    is_unbiased = has_long_tails = True
    run_file_keys = (
        keys.Key("epsilon", keys.budget, '"0.25"', required=True),
        keys.Key("norm", keys.one_of(*NORMS), '"l1"'),
        *sampler_keys(*LAPLACE_SAMPLERS),
    )

    def __init__(
        self,
        *,
        epsilon: Exact,
        norm: Literal["l1", "l2"] = "l1",
        sampler: str = "auto",
        allow_estimated: bool = False,
        eta: Exact = DEFAULT_ETA,
        per: str | None = None,
    ) -> None:
        self._set(
            epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"),
            norm=check_choice(norm, tuple(NORMS), "norm"),
            request=sampler_request(sampler, allow_estimated, eta, LAPLACE_SAMPLERS),
            per=read_per(per),
        )
        if norm == "l2" and sampler == COUPLING:
            raise InvalidParameter(f"{_L1_ONLY}. Give norm='l1', or sampler='auto'.")

    @classmethod
    def from_run_file(cls, values: Mapping[str, object], per: str | None) -> Self:
        norm, request = values.get("norm", "l1"), request_from_keys(values)
        if norm == "l2" and request.sampler == COUPLING:
            raise InvalidKey("sampler", f'{_L1_ONLY}. Give norm = "l1", or sampler = "auto".')
        return cls._from_checked(epsilon=values["epsilon"], norm=norm, request=request, per=per)

    @property
    def parameters(self) -> dict[str, str]:
        return {**super().parameters, "norm": self.norm, **self._said_of_chains}

    def _convert(self, records: int) -> Self:
        norm = norm_of(self.norm)
        measure = Fraction(norm.person_moving(records))
        length = norm.length(measure)
        return self._with(epsilon=self.epsilon / length if length is not None else below_root(self.epsilon**2 / measure), per=DISTANCE)

    def make_channel(self, facts: Facts) -> Channel:
        epsilon = self.for_distance(facts.records).epsilon
        target = _TARGETS[self.norm](epsilon)
        return Channel(facts, target, promise(facts, "pure", self.norm, epsilon=epsilon), self.request)


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
    is_unbiased = has_long_tails = True
    run_file_keys = (keys.Key("epsilon", keys.budget, '"0.25"', required=True),)

    def __init__(self, *, epsilon: Exact, per: str | None = None) -> None:
        self._set(epsilon=ordinary(budget(epsilon, "epsilon"), "epsilon"), per=read_per(per))

    def _convert(self, records: int) -> Self:
        return self._with(epsilon=self.epsilon / L1.person_moving(records), per=DISTANCE)

    def make_channel(self, facts: Facts) -> Channel:
        epsilon = self.for_distance(facts.records).epsilon
        return Channel(facts, Rounded(epsilon), promise(facts, "pure", "l1", epsilon=epsilon))
