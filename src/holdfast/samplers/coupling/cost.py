"""What a try of coupling from the past costs, by the shape of the block alone: for plans and for the choice of a sampler, no draw depends on
it. In cell draws (samplers/cost.py).

A try makes about three sweeps of two chains and one of Klein's sampler. An update of a cell works on a matrix of rank x rank numbers, and
draws one atom of the mixture.
"""

from __future__ import annotations

UPDATES = 7
"""Of each cell, in a try."""
ATOM_COST, ENTRY_COST = 80.0, 0.04
"""Cell draws that drawing an atom takes, and one entry of the matrix."""


def try_cost(cells: int, rank: int) -> float:
    """Cell draws that take about as long as one try on a block of so many cells under so many independent totals."""
    return UPDATES * cells * (ATOM_COST + ENTRY_COST * rank * rank)
