"""Corrections that make the totals of a noisy table right again: the nearest table in l2, in l1, or in l2 without negative counts.

A correction uses the true totals. So it is a function g of the noisy table and the totals, and only between two tables with the SAME totals
is it one function, under which the mechanism's promise stands. Between tables with other totals two functions are compared, and nothing is
known in general: the budget is undetermined, never the nominal one ([GM20] (4.3), (4.4); [theory T60]).

All of it is floating point, on kept rows and totals as one dense system (`dense_rows`): no draw and no promise depends on these numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from holdfast.display import step
from holdfast.errors import InvalidParameter, PrecisionExhausted, RequestTooLarge
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import Exact
from holdfast.lattices import Lattice
from holdfast.privacy.parameters import budget

Floats = NDArray[np.float64]

MAX_ENTRIES = 4_000_000
"""Rows times cells of a dense system; more is refused."""

Bools = NDArray[np.bool_]
Method = Literal["l2", "nonnegative l2", "l1"]

_NEAREST = {
    "l2": "to the nearest table with the true totals (in l2)",
    "nonnegative l2": "to the nearest table with the true totals and no negative count (in l2); this adds bias",
    "l1": "to a nearest table with the true totals (in l1)",
}


def dense_rows(rows: Any) -> Floats:
    """The kept rows as a dense matrix; `rows` is a Lattice, or a matrix with one column for each cell."""
    if isinstance(rows, Lattice):
        sparse = rows.matrix
        _check_entries(*sparse.shape)
        return np.asarray(sparse.toarray(), dtype=np.float64)
    try:
        matrix = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    except (TypeError, ValueError):
        matrix = np.full((1, 1), np.nan)
    if matrix.ndim != 2 or not matrix.size or not np.isfinite(matrix).all():
        raise InvalidParameter("rows is a Lattice, or a matrix of numbers with one column for each cell.")
    _check_entries(*matrix.shape)
    return matrix


def numbers(values: Any, length: int, name: str) -> Floats:
    """A list of so many finite numbers."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.full(0, np.nan)
    if found.shape != (length,) or not np.isfinite(found).all():
        raise InvalidParameter(f"{name} takes {length} finite numbers, one for each. Got an array of shape {found.shape}.")
    return found


def solve_shortest(rows: Floats, right: Floats) -> Floats:
    """The shortest v with rows v = right; refused where there is none."""
    found = np.linalg.lstsq(rows, right, rcond=None)[0]
    if not np.allclose(rows @ found, right, rtol=0, atol=tolerance(rows, right)):
        raise InvalidParameter("No table has these totals: kept rows that depend on each other have totals that disagree. Check them.")
    return np.asarray(found)


def tolerance(*arrays: Floats) -> float:
    """How far apart two floats of this size may be and still count as equal here: 1e-9 of the largest number."""
    return 1e-9 * max(1.0, *(float(np.abs(array).max(initial=0.0)) for array in arrays))


def _check_entries(rows: int, cells: int) -> None:
    if rows * cells > MAX_ENTRIES:
        raise RequestTooLarge(f"{rows} kept rows over {cells} cells are too many for a dense comparison. Compare a part of the table.")


@dataclass(frozen=True, eq=False)
class PostProcessed:
    """A corrected table, in floating point, and what is known of its budget."""

    values: Floats
    method: Method
    epsilon_same_totals: Fraction | None
    """For pairs of tables with the same totals: the budget of the mechanism that made the noisy table; None where it was not given."""
    epsilon_other_totals: Literal["undetermined"] = "undetermined"
    status: Literal["floating point"] = "floating point"

    def __repr__(self) -> str:
        same = "not given" if self.epsilon_same_totals is None else self.epsilon_same_totals
        return f"PostProcessed({self.method}, {len(self.values)} cells; epsilon for equal totals: {same}, for others: undetermined)"


def l2(noisy: Any, rows: Any, totals: Any, *, epsilon: Exact | None = None) -> PostProcessed:
    """The table nearest to `noisy` in l2 whose kept rows have these totals: a projection, y = m + A^+ (t - A m).

    Given:       noisy: one number for each cell. rows: a Lattice, or a matrix, dependent rows allowed. totals: one number for each row.
                 epsilon: the budget of the mechanism that made `noisy`, exact, to be carried to the result.
    Guarantees:  floating point. Negative counts are possible.
    Reference:   [GM20] (4.1), Example 4.1.
    """
    matrix, measured, right = _system(noisy, rows, totals)
    return _make_result("l2", measured + solve_shortest(matrix, right - matrix @ measured), epsilon)


