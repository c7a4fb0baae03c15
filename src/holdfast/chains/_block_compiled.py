"""Block Gibbs as compiled loops, alone and coupled; block_gibbs.py and coupled_block.py say what they do and are their slow twins.

A table holds W_A(c) of a group A, each column's weights being divided by their sum, so that W_A is the law of the group's sum when the
columns are independent. Tables lie one after the other in `arena`. Every table has two bounds with it:

    error     of each listed value against the exact one of the cut columns, relative. All terms are positive, so a sum of n products is off
              by at most (n + 1) 2^-53 beyond the errors of its factors, a sum by recursion by 3 n 2^-53. (What a column is divided by is
              common to all values and cancels.)
    missing   sum of all that was left out: a geometric series for each end of a column (weights are log-concave), the tiny products that a
              convolution skips, and its far ends. W_A <= 1, so what a share of a total lacks is at most the sum of both.

So a cumulative probability is off by at most 2 (errors + n 2^-53) + 2 missing / total, and the band is that or the given one, whichever is
wider. At 20 x 20 and epsilon 1/4 it is about 2^-37. A word whose cell comes within the band of a threshold, of 0 or of 1 ends the loop
with LEFT_OPEN before its step. So does a table that does not fit: the exact step then makes the step, or says what is wrong.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.exact._loop_compiled import loop

if TYPE_CHECKING:
    from holdfast.chains.block_gibbs import BlockGibbs

ALL_DONE, NEEDS_WORDS, LEFT_OPEN = 0, 1, 2
UNIT, WORD, CUT = 2.0**-53, 2.0**-32, 2.0**-64
SKIPPED = 2.0**-84
"""Products below this are left out of a convolution."""
FAR = 2.0**-76
"""Ends of a convolution below this are dropped."""
LONGEST_TABLE = 1 << 16
LARGEST_STATE = 1 << 30  # as in block_gibbs.py
# Places in a head.
OFFSET, FIRST, LENGTH, FLAT = 0, 1, 2, 3
ERROR, MISSING, RATIO = 0, 1, 2


class Tables(NamedTuple):
    """What the target gives."""

    even: NDArray[np.float64]
    odd: NDArray[np.float64]
    is_squares: bool
    reach: int
    widest: int
    lower: NDArray[np.int64]
    upper: NDArray[np.int64]


class Space(NamedTuple):
    """Where tables are built; used again by every step."""

    arena: NDArray[np.float64]
    top: NDArray[np.int64]
    heads: NDArray[np.int64]
    bounds: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    sums: NDArray[np.int64]
    values: NDArray[np.int64]
    same: NDArray[np.int64]
    items: NDArray[np.int64]


def tables(kernel: BlockGibbs) -> Tables:
    from holdfast.chains.block_gibbs import NO_BOUND, WIDEST_COLUMN

    target, weights = kernel.target, kernel.weights
    lower = np.full(target.cells, -NO_BOUND, dtype=np.int64) if target.lower is None else target.lower.copy()
    upper = np.full(target.cells, NO_BOUND, dtype=np.int64) if target.upper is None else target.upper.copy()
    return Tables(weights.even, weights.odd, target.decay.kind == "squares", weights.reach, WIDEST_COLUMN, lower, upper)


def space(kernel: BlockGibbs) -> Space:
    columns = max(kernel.shape)
    reach = 2 * kernel.weights.reach + 64
    # Sums spread like a square root; the memory is only touched where it is used.
    size = min(7 * columns * int(reach * (math.sqrt(columns) + 3)) + LONGEST_TABLE, 1 << 27)
    return Space(
        np.empty(size),
        np.zeros(1, dtype=np.int64),
        np.zeros((7 * columns, 4), dtype=np.int64),
        np.zeros((7 * columns, 3)),
        np.empty(2 * LONGEST_TABLE),
        np.empty(2 * LONGEST_TABLE),
        np.zeros((2, columns), dtype=np.int64),
        np.zeros((2, columns), dtype=np.int64),
        np.zeros(columns, dtype=np.int64),
        np.zeros((columns, 2), dtype=np.int64),
    )


@loop
def make_column(tables, space, slot, total, low, high):  # type: ignore[no-untyped-def]
    """The table of one column with sum `total` and low <= x <= high; False where it does not fit."""
    if tables.is_squares:
        inner_low, inner_high = total >> 1, total - (total >> 1)
        weights = tables.odd if total & 1 else tables.even
    else:
        inner_low, inner_high = min(0, total), max(0, total)
        weights = tables.even
    nearest = max(0, inner_low - high, low - inner_high)
    widest = min(2 * tables.reach + 1 + (1 if tables.is_squares else abs(total)), high - low + 1)  # as in rows_between, which refuses
    if nearest + 3 >= weights.size or widest > tables.widest:
        return False
    least = weights[nearest] * CUT
    furthest = nearest
    while weights[furthest + 1] >= least:
        furthest += 1
        if furthest + 3 >= weights.size:
            return False
    first, last = max(low, inner_low - furthest), min(high, inner_high + furthest)
    length = last - first + 1
    offset = space.top[0]
    if offset + length > space.arena.size:
        return False
    values = space.arena[offset : offset + length]
    mass = 0.0
    for i in range(length):
        x = first + i
        values[i] = weights[max(0, inner_low - x, x - inner_high)]
        mass += values[i]
    for i in range(length):
        values[i] /= mass
    beyond = weights[furthest + 1]
    tail = beyond / (1.0 - weights[furthest + 2] / beyond) / mass
    space.top[0] = offset + length
    space.heads[slot, OFFSET], space.heads[slot, FIRST], space.heads[slot, LENGTH] = offset, first, length
    # points of equal weight between two geometric tails, for `slide`; none for squares, and where a bound cuts a tail off
    space.heads[slot, FLAT] = 0 if tables.is_squares or first == low or last == high else inner_high - inner_low + 1
    space.bounds[slot, RATIO] = weights[1]
    space.bounds[slot, ERROR] = 4.0 * UNIT
    space.bounds[slot, MISSING] = 2.0 * ((tail if first > low else 0.0) + (tail if last < high else 0.0))
    return True


@loop
def add_product(a, b, out):  # type: ignore[no-untyped-def]
    """out[i + j] += a[i] b[j], but for products below SKIPPED. Both rise and then fall: they are log-concave."""
    low, high = 0, b.size
    for i in range(a.size):
        factor = a[i]
        while low > 0 and factor * b[low - 1] >= SKIPPED:
            low -= 1
        while low < b.size and factor * b[low] < SKIPPED:
            low += 1
        if low == b.size:
            low = 0
            while low < b.size and factor * b[low] < SKIPPED:
                low += 1
            if low == b.size:
                low = 0
                continue
        high = max(high, low + 1)
        while high < b.size and factor * b[high] >= SKIPPED:
            high += 1
        while factor * b[high - 1] < SKIPPED:
            high -= 1
        piece = out[i + low : i + high]
        source = b[low:high]
        for j in range(piece.size):
            piece[j] += factor * source[j]


@loop
def slide(b, flat, ratio, out):  # type: ignore[no-untyped-def]
    """out = b convolved with `flat` ones between two geometric tails, all divided by their sum: a few operations a point.

    Each tail is a recursion whose terms are all positive; a term k points away has gone through 3 k roundings (with that of the ratio).
    """
    reach = (out.size - b.size - flat + 1) // 2
    out[:] = 0.0
    for t in range(flat):
        piece = out[reach + t : reach + t + b.size]
        for j in range(b.size):
            piece[j] += b[j]
    tail = 0.0
    for i in range(reach + flat, out.size):
        j = i - reach - flat
        tail = ratio * (tail + b[j] if j < b.size else tail)
        out[i] += tail
    tail = 0.0
    for i in range(b.size - 2 + reach, -1, -1):
        j = i - reach + 1
        tail = ratio * (tail + b[j] if j >= 0 else tail)
        out[i] += tail
    scale = 1.0 / (flat + 2.0 * ratio / (1.0 - ratio))
    for i in range(out.size):
        out[i] *= scale


@loop
def convolve(space, one, other, slot):  # type: ignore[no-untyped-def]
    """The table of two groups together; False where it does not fit."""
    flat = space.heads[one, FLAT]
    if flat == 0 and space.heads[one, LENGTH] > space.heads[other, LENGTH]:
        one, other = other, one
    short, long = space.heads[one, LENGTH], space.heads[other, LENGTH]
    length = short + long - 1
    offset = space.top[0]
    if length > LONGEST_TABLE or offset + length > space.arena.size:
        return False
    a = space.arena[space.heads[one, OFFSET] : space.heads[one, OFFSET] + short]
    b = space.arena[space.heads[other, OFFSET] : space.heads[other, OFFSET] + long]
    out = space.arena[offset : offset + length]
    if flat > 0:
        slide(b, flat, space.bounds[one, RATIO], out)
        roundings, skipped = 3 * length + flat + 8, 0.0
    else:
        out[:] = 0.0
        add_product(a, b, out)
        roundings, skipped = short + 2, 2.0 * short * long * SKIPPED
    start, stop, dropped = 0, length, 0.0
    while start < stop - 1 and out[start] < FAR:
        dropped += out[start]
        start += 1
    while stop > start + 1 and out[stop - 1] < FAR:
        dropped += out[stop - 1]
        stop -= 1
    space.top[0] = offset + stop
    space.heads[slot, OFFSET] = offset + start
    space.heads[slot, FIRST] = space.heads[one, FIRST] + space.heads[other, FIRST] + start
    space.heads[slot, LENGTH] = stop - start
    space.heads[slot, FLAT] = 0
    space.bounds[slot, ERROR] = space.bounds[one, ERROR] + space.bounds[other, ERROR] + roundings * UNIT
    space.bounds[slot, MISSING] = space.bounds[one, MISSING] + space.bounds[other, MISSING] + skipped + 2.0 * dropped
    return True


@loop
def copy_head(space, source, slot):  # type: ignore[no-untyped-def]
    space.heads[slot] = space.heads[source]
    space.bounds[slot] = space.bounds[source]


@loop
def share(space, part, rest, total, band, out):  # type: ignore[no-untyped-def]
    """P[part gets first + i] to `out`: (first, how many, band); none where nothing is known."""
    part_first, part_length = space.heads[part, FIRST], space.heads[part, LENGTH]
    rest_first, rest_length = space.heads[rest, FIRST], space.heads[rest, LENGTH]
    first = max(part_first, total - (rest_first + rest_length - 1))
    last = min(part_first + part_length - 1, total - rest_first)
    count = last - first + 1
    if count < 1:
        return first, np.int64(0), band
    at = space.heads[part, OFFSET] + first - part_first
    back = space.heads[rest, OFFSET] + total - first - rest_first
    mass = 0.0
    for i in range(count):
        out[i] = space.arena[at + i] * space.arena[back - i]
        mass += out[i]
    if not mass > 0.0:
        return first, np.int64(0), band
    for i in range(count):
        out[i] /= mass
    relative = space.bounds[part, ERROR] + space.bounds[rest, ERROR] + (2 * count + 8) * UNIT
    missing = space.bounds[part, MISSING] + space.bounds[rest, MISSING]
    return first, count, max(band, 2.0 * relative + 4.0 * missing / mass)


@loop
def locate(law, count, word, band):  # type: ignore[no-untyped-def]
    """Index of the value that this word draws, -1 where it comes within the band of a threshold."""
    low, high = word * WORD, (word + 1.0) * WORD
    if low < band or count == 0:
        return -1
    cumulative = 0.0
    for i in range(count):
        cumulative += law[i]
        if high <= cumulative - band:
            return i
        if low < cumulative + band:
            return -1
    return -1


@loop
def draw_one(space, part, rest, total, word, band):  # type: ignore[no-untyped-def]
    """(what part gets, whether the word settled it)."""
    first, count, width = share(space, part, rest, total, band, space.left)
    found = locate(space.left, count, word, width)
    return first + found, found >= 0


@loop
def draw_both(space, part, rest, other_part, other_rest, total, other_total, word, band):  # type: ignore[no-untyped-def]
    """Quantile pairing: the same word for both."""
    x, settled = draw_one(space, part, rest, total, word, band)
    if not settled:
        return x, x, False
    same = space.heads[part, OFFSET] == space.heads[other_part, OFFSET] and space.heads[rest, OFFSET] == space.heads[other_rest, OFFSET]
    if same and total == other_total:
        return x, x, True
    y, settled = draw_one(space, other_part, other_rest, other_total, word, band)
    return x, y, settled


@loop
def mass_at(law, first, count, point):  # type: ignore[no-untyped-def]
    return law[point - first] if first <= point < first + count else 0.0


@loop
def draw_near(space, part, rest, other_part, other_rest, total, other_total, words, place, band):  # type: ignore[no-untyped-def]
    """Maximal pairing: a word for x, a word for whether y = x, a word for y from what is left of its law."""
    p_first, p_count, p_band = share(space, part, rest, total, band, space.left)
    q_first, q_count, q_band = share(space, other_part, other_rest, other_total, band, space.right)
    found = locate(space.left, p_count, words[place], p_band)
    if found < 0 or q_count == 0:
        return p_first, p_first, False
    x = p_first + found
    p, q = space.left[found], mass_at(space.right, q_first, q_count, x)
    if p <= 2.0 * p_band:
        return x, x, False
    # each mass is off by less than its band
    ratio_low, ratio_high = (q - q_band) / (p + p_band), (q + q_band) / (p - p_band)
    coin = np.float64(words[place + 1])
    if (coin + 1.0) * WORD <= min(1.0, ratio_low - 4.0 * UNIT):
        return x, x, True
    if coin * WORD < ratio_high + 8.0 * UNIT * ratio_high:
        return x, x, False
    return draw_residual(space, p_first, p_count, q_first, q_count, p_band + q_band, x, words[place + 2])


@loop
def draw_residual(space, p_first, p_count, q_first, q_count, doubt, x, word):  # type: ignore[no-untyped-def]
    """y with probability proportional to max(0, q - p); errors of all its masses together are below `doubt`."""
    mass = 0.0
    for i in range(q_count):
        space.right[i] = max(0.0, space.right[i] - mass_at(space.left, p_first, p_count, q_first + i))
        mass += space.right[i]
    if mass <= 4.0 * doubt:
        return x, x, False
    for i in range(q_count):
        space.right[i] /= mass
    found = locate(space.right, q_count, word, 3.0 * doubt / mass + (2 * q_count + 8) * UNIT)
    return x, q_first + found, found >= 0


@loop
def picked(word, choices):  # type: ignore[no-untyped-def]
    """floor(U choices), -1 where the word leaves it open."""
    low = (np.int64(word) * choices) >> 32
    high = ((np.int64(word) + 1) * choices - 1) >> 32
    return low if low == high else -1


@loop
def pick_lines(words, place, rows, columns):  # type: ignore[no-untyped-def]
    """(first cell of the line, of its partner, stride along them, how many cells); the stride is 0 where a word is open."""
    line = picked(words[place], rows + columns)
    if line < 0:
        return 0, 0, 0, 0
    is_row = line < rows
    line -= 0 if is_row else rows
    partner = picked(words[place + 1], (rows if is_row else columns) - 1)
    if partner < 0:
        return 0, 0, 0, 0
    partner += partner >= line
    if is_row:
        return line * columns, partner * columns, 1, columns
    return line, partner, columns, rows


@loop
def make_columns(cells, tables, space, chain, first, second, stride, n, base, only_other):  # type: ignore[no-untyped-def]
    """Column sums to space.sums[chain] and tables to slots base + j; with `only_other` where the sum is not that of chain 0."""
    for j in range(n):
        a, b = first + j * stride, second + j * stride
        total = cells[a] + cells[b]
        space.sums[chain, j] = total
        if only_other and total == space.sums[0, j]:
            continue
        low = max(tables.lower[a], total - tables.upper[b])
        high = min(tables.upper[a], total - tables.lower[b])
        if not make_column(tables, space, base + j, total, low, high):
            return False
    return True


@loop
def suffixes(space, pieces, count, base):  # type: ignore[no-untyped-def]
    """Slot base + m: the table of pieces m, m + 1, ...; `pieces` are slots."""
    copy_head(space, pieces[count - 1], base + count - 1)
    for m in range(count - 2, -1, -1):
        if not convolve(space, pieces[m], base + m + 1, base + m):
            return False
    return True


@loop
def line_sum(cells, first, stride, n):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    for j in range(n):
        total += cells[first + j * stride]
    return total


@loop
def has_room(space, chain, n):  # type: ignore[no-untyped-def]
    """Whether the new cells of both lines may be part of a state; the exact step refuses others."""
    values, sums = space.values[chain, :n], space.sums[chain, :n]
    return max(np.abs(values).max(), np.abs(sums - values).max()) < LARGEST_STATE


@loop
def draw_lines(cells, tables, space, words, place, first, second, stride, n, band):  # type: ignore[no-untyped-def]
    """New values of the line to space.values[0], one word a column but the last; False where it was left open."""
    space.top[0] = 0
    if not make_columns(cells, tables, space, 0, first, second, stride, n, 0, False) or not suffixes(space, np.arange(n), n, 2 * n):
        return False
    total = line_sum(cells, first, stride, n)
    for j in range(n - 1):
        value, settled = draw_one(space, j, 2 * n + j + 1, total, words[place + j], band)
        if not settled:
            return False
        space.values[0, j] = value
        total -= value
    space.values[0, n - 1] = total
    return has_room(space, 0, n)


@loop
def put(cells, values, first, second, stride, n):  # type: ignore[no-untyped-def]
    for j in range(n):
        a, b = first + j * stride, second + j * stride
        cells[b] += cells[a] - values[j]
        cells[a] = values[j]


@loop
def run_alone(cells, rows, columns, tables, space, words, wanted, band):  # type: ignore[no-untyped-def]
    """So many steps of one chain, in place: (steps made, words used by them, why it stopped)."""
    made, used = 0, 0
    while made < wanted:
        if used + 2 + max(rows, columns) > words.size:
            return made, used, NEEDS_WORDS
        first, second, stride, n = pick_lines(words, used, rows, columns)
        if stride == 0 or not draw_lines(cells, tables, space, words, used + 2, first, second, stride, n, band):
            return made, used, LEFT_OPEN
        put(cells, space.values[0], first, second, stride, n)
        used += 1 + n
        made += 1
    return made, used, ALL_DONE


@loop
def order_columns(space, n):  # type: ignore[no-untyped-def]
    """Columns that are the same to space.same, others in pairs (second -1: alone) to space.items: how many of each."""
    same, above, below = 0, 0, 0
    first, second = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for j in range(n):
        difference = space.sums[1, j] - space.sums[0, j]
        if difference == 0:
            space.same[same] = j
            same += 1
            continue
        into, place = (first, above) if difference > 0 else (second, below)
        while place > 0 and abs(difference) > abs(space.sums[1, into[place - 1]] - space.sums[0, into[place - 1]]):
            into[place] = into[place - 1]
            place -= 1
        into[place] = j
        above += difference > 0
        below += difference < 0
    count = max(above, below)
    for m in range(count):
        space.items[m, 0] = first[m] if m < above else second[m]
        space.items[m, 1] = second[m] if m < min(above, below) else -1
    return same, count


@loop
def make_items(space, n, count, chain):  # type: ignore[no-untyped-def]
    """Tables of the items of one chain to slots (3 + chain) n + m, and of items m, m + 1, ... to (5 + chain) n + m."""
    base = (3 + chain) * n
    for m in range(count):
        a, b = space.items[m, 0] + chain * n, space.items[m, 1] + chain * n
        if space.items[m, 1] < 0:
            copy_head(space, a, base + m)
        elif not convolve(space, a, b, base + m):
            return False
    return suffixes(space, np.arange(base, base + count), count, (5 + chain) * n)


@loop
def draw_same(space, n, same, x, y, words, place, band):  # type: ignore[no-untyped-def]
    """Columns whose sums agree, given their totals x and y: (next place among the words, whether settled)."""
    for m in range(same - 1):
        j, rest = space.same[m], 2 * n + m + 1
        a, b, settled = draw_both(space, j, rest, j, rest, x, y, words[place], band)
        if not settled:
            return place, False
        place += 1
        space.values[0, j], space.values[1, j] = a, b
        x -= a
        y -= b
    if same > 0:
        j = space.same[same - 1]
        space.values[0, j], space.values[1, j] = x, y
    return place, True


@loop
def draw_items(space, n, count, x, y, words, place, band):  # type: ignore[no-untyped-def]
    """Columns whose sums differ, in pairs, given their totals."""
    for m in range(count):
        a, b = x, y
        if m < count - 1:
            a, b, settled = draw_both(space, 3 * n + m, 5 * n + m + 1, 4 * n + m, 6 * n + m + 1, x, y, words[place], band)
            if not settled:
                return place, False
            place += 1
        x -= a
        y -= b
        i, j = space.items[m, 0], space.items[m, 1]
        if j >= 0:
            c, d, settled = draw_both(space, i, j, n + i, n + j, a, b, words[place], band)
            if not settled:
                return place, False
            place += 1
            space.values[0, j], space.values[1, j] = a - c, b - d
            a, b = c, d
        space.values[0, i], space.values[1, i] = a, b
    return place, True


@loop
def draw_pair(cells, others, tables, space, words, place, first, second, stride, n, is_near, band):  # type: ignore[no-untyped-def]
    """New values of both chains' lines to space.values: (next place among the words, whether settled)."""
    space.top[0] = 0
    fits = make_columns(cells, tables, space, 0, first, second, stride, n, 0, False)
    if not fits or not make_columns(others, tables, space, 1, first, second, stride, n, n, True):
        return place, False
    same, count = order_columns(space, n)
    if same > 0 and not suffixes(space, space.same, same, 2 * n):
        return place, False
    x, y = line_sum(cells, first, stride, n), line_sum(others, first, stride, n)
    a, b = np.int64(0), np.int64(0)
    if count > 0:
        if not make_items(space, n, count, 0) or not make_items(space, n, count, 1):
            return place, False
        a, b = x, y
        if same > 0:
            if is_near:
                a, b, settled = draw_near(space, 5 * n, 2 * n, 6 * n, 2 * n, x, y, words, place, band)
                place += 3
            else:
                a, b, settled = draw_both(space, 5 * n, 2 * n, 6 * n, 2 * n, x, y, words[place], band)
                place += 1
            if not settled:
                return place, False
        x -= a
        y -= b
    place, settled = draw_same(space, n, same, x, y, words, place, band)
    if not settled:
        return place, False
    place, settled = draw_items(space, n, count, a, b, words, place, band)
    return place, settled and has_room(space, 0, n) and has_room(space, 1, n)


