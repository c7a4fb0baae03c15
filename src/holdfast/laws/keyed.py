"""Noise that is looked up by the count and the key of a cell: the cell key method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys, CellKeySums, do_not_fill
from holdfast.cellkey.perturb import table_digest
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.lattices import Lattice
from holdfast.laws.families import Field, Reads, Target

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Keyed(Target):
    """y = x + e(x, k): e the noise that the perturbation table has for the count x and the cell key k; y = 0 where x = 0.

    table:     for as many keys as `rule` makes.
    weighted:  y times the mean weight of the records, rounded to the nearest whole number, the even one of two.
    """

    table: PerturbationTable
    rule: CellKeys
    weighted: bool = False

    reads = Reads.CELL_KEYS

    @property
    def fields(self) -> tuple[Field, ...]:
        rule, more = self.rule, ("weighted",) if self.weighted else ()
        return ("cell-key", table_digest(self.table), str(rule.records.size), str(rule.modulus), str(rule.size), int(rule.mixed), *more)

    @property
    def formula(self) -> str:
        law = "(x + e(x, k)) w, rounded to a whole number," if self.weighted else "x + e(x, k)"
        mean = ", w is the mean weight of the records" if self.weighted else ""
        return (
            f"y = {law} where x > 0, else 0: e is the noise that the perturbation table has for the count x and the cell key k, "
            f"the sum of the record keys modulo {self.rule.modulus}"
            f"{'' if self.rule.size == self.rule.modulus else f', folded to {self.rule.size} keys'}{', mixed' if self.rule.mixed else ''}"
            f"{mean}"
        )

    def log_tail(self, lattice: Lattice, t: float) -> float:
        """Bound of the noise of counts of records, before weights."""
        return float("-inf") if t > lattice.cells * max(abs(noise) for row in self.table.rows.values() for noise in row.noise) else 0.0

    def check_input(self, counts: Ints, cell_keys: CellKeySums | None) -> None:
        """Refuse counts that have no row, and keys that are no draw of uniform ones: most cells would get the same noise."""
        assert cell_keys is not None
        self.rule.check_sums(cell_keys)
        if (cell_keys.weights is not None) is not self.weighted:
            raise InvalidParameter("The table has weights where weighted=True, and only there.", field="weighted")
        filled = counts > 0
        given = cell_keys.sums[filled]
        self.table.lookup(counts[filled], np.zeros(len(given), np.int64))
        size = cell_keys.modulus
        if len(given) and any(do_not_fill(reach, len(given), size) for reach in (int(given.max()), size - 1 - int(given.min()))):
            raise InvalidCount(
                f"The cell keys do not fill 0 to {size - 1}: all lie nearer to one end than sums of such keys can be expected to, and most "
                "cells would get the same noise. Make new record keys with RecordKeys, or say what the keys are: "
                "`holdfast cellkey perturb --keys`."
            )
