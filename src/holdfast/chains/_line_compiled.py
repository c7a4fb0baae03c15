"""Compiled loops of line_gibbs.py and coupled_line.py, where laws, pairings and the error of every double are explained.

All helpers but the choices stay in this module, because Numba's cache does not notice a change in a function imported from elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.chains._picks_compiled import OPEN, choose, two_places
from holdfast.exact._compiled import settle
from holdfast.exact._loop_compiled import loop

ALL_DONE, NEEDS_WORDS, LEFT_OPEN, TOO_LARGE = 0, 1, 2, 3
ABSOLUTE, SQUARES, NORM = 0, 1, 2

WIDTH = 2.0**-32
FAR = np.int64(1) << np.int64(40)
"""Where a line without an end is taken to end: further than any window."""
ROOM = np.int64(1) << np.int64(60)
"""How far heights may lie above the mode. Those of states stay below 2^60, one step of t adds at most 2^62 (line_gibbs.py refuses larger
moves): sums then fit 64 bits. Windows that would go further are left open."""
CUT = 2.0**-56
"""What a window leaves out of each tail, against the weight of the mode."""
LEAST_RESIDUAL = 2.0**-24
RESIDUAL_ERROR = 2.0**-45


@loop
def note(record, index, absolute, z, quadrant):  # type: ignore[no-untyped-def]
    """One row of the record: the energy, cell 0, the sum of the quadrant's cells."""
    energy = np.int64(0)
    for k in range(z.size):
        energy += abs(z[k]) if absolute else z[k] * z[k]
    total = np.int64(0)
    for c in quadrant:
        total += z[c]
    record[index, 0], record[index, 1], record[index, 2] = energy, z[0], total


# The fast loops: absolute values of the cells, no bounds, swaps on one or two axes.


@loop(inline="always")
def constants_of(powers, inner, outer, rate):  # type: ignore[no-untyped-def]
    """What `draw_flat` would else divide by or multiply at every move."""
    return powers[1] * inner, powers[2] * outer, 1.0 / inner, 1.0 / outer, 2.0 * rate, 0.5 / rate, 0.25 / rate


@loop(inline="always")
def draw_flat(word, b1, b2, b3, b4, powers, short, inner, outer, longest, widest, constants, band):  # type: ignore[no-untyped-def]
    """(t, settled) for weights exp(-rate sum |t - b|), b1 <= b2 <= b3 <= b4; two breakpoints only: b1 and b4 far away.

    Flat from b2 to b3, falling by exp(-2 rate) a step up to b1 and b4, by exp(-4 rate) beyond. In units of the flat weight the mass at
    distance >= j on a side is q^j / (1 - q) - q^(L+1) / (1 - q^2) for j <= L, q^(2j-L) / (1 - q^2) beyond, q = exp(-2 rate). Selections
    stand in place of branches, and indices are unsigned, for speed alone. Not settled where b2 .. b3 is too long for `step` or b1 .. b4 is
    so wide that a cell may leave the limit.
    """
    fits = (b3 - b2 <= longest) & (b4 - b1 <= widest)
    whole_side, first_beyond, per_inner, per_outer, two_rate, per_two_rate, per_four_rate = constants
    last = np.int64(powers.size - 1)
    left_length = min(b2 - b1, last)
    right_length = min(b4 - b3, last)
    left = whole_side + short[np.uint64(left_length)]
    flat = np.float64(b3 - b2 + 1)
    total = left + flat + whole_side + short[np.uint64(right_length)]
    half = 0.5 * WIDTH * total
    middle = np.float64(word) * (WIDTH * total) + half
    reach = half + band * total
    place = middle - left
    if 0.0 <= place < flat:
        j = np.int64(place)
        inside = place - np.float64(j)
        return b2 + j, fits & (inside >= reach) & (inside + reach <= 1.0)
    is_left = place < 0.0
    v = middle if is_left else total - middle
    length = left_length if is_left else right_length
    less = short[np.uint64(length)]
    beyond = v < powers[np.uint64(length)] * first_beyond
    log = math.log((v if beyond else v - less) * (per_outer if beyond else per_inner))
    depth = (log + two_rate * np.float64(length)) * per_four_rate if beyond else log * per_two_rate
    j = (length if beyond else np.int64(0)) - np.int64(depth)
    if j < 1 or 2 * j + 2 > last:
        return b2, False
    here, next_one = j <= length, j < length
    at_j = powers[np.uint64(j if here else 2 * j - length)] * (inner if here else outer) + (less if here else 0.0)
    after = powers[np.uint64(j + 1 if next_one else 2 * j + 2 - length)] * (inner if next_one else outer) + (less if next_one else 0.0)
    return (b2 - j if is_left else b3 + j), fits & (at_j >= v + reach) & (after <= v - reach)


