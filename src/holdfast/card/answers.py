"""What a card says of real-valued answers: their grid, and how far one person can move them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holdfast.card.fields import CardPart, Count, Text
from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import exact_fraction
from holdfast.privacy.guarantee import AnswersNorm
from holdfast.tables.measure import COUNTS, AnswerGrid, Measure, Neighbours, read_step


class GridInfo(CardPart):
    """The grid of real-valued answers: every value is a whole number of steps."""

    step: Text = Field(description="Values are whole multiples of this decimal or fraction; table and totals have them as exact decimals.")
    l1: Text | None = Field(description="How far one person can move the answers in l1 distance, exact; null if it was not given.")
    l2_squared: Text | None = Field(description="The square of the same in l2 distance, exact; null if it was not given.")
    neighbours: Neighbours = Field(
        description="Which data sets differ in one person: 'replace-one', 'add-remove', or 'declared' by whoever gave the sensitivity."
    )
    on_grid: bool = Field(
        description="True if the answers of every data set are on the grid, as declared or as the query shows; false if they are rounded "
        "to it, which the promise counts."
    )
    round_totals: bool = Field(
        description="Whether kept totals may be rounded to multiples of the step, as declared. If false, each is exactly the true one."
    )

    @classmethod
    def of(cls, measure: Measure) -> GridInfo | None:
        """What a card says of the grid of answers; None for counts."""
        if not isinstance(measure, AnswerGrid):
            return None
        l1, l2_squared = (None if value is None else format_exact(value) for value in (measure.l1, measure.l2_squared))
        return cls(
            step=measure.step_text,
            l1=l1,
            l2_squared=l2_squared,
            neighbours=measure.neighbours,
            on_grid=measure.on_grid,
            round_totals=measure.round_totals,
        )


def measure_of(grid: GridInfo | None) -> Measure:
    """The measure of a table whose card says this of its grid; raise InvalidParameter if there is no such grid."""
    if grid is None:
        return COUNTS
    l1, l2_squared = (None if text is None else exact_fraction(text, "sensitivity") for text in (grid.l1, grid.l2_squared))
    return AnswerGrid(read_step(grid.step), l1, l2_squared, grid.neighbours, grid.on_grid, grid.round_totals)


class AnswersInfo(CardPart):
    """Real-valued answers: a unit of distance is one step of the grid."""

    step: Text = Field(description="As for table.grid.")
    norm: AnswersNorm = Field(description="What sensitivity and reach are: an l1 distance, or the square of an l2 distance.")
    sensitivity: Text = Field(description="How far one person can move the answers, in values and in this norm, exact.")
    reach: Count = Field(description="The same on the grid, in steps or squared steps, with what rounding to the grid can add.")
    on_grid: bool = Field(description="Whether nothing was rounded, as for table.grid.")
    neighbours: Neighbours = Field(description="As for table.grid.")
    relation: Literal["same invariants"] = Field(
        description="Between which data sets the promise holds: those with the same invariants. This is less than [GGY22] Definition 2.5, "
        "which covers neighbours whose invariants differ."
    )
    text: Text = Field(description="The same in words.")
