"""What coupling from the past costs, in cell draws (samplers/cost.py): a try by the shape of the block alone, how many of them by a pilot
that sees no data. For plans and for the choice of a sampler; no draw depends on it.

A try makes about three sweeps of two chains and one of Klein's sampler. An update of a cell draws one atom of the mixture and works on a
square of numbers: of the rank, or of the shorter axis where the block is a two-way table, whose correction takes a time of its own.
"""

from __future__ import annotations

from math import prod

from holdfast.samplers.coupling.convex_correction import WINDOW
from holdfast.samplers.pilot import Acceptance, Piloted, estimate_acceptance

UPDATES = 7
"""Of each cell, in a try."""
ATOM_COST, ENTRY_COST = 40.0, 0.055
TWO_WAY_ATOM_COST, TWO_WAY_ENTRY_COST, TWO_WAY_COORDINATE_COST = 24.0, 0.01, 0.02
"""Cell draws that an atom and an entry of the square take, for any matrix and for two-way tables; there, what a coordinate takes too."""
SLOW_COST = 2.5
"""Cell draws, times the cube of the free dimensions, of a Klein step in integers: half a second for 160."""
PILOT_CELLS, LEAST_TRIES, MOST_TRIES = 2e7, 8, 1 << 10
"""A pilot costs so many cell draws, a second, or so many tries where these are more."""
FIRST_TRIES, ENOUGH = 4, 0.1
"""Accept probabilities of tries differ little, so that a few of them say enough."""
HOPELESS_CELLS = 1e13
"""Expected cell draws from which a pilot looks no further: days."""


def try_cost(axes: tuple[int, ...], rank: int) -> float:
    """Cell draws that take about as long as one try on a block of so many cells under so many independent totals."""
    if len(axes) == 2:
        coordinates = prod(min(length, WINDOW) for length in axes)
        return UPDATES * prod(axes) * (TWO_WAY_ATOM_COST + TWO_WAY_ENTRY_COST * min(axes) ** 2 + TWO_WAY_COORDINATE_COST * coordinates)
    return UPDATES * prod(axes) * (ATOM_COST + ENTRY_COST * rank**2)


def acceptance(sampler: Piloted) -> Acceptance:
    """How often a try is accepted, from a few tries with public words."""
    return estimate_acceptance(
        sampler,
        cell_budget=max(PILOT_CELLS, LEAST_TRIES * sampler.cells_per_try),
        most_tries=MOST_TRIES,
        first_tries=FIRST_TRIES,
        enough=ENOUGH,
        least=sampler.cells_per_try / HOPELESS_CELLS,
    )
