"""The generalized Laplace mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from holdfast.chains.sampler import SamplerRequest
from holdfast.exact.parameters import Exact
from holdfast.lattices import Lattice
from holdfast.laws.laplace import L2LaplaceLaw, LaplaceLaw
from holdfast.mechanisms.promise import promise
from holdfast.mechanisms.requests import DEFAULT_ETA, check_choice, request_parameters, sampler_request
from holdfast.privacy.parameters import budget, format_exact


@dataclass(frozen=True, init=False)
class GeneralizedLaplace:
    """y = x + z, z in the lattice of moves that keep the totals, P[z] proportional to exp(-epsilon |z|).

    Given:       epsilon per unit of distance, in l1 (default) or l2. One person changing cell is l1 = 2, l2 = sqrt 2.
    Guarantees:  pure: outputs for two tables with the same kept totals differ by a factor of at most exp(epsilon |x - x'|); unbiased;
                 every kept total exact. `sampler="auto"` picks an exact sampler for each block; what none can draw in reasonable time is
                 refused, or drawn by a Markov chain where `allow_estimated=True`. A chain ("metropolis", "line_gibbs", "block_gibbs") has
                 no pure promise: its error eta, estimated before anything is drawn, adds a delta.
    Reference:   [DGGY22] Definition 9, Theorem 10.
    """

    epsilon: Fraction
    norm: Literal["l1", "l2"]
    request: SamplerRequest

    name = "generalized-laplace"

    def __init__(
        self,
        epsilon: Exact,
        norm: Literal["l1", "l2"] = "l1",
        sampler: str = "auto",
        *,
        allow_estimated: bool = False,
        eta: Exact = DEFAULT_ETA,
    ) -> None:
        object.__setattr__(self, "epsilon", budget(epsilon, "epsilon"))
        object.__setattr__(self, "norm", check_choice(norm, ("l1", "l2"), "norm"))
        object.__setattr__(self, "request", sampler_request(sampler, allow_estimated, eta))

    @property
    def sampler(self) -> str:
        """The sampler asked for."""
        return self.request.sampler

    @property
    def parameters(self) -> dict[str, str]:
        return {"epsilon": format_exact(self.epsilon), "norm": self.norm, **request_parameters(self.request)}

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> LaplaceLaw:
        """The law of the noise on this lattice."""
        guarantee = promise(lattice, "pure", self.norm, unit, max_records, epsilon=self.epsilon)
        return (LaplaceLaw if self.norm == "l1" else L2LaplaceLaw)(lattice, self.epsilon, guarantee, self.request)
