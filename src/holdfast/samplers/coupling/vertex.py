"""The only solution of a linear programme, proved: a solver in doubles comes near it, pivots in balls go the rest of the way.

Minimise c x over A x <= b, x >= 0. A vertex is named by columns B, whose x may be above 0, and as many rows R, which are tight. Where two
solutions nearly tie, a solver in doubles ends at a neighbour of the right one; from there steps of the simplex method, each decided by the
middles of balls, lead to it. How a vertex was found is not trusted: what is returned is proved to be the only solution [theory T162].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from flint import arb, arb_mat

MOST_PIVOTS = 400
"""From one suggestion; 179 is the most that was seen to lead to the end."""


class Programme(NamedTuple):
    """minimise costs x over matrix x <= bounds, x >= 0, all of them balls."""

    matrix: arb_mat
    bounds: list[arb]
    costs: list[arb]


def solution(wanted: Programme) -> dict[int, arb] | None:
    """The x_j > 0 of the only solution, if one is found and proved."""
    for columns, rows in suggested_vertices(wanted):
        for _ in range(MOST_PIVOTS):
            vertex = Vertex.at(wanted, columns, rows)
            if vertex is None:
                break
            if vertex.is_the_only_solution:
                return dict(zip(columns, vertex.x, strict=True))
            neighbour = vertex.neighbour()
            if neighbour is None:
                break
            columns, rows = neighbour
    return None


def suggested_vertices(wanted: Programme) -> Iterator[tuple[list[int], list[int]]]:
    """Columns and rows of vertices that a solver in doubles takes for the solution, as many rows as columns."""
    from scipy.optimize import linprog

    matrix = np.array([float(entry.mid()) for entry in wanted.matrix.entries()]).reshape(wanted.matrix.nrows(), -1)
    bounds, costs = (np.array([float(value.mid()) for value in values]) for values in (wanted.bounds, wanted.costs))
    for method, tolerance in product(("highs-ds", "highs-ipm"), (1e-10, 1e-9, 1e-8, 1e-7)):
        options = {"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance}
        found = linprog(costs, A_ub=matrix, b_ub=bounds, method=method, options=options)
        if found.status == 0:
            columns = np.flatnonzero(found.x > 0)
            tightest = np.lexsort((found.slack, found.ineqlin.marginals >= 0))  # a tight row has a multiplier below 0, if not a tiny one
            yield columns.tolist(), tightest[: len(columns)].tolist()


@dataclass(frozen=True)
class Vertex:
    """The vertex of some columns and rows: x of these columns, multipliers y of these rows; slacks and reduced costs of all."""

    wanted: Programme
    columns: list[int]
    rows: list[int]
    inverse: arb_mat
    x: list[arb]
    y: list[arb]
    slacks: list[arb]
    reduced: list[arb]

    @classmethod
    def at(cls, wanted: Programme, columns: list[int], rows: list[int]) -> Vertex | None:
        """None where the rows do not determine the columns, as far as balls tell."""
        matrix, bounds, costs = wanted
        try:
            inverse = _part(matrix, rows, columns).inv()
        except ZeroDivisionError:
            return None
        x = inverse * arb_mat([[bounds[r]] for r in rows])
        y = arb_mat([[costs[j] for j in columns]]) * inverse
        used = (_part(matrix, range(matrix.nrows()), columns) * x).entries()
        priced = (y * _part(matrix, rows, range(matrix.ncols()))).entries()
        slacks = [bound - value for bound, value in zip(bounds, used, strict=True)]
        reduced = [cost - value for cost, value in zip(costs, priced, strict=True)]
        return cls(wanted, columns, rows, inverse, x.entries(), y.entries(), slacks, reduced)

    @property
    def is_the_only_solution(self) -> bool:
        """The four conditions of [theory T162]."""
        slacks = all(self.slacks[r] > 0 for r in _others(len(self.slacks), self.rows))
        reduced = all(self.reduced[j] > 0 for j in _others(len(self.reduced), self.columns))
        return slacks and reduced and all(value > 0 for value in self.x) and all(value < 0 for value in self.y)

    def neighbour(self) -> tuple[list[int], list[int]] | None:
        """One step of the simplex method: the column, or the slack of a tight row, that lowers the costs fastest enters; the column or row
        that stops it first takes its place. None at an end. Row i of `rows` goes by the number -1 - i.
        """
        loosened = [(-_middle(value), -1 - i) for i, value in enumerate(self.y)]
        entering = [(_middle(self.reduced[j]), j) for j in _others(len(self.reduced), self.columns)]
        cost, which = min(loosened + entering)
        if cost >= 0:
            return None
        matrix, columns, rows = self.wanted.matrix, list(self.columns), list(self.rows)
        moved = [matrix[r, which] for r in rows] if which >= 0 else [arb(int(-1 - which == i)) for i in range(len(rows))]
        falls = self.inverse * arb_mat([[entry] for entry in moved])  # of x, where `which` grows by 1
        kept = _part(matrix, range(matrix.nrows()), columns) * falls
        falling = enumerate(zip(self.x, falls.entries(), strict=True))
        stops = [(_middle(value) / _middle(fall), 0, i) for i, (value, fall) in falling if fall > 0]
        for r in _others(len(self.slacks), rows):
            fills = (matrix[r, which] if which >= 0 else arb(0)) - kept[r, 0]
            if fills > 0:
                stops.append((_middle(self.slacks[r]) / _middle(fills), 1, r))
        if not stops:
            return None
        _, is_row, last = min(stops)
        if which < 0:
            rows.pop(-1 - which)
        else:
            columns.append(which)
        if is_row:
            rows.append(last)
        else:
            columns.pop(last)
        return columns, rows


def _part(matrix: arb_mat, rows: range | list[int], columns: range | list[int]) -> arb_mat:
    return arb_mat([[matrix[r, j] for j in columns] for r in rows])


def _middle(value: arb) -> float:
    return float(value.mid())


def _others(n: int, chosen: list[int]) -> list[int]:
    return sorted(set(range(n)) - set(chosen))
