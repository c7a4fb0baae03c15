"""Whether the declared values of kept rows contradict one another, with a small witness that names the rows that disagree."""

from __future__ import annotations

import numpy as np

from holdfast.errors import ContradictingTotals
from holdfast.invariants.rows import Kept
from holdfast.lattices import algebra
from holdfast.lattices.columns import distinct_columns

MAX_SHOWN = 8


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
