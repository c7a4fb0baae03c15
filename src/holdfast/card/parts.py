"""The parts of a card, and what they are made of.

values     texts, counts, numbers of six digits; and the base of all parts
answers    the grid of real-valued answers, and how far one person can move them
promise    what is promised, for whom, under which condition
view       what a publication view is made of, and how far it is off on average: also the whole of view.json
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable
from decimal import ROUND_HALF_EVEN, Context
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict
from pydantic_core import PydanticCustomError

from holdfast.exact.formatting import format_exact
from holdfast.exact.parameters import exact_fraction
from holdfast.privacy.guarantee import AnswersNorm, AskedLaw, Found, Kind, LawName, Promise
from holdfast.privacy.parameters import DISTANCE
from holdfast.tables.measure import COUNTS, AnswerGrid, Measure, Neighbours, read_step

MAX_IDENTIFIER = 100
IDENTIFIER_PATTERN = rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_IDENTIFIER - 1}}}"
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

SIGNIFICANT_DIGITS = 6
"""Enough for any reader; few enough that the last bits of a platform's mathematics never show."""


def _nearest(value: float) -> float:
    return float(Context(prec=SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN).create_decimal(repr(value))) + 0.0  # no minus zero


def is_day(value: object) -> bool:
    """Whether this text is a day of the calendar, as year-month-day."""
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return False
    try:
        datetime.date.fromisoformat(value)
    except ValueError:
        return False
    return True


def real_date(value: str) -> str:
    if not is_day(value):
        raise PydanticCustomError("date", "not a day of the calendar")
    return value


def repeated_names(names: Iterable[str]) -> list[str]:
    """The names that are there more than once, each once. Linear: whoever made the file decides how many there are."""
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def with_holdfast(value: dict[str, str | int]) -> dict[str, str | int]:
    if missing := [name for name in ("holdfast", "python", "stream_version") if name not in value]:
        raise PydanticCustomError("software", "missing: {names}", {"names": ", ".join(missing)})
    return value


Identifier: TypeAlias = Annotated[str, Field(pattern=f"^{IDENTIFIER_PATTERN}$")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
Count: TypeAlias = Annotated[int, Field(ge=0)]
Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False), AfterValidator(_nearest)]
Spread: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False), AfterValidator(_nearest)]
# A list is accepted for a tuple, so that a card can be made from plain values; what is inside stays strict.
Texts: TypeAlias = Annotated[tuple[Text, ...], Strict(False)]
Settings: TypeAlias = dict[Text, str | int | Number | bool | None]
PublicFile: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$")]
Sha256: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
LedgerEntry: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{32}:[1-9][0-9]{0,17}:[0-9a-f]{64}$")]