def nonnegative_l2(noisy: Any, rows: Any, totals: Any, *, epsilon: Exact | None = None) -> PostProcessed:
    """The table of numbers of zero or more nearest to `noisy` in l2 whose kept rows have these totals.

    Guarantees:  floating point. The conditions of an optimum (of Karush, Kuhn and Tucker), which only the nearest table meets, are checked
                 to 1e-9 of the largest number; PrecisionExhausted where they fail. Biased: what is cut off below zero is added elsewhere.
    Algorithm:   y = max(m + A^T c, 0), c by Newton's method on the dual, which is convex and smooth; each step solves for the rows alone.
    Reference:   [GM20] section 3.
    """
    matrix, measured, right = _system(noisy, rows, totals)
    start = measured + solve_shortest(matrix, right - matrix @ measured)
    if (start >= 0).all():
        return _make_result("nonnegative l2", start, epsilon)
    found = _nearest(matrix, measured, right)
    if found is None:  # perhaps all tables with these totals are zero at some cells: then the others are looked at
        if len(measured) > MOST_CELLS_OPEN:
            raise PrecisionExhausted(NOT_FOUND)
        open_cells = _not_forced_to_zero(matrix, right)
        found = np.zeros(len(measured))
        if open_cells.any():
            part, values = matrix[:, open_cells], measured[open_cells]
            nearest = _nearest(part, values, right)
            if nearest is None:
                raise PrecisionExhausted(NOT_FOUND)
            found[open_cells] = nearest
    return _make_result("nonnegative l2", found, epsilon)


NO_TABLE = "No table of numbers of zero or more has these totals. Check the totals."
MOST_NEWTON_STEPS = 200
"""Some twenty are enough for tables of 40,000 cells."""
MOST_CELLS_OPEN = 5_000
"""Cells up to which those that totals make zero are looked for: by a dense linear program."""
NOT_FOUND = "The nearest table could not be found in floating point. Scale the table, or compare a part of it."


def _nearest(matrix: Floats, measured: Floats, right: Floats) -> Floats | None:
    """The nearest table of numbers of zero or more; None where the conditions of an optimum do not hold."""
    c, own = np.zeros(len(right)), matrix @ matrix.T
    small = 1e-12 * max(1.0, float(np.abs(own).max())) * np.eye(len(right))

    def dual(c: Floats) -> float:
        return float((np.maximum(measured + matrix.T @ c, 0.0) ** 2).sum() / 2 - right @ c)

    with step("Finding the nearest table", MOST_NEWTON_STEPS) as tell:
        for number in range(MOST_NEWTON_STEPS):
            tell(number, MOST_NEWTON_STEPS)
            wanted = measured + matrix.T @ c
            inside = matrix[:, wanted > 0]
            gap = matrix @ np.maximum(wanted, 0.0) - right
            if np.abs(gap).max() <= tolerance(measured, right) / 10:
                break
            move = -np.linalg.solve(inside @ inside.T + small + 1e-6 * min(1.0, float(np.abs(gap).max())) * np.eye(len(right)), gap)
            here, slope, length = dual(c), float(gap @ move), 1.0
            while length > 1e-12 and dual(c + length * move) > here + 1e-4 * length * slope:
                length /= 2
            c = c + length * move
    return _polish_table(matrix, measured, right, measured + matrix.T @ c > 0)


def _not_forced_to_zero(matrix: Floats, right: Floats) -> Bools:
    """Which cells are above zero in some table of numbers of zero or more with these totals: one linear program over multiples of such
    tables, y >= s, 0 <= s <= 1, with the largest sum of s."""
    from scipy.optimize import linprog

    rows, cells = matrix.shape
    found = linprog(  # the unknowns: y, s, and the multiple, which is at least 1
        np.concatenate([np.zeros(cells), -np.ones(cells), [0.0]]),
        A_ub=np.hstack([-np.eye(cells), np.eye(cells), np.zeros((cells, 1))]),
        b_ub=np.zeros(cells),
        A_eq=np.hstack([matrix, np.zeros((rows, cells)), -right[:, None]]),
        b_eq=np.zeros(rows),
        bounds=[(0, None)] * cells + [(0, 1)] * cells + [(1, None)],
    )
    if found.status != 0:
        raise InvalidParameter(NO_TABLE)
    return np.asarray(found.x[cells : 2 * cells] > 0.5)


