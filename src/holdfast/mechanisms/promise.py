"""The guarantee of a channel, with the public facts that a reader needs to judge it."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

from holdfast.channels import Facts
from holdfast.exposure.cells import known_by_identities
from holdfast.lattices.norms import Norm, NormName, norm_of
from holdfast.privacy.asked import Asked
from holdfast.privacy.guarantee import MAX_NAMES, Answers, Exposed, Guarantee, KeyedNoise, Kind, Relation
from holdfast.privacy.secrets import secrets_of


def promise(
    facts: Facts,
    kind: Kind,
    distance: Norm | NormName,
    *,
    epsilon: Fraction | None = None,
    rho: Fraction | None = None,
    delta: Fraction | None = None,
    asked: Asked | None = None,
    answers: Answers | None = None,
    keyed: KeyedNoise | None = None,
) -> Guarantee:
    """A guarantee of this kind and these exact parameters for each unit of distance; `asked`: the mechanism's, what it was asked for;
    `answers`: where the facts are of real-valued answers; `keyed`: where noise is looked up by cell keys.
    """
    lattice, norm = facts.lattice, norm_of(distance)
    secrets = secrets_of(facts.moves, facts.protected, facts.records)
    if answers is not None:
        secrets = replace(secrets, person_can_be_added=False, reach={norm: answers.reach})
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
    smallest, status = secrets.smallest(norm)
    return Guarantee(
        kind=kind,
        distance=norm,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        smallest_secret=smallest,
        smallest_secret_status=status,
        person=secrets.person(norm),
        person_can_be_added=secrets.person_can_be_added,
        protect=secrets.protect,
        max_records=secrets.max_records,
        relation=relation,
        exposed=Exposed(kept_sums=kept_sums, cells=len(fixed), names=names),
        asked=asked,
        answers=answers,
        keyed=keyed,
    )
