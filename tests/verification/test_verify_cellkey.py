"""`holdfast verify` on tables by the cell key method: what they are, what was checked, what nobody can check; and what is not as it was."""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, perturb
from holdfast.cellkey.perturb import rescale_table
from holdfast.errors import HoldfastError, InvalidParameter, VerificationFailed
from holdfast.publication.cellkey import save_perturbed
from holdfast.verification.verify import verify
from tests.cellkey.test_formats import OURS
from tests.running import Run
from tests.snapshot_files import Snapshot

RECORDS = pa.table(
    {"region": ["N", "S", "N", "E"] * 40, "age": ["1", "2", "1"] * 53 + ["1"], "record_key": [place * 7919 % 256 for place in range(160)]}
)
NOISE = PerturbationTable.from_probabilities({1: {0: "1/2", 1: "1/2"}, 2: {-1: "1/4", 0: "1/2", 1: "1/4"}}, 2**8)
RULE = CellKeys.for_table(KeySpace.bits(8), NOISE)
TABLES: dict[str, Any] = {"ages": ["region", "age"], "regions": ["region"], "all": []}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cellkeys") / "out"
    made = perturb(RECORDS, TABLES, NOISE, keys=RULE)
    save_perturbed(made, folder, release_id="ages", dataset="people", ledger=None)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "out"))


def read(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "cellkey.json").read_text(encoding="utf-8")))


def write(folder: Path, card: dict[str, Any]) -> None:
    """With checksums that suit the files."""
    card["files"] = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in card["files"]}
    (folder / "cellkey.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")


