"""What the figures of a cell key table mean, and what they do not: printed wherever the figures are."""

from __future__ import annotations

from fractions import Fraction

from holdfast.cellkey.loss import Losses
from holdfast.exact.balls import float_up
from holdfast.wording.numbers import number

LARGE_DELTA = Fraction(1, 100)
"""From here on a plateau is called no protection in the sense of differential privacy."""


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
    counts = f"both counts at least {losses.at_least}" if losses.at_least else "any two such counts, zero and one included"
    return (
        f"These figures are for one cell and one answer, over the draw of the record keys, and for two counts that differ by one: {counts}."
    )


def plateau_sentences(losses: Losses) -> list[str]:
    """Where delta stops falling, and why."""
    plateau = losses.plateau_bounds.upper
    if plateau == 0:
        return [f"From epsilon = {number(losses.plateau_epsilon)} on delta is zero: both counts can give the same values."]
    who = "the population without the record, or only the one with it," if losses.queries > 1 else "one of the two counts"
    begin = number(losses.plateau_epsilon)
    said = [
        f"The delta stops falling at {number(float_up(plateau))}, from epsilon = {begin} on: that is the chance of a value "
        f"that only {who} can give, and no epsilon gets below it."
    ]
    if losses.floor is not None:
        said.append(f"With {losses.key_size} keys no such chance other than zero can be below {losses.floor}.")
    if plateau >= LARGE_DELTA:
        said.append("So large a delta is no protection in the sense of differential privacy.")
    return said


def zero_sentences(losses: Losses) -> list[str]:
    """What keeping zeros means."""
    shown = losses.zero_shown
    if shown is None:
        return []
    return [
        f"A count of zero is always published as zero, so every other value shows that the cell is not empty. A count of one is told from "
        f"zero with probability {number(shown.up())}, whatever epsilon is."
    ]


def limits_sentence(losses: Losses) -> str:
    """What the figures say nothing about."""
    if losses.queries > 1:
        return "The figures say nothing about further answers."
    return (
        "The figures do not compose: they say nothing about several answers together. They do not cover differencing either: two tables "
        "whose records differ in one person can show that person."
    )
