"""Rounded projection: noise on all cells, projected on the lattice and rounded by exact coins. Other lattices: nearest_plane.py.

Law:         e has independent discrete Laplace cells of scale 1/epsilon; u is its projection on the real span of the lattice L; z in L has
             mean u given e.
Guarantees:  every rounding commutes with shifts by L: it looks at fractional parts only, so that x + z is a random function of x + e and of
             the kept totals. Hence pure epsilon per unit of l1 distance. Integers and rationals throughout, exact over uniform words.
Reference:   [theory R10]: one sum (b), two-way tables (c), grids (d) with N_k and E_k; products of hierarchies: [theory R20] (f).

Sizes. On a grid of K axes everything is held in units of 1 / (n_1 ... n_K). An error is a sum of rounding errors below 1, that of cell j
entering cell i with the weight of its Gram-Schmidt vector, the product over the axes of 1 (where j_k = i_k) or 1 / (R_k(j) - 1). So |w|,
and every partial sum N_k / (R_1 ... R_k), is below H = prod_k (1 + 1 + 1/2 + ... + 1 / (n_k - 1)).

On a product of hierarchies e need not be projected: with w = z - e the sums of w at kept level vectors are minus those of e, and z = e + w;
nothing but integers over the product of weights D is held. w = (Pi e - e) + rounding errors, the first shorter than e, the second at most
(sum |b*_i|^2)^(1/2) <= (2^axes dimension)^(1/2) long. N / D and S / D are values of linear forms a w with |a|^2 at most twice the cells
under a sum along an axis.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property
from math import isqrt, prod
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteLaplace
from holdfast.exact.compiled import loops_for
from holdfast.exact.parameters import Exact, exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import extra_integer
from holdfast.lattices.shapes.levels import Levels
from holdfast.randomness.words import EXTRA_WORDS, Words
from holdfast.samplers.level_sequence import LevelSequence, OpenCell, sequence_of

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


class RoundedOneSum(RoundedSampler):
    """Discrete Laplace noise on every cell, its mean taken off, rounded without bias.

    Law:         the total of e is T = q cells + r with 0 <= r < cells; z = e - q, and one less on a uniform set of r cells, drawn by
                 selection: a cell is taken with probability (still to take) / (cells left).
    Given:       cells >= 1, epsilon > 0.
    Guarantees:  those of the module's text; error below 1 in each cell. One word for each cell.
    """

    def __init__(self, cells: int, epsilon: Exact) -> None:
        super().__init__(cells, epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        quotient, left = divmod(sum(noise), self.cells)
        out = []
        for i, value in enumerate(noise):
            lowered = coin(left, self.cells - i)
            left -= lowered
            out.append(value - quotient - lowered)
        return out

    def fits(self, largest: int) -> bool:
        return self.cells * largest < 2**62 and self.cells < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        out = np.empty_like(noise)
        taken = words.take(noise.size)
        run_with_coins("one_sum", (noise, out), taken, words)
        return out


def grid_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The sizes of a grid's axes, checked."""
    sizes = tuple(exact_integer(size, "an axis's size") for size in shape)
    if not sizes or min(sizes) < 1:
        raise InvalidParameter(f"A grid has one axis or more, each of at least one cell. Got {sizes}.")
    return sizes


def project(noise: Ints, shape: tuple[int, ...]) -> Ints:
    """The projection of each row on tables whose sums along every axis are zero, in units of 1 / (cells)."""
    out = noise.reshape(-1, *shape)
    for axis, size in enumerate(shape, start=1):
        out = size * out - out.sum(axis=axis, keepdims=True)
    return np.ascontiguousarray(out)


