"""Compiled loops of dyadic_gaussian.py, where the recurrence, the error of every double and the order of words are explained."""

from __future__ import annotations

import numpy as np

from holdfast.exact._loop_compiled import loop


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
