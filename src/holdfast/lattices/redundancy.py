"""What kept rows say of one another: which are implied by others, by name; and whether declared values contradict one another, with a small
witness that names the rows that disagree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from holdfast.errors import ContradictingTotals
from holdfast.invariants.rows import Kept, RowFamily
from holdfast.lattices import algebra
from holdfast.lattices.blocks import Block, Blocks
from holdfast.lattices.columns import distinct_columns
from holdfast.lattices.reduction import Reduced
from holdfast.lattices.shapes import Grid

MOST_ROWS = 500
"""Rows up to which dependence is decided exactly; beyond, nesting and grids are looked at."""

MAX_SHOWN = 8


def redundant_names(kept: Kept, reduced: Reduced, blocks: Blocks) -> Iterator[str]:
    """Names of implied rows: first sets made of the sets nested in them, then, of the rows left, those implied by rows stated before.

    Complete for up to MOST_ROWS rows over few different columns; beyond that rows of nested sets and of grids only.
    """
    texts = {(rows.constraint, number) for rows, number in zip(kept.rows, kept.constraint_of, strict=True)}
    repeated = {constraint for constraint, times in Counter(constraint for constraint, _ in texts).items() if times > 1}
    families = [place for place, rows in enumerate(kept.rows) if isinstance(rows, RowFamily)]

    def name(place: int, row: int) -> str:
        rows = kept.rows[place]
        return f"{rows.name(row)} (constraint {kept.constraint_of[place]})" if rows.constraint in repeated else rows.name(row)

    left: list[tuple[int, int]] = []
    implied = dict(zip(families, (set(redundant.tolist()) for redundant in reduced.redundant), strict=True))
    for place, rows in enumerate(kept.rows):
        yield from (name(place, row) for row in sorted(implied.get(place, ())))
        if len(left) <= MOST_ROWS:
            left += [(place, row) for row in range(min(rows.count, MOST_ROWS + 1)) if row not in implied.get(place, ())]
    if len(left) <= MOST_ROWS:
        found = distinct_columns(kept.matrix())
        if found is not None and left:
            first = np.cumsum([0, *(rows.count for rows in kept.rows)])
            chosen = set(algebra.independent_rows(found[0][[int(first[place]) + row for place, row in left]]))
            yield from (name(*left[i]) for i in range(len(left)) if i not in chosen)
            return
    for block in blocks:
        if isinstance(block.shape, Grid):
            yield from (name(families[family], row) for family, row in _in_grid(block, reduced))


def _in_grid(block: Block, reduced: Reduced) -> Iterator[tuple[int, int]]:
    """Rows of family k with an earlier coordinate at its end are implied: the sums over that axis are already kept."""
    first = block.cells.ravel()[0]
    present = [i for i, group in enumerate(reduced.groups) if group[first] >= 0]
    for axis, family in enumerate(present):
        rows = np.take(block.cells, 0, axis=axis)
        implied = np.zeros(rows.shape, dtype=np.bool_)
        for earlier in range(axis):
            last = [slice(None)] * rows.ndim
            last[earlier] = slice(-1, None)
            implied[tuple(last)] = True
        for cell in rows[implied]:
            yield family, int(reduced.groups[family][cell])


def check_values(kept: Kept) -> None:
    """Refuse values for which no integer table exists because dependent rows disagree.

    Guarantees:  if integer combinations of rows vanish, the same combinations of values do; else ContradictingTotals names a combination
                 with few rows. (Values may still be impossible for other reasons, such as non-negativity.)
    """
    valued = [rows for rows in kept.linear if rows.values is not None]
    values = [value for rows in valued for value in (rows.values if isinstance(rows.values, tuple) else [rows.values or 0] * rows.count)]
    if not any(values):  # the empty table has them
        return
    from scipy.sparse import csr_array, vstack

    stacked = csr_array(vstack([rows.matrix for rows in valued], format="csr"))
    found = distinct_columns(stacked)
    matrix = stacked.toarray().astype(np.int64) if found is None else found[0]  # very many different columns: take them all
    names = [name for rows in valued for name in rows.names]
    relations = algebra.to_numpy(algebra.reduced_basis(algebra.kernel_basis(matrix.T.copy())))
    broken = [column for column in relations.T if sum(int(c) * v for c, v in zip(column, values, strict=True)) != 0]
    if not broken:
        return
    witness = min(broken, key=np.count_nonzero)
    terms = [f"{int(c):+d} x {names[i]!r} ({values[i]})" for i, c in enumerate(witness) if c]
    if len(terms) > MAX_SHOWN:
        terms = [*terms[:MAX_SHOWN], f"and {len(terms) - MAX_SHOWN} more"]
    raise ContradictingTotals(
        f"The declared values contradict one another: the rows {' '.join(terms)} cancel, but their values do not. Correct one of them."
    )
