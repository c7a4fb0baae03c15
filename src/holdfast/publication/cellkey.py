"""The cell key method for people: what a check of a perturbation table shows, and how perturbed tables are written and recorded."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from holdfast.cellkey import NoiseLaw, PerturbationRow, PerturbationTable, Perturbed, truncated_laplace
from holdfast.cellkey.design import Design
from holdfast.cellkey.keys import KeySpace
from holdfast.cellkey.perturb import has_same_law
from holdfast.errors import HoldfastError, InvalidParameter, LedgerProblem, OutputExists, OutputProblem
from holdfast.ledger import Charge, Ledger, NewLedger
from holdfast.ledger.releases import ReleaseFacts, Reservation
from holdfast.ledger.state import sync_folder
from holdfast.ledger.values import text_of
from holdfast.publication.booking import EMBEDDED, RecordedIn, Unbooked, after_publication, find_book
from holdfast.publication.folder import Output, follow_umask, output_problem, put_in_place, write_synced
from holdfast.publication.given_files import CELL_KEY_CARD as CARD
from holdfast.publication.order import UNNAMED
from holdfast.report.cellkey import cellkey_html, perturbed_html
from holdfast.tables.formats import save_frame
from holdfast.tables.formulas import is_formula
from holdfast.wording.cellkey import (
    STOPPED,
    distance_sentence,
    gap_sentence,
    key_size_text,
    meaning_sentences,
    missed_sentence,
    other_noise_refusal,
    other_noise_sentence,
    other_records_refusal,
    perturbed_sentences,
    standing_sentence,
)
from holdfast.wording.cellkey_losses import counts_text
from holdfast.wording.endings import Stands
from holdfast.wording.formulas import formulas_warning

logger = logging.getLogger(__name__)

KEY_SIZES = (2**8, 2**16, 2**32, 2**64)
PAGE = "report.html"
POINTS = 24
"""Points of a curve."""
SHOWN_ROWS = 60
SCHEMA = "holdfast-cellkey/1"


def check_fields(table: PerturbationTable, *, name: str, law: Design | None = None) -> dict[str, Any]:
    """Everything that a check shows, JSON-ready.

    Given:       law: the design that was rounded to keys, where that is known: its curve is shown too, and the table for every key size.
                 Else the table's own, and sizes that only refine it are left out.
    Guarantees:  figures of losses are rounded up. Empty cells stay empty, as `perturb` keeps them: what that tells is a figure of its own.
    """
    filled, served = _zeros_apart(table)
    losses, with_zeros = filled.epsilon_delta(), None if served is None else served.epsilon_delta()
    shown = None if with_zeros is None else with_zeros.zero_shown
    reach = Fraction(losses.plateau_epsilon).limit_denominator(1000) * Fraction(3, 2) or Fraction(1)
    epsilons = [reach * place / POINTS for place in range(POINTS + 1)]
    sizes = [size for size in KEY_SIZES if law is not None or size < table.key_size]
    rows = [_row_fields(table, count) for count in table.counts[:SHOWN_ROWS]]
    fields: dict[str, Any] = {
        "name": name,
        "table": {
            "first": table.counts[0],
            "last": table.counts[-1],
            "repeat": table.repeat,
            "key_size": str(KeySpace(table.key_size)) if table.key_size > 1 else "1",
            "lowest_result": table.lowest_result,
            "keeps_zeros": shown is not None,
        },
        "losses": {
            "counts": counts_text(losses),
            "worst": losses.worst_count(epsilons[POINTS // 3]),
            "plateau": losses.plateau,
            "plateau_epsilon": losses.plateau_epsilon,
            "zero_delta": None if shown is None else shown.up(),
        },
        "rows": rows,
        "more_rows": len(table.counts) - len(rows),
        "before": None if law is None else law.epsilon_delta().curve(epsilons),
        "own": losses.curve(epsilons),
        "key_sizes": [_size_fields(filled, law, size, epsilons) for size in sizes],
    }
    for made in fields["key_sizes"]:
        made["text"] = key_size_text(made)
    return {**fields, "text": meaning_sentences(losses, with_zeros)}


def design_fields(made: Design, key_size: int) -> dict[str, Any]:
    """A design and the check of its table with this many keys. Rounding to keys may miss the target: the check says so first."""
    table = made.quantised(key_size)
    reached = table.epsilon_delta().delta_bounds(made.epsilon)
    check = check_fields(table, name=f"Design for epsilon = {made.epsilon}, delta = {float(made.delta):.6g}", law=made)
    fields: dict[str, Any] = {
        "epsilon": str(made.epsilon),
        "delta": str(made.delta),
        "D": made.D,
        "gamma": str(made.gamma),
        "variance": made.variance,
        "delta_reached": made.delta_bounds().up(),
        "key_size": str(KeySpace(key_size)),
        "delta_of_table": reached.up(),
        "others": {
            "best": _other_fields(made.best, made.epsilon, str(made.best.gamma)),
            "smallest": _other_fields(made.smallest, made.epsilon, str(made.smallest.gamma)),
            "laplace": _other_fields(truncated_laplace(made.epsilon, delta=made.delta), made.epsilon, None),
        },
    }
    missed = missed_sentence(fields) if reached.upper > made.delta else None
    return {**fields, "missed": missed, "check": {**check, "text": [*([missed] if missed else []), *check["text"]]}}


def _other_fields(law: NoiseLaw, epsilon: Fraction, gamma: str | None) -> dict[str, Any]:
    """Other noise for the same target."""
    return {"D": law.noise[-1], "gamma": gamma, "variance": law.variance(), "delta": law.epsilon_delta().delta(epsilon)}


def save_page(fields: dict[str, Any], path: Path) -> None:
    """Write the page of a check; an existing file is left as it is."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(cellkey_html(fields))
        taken = False
    except FileExistsError:
        taken = True
    except OSError as error:
        raise output_problem(error, path) from None
    if taken:
        raise OutputExists(f"{path.name!r} exists and is left as it is. Choose another name.")


