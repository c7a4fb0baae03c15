"""The uniforms of a try: one for every cell and every step back in time, without end, each with as many bits as anyone asks for.

A try takes one word of the stream for every cell. The uniform of a cell at time -t is made of extra bits that belong to that word
(randomness/words.py): so how far back a try goes, and how many bits a comparison needs, shifts nothing that comes after.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.exact.predicates import extra_integer
from holdfast.randomness import Words

Doubles = NDArray[np.float64]
LEVEL_BITS = 128
DOUBLE_BITS = 53


def depth_of(time: int, level: int) -> int:
    """Where the bits number `level` (128 each) of the uniform of time -time are: a different depth for every pair."""
    a = time - 1 + level
    return a * (a + 1) // 2 + level


@dataclass(frozen=True)
class SweepUniform:
    """The uniform of one cell at time -time; `index` is the cell's word."""

    words: Words
    index: int
    time: int

    def cell(self, levels: int) -> int:
        """The first 128 `levels` bits, as an integer."""
        value = 0
        for level in range(levels):
            value = (value << LEVEL_BITS) | extra_integer(self.words, self.index, depth_of(self.time, level))
        return value


def sweep_doubles(words: Words, first: int, count: int, time: int) -> Doubles:
    """The first 53 bits of the uniforms of time -time for words first, first + 1, ...: numbers below 1, rounded down."""
    parts = words.extra(np.arange(first, first + count, dtype=np.uint64), depth_of(time, 0))
    return as_doubles(parts[:, 0], parts[:, 1])


def as_doubles(high: NDArray[np.uint32], low: NDArray[np.uint32]) -> Doubles:
    """The first 53 of 64 bits, times 2^-53."""
    whole = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
    return np.asarray((whole >> np.uint64(64 - DOUBLE_BITS)).astype(np.float64) * 2.0**-DOUBLE_BITS)
