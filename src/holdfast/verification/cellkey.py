"""Anyone's check of a folder of the cell key method: files, tables, gaps between them, sentences and page, as far as they follow from the
published tables. Counts cannot be checked without the records and their keys.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from holdfast.card.parts import CardPart, Count, LedgerEntry, PublicFile, Sha256, Text
from holdfast.cellkey import Perturbed
from holdfast.cellkey.perturb import COUNT
from holdfast.cellkey.published import NoiseFacts, Rescaled, Settings
from holdfast.errors import HoldfastError, InvalidParameter, VerificationFailed
from holdfast.publication.cellkey import PAGE, SCHEMA, fields_text, published_json
from holdfast.publication.given_files import CELL_KEY_CARD as CARD
from holdfast.publication.given_files import NOT_SUCH_A_FILE, Unfit, check_digest, most_bytes, parse_json, read_json_text
from holdfast.publication.public_files import folder_problems
from holdfast.report.cellkey import perturbed_html
from holdfast.tables.formats import FORMATS
from holdfast.verification.inert import is_csv_of
from holdfast.verification.recompute import VerifiedCellKeys

_NOISE_PARTS = [part.name for part in fields(NoiseFacts)]
_OTHER_PARTS = [parts for size in range(len(_NOISE_PARTS) + 1) for parts in combinations(_NOISE_PARTS, size)]
"""In what the noise of earlier releases may be another; nothing first."""
_Whole = Annotated[str, Field(pattern=r"^[0-9]{1,40}$")]
_Fraction = Annotated[str, Field(pattern=r"^[0-9]{1,80}(/[0-9]{1,80})?$")]


class _Release(CardPart):
    id: Text
    dataset: Text
    private: bool
    ledger: LedgerEntry | None


class _Rescaled(CardPart):
    before: _Whole
    after: _Whole
    delta: float
    delta_before: float


class _Settings(CardPart):
    record_keys: Text
    modulus: _Whole
    size: _Whole
    mixed: bool
    distance: _Fraction
    table_key_size: _Whole
    weighted: bool
    rescaled: _Rescaled | None = None

    def settings(self) -> Settings:
        numbers = (int(self.modulus), int(self.size), self.mixed, Fraction(self.distance), int(self.table_key_size))
        given = self.rescaled
        rescaled = None if given is None else Rescaled(int(given.before), int(given.after), given.delta, given.delta_before)
        return Settings(self.record_keys, *numbers, self.weighted, rescaled)


class _PublishedTable(CardPart):
    name: Text
    file: PublicFile
    cells: Count


class CellKeyCard(CardPart):
    """What cellkey.json holds. Gaps and sentences are made again, whatever they hold."""

    schema_name: Literal["holdfast-cellkey/1"] = Field(alias="schema")
    method: Literal["cell keys"]
    release: _Release
    settings: _Settings
    tables: Annotated[list[_PublishedTable], Field(min_length=1, max_length=10_000)]
    gaps: Annotated[list[Any], Field(max_length=100_000)]
    text: Annotated[list[Text], Field(max_length=10_000)]
    distance_text: Text
    files: dict[PublicFile, Sha256]


assert SCHEMA in CellKeyCard.model_json_schema()["properties"]["schema"].values()


def verify_cell_keys(place: Path, against: object, signer: object) -> VerifiedCellKeys:
    """Check a folder that `holdfast cellkey perturb` wrote; VerificationFailed unless files, tables, sentences and page fit together."""
    if against is not None:
        raise InvalidParameter(
            "Tables by the cell key method keep no totals, so there is nothing to compare official ones with. Leave against out.",
            field="against",
        )
    if signer is not None:
        raise VerificationFailed("Cell key folders carry no signature: nothing shows who made this one. Leave signer out for the rest.")
    card = _read_card(place)
    found = list(_file_problems(place, card))
    if not found:
        frames = {table.name: _read_table(place, table) for table in card.tables}
        found = list(_content_problems(place, card, frames))
    if found:
        _fail(found)
    return VerifiedCellKeys(
        release_id=card.release.id,
        tables=len(card.tables),
        cells=sum(table.cells for table in card.tables),
        files=len(card.files),
        private=card.release.private,
        recomputed=("checksums", "sizes of tables", "gaps between tables", "sentences", "page"),
    )


def _fail(found: list[str]) -> None:
    raise VerificationFailed(
        f"The folder of the cell key method is not what its {CARD} says: {'; '.join(found[:10])}. Do not use it; ask its publisher for a "
        "complete copy."
    )


def _read_card(place: Path) -> CellKeyCard:
    try:
        text = read_json_text(place / CARD)
        values = parse_json(text)
        card = CellKeyCard.model_validate(values)
        if text == fields_text(values):
            return card
        problem = "is not written as Holdfast writes it"
    except Unfit as unfit:
        problem = str(unfit)
    except ValidationError as error:
        known = CellKeyCard.model_json_schema()["properties"]
        where = {str(one["loc"][0]) for one in error.errors() if one["loc"] and one["loc"][0] in known}
        problem = f"has missing, unknown or wrong values ({', '.join(sorted(where)) or 'at its top'})"
    except ValueError:
        problem = "is not JSON"
    raise VerificationFailed(f"{place.name!r} looks like a folder of the cell key method, but its {CARD} {problem}.")


def _file_problems(place: Path, card: CellKeyCard) -> Iterator[str]:
    cells = {table.file: table.cells for table in card.tables}
    if len(cells) < len(card.tables) or len({table.name for table in card.tables}) < len(card.tables):
        yield "two tables share a name or a file"
    for name in sorted({PAGE, *cells} - card.files.keys()):
        yield f"{name} has no checksum"
    yield from (f"{name} is listed, which is not a file of a publication" for name in card.files if name not in (PAGE, *cells))
    yield from folder_problems(place, {CARD, *card.files})
    for name, digest in card.files.items():
        try:
            check_digest(place / name, most_bytes(cells.get(name, 0), 50), digest)
        except Unfit as unfit:
            yield f"{name} {unfit}"


def _read_table(place: Path, table: _PublishedTable) -> Any:
    import pyarrow as pa

    try:
        frame = FORMATS["csv"].read(place / table.file)
        if COUNT not in frame.column_names or len(set(frame.column_names)) < frame.num_columns:
            raise ValueError("not the columns of a table")
        counts = frame.column(COUNT).cast(pa.int64())
    except NOT_SUCH_A_FILE:
        frame = None
    if frame is None:
        _fail([f"{table.file} cannot be read as a table of codes and counts"])
    assert frame is not None
    if frame.num_rows != table.cells:
        _fail([f"{table.file} has {frame.num_rows} cells instead of {table.cells}"])
    return frame.set_column(frame.column_names.index(COUNT), COUNT, counts)


def _content_problems(place: Path, card: CellKeyCard, frames: dict[str, Any]) -> Iterator[str]:
    """What cellkey.json and the page say and the tables do not bear out."""
    columns = {name: tuple(column for column in frame.column_names if column != COUNT) for name, frame in frames.items()}
    try:
        tables = Perturbed(frames, columns, card.settings.settings(), is_private=card.release.private)
        made = replace(tables.summary(card.release.id, card.release.dataset), ledger=card.release.ledger)
        again = [published_json(replace(made, other_noise=parts)) for parts in _OTHER_PARTS]
    except (HoldfastError, ArithmeticError):
        yield f"{CARD}: no tables can be made with these settings"
        return
    yield from (
        f"{table.file} is not written as Holdfast writes it"
        for table in card.tables
        if not is_csv_of(frames[table.name], card.files[table.file])
    )
    said = card.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for name in ("settings", "tables", "gaps", "distance_text"):
        if said[name] != json.loads(json.dumps(again[0][name])):
            yield f"{CARD}: {name} does not follow from the tables"
    parts = next((parts for parts, fields in zip(_OTHER_PARTS, again, strict=True) if fields["text"] == said["text"]), None)
    if parts is None:
        yield f"{CARD}: text is not that of these settings"
    elif (place / PAGE).read_bytes() != perturbed_html(replace(made, other_noise=parts)).encode():
        yield f"{PAGE} is not the page that follows from {CARD}"
