"""The cell key method for people: what a check of a perturbation table shows, and how perturbed tables are written and recorded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from holdfast.cellkey import Perturbed
from holdfast.cellkey.check import Check, DesignCheck
from holdfast.cellkey.published import FixedNoise, PublishedTables, Settings
from holdfast.errors import HoldfastError, InvalidParameter, OutputExists, OutputProblem
from holdfast.ledger import Charge, Ledger, NewLedger
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.state import sync_folder
from holdfast.publication.booking import EMBEDDED, RecordedIn, Unbooked, after_publication, compare_noise, find_book, with_noise
from holdfast.publication.folder import Output, follow_umask, output_problem, put_in_place, write_synced
from holdfast.publication.given_files import CELL_KEY_CARD as CARD
from holdfast.publication.order import UNNAMED
from holdfast.report.cellkey import cellkey_html, perturbed_html
from holdfast.tables.formats import is_formula, save_frame
from holdfast.wording.cellkey import (
    STOPPED,
    check_sentences,
    distance_sentence,
    gap_sentence,
    key_size_text,
    missed_sentence,
    published_sentences,
    standing_sentence,
)
from holdfast.wording.cellkey_losses import counts_text
from holdfast.wording.endings import Stands
from holdfast.wording.formulas import formulas_warning

logger = logging.getLogger(__name__)

PAGE = "report.html"
SCHEMA = "holdfast-cellkey/1"


def check_json(check: Check) -> dict[str, object]:
    """A check as JSON has it, with its sentences."""
    losses = {"counts": counts_text(check.losses), "worst": check.worst}
    losses |= {"plateau": check.losses.plateau, "plateau_epsilon": check.losses.plateau_epsilon, "zero_delta": check.zero_delta}
    return {
        "name": check.name,
        "table": asdict(check.table),
        "losses": losses,
        "rows": [asdict(row) for row in check.rows],
        **{"more_rows": check.more_rows, "before": check.before, "own": check.own},
        "key_sizes": [{**asdict(size), "text": key_size_text(size)} for size in check.key_sizes],
        "text": check_sentences(check),
    }


def design_json(made: DesignCheck) -> dict[str, object]:
    """A design as JSON has it, with the check of its table."""
    others = ("best", "smallest", "laplace")
    own = {field.name: getattr(made, field.name) for field in fields(made) if field.name not in (*others, "check")}
    return {
        **own,
        "others": {name: asdict(getattr(made, name)) for name in others},
        "missed": None if made.check.missed is None else missed_sentence(made.check.missed),
        "check": check_json(made.check),
    }


def published_json(made: PublishedTables) -> dict[str, object]:
    """What cellkey.json holds but for checksums: no true count, key or noise enters."""
    return {
        "release": {"id": made.release_id, "dataset": made.dataset, "private": made.private, "ledger": made.ledger},
        **{"schema": SCHEMA, "method": "cell keys", "settings": _settings_json(made.settings)},
        "tables": [asdict(table) for table in made.tables],
        "gaps": [{**asdict(gap), "mean": str(gap.mean), "text": gap_sentence(gap)} for gap in made.gaps],
        "text": published_sentences(made),
        "distance_text": distance_sentence(made.settings),
    }


def _settings_json(settings: Settings) -> dict[str, object]:
    """Numbers as texts: JSON readers may round large ones."""
    said = {**asdict(settings), **{name: str(getattr(settings, name)) for name in ("modulus", "size", "distance", "table_key_size")}}
    if settings.rescaled is None:
        del said["rescaled"]
    else:
        said["rescaled"] |= {"before": str(settings.rescaled.before), "after": str(settings.rescaled.after)}
    return said


def save_page(check: Check, path: Path) -> None:
    """Write the page of a check; an existing file is left as it is."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(cellkey_html(check))
        taken = False
    except FileExistsError:
        taken = True
    except OSError as error:
        raise output_problem(error, path) from None
    if taken:
        raise OutputExists(f"{path.name!r} exists and is left as it is. Choose another name.")


def check_place(folder: Path) -> None:
    """Refuse a folder or file that could not be written, before anything is read."""
    if os.path.lexists(folder):
        raise OutputExists(f"{folder.name!r} already exists. Choose another name.")
    if not folder.absolute().parent.is_dir():
        raise OutputProblem(f"The folder that should hold {folder.name!r} does not exist. Create it first.")


