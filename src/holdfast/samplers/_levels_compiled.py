"""Compiled loops of level_sequence.py, sequence_gaussian.py and rounded_projection.py, where the recurrence, the error of every double and
the order of words are explained.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._compiled import settle, settle_exp
from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import SAFE_FOUR_PI_SQUARED, WIDTH, coin, log_ratio, nearest

DONE, NEED_PAIRS, NEED_KEEP, OPEN_PAIR, OPEN_CENTRE, OPEN_BLOCK, OPEN_COIN, REJECTED = range(8)
# Places in `state`: what a call needs to go on where the last one stopped. CELL is -1 before a line has begun.
ROW, STAGE, UNIT, LINE, CELL, TOTAL, CLASS, AHEAD, SCALE, KEEP, KNOWN, KNOWN_PLACE, KNOWN_VERDICT, WORD, ONE_TRY = range(15)
NEAREST_KNOWN, NEAREST, WHOLE, GROUP_TOTAL = 15, 16, 17, 18
STATE_SIZE = 19
KNOWN_PAIR, KNOWN_KEEP, KNOWN_COIN = 1, 2, 3
"""The kind of decision that exact arithmetic has made; 0 for none."""
# `walk` is level_sequence.Walk; `spread` and `pairs` are SequenceVariances and Pairs of sequence_gaussian. They are unpacked once a table:
# an attribute taken for every line would double the time of short ones. No loop makes an array, so references need no counting.
# Columns of a stage, and of each of its axes (`along`): STRIDES + a has the predecessor's stride along axis a of the stage.
# GROUP is how many of the last cells of a line are kept or drawn anew together, 0 if none are.
AXES, TABLE, UNITS, BASE, GROUP = 0, 1, 2, 3, 4
NODES, STARTS, PARENTS, LONGEST, SUMS, STRIDE, STRIDES = 0, 1, 2, 3, 4, 5, 6
# Columns of `box`, the unit at hand: by axis its number, its first child, how many it has, and the first child's node.
PARENT, FIRST, CHILDREN, NODE = 0, 1, 2, 3

NARROW = 1.0
"""Values of 1 / (2 V) from which on the chance is one at an integer."""
FLAT = 2.5
FLAT_NOME = 1e-21
"""Above exp(-2 pi^2 FLAT) = 3.7e-22."""


@loop(_nrt=False)
def enter_unit(axes, along, unit, starts, box):  # type: ignore[no-untyped-def]
    """Fill box for a unit of a stage. Returns the number of lines."""
    left = unit
    for a in range(axes - 1, -1, -1):
        parents, at = along[a, PARENTS], along[a, STARTS]
        parent = left % parents
        left //= parents
        begin, end = starts[at + parent], starts[at + parent + 1]
        longest = along[a, LONGEST]
        box[a, PARENT], box[a, FIRST], box[a, CHILDREN] = parent, begin, end - begin
        box[a, NODE] = along[a, NODES] + (longest - (end - begin) if longest > 0 else begin)
    lines = np.int64(1)
    for a in range(axes - 1):
        lines *= box[a, CHILDREN]
    return lines


@loop(_nrt=False)
def open_line(axes, along, line, fresh, box, heavy, rest, tables, N, S, offsets, place):  # type: ignore[no-untyped-def]
    """Begin a line of a unit: fill the buffers of every slice that begins with it (if `fresh`).

    place[a] gets the child on each outer axis. Returns (D, whether the line is forced, where the line lies in the table, its sum).
    """
    last = axes - 1
    length = box[last, CHILDREN]
    left = line
    for a in range(last - 1, -1, -1):
        place[a] = left % box[a, CHILDREN]
        left //= box[a, CHILDREN]
    D, forced, where = np.int64(1), False, box[last, FIRST]
    span, size = np.int64(1), length
    for a in range(last):
        span *= box[a, CHILDREN]
        size *= box[a, CHILDREN]
    for k in range(last):
        span //= box[k, CHILDREN]
        size //= box[k, CHILDREN]
        node = box[k, NODE] + place[k]
        w, W = np.int64(heavy[node]), np.int64(rest[node])
        here = offsets[k]
        if fresh and line % span == 0:
            if place[k] == 0:
                step = along[k, STRIDES + last]
                base = along[k, SUMS] + box[k, PARENT] * along[k, STRIDES + k] + box[last, FIRST] * step
                for a in range(k):
                    base += (box[a, FIRST] + place[a]) * along[k, STRIDES + a]
                for below in range(span):
                    start, over = base, below
                    for a in range(last - 1, k, -1):
                        start += (box[a, FIRST] + over % box[a, CHILDREN]) * along[k, STRIDES + a]
                        over //= box[a, CHILDREN]
                    for j in range(length):
                        S[here + below * length + j] = D * tables[start + j * step]
                if k > 0:
                    for i in range(box[k, CHILDREN]):
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
        where += (box[k, FIRST] + place[k]) * along[k, STRIDE]
    base = along[last, SUMS] + box[last, PARENT] * along[last, STRIDES + last]
    for a in range(last):
        base += (box[a, FIRST] + place[a]) * along[last, STRIDES + a]
    return D, forced, where, tables[base]


@loop(_nrt=False)
def close_line(axes, line, box, rest, z, N, S, offsets, place):  # type: ignore[no-untyped-def]
    """S_k -= D_{k-1} z - N_{k-1}, for all axes but the last."""
    last = axes - 1
    length = box[last, CHILDREN]
    D, span = np.int64(1), np.int64(1)
    for a in range(last):
        span *= box[a, CHILDREN]
    for k in range(last):
        span //= box[k, CHILDREN]
        here = offsets[k] + line % span * length
        if k > 0:
            above = offsets[k - 1] + (place[k] * span + line % span) * length
            for j in range(length):
                S[here + j] -= D * z[j] - N[above + j]
        else:
            for j in range(length):
                S[here + j] -= z[j]
        D *= np.int64(rest[box[k, NODE] + place[k]])


@loop(_nrt=False)
def outer_shares(axes, base, box, place, share, step):  # type: ignore[no-untyped-def]
    """(product of the shares, sum of the steps) over all axes but the last."""
    product, steps = 1.0, base
    for k in range(axes - 1):
        node = box[k, NODE] + place[k]
        product *= share[node]
        steps += step[node]
    return product, steps


@loop(_nrt=False)
def safe_nome(variance):  # type: ignore[no-untyped-def]
    """An upper bound of exp(-2 pi^2 variance), 1e300 where it is above 1/2."""
    if variance >= FLAT:
        return FLAT_NOME
    nome = math.exp(-2.0 * math.pi * math.pi * variance)
    return 1e300 if nome > 0.5 else nome


@loop(inline="always", _nrt=False)
def draw_cell(d, h, c, half, band, proposals, accepts, filled, used, state):  # type: ignore[no-untyped-def]
    """(status, p): the first proposal of class c that is kept, for a centre d beyond an integer and h = s^2 / V."""
    gap = 1.0 - h
    scale, least = half[c] / (h * gap), 0.0
    if half[c] >= NARROW:
        x = gap * np.rint(d / gap) - d
        least = x * x * scale
    while True:
        place = used[c]
        if place >= filled[c]:
            return NEED_PAIRS, np.int64(0)
        p = proposals[place]
        word = np.float64(accepts[place])
        x = gap * p - d
        verdict = settle_exp(word, WIDTH, x * x * scale - least, band)
        if verdict == 0:
            if state[KNOWN] != KNOWN_PAIR or place != state[KNOWN_PLACE]:
                return OPEN_PAIR, np.int64(0)
            verdict = state[KNOWN_VERDICT]
        if verdict > 0:
            break
        used[c] = place + 1
    used[c] = place + 1
    return DONE, p


@loop(inline="always", _nrt=False)
def real_centre(A, B, D, ratio):  # type: ignore[no-untyped-def]
    """(nearest integer, what the centre (A + ratio B) / D has beyond it, the size of what was added) in doubles; exact where B is 0."""
    first, second = A / D, ratio * B / D
    if B == 0:
        c0, left = nearest(A, D, 1.0 / D)
        return c0, left / D, 0.0
    c0 = np.int64(np.rint(first + second))
    return c0, first + second - c0, abs(first) + abs(second) + 1.0


@loop(_nrt=False)
def draw_line(  # type: ignore[no-untyped-def]
    z, ahead, mask, plain, group, D, sum_of_line, first, heavy, rest, share, ratio, step, variance, steps, inverse, half, near,
    proposals, accepts, filled, used, drawn, state, cell, total, loss,
):  # fmt: skip
    """Cells of one line from `cell` on. Returns (status, cell, total, loss): where it stopped; loss is of all cells or of a group's."""
    length = z.size
    band, error, most = near
    begin = max(length - group, 0) if group > 0 else length
    if cell < 0:
        cell, total = np.int64(0), D * sum_of_line
        for j in range(length if mask else 0):
            total -= ahead[j]
    per_D = 1.0 / D
    low, nome = -1.0, 0.0
    for j in range(cell, length - 1):
        node, A = first + j, ahead[j & mask]
        off, near_enough = 0.0, band
        if j == begin:
            state[GROUP_TOTAL], loss = total, 0.0
        if plain:  # nothing but the class is read: the nodes of a long line do not stay in a cache
            W = np.int64(length - j)
            per_W = 1.0 / W
            own = variance * ((W - 1) * per_W)
            c0, left = nearest(W * A + total, D * W, per_D * per_W)
            d = left * (per_D * per_W)
        elif rest[node] > 0:
            w, W = np.int64(heavy[node]), np.int64(rest[node])
            own = variance * share[node]
            c0, left = nearest(W * A + w * total, D * W, per_D / W)
            d = left * (per_D / W)
        else:
            own = variance * share[node]
            c0, d, size = real_centre(A, total, D, ratio[node])
            off = error * size
            if size > most:
                near_enough = 2.0
            if size > 0.0 and abs(d) > 0.5 - off:
                if state[NEAREST_KNOWN] == 0:
                    state[AHEAD], state[SCALE] = A, D
                    return OPEN_CENTRE, j, total, loss
                d += c0 - state[NEAREST]
                c0 = state[NEAREST]
        c = steps + step[node]
        if own < low or 0.9 * own > low:  # new after one part in twenty: few exponentials a line
            low = 0.95 * own
            nome = safe_nome(low)
        status, p = draw_cell(d, own * inverse[c], c, half, near_enough, proposals, accepts, filled, used, state)
        if status != DONE:
            state[CLASS], state[AHEAD], state[SCALE] = c, A, D
            return status, j, total, loss
        state[NEAREST_KNOWN] = 0
        drawn[c] += 1
        value = c0 + p
        z[j] = value
        total -= D * value - A
        loss += nome * (abs(d) + off) ** 2
    z[length - 1] = (ahead[(length - 1) & mask] + total) // D
    return DONE, length, total, loss


