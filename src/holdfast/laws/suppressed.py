"""No noise because nothing is published: the kept totals alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.lattices.shapes import Shape
from holdfast.laws.covariance import Covariance
from holdfast.laws.law import LatticeLaw, SamplerPlan, Task
from holdfast.samplers.choose import Choice


class SuppressedLaw(LatticeLaw):
    """The publication is a function of the kept totals."""

    publishes_cells = False

    def __repr__(self) -> str:
        return "SuppressedLaw()"

    @property
    def formula(self) -> str:
        return "no noise: only the kept totals, and the cells that they fix, are published"

    def log_tail(self, t: float) -> float:
        return float("-inf") if t > 0 else 0.0

    def _choose(self) -> dict[int, Choice]:
        return {}

    def _choice(self, template: Shape) -> Choice:
        raise AssertionError("nothing is drawn")

    def _block_variance(self, template: Shape) -> Any:
        raise AssertionError("nothing is drawn")

    @property
    def sampler(self) -> SamplerPlan:
        return SamplerPlan(())

    def tasks(self) -> Iterator[Task]:
        return iter(())

    def covariance(self) -> Covariance:
        return Covariance(self.lattice.cells, ())