def standing(
    ledger: Ledger | NewLedger | None, dataset: str, release_id: str, folder: Path, options: Sequence[str]
) -> Callable[[], Stands]:
    """A function that says what is true of a release that was stopped: from the ledger, and from whether its folder is there. `options`:
    how the ledger is named in other commands.
    """

    def tell() -> Stands:
        found = None if ledger is None else ledger.reservation(dataset, release_id)
        is_there = folder.exists()
        return Stands(standing_sentence(None if found is None else found.state, is_there, dataset, release_id, options), is_there)

    return tell


def save_perturbed(
    made: Perturbed,
    folder: str | os.PathLike[str],
    *,
    release_id: str | None = None,
    dataset: str | None = None,
    ledger: RecordedIn = EMBEDDED,
    other_noise: bool = False,
    other_records: str | None = None,
) -> PublishedTables:
    """Record tables in the ledger as a cell key release and write their folder; an existing folder is refused.

    Given:       release_id: by default the name of the folder. dataset: by default that of the data. ledger: as for hf.release; None
                 records nothing. other_noise: publish though earlier releases have another secret, column, rule or perturbation
                 table. other_records: why these are other records than those of other data sets in the ledger; it is recorded.
    Guarantees:  the folder appears whole or not at all, and not before the ledger has recorded it. What is stopped before the folder is
                 complete is voided: the same may be saved again. No guarantee is added to the account.
    Refused:     noise that is another than that of earlier cell key releases: of the data set, unless other_noise; of any other in
                 the ledger, unless other_noise or other_records. Asked in the transaction that records the release. Tables of which
                 nothing says what fixes their noise.
    """
    if made.noise is None:
        raise InvalidParameter("These tables do not say what fixes their noise. Save what hf.cellkey.perturb returned.")
    fixed = FixedNoise(made.noise, other_noise, other_records)
    place, book = Path(folder), find_book(ledger)
    output = Output(place)
    check_place(place)
    if book is not None:
        book.check_witness()
    codes = {column: frame.column(column).to_pylist() for frame in made.tables.values() for column in frame.column_names[:-1]}
    if risky := [column for column, texts in codes.items() if any(map(is_formula, (column, *texts)))]:
        logger.warning("%s", formulas_warning(risky, can_mark=False))
    published = made.summary(release_id or place.name, dataset or made.dataset or UNNAMED)
    book = book.make() if isinstance(book, NewLedger) else book
    held = None
    if book is not None:
        held, other = _reserve(book, published, fixed)
        published = replace(published, ledger=held.head, other_noise=other)
    try:
        with Unbooked().exclusive_folder(output) as temporary:
            _fill(temporary, made, published)
            if book is not None and held is not None:
                held = book.commit(book.stage(book.start_drawing(held), _checksum(temporary)))
            put_in_place(temporary, output)
    except BaseException as error:
        if book is not None and held is not None and held.state == "reserved":
            with contextlib.suppress(HoldfastError):  # committed after all: it stays as it is
                book.void(held, STOPPED)
        if isinstance(error, OSError):
            raise output_problem(error, place) from None
        raise
    if book is not None and held is not None:
        with after_publication(resumable=False):
            book.close(book.publish(held))
    return published


def _reserve(book: Ledger, made: PublishedTables, noise: FixedNoise) -> tuple[Reservation, tuple[str, ...]]:
    """Record the release, and in which parts its noise is another than that of earlier ones. There is no key to seal and nothing to resume:
    the same records give the same tables again.
    """
    facts = with_noise(ReleaseFacts(others={"method": "cell keys", "tables": [table.name for table in made.tables]}), noise)
    other: tuple[str, ...] = ()

    def compare(earlier: list[Reservation]) -> None:
        nonlocal other
        other = compare_noise(earlier, made.dataset, noise)

    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    held = book.reserve(
        made.dataset,
        made.release_id,
        Charge("cell-key"),
        facts,
        sealed_key=None,
        input_digest="cell keys: none",
        now=now,
        check_earlier=compare,
    )
    return held, other


def _fill(folder: Path, made: Perturbed, published: PublishedTables) -> None:
    for name, frame in made.tables.items():
        save_frame(frame, folder / f"{name}.csv")
    write_synced(folder / PAGE, perturbed_html(published).encode())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    write_synced(folder / CARD, fields_text({**published_json(published), "files": files}).encode())
    follow_umask(folder, CARD)
    sync_folder(folder)
    sync_folder(folder.parent)


def fields_text(values: Mapping[str, object]) -> str:
    """The text of cellkey.json."""
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def _checksum(folder: Path) -> str:
    return f"sha256:{hashlib.sha256((folder / CARD).read_bytes()).hexdigest()}"
