"""How the chains of a promise that is not exact were assessed."""

from __future__ import annotations

from holdfast.chains.assessment import Assessed
from holdfast.display import count_of
from holdfast.exact.formatting import format_exact, format_short
from holdfast.privacy.estimated import added_delta
from holdfast.privacy.guarantee import ChainFacts, Guarantee
from holdfast.samplers.choice import CELL_SECONDS, Compared, Reason, duration

_REASONS = {
    Reason.NO_TOTAL: "under no kept total",
    Reason.FIXED: "fixed by the kept totals",
    Reason.ONE_TOTAL: "one kept total over its cells",
    Reason.ONE_TOTAL_MANY_CELLS: "one kept total over many cells",
    Reason.PRODUCT: "a product of axes with all sums along each kept",
    Reason.TWO_WAY: "rows and columns kept: controlled rounding",
    Reason.SMALL_GRID: "a grid small enough for rejection",
    Reason.LEVELS: "sums at some levels of a product of axes kept",
    Reason.COUPLED: "faster than rejection",
    Reason.FEW_TOTALS: "few enough kept totals for rejection",
    Reason.CLASSES: "many cells that no kept total tells apart",
    Reason.FEW_FREE: "few enough free cells for rejection",
    Reason.GENERAL: "kept totals of no simpler shape",
    Reason.WEIGHTED_LEVELS: "levels and margins weighed against each other",
    Reason.WHOLE: "a small lattice taken whole",
    Reason.WHOLE_MIXED: "a lattice taken whole",
    Reason.ASKED: "asked for",
    Reason.NO_EXACT: "no exact sampler draws it in reasonable time",
    Reason.OTHER: "the mechanism's own sampler",
}

_OTHERS = {Reason.COUPLED: "rejection", Reason.WHOLE_MIXED: "rejection", Reason.WHOLE: "a random variance, then Klein's sampler,"}
"""The sampler that was looked at and not taken."""
SHAPES_TOLD = 3
"""Most shapes of blocks whose assessment a guarantee's sentences give; its fields have all."""


def reason_phrase(reason: Reason, compared: Compared | None = None, note: str = "") -> str:
    """Why a sampler was chosen, and what it and the other one would cost where both were looked at; `note`: why the other was not."""
    if compared is None:
        return f"{_REASONS[reason]} ({note[0].lower()}{note[1:].removesuffix('.')})" if note else _REASONS[reason]
    other = _OTHERS.get(reason, "coupling from the past")
    return f"{_REASONS[reason]}: {duration(compared.taken)} a draw, where {other} would take {duration(compared.other)}"


SHOWN_CELLS = 20_000
"""Least number of cell draws whose time a plan gives: a millisecond."""


def tries_phrase(expected_tries: float | None, cell_draws: float, is_told: bool) -> str:
    """How many tries of a block are expected, and how long all of its kind take; `is_told`: the time of the only one has been told."""
    if expected_tries is None:
        return "its tries depend on the counts"
    tries = f"{count_of(f'{expected_tries:.3g}', 'try', 'tries')} expected"
    return tries if is_told or cell_draws < SHOWN_CELLS else f"{tries}, {duration(cell_draws)} in all"


def assessment_sentences(found: Assessed | ChainFacts) -> str:
    """What was seen of coupled pairs, what follows from it, and what is assumed."""
    together = "" if found.shapes == 1 else f" for all {found.shapes} shapes of blocks together"
    return (
        f"{found.pairs} coupled pairs of {found.kernel} all met within {count_of(found.largest_sweeps, 'sweep')}, so that a pair takes "
        f"longer with probability at most {found.eta}, with 95 % confidence{together}. {count_of(found.sweeps, 'sweep')} "
        f"{'is' if found.sweeps == 1 else 'are'} made. That their total variation error is then below {found.eta} assumes that meeting "
        "times have a tail that falls like a geometric one."
    )


def chain_error_sentences(guarantee: Guarantee) -> str:
    """The stated error of a promise that is not exact, and what it rests on."""
    assert guarantee.eta is not None
    assert guarantee.epsilon is not None
    chains = (
        f"{count_of(chain.blocks, 'block')} of {chain.cells} cells: {assessment_sentences(chain)}"
        for chain in guarantee.chains[:SHAPES_TOLD]
    )
    return (
        f"The total variation error is estimated to be at most eta = {format_exact(guarantee.eta)}, which adds (1 + e^epsilon) eta = "
        f"{format_short(added_delta(guarantee.epsilon, guarantee.eta))} to delta: {' '.join(chains)}"
    )


LONG_DRAW = 2e7
"""Cell draws that take about a second, on a slow machine two."""


def long_draw_sentence(cell_draws: float) -> str | None:
    """What is said before a draw that takes long; None where it does not."""
    if cell_draws < LONG_DRAW:
        return None
    return f"Drawing takes {duration(cell_draws)} on average, by the number of tries that is expected."


def long_interval_sentence(count: int, seconds: float) -> str:
    """What is said of an interval from draws, when the first of them are made; `seconds`: for all of them."""
    return f"Intervals need {count:,} draws of this noise: {duration(seconds / CELL_SECONDS)}."
