"""Roundings compiled by Numba: integers only. Each has a plain twin (`round_one` of its sampler) that gives the same output.

Every loop returns (words used, -1, 0, 0), or (0, place, remainder, denominator) where the word at `place` leaves its coin open and
`settled`, pairs of place and verdict, does not know it: then the caller settles it and runs the loop again.
No signal is answered inside a loop, so that the long one, on two-way tables, stops from time to time.
"""

from __future__ import annotations

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import coin

OPEN = -1


@loop
def verdict_of(settled, place):  # type: ignore[no-untyped-def]
    """The verdict of a coin settled before, or OPEN."""
    for i in range(settled.shape[0]):
        if settled[i, 0] == place:
            return settled[i, 1]
    return np.int64(OPEN)


@loop
def one_sum(noise, out, words, settled):  # type: ignore[no-untyped-def]
    """One word for each cell: it is lowered with probability (still to lower) / (cells left)."""
    n, cells = noise.shape
    place = 0
    for k in range(n):
        total = np.int64(0)
        for i in range(cells):
            total += noise[k, i]
        quotient = total // cells
        left = total - quotient * cells
        for i in range(cells):
            verdict, remainder = coin(words[place], left, np.int64(cells - i))
            if verdict == OPEN:
                verdict = verdict_of(settled, place)
                if verdict == OPEN:
                    return 0, place, remainder, np.int64(cells - i)
            place += 1
            left -= verdict
            out[k, i] = noise[k, i] - quotient - verdict
    return place, -1, np.int64(0), np.int64(1)