class RoundedGrid(RoundedSampler):
    """Discrete Laplace noise on every cell of a grid, projected and rounded without bias.

    Law:         cells are rounded in C order, each up with the fractional part of its centre given the errors before it.
    Given:       any number of axes, epsilon > 0.
    Guarantees:  those of the module's text. One word for each cell.
    """

    def __init__(self, shape: Sequence[int], epsilon: Exact) -> None:
        self.shape = grid_shape(shape)
        super().__init__(prod(self.shape), epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        targets = project(np.array(noise, dtype=object), self.shape).ravel().tolist()
        sums: list[dict[tuple[int, ...], Fraction]] = [{} for _ in self.shape]
        out = []
        for place, cell in enumerate(np.ndindex(*self.shape)):
            left = [size - i for size, i in zip(self.shape, cell, strict=True)]
            for k in range(1, len(cell)):
                if not any(cell[k:]):
                    sums[k].clear()
            N = [Fraction(0)]
            for k, R in enumerate(left):
                N.append(R * N[k] + sums[k].get(cell[k + 1 :], Fraction(0)))
            target = Fraction(targets[place], self.cells)
            centre = target - N[-1] / prod(left)
            down = centre.numerator // centre.denominator
            scale = self.cells * prod(left)
            out.append(down + coin(int((centre - down) * scale), scale))
            error = out[-1] - target
            for k in range(len(cell)):
                rest = cell[k + 1 :]
                sums[k][rest] = sums[k].get(rest, Fraction(0)) + prod(left[:k]) * error + N[k]
        return out

    def fits(self, largest: int) -> bool:
        harmonic = prod(1 + size.bit_length() for size in self.shape)  # 1 + 1/2 + ... + 1 / (n - 1) is at most n's number of bits
        # target R_1 ... R_K, and N_k, E_k = N_k - R_k N_{k-1} and the sum that becomes the next E_k.
        reach = self.cells**2 * (2 ** len(self.shape) * largest + 4 * (harmonic + 1))
        return reach < 2**62 and self.cells**2 < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        out = np.empty_like(noise)
        targets = project(noise, self.shape).reshape(noise.shape)
        taken = words.take(noise.size)
        run_with_coins("grid", (targets, np.array(self.shape, dtype=np.int64), out), taken, words)
        return out


Parts = list[list[int]]

MOST_MOVED = np.int64(1 << 20)
"""Cells moved at a time by the compiled loop: some tenths of a second."""


class RoundedGrid2(RoundedSampler):
    """Discrete Laplace noise on every cell of a two-way table, projected and rounded without bias.

    Law:         the fractional parts of u are rounded by cycles, which are chosen by the fractional parts alone.
    Given:       two axes, epsilon > 0.
    Guarantees:  those of the module's text; |z - u| < 1 in every cell. One word for each cycle.
    Reference:   L. H. Cox, A constructive procedure for unbiased controlled rounding, JASA 82 (1987).
    """

    def __init__(self, shape: Sequence[int], epsilon: Exact) -> None:
        self.shape = grid_shape(shape)
        if len(self.shape) != 2:
            raise InvalidParameter(f"Controlled rounding takes a two-way table. Got {len(self.shape)} axes. Use RoundedGrid.")
        super().__init__(prod(self.shape), epsilon)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        targets = project(np.array(noise, dtype=object), self.shape)[0].tolist()
        parts = [[value % self.cells for value in row] for row in targets]
        round_parts(parts, self.cells, coin)
        return [
            (value - value % self.cells + part) // self.cells
            for row, kept in zip(targets, parts, strict=True)
            for value, part in zip(row, kept, strict=True)
        ]

    def fits(self, largest: int) -> bool:
        return 4 * self.cells * (largest + 1) < 2**62 and 2 * self.cells < LARGEST_DENOMINATOR

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        targets = project(noise, self.shape)
        out = np.empty_like(targets)
        taken = words.take(noise.size)
        rows, columns = self.shape
        kept = [np.empty(shape, dtype=np.int64) for shape in (self.shape, (2, rows), (2, columns))]
        state = np.array([0, -1, 0], dtype=np.int64)
        while state[0] < len(targets):  # a signal is answered in between
            run_with_coins("controlled_tables", (targets, np.int64(self.cells), out, *kept, state, MOST_MOVED), taken, words)
        words.give_back(len(taken) - int(state[2]))
        return out.reshape(noise.shape)


def round_parts(parts: Parts, whole: int, coin: Coin) -> None:
    """Round a table of integers in [0, whole], line sums multiples of whole, to 0 and whole in place, without bias, keeping line sums."""
    for start in range(len(parts)):
        while any(0 < part < whole for part in parts[start]):
            cycle = find_cycle(parts, whole, start)
            signed = [(i, j, 1 - 2 * (t % 2)) for t, (i, j) in enumerate(cycle)]
            up = min(whole - parts[i][j] if sign > 0 else parts[i][j] for i, j, sign in signed)
            down = min(parts[i][j] if sign > 0 else whole - parts[i][j] for i, j, sign in signed)
            move = up if coin(down, up + down) else -down
            for i, j, sign in signed:
                parts[i][j] += sign * move


def find_cycle(parts: Parts, whole: int, start: int) -> list[tuple[int, int]]:
    """Cells of a cycle met when walking from a row: to its first fractional cell but the one just used, down or up that column likewise."""
    path: list[tuple[int, int]] = []  # cells in order; odd steps leave a row, even ones a column
    seen = [("row", start)]
    i, j, arrived = start, -1, -1
    while True:
        j = next(k for k, part in enumerate(parts[i]) if k != arrived and 0 < part < whole)
        path.append((i, j))
        if ("column", j) in seen:
            return path[seen.index(("column", j)) :]
        seen.append(("column", j))
        i = next(k for k, row in enumerate(parts) if k != i and 0 < row[j] < whole)
        path.append((i, j))
        if ("row", i) in seen:
            return path[seen.index(("row", i)) :]
        seen.append(("row", i))
        arrived = j


_COMPILED = "holdfast.samplers._levels_compiled"


class RoundedLevels(RoundedSampler):
    """Discrete Laplace noise on every cell of a product of hierarchies, projected and rounded without bias.

    Law:         rounded by nearest plane from coarse level vectors to fine ones.
    Given:       the shape has a move, epsilon > 0.
    Guarantees:  those of the module's text; z - e depends on the kept sums of e alone. One word for each free dimension.
    """

    def __init__(self, shape: Levels, epsilon: Exact) -> None:
        if shape.dimension == 0:
            raise InvalidParameter("The kept totals fix every cell of this block: nothing is left to draw.")
        self.shape = shape
        super().__init__(shape.size, epsilon)

    @property
    def _sequence(self) -> LevelSequence:
        return sequence_of(self.shape)

    def round_one(self, noise: list[int], coin: Coin) -> list[int]:
        table = np.array(noise, dtype=object)
        kept = {s: -self.shape.sums(table, s) for s in self._sequence.kept_vectors()}

        def choose(cell: OpenCell) -> int:
            down = cell.centre.numerator // cell.centre.denominator
            part = cell.centre - down
            return down + coin(part.numerator, part.denominator)

        return [e + w for e, w in zip(noise, self._sequence.walk(kept, choose), strict=True)]

    def worth_compiling(self, cells: int) -> bool:
        return loops_for(_COMPILED, cells, COLD_CELLS) is not None

    def fits(self, largest: int) -> bool:
        length = isqrt(2 * self._sequence.line_cells) + 1
        reach = length * (isqrt(2 ** len(self.shape.trees) * self.shape.dimension) + 1 + largest * (isqrt(self.cells) + 1))
        return 8 * self._sequence.largest_scale * reach < 2**62 and self._sequence.largest_scale < LARGEST_DENOMINATOR

    @cached_property
    def _kept_at(self) -> list[tuple[tuple[int, ...], int, int]]:
        """Where the sums of kept level vectors stand among the tables."""
        return [(s, *self._sequence.arrays.table_at[s]) for s in self._sequence.kept_vectors()]

    def round_fast(self, noise: Ints, words: Words) -> Ints:
        loops = importlib.import_module(_COMPILED)
        walk = self._sequence.arrays.walk()
        out = np.empty_like(noise)
        for row, own in zip(out, noise, strict=True):
            for s, begin, length in self._kept_at:
                walk.tables[begin : begin + length] = -self.shape.sums(own, s).ravel()
            first = words.position
            taken = words.take(self.shape.dimension)
            state = np.zeros(loops.STATE_SIZE, dtype=np.int64)
            state[loops.CELL] = -1
            while loops.round_table(row, walk, taken, state) != loops.DONE:
                word = int(state[loops.WORD])
                verdict = settle_coin(int(state[loops.AHEAD]), int(state[loops.SCALE]), words, first + word)
                state[loops.KNOWN], state[loops.KNOWN_PLACE], state[loops.KNOWN_VERDICT] = loops.KNOWN_COIN, word, int(verdict)
            row += own
        return out
