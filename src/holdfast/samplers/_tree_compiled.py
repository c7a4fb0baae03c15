"""Compiled loops of tree_gaussian.py, where the recurrence, the error of every double and the order of words are explained.

None makes an array, so references need no counting (`_nrt=False`).
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import WIDTH, log_ratio

DONE, NEED_PAIRS, OPEN_PAIR, FINISHED_TRY, NEED_CLASS = 0, 1, 2, 3, 4
# Places in `state`. A pause inside a table begins that table anew: the pairs it had used are still there.
DEPTH, TABLE, CLASS, PAIR, NUMERATOR, INNOVATION, DENOMINATOR, SMALLER, LEVEL, UNIT, NEAREST = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10

WIDE = 3.0
"""Above this variance a theta ratio is 1 but for WIDE_LOSS."""
WIDE_LOSS = 1e-24


@loop(inline="always", _nrt=False)
def rung(variance):  # type: ignore[no-untyped-def]
    """The number of the proposal for this variance: its own variance is (n % 8 + 9) / 16 x 2^(n // 8), n + 800 being returned."""
    wanted = variance * (1.0 + max(0.3 / math.sqrt(variance), 0.015625))
    mantissa, exponent = math.frexp(wanted)
    return np.int64(exponent) * 8 + np.int64(mantissa * 16.0) - 8 + 800


@loop(inline="always", _nrt=False)
def draw_cell(A, B, D, smaller, ratio, base_variance, pairs, progress):  # type: ignore[no-untyped-def]
    """(status, value) of one cell: centre (A + ratio B) / D, variance base_variance smaller / D."""
    used, state, sums, band = pairs.used, progress.state, progress.sums, pairs.band
    first, second = A / D, ratio * B / D
    variance = base_variance * smaller / D
    centre = first + second
    c0 = np.int64(np.rint(centre))
    size = abs(first) + abs(second) + 1.0
    d = centre - c0
    number = rung(variance)
    c = pairs.classes[number]
    if c < 0:
        state[CLASS] = number
        return NEED_CLASS, np.int64(0)
    h = variance / pairs.variances[c]
    gap = 1.0 - h
    scale = 0.5 / (pairs.variances[c] * h * gap)
    while True:
        place = used[c]
        if place >= pairs.filled[c]:
            state[CLASS] = c
            return NEED_PAIRS, np.int64(0)
        p = pairs.proposals[c, place]
        word = np.float64(pairs.accepts[c, place])
        x = gap * p - d
        t = x * x * scale
        verdict = 0
        if size <= progress.most:
            if (word + 1.0) * WIDTH <= 1.0 - t - band:
                verdict = 1
            else:
                chance = math.exp(-t)
                if (word + 1.0) * WIDTH <= chance - band:
                    verdict = 1
                elif word * WIDTH >= chance + band:
                    verdict = -1
        if verdict == 0:
            verdict = pairs.verdicts[c, place]
            if verdict == 0:
                state[CLASS], state[PAIR], state[NEAREST] = c, place, c0
                state[NUMERATOR], state[INNOVATION], state[DENOMINATOR], state[SMALLER] = A, B, D, smaller
                return OPEN_PAIR, np.int64(0)
        used[c] = place + 1
        if verdict > 0:
            break
    if variance < WIDE:
        moved = progress.error * size
        sums[0] += log_ratio(variance, min(abs(d), 0.5))
        sums[1] += 2.0**-45 * (1.0 + 1.0 / variance) + 2.0 * (moved + progress.error) * (1.0 + 1.0 / variance)
    else:
        sums[1] += WIDE_LOSS
    return DONE, c0 + p


@loop(_nrt=False)
def open_line(line, axes, lens, tails, lines_at, table, N, E, offsets, place, left):  # type: ignore[no-untyped-def]
    """N_k along all axes but the last, for the line that begins here; `table` holds the line sums. Returns prod R over those axes."""
    last = axes - 1
    rest = line
    for k in range(last - 1, -1, -1):
        place[k] = rest % lens[k]
        rest //= lens[k]
    begin = np.int64(0)
    for k in range(last):
        if place[k] != 0:
            begin = np.int64(k)
    prefix, P = np.int64(0), np.int64(1)
    for k in range(last):
        left[k] = lens[k] - place[k]
        if k >= begin:
            tail, here = tails[k], offsets[k]
            above = offsets[k - 1] if k > 0 else np.int64(0)
            if place[k] == 0:
                for q in range(tail):
                    value = P * table[lines_at[k] + prefix * tail + q]
                    if k > 0:
                        for i in range(lens[k]):
                            value -= N[above + i * tail + q]
                    E[here + q] = value
            for q in range(tail):
                N[here + q] = E[here + q] if k == 0 else left[k] * N[above + place[k] * tail + q] + E[here + q]
        prefix = prefix * lens[k] + place[k]
        P *= left[k]
    return P


@loop(_nrt=False)
def close_line(axes, lens, tails, N, E, offsets, place, left, z):  # type: ignore[no-untyped-def]
    """E_k -= (prod_{l<k} R_l) z - N_{k-1}, along all axes but the last."""
    last = axes - 1
    length = lens[last]
    P = np.int64(1)
    for k in range(last):
        index = np.int64(0)
        for a in range(k + 1, last):
            index = index * lens[a] + place[a]
        here = offsets[k] + index * length
        if k == 0:
            for j in range(length):
                E[here + j] -= z[j]
        else:
            above = offsets[k - 1] + place[k] * tails[k] + index * length
            for j in range(length):
                E[here + j] -= P * z[j] - N[above + j]
        P *= left[k]


@loop(_nrt=False)
def draw_table(M, R, with_parent, mask, margins, work, ratio, base_variance, pairs, progress):  # type: ignore[no-untyped-def]
    """The S-margin of one unit, given its line sums (in M) and what is left of the parent's (in R): see the module's text."""
    axes, at = margins.axes[mask], margins.at[mask]
    lens, tails, lines_at, offsets = margins.lens[mask], margins.tails[mask], margins.lines_at[mask], margins.offsets[mask]
    N, E, NR, ER, place, left = work.N, work.E, work.NR, work.ER, work.place, work.left
    last = axes - 1
    length = lens[last]
    lines = np.int64(1)
    for k in range(last):
        lines *= lens[k]
    before = offsets[last - 1] if last > 0 else np.int64(0)
    for line in range(lines):
        P = open_line(line, axes, lens, tails, lines_at, M, N, E, offsets, place, left)
        if with_parent:
            open_line(line, axes, lens, tails, lines_at, R, NR, ER, offsets, place, left)
        z = M[at + line * length : at + (line + 1) * length]
        known = R[at + line * length : at + (line + 1) * length]
        status = draw_line(z, known, with_parent, line, P, lines_at[last], before, last, M, R, work, ratio, base_variance, pairs, progress)
        if status != DONE:
            return status
        if last > 0:
            close_line(axes, lens, tails, N, E, offsets, place, left, z)
            if with_parent:
                close_line(axes, lens, tails, NR, ER, offsets, place, left, known)
    return DONE


@loop(_nrt=False)
def draw_line(z, known, with_parent, line, P, sums_at, before, last, M, R, work, ratio, base_variance, pairs, progress):  # type: ignore[no-untyped-def]
    """The cells of one line: forced where another axis is at its last place, else one after the other, the last of them forced."""
    N, NR, left = work.N, work.NR, work.left
    length = z.size
    smaller = np.int64(1)
    for k in range(last):
        smaller *= left[k] - 1
    if smaller == 0:
        for j in range(length):
            z[j] = N[before + j] // P
        return DONE
    e = P * M[sums_at + line]
    eR = P * R[sums_at + line] if with_parent else np.int64(0)
    if last > 0:
        for j in range(length):
            e -= N[before + j]
            if with_parent:
                eR -= NR[before + j]
    for j in range(length - 1):
        r = np.int64(length - j)
        ahead = N[before + j] if last > 0 else np.int64(0)
        A, B, D = r * ahead + e, np.int64(0), P * r
        if with_parent:
            aheadR = NR[before + j] if last > 0 else np.int64(0)
            B = D * known[j] - (r * aheadR + eR)
            eR -= P * known[j] - aheadR
        status, value = draw_cell(A, B, D, smaller * (r - 1), ratio, base_variance, pairs, progress)
        if status != DONE:
            return status
        z[j] = value
        e -= P * value - ahead
    z[length - 1] = ((N[before + length - 1] if last > 0 else np.int64(0)) + e) // P
    return DONE


@loop(inline="always", _nrt=False)
def s_of(units, depth, mask, unit):  # type: ignore[no-untyped-def]
    """s of a unit one level below `depth`."""
    if depth + 1 == units.levels:
        return units.s_leaf[mask]
    width = (units.s_at[depth + 2] - units.s_at[depth + 1]) // units.s_leaf.size
    return units.s_units[units.s_at[depth + 1] + mask * width + unit]


@loop(_nrt=False)
def enter(depth, unit, units, work):  # type: ignore[no-untyped-def]
    """Begin with the children of a unit: rest[mask, j] is the sum of s over the children j, j + 1, ..."""
    n, begin = units.children[units.children_at[depth] + unit], units.starts[units.children_at[depth] + unit]
    work.child[depth], work.number[depth], work.first_child[depth] = 0, n, begin
    for mask in range(units.s_leaf.size):
        total = 0.0
        at = work.rest_at[depth] + mask * work.width[depth]
        for j in range(n - 1, -1, -1):
            if depth + 1 == units.levels:  # all alike: one product has less error than a sum
                work.rest[at + j] = (n - j) * units.s_leaf[mask]
            else:
                total += s_of(units, depth, mask, begin + j)
                work.rest[at + j] = total


@loop(inline="always", _nrt=False)  # called for every unit
def draw_margin(mask, depth, below, last_child, units, margins, work, pairs, progress):  # type: ignore[no-untyped-def]
    """One margin of the unit that stands next below `depth` (-1: the root): zero where kept, what is left for the last child."""
    top = depth < 0
    M, R = work.tables[depth + 1], work.tables[0 if top else depth]
    at, size = margins.at[mask], margins.size[mask]
    if units.kept[depth + 1, mask]:
        for i in range(at, at + size):
            M[i] = 0
        return DONE
    if last_child:
        for i in range(at, at + size):
            M[i] = R[i]
        return DONE
    ratio, base_variance = 0.0, units.s_root[mask]
    if not top:
        where = work.rest_at[depth] + mask * work.width[depth] + work.child[depth]
        own = s_of(units, depth, mask, below)
        ratio = own / work.rest[where]
        base_variance = own * (work.rest[where + 1] / work.rest[where])
    if margins.axes[mask] > 0:
        return draw_table(M, R, not top, mask, margins, work, ratio, base_variance, pairs, progress)
    # One number: the common case of units without axes must not pay for grids.
    innovation = np.int64(0) if top else R[at]
    status, M[at] = draw_cell(np.int64(0), innovation, np.int64(1), np.int64(1), ratio, base_variance, pairs, progress)
    return status


@loop(inline="always", _nrt=False)
def copy(source, place):  # type: ignore[no-untyped-def]
    for i in range(source.size):
        place[i] = source[i]


@loop(_nrt=False)
def draw_block(out, units, margins, work, pairs, progress):  # type: ignore[no-untyped-def]
    """One try at a block: units outside, margins inside, coarse before fine. Goes on at the table where it stopped."""
    # Copies and differences are written cell by cell: for units of one cell a slice costs five times the draw.
    state, child, tables = progress.state, work.child, work.tables
    used, used_before, sums, sums_before = pairs.used, pairs.used_before, progress.sums, progress.sums_before
    masks = margins.order.size
    full = margins.order[masks - 1]
    cells = margins.size[full]
    depth, position = state[DEPTH], state[TABLE]
    while True:
        top = depth < 0
        if not top and child[depth] == work.number[depth]:  # this unit is done
            depth -= 1
            if depth < 0:
                return FINISHED_TRY
            continue
        last_child = not top and child[depth] == work.number[depth] - 1
        below = np.int64(0) if top else work.first_child[depth] + child[depth]
        while position < masks:
            status = draw_margin(margins.order[position], depth, below, last_child, units, margins, work, pairs, progress)
            if status != DONE:
                state[DEPTH], state[TABLE], state[LEVEL], state[UNIT] = depth, position, depth + 1, below
                copy(used_before, used)
                copy(sums_before, sums)
                return status
            copy(used, used_before)
            copy(sums, sums_before)
            position += 1
        position = np.int64(0)
        if not top:
            if not last_child:
                for i in range(tables.shape[1]):
                    tables[depth, i] -= tables[depth + 1, i]
            child[depth] += 1
        if depth + 1 == units.levels:
            for i in range(cells):
                out[below * cells + i] = tables[depth + 1, margins.at[full] + i]
            if top:
                return FINISHED_TRY
        else:
            depth += 1
            enter(depth, below, units, work)
