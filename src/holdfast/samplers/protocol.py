"""What every sampler of a block offers; and the plainest ones: independent cells, and samplers made from another one, by signs, by
order, by mirroring or by adding its noise to counts; and noise looked up by cell keys.

On a grid with axes of length two, what stands at one end of such an axis is minus what stands at the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeySums
from holdfast.cellkey.perturb import add_noise
from holdfast.exact.law import IntegerLaw
from holdfast.laws import Keyed
from holdfast.randomness import Words
from holdfast.samplers.steps import Steps

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
class Stepwise(Protocol):
    """A sampler of a Gaussian law that draws one cell after the other."""

    @property
    def steps(self) -> Steps:
        """The variances of its steps."""


def steps_beneath(sampler: BlockSampler) -> Steps:
    assert isinstance(sampler, Stepwise), "this sampler has no steps"
    return sampler.steps


@runtime_checkable
class InputSampler(Protocol):
    """Draws what is published from confidential input: for targets that read counts or cell keys (laws/families.py, `Reads`).

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

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        """The published counts of n blocks, one a row. CONFIDENTIAL input: no message may hold a value of it.

        Given:  counts of shape (n, cells), cell_keys in the same shape where the target reads them. Free cells: shape (n, 1).
        """


@runtime_checkable
class Costly(Protocol):
    """A sampler whose try costs more than its cells."""

    @property
    def try_cost(self) -> float:
        """Cell draws that take as long as one try; from public facts, never from a clock."""


def cell_draws(sampler: BlockSampler | InputSampler) -> float:
    """Cell draws of one draw of a block, those thrown away included: by public figures, not by how a run goes; tries that depend on the
    counts are not known, and not counted.
    """
    return (sampler.try_cost if isinstance(sampler, Costly) else sampler.cells) * max(sampler.expected_tries or 1.0, 1.0)


class IndependentCells:
    """Independent cells.

    Law:         the product of one law over all cells.
    Guarantees:  exact; one table lookup a cell.
    """

    name = "independent draws"
    expected_tries = 1.0
    steps = Steps()

    def __init__(self, law: IntegerLaw, cells: int) -> None:
        self.law, self.cells = law, cells

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        return self.law.draw(n * self.cells, words).reshape(n, self.cells)


class _Beneath:
    """A sampler made from the one beneath: its name, its cells, its tries, its steps."""

    def __init__(self, beneath: BlockSampler) -> None:
        self.beneath = beneath
        self.name, self.cells, self.expected_tries = beneath.name, beneath.cells, beneath.expected_tries

    @property
    def steps(self) -> Steps:
        return steps_beneath(self.beneath)


class Signed(_Beneath):
    """A block whose kept sum adds some cells and subtracts others.

    Law:         that of the sampler beneath with the signs of some cells turned: all our laws are even in every cell.
    """

    def __init__(self, beneath: BlockSampler, signs: NDArray[np.int64]) -> None:
        super().__init__(beneath)
        self._signs = signs

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        return self.beneath.draw(n, words) * self._signs


class Reordered(_Beneath):
    """A block whose cells the sampler beneath draws in another order: `place_of` has the place there of each cell of a run."""

    def __init__(self, beneath: BlockSampler, place_of: NDArray[np.int64]) -> None:
        super().__init__(beneath)
        self._place_of = place_of

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        runs = self.beneath.draw(n, words).reshape(-1, len(self._place_of))
        return np.take(runs, self._place_of, axis=1).reshape(n, self.cells)

    def restore(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """One value for each cell, in the order of the sampler beneath."""
        return values.reshape(-1, len(self._place_of))[:, np.argsort(self._place_of)].ravel()


class Mirrored(_Beneath):
    """Gaussian noise on a grid with k axes of length two, from the law on the other axes.

    Law:         P[z] proportional to exp(-|z|^2 / (2 sigma_squared)) on arrays whose sums along every axis are zero. Along an axis of
                 length two z is (w, -w), so |z|^2 = 2^k |w|^2: `beneath` has the same law with sigma_squared / 2^k on the other axes.
    Guarantees:  exact if `beneath` is; nothing is thrown away here.
    """

    def __init__(self, beneath: BlockSampler, shape: tuple[int, ...]) -> None:
        super().__init__(beneath)
        self._shape = shape
        self.cells, self.name = math.prod(shape), f"{beneath.name}, mirrored"

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells), cells in C order."""
        out = self.beneath.draw(n, words).reshape(n, *(1 if length == 2 else length for length in self._shape))
        for axis, length in enumerate(self._shape, 1):
            if length == 2:
                out = np.concatenate([out, -out], axis=axis)
        return np.ascontiguousarray(out).reshape(n, self.cells)


class Added(_Beneath):
    """Publishes counts + noise: for blocks without bounds beside others that have some."""

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        return counts + self.beneath.draw(len(counts), words)


@dataclass(frozen=True)
class KeyLookup:
    """Looks the noise of each cell up. No random word is read: the key decides."""

    target: Keyed

    name, cells, expected_tries = "lookup by cell key", 1, 1.0

    def publish(self, counts: Ints, cell_keys: CellKeySums | None, words: Words) -> Ints:
        assert cell_keys is not None
        return add_noise(counts, cell_keys, self.target.table, self.target.rule)
