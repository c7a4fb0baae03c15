"""The promise as a card has it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, Strict

from holdfast.card.answers import AnswersInfo
from holdfast.card.fields import CardPart, Count, Text, Texts
from holdfast.exact.formatting import format_exact
from holdfast.privacy.asked import DISTANCE
from holdfast.privacy.guarantee import Kind, Promise
from holdfast.privacy.secrets import Found


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


class KeyedInfo(CardPart):
    """Noise that was looked up by cell keys: its law over the draw of record keys, for one cell and one answer. No differential privacy."""

    first: Count = Field(description="The smallest count that has noise; empty cells stay empty.")
    last: Count | None = Field(description="The largest count that has noise; null if all larger ones have it too.")
    lowest: int = Field(description="The lowest noise of any count.")
    highest: int = Field(description="The highest noise of any count.")
    variance: Text = Field(description="The largest variance of the noise of any count, rounded up.")
    epsilon: Text = Field(description="From this epsilon on delta stops falling. Rounded up.")
    delta: Text = Field(description="The delta there, for two counts from `first` on that differ by one. Rounded up.")
    zero_delta: Text | None = Field(
        description="The delta between counts 0 and 1, whatever epsilon, since empty cells stay empty; null if count 1 has no noise."
    )
    distance: Text = Field(description="Distance of cell keys from uniform, in total variation, if record keys are; exact.")
    other_noise: bool = Field(description="True if the publisher allowed other noise than earlier tables of the same records have.")


class WarningInfo(CardPart):
    """What every page says first, and louder than the rest."""

    kind: Literal["weak-budget", "little-noise", "test-key", "truncated", "no-limit"] = Field(
        description="'weak-budget': a best guess can be right more than 99 of 100 times. 'little-noise': most counts carry no noise. "
        "'test-key': anyone can take the noise off. 'truncated': records of people with too many were left out. 'no-limit': no budget "
        "limits what all releases of the data cost together."
    )
    text: Text = Field(description="The same in words; the first sentence is a headline.")

    @property
    def is_alarm(self) -> bool:
        """Whether this release may protect next to nothing by itself."""
        return self.kind in ("weak-budget", "little-noise", "test-key")


class AskedInfo(CardPart):
    """What was asked for, before it was converted to one unit of distance or to noise."""

    per: str | None = Field(
        description="What the budget is for: the name of what the table protects, changing cell with all records; or distance, for one "
        "unit of distance between two tables; null if the noise itself was asked for."
    )
    parameters: dict[Text, Text] = Field(description="The numbers asked for, exact.")
    text: Text = Field(description="The same in words.")

    @property
    def is_for_protected(self) -> bool:
        """Whether it is a budget for what the table protects: neither per distance, nor the noise itself."""
        return self.per not in (None, DISTANCE)


class CostInfo(CardPart):
    """What two tables at one distance are promised. Numbers are exact, or decimals rounded up."""

    kind: Kind = Field(description="Kind of the promise.")
    epsilon: Text = Field(description="Between the two tables, with delta.")
    delta: Text = Field(description="0 for a pure promise.")
    rho: Text | None = Field(description="The parameter of zero-concentrated differential privacy; null if it is not known.")

    @classmethod
    def of(cls, promise: Promise, **more: Any) -> Self:
        """From a promise, with the fields that a subclass has beside it."""
        rho = None if promise.rho is None else format_exact(promise.rho)
        return cls(kind=promise.kind, epsilon=format_exact(promise.epsilon), delta=format_exact(promise.delta), rho=rho, **more)

    @property
    def numbers(self) -> dict[str, str]:
        """Those that are known, by name."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in named.items() if value is not None}


class CostAt(CostInfo):
    """The same with how far apart the two tables are."""

    distance: int | Text = Field(description="The distance between the two tables, exact; squared if guarantee.squared.")


class SmallestSecret(CostAt):
    """The same for the smallest change that leaves every kept total as it is."""

    found: Found = Field(description="'exact', or 'lower bound' if the nearest two tables may be farther apart.")


class GuaranteeInfo(CardPart):
    """The promise."""

    asked: AskedInfo | None = Field(description="What was asked for; null for a mechanism that takes no parameters.")
    kind: Kind = Field(description="Kind of the promise; cell-key, if no differential privacy is promised.")
    parameters: dict[Text, Text] = Field(description="Parameters of the promise for each unit of distance, exact.")
    distance: Text = Field(description="Distance between tables in which the promise is stated, such as l1 or l2.")
    squared: bool = Field(description="True if the promise is for each unit of the squared distance, and distances are squared.")
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
    keyed: KeyedInfo | None = Field(description="Where noise was looked up by cell keys: its figures, in place of a promise; else null.")
    per_distance: CostInfo = Field(description="The promise for two tables at distance one.")
    per_person: CostAt | None = Field(
        description="The promise when one person (or what is protected) changes its answers; null if no person can change alone without "
        "changing a kept total."
    )
    smallest_secret: SmallestSecret = Field(description="The promise for the smallest change that leaves every kept total as it is.")
    why: Text = Field(description="Why one person, one unit of distance and the smallest secret do not cost the same, in a sentence.")
    sentences: Texts = Field(
        description="The promise in plain sentences, without the budget asked for and names of exposed cells: see asked and exposed."
    )
    text: Text = Field(description="All of it in one paragraph.")
