"""Gaussian noise on a grid with any number of axes whose sums along every axis are zero: cell by cell, exact, linear time.

Legend: shape (n_1, ..., n_K); R_k = n_k - i_k, what remains along axis k at cell (i_1, ..., i_K), this cell included. K = 1 is one sum.

Cells are drawn in C order. Given the cells before it, a cell of the continuous Gaussian on the grid has variance sigma_squared f with
f = prod (R_k - 1) / R_k, and centre c = -N_K / prod R_k from integers alone: N_0 = 0, N_k = R_k N_{k-1} + E_k[i_{k+1}, ..., i_K], where
afterwards E_k += (prod_{l<k} R_l) z + N_{k-1}, and E_k starts from zero with every new slice of the axes before k ([theory R7] (g)).
Where some R_k = 1 the cell is forced: z = c, an integer.

One cell, law N_Z(c, s^2), s^2 = f sigma_squared. With c0 = floor(c + 1/2), d = c - c0: propose z = c0 + p, p from the fixed centred law
with parameter g sigma_squared, g > 1, and accept with probability exp(-t),

    t = (g - f) / (2 sigma_squared g f) (p - g d / (g - f))^2,

the ratio of the two weights divided by its supremum over real p (a square, so t >= 0, and nothing is lost but a constant).

The block is kept with probability prod theta_{s_j}(c_j) / theta_{s_j}(0), else the WHOLE block is drawn anew.

Words. k proposals are drawn by the exact engine, then k accept words are taken; pairs (proposal, accept word) are used in order, by cells
and by the step that keeps or throws away a block (of whose pair only the word is used), across blocks and across the n draws of a call.
k is a function of what is left to draw, so that output is a function of the words alone; pairs left over at the end are not used.

Error of the doubles. g and g - 1 are exact. d comes from an exact integer remainder; d, f and g - f = (g - 1) + (1 - f), 1 - f a sum of
positive terms, have relative errors below 2^-50. With x = (g - f) p - g d and t = M x^2 the error of t is at most
2^-47 (t + sqrt(t) sqrt(M) g |d|), and sqrt(M) g |d| < 2.9 / sqrt(sigma_squared f) for every g in use, with f >= 2^-K: times exp(-t)
this stays below 2^-42 for sigma_squared f >= 2^-8, which is checked. exp adds less than 2^-51. BAND = 2^-40 covers it; what it leaves
open is settled with exact rationals and balls.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cached_property
from itertools import product as cartesian

import numpy as np
from flint import arb
from numpy.typing import ArrayLike, NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball
from holdfast.exact.compiled import loops_for
from holdfast.exact.law import Sampler, check_memory
from holdfast.exact.parameters import exact_integer, positive_fraction, sample_size
from holdfast.exact.predicates import BAND, is_below
from holdfast.randomness.words import Words
from holdfast.samplers.theta import log_theta3, log_theta_error, log_theta_ratio, theta_ratio_ball

CHUNK_PAIRS = 1 << 15
"""Most pairs drawn at a time: 400 KB, which stays in the second-level cache."""
CLOSE_TO_ONE = 0.0005
"""Bounds of the tries, as logarithms, below which nothing sharper is computed."""
ROW_NEAR = 1 << 16
"""Cells of a row whose variances count separately in expected tries."""
SMALL_DRAW = 1 << 11
"""Cells up to which exact rationals in Python are faster than loading Numba."""
LEAST_CELL_VARIANCE = Fraction(1, 1 << 8)
"""Below this a cell's noise is zero except with probability e^-100, and the doubles' error would near the band."""

_COMPILED = "holdfast.samplers._sequential_compiled"


def stretch_for(sigma_squared: Fraction) -> tuple[Fraction, int]:
    """(g, s): the proposal's variance is g times sigma_squared; about one pair in s is rejected.

    The best g is near 1 + .29 / sigma (maximise g^(-1/2) E exp(-d^2 / (2 sigma_squared (g - 1))), d uniform); a few values of few bits
    keep g and g - 1 exact as doubles.
    """
    for below, denominator, share in ((4, 4, 3), (64, 8, 6), (1024, 32, 20)):
        if sigma_squared < below:
            return 1 + Fraction(1, denominator), share
    return 1 + Fraction(1, 64), 40


def check_reach(cells: int, axes: int, sigma_squared: Fraction) -> None:
    """Refuse what could leave 64-bit integers.

    The law is sub-Gaussian with proxy sigma in every direction ([theory R7]), and z, c and every N_k / prod R are values of linear forms of
    norm at most one: none exceeds `reach` with probability above 2^-200. The integers held are at most 4 cells reach.
    """
    nats = 139 + (16 * cells * (axes + 1)).bit_length()
    reach = math.isqrt(int(2 * sigma_squared * nats)) + 2
    if reach >= 1 << 50 or 8 * cells * reach >= 1 << 62:
        raise RequestTooLarge(
            f"A Gaussian on {cells} cells with sigma_squared about {float(sigma_squared):.3g} could leave 64-bit integers. "
            "Use fewer cells in a block or less noise."
        )


class SequentialGaussian:
    """Gaussian noise on one sum or a grid, cell by cell.

    Law:         P[z] proportional to exp(-|z|_2^2 / (2 sigma_squared)) on integer arrays of the given shape whose sums along every axis
                 are all zero.
    Given:       every axis has at least two places; sigma_squared >= 2^(axes - 8).
    Guarantees:  exact; time linear in the cells, times `expected_tries`.
    Reference:   [theory R6], [theory R7]; the module's text.

    `band` and `chunk_pairs` exist for tests: a wide band changes nothing, another chunk changes which word serves what.
    """

    name = "sequential Gaussian"

    def __init__(self, shape: tuple[int, ...], sigma_squared: Fraction, *, band: float = BAND, chunk_pairs: int = CHUNK_PAIRS) -> None:
        self.shape = tuple(exact_integer(n, "an axis") for n in shape)
        self.sigma_squared = positive_fraction(sigma_squared, "sigma_squared")
        if not self.shape or min(self.shape) < 2:
            raise InvalidParameter(f"Every axis must have at least two places. Got shape {self.shape}: nothing is left to draw.")
        self.cells = math.prod(self.shape)
        self.axes = len(self.shape)
        if self.sigma_squared < LEAST_CELL_VARIANCE * 2**self.axes:
            raise InvalidParameter(
                f"sigma_squared must be at least {LEAST_CELL_VARIANCE * 2**self.axes} for {self.axes} axes: "
                "below, nearly all noise would be zero. Use more noise."
            )
        check_reach(self.cells, self.axes, self.sigma_squared)
        self._stretch, self._share = stretch_for(self.sigma_squared)
        self._proposal = DiscreteGaussian(self._stretch * self.sigma_squared)
        self._band, self._chunk_pairs = band, chunk_pairs
        self._free = math.prod(n - 1 for n in self.shape)

    def __repr__(self) -> str:
        return f"SequentialGaussian(shape={self.shape}, sigma_squared='{self.sigma_squared}')"

    @cached_property
    def _proposal_sampler(self) -> Sampler:
        """The proposal's sampler, found once: looking up a law by its exact parameters costs more than a small draw."""
        return self._proposal.sampler()

    @cached_property
    def expected_tries(self) -> float:
        """Expected whole-block tries for one draw. One sum: their value in doubles. Grids: the proven bound of theta.tries_bound."""
        if self.axes == 1:
            return one_sum_tries(self.cells, self.sigma_squared)
        shares = [1 - 1 / np.arange(n, 1, -1) for n in self.shape]
        total = 0.0
        lines = math.prod(n - 1 for n in self.shape[:-1])
        step = max(1, (1 << 20) // self.shape[-1])
        for begin in range(0, lines, step):
            places = np.unravel_index(np.arange(begin, min(begin + step, lines)), [n - 1 for n in self.shape[:-1]])
            of_lines = math.prod((share[place] for share, place in zip(shares, places, strict=False)), start=np.ones(1))
            total += float(log_theta3(float(self.sigma_squared) * np.multiply.outer(of_lines, shares[-1])).sum())
        return math.exp(total) if total < 700 else math.inf

    def draw(self, n: int, words: Words) -> NDArray[np.int64]:
        """n independent draws, shape (n, cells), cells in C order."""
        n = sample_size(n)
        check_memory(n * self.cells)
        return self.draw_slowly(n, words) if loops_for(_COMPILED, n * self.cells, SMALL_DRAW) is None else self.draw_compiled(n, words)

    def draw_compiled(self, n: int, words: Words) -> NDArray[np.int64]:
        importlib.import_module("holdfast.exact._compiled")  # so that proposals, too, are drawn by compiled loops
        loops = importlib.import_module(_COMPILED)
        out = np.empty((n, self.cells), dtype=np.int64)
        length = self.shape[-1]
        sizes = np.array([math.prod(self.shape[k + 1 :]) for k in range(self.axes - 1)], dtype=np.int64)
        offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        sums = np.zeros(int(offsets[-1]) + 1, dtype=np.int64)
        ahead = np.zeros(length if self.axes > 1 else 1, dtype=np.int64)
        workspace = (np.array(self.shape), sizes, offsets, sums, ahead, -1 if self.axes > 1 else 0, np.empty_like(ahead))
        remaining = np.ones(self.axes, dtype=np.int64)
        state, losses = np.zeros(loops.STATE_SIZE, dtype=np.int64), np.zeros(1)
        state[loops.CELL] = state[loops.KNOWN_PAIR] = -1
        pairs = ProposalPairs(self._proposal_sampler, self._share, self._chunk_pairs, words)
        while True:
            status = loops.draw_blocks(out, *workspace, remaining, self._constants, pairs.proposals, pairs.accepts, state, losses)
            if status == loops.DONE:
                return out
            row, line, cell, total, pair = (int(state[i]) for i in range(5))
            if status == loops.NEED_PAIRS:
                # At a block's end `line` lies beyond the last one, and CELL is -1 where a line has not begun.
                pairs.refill((n - row) * (self._free + 1) - self._free_before(line, max(cell, 0)))
                state[loops.PAIR], state[loops.KNOWN_PAIR] = 0, -1
                continue
            if status == loops.OPEN_PAIR:
                r = [int(v) for v in remaining[: self.axes - 1]] + [length - cell]
                numerator = r[-1] * int(ahead[cell if self.axes > 1 else 0]) + total
                below = self._is_accepted(r, numerator, pairs, pair)
            else:
                below = self._is_kept(out[row].tolist(), pairs, pair)
            state[loops.KNOWN_PAIR], state[loops.KNOWN_VERDICT] = pair, 1 if below else -1

    @cached_property
    def _constants(self) -> NDArray[np.float64]:
        """sigma_squared, g, 1 / (2 sigma_squared g), band of a cell, band of a block."""
        smallest = float(self.sigma_squared) / 2**self.axes
        # Sums of doubles add less than 2^-52 a term, relative to exp(-sum) times the sum, which is below one.
        error = self.cells * (float(log_theta_error(smallest)) + 2.0**-52)
        half = float(1 / (2 * self.sigma_squared * self._stretch))
        return np.array([float(self.sigma_squared), float(self._stretch), half, self._band, self._band + 2 * error])

    def _free_before(self, line: int, cell: int) -> int:
        """Cells already drawn by a pair in this block, at cell `cell` of a line."""
        lines = math.prod(self.shape[:-1])
        if line >= lines:
            return self._free
        count, places = 0, np.unravel_index(line, self.shape[:-1]) if self.axes > 1 else ()
        for k, place in enumerate(places):
            count += int(place) * math.prod(n - 1 for n in self.shape[k + 1 :])
            if place == self.shape[k] - 1:
                return count
        return count + min(cell, self.shape[-1] - 1)

    def draw_slowly(self, n: int, words: Words) -> NDArray[np.int64]:
        """The same draws from the same words without floating point: the oracle of `draw`."""
        pairs = ProposalPairs(self._proposal_sampler, self._share, self._chunk_pairs, words)
        out = np.empty((n, self.cells), dtype=np.int64)
        for row in range(n):
            while True:
                z: list[int] = []
                free = 0
                for r, numerator in self._walk(z):
                    if min(r) == 1:
                        assert numerator % math.prod(r) == 0
                        z.append(-numerator // math.prod(r))
                        continue
                    base = math.floor(Fraction(-numerator, math.prod(r)) + Fraction(1, 2))
                    while True:
                        pair = pairs.next_pair((n - row) * (self._free + 1) - free)
                        if self._is_accepted(r, numerator, pairs, pair):
                            break
                    z.append(base + int(pairs.proposals[pair]))
                    free += 1
                if self._is_kept(z, pairs, pairs.next_pair((n - row) * (self._free + 1) - free)):
                    break
            out[row] = z
        return out

    def _walk(self, z: list[int]) -> Iterator[tuple[list[int], int]]:
        """For each cell in turn (R_1..R_K, N_K); the caller has appended a cell's value to z before asking for the next."""
        sums: list[dict[tuple[int, ...], int]] = [{} for _ in self.shape]
        for place in cartesian(*(range(n) for n in self.shape)):
            r = [n - i for n, i in zip(self.shape, place, strict=True)]
            chain = [0]
            for k in range(self.axes):
                if place[k] == 0:
                    sums[k][place[k + 1 :]] = 0
                chain.append(r[k] * chain[-1] + sums[k][place[k + 1 :]])
            yield r, chain[-1]
            for k in range(self.axes):
                sums[k][place[k + 1 :]] += math.prod(r[:k]) * z[-1] + chain[k]

    def centers(self, z: list[int]) -> list[tuple[Fraction, Fraction]]:
        """(centre, variance) of every cell that is not forced, given the cells before it: exact rationals."""
        listed, seen = [], list[int]()
        for (r, numerator), value in zip(self._walk(seen), z, strict=True):
            if min(r) > 1:
                share = math.prod((Fraction(k - 1, k) for k in r), start=Fraction(1))
                listed.append((Fraction(-numerator, math.prod(r)), self.sigma_squared * share))
            seen.append(value)
        return listed

    def _is_accepted(self, r: list[int], numerator: int, pairs: ProposalPairs, pair: int) -> bool:
        """Whether a cell takes its proposal, in exact arithmetic; N_K = numerator."""
        center = Fraction(-numerator, math.prod(r))
        d = center - math.floor(center + Fraction(1, 2))
        f = math.prod((Fraction(k - 1, k) for k in r), start=Fraction(1))
        return pairs.accepts_exactly(pair, self.sigma_squared, self._stretch, f, d)

    def _is_kept(self, z: list[int], pairs: ProposalPairs, pair: int) -> bool:
        """Whether a block is kept, in exact arithmetic."""
        centers = self.centers(z)
        return pairs.is_below(pair, lambda: math.prod((theta_ratio_ball(s_squared, c) for c, s_squared in centers), start=arb(1)))


class ProposalPairs:
    """Proposals with their accept words, in chunks."""

    def __init__(self, proposal: DiscreteGaussian | Sampler, share: int, most: int, words: Words) -> None:
        self._proposal, self._share, self._most = proposal, share, most
        self._words = words
        self._begin = self._used = 0
        self.proposals = np.empty(0, dtype=np.int64)
        self.accepts = np.empty(0, dtype=np.uint32)

    def refill(self, left: int) -> None:
        """New pairs, enough for about `left` accepted ones if a chunk can hold them."""
        count = min(self._most, left + left // self._share + 32)
        self.proposals = self._proposal.draw(count, self._words)
        self._begin = self._words.position
        self.accepts = self._words.take(count)
        self._used = 0

    def next_pair(self, left: int) -> int:
        if self._used == len(self.proposals):
            self.refill(left)
        self._used += 1
        return self._used - 1

    def accepts_exactly(self, pair: int, sigma_squared: Fraction, g: Fraction, f: Fraction, d: Fraction) -> bool:
        """Whether a proposal is taken, by the exponent t of the module's text."""
        t = (g - f) / (2 * sigma_squared * g * f) * (int(self.proposals[pair]) - g * d / (g - f)) ** 2
        return self.is_below(pair, lambda: (-ball(t)).exp())

    def is_below(self, pair: int, real: Callable[[], arb]) -> bool:
        """Whether the uniform of a pair is below a real number, exactly; further bits are those of its accept word."""
        return is_below(int(self.accepts[pair]), 32, real, self._words, self._begin + pair)


def one_sum_tries(cells: int, sigma_squared: Fraction) -> float:
    """prod theta_{s_j}(0) / (theta_sigma(0)^n P[a sum of n independent N_Z(0, sigma_squared) is 0]) in doubles, for plans.

    The characteristic function of N_Z(0, sigma_squared) at 2 pi t is itself a theta ratio, of centre t and s^2 = 1 / (4 pi^2
    sigma_squared); P is the integral of its n-th power over one period. The variances multiply to sigma_squared^(n-1) / n.
    """
    variance = float(sigma_squared)
    bound = _log_one_sum_bound(cells, variance)
    if bound < CLOSE_TO_ONE:
        return math.exp(bound)

    def log_kernel(t: ArrayLike) -> NDArray[np.float64]:
        return cells * log_theta_ratio(1 / (4 * math.pi**2 * variance), t)

    low, high = 0.0, 0.5
    if log_kernel(0.5) < -50:
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if log_kernel(middle) > -50 else (low, middle)
    values = np.exp(log_kernel(np.linspace(0, high, 4097)))
    log_chance = math.log(2 * high * (float(values.sum()) - (values[0] + values[-1]) / 2) / 4096)
    total = -float(log_theta3(variance)) * cells - 0.5 * math.log(2 * math.pi * variance * cells) - log_chance + bound
    return math.exp(total) if total < 700 else math.inf


def _log_one_sum_bound(cells: int, variance: float) -> float:
    """Logarithm of prod theta3(exp(-2 pi^2 s_j^2)), s_j^2 = variance (1 - 1/j), j = 2 .. cells; far along the row all s_j are as one."""
    near = min(cells, ROW_NEAR)
    total = float(log_theta3(variance * (1 - 1 / np.arange(2, near + 1))).sum())
    return total + (cells - near) * float(log_theta3(variance * (1 - 1 / near)))
