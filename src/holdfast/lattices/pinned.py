"""Which cells the published totals pin, block by block: what the kept rows say one by one can miss what they say together.

Tables with the same kept totals differ by moves, which are a direct sum over blocks (math.md R1), and counts are bounded below one by one:
by 0, or by 1 where the cells are those that occur. So a cell is pinned where its own block leaves it one value. Let l be that bound.

    one sum, n cells    all are pinned where their sum is n l, none otherwise (n >= 2: a count can be moved). Of cells with both signs none
                        is: two of opposite sign can always grow together.
    rows and columns    Frechet's bounds of the table less l everywhere: max(0, r + c - N) and min(r, c), sharp for two-way tables.
    anything else       what the kept rows say one by one (lattices/exposure.py): certain, but perhaps not all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.invariants.rows import Kept
from holdfast.lattices.blocks import Template
from holdfast.lattices.exposure import Exposure, least_count
from holdfast.lattices.lattice import Lattice

Ints = NDArray[np.int64]


def with_pinned(found: Exposure, lattice: Lattice, table: Ints) -> Exposure:
    """The exposure with every cell that blocks of a simple shape show to be pinned.

    Given:       what the kept rows say one by one; any integer table with the published totals, such as the released one.
    Guarantees:  depends on the published totals only: within a block, sums and margins are the same for all such tables. `complete` is
                 True only where all pinned cells are found.
    """
    assert found.lower is not None
    assert found.upper is not None
    least = least_count(found.universe)
    lower, upper, complete = found.lower.copy(), found.upper.copy(), found.complete
    blocks = lattice.blocks
    for number, template in enumerate(blocks.templates):
        chosen = np.flatnonzero(blocks.template_of == number)
        if not len(chosen) or template.kind in ("free", "pinned"):
            continue
        cells = blocks.order[blocks.starts[chosen][:, None] + np.arange(template.size)]
        bounds = _bounds(template, table[cells], least)
        if bounds is None:
            complete = False
            continue
        lower[cells], upper[cells] = np.maximum(lower[cells], bounds[0]), np.minimum(upper[cells], bounds[1])
    return replace(found, lower=lower, upper=upper, complete=complete)


def rows_say_all(lattice: Lattice, kept: Kept) -> bool:
    """Whether the kept rows one by one pin all that they pin together, where no table is at hand: one statement, or rows and columns."""
    if lattice.universe is not None and lattice.universe.support == "observed":
        return False
    used = (lattice.blocks.templates[int(number)] for number in np.unique(lattice.blocks.template_of))
    simple = all(template.kind in ("free", "pinned") or (template.kind == "grid" and len(template.shape) == 2) for template in used)
    return len(kept.rows) <= 1 or (len(kept.rows) == 2 and simple)


def _bounds(template: Template, values: Ints, least: int) -> tuple[Ints, Ints] | None:
    """(least, most) of every cell of these blocks, one block a row; None where the shape is not simple."""
    size = template.size
    if template.kind == "one sum":
        if template.rows is not None:
            return np.full_like(values, least), np.full_like(values, np.iinfo(np.int64).max)
        most = values.sum(axis=1, keepdims=True) - (size - 1) * least
        low = most if size == 1 else np.full_like(most, least)
        return np.broadcast_to(low, values.shape), np.broadcast_to(most, values.shape)
    if template.kind == "grid" and len(template.shape) == 2:
        above = values.reshape(-1, *template.shape) - least
        rows, columns, whole = (above.sum(axis=axis, keepdims=True) for axis in (2, 1, (1, 2)))
        low, most = np.maximum(0, rows + columns - whole), np.minimum(rows, columns)
        return (low + least).reshape(values.shape), (most + least).reshape(values.shape)
    return None
