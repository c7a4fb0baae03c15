"""Compiled loops of coupling from the past: sweeps over the variances, Klein's step (general_form.py, klein_step.py).

All helpers stay in this module, because Numba's cache does not notice a change in a function imported from elsewhere. No product is fused
with a sum, and every sum has a fixed order: the parameters of Klein's step are the same doubles on every machine.
"""

from __future__ import annotations

import math

import numpy as np

from holdfast.exact._loop_compiled import loop

DONE, APART, OPEN, BEYOND = 0, 1, 2, 3
"""How a run back ends: one state; two states; a word that doubles leave open; an atom after the table's last."""
LOWER, UPPER, EXACT = 0, 1, 2
UNIT = 2.0**-53
"""Unit roundoff, and the width of a uniform's cell."""
NARROW = 0.25
"""Relative errors above this are not used."""
POISSON_FROM = 1.0
FLAT_FROM = 2.75
"""From this s^2 on log theta is below 2^-76."""
SMALL_EXPONENT = 1 / 32
"""Up to here eight terms of the series of exp leave out less than 2^-55."""
STEEPEST = 128.0
"""1 / (2 s^2) up to which doubles draw a coordinate."""


@loop(error_model="numpy", _nrt=False)
def cumulate(weights, taus, conductance, cumulative):  # type: ignore[no-untyped-def]
    """Sums of weights[j] / sqrt(conductance + taus[j]) over j = 0, 1, ...; with an infinite conductance of weights[j]."""
    if conductance == math.inf:
        for j in range(taus.size):
            cumulative[j] = weights[j]
    else:
        for j in range(taus.size):
            cumulative[j] = weights[j] / math.sqrt(conductance + taus[j])
    total = 0.0
    for j in range(taus.size):
        total += cumulative[j]
        cumulative[j] = total


