"""The rival of group `laplace`: coupling from the past on a two-way table in plain doubles, the form in which the method was first tried.

Nothing is certified here: the list of atoms ends, and sums, the matrix and every comparison are rounded as they come. It is the time that
exactness is compared with, and it is no part of the package.

Legend: rows i, columns j, cell e = (i, j) an edge of conductance tau_e between them; `inverse` is that of the weighted Laplacian without
its last column node; own cells are those not in the last row or column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.samplers.coupling.convex_correction import majorant
from holdfast.samplers.coupling.mixture import mixture_for

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

loop: Any = numba.njit(cache=True)
LEFT_OUT = 2.0**-60
"""Weight of the atoms left out of the list, as a share."""


@dataclass(frozen=True)
class PlainTables:
    """What a table of r x c cells needs, prepared once."""

    shape: tuple[int, int]
    epsilon: float
    taus: Floats
    log_weights: Floats
    """Of m sqrt(tau), with the cell's own part of the correction for own cells."""
    log_plain: Floats
    alphas: Floats
    """(r - 1, c - 1, atoms)."""
    majorants: Floats
    excess: Floats
    loss: float


def majorant_doubles(arguments: list[Fraction]) -> Floats:
    """The majorant at rational points, each the double nearest to a ball: relative error below 2^-52."""
    with precision(96):
        return np.array([enclosure(majorant(ball(x))).nearest() for x in arguments], dtype=np.float64)


@lru_cache(maxsize=1)
def prepare(shape: tuple[int, int], epsilon: Fraction) -> PlainTables:
    """The tables of the mixture and of the correction in pairs."""
    mixture = mixture_for(epsilon, shape[0] * shape[1])
    weights = mixture.weights
    left = np.cumsum(weights[::-1])[::-1]
    atoms = int(np.argmax(left < LEFT_OUT * left[0])) or len(weights)
    taus = np.array([float(mixture.tau(j)) for j in range(atoms)])
    inverse = [1 / mixture.tau(j) for j in range(atoms)]
    own = majorant_doubles(inverse)
    r, c = shape
    alphas = np.empty((r - 1, c - 1, atoms))
    known: dict[tuple[int, int], Floats] = {}
    for i in range(r - 1):
        for j in range(c - 1):
            p, s = sorted((r - 1 - i, c - 1 - j))
            if (p, s) not in known:
                most = (Fraction(p + 1, p) * Fraction(s + 1, s) - 1) / mixture.tau(0)
                known[p, s] = (majorant_doubles([x + most for x in inverse]) - own) / float(most)
            alphas[i, j] = known[p, s]
    log_plain = np.log(weights[:atoms])
    return PlainTables(
        shape, float(epsilon), taus, log_plain + own, log_plain, alphas, own, np.asarray(mixture.excess_table), float(mixture.loss)
    )


@loop
def laplacian_inverse(tau: Floats) -> Floats:
    r, c = tau.shape
    k = r + c - 1
    m = np.zeros((k, k))
    for i in range(r):
        for j in range(c):
            m[i, i] += tau[i, j]
            if j < c - 1:
                m[r + j, r + j] += tau[i, j]
                m[i, r + j] = m[r + j, i] = -tau[i, j]
    return np.linalg.inv(m)


@loop
def across(inverse: Floats, i: int, j: int, r: int, out: Floats) -> float:
    """inverse a_e into `out`; returns the resistance a_e' inverse a_e. The last column node is the ground."""
    k = len(inverse)
    ground = r + j >= k
    for n in range(k):
        out[n] = inverse[i, n] if ground else inverse[i, n] - inverse[r + j, n]
    return float(out[i] if ground else out[i] - out[r + j])


@loop
def add_conductance(inverse: Floats, v: Floats, resistance: float, more: float) -> None:
    """The inverse after conductance was added across an edge, v as of `across`."""
    factor = more / (1 + more * resistance)
    for n in range(len(inverse)):
        scaled = factor * v[n]
        for m in range(len(inverse)):
            inverse[n, m] -= scaled * v[m]


@loop
def pair_sums(tau: Floats, alpha: Floats, i: int, j: int) -> tuple[float, float]:
    """(Y of an own cell; the sum of alpha_f b*_fe^2 over own cells f before it)."""
    r, c = tau.shape
    y = 0.0
    if i < r - 1 and j < c - 1:
        p, s = r - 1 - i, c - 1 - j
        for b in range(j + 1, c):
            y += 1 / (s * s * tau[i, b])
        for a in range(i + 1, r):
            y += 1 / (p * p * tau[a, j])
            part = 0.0
            for b in range(j + 1, c):
                part += 1 / tau[a, b]
            y += part / (p * p * s * s)
    x = 0.0
    if i < r - 1:
        for b in range(min(j, c - 1)):
            x += alpha[i, b] / ((c - 1 - b) * (c - 1 - b))
    for a in range(min(i, r - 1)):
        p = r - 1 - a
        part = alpha[a, j] if j < c - 1 else 0.0
        for b in range(min(j, c - 1)):
            part += alpha[a, b] / ((c - 1 - b) * (c - 1 - b))
        x += part / (p * p)
    return y, x


