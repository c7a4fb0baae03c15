"""The twin test, for whole releases: two tables with equal kept totals and one test key differ in released counts, and in nothing else.

test_release.py has it for tables of counts. Here: releases joined with earlier folders, records of which a sample is counted, and tables
with declared total rows. [theory T54]
"""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError
from tests.publication.twin_reports import with_the_numbers_of
from tests.running import Run

LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
SAME = {"kept.csv", "exposed.csv", "statement.html"}
WITH_COUNTS = ("table.csv", "table.parquet", "report.html")


def release(table: hf.Table, keep: list[Any], **options: Any) -> Any:
    with hf.NoiseKey.for_tests("twins") as key:
        return hf.release(table, keep, LAPLACE, key=key, **options)


def check_twins(first: Path, second: Path) -> None:
    """Raise unless two folders differ in released counts and checksums alone."""
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (first, second)]
    assert set(files[0]) == set(files[1]) == {*SAME, *WITH_COUNTS, "card.json"}
    assert {name for name in files[0] if files[0][name] == files[1][name]} == SAME
    assert with_the_numbers_of(first, second) == files[1]["report.html"]
    cards = [json.loads(folder["card.json"]) for folder in files]
    for card in cards:
        for name in WITH_COUNTS:  # other counts may have another length
            card["files"][name].pop("sha256")
            card["files"][name].pop("bytes")
    assert cards[0] == cards[1]
    frames = [hf.load(folder).table.frame for folder in (first, second)]
    count = cards[0]["table"]["count"]
    assert frames[0].column(count) != frames[1].column(count)
    assert frames[0].drop_columns([count]).equals(frames[1].drop_columns([count]))


def refusal(table: hf.Table, keep: list[Any], **options: Any) -> tuple[str, str, str, Any]:
    with pytest.raises(HoldfastError) as caught:
        release(table, keep, **options)
    return type(caught.value).__name__, caught.value.code, str(caught.value), caught.value.details


# Joined with earlier releases.

LINE = hf.Universe.product({"cell": list("pqrstu")})
PAIR, OTHER_PAIR = hf.subset("cell", ["p", "q"]), hf.subset("cell", ["q", "r"])
REST = hf.subset("cell", ["p", "q", "r", "s", "t"])

JOINED: dict[str, tuple[list[Any], list[Any], int, tuple[list[int], list[int]]]] = {
    "a cell fixed by both": ([hf.total()], [REST], 1, ([3, 4, 5, 6, 7, 8], [4, 3, 7, 2, 9, 8])),
    "cells pinned by the values of both": ([PAIR], [hf.total()], 0, ([3, 4, 0, 0, 0, 0], [6, 1, 0, 0, 0, 0])),
    "nothing": ([OTHER_PAIR], [PAIR, hf.total()], 0, ([3, 4, 5, 6, 7, 8], [4, 3, 6, 1, 2, 17])),
}


@pytest.mark.parametrize("with_other", [False, True])
@pytest.mark.parametrize("case", JOINED)
def test_joint_releases(case: str, with_other: bool, tmp_path: Path) -> None:
    """Each twin beside its own earlier release, and beside a folder of other data, whose values contradict."""
    before, keep, allowed, twins = JOINED[case]
    refusals = []
    for name, counts in zip(("one", "two"), twins, strict=True):
        release(hf.Table(LINE, np.array(counts)), before, release_id="first").save(tmp_path / f"{name}-first")
        release(hf.Table(LINE, np.array([90, 80, 70, 60, 50, 40])), before, release_id="other").save(tmp_path / f"{name}-other")
        folders = [f"{name}-first", *([f"{name}-other"] if with_other else [])]
        options: dict[str, Any] = {"release_id": "r", "beside": [hf.load(tmp_path / folder) for folder in folders]}
        table = hf.Table(LINE, np.array(counts))
        refusals.append(refusal(table, keep, allow_exposed=allowed + 1, **options))
        made = release(table, keep, allow_exposed=allowed, **options)
        assert ("contradict those of the others" in made.card.exposed.text) == with_other
        made.save(tmp_path / name)
    assert refusals[0] == refusals[1]
    check_twins(tmp_path / "one", tmp_path / "two")


# A sample of each person's records.

