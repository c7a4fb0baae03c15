"""Noise conditioned on inequalities: the published table itself is drawn, around the true one and inside its bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from holdfast.lattices import Lattice
from holdfast.laws.tails import sum_upwards
from holdfast.laws.target import Field, Reads, Target, number_field

WITHIN = "over all integer tables y that have the kept totals of the true table x and lie within the bounds"


@dataclass(frozen=True)
class ConditionalLaplace(Target):
    """Law:         P[y] proportional to exp(-rate |y - x|_1) over integer tables y with the kept totals of x and within the bounds.
    Given:       x lies within the bounds.
    Guarantees:  pure privacy: tables x, x' with equal kept totals, both within the bounds, give outputs within a factor
                 exp((1 + gamma) rate |x - x'|_1). gamma <= 1; gamma = 0 where there are no inequalities. The normaliser depends on x.
    Reference:   [GM20] Theorem 2.1; [theory R12].
    """

    rate: Fraction

    reads = Reads.COUNTS

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("conditional laplace", number_field(self.rate))

    @property
    def formula(self) -> str:
        return f"P[y] proportional to exp(-{self.rate} |y - x|_1) {WITHIN}"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """For |y - x|_1. The weights of all tables sum to at least 1, that of x itself; a move is determined by m of its cells; and
        exp(-r |z|) <= exp(-r t / 2) exp(-r |z| / 2) beyond t: so at most exp(-r t / 2) coth(r / 4)^m."""
        half = float(self.rate) / 2
        return min(0.0, sum_upwards(-half * t, -lattice.dimension * math.log(math.tanh(half / 2))))


@dataclass(frozen=True)
class ConditionalGaussian(Target):
    """Law:         P[y] proportional to exp(-|y - x|_2^2 / (2 sigma_squared)) over the tables of `ConditionalLaplace`.
    Guarantees:  what the mechanism proves for the shapes at hand: conditioning a discrete Gaussian may cost more than its rho.
    Reference:   [GM20] Theorem 2.1.
    """

    sigma_squared: Fraction

    reads = Reads.COUNTS

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("conditional gaussian", number_field(self.sigma_squared))

    @property
    def formula(self) -> str:
        return f"P[y] proportional to exp(-|y - x|_2^2 / (2 * {self.sigma_squared})) {WITHIN}"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """For |y - x|_2, as above: exp(-t^2 / (4 s^2)) (1 + s sqrt(4 pi))^m."""
        variance = float(self.sigma_squared)
        return min(0.0, sum_upwards(-t * t / (4 * variance), lattice.dimension * math.log1p(math.sqrt(4 * math.pi * variance))))
