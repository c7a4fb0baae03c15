"""Which cells the published totals pin, block by block: what the kept rows say one by one can miss what they say together.

Tables with the same kept totals differ by moves, which are a direct sum over blocks ([theory R1]), and counts are bounded below one by one:
by 0, or by 1 where the cells are those that occur. So a cell is pinned where its own block leaves it one value. Some shapes have sharp
bounds (`Shape.bounds_given`). Of the others we know what the kept rows say one by one (exposure/cells.py): certain, perhaps not all.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.exposure.cells import Exposure, least_count
from holdfast.invariants.rows import Kept
from holdfast.lattices.lattice import Lattice
from holdfast.lattices.shapes import Free, Pinned

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
    for number, shape, _ in blocks.used_shapes():
        if isinstance(shape, Free | Pinned):  # nothing is said of the first, and the others are listed as fixed
            continue
        cells = blocks.cells_of(number)
        bounds = shape.bounds_given(table[cells], least)
        if bounds is None:
            complete = False
            continue
        lower[cells], upper[cells] = np.maximum(lower[cells], bounds[0]), np.minimum(upper[cells], bounds[1])
    return replace(found, lower=lower, upper=upper, complete=complete)


def rows_say_all(lattice: Lattice, kept: Kept) -> bool:
    """Whether the kept rows one by one pin all that they pin together, where no table is at hand: one statement, or rows and columns."""
    if lattice.universe is not None and lattice.universe.support == "observed":
        return False
    simple = all(shape.is_two_way or isinstance(shape, Free | Pinned) for _, shape, _ in lattice.blocks.used_shapes())
    return len(kept.rows) <= 1 or (len(kept.rows) == 2 and simple)
