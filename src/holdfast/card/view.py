"""What view.json says: what a publication view is, what it was made of, and how far it is off on average."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, Strict

from holdfast.card.fields import CardPart, Count, Text, Texts


class Bias(CardPart):
    """The mean of (view - true sum) over units of one level whose true sum is of one size, and the standard error of that mean."""

    level: Text = Field(description='A level of the table, or "cell".')
    size: Text = Field(description="The size of the true sum, such as 10 to 99.")
    units: Annotated[int, Field(ge=1)] = Field(description="Number of units of this size.")
    bias: Annotated[float, Field(allow_inf_nan=False)] = Field(description="The mean.")
    standard_error: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(description="Its standard error.")


class BiasInfo(CardPart):
    """What a view does on average, simulated from the public law."""

    text: Text = Field(description="How it was found, or why it is not given.")
    draws: Count = Field(description="Simulated releases behind it; 0 where there are none.")
    lines: Annotated[tuple[Bias, ...], Strict(False)] = Field(description="By level and size of the true sum.")


class ViewInfo(CardPart):
    """A publication view: counts for print, biased, with every kept total exact."""

    what: Literal["publication view"] = Field(description="What the files are.")
    text: Text = Field(description="The same in sentences.")
    release: Text = Field(description="Identifier of the release.")
    private: bool = Field(description="As on the card of the release.")
    identity: Text = Field(description="mechanism.identity of the release.")
    released_counts_sha256: Text = Field(description="SHA-256 of the released counts, 8 bytes each, lowest first.")
    column: Text = Field(description="Column that holds the view.")
    base: int = Field(description="Numbers are multiples of it.")
    nonnegative: bool = Field(description="Whether no number is negative.")
    levels: Annotated[tuple[str, ...], Strict(False)] = Field(description="The levels of the table, coarse to fine.")
    level_labels: Texts | None = Field(default=None, description="What the levels are called; left out where the table has no labels.")
    solver: Text | None = Field(description="What found cells whose kept totals cross; null where there are none.")
    cells: Count = Field(description="Number of cells.")
    changed: Count = Field(description="Cells that differ from their released count.")
    bias: BiasInfo = Field(description="How far it is off on average.")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return {name: value for name, value in super().to_dict().items() if name != "level_labels" or value is not None}
