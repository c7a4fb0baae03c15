"""Two Metropolis chains that propose the same as often as they can, and accept by the same uniform.

In each coordinate the two jump laws, centred on v_j and on w_j, are paired maximally:

    X = v_j + e;  Y = X with probability min(1, eta(X - w_j) / eta(X - v_j)) = a^max(0, |X - w_j| - |X - v_j|);
    otherwise Y = w_j + e', redrawn until a coin of probability a^max(0, |Y - v_j| - |Y - w_j|) shows tails.

Coordinates in which the chains agree always propose the same. A coin that must show heads takes no word. So two identical chains read the
words of one chain, and stay identical.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from flint import arb
from numpy.typing import NDArray

from holdfast.chains.protocol import CoupledInfo, StatePair
from holdfast.chains.words_in_steps import run_steps
from holdfast.exact.balls import floors
from holdfast.exact.parameters import sample_size
from holdfast.exact.predicates import is_below
from holdfast.randomness import Words

if TYPE_CHECKING:
    from holdfast.chains.metropolis import Metropolis


@dataclass(frozen=True, eq=False)
class CoupledMetropolis:
    """Two chains of one kernel.

    Law:         each chain alone moves by the kernel's law; jumps paired as above, then one uniform for both accept decisions.
    Guarantees:  exact over uniform words; how many of them a step reads varies. Identical chains stay identical.
    Reference:   [DGGY22] Algorithm 2; [theory T21], [theory T46].
    """

    kernel: Metropolis

    def __post_init__(self) -> None:
        _ = self.coins  # made once, here: threads that share the kernel would each make it again

    def step(self, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        """One coupled transition, every decision in integers and balls."""
        kernel = self.kernel
        v, w = kernel.entering(pair.first), kernel.entering(pair.second)
        if np.array_equal(v, w):
            state, _ = kernel.step(v, words)
            return StatePair(state, state), CoupledInfo(1, True)
        proposed = [self._propose(int(x), int(y), words) for x, y in zip(v, w, strict=True)]
        first = kernel.check_state(np.array([x for x, _ in proposed], dtype=np.int64))
        second = kernel.check_state(np.array([y for _, y in proposed], dtype=np.int64))
        index = words.position
        cell = int(words.take(1)[0])
        v = first if kernel.accepts(v, first, cell, words, index) else v
        w = second if kernel.accepts(w, second, cell, words, index) else w
        identical = np.array_equal(v, w)
        return StatePair(v, v if identical else w), CoupledInfo(1, identical)

    def _propose(self, v: int, w: int, words: Words) -> tuple[int, int]:
        """Proposals of one coordinate for both chains."""
        jump = int(self.kernel.sampler.draw(1, words)[0])
        x = v + jump
        if self._heads(abs(x - w) - abs(jump), words):
            return x, x
        while True:
            jump = int(self.kernel.sampler.draw(1, words)[0])
            y = w + jump
            if not self._heads(abs(y - v) - abs(jump), words):
                return x, y

    def _heads(self, exponent: int, words: Words) -> bool:
        """A coin of probability a^max(0, exponent); it takes a word only where it is not certain."""
        if exponent <= 0:
            return True
        index = words.position
        return is_below(int(words.take(1)[0]), 32, lambda: self.kernel.power(exponent), words, index)

    def run(self, pair: StatePair, most: int, words: Words) -> tuple[StatePair, CoupledInfo]:
        """At most so many steps, compiled; stops after the first step at which the chains are identical."""
        from holdfast.chains import _metropolis_compiled as compiled

        kernel = self.kernel
        v, w = kernel.entering(pair.first).copy(), kernel.entering(pair.second).copy()

        def loop(chunk: NDArray[np.uint32], wanted: int) -> tuple[int, int, int]:
            made, used, code = compiled.advance_pair(
                chunk, wanted, v, w, kernel.matrix @ v, kernel.matrix @ w, kernel.watched_forms, kernel.table, self.coins, kernel.rule
            )
            return int(made), int(used), int(code)

        def exact_step() -> bool:
            (v[:], w[:]), info = self.step(StatePair(v, w), words)
            return info.identical

        most = sample_size(most)
        made = run_steps(loop, exact_step, most, words) if most else 0
        identical = np.array_equal(v, w)
        return StatePair(v, v if identical else w), CoupledInfo(made, identical)

    @cached_property
    def coins(self) -> NDArray[np.int64]:
        """For k = 0, 1, ...: bounds of floor(a^k 2^32), up to the first that is zero. A word between them, ends included, is left open."""
        rows = [(1 << 32, 1 << 32)]
        while rows[-1][1] > 0:
            low, high = floors(partial(self._scaled_power, len(rows)), 128)
            rows.append((max(low, 0), high))
        return np.array(rows, dtype=np.int64)

    def _scaled_power(self, exponent: int) -> arb:
        return self.kernel.power(exponent) * (1 << 32)
