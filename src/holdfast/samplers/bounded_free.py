"""A cell under no kept total, between bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from holdfast.lattices.shapes import Bounded
from holdfast.lattices.shapes.shape import UNBOUNDED
from holdfast.randomness import Words
from holdfast.samplers.arms import draw_arms
from holdfast.samplers.protocol import Ints


@dataclass(frozen=True)
class BoundedFree:
    """Law:         P[y] proportional to exp(-rate |y - x|) for lower <= y <= upper, for each of n cells.
    Guarantees:  exact; nothing is thrown away.
    """

    shape: Bounded
    rate: Fraction

    name = "truncated two-sided geometric"
    cells = 1
    expected_tries = 1.0

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        x = counts.ravel()
        left, right = room(x, self.shape.lower_cells()[0], self.shape.upper_cells()[0])
        published: Ints = x + draw_arms((self.rate, self.rate), left, right, words)[0]
        return published[:, None]


def room(x: Ints, lower: Ints | int, upper: Ints | int) -> tuple[Ints, Ints]:
    """How far each count may fall and rise; UNBOUNDED where there is no bound."""
    left = np.where(lower == -UNBOUNDED, UNBOUNDED, x - np.maximum(lower, -(2**62)))
    right = np.where(upper == UNBOUNDED, UNBOUNDED, np.minimum(upper, 2**62) - x)
    return left, right
