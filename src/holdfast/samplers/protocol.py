"""What every sampler of a block offers."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from holdfast.randomness import Words

Ints = NDArray[np.int64]


class BlockSampler(Protocol):
    """Draws of a block's noise from words; prepared from public facts alone, shared by all blocks of one shape.

    Free cells, which are under no kept total, arrive as blocks of one cell: `cells` is 1, and n of them are an array of shape (n, 1).

    The words it takes depend on the block's shape, on the law and on the words themselves, never on any count. A decision that a word
    leaves open asks for extra bits of that word (randomness/words.py), so that output does not depend on floating-point filters.
    """

    @property
    def name(self) -> str:
        """The method in a few words, for plans and cards."""

    @property
    def cells(self) -> int:
        """Cells of the block."""

    @property
    def expected_tries(self) -> float:
        """Expected number of whole-block tries for one draw, or a proven upper bound of it; 1 where nothing is thrown away."""

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells); a grid's cells in C order."""


@runtime_checkable
class Weighed(Protocol):
    """A sampler whose tries can be looked at, kept or not: weighted by their chances to be kept they have the law of its draws. For figures
    about the law, where draws would throw most tries away.
    """

    @property
    def try_cost(self) -> float:
        """In cell draws (samplers/choice.py)."""

    def draw_weighed(self, tries: int, words: Words) -> tuple[Ints, NDArray[np.float64]]:
        """(so many independent tries, shape (tries, cells); logarithms of their chances, in doubles)."""


@runtime_checkable
class InputSampler(Protocol):
    """Draws what is published from confidential input: for targets that read counts or cell keys (laws/target.py, `Reads`).

    How many words are taken may depend on the input of this task, and on no other: every task has a stream of its own. The running time
    then depends on the data too. A mechanism with such a sampler must say so in its promise, because whoever can measure the time of a
    release learns more than what is published.
    """

    @property
    def name(self) -> str: ...

    @property
    def cells(self) -> int: ...

    @property
    def expected_tries(self) -> float | None:
        """A bound that holds for every input; None where there is none, and tries depend on the input."""

    def publish(self, counts: Ints, cell_keys: Ints | None, words: Words) -> Ints:
        """The published counts of n blocks, one a row. CONFIDENTIAL input: no message may hold a value of it.

        Given:  counts of shape (n, cells), cell_keys of the same shape where the target reads them. Free cells: shape (n, 1).
        """
