"""The guarantee of a law on a lattice, with the public facts that a reader needs to judge it."""

from __future__ import annotations

from fractions import Fraction

from holdfast.lattice import Lattice
from holdfast.privacy.guarantee import MAX_NAMES, Exposed, Guarantee, Kind
from holdfast.privacy.secrets import Distance, facts_of


def promise(lattice: Lattice, kind: Kind, distance: Distance, unit: str, max_records: int | None, **parameters: Fraction) -> Guarantee:
    """A guarantee of this kind and these exact parameters for each unit of distance."""
    secrets = facts_of(lattice, unit if max_records is not None else "record", max_records or 1)
    relation = "tables with the same kept totals" if lattice.rank else "tables"
    universe = lattice.universe
    if universe is not None and universe.support == "observed":
        relation += " and the same cells that occur"
    fixed = lattice.exposed_cells
    names = tuple(str(i) if universe is None else universe.cell_name(i) for i in fixed[:MAX_NAMES].tolist())
    exposed = Exposed(kept_sums=lattice.rank, cells=len(fixed), names=names)
    return Guarantee.from_secrets(secrets, kind=kind, distance=distance, relation=relation, exposed=exposed, **parameters)
