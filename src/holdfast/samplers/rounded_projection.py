"""What the rounded projection samplers share: noise on all cells, exact coins, and the loop over draws.

Law:         e has independent discrete Laplace cells; u is its projection on the real span of the lattice L; z in L has mean u given e.
Guarantees:  every rounding commutes with shifts by L: it looks at fractional parts only, so that x + z is a random function of x + e and of
             the kept totals. Hence pure epsilon per unit of l1 distance. Integers and rationals throughout.
Reference:   [theory R1]0.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace
from holdfast.exact.compiled import loops_for
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import extra_integer
from holdfast.randomness.words import EXTRA_WORDS, Words

Ints: TypeAlias = NDArray[np.int64]
Coin: TypeAlias = Callable[[int, int], bool]
"""coin(a, b) is True with probability a / b, 0 <= a <= b."""

CHUNK_CELLS = 1 << 20
"""Cells drawn at a time. A constant: the order in which words are read depends on it."""
LARGEST_DENOMINATOR = 1 << 47
"""The compiled coin divides twice by shifting 16 bits: numerators must stay below 2^63."""
COLD_CELLS = 1 << 10
"""Cells that justify loading Numba in a process that has not loaded the compiled roundings yet; afterwards they always run."""

_MODULE = "holdfast.samplers._rounding_compiled"


def compiled_for(cells: int) -> ModuleType | None:
    """The compiled roundings when this many cells are worth them, else None: use the plain ones. Both give the same output."""
    return loops_for(_MODULE, cells, COLD_CELLS)


class WordCoins:
    """Coins of rational probability: one word each, and extra bits of that word where it leaves the coin open."""

    def __init__(self, words: Words) -> None:
        self._words = words

    def __call__(self, numerator: int, denominator: int) -> bool:
        index = self._words.position
        word = int(self._words.take(1)[0])
        threshold, remainder = divmod(numerator << 32, denominator)
        return word < threshold if word != threshold else settle_coin(remainder, denominator, self._words, index)


def settle_coin(remainder: int, denominator: int, words: Words, index: int) -> bool:
    """Whether a uniform made of the extra bits of word `index` lies below remainder / denominator. Exact; ends with probability one."""
    depth = 0
    while remainder:
        bits = extra_integer(words, index, depth)
        threshold, remainder = divmod(remainder << (32 * EXTRA_WORDS), denominator)
        if bits != threshold:
            return bits < threshold
        depth += 1
    return False


class RoundedSampler(ABC):
    """Noise on every cell, projected on the lattice's span and rounded to the lattice without bias."""

    name = "projection and unbiased rounding"
    expected_tries = 1.0

    def __init__(self, cells: int, epsilon: Exact) -> None:
        self._cells = exact_integer(cells, "cells")
        if self._cells < 1:
            raise InvalidParameter(f"A block has at least one cell. Got {self._cells}.")
        self.epsilon = positive_fraction(epsilon, "epsilon")
        self.law = DiscreteLaplace.of_rate(self.epsilon)

    @property
    def cells(self) -> int:
        """Cells of the block."""
        return self._cells

    def draw(self, n: int, words: Words) -> Ints:
        """n independent draws, shape (n, cells): the noise of a chunk of draws is read first, then their coins."""
        out = np.empty((sample_size(n), self.cells), dtype=np.int64)
        step = max(1, CHUNK_CELLS // self.cells)
        for begin in range(0, n, step):
            piece = out[begin : begin + step]
            piece[:] = self.round(self.law.draw(piece.size, words).reshape(piece.shape), words)
        return out

    def round(self, noise: Ints, words: Words) -> Ints:
        """The projection of each row of integers, rounded to the lattice.

        Guarantees:  unbiased; round(noise + l) = round(noise) + l for every l in the lattice and the same words.
        """
        largest = max(abs(int(noise.min())), abs(int(noise.max()))) if noise.size else 0
        if self.worth_compiling(noise.size) and self.fits(largest):
            return self.round_fast(np.ascontiguousarray(noise), words)
        coin = WordCoins(words)
        return np.array([self.round_one(row, coin) for row in noise.tolist()], dtype=np.int64).reshape(noise.shape)

    @abstractmethod
    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        """The oracle: one draw on Python integers, asking `coin` for every random choice."""

    def worth_compiling(self, cells: int) -> bool:
        """Whether this many cells justify the fast form."""
        return compiled_for(cells) is not None

    @abstractmethod
    def fits(self, largest: int) -> bool:
        """Whether noise of at most this size keeps every intermediate number of the fast form inside 64 bits."""

    @abstractmethod
    def round_fast(self, noise: Ints, words: Words) -> Ints:
        """The same from the same words, in 64-bit integers."""


def run_with_coins(name: str, arguments: tuple[Any, ...], taken: NDArray[np.uint32], words: Words) -> int:
    """Run a compiled rounding on the words just taken and return how many it used.

    Where a word leaves a coin open, extra bits settle it and the loop runs again knowing the answer. That happens with probability 2^-32
    for a coin, so the second run costs nothing that matters.
    """
    loop = getattr(importlib.import_module(_MODULE), name)
    base = words.position - len(taken)
    settled = np.empty((0, 2), dtype=np.int64)
    while True:
        used, place, remainder, denominator = loop(*arguments, taken, settled)
        if place < 0:
            return int(used)
        verdict = settle_coin(int(remainder), int(denominator), words, base + int(place))
        settled = np.concatenate((settled, np.array([[place, verdict]], dtype=np.int64)))
