"""Suppression: the kept totals and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.lattices import Lattice
from holdfast.laws.suppressed import SuppressedLaw
from holdfast.mechanisms.promise import promise


@dataclass(frozen=True)
class Suppression:
    """Publishes the kept totals, and the cells that they fix; every other count is left out.

    Guarantees:  the publication is a function of the kept totals, so tables with the same kept totals cannot be told apart: epsilon = 0.
    """

    name = "suppression"

    @property
    def parameters(self) -> dict[str, str]:
        return {}

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> SuppressedLaw:
        """No noise on this lattice: nothing but its kept totals is published."""
        return SuppressedLaw(lattice, promise(lattice, "pure", "l1", unit, max_records, epsilon=Fraction(0)))
