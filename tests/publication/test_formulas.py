"""Codes that a spreadsheet would run: told, or marked with an apostrophe that verify takes off again."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidParameter, NotAcknowledged, VerificationFailed
from holdfast.publication.pipeline import check_acknowledged
from holdfast.publication.publication import Publication
from holdfast.tables.formats import is_formula, mark, mark_frame, unmark, unmark_frame
from holdfast.verification.verify import published_rows
from tests.exposing import exposing
from tests.running import Run
from tests.verification.test_verify_mutations import with_right_checksums

CODES = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2-3", "'=x", "''=y", "\t=z", "-", "-5", "+1.5", "'a", "a=b", "Ærø"]
RISKY = [True] * 7 + [False] * 6
COLUMN = "=kind"
UNIVERSE = hf.Universe.product({COLUMN: CODES, "sex": ["F", "M"]})
KEEP: list[Any] = [hf.margin(COLUMN), hf.linear(np.eye(1, len(UNIVERSE), dtype=np.int64), names=["=first"])]
texts = st.text(st.sampled_from("'=+-@\t\r15.,aÆ\n"), max_size=6)


def made(codes: hf.Universe = UNIVERSE, keep: list[Any] = KEEP) -> Publication:
    table = hf.Table(codes, np.arange(1, len(codes) + 1))
    return exposing(
        hf.release,
        table,
        keep,
        hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
        key=hf.NoiseKey.for_tests("formulas"),
        release_id="r",
    )


def test_which_texts_are_formulas() -> None:
    """Numbers, also with a sign, and a lone dash are none: spreadsheets run nothing there."""
    assert [is_formula(code) for code in CODES] == RISKY
    assert not any(map(is_formula, ["", "'", "0", "-0,5", "+", "1-2"]))


@given(texts)
def test_a_text_comes_back_and_a_marked_one_is_never_run(text: str) -> None:
    assert unmark(mark(text)) == text
    assert not is_formula(text) or mark(text).startswith("'")


@given(st.lists(st.none() | texts, max_size=5))
def test_columns_are_marked_as_texts_are(given: list[str | None]) -> None:
    frame = pa.table({"=a": pa.array(given, pa.string()), "n": pa.array([-1] * len(given), pa.int64())})
    marked = mark_frame(frame)
    assert marked.column("'=a").to_pylist() == [None if text is None else mark(text) for text in given]
    assert unmark_frame(marked, 1).equals(frame)
    coded = frame.set_column(0, "=a", frame.column(0).dictionary_encode())
    assert mark_frame(coded).column(0).to_pylist() == marked.column(0).to_pylist()


@pytest.mark.parametrize("formats", [["csv"], ["parquet", "csv"], ["parquet"]])
def test_a_folder_with_marks_verifies_and_holds_no_formula(tmp_path: Path, formats: list[str]) -> None:
    folder = made().save(tmp_path / "out", formats=formats, formulas="mark")
    assert json.loads((folder / "card.json").read_text())["release"]["formulas"] == "marked"
    assert hf.verify(folder).totals == len(CODES) + 1
    found = []
    for path in folder.glob("*.csv"):
        with open(path, encoding="utf-8", newline="") as file:
            found += [text for row in csv.reader(file) for text in row]
    assert not [text for text in found if is_formula(text) and not text.startswith("'")]
    assert "'=1+1" in found
    assert published_rows(folder)[1][0][1] == made().kept_rows[0][1]
    if "parquet" in formats:
        import pyarrow.parquet as pq

        assert pq.read_table(folder / "table.parquet").column(COLUMN).to_pylist()[0] == "=1+1"


def test_as_they_are_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The warning comes before anything is written, and names columns."""
    with caplog.at_level(logging.WARNING, "holdfast"):
        folder = made().save(tmp_path / "out")
    assert ["a spreadsheet that opens the CSV files would run them" in record.getMessage() for record in caplog.records] == [True]
    assert "'=kind'" in caplog.records[0].getMessage()
    assert '"=1+1","F"' in (folder / "table.csv").read_text()
    assert json.loads((folder / "card.json").read_text())["release"]["formulas"] == "as they are"
    hf.verify(folder)


def test_nothing_is_said_where_there_is_none(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    universe = hf.Universe.product({"age": ["-5", "6-10", "-"], "sex": ["F", "M"]})
    with caplog.at_level(logging.WARNING, "holdfast"):
        folder = made(universe, [hf.margin("age")]).save(tmp_path / "out", formulas="mark")
    assert caplog.records == []
    assert json.loads((folder / "card.json").read_text())["release"]["formulas"] == "as they are"
    assert (folder / "table.csv").read_bytes() == (made(universe, [hf.margin("age")]).save(tmp_path / "other") / "table.csv").read_bytes()


@pytest.mark.parametrize(("chosen", "other"), [("mark", "as they are"), ("warn", "marked")])
def test_a_card_that_says_the_other_is_refused(tmp_path: Path, chosen: Any, other: str) -> None:
    folder = made().save(tmp_path / "out", formats=["csv"], formulas=chosen)
    card = json.loads((folder / "card.json").read_text())
    card["release"]["formulas"] = other
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with pytest.raises(VerificationFailed):
        hf.verify(folder)


def test_marks_where_no_text_needs_one_are_refused(tmp_path: Path) -> None:
    universe = hf.Universe.product({"age": ["1", "2"], "sex": ["F", "M"]})
    folder = made(universe, [hf.margin("age")]).save(tmp_path / "out")
    card = json.loads((folder / "card.json").read_text())
    card["release"]["formulas"] = "marked"
    (folder / "card.json").write_text(json.dumps(card, indent=2, ensure_ascii=False) + "\n")
    with_right_checksums(folder)
    with pytest.raises(VerificationFailed, match=r"release\.formulas is 'marked', and no text is one"):
        hf.verify(folder)


def test_another_choice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="formulas is one of 'warn', 'mark'"):
        made().save(tmp_path / "out", formulas="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize("line", ["", 'formulas = "mark"\n'])
def test_the_office_chooses_in_the_run_file(tmp_path: Path, run: Run, line: str) -> None:
    (tmp_path / "t.csv").write_text('area,sex,n\n"=1+1",F,4\n"=1+1",M,5\nb,F,6\nb,M,7\n')
    (tmp_path / "run.toml").write_text(
        '[table]\nsource = "t.csv"\ncells = ["area", "sex"]\ncount = "n"\n[keep]\nmargins = [["area"]]\n'
        f'[release]\nid = "r"\nmechanism = "generalized-laplace"\nepsilon = "1/2"\nper = "person"\n{line}'
    )
    done = run("release", tmp_path / "run.toml", "-o", tmp_path / "out", "--no-ledger")
    assert done.code == 0
    assert ("would run them as formulas" in done.err) == (not line)
    assert ("'=1+1" in (tmp_path / "out" / "table.csv").read_text()) == bool(line)
    assert run("verify", tmp_path / "out").code == 0


@pytest.mark.parametrize("marked", [False, True])
def test_the_list_of_cells_to_be_acknowledged_is_marked_too(tmp_path: Path, marked: bool) -> None:
    universe = hf.Universe.product({"a": ["=1+1", "b", "c"]})
    exposure = hf.plan(universe, [hf.total(), hf.subset("a", ["=1+1"])], hf.GeneralizedLaplace(epsilon=1, per="distance")).exposure
    with pytest.raises(NotAcknowledged):
        check_acknowledged(exposure, 0, tmp_path / "out", marked=marked)
    with open(tmp_path / "out-exposed.csv", encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a"], ["'=1+1" if marked else "=1+1"]]