@loop
def sweep(state: Ints, tau: Floats, alpha: Floats, u: Floats, tables: Any) -> None:
    """One sweep of the heat bath, all cells in order, by the uniforms given."""
    taus, log_weights, log_plain, alphas = tables
    r, c = tau.shape
    inverse, v, weights = laplacian_inverse(tau), np.empty(r + c - 1), np.empty(len(taus))
    for i in range(r):
        for j in range(c):
            own = i < r - 1 and j < c - 1
            resistance = across(inverse, i, j, r, v)
            others = max(1 / resistance - tau[i, j], 0.0)
            y, x = pair_sums(tau, alpha, i, j)
            total = 0.0
            for n in range(len(taus)):
                exponent = log_weights[n] + alphas[i, j, n] * y if own else log_plain[n]
                total += math.exp(exponent + x / taus[n]) / math.sqrt(others + taus[n])
                weights[n] = total
            n = 0
            while weights[n] < u[i, j] * total and n < len(taus) - 1:
                n += 1
            add_conductance(inverse, v, resistance, taus[n] - tau[i, j])
            state[i, j], tau[i, j] = n, taus[n]
            if own:
                alpha[i, j] = alphas[i, j, n]


@loop
def coalesced(u: Floats, tables: Any) -> tuple[bool, Ints]:
    """Whether both chains are in one state after these sweeps, and the state."""
    taus, _, _, alphas = tables
    steps, r, c = u.shape
    lower, upper = np.zeros((r, c), dtype=np.int64), np.full((r, c), len(taus) - 1)
    for state in (lower, upper):
        tau, alpha = taus[state.ravel()].reshape((r, c)).copy(), np.empty((r - 1, c - 1))
        for i in range(r - 1):
            for j in range(c - 1):
                alpha[i, j] = alphas[i, j, state[i, j]]
        for step in range(steps):
            sweep(state, tau, alpha, u[step], tables)
    return bool((lower == upper).all()), lower


@loop
def gaussian(centre: float, variance: float, u: float) -> tuple[int, float]:
    """A draw of the discrete Gaussian by inversion, and the logarithm of sum exp(-(k - centre)^2 / 2 variance) / sqrt(2 pi variance)."""
    reach = int(9 * math.sqrt(variance)) + 3
    first = math.floor(centre) - reach
    total = 0.0
    for n in range(2 * reach + 2):
        total += math.exp(-((first + n - centre) ** 2) / (2 * variance))
    left, n = u * total, 0
    while n < 2 * reach + 1:
        left -= math.exp(-((first + n - centre) ** 2) / (2 * variance))
        if left < 0:
            break
        n += 1
    return first + n, math.log(total / math.sqrt(2 * math.pi * variance))


@loop
def klein(tau: Floats, u: Floats) -> tuple[Ints, float]:
    """z given tau, one own cell after the other, and log W."""
    r, c = tau.shape
    inverse, v, demand = laplacian_inverse(tau), np.empty(r + c - 1), np.zeros(r + c - 1)
    z, log_w = np.zeros((r, c), dtype=np.int64), 0.0
    for i in range(r - 1):
        for j in range(c - 1):
            resistance = across(inverse, i, j, r, v)
            centre = tau[i, j] * float((v * demand).sum())
            z[i, j], part = gaussian(centre, tau[i, j] * (1 - tau[i, j] * resistance), u[i, j])
            log_w += part
            add_conductance(inverse, v, resistance, -tau[i, j])
            demand[i] -= z[i, j]
            demand[r + j] += z[i, j]
    for i in range(r - 1):
        z[i, c - 1] = -z[i, : c - 1].sum()
    for j in range(c):
        z[r - 1, j] = -z[: r - 1, j].sum()
    return z, log_w


@loop
def one_try(shape: tuple[int, int], tables: Any, repair: Any) -> tuple[bool, Ints, float, int]:
    """(whether it was accepted; z; its chance to be; sweeps back)."""
    taus, _, _, alphas = tables
    majorants, excess, loss = repair
    r, c = shape
    u = np.random.random((3, r, c))
    while True:
        met, state = coalesced(u, tables)
        if met:
            break
        u = np.concatenate((np.random.random((1, r, c)), u))
    tau = taus[state.ravel()].reshape((r, c)).copy()
    z, log_chance = klein(tau, np.random.random((r, c)))
    alpha = np.zeros((r - 1, c - 1))
    for i in range(r - 1):
        for j in range(c - 1):
            alpha[i, j] = alphas[i, j, state[i, j]]
            log_chance -= majorants[state[i, j]] + alpha[i, j] * pair_sums(tau, alpha, i, j)[0]
    for i in range(r):
        for j in range(c):
            k = abs(z[i, j])
            log_chance -= loss + (excess[k] if k < len(excess) else 0.0)
    return np.random.random() < math.exp(log_chance), z, math.exp(log_chance), len(u)


@loop
def tries(shape: tuple[int, int], tables: Any, repair: Any, count: int) -> tuple[float, float, float]:
    """Over so many tries: mean chance to be accepted, mean square of a cell weighed by it, mean sweeps back."""
    chance = square = back = 0.0
    for _ in range(count):
        _, z, one, steps = one_try(shape, tables, repair)
        chance, square, back = chance + one, square + one * (z * z).mean(), back + steps
    return chance / count, square / chance, back / count


def run(prepared: PlainTables, count: int) -> tuple[float, float, float]:
    """See `tries`."""
    tables = prepared.taus, prepared.log_weights, prepared.log_plain, prepared.alphas
    found: tuple[float, float, float] = tries(prepared.shape, tables, (prepared.majorants, prepared.excess, prepared.loss), count)
    return found
