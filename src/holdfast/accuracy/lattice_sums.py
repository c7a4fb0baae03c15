"""The law of a sum of Gaussian noise on a lattice, enclosed by Poisson summation.

Let e = <w, z>, z with weights exp(-Q(z) / 2) on a lattice L, g the greatest common divisor of w over L, V the variance of e in the
continuous law. Then P[e = g k] is proportional to exp(-g^2 k^2 / (2 V)) h(k) with (1 - d) / (1 + d) <= h <= 1 and

    1 + d <= prod theta_3(exp(-2 pi^2 s_i^2)),    s_i^2 = 1 / Q(b*_i),

b_i any independent moves, as many as L has dimensions less one, that do not change e: so e is a discrete Gaussian on the multiples of g, up
to factors that are known ([theory T140]). Short moves are found from a basis of L: those that change e are subtracted from each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from holdfast.accuracy.short_moves import Floats, Ints, ShortMoves
from holdfast.exact import DiscreteGaussian

WORTHLESS = 0.5
"""With d above this nothing is gained over the sub-Gaussian bound."""
ROUNDING = 1e-12
SMALLEST, NARROW = 2.0**-9, 36
"""Smaller variances, in steps, are taken as the first. Up to the second, tails are summed exactly; beyond, the inequality of [theory T141]
is as good."""


@dataclass(frozen=True)
class LatticeSum:
    """Law:         e in g Z, P[e = g k] proportional to exp(-g^2 k^2 / (2 variance)) h(k), h between `flatness` and 1.
    Given:       step = g; variance never below V; flatness never above (1 - d) / (1 + d), 0 where nothing is known of it.
    """

    step: int
    variance: float
    flatness: float

    def reach(self, alpha: float) -> tuple[int, str]:
        """(r, by which bound) with P[|e| > r] <= alpha, r a multiple of the step."""
        narrow, wide = self._enclosed_reach(alpha), self._sub_gaussian(alpha)
        return (narrow, "lattice sum") if narrow is not None and narrow <= wide else (wide, "sub-Gaussian")

    def tail(self, reach: int) -> float:
        """A bound of P[|e| > reach]: the smaller of the two."""
        beyond = (reach // self.step + 1) * self.step
        best = min(1.0, 2 * math.exp(-(beyond**2) / (2 * self.variance)) * (1 + ROUNDING)) if self.variance else 0.0
        if not self.flatness:
            return best
        plain = tail_bound(self.variance / self.step**2, reach // self.step)
        return min(best, plain / (plain + self.flatness * (1 - plain)) if plain < 1 else 1.0)

    def _enclosed_reach(self, alpha: float) -> int | None:
        if not self.flatness:
            return None
        allowed = alpha * self.flatness / (1 - alpha + alpha * self.flatness) * (1 - ROUNDING)
        return self.step * discrete_reach(self.variance / self.step**2, allowed)

    def _sub_gaussian(self, alpha: float) -> int:
        beyond = math.sqrt(2 * self.variance * math.log(2 / alpha)) * (1 + ROUNDING)
        return self.step * max(0, math.ceil(beyond / self.step) - 1)


@lru_cache(maxsize=1 << 14)
def discrete_reach(variance: float, alpha: float) -> int:
    """The least t that the bounds prove to have P[|k| > t] <= alpha, k with weights exp(-k^2 / (2 variance)) on the integers."""
    if variance == 0:
        return 0
    t = max(0, math.floor(-math.sqrt(variance) * NormalDist().inv_cdf(min(alpha, 1.0) / 2) - 0.5) - 1)
    while tail_bound(variance, t) > alpha:
        t += 1
    while t and tail_bound(variance, t - 1) <= alpha:
        t -= 1
    return t


@lru_cache(maxsize=1 << 14)
def tail_bound(variance: float, t: int) -> float:
    """A bound of P[|k| > t] for that k: summed exactly, or erfc((t + 1/2) / sqrt(2 variance)), which holds for t + 1/2 >= sqrt(variance)
    ([theory T141]).
    """
    deviation = math.sqrt(variance) * (1 + ROUNDING)
    if variance <= NARROW or t + 0.5 < deviation:
        law = DiscreteGaussian(Fraction(max(variance, SMALLEST)))  # tails grow with the variance
        return min(1.0, 2 * law.tail_bounds(t + 1).up())
    return math.erfc((t + 0.5) / (deviation * math.sqrt(2))) * (1 + ROUNDING)


def flatness(blocks: Sequence[ShortMoves]) -> tuple[Ints, float]:
    """(the distinct rows of what moves add to the queries, up to sign; (1 - d) / (1 + d), or 0) for one query, or for two together: then L
    is cut by both.
    """
    rows, log_loss = _reduce(blocks)
    if rows is None:
        return np.zeros((0, 0), dtype=np.int64), 0.0
    return rows, flatness_of(log_loss)


def flatness_of(log_loss: float) -> float:
    """(1 - d) / (1 + d), log_loss = log(1 + d) or more; 0 where it is of no use."""
    d = math.expm1(log_loss) if log_loss < 1 else math.inf
    return (1 - d) / (1 + d) * (1 - ROUNDING) if d < WORTHLESS else 0.0


def log_theta(s_squared: Floats) -> float:
    """The sum of log theta_3(exp(-2 pi^2 s^2)), never below: theta_3(q) <= 1 + 2 q + 2 q^4 / (1 - q)."""
    q = np.exp(-2 * math.pi**2 * s_squared * (1 - 1e-9))
    with np.errstate(divide="ignore"):
        return float(np.log1p(2 * q + 2 * q**4 / np.maximum(1 - q, 0.0)).sum()) * (1 + 1e-9)


def _reduce(blocks: Sequence[ShortMoves]) -> tuple[Ints | None, float]:
    """Moves that change no query, from all: inside a block and up to sign equal ones are subtracted from the shortest, then those of
    different blocks, which are orthogonal, from each other, then different ones in multiples."""
    log_loss = sum(log_theta(block.still) for block in blocks)
    pivots: dict[tuple[int, ...], list[Floats]] = {}
    for block in blocks:
        values = _sign(block.values)
        kinds, kind = np.unique(values, axis=0, return_inverse=True)
        for number, row in enumerate(kinds.tolist()):
            own = np.sort(block.s_squared[kind.ravel() == number])[::-1]
            if not block.apart:
                log_loss += log_theta(1 / (1 / np.sqrt(own[1:]) + 1 / np.sqrt(own[0])) ** 2)
                own = own[:1]
            pivots.setdefault(tuple(row), []).append(own)
    last: dict[tuple[int, ...], float] = {}
    for row_key, found in pivots.items():
        s_squared = np.sort(np.concatenate(found))[::-1]
        log_loss += log_theta(1 / (1 / s_squared[1:] + 1 / np.cumsum(s_squared)[:-1]))
        last[row_key] = float(s_squared[0])
    if not last:
        return None, 0.0
    more = _multiples(last)
    return (None, 0.0) if more is None else (np.array(list(last), dtype=np.int64), log_loss + log_theta(more))


def _sign(values: Ints) -> Ints:
    """Each row with its first entry that is not 0 positive: a move and its negative are one."""
    first = values[np.arange(len(values)), (values != 0).argmax(axis=1)] if len(values) else np.zeros(0, dtype=np.int64)
    return np.asarray(values * np.sign(first)[:, None])


def _multiples(last: dict[tuple[int, ...], float]) -> Floats | None:
    """s^2 of moves that change no query, from one move for each value: one less than there are for one query, two less for two."""
    lengths = {row: 1 / math.sqrt(s) for row, s in last.items()}
    rows = sorted(last, key=lambda row: (sum(map(abs, row)), row))
    if len(rows[0]) == 1:
        p, *rest = rows
        return np.array([_square(_over_gcd(p[0], v[0]), (lengths[v], lengths[p])) for v in rest])
    p = rows[0]
    independent = [v for v in rows if _minor(p, v)]
    if not independent:
        return None
    q = independent[0]
    out = []
    for v in rows:
        if v not in (p, q):  # minor(p, q) v = minor(v, q) p + minor(p, v) q
            out.append(_square(_over_gcd(_minor(p, q), _minor(v, q), _minor(p, v)), (lengths[v], lengths[p], lengths[q])))
    return np.array(out)


def _minor(p: tuple[int, ...], q: tuple[int, ...]) -> int:
    return p[0] * q[1] - p[1] * q[0]


def _over_gcd(*numbers: int) -> list[int]:
    common = math.gcd(*numbers)
    return [abs(number) // common for number in numbers]


def _square(multiples: Sequence[int], lengths: Sequence[float]) -> float:
    return 1 / sum(m * length for m, length in zip(multiples, lengths, strict=True)) ** 2
