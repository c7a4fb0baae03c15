"""Compiled loops of coupling from the past: sweeps over the variances, Klein's step (forms.py, klein_step.py).

No product is fused
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
STEEPEST = 128.0
"""1 / (2 s^2) up to which doubles draw a coordinate."""


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

    The uniform lies in [u, u + 2^-53), all sums are right up to a relative eta / 4, and atoms after the table add between 0 and `rest`.
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
    error *= (3 * k + 12) * UNIT
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


@loop(_nrt=False)
def height(x, curve):  # type: ignore[no-untyped-def]
    """G at an integer x: right to three roundings."""
    _, heights, rises, knot_bits, scale = curve
    k = min(x >> knot_bits, rises.size - 1)
    return heights[k] + rises[k] * (np.float64(x - (k << knot_bits)) * scale)


@loop(_nrt=False)
def add_bend(y, w, curve, exponents):  # type: ignore[no-untyped-def]
    """exponents[j] += how far G(y + w x_j) is above the line through the piece of y + w x_last; returns G(y + w x_last)."""
    inverses, _, rises, knot_bits, scale = curve
    last = inverses.size - 1
    start = y + w * inverses[last]
    low, rise = height(start, curve), rises[min(start >> knot_bits, rises.size - 1)]
    for j in range(last):
        x = y + w * inverses[j]
        exponents[j] += max(0.0, height(x, curve) - low - rise * (np.float64(x - start) * scale))
    return low


@loop(error_model="numpy", _nrt=False)
def add_straight(slope, size, count, curve, exponents):  # type: ignore[no-untyped-def]
    """The lines of all coordinates at once; returns a bound of the error of all exponents. [theory T192]"""
    inverses, scale = curve[0], curve[4]
    last = inverses.size - 1
    for j in range(last):
        exponents[j] += slope * (np.float64(inverses[j] - inverses[last]) * scale)
    return (count + 16.0) * 2.0 * UNIT * (size + exponents[0])


@loop(error_model="numpy", _nrt=False)
def exponents_at(e, now, sums, lists, curve, exponents):  # type: ignore[no-untyped-def]
    """What cell e adds to Phi at each near atom, minus what it adds at the last: into `exponents`. Returns a bound of their error.

    sums are X_i with cell e at x = now. Where no knot lies between the values that X_i can take, G is a line.
    """
    starts, coordinates, squares = lists
    inverses, _, rises, knot_bits, _ = curve
    most, least, end = inverses[0], inverses[inverses.size - 1], rises.size - 1
    exponents[:] = 0.0
    slope, size = 0.0, 0.0
    for n in range(starts[e], starts[e + 1]):
        w = squares[n]
        y = sums[coordinates[n]] - w * now
        k = min((y + w * least) >> knot_bits, end)
        slope += np.float64(w) * rises[k]
        if k != min((y + w * most) >> knot_bits, end):
            size += add_bend(y, w, curve, exponents)
    return add_straight(slope, size, starts[e + 1] - starts[e], curve, exponents)


@loop(error_model="numpy", _nrt=False)
def cumulate(weights, taus, conductance, exponents, cumulative):  # type: ignore[no-untyped-def]
    """Sums of weights[j] exp(exponents[j]) / sqrt(conductance + taus[j]); exponents after the last one given are 0."""
    for j in range(exponents.size):
        cumulative[j] = weights[j] * math.exp(exponents[j])
    for j in range(exponents.size, taus.size):
        cumulative[j] = weights[j]
    if conductance != math.inf:
        for j in range(taus.size):
            cumulative[j] /= math.sqrt(conductance + taus[j])
    total = 0.0
    for j in range(taus.size):
        total += cumulative[j]
        cumulative[j] = total


@loop(error_model="numpy", _nrt=False)
def first_states(u, taus, weights, beyond, slack, least, first, off, lower, upper, cumulative):  # type: ignore[no-untyped-def]
    """The first sweep, by bounds of every conditional; whether every upper index is in the table.

    first[0] and off[0] are exponents and errors where all other cells have the least atom, with a conductance of least[e]; first[1] and
    off[1] where all are infinite.
    """
    for e in range(u.size):
        cumulate(weights, taus, least[e], first[0, e], cumulative)
        lower[e] = choose(cumulative, 0.0, slack + 4.0 * off[0, e], u[e], LOWER)
        cumulate(weights, taus, math.inf, first[1, e], cumulative)
        upper[e] = choose(cumulative, beyond * 1.001, slack + 4.0 * off[1, e], u[e], UPPER)
        if upper[e] >= taus.size:
            return False
    return True


@loop(_nrt=False)
def how_it_ended(lower, upper, stop):  # type: ignore[no-untyped-def]
    """DONE or APART; stop[0] is -1 where the chains have passed each other."""
    ended = DONE
    for e in range(lower.size):
        if lower[e] > upper[e]:
            stop[0] = -1
        if lower[e] != upper[e]:
            ended = APART
    return ended


@loop(_nrt=False)
def are_apart(lower, upper):  # type: ignore[no-untyped-def]
    for e in range(lower.size):
        if lower[e] != upper[e]:
            return True
    return False


@loop(_nrt=False)
def move_sums(e, change, lists, sums):  # type: ignore[no-untyped-def]
    """X_i after x of cell e changed."""
    starts, coordinates, squares = lists
    for n in range(starts[e], starts[e + 1]):
        sums[coordinates[n]] += squares[n] * change


@loop(error_model="numpy", _nrt=False)
def exponents_of_ends(ends, lists, curve, first, off):  # type: ignore[no-untyped-def]
    """`first` and `off` of first_states."""
    inverses = curve[0]
    for e in range(first.shape[1]):
        off[0, e] = exponents_at(e, inverses[0], ends[0], lists, curve, first[0, e])
        off[1, e] = exponents_at(e, inverses[inverses.size - 1], ends[1], lists, curve, first[1, e])


@loop(error_model="numpy", _nrt=False)
def sweep(mode, u, index, known, public, work):  # type: ignore[no-untyped-def]
    """One sweep of a chain over all cells; returns the cell at which it had to stop, or the number of cells.

    known[e] >= 0 is the index of cell e where it was found exactly before (EXACT). public and work: forms.py.
    """
    columns, taus, weights, scalars, lists, curve = public
    matrix, inverse, scratch, lines, sums, exponents, cumulative = work
    d, k = columns.shape
    beyond, floor, slack = scalars[0], scalars[1], scalars[2]
    inverses, y = curve[0], lines[0]
    last = inverses.size - 1
    sum_matrix(columns, taus, index, matrix)
    invert(matrix, inverse, scratch)
    sums[:] = 0
    for e in range(d):
        move_sums(e, inverses[min(index[e], last)], lists, sums)
    for e in range(d):
        column = columns[e]
        tau, x = taus[index[e]], inverses[min(index[e], last)]
        conductance, width = enclose_conductance(matrix, inverse, column, tau, floor, y, lines[1])
        j = known[e] if mode == EXACT else -1
        if j < 0:
            if not width < math.inf:  # or no number at all
                conductance, width = (math.inf, 0.0) if mode == UPPER else (conductance, math.inf)
            eta = slack + (2.0 * width / (conductance + taus[0]) if width > 0.0 else 0.0)
            eta += 4.0 * exponents_at(e, x, sums, lists, curve, exponents)
            cumulate(weights, taus, conductance, exponents, cumulative)
            scale = 1.0 if conductance == math.inf else 1.0 / math.sqrt(conductance + taus[taus.size - 1])
            j = choose(cumulative, beyond * scale * 1.001, eta, u[e], mode)
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
            move_sums(e, inverses[min(j, last)] - x, lists, sums)
            index[e] = j
    return d


@loop(error_model="numpy", _nrt=False)
def run_back(u, known, public, starts, lower, upper, stop, work):  # type: ignore[no-untyped-def]
    """Both chains from time -T to time 0; row s of u has the uniforms of time -T + s. starts: `least`, `first`, `off` of first_states.

    Once the chains have met, one goes on, and each of its steps must be certain. `stop` gets (row, cell) of an open one.
    """
    steps, d = u.shape
    scalars = public[3]
    least, first, off = starts
    if not first_states(u[0], public[1], public[2], scalars[0], scalars[2], least, first, off, lower, upper, work[6]):
        return BEYOND
    for s in range(1, steps):
        if are_apart(lower, upper):
            sweep(LOWER, u[s], lower, known[s], public, work)
            if sweep(UPPER, u[s], upper, known[s], public, work) < d:
                return BEYOND
        else:
            done = sweep(EXACT, u[s], lower, known[s], public, work)
            if done < d:
                stop[0], stop[1] = s, done
                return OPEN
            for e in range(d):
                upper[e] = lower[e]
    return how_it_ended(lower, upper, stop)


@loop(error_model="numpy", _nrt=False)
def log_sum(distance, variance):  # type: ignore[no-untyped-def]
    """log theta: the sum over k of exp(-(k - distance)^2 / (2 variance)) over its integral; |distance| <= 1/2.

    Error below 2^-46 for variances from 1 / (2 STEEPEST) on, and 2^-46 / (2 STEEPEST variance) below: that of the largest exponent.
    """
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


@loop(_nrt=False)
def nearest_whole(centre):  # type: ignore[no-untyped-def]
    """floor(centre + 1/2) without its rounding: .5 - 2^-54 is nearest to 0."""
    whole = math.floor(centre)
    return whole + 1 if centre - whole >= 0.5 else whole


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
        whole = nearest_whole(centre)
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
        whole = nearest_whole(centres[i])
        distance = centres[i] - whole
        off = (np.float64(x[i]) - whole) - distance
        proposed += off * off / variances[i]
        if variances[i] < FLAT_FROM:
            logs += log_sum(distance, variances[i])
            error += 2.0**-44 * (1.0 + 0.5 / (STEEPEST * variances[i]))
        else:
            error += 2.0**-76
    error += (z.size + 8) * UNIT * target + (x.size + 8) * UNIT * (proposed + abs(logs))
    return 0.5 * (proposed - target) + logs, error
