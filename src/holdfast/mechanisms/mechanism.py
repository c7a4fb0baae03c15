"""What every mechanism offers: it turns public facts into a law; only the engine gives a law confidential counts."""

from __future__ import annotations

from typing import Protocol

from holdfast.lattices import Lattice
from holdfast.laws.law import LatticeLaw


class Mechanism(Protocol):
    """A frozen value with exact parameters, per unit of distance as in the papers."""

    @property
    def name(self) -> str:
        """As in run files and cards, such as "generalized-laplace"."""

    @property
    def parameters(self) -> dict[str, str]:
        """Exact parameters as text."""

    def law(self, lattice: Lattice, *, unit: str = "person", max_records: int | None = 1) -> LatticeLaw:
        """The law of the noise on this lattice; impossible requests are refused here, before anything is drawn."""