@loop(_nrt=False)
def log_line(z, ahead, mask, begin, D, total, first, heavy, rest, share, ratio, variance, error):  # type: ignore[no-untyped-def]
    """(sum of the log theta ratios of the cells of a line from `begin` on, what centres known as doubles alone add to its error)."""
    result, doubt = 0.0, 0.0
    for j in range(begin, z.size - 1):
        node, A = first + j, ahead[j & mask]
        w, W = np.int64(heavy[node]), np.int64(rest[node])
        own = variance * share[node]
        if own < FLAT:
            if W > 0:
                reciprocal = 1.0 / D / W
                _, left = nearest(W * A + w * total, D * W, reciprocal)
                d = left * reciprocal
            else:
                _, d, size = real_centre(A, total, D, ratio[node])
                doubt += 2.0 * error * (size + 1.0) * (1.0 + 1.0 / own)
            if d != 0.0:
                result += log_ratio(own, min(abs(d), 0.5))
        total -= D * z[j] - A
    return result, doubt


@loop(_nrt=False)
def log_keep(final, walk, spread, word, sums):  # type: ignore[no-untyped-def]
    """Sum of the log theta ratios of a finished block, its centres being found again; those of wide laws are left out. sums[1] gets what
    centres known as doubles alone add to its error. None is positive: it ends with the line after which the word throws the block away.
    """
    stages, alongs, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    variances, share, ratio, step, _, _, near, _ = spread
    error = near[1]
    result, doubt = 0.0, 0.0
    for number in range(stages.shape[0]):
        stage, along = stages[number], alongs[number]
        axes, last = stage[AXES], stage[AXES] - 1
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        for unit in range(stage[UNITS]):
            lines = enter_unit(axes, along, unit, starts, box)
            length = box[last, CHILDREN]
            for line in range(lines):
                D, forced, where, sum_of_line = open_line(axes, along, line, True, box, heavy, rest, tables, N, S, offsets, place)
                z = table[where : where + length]
                if not forced:
                    ahead = N[offsets[last - 1] : offsets[last - 1] + length] if last > 0 else zeros
                    product, _ = outer_shares(axes, 0, box, place, share, step)
                    total = D * sum_of_line
                    for j in range(length):
                        total -= ahead[j]
                    variance, first = variances[number] * product, box[last, NODE]
                    log, more = log_line(z, ahead, -1, 0, D, total, first, heavy, rest, share, ratio, variance, error)
                    result, doubt = result + log, doubt + more
                    if word * WIDTH >= math.exp(result) + spread.keep_band + 2.0 * doubt:
                        sums[1] = doubt
                        return result
                close_line(axes, line, box, rest, z, N, S, offsets, place)
    sums[1] = doubt
    return result


