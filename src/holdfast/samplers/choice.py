"""What a draw costs, and what a choice of sampler says. Costs are counted and not measured, in cell draws, so that every machine plans,
chooses and refuses alike.

A cell draw is one cell of one try by rejection. Samplers whose tries do other work say so in the same unit (`Costly`).
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, runtime_checkable

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Shape, Whole
from holdfast.laws import Gaussian, L1Laplace, L2Laplace, Target
from holdfast.samplers.protocol import BlockSampler, InputSampler

MAX_CELL_TRIES = 10**9
"""Cells times expected tries beyond which a block is refused: some ten seconds to a minute on one core."""
HOPELESS_TRIES = 1e12
"""By rule of thumb, at small epsilon: refused without a pilot."""
RULE_EPSILON = Fraction(1, 2)
"""Up to here rules of thumb hold: the pilots of two-way tables, sums and free cells found .7 to 4.4 times their tries."""
UNSAYABLE_TRIES = 1e20
"""Beyond, the number says nothing more."""
CELL_SECONDS = 5e-8
"""Processor time of a cell draw: 30 to 80 ns on a machine of 2024, for grids of 3 x 3 to 7 x 7. For plans alone."""

_UNITS = ((1.0, 1e3, "millisecond"), (100.0, 1.0, "second"), (6e3, 1 / 60, "minute"), (2e5, 1 / 3600, "hour"), (6e7, 1 / 86400, "day"))
"""(Seconds up to which a unit is used; how many of it a second has; its name)."""
_DRAWS: dict[type[Target], str] = {L1Laplace: "Laplace draw", L2Laplace: "Laplace draw in l2", Gaussian: "Gaussian draw"}
"""For other targets just a draw."""


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


class Reason(enum.Enum):
    """Why a sampler was chosen; wording/samplers.py has the sentences."""

    NO_TOTAL = "no total"
    FIXED = "fixed"
    ONE_TOTAL = "one total"
    ONE_TOTAL_MANY_CELLS = "one total, many cells"
    PRODUCT = "product of axes"
    TWO_WAY = "two-way table"
    SMALL_GRID = "small grid"
    COUPLED = "faster than rejection"
    LEVELS = "levels"
    FEW_TOTALS = "few totals"
    CLASSES = "classes"
    FEW_FREE = "few free cells"
    GENERAL = "general"
    WEIGHTED_LEVELS = "weighted levels"
    WHOLE = "whole lattice"
    WHOLE_MIXED = "whole lattice, random variance"
    ASKED = "asked for"
    NO_EXACT = "no exact sampler"
    OTHER = "other"


@dataclass(frozen=True)
class Compared:
    """Expected cell draws of one draw (`cell_draws`), by the sampler that was taken and by the other one that was looked at."""

    taken: float
    other: float


@dataclass(frozen=True, eq=False)
class Choice:
    """The sampler of a shape, and why it was chosen."""

    sampler: BlockSampler | InputSampler
    reason: Reason
    compared: Compared | None = None
    """Where another sampler was looked at."""
    note: str = ""
    """Where another one was to be looked at: why it could not be. A sentence."""

    @property
    def noise(self) -> BlockSampler:
        """The sampler, where its target's noise sees no data."""
        assert not isinstance(self.sampler, InputSampler), "this sampler publishes from counts"
        return self.sampler


def affordable(make: Callable[[], BlockSampler | InputSampler], reason: Reason, shape: Shape, target: Target, price: int = 1) -> Choice:
    """The sampler, if its expected work is bounded; the number of tries comes from a bound or from a pilot that sees no data."""
    sampler = make()
    tries = sampler.expected_tries
    if tries is not None and not tries * sampler.cells * price <= MAX_CELL_TRIES:
        raise NoExactSampler(too_many_tries(shape, tries, target))
    return Choice(sampler, reason)


def too_many_tries(shape: Shape, tries: float, target: Target) -> str:
    """Why it is refused; what could be drawn instead is found out where the whole table is known (channels/alternatives.py)."""
    named = " x ".join(map(str, shape.axes)) + (" cells" if len(shape.axes) == 1 else "")
    block = f"The table of {named}, taken whole," if isinstance(shape, Whole) else f"A block of {named}"
    number = f"about {tries:.1e}" if tries < UNSAYABLE_TRIES else f"more than {UNSAYABLE_TRIES:.0e}"
    return f"{block} would need {number} tries for one exact {_DRAWS.get(type(target), 'draw')}, which is refused."
