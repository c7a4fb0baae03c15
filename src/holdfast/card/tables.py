"""What tables.json says: which tables a release of several has, and how far they are from adding up."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from holdfast.card.fields import CardPart, Count, Identifier, LedgerEntry, PublicFile, Sha256, Text

MOST_TABLES = 1_000


class ListedTable(CardPart):
    """One table, in a folder of its own."""

    name: PublicFile = Field(description="Name of the table and of its folder.")
    card: Sha256 = Field(description="SHA-256 of its card.json, which has those of its other files.")


class Gap(CardPart):
    """How far the cells of one published table are from adding up to another; from published counts alone."""

    fine: PublicFile = Field(description="The table whose cells are added up.")
    coarse: PublicFile = Field(description="The table that they are compared with; its columns are some of the other's.")
    cells: Count = Field(description="Cells compared.")
    unequal: Count = Field(description="Cells that differ.")
    largest: Count = Field(description="The largest difference.")
    mean: Text = Field(description="The mean absolute difference, exact.")
    text: Text = Field(description="The same in a sentence.")


class TableSet(CardPart):
    """A release of several tables."""

    schema_name: Literal["holdfast-tables/1"] = Field(alias="schema", description="What the file is.")
    release: Identifier = Field(description="Identifier of the release, as on every card.")
    private: bool = Field(description="As on every card.")
    ledger: LedgerEntry | None = Field(description="As on every card.")
    tables: Annotated[tuple[ListedTable, ...], Strict(False), Field(min_length=1, max_length=MOST_TABLES)] = Field(
        description="The tables."
    )
    gaps: Annotated[tuple[Gap, ...], Strict(False), Field(max_length=MOST_TABLES**2)] = Field(
        description="One for each pair of tables of which one has all columns of the other and more."
    )
