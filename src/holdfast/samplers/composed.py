"""The plainest samplers: independent cells, and samplers made from another one, by signs, by mirroring or by adding its noise to counts.

On a grid with axes of length two, what stands at one end of such an axis is minus what stands at the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.exact.law import IntegerLaw
from holdfast.randomness import Words
from holdfast.samplers.protocol import BlockSampler, Ints


class IndependentCells:
    """Independent cells.

    Law:         the product of one law over all cells.
    Guarantees:  exact; one table lookup a cell.
    """

    name = "independent draws"
    expected_tries = 1.0

    def __init__(self, law: IntegerLaw, cells: int) -> None:
        self.law, self.cells = law, cells

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        return self.law.draw(n * self.cells, words).reshape(n, self.cells)


class Signed:
    """A block whose kept sum adds some cells and subtracts others.

    Law:         that of the sampler beneath with the signs of some cells turned: all our laws are even in every cell.
    """

    def __init__(self, beneath: BlockSampler, signs: NDArray[np.int64]) -> None:
        self._beneath, self._signs = beneath, signs
        self.name, self.cells, self.expected_tries = beneath.name, beneath.cells, beneath.expected_tries

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        return self._beneath.draw(n, words) * self._signs


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


@dataclass(frozen=True)
class Added:
    """Publishes counts + noise: for blocks without bounds beside others that have some."""

    noise: BlockSampler

    @property
    def name(self) -> str:
        return self.noise.name

    @property
    def cells(self) -> int:
        return self.noise.cells

    @property
    def expected_tries(self) -> float:
        return self.noise.expected_tries

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        return counts + self.noise.draw(len(counts), words)
