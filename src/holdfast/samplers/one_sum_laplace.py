"""The l1 Laplace law on cells whose sum is kept, drawn exactly in linear time. The law, its steps and their proofs: [theory R4].

`OneSumLaplace` runs the compiled loop of _one_sum_compiled.py. `one_sum_laplace_oracle` is the same draw in plain Python, slow and obvious,
with the same words and output: tests compare the two, and it draws for few cells in a process that has not loaded Numba.

Legend: n cells, a = exp(-epsilon), NB(s) = C(s + n - 1, s) a^s, mode = the s that maximises NB. z = G - H, two uniform compositions of one
S.

G: geometric vectors are drawn and judged until one is accepted, with probability NB(T) / NB(mode), T its sum: at least half of them are. H:
the last rejected vector (a fresh one if there was none), its sum moved to S star by star: one is taken from cell i with probability h_i /
sum, or added with probability (h_i + 1) / (sum + n). The cell is found by rejection: a uniform cell and a uniform number below a bound of
all weights. About sqrt(n) / epsilon stars move.

Where those would be many stars for the cells there are, H is drawn by placing bars instead. Which way is taken depends on n and epsilon
alone, and on no rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cached_property, lru_cache
from types import ModuleType

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, PrecisionExhausted, RequestTooLarge
from holdfast.exact import Geometric, UniformComposition
from holdfast.exact.balls import ball, floors, precision
from holdfast.exact.compiled import loops_for
from holdfast.exact.law import check_memory
from holdfast.exact.parameters import exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import is_below
from holdfast.exact.table import TableSampler
from holdfast.randomness import Words

ONE_WORD_BOUND = 1 << 30
"""Up to this bound a cell and a weight are read from one word, above from two."""

_WHOLE = 1 << 32


def one_sum_laplace_oracle(
    cells: int,
    geometric: TableSampler,
    accept_probability: Callable[[int], Callable[[], arb]],
    words: Words,
    one_word_bound: int = ONE_WORD_BOUND,
) -> list[int]:
    """One draw of P[z] proportional to exp(-epsilon |z|_1), sum of z = 0.

    Given:       the table of the geometric law of that epsilon, and for a total its probability of being accepted (`OneSumLaplace`).
                 `one_word_bound` is another number in tests only.
    Guarantees:  exact; the same words in the same order as the compiled loop.
    """
    other: list[int] | None = None
    while True:
        proposal = draw_geometrics(cells, geometric, words)
        if accepts(accept_probability(sum(proposal)), words):
            break
        other = proposal
    if other is None:
        other = draw_geometrics(cells, geometric, words)
    move_total(other, sum(proposal), words, one_word_bound)
    return [g - h for g, h in zip(proposal, other, strict=True)]


def draw_geometrics(cells: int, geometric: TableSampler, words: Words) -> list[int]:
    """Independent geometric values, one word each."""
    places = np.arange(words.position, words.position + cells)
    values: list[int] = (geometric.first + geometric.index(words.take(cells), places, words)).tolist()
    return values


def accepts(probability: Callable[[], arb], words: Words) -> bool:
    """A coin of this probability: one word, and more bits of it where it leaves the question open."""
    index = words.position
    return is_below(int(words.take(1)[0]), 32, probability, words, index)


def move_total(stars: list[int], target: int, words: Words, one_word_bound: int) -> None:
    """Turn a uniform composition of its total into one of the target, one star at a time, in place."""
    total, largest = sum(stars), max(stars)
    gain = 1 if total < target else 0
    step = 1 if total < target else -1
    while total != target:
        cell = weighted_cell(stars, gain, largest + gain, words, one_word_bound)
        stars[cell] += step
        largest = max(largest, stars[cell])
        total += step


def weighted_cell(stars: list[int], gain: int, bound: int, words: Words, one_word_bound: int) -> int:
    """A cell with probability proportional to stars + gain, none of which exceeds the bound: uniform cells until one is kept."""
    while True:
        place = uniform_place(len(stars), bound, words, one_word_bound)
        if place is not None and place[1] < stars[place[0]] + gain:
            return place[0]


def uniform_place(cells: int, bound: int, words: Words, one_word_bound: int) -> tuple[int, int] | None:
    """A uniform pair (cell below cells, number below bound), or None for words of an incomplete last round."""
    if cells * bound <= one_word_bound:
        joint = multiply_word(cells * bound, words)
        return None if joint is None else divmod(joint, bound)
    cell, number = multiply_word(cells, words), multiply_word(bound, words)
    return None if cell is None or number is None else (cell, number)


def multiply_word(size: int, words: Words) -> int | None:
    """floor(word size / 2^32), uniform below size once words whose remainder is below 2^32 mod size are thrown away (None)."""
    value, rest = divmod(int(words.take(1)[0]) * size, _WHOLE)
    return None if rest < _WHOLE % size else value


BUFFER_WORDS = 1 << 14
"""64 KB of keystream at a time, as in exact/table.py."""
COLD_CELLS = 1 << 12
"""Cells in one call that justify loading Numba in a process that has not yet."""
MAX_CELLS = (1 << 31) - 1
"""A cell is chosen with one word."""
MAX_VERDICTS = 1 << 13
"""Most totals whose verdict is tabled; a table of this length takes a twentieth of a second."""
MANY_DRAWS = 64
"""Draws of one sampler from which a table of verdicts pays; before, balls judge each try. The output is the same."""
VERDICT_FLOOR = Fraction(1, 1 << 16)
"""Totals accepted less often than this are not tabled: they are as rare as that, and balls judge them."""
NARROW_POINTS = 250
"""Points of a geometric table up to which values are kept in single bytes."""
NARROW_LIMIT = 255
WIDE_LIMIT = (1 << 30) - 1

_MODULE = "holdfast.samplers._one_sum_compiled"


class OneSumLaplace:
    """The l1 Laplace law on one block whose cells sum to zero.

    Law:         P[z] proportional to exp(-epsilon |z|_1) on {z in Z^cells : sum of z = 0}; one cell gives 0.
    Given:       cells >= 1, epsilon > 0.
    Guarantees:  exact over uniform words; n draws take the words that n single draws would take in turn. At most two tries a draw in
                 expectation, whatever cells and epsilon.
    Reference:   [theory R4]; the slow form is `one_sum_laplace_oracle`.
    """

    name = "geometric vectors and moved stars"
    buffer_words, narrow_limit, one_word_bound = BUFFER_WORDS, NARROW_LIMIT, ONE_WORD_BOUND
    """Tests set others: the first two change the speed alone, the last one how many words a star takes."""

    def __init__(self, cells: int, epsilon: Fraction) -> None:
        self._cells, self.epsilon = exact_integer(cells, "cells"), positive_fraction(epsilon, "epsilon")
        if not 1 <= self._cells <= MAX_CELLS:
            raise InvalidParameter(f"cells must lie between 1 and {MAX_CELLS}. Got {self._cells}.")
        self._geometric = Geometric.of_rate(self.epsilon)
        # A sum of n values passes 2^61 only if one of them passes its share: the check of exact/segments.py, for the sum.
        if self._cells * self._geometric.arms.reach(190 + self._cells.bit_length()) > 1 << 61:
            raise RequestTooLarge(
                "The noise could leave 64-bit integers with probability above 2^-200. Use a larger epsilon: about cells / 10^16 at least."
            )
        self.mode = _mode(self._cells, self.epsilon)
        sampler = self._geometric.sampler()
        # The bars cost the sorting of n numbers, the stars about sqrt(n) / epsilon times the rejections, which grow with log n.
        stars = math.isqrt(self._cells) * self._cells.bit_length()
        self.table = sampler if isinstance(sampler, TableSampler) and stars <= self.epsilon * (32 * self._cells + (1 << 15)) else None
        self._draws = 0

    def __repr__(self) -> str:
        return f"OneSumLaplace(cells={self._cells}, epsilon={self.epsilon})"

    @property
    def cells(self) -> int:
        return self._cells

    @cached_property
    def expected_tries(self) -> float:
        """Sum of q over sum of q^2, in doubles: it informs the plan and nothing else."""
        n, rate = self._cells, float(self.epsilon)
        if n == 1:
            return 1.0
        spread = math.sqrt(n * math.exp(-rate)) / -math.expm1(-rate)
        first, last = max(0, math.floor(self.mode - 13 * spread)), math.ceil(self.mode + 14 * spread + 40 / rate)
        places = range(first, last + 1, max(1, int(spread) // 32))
        logs = np.array([math.lgamma(s + n) - math.lgamma(s + 1) - rate * s for s in places])
        q = np.exp(logs - logs.max())
        return min(2.0, float(q.sum() / (q * q).sum()))

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells)."""
        n = sample_size(n)
        check_memory(n * self._cells)
        if self._cells == 1:
            return np.zeros((n, 1), dtype=np.int64)
        out = np.empty((n, self._cells), dtype=np.int64)
        compiled = loops_for(_MODULE, out.size, COLD_CELLS)  # both ways give the same output
        if self.table is None:
            for row in out:
                row[:] = self._draw_with_bars(words)
        elif compiled is None:
            for row in out:
                row[:] = one_sum_laplace_oracle(self._cells, self.table, self.accept_probability, words, self.one_word_bound)
        else:
            self.draw_compiled(compiled, self.table, out, words)
        return out

    def _draw_with_bars(self, words: Words) -> NDArray[np.int64]:
        """One draw where there are too few stars to repair a second vector: H is a fresh composition of S."""
        while True:
            proposal = self._geometric.draw(self._cells, words)
            total = int(proposal.sum())
            index = words.position
            if is_below(int(words.take(1)[0]), 32, self.accept_probability(total), words, index):
                proposal -= UniformComposition(total, self._cells).draw(1, words)[0]
                return proposal

    def draw_compiled(self, compiled: ModuleType, table: TableSampler, out: NDArray[np.int64], words: Words) -> None:
        """Run the compiled loop, seeing to what it comes back for."""
        quick = self._quick
        scratch: NDArray[np.uint8] | NDArray[np.int32] = np.empty((2, self._cells), dtype=quick.dtype)
        state = np.zeros(compiled.STATE_SIZE, dtype=np.int64)
        state[compiled.ONE_WORD_BOUND] = self.one_word_bound
        whole = np.empty(self._words_wanted(len(out)), dtype=np.uint32)
        chunk = whole[:0]
        self._draws += len(out)
        first, verdicts = self.tabled_verdicts if self._draws >= MANY_DRAWS else (0, np.empty(0, dtype=np.int64))
        tables = table.direct, table.high, table.low, table.shift, verdicts, first
        while True:
            limit = self.narrow_limit if scratch.dtype == np.uint8 else WIDE_LIMIT
            reason = compiled.run(chunk, state, scratch, quick, *tables, limit, out)
            position = int(state[compiled.POSITION])
            index = words.position - len(chunk) + position
            if reason == compiled.WANTS_WORDS or reason == compiled.DONE:
                words.give_back(len(chunk) - position)
                if reason == compiled.DONE:
                    return
                chunk = whole[: self._words_wanted(len(out) - int(state[compiled.ROW]))]
                words.take_into(chunk)
                state[compiled.POSITION] = 0
            elif reason == compiled.OPEN_CELL:
                value = int(table.resolve(chunk[position : position + 1], np.array([index]), words)[0])
                if value >= limit:
                    scratch = self._widen(scratch, value)
                current = state[compiled.CURRENT]
                scratch[current, state[compiled.CELL]] = value
                state[compiled.TOTALS + current] += value
                state[compiled.CELL] += 1
                state[compiled.POSITION] += 1
            elif reason == compiled.OPEN_VERDICT:
                total = int(state[compiled.TOTALS + state[compiled.CURRENT]])
                accepted = is_below(int(chunk[position]), 32, self.accept_probability(total), words, index)
                state[compiled.VERDICT] = compiled.ACCEPTED if accepted else compiled.REJECTED
                state[compiled.POSITION] += 1
            else:
                scratch = self._widen(scratch, limit)

    @cached_property
    def _quick(self) -> NDArray[np.uint8] | NDArray[np.int32]:
        """The direct table in as few bytes as its values need; its last entry is the mark of cells that need a closer look."""
        assert self.table is not None
        assert self.table.first == 0
        assert self.table.drop == 0
        direct = self.table.direct[:-1]
        if len(self.table) <= NARROW_POINTS:
            return np.append(np.where(direct < 0, NARROW_LIMIT, direct), NARROW_LIMIT).astype(np.uint8)
        return np.append(np.where(direct < 0, -1, direct), -1).astype(np.int32)

    def _widen(self, scratch: NDArray[np.uint8] | NDArray[np.int32], value: int) -> NDArray[np.int32]:
        """The same numbers with more room. Above 2^30 there is none left: tables have epsilon >= 45 / 2^16, so e^-700,000 never comes."""
        if scratch.dtype != np.uint8 or value >= WIDE_LIMIT:
            raise PrecisionExhausted("A draw left 30 bits, an event of probability below 2^-1,000,000. Look for a fault in the words.")
        return scratch.astype(np.int32)

    def _words_wanted(self, rows: int) -> int:
        """Words worth taking at once for so many rows; what is not used is given back, so this changes the speed and nothing else."""
        return max(2, min(self.buffer_words, rows * self._row_words + 8))

    @cached_property
    def _row_words(self) -> int:
        """About what one draw takes."""
        return 5 * self._cells // 2 + int(math.isqrt(self._cells) / self.epsilon) * self._cells.bit_length() + 8

    def accept_probability(self, total: int) -> Callable[[], arb]:
        """NB(total) / NB(mode) as a function giving balls."""
        if total == self.mode:
            return lambda: arb(1)

        def ratio() -> arb:
            # Logarithms of factorials are large and nearly cancel: 2^70 at most, so 96 more bits keep the precision asked for.
            with precision(ctx.prec + 96):
                difference = _log_ways(self._cells, total) - _log_ways_kept(self._cells, self.mode, ctx.prec)
                return (difference - ball(self.epsilon) * (total - self.mode)).exp()

        return ratio

    @cached_property
    def tabled_verdicts(self) -> tuple[int, NDArray[np.int64]]:
        """(first total, floor(NB(total) / NB(mode) 2^32) for the totals around the mode); -1 where the floor is in doubt.

        A word below the floor accepts, above it rejects, equal to it leaves the verdict open. Empty where the totals are too many.
        """
        n, mode = self._cells, self.mode
        if 10 * math.isqrt(n) + 14 > self.epsilon * MAX_VERDICTS:
            return 0, np.empty(0, dtype=np.int64)
        with precision(256):
            a = (-ball(self.epsilon)).exp()
            above, below = [], []
            q, total = arb(1), mode
            while q > ball(VERDICT_FLOOR):
                above.append(_floor(q) if total > mode else 1 << 32)
                total += 1
                q *= a * (total + n - 1) / total
            q, total = arb(1), mode
            while total > 0:
                q *= total / (a * (total + n - 1))
                total -= 1
                if not q > ball(VERDICT_FLOOR):
                    break
                below.append(_floor(q))
        return mode - len(below), np.array(below[::-1] + above, dtype=np.int64)