@loop(inline="always", _nrt=False)
def known_keep(word, loss, spread, state):  # type: ignore[no-untyped-def]
    """What is known of an accept step without a theta ratio: 1 kept, -1 thrown away, 0 nothing. Nearly always the loss tells."""
    if (word + 1.0) * WIDTH <= 1.0 - SAFE_FOUR_PI_SQUARED * loss - spread.near[0]:
        return 1
    return state[KNOWN_VERDICT] if state[KNOWN] == KNOWN_KEEP and state[KNOWN_PLACE] == state[KEEP] else 0


@loop(_nrt=False)
def is_group_kept(z, ahead, mask, begin, D, first, heavy, rest, variance, spread, word, loss, state):  # type: ignore[no-untyped-def]
    """The accept step of a line's group: 1 kept, -1 drawn anew, 0 open."""
    verdict = known_keep(word, loss, spread, state)
    if verdict != 0:
        return verdict
    share, ratio, error = spread.share, spread.ratio, spread.near[1]
    log, doubt = log_line(z, ahead, mask, begin, D, state[GROUP_TOTAL], first, heavy, rest, share, ratio, variance, error)
    return settle(word, WIDTH, math.exp(log), spread.keep_band + 2.0 * doubt)


@loop(_nrt=False)
def draw_table(final, walk, spread, pairs, state, sums):  # type: ignore[no-untyped-def]
    """One table before its own accept step, from where `state` says."""
    stages, alongs, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    variances, share, ratio, step, inverse, half, near, _ = spread
    proposals, accepts, filled, used, drawn, keeps = pairs
    number, unit, line, cell, total = state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL]
    loss, status = sums[0], DONE
    while number < stages.shape[0]:
        stage, along = stages[number], alongs[number]
        axes, last = stage[AXES], stage[AXES] - 1
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        while unit < stage[UNITS]:
            lines = enter_unit(axes, along, unit, starts, box)
            length = box[last, CHILDREN]
            while line < lines:
                D, forced, where, sum_of_line = open_line(axes, along, line, cell < 0, box, heavy, rest, tables, N, S, offsets, place)
                z = table[where : where + length]
                ahead = N[offsets[last - 1] : offsets[last - 1] + length] if last > 0 else zeros
                if forced:
                    for j in range(length):
                        z[j] = ahead[j] // D
                else:
                    product, steps = outer_shares(axes, stage[BASE], box, place, share, step)
                    variance, first, mask = variances[number] * product, box[last, NODE], -1 if last > 0 else 0
                    # fmt: off
                    status, cell, total, loss = draw_line(
                        z, ahead, mask, along[last, LONGEST] > 0, stage[GROUP], D, sum_of_line, first, heavy, rest, share, ratio, step,
                        variance, steps, inverse, half, near, proposals, accepts, filled, used, drawn, state, cell, total, loss,
                    )
                    # fmt: on
                    if status == DONE and stage[GROUP] > 0 and length > 1:
                        if state[KEEP] >= keeps.size:
                            status = NEED_KEEP
                            break
                        word, begin = np.float64(keeps[state[KEEP]]), max(length - stage[GROUP], 0)
                        verdict = is_group_kept(z, ahead, mask, begin, D, first, heavy, rest, variance, spread, word, loss, state)
                        if verdict == 0:
                            status = OPEN_BLOCK
                            break
                        state[KEEP] += 1
                        if verdict < 0:
                            cell, total = np.int64(begin), state[GROUP_TOTAL]
                            for j in range(begin, length - 1):
                                drawn[steps + step[first + j]] -= 1
                            continue
                    if status != DONE:
                        break
                close_line(axes, line, box, rest, z, N, S, offsets, place)
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
    sums[0] = loss
    return status