def perturbed_fields(made: Perturbed) -> dict[str, Any]:
    """The summary of published tables, JSON-ready: no true count, key or noise enters."""
    gaps = [{**gap._asdict(), "mean": str(gap.mean)} for gap in made.gaps]
    for gap in gaps:
        gap["text"] = gap_sentence(gap)
    tables = [{"name": name, "file": f"{name}.csv", "cells": frame.num_rows} for name, frame in made.tables.items()]
    return {
        "schema": SCHEMA,
        "method": "cell keys",
        "settings": dict(made.settings),
        "tables": tables,
        "gaps": gaps,
        "text": perturbed_sentences(made.settings),
        "distance_text": distance_sentence(made.settings),
    }


def rescale_table(table: PerturbationTable, size: int) -> tuple[PerturbationTable, dict[str, Any]]:
    """The table for another number of cell keys, and what this did to its law, for the settings of what is published with it."""
    fitted = table.rescaled(size, allow_lost=False)
    if has_same_law(table, fitted):
        return fitted, {}
    deltas = {"delta": fitted.epsilon_delta().delta(1), "delta_before": table.epsilon_delta().delta(1)}
    return fitted, {"rescaled": {"before": str(table.key_size), "after": str(size), **deltas}}


def check_place(folder: Path) -> None:
    """Refuse a folder or file that could not be written, before anything is read."""
    if os.path.lexists(folder):
        raise OutputExists(f"{folder.name!r} already exists. Choose another name.")
    if not folder.absolute().parent.is_dir():
        raise OutputProblem(f"The folder that should hold {folder.name!r} does not exist. Create it first.")


