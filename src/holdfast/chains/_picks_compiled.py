"""Unbiased choices from one word, compiled: `words_in_steps.pick` and `moves._two_places` where a word does not leave it open.

Numba's cache does not notice a change in a function imported from elsewhere: whoever changes one of these clears the caches of the modules
that import it.
"""

from __future__ import annotations

import numpy as np

from holdfast.exact._loop_compiled import loop

OPEN = -1

MASK = np.uint64(0xFFFFFFFF)
CELL_BITS = np.uint64(32)
TWO_32 = np.uint64(1 << 32)


@loop(inline="always")
def choose(word, choices):  # type: ignore[no-untyped-def]
    """floor(U choices), or OPEN where the word's cell crosses a border."""
    scaled = np.uint64(word) * np.uint64(choices)
    if (scaled & MASK) > TWO_32 - np.uint64(choices):
        return np.int64(OPEN)
    return np.int64(scaled >> CELL_BITS)


@loop(inline="always")
def two_places(words, at, n, count):  # type: ignore[no-untyped-def]
    """(i, j), two different places of n, from `count` words (one or two); i is OPEN where a word leaves it open."""
    if count == 1:
        scaled = np.uint64(words[at]) * np.uint64(n)
        i = np.int64(scaled >> CELL_BITS)
        scaled = (scaled & MASK) * np.uint64(n - 1)
        j = np.int64(scaled >> CELL_BITS)
        if (scaled & MASK) > TWO_32 - np.uint64(n * (n - 1)):
            i = np.int64(OPEN)
    else:
        i = choose(words[at], n)
        j = choose(words[at + 1], n - 1)
        if j == OPEN:
            i = np.int64(OPEN)
    return i, j + np.int64(j >= i)  # no branch: nothing could predict it
