"""Targets: what a channel aims at, as a value: a norm, a quadratic form, bounds, or a rule; never a lattice, a sampler or a count.

A target with a shape finds its sampler in one table (samplers/table.py); its `fields` label random streams. With one budget for all cells:

Gaussian, Laplace   the generalized laws: weights on the moves that keep the totals
rounded             rounded projection: independent Laplace noise, projected on these moves, rounded without bias
conditional         noise conditioned on inequalities: the published table itself is drawn, around the true one and inside its bounds
suppressed          no noise because nothing is published: the kept totals alone

How far noise on a lattice can reach: bounds that hold for every lattice and every radius, with explicit constants.

Let Z(e) = sum over z in L of exp(-e |z|), m = dim L, and e' < e. Then Z(e') / Z(e) <= (e / e')^m. Proof: exp(-|x|) in l1 or l2 is a
mixture of centred Gaussians, so on span(L) its Fourier transform f is positive and falls along every ray; by Poisson summation
Z(e) = e^-m det^-1 sum over the dual of f(w / e), and w / e' is longer than w / e. The same holds for exp(-|x|^2 / (2 s^2)) with e = 1/s.
Markov's inequality for exp(lambda |z|), with the best lambda, gives

    P[|z| >= t]   <= (e t / m)^m exp(m - e t)                          for e t >= m           (Theorem 12 of [DGGY22] with K = (e e / m)^m)
    P[|z|_2 >= t] <= (t / (s sqrt m))^m exp((m - t^2 / s^2) / 2)       for t >= s sqrt m      (Theorem 15 with K = (e / (m s^2))^(m/2))

where the paper has "for t large enough". Lemma 11, the number of lattice points in a ball, is here for every radius too.

Variances that have a closed form are for error statements: floats, no privacy rests on them.
"""

from __future__ import annotations

import enum
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.exact import DiscreteGaussian
from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2, Norm
from holdfast.lattices.shapes import Shape

Basis: TypeAlias = Literal["exact", "upper bound", "approximate", "estimated", "not estimated"]
Field: TypeAlias = str | int

ON_THE_LATTICE = "over all integer tables z that change no kept total"


class Reads(enum.Enum):
    """What a task is given beside random words."""

    NOTHING = "nothing"
    """The noise sees no data: y = x + z."""
    COUNTS = "counts"
    CELL_KEYS = "counts and cell keys"


