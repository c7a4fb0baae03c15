"""The card of a release: card.json, what was promised and how, in fields a program can check and words a reader can follow.

The models below are the schema; card.schema.json beside this file is made from them (`python -m holdfast.card.card` rewrites it).
A card holds public things only: nothing in it depends on the confidential counts, except the released counts' checksums.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, ConfigDict, Field, Strict, ValidationError
from pydantic_core import PydanticCustomError

from holdfast.card.parts import (
    MOST_TABLES,
    CardPart,
    Count,
    GridInfo,
    GuaranteeInfo,
    Identifier,
    LedgerEntry,
    PublicFile,
    Settings,
    Sha256,
    Spread,
    Text,
    Texts,
    WarningInfo,
    real_date,
    repeated_names,
    with_holdfast,
)
from holdfast.invariants.constraints import Constraint, constraint_of
from holdfast.ledger.disjoint import MAX_BECAUSE, MAX_FROM, Disjoint
from holdfast.tables.labels import ColumnLabels, Labels
from holdfast.tables.sampling import Over

SCHEMA_FILE = Path(__file__).with_name("card.schema.json")

SCHEMA_VERSION: Final = "5.0"
"""5.0: what pages say first (`warnings`); every cost names its distance; cell keys (`guarantee.keyed`); how cells are exposed, alone and
with other releases, and which are undecided; what is counted (`table.counted`), records left out (`table.over`), the step of a grid;
all tables of a release by cell keys (`release.tables`, `release.table_name`).
4.0: what is protected is called `protect`, one unit of distance `per_distance`; parameters always say what the budget is for;
a declaration of kept totals is a constraint, and sentences are in fields named `text`.
3.6: releases with which this one was declared to share no person, and why.
3.5: the promise as a list of sentences.
3.4: words for columns and codes.
3.3: the language of the pages, and what the ledger had granted.
3.2: real-valued answers on a grid; identifiers are as in run files; how formulas stand in CSV files.
3.1: cells under a kept total of 0 take no noise, and the relation of the promise says that no count is negative.
Noise conditioned on bounds: what they cost, public columns that they come from, tables within them.
3.0: kept.csv has a column for each column of the table, exposed.csv lists exposed cells, and tables mark them; the signer is named; the
promise has all that it rests on (chains, records); the budget as it was asked for, who publishes and who approved; whether the release was
recorded, in words.
2.0: relations as fields, parameters as they were asked for, and the identity of what is drawn."""


class GrantInfo(CardPart):
    """What had been granted for the data set when this release was reserved, all grants together."""

    kind: Literal["pure", "zcdp", "approximate"] = Field(description="What was granted: epsilon, rho, or epsilon with delta.")
    epsilon: Text | None = Field(description="Exact; null where only rho was granted.")
    rho: Text | None = Field(description="Exact; what an epsilon with delta was converted to. Null where only epsilon was granted.")
    delta: Text | None = Field(description="Exact; null where none was granted.")
    grants: Annotated[int, Field(ge=1)] = Field(description="How many grants there were.")
    approver: Text = Field(description="Who approved the last of them.")

    @property
    def numbers(self) -> dict[str, str]:
        """Those that were granted, by name."""
        named = {"epsilon": self.epsilon, "delta": self.delta, "rho": self.rho}
        return {name: value for name, value in named.items() if value is not None}


class DisjointInfo(CardPart):
    """A declaration that no person is in this table and in those of earlier releases of the data set. Nothing proves it."""

    releases: Annotated[Texts, Field(min_length=1, max_length=MAX_FROM)] = Field(
        alias="from", description="Identifiers of the earlier releases."
    )
    because: Annotated[Text, Field(max_length=MAX_BECAUSE)] = Field(description="Why no person is in both, as the office gave it.")

    @classmethod
    def of(cls, given: Disjoint) -> DisjointInfo:
        return cls.model_validate(given.to_fields())


class ReleaseInfo(CardPart):
    """Which release this is."""

    id: Identifier = Field(description="Identifier of the release, chosen by the office. One identifier names one release.")
    tables: Annotated[tuple[PublicFile, ...], Strict(False), Field(max_length=MOST_TABLES)] = Field(
        description="Names of all tables of the release, as in tables.json; empty for a release of one table."
    )
    table_name: PublicFile | None = Field(description="Which of these this card is of; null for a release of one table.")
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"), AfterValidator(real_date)] | None = Field(
        description="Date the office gave to the release, as year-month-day; null if it gave none. It is not read from a clock."
    )
    office: Text | None = Field(description="Who publishes it, as given; null if nothing was given.")
    approver: Text | None = Field(description="Who approved it, as given; null if nothing was given. A name here is not a signature.")
    test_key: bool = Field(
        description="True if the noise came from a test key that anyone can repeat: then nothing is protected, and the release must not be "
        "published. False if it came from a secret key; what that promises is in `guarantee`."
    )
    ledger: LedgerEntry | None = Field(description="Head of the budget ledger after this release was recorded; null if no ledger was used.")
    grant: GrantInfo | None = Field(description="What the ledger had granted for the data set; null without a ledger or a limit.")
    disjoint: DisjointInfo | None = Field(
        description="Earlier releases with which this one was declared to share no person: the ledger adds their charges only where "
        "other releases that may share people connect them; else the larger sum counts. Null if nothing was declared: then they add up."
    )
    ledger_text: Text = Field(description="Whether the release was recorded in a ledger, and what it means if not, in a sentence.")
    signer: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        description="Public key of the office that signs this card, as in the signature; null if it is not signed. A card that names a "
        "signer and has no signature was changed."
    )
    allow_exposed: Count | None = Field(
        description="How many cells the office allowed, before the draw, to be published as they are: the number that the kept totals fix "
        "by structure. Null if it was not asked."
    )
    language: Literal["en"] = Field(description="Language of the pages, as a code of ISO 639-1.")
    formulas: Literal["as they are", "marked"] = Field(
        description="How the CSV files write texts that a spreadsheet would run because they begin with = + - @: 'as they are', or "
        "'marked' with an apostrophe before them. 'as they are' where there are none."
    )


class TreeInfo(CardPart):
    """A code tree over one column."""

    column: Text = Field(description="The column whose codes are the leaves.")
    levels: Texts = Field(description="Names of the levels from the top; of those that no share names, only a signature protects the name.")
    parents: Annotated[tuple[Annotated[tuple[str, str | None], Strict(False)], ...], Strict(False)] = Field(
        description="Every code of the tree with the code above it, null at the top, in the order of the tree."
    )


class LabelInfo(CardPart):
    """What people call a column and its codes."""

    column: Text = Field(description="The column.")
    name: Text | None = Field(description="What it is called; null if by its own name.")
    by: Texts = Field(description="Columns whose codes together have a label, this column the last.")
    codes: Annotated[tuple[Annotated[tuple[Texts, Text], Strict(False)], ...], Strict(False)] = Field(
        description="Codes of these columns, and what they are called."
    )

    @classmethod
    def of(cls, given: ColumnLabels) -> LabelInfo:
        return cls(column=given.column, name=given.name, by=given.by, codes=tuple(given.codes.items()))


class PublicColumn(CardPart):
    """A column of whole numbers beside the codes that is public."""

    name: Text = Field(description="Its name.")
    values: Annotated[tuple[int, ...], Strict(False)] = Field(description="One number for each cell, in the order of the table.")


class TableInfo(CardPart):
    """The published table, as far as everyone may know it."""

    name: Text | None = Field(description="Name of the table; null if it was given none.")
    columns: Texts = Field(description="Columns whose codes name a cell, in the order of the table.")
    count: Text = Field(description="Column that holds the released count.")
    cells: Count = Field(description="Number of cells of the table, those with a count of zero included.")
    universe: Literal["declared", "as listed", "observed"] = Field(
        description="Where the list of cells comes from. 'declared': public, and the same whatever the data. 'as listed': the rows of the "
        "given table, in the order of their codes; nobody declared them public, so the list may tell which cells are not empty. "
        "'observed': the cells that occur in the data; then the list itself tells which cells are not empty."
    )
    universe_digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] = Field(
        description="SHA-256 of the public list of columns and cells, so that two releases can be seen to share it. Counts do not enter."
    )
    protect: Text = Field(description="Whose privacy is promised, such as person or household.")
    max_records: Annotated[int, Field(ge=1)] | None = Field(
        description="The most records one person (or what is protected) may have in the table; null if the promise is for one record."
    )
    over: Over = Field(
        description="What was done if somebody had more records than max_records. 'refuse': the table would have been refused. 'sample': "
        "a secret key chose max_records of them, and kept totals are those of the records that are counted."
    )
    counted: Text | None = Field(description="What the numbers are declared to count, in sentences; null for real-valued answers.")
    public_columns: Annotated[tuple[PublicColumn, ...], Strict(False)] = Field(
        description="Public columns of the table that bounds come from, in full. Else empty."
    )
    hierarchies: Annotated[tuple[TreeInfo, ...], Strict(False)] = Field(
        description="The code trees of the table, which say what lies in a unit."
    )
    labels: Annotated[tuple[LabelInfo, ...], Strict(False)] = Field(
        description="What columns and codes are called on pages; empty where they have no labels. Data files have the codes."
    )
    grid: GridInfo | None = Field(description="Where the table holds real-valued answers: their grid; null for counts.")

    def read_labels(self) -> Labels:
        """The labels as a table has them."""
        return Labels(tuple(ColumnLabels(given.column, given.name, given.by, dict(given.codes)) for given in self.labels))


class Revision(CardPart):
    """An earlier release of the same population that this one revises."""

    of: Identifier = Field(description="Identifier of the earlier release.")
    changed: Count = Field(description="Number of kept totals that differ from the earlier ones. Both are public: so is the difference.")
    totals: Texts = Field(description="The changed totals by name, before and now; a long list may be cut, the number never is.")


ZerosStatus: TypeAlias = Literal["open", "applied", "none"]


class ZerosInfo(CardPart):
    """Cells that take no noise because a kept total is 0 and counts are not negative."""

    status: ZerosStatus = Field(
        description="'applied' if there are such cells; 'none' if all cells are drawn; 'open' in a plan that knows no totals yet."
    )
    rule: Annotated[int, Field(ge=1)] = Field(description="Version of the rule that finds them from the kept constraints and totals.")
    cells: Count = Field(description="How many there are, without those that the kept totals fix whatever their values are.")
    under: Count = Field(
        description="How many cells lie under a kept total of 0, counted in the same way: those beyond `cells` are drawn like others. 0 "
        "where the mechanism leaves none out."
    )
    digest: Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")] | None = Field(
        description="SHA-256 of the numbers of all cells left out, counted from 0 in the order of the table, 8 bytes each, lowest first."
    )
    text: Text = Field(description="The same in a sentence.")


class KeptInfo(CardPart):
    """What holds exactly in the released table."""

    constraints: Texts = Field(description="Kept totals, as stated. Each is published without noise; every single total is in kept.csv.")
    identities: Texts = Field(description="Constraints that hold for every data set, such as structural zeros. They expose nothing.")
    definitions: Annotated[tuple[dict[str, Any], ...], Strict(False)] = Field(
        description="The constraints and identities in full, as plain values, so that a program can add up the table again."
    )
    revision: Revision | None = Field(description="The earlier release that this one revises; null if it revises none.")
    totals: Count = Field(description="Number of kept totals that the constraints make.")
    independent: Count = Field(description="How many of the kept sums do not follow from the others.")
    free_dimensions: Count = Field(description="Dimensions in which tables with the same kept totals can still differ.")
    zeros: ZerosInfo

    def read_constraints(self) -> tuple[Constraint, ...]:
        """The constraints and identities as the office declared them. Raises InvalidConstraint if a definition is not one."""
        return tuple(map(constraint_of, self.definitions))


class UndecidedInfo(CardPart):
    """Cells with equal bounds of which it is not decided whether the kept totals give them away."""

    cells: Count = Field(description="How many they are.")
    at_least: int | None = Field(description="What each holds at least; null if no bound is known.")
    at_most: int | None = Field(description="What each holds at most; null if no bound is known.")
    name: Text = Field(description="The first of them.")


class TogetherInfo(CardPart):
    """Cells that this release exposes together with earlier releases of the data set, and that none of them exposes alone."""

    releases: Texts = Field(description="Ids of the earlier releases.")
    by_structure: Count = Field(description="Cells of this table and of theirs, each once, that the kept totals of all fix.")
    by_values: Count = Field(description="Further such cells that the published values expose, since counts are not negative.")
    text: Text = Field(description="The same in sentences, with what could not be computed.")


class ExposedInfo(CardPart):
    """Cells that are published exactly because the kept totals fix them, whatever the budget."""

    cells: Count = Field(
        description="Number of exposed cells, alone or with earlier releases. All are listed in exposed.csv, and marked in the table."
    )
    by_structure: Count = Field(description="How many of them the kept totals fix whatever their values are.")
    by_values: Count = Field(description="How many more follow from the published values, since counts are not negative.")
    names: Texts = Field(description="A few of them by name: labels, or column and code.")
    columns: Texts = Field(description="Public columns of the table that bounds come from; they are in table.public_columns.")
    rule: Count = Field(description="Version of the rule that decides which cells the published values expose.")
    undecided: Count = Field(description="Number of cells of which it was not decided within the stated work whether they are exposed.")
    open: Annotated[tuple[UndecidedInfo, ...], Strict(False)] = Field(
        description="The largest classes of undecided cells, with their bounds."
    )
    together: TogetherInfo | None = Field(description="What it exposes together with earlier releases; null if none were looked at.")
    text: Text = Field(description="What is exposed, in a sentence.")


class MechanismInfo(CardPart):
    """How the noise is made."""

    name: Text = Field(description="Name of the mechanism.")
    parameters: Settings = Field(
        description="Its parameters. Those that decide privacy are exact: text that holds a whole number, a decimal or a fraction."
    )
    law: Text = Field(
        description="The probability law of the noise as a formula, complete enough to compute it; for a Markov chain, the law it aims at."
    )
    identity: Sha256 = Field(
        description="Digest of the law with its exact parameters, the list of cells and the kept constraints. Two releases of equal id and "
        "identity would be two noisy copies of one release."
    )


class ChainInfo(CardPart):
    """What was estimated about a Markov chain before anything was drawn, from coupled chains that saw no data."""

    kernel: Text = Field(description="The kind of step: metropolis or line_gibbs.")
    steps: Count = Field(description="Steps that a draw makes.")
    sweeps: Count = Field(description="The same in sweeps; a sweep touches every free dimension about once.")
    pairs: Count = Field(description="Pairs of coupled chains that were run, N. All of them met, or nothing would have been drawn.")
    lag: Count = Field(description="The lag between the two chains of a pair, in steps.")
    median_meeting: Count = Field(description="Steps after the lag within which half of the pairs met.")
    largest_meeting: Count = Field(description="Steps after the lag within which all pairs met.")
    eta: Text = Field(
        description="The total variation distance of one part from its stated law, as estimated: at most this. With 95 % confidence, for "
        "all shapes together, a pair takes longer than largest_meeting with a probability of at most this; that the distance is no larger "
        "after twice as many steps assumes that meeting times have a tail that falls like a geometric one."
    )


class SamplerGroup(CardPart):
    """Parts of the table of one shape, drawn in one way."""

    kind: Text = Field(description="Shape of these parts: free, exposed, one sum, grid, general.")
    blocks: Count = Field(description="Number of parts of this shape. Parts are drawn independently.")
    cells: Count = Field(description="Number of cells in them together.")
    sampler: Text = Field(description="How their noise is drawn.")
    expected_tries: Spread | None = Field(
        description="Tries a draw needs on average, known beforehand and the same for all data; null if there is no such number."
    )
    why: Text = Field(description="Why this sampler was taken.")
    chain: ChainInfo | None = Field(description="What was estimated about a Markov chain; null for an exact sampler.")


class SamplerInfo(CardPart):
    """How the noise was drawn from its law."""

    status: Literal["exact", "estimated"] = Field(
        description="'exact': what is drawn has exactly the stated law. 'estimated': the difference was estimated, at a stated confidence."
    )
    groups: Annotated[tuple[SamplerGroup, ...], Strict(False)] = Field(description="The parts of the table, by shape.")


class CellSpread(CardPart):
    """Standard deviation of the noise over the cells of the table."""

    smallest: Spread | None = Field(
        description="The standard deviation of the cell with the least noise; null if it depends on the data or was not found."
    )
    median: Spread | None = Field(
        description="The standard deviation of the cell in the middle; null if it depends on the data or was not found."
    )
    largest: Spread | None = Field(
        description="The standard deviation of the cell with the most noise; null if it depends on the data or was not found."
    )


class MarginSpread(CardPart):
    """Standard deviation of the noise in one kind of sum."""

    name: Text = Field(description="The sum, as stated.")
    standard_deviation: Spread | None = Field(
        description="Standard deviation of its noise; 0 if it is kept, null if it depends on the data or was not estimated."
    )


class LevelSpread(CardPart):
    """Standard deviation of the noise in one margin of all units of one level."""

    level: Text = Field(description="The level, as named.")
    margin: Text = Field(description="The columns of the margin, or total.")
    units: Count = Field(description="Number of units of the level.")
    smallest: Spread = Field(description="The standard deviation of the unit with the least noise; 0 if it is kept.")
    median: Spread = Field(description="The standard deviation of the unit in the middle.")
    largest: Spread = Field(description="The standard deviation of the unit with the most noise.")


ErrorFound: TypeAlias = Literal["exact", "upper bound", "approximate", "estimated", "not estimated", "unknown"]


class ExpectedError(CardPart):
    """How far released counts are from the true ones, known from the law alone; no true error is in it."""

    cell_standard_deviation: CellSpread = Field(description="Standard deviation of the noise of a cell.")
    found: ErrorFound = Field(
        description="How it was found: 'upper bound' is never below the true one, 'approximate' is near it without a proof, "
        "'estimated' is from draws of the public law, 'not "
        "estimated' would take too long; 'unknown' depends on the counts."
    )
    basis: Text = Field(description="The same in words, with the error of an estimate.")
    relative_error: Spread | None = Field(
        description="Relative standard error of figures that were estimated from draws of the public law; 0 for exact ones and bounds, "
        "null where the draws were too few to say."
    )
    text: Text = Field(description="The same in a sentence.")
    cells_not_estimated: Count = Field(description="Number of cells of which nothing is said, because draws of their noise take too long.")
    margins: Annotated[tuple[MarginSpread, ...], Strict(False)] = Field(description="Standard deviation of sums of cells, by name.")
    levels: Annotated[tuple[LevelSpread, ...], Strict(False)] = Field(
        description="Where the budget has shares for levels: the same for every level and margin. Else empty."
    )


class FileInfo(CardPart):
    """One public file beside the card."""

    sha256: Sha256 = Field(description="SHA-256 of the file, in hexadecimal digits.")
    bytes: Count = Field(description="Length of the file in bytes.")


class Signature(CardPart):
    """Signature of the card by the office."""

    algorithm: Literal["Ed25519"] = Field(description="The signature scheme.")
    public_key: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="The public key, 32 bytes in hexadecimal digits. Compare it with the key the office publishes elsewhere."
    )
    value: Annotated[str, Field(pattern=r"^[0-9a-f]{128}$")] = Field(
        description="Signature of the card without this field, as JSON with sorted keys, no white space, in UTF-8."
    )


class Card(CardPart):
    """What was released: kept, exposed, promised, drawn and written. Everything here is public."""

    model_config = ConfigDict(title="Card of a Holdfast release")

    schema_version: Literal["5.0"] = Field(description="Version of this schema.")
    release: ReleaseInfo = Field(description="Which release this is.")
    warnings: Annotated[tuple[WarningInfo, ...], Strict(False)] = Field(
        description="What every page says first; empty where nothing is wrong."
    )
    table: TableInfo = Field(description="The published table, as far as everyone may know it.")
    kept: KeptInfo = Field(description="What holds exactly in the released table.")
    exposed: ExposedInfo = Field(description="Cells that the kept totals publish exactly.")
    mechanism: MechanismInfo = Field(description="How the noise is made.")
    sampler: SamplerInfo = Field(description="How the noise was drawn from its law.")
    guarantee: GuaranteeInfo = Field(description="The promise.")
    expected_error: ExpectedError = Field(description="How far released counts are from the true ones, by the law alone.")
    software: Annotated[dict[Text, Text | int], AfterValidator(with_holdfast)] = Field(
        description="Versions of the software that made the release, and of the layout of its random streams (stream_version).",
        json_schema_extra={"required": ["holdfast", "python", "stream_version"]},
    )
    files: dict[PublicFile, FileInfo] = Field(
        description="The public files beside the card, by name, with length and checksum. A name holds no path.",
        json_schema_extra={"additionalProperties": False},
    )
    signature: Signature | None = Field(description="Signature of the card; null if it is not signed.")

    def to_be_signed_by(self, public_key: str | None) -> Card:
        """The same card, naming its signer."""
        return self.model_copy(update={"release": self.release.model_copy(update={"signer": public_key})})

    @property
    def marks_formulas(self) -> bool:
        return self.release.formulas == "marked"

    def with_marked_formulas(self) -> Card:
        """The same card, of CSV files in which formulas are marked."""
        return self.model_copy(update={"release": self.release.model_copy(update={"formulas": "marked"})})

    def with_files(self, files: dict[str, FileInfo]) -> Card:
        """The same card with the checksums of these files."""
        return self.model_copy(update={"files": files})

    @classmethod
    def from_json(cls, text: str) -> Card:
        """Read card.json. Raises pydantic's ValidationError; problems.py says the same in words."""
        card = cls.model_validate_json(text)
        # A field given twice is read differently by different programs, so it could show a reader something other than was signed.
        if twice := list(_find_repeated_names(text)):
            error = PydanticCustomError("repeated", "given more than once")
            raise ValidationError.from_exception_data("Card", [{"type": error, "loc": (name,), "input": None} for name in twice])
        # Reading rounds: digits that were put in later would be shown to a reader and missed by the signature.
        if json.loads(text) != card.to_dict():
            error = PydanticCustomError("digits", "more digits than a card has")
            raise ValidationError.from_exception_data("Card", [{"type": error, "loc": (), "input": None}])
        return card