@loop(_nrt=False)
def first_at(cumulative, value):  # type: ignore[no-untyped-def]
    """The first index whose sum is at least `value`; the table's length if there is none."""
    low, high = 0, cumulative.size
    while low < high:
        middle = (low + high) >> 1
        if cumulative[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@loop(_nrt=False)
def choose(cumulative, rest, eta, u, mode):  # type: ignore[no-untyped-def]
    """An index at or below (LOWER), at or above (UPPER) the true one; EXACT: the true one, or -1 where doubles leave it open.

    The uniform lies in [u, u + 2^-53), all sums are right up to a relative eta / 2, and atoms after the table add between 0 and `rest`.
    """
    total = cumulative[cumulative.size - 1]
    low, high = 0, cumulative.size
    if mode != UPPER:
        if eta < NARROW:
            low = first_at(cumulative, u * total * (1.0 - eta))
        if mode == LOWER:
            return min(low, cumulative.size - 1)
    if eta < NARROW:
        high = first_at(cumulative, (u + UNIT) * (total + rest) * (1.0 + eta))
    if mode == UPPER:
        return high
    return low if low == high else -1


@loop(_nrt=False)
def enclose_conductance(matrix, inverse, column, tau, floor, y, r):  # type: ignore[no-untyped-def]
    """(C, its error) with C = 1 / (a' M^-1 a) - tau; `floor` is at most the least eigenvalue of M. y is left near M^-1 a.

    With r = a - M y:  2 y.a - y'M y <= a' M^-1 a <= that + |r|^2 / floor. [theory T174]
    """
    k = column.size
    for i in range(k):
        y[i] = 0.0
        r[i] = column[i]
    for l in range(k):
        if column[l] != 0.0:
            for i in range(k):
                y[i] += inverse[l, i] * column[l]
    size = 0.0
    for l in range(k):
        for i in range(k):
            r[i] -= matrix[l, i] * y[l]
    value, error, squares = 0.0, 0.0, 0.0
    for i in range(k):
        size = abs(column[i])
        for l in range(k):
            size += abs(matrix[i, l] * y[l])
        value += y[i] * (column[i] + r[i])
        error += abs(y[i]) * size
        off = abs(r[i]) + (k + 4) * UNIT * size
        squares += off * off
    error *= (2 * k + 12) * UNIT
    low = value - error
    high = value + error + 1.001 * squares / floor
    if not low > 0.0:
        return 0.0, math.inf
    least = max(0.0, (1.0 - 8 * UNIT) / high - tau)
    largest = max(0.0, (1.0 + 8 * UNIT) / low - tau)
    return least, largest - least


@loop(_nrt=False)
def sum_matrix(columns, taus, index, matrix):  # type: ignore[no-untyped-def]
    """M = sum over cells of tau a a': exact, since atoms have few bits."""
    d, k = columns.shape
    matrix[:] = 0.0
    for e in range(d):
        tau = taus[index[e]]
        for i in range(k):
            if columns[e, i] != 0.0:
                for l in range(k):
                    matrix[i, l] += tau * columns[e, i] * columns[e, l]


@loop(error_model="numpy", _nrt=False)
def invert(matrix, inverse, work):  # type: ignore[no-untyped-def]
    """About the inverse of a positive definite matrix, by elimination on the identity; nothing relies on its digits."""
    k = matrix.shape[0]
    for i in range(k):
        for l in range(k):
            work[i, l] = matrix[i, l]
            inverse[i, l] = 1.0 if i == l else 0.0
    for p in range(k):
        pivot = 1.0 / work[p, p]
        for l in range(k):
            work[p, l] *= pivot
            inverse[p, l] *= pivot
        for i in range(k):
            if i != p:
                factor = work[i, p]
                if factor != 0.0:
                    for l in range(k):
                        work[i, l] -= factor * work[p, l]
                        inverse[i, l] -= factor * inverse[p, l]


@loop(error_model="numpy", _nrt=False)
def sweep(mode, u, index, known, columns, taus, weights, beyond, floor, slack, matrix, inverse, work, y, r, cumulative):  # type: ignore[no-untyped-def]
    """One sweep of a chain over all cells; returns the cell at which it had to stop, or the number of cells.

    known[e] >= 0 is the index of cell e where it was found exactly before (EXACT).
    """
    d, k = columns.shape
    sum_matrix(columns, taus, index, matrix)
    invert(matrix, inverse, work)
    for e in range(d):
        column = columns[e]
        tau = taus[index[e]]
        conductance, width = enclose_conductance(matrix, inverse, column, tau, floor, y, r)
        j = known[e] if mode == EXACT else -1
        if j < 0:
            if width == math.inf and mode == UPPER:
                conductance, eta = math.inf, slack
            else:
                eta = slack + 2.0 * width / (conductance + taus[0])
            cumulate(weights[e], taus, conductance, cumulative)
            scale = 1.0 if conductance == math.inf else 1.0 / math.sqrt(conductance + taus[taus.size - 1])
            j = choose(cumulative, beyond[e] * scale * 1.001, eta, u[e], mode)
        if j < 0 or j >= taus.size:
            return e
        if j != index[e]:
            delta = taus[j] - tau
            product = 0.0
            for i in range(k):
                product += y[i] * column[i]
            factor = delta / (1.0 + delta * product)
            for i in range(k):
                if column[i] != 0.0:
                    for l in range(k):
                        matrix[i, l] += delta * column[i] * column[l]
                scaled = factor * y[i]
                for l in range(k):
                    inverse[i, l] -= scaled * y[l]
            index[e] = j
    return d


@loop(error_model="numpy", _nrt=False)
def run_back(u, known, columns, taus, weights, beyond, floor, slack, least, lower, upper, stop, matrix, inverse, work, y, r, cumulative):  # type: ignore[no-untyped-def]
    """Both chains from time -T to time 0; row s of u has the uniforms of time -T + s.

    The first sweep uses bounds of every conditional instead of the conditionals: an infinite conductance above, that of the least state
    (`least`) below. Once the chains have met, one goes on, and each of its steps must be certain. `stop` gets (row, cell) of an open one.
    """
    steps, d = u.shape
    for e in range(d):
        cumulate(weights[e], taus, least[e], cumulative)
        lower[e] = choose(cumulative, 0.0, slack, u[0, e], LOWER)
        cumulate(weights[e], taus, math.inf, cumulative)
        upper[e] = choose(cumulative, beyond[e] * 1.001, slack, u[0, e], UPPER)
        if upper[e] >= taus.size:
            return BEYOND
    for s in range(1, steps):
        apart = False
        for e in range(d):
            if lower[e] != upper[e]:
                apart = True
        if apart:
            done = sweep(
                LOWER, u[s], lower, known[s], columns, taus, weights, beyond, floor, slack, matrix, inverse, work, y, r, cumulative
            )
            done = sweep(
                UPPER, u[s], upper, known[s], columns, taus, weights, beyond, floor, slack, matrix, inverse, work, y, r, cumulative
            )
            if done < d:
                return BEYOND
        else:
            done = sweep(
                EXACT, u[s], lower, known[s], columns, taus, weights, beyond, floor, slack, matrix, inverse, work, y, r, cumulative
            )
            if done < d:
                stop[0], stop[1] = s, done
                return OPEN
            for e in range(d):
                upper[e] = lower[e]
    for e in range(d):
        if lower[e] > upper[e]:
            stop[0] = -1
        if lower[e] != upper[e]:
            return APART
    return DONE


@loop(error_model="numpy", _nrt=False)
def log_sum(distance, variance):  # type: ignore[no-untyped-def]
    """log theta: the sum over k of exp(-(k - distance)^2 / (2 variance)) over its integral; |distance| <= 1/2. Error below 2^-46."""
    if variance >= FLAT_FROM:
        return 0.0
    if variance >= POISSON_FROM:
        nome = math.exp(-2.0 * math.pi * math.pi * variance)
        return math.log1p(2.0 * (nome * math.cos(2.0 * math.pi * distance) + nome**4 * math.cos(4.0 * math.pi * distance)))
    half = 0.5 / variance
    total = 0.0
    for k in range(-10, 11):
        total += math.exp(-(k - distance) * (k - distance) * half)
    return math.log(total) - 0.5 * math.log(2.0 * math.pi * variance)


@loop(error_model="numpy", _nrt=False)
def coordinate(distance, variance, u, slack):  # type: ignore[no-untyped-def]
    """(k, whether it is certain): the integer k that the uniform in [u, u + 2^-53) gives, in the order 0, 1, -1, 2, -2, ...

    Weights exp(-k (k - 2 distance) / (2 variance)), |distance| <= 1/2. [theory T177]
    """
    half = 0.5 / variance
    if not half <= STEEPEST:
        return 0, False
    total = math.exp(log_sum(distance, variance) + distance * distance * half) * math.sqrt(2.0 * math.pi * variance)
    fall = math.exp(-2.0 * half)
    rise_up, rise_down = math.exp(-(1.0 - 2.0 * distance) * half), math.exp(-(1.0 + 2.0 * distance) * half)
    up, down, reached = 1.0, 1.0, 1.0
    n = 0
    while True:
        k = (n + 1) >> 1
        error = slack + (k + 8.0) * (k + 8.0) * (half + 1.0) * 8.0 * UNIT
        if (u + UNIT) * total * (1.0 + error) <= reached:
            return (k if n & 1 else -k), True
        if u * total * (1.0 - error) < reached or error > NARROW or down < 2.0**-60:
            return 0, False
        n += 1
        if n & 1:
            up *= rise_up
            rise_up *= fall
            reached += up
        else:
            down *= rise_down
            rise_down *= fall
            reached += down


@loop(error_model="numpy", _nrt=False)
def factorise(basis, taus, above, precisions):  # type: ignore[no-untyped-def]
    """Q = B' T^-1 B = U D U', U unit upper triangular: x'Q x = sum_i D_i (x_i + sum_{j < i} U_ji x_j)^2. Returns the trace of Q.

    above[j, i] = U_ji for j < i. Coordinate i is drawn after those before it, and those after it are integrated out.
    """
    d, m = basis.shape
    above[:] = 0.0
    for f in range(d):
        share = 1.0 / taus[f]
        for i in range(m):
            scaled = basis[f, i] * share
            if scaled != 0.0:
                for j in range(i + 1):
                    above[j, i] += scaled * basis[f, j]
    trace = 0.0
    for i in range(m):
        trace += above[i, i]
    for i in range(m - 1, -1, -1):
        pivot = above[i, i]
        precisions[i] = pivot
        for j in range(i):
            factor = above[j, i] / pivot
            for l in range(j + 1):
                above[l, j] -= above[l, i] * factor
        for j in range(i):
            above[j, i] /= pivot
    return trace


@loop(error_model="numpy", _nrt=False)
def draw_coordinates(start, above, precisions, stretch, tolerance, u, x, centres, variances, slack):  # type: ignore[no-untyped-def]
    """Coordinates from `start` on; returns (the first that is open, or how many there are; whether it is its centre that is in doubt)."""
    m = x.size
    for i in range(start, m):
        centre, size = 0.0, 0.0
        for j in range(i):
            part = above[j, i] * x[j]
            centre -= part
            size += abs(part)
        error = (i + 3) * UNIT * size
        if not error * error * precisions[i] <= tolerance:
            return i, True
        centres[i] = centre
        variances[i] = stretch / precisions[i]
        whole = math.floor(centre + 0.5)
        k, certain = coordinate(centre - whole, variances[i], u[i], slack)
        if not certain:
            return i, False
        x[i] = np.int64(whole) + k
    return m, False


@loop(error_model="numpy", _nrt=False)
def log_ratio(z, taus, x, centres, variances):  # type: ignore[no-untyped-def]
    """(-sum z^2 / 2 tau + sum (x - c)^2 / 2 s^2 + sum log theta, its error): what Klein's step leaves to the accept step."""
    target, proposed, logs, error = 0.0, 0.0, 0.0, 0.0
    for f in range(z.size):
        target += np.float64(z[f]) * np.float64(z[f]) / taus[f]
    for i in range(x.size):
        whole = math.floor(centres[i] + 0.5)
        distance = centres[i] - whole
        off = (np.float64(x[i]) - whole) - distance
        proposed += off * off / variances[i]
        if variances[i] < FLAT_FROM:
            logs += log_sum(distance, variances[i])
            error += 2.0**-44
        else:
            error += 2.0**-76
    error += (z.size + 8) * UNIT * target + (x.size + 8) * UNIT * (proposed + abs(logs))
    return 0.5 * (proposed - target) + logs, error


# Grids of two axes (grid_form.py). Rows i, columns j; K is the matrix of the columns without row i, from which the other rows were
# eliminated; H = K + diag(tau_i) is what is left when row i is grounded.


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
    suffix[r_count - 1] = 0.0
    below[r_count - 1] = 0.0
    for i in range(r_count - 2, -1, -1):
        for a in range(c):
            below[i, a] = below[i + 1, a] + 1.0 / tau[i + 1, a]
        copy_matrix(suffix[i + 1], suffix[i])
        add_row(tau[i + 1], suffix[i])
    prefix[:] = 0.0
    upper[:] = 0.0
    for i in range(r_count):
        p = r_count - 1.0 - i
        for a in range(c):
            for b in range(c):
                kernel[a, b] = prefix[a, b] + suffix[i, a, b]
                inverse[a, b] = kernel[a, b]
            inverse[a, a] += tau[i, a]
            mean[a] = below[i, a] / (p * p) if p > 0.0 else 0.0
        invert_in_place(inverse)
        right[c - 1] = 0.0
        for a in range(c - 2, -1, -1):
            right[a] = right[a + 1] + (1.0 / tau[i, a + 1] + mean[a + 1])
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
                conductance, width = 0.0, math.inf
                if low > 0.0:
                    conductance = max(0.0, (1.0 - 8.0 * UNIT) / high - t)
                    width = max(0.0, (1.0 + 8.0 * UNIT) / low - t) - conductance
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
                factor = delta / (1.0 + delta * y[j])
                for a in range(c):
                    scaled = factor * y[a]
                    for b in range(c):
                        inverse[a, b] -= scaled * y[b]
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


@loop(error_model="numpy", _nrt=False)
def grid_coordinates(  # type: ignore[no-untyped-def]
    tau, stretch, tolerance, u, x, count, centres, variances, z, slack, suffix, kernel, inverse, rows, measured
):
    """Klein's step on a grid: cells row by row, the last row and column forced. The first `count` coordinates are known.

    Returns (the first coordinate that is open, or how many there are; whether its parameters are in doubt). measured[0] sums the relative
    widths of the s^2 found.
    """
    r_count, c = tau.shape
    units = r_count + c + 16.0
    least = math.inf
    for i in range(r_count):
        for a in range(c):
            least = min(least, tau[i, a])
    reach = 3.0 / least
    g, r, y, q, demand = rows[0], rows[1], rows[2], rows[3], rows[4]
    demand[:] = 0.0
    measured[0] = 0.0
    suffix[r_count - 1] = 0.0
    for i in range(r_count - 2, -1, -1):
        copy_matrix(suffix[i + 1], suffix[i])
        add_row(tau[i + 1], suffix[i])
    n = 0
    for i in range(r_count - 1):
        copy_matrix(suffix[i], kernel)
        copy_matrix(kernel, inverse)
        for a in range(c):
            inverse[a, a] += tau[i, a]
            rows[5, a] = tau[i, a]
        left = rows[5]
        invert_in_place(inverse)
        for a in range(c):
            y[a] = 0.0
        for a in range(c):
            for b in range(c):
                y[b] += inverse[a, b] * demand[a]
        taken = np.int64(0)
        for j in range(c - 1):
            t = tau[i, j]
            for b in range(c):
                g[b] = inverse[j, b]
            largest = 0.0
            for b in range(c):
                rows[6, b] = y[b] - y[j]
                largest = max(largest, abs(rows[6, b]))
                q[b] = demand[b] - left[b] * y[b]
            subtract_product(kernel, rows[6], q)
            off = 0.0
            for b in range(c):
                off += abs(q[b]) + units * UNIT * (2.0 * kernel[b, b] * largest + left[b] * abs(y[b]) + abs(demand[b]))
            centre = t * y[j]
            off = 1.001 * off + 4.0 * UNIT * abs(centre)
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
                whole = math.floor(centre + 0.5)
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
                scaled = factor * g[a]
                for b in range(c):
                    inverse[a, b] += scaled * g[b]
            n += 1
        z[i * c + c - 1] = -taken
        demand[c - 1] += np.float64(taken)
    for j in range(c):
        total = np.int64(0)
        for i in range(r_count - 1):
            total += z[i * c + j]
        z[(r_count - 1) * c + j] = -total
    return n, False