class Form(Protocol):
    """A covariance that is known by what it does, where a matrix would be too large."""

    def of(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The variance of sum_i values_i z_i, for each row of values."""

    def diagonal(self) -> NDArray[np.float64]:
        """The variance of every cell."""


@dataclass(frozen=True)
class Variance:
    """Covariance of the noise of one block: `scale` times the projection on the moves of its shape, or a `matrix` or `form` of its own.

    `rounding`: so many times the sum of b* b*^T over the Gram-Schmidt vectors of the shape is added, where the shape has them (Levels).
    `relative_error`: from rounding where the figure is exact; one standard error where it was estimated from draws of the public law.
    "not estimated": draws would take too long; the scale is no number.
    """

    scale: float
    matrix: NDArray[np.float64] | None = None
    basis: Basis = "exact"
    relative_error: float = 0.0
    rounding: float = 0.0
    form: Form | None = None


class Target(ABC):
    """What is drawn. Subclasses are frozen values: equal targets draw equal noise."""

    reads: ClassVar[Reads] = Reads.NOTHING
    splits: ClassVar[bool] = True
    """Whether blocks are drawn independently of each other; if not, the lattice is drawn whole."""
    publishes_cells: ClassVar[bool] = True
    """False where cells are left out instead of noised. The mechanism's `publishes_cells` says the same; a plan checks it."""

    @property
    @abstractmethod
    def fields(self) -> tuple[Field, ...]:
        """Canonical: a name that is never changed, and exact numbers. Part of the stream's format: no class name, no prose."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The law as a formula, complete enough to compute it, for cards and plans. No code reads it."""

    @abstractmethod
    def log_tail(self, lattice: Lattice, t: float) -> float:
        """Natural logarithm of a bound of P[|z| >= t] (docs: laws/families.py); 0 where nothing is known.

        z is what publication adds. A target that reads counts has no noise of one law: there z = y - x, what is published less the
        true counts, and the bound holds for every table x of the lattice's cells.
        """

    def log_weight(self, z: NDArray[Any]) -> float | None:
        """Logarithm of the weight of a move, without the normaliser; None where no closed form exists."""
        return None

    def check_input(self, counts: NDArray[np.int64], cell_keys: CellKeySums | None) -> None:
        """Raise if the law is not made for these counts or keys. CONFIDENTIAL input: the message holds no value of it."""
        return

    def block_variance(self, shape: Shape) -> Variance | None:
        """For blocks of this shape; None where it must be estimated from draws."""
        return None


def number_field(value: Fraction) -> str:
    """An exact number as a field: "p/q" in lowest terms, or "p"."""
    return str(value)


MARGIN = 1e-9
"""Raises a logarithm computed in doubles by far more than rounding can have taken away."""


def laplace_log_tail(dimension: int, epsilon: Fraction, t: float) -> float:
    """Natural logarithm of the bound of P[|z| >= t] under weights exp(-epsilon |z|), in the law's own norm; 0 where it says nothing."""
    if dimension == 0:
        return -math.inf if t > 0 else 0.0
    reach = float(epsilon) * t
    if reach <= dimension:
        return 0.0
    return min(0.0, sum_upwards(dimension * math.log(reach / dimension), dimension - reach))


def gaussian_log_tail(dimension: int, sigma_squared: Fraction, t: float) -> float:
    """Natural logarithm of the bound of P[|z|_2 >= t] under weights exp(-|z|_2^2 / (2 sigma_squared)); 0 where it says nothing."""
    if dimension == 0:
        return -math.inf if t > 0 else 0.0
    ratio = t * t / float(sigma_squared)
    if ratio <= dimension:
        return 0.0
    return min(0.0, sum_upwards(dimension / 2 * math.log(ratio / dimension), (dimension - ratio) / 2))


def reach(log_tail: Callable[[float], float], target_bits: int) -> int:
    """A power of two t with log_tail(t) <= -target_bits ln 2."""
    t = 1
    while log_tail(float(t)) > -target_bits * math.log(2):
        t *= 2
        if t > 1 << 200:
            return t
    return t


def sum_upwards(*terms: float) -> float:
    """The sum, raised by more than what rounding can have taken away."""
    return math.fsum(terms) + MARGIN * (1 + sum(map(abs, terms)) * 2.0**-10)


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

    def widen(self, factor: Fraction) -> Gaussian:
        """The law whose variances are `factor` times as large."""
        return Gaussian(self.sigma_squared * factor)

    @property
    def widest_variance(self) -> float:
        """A bound of the variance of a cell."""
        return float(self.sigma_squared)

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("gaussian", number_field(self.sigma_squared))

    @property
    def formula(self) -> str:
        return f"P[z] proportional to exp(-|z|_2^2 / (2 x {self.sigma_squared})) {ON_THE_LATTICE}"

    def log_weight(self, z: NDArray[Any]) -> float:
        return -float((z.astype(np.float64) ** 2).sum()) / (2 * float(self.sigma_squared))

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return gaussian_log_tail(lattice.dimension, self.sigma_squared, t)

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
        return laplace_log_tail(lattice.dimension, self.epsilon, t)


@dataclass(frozen=True)
class L1Laplace(Laplace):
    """In the l1 norm: blocks are drawn independently. No kept total at all gives independent two-sided geometric noise.

    Reference:   [theory R4] for one total.
    """

    norm = L1

    def block_variance(self, shape: Shape) -> Variance | None:
        if shape.is_free:
            return Variance(free_laplace_variance(self.epsilon), relative_error=1e-14)
        if shape.is_one_sum:
            cell, error = one_sum_laplace_variance(shape.size, self.epsilon)
            return Variance(cell * shape.size / (shape.size - 1), relative_error=error)
        known = grid_laplace_variance(shape.axes, self.epsilon) if shape.keeps_axis_sums else None
        return None if known is None else Variance(known[0] / float(shape.projection_diagonal()[0]), relative_error=known[1])


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
        return laplace_log_tail(lattice.cells, self.epsilon, max(t - rounding_radius(lattice), 0.0))

    def block_variance(self, shape: Shape) -> Variance | None:
        spread = free_laplace_variance(self.epsilon)
        if shape.is_free:
            return Variance(spread, relative_error=1e-14)
        if shape.is_one_sum:  # a random subset: variance f (1 - f) of each cell, and all cells are alike
            rounding = fraction_variance(shape.axes, self.epsilon)
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


MOMENT_POINTS = 1 << 12
"""Terms summed one by one. Beyond, larger steps are taken: still over a hundred points per standard deviation, and sums of a smooth bell
with different steps differ by less than rounding does (three cells and more: measured against exact sums)."""


def free_laplace_variance(epsilon: Fraction) -> float:
    """2 a / (1 - a)^2 with a = exp(-epsilon)."""
    rate = float(epsilon)
    return 2 * math.exp(-rate) / math.expm1(-rate) ** 2


def one_sum_laplace_variance(cells: int, epsilon: Fraction) -> tuple[float, float]:
    """(variance of one cell of the l1 Laplace law on `cells` cells with sum zero, bound of its relative error).

    Given the common total S of the two compositions ([theory R4]) a cell is the difference of two independent parts of a uniform
    composition, each of variance S (S + n) (n - 1) / (n^2 (n + 1)); S has weight (C(S + n - 1, S) a^S)^2.
    """
    n, rate = cells, float(epsilon)
    if n == 1:
        return 0.0, 0.0
    if n == 2:  # z and -z: one Laplace variable. The sum below has an edge at 0 that steps above one would feel (2e-7 off).
        return free_laplace_variance(2 * epsilon), 1e-14
    a = math.exp(-rate)
    middle = n * a / (1 - a)
    spread = math.sqrt(n * a) / (1 - a) + 1 / rate + 1
    low, high = max(0, math.floor(middle - 14 * spread)), math.ceil(middle + 14 * spread + 40 / rate)
    step = max(1, (high - low) // MOMENT_POINTS)
    points = range(low, high + 1, step)
    logs = np.array([2 * (math.lgamma(s + n) - math.lgamma(s + 1) - rate * s) for s in points])
    totals, weights = np.array(points, dtype=np.float64), np.exp(logs - logs.max())
    mean = float((weights * totals * (totals + n)).sum() / weights.sum())
    # A log-gamma of size g is off by less than g 2^-50; the weights' relative errors carry over to the mean.
    error = 8 * math.lgamma(high + n) * 2.0**-50 + 1e-12
    return 2 * mean * (n - 1) / (n**2 * (n + 1)), error


MOST_RESIDUES = 1 << 21
"""Rows of a two-way table, modulo some number, over which its law is summed: a tenth of a second."""
LARGEST_ERROR = 1e-3
"""Relative error of a sum in doubles above which a variance is estimated from draws: such noise is nearly nil."""


def grid_laplace_variance(axes: Sequence[int], epsilon: Fraction) -> tuple[float, float] | None:
    """(variance of one cell of the l1 Laplace law on a grid, its relative error), or None where only draws tell it.

    Along an axis of two places z is (w, -w): the law on the other axes at twice epsilon. Rows of a two-way table are independent rows of
    sum zero, given that they add up to zero: one row against the sum of the others, by transforms of the law modulo `period`. What
    wraps around weighs less than 1e-10 of all (a sum of R cells has a standard deviation of about sqrt(2 R) / epsilon); transforms are off
    by some 1e-16, and two rows that are not zero weigh exp(-4 epsilon).
    """
    others = sorted(n for n in axes if n != 2)
    exact = epsilon * 2 ** (len(axes) - len(others))
    if len(others) < 2:
        return one_sum_laplace_variance(others[0], exact) if others else (free_laplace_variance(exact), 1e-14)
    rate, rows, free = float(exact), others[1], others[0] - 1
    period, error = max(8, math.ceil((18 + 6 * math.sqrt(rows)) / rate)), 1e-9 + 1e-15 * math.exp(2 * min(rate, 100))
    if len(others) > 2 or period**free > MOST_RESIDUES or error > LARGEST_ERROR:
        return None
    cells = np.meshgrid(*[np.rint(np.fft.fftfreq(period, 1 / period))] * free, indexing="ij")
    last = np.remainder(sum(cells) + period // 2, period) - period // 2
    row = np.exp(-rate * (np.abs(last) + sum(map(np.abs, cells))))
    rest = np.fft.ifftn(np.fft.fftn(row / row.sum()).real ** (rows - 1)).real
    return float((row * rest * cells[0] ** 2).sum() / (row * rest).sum()), error


def fraction_variance(axes: Sequence[int], epsilon: Fraction) -> float:
    """E[f (1 - f)], f the fractional part of a cell of P e: e independent two-sided geometric, P taking off the means along every axis.

    With N cells, N (P e)_1 is a sum of integer multiples of the cells of e: (n_1 - 1) ... (n_K - 1) times the cell itself, and -1 in place
    of n_k - 1 for cells elsewhere on axis k. Its characteristic function Phi at 2 pi m / N is a product of powers, and s (N - s) / N^2 has
    the discrete Fourier coefficients (1 - 1/N^2) / 6 at 0 and -1 / (2 N^2 sin^2(pi m / N)) elsewhere.
    """
    cells = math.prod(axes)
    if cells == 1:
        return 0.0
    m = np.arange(1, cells // 2 + 1)  # m and N - m are alike
    log_phi = np.zeros(len(m))
    for elsewhere in itertools.product((False, True), repeat=len(axes)):
        multiple = math.prod(-1 if away else n - 1 for n, away in zip(axes, elsewhere, strict=True))
        count = math.prod(n - 1 if away else 1 for n, away in zip(axes, elsewhere, strict=True))
        # log (1 - a)^2 / (1 - 2 a cos x + a^2) = -log(1 + 4 a sin^2(x/2) / (1 - a)^2); the multiple modulo N, so that x stays exact
        half = np.pi * ((multiple % cells) * m % cells) / cells
        log_phi -= count * np.log1p(2 * free_laplace_variance(epsilon) * np.sin(half) ** 2)
    times = np.where(2 * m == cells, 1.0, 2.0)
    taken = float((times * np.exp(log_phi) / np.sin(np.pi * m / cells) ** 2).sum()) / (2 * cells**2)
    return max(0.0, (1 - 1 / cells**2) / 6 - taken)