AGES, SEXES = ["0", "1", "2"], ["F", "M"]
CELLS = {"age": AGES, "sex": SEXES}
READ, CUT = (20_011, 31_013), (12_009, 23_011)
"""Records of each twin, and how many of them are not counted."""
RUN = """\
[table]
source = "people.csv"
cells = {age = ["0", "1", "2"], sex = ["F", "M"]}
id = "id"
max_records = 2
over = "sample"
sample_key = "sample.key"
[keep]
margins = [["age"]]
[release]
id = "r"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


def write_records(folder: Path, twin: int) -> Path:
    """8,000 people with one record, other sexes in each twin, and one with so many that 2 of them are counted."""
    records = [(f"p{i}", AGES[i % 3], SEXES[i % (2 + twin) > 0]) for i in range(8_000)]
    records += [("many", "2", "F")] * (READ[twin] - len(records))
    assert CUT[twin] == READ[twin] - 8_000 - 2
    folder.mkdir()
    (folder / "sample.key").write_text("ab" * 32)
    (folder / "sample.key").chmod(0o600)
    with (folder / "people.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "age", "sex"), *records])
    return folder


@pytest.fixture(scope="module")
def record_folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    place = tmp_path_factory.mktemp("records")
    return [write_records(place / f"twin{twin}", twin) for twin in (0, 1)]


def test_samples_of_records(record_folders: list[Path], tmp_path: Path) -> None:
    refusals = []
    for name, folder in zip(("one", "two"), record_folders, strict=True):
        table = hf.Table.from_records(
            folder / "people.csv", CELLS, id="id", max_records=2, over="sample", sample_key=folder / "sample.key", name="people"
        )
        broken = hf.identity(hf.margin("sex"), [1, 2])
        refusals.append([refusal(table, [hf.margin("age")], allow_exposed=1), refusal(table, [broken])])
        release(table, [hf.margin("age")], release_id="r").save(tmp_path / name)
    assert refusals[0] == refusals[1]
    check_twins(tmp_path / "one", tmp_path / "two")


def test_numbers_of_records_are_nowhere(record_folders: list[Path], run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither how many records were read, nor how many of them were cut: in no output, log, public file or ledger."""
    told = []
    for folder in record_folders:
        monkeypatch.chdir(folder)
        Path("run.toml").write_text(RUN)
        commands = (
            ("plan", "run.toml", "--verbose"),
            ("plan", "run.toml", "--json"),
            ("release", "run.toml", "-o", "out", "--verbose", "--debug"),
            ("release", "run.toml", "-o", "again", "--verbose", "--debug", "--json"),
            ("verify", "out", "--json"),
            ("ledger", "show"),
            ("ledger", "show", "--json"),
        )
        ran = [run(*command) for command in commands]
        assert [one.code for one in ran] == [0, 0, 0, 9, 0, 0, 0]
        texts = [one.out + one.err for one in ran]
        told.append([re.sub(r"[0-9a-f]{32,}", "#", text) for text in texts])
        with sqlite3.connect("holdfast-ledger.sqlite") as ledger:
            texts += [*ledger.iterdump(), *(path.read_text() for path in Path("out").iterdir() if path.suffix != ".parquet")]
        released = hf.load("out").table.counts.tolist()
        secret = {*READ, *CUT} - set(released)
        assert secret & set(map(int, re.findall(r"\b[0-9]+\b", re.sub(r"(?<=[0-9]),(?=[0-9]{3}\b)", "", "\n".join(texts))))) == set()
    assert told[0] == told[1]


# Declared total rows.

TOTALS = {"age": "_T", "sex": "_T"}


def with_totals(path: Path, counts: list[int], wrong: int = 0) -> hf.Table:
    """A file with a total row for every margin, of which one is wrong by so much."""
    cube = np.array(counts).reshape(3, 2)
    rows = [(age, sex, cube[a, s]) for a, age in enumerate(AGES) for s, sex in enumerate(SEXES)]
    rows += [(age, "_T", cube[a].sum()) for a, age in enumerate(AGES)] + [("_T", sex, cube[:, s].sum()) for s, sex in enumerate(SEXES)]
    rows.append(("_T", "_T", cube.sum() + wrong))
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("age", "sex", "n"), *rows])
    return hf.Table.from_counts(path, ["age", "sex"], "n", totals=TOTALS, public=True, name="people")


def test_declared_total_rows(tmp_path: Path) -> None:
    """Total rows that are not kept differ, too: only what is kept is published."""
    refusals = []
    for name, counts, wrong in (("one", [7, 1, 5, 9, 4, 3], 1), ("two", [5, 3, 13, 1, 7, 0], 900)):
        (tmp_path / f"{name}-source").mkdir()
        path = tmp_path / f"{name}-source" / "people.csv"
        with pytest.raises(HoldfastError) as caught:
            with_totals(path, counts, wrong)
        table = with_totals(path, counts)
        broken = hf.identity(hf.margin("sex"), [1, 2])
        refusals.append([str(caught.value), refusal(table, [hf.margin("age")], allow_exposed=1), refusal(table, [broken])])
        release(table, [hf.margin("age")], release_id="r").save(tmp_path / name)
    assert refusals[0] == refusals[1]
    check_twins(tmp_path / "one", tmp_path / "two")
