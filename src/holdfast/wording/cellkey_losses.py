"""What the figures of a cell key table mean, and what they do not: printed wherever the figures are."""

from __future__ import annotations

from fractions import Fraction

from holdfast.cellkey.loss import Losses
from holdfast.exact.formatting import format_short

LARGE_DELTA = Fraction(1, 100)
"""From here on a plateau is called no protection in the sense of differential privacy."""
ONE_ANSWER = (
    "The figures do not compose: they say nothing about several answers together. They do not cover differencing either: two tables "
    "whose records differ in one person can show that person."
)
MOST_RUNS = 5
"""So many unbroken runs of counts are named."""


def losses_paragraph(losses: Losses) -> str:
    """Scope, plateau, floor, zeros, and what is not covered."""
    return " ".join((scope_sentence(losses), *plateau_sentences(losses), *zero_sentences(losses), limits_sentence(losses)))


def scope_sentence(losses: Losses) -> str:
    """For whom the figures are."""
    if losses.queries > 1:
        return (
            f"These figures are for {losses.queries} answers together, over the draw of the record keys, and for one population with and "
            "without one record."
        )
    return (
        "These figures are for one cell and one answer, over the draw of the record keys, and for two counts that differ by one: "
        f"{counts_text(losses)}."
    )


def counts_text(losses: Losses) -> str:
    """Which neighbouring counts were compared."""
    if losses.runs == ((0, None),):
        return "any two such counts, zero and one included"
    said = [_run_text(first, last) for first, last in losses.runs]
    if len(said) > MOST_RUNS:
        said[MOST_RUNS - 1 : -1] = [f"and so on in {len(said) - MOST_RUNS} further runs of counts"]
    return f"{', or '.join(said)}{'; nothing is said of other counts' if len(said) > 1 or not losses.is_open else ''}"


def _run_text(first: int, last: int | None) -> str:
    if last is None:
        return f"both counts at least {first}"
    return f"{first} and {last}" if last == first + 1 else f"both counts from {first} to {last}"


def plateau_sentences(losses: Losses) -> list[str]:
    """Where delta stops falling, and why."""
    plateau = losses.plateau_bounds.upper
    if plateau == 0:
        return [f"From epsilon {_about(losses.plateau_epsilon)} on delta is zero: both counts can give the same values."]
    who = "the population without the record, or only the one with it," if losses.queries > 1 else "one of the two counts"
    said = [
        f"The delta stops falling at {_about(plateau)}, from epsilon {_about(losses.plateau_epsilon)} on: that is the chance of "
        f"a value that only {who} can give, and no epsilon gets below it."
    ]
    if losses.floor is not None:
        said.append(f"With {losses.key_size:,} keys no such chance other than zero can be below 1 in {losses.key_size:,}.")
    if plateau >= LARGE_DELTA:
        said.append("So large a delta is no protection in the sense of differential privacy.")
    return said


def _about(value: Fraction | float) -> str:
    """Three digits, and that it is about so much where they are not all of it."""
    rounded = Fraction(f"{float(value):.3g}")
    return f"{'' if rounded == Fraction(value) else 'about '}{format_short(rounded)}"


def zero_sentences(losses: Losses) -> list[str]:
    """What keeping zeros means."""
    shown = losses.zero_shown
    if shown is None:
        return []
    return [zero_shown_sentence(shown.upper)]


def zero_shown_sentence(delta: Fraction | float) -> str:
    """Say what a count of one reveals where zeros stay zero."""
    return (
        "A count of zero is always published as zero, so every other value shows that the cell is not empty. A count of one is "
        f"distinguished from zero with probability {format_short(delta)}, whatever epsilon is."
    )


def limits_sentence(losses: Losses) -> str:
    """What the figures say nothing about."""
    if losses.queries > 1:
        return "The figures say nothing about further answers."
    return ONE_ANSWER