class CardPart(BaseModel):
    """A part of a card, or the whole: frozen, checked when it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as JSON has them."""
        return self.model_dump(mode="json", by_alias=True)

    def to_json(self) -> str:
        """The text of a file: fields in the order of the schema, two blanks of indent, a newline at the end."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
    basis: Text = Field(description="How gamma is known: equalities, default, moves or gaussian.")
    blocks: Count = Field(description="Parts of the table that are drawn independently.")
    disrupted: Count = Field(description="How many of them have no two tables that one person tells apart: the nearest are further away.")
    destroyed: Count = Field(description="How many of them have one table only, whatever the totals, so that nothing is promised there.")
    why: Text = Field(description="The same in words.")
    posterior: Text = Field(
        description="What is promised of odds and beliefs, given the kept totals and the bounds, and on what condition."
    )


class LawInfo(CardPart):
    """The law of Gaussian noise, and what it costs."""

    asked: AskedLaw = Field(description="The law that was asked for.")
    name: LawName = Field(
        description="The law that is drawn. 'lattice': a block is drawn again until it is kept. 'sequential': a cell is final when drawn."
    )
    rho: Text = Field(description="What the lattice law of the same form costs for each unit of distance, exact.")
    kappa: Text = Field(description="The promise is for 1 + kappa times that, exact; 0 for the lattice law.")
    factor: Text = Field(description="How many times the variances are those that the whole budget buys under the lattice law, exact.")
    expected_tries: Spread | None = Field(
        description="Bound of the expected tries of a block drawn by the lattice law; null if that law was asked for."
    )
    blocks: Count = Field(description="Number of blocks drawn by the sequential law.")
    size: Count = Field(description="Cells of the one that decides kappa; 0 for the lattice law.")
    least_variance: Spread | None = Field(
        description="Smallest variance of a number of it, given those drawn before; null for the lattice law."
    )
    cells: Count = Field(description="How many of its numbers have that variance.")
    in_groups: bool = Field(description="Whether the last cells of its lines are a group, drawn again until it is kept; kappa is theirs.")
    text: Text = Field(description="The same in sentences, with the reason.")


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
    least_result: int = Field(description="The smallest count above 0 that can be published, before weights.")
    lowest_result: int = Field(description="The smallest count that can be published, before weights; it may be negative.")
    epsilon: Text = Field(description="From this epsilon on delta stops falling. Rounded up.")
    delta: Text = Field(description="The delta there, for two counts from `first` on that differ by one. Rounded up.")
    zero_delta: Text | None = Field(
        description="The delta between counts 0 and 1, whatever epsilon, since empty cells stay empty; null if count 1 has no noise."
    )
    distance: Text = Field(description="Distance of cell keys from uniform, in total variation, if record keys are; exact.")
    weighted: bool = Field(description="True if counts with noise were multiplied by the mean weight of their records.")
    other_noise: bool = Field(description="True if the publisher allowed other noise than earlier tables of the same records have.")


class WarningInfo(CardPart):
    """What every page says first, and louder than the rest."""

    kind: Literal["weak-budget", "no-guarantee", "little-noise", "test-key", "truncated", "no-limit"] = Field(
        description="'weak-budget': the promise allows best guesses that are nearly always right. 'no-guarantee': "
        "noise by cell keys promises no differential privacy. 'little-noise': most counts carry no "
        "noise. 'test-key': anyone can take the noise off. 'truncated': records of people with too many were left out. 'no-limit': no "
        "budget limits what all releases of the data cost together."
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
    law: LawInfo | None = Field(description="Which law of Gaussian noise was taken, and its price; null for other noise and for chains.")
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


class Bias(CardPart):
    """The mean of (view - true sum) over units of one level whose true sum is of one size, and the standard error of that mean."""

    level: Text = Field(description='A level of the table, kept totals or where they cross, by columns and levels; or "cell".')
    label: Text = Field(description="What it is called.")
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
    test_key: bool = Field(description="As on the card of the release.")
    identity: Text = Field(description="mechanism.identity of the release.")
    released_counts_sha256: Text = Field(description="SHA-256 of the released counts, 8 bytes each, lowest first.")
    column: Text = Field(description="Column that holds the view.")
    base: int = Field(description="Numbers are multiples of it.")
    nonnegative: bool = Field(description="Whether no number is negative.")
    levels: Annotated[tuple[str, ...], Strict(False)] = Field(description="The levels of the table, coarse to fine.")
    solver: Text | None = Field(description="What searched for whole numbers; null where no search was needed.")
    cells: Count = Field(description="Number of cells.")
    changed: Count = Field(description="Cells that differ from their released count.")
    bias: BiasInfo = Field(description="How far it is off on average.")


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
    test_key: bool = Field(description="As on every card.")
    ledger: LedgerEntry | None = Field(description="As on every card.")
    tables: Annotated[tuple[ListedTable, ...], Strict(False), Field(min_length=1, max_length=MOST_TABLES)] = Field(
        description="The tables."
    )
    gaps: Annotated[tuple[Gap, ...], Strict(False), Field(max_length=MOST_TABLES**2)] = Field(
        description="One for each pair of tables of which one has all columns of the other and more."
    )
