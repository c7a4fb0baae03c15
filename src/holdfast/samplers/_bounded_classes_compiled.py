"""The loops of bounded_classes.py, compiled. Their twins in NumPy are there; all helpers stay here, as Numba's cache asks."""

from __future__ import annotations

import numpy as np

from holdfast.exact._loop_compiled import loop


@loop
def sum_windows(f, width, decay, powers, prefix, suffix, out):  # type: ignore[no-untyped-def]
    """out[i] = sum over k < width of decay^k f[i - k]: sums of blocks of `width` places from either end, so that nothing is subtracted."""
    size = f.size
    if width >= size:
        total = 0.0
        for i in range(size):
            total = f[i] + decay * total
            out[i] = total
        return
    for start in range(0, size, width):
        end = min(start + width, size)
        total = 0.0
        for i in range(start, end):
            total = f[i] + decay * total
            prefix[i] = total
        total = 0.0
        for i in range(end - 1, start - 1, -1):
            total += powers[end - 1 - i] * f[i]
            suffix[i] = total
    for i in range(size):
        begin = (i // width) * width
        first = max(i - width + 1, 0)
        out[i] = prefix[i] if first >= begin else prefix[i] + powers[i - begin + 1] * suffix[first]


@loop
def convolve(f, least, most, decay, powers, scratch, out):  # type: ignore[no-untyped-def]
    """out = f convolved with decay^|k| over least <= k <= most, inside the window."""
    size = f.size
    sum_windows(f, min(most, size) + 1, decay, powers, scratch[0], scratch[1], out)
    if least == 0:
        return
    backward, found = scratch[2], scratch[3]
    for i in range(size):
        backward[i] = f[size - 1 - i]
    sum_windows(backward, min(-least, size), decay, powers, scratch[0], scratch[1], found)
    for i in range(size - 1):
        out[i] += decay * found[size - 2 - i]


@loop
def is_allowed(point, cuts, slack):  # type: ignore[no-untyped-def]
    """Whether these class totals keep every inequality."""
    for row in range(cuts.shape[0]):
        value = np.int64(0)
        for group in range(point.size):
            value += cuts[row, group] * point[group]
        if value < slack[row]:
            return False
    return True


@loop
def reachable(least, most, slack, starts, points, cuts, reach, first, last):  # type: ignore[no-untyped-def]
    """Partial sums first[p] .. last[p] that some class totals allow, in the window: others need not be computed."""
    groups = starts.size - 1
    low, high = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    for group in range(groups):
        for p in range(starts[group], starts[group + 1]):
            low[group] += max(least[p], -2 * reach)  # no cell moves further inside the window, and sums stay in 64 bits
            high[group] += min(most[p], 2 * reach)
            first[p], last[p] = max(low[group], -reach), min(high[group], reach)
    smallest, largest = np.zeros(groups, dtype=np.int64), np.zeros(groups, dtype=np.int64)
    for i in range(points.shape[0]):
        inside = is_allowed(points[i], cuts, slack)
        for group in range(groups):
            inside = inside and low[group] <= points[i, group] <= high[group]
        if inside:
            for group in range(groups):
                smallest[group] = min(smallest[group], points[i, group])
                largest[group] = max(largest[group], points[i, group])
    for group in range(groups):
        for p in range(starts[group + 1] - 1, starts[group] - 1, -1):
            first[p], last[p] = max(first[p], smallest[group]), min(last[p], largest[group])
            smallest[group] -= min(most[p], 2 * reach)
            largest[group] -= max(least[p], -2 * reach)


@loop
def prepare(least, most, starts, decay, powers, first, last, scratch, sums):  # type: ignore[no-untyped-def]
    """sums[p, H + s] = weight of all ways in which the cells of p's class up to p add up to s, partial sums staying inside the window."""
    reach = sums.shape[1] // 2
    sums[:] = 0.0
    for group in range(starts.size - 1):
        start = starts[group]
        for k in range(first[start], last[start] + 1):
            sums[start, reach + k] = powers[abs(k)]
        for p in range(start + 1, starts[group + 1]):
            begin, end = reach + min(first[p - 1], first[p]), reach + max(last[p - 1], last[p]) + 1
            convolve(sums[p - 1, begin:end], least[p], most[p], decay, powers, scratch, sums[p, begin:end])


@loop
def weigh(points, cuts, slack, starts, sums, cumulated):  # type: ignore[no-untyped-def]
    """Cumulated weights of the class totals in the order of `points`; those that break an inequality have none."""
    reach = sums.shape[1] // 2
    total = 0.0
    for i in range(points.shape[0]):
        weight = 1.0 if is_allowed(points[i], cuts, slack) else 0.0
        for group in range(points.shape[1]):
            if weight == 0.0:
                break
            weight *= sums[starts[group + 1] - 1, reach + points[i, group]]
        total += weight
        cumulated[i] = total


@loop(inline="always")
def bounds_of(word, total, margins):  # type: ignore[no-untyped-def]
    """(a sum up to which the word is certainly not below its share, a sum from which on it certainly is); margins of `_margins`."""
    return np.float64(word) * total * margins[0] - margins[1], (np.float64(word) + 1.0) * (total * margins[2] + margins[3])


@loop
def place(word, cumulated, margins):  # type: ignore[no-untyped-def]
    """The first place whose cumulated share is above the word's uniform, or -1 where doubles do not tell."""
    not_below, below = bounds_of(word, cumulated[-1], margins)
    index = np.searchsorted(cumulated, not_below, side="right")
    if index == cumulated.size or cumulated[index] < below:
        return -1
    return index


@loop
def cell_given(word, target, before, total, least, most, powers, margins):  # type: ignore[no-untyped-def]
    """The change k of a cell, in the order 0, 1, -1, 2, -2, ..., and whether doubles tell: weight powers[|k|] before[target - k]."""
    size = before.size
    not_below, below = bounds_of(word, total, margins)
    found = powers[0] * before[target]
    if found > not_below:
        return 0, found >= below
    for k in range(1, size):
        if k <= most and target >= k:
            found += powers[k] * before[target - k]
            if found > not_below:
                return k, found >= below
        if k <= -least and target + k < size:
            found += powers[k] * before[target + k]
            if found > not_below:
                return -k, found >= below
    return 0, False


@loop
def run(  # type: ignore[no-untyped-def]
    words, least, most, slack, table_of, starts, points, takes_totals, cuts, decay, powers, margins, sums, scratch, cumulated, out, is_open
):
    """One draw for each row of words into `out`, for the table that `table_of` names; draws that doubles leave open are marked."""
    reach = sums.shape[1] // 2
    groups = starts.size - 1
    first, last = np.empty(least.shape[1], dtype=np.int64), np.empty(least.shape[1], dtype=np.int64)
    prepared = -1
    for row in range(words.shape[0]):
        table = table_of[row]
        if table != prepared:
            reachable(least[table], most[table], slack[table], starts, points, cuts, reach, first, last)
            prepare(least[table], most[table], starts, decay, powers, first, last, scratch, sums)
            weigh(points, cuts, slack[table], starts, sums, cumulated)
            prepared = table
        at, index = 0, 0
        if takes_totals:
            index = place(words[row, 0], cumulated, margins)
            at = 1
        if index < 0:
            is_open[row] = True
            continue
        for group in range(groups):
            left = points[index, group]
            for p in range(starts[group + 1] - 1, starts[group], -1):
                change, known = cell_given(
                    words[row, at], reach + left, sums[p - 1], sums[p, reach + left],
                    least[table, p], most[table, p], powers, margins,
                )  # fmt: skip
                if not known:
                    is_open[row] = True
                at += 1
                out[row, p] = change
                left -= change
                if not -reach <= left <= reach:
                    is_open[row] = True
                if is_open[row]:
                    break
            if is_open[row]:
                break
            out[row, starts[group]] = left
