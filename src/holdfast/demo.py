"""The embedded example: what exists so far, shown end to end in a second.

Until releases are built this shows the ground they stand on: noise drawn exactly from a published law.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.exact import DiscreteGaussian
from holdfast.randomness import NoiseKey

SIGMA_SQUARED = Fraction(4)
DRAWS = 100_000
SHOWN = range(-6, 7)


@dataclass(frozen=True)
class DemoRow:
    """One value of the noise: its certified probability and how often it was drawn."""

    value: int
    probability: float
    drawn: int
    expected: float


@dataclass(frozen=True)
class Demo:
    """What `holdfast demo` prints."""

    law: str
    draws: int
    variance: float
    tail_below: float
    rows: list[DemoRow]


def run_demo() -> Demo:
    """Draw noise with a fresh secret key and set it beside the certified law.

    The noise here is shown because it protects nothing: it is added to no table.
    """
    law = DiscreteGaussian(SIGMA_SQUARED)
    with NoiseKey.generate() as key:
        noise = law.sample(DRAWS, key)
    rows = [DemoRow(k, law.pmf(k), int(np.count_nonzero(noise == k)), DRAWS * law.pmf(k)) for k in SHOWN]
    return Demo(repr(law), DRAWS, law.variance(), 2 * law.tail_bounds(SHOWN[-1] + 1).up(), rows)
