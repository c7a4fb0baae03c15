"""Compiled loops of sequential_gaussian.py, where the recurrence, the error of every double and the order of words are explained."""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers._shared_compiled import SAFE_FOUR_PI_SQUARED, WIDTH, log_ratio, nearest, settle

DONE, NEED_PAIRS, OPEN_PAIR, OPEN_BLOCK = 0, 1, 2, 3
# Places in `state`: what a call needs to go on where the last one stopped. CELL is -1 before a line has begun.
ROW, LINE, CELL, TOTAL, PAIR, KNOWN_PAIR, KNOWN_VERDICT = 0, 1, 2, 3, 4, 5, 6
STATE_SIZE = 7


@loop
def begin_line(line, shape, sizes, offsets, sums, ahead, remaining):  # type: ignore[no-untyped-def]
    """ahead[j] = N_{K-1} of the line's cells, from the sums E_k of all axes but the last. Returns (prod R_k, prod (R_k - 1)) over them."""
    axes, length = shape.size, shape[shape.size - 1]
    left = line
    for k in range(axes - 2, -1, -1):
        remaining[k] = shape[k] - left % shape[k]
        left //= shape[k]
    product, smaller = np.int64(1), np.int64(1)
    for k in range(axes - 1):
        r = remaining[k]
        base = offsets[k] + (line * length) % sizes[k]
        for j in range(length):
            entry = np.int64(0) if r == shape[k] else sums[base + j]
            sums[base + j] = entry
            ahead[j] = entry if k == 0 else r * ahead[j] + entry
        product *= r
        smaller *= r - 1
    return product, smaller


@loop
def end_line(line, shape, sizes, offsets, sums, scratch, remaining, z):  # type: ignore[no-untyped-def]
    """E_k += (prod_{l<k} R_l) z + N_{k-1}, for all axes but the last."""
    axes, length = shape.size, shape[shape.size - 1]
    product = np.int64(1)
    for k in range(axes - 1):
        r = remaining[k]
        base = offsets[k] + (line * length) % sizes[k]
        for j in range(length):
            before = np.int64(0) if k == 0 else scratch[j]
            entry = sums[base + j]
            scratch[j] = r * before + entry
            sums[base + j] = entry + product * z[j] + before
        product *= r


@loop
def safe_nome(variance_of_line, remaining):  # type: ignore[no-untyped-def]
    """(p, an upper bound of exp(-2 pi^2 s^2) for all cells with at least p cells remaining), p a power of two up to `remaining` >= 2."""
    least = np.int64(2)
    while 2 * least <= remaining:
        least *= 2
    nome = math.exp(-2.0 * math.pi * math.pi * variance_of_line * (1.0 - 1.0 / least))
    if nome > 0.5:
        return least, 1e300
    return least, max(nome, 1e-100)


