"""Line Gibbs within narrow bounds, compiled: every point of a line is summed, since there are few."""

from __future__ import annotations

import numpy as np

from holdfast.chains._picks_compiled import OPEN, choose
from holdfast.exact._loop_compiled import loop

ALL_DONE, NEEDS_WORDS, LEFT_OPEN = 0, 1, 2  # as in chains/words_in_steps.py
WIDTH = 2.0**-32


@loop
def energies(cells, coefficients, z, first, last, out):  # type: ignore[no-untyped-def]
    """out[t - first] = sum of |z + t move| over the move's cells; returns the least of them."""
    count = last - first + 1
    for i in range(count):
        out[i] = 0
    for p in range(cells.size):
        value, step = z[cells[p]] + first * coefficients[p], coefficients[p]
        for i in range(count):
            out[i] += abs(value)
            value += step
    least = out[0]
    for i in range(1, count):
        least = min(least, out[i])
    return least


@loop
def line_ends(cells, coefficients, z, lower, upper, far):  # type: ignore[no-untyped-def]
    """Least and greatest t within the bounds, for coefficients +1 and -1; `far` where there is none."""
    first, last = -far, far
    for p in range(cells.size):
        c = cells[p]
        down, up = z[c] - lower[c], upper[c] - z[c]
        if coefficients[p] < 0:
            down, up = up, down
        first, last = max(first, -down), min(last, up)
    return first, last


@loop
def locate(word, count, sums, band):  # type: ignore[no-untyped-def]
    """The first place whose share of the last sum is above the word's uniform; OPEN where that is within the band."""
    total = sums[count - 1]
    not_below, below = (np.float64(word) * WIDTH - band) * total, ((np.float64(word) + 1.0) * WIDTH + band) * total
    i = 0
    while i < count - 1 and sums[i] <= not_below:
        i += 1
    if i == count - 1:  # U < 1 = F(last) in any case
        return i if count == 1 or sums[i - 1] <= not_below else np.int64(OPEN)
    return i if sums[i] >= below else np.int64(OPEN)


@loop
def run_short(  # type: ignore[no-untyped-def]
    words, steps, z, starts, list_cells, list_coefficients, lower, upper, table, heights, sums, band, record, every, done, quadrant
):
    """Steps in full; returns (steps made, words used, code). A line with more points than `sums` has places is left to the exact step."""
    whole = min(steps, words.size // 2)
    longest = np.int64(sums.size)
    energy = np.int64(0)
    for i in range(z.size):
        energy += abs(z[i])
    for step in range(whole):
        at = 2 * step
        move = choose(words[at], starts.size - 1)
        if move == OPEN:
            return step, at, LEFT_OPEN
        begin, end = starts[move], starts[move + 1]
        cells, coefficients = list_cells[begin:end], list_coefficients[begin:end]
        first, last = line_ends(cells, coefficients, z, lower, upper, longest)
        count = last - first + 1
        if count > longest:
            return step, at, LEFT_OPEN
        least = energies(cells, coefficients, z, first, last, heights)
        total = 0.0
        for i in range(count):
            total += table[min(heights[i] - least, table.size - 1)]
            sums[i] = total
        place = locate(words[at + 1], count, sums, band)
        if place == OPEN:
            return step, at, LEFT_OPEN
        t = first + place
        energy += heights[place] - heights[-first]
        for p in range(cells.size):
            z[cells[p]] += t * coefficients[p]
        if every and (done + step + 1) % every == 0:
            row = (done + step + 1) // every - 1
            record[row, 0], record[row, 1] = energy, z[0]
            record[row, 2] = 0
            for c in quadrant:
                record[row, 2] += z[c]
    return whole, whole * 2, ALL_DONE if whole == steps else NEEDS_WORDS