@loop
def apart_on(cells, others, first, second, stride, n):  # type: ignore[no-untyped-def]
    """|x - y|_1 on two lines."""
    total = np.int64(0)
    for j in range(n):
        a, b = first + j * stride, second + j * stride
        total += abs(cells[a] - others[a]) + abs(cells[b] - others[b])
    return total


@loop
def run_together(cells, others, rows, columns, tables, space, words, wanted, near, band):  # type: ignore[no-untyped-def]
    """At most so many coupled steps, in place; ends after the first that leaves the chains identical."""
    made, used = 0, 0
    apart = np.abs(cells - others).sum()
    while made < wanted:
        if used + 5 + 2 * max(rows, columns) > words.size:
            return made, used, NEEDS_WORDS
        first, second, stride, n = pick_lines(words, used, rows, columns)
        if stride == 0:
            return made, used, LEFT_OPEN
        after, settled = draw_pair(cells, others, tables, space, words, used + 2, first, second, stride, n, apart <= near, band)
        if not settled:
            return made, used, LEFT_OPEN
        apart -= apart_on(cells, others, first, second, stride, n)
        put(cells, space.values[0], first, second, stride, n)
        put(others, space.values[1], first, second, stride, n)
        apart += apart_on(cells, others, first, second, stride, n)
        used = after
        made += 1
        if apart == 0:
            break
    return made, used, ALL_DONE
