"""Two line Gibbs chains that share their moves and are made to meet.

Legend: the chains are at x and y, d = x - y, the shared move is u; they go to x + t u and y + t' u, so that d becomes d - (t' - t) u. The
integers s for which |d - s u|_1 is least form an interval [s0, s1].

    s0 < s1     several differences t' - t are equally good: t and t' by the quantile pairing, which keeps close to all of them. For moves
                of two cells under like, log-concave cell weights |d|_1 never grows: given the two cells' sum S the law of either cell
                rises with S, by no more than S does, so that afterwards both differences have the sign of their sum.
    s0 = s1     one difference is best: t' - s0 and t by the maximal pairing, equal as often as possible.

Which of the two is a function of the states and the move, in integers; never of the words that draw t. So each chain alone keeps the
kernel's law. Words of a step: the move's, then one (quantile) or three (maximal). Identical chains make one step together.

How doubles decide: as in line_gibbs.py; the maximal pairing's coin compares with q(x) / p(x), whose relative error is below 2^-44; its
residual law has an absolute error below 2^-46 before it is divided by its total R (the distance of the two laws), so that the band is
widened to 2^-45 / R, and words are left open where R is below 2^-24.

Two integer laws drawn together: equal as often as possible, or as close as possible.

    maximal    x from p; then y = x with probability min(1, q(x) / p(x)), else y from the residual (q - p)+. P[x != y] is the total
               variation distance, which no pairing undercuts. Three words.
    quantile   both by inverse distribution function from the same word. E|x - y| is the least possible. One word.

Each side alone has exactly its own law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from holdfast.chains.line import KINDS, TOO_LARGE, Line, draw_point, limit_message
from holdfast.chains.moves import Move
from holdfast.chains.protocol import CoupledInfo, State, StatePair
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import RequestTooLarge
from holdfast.exact.balls import ball
from holdfast.exact.predicates import is_below
from holdfast.exact.weights import FixedWeights, WeightSource
from holdfast.randomness import Words

if TYPE_CHECKING:
    from holdfast.chains.line_gibbs import LineGibbs

_GUARD = 40
_SPARE = 64
"""Bits beyond those asked for, before the residual's total is looked at."""


def draw_maximal(p: WeightSource, q: WeightSource, words: Words) -> tuple[int, int]:
    """One pair by the maximal pairing; three words, whether they are needed or not."""
    x = draw_point(p, words)
    index = words.position
    coin = int(words.take(1)[0])
    last = words.position
    words.take(1)
    if is_below(coin, 32, _overlap(p, q, x), words, index):
        return x, x
    words.give_back(1)
    y = draw_point(Residual(q, p), words)
    assert words.position == last + 1
    return x, y


def draw_quantile(p: WeightSource, q: WeightSource, words: Words) -> tuple[int, int]:
    """One pair by the quantile pairing; one word."""
    x = draw_point(p, words)
    words.give_back(1)
    return x, draw_point(q, words)


