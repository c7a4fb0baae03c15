"""The guarantee of a channel, with the public facts that a reader needs to judge it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from holdfast.channels import Facts
from holdfast.exposure.cells import known_by_identities
from holdfast.lattices.norms import Norm, NormName, norm_of
from holdfast.privacy.asked import Asked
from holdfast.privacy.guarantee import MAX_NAMES, Answers, Exposed, Guarantee, Kind, Relation
from holdfast.privacy.secrets import secrets_of


def promise(
    facts: Facts,
    kind: Kind,
    distance: Norm | NormName,
    *,
    asked: Asked | None = None,
    answers: Answers | None = None,
    **parameters: Fraction,
) -> Guarantee:
    """A guarantee of this kind and these exact parameters for each unit of distance; `asked`: the mechanism's, what it was asked for;
    `answers`: where the facts are of real-valued answers.
    """
    lattice = facts.lattice
    secrets = secrets_of(facts.moves, facts.protected, facts.records)
    if answers is not None:
        secrets = replace(secrets, person_can_be_added=False, reach={norm_of(distance): answers.reach})
    known_sums, known = known_by_identities(lattice.kept)
    kept_sums = lattice.rank - known_sums
    universe = lattice.universe
    relation = Relation(
        same_totals=kept_sums > 0,
        same_cells=universe is not None and not universe.is_public,
        non_negative=facts.zeros is not None,
        identities=known_sums > 0,
    )
    fixed = np.setdiff1d(lattice.exposed_cells, known)
    names = tuple(str(i) if universe is None else universe.cell_name(i) for i in fixed[:MAX_NAMES].tolist())
    exposed = Exposed(kept_sums=kept_sums, cells=len(fixed), names=names)
    return Guarantee.from_secrets(
        secrets, kind=kind, distance=distance, relation=relation, exposed=exposed, asked=asked, answers=answers, **parameters
    )
