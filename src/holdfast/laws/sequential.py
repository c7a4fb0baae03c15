"""The sequential law: the Gaussian law's cells drawn one after the other, each final when drawn, and its price.

N_Z(c, v) has P[k] proportional to exp(-(k - c)^2 / (2 v)). With b_m = exp(-2 pi^2 v (2 m - 1)), m = 1, 2, ..., its variance is largest at
c = 1/2, where it is v (1 + kappa(v)), kappa(v) = 8 pi^2 v sum b_m / (1 - b_m)^2; its mean is within e(v) of c, the least of 1/2 and 4 pi
v sum b_m / (1 - b_m^2) ([theory R22]).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import round_up
from holdfast.lattices import Lattice
from holdfast.lattices.shapes import Shape
from holdfast.laws.families import Basis, Field, Gaussian, Target, Variance, sum_upwards
from holdfast.laws.level_gaussian import LevelGaussian, LevelVariances

Floats = NDArray[np.float64]

KAPPA_BITS = 128
KAPPA_DIGITS = 8
LEAST_KAPPA = Fraction(1, 10**30)
DIRECT_BELOW = Fraction(1, 8)
"""Variances below which the sum over integers converges faster than the one over b_m."""
MOST_RAISED = 1.01
"""Variances of the continuous form are given as bounds where they have to be raised by no more."""
MOST_ESTIMATED = 1_000
"""Cells of a block up to which its variances are estimated from draws."""


@dataclass(frozen=True)
class Sequential(Target):
    """Law:         cell after cell from N_Z(c_i, v_i) in the order of the block's sampler; c_i and v_i are the mean and the variance of
                 the law `of` in its continuous form, given the cells before. Nothing is thrown away.
    Guarantees:  (1 + kappa) rho-zCDP wherever `of` is rho-zCDP, for tables with equal kept totals.
    Given:       `kappa` is at least kappa(v_i) for every step (samplers/steps.py knows them); nothing that is drawn depends on it.
    Reference:   [theory R22].
    """

    of: Gaussian | LevelGaussian
    kappa: Fraction = Fraction(0)
    by_lattice: frozenset[Shape] = frozenset()
    """Shapes of blocks that the lattice law draws: it has no price."""
    in_groups: frozenset[Shape] = frozenset()
    """Shapes of blocks in which the last cells of a line are a group: drawn until they are kept, by the product of their theta ratios."""

    @property
    def fields(self) -> tuple[Field, ...]:
        apart = [_digest(self.by_lattice)] if self.by_lattice else []
        groups = ["groups", _digest(self.in_groups)] if self.in_groups else []
        return ("sequential", *apart, *groups, *self.of.fields)

    @property
    def formula(self) -> str:
        groups = ", the last ones of a line together" if self.in_groups else ""
        return f"one cell after the other{groups}, each a discrete Gaussian given those before, in place of the law {self.of.formula}"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """|z|_2 >= t needs a cell of t / sqrt(cells) or more, and a cell's variance in the continuous form is at most `widest`."""
        if lattice.dimension == 0:
            return -math.inf if t > 0 else 0.0
        widest = self.of.widest_variance
        shift = math.sqrt(widest * self._drift(lattice.dimension))
        beyond = t / math.sqrt(lattice.cells) * (1 - 1e-12) - shift
        if beyond <= 0:
            return 0.0
        exponent = beyond**2 / (2 * (1 + float(self.kappa)) * widest)
        return min(0.0, sum_upwards(math.log(2 * lattice.cells), -exponent))

    def block_variance(self, shape: Shape) -> Variance | None:
        """The continuous form, raised, where that is nearly nothing. Else it is estimated; in large blocks the continuous form is given for
        it, which no proof bounds: simulations find cells of .667 less noisy by .3 %, of .49 by 8 %, of .4 by 29 %.
        """
        found = self.of.block_variance(shape)
        if shape.is_free or shape in self.by_lattice:
            return found
        factor, basis = self._raise_factor(shape)
        if basis == "approximate" and found.form is None and shape.size <= MOST_ESTIMATED:
            return None
        matrix = None if found.matrix is None else found.matrix * factor
        form = None if found.form is None else self.form(shape)
        return Variance(found.scale * factor, matrix, basis, found.relative_error, form=form)

    def form(self, shape: Shape) -> Raised:
        """The continuous form of a block of weighted levels, raised."""
        assert isinstance(self.of, LevelGaussian)
        return Raised(self.of.form(shape), self._raise_factor(shape)[0])

    def _raise_factor(self, shape: Shape) -> tuple[float, Basis]:
        """(by how much variances of the continuous form are raised, what they are then)."""
        if shape in self.by_lattice:
            return 1.0, "upper bound"
        raised = (math.sqrt(1 + float(self.kappa)) + math.sqrt(self._drift(shape.dimension))) ** 2
        return (raised, "upper bound") if raised <= MOST_RAISED else (1.0, "approximate")

    def _drift(self, dimension: int) -> float:
        """A bound of the sum of e(v_i)^2 / v_i: e <= kappa / (2 pi), e <= 1/2, and v (1 + kappa) >= 1/4; groups: [theory R22] (g)."""
        kappa = float(self.kappa)
        return dimension * max(1 + kappa, 1.5 if self.in_groups else 1.0) * min(1.0, kappa / math.pi) ** 2 * (1 + 1e-9)


