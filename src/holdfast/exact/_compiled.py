"""The hot loops, compiled by Numba and cached. Imported only when a draw is large enough to pay for it.

Every loop here has a NumPy twin in table.py or wide.py that gives the same output from the same words; all helpers stay in this module,
because Numba's cache does not notice a change in a function imported from elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop

# Filled by `lookup` in place of an index when the word equals a threshold.
OPEN = -1


@loop(inline="always")
def lookup(word, direct, high, low, shift):  # type: ignore[no-untyped-def]
    """Index of the first threshold at or above the word, or OPEN where the word does not settle it."""
    cell = np.int64(word) >> shift
    entry = direct[cell]
    if entry >= 0:
        return np.int64(entry)
    index = -np.int64(entry) - 1
    after = direct[cell + 1]
    top = np.int64(after) if after >= 0 else -np.int64(after) - 1
    while top - index > 8:
        middle = (index + top) >> 1
        if high[middle] < word:
            index = middle + 1
        else:
            top = middle
    while high[index] < word:
        index += 1
    if low[index] <= word:
        return np.int64(OPEN)
    return index


@loop
def draw_table(words, drop, direct, high, low, shift, first, out, pending):  # type: ignore[no-untyped-def]
    """out[i] = first + index of word i; places left open go to `pending`. Returns how many."""
    count = 0
    for i in range(words.size):
        index = lookup(np.uint32(words[i] >> drop), direct, high, low, shift)
        if index == OPEN:
            pending[count] = i
            count += 1
            index = np.int64(0)
        out[i] = first + index
    return count


@loop(inline="always")
def settle(cell, width, value, band):  # type: ignore[no-untyped-def]
    """Compare a uniform in [cell, cell + 1) * width with a real within `band` of `value`: 1 below, -1 not below, 0 open.

    `width` is a power of two, at least 2^-52: every product here is exact.
    """
    if (cell + 1.0) * width <= value - band:
        return 1
    if cell * width >= value + band:
        return -1
    return 0


@loop(inline="always")
def settle_exp(cell, width, exponent, band):  # type: ignore[no-untyped-def]
    """`settle` against exp(-exponent), trying the bound 1 - exponent first, which spares most exponentials."""
    if (cell + 1.0) * width <= 1.0 - exponent - band:
        return 1
    return settle(cell, width, math.exp(-exponent), band)


@loop
def draw_wide(  # type: ignore[no-untyped-def]
    words, words_per_try, drop, direct, high, low, shift, accept_bits, places, exponents, band, out, pending
):
    """Accepted values to `out` in order; tries left open to `pending` as (try, place in out). Returns (accepted, open).

    Per cell, places = (first point, direction, number of points), exponents = (linear, quadratic): one cache line each.
    """
    accepted, count = 0, 0
    tries = words.size // words_per_try
    word_bits = np.uint64(32 - drop)
    accept = np.uint64(accept_bits)
    mask = (np.uint64(1) << accept) - np.uint64(1)
    width = math.ldexp(1.0, -accept_bits)
    for i in range(tries):
        base = i * words_per_try
        index = lookup(np.uint32(words[base] >> drop), direct, high, low, shift)
        if index == OPEN:
            pending[count, 0], pending[count, 1] = i, accepted
            count += 1
            continue
        bits = np.uint64(words[base + 1] >> drop)
        for j in range(2, words_per_try):
            bits = (bits << word_bits) | np.uint64(words[base + j] >> drop)
        place = np.int64(bits >> accept)
        if place >= places[index, 2]:
            continue
        exponent = place * (exponents[index, 0] + exponents[index, 1] * place)
        verdict = settle_exp(np.float64(np.int64(bits & mask)), width, exponent, band)
        out[accepted] = places[index, 0] + places[index, 1] * place
        if verdict > 0:
            accepted += 1
        elif verdict == 0:
            pending[count, 0], pending[count, 1] = i, accepted
            count += 1
    return accepted, count
