"""Where kept totals cross and are no network (views/network.py), a block's cells are found together: one integer program of shipped HiGHS.

Each cell starts at the multiple of the base that is nearest to its published value, and moves up or down by units. What a move costs is the
growth of its squared distance, made straight between 0, 1, 2, 4, 8, ... units: convex, so that the cheapest units go first by themselves.
Where a corner of the linear program is not whole, branch and bound looks for whole numbers. The solver works in floating point, so nothing
it says is believed: its answer is rounded, and the sums are added up again as integers ([theory T153]).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, PrecisionExhausted, RequestTooLarge

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_SEARCHED = 1_000
"""Most cells of a block: of 1,000 under three margins the search took a second, of 2,744 more than 50."""
MOST_NODES = 10_000
"""Most nodes of the search for whole numbers where a corner has none: a limit that is the same on every machine, which a time is not."""
_SOLVED, _NO_TABLE = 0, 2
"""What SciPy says of a program."""


def crossing_block(rows: csr_array, values: Ints, base: int, *, nonnegative: bool) -> Ints:
    """Multiples of the base, zero or more if asked for, with rows @ found == rows @ values, near the values.

    Given:       integer rows over the cells of one block.
    Guarantees:  the sums as integers. InvalidParameter where no such table exists, RequestTooLarge where none was found.
    """
    if base == 1 and not (nonnegative and (values < 0).any()):
        return values
    check_searched(len(values))
    totals = rows @ values
    if (totals % base).any():
        raise no_table(base)
    start = (2 * values + base) // (2 * base)
    if nonnegative:
        start = np.maximum(start, 0)
    cell, sign, width, cost = _segments(values, start, base, nonnegative)
    moved = _solve_pieces(rows, totals // base - rows @ start, cell, sign, width, cost, base)
    units = start.copy()
    np.add.at(units, cell, sign * moved)
    found = units * base
    if (rows @ found != totals).any() or (nonnegative and (found < 0).any()):
        raise PrecisionExhausted("The solver's table does not keep the totals as whole numbers. Take the released counts as they are.")
    return found


def check_searched(cells: int) -> None:
    """Refuse a block of too many cells to search whole numbers for."""
    if cells > MOST_SEARCHED:
        raise RequestTooLarge(
            f"Kept totals cross in three ways or more over {cells:,} cells, and counts for print are searched for over "
            f"{MOST_SEARCHED:,} at most. Leave view_base out and take the released counts as they are, or keep two nested families of "
            "totals: rows and columns, or counties and sex by age."
        )


def _segments(values: Ints, start: Ints, base: int, nonnegative: bool) -> tuple[Ints, Ints, Floats, Floats]:
    """(cell, +1 or -1, how many units it holds, cost of a unit) of every straight piece. The last of a cell has no end, or ends at 0."""
    reach = int(np.abs(values - base * start).max(initial=1)) // base + 1
    ends = [0, *(2**power for power in range(reach.bit_length() + 3))]
    parts = []
    for sign in (1, -1):
        for begin, end in pairwise(ends):
            length = np.full(len(start), np.inf if end == ends[-1] else end - begin)
            held = np.minimum(length, start - begin) if sign < 0 and nonnegative else length
            cells = np.flatnonzero(held > 0)
            there, here = (base * (start + sign * at) - values for at in (end, begin))
            slope = sign * (there + here) / base  # (there^2 - here^2) / (end - begin), in squares of the base
            parts.append((cells, np.full(len(cells), sign), held[cells], slope[cells]))
    cell, signs, width, cost = (np.concatenate(column) for column in zip(*parts, strict=True))
    return cell, signs, width, cost


def _solve_pieces(rows: csr_array, right: Ints, cell: Ints, sign: Ints, width: Floats, cost: Floats, base: int) -> Ints:
    """How many units of every piece are taken, as whole numbers."""
    from scipy.optimize import Bounds, LinearConstraint, linprog, milp
    from scipy.sparse import csc_array

    wide = csc_array(csc_array(rows, dtype=np.float64)[:, cell] * sign[None, :].astype(np.float64))
    bounds = np.stack([np.zeros(len(cell)), width], axis=1)
    corner = linprog(cost, A_eq=wide, b_eq=right.astype(np.float64), bounds=bounds, method="highs-ds")
    if corner.status == _NO_TABLE:
        raise no_table(base)
    if corner.status == _SOLVED and np.abs(corner.x - np.rint(corner.x)).max(initial=0.0) < 1e-6:
        return np.asarray(np.rint(corner.x), dtype=np.int64)
    exact = LinearConstraint(wide, right.astype(np.float64), right.astype(np.float64))
    searched = milp(
        cost,
        integrality=np.ones(len(cell)),
        bounds=Bounds(0, width),
        constraints=exact,
        options={"node_limit": MOST_NODES, "mip_rel_gap": 0.0},
    )
    if searched.status == _NO_TABLE:
        raise no_table(base)
    if searched.status != _SOLVED:
        raise RequestTooLarge(
            f"No table was found within {MOST_NODES:,} steps of the search. Take the released counts as they are, or another base."
        )
    return np.asarray(np.rint(searched.x), dtype=np.int64)


def no_table(base: int) -> InvalidParameter:
    """Totals that no table of multiples has; to the base of 1, totals that no counts have."""
    if base == 1:
        return InvalidParameter("No counts of zero or more have the kept totals of this publication: they are not totals of counts.")
    return InvalidParameter(
        f"No table of multiples of {base} has the kept totals of this release. Take base=1, which always has one, and round what is "
        "printed, or keep fewer totals in the next release.",
        field="base",
    )