def _other_noise(
    earlier: Sequence[Reservation], dataset: str, noise: Mapping[str, str], allowed: bool, other_records: str | None
) -> list[str]:
    """In which parts the noise is another than that of earlier cell key releases in the ledger, where that is allowed; else refused.

    A data set is only a name: the same records may be there under another one. So all of the ledger is compared, except data sets that were
    said to have other records, now or when a release was recorded after them.
    """
    standing: dict[str, list[Reservation]] = {}
    for release in earlier:
        if release.charge.kind == "cell-key" and release.state not in ("voided", "voided-spent"):
            standing.setdefault(release.dataset, []).append(release)
    own = standing.pop(dataset, [])
    parts = _differing(noise, own)
    if parts and not allowed:
        raise LedgerProblem(other_noise_refusal(dataset, parts))
    for name, others in standing.items():
        differing = _differing(noise, others)
        if not differing or other_records is not None or _are_told_apart(own, others) or _are_told_apart(others, own):
            continue
        if not allowed:
            raise LedgerProblem(other_records_refusal(dataset, name, differing))
        parts += differing
    return [name for name in noise if name in parts]


def _differing(noise: Mapping[str, str], releases: Sequence[Reservation]) -> list[str]:
    found = [release.facts.noise or {} for release in releases]
    return [name for name in noise if any(facts.get(name) != noise[name] for facts in found)]


def _are_told_apart(said: Sequence[Reservation], others: Sequence[Reservation]) -> bool:
    """Whether a release of one data set was recorded as of other records, when the other data set had one."""
    return bool(others) and any(release.facts.other_records is not None and release.seq > others[0].seq for release in said)


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
) -> Path:
    """Record tables in the ledger and write their folder, as `holdfast cellkey perturb` does; an existing folder is refused.

    Given:       release_id: by default the name of the folder. dataset: by default that of the data. ledger: as for hf.release; None
                 records nothing. other_noise: publish though earlier releases have another secret, column, rule or perturbation
                 table. other_records: why these are other records than those of other data sets in the ledger; it is recorded.
    Guarantees:  see publish_perturbed.
    """
    book, place = find_book(ledger), Path(folder)
    check_place(place)
    if book is not None:
        book.check_witness()
    names = {"release_id": release_id or place.name, "dataset": dataset or made.dataset or UNNAMED}
    publish_perturbed(made, place, ledger=book, other_noise=other_noise, other_records=other_records, **names)
    return place


def publish_perturbed(
    made: Perturbed,
    folder: Path,
    *,
    release_id: str,
    dataset: str,
    ledger: Ledger | NewLedger | None,
    other_noise: bool = False,
    other_records: str | None = None,
) -> tuple[dict[str, Any], str | None]:
    """Write the folder of published tables, recorded in the ledger as a cell key release; its fields, and the ledger's entry.

    Given:       other_records: why these are other records than those of other data sets in the ledger whose noise is another; recorded
                 there.
    Guarantees:  the folder appears whole or not at all, and not before the ledger has recorded it. What is stopped before the folder is
                 complete is voided: the same command may be run again. No guarantee is added to the account.
    Refused:     noise that is another than that of earlier cell key releases: of the data set, unless other_noise; of any other in
                 the ledger, unless other_noise or other_records. Asked in the transaction that records the release. Tables of which
                 nothing says what fixes their noise.
    """
    if not made.noise:
        raise InvalidParameter("These tables do not say what fixes their noise. Save what hf.cellkey.perturb returned.")
    output = Output(folder)
    check_place(folder)
    codes = {column: frame.column(column).to_pylist() for frame in made.tables.values() for column in frame.column_names[:-1]}
    if risky := [column for column, texts in codes.items() if any(map(is_formula, (column, *texts)))]:
        logger.warning("%s", formulas_warning(risky, can_mark=False))
    fields = {"release": {"id": release_id, "dataset": dataset, "private": made.is_private}, **perturbed_fields(made)}
    book = ledger.make() if isinstance(ledger, NewLedger) else ledger
    held = None
    if book is not None:
        said = None if other_records is None else text_of(other_records, "other_records")
        named = {"method": "cell keys", "tables": [table["name"] for table in fields["tables"]]}
        facts = ReleaseFacts(noise=dict(made.noise), other_records=said, others=named)
        held, other = _reserve(book, dataset, release_id, facts, other_noise)
        fields["text"] += [other_noise_sentence(other)] if other else []
    fields["release"]["ledger"] = None if held is None else held.head
    try:
        with Unbooked().exclusive_folder(output) as temporary:
            _fill(temporary, made, fields)
            if book is not None and held is not None:
                held = book.commit(book.stage(book.start_drawing(held), _checksum(temporary)))
            put_in_place(temporary, output)
    except BaseException as error:
        if book is not None and held is not None and held.state == "reserved":
            with contextlib.suppress(HoldfastError):  # committed after all: it stays as it is
                book.void(held, STOPPED)
        if isinstance(error, OSError):
            raise output_problem(error, folder) from None
        raise
    if book is not None and held is not None:
        with after_publication(resumable=False):
            book.close(book.publish(held))
    return fields, fields["release"]["ledger"]


