"""The figures of [SC22] as data: each function returns the curves that its figure shows.

Figures 4 and 5 have a third column beside the paper's: the two-sided epsilon, and the delta that holds at the epsilon of the design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.design import IOTA, Design, deltas_in_doubles, design, proposition_3_gamma, read_share, wanted_epsilon
from holdfast.cellkey.loss import Losses
from holdfast.cellkey.max_entropy import SymmetricNoise, check_support, max_entropy
from holdfast.cellkey.noise import narrow
from holdfast.cellkey.table import PerturbationRow, PerturbationTable
from holdfast.exact.balls import Enclosure, ball
from holdfast.exact.parameters import Exact

STEPS_OF_GAMMA: NDArray[np.float64] = np.arange(1, 3001) * np.float64(1e-4)
"""The grid of the paper's search: 0.0001 to 0.3."""
SUPPORTS = (11, 15)
KEY_SIZES = (1 << 8, 1 << 16, 1 << 32)
EPSILONS = tuple(Fraction(k, 10) for k in range(1, 26))
"""Parameters of figures 4 and 5 and of section V-C."""


@dataclass(frozen=True)
class Ranges:
    """What keeps z = -D the only value that counts for delta: (lower, upper) enclosed, each range half-open [SC22, (23) to (27)].

    gamma: [epsilon / (2 D + 1), epsilon / (2 D - 1)), exact; variance: lower < V <= upper; constant: lower <= C < upper;
    delta: lower < delta <= upper.
    """

    gamma: tuple[Fraction, Fraction]
    variance: tuple[Enclosure, Enclosure]
    constant: tuple[Enclosure, Enclosure]
    delta: tuple[Enclosure, Enclosure]


def ranges(epsilon: Exact, D: int) -> Ranges:
    """The ranges (23) and (25) to (27) for this epsilon and support."""
    loss, support = wanted_epsilon(epsilon), check_support(D)
    low, high = loss / (2 * support + 1), loss / (2 * support - 1)
    wide, thin = SymmetricNoise(support, low), SymmetricNoise(support, high)
    return Ranges(
        (low, high),
        (thin.variance_bounds(), wide.variance_bounds()),
        (wide.pmf_bounds(0), thin.pmf_bounds(0)),
        (thin.pmf_bounds(support), wide.pmf_bounds(support)),
    )


def proposition_3(epsilon: Exact, D: int, *, iota: Exact = IOTA) -> SymmetricNoise:
    """The noise of Proposition 3 for this epsilon and support; its delta at epsilon is P[Z = D]."""
    return SymmetricNoise(D, proposition_3_gamma(wanted_epsilon(epsilon), check_support(D), read_share(iota)))


def upward_epsilon_bounds(losses: Losses) -> Enclosure:
    """The largest log ratio of the smaller count against the larger alone: what [SC22, (45)] takes. Given: a table's, so exact."""
    return _log_ratio(losses, 1)


def two_sided_epsilon_bounds(losses: Losses) -> Enclosure:
    """The largest log ratio both ways: from this epsilon on every pair is at a plateau of its own. Never below `plateau_epsilon`."""
    return _log_ratio(losses, 2)


def _log_ratio(losses: Losses, directions: int) -> Enclosure:
    both = [law for pair in losses.pairs for law in pair.directions[:directions]]
    largest = max([Fraction(1), *(Fraction(p[y]) / Fraction(q[y]) for p, q in both for y in p.keys() & q.keys())])  # type: ignore[arg-type]
    return narrow(lambda: ball(largest).log())


@dataclass(frozen=True)
class Point:
    """One design of section V-C and what a key size makes of it: `is_full` says whether no noise value was lost."""

    epsilon: Fraction
    noise: SymmetricNoise
    table: PerturbationTable

    @property
    def is_full(self) -> bool:
        return len(self.row.probabilities) == len(self.noise.noise)

    @property
    def row(self) -> PerturbationRow:
        return self.table.rows[self.noise.count]

    @property
    def variance_error(self) -> float:
        """(V^Q - V) / V."""
        variance = self.noise.variance_bounds()
        return float(self.row.variance / ((variance.lower + variance.upper) / 2) - 1)


def figure_1(epsilons: Sequence[Fraction]) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """(D, V) -> (epsilon, delta), for V = 4 and 10 on each support."""
    return {(D, V): max_entropy(D, V).epsilon_delta().curve(epsilons) for D in SUPPORTS for V in (4, 10)}


def figure_2(epsilons: Sequence[Fraction]) -> dict[int, list[tuple[float, float, float, float]]]:
    """D -> (epsilon, the limit (29) of delta, the best delta on the paper's grid of gamma, the limit (28) of the variance)."""
    return {D: [_limits(D, epsilon) for epsilon in epsilons] for D in SUPPORTS}


def _limits(D: int, epsilon: Fraction) -> tuple[float, float, float, float]:
    limit = SymmetricNoise(D, epsilon / (2 * D - 1))
    best = float(deltas_in_doubles(D, STEPS_OF_GAMMA, float(epsilon)).min())
    return float(epsilon), limit.pmf(D), best, limit.variance()


def figure_3() -> dict[int, float]:
    """z -> probability, of Example 1."""
    noise = example_1().noise
    return {z: noise.pmf(z) for z in noise.noise}


def figures_4_and_5(key_size: int, epsilons: Sequence[Fraction] = EPSILONS) -> list[Point]:
    """The designs of section V-C, D = 10, for one key size; those that lose noise values too."""
    made = ((epsilon, proposition_3(epsilon, 10)) for epsilon in epsilons)
    return [Point(epsilon, noise, noise.quantised(key_size, allow_lost=True)) for epsilon, noise in made]


def figure_4(points: Sequence[Point]) -> list[tuple[float, float, float]]:
    """(epsilon, epsilon^Q by (45), which is one-sided, epsilon^Q both ways)."""
    losses = [(point.epsilon, point.table.epsilon_delta()) for point in points]
    return [(float(epsilon), upward_epsilon_bounds(found).nearest(), two_sided_epsilon_bounds(found).up()) for epsilon, found in losses]


def figure_5(points: Sequence[Point]) -> list[tuple[float, float, float]]:
    """(delta of the design, delta^Q by (46), the delta that holds at the epsilon of the design after rounding for keys)."""
    return [
        (
            point.noise.pmf(10),
            float(max(point.row.probabilities.get(z, Fraction(0)) for z in (-10, 10))),
            point.table.epsilon_delta().delta(point.epsilon),
        )
        for point in points
    ]


def example_1() -> Design:
    """epsilon = 1/2, delta = 1e-4."""
    return design("0.5", "1e-4")
