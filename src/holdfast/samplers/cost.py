"""What a draw costs, counted and not measured: in cell draws, so that every machine plans, chooses and refuses alike.

A cell draw is one cell of one try by rejection. Samplers whose tries do other work say so in the same unit (`Costly`).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from holdfast.samplers.protocol import BlockSampler, InputSampler

CELL_SECONDS = 5e-8
"""Processor time of a cell draw: 30 to 80 ns on a machine of 2024, for grids of 3 x 3 to 7 x 7. For plans alone."""

_UNITS = ((1.0, 1e3, "millisecond"), (100.0, 1.0, "second"), (6e3, 1 / 60, "minute"), (2e5, 1 / 3600, "hour"), (6e7, 1 / 86400, "day"))
"""(Seconds up to which a unit is used; how many of it a second has; its name)."""


@runtime_checkable
class Costly(Protocol):
    """A sampler whose try costs more than its cells."""

    @property
    def try_cost(self) -> float:
        """Cell draws that take as long as one try; from public facts, never from a clock."""


def cell_draws(sampler: BlockSampler | InputSampler) -> float:
    """Cell draws of one draw of a block, those thrown away included: by public figures, not by how a run goes; tries that depend on the
    counts are not known, and not counted.
    """
    return (sampler.try_cost if isinstance(sampler, Costly) else sampler.cells) * max(sampler.expected_tries or 1.0, 1.0)


def duration(cell_draws: float) -> str:
    """About how long they take on one core, in the unit that people would use."""
    seconds = cell_draws * CELL_SECONDS
    for most, per_second, unit in _UNITS:
        if seconds < most:
            number = max(1, round(seconds * per_second))
            return f"about {number} {unit}{'' if number == 1 else 's'}"
    return "years"