class Residual:
    """Law:  P[y] proportional to max(0, q(y) - p(y)), both normalised. Implements `weights.WeightSource`.

    Given:  p and q differ, or nothing is left to draw from.
    """

    def __init__(self, q: WeightSource, p: WeightSource) -> None:
        self._q, self._p = q, p

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        spare = _SPARE
        while True:
            bounds = self.bounds(bits + guard + spare)
            if sum(bounds.lows) >> (bits + guard + 2) >= max(1, bounds.left_tail[1] + bounds.right_tail[1]):
                return bounds
            spare *= 2  # the laws are so close that little of the precision is left

    def bounds(self, working: int) -> FixedWeights:
        q, p = self._q.fixed_weights(working, _GUARD), self._p.fixed_weights(working, _GUARD)
        first = min(q.first, p.first)
        last = max(q.first + len(q.lows), p.first + len(p.lows))
        lows, highs = [], []
        for k in range(first, last):
            q_low, q_high = _mass_bounds(q, k, working)
            p_low, p_high = _mass_bounds(p, k, working)
            lows.append(max(0, q_low - p_high))
            highs.append(max(0, q_high - p_low))
        total = _total(q)[0]
        tails = tuple((0, -((-high << working) // total)) for _, high in (q.left_tail, q.right_tail))
        return FixedWeights(first, lows, highs, tails[0], tails[1])


def _overlap(p: WeightSource, q: WeightSource, x: int) -> Callable[[], arb]:
    """q(x) / p(x), at most one, as a ball at flint's current precision."""

    def real() -> arb:
        working = ctx.prec
        p_low, p_high = _mass_bounds(p.fixed_weights(working, _GUARD), x, working)
        q_low, q_high = _mass_bounds(q.fixed_weights(working, _GUARD), x, working)
        one = Fraction(1)
        high = one if p_low == 0 else min(one, Fraction(q_high, p_low))
        return ball(min(one, Fraction(q_low, max(p_high, 1)))).union(ball(high))

    return real


def _total(weights: FixedWeights) -> tuple[int, int]:
    low = sum(weights.lows) + weights.left_tail[0] + weights.right_tail[0]
    high = sum(weights.highs) + weights.left_tail[1] + weights.right_tail[1]
    return low, high


def _mass_bounds(weights: FixedWeights, k: int, working: int) -> tuple[int, int]:
    """Bounds of the probability of k in units of 2^-working."""
    total_low, total_high = _total(weights)
    place = k - weights.first
    if 0 <= place < len(weights.lows):
        low, high = weights.lows[place], weights.highs[place]
    else:
        low, high = 0, (weights.left_tail if place < 0 else weights.right_tail)[1]
    return (low << working) // total_high, -((-high << working) // total_low)


@dataclass(frozen=True, eq=False)
class CoupledLine:
    """Law:         each chain alone is the kernel's; see the module's text for how they hang together.

    Guarantees:  `run` equals repeated `step` on the same words, and stops after the first step at which the chains are identical.
    """

    kernel: LineGibbs

    def step(self, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        x, y = self._check_pair(pair)
        kernel = self.kernel
        if np.array_equal(x, y):
            x, _ = kernel.step(x, words)
            return StatePair(x, x), CoupledInfo(1, True)
        move = kernel.moves.pick(words)
        low, high = best_shifts(x, y, move)
        p, q = kernel.line(x, move), kernel.line(y, move)
        if low < high:
            t, s = draw_quantile(p, q, words)
        else:
            t, s = draw_maximal(p, shift_line(q, low), words)
            s += low
        return _met(StatePair(kernel.move_state(x, move, t), kernel.move_state(y, move, s)))

    def run(self, pair: StatePair, most: int, words: Words) -> tuple[StatePair, CoupledInfo]:
        if most <= 0 or np.array_equal(*self._check_pair(pair)):
            pair, info = self.step(pair, words) if most > 0 else _met(self._check_pair(pair))
            return pair, info if most > 0 else CoupledInfo(0, info.identical)
        x, y = (np.array(state) for state in pair)
        energies = np.zeros(2, dtype=np.int64)
        differ = np.zeros(1, dtype=np.int64)
        compiled = self._compiled_run(x, y, energies, differ)

        def refresh() -> None:
            energies[:] = [self.kernel.energy_under_root(state) for state in (x, y)]
            differ[0] = np.count_nonzero(x != y)

        def exact_step() -> bool:
            (x[:], y[:]), info = self.step(StatePair(x.copy(), y.copy()), words)
            refresh()
            return info.identical

        refresh()
        made = run_steps(compiled, exact_step, most, words)
        met, info = _met(StatePair(x, y))
        return met, CoupledInfo(made, info.identical)

    def _check_pair(self, pair: StatePair) -> StatePair:
        for state in pair:
            self.kernel.check_state(state)
        return pair

    def _compiled_run(
        self, x: State, y: State, energies: State, differ: State
    ) -> Callable[[NDArray[np.uint32], int], tuple[int, int, int]]:
        from holdfast.chains import _line_compiled as compiled

        kernel = self.kernel
        scratch = kernel.scratch()
        other_line, other_sums = scratch[2].copy(), scratch[3].copy()
        residual = np.empty(4 * scratch[3].shape[1])
        kind, rate = KINDS[kernel.target.decay.kind], kernel.target.decay.rate_double

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.run_coupled(
                chunk,
                wanted,
                x,
                y,
                energies,
                differ,
                kernel.move_arrays,
                kernel.target_arrays,
                scratch,
                (other_line, other_sums, residual),
                kernel.moves.words_per_pick,
                kind,
                rate,
                kernel.band,
                kernel.limit,
            )
            if code == TOO_LARGE:
                raise RequestTooLarge(limit_message(kernel.limit))
            return made, used, code

        return loop


def best_shifts(x: State, y: State, move: Move) -> tuple[int, int]:
    """The least and the greatest s of the integers for which |x - y - s u|_1 is least."""
    parts = list(zip((x[move.cells] - y[move.cells]).tolist(), move.coefficients.tolist(), strict=True))

    def slope(s: int) -> int:
        return sum(abs(d - (s + 1) * u) - abs(d - s * u) for d, u in parts)

    start, stop = min(d // u for d, u in parts) - 1, max(-(-d // u) for d, u in parts) + 1
    return _first(start, stop, lambda s: slope(s) >= 0), _first(start, stop, lambda s: slope(s) > 0)


def _first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first integer from `low` on for which a property holds that holds from somewhere on, and at `high`."""
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def shift_line(line: Line, shift: int) -> Line:
    """The law of t - shift."""
    return replace(
        line,
        values=tuple(v + shift * s for v, s in zip(line.values, line.steps, strict=True)),
        first=None if line.first is None else line.first - shift,
        last=None if line.last is None else line.last - shift,
    )


def _met(pair: StatePair) -> tuple[StatePair, CoupledInfo]:
    if np.array_equal(*pair):
        return StatePair(pair.first, pair.first), CoupledInfo(1, True)
    return pair, CoupledInfo(1, False)
