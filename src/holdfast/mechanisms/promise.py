"""The guarantee of a law on a lattice, with the public facts that a reader needs to judge it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.invariants.rows import Kept
from holdfast.lattices import Lattice
from holdfast.lattices.norms import Norm, NormName
from holdfast.privacy.guarantee import MAX_NAMES, Exposed, Guarantee, Kind, Relation
from holdfast.privacy.secrets import facts_of


def promise(
    lattice: Lattice, kind: Kind, distance: Norm | NormName, unit: str, max_records: int | None, **parameters: Fraction
) -> Guarantee:
    """A guarantee of this kind and these exact parameters for each unit of distance."""
    secrets = facts_of(lattice, unit if max_records is not None else "record", max_records or 1)
    known_sums, known = _identities(lattice)
    kept_sums = lattice.rank - known_sums
    universe = lattice.universe
    relation = Relation(same_totals=kept_sums > 0, same_cells=universe is not None and universe.support == "observed")
    fixed = np.setdiff1d(lattice.exposed_cells, known)
    names = tuple(str(i) if universe is None else universe.cell_name(i) for i in fixed[:MAX_NAMES].tolist())
    exposed = Exposed(kept_sums=kept_sums, cells=len(fixed), names=names)
    return Guarantee.from_secrets(secrets, kind=kind, distance=distance, relation=relation, exposed=exposed, **parameters)


def _identities(lattice: Lattice) -> tuple[int, NDArray[np.int64]]:
    """(independent sums, cells) that identities alone fix: true of every data set, so that they expose nothing."""
    kept = lattice.kept
    chosen = [] if kept is None else [place for place, rows in enumerate(kept.rows) if rows.kind == "identity"]
    if kept is None or not chosen:
        return 0, np.zeros(0, dtype=np.int64)
    alone = Kept(kept.universe, tuple(kept.rows[i] for i in chosen), tuple(kept.statement_of[i] for i in chosen))
    part = Lattice.from_kept(alone)
    return part.rank, part.exposed_cells
