"""Any law on the integers drawn by table: one 32-bit word a draw, exact.

The draw is the smallest k with U < F(k), for a uniform U whose first 32 bits are the word. The top 16 or 17 bits index a direct table;
where no threshold falls into that cell its entry is the answer, else the few thresholds of the cell are searched. A word that equals a
threshold (probability: number of points times 2^-32) is settled with 32 more bits against 64-bit thresholds, then with 128, 256, ... more.

Certified cumulative thresholds are the heart of every table. Legend: F is the cumulative probability, T_k = floor(F(k) 2^bits). A uniform U
known to `bits` bits lies in the cell [u, u+1) / 2^bits. u < T_k proves U < F(k); u > T_k proves U > F(k); u = T_k proves nothing and more
bits of U are needed. The draw is the smallest k with U < F(k): it is settled exactly when u equals no T_k. Where F(k) 2^bits is an integer
N, or so near one that balls do not tell (a Gaussian centred on a half has F = 1/2), T_k is N - 1 or N: both are kept, and u = N - 1 and u =
N are both left open.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.compiled import compiled_for
from holdfast.exact.predicates import extra_integer
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness.words import EXTRA_WORDS, Words

_GUARDS = (40, 1000, 20_000)
"""Spare bits, so that a floor is in doubt with probability about 2^-40; more only where all weights are too small to be seen."""

CHUNK_WORDS = 1 << 14
"""64 KB of keystream at a time: stays in the second-level cache."""

INDEX_BITS = 16
LARGE_INDEX_BITS = 17
LARGE_TABLE = 1 << 12
"""Points above which a cell of 2^-16 holds a threshold too often; measured: a quarter faster at sigma_squared 10^6 with 2^-17."""


@dataclass(frozen=True)
class Thresholds:
    """lows[i] <= floor(F(first + i) 2^bits) <= values[i], equal but for integers; both non-decreasing; the last is always 2^bits - 1.

    At most one leading zero is kept: further points to the left are told apart only with more bits. The last entry stands for the first
    point with F > 1 - 2^-bits, or for the end of the support: a word of all ones is left open there, which costs nothing and is exact.
    """

    first: int
    bits: int
    values: list[int]
    lows: list[int]


def certified_thresholds(source: WeightSource, bits: int) -> Thresholds:
    """T_k for every k that can be told apart with `bits` bits.

    Guarantees:  lows and values enclose the true floors, proved by integer enclosures of all weights and both tails. A floor left in doubt
                 leaves more words open and changes no law.
    Reference:   [theory R3]; docs/exact-numbers.md gives the argument.
    """
    for guard in _GUARDS:
        weights = source.fixed_weights(bits, guard)
        bounds = _floors(weights, bits)
        if bounds is not None:
            lows, highs = bounds
            if weights.left_tail[1] > 0:
                # Everything left of the list has mass below 2^-bits: its own threshold is 0, and a word of all zeros must stay open.
                return _trim(weights.first - 1, bits, [0, *lows], [0, *highs])
            return _trim(weights.first, bits, lows, highs)
    raise InvalidParameter("All weights are zero, or too small to be told from zero. Give at least one positive weight of ordinary size.")


def _floors(weights: FixedWeights, bits: int) -> tuple[list[int], list[int]] | None:
    """Lower and upper bounds of every floor; None where not even one weight is certainly positive."""
    total_low = weights.left_tail[0] + sum(weights.lows) + weights.right_tail[0]
    total_high = weights.left_tail[1] + sum(weights.highs) + weights.right_tail[1]
    if total_low == 0:
        return None
    top = (1 << bits) - 1
    low, high = weights.left_tail
    lows, highs = [], []
    if total_low == total_high:  # exact integers: rational laws
        for weight in weights.lows:
            low += weight
            lows.append(min((low << bits) // total_low, top))
        return lows, lows
    # One reciprocal for all points: floor and ceiling keep the two sides bounds.
    shift = 2 * total_high.bit_length() + bits
    down, up = (1 << shift) // total_high, -((-1 << shift) // total_low)
    rest = shift - bits
    for weight_low, weight_high in zip(weights.lows, weights.highs, strict=True):
        low += weight_low
        high += weight_high
        lows.append(min((low * down) >> rest, top))
        highs.append(min((high * up) >> rest, top))
    return lows, highs


def _trim(first: int, bits: int, lows: list[int], highs: list[int]) -> Thresholds:
    """Drop points that `bits` bits cannot tell apart; end with the largest value."""
    top = (1 << bits) - 1
    start = max(0, sum(1 for value in highs if value == 0) - 1)
    stop = next((i for i, value in enumerate(lows) if value == top), len(lows) - 1) + 1
    lows, highs = lows[start:stop], highs[start:stop]
    lows[-1] = highs[-1] = top
    return Thresholds(first + start, bits, highs, lows)


class Sampler(ABC):
    """A prepared sampler: tables built, ready to turn words into draws."""

    @abstractmethod
    def draw_into(self, out: NDArray[np.int64], words: Words) -> None:
        """Independent draws, filling an array; afterwards the words stand right behind the last draw or try used."""

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws."""
        out = np.empty(n, dtype=np.int64)
        self.draw_into(out, words)
        return out


