"""Laws too wide for a table: a table of cells, uniform low bits, and an exact accept step.

Legend: the line is cut outwards from the anchor into cells of 2^low_bits points. A cell is drawn with the weight of its first point (its
largest), the place inside it uniformly, and the point is accepted with w(point) / w(first point) = exp(-t), t = low (linear + quadratic
low). With about a thousand cells an arm most tries are accepted (above .9 in every law tried), whatever the width of the law.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.exact.balls import Real, ball, enclosure, precision
from holdfast.exact.compiled import compiled_for
from holdfast.exact.predicates import BAND, is_below, settle_exp
from holdfast.exact.segments import Arms, coarsen
from holdfast.exact.table import CHUNK_WORDS, Sampler, TableSampler
from holdfast.exact.weights import ArmsSource
from holdfast.randomness.words import Words

CELL_BITS = 11
"""At most 2^11 cells on the longer arm carry mass above e^-45."""
LEAST_ACCEPT_BITS = 16
"""Fewer bits in the first comparison would leave too many tries to the slow, exact one."""


class WideSampler(Sampler):
    """A prepared cell table with accept step.

    Law:         P[X = k] proportional to the arms' weights.
    Guarantees:  exact over uniform words; a try takes `words_per_try` words, rejected tries are followed by the next words.
    Reference:   [theory R3], [theory T11], here for any arms and both tails without folding.

    `word_bits`, `cell_bits`, `accept_bits` (at least) and `band` exist for tests: few bits can be enumerated, a wide band changes nothing.
    """

    def __init__(
        self, arms: Arms, word_bits: int = 32, cell_bits: int = CELL_BITS, band: float = BAND, accept_bits: int = LEAST_ACCEPT_BITS
    ) -> None:
        self._arms = arms
        self._word_bits = word_bits
        self._band = band
        # A place and a uniform share one 64-bit integer, so the very widest laws get more cells instead of longer places.
        most_bits = 64 // word_bits * word_bits
        self.low_bits = min(max(arms.reach(45).bit_length() - cell_bits, 0), most_bits - accept_bits)
        self.words_per_try = 2
        while (self.words_per_try - 1) * word_bits - self.low_bits < accept_bits:
            self.words_per_try += 1
        self.accept_bits = (self.words_per_try - 1) * word_bits - self.low_bits
        assert (self.words_per_try - 1) * word_bits <= 64
        assert self.accept_bits <= 52  # a uniform's cell must be an exact double
        self._coarse = coarsen(arms, self.low_bits)
        self._cells = TableSampler(ArmsSource(self._coarse), word_bits)
        self._places, self._exponents = self._describe(np.arange(len(self._cells)) + self._cells.first)

    def _describe(self, cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Per cell: (first point, direction, number of points) and the exponent's (linear, quadratic) coefficients as doubles."""
        width = 1 << self.low_bits
        # Numbers outside the support (a leading zero threshold) are never drawn; no point of theirs would be accepted.
        places = np.zeros((len(cells), 3), dtype=np.int64)
        exponents = np.zeros((len(cells), 2), dtype=np.float64)
        for coarse, fine in zip(self._coarse.right + self._coarse.left, self._arms.right + self._arms.left, strict=True):
            number = (cells - coarse.start) * coarse.step
            mine = number >= 0 if coarse.length is None else (number >= 0) & (number < coarse.length)
            begin = number[mine] * width
            places[mine, 0] = fine.start + fine.step * begin
            places[mine, 1] = fine.step
            places[mine, 2] = width if fine.length is None else np.minimum(width, fine.length - begin)
            # t(low) = exponent(begin + low) - exponent(begin) = low (slope + curvature (begin - 1/2) + curvature / 2 low)
            curvature = _nearest_double(fine.curvature)
            exponents[mine, 0] = _nearest_double(fine.slope) + curvature * (begin - 0.5)
            exponents[mine, 1] = curvature / 2
        return places, exponents

    def draw_into(self, out: NDArray[np.int64], words: Words) -> None:
        compiled = compiled_for(len(out))
        chunk_tries = CHUNK_WORDS // self.words_per_try
        buffer = np.empty(chunk_tries * self.words_per_try, dtype=np.uint32)
        done = 0
        while done < len(out):
            needed = len(out) - done
            # Full chunks cannot give more than is needed; the last draws go through NumPy, which knows each try's verdict.
            if compiled is not None and needed >= chunk_tries:
                done += self.draw_compiled(compiled, buffer, out[done : done + chunk_tries], words)
            else:
                tries = min(chunk_tries, needed + needed // 64 + 4)
                done += self._draw_numpy(buffer[: tries * self.words_per_try], out[done:], words)

    def draw_compiled(self, compiled: object, buffer: NDArray[np.uint32], out: NDArray[np.int64], words: Words) -> int:
        base = words.position
        words.take_into(buffer)
        pending = np.empty((len(out), 2), dtype=np.int64)
        accepted, count = compiled.draw_wide(  # type: ignore[attr-defined]
            buffer,
            self.words_per_try,
            self._cells.drop,
            self._cells.direct,
            self._cells.high,
            self._cells.low,
            self._cells.shift,
            self.accept_bits,
            self._places,
            self._exponents,
            self._band,
            out,
            pending,
        )
        if count:
            tries, places = pending[:count, 0], pending[:count, 1]
            chosen = buffer.reshape(-1, self.words_per_try)[tries]
            values, accept = self.decide(chosen, base + tries * self.words_per_try, words)
            merged = np.insert(out[:accepted], places[accept], values[accept])
            out[: len(merged)] = merged
            accepted = len(merged)
        return int(accepted)

    def _draw_numpy(self, buffer: NDArray[np.uint32], out: NDArray[np.int64], words: Words) -> int:
        base = words.position
        words.take_into(buffer)
        tries = buffer.reshape(-1, self.words_per_try)
        values, accept = self.decide(tries, base + np.arange(len(tries)) * self.words_per_try, words)
        hits = np.flatnonzero(accept)
        if len(hits) >= len(out):
            hits = hits[: len(out)]
            unused = len(tries) - 1 - int(hits[-1])
            words.give_back(unused * self.words_per_try)
        out[: len(hits)] = values[hits]
        return len(hits)

    def decide(self, tries: NDArray[np.uint32], places: NDArray[np.int64], words: Words) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Value and verdict of each try: doubles where they suffice, balls and extra bits where not."""
        shifted = tries >> np.uint32(self._cells.drop)
        index = self._cells.index(shifted[:, 0], places, words)
        bits = np.zeros(len(tries), dtype=np.uint64)
        for j in range(1, self.words_per_try):
            bits = (bits << np.uint64(self._word_bits)) | shifted[:, j].astype(np.uint64)
        low = (bits >> np.uint64(self.accept_bits)).astype(np.int64)
        uniform = bits & np.uint64((1 << self.accept_bits) - 1)
        if len(index) and (index.min() < 0 or index.max() >= len(self._cells)):
            # Cells told apart only by the extra bits of an open word (probability 2^-64 a try) are not in the arrays.
            cells, exponents = self._describe(index + self._cells.first)
        else:
            cells, exponents = self._places[index], self._exponents[index]
        start, step, size = cells.T
        exponent = low * (exponents[:, 0] + exponents[:, 1] * low)
        verdict = settle_exp(uniform.astype(np.float64), self.accept_bits, exponent, self._band)
        inside = low < size
        for i in np.flatnonzero((verdict == 0) & inside):
            owner = int(places[i]) + self.words_per_try - 1
            ratio = self.accept_probability(int(start[i]), int(low[i]))
            verdict[i] = 1 if is_below(int(uniform[i]), self.accept_bits, ratio, words, owner) else -1
        return start + step * low, inside & (verdict > 0)

    def accept_probability(self, start: int, low: int) -> Callable[[], arb]:
        """The accept probability of the point `low` places beyond a cell's first, as a function giving balls."""
        place = self._arms.locate(start)
        assert place is not None
        fine, begin = place
        return lambda: (-fine.drop(begin, low)).exp()


def _nearest_double(value: Real) -> float:
    with precision(128):
        bounds = enclosure(ball(value))
    # Beyond 10^300 the accept probability of any point but the first is below every double: the clamp keeps doubles finite.
    return bounds.nearest() if bounds.upper < 10**300 else 1e300
