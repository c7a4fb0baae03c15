"""What the figures of a cell key table mean, and what they do not: printed wherever the figures are."""

from __future__ import annotations

from fractions import Fraction

from holdfast.cellkey.loss import Losses
from holdfast.cellkey.table import PerturbationTable
from holdfast.exact.formatting import format_short

LARGE_DELTA = Fraction(1, 100)
"""From here on a plateau is called no protection in the sense of differential privacy."""
ONE_ANSWER = (
    "The figures do not compose: they say nothing about several answers together. They do not cover differencing either: two tables "
    "whose records differ in one person can show that person."
)
NO_GUARANTEE = (
    "The cell key method gives no differential privacy guarantee for what is published together: its noise is fixed by the records."
)
MOST_RUNS = 5
"""So many unbroken runs of counts are named."""


def losses_sentences(losses: Losses) -> list[str]:
    """Scope, plateau, worst pair, floor, zeros, and what is not covered: the same for `describe` and for the command."""
    shown = losses.zero_shown
    zeros = [] if shown is None else [zero_shown_sentence(shown.upper)]
    return [scope_sentence(losses), *plateau_sentences(losses), *zeros, limits_sentence(losses), NO_GUARANTEE]


def table_sentences(table: PerturbationTable) -> list[str]:
    """The same of a perturbation table, with empty cells kept empty, and that counts may become negative."""
    return [*losses_sentences(table.losses_in_use), *value_sentences(table.least_result, table.lowest_result)]


def value_sentences(least: int, lowest: int) -> list[str]:
    """Say which small values are never published, as under a threshold, and warn of negative ones: the least above 0, and the lowest."""
    never = "1" if least == 2 else f"1 to {least - 1}"
    said = [f"No count is published as {never}: a published 0 can stand for a cell that has records."] if lowest <= 0 and least > 1 else []
    return (
        said if lowest >= 0 else [*said, f"Published counts may be negative, down to {lowest}: some noise takes away more than the count."]
    )


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
        return [f"From epsilon {_about(losses.plateau_epsilon)} on delta is zero: both counts can give the same values.{_worst(losses)}"]
    who = "the population without the record, or only the one with it," if losses.queries > 1 else "one of the two counts"
    said = [
        f"The delta stops falling at {_about(plateau)}, from epsilon {_about(losses.plateau_epsilon)} on: that is the chance of "
        f"a value that only {who} can give, and no epsilon gets below it.{_worst(losses)}"
    ]
    if (others := losses.above_zero) is not None and losses.worst.at_least == 0:
        at = f"{_about(others.plateau_bounds.upper)}, from epsilon {_about(others.plateau_epsilon)} on"
        said.append(f"For counts from 1 on the delta stops falling at {at}.{_worst(others)}")
    if losses.floor is not None:
        said.append(f"With {losses.key_size:,} keys no such chance other than zero can be below 1 in {losses.key_size:,}.")
    if plateau >= LARGE_DELTA:
        said.append("So large a delta is no protection in the sense of differential privacy.")
    return said


def _worst(losses: Losses) -> str:
    """Which counts are easiest to tell apart there; nothing where only two are compared."""
    at = losses.worst.at_least
    return "" if len(losses.pairs) == 1 else f" The worst pair is counts {at} and {at + 1}."


def _about(value: Fraction | float) -> str:
    """Three digits, and that it is about so much where they are not all of it."""
    rounded = Fraction(f"{float(value):.3g}")
    return f"{'' if rounded == Fraction(value) else 'about '}{format_short(rounded)}"


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
