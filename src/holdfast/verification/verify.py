"""Anyone's check of a published folder, from its files alone: card, checksums, signature, every kept total added up again, and all that the
card, the table and the pages say made again from the part that it follows from (recompute.py).

The folder may be hostile. Only plain files are opened, none is read that is larger than the card's own numbers allow, and what a message
repeats of it is escaped and stands in quotes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from pydantic import ValidationError

from holdfast.card.card import Card
from holdfast.card.parts import TableSet, ViewInfo, measure_of
from holdfast.card.problems import other_version, problems
from holdfast.display import printable, shorten, step
from holdfast.errors import HoldfastError, InvalidParameter, VerificationFailed
from holdfast.invariants.constraints import constraint_of
from holdfast.invariants.rows import Kept, RowFamily, Rows, broken_identities, compile_rows
from holdfast.lattices import Lattice
from holdfast.mechanisms import MECHANISMS
from holdfast.publication.folder import card_digest, has_formulas
from holdfast.publication.given_files import (
    CARD,
    TABLES,
    Unfit,
    main_file,
    most_bytes,
    parse_json,
    read_json_text,
    read_plain,
)
from holdfast.publication.listings import EXPOSED_FILE, KEPT_FILE, KeptLine, kept_lines, read_kept
from holdfast.publication.map_files import MAP_FILE
from holdfast.publication.order import KeptRow
from holdfast.publication.public_files import PAGES, file_problems, set_problems
from holdfast.publication.publication import Folder, Publication
from holdfast.publication.signing import check_signed_by, signature_problems
from holdfast.publication.tables import describe_tables, find_gaps
from holdfast.publication.view import NO_VIEW, VIEW, VIEW_FILE, form_problems, made_again
from holdfast.report.page import is_suppressed
from holdfast.tables import Table, Universe
from holdfast.tables.formats import FORMATS, unmark_frame
from holdfast.tables.machine import check_memory
from holdfast.tables.measure import Measure
from holdfast.verification.inert import csv_digest, not_inert
from holdfast.verification.official import compare_with
from holdfast.verification.recompute import (
    DECLARED,
    Verified,
    bounds_problems,
    card_problems,
    exposed_problems,
    is_same_version,
    kept_problems,
    page_problems,
    read_areas,
    recompute,
    table_problems,
)
from holdfast.verification.refusals import fail, read_guarded, show_problems
from holdfast.verification.table_files import TableFile, TableRows, TextSizes, have_same_rows, read_rows
from holdfast.wording.verification import name_phrase, other_version_phrase, strict_sentence

Array: TypeAlias = np.ndarray[Any, Any]
T = TypeVar("T")

NO_SUCH_RELEASE = (HoldfastError, ValueError, OverflowError)
"""What making a release again raises on fields that no release has: refusals of ours, and numbers beyond 64 bits."""
FIELD_MEMORY = 8
"""Bytes that a field of the table takes while it is checked."""


def verify(
    folder: str | os.PathLike[str],
    against: Table | str | os.PathLike[str] | None = None,
    *,
    signer: str | os.PathLike[str] | None = None,
    strict: bool = False,
) -> Verified:
    """Check a published folder: of one table, or of several with the list of them.

    Given:       `against`: official totals, as a Table or a file: columns of codes and one of numbers (a margin that the release keeps, or
                 the whole table, of which only the kept totals are compared), or a list with kept, name, total, such as kept.csv.
                 `signer`: a public key in PEM that must have signed the card.
                 `strict`: whatever could not be compared (`left` of the result) is a failure, too.
    Guarantees:  VerificationFailed, with every difference found, unless card, checksums, signature, tables and totals all agree, and
                 guarantee, exposure, standard deviations, sentences and pages are those that follow from the rest. Pages and sentences are
                 compared where the card names this version of Holdfast; of any other version pages are inert, and the promise in words is
                 that in sentences. What follows from nothing (ONLY_SIGNED) a signature alone protects; how far one person can move
                 real-valued answers (DECLARED) is taken as declared.
    """
    place = _check_arguments(folder, against, signer)
    with _escape_messages():
        if main_file(place) == CARD:
            return _say_verified(place, *_check_folder(place, signer), against, signer, strict)
        if against is not None:
            raise InvalidParameter(
                "Tables by the cell key method keep no totals, so there is nothing to compare official ones with. Leave against out.",
                field="against",
            )
        found = _check_set(place, signer)
        each = [_say_verified(place / name, made, made.table.counts, None, signer, strict) for name, made in found.items()]
        return replace(
            each[0],
            cells=sum(one.cells for one in each),
            files=1 + sum(1 + one.files for one in each),
            tables=len(each),
            recomputed=("gaps between tables", *each[0].recomputed),
            left=tuple(dict.fromkeys(text for one in each for text in one.left)),
        )


def _check_set(place: Path, signer: str | os.PathLike[str] | None) -> dict[str, Publication]:
    """Each of several tables. VerificationFailed unless all agrees."""
    listed = _read_set(place)
    if found := list(set_problems(place, listed, whole=False)):
        fail(found)
    tables = {}
    for table in listed.tables:
        try:
            tables[table.name] = _check_folder(place / table.name, signer)[0]
        except VerificationFailed as refused:
            problem = str(refused)
        else:
            continue
        raise VerificationFailed(f"Table {table.name}: {problem}")
    if found := list(_set_problems(listed, tables)):
        fail(found)
    return tables


def _read_set(place: Path) -> TableSet:
    try:
        text = read_json_text(place / TABLES)
        parse_json(text)
        return TableSet.model_validate_json(text)
    except Unfit as unfit:
        problem = str(unfit)
    except ValidationError as error:
        where = {str(one["loc"][0]) for one in error.errors() if one["loc"] and one["loc"][0] in TableSet.model_json_schema()["properties"]}
        problem = f"has missing, unknown or wrong values ({', '.join(sorted(where)) or 'at its top'})"
    except (ValueError, RecursionError):
        problem = "is not JSON"
    raise VerificationFailed(f"{place.name!r} looks like a release of several tables, but its {TABLES} {problem}.")


def _set_problems(listed: TableSet, tables: Mapping[str, Publication]) -> Iterator[str]:
    """What tables.json says and its tables do not bear out."""
    first = next(iter(tables.values())).card
    for name, made in tables.items():
        if made.plan.guarantee.keyed is None:
            yield f"{name} is not by the cell key method"
        if made.card.release.table_name != name:
            yield f"{name} has the name {made.card.release.table_name} on its card"
        about = made.card.release.model_copy(update={"table_name": first.release.table_name})
        if (about, made.card.mechanism.parameters) != (first.release, first.mechanism.parameters):
            yield f"{TABLES}: {name} and {next(iter(tables))} are not of one release"
    if first.release.tables != tuple(tables):
        yield f"{TABLES}: the cards list other tables: {', '.join(first.release.tables)}"
    digests = {table.name: table.card for table in listed.tables}
    again = describe_tables(tables, digests, find_gaps({name: made.table for name, made in tables.items()}))
    said = listed.to_dict()
    yield from (f"{TABLES}: {name} does not follow from the tables" for name, value in again.to_dict().items() if said[name] != value)


def _say_verified(
    place: Path,
    again: Publication,
    solution: Array | None,
    against: Table | str | os.PathLike[str] | None,
    signer: str | os.PathLike[str] | None,
    strict: bool,
) -> Verified:
    card, left = again.card, tuple(_name_unchecked(place, again.card, solution))
    number = None
    if against is not None:
        number, differences = compare_with(against, again)
        if differences:
            raise VerificationFailed(f"The release does not agree with the official totals: {show_problems(differences)}.")
    if strict and left:
        raise VerificationFailed(strict_sentence(left))
    key = None if card.signature is None else card.signature.public_key
    return Verified(
        release_id=card.release.id,
        cells=card.table.cells,
        totals=len(again.kept_rows),
        files=len(card.files),
        private=not card.release.test_key,
        signed_by=None if signer is None else key,
        unchecked_key=key if signer is None else None,
        official_totals=number,
        suppressed=is_suppressed(card),
        keyed=card.guarantee.keyed is not None,
        recomputed=tuple(_made_again(card, solution)),
        left=left,
        declared=() if card.table.grid is None else DECLARED,
    )


def load(folder: str | os.PathLike[str], *, signer: str | os.PathLike[str] | None = None, table: str | None = None) -> Publication:
    """A published folder, read and verified as `verify` does: VerificationFailed, with every difference found, where it is not what its
    card says. `signer`: a public key in PEM that must have signed the card; without it the folder may be anyone's.
    `table`: of a release of several tables, the name of one; all are verified.
    """
    place = _check_arguments(folder, signer=signer)
    with _escape_messages():
        if table is None:
            return _check_folder(place, signer)[0]
        found = _check_set(place, signer)
        if table not in found:
            raise InvalidParameter(f"{shorten(repr(table))} is not a table of this release. It has {', '.join(found)}.", field="table")
        return found[table]


def _check_arguments(folder: object, against: object = None, signer: object = None) -> Path:
    """The folder; refuses what is no path, and what else may be given beside it."""
    if not isinstance(folder, str | os.PathLike):
        raise InvalidParameter(f"A published folder is given by its path. Got {shorten(repr(folder))}.")
    if not isinstance(against, Table | str | os.PathLike | None):
        raise InvalidParameter(f"Official totals are a Table, or the path of a file. Got {shorten(repr(against))}.", field="against")
    if not isinstance(signer, str | os.PathLike | None):
        raise InvalidParameter(f"A signer is given by the path of a public key. Got {shorten(repr(signer))}.", field="signer")
    return Path(folder)


@contextmanager
def _escape_messages() -> Iterator[None]:
    """Write a message about a folder on one line, with what does not print escaped: a card cannot speak in our place."""
    try:
        yield
    except HoldfastError as error:
        error.args = (printable(str(error)),)
        raise


@step("Verifying")
def _check_folder(place: Path, signer: str | os.PathLike[str] | None) -> tuple[Publication, Array | None]:
    """What `recompute` makes of a folder. VerificationFailed unless all agrees."""
    card = _read_card(place)
    needed = FIELD_MEMORY * card.table.cells * (len(card.table.columns) + 3)
    check_memory(needed, f"Checking {card.table.cells:,} cells, as the card has,", "Verify the folder on a larger machine.")
    found = [*file_problems(place, card), *signature_problems(card)]
    if found:
        fail(found)
    check_signed_by(card, signer)
    measure = _measure(card)
    first, *others = (TableFile(place, card, made.name, measure) for made in FORMATS.values() if f"table{made.suffix}" in card.files)
    lines = read_guarded(KEPT_FILE, lambda: read_kept(place / KEPT_FILE, card.table.columns, measure, marked=card.marks_formulas))
    try:
        rows = read_rows(first)
        kept = compile_rows(replace(rows.universe, support=card.table.universe), list(map(constraint_of, card.kept.definitions)))
        found = [*_other_files(rows, first, others), *_table_problems(card, measure, lines, kept, rows)]
    except HoldfastError as error:
        found = [f"table and constraints do not fit together: {shorten(str(error), 300).rstrip('.')}"]
    if found:
        fail(found)
    area_map = _content(place, card, MAP_FILE) if MAP_FILE in card.files else None
    read = Folder(card, _plain(lines), card_digest(place) or "", _content(place, card, EXPOSED_FILE), area_map)
    again, solution = _recompute_promise(read, kept.universe, rows)
    if found := list(_recomputed_problems(place, again, solution, first, rows)):
        fail(found)
    return again, solution


@step("Recomputing the promise")
def _recompute_promise(folder: Folder, universe: Universe, rows: TableRows) -> tuple[Publication, Array | None]:
    try:
        return recompute(folder, universe, rows.counts, rows.published)
    except NO_SUCH_RELEASE as error:
        said = str(error) if isinstance(error, HoldfastError) else "a number in it is too large, or no table has these totals"
    if (name := folder.card.mechanism.name) not in MECHANISMS:
        said = f"the mechanism {shorten(name)!r} is not known here; load the package that registers it"
    raise VerificationFailed(f"The promise of the card cannot be made again from its fields: {shorten(said, 600)}")


def _recomputed_problems(place: Path, again: Publication, solution: Array | None, file: TableFile, rows: TableRows) -> Iterator[str]:
    of_card = list(card_problems(again, solution))
    yield from of_card
    yield from bounds_problems(again, solution)
    yield from table_problems(again, solution, file.pieces(codes=False))
    if rows.csv is not None and rows.csv != again.card.files["table.csv"].sha256:
        yield "table.csv is not written as Holdfast writes it"
    yield from kept_problems(again, _content(place, again.card, KEPT_FILE))
    yield from read_guarded(EXPOSED_FILE, lambda: list(exposed_problems(again, solution, _content(place, again.card, EXPOSED_FILE))))
    content = {name: _content(place, again.card, name) for name in PAGES}
    yield from (
        f"{name} has what no page of Holdfast has: {found}" for name, page in content.items() if (found := not_inert(page)) is not None
    )
    of_view = list(_view_problems(place, again))
    yield from of_view
    areas = read_areas(again, _content(place, again.card, MAP_FILE)) if MAP_FILE in again.card.files else None
    if areas is None and MAP_FILE in again.card.files:
        yield f"{MAP_FILE} is no map of this release, or holds more than its outlines and codes"
    elif is_same_version(again.card) and not of_card and not of_view:  # of a card that is no card of a release no page can be made
        yield from page_problems(again, content, areas, _view_info(place, again.card))


def _content(place: Path, card: Card, name: str) -> bytes:
    return read_guarded(name, partial(read_plain, place / name, card.files[name].bytes))


def _view_value(place: Path, card: Card) -> Any:
    """What view.json holds; None where there is no view."""
    return None if VIEW_FILE not in card.files else read_guarded(VIEW_FILE, lambda: parse_json(read_json_text(place / VIEW_FILE)))


def _view_info(place: Path, card: Card) -> ViewInfo | None:
    """What view.json says, once it was found to be one; None where there is no view."""
    said = _view_value(place, card)
    return None if said is None else ViewInfo.model_validate(said)


def _view_problems(place: Path, again: Publication) -> Iterator[str]:
    """A publication view in the folder that does not follow from the table."""
    card = again.card
    if VIEW_FILE not in card.files:
        return
    if wrong := form_problems(_view_value(place, card)):
        yield from wrong
        return
    said = _view_info(place, card)
    assert said is not None
    view = made_again(said, again.plan, again.table, card.release.id, not card.release.test_key)
    if view is None:
        yield NO_VIEW
        return
    wrong = list(view.file_problems(said, same_text=is_same_version(card)))
    if not wrong and _content(place, card, VIEW_FILE) != said.to_json().encode():
        wrong.append(f"{VIEW_FILE} is not written as Holdfast writes it")
    yield from wrong
    for form in FORMATS.values():
        name = f"{VIEW}{form.suffix}"
        if name not in card.files:
            continue
        if read_guarded(name, partial(form.rows, place / name)) not in (None, card.table.cells):
            yield f"{name} has another number of rows than the table"
            continue
        frame = read_guarded(name, partial(_read_view, place / name, card))
        if not read_guarded(name, partial(view.holds_in, frame)):
            yield f"{name} is not the view that follows from the table"
        elif form.name == "csv" and csv_digest([view.frame], marked=card.marks_formulas) != card.files[name].sha256:
            yield f"{name} is not written as Holdfast writes it"


def _read_view(path: Path, card: Card) -> Any:
    """Return a table of a publication view, whose codes are texts. Raise ValueError if they are not."""
    codes = len(card.table.columns)
    frame = FORMATS[path.suffix.removeprefix(".")].read(path)
    TextSizes(min(codes, frame.num_columns), most_bytes(frame.num_rows, frame.num_columns)).add(frame)
    return unmark_frame(frame, codes) if card.marks_formulas and path.suffix == ".csv" else frame


def _made_again(card: Card, solution: Array | None) -> Iterator[str]:
    yield "promise"
    if solution is not None:
        yield "exposure"
    yield from ("samplers", "standard deviations", *(("sentences", "pages") if is_same_version(card) else ()))
    if VIEW_FILE in card.files:
        yield "publication view"


def _name_unchecked(place: Path, card: Card, solution: Array | None) -> Iterator[str]:
    if not is_same_version(card):
        yield other_version_phrase(card.software["holdfast"])
    if solution is None:
        yield "exposure, because counts of a large table are left out"
    if card.sampler.status == "estimated":
        yield "how the coupled chains met, which would take as long as before the draw"


def _read_card(place: Path) -> Card:
    if main_file(place) == TABLES:
        names = ", ".join(table.name for table in _read_set(place).tables)
        raise VerificationFailed(
            f"{place.name!r} holds several tables: {names}. Give the folder of one of them, or in Python its name: table=."
        )
    name = os.path.basename(os.path.abspath(place))  # "." has none of its own
    if not place.is_dir():
        wrong_kind = f"{name!r} is a file, not a folder" if place.exists() else f"There is no folder {name!r}"
        raise VerificationFailed(f"{wrong_kind}. Give the folder that `holdfast release` wrote.")
    try:
        text = read_json_text(place / CARD)
    except Unfit as unfit:
        raise VerificationFailed(
            f"{name!r} has no readable {CARD}: it {unfit}. Give the complete folder that `holdfast release` wrote."
        ) from None
    wrong = problems(text)
    if wrong and (version := other_version(text)) is not None:
        raise VerificationFailed(
            f"The card has schema version {version!r}, which this version of Holdfast does not read. Verify with the version named under "
            "software in the card."
        )
    if wrong:
        fail([f"{CARD}: {line.rstrip('.')}" for line in wrong])
    return Card.from_json(text)


def published_rows(folder: str | os.PathLike[str], *, signer: str | os.PathLike[str] | None = None) -> tuple[str, list[KeptRow]]:
    """(identifier, kept rows) of a published folder, after its files were checked against its card, and the card's signature."""
    place = Path(folder)
    with _escape_messages():
        card = _read_card(place)
        if found := [*file_problems(place, card), *signature_problems(card)]:
            fail(found)
        check_signed_by(card, signer)
        return card.release.id, _plain(
            read_guarded(KEPT_FILE, lambda: read_kept(place / KEPT_FILE, card.table.columns, _measure(card), marked=card.marks_formulas))
        )