@loop
def grid(targets, sizes, out, words, settled):  # type: ignore[no-untyped-def]
    """Cells in order, each rounded at its centre given the errors before it; see rounded_projection.py for the letters."""
    n, cells = targets.shape
    axes = sizes.size
    starts, strides = np.empty(axes + 1, np.int64), np.empty(axes, np.int64)
    stride, start = np.int64(1), np.int64(0)
    for k in range(axes - 1, -1, -1):
        starts[k], strides[k] = start, stride
        start += stride
        stride *= sizes[k]
    starts[axes] = start
    E = np.empty(start, np.int64)
    N, products = np.zeros(axes + 1, np.int64), np.ones(axes + 1, np.int64)
    place = 0
    for draw in range(n):
        for i in range(cells):
            for k in range(axes):
                if i % (strides[k] * sizes[k]) == 0:  # a new slice of the axes before k begins
                    for j in range(strides[k]):
                        E[starts[k] + j] = 0
                R = sizes[k] - (i // strides[k]) % sizes[k]
                N[k + 1] = R * N[k] + E[starts[k] + i % strides[k]]
                products[k + 1] = products[k] * R
            scale = cells * products[axes]
            numerator = targets[draw, i] * products[axes] - N[axes]
            down = numerator // scale
            verdict, remainder = coin(words[place], numerator - down * scale, scale)
            if verdict == OPEN:
                verdict = verdict_of(settled, place)
                if verdict == OPEN:
                    return 0, place, remainder, scale
            place += 1
            out[draw, i] = down + verdict
            error = cells * out[draw, i] - targets[draw, i]
            for k in range(axes):
                E[starts[k] + i % strides[k]] += products[k] * error + N[k]
    return place, -1, np.int64(0), np.int64(1)


@loop(inline="always")
def next_fractional(parts, whole, line, by_row, j):  # type: ignore[no-untyped-def]
    """The first place from j on in a row (or column) whose cell is still fractional; the length where there is none."""
    length = parts.shape[1] if by_row else parts.shape[0]
    while j < length:
        part = parts[line, j] if by_row else parts[j, line]
        if part != 0 and part != whole:
            break
        j += 1
    return j


@loop
def refresh(parts, whole, line, by_row, first, second):  # type: ignore[no-untyped-def]
    """Move a row's (or column's) marks on to its first two cells that are still fractional; they never move back."""
    first[line] = next_fractional(parts, whole, line, by_row, first[line])
    second[line] = next_fractional(parts, whole, line, by_row, max(second[line], first[line] + 1))


@loop
def find_cycle(start, row_marks, column_marks, row_place, column_place, rows, columns, cycle):  # type: ignore[no-untyped-def]
    """Walk from a row along fractional cells, never back, until a line comes twice; the cycle's cells alternate in sign. Returns length."""
    rows[0] = start
    row_place[start] = 0
    arrived, last = -1, 0
    while True:
        i = rows[last]
        j = row_marks[0, i] if row_marks[0, i] != arrived else row_marks[1, i]
        columns[last] = j
        if column_place[j] >= 0:
            begin, by_column = column_place[j] + 1, True
            break
        column_place[j] = last
        arrived = j
        i = column_marks[0, j] if column_marks[0, j] != i else column_marks[1, j]
        rows[last + 1] = i
        if row_place[i] >= 0:
            begin, by_column = row_place[i], False
            break
        last += 1
        row_place[i] = last
    length = 0
    for t in range(begin, last + 1):
        before = columns[t - 1] if by_column else columns[t]
        after = rows[t] if by_column else rows[t + 1]
        cycle[length, 0], cycle[length, 1] = rows[t], before
        cycle[length + 1, 0], cycle[length + 1, 1] = after, columns[t]
        length += 2
    for t in range(last + 1):
        row_place[rows[t]] = -1
        column_place[columns[t]] = -1
    return length


@loop
def round_table(parts, whole, row_marks, column_marks, begin, most, words, place, settled):  # type: ignore[no-untyped-def]
    """Round one table of parts in [0, whole], line sums multiples of whole, in place, from row `begin` on. It stops where cycles of `most`
    cells were moved, and goes on from there when called again. Returns (row it came to, next word, open, remainder, denominator).
    """
    r, c = parts.shape
    row_place, column_place = np.full(r, -1, np.int64), np.full(c, -1, np.int64)
    rows, columns = np.empty(r + 1, np.int64), np.empty(c + 1, np.int64)
    cycle = np.empty((2 * (r + c) + 2, 2), np.int64)
    moved = 0
    for start in range(begin, r):
        while row_marks[0, start] < c:
            if moved >= most:
                return start, place, -1, np.int64(0), np.int64(1)
            length = find_cycle(start, row_marks, column_marks, row_place, column_place, rows, columns, cycle)
            up, down = whole, whole
            for t in range(length):
                part = parts[cycle[t, 0], cycle[t, 1]]
                rise, fall = (whole - part, part) if t % 2 == 0 else (part, whole - part)
                up, down = min(up, rise), min(down, fall)
            verdict, remainder = coin(words[place], down, up + down)
            if verdict == OPEN:
                verdict = verdict_of(settled, place)
                if verdict == OPEN:
                    return start, place, place, remainder, up + down
            place += 1
            moved += length
            move = up if verdict else -down
            for t in range(length):
                parts[cycle[t, 0], cycle[t, 1]] += move if t % 2 == 0 else -move
            for t in range(length):
                refresh(parts, whole, cycle[t, 0], True, row_marks[0], row_marks[1])
                refresh(parts, whole, cycle[t, 1], False, column_marks[0], column_marks[1])
    return r, place, -1, np.int64(0), np.int64(1)


@loop
def begin_table(target, whole, out, parts, row_marks, column_marks):  # type: ignore[no-untyped-def]
    """The whole parts of a table into `out`, what is left into `parts`; marks at the first fractional cells of every line."""
    r, c = target.shape
    row_marks[:] = 0
    column_marks[:] = 0
    for i in range(r):
        for j in range(c):
            out[i, j] = target[i, j] // whole
            parts[i, j] = target[i, j] - out[i, j] * whole
    for i in range(r):
        refresh(parts, whole, i, True, row_marks[0], row_marks[1])
    for j in range(c):
        refresh(parts, whole, j, False, column_marks[0], column_marks[1])


@loop
def controlled_tables(targets, whole, out, parts, row_marks, column_marks, state, most, words, settled):  # type: ignore[no-untyped-def]
    """`round_table` on the fractional parts of each table of targets (in units of 1 / whole).

    `state` is (table, row, -1 before its first; next word): the loop begins there and leaves there where it came to. It is done when all
    tables are, and called again until then; so it is with an open coin, before which nothing was moved.
    """
    n, r, c = targets.shape
    while state[0] < n:
        k = state[0]
        if state[1] < 0:
            begin_table(targets[k], whole, out[k], parts, row_marks, column_marks)
            state[1] = 0
        row, place, is_open, remainder, denominator = round_table(
            parts, whole, row_marks, column_marks, state[1], most, words, state[2], settled
        )
        state[1], state[2] = row, place
        if is_open >= 0:
            return 0, is_open, remainder, denominator
        if row < r:
            break
        for i in range(r):
            for j in range(c):
                out[k, i, j] += parts[i, j] // whole
        state[0], state[1] = k + 1, -1
    return state[2], -1, np.int64(0), np.int64(1)
