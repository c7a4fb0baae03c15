"""Noise that is looked up by the count and the key of a cell: the cell key method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys, do_not_fill
from holdfast.cellkey.perturb import table_digest
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidCount
from holdfast.lattices import Lattice
from holdfast.laws.families import Field, Reads, Target

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Keyed(Target):
    """y = x + e(x, k): e the noise that the perturbation table has for the count x and the cell key k; y = 0 where x = 0.

    table:  for as many keys as `rule` makes.
    """

    table: PerturbationTable
    rule: CellKeys

    reads = Reads.CELL_KEYS

    @property
    def fields(self) -> tuple[Field, ...]:
        rule = self.rule
        return ("cell-key", table_digest(self.table), str(rule.records.size), str(rule.modulus), str(rule.size), int(rule.mixed))

    @property
    def formula(self) -> str:
        return (
            "y = x + e(x, k) where x > 0, else 0: e is the noise that the perturbation table has for the count x and the cell key k, "
            f"the sum of the record keys modulo {self.rule.modulus}"
            f"{'' if self.rule.size == self.rule.modulus else f', folded to {self.rule.size} keys'}{', mixed' if self.rule.mixed else ''}"
        )

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > lattice.cells * max(abs(noise) for row in self.table.rows.values() for noise in row.noise) else 0.0

    def check_input(self, counts: Ints, cell_keys: Ints | None) -> None:
        """Refuse counts that have no row, and keys that are no draw of uniform ones: most cells would get the same noise."""
        assert cell_keys is not None
        filled = counts > 0
        given = cell_keys[filled]
        self.table.lookup(counts[filled], np.zeros(len(given), np.int64))
        size = self.rule.records.size
        if len(given) and any(do_not_fill(reach, len(given), size) for reach in (int(given.max()), size - 1 - int(given.min()))):
            raise InvalidCount(
                f"The cell keys do not fill 0 to {size - 1}: all lie nearer to one end than sums of such keys can be expected to, and most "
                "cells would get the same noise. Make new record keys with RecordKeys, or publish with `holdfast cellkey perturb --keys`."
            )