@loop
def run_swaps(  # type: ignore[no-untyped-def]
    words, steps, z, rows, columns, row_words, column_words, law, band, record, every, done, quadrant
):
    """Swaps of a two-way grid. Returns (steps made, words used, why it stopped); z is changed in place."""
    powers, short, inner, outer, longest, widest, rate = law
    per_step = row_words + column_words + 1
    whole = min(steps, words.size // per_step)
    countdown = every - done % every if every else np.int64(-1)
    constants = constants_of(powers, inner, outer, rate)
    for step in range(whole):
        at = step * per_step
        i, j = two_places(words, at, rows, row_words)
        k, l = two_places(words, at + row_words, columns, column_words)
        if i < 0 or k < 0:
            return step, at, LEFT_OPEN
        upper_row, lower_row = i * columns, j * columns
        ik, il, jk, jl = np.uint64(upper_row + k), np.uint64(upper_row + l), np.uint64(lower_row + k), np.uint64(lower_row + l)
        a, b, c, d = -z[ik], z[il], z[jk], -z[jl]
        low_1, high_1, low_2, high_2 = min(a, b), max(a, b), min(c, d), max(c, d)
        m_1, m_2 = max(low_1, low_2), min(high_1, high_2)
        b1, b2, b3, b4 = min(low_1, low_2), min(m_1, m_2), max(m_1, m_2), max(high_1, high_2)
        word = words[at + per_step - 1]
        t, settled = draw_flat(word, b1, b2, b3, b4, powers, short, inner, outer, longest, widest, constants, band)
        if not settled:
            return step, at, LEFT_OPEN
        z[ik] += t
        z[il] -= t
        z[jk] -= t
        z[jl] += t
        countdown -= 1
        if countdown == 0:
            note(record, (done + step + 1) // every - 1, True, z, quadrant)
            countdown = np.int64(every)
    return whole, whole * per_step, ALL_DONE if whole == steps else NEEDS_WORDS


@loop
def run_pairs(words, steps, z, signs, pair_words, law, band, record, every, done, quadrant):  # type: ignore[no-untyped-def]
    """Swaps of one axis, with signs or without. Returns as `run_swaps`."""
    powers, short, inner, outer, longest, widest, rate = law
    per_step = pair_words + 1
    whole = min(steps, words.size // per_step)
    countdown = every - done % every if every else np.int64(-1)
    constants = constants_of(powers, inner, outer, rate)
    far = np.int64(powers.size)
    for step in range(whole):
        at = step * per_step
        i, j = two_places(words, at, z.size, pair_words)
        if i < 0:
            return step, at, LEFT_OPEN
        up, down = (signs[i], signs[j]) if signs.size else (np.int64(1), np.int64(1))
        a, b = -up * z[i], down * z[j]
        low, high = min(a, b), max(a, b)
        b1, b4, word = low - far, high + far, words[at + pair_words]
        t, settled = draw_flat(word, b1, low, high, b4, powers, short, inner, outer, longest, widest, constants, band)
        if not settled:
            return step, at, LEFT_OPEN
        z[i] += t * up
        z[j] -= t * down
        countdown -= 1
        if countdown == 0:
            note(record, (done + step + 1) // every - 1, True, z, quadrant)
            countdown = np.int64(every)
    return whole, whole * per_step, ALL_DONE if whole == steps else NEEDS_WORDS


# Any moves, any target: a window of weights outwards from the mode.


@loop
def choose_move(words, at, shape, words_of_axis, signs, starts, list_cells, list_coefficients, cells, coefficients):  # type: ignore[no-untyped-def]
    """The picked move into `cells` and `coefficients`; returns how many entries it has, or OPEN."""
    if shape.size == 0:
        index = choose(words[at], starts.size - 1)
        if index == OPEN:
            return np.int64(OPEN)
        count = starts[index + 1] - starts[index]
        for p in range(count):
            cells[p] = list_cells[starts[index] + p]
            coefficients[p] = list_coefficients[starts[index] + p]
        return count
    cells[0], coefficients[0] = 0, 1
    count = np.int64(1)
    for axis in range(shape.size):
        i, j = two_places(words, at, shape[axis], words_of_axis[axis])
        if i < 0:
            return np.int64(OPEN)
        at += words_of_axis[axis]
        for p in range(count):
            place = cells[p] * shape[axis]
            cells[p], cells[count + p] = place + i, place + j
            coefficients[count + p] = -coefficients[p]
        count *= 2
    if signs.size:
        for p in range(count):
            coefficients[p] *= signs[cells[p]]
    return count


@loop
def ends(count, cells, coefficients, z, lower, upper):  # type: ignore[no-untyped-def]
    """Least and greatest t within the bounds; FAR where there is none."""
    first, last = -FAR, FAR
    for p in range(count):
        c, u = cells[p], coefficients[p]
        if lower.size:
            slack = (z[c] - lower[c]) // abs(u)
            if u > 0:
                first = max(first, -slack)
            else:
                last = min(last, slack)
        if upper.size:
            slack = (upper[c] - z[c]) // abs(u)
            if u > 0:
                last = min(last, slack)
            else:
                first = max(first, -slack)
    return first, last


@loop(inline="always")
def height(t, count, line, square, cross):  # type: ignore[no-untyped-def]
    """The energy at t without what does not depend on t. `line`: values and steps; count = 0: a parabola."""
    if count == 0:
        return (square * t + 2 * cross) * t
    total = np.int64(0)
    for k in range(count):
        total += abs(line[0, k] + t * line[1, k])
    return total


@loop(inline="always")
def weight(excess, least, kind, rate, table):  # type: ignore[no-untyped-def]
    """Weight of energy least + excess against that of `least`."""
    if kind == NORM:
        if excess == 0:
            return 1.0
        return math.exp(-rate * (np.float64(excess) / (math.sqrt(np.float64(least + excess)) + math.sqrt(np.float64(least)))))
    if 0 <= excess < table.size:
        return table[excess]
    return math.exp(-rate * np.float64(excess))


@loop
def outer_stretches(count, line):  # type: ignore[no-untyped-def]
    """(low, high, slope): below low and above high the energy is a straight line of that slope; a parabola has no such places."""
    if count == 0:
        return -FAR, FAR, np.int64(0)
    low, high, slope = FAR, -FAR, np.int64(0)
    for k in range(count):
        zero = -(line[0, k] // line[1, k])
        low, high = min(low, zero - 1), max(high, zero + 1)
        slope += abs(line[1, k])
    return low, high, slope


@loop
def lowest(count, line, square, cross, low, high, first, last):  # type: ignore[no-untyped-def]
    """A t of least energy within the ends; `low` and `high` of `outer_stretches`."""
    if count == 0:
        return min(max((square - 2 * cross) // (2 * square), first), last)
    low, high = min(max(low, first), last), min(max(high, first), last)
    while low < high:
        middle = (low + high) >> 1
        if height(middle + 1, count, line, square, cross) >= height(middle, count, line, square, cross):
            high = middle
        else:
            low = middle + 1
    return low


@loop
def fill_window(count, line, square, cross, energy, first, last, kind, rate, table, sums):  # type: ignore[no-untyped-def]
    """Cumulative weights outwards from the mode: sums[0, i] of mode .. mode + i, sums[1, i] of mode - 1 .. mode - i.

    Returns (mode, its energy, entries on the right, entries on the left), entries OPEN where the window is too narrow for the law. Sums are
    compensated, so that their error stays that of one addition.
    """
    low, high, slope = outer_stretches(count, line)
    if np.float64(slope) * np.float64(max(-low, high)) > ROOM:  # heights on the way to the mode
        return np.int64(0), energy, np.int64(OPEN), np.int64(OPEN)
    mode = lowest(count, line, square, cross, low, high, first, last)
    base = height(mode, count, line, square, cross)
    least = energy + base
    sizes = (np.int64(0), np.int64(0))
    for side in range(2):
        direction, end, edge = (np.int64(1), last, high) if side == 0 else (np.int64(-1), first, -low)
        total, error, before = 1.0 - side, 0.0, 1.0
        sums[side, 0] = total
        t, i, excess = mode, np.int64(0), np.int64(0)
        while t != end:
            if t * direction >= edge:  # beyond all breakpoints the energy rises evenly
                t += direction
                excess += slope
            else:
                t += direction
                excess = height(t, count, line, square, cross) - base
            w = weight(excess, least, kind, rate, table)
            if w <= CUT and w * before <= CUT * (before - w):
                break
            i += 1
            if i >= sums.shape[1] or not 0 <= excess <= ROOM:
                return mode, least, np.int64(OPEN), np.int64(OPEN)
            after = total + w
            shadow = after - total
            error += (total - (after - shadow)) + (w - shadow)
            total, before = after, w
            sums[side, i] = total + error
        sizes = (i, sizes[1]) if side == 0 else (sizes[0], i)
    return mode, least, sizes[0], sizes[1]


@loop(inline="always")
def cumulative(t, mode, right, left, sums):  # type: ignore[no-untyped-def]
    """Mass of all points up to t, in units of the mode's weight."""
    i = t - mode
    if i >= 0:
        return sums[1, left] + sums[0, min(i, right)]
    return sums[1, left] - sums[1, min(-i - 1, left)]


@loop
def locate(word, mode, right, left, sums, band):  # type: ignore[no-untyped-def]
    """(t, settled): the smallest t with U < F(t)."""
    total = sums[0, right] + sums[1, left]
    target = (np.float64(word) + 0.5) * WIDTH * total
    low, high = mode - left, mode + right
    while low < high:
        middle = (low + high) >> 1
        if target < cumulative(middle, mode, right, left, sums):
            high = middle
        else:
            low = middle + 1
    reach = (0.5 * WIDTH + band) * total
    settled = cumulative(low, mode, right, left, sums) >= target + reach
    settled &= cumulative(low - 1, mode, right, left, sums) <= target - reach
    return low, settled


@loop
def set_line(count, cells, coefficients, z, kind, line):  # type: ignore[no-untyped-def]
    """What `height` needs: (count, square, cross)."""
    square, cross = np.int64(0), np.int64(0)
    for p in range(count):
        value, step = z[cells[p]], coefficients[p]
        if kind == ABSOLUTE:
            line[0, p], line[1, p] = value, step
        else:
            square += step * step
            cross += step * value
    return (count if kind == ABSOLUTE else np.int64(0)), square, cross


@loop
def advance(t, count, cells, coefficients, z, limit):  # type: ignore[no-untyped-def]
    """z + t u; says whether everything stays below the limit."""
    if abs(t) >= 2 * limit:  # from one end of the limit beyond the other
        return False
    fits = True
    for p in range(count):
        z[cells[p]] += t * coefficients[p]
        fits &= abs(z[cells[p]]) < limit
    return fits


@loop
def run_windows(  # type: ignore[no-untyped-def]
    words, steps, z, energy, moves, target, scratch, pick_words, kind, rate, band, limit, record, every, done, quadrant
):
    """Any moves and target. `energy` holds E(z). Returns as `run_swaps`."""
    shape, words_of_axis, signs, starts, list_cells, list_coefficients = moves
    lower, upper, table = target
    cells, coefficients, line, sums = scratch
    per_step = pick_words + 1
    whole = min(steps, words.size // per_step)
    for step in range(whole):
        at = step * per_step
        count = choose_move(words, at, shape, words_of_axis, signs, starts, list_cells, list_coefficients, cells, coefficients)
        if count == OPEN:
            return step, at, LEFT_OPEN
        first, last = ends(count, cells, coefficients, z, lower, upper)
        entries, square, cross = set_line(count, cells, coefficients, z, kind, line)
        mode, _, right, left = fill_window(entries, line, square, cross, energy[0], first, last, kind, rate, table, sums)
        if right == OPEN:
            return step, at, LEFT_OPEN
        t, settled = locate(words[at + pick_words], mode, right, left, sums, band)
        if not settled:
            return step, at, LEFT_OPEN
        energy[0] += height(t, entries, line, square, cross) - height(np.int64(0), entries, line, square, cross)
        if not advance(t, count, cells, coefficients, z, limit):
            return step + 1, at + per_step, TOO_LARGE
        if every and (done + step + 1) % every == 0:
            note(record, (done + step + 1) // every - 1, kind == ABSOLUTE, z, quadrant)
    return whole, whole * per_step, ALL_DONE if whole == steps else NEEDS_WORDS


# Two chains at once.


@loop
def slope_of_distance(s, count, cells, coefficients, x, y):  # type: ignore[no-untyped-def]
    """|d - (s + 1) u|_1 - |d - s u|_1 for d = x - y."""
    total = np.int64(0)
    for p in range(count):
        rest = x[cells[p]] - y[cells[p]] - s * coefficients[p]
        total += abs(rest - coefficients[p]) - abs(rest)
    return total


@loop
def best_shifts(count, cells, coefficients, x, y):  # type: ignore[no-untyped-def]
    """The least s of least |d - s u|_1, and whether there is another."""
    low, high = FAR, -FAR
    for p in range(count):
        zero = (x[cells[p]] - y[cells[p]]) // coefficients[p]
        low, high = min(low, zero - 1), max(high, zero + 2)
    while low < high:
        middle = (low + high) >> 1
        if slope_of_distance(middle, count, cells, coefficients, x, y) >= 0:
            high = middle
        else:
            low = middle + 1
    return low, slope_of_distance(low, count, cells, coefficients, x, y) == 0


@loop(inline="always")
def mass_at(t, law, count, square, kind, rate, table):  # type: ignore[no-untyped-def]
    """Probability of t, with the relative error of its weight: not from cumulative sums. `law`: what `law_of` packs."""
    line, cross, first, last, _, least, _, _, base, total, _ = law
    if t < first or t > last:
        return 0.0
    return weight(height(t, count, line, square, cross) - base, least, kind, rate, table) / total


@loop
def law_of(count, line, square, cross, energy, first, last, kind, rate, table, sums):  # type: ignore[no-untyped-def]
    """`fill_window`, and everything that is asked of the law of t afterwards; last, how large t may be for its height to fit 64 bits."""
    mode, least, right, left = fill_window(count, line, square, cross, energy, first, last, kind, rate, table, sums)
    total = sums[0, right] + sums[1, left] if right != OPEN else 0.0
    furthest = ROOM / outer_stretches(count, line)[2] if count else math.sqrt(ROOM / square)
    return line, cross, first, last, mode, least, right, left, height(mode, count, line, square, cross), total, furthest


@loop
def fill_residual(p_law, q_law, shift, count, square, kind, rate, table, residual):  # type: ignore[no-untyped-def]
    """Cumulative sums of (q - p)+ over the places where either has mass, q moved by the shift; returns the first and the last place."""
    low = min(p_law[4] - p_law[7], q_law[4] - q_law[7] - shift)
    high = max(p_law[4] + p_law[6], q_law[4] + q_law[6] - shift)
    reach = max(-low, high)
    if high - low + 1 > residual.size or reach > p_law[10] or reach + abs(shift) > q_law[10]:
        return low, low - 1
    total, error = 0.0, 0.0
    for r in range(low, high + 1):
        p = mass_at(r, p_law, count, square, kind, rate, table)
        w = max(mass_at(r + shift, q_law, count, square, kind, rate, table) - p, 0.0)
        after = total + w
        shadow = after - total
        error += (total - (after - shadow)) + (w - shadow)
        total = after
        residual[r - low] = total + error
    return low, high


@loop
def pair_maximally(t, coin, word, p_law, q_law, shift, count, square, kind, rate, table, residual, band):  # type: ignore[no-untyped-def]
    """(t', settled) of the maximal pairing once t is drawn: t + shift if the coin says so, else from the residual."""
    if abs(t + shift) > q_law[10]:
        return t, False
    p = mass_at(t, p_law, count, square, kind, rate, table)
    q = mass_at(t + shift, q_law, count, square, kind, rate, table)
    verdict = 1 if q >= p * (1.0 + band) else settle(np.float64(coin), WIDTH, min(q / p, 1.0), band)
    if verdict >= 0:
        return t + shift, verdict != 0
    low, high = fill_residual(p_law, q_law, shift, count, square, kind, rate, table, residual)
    place, settled = locate_residual(word, low, high, residual, band)
    return place + shift, settled


@loop
def locate_residual(word, low, high, residual, band):  # type: ignore[no-untyped-def]
    """(place, settled) in the residual law whose cumulative sums, not normalised, are given for low .. high."""
    size = high - low + 1
    total = residual[size - 1] if size > 0 else 0.0
    if total < LEAST_RESIDUAL:
        return low, False
    band = max(band, RESIDUAL_ERROR / total)
    target = (np.float64(word) + 0.5) * WIDTH * total
    place = np.searchsorted(residual[:size], target, side="right")
    if place >= size:
        return low, False
    reach = (0.5 * WIDTH + band) * total
    below = residual[place - 1] if place > 0 else 0.0
    return low + place, residual[place] >= target + reach and below <= target - reach


@loop
def run_coupled(  # type: ignore[no-untyped-def]
    words, most, x, y, energies, differ, moves, target, scratch, other, pick_words, kind, rate, band, limit
):
    """Coupled steps until the chains are identical. Returns as `run_swaps`; `differ` counts the cells in which they are not."""
    shape, words_of_axis, signs, starts, list_cells, list_coefficients = moves
    lower, upper, table = target
    cells, coefficients, x_line, x_sums = scratch
    y_line, y_sums, residual = other
    at, zero = np.int64(0), np.int64(0)
    for step in range(most):
        if at + pick_words + 3 > words.size:
            return step, at, NEEDS_WORDS
        count = choose_move(words, at, shape, words_of_axis, signs, starts, list_cells, list_coefficients, cells, coefficients)
        if count == OPEN:
            return step, at, LEFT_OPEN
        x_first, x_last = ends(count, cells, coefficients, x, lower, upper)
        y_first, y_last = ends(count, cells, coefficients, y, lower, upper)
        n, square, x_cross = set_line(count, cells, coefficients, x, kind, x_line)
        n, square, y_cross = set_line(count, cells, coefficients, y, kind, y_line)
        p_law = law_of(n, x_line, square, x_cross, energies[0], x_first, x_last, kind, rate, table, x_sums)
        q_law = law_of(n, y_line, square, y_cross, energies[1], y_first, y_last, kind, rate, table, y_sums)
        if p_law[6] == OPEN or q_law[6] == OPEN:
            return step, at, LEFT_OPEN
        word = words[at + pick_words]
        t, settled = locate(word, p_law[4], p_law[6], p_law[7], x_sums, band)
        if not settled:
            return step, at, LEFT_OPEN
        shift, several = best_shifts(count, cells, coefficients, x, y)
        used = pick_words + (1 if several else 3)
        if several:
            s, settled = locate(word, q_law[4], q_law[6], q_law[7], y_sums, band)
        else:
            coin, rest = words[at + pick_words + 1], words[at + pick_words + 2]
            s, settled = pair_maximally(t, coin, rest, p_law, q_law, shift, n, square, kind, rate, table, residual, band)
        if not settled:
            return step, at, LEFT_OPEN
        for p_cell in range(count):
            c, u = cells[p_cell], coefficients[p_cell]
            gap = x[c] - y[c]
            differ[0] += np.int64(gap + (t - s) * u != 0) - np.int64(gap != 0)
        energies[0] += height(t, n, x_line, square, x_cross) - height(zero, n, x_line, square, x_cross)
        energies[1] += height(s, n, y_line, square, y_cross) - height(zero, n, y_line, square, y_cross)
        at += used
        fits = advance(t, count, cells, coefficients, x, limit)
        fits &= advance(s, count, cells, coefficients, y, limit)
        if not fits:
            return step + 1, at, TOO_LARGE
        if differ[0] == 0:
            return step + 1, at, ALL_DONE
    return most, at, ALL_DONE