@dataclass(frozen=True)
class Raised:
    """Variances of weighted levels times a factor."""

    beneath: LevelVariances
    factor: float

    def of(self, values: Floats) -> Floats:
        return self.factor * self.beneath.of(values)

    def diagonal(self) -> Floats:
        return self.factor * self.beneath.diagonal()

    def units(self, level: int, mask: int) -> Floats:
        return self.factor * self.beneath.units(level, mask)


def _digest(shapes: frozenset[Shape]) -> str:
    return hashlib.sha256(json.dumps(sorted(json.dumps(shape.fields) for shape in shapes)).encode()).hexdigest()


@lru_cache(maxsize=1024)
def kappa_bound(v: Fraction) -> Fraction:
    """Return kappa(v), rounded up to eight decimal digits, and to 10^-30.

    Proof that it falls in v: kappa is 8 pi^2 sum v / (4 sinh^2(pi^2 v (2 m - 1))), and x / sinh^2 x falls.
    """
    with precision(KAPPA_BITS):
        top = enclosure(_kappa_ball(v)).upper
    return LEAST_KAPPA if top <= LEAST_KAPPA else round_up(top, KAPPA_DIGITS)


def _kappa_ball(v: Fraction) -> arb:
    """At flint's current precision. What is left out is at most the first term left out: each is below half of the one before."""
    variance = ball(v)
    if v < DIRECT_BELOW:  # the variance about 1/2: the sum over k >= 0 of (k + 1/2)^2 exp(-(k^2 + k) / (2 v)), over that of weights
        weights = [(-(k * k + k) / (2 * variance)).exp() for k in range(8)]
        squares = [weight * (2 * k + 1) ** 2 / 4 for k, weight in enumerate(weights)]
        rest = arb(0).union(2 * weights[-1]), arb(0).union(2 * squares[-1])
        return (sum(squares[:-1], arb(0)) + rest[1]) / (sum(weights[:-1], arb(0)) + rest[0]) / variance - 1
    terms = [b / (1 - b) ** 2 for m in range(1, 9) for b in [(-2 * arb.pi() ** 2 * variance * (2 * m - 1)).exp()]]
    return 8 * arb.pi() ** 2 * variance * (sum(terms[:-1], arb(0)) + arb(0).union(2 * terms[-1]))


GROUP_LENGTHS = ((Fraction(1, 2), 128), (Fraction(3, 8), 64), (Fraction(5, 16), 32), (Fraction(1, 4), 16))
GROUP_TERMS = 8


def group_length(v: Fraction) -> int:
    """How many of the last cells of a line are a group, where a cell has the variance v but for its line's sum; 0: none are.

    Below 1/4 no group has a smaller price than its cells; longer groups are nearly as dear as these, or dearer.
    """
    return next((length for least, length in GROUP_LENGTHS if v >= least), 0)


@lru_cache(maxsize=1024)
def group_bounds(v: Fraction, n: int) -> tuple[Fraction, Fraction]:
    """Return (Theta - 1, kappa) of a group of n cells with a known sum, rounded up as in `kappa_bound`; see [theory R22] (g).

    Given:       3 cells or more, and v >= 1/8 - 2^-20. Where Theta may be 3/2 or more there is no bound, and an error.
    """
    with precision(KAPPA_BITS):
        points = 1 + math.isqrt(math.ceil(80 * v * n))
        t = 2 * arb.pi() ** 2 * ball(v)
        means = [_group_terms(t, Fraction(j, points), n) for j in range(points // 2 + 1)]
        times = [1 if 2 * j in (0, points) else 2 for j in range(len(means))]
        q = (-(arb.pi() ** 2) * points**2 / (t * n)).exp()
        factor = (t * n / arb.pi()).sqrt() / points / (1 - 2 * q / (1 - q))
        theta, spread = (factor * sum((k * mean[i] for k, mean in zip(times, means, strict=True)), arb(0)) for i in (0, 1))
        beyond, top = enclosure(theta - 1).upper, enclosure(2 * t * spread / (2 - theta)).upper
    if beyond >= Fraction(1, 2):
        raise ValueError(f"no bound of kappa for a group of {n} cells of variance {v}")
    return max(round_up(beyond, KAPPA_DIGITS), LEAST_KAPPA), max(round_up(top, KAPPA_DIGITS), LEAST_KAPPA)


def _group_terms(t: arb, u: Fraction, n: int) -> tuple[arb, arb]:
    """(theta(u)^n, theta(u)^n times the variance of the law with weights exp(-t (k - u)^2) on the integers), 0 <= u <= 1/2."""
    weights = {k: (-t * ball((k - u) ** 2)).exp() for k in range(-GROUP_TERMS, GROUP_TERMS + 1)}
    rest = 4 * (GROUP_TERMS + 1) ** 2 * (-t * ball((GROUP_TERMS + Fraction(1, 2)) ** 2)).exp()  # every term is below half of the one before
    left_out = arb(0).union(rest).union(-rest)
    theta, first, second = (sum((k**i * weight for k, weight in weights.items()), left_out) for i in (0, 1, 2))
    return theta**n, theta ** (n - 2) * (theta * second - first**2)
