"""The generalized Gaussian law on a lattice."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.sampler import EXACT_ONLY, SamplerRequest
from holdfast.chains.target import Decay
from holdfast.exact import DiscreteGaussian
from holdfast.lattices import Lattice
from holdfast.lattices.blocks import Template
from holdfast.laws import tails
from holdfast.laws.law import LatticeLaw
from holdfast.samplers.choose import Choice, gaussian_choice, general_basis

if TYPE_CHECKING:
    from holdfast.privacy import Guarantee


class GaussianLaw(LatticeLaw):
    """Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) for z in L.
    Guarantees:  |x - x'|_2^2 / (2 sigma_squared)-zCDP for tables x, x' with equal kept totals, on every lattice of every dimension.
                 No invariant at all gives independent discrete Gaussian noise.
    Reference:   [DGGY22] Definition 13; math.md R7 for the guarantee; [CKS20].
    """

    def __init__(self, lattice: Lattice, sigma_squared: Fraction, guarantee: Guarantee, request: SamplerRequest = EXACT_ONLY) -> None:
        self.sigma_squared = sigma_squared
        super().__init__(lattice, guarantee, request)

    def __repr__(self) -> str:
        return f"GaussianLaw(sigma_squared='{self.sigma_squared}')"

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-|z|_2^2 / (2 x {self.sigma_squared})) over all integer tables z that change no kept total"

    def log_weight(self, z: Any) -> float:
        """-|z|_2^2 / (2 sigma_squared), or -infinity where z is not in the lattice; the normaliser is left out."""
        if not self.lattice.contains(z):
            return -math.inf
        return -float((np.asarray(z, dtype=np.float64) ** 2).sum()) / (2 * float(self.sigma_squared))

    def log_tail(self, t: float) -> float:
        return tails.gaussian_log_tail(self.lattice.dimension, self.sigma_squared, t)

    def _choice(self, template: Template) -> Choice:
        return gaussian_choice(template, self.sigma_squared)

    @property
    def decay(self) -> Decay:
        return Decay("squares", 1 / (2 * self.sigma_squared))

    def _block_variance(self, template: Template) -> tuple[float, NDArray[np.float64] | None, str, float]:
        """The continuous form, which is never too small: the law is sub-Gaussian with proxy sigma in every direction (math.md R7)."""
        if template.kind == "free":
            return DiscreteGaussian(self.sigma_squared).variance(), None, "exact", 1e-15
        if template.kind in ("one sum", "grid"):
            return float(self.sigma_squared), None, "upper bound", 0.0
        frame, _ = np.linalg.qr(general_basis(template).astype(np.float64))
        return 0.0, float(self.sigma_squared) * frame @ frame.T, "upper bound", 0.0
