"""Public facts of a release: all that planning, channels, samplers and guarantees may see."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import Json, shorten
from holdfast.errors import InvalidConstraint, InvalidParameter
from holdfast.exposure.cells import RULE, Zeros
from holdfast.invariants.constraints import Constraint, definition
from holdfast.invariants.rows import Kept
from holdfast.lattices import Lattice, lattice
from holdfast.tables import Declarations, Universe
from holdfast.tables.measure import COUNTS, Measure
from holdfast.tables.sampling import Over


@dataclass(frozen=True, eq=False)
class Facts:
    """Universe, kept constraints and what is declared about the table. They hold no count and no way to one.

    `lattice`: what the kept rows leave, whatever their values.
    `zeros`: cells that take no noise because a kept total is 0, where that is decided.
    `published_totals`: the values of the kept totals and identities, one array for each entry of `kept.rows`, where they are public.
    """

    lattice: Lattice
    constraints: tuple[Constraint, ...] = ()
    protect: str = "person"
    max_records: int | None = 1
    count_name: str = "count"
    name: str | None = None
    published_totals: tuple[NDArray[np.int64], ...] | None = None
    zeros: Zeros | None = None
    columns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    """Public columns of the table, one whole number for each cell: bounds may come from them."""
    measure: Measure = COUNTS
    """What the table's numbers are; of answers, how far one person can move them, too."""
    over: Over = "refuse"
    """Whether only a sample of somebody's records is counted."""

    @classmethod
    def of(cls, table: Declarations | Universe, keep: Iterable[Constraint]) -> Facts:
        """From what is declared of a table, or from a universe alone."""
        if not isinstance(table, Declarations | Universe):
            raise InvalidParameter(f"A plan needs a Table or a Universe. Got {type(table).__name__}.")
        if isinstance(keep, str | Constraint | Mapping) or not isinstance(keep, Iterable):
            own = repr(keep) if isinstance(keep, Constraint) else f"margin({keep if isinstance(keep, str) else 'state'!r})"
            raise InvalidConstraint(f"Kept totals come as a list, such as [{shorten(own)}]. Got {type(keep).__name__}, and no list.")
        constraints = tuple(keep)
        made = Declarations(table) if isinstance(table, Universe) else table
        said = (made.protect, made.max_records, made.count_name, made.name)
        others: dict[str, Any] = {"columns": dict(made.public_columns), "measure": made.measure, "over": made.over}
        return cls(lattice(made.universe, constraints), constraints, *said, **others)

    @property
    def universe(self) -> Universe:
        found = self.lattice.universe
        assert found is not None, "facts of a matrix have no universe"
        return found

    @property
    def kept(self) -> Kept:
        found = self.lattice.kept
        assert found is not None, "facts of a matrix have no constraints"
        return found

    @property
    def moves(self) -> Lattice:
        """Where noise goes: all moves that keep the totals, less those of cells that a total of 0 makes 0 ([theory R21])."""
        return self.lattice if self.zeros is None else self.zeros.moves

    @property
    def records(self) -> int:
        """The most records of one protected unit; 1 where the promise is for one record."""
        return self.max_records or 1

    @property
    def protected(self) -> str:
        """Whose privacy is promised: what `protect` names, or one record where nobody said how many one may have."""
        return "record" if self.max_records is None else self.protect

    def with_totals(self, totals: Any) -> Facts:
        """The same facts with the values of the totals: one whole number for each kept total and identity, in the order of `keep`."""
        try:
            given = list(totals)
            flat = np.asarray(given) if given else np.zeros(0, dtype=np.int64)
        except (TypeError, ValueError):
            flat = np.zeros(0)
        if flat.dtype.kind not in "iu" or flat.shape != (len(self.kept),):
            raise InvalidParameter(
                f"published_totals takes one whole number for each of the {len(self.kept)} kept totals and identities, in the order of "
                "keep."
            )
        ends = np.cumsum([rows.count for rows in self.kept.rows])[:-1]
        parts = np.split(flat.astype(np.int64), ends) if self.kept.rows else []
        return replace(self, published_totals=tuple(parts))

    @cached_property
    def definitions(self) -> list[dict[str, Json]]:
        """The constraints as plain values, in full."""
        return [definition(constraint, self.universe) for constraint in self.constraints]

    @cached_property
    def digest(self) -> str:
        """Part of every stream's label, so its encoding is part of the stream's format. Universe and constraints say all; where there are
        none, as for a law on a lattice, the blocks do, however they were found.
        """
        if self.lattice.universe is not None and (self.constraints or not self.kept.rows):
            left_out = [] if self.zeros is None else [{"zeros": RULE, "cells": self.zeros.digest}]
            named = [self.universe.digest(), self.definitions, *left_out, *self.measure.digest_fields]
            return hashlib.sha256(json.dumps(named, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
        blocks = self.lattice.blocks
        found = sorted((int(block.cells.min()), json.dumps(block.shape.fields), block.cells.ravel()) for block in blocks)
        digest = hashlib.sha256(b"" if self.lattice.universe is None else self.universe.digest().encode())
        for _, fields, cells in found:
            digest.update(fields.encode() + cells.astype("<i8").tobytes())
        if not blocks.finest:  # a block too large to list its rows is told from others by the rows as given
            matrix = self.lattice.matrix
            for array in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
        return digest.hexdigest()
