"""The promise as a card has it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Strict

from holdfast.card.answers import AnswersInfo
from holdfast.card.fields import CardPart, Costs, Count, Text, Texts


class RelationInfo(CardPart):
    """Between which tables the promise holds: those that agree in all that is true here."""

    same_totals: bool = Field(description="They have the same kept totals.")
    same_cells: bool = Field(description="They have the same cells: the list of cells came with the data and was not declared public.")
    non_negative: bool = Field(
        description="No count is negative, so that cells under a kept total of 0 are 0; those of kept.zeros take no noise."
    )
    within_bounds: bool = Field(description="Both lie within the bounds that the publication is conditioned on.")
    identities: bool = Field(description="Both satisfy kept.identities, which were declared to hold for every data set.")


class ConditioningInfo(CardPart):
    """What it costs that the law is conditioned on kept totals and inequalities."""

    rate: Text = Field(description="Rate of the law for each unit of distance, exact; for Gaussian noise its rho without the factor.")
    gamma: Text = Field(
        description="The promise is for 1 + gamma times the rate, for all tables with the same kept totals within the bounds."
    )
    basis: Text = Field(description="How gamma is known: equalities, default, moves, listed or gaussian.")
    blocks: Count = Field(description="Parts of the table that are drawn independently.")
    disrupted: Count = Field(description="How many of them have no two tables that one person tells apart: the nearest are further away.")
    destroyed: Count = Field(description="How many of them have one table only, whatever the totals, so that nothing is promised there.")
    why: Text = Field(description="The same in words.")
    posterior: Text = Field(
        description="What is promised of odds and beliefs, given the kept totals and the bounds, and on what condition."
    )


class ChainBlocks(CardPart):
    """Blocks of one shape that a Markov chain draws, as the promise counts them."""

    blocks: Count = Field(description="Number of blocks of this shape; their errors add.")
    cells: Count = Field(description="Cells of one block.")
    kernel: Text = Field(description="The kind of step.")
    pairs: Count = Field(description="Pairs of coupled chains, all of which met.")
    largest_sweeps: Count = Field(description="Sweeps within which all pairs met.")
    sweeps: Count = Field(description="Sweeps that a draw makes.")
    eta: Text = Field(description="Estimated total variation error of one block.")
    shapes: Count = Field(description="Shapes of blocks that were assessed together: the confidence is for all of them.")


class AskedInfo(CardPart):
    """What was asked for, before it was converted to one unit of distance or to noise."""

    per: str | None = Field(
        description="What the budget is for: the name of what the table protects, changing cell with all records; or distance, for one "
        "unit of distance between two tables; null if the noise itself was asked for."
    )
    parameters: dict[Text, Text] = Field(description="The numbers asked for, exact.")
    text: Text = Field(description="The same in words.")


class GuaranteeInfo(CardPart):
    """The promise."""

    asked: AskedInfo | None = Field(description="What was asked for; null for a mechanism that takes no parameters.")
    kind: Text = Field(description="Kind of the promise: pure, zcdp or approximate.")
    parameters: Costs = Field(description="Parameters of the promise. Text is exact; a number is rounded up, never below the true one.")
    distance: Text = Field(description="Distance between tables in which the promise is stated, such as l1 or l2.")
    protect: Text = Field(description="Whose privacy is promised.")
    max_records: Annotated[int, Field(ge=1)] = Field(
        description="Records of one person (or what is protected) that the promise counts on at most."
    )
    relation: Text = Field(description="Between which tables the promise holds. Tables outside this relation can be told apart.")
    relation_fields: RelationInfo = Field(description="The same as fields.")
    status: Literal["exact", "estimated"] = Field(description="Standing of the promise: exact, or estimated with a stated confidence.")
    status_note: str = Field(description="The stated error or confidence of a promise that is not exact; else empty.")
    chains: Annotated[tuple[ChainBlocks, ...], Strict(False)] = Field(
        description="What a promise that is estimated rests on: the blocks that Markov chains draw, by shape; empty for an exact one."
    )
    conditioning: ConditioningInfo | None = Field(description="What bounds cost, where the law is conditioned on them; else null.")
    answers: AnswersInfo | None = Field(description="Where the table holds real-valued answers: what one person can change; else null.")
    per_distance: Costs = Field(description="The promise for two tables at distance one. Numbers are rounded up.")
    per_person: Costs | None = Field(
        description="The promise when one person (or what is protected) changes its answers; null if no person can change alone without "
        "changing a kept total. Numbers are rounded up."
    )
    smallest_secret: Costs = Field(
        description="The promise for the smallest change that leaves every kept total as it is. Numbers are rounded up."
    )
    why: Text = Field(description="Why one person, one unit of distance and the smallest secret do not cost the same, in a sentence.")
    sentences: Texts = Field(
        description="The promise in plain sentences, without the budget asked for and names of exposed cells: see asked and exposed."
    )
    text: Text = Field(description="All of it in one paragraph.")