@loop(_nrt=False)
def is_kept(final, walk, spread, word, state, sums):  # type: ignore[no-untyped-def]
    """The accept step of a table: 1 kept, -1 thrown away, 0 open."""
    verdict = known_keep(word, sums[0], spread, state)
    if verdict != 0:
        return verdict
    log = log_keep(final, walk, spread, word, sums)
    return settle(word, WIDTH, math.exp(log), spread.keep_band + 2.0 * sums[1])


@loop(_nrt=False)
def draw_blocks(out, walk, spread, pairs, state, sums):  # type: ignore[no-untyped-def]
    """Fill rows of `out` until done, or until pairs or words run out, or until a decision is left to exact arithmetic."""
    while state[ROW] < out.shape[0]:
        final = out[state[ROW]]
        status = draw_table(final, walk, spread, pairs, state, sums)
        if status != DONE:
            return status
        verdict = 1
        if state[WHOLE] == 1:
            if state[KEEP] >= pairs.keeps.size:
                return NEED_KEEP
            verdict = is_kept(final, walk, spread, np.float64(pairs.keeps[state[KEEP]]), state, sums)
            if verdict == 0:
                return OPEN_BLOCK
            state[KEEP] += 1
        state[STAGE], sums[0] = 0, 0.0
        pairs.drawn[:] = 0
        if verdict > 0:
            state[ROW] += 1
        elif state[ONE_TRY] == 1:
            return REJECTED
    return DONE


