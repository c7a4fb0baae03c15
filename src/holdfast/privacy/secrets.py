"""What kept totals leave to protect: the nearest other table, and whether one person can change without a kept total showing it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import exact_integer
from holdfast.lattices import Lattice, Template
from holdfast.lattices.norms import L1, L2, Norm

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
    unit: str = "person"
    max_records: int = 1

    @property
    def status(self) -> Found:
        """ "exact" where both lengths are."""
        return "exact" if self.l1_status == self.l2_squared_status == "exact" else "lower bound"

    def smallest(self, norm: Norm) -> tuple[int, Found]:
        """(the smallest distance, squared for l2; how it was found)."""
        return {L1: (self.smallest_l1, self.l1_status), L2: (self.smallest_l2_squared, self.l2_squared_status)}[norm]

    def person(self, norm: Norm) -> int | None:
        """How far one person can move the table, squared for l2; None where no person can change alone."""
        if self.person_can_move_alone:
            return norm.person_moving(self.max_records)
        return norm.person_adding(self.max_records) if self.person_can_be_added else None


def facts_of(lattice: Lattice, unit: str = "person", max_records: int = 1) -> Secrets:
    """What a lattice of moves leaves to protect.

    Given:       max_records >= 1: the records one unit may have; by moving them all it changes the table by at most 2 max_records in l1.
    Guarantees:  see Secrets; from the kept statements and the universe alone, never from counts. NothingLeft where no move is left.
    """
    max_records = exact_integer(max_records, "max_records")
    if max_records < 1:
        raise InvalidParameter(f"max_records must be a whole number, 1 or more. Got {max_records}.")
    l1, l2 = lattice.shortest("l1"), lattice.shortest("l2")
    if l1.value > L1.person_moving(max_records) or l2.value > L2.person_moving(
        max_records
    ):  # further than one unit can reach; lower bounds prove it too
        can_move = False
    elif max_records > 1:  # several records may move together along longer moves: not ruled out
        can_move = True
    else:
        used = np.unique(lattice.blocks.template_of)
        can_move = any(_one_can_move(lattice, int(number)) for number in used)
    free = any(template.kind == "free" for template in lattice.blocks.templates)
    return Secrets(l1.value, l2.value, l1.status, l2.status, can_move, free, unit, max_records)


def _one_can_move(lattice: Lattice, number: int) -> bool:
    """Whether e_i - e_j is a move for two cells of a block of this template, that is, whether their columns of kept sums are equal.

    Cells of different blocks need not be compared: there e_i would have to be a move by itself, and such cells are gathered as free.
    """
    template = lattice.blocks.templates[number]
    if template.kind == "free":
        return template.size > 1 or int((lattice.blocks.template_of == number).sum()) > 1
    if template.kind in ("pinned", "grid"):
        return False
    if template.kind == "one sum":
        return template.class_sizes is None or max(_sign_counts(template)) > 1
    if template.class_sizes is not None:
        return max(template.class_sizes) > 1 or _has_equal_columns(template.matrix())
    blocks = np.flatnonzero(lattice.blocks.template_of == number)
    return any(_has_equal_sparse_columns(lattice.matrix, lattice.blocks[int(i)].cells) for i in blocks)


def _sign_counts(template: Template) -> tuple[int, int]:
    """Cells with coefficient 1 and with coefficient -1 in a one-sum block."""
    rows = template.matrix()
    assert rows is not None
    return int((rows[0] > 0).sum()), int((rows[0] < 0).sum())


def _has_equal_columns(rows: Any) -> bool:
    return len({column.tobytes() for column in np.ascontiguousarray(rows.T)}) < int(rows.shape[1])


def _has_equal_sparse_columns(matrix: Any, cells: Any) -> bool:
    """Whether two of these cells have equal columns. Equal columns have equal hashes, so only cells of equal hash are compared."""
    part = matrix[:, cells].tocsc()
    part.sum_duplicates()
    weights = np.random.default_rng(0).integers(0, 2**63, size=part.shape[0], dtype=np.int64)
    with np.errstate(over="ignore"):
        hashes = part.T @ weights
    _, inverse, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    seen: set[tuple[bytes, bytes]] = set()
    for j in np.flatnonzero(counts[inverse] > 1):
        begin, end = part.indptr[j], part.indptr[j + 1]
        column = part.indices[begin:end].tobytes(), part.data[begin:end].tobytes()
        if column in seen:
            return True
        seen.add(column)
    return False
