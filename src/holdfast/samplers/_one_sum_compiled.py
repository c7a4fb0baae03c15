"""The one-sum Laplace draw as one compiled loop over a buffer of words.

The loop keeps everything it knows in `state`, so that it can stop at any word: for more words, or for a word that settles nothing. Python
sees to that (`OneSumLaplace` in one_sum_laplace.py) and calls again. The slow twin with the same output is `one_sum_laplace_oracle` there.

Legend: scratch has two rows; row state[CURRENT] is being drawn, the other holds what was drawn before, if state[HAS_OTHER].
"""

from __future__ import annotations

import numpy as np

from holdfast.exact._compiled import OPEN, lookup
from holdfast.exact._loop_compiled import loop

# Places in `state`.
PHASE, ROW, CELL, CURRENT, HAS_OTHER, POSITION, VERDICT, LARGEST, ONE_WORD_BOUND, TOTALS = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
STATE_SIZE = 11
# Phases of one draw.
PROPOSE, JUDGE, DRAW_OTHER, MEASURE, MOVE = 0, 1, 2, 3, 4
# Why the loop came back.
DONE, WANTS_WORDS, OPEN_CELL, OPEN_VERDICT, TOO_LARGE = 0, 1, 2, 3, 4
# Values of state[VERDICT].
UNKNOWN, ACCEPTED, REJECTED = 0, 1, 2

WHOLE = 1 << 32
MASK = WHOLE - 1
LARGEST_WEIGHT = 1 << 30
"""Above this, products of words would leave 64 bits; never reached: see one_sum_laplace.py."""


@loop(inline="always")
def fill(words, position, scratch, which, cell, wanted, quick, direct, high, low, shift):  # type: ignore[no-untyped-def]
    """Draw this many cells of a row, one word each: (cells drawn, their sum), fewer than wanted where a word is open.

    `quick` has the answer of each cell of the direct table, or the mark (its last entry) where more than the top bits are needed.
    """
    mark = quick[quick.size - 1]
    drawn, total = np.int64(wanted), np.int64(0)
    for i in range(wanted):
        word = words[position + i]
        value = quick[word >> shift]
        if value == mark:
            index = lookup(word, direct, high, low, shift)
            if index == OPEN:
                drawn = np.int64(i)
                break
            scratch[which, cell + i] = index
            total += index
        else:
            scratch[which, cell + i] = value
            total += np.int64(value)
    return drawn, total


@loop
def largest_of(row):  # type: ignore[no-untyped-def]
    """The largest entry, found eight at a time by the vector unit."""
    largest = row[0]
    for i in range(row.size):
        largest = max(largest, row[i])
    return np.int64(largest)


@loop
def subtract(row, other, out):  # type: ignore[no-untyped-def]
    for i in range(row.size):
        out[i] = np.int64(row[i]) - np.int64(other[i])


@loop(inline="always")
def find_with_one(words, position, row, n, bound, gain):  # type: ignore[no-untyped-def]
    """(position of the first word that chooses a cell, that cell), or (end of the words, -1)."""
    joint = n * bound
    excess = np.int64(-1)
    for i in range(position, words.size):
        product = np.int64(words[i]) * n
        number = (product & MASK) * bound
        cell = product >> 32
        if (number >> 32) < np.int64(row[cell]) + gain:
            if (number & MASK) < joint:  # only then can it be below the excess, whose division is spared otherwise
                if excess < 0:
                    excess = WHOLE % joint
                if (number & MASK) < excess:
                    continue
            return i, cell
    return np.int64(words.size), np.int64(-1)


@loop(inline="always")
def find_with_two(words, position, row, n, bound, gain):  # type: ignore[no-untyped-def]
    """The same with a word for the cell and one for the number; a last single word is left for later."""
    while position + 1 < words.size:
        product = np.int64(words[position]) * n
        number = np.int64(words[position + 1]) * bound
        cell = product >> 32
        if (number >> 32) < np.int64(row[cell]) + gain and (number & MASK) >= WHOLE % bound and (product & MASK) >= WHOLE % n:
            return position, cell
        position += 2
    return position, np.int64(-1)