@loop(_nrt=False)
def round_table(final, walk, words, state):  # type: ignore[no-untyped-def]
    """One table rounded, stage by stage, one word for each cell that is not forced; goes on from `state` after an open coin."""
    stages, alongs, starts, heavy, rest, tables, N, S, zeros, offsets, box, place = walk
    number, unit, line, cell, total, word = state[STAGE], state[UNIT], state[LINE], state[CELL], state[TOTAL], state[WORD]
    status = DONE
    while number < stages.shape[0]:
        stage, along = stages[number], alongs[number]
        axes, last = stage[AXES], stage[AXES] - 1
        table = final if stage[TABLE] < 0 else tables[stage[TABLE] :]
        while unit < stage[UNITS]:
            lines = enter_unit(axes, along, unit, starts, box)
            length = box[last, CHILDREN]
            while line < lines:
                D, forced, where, sum_of_line = open_line(axes, along, line, cell < 0, box, heavy, rest, tables, N, S, offsets, place)
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
                    first = box[last, NODE]
                    while cell < length - 1:
                        w, W = np.int64(heavy[first + cell]), np.int64(rest[first + cell])
                        full, numerator = D * W, W * ahead[cell] + w * total
                        down = numerator // full
                        if state[KNOWN] == KNOWN_COIN and state[KNOWN_PLACE] == word:
                            verdict = state[KNOWN_VERDICT]
                        else:
                            verdict, remainder = coin(words[word], numerator - down * full, full)
                            if verdict < 0:
                                state[AHEAD], state[SCALE] = remainder, full
                                status = OPEN_COIN
                                break
                        word += 1
                        z[cell] = down + verdict
                        total -= D * z[cell] - ahead[cell]
                        cell += 1
                    if status != DONE:
                        break
                    z[length - 1] = (ahead[length - 1] + total) // D
                close_line(axes, line, box, rest, z, N, S, offsets, place)
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
