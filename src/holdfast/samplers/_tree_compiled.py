"""Compiled loops of tree_gaussian.py, where the recurrence, the error of every double and the order of words are explained.

All helpers stay in this module, because Numba's cache does not notice a change in a function imported from elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop

DONE, NEED_PAIRS, OPEN_PAIR, FINISHED_TRY, NEED_CLASS = 0, 1, 2, 3, 4
# Places in `state`. A pause inside a table begins that table anew: the pairs it had used are still there.
DEPTH, TABLE, CLASS, PAIR, NUMERATOR, INNOVATION, DENOMINATOR, SMALLER, LEVEL, UNIT, CHILD, NEAREST = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11

WIDTH = 2.0**-32
CROSSOVER = 1.0 / 6.0
WIDE = 3.0
"""Above this variance a theta ratio is 1 but for WIDE_LOSS."""
WIDE_LOSS = 1e-24


@loop(inline="always")
def rung(variance):  # type: ignore[no-untyped-def]
    """The number of the proposal for this variance: its own variance is (n % 8 + 9) / 16 x 2^(n // 8), n + 800 being returned."""
    wanted = variance * (1.0 + max(0.3 / math.sqrt(variance), 0.015625))
    mantissa, exponent = math.frexp(wanted)
    return np.int64(exponent) * 8 + np.int64(mantissa * 16.0) - 8 + 800


@loop
def log_ratio(variance, d):  # type: ignore[no-untyped-def]
    """Scalar twin of theta.log_theta_ratio, d the distance to the nearest integer."""
    if variance >= CROSSOVER:
        x = variance * (2.0 * math.pi * math.pi)
        numerator, denominator = 0.0, 1.0
        for n in range(1, 4):
            power = math.exp(-n * n * x)
            numerator += power * math.sin(math.pi * n * d) ** 2
            denominator += 2.0 * power
        return math.log1p(-4.0 * numerator / denominator)
    half = 0.5 / variance
    above, below = 1.0, 1.0
    for k in range(1, 5):
        above += math.exp(-k * (k - 2.0 * d) * half) + math.exp(-k * (k + 2.0 * d) * half)
        below += 2.0 * math.exp(-k * k * half)
    return math.log(above / below) - d * d * half


@loop(inline="always")
def draw_cell(  # type: ignore[no-untyped-def]
    A, B, D, smaller, ratio, base_variance, error, most, classes, variances, band, proposals, accepts, verdicts, filled, used, state, sums
):
    """(status, value) of one cell: centre (A + ratio B) / D, variance base_variance smaller / D."""
    first, second = A / D, ratio * B / D
    variance = base_variance * smaller / D
    centre = first + second
    c0 = np.int64(np.rint(centre))
    size = abs(first) + abs(second) + 1.0
    d = centre - c0
    number = rung(variance)
    c = classes[number]
    if c < 0:
        state[CLASS] = number
        return NEED_CLASS, np.int64(0)
    h = variance / variances[c]
    gap = 1.0 - h
    scale = 0.5 / (variances[c] * h * gap)
    while True:
        place = used[c]
        if place >= filled[c]:
            state[CLASS] = c
            return NEED_PAIRS, np.int64(0)
        p = proposals[c, place]
        word = np.float64(accepts[c, place])
        x = gap * p - d
        t = x * x * scale
        verdict = 0
        if size <= most:
            if (word + 1.0) * WIDTH <= 1.0 - t - band:
                verdict = 1
            else:
                chance = math.exp(-t)
                if (word + 1.0) * WIDTH <= chance - band:
                    verdict = 1
                elif word * WIDTH >= chance + band:
                    verdict = -1
        if verdict == 0:
            verdict = verdicts[c, place]
            if verdict == 0:
                state[CLASS], state[PAIR], state[NEAREST] = c, place, c0
                state[NUMERATOR], state[INNOVATION], state[DENOMINATOR], state[SMALLER] = A, B, D, smaller
                return OPEN_PAIR, np.int64(0)
        used[c] = place + 1
        if verdict > 0:
            break
    if variance < WIDE:
        moved = error * size
        sums[0] += log_ratio(variance, min(abs(d), 0.5))
        sums[1] += 2.0**-45 * (1.0 + 1.0 / variance) + 2.0 * (moved + error) * (1.0 + 1.0 / variance)
    else:
        sums[1] += WIDE_LOSS
    return DONE, c0 + p


@loop
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


@loop
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


@loop
def draw_table(  # type: ignore[no-untyped-def]
    M,
    R,
    with_parent,
    mask,
    mask_axes,
    lens,
    tails,
    table_at,
    lines_at,
    offsets,
    N,
    E,
    NR,
    ER,
    place,
    left,
    ratio,
    base_variance,
    error,
    most,
    classes,
    variances,
    band,
    proposals,
    accepts,
    verdicts,
    filled,
    used,
    state,
    sums,
):
    """The S-margin of one unit, given its line sums (in M) and what is left of the parent's (in R): see the module's text."""
    axes = mask_axes[mask]
    at = table_at[mask]
    own_lens, own_tails, own_lines, own_offsets = lens[mask], tails[mask], lines_at[mask], offsets[mask]
    last = axes - 1
    length = own_lens[last]
    lines = np.int64(1)
    for k in range(last):
        lines *= own_lens[k]
    before = own_offsets[last - 1] if last > 0 else np.int64(0)
    for line in range(lines):
        P = open_line(line, axes, own_lens, own_tails, own_lines, M, N, E, own_offsets, place, left)
        if with_parent:
            open_line(line, axes, own_lens, own_tails, own_lines, R, NR, ER, own_offsets, place, left)
        forced, smaller = False, np.int64(1)
        for k in range(last):
            forced = forced or left[k] == 1
            smaller *= left[k] - 1
        z = M[at + line * length : at + (line + 1) * length]
        known = R[at + line * length : at + (line + 1) * length]
        if forced:
            for j in range(length):
                z[j] = N[before + j] // P
        else:
            e = P * M[own_lines[last] + line]
            eR = P * R[own_lines[last] + line] if with_parent else np.int64(0)
            if last > 0:
                for j in range(length):
                    e -= N[before + j]
                    if with_parent:
                        eR -= NR[before + j]
            for j in range(length):
                r = np.int64(length - j)
                ahead = N[before + j] if last > 0 else np.int64(0)
                A = r * ahead + e
                D = P * r
                if r == 1:
                    z[j] = A // D
                    break
                B = np.int64(0)
                if with_parent:
                    aheadR = NR[before + j] if last > 0 else np.int64(0)
                    B = D * known[j] - (r * aheadR + eR)
                    eR -= P * known[j] - aheadR
                status, value = draw_cell(
                    A,
                    B,
                    D,
                    smaller * (r - 1),
                    ratio,
                    base_variance,
                    error,
                    most,
                    classes,
                    variances,
                    band,
                    proposals,
                    accepts,
                    verdicts,
                    filled,
                    used,
                    state,
                    sums,
                )
                if status != DONE:
                    return status
                z[j] = value
                e -= P * value - ahead
        if last > 0:
            close_line(axes, own_lens, own_tails, N, E, own_offsets, place, left, z)
            if with_parent:
                close_line(axes, own_lens, own_tails, NR, ER, own_offsets, place, left, known)
    return DONE


@loop
def enter(depth, unit, children, children_at, starts, first_child, is_leaf_level, s_units, s_at, s_leaf, masks, rest, rest_at, width):  # type: ignore[no-untyped-def]
    """Sums of s over the children not yet drawn, for every mask: rest[mask, j] over the children j, j + 1, ..."""
    n = children[children_at[depth] + unit]
    begin = starts[children_at[depth] + unit]
    first_child[depth] = begin
    for mask in range(masks):
        total = 0.0
        at = rest_at[depth] + mask * width[depth]
        for j in range(n - 1, -1, -1):
            if is_leaf_level:
                rest[at + j] = (n - j) * s_leaf[mask]
            else:
                total += s_units[s_at[depth + 1] + mask * (s_at[depth + 2] - s_at[depth + 1]) // masks + begin + j]
                rest[at + j] = total
    return n


@loop
def draw_block(  # type: ignore[no-untyped-def]
    out,
    levels,
    children,
    children_at,
    starts,
    kept,
    s_root,
    s_units,
    s_at,
    s_leaf,
    order,
    mask_axes,
    lens,
    tails,
    table_at,
    table_size,
    lines_at,
    offsets,
    N,
    E,
    NR,
    ER,
    place,
    left,
    tables,
    rest,
    rest_at,
    width,
    unit,
    child,
    count,
    first_child,
    error,
    most,
    classes,
    variances,
    band,
    proposals,
    accepts,
    verdicts,
    filled,
    used,
    used_before,
    state,
    sums,
    sums_before,
):
    """One try at a block: units outside, margins inside, coarse before fine. Goes on at the table where it stopped."""
    masks = order.size
    full = order[masks - 1]
    cells = table_size[full]
    depth, position = state[DEPTH], state[TABLE]
    while True:
        top = depth < 0
        if not top and child[depth] == count[depth]:  # this unit is done
            depth -= 1
            if depth < 0:
                return FINISHED_TRY
            continue
        M = tables[depth + 1]
        R = tables[depth if not top else 0]
        last_child = not top and child[depth] == count[depth] - 1
        below = first_child[depth] + child[depth] if not top else np.int64(0)
        is_leaf = depth + 1 == levels
        while position < masks:
            mask = order[position]
            at, size = table_at[mask], table_size[mask]
            if kept[depth + 1, mask]:
                for i in range(at, at + size):
                    M[i] = 0
            elif last_child:
                for i in range(at, at + size):
                    M[i] = R[i]
            else:
                ratio, base_variance = 0.0, s_root[mask]
                if not top:
                    where = rest_at[depth] + mask * width[depth] + child[depth]
                    if is_leaf:
                        own = s_leaf[mask]
                    else:
                        own = s_units[s_at[depth + 1] + mask * (s_at[depth + 2] - s_at[depth + 1]) // masks + below]
                    ratio = own / rest[where]
                    base_variance = own * (rest[where + 1] / rest[where])
                if mask_axes[mask] == 0:  # one number: the common case of units without axes must not pay for grids
                    innovation = np.int64(0) if top else R[at]
                    status, M[at] = draw_cell(
                        np.int64(0),
                        innovation,
                        np.int64(1),
                        np.int64(1),
                        ratio,
                        base_variance,
                        error,
                        most,
                        classes,
                        variances,
                        band,
                        proposals,
                        accepts,
                        verdicts,
                        filled,
                        used,
                        state,
                        sums,
                    )
                else:
                    status = draw_table(
                        M,
                        R,
                        not top,
                        mask,
                        mask_axes,
                        lens,
                        tails,
                        table_at,
                        lines_at,
                        offsets,
                        N,
                        E,
                        NR,
                        ER,
                        place,
                        left,
                        ratio,
                        base_variance,
                        error,
                        most,
                        classes,
                        variances,
                        band,
                        proposals,
                        accepts,
                        verdicts,
                        filled,
                        used,
                        state,
                        sums,
                    )
                if status != DONE:
                    state[DEPTH], state[TABLE] = depth, position
                    state[LEVEL], state[UNIT] = depth + 1, below
                    state[CHILD] = 0 if top else child[depth]
                    for c in range(used.size):
                        used[c] = used_before[c]
                    sums[0], sums[1] = sums_before[0], sums_before[1]
                    return status
                for c in range(used.size):
                    used_before[c] = used[c]
                sums_before[0], sums_before[1] = sums[0], sums[1]
            position += 1
        position = np.int64(0)
        if not top:
            if not last_child:
                for i in range(R.size):
                    R[i] -= M[i]
            child[depth] += 1
        if is_leaf:
            for i in range(cells):
                out[below * cells + i] = M[table_at[full] + i]
            if top:
                return FINISHED_TRY
        else:
            depth += 1
            unit[depth], child[depth] = below, 0
            count[depth] = enter(
                depth,
                below,
                children,
                children_at,
                starts,
                first_child,
                depth + 1 == levels,
                s_units,
                s_at,
                s_leaf,
                masks,
                rest,
                rest_at,
                width,
            )
