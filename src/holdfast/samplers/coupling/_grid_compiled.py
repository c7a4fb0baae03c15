"""Compiled loops of coupling from the past on grids of two axes (grid_form.py, grid_klein.py). After a change in _coupling_compiled.py
touch this file too: Numba's cache does not notice a change in a function imported from elsewhere.

Rows i, columns j. K is the matrix of the columns without row i, from which the other rows were eliminated; H = K + diag(tau_i) is what is
left when row i is grounded.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers.coupling._coupling_compiled import (
    APART,
    BEYOND,
    DONE,
    EXACT,
    LOWER,
    OPEN,
    UNIT,
    UPPER,
    choose,
    coordinate,
    nearest_whole,
)

SMALL_EXPONENT = 1 / 32
"""Up to here eight terms of the series of exp leave out less than 2^-55."""


@loop(error_model="numpy", _nrt=False)
def cumulate_pairs(weights, taus, inverses, slopes, conductance, below, above, cumulative):  # type: ignore[no-untyped-def]
    """`cumulate` with factors exp(slopes[j] below + above / taus[j]); slopes after the last one given are equal to it."""
    near, atoms = slopes.size, taus.size
    for j in range(near):
        cumulative[j] = weights[j] * math.exp(slopes[j] * below + above * inverses[j])
    far = math.exp(slopes[near - 1] * below)
    if near < atoms and above * inverses[near] < SMALL_EXPONENT:
        for j in range(near, atoms):
            x = above * inverses[j]
            series = 1.0 + x * (1.0 + x * (1 / 2 + x * (1 / 6 + x * (1 / 24 + x * (1 / 120 + x * (1 / 720 + x / 5040))))))
            cumulative[j] = weights[j] * far * series
    else:
        for j in range(near, atoms):
            cumulative[j] = weights[j] * far * math.exp(above * inverses[j])
    if conductance != math.inf:
        for j in range(atoms):
            cumulative[j] /= math.sqrt(conductance + taus[j])
    total = 0.0
    for j in range(atoms):
        total += cumulative[j]
        cumulative[j] = total


@loop(error_model="numpy", _nrt=False)
def invert_in_place(matrix):  # type: ignore[no-untyped-def]
    """About the inverse of a positive definite matrix."""
    n = matrix.shape[0]
    for p in range(n):
        pivot = 1.0 / matrix[p, p]
        matrix[p, p] = 1.0
        for b in range(n):
            matrix[p, b] *= pivot
        for a in range(n):
            if a != p:
                factor = matrix[a, p]
                matrix[a, p] = 0.0
                for b in range(n):
                    matrix[a, b] -= factor * matrix[p, b]


@loop(_nrt=False)
def copy_matrix(source, target):  # type: ignore[no-untyped-def]
    for a in range(source.shape[0]):
        for b in range(source.shape[1]):
            target[a, b] = source[a, b]


@loop(_nrt=False)
def subtract_product(matrix, vector, result):  # type: ignore[no-untyped-def]
    """result -= matrix vector, for a symmetric matrix."""
    n = vector.size
    l = 0
    while l + 4 <= n:
        v0, v1, v2, v3 = vector[l], vector[l + 1], vector[l + 2], vector[l + 3]
        for b in range(n):
            result[b] -= (matrix[l, b] * v0 + matrix[l + 1, b] * v1) + (matrix[l + 2, b] * v2 + matrix[l + 3, b] * v3)
        l += 4
    while l < n:
        v0 = vector[l]
        for b in range(n):
            result[b] -= matrix[l, b] * v0
        l += 1


@loop(error_model="numpy", _nrt=False)
def add_row(taus, matrix):  # type: ignore[no-untyped-def]
    """matrix += diag(tau) - tau tau' / sum(tau): a row of the grid, eliminated. Every entry is right to four roundings."""
    n = taus.size
    total = 0.0
    for a in range(n):
        total += taus[a]
    for a in range(n):
        share = taus[a] / total
        for b in range(a):
            matrix[a, b] -= share * taus[b]
        matrix[a, a] += share * (total - taus[a])
        for b in range(a + 1, n):
            matrix[a, b] -= share * taus[b]


@loop(_nrt=False)
def sum_below(tau, suffix, inverses):  # type: ignore[no-untyped-def]
    """suffix[i]: the rows after i, eliminated and summed; inverses[i]: their 1 / tau, summed."""
    last, c = tau.shape[0] - 1, tau.shape[1]
    for a in range(c):
        inverses[last, a] = 0.0
        for b in range(c):
            suffix[last, a, b] = 0.0
    for i in range(last - 1, -1, -1):
        for a in range(c):
            inverses[i, a] = inverses[i + 1, a] + 1.0 / tau[i + 1, a]
        copy_matrix(suffix[i + 1], suffix[i])
        add_row(tau[i + 1], suffix[i])