def _plain(lines: list[KeptLine]) -> list[KeptRow]:
    return [(line.constraint, line.name, line.total) for line in lines]


def _other_files(rows: TableRows, first: TableFile, others: list[TableFile]) -> Iterator[str]:
    """Files with another table than the first; a CSV file that a release would write of that one need not be read."""
    for other in others:
        if not (other.kind == "csv" and rows.csv == first.card.files[other.name].sha256) and not have_same_rows(first, other):
            yield f"{other.name} and {first.name} differ"


def _measure(card: Card) -> Measure:
    with suppress(InvalidParameter):
        return measure_of(card.table.grid)
    fail([f"{CARD}: table.grid is the grid of no answers"])


def _table_problems(card: Card, measure: Measure, lines: list[KeptLine], kept: Kept, rows: TableRows) -> Iterator[str]:
    counts, published = rows.counts, rows.published
    if f"sha256:{kept.universe.digest()}" != card.table.universe_digest:
        yield "the table has other cells, or another order of cells, than the card says"
    if card.marks_formulas and not has_formulas(kept.universe, card.table.count, _plain(lines)):
        yield f"{CARD}: release.formulas is 'marked', and no text is one"
    yield from _published_problems(card, kept, published)
    yield from broken_identities(kept, counts, published)
    families = [family for family in kept.rows if family.kind == "kept"]
    if kept_lines(kept) != [line[:3] for line in lines] or len(lines) != card.kept.totals:
        yield "kept.csv does not list the totals that the card states"
        return
    sums = [zip(family.totals(counts).tolist(), _whole(family, published), strict=True) for family in families]
    for line, (total, is_whole) in zip(lines, chain.from_iterable(sums), strict=True):
        if is_whole and line.total != total:
            here, there = map(measure.text, (total, line.total))
            yield f"{name_phrase(line.name)}: the table adds up to {here}, kept.csv says {there}"


def _published_problems(card: Card, kept: Kept, published: Array) -> Iterator[str]:
    """Suppression publishes the cells that the kept totals fix, every other mechanism all of them."""
    expected = np.ones(len(published), dtype=np.bool_)
    if is_suppressed(card):
        expected[:] = False
        expected[Lattice.from_kept(kept).exposed_cells] = True
    if missing := int((expected & ~published).sum()):
        yield f"{missing} counts are missing in the table"
    if surplus := int((published & ~expected).sum()):
        yield f"{surplus} counts are in the table that suppression leaves out"


def _whole(rows: Rows, published: Array) -> Array:
    """Which sums are over published cells only: the others add up to nothing."""
    if published.all():
        return np.ones(rows.count, dtype=np.bool_)
    if isinstance(rows, RowFamily):
        return np.asarray(rows.totals((~published).astype(np.int64)) == 0)
    return np.asarray(abs(rows.matrix) @ (~published).astype(np.int64) == 0)
