"""What a reader has: the published counts and the public law they were drawn from."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.channels.drawing import Drawing
from holdfast.errors import InvalidParameter
from holdfast.laws import Reads
from holdfast.publication.plan import Plan
from holdfast.publication.reading import Readable
from holdfast.tables import Universe
from holdfast.verification.recompute import Recomputed
from holdfast.verification.verify import read_verified

Ints = NDArray[np.int64]
Source = Readable | str | os.PathLike[str]
"""A release, a loaded one, or the folder it was saved in."""


@dataclass(frozen=True, eq=False)
class Published:
    """Released counts, and the plan that says their law. Nothing confidential."""

    universe: Universe
    counts: Ints
    plan: Plan

    def check_counts(self) -> None:
        """Refuse real-valued answers where a prior of counts is asked for."""
        if self.plan.facts.grid is not None:
            raise InvalidParameter("These are real-valued answers, and priors are of counts. release.interval needs no prior.")

    @property
    def drawing(self) -> Drawing:
        return self.plan.drawing


def readable(source: Source, signer: str | os.PathLike[str] | None = None) -> Readable | Recomputed:
    """A release, a loaded one, or its folder, which is verified first. `signer`: the public key that must have signed the folder's card."""
    if not isinstance(source, str | os.PathLike | Readable):
        raise InvalidParameter(f"Give a release, or the folder it was saved in. Got {type(source).__name__}.")
    if not isinstance(source, Readable):
        return read_verified(source, signer=signer)
    if signer is not None:
        raise InvalidParameter("A signature is checked when a folder is read. Give the folder, or load it with signer=.", field="signer")
    return source


def published(source: Source, signer: str | os.PathLike[str] | None = None) -> Published:
    """As `readable`; refused where there is nothing to infer from."""
    again = readable(source, signer)
    found = Published(again.table.universe, again.table.counts, again.plan)
    target = found.drawing.channel.target
    if not target.publishes_cells:
        raise InvalidParameter("This release publishes no cells, only totals: they are exact, and there is nothing to infer from.")
    if target.reads is Reads.CELL_KEYS:
        raise InvalidParameter("This release looked its noise up by keys: it has no law from which a posterior follows.")
    return found
