"""Cells under no kept sum: independent draws. And a block whose one sum has signs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holdfast.exact.law import IntegerLaw
from holdfast.randomness import Words
from holdfast.samplers.protocol import BlockSampler


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
