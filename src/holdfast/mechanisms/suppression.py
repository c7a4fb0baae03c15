"""Suppression: the kept totals and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from holdfast.channels import Channel, Facts
from holdfast.laws import Suppressed
from holdfast.mechanisms.mechanism import Mechanism, promise


@dataclass(frozen=True, repr=False)
class Suppression(Mechanism):
    """Publishes the kept totals, and the cells that they fix; every other count is left out.

    Guarantees:  the publication is a function of the kept totals, so tables with the same kept totals cannot be told apart: epsilon = 0.
    """

    name = "suppression"
    publishes_cells = False
    has_budget = False

    def make_channel(self, facts: Facts) -> Channel:
        return Channel(facts, Suppressed(), promise(facts, "pure", "l1", epsilon=Fraction(0)))