@loop
def move(words, position, row, total, target, largest, limit, one_word_bound):  # type: ignore[no-untyped-def]
    """Take away or add stars one at a time until the total is the target: (position, total, largest, reason to stop).

    A try reads a cell c below n and a number below the bound M >= every weight, and chooses c if the number is below its weight. From one
    word x: x n = c 2^32 + rest, rest M = number 2^32 + last, so that x n M = (c M + number) 2^32 + last, and a last below 2^32 mod n M
    is thrown away: (c, number) is exactly uniform. From two words the same for each.
    """
    n = np.int64(row.size)
    gain = np.int64(1) if total < target else np.int64(0)
    step = np.int64(1) if total < target else np.int64(-1)
    while total != target:
        bound = largest + gain
        if bound > LARGEST_WEIGHT:
            return position, total, largest, TOO_LARGE
        if n * bound <= one_word_bound:
            position, cell = find_with_one(words, position, row, n, bound, gain)
            used = 1
        else:
            position, cell = find_with_two(words, position, row, n, bound, gain)
            used = 2
        if cell < 0:
            return position, total, largest, WANTS_WORDS
        value = np.int64(row[cell])
        if step > 0 and value >= limit:
            return position, total, largest, TOO_LARGE
        position += used
        row[cell] = value + step
        largest = max(largest, value + step)
        total += step
    return position, total, largest, DONE


@loop
def judge(words, state, accept, accept_first):  # type: ignore[no-untyped-def]
    """The verdict on the row just drawn, by its total: one word against the tabled floor, unless Python has given the verdict."""
    current = state[CURRENT]
    if state[VERDICT] == UNKNOWN:
        if state[POSITION] >= words.size:
            return WANTS_WORDS
        place = state[TOTALS + current] - accept_first
        if place < 0 or place >= accept.size:
            return OPEN_VERDICT
        word = np.int64(words[state[POSITION]])
        if accept[place] < 0 or word == accept[place]:
            return OPEN_VERDICT
        state[POSITION] += 1
        state[VERDICT] = ACCEPTED if word < accept[place] else REJECTED
    if state[VERDICT] == REJECTED:
        state[HAS_OTHER] = 1
        state[CURRENT] = 1 - current
        state[PHASE] = PROPOSE
    elif state[HAS_OTHER] == 1:
        state[PHASE] = MEASURE
    else:
        state[CURRENT] = 1 - current
        state[PHASE] = DRAW_OTHER
    state[VERDICT] = UNKNOWN
    return DONE


@loop
def run(words, state, scratch, quick, direct, high, low, shift, accept, accept_first, limit, out):  # type: ignore[no-untyped-def]
    """Go on with the draws described by `state` until they are done or something is missing; returns why it stopped."""
    cells = scratch.shape[1]
    while state[ROW] < out.shape[0]:
        current = state[CURRENT]
        phase = state[PHASE]
        if phase == PROPOSE or phase == DRAW_OTHER:
            if state[CELL] == 0:
                state[TOTALS + current] = 0
            begin, cell = state[POSITION], state[CELL]
            wanted = min(words.size - begin, cells - cell)
            count, total = fill(words, begin, scratch, current, cell, wanted, quick, direct, high, low, shift)
            state[POSITION] += count
            state[CELL] += count
            state[TOTALS + current] += total
            if count < wanted:
                return OPEN_CELL
            if state[CELL] < cells:
                return WANTS_WORDS
            state[CELL] = 0
            if phase == PROPOSE:
                state[PHASE] = JUDGE
            else:
                state[CURRENT] = 1 - current
                state[PHASE] = MEASURE
        elif phase == JUDGE:
            reason = judge(words, state, accept, accept_first)
            if reason != DONE:
                return reason
        elif phase == MEASURE:
            if state[TOTALS] != state[TOTALS + 1]:
                state[LARGEST] = largest_of(scratch[1 - current])
            state[PHASE] = MOVE
        else:
            position, total, largest, reason = move(
                words,
                state[POSITION],
                scratch[1 - current],
                state[TOTALS + 1 - current],
                state[TOTALS + current],
                state[LARGEST],
                limit,
                state[ONE_WORD_BOUND],
            )
            state[POSITION], state[TOTALS + 1 - current], state[LARGEST] = position, total, largest
            if reason != DONE:
                return reason
            subtract(scratch[current], scratch[1 - current], out[state[ROW]])
            state[ROW] += 1
            state[HAS_OTHER] = 0
            state[PHASE] = PROPOSE
    return DONE