class PlanInfo(CardPart):
    """What can be said of a release before any count is looked at: the parts of its card, with the totals' values left open."""

    warnings: Annotated[tuple[WarningInfo, ...], Strict(False)] = Field(
        description="What the pages would say first, as far as it is known."
    )
    cells: Count = Field(description="Number of cells of the table.")
    counted: Text | None = Field(description="What the numbers are declared to count, in sentences; null for real-valued answers.")
    kept: KeptInfo = Field(description="What will hold exactly.")
    exposed: ExposedInfo = Field(description="Cells that the kept totals publish exactly, as far as it is known.")
    mechanism: MechanismInfo = Field(description="How the noise is made.")
    sampler: SamplerInfo = Field(description="How the noise will be drawn from its law.")
    guarantee: GuaranteeInfo = Field(description="The promise.")
    expected_error: ExpectedError = Field(description="How far released counts will be from the true ones, by the law alone.")
    disjoint: DisjointInfo | None = Field(description="Earlier releases with which this one would be declared to share no person.")


def canonical_bytes(card: Card) -> bytes:
    """What a signature signs: the card without its signature, keys sorted, no white space, UTF-8."""
    values = card.to_dict()
    del values["signature"]
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


@functools.cache
def schema() -> dict[str, Any]:
    """JSON Schema of a card, as in card.schema.json. Made once: a card may have very many problems."""
    made = Card.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"urn:holdfast:card:{SCHEMA_VERSION}", **made}


def schema_text() -> str:
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _find_repeated_names(text: str) -> Iterator[str]:
    """Names that some object of a JSON text holds more than once."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        found.extend(repeated_names(name for name, _ in pairs))

    json.loads(text, object_pairs_hook=look)
    yield from dict.fromkeys(found)


if __name__ == "__main__":
    SCHEMA_FILE.write_text(schema_text(), encoding="utf-8")
    print(f"Wrote {SCHEMA_FILE.name}.")