def _polish_table(matrix: Floats, measured: Floats, right: Floats, positive: Bools) -> Floats | None:
    """The nearest table that is zero outside `positive`, with the conditions of an optimum checked: y = m + A^T c where y > 0, and
    m + A^T c <= 0 where y = 0."""
    inside = matrix[:, positive]
    c = np.asarray(np.linalg.lstsq(inside @ inside.T, right - inside @ measured[positive], rcond=None)[0], dtype=np.float64)
    wanted = measured + matrix.T @ c
    found = np.where(positive, wanted, 0.0)
    allowed = tolerance(measured, right)
    holds = np.abs(matrix @ found - right).max(initial=0.0) <= allowed and found.min(initial=0.0) >= -allowed
    # Where rows depend on each other on the cells left, c is not unique: another one may show the optimum where this one does not.
    if not holds or ((wanted[~positive] > allowed).any() and not _dual_exists(matrix, measured, positive, c, allowed)):
        return None
    return np.maximum(found, 0.0)


def _dual_exists(matrix: Floats, measured: Floats, positive: Bools, c: Floats, allowed: float) -> bool:
    """Whether some c + v with A_inside^T v = 0 has m + A^T (c + v) <= 0 outside."""
    from scipy.optimize import linprog

    wanted = measured + matrix.T @ c
    found = linprog(
        np.zeros(len(c)),
        A_ub=matrix[:, ~positive].T,
        b_ub=-wanted[~positive] + allowed,
        A_eq=matrix[:, positive].T,
        b_eq=np.zeros(int(positive.sum())),
        bounds=(None, None),
    )
    return bool(found.status == 0)


def l1(noisy: Any, rows: Any, totals: Any, *, weights: Any = None, epsilon: Exact | None = None) -> PostProcessed:
    """A table nearest to `noisy` in l1 whose kept rows have these totals. There are many; `weights` say which.

    Given:       as for l2. weights, where no cell is in two kept rows and all coefficients are 1: how the cells of a row share what is
                 missing from its total, numbers of zero or more, not all 0 in a row; equal shares by default. Two cells with weights
                 (1 - beta, beta) give the combination beta u_1 + (1 - beta) u_2 of [GM20] Example 4.1, up to the sign of u_2. For other
                 rows some optimum is taken (a vertex, by linear programming), and weights are refused.
    Guarantees:  floating point. Equal shares under one total are the l2 projection.
    Reference:   [GM20] Example 4.1.
    """
    matrix, measured, right = _system(noisy, rows, totals)
    missing = right - matrix @ measured
    disjoint = bool(np.isin(matrix, (0.0, 1.0)).all() and (matrix.sum(axis=0) <= 1).all() and (matrix.sum(axis=1) >= 1).all())
    if disjoint:
        shares = np.ones(matrix.shape[1]) if weights is None else numbers(weights, matrix.shape[1], "weights")
        sums = matrix @ shares
        if (shares < 0).any() or (sums <= 0).any():
            raise InvalidParameter("weights are numbers of zero or more, not all 0 under a kept total.")
        return _make_result("l1", measured + shares * (matrix.T @ (missing / sums)), epsilon)
    if weights is not None:
        raise InvalidParameter(
            "weights share what is missing from a plain total. Here rows overlap or have other coefficients: leave them out."
        )
    return _make_result("l1", measured + _shortest_l1(matrix, missing), epsilon)


def _shortest_l1(matrix: Floats, missing: Floats) -> Floats:
    """Some v with matrix v = missing and the least |v|_1."""
    from scipy.optimize import linprog

    cells = matrix.shape[1]
    found = linprog(np.ones(2 * cells), A_eq=np.hstack([matrix, -matrix]), b_eq=missing, bounds=(0, None))
    if found.status != 0:
        raise InvalidParameter("No table has these totals: kept rows that depend on each other have totals that disagree. Check them.")
    return np.asarray(found.x[:cells] - found.x[cells:])


def _system(noisy: Any, rows: Any, totals: Any) -> tuple[Floats, Floats, Floats]:
    matrix = dense_rows(rows)
    return matrix, numbers(noisy, matrix.shape[1], "noisy"), numbers(totals, matrix.shape[0], "totals")


def _make_result(method: Method, values: Floats, epsilon: Exact | None) -> PostProcessed:
    values.setflags(write=False)
    return PostProcessed(values, method, None if epsilon is None else budget(epsilon, "epsilon"))


def post_processed_sentences(result: PostProcessed) -> str:
    """What was done and what is known of the budget."""
    known = (
        "the budget of the mechanism that made the noisy table"
        if result.epsilon_same_totals is None
        else f"epsilon = {format_exact(result.epsilon_same_totals)}"
    )
    return (
        f"A noisy table was corrected {_NEAREST[result.method]}. The correction uses the true totals, so it is not covered by the rule "
        f"that processing costs nothing. Between two tables with the same totals the promise is {known}. Between tables with other totals "
        "the budget is undetermined. Numbers are floating point."
    )
