"""Suppression: the kept totals and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

from holdfast.lattices import Lattice
from holdfast.laws.suppressed import SuppressedLaw
from holdfast.mechanisms.base import BaseMechanism, Per
from holdfast.mechanisms.promise import promise


@dataclass(frozen=True, repr=False)
class Suppression(BaseMechanism):
    """Publishes the kept totals, and the cells that they fix; every other count is left out.

    Guarantees:  the publication is a function of the kept totals, so tables with the same kept totals cannot be told apart: epsilon = 0.
    """

    name = "suppression"
    publishes_cells = False
    has_budget = False
    per: ClassVar[Per] = "unit"  # type: ignore[misc]

    @classmethod
    def from_run_file(cls, values: Mapping[str, Any], per: Per) -> Self:
        return cls()

    @property
    def parameters(self) -> dict[str, str]:
        return {}

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> SuppressedLaw:
        """No noise on this lattice: nothing but its kept totals is published."""
        return SuppressedLaw(lattice, promise(lattice, "pure", "l1", unit, max_records, epsilon=Fraction(0)))
