"""No noise because nothing is published: the kept totals alone."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.lattices import Lattice
from holdfast.laws.target import Field, Target


@dataclass(frozen=True)
class Suppressed(Target):
    """The publication is a function of the kept totals: they, and the cells that they fix, are published; nothing is drawn."""

    publishes_cells = False

    @property
    def fields(self) -> tuple[Field, ...]:
        return ("suppression",)

    @property
    def formula(self) -> str:
        return "no noise: only the kept totals, and the cells that they fix, are published"

    def log_tail(self, lattice: Lattice, t: float) -> float:
        return float("-inf") if t > 0 else 0.0
