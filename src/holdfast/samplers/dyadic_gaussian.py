"""Gaussian noise on one sum by halving: totals of pieces of 256 cells, then each piece cut in halves by tables alone ([theory T15]).

Legend: cells = 256 B + r; q = exp(-2 pi^2 s^2), theta as in theta.py.

The totals of the B pieces are drawn one after the other, then the r cells that are over (the last part of all is forced): a line of parts
whose weights are their cells (sequence_gaussian.py), with an accept step of its own. Then every piece is halved: two certified tables a
level, for an even and for an odd total, one 32-bit word a node, no float. The vector is kept with the product of the theta ratios of all
nodes, else totals are drawn anew too. A node with even total has ratio 1; one with an odd total at level m has kappa_m = theta_s(1/2) /
theta_s(0), 1 - kappa_m <= 4 q. At sigma_squared = 5/2 the smallest nodes have q = 2e-11: a vector of 10^7 cells is kept with probability
above .9997.

Words, in order: those of the totals of all vectors that are still to be drawn; then for each of these 255 words for each piece, level by
level from the top and left to right, and the word that keeps it or throws it away. A table word left open is settled by its own extra
bits. The keep step compares with a proved bound of the loss, and else with a product of balls.
"""

from __future__ import annotations

import importlib
import math
from fractions import Fraction
from functools import cached_property, lru_cache
from types import ModuleType
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact import DiscreteGaussian
from holdfast.exact.compiled import loops_for
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below
from holdfast.exact.table import TableSampler
from holdfast.exact.weights import ArmsSource
from holdfast.lattices.trees import Tree
from holdfast.randomness.words import Words
from holdfast.samplers.level_sequence import LevelSequence, Stage, Weights
from holdfast.samplers.sequence_gaussian import SequenceGaussian, check_reach
from holdfast.samplers.theta import log_theta3, theta_ratio_ball

PIECE = 256
SMALL_PIECE, WIDE_SIGMA_SQUARED = 32, 1000
"""Above that variance smaller pieces: the tables of the upper levels would be large, and each word of theirs a cache miss."""
LEAST_SIGMA_SQUARED = Fraction(5, 2)
"""Below this the smallest nodes' theta ratios would throw away large vectors."""
MOST_SIGMA_SQUARED = 10**6
"""Above this the tables of the large nodes hold more than 10^5 points each."""
CHUNK_WORDS = 1 << 14
SMALL_DRAW = 1 << 14
"""Cells up to which the slow form is faster than loading Numba."""

_COMPILED = "holdfast.samplers._dyadic_compiled"


