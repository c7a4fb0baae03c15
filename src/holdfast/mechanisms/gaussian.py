"""The generalized Gaussian mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from holdfast.chains.sampler import SamplerRequest
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact, positive_fraction
from holdfast.lattices import Lattice
from holdfast.laws.gaussian import GaussianLaw
from holdfast.mechanisms.promise import promise
from holdfast.mechanisms.requests import DEFAULT_ETA, check_choice, request_parameters, sampler_request
from holdfast.privacy.calibration import paper_sigma_squared, simple_sigma_squared, tight_sigma_squared
from holdfast.privacy.parameters import budget, format_exact, probability

Calibration = Literal["tight", "simple", "paper"]


@dataclass(frozen=True, init=False)
class GeneralizedGaussian:
    """y = x + z, z in the lattice of moves that keep the totals, P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)).

    Given:       one of rho (sigma_squared = 1 / (2 rho)), sigma_squared, or epsilon with delta; all per unit of l2 distance.
                 `calibration` says how (epsilon, delta) becomes sigma_squared: "tight" (default) and "simple" hold for tables of every
                 size, "paper" is the constant of the paper's order, which grows with the dimension, for comparison.
    Guarantees:  (|x - x'|_2^2 / (2 sigma_squared))-zCDP between tables with the same kept totals, in every dimension; with epsilon and
                 delta also the (epsilon, delta) of [DGGY22] Definition 2. Unbiased; every kept total exact. Exact samplers; a Markov chain
                 where one is asked for or `allow_estimated=True`, for (epsilon, delta) only, as for GeneralizedLaplace.
    Reference:   [DGGY22] Definition 13; math.md R7; [CKS20].
    """

    rho: Fraction | None
    sigma_squared: Fraction | None
    epsilon: Fraction | None
    delta: Fraction | None
    calibration: Calibration
    request: SamplerRequest

    name = "generalized-gaussian"

    def __init__(
        self,
        rho: Exact | None = None,
        sigma_squared: Exact | None = None,
        epsilon: Exact | None = None,
        delta: Exact | None = None,
        calibration: Calibration = "tight",
        sampler: str = "auto",
        *,
        allow_estimated: bool = False,
        eta: Exact = DEFAULT_ETA,
    ) -> None:
        given = [name for name, value in (("rho", rho), ("sigma_squared", sigma_squared), ("epsilon", epsilon)) if value is not None]
        if len(given) != 1 or (delta is None) != (epsilon is None):
            raise InvalidParameter(
                "A Gaussian takes exactly one of rho, sigma_squared, or epsilon with delta. "
                f"Got {', '.join([*given, *(['delta'] if delta is not None else [])]) or 'none of them'}."
            )
        object.__setattr__(self, "rho", None if rho is None else budget(rho, "rho"))
        object.__setattr__(self, "sigma_squared", None if sigma_squared is None else positive_fraction(sigma_squared, "sigma_squared"))
        object.__setattr__(self, "epsilon", None if epsilon is None else budget(epsilon, "epsilon"))
        object.__setattr__(self, "delta", None if delta is None else probability(delta, "delta"))
        object.__setattr__(self, "calibration", check_choice(calibration, ("tight", "simple", "paper"), "calibration"))
        object.__setattr__(self, "request", sampler_request(sampler, allow_estimated, eta))

    @property
    def sampler(self) -> str:
        """The sampler asked for."""
        return self.request.sampler

    @property
    def parameters(self) -> dict[str, str]:
        named = {"rho": self.rho, "sigma_squared": self.sigma_squared, "epsilon": self.epsilon, "delta": self.delta}
        out = {name: format_exact(value) for name, value in named.items() if value is not None}
        return {**out, **({} if self.epsilon is None else {"calibration": self.calibration}), **request_parameters(self.request)}

    def variance_parameter(self, lattice: Lattice) -> Fraction:
        """The sigma_squared used on this lattice."""
        if self.sigma_squared is not None:
            return self.sigma_squared
        if self.rho is not None:
            return 1 / (2 * self.rho)
        assert self.epsilon is not None
        assert self.delta is not None
        if self.calibration == "simple":
            return simple_sigma_squared(self.epsilon, self.delta)
        if self.calibration == "paper":
            return paper_sigma_squared(self.epsilon, self.delta, lattice.dimension, lattice.log_gram_determinant())
        return tight_sigma_squared(self.epsilon, self.delta, lattice.shortest("l2").value)

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> GaussianLaw:
        """The law of the noise on this lattice."""
        sigma_squared = self.variance_parameter(lattice)
        if self.epsilon is None or self.delta is None:
            guarantee = promise(lattice, "zcdp", "l2", unit, max_records, rho=1 / (2 * sigma_squared))
        else:
            guarantee = promise(
                lattice, "approximate", "l2", unit, max_records, epsilon=self.epsilon, delta=self.delta, rho=1 / (2 * sigma_squared)
            )
        return GaussianLaw(lattice, sigma_squared, guarantee, self.request)
