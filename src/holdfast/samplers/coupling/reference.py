"""Coupling from the past with every step decided in balls: slow and plain. The oracle of the compiled loops, and their last resort.

Both chains are the ideal ones: no error is enclosed, every index is the true quantile of a conditional law. Any start below all states and
any start above all states give the same result, if the chains meet.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from holdfast.samplers.coupling.conditional import ConditionalLaw
from holdfast.samplers.coupling.uniforms import SweepUniform


class ExactForm(Protocol):
    """What the reference needs of a form."""

    @property
    def cells(self) -> int: ...

    def law(self, indices: list[int], cell: int) -> ConditionalLaw:
        """The conditional law of one cell given the others."""

    def top_law(self, cell: int) -> ConditionalLaw:
        """A law above every conditional of the cell."""


def coalesce(form: ExactForm, uniform: Callable[[int, int], SweepUniform], steps: int = 2) -> list[int]:
    """The atoms at time 0; uniform(cell, time) is that of a cell at time -time. Never gives up."""
    while True:
        lower = [0] * form.cells
        upper = [form.top_law(e).index(uniform(e, steps).cell) for e in range(form.cells)]
        _sweep(form, lower, uniform, steps)
        for time in range(steps - 1, 0, -1):
            _sweep(form, lower, uniform, time)
            _sweep(form, upper, uniform, time)
        if lower == upper:
            return lower
        steps += 1


def _sweep(form: ExactForm, state: list[int], uniform: Callable[[int, int], SweepUniform], time: int) -> None:
    for cell in range(form.cells):
        state[cell] = form.law(state, cell).index(uniform(cell, time).cell)