def test_what_is_said(folder: Path, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    """It was said that there is no card."""
    monkeypatch.chdir(folder.parent)
    done = run("verify", "out")
    assert (done.code, done.err) == (0, "")
    snapshot(done.out)
    fields = json.loads(run("verify", "out", "--json").out)
    assert (fields["method"], fields["tables"], fields["files"], fields["private"]) == ("cell keys", 3, 4, True)


def test_what_is_asked_for_and_not_there(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(VerificationFailed, match="carry no signature"):
        verify(folder, signer=tmp_path / "key.pub")
    with pytest.raises(InvalidParameter, match="keep no totals"):
        verify(folder, folder / "ages.csv")
    with pytest.raises(VerificationFailed, match="holds tables by the cell key method, which keep no totals"):
        hf.load(folder)


def test_python_and_the_command_check_the_same(folder: Path, run: Run) -> None:
    """Python refused the folder and named a function that is not public."""
    found = hf.verify(folder)
    assert str(found) == run("verify", str(folder)).out.rstrip("\n")
    assert (found.release_id, found.cells, found.totals, found.official_totals) == (
        "ages",
        sum(t["cells"] for t in read(folder)["tables"]),
        0,
        None,
    )
    (folder / "all.csv").write_text("count\n1\n", encoding="utf-8")
    with pytest.raises(VerificationFailed) as refused:
        hf.verify(folder)
    assert str(refused.value) in run("verify", str(folder)).err


def test_a_table_that_was_fitted_and_earlier_tables_with_other_noise(tmp_path: Path) -> None:
    """Both add a sentence."""
    from holdfast.ledger import Ledger

    ledger = Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=False)
    for place, (table, rescaled) in enumerate([(NOISE, None), rescale_table(OURS, 2**8)]):
        made = perturb(RECORDS, TABLES, table, keys=RULE)
        made = replace(made, settings=replace(made.settings, rescaled=rescaled))
        where = tmp_path / f"out{place}"
        save_perturbed(made, where, release_id=f"r{place}", dataset="d", ledger=ledger, other_noise=True)
        assert "sentences" in verify(where).recomputed
    assert made.noise is not None
    made = replace(made, noise=replace(made.noise, column="another key"))
    save_perturbed(made, tmp_path / "out2", release_id="r2", dataset="d", ledger=ledger, other_noise=True)
    assert "sentences" in verify(tmp_path / "out2").recomputed  # the column was not among what may be another
    assert any("OTHER NOISE" in line for line in read(tmp_path / "out1")["text"])


def changed(card: dict[str, Any], *path: Any, to: Any) -> dict[str, Any]:
    inner = card
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = to
    return card


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "text": (lambda card: changed(card, "text", 2, to="Differentially private."), "text is not that"),
    "more words": (lambda card: card["text"].append("Signed by the office."), "text is not that"),
    "gap": (lambda card: changed(card, "gaps", 0, "unequal", to=0), "gaps does not follow"),
    "gap in words": (lambda card: changed(card, "gaps", 0, "text", to="It adds up."), "gaps does not follow"),
    "distance": (lambda card: changed(card, "distance_text", to="Uniform."), "distance_text does not follow"),
    "weighted": (lambda card: changed(card, "settings", "weighted", to=True), "text is not that"),
    "cells": (lambda card: changed(card, "tables", 0, "cells", to=77), "cells instead of 77"),
    "table left out": (lambda card: card["tables"].pop(), r"all\.csv is listed, which is not a file"),
    "twice": (lambda card: card["tables"].append(card["tables"][0]), "two tables share a name or a file"),
    "unknown": (lambda card: changed(card, "more", to=1), "missing, unknown or wrong values"),
    "path": (lambda card: changed(card, "tables", 0, "file", to="../x.csv"), r"wrong values \(tables\)"),
    "huge fraction": (lambda card: changed(card, "settings", "distance", to="1e999999999"), r"wrong values \(settings\)"),
    "huge number": (lambda card: changed(card, "settings", "modulus", to="9" * 10**6), r"wrong values \(settings\)"),
    "id": (lambda card: changed(card, "release", "id", to="x\nSigned by the office"), r"report\.html is not the page"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_does_not_follow_is_said(folder: Path, name: str) -> None:
    change, words = CHANGES[name]
    card = read(folder)
    change(card)
    write(folder, card)
    with pytest.raises(VerificationFailed, match=words) as found:
        verify(folder)
    assert str(found.value).isprintable()


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("ages.csv", b"", "cannot be read as a table of codes and counts"),
        ("ages.csv", b"region,age,count\nN,1,x\n", "cannot be read as a table"),
        ("ages.csv", b"region,region,count\nN,1,1\n", "cannot be read as a table"),
        ("ages.csv", b"region,age,count\nN,1,1\n", "has 1 cells instead of [0-9]"),
        ("regions.csv", b"region,count\nN,1\nS,1\nE,1\n", "gaps does not follow"),
        ("report.html", b"<p>Private.</p>", r"report\.html is not the page"),
    ],
)
def test_changed_files(folder: Path, file: str, content: bytes, words: str) -> None:
    (folder / file).write_bytes(content)
    with pytest.raises(VerificationFailed, match=f"{file} was changed"):
        verify(folder)
    write(folder, read(folder))
    with pytest.raises(VerificationFailed, match=words):
        verify(folder)


def put(folder: Path, name: str, content: bytes | None) -> None:
    """A file in place of what is there; None: a link to a device without end."""
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to("/dev/zero") if content is None else (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("more\nSigned by the office", b""),
        ("cellkey.json", b"[" * 10**5),
        ("cellkey.json", b"{}"),
        ("cellkey.json", b"\xff"),
        ("cellkey.json", None),
        ("ages.csv", None),
    ],
)
def test_hostile_folders(folder: Path, name: str, content: bytes | None) -> None:
    put(folder, name, content)
    with pytest.raises(HoldfastError) as found:
        verify(folder)
    assert type(found.value) is VerificationFailed
    assert str(found.value).isprintable()


def test_codes_that_a_spreadsheet_would_run_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = RECORDS.set_column(0, "region", pa.array(["=1+1", "S"] * 80))
    made = perturb(records, {"regions": ["region"]}, NOISE, keys=RULE)
    with caplog.at_level(logging.WARNING, "holdfast"):
        save_perturbed(made, tmp_path / "out", release_id="f", dataset="d", ledger=None)
    assert ["'region' begin with =, +, - or @" in record.getMessage() for record in caplog.records] == [True]
    verify(tmp_path / "out")