def _mode(cells: int, epsilon: Fraction) -> int:
    """The s that maximises NB(s): NB(s) / NB(s - 1) = a (s + n - 1) / s >= 1 as long as s <= (n - 1) / (e^epsilon - 1).

    That bound is irrational for n > 1, so its floor is certain at some precision.
    """
    if epsilon > 64:  # e^64 > MAX_CELLS; far larger ones would leave the range of balls
        return 0
    lowest, highest = floors(lambda: (cells - 1) / ball(epsilon).expm1(), 256)
    if lowest != highest:
        raise PrecisionExhausted("The most probable total could not be told from its neighbour. Use an epsilon with fewer digits.")
    return lowest


def _log_ways(cells: int, total: int) -> arb:
    """Logarithm of (total + cells - 1)! / total!, which is C(total + cells - 1, total) up to a factor the same for all totals."""
    return arb(total + cells).lgamma() - arb(total + 1).lgamma()


@lru_cache(maxsize=64)
def _log_ways_kept(cells: int, total: int, bits: int) -> arb:
    """The same, kept for the mode, which every verdict needs; `bits` is the precision at the call."""
    return _log_ways(cells, total)


def _floor(q: arb) -> int:
    """floor(q 2^32), or -1 where the ball does not tell."""
    floor = (q * arb(2) ** 32).floor().unique_fmpz()
    return -1 if floor is None else int(floor)