@loop(_nrt=False)
def ground_row(kernel, tau, inverse):  # type: ignore[no-untyped-def]
    """inverse: about that of H = kernel + diag(tau)."""
    copy_matrix(kernel, inverse)
    for a in range(tau.size):
        inverse[a, a] += tau[a]
    invert_in_place(inverse)


@loop(_nrt=False)
def add_square(matrix, factor, vector):  # type: ignore[no-untyped-def]
    """matrix += factor vector vector'."""
    for a in range(vector.size):
        scaled = factor * vector[a]
        for b in range(vector.size):
            matrix[a, b] += scaled * vector[b]


@loop(_nrt=False)
def enclose_resistance(kernel, tau, j, y, units, reach, r, d):  # type: ignore[no-untyped-def]
    """Enclose (H^-1)_jj given y near H^-1 e_j: (low, high). r is left e_j - H y.

    K has entries <= 0 off the diagonal and rows of sum zero. So K y = K d with d = y - y_j, which is small where all columns have about one
    potential; and where d <= 0, sum_l |K_bl d_l| = 2 K_bb |d_b| + (K d)_b with K d = e_j - tau y - r: that is what roundings, counted by
    `units`, are relative to. Every (H^-1)_ll is at most `reach`. [theory T175]
    """
    n = y.size
    highest = 0.0
    for b in range(n):
        d[b] = y[b] - y[j]
        highest = max(highest, d[b])
        r[b] = -tau[b] * y[b]
    r[j] += 1.0
    subtract_product(kernel, d, r)
    value, error, off = y[j], 0.0, 0.0
    for b in range(n):
        size = 2.0 * tau[b] * abs(y[b]) + 2.0 * kernel[b, b] * (abs(d[b]) + 2.0 * highest) + abs(r[b])
        if b == j:
            size += 2.0
        value += y[b] * r[b]
        error += abs(y[b]) * size
        off += abs(r[b]) + 1.01 * units * UNIT * size
    error = 2.0 * units * UNIT * error + 4.0 * UNIT * abs(value)
    return value - error, value + error + 1.001 * reach * off * off


@loop(_nrt=False)
def conductance_between(low, high, tau):  # type: ignore[no-untyped-def]
    """(C, width): 1 / R - tau lies between C and C + width for every R between low and high."""
    if not low > 0.0:
        return 0.0, math.inf
    least = max(0.0, (1.0 - 8.0 * UNIT) / high - tau)
    return least, max(0.0, (1.0 + 8.0 * UNIT) / low - tau) - least


@loop(error_model="numpy", _nrt=False)
def begin_row(p, tau, suffix, below, prefix, kernel, inverse, mean, right):  # type: ignore[no-untyped-def]
    """K and about H^-1 of a row with p rows after it; means of 1 / tau over these, and what lies to the right of each cell."""
    c = tau.size
    for a in range(c):
        for b in range(c):
            kernel[a, b] = prefix[a, b] + suffix[a, b]
        mean[a] = below[a] / (p * p) if p > 0.0 else 0.0
    ground_row(kernel, tau, inverse)
    right[c - 1] = 0.0
    for a in range(c - 2, -1, -1):
        right[a] = right[a + 1] + (1.0 / tau[a + 1] + mean[a + 1])