class DyadicGaussian:
    """Gaussian noise on one sum, by halving.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) on integer vectors of `cells` cells whose sum is zero.
    Given:       5/2 <= sigma_squared <= 10^6, cells >= 2; it pays from about 1000 cells on.
    Guarantees:  exact; time linear in the cells.
    Reference:   [theory R6], [theory R7], [theory T15]; the module's text.

    `piece` (a power of two), `index_bits` and the options of SequenceGaussian exist for tests.
    """

    name = "dyadic Gaussian"

    def __init__(
        self,
        cells: int,
        sigma_squared: Fraction,
        *,
        piece: int | None = None,
        index_bits: int | None = None,
        **others: Any,
    ) -> None:
        self.cells = exact_integer(cells, "cells")
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        if self.cells < 2:
            raise InvalidParameter(f"A block with one sum has at least two cells. Got {self.cells}.")
        if not LEAST_SIGMA_SQUARED <= self.sigma_squared <= MOST_SIGMA_SQUARED:
            raise InvalidParameter(
                f"Halving needs sigma_squared from {LEAST_SIGMA_SQUARED} to {MOST_SIGMA_SQUARED}. Use SequentialGaussian for other values."
            )
        if piece is None:
            piece = PIECE if self.sigma_squared < WIDE_SIGMA_SQUARED else SMALL_PIECE
        check_reach(self.cells, 1, self.cells, self.sigma_squared * min(piece, self.cells))
        self._piece, self._index_bits = piece, index_bits
        self._pieces, over = divmod(self.cells, piece)
        sizes = np.array([piece] * self._pieces + [1] * over, dtype=np.int64)
        line = Stage((1,), (0,), Fraction(1), (Weights(sizes, np.array([0, len(sizes)])),))
        self._parts = SequenceGaussian(LevelSequence((Tree.plain(len(sizes)),), [line]), self.sigma_squared, **others)
        # Level by level from the top: cells in half a node, and the tables for an even and an odd total.
        self._halves = [1 << level for level in range(piece.bit_length() - 2, -1, -1)]
        self._tables = [half_tables(self.sigma_squared * m / 2) for m in self._halves]

    def __repr__(self) -> str:
        return f"DyadicGaussian(cells={self.cells}, sigma_squared='{self.sigma_squared}')"

    @cached_property
    def expected_tries(self) -> float:
        """A bound of the expected tries, in doubles: prod theta3 over nodes and parts (theta.tries_bound)."""
        variance = float(self.sigma_squared)
        total = sum(self._pieces * self._piece / (2 * m) * float(log_theta3(variance * m / 2)) for m in self._halves)
        return math.exp(total) * self._parts.expected_tries

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells)."""
        n = sample_size(n)
        check_memory(n * self.cells)
        loops = loops_for(_COMPILED, n * self.cells, SMALL_DRAW)
        if loops is None:
            return self.draw_slowly(n, words)
        importlib.import_module("holdfast.exact._compiled")  # so that proposals, too, are drawn by compiled loops
        return self.draw_with(n, words, loops)

    def draw_slowly(self, n: int, words: Words) -> NDArray[np.int64]:
        """The same draws from the same words, parts in exact rationals and pieces in NumPy: the oracle of `draw`."""
        return self.draw_with(n, words, None)

    def draw_with(self, n: int, words: Words, loops: ModuleType | None) -> NDArray[np.int64]:
        out = np.empty((n, self.cells), dtype=np.int64)
        pending = np.arange(n)
        while len(pending):
            parts = (self._parts.draw_slowly if loops is None else self._parts.draw)(len(pending), words)
            kept = [self._try(out[row], own, words, loops) for row, own in zip(pending, parts, strict=True)]
            pending = pending[~np.array(kept)]
        return out

    def _try(self, row: NDArray[np.int64], parts: NDArray[np.int64], words: Words, loops: ModuleType | None) -> bool:
        """Draw the cells of all parts once; whether they are kept."""
        odd = np.zeros(len(self._halves), dtype=np.int64)
        self._halve(row, parts[: self._pieces], words, loops, odd)
        row[self._pieces * self._piece :] = parts[self._pieces :]
        index = words.position
        word = int(words.take(1)[0])
        if loops is not None and (word + 1) * 2.0**-32 <= 1 - float((odd * self._odd_losses).sum()) - BAND:
            return True
        return is_below(word, 32, lambda: self._keep_probability(odd.tolist()), words, index)

    def _halve(
        self, row: NDArray[np.int64], totals: NDArray[np.int64], words: Words, loops: ModuleType | None, odd: NDArray[np.int64]
    ) -> None:
        """Cells of all pieces; odd[level] counts the nodes with an odd total."""
        per_piece = self._piece - 1
        step = max(1, CHUNK_WORDS // self._piece)
        buffer = np.empty(min(step, len(totals)) * per_piece, dtype=np.uint32)
        pending = np.empty(step, dtype=np.int64)
        for begin in range(0, len(totals), step):
            some = totals[begin : begin + step]
            cells = row[begin * self._piece : (begin + len(some)) * self._piece]
            chunk = buffer[: len(some) * per_piece]
            base = words.position
            words.take_into(chunk)
            redo = np.arange(len(some))
            if loops is not None:
                redo = pending[: loops.halve_pieces(chunk, some, cells, *self._layout, odd, pending)]
            for i in redo.tolist():
                piece = cells[i * self._piece : (i + 1) * self._piece]
                self._halve_slowly(piece, int(some[i]), chunk[i * per_piece : (i + 1) * per_piece], base + i * per_piece, words, odd)

    def _halve_slowly(
        self, piece: NDArray[np.int64], total: int, taken: NDArray[np.uint32], base: int, words: Words, odd: NDArray[np.int64]
    ) -> None:
        """One piece by NumPy, open words and all."""
        nodes, place = np.array([total], dtype=np.int64), 0
        for level, tables in enumerate(self._tables):
            left = nodes >> 1
            for parity, table in enumerate(tables):
                mine = np.flatnonzero((nodes & 1) == parity)
                left[mine] += table.first + table.index(taken[place + mine], base + place + mine, words)
            odd[level] += int((nodes & 1).sum())
            place += len(nodes)
            nodes = np.stack([left, nodes - left], axis=1).ravel()
        piece[:] = nodes

    @cached_property
    def _odd_losses(self) -> NDArray[np.float64]:
        """Per level an upper bound of 1 - kappa: 4 q with a margin for roundings."""
        return np.array([max(4.01 * math.exp(-(math.pi**2) * float(self.sigma_squared) * m), 1e-100) for m in self._halves])

    @cached_property
    def _layout(self) -> tuple[NDArray[np.generic], ...]:
        """All tables in few arrays: direct indices, thresholds (high, low), first values, and where each table begins."""
        flat = [table for pair in self._tables for table in pair]
        bits = [self._index_bits or _index_bits(len(pair[0])) for pair in self._tables]
        directs = [_direct(table, bits[i // 2]) for i, table in enumerate(flat)]
        starts = np.concatenate(([0], np.cumsum([len(table) for table in flat]))).astype(np.int64)
        direct_starts = np.concatenate(([0], np.cumsum([len(direct) for direct in directs]))).astype(np.int64)
        return (
            np.concatenate(directs),
            np.concatenate([table.high for table in flat]),
            np.concatenate([table.low for table in flat]),
            np.array([[table.first for table in pair] for pair in self._tables], dtype=np.int64),
            starts,
            direct_starts,
            np.array([32 - b for b in bits], dtype=np.int64),
        )

    def _keep_probability(self, odd: list[int]) -> arb:
        """Product of the nodes' theta ratios as a ball."""
        ratios = (theta_ratio_ball(self.sigma_squared * m / 2, Fraction(1, 2)) ** count for m, count in zip(self._halves, odd, strict=True))
        return math.prod(ratios, start=arb(1))


@lru_cache(maxsize=32)
def half_tables(variance: Fraction) -> tuple[TableSampler, TableSampler]:
    """The tables of a half's total for an even and an odd total of the whole; kept, because blocks of all sizes share them."""
    even, odd = (TableSampler(ArmsSource(DiscreteGaussian(variance, center).arms)) for center in (0, Fraction(1, 2)))
    return even, odd


def _index_bits(points: int) -> int:
    """Bits of a word that index a table directly: more for tables of many points, few enough for all tables to stay in cache."""
    return 12 if points < 1 << 9 else 13


def _direct(table: TableSampler, bits: int) -> NDArray[np.int32]:
    """TableSampler.direct with an index of fewer bits."""
    cells = np.arange((1 << bits) + 1, dtype=np.uint64) << np.uint64(32 - bits)
    start = np.searchsorted(table.high, cells[:-1], side="left").astype(np.int32)
    direct = np.where(table.low[start] < cells[1:], -1 - start, start).astype(np.int32)
    return np.append(direct, np.int32(len(table.high) - 1))
