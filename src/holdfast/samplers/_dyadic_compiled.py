"""Compiled loops of dyadic_gaussian.py, where the recurrence, the error of every double and the order of words are explained."""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import WIDTH, nearest

DONE, NEED_PAIRS, OPEN_PAIR = 0, 1, 2
# Places in `state`: parts already drawn, their sum, the next pair, and the verdict on a pair that doubles left open.
PART, TOTAL, PAIR, KNOWN_PAIR, KNOWN_VERDICT = 0, 1, 2, 3, 4
STATE_SIZE = 5


@loop
def draw_parts(out, size, cells_left, constants, proposals, accepts, state, losses):  # type: ignore[no-untyped-def]
    """Totals of `out.size` parts of `size` cells each, out of `cells_left` cells whose sum is minus state[TOTAL]."""
    variance, stretch, half, band = constants[0], constants[1], constants[2], constants[3]
    total, pair = state[TOTAL], state[PAIR]
    status = DONE
    part = state[PART]
    while part < out.size and status == DONE:
        left = cells_left - part * size
        reciprocal = 1.0 / left
        numerator = total * size
        opposite, rest = nearest(numerator, left, reciprocal)
        c0 = -opposite
        d = -rest * reciprocal
        f = (left - size) * reciprocal
        gap = (stretch - 1.0) + size * reciprocal
        scale = half / (f * gap)
        while True:
            if pair >= proposals.size:
                status = NEED_PAIRS
                break
            p = proposals[pair]
            word = np.float64(accepts[pair])
            x = gap * p - stretch * d
            t = x * x * scale
            if (word + 1.0) * WIDTH <= 1.0 - t - band:
                break
            value = math.exp(-t)
            if (word + 1.0) * WIDTH <= value - band:
                break
            if word * WIDTH < value + band:
                if pair != state[KNOWN_PAIR]:
                    status = OPEN_PAIR
                    break
                if state[KNOWN_VERDICT] > 0:
                    break
            pair += 1
        if status == DONE:
            pair += 1
            out[part] = c0 + p
            total += c0 + p
            losses[0] += max(math.exp(-2.0 * math.pi * math.pi * variance * f), 1e-100) * d * d
            part += 1
    state[PART], state[TOTAL], state[PAIR] = part, total, pair
    return status


@loop
def halve_pieces(words, totals, out, direct, high, low, firsts, starts, direct_starts, shifts, odd, pending):  # type: ignore[no-untyped-def]
    """Cells of each piece from its total. Pieces with an open word go to `pending`, uncounted in `odd`; returns how many."""
    size = out.size // totals.size
    levels = firsts.shape[0]
    counts = np.empty(levels, dtype=np.int64)
    found_open = 0
    for piece in range(totals.size):
        base = piece * size
        place = piece * (size - 1)
        out[base] = totals[piece]
        is_open = False
        nodes = 1
        for level in range(levels):
            even = 2 * level
            first_even, first_odd = firsts[level, 0], firsts[level, 1]
            shift = shifts[level]
            count = 0
            for i in range(nodes - 1, -1, -1):
                node = out[base + i]
                parity = node & 1
                count += parity
                table = even + parity
                word = words[place + i]
                cell = direct_starts[table] + (np.int64(word) >> shift)
                entry = np.int64(direct[cell])
                if entry < 0:
                    begin = starts[table]
                    index = -entry - 1
                    after = np.int64(direct[cell + 1])
                    top = after if after >= 0 else -after - 1
                    while top - index > 8:
                        middle = (index + top) >> 1
                        if high[begin + middle] < word:
                            index = middle + 1
                        else:
                            top = middle
                    while high[begin + index] < word:
                        index += 1
                    if low[begin + index] <= word:
                        is_open = True
                    entry = index
                left = (node >> 1) + (first_odd if parity else first_even) + entry
                out[base + 2 * i] = left
                out[base + 2 * i + 1] = node - left
            counts[level] = count
            place += nodes
            nodes *= 2
        if is_open:
            pending[found_open] = piece
            found_open += 1
        else:
            for level in range(levels):
                odd[level] += counts[level]
    return found_open
