"""Compiled loops of level_sequence.py, levels_gaussian.py and rounded_projection.py, where the recurrence, the error of every double and
the order of words are explained.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import SAFE_FOUR_PI_SQUARED, WIDTH, coin, log_ratio, nearest, settle

DONE, NEED_PAIRS, NEED_KEEP, OPEN_PAIR, OPEN_BLOCK, OPEN_COIN, REJECTED = 0, 1, 2, 3, 4, 5, 6
# Places in `state`: what a call needs to go on where the last one stopped. CELL is -1 before a line has begun.
ROW, STAGE, UNIT, LINE, CELL, TOTAL, CLASS, NUMERATOR, FULL, KEEP, KNOWN, KNOWN_PLACE, KNOWN_VERDICT, WORD, ONE_TRY = range(15)
STATE_SIZE = 15
KNOWN_PAIR, KNOWN_KEEP, KNOWN_COIN = 1, 2, 3
"""The kind of decision that exact arithmetic has made; 0 for none."""
# `walk` is level_sequence.Walk; `spread` and `pairs` are levels_gaussian.Spread and Pairs. They are unpacked once for a table: an attribute
# taken for every line would double the time of short ones.
# Columns of a stage, and of each of its axes after them.
AXES, TABLE, UNITS, BASE, HEAD = 0, 1, 2, 3, 4
NODES, STARTS, PARENTS, LENGTH, SUMS, PER_AXIS = 0, 1, 2, 3, 4, 5

FLAT = 2.5
FLAT_NOME = 1e-21
"""Above exp(-2 pi^2 FLAT) = 3.7e-22."""


@loop
def enter_unit(stage, unit, starts, box):  # type: ignore[no-untyped-def]
    """Fill box: per axis (parent, first child, number of children, stride in the stage's table). Returns the number of lines."""
    axes = stage[AXES]
    left, stride = unit, np.int64(1)
    for a in range(axes - 1, -1, -1):
        at = HEAD + PER_AXIS * a
        parent = left % stage[at + PARENTS]
        left //= stage[at + PARENTS]
        begin = starts[stage[at + STARTS] + parent]
        box[a, 0], box[a, 1], box[a, 2], box[a, 3] = parent, begin, starts[stage[at + STARTS] + parent + 1] - begin, stride
        stride *= stage[at + LENGTH]
    lines = np.int64(1)
    for a in range(axes - 1):
        lines *= box[a, 2]
    return lines


@loop
def open_line(stage, line, fresh, box, heavy, rest, tables, N, S, offsets, place):  # type: ignore[no-untyped-def]
    """Begin a line of a unit: fill the buffers of every slice that begins with it (if `fresh`).

    place[a] gets the child on each outer axis. Returns (D, whether the line is forced, where the line lies in the table, its sum).
    """
    axes = stage[AXES]
    last = axes - 1
    length = box[last, 2]
    left = line
    for a in range(last - 1, -1, -1):
        place[a] = left % box[a, 2]
        left //= box[a, 2]
    D, forced, where = np.int64(1), False, box[last, 1]
    span, size = np.int64(1), np.int64(1)
    for a in range(last):
        span *= box[a, 2]
        size *= box[a, 2]
    size *= length
    for k in range(last):
        span //= box[k, 2]
        size //= box[k, 2]
        node = stage[HEAD + PER_AXIS * k + NODES] + box[k, 1] + place[k]
        w, W = heavy[node], rest[node]
        here = offsets[k]
        if fresh and line % span == 0:
            if place[k] == 0:
                at = HEAD + PER_AXIS * k
                base = stage[at + SUMS] + box[k, 0] * box[k, 3]
                for a in range(k):
                    base += (box[a, 1] + place[a]) * (box[a, 3] // stage[at + LENGTH] * stage[at + PARENTS])
                for below in range(span):
                    start, over = base + box[last, 1], below
                    for a in range(last - 1, k, -1):
                        start += (box[a, 1] + over % box[a, 2]) * box[a, 3]
                        over //= box[a, 2]
                    for j in range(length):
                        S[here + below * length + j] = D * tables[start + j]
                if k > 0:
                    for i in range(box[k, 2]):
                        for j in range(size):
                            S[here + j] -= N[offsets[k - 1] + i * size + j]
            if k > 0:
                above = offsets[k - 1] + place[k] * size
                for j in range(size):
                    N[here + j] = W * N[above + j] + w * S[here + j]
            else:
                for j in range(size):
                    N[here + j] = w * S[here + j]
        D *= W
        forced = forced or w == W
        where += (box[k, 1] + place[k]) * box[k, 3]
    at = HEAD + PER_AXIS * last
    base = stage[at + SUMS] + box[last, 0]
    for a in range(last):
        base += (box[a, 1] + place[a]) * (box[a, 3] // stage[at + LENGTH] * stage[at + PARENTS])
    return D, forced, where, tables[base]


@loop
def close_line(stage, line, box, rest, z, N, S, offsets, place):  # type: ignore[no-untyped-def]
    """S_k -= D_{k-1} z - N_{k-1}, for all axes but the last."""
    last = stage[AXES] - 1
    length = box[last, 2]
    D, span = np.int64(1), np.int64(1)
    for a in range(last):
        span *= box[a, 2]
    for k in range(last):
        span //= box[k, 2]
        here = offsets[k] + line % span * length
        if k > 0:
            above = offsets[k - 1] + (place[k] * span + line % span) * length
            for j in range(length):
                S[here + j] -= D * z[j] - N[above + j]
        else:
            for j in range(length):
                S[here + j] -= z[j]
        D *= rest[stage[HEAD + PER_AXIS * k + NODES] + box[k, 1] + place[k]]


@loop
def outer_shares(stage, box, place, share, floor, step):  # type: ignore[no-untyped-def]
    """Products of F and of its lower bounds, and the sum of the steps, over all axes but the last."""
    product, low, steps = 1.0, 1.0, stage[BASE]
    for k in range(stage[AXES] - 1):
        node = stage[HEAD + PER_AXIS * k + NODES] + box[k, 1] + place[k]
        product *= share[node]
        low *= floor[node]
        steps += step[node]
    return product, low, steps


@loop
def safe_nome(variance):  # type: ignore[no-untyped-def]
    """An upper bound of exp(-2 pi^2 variance), 1e300 where it is above 1/2."""
    if variance >= FLAT:
        return FLAT_NOME
    nome = math.exp(-2.0 * math.pi * math.pi * variance)
    return 1e300 if nome > 0.5 else nome


@loop(inline="always")
def draw_cell(d, h, c, half, band, proposals, accepts, filled, used, state):  # type: ignore[no-untyped-def]
    """(status, p): the first proposal of class c that is kept, for a centre d beyond an integer and h = s^2 / V."""
    gap = 1.0 - h
    scale = half[c] / (h * gap)
    while True:
        place = used[c]
        if place >= filled[c]:
            return NEED_PAIRS, np.int64(0)
        p = proposals[place]
        word = np.float64(accepts[place])
        x = gap * p - d
        t = x * x * scale
        if (word + 1.0) * WIDTH <= 1.0 - t - band:
            break
        verdict = settle(word, math.exp(-t), band)
        if verdict == 0:
            if state[KNOWN] != KNOWN_PAIR or place != state[KNOWN_PLACE]:
                return OPEN_PAIR, np.int64(0)
            verdict = state[KNOWN_VERDICT]
        if verdict > 0:
            break
        used[c] = place + 1
    used[c] = place + 1
    return DONE, p


@loop
def draw_line(  # type: ignore[no-untyped-def]
    z,
    ahead,
    D,
    sum_of_line,
    first,
    heavy,
    rest,
    share,
    floor,
    step,
    variance,
    low,
    steps,
    inverse,
    half,
    band,
    proposals,
    accepts,
    filled,
    used,
    drawn,
    state,
    cell,
    total,
):
    """Cells of one line from `cell` on. Returns (status, cell, total, loss): where it stopped."""
    length = z.size
    loss = 0.0
    if cell < 0:
        cell, total = np.int64(0), D * sum_of_line
        for j in range(length):
            total -= ahead[j]
    per_D = 1.0 / D
    known_floor, nome = -1.0, 0.0
    for j in range(cell, length - 1):
        node = first + j
        w, W = heavy[node], rest[node]
        numerator, full, reciprocal = W * ahead[j] + w * total, D * W, per_D / W
        c0, left = nearest(numerator, full, reciprocal)
        d = left * reciprocal
        c = steps + step[node]
        h = variance * share[node] * inverse[c]
        if floor[node] != known_floor:
            known_floor = floor[node]
            nome = safe_nome(low * known_floor)
        status, p = draw_cell(d, h, c, half, band, proposals, accepts, filled, used, state)
        if status != DONE:
            state[CLASS], state[NUMERATOR], state[FULL] = c, numerator, full
            return status, j, total, loss
        drawn[c] += 1
        value = c0 + p
        z[j] = value
        total -= D * value - ahead[j]
        loss += nome * d * d
    z[length - 1] = (ahead[length - 1] + total) // D
    return DONE, length, total, loss


@loop
def log_keep(final, walk, spread):  # type: ignore[no-untyped-def]
    """Sum of the log theta ratios of a finished block, its centres being found again; those of wide laws are left out."""
    stages, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    variances, share, floor, step, _, _, _, _ = spread
    result = 0.0
    for number in range(stages.shape[0]):
        stage = stages[number]
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        last = stage[AXES] - 1
        for unit in range(stage[UNITS]):
            lines = enter_unit(stage, unit, starts, box)
            length = box[last, 2]
            for line in range(lines):
                D, forced, where, sum_of_line = open_line(stage, line, True, box, heavy, rest, tables, N, S, offsets, place)
                z = table[where : where + length]
                if not forced:
                    ahead = N[offsets[last - 1] : offsets[last - 1] + length] if last > 0 else zeros
                    product, _, _ = outer_shares(stage, box, place, share, floor, step)
                    variance = variances[number] * product
                    total = D * sum_of_line
                    for j in range(length):
                        total -= ahead[j]
                    for j in range(length - 1):
                        node = stage[HEAD + PER_AXIS * last + NODES] + box[last, 1] + j
                        W = rest[node]
                        own = variance * share[node]
                        if own < FLAT:
                            reciprocal = 1.0 / D / W
                            _, left = nearest(W * ahead[j] + heavy[node] * total, D * W, reciprocal)
                            if left != 0:
                                result += log_ratio(own, abs(left) * reciprocal)
                        total -= D * z[j] - ahead[j]
                close_line(stage, line, box, rest, z, N, S, offsets, place)
    return result


@loop
def draw_table(final, walk, spread, pairs, state, losses):  # type: ignore[no-untyped-def]
    """One table before its accept step, from where `state` says."""
    stages, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    variances, share, floor, step, inverse, half, band, _ = spread
    proposals, accepts, filled, used, drawn, _ = pairs
    number, unit, line, cell, total = state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL]
    loss, status = losses[0], DONE
    while number < stages.shape[0]:
        stage = stages[number]
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        last = stage[AXES] - 1
        while unit < stage[UNITS]:
            lines = enter_unit(stage, unit, starts, box)
            length = box[last, 2]
            first = stage[HEAD + PER_AXIS * last + NODES] + box[last, 1]
            while line < lines:
                D, forced, where, sum_of_line = open_line(stage, line, cell < 0, box, heavy, rest, tables, N, S, offsets, place)
                z = table[where : where + length]
                ahead = N[offsets[last - 1] : offsets[last - 1] + length] if last > 0 else zeros
                if forced:
                    for j in range(length):
                        z[j] = ahead[j] // D
                else:
                    product, low, steps = outer_shares(stage, box, place, share, floor, step)
                    product, low = variances[number] * product, variances[number] * low
                    # fmt: off
                    status, cell, total, more = draw_line(
                        z, ahead, D, sum_of_line, first, heavy, rest, share, floor, step, product, low, steps, inverse, half, band,
                        proposals, accepts, filled, used, drawn, state, cell, total,
                    )
                    # fmt: on
                    loss += more
                    if status != DONE:
                        break
                close_line(stage, line, box, rest, z, N, S, offsets, place)
                line += 1
                cell = np.int64(-1)
            if status != DONE:
                break
            line = np.int64(0)
            unit += 1
        if status != DONE:
            break
        unit = np.int64(0)
        number += 1
    state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL] = number, unit, line, cell, total
    losses[0] = loss
    return status


@loop
def is_kept(final, walk, spread, word, state, losses):  # type: ignore[no-untyped-def]
    """The accept step of a table: 1 kept, -1 thrown away, 0 open. Nearly always the bound of the loss settles it."""
    if (word + 1.0) * WIDTH <= 1.0 - SAFE_FOUR_PI_SQUARED * losses[0] - spread.band:
        return 1
    if state[KNOWN] == KNOWN_KEEP and state[KNOWN_PLACE] == state[KEEP]:
        return state[KNOWN_VERDICT]
    return settle(word, math.exp(log_keep(final, walk, spread)), spread.keep_band)


@loop
def draw_blocks(out, walk, spread, pairs, state, losses):  # type: ignore[no-untyped-def]
    """Fill rows of `out` until done, or until pairs or words run out, or until a decision is left to exact arithmetic."""
    while state[ROW] < out.shape[0]:
        final = out[state[ROW]]
        status = draw_table(final, walk, spread, pairs, state, losses)
        if status != DONE:
            return status
        if state[KEEP] >= pairs.keeps.size:
            return NEED_KEEP
        verdict = is_kept(final, walk, spread, np.float64(pairs.keeps[state[KEEP]]), state, losses)
        if verdict == 0:
            return OPEN_BLOCK
        state[KEEP] += 1
        state[STAGE], losses[0] = 0, 0.0
        pairs.drawn[:] = 0
        if verdict > 0:
            state[ROW] += 1
        elif state[ONE_TRY] == 1:
            return REJECTED
    return DONE


@loop
def round_table(final, walk, words, state):  # type: ignore[no-untyped-def]
    """One table rounded, stage by stage, one word for each cell that is not forced; goes on from `state` after an open coin."""
    stages, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    number, unit, line, cell, total, word = state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL], state[WORD]
    status = DONE
    while number < stages.shape[0]:
        stage = stages[number]
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        last = stage[AXES] - 1
        while unit < stage[UNITS]:
            lines = enter_unit(stage, unit, starts, box)
            length = box[last, 2]
            while line < lines:
                D, forced, where, sum_of_line = open_line(stage, line, cell < 0, box, heavy, rest, tables, N, S, offsets, place)
                z = table[where : where + length]
                ahead = N[offsets[last - 1] : offsets[last - 1] + length] if last > 0 else zeros
                if forced:
                    for j in range(length):
                        z[j] = ahead[j] // D
                else:
                    if cell < 0:
                        cell, total = np.int64(0), D * sum_of_line
                        for j in range(length):
                            total -= ahead[j]
                    first = stage[HEAD + PER_AXIS * last + NODES] + box[last, 1]
                    while cell < length - 1:
                        full = D * rest[first + cell]
                        numerator = rest[first + cell] * ahead[cell] + heavy[first + cell] * total
                        down = numerator // full
                        if state[KNOWN] == KNOWN_COIN and state[KNOWN_PLACE] == word:
                            verdict = state[KNOWN_VERDICT]
                        else:
                            verdict, remainder = coin(words[word], numerator - down * full, full)
                            if verdict < 0:
                                state[NUMERATOR], state[FULL] = remainder, full
                                status = OPEN_COIN
                                break
                        word += 1
                        z[cell] = down + verdict
                        total -= D * z[cell] - ahead[cell]
                        cell += 1
                    if status != DONE:
                        break
                    z[length - 1] = (ahead[length - 1] + total) // D
                close_line(stage, line, box, rest, z, N, S, offsets, place)
                line += 1
                cell = np.int64(-1)
            if status != DONE:
                break
            line = np.int64(0)
            unit += 1
        if status != DONE:
            break
        unit = np.int64(0)
        number += 1
    state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL], state[WORD] = number, unit, line, cell, total, word
    return status
