"""What kept totals leave to protect: the nearest other table, and whether one person can change without a kept total showing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from holdfast.lattices import Lattice
from holdfast.lattices.norms import L1, L2, Norm
from holdfast.privacy.parameters import at_least_one

Found: TypeAlias = Literal["exact", "lower bound"]


@dataclass(frozen=True)
class Secrets:
    """Public facts about pairs of tables with the same kept totals.

    smallest_l1, smallest_l2_squared: the smallest distance of two such tables, each with how it was found.
    person_can_move_alone:  whether moving one person to another cell can leave every kept total as it is. Exact for max_records = 1; for
                            more, True where it is not ruled out, so that a person is charged too much rather than too little.
    person_can_be_added:    whether there are cells under no kept sum, so that someone may come or go unseen by the totals.
    """

    smallest_l1: int
    smallest_l2_squared: int
    l1_status: Found
    l2_squared_status: Found
    person_can_move_alone: bool
    person_can_be_added: bool
    protect: str = "person"
    max_records: int = 1
    reach: Mapping[Norm, int] | None = None
    """For real-valued answers: how far one person can move them, by norm; squared for l2."""

    @property
    def status(self) -> Found:
        """ "exact" where both lengths are."""
        return "exact" if self.l1_status == self.l2_squared_status == "exact" else "lower bound"

    def smallest(self, norm: Norm) -> tuple[int, Found]:
        """(the smallest distance, squared for l2; how it was found)."""
        return {L1: (self.smallest_l1, self.l1_status), L2: (self.smallest_l2_squared, self.l2_squared_status)}[norm]

    def person(self, norm: Norm) -> int | None:
        """How far one person can move the table, squared for l2; None where no person can change alone."""
        if self.reach is not None:
            return self.reach[norm] if self.reach[norm] >= self.smallest(norm)[0] else None
        if self.person_can_move_alone:
            return norm.person_moving(self.max_records)
        return norm.person_adding(self.max_records) if self.person_can_be_added else None


def secrets_of(lattice: Lattice, protect: str = "person", max_records: int = 1) -> Secrets:
    """What a lattice of moves leaves to protect.

    Given:       max_records >= 1: the records that one person (or what `protect` names) may have; moving them all changes the table by
                 at most 2 max_records in l1.
    Guarantees:  see Secrets; from the kept constraints and the universe alone, never from counts. NothingLeft where no move is left.
    """
    max_records = at_least_one(max_records, "max_records")
    l1, l2 = lattice.shortest("l1"), lattice.shortest("l2")
    if l1.value > L1.person_moving(max_records) or l2.value > L2.person_moving(max_records):
        can_move = False  # further than one person can reach; lower bounds prove it too
    elif max_records > 1:  # several records may move together along longer moves: not ruled out
        can_move = True
    else:
        can_move = lattice.one_can_move()
    return Secrets(l1.value, l2.value, l1.status, l2.status, can_move, lattice.free_cells > 0, protect, max_records)
