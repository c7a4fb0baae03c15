"""Proposals for discrete Gaussians of many variances: a ladder of centred laws, each with a queue of draws and accept words.

A cell of variance v proposes from the rung V of the ladder next above v (1 + max(.3 / sqrt v, 1/64)): about one in seven is refused.
Rungs are 9/16, 10/16, ..., 16/16 times powers of two, so that they are exact and few.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.exact import DiscreteGaussian
from holdfast.exact.balls import ball
from holdfast.exact.law import Sampler
from holdfast.exact.predicates import is_below
from holdfast.randomness.words import Words

FIRST_RUNG = 800
"""The number of the rung whose variance is 9/16; see _tree_compiled.rung."""
RUNGS = 1600


def rung(variance: float) -> int:
    """The number of the proposal for this variance: the twin of _tree_compiled.rung."""
    mantissa, exponent = math.frexp(variance * (1.0 + max(0.3 / math.sqrt(variance), 0.015625)))
    return exponent * 8 + int(mantissa * 16.0) - 8 + FIRST_RUNG


@lru_cache(maxsize=512)
def rung_variance(number: int) -> Fraction:
    """The variance of a rung's proposal: 9/16, 10/16, ..., 16/16 times a power of two."""
    exponent, step = divmod(number - FIRST_RUNG, 8)
    return Fraction(step + 9, 16) * Fraction(2) ** exponent


@lru_cache(maxsize=512)
def _proposal(number: int) -> Sampler:
    return DiscreteGaussian(rung_variance(number)).sampler()


class ProposalQueues(NamedTuple):
    """All queues, a row each: proposals, accept words, what exact arithmetic said of them; how many there are, how many are used."""

    classes: Any
    variances: Any
    band: float
    proposals: Any
    accepts: Any
    verdicts: Any
    places: Any
    filled: Any
    used: Any
    used_before: Any


class Queues:
    """Proposals with their accept words, one queue for each rung."""

    def __init__(self, needs: Mapping[int, int], most: int, words: Words) -> None:
        self._needs, self._most, self._words = needs, most, words
        self._samplers: list[Sampler] = []
        self._exact: list[Fraction] = []
        self._sizes: list[int] = []
        self.classes = np.full(RUNGS, -1, dtype=np.int64)
        self._make({})
        self.add(*needs)

    def add(self, *numbers: int) -> None:
        """Queues for these rungs, empty."""
        for number in numbers:
            self.classes[number] = len(self._samplers)
            self._exact.append(rung_variance(number))
            self._samplers.append(_proposal(number))
            need = self._needs.get(number, 0)
            self._sizes.append(min(self._most, need + need // 4 + 16))
        self._make(self._arrays)

    def _make(self, old: dict[str, NDArray[Any]], width: int = 0) -> None:
        """Arrays with a row for each queue, holding what the old ones held."""
        rows = len(self._samplers)
        width = max(width, *self._sizes, *(before.shape[1] for before in old.values() if before.ndim == 2), 0)
        kinds = {"proposals": np.int64, "accepts": np.uint32, "verdicts": np.int8, "places": np.int64}
        shapes = dict.fromkeys(kinds, (rows, width)) | dict.fromkeys(("filled", "used", "used_before"), (rows,))
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(shape, dtype=kinds.get(name, np.int64)) for name, shape in shapes.items()}
        for name, before in old.items():
            self._arrays[name][tuple(map(slice, before.shape))] = before
        self.proposals, self.accepts, self.verdicts, self.places, self.filled, self.used, self.used_before = self._arrays.values()
        self._variances = np.array([float(v) for v in self._exact])

    def refill(self, kind: int) -> None:
        """More pairs behind those of this queue that the table which is begun anew will want again."""
        begin, end = int(self.used_before[kind]), int(self.filled[kind])
        kept, size = end - begin, self._sizes[kind]
        if kept + size > self.proposals.shape[1]:
            self._make(self._arrays, 2 * (kept + size))
        if kept and begin:
            for array in (self.proposals, self.accepts, self.verdicts, self.places):
                array[kind, :kept] = array[kind, begin:end].copy()
        self.proposals[kind, kept : kept + size] = self._samplers[kind].draw(size, self._words)
        first = self._words.position
        self.accepts[kind, kept : kept + size] = self._words.take(size)
        self.places[kind, kept : kept + size] = np.arange(first, first + size)
        self.verdicts[kind, kept : kept + size] = 0
        self.filled[kind] = kept + size
        self.used[kind] = self.used_before[kind] = 0

    def decide(self, kind: int, pair: int, d: Fraction, variance: Fraction) -> None:
        """Settle one pair by exact arithmetic: whether a cell with centre d from the loop's c0 takes it."""
        proposed, given = int(self.proposals[kind, pair]), self._exact[kind]
        h = variance / given
        t = ((1 - h) * proposed - d) ** 2 / (2 * given * h * (1 - h))
        word, index = int(self.accepts[kind, pair]), int(self.places[kind, pair])
        self.verdicts[kind, pair] = 1 if is_below(word, 32, lambda: (-ball(t)).exp(), self._words, index) else -1

    def pairs(self, band: float) -> ProposalQueues:
        """What the loops read and write."""
        return ProposalQueues(self.classes, self._variances, band, *self._arrays.values())