def _reserve(book: Ledger, dataset: str, release_id: str, facts: ReleaseFacts, allowed: bool) -> tuple[Reservation, list[str]]:
    """Record the release, and in which parts its noise is another than that of earlier ones. There is no key to seal and nothing to resume:
    the same records give the same tables again.
    """
    other: list[str] = []

    def compare(earlier: list[Reservation]) -> None:
        other[:] = _other_noise(earlier, dataset, facts.noise or {}, allowed, facts.other_records)

    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    empty: dict[str, Any] = {"sealed_key": None, "input_digest": "cell keys: none"}
    return book.reserve(dataset, release_id, Charge("cell-key"), facts, **empty, now=now, check_earlier=compare), other


def _fill(folder: Path, made: Perturbed, fields: dict[str, Any]) -> None:
    for name, frame in made.tables.items():
        save_frame(frame, folder / f"{name}.csv")
    write_synced(folder / PAGE, perturbed_html(fields).encode())
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
    write_synced(folder / CARD, fields_text({**fields, "files": files}).encode())
    follow_umask(folder, CARD)
    sync_folder(folder)
    sync_folder(folder.parent)


def fields_text(fields: Mapping[str, Any]) -> str:
    """The text of cellkey.json."""
    return json.dumps(fields, indent=2, allow_nan=False) + "\n"


def _checksum(folder: Path) -> str:
    return f"sha256:{hashlib.sha256((folder / CARD).read_bytes()).hexdigest()}"


def _zeros_apart(table: PerturbationTable) -> tuple[PerturbationTable, PerturbationTable | None]:
    """The rows of counts from 1 on, and the table with empty cells kept empty; None where count 1 has no row, or count 0 has noise."""
    zero = table.rows.get(0)
    if 1 not in table.rows or (zero is not None and set(zero.noise) != {0}):
        return table, None
    filled = [row for row in table.rows.values() if row.count]
    empty = PerturbationRow(0, (0,), (table.key_size,))
    return PerturbationTable(filled, repeat=table.repeat), PerturbationTable([empty, *filled], repeat=table.repeat)


def _row_fields(table: PerturbationTable, count: int) -> dict[str, Any]:
    row = table.rows[count]
    return {
        "count": count,
        "bias": float(row.bias),
        "variance": float(row.variance),
        "stays": float(row.probabilities.get(0, Fraction(0))),
        "law": [(noise, float(chance)) for noise, chance in row.probabilities.items()],
    }


def _size_fields(table: PerturbationTable, law: Design | None, size: int, epsilons: Sequence[Fraction]) -> dict[str, Any]:
    scaled = table.rescaled(size) if law is None else law.quantised(size, allow_lost=True)
    lost = sum(len(set(row.noise) - set(scaled.rows[count].noise)) for count, row in table.rows.items())
    losses = scaled.epsilon_delta()
    return {
        "key_size": str(KeySpace(size)),
        "lost": lost,
        "plateau": losses.plateau,
        "plateau_epsilon": losses.plateau_epsilon,
        "curve": losses.curve(epsilons),
    }
