"""Grids with axes of length two: what stands at one end of such an axis is minus what stands at the other."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import Words
from holdfast.samplers.protocol import BlockSampler


class Mirrored:
    """Gaussian noise on a grid with k axes of length two, from the law on the other axes.

    Law:         P[z] proportional to exp(-|z|^2 / (2 sigma_squared)) on arrays whose sums along every axis are zero. Along an axis of
                 length two z is (w, -w), so |z|^2 = 2^k |w|^2: `beneath` has the same law with sigma_squared / 2^k on the other axes.
    Guarantees:  exact if `beneath` is; nothing is thrown away here.
    """

    def __init__(self, beneath: BlockSampler, shape: tuple[int, ...]) -> None:
        self._beneath, self._shape = beneath, shape
        self.cells = math.prod(shape)
        self.name, self.expected_tries = f"{beneath.name}, mirrored", beneath.expected_tries

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells), cells in C order."""
        out = self._beneath.draw(n, words).reshape(n, *(1 if length == 2 else length for length in self._shape))
        for axis, length in enumerate(self._shape, 1):
            if length == 2:
                out = np.concatenate([out, -out], axis=axis)
        return np.ascontiguousarray(out).reshape(n, self.cells)
