"""The laws that noise can have with one budget for all cells, each as a target.

Gaussian, Laplace   the generalized laws: weights on the moves that keep the totals
rounded             rounded projection: independent Laplace noise, projected on these moves, rounded without bias
conditional         noise conditioned on inequalities: the published table itself is drawn, around the true one and inside its bounds
suppressed          no noise because nothing is published: the kept totals alone
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from holdfast.exact import DiscreteGaussian
from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2, Norm
from holdfast.lattices.shapes import Shape
from holdfast.laws import moments, tails
from holdfast.laws.tails import sum_upwards
from holdfast.laws.target import ON_THE_LATTICE, Field, Reads, Target, Variance, number_field

MATRIX_DIMENSION = 150
"""Free dimensions of a general block up to which its covariance is one matrix; beyond, projections are made by classes of cells."""

WITHIN = "over all integer tables y that have the kept totals of the true table x and lie within the bounds"


@dataclass(frozen=True)
class Gaussian(Target):
    """Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) for z in L.
    Guarantees:  |x - x'|_2^2 / (2 sigma_squared)-zCDP for tables x, x' with equal kept totals, on every lattice of every dimension.
                 No kept total at all gives independent discrete Gaussian noise.
    Reference:   [DGGY22] Definition 13; [theory R7] for the guarantee; [CKS20].
    """

    sigma_squared: Fraction

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("gaussian", number_field(self.sigma_squared))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-|z|_2^2 / (2 x {self.sigma_squared})) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float((z.astype(np.float64) ** 2).sum()) / (2 * float(self.sigma_squared))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.gaussian_log_tail(lattice.dimension, self.sigma_squared, t)

    def block_variance(self, shape: Shape) -> Variance:
        """The continuous form, which is never too small: the law is sub-Gaussian with proxy sigma in every direction ([theory R7])."""
        if shape.is_free:
            return Variance(DiscreteGaussian(self.sigma_squared).variance(), relative_error=1e-15)
        if _is_small_general(shape):
            frame, _ = np.linalg.qr(shape.reduced_basis().astype(np.float64))
            return Variance(0.0, float(self.sigma_squared) * frame @ frame.T, "upper bound")
        return Variance(float(self.sigma_squared), None, "upper bound")


@dataclass(frozen=True)
class Laplace(Target):
    """Law:         P[z] proportional to exp(-epsilon |z|) for z in L, in the norm of the subclass.
    Guarantees:  pure privacy: tables x, x' with equal kept totals give outputs within a factor exp(epsilon |x - x'|).
    Reference:   [DGGY22] Definition 9; [theory R8].
    """

    epsilon: Fraction

    norm: ClassVar[Norm]

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("laplace", self.norm.name, number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-{self.epsilon} |z|_{self.norm.power}) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float(self.epsilon) * float(np.linalg.norm(z.astype(np.float64), self.norm.power))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return tails.laplace_log_tail(lattice.dimension, self.epsilon, t)


@dataclass(frozen=True)
class L1Laplace(Laplace):
    """In the l1 norm: blocks are drawn independently. No kept total at all gives independent two-sided geometric noise.

    Reference:   [theory R4] for one total.
    """

    norm = L1

    def block_variance(self, shape: Shape) -> Variance | None:
        if shape.is_free:
            return Variance(moments.free_laplace_variance(self.epsilon), relative_error=1e-14)
        if shape.is_one_sum:
            cell, error = moments.one_sum_laplace_variance(shape.size, self.epsilon)
            return Variance(cell * shape.size / (shape.size - 1), relative_error=error)
        return None


@dataclass(frozen=True)
class L2Laplace(Laplace):
    """In the l2 norm. It never factorises: the lattice is drawn whole."""

    norm = L2
    splits = False


@dataclass(frozen=True)
class Rounded(Target):
    """Law:         z = R(P e), e independent with P[e_i = k] proportional to exp(-epsilon |k|), P the projection on span(L), R an unbiased
                 random rounding to L that commutes with shifts by L. There is no closed form of P[z], hence no weight.
    Guarantees:  pure privacy, epsilon per unit of l1 distance: x + z is a random function of x + e and the kept totals.
    Reference:   [theory R10]; Cox (1987) for the rounding of two-way tables.
    """

    epsilon: Fraction

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("rounded projection", number_field(self.epsilon))

    @property
    def formula(self) -> str:
        return (
            f"independent noise with P[k] proportional to exp(-{self.epsilon} |k|), projected on the tables that change no kept total and "
            "rounded to integers without bias"
        )

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """Bound on the logarithm of P[|z|_2 >= t]: projecting shortens, and rounding moves z by at most the rounding radius."""
        return tails.laplace_log_tail(lattice.cells, self.epsilon, max(t - rounding_radius(lattice), 0.0))

    def block_variance(self, shape: Shape) -> Variance | None:
        spread = moments.free_laplace_variance(self.epsilon)
        if shape.is_free:
            return Variance(spread, relative_error=1e-14)
        if shape.is_one_sum:  # a random subset: variance f (1 - f) of each cell, and all cells are alike
            rounding = moments.fraction_variance(shape.axes, self.epsilon)
            return Variance(spread + rounding / (1 - 1 / shape.size), relative_error=1e-12)
        if shape.is_irreducible or _is_small_general(shape):
            return None
        # nearest plane: a coin of variance 1/4 at most along every Gram-Schmidt vector
        return Variance(spread, None, "upper bound", rounding=0.25)


def rounding_radius(lattice: Lattice) -> float:
    """l2 length by which rounding can move the projection: below one a cell where roundings are controlled; by nearest plane at most
    (sum |b*_i|^2)^(1/2), and a reduced basis has |b*_i| <= |b_i|.
    """
    blocks = lattice.blocks
    squares = (_rounding_square(shape) * count for _, shape, count in blocks.used_shapes())
    return math.sqrt(math.fsum(squares))


def _is_small_general(shape: Shape) -> bool:
    return 0 < shape.dense_dimension <= MATRIX_DIMENSION


def _rounding_square(shape: Shape) -> float:
    if _is_small_general(shape):
        return float((shape.reduced_basis().astype(np.float64) ** 2).sum())
    return shape.rounding_square()


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


@dataclass(frozen=True)
class Suppressed(Target):
    """The publication is a function of the kept totals: they, and the cells that they fix, are published; nothing is drawn."""

    publishes_cells = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("suppression",)

    @property
    def formula(self) -> str:
        return "no noise: only the kept totals, and the cells that they fix, are published"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > 0 else 0.0
