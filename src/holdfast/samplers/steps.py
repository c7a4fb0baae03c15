"""The steps of a block's sequence, by their variances: the price of the sequential law, and how far it is from the lattice law.

Legend: steps i of variances v_i; kappa, b_m, e as in laws/sequential.py; theta_i and theta4_i are the largest and the smallest value of
theta_(s_i)(c) / (sqrt(2 pi v_i)), at c = 0 and c = 1/2. All that is summed falls in v, so variances may be taken from below; sums of
doubles are raised by MARGIN, far above their errors. Public facts alone are read, and no pilot is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holdfast.laws import group_bounds, group_length, kappa_bound
from holdfast.samplers.theta import log_theta3, log_theta_ratio, tries_bound

Floats = NDArray[np.float64]
MARGIN = 1 + 1e-9
WORTH = Fraction(1, 10**12)
"""A kappa that need not be smaller."""
NEXT_BELOW = 1 - Fraction(1, 1 << 40)
"""Takes a variance found by doubles, or the first one of several that doubles cannot tell apart, from below."""


@dataclass(frozen=True)
class Line:
    """The narrowest line of a stage. v: the variance of its cells but for its sum. sizes: of all lines that might be groups; where none
    might be, () and v is the smallest variance of a cell given those before.
    """

    v: Fraction
    sizes: tuple[int, ...] = ()

    def group_length(self, times: Fraction = Fraction(1)) -> int:
        """How many of its last cells are a group, where variances are so many times as wide; 0: none."""
        return group_length(self.v * times) if self.sizes else 0

    def kappa(self, times: Fraction, *, in_groups: bool) -> Fraction:
        v, length = self.v * times * NEXT_BELOW, self.group_length(times) if in_groups else 0
        if not length:
            return kappa_bound(v / 2 if self.sizes else v)
        before = [kappa_bound(v * length / (length + 1))] if max(self.sizes) > length else []
        return max([*before, *(group_bounds(v, n)[1] for n in {min(n, length) for n in self.sizes})])

    def tries(self, length: int) -> float:
        """A bound of the expected tries of a group of at most so many cells: the product of theta_i over the theta of its lattice."""
        n = min(max(self.sizes), length)
        beyond = group_bounds(self.v * NEXT_BELOW, n)[0]
        return tries_bound(float(self.v) * (1 - 1 / np.arange(2, n + 1))) / float(1 - beyond)

    def group_steps(self, variances: Floats, n: int) -> tuple[Floats, Floats, Floats]:
        """(log(Theta / (2 - Theta)), kappa (Theta - 1) / (2 - Theta), kappa) of groups of n cells with these variances but for their sums,
        from above: in Theta and kappa every term falls at least as fast as that of the shortest vectors.
        """
        v = float(self.v)
        more = np.maximum(variances, v) - v
        shrink = np.exp(-2 * math.pi**2 * more * (1 - 1 / n)) * MARGIN
        most, price = map(float, group_bounds(self.v * NEXT_BELOW, n))
        beyond, kappa = most * shrink, price * (1 + more / v) * shrink
        return np.log1p(2 * beyond / (1 - beyond)), kappa * beyond / (1 - beyond), kappa


@dataclass(frozen=True)
class Steps:
    """What is certain about a block's steps; without any, the two laws are one: no centre moves.

    least:         the smallest variance of a step. times: how many steps of a block have it. level: whose sums they are, as a level
                   vector; () where coefficients of a basis are drawn.
    log_tries:     bound of sum log theta_i: the logarithm of the lattice law's expected tries ([theory R7] (e)).
    log_distance:  bound of sum log(theta_i / theta4_i).
    drift:         bound of sum e(v_i)^2 / v_i.
    lines:         the narrowest line of every kind. in_groups: whether the last cells of lines are groups ([theory R22] (g)), and
                   log_distance and drift those of groups.
    """

    least: Fraction | None = None
    times: int = 0
    level: tuple[int, ...] = ()
    log_tries: float = 0.0
    log_distance: float = 0.0
    drift: float = 0.0
    lines: tuple[Line, ...] = ()
    in_groups: bool = False

    @property
    def kappa(self) -> Fraction:
        """The price: the sequential law is (1 + kappa) rho-zCDP where the lattice law is rho-zCDP ([theory R22])."""
        return self.kappa_at(Fraction(1))

    def kappa_at(self, times: Fraction) -> Fraction:
        """The price where all variances are so many times as wide."""
        if self.least is None or not self.in_groups:
            return Fraction(0) if self.least is None else kappa_bound(self.least * times * NEXT_BELOW)
        return max(line.kappa(times, in_groups=True) for line in self.lines)

    def cheapest(self, times: Fraction = Fraction(1)) -> Steps:
        """Whichever has the smaller price there, in groups or cell by cell; what else is known stays as it is."""
        cells, groups = (replace(self, in_groups=form) for form in (False, True))
        may_fall = any(line.group_length(times) for line in self.lines) and cells.kappa_at(times) > WORTH
        return groups if may_fall and groups.kappa_at(times) < cells.kappa_at(times) else cells

    @property
    def total_variation(self) -> float:
        """A bound of the total variation distance of the two laws."""
        return min(1.0, math.expm1(min(self.log_distance, 2.0)) / 4 * MARGIN)

    def shift(self, variance: float) -> float:
        """E of the tail bound of a linear form with this variance in the continuous law: P[|form| > t + E] <= 2 exp(-t^2 / (2 (1 + kappa)
        variance)).
        """
        return math.sqrt(variance * self.drift) * MARGIN


def steps_with(variances: ArrayLike, counts: ArrayLike, least: Fraction, times: int, level: tuple[int, ...] = ()) -> Steps:
    """The steps with so many of each variance, which are bounds from below; `least` is exact, or off by less than NEXT_BELOW."""
    low, count = np.asarray(variances, dtype=np.float64) * (1 - 1e-9), np.asarray(counts, dtype=np.float64)
    tries = float((log_theta3(low) * count).sum()) * MARGIN
    distance = float((-log_theta_ratio(low, 0.5) * count).sum()) * MARGIN
    return Steps(least, times, level, tries, distance, float((step_bounds(low)[0] ** 2 / low * count).sum()) * MARGIN)


def narrowest(lines: Iterable[Line | None]) -> tuple[Line, ...]:
    """The narrowest line of each kind: prices fall in v."""
    found: dict[tuple[int, ...], Line] = {}
    for line in lines:
        if line and (line.sizes not in found or line.v < found[line.sizes].v):
            found[line.sizes] = line
    return tuple(found.values())


def together(parts: Iterable[tuple[Steps, int]]) -> Steps:
    """The steps of so many blocks of each kind."""
    moving = [(steps, blocks) for steps, blocks in parts if steps.least is not None]
    if not moving:
        return Steps()
    first = min((steps for steps, _ in moving), key=lambda steps: steps.least or 0)
    times = sum(steps.times * blocks for steps, blocks in moving if steps.least == first.least)
    tries = math.fsum(steps.log_tries * blocks for steps, blocks in moving)
    distance = math.fsum(steps.log_distance * blocks for steps, blocks in moving)
    return Steps(first.least, times, first.level, tries, distance, math.fsum(steps.drift * blocks for steps, blocks in moving))


TERMS = 40
NARROWEST = 0.02


def step_bounds(variances: Floats) -> tuple[Floats, Floats]:
    """(e(v), kappa(v)), from above, by the leading bits of v. For the narrowest: 1/2, and 1 / (4 v), as all but the two nearest integers
    have a share below 10^-20.
    """
    mantissa, exponent = np.frexp(variances)
    variances, where = np.unique(np.ldexp(np.floor(np.ldexp(mantissa, 12)), exponent - 12), return_inverse=True)
    safe = np.maximum(variances, NARROWEST)
    b = np.exp(-2 * math.pi**2 * safe[:, None] * (2 * np.arange(1, TERMS + 1) - 1))  # what is left out is below 1e-12
    rest = np.minimum(1e-12, b[:, 0])
    means = 4 * math.pi * safe * (b / (1 - b**2)).sum(axis=1) * MARGIN + rest
    kappas = 8 * math.pi**2 * safe * (b / (1 - b) ** 2).sum(axis=1) * MARGIN + rest
    is_narrow = variances < NARROWEST
    return np.where(is_narrow, 0.5, np.minimum(means, 0.5))[where], np.where(is_narrow, 0.25 / variances, kappas)[where]
