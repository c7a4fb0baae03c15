"""The best shares of a budget: least sum, or least largest, of variances that are convex functions of the weights.

Every variance is a convex function V(w) of the weights w >= 0 with V(t w) = V(w) / t, and so is every sum F and every p-norm F of them with
factors above zero. Shares a are weights that add up to one. Two bounds follow ([theory T155]): with d_j = -dF/dw_j at a, no shares reach
less than F(a)^2 / max_j d_j; and for a largest variance the same holds for any weighted mean of the variances in its place. So every answer
comes with a proof of how good it is, whatever the search did. Floating point decides here how much noise is worth having, never what a
promise says: shares are rounded to exact decimals, and the promise is made from those.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from holdfast.accuracy.level_design import Floats, MarginVariances

POWERS = (1, 4, 16, 64, 256, 1024, 4096)
"""Norms that lead from the mean to the largest: each search begins where the last ended."""
LOSS = 1e-3
"""What rounding shares to short decimals may lose."""
FLOOR = Fraction(1, 100)
"""The share of the finest table where nothing is asked of it: every cell is published, and a share of zero would be noise without end."""


@dataclass(frozen=True)
class ShareDesign:
    """Exact shares, one for each margin that may be measured; `value`: what they reach at rho = 1; `bound`: no shares reach less."""

    shares: tuple[Fraction, ...]
    value: float
    bound: float


class Objective:
    """The sum or the largest of factor times variance over all wanted margins and classes of units, at rho = 1."""

    def __init__(self, variances: MarginVariances, factors: Sequence[Floats], largest: bool) -> None:
        self.variances, self.largest = variances, largest
        self._factors = np.concatenate([np.asarray(part, dtype=np.float64) for part in factors])

    def value(self, shares: Floats) -> float:
        terms = self._factors * np.concatenate(self.variances.at(2 * shares))
        return float(terms.max() if self.largest else terms.sum())

    def norm(self, shares: Floats, power: int) -> tuple[float, Floats, float]:
        """(the p-norm of the terms, minus its derivatives, a lower bound of the least value of any shares)."""
        found = self.variances.with_slopes(2 * shares)
        terms = self._factors * np.concatenate([values for values, _ in found])
        slopes = 2 * self._factors * np.concatenate([slope for _, slope in found], axis=1)
        top = float(terms.max())
        norm = top * float(((terms / top) ** power).sum()) ** (1 / power)
        mix = (terms / norm) ** (power - 1)
        down = slopes @ mix
        whole = float(mix.sum()) if self.largest else 1.0
        mean, steepest = float(terms @ mix) / whole, float(down.max()) / whole
        return norm, down, mean**2 / steepest


def best_shares(objective: Objective, finest: int, finest_wanted: bool, start: Floats | None = None) -> ShareDesign:
    """The best exact shares.

    Given:       the place of the finest table among the measured margins, and whether it is wanted; `start`: the best shares, where a
                 closed form gives them.
    """
    shares, bound = _search_shares(objective, start)
    if not finest_wanted and shares[finest] < FLOOR:
        rest = np.delete(shares, finest)
        shares = np.insert(rest / rest.sum() * float(1 - FLOOR), finest, float(FLOOR))
    rounded = _round_shares(objective, shares, finest)
    return ShareDesign(rounded, objective.value(np.array(rounded, dtype=np.float64)), bound)


def _search_shares(objective: Objective, start: Floats | None) -> tuple[Floats, float]:
    from scipy.optimize import minimize

    if start is not None:
        return start, objective.norm(start, 1)[2]
    count = len(objective.variances.measured)
    equal = np.full(count, 1 / count)
    shares, best, least, bound = equal, equal, math.inf, 0.0
    for power in POWERS if objective.largest else POWERS[:1]:

        def height(logs: Floats, power: int = power) -> tuple[float, Floats]:
            shares = _shares(logs)
            value, down, _ = objective.norm(shares, power)
            return math.log(value), shares * (1 - down / value)

        begin = np.log(0.9 * shares + 0.1 * equal)  # a share near zero says little in the next norm, and moves slowly
        found = minimize(height, begin, jac=True, method="BFGS", options={"maxiter": 500, "gtol": 1e-9})
        shares = _shares(found.x)
        bound = max(bound, objective.norm(shares, power)[2])
        value = objective.value(shares)
        if value < least:
            best, least = shares, value
    return best, bound


def _shares(logs: Floats) -> Floats:
    """From logarithms up to a constant; none is so small that a long step of the search leaves the range of doubles."""
    shares = np.exp(np.maximum(logs - logs.max(), -40.0))
    return np.asarray(shares / shares.sum())


def _round_shares(objective: Objective, shares: Floats, finest: int) -> tuple[Fraction, ...]:
    """Short decimals that add up to one and lose little; the finest table has a share above zero."""
    aim = objective.value(shares) * (1 + LOSS)
    for digits in range(2, 9):
        whole = 10**digits
        parts = np.floor(shares * whole).astype(np.int64)
        parts[finest] = max(parts[finest], 1)
        left = whole - int(parts.sum())
        if left > 0:
            parts[np.argsort(parts - shares * whole, kind="stable")[:left]] += 1  # those that lost most come first
        parts[parts.argmax()] += min(left, 0)
        made = tuple(Fraction(int(part), whole) for part in parts)
        if objective.value(np.array(made, dtype=np.float64)) <= aim:
            break
    return made


def closed_form(variances: MarginVariances, importance: Sequence[float], finest: int, finest_wanted: bool) -> Floats | None:
    """The shares of least sum of importance times variance over all numbers, where a formula gives them; None where it does not.

    Given:       units of a level that are all divided alike, and as many measured margins as there are different components.
    Law:         the sum is sum_i A_i / mu_i with mu = M w; with c the solution of M^T c = 1, mu_i is in proportion to sqrt(A_i / c_i).
    Reference:   [theory T156].
    """
    if any(len(count) > 1 for count in variances.classes.count):
        return None
    rows, sums = _components(variances, importance, finest)
    used = [place for place in range(len(variances.measured)) if finest_wanted or place != finest]
    matrix = np.array(rows)[:, used]
    if matrix.shape[0] != matrix.shape[1] or np.linalg.matrix_rank(matrix) < len(matrix):
        return None
    cost = np.linalg.solve(matrix.T, np.ones(len(matrix)))
    if cost.min() <= 0:
        return None
    weights = np.linalg.solve(matrix, np.sqrt(np.array(sums) / cost))
    if weights.min() < -1e-9 * weights.max():
        return None
    out = np.zeros(len(variances.measured))
    out[used] = np.maximum(weights, 0.0)
    if out[finest] == 0:
        out[finest] = 1e-9 * out.max()  # nothing is asked of it: `best_shares` gives it the least share there is
    return np.asarray(out / out.sum())


def _components(variances: MarginVariances, importance: Sequence[float], finest: int) -> tuple[list[tuple[Any, ...]], list[float]]:
    """(rows of M, A): one for each set of components of the noise that the measured margins see alike, up to a factor."""
    shape = variances.shape
    units = [int(variances.classes.units(level)[0]) for level in range(shape.levels + 1)]
    found: dict[tuple[Fraction, ...], float] = {}
    for level in range(shape.levels + 1):
        for sub in shape.masks:
            dimension = (units[level] - (units[level - 1] if level else 0)) * math.prod(
                n - 1 for k, n in enumerate(shape.lengths) if sub >> k & 1
            )

            def seen(margin: tuple[int, int], level: int = level, sub: int = sub) -> Fraction:
                over = math.prod(n for k, n in enumerate(shape.lengths) if (margin[1] & ~sub) >> k & 1)
                return Fraction(units[-1] // units[margin[0]], over) if margin[0] >= level and sub & margin[1] == sub else Fraction(0)

            asked = sum(factor * float(seen(margin)) for factor, margin in zip(importance, variances.wanted, strict=True))
            if sub in shape.kept[level] or not dimension or not asked:
                continue
            scale = seen(variances.measured[finest])
            row = tuple(seen(margin) / scale for margin in variances.measured)
            found[row] = found.get(row, 0.0) + dimension * asked / float(scale)
    return [tuple(map(float, row)) for row in found], list(found.values())
