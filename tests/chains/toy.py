"""A chain whose every law is known in closed form, to test what is built on kernels.

State: one number in {0 .. values - 1}. Each step reads two words: with probability `refresh` the state becomes a new uniform number, else
it stays. With r = 1 - refresh, started at 0, and values = m:

    pi_t            = (1 - r^t) uniform + r^t (point at 0)
    d_TV(pi_t, pi)  = r^t (1 - 1/m)
    autocorrelation = r^k at distance k

Coupled, both chains read the same words and refresh together to the same number, so that D = tau - L is geometric unless X_L = Y_0 already:

    P[D > t]        = (1 - q) r^t for t >= 1,   q = P[X_L = Y_0] = r^L + (1 - r^L) / m
    E[J_t]          = sum_j P[D > t + j L] = (1 - q) r^t / (1 - r^L) = r^t (1 - 1/m) for t >= 1:

the bound of this coupling is the distance itself, at every lag. Started from the uniform law instead, q = 1/m and the distance is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.protocol import CoupledInfo, Info, State, StatePair
from holdfast.chains.target import ChainTarget, Decay
from holdfast.randomness import Words


@dataclass(frozen=True)
class Refresh:
    """`sixteenths` / 16 is the probability of a refresh, `values` a power of two."""

    sixteenths: int = 4
    values: int = 4
    uniform_start: bool = False
    steps_per_sweep: int = 1
    step_nanoseconds: int = 1000
    name: str = "refresh"

    @property
    def target(self) -> ChainTarget:
        return ChainTarget(Decay("absolute", Fraction(1)), 1)

    @property
    def stay(self) -> Fraction:
        return 1 - Fraction(self.sixteenths, 16)

    def start(self, words: Words) -> State:
        return np.array([self._number(int(words.take(1)[0])) if self.uniform_start else 0])

    def cells_of(self, state: State) -> NDArray[np.int64]:
        return state

    def step(self, state: State, words: Words) -> tuple[State, Info]:
        coin, number = (int(word) for word in words.take(2))
        refreshed = coin >> 28 < self.sixteenths
        return (np.array([self._number(number)]) if refreshed else state), Info(1, int(refreshed))

    def run(self, state: State, steps: int, words: Words) -> tuple[State, Info]:
        accepted = 0
        for _ in range(steps):
            state, info = self.step(state, words)
            accepted += info.accepted
        return state, Info(steps, accepted)

    def trace(self, state: State, records: int, every: int, words: Words) -> tuple[State, NDArray[np.int64]]:
        """Columns: the state, the state again, and one that never changes."""
        coins, numbers = words.take(2 * records * every).reshape(-1, 2).T.astype(np.int64)
        last = np.maximum.accumulate(np.where(coins >> 28 < self.sixteenths, np.arange(1, len(coins) + 1), 0))
        values = np.concatenate((state, numbers * self.values >> 32))[last][every - 1 :: every]
        return values[-1:], np.stack((values, values, np.zeros_like(values)), axis=1)

    def couple(self) -> CoupledRefresh:
        return CoupledRefresh(self)

    def meeting_law(self, lag: int, largest: int) -> dict[int, Fraction]:
        """P[D = d] for d up to `largest`, all later ones together at largest + 1."""
        r = self.stay
        equal = Fraction(1, self.values) if self.uniform_start else r**lag + (1 - r**lag) / self.values
        beyond = [Fraction(1)] + [(1 - equal) * r**d for d in range(1, largest + 1)]
        law = {d: beyond[d - 1] - beyond[d] for d in range(1, largest + 1)}
        return law | {largest + 1: beyond[largest]}

    def _number(self, word: int) -> int:
        return word * self.values >> 32


@dataclass(frozen=True)
class CoupledRefresh:
    kernel: Refresh

    def step(self, pair: StatePair, words: Words) -> tuple[StatePair, CoupledInfo]:
        if pair.first is pair.second:
            state, _ = self.kernel.step(pair.first, words)
            return StatePair(state, state), CoupledInfo(1, True)
        coin, number = (int(word) for word in words.take(2))
        if coin >> 28 >= self.kernel.sixteenths:
            return pair, CoupledInfo(1, False)
        state = np.array([self.kernel._number(number)])
        return StatePair(state, state), CoupledInfo(1, True)

    def run(self, pair: StatePair, most: int, words: Words) -> tuple[StatePair, CoupledInfo]:
        for made in range(1, most + 1):
            pair, info = self.step(pair, words)
            if info.identical:
                return pair, CoupledInfo(made, True)
        return pair, CoupledInfo(most, False)
