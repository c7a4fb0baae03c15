"""Compiled loops of coupling from the past on grids of two axes (forms.py, klein_step.py). After a change in _coupling_compiled.py
touch this file too: Numba's cache does not notice a change in a function imported from elsewhere.

Rows i, columns j. K is the matrix of the columns without row i, from which the other rows were eliminated; H = K + diag(tau_i) is what is
left when row i is grounded.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop
from holdfast.samplers.coupling._coupling_compiled import (
    BEYOND,
    EXACT,
    LOWER,
    OPEN,
    UNIT,
    UPPER,
    add_bend,
    add_straight,
    are_apart,
    choose,
    coordinate,
    cumulate,
    first_states,
    how_it_ended,
    nearest_whole,
)


@loop(_nrt=False, fastmath={"reassoc"})
def row_slope(row, begin, end, down, up, v, shares, rises, knot_bits):  # type: ignore[no-untyped-def]
    """(sum of v G'(row + down v) over a part of a row of coordinates, in any order; in how many of them a knot lies before row + up v)."""
    total, bent = 0.0, 0
    for j in range(begin, end):
        piece = np.uint64(row[j] + down * v[j]) >> np.uint64(knot_bits)
        bent += piece != np.uint64(row[j] + up * v[j]) >> np.uint64(knot_bits)
        total += shares[j] * rises[piece]
    return total, bent


@loop(error_model="numpy", _nrt=False)
def grid_exponents(k, l, now, sums, squares, curve, exponents):  # type: ignore[no-untyped-def]
    """`exponents_at` for cell (l, k): its square at coordinate (j, i) is u v, each of them `one` in the cell's own column or row.

    sums[i, j] belongs to column i and row j of the grid, the longer axis last. Knots reach as far as sums do. Squares grow along an axis,
    so bent coordinates are found soon from its end.
    """
    u, v, shares, one, window = squares
    inverses, _, rises, knot_bits, _ = curve
    down, up = inverses[inverses.size - 1] - now, inverses[0] - now
    exponents[:] = 0.0
    slope, size = 0.0, 0.0
    top, bottom, left, right = max(0, k - window), min(k + 1, u.size), max(0, l - window), min(l, v.size)
    for i in range(top, bottom):
        factor = one if i == k else u[i]
        part, bent = row_slope(sums[i], left, right, factor * down, factor * up, v, shares, rises, knot_bits)
        slope += np.float64(factor) * part
        j = right
        while bent > 0:
            j -= 1
            w = factor * v[j]
            if (sums[i, j] + w * down) >> knot_bits != (sums[i, j] + w * up) >> knot_bits:
                size += add_bend(sums[i, j] - w * now, w, curve, exponents)
                bent -= 1
        if l < v.size:
            w = factor * one
            piece = (sums[i, l] + w * down) >> knot_bits
            slope += np.float64(w) * rises[piece]
            if piece != (sums[i, l] + w * up) >> knot_bits:
                size += add_bend(sums[i, l] - w * now, w, curve, exponents)
    return add_straight(slope, size, (bottom - top) * (right - left + 1), curve, exponents)


@loop(_nrt=False)
def move_grid_sums(k, l, change, squares, sums):  # type: ignore[no-untyped-def]
    """X of all coordinates after x of cell (l, k) changed; sums as above."""
    u, v, _, one, window = squares
    for i in range(max(0, k - window), min(k + 1, u.size)):
        scaled = (one if i == k else u[i]) * change
        for j in range(max(0, l - window), min(l, v.size)):
            sums[i, j] += scaled * v[j]
        if l < v.size:
            sums[i, l] += scaled * one


@loop(_nrt=False)
def grid_sums(index, squares, curve, below, own, sums):  # type: ignore[no-untyped-def]
    """X of all coordinates of a state, column by column; below and own: scratch, a row each."""
    v, u, _, one, window = squares
    inverses = curve[0]
    c, last = v.size + 1, inverses.size - 1
    below[:] = 0
    for k in range(u.size - 1, -1, -1):
        after = np.int64(0)
        for l in range(c - 1, -1, -1):
            below[l] += inverses[min(index[(k + 1) * c + l], last)]
            if k + 1 + window <= u.size:
                below[l] -= inverses[min(index[(k + 1 + window) * c + l], last)]
            own[l] = one * inverses[min(index[k * c + l], last)] + u[k] * below[l]
            if l < v.size:
                after += own[l + 1]
                if l + 1 + window <= v.size:
                    after -= own[l + 1 + window]
                sums[l, k] = one * own[l] + v[l] * after


@loop(error_model="numpy", _nrt=False)
def grid_exponents_of_ends(ends, squares, curve, first, off):  # type: ignore[no-untyped-def]
    """`exponents_of_ends` on a grid."""
    inverses, columns = curve[0], squares[0].size + 1
    for e in range(first.shape[1]):
        l, k = e // columns, e % columns
        off[0, e] = grid_exponents(k, l, inverses[0], ends[0], squares, curve, first[0, e])
        off[1, e] = grid_exponents(k, l, inverses[inverses.size - 1], ends[1], squares, curve, first[1, e])


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
def sum_below(tau, suffix):  # type: ignore[no-untyped-def]
    """suffix[i]: the rows after i, eliminated and summed."""
    last = tau.shape[0] - 1
    suffix[last, :, :] = 0.0
    for i in range(last - 1, -1, -1):
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
def begin_row(tau, suffix, prefix, kernel, inverse):  # type: ignore[no-untyped-def]
    """K and about H^-1 of a row."""
    c = tau.size
    for a in range(c):
        for b in range(c):
            kernel[a, b] = prefix[a, b] + suffix[a, b]
    ground_row(kernel, tau, inverse)


@loop(error_model="numpy", _nrt=False)
def grid_sweep(mode, u, index, known, public, work):  # type: ignore[no-untyped-def]
    """One sweep of a chain over a grid, row by row; returns the cell at which it had to stop, or the number of cells.

    public and work: forms.py.
    """
    taus, weights, scalars, squares, curve = public
    tau, suffix, prefix, kernel, inverse, lines, scratch, sums, exponents, cumulative = work
    r_count, c = tau.shape
    beyond, slack, inverses = scalars[0], scalars[1], curve[0]
    last = inverses.size - 1
    units = r_count + c + 16.0
    y, r = lines[0], lines[1]
    for i in range(r_count):
        for j in range(c):
            tau[i, j] = taus[index[i * c + j]]
    sum_below(tau, suffix)
    grid_sums(index, squares, curve, scratch[0], scratch[1], sums)
    prefix[:] = 0.0
    for i in range(r_count):
        begin_row(tau[i], suffix[i], prefix, kernel, inverse)
        for j in range(c):
            e = i * c + j
            for b in range(c):
                y[b] = inverse[j, b]
            t, x = tau[i, j], inverses[min(index[e], last)]
            low, high = enclose_resistance(kernel, tau[i], j, y, units, 1.0 / taus[0], r, lines[6])
            k = known[e] if mode == EXACT else -1
            if k < 0:
                conductance, width = conductance_between(low, high, t)
                if not width < math.inf:  # or no number at all
                    conductance, width = (math.inf, 0.0) if mode == UPPER else (conductance, math.inf)
                eta = slack + (2.0 * width / (conductance + taus[0]) if width > 0.0 else 0.0)
                eta += 4.0 * grid_exponents(j, i, x, sums, squares, curve, exponents)
                cumulate(weights, taus, conductance, exponents, cumulative)
                scale = 1.0 if conductance == math.inf else 1.0 / math.sqrt(conductance + taus[taus.size - 1])
                k = choose(cumulative, beyond * scale * 1.001, eta, u[e], mode)
            if k < 0 or k >= taus.size:
                return e
            if k != index[e]:
                delta = taus[k] - t
                add_square(inverse, -delta / (1.0 + delta * y[j]), y)
                move_grid_sums(j, i, inverses[min(k, last)] - x, squares, sums)
                index[e] = k
                tau[i, j] = taus[k]
        if i < r_count - 1:
            add_row(tau[i], prefix)
    return r_count * c


@loop(error_model="numpy", _nrt=False)
def grid_back(u, known, public, starts, lower, upper, stop, work):  # type: ignore[no-untyped-def]
    """`run_back` on a grid."""
    steps, d = u.shape
    scalars = public[2]
    least, first, off = starts
    if not first_states(u[0], public[0], public[1], scalars[0], scalars[1], least, first, off, lower, upper, work[9]):
        return BEYOND
    for s in range(1, steps):
        if are_apart(lower, upper):
            grid_sweep(LOWER, u[s], lower, known[s], public, work)
            if grid_sweep(UPPER, u[s], upper, known[s], public, work) < d:
                return BEYOND
        else:
            done = grid_sweep(EXACT, u[s], lower, known[s], public, work)
            if done < d:
                stop[0], stop[1] = s, done
                return OPEN
            for e in range(d):
                upper[e] = lower[e]
    return how_it_ended(lower, upper, stop)


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
    tau, stretch, tolerance, u, x, count, centres, variances, z, slack, suffix, inverse, rows, measured
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
    sum_below(tau, suffix)
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
