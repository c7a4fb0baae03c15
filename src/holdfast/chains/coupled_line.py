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
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.line import KINDS, TOO_LARGE, Line, energy_of, limit_message
from holdfast.chains.moves import Move
from holdfast.chains.pairing import draw_maximal, draw_quantile
from holdfast.chains.protocol import CoupledInfo, State, StatePair
from holdfast.chains.words_in_steps import run_steps
from holdfast.errors import RequestTooLarge
from holdfast.randomness import Words

if TYPE_CHECKING:
    from holdfast.chains.line_gibbs import LineGibbs


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
        target = self.kernel.target
        values = [state if target.forms is None else target.values(state) for state in (x, y)]
        energies = np.zeros(2, dtype=np.int64)
        differ = np.zeros(1, dtype=np.int64)
        compiled = self._compiled_run(x, y, values[0], values[1], energies, differ)

        def refresh() -> None:
            for place, (state, held) in enumerate(zip((x, y), values, strict=True)):
                if held is not state:
                    held[:] = target.values(state)
                energies[place] = energy_of(target, held) if target.decay.kind == "norm" else 0
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
        self, x: State, y: State, x_values: State, y_values: State, energies: State, differ: State
    ) -> Callable[[NDArray[np.uint32], int], tuple[int, int, int]]:
        from holdfast.chains import _line_compiled as compiled

        kernel = self.kernel
        scratch = kernel.scratch()
        other_line, other_sums = scratch[5].copy(), scratch[6].copy()
        residual = np.empty(4 * scratch[6].shape[1])
        kind, rate = KINDS[kernel.target.decay.kind], kernel.target.decay.rate_double

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.run_coupled(
                chunk,
                wanted,
                x,
                y,
                x_values,
                y_values,
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