@loop(error_model="numpy", _nrt=False)
def grid_sweep(mode, u, index, known, tables, slopes, scalars, tau, suffix, below, prefix, kernel, inverse, rows, cumulative):  # type: ignore[no-untyped-def]
    """One sweep of a chain over a grid, row by row; returns the cell at which it had to stop, or the number of cells.

    rows: scratch of shape (7, columns): y, r, means below, sums to the right, sums of slopes above, slopes of the row, differences of y.
    """
    r_count, c = tau.shape
    taus, inverses, own, plain = tables[0], tables[1], tables[2], tables[3]
    beyond, slack, last_scale = scalars[0], scalars[1], 1.0
    units = r_count + c + 16.0
    y, r, mean, right, upper = rows[0], rows[1], rows[2], rows[3], rows[4]
    for i in range(r_count):
        for j in range(c):
            tau[i, j] = taus[index[i * c + j]]
    sum_below(tau, suffix, below)
    prefix[:] = 0.0
    upper[:] = 0.0
    for i in range(r_count):
        p = r_count - 1.0 - i
        begin_row(p, tau[i], suffix[i], below[i], prefix, kernel, inverse, mean, right)
        left = 0.0
        for j in range(c):
            e = i * c + j
            s = c - 1.0 - j
            has_own = p > 0.0 and s > 0.0
            line = slopes[i * (c - 1) + j] if has_own else slopes[slopes.shape[0] - 1]
            weights = own if has_own else plain
            y_sum = mean[j] + right[j] / (s * s) if has_own else 0.0
            s_sum = upper[j] + left
            for b in range(c):
                y[b] = inverse[j, b]
            t = tau[i, j]
            low, high = enclose_resistance(kernel, tau[i], j, y, units, 1.0 / taus[0], r, rows[6])
            k = known[e] if mode == EXACT else -1
            if k < 0:
                conductance, width = conductance_between(low, high, t)
                eta = slack + 2.0 * width / (conductance + taus[0])
                eta += 16.0 * units * UNIT * (line[0] * y_sum + s_sum * inverses[0])
                if width == math.inf and mode == UPPER:
                    conductance, eta, y_sum, s_sum = math.inf, slack, 0.0, 0.0
                cumulate_pairs(weights, taus, inverses, line, conductance, y_sum, s_sum, cumulative)
                last_scale = 1.0 if conductance == math.inf else 1.0 / math.sqrt(conductance + taus[taus.size - 1])
                last_scale *= math.exp(line[line.size - 1] * y_sum + s_sum * inverses[inverses.size - 1])
                k = choose(cumulative, beyond * last_scale * 1.001, eta, u[e], mode)
            if k < 0 or k >= taus.size:
                return e
            if k != index[e]:
                delta = taus[k] - t
                add_square(inverse, -delta / (1.0 + delta * y[j]), y)
                index[e] = k
                tau[i, j] = taus[k]
            if s > 0.0:
                slope = line[min(k, line.size - 1)] if has_own else 0.0
                left += (upper[j] + slope) / (s * s)
                if has_own:
                    rows[5, j] = slope
        if p > 0.0:
            add_row(tau[i], prefix)
            for j in range(c - 1):
                upper[j] += rows[5, j] / (p * p)
    return r_count * c


@loop(error_model="numpy", _nrt=False)
def grid_back(  # type: ignore[no-untyped-def]
    u, known, tables, slopes, scalars, bottom, top, lower, upper, stop, tau, suffix, below, prefix, kernel, inverse, rows, cumulative
):
    """`run_back` on a grid. bottom: (Y, S) of each cell where every variance is the least, above them; top: S where all are infinite."""
    steps, d = u.shape
    c = tau.shape[1]
    r_count = d // c
    taus, inverses, own, plain = tables[0], tables[1], tables[2], tables[3]
    beyond, slack, least = scalars[0], scalars[1], scalars[2]
    for e in range(d):
        i, j = e // c, e % c
        has_own = i < r_count - 1 and j < c - 1
        line = slopes[i * (c - 1) + j] if has_own else slopes[slopes.shape[0] - 1]
        weights = own if has_own else plain
        cumulate_pairs(weights, taus, inverses, line, least, bottom[0, e], bottom[1, e], cumulative)
        lower[e] = choose(cumulative, 0.0, slack, u[0, e], LOWER)
        cumulate_pairs(weights, taus, inverses, line, math.inf, 0.0, top[e], cumulative)
        last_scale = math.exp(top[e] * inverses[inverses.size - 1])
        upper[e] = choose(cumulative, beyond * last_scale * 1.001, slack, u[0, e], UPPER)
        if upper[e] >= taus.size:
            return BEYOND
    for s in range(1, steps):
        apart = False
        for e in range(d):
            if lower[e] != upper[e]:
                apart = True
        if apart:
            grid_sweep(LOWER, u[s], lower, known[s], tables, slopes, scalars, tau, suffix, below, prefix, kernel, inverse, rows, cumulative)
            done = grid_sweep(
                UPPER, u[s], upper, known[s], tables, slopes, scalars, tau, suffix, below, prefix, kernel, inverse, rows, cumulative
            )
            if done < d:
                return BEYOND
        else:
            done = grid_sweep(
                EXACT, u[s], lower, known[s], tables, slopes, scalars, tau, suffix, below, prefix, kernel, inverse, rows, cumulative
            )
            if done < d:
                stop[0], stop[1] = s, done
                return OPEN
            for e in range(d):
                upper[e] = lower[e]
    ended = DONE
    for e in range(d):
        if lower[e] > upper[e]:
            stop[0] = -1
        if lower[e] != upper[e]:
            ended = APART
    return ended