class TableSampler(Sampler):
    """A prepared table.

    Law:         P[X = k] = w(k) / sum of w, for the source's weights.
    Guarantees:  exact over uniform words; each draw takes one word and, when open, extra bits of that word only.
    Reference:   [theory R3].

    `word_bits` below 32 uses only the top bits of each word: tests enumerate all of them.
    """

    def __init__(self, source: WeightSource, word_bits: int = 32) -> None:
        self._source = source
        self._word_bits = word_bits
        self._deep: dict[int, Thresholds] = {}
        fine = certified_thresholds(source, word_bits + 32)
        self.first = fine.first
        self.thresholds = np.array(fine.values, dtype=np.uint64)
        self._open_from = np.array(fine.lows, dtype=np.uint64)
        self.high = (self.thresholds >> np.uint64(32)).astype(np.uint32)
        self.low = (self._open_from >> np.uint64(32)).astype(np.uint32)
        self.shift = word_bits - min(LARGE_INDEX_BITS if len(fine.values) > LARGE_TABLE else INDEX_BITS, word_bits // 2)
        self.drop = 32 - word_bits

    def __len__(self) -> int:
        """Number of points told apart by the first 32 extra bits."""
        return len(self.thresholds)

    @cached_property
    def direct(self) -> NDArray[np.int32]:
        """Per cell: the answer, or -1 - (first threshold to look at); one entry beyond the last cell ends its search."""
        cells = np.arange((1 << (self._word_bits - self.shift)) + 1, dtype=np.uint64) << np.uint64(self.shift)
        start = np.searchsorted(self.high, cells[:-1], side="left").astype(np.int32)
        holds_threshold = self.low[start] < cells[1:]
        direct = np.where(holds_threshold, -1 - start, start).astype(np.int32)
        return np.append(direct, np.int32(len(self.high) - 1))

    def draw_into(self, out: NDArray[np.int64], words: Words) -> None:
        compiled = compiled_for(len(out))
        buffer = np.empty(min(len(out), CHUNK_WORDS), dtype=np.uint32)
        pending = np.empty(len(buffer), dtype=np.int64)
        for begin in range(0, len(out), CHUNK_WORDS):
            piece = out[begin : begin + CHUNK_WORDS]
            chunk = buffer[: len(piece)]
            base = words.position
            words.take_into(chunk)
            if compiled is None:
                open_places = self._draw_numpy(chunk, piece)
            else:
                count = compiled.draw_table(chunk, self.drop, self.direct, self.high, self.low, self.shift, self.first, piece, pending)
                open_places = pending[:count]
            if len(open_places):
                piece[open_places] = self.first + self.resolve(chunk[open_places] >> np.uint32(self.drop), base + open_places, words)

    def index(self, cells: NDArray[np.uint32], places: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Index (value minus `first`) for each word already taken and shifted; `places` are the words' own indices."""
        found = np.searchsorted(self.high, cells, side="left").astype(np.int64)
        is_open = self.low[found] <= cells
        if is_open.any():
            found[is_open] = self.resolve(cells[is_open], places[is_open], words)
        return found

    def resolve(self, cells: NDArray[np.uint32], places: NDArray[np.int64], words: Words) -> NDArray[np.int64]:
        """Settle open words with bits of their own: 32 more, then 128, 256, ..."""
        extra = words.extra(places.astype(np.uint64), 0)
        longer = (cells.astype(np.uint64) << np.uint64(32)) | extra[:, 0].astype(np.uint64)
        found = np.searchsorted(self.thresholds, longer, side="left").astype(np.int64)
        for i in np.flatnonzero(self._open_from[found] <= longer):
            found[i] = self._resolve_deep(int(cells[i]), int(places[i]), words) - self.first
        return found

    def _draw_numpy(self, chunk: NDArray[np.uint32], out: NDArray[np.int64]) -> NDArray[np.int64]:
        """NumPy twin of `draw_table`; no direct table, so that one small draw does not pay for building it."""
        cells = chunk >> np.uint32(self.drop)
        found = np.searchsorted(self.high, cells, side="left")
        out[:] = found
        out += self.first
        return np.flatnonzero(self.low[found] <= cells).astype(np.int64)

    def _resolve_deep(self, cell: int, place: int, words: Words) -> int:
        bits, depth = self._word_bits, 0
        while True:
            cell = (cell << (32 * EXTRA_WORDS)) | extra_integer(words, place, depth)
            bits += 32 * EXTRA_WORDS
            depth += 1
            if bits not in self._deep:
                self._deep[bits] = certified_thresholds(self._source, bits)
            deep = self._deep[bits]
            found = bisect_left(deep.values, cell)
            if cell < deep.lows[found]:
                return deep.first + found
