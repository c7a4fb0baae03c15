"""The figures of [SC22] as data: each function returns the curves that its figure shows.

Figures 4 and 5 have a third column beside the paper's: the two-sided epsilon, and the delta that holds at the epsilon of the design.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.design import Design, deltas_in_doubles, design, proposition_3
from holdfast.cellkey.max_entropy import SymmetricNoise, max_entropy
from holdfast.cellkey.table import PerturbationRow, PerturbationTable

STEPS_OF_GAMMA: NDArray[np.float64] = np.arange(1, 3001) * np.float64(1e-4)
"""The grid of the paper's search: 0.0001 to 0.3."""
SUPPORTS = (11, 15)
KEY_SIZES = (1 << 8, 1 << 16, 1 << 32)
EPSILONS = tuple(Fraction(k, 10) for k in range(1, 26))
"""Parameters of figures 4 and 5 and of section V-C."""


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
    return [(float(epsilon), found.upward_epsilon_bounds.nearest(), found.two_sided_epsilon_bounds.up()) for epsilon, found in losses]


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