@loop(_nrt=False)
def potential_error(kernel, tau, j, y, demand, units, q, d):  # type: ignore[no-untyped-def]
    """At least |tau_j (y_j - (H^-1 demand)_j)|: the sum of |demand - H y| with its roundings, since tau_j (H^-1)_jl <= 1. [theory T178]"""
    n = y.size
    largest, off = 0.0, 0.0
    for b in range(n):
        d[b] = y[b] - y[j]
        largest = max(largest, abs(d[b]))
        q[b] = demand[b] - tau[b] * y[b]
    subtract_product(kernel, d, q)
    for b in range(n):
        off += abs(q[b]) + units * UNIT * (2.0 * kernel[b, b] * largest + tau[b] * abs(y[b]) + abs(demand[b]))
    return 1.001 * off


@loop(_nrt=False)
def least_of(tau):  # type: ignore[no-untyped-def]
    least = math.inf
    for i in range(tau.shape[0]):
        for a in range(tau.shape[1]):
            least = min(least, tau[i, a])
    return least


@loop(_nrt=False)
def begin_potentials(tau, inverse, demand, left, y):  # type: ignore[no-untyped-def]
    """Of a row of which nothing is drawn: left = tau, and y about H^-1 demand."""
    c = tau.size
    for a in range(c):
        left[a] = tau[a]
        y[a] = 0.0
    for a in range(c):
        for b in range(c):
            y[b] += inverse[a, b] * demand[a]


@loop(_nrt=False)
def force_last_row(z, c):  # type: ignore[no-untyped-def]
    """The last row of a table of c columns, such that all columns have sum zero."""
    last = z.size - c
    for j in range(c):
        total = np.int64(0)
        for e in range(j, last, c):
            total += z[e]
        z[last + j] = -total


@loop(error_model="numpy", _nrt=False)
def grid_coordinates(  # type: ignore[no-untyped-def]
    tau, stretch, tolerance, u, x, count, centres, variances, z, slack, suffix, inverses, inverse, rows, measured
):
    """Klein's step on a grid: cells row by row, the last row and column forced. The first `count` coordinates are known.

    Returns (the first coordinate that is open, or how many there are; whether its parameters are in doubt). measured[0] sums the relative
    widths of the s^2 found.
    """
    r_count, c = tau.shape
    units = r_count + c + 16.0
    reach = 3.0 / least_of(tau)
    g, r, y, q, demand, left = rows[0], rows[1], rows[2], rows[3], rows[4], rows[5]
    demand[:] = 0.0
    measured[0] = 0.0
    sum_below(tau, suffix, inverses)
    n = 0
    for i in range(r_count - 1):
        kernel = suffix[i]
        ground_row(kernel, tau[i], inverse)
        begin_potentials(tau[i], inverse, demand, left, y)
        taken = np.int64(0)
        for j in range(c - 1):
            t = tau[i, j]
            for b in range(c):
                g[b] = inverse[j, b]
            centre = t * y[j]
            off = potential_error(kernel, left, j, y, demand, units, q, rows[6]) + 4.0 * UNIT * abs(centre)
            # Without the cell itself the resistance is 1 / C, and tau C / (C + tau) = tau / (1 + tau / C) cancels no digits.
            left[j] = 0.0
            share = 1.0 - t * g[j]
            for b in range(c):
                q[b] = g[b] / share
            low, high = enclose_resistance(kernel, left, j, q, units, reach, r, rows[6])
            ideal = t / (1.0 + t * (0.5 * (low + high)))
            width = t * (high - low) / (1.0 + t * low) + 8.0 * UNIT
            if not (low > 0.0 and 8.0 * width <= stretch - 1.0 and off * off <= tolerance * ideal):
                return n, True
            measured[0] += width
            centres[n] = centre
            variances[n] = ideal * stretch
            if n >= count:
                whole = nearest_whole(centre)
                k, certain = coordinate(centre - whole, variances[n], u[n], slack)
                if not certain:
                    return n, False
                x[n] = np.int64(whole) + k
            moved = np.float64(x[n])
            z[i * c + j] = x[n]
            taken += x[n]
            demand[j] -= moved
            push = (centre - moved) / share
            factor = t / share
            for a in range(c):
                y[a] += push * g[a]
            add_square(inverse, factor, g)
            n += 1
        z[i * c + c - 1] = -taken
        demand[c - 1] += np.float64(taken)
    force_last_row(z, c)
    return n, False