@loop(inline="always")
def draw_line(z, ahead, mask, product, smaller, constants, proposals, accepts, cell, total, pair, loss, known_pair, known):  # type: ignore[no-untyped-def]
    """Cells of one line from `cell` on. Returns (status, cell, total, pair, loss): where it stopped."""
    length = z.size
    sigma_squared, stretch, half, band = constants[0], constants[1], constants[2], constants[3]
    if smaller == 0:  # some other axis is at its last place: the whole line is forced
        for j in range(length):
            z[j] = -(ahead[j & mask] // product)
        return DONE, length, total, pair, loss
    share = smaller / product
    missing = (product - smaller) / product
    per_product = 1.0 / product
    least, nome = np.int64(length + 1), 0.0
    for j in range(cell, length - 1):
        r = np.int64(length - j)
        if r < least:
            least, nome = safe_nome(sigma_squared * share, r)
        offset = ahead[j & mask]
        per_r = 1.0 / r
        reciprocal = per_product * per_r
        full = product * r
        opposite, rest = nearest(r * offset + total, full, reciprocal)
        c0 = -opposite
        d = -rest * reciprocal
        f = share * (r - 1) * per_r
        gap = (stretch - 1.0) + (missing + share * per_r)
        scale = half / (f * gap)
        shift = stretch * d
        while True:
            if pair >= proposals.size:
                return NEED_PAIRS, j, total, pair, loss
            p = proposals[pair]
            word = np.float64(accepts[pair])
            x = gap * p - shift
            t = x * x * scale
            if (word + 1.0) * WIDTH <= 1.0 - t - band:
                break
            verdict = settle(word, math.exp(-t), band)
            if verdict == 0:
                if pair != known_pair:
                    return OPEN_PAIR, j, total, pair, loss
                verdict = known
            if verdict > 0:
                break
            pair += 1
        pair += 1
        value = c0 + p
        z[j] = value
        total += product * value + offset
        loss += nome * d * d
    last = length - 1
    z[last] = -((ahead[last & mask] + total) // product)
    return DONE, length, total, pair, loss


@loop
def log_keep(row, shape, sizes, offsets, sums, ahead, mask, scratch, remaining, sigma_squared):  # type: ignore[no-untyped-def]
    """Sum of the log theta ratios of a finished block, its centres being found again."""
    length = shape[shape.size - 1]
    result = 0.0
    for line in range(row.size // length):
        z = row[line * length : (line + 1) * length]
        product, smaller = begin_line(line, shape, sizes, offsets, sums, ahead, remaining)
        if smaller > 0:
            total = np.int64(0)
            for j in range(length - 1):
                r = np.int64(length - j)
                offset = ahead[j & mask]
                reciprocal = (1.0 / product) * (1.0 / r)
                _, rest = nearest(r * offset + total, product * r, reciprocal)
                if rest != 0:
                    result += log_ratio(sigma_squared * (smaller / product) * (r - 1) / r, abs(rest) * reciprocal)
                total += product * z[j] + offset
        end_line(line, shape, sizes, offsets, sums, scratch, remaining, z)
    return result


@loop
def draw_blocks(out, shape, sizes, offsets, sums, ahead, mask, scratch, remaining, constants, proposals, accepts, state, losses):  # type: ignore[no-untyped-def]
    """Fill rows of `out` until done, or until pairs run out, or until a decision is left to exact arithmetic."""
    length = shape[shape.size - 1]
    lines = out.shape[1] // length
    row, line, cell, total, pair, loss = state[ROW], state[LINE], state[CELL], state[TOTAL], state[PAIR], losses[0]
    known_pair, known = state[KNOWN_PAIR], state[KNOWN_VERDICT]
    status = DONE
    while row < out.shape[0]:
        while line < lines:
            z = out[row, line * length : (line + 1) * length]
            product, smaller = np.int64(1), np.int64(1)
            if cell < 0:
                cell, total = np.int64(0), np.int64(0)
                if shape.size > 1:
                    product, smaller = begin_line(line, shape, sizes, offsets, sums, ahead, remaining)
            else:
                for k in range(shape.size - 1):
                    product *= remaining[k]
                    smaller *= remaining[k] - 1
            status, cell, total, pair, loss = draw_line(
                z, ahead, mask, product, smaller, constants, proposals, accepts, cell, total, pair, loss, known_pair, known
            )
            if status != DONE:
                break
            if shape.size > 1:
                end_line(line, shape, sizes, offsets, sums, scratch, remaining, z)
            line += 1
            cell = np.int64(-1)
        if status == DONE and pair >= proposals.size:
            status = NEED_PAIRS
        if status != DONE:
            break
        word = np.float64(accepts[pair])
        verdict = 1
        if (word + 1.0) * WIDTH > 1.0 - SAFE_FOUR_PI_SQUARED * loss - constants[3]:
            if pair == known_pair:
                verdict = known
            else:
                log_kept = log_keep(out[row], shape, sizes, offsets, sums, ahead, mask, scratch, remaining, constants[0])
                verdict = settle(word, math.exp(log_kept), constants[4])
        if verdict == 0:
            status = OPEN_BLOCK
            break
        pair += 1
        line, cell, loss = np.int64(0), np.int64(-1), 0.0
        if verdict > 0:
            row += 1
    state[ROW], state[LINE], state[CELL], state[TOTAL], state[PAIR], losses[0] = row, line, cell, total, pair, loss
    return status
