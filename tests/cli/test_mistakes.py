"""Mistakes that people made: each message says what is wrong and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError
from tests.running import Ran

ROWS = "town,sex,n\n01001,F,12\n01001,M,10\n02002,F,7\n02002,M,5\n"
RUN = """\
[table]
source = "t.csv"
cells = ["town", "sex"]
count = "n"
public = true
[keep]
margins = [["town"]]
[release]
id = "r1"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(ROWS)
    Path("run.toml").write_text(RUN)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"generalized-laplace"', '"laplace"', "Did you mean generalized-laplace?"),
        ("count =", 'separator = ";"\ncount =', 'with separator = ";". Write separator = ",", or leave separator out'),
        ('margins = [["town"]]', 'subsets = [{column = "town", codes = ["1001"]}]', "Did you mean '01001'? Zeros at the front"),
        ('margins = [["town"]]', "subsets = [{where = \"town = '1001'\"}]", "Did you mean '01001'? Zeros at the front"),
        ('"generalized-laplace"', '"generalized-gaussian"', "run.toml, line 10, release.delta: this key is missing"),
    ],
)
def test_a_plan(work: Path, run: Callable[..., Ran], old: str, new: str, said: str) -> None:
    assert old in RUN
    Path("run.toml").write_text(RUN.replace(old, new))
    ran = run("plan", "run.toml")
    assert ran.code != 0
    assert said in ran.err


@pytest.mark.parametrize("count", ["<5", "", "c", "5.0"])
def test_counts_that_are_hidden_or_no_counts(work: Path, run: Callable[..., Ran], count: str) -> None:
    Path("t.csv").write_text(ROWS.replace(",M,5", f",M,{count}"))
    ran = run("release", "run.toml", "-o", "out")
    assert ran.code == 5
    assert "This is not a count: column 'n', row 4 of file 't.csv'." in ran.err
    assert 'Hidden counts ("<5", blanks) must be the true ones again; a zero is written 0.' in ran.err
    assert "hf.answer" in ran.err


def test_a_file_in_place_of_the_folder(work: Path, run: Callable[..., Ran]) -> None:
    assert run("release", "run.toml", "-o", "out").code == 0
    ran = run("verify", "out/table.csv")
    assert ran.code == 10
    assert "'table.csv' is a file, not a folder. Give the folder that `holdfast release` wrote." in ran.err


def test_a_budget_that_protects_little_and_one_beyond_the_grant(work: Path, run: Callable[..., Ran]) -> None:
    Path("run.toml").write_text(RUN.replace('"1/2"', '"100"'))
    planned = run("plan", "run.toml")
    assert planned.code == 0
    assert "LITTLE IS PROTECTED" in planned.out
    assert "THE NOISE IS NEARLY NIL" in planned.out
    assert run("ledger", "grant", "t", "--epsilon", "1", "--ledger", "a.ledger", "--approver", "A", "--reason", "test").code == 0
    refused = run("plan", "run.toml", "--ledger", "a.ledger")
    assert refused.code == 14
    assert "The plan stands, and the release would be refused: The budget of 't' is not enough" in refused.err


@pytest.mark.filterwarnings("default::holdfast.errors.HoldfastWarning")
def test_codes_that_a_spreadsheet_spoilt(work: Path, run: Callable[..., Ran]) -> None:
    Path("t.csv").write_text(ROWS.replace("01001", "0-9").replace("02002", "19-Oct"))
    assert "codes like dates: '19-Oct'. Spreadsheets make dates of ranges" in run("plan", "run.toml").err


FRAME = pd.DataFrame({"sex": ["F", "M", "F", "M"], "age": ["1", "1", "2", "2"], "n": [1, 2, 3, 4]})


def a_table(counts: list[object] | None = None) -> hf.Table:
    frame = FRAME if counts is None else FRAME.assign(n=counts)
    return hf.Table.from_counts(frame, cells=["sex", "age"], count="n", public=True)


LAPLACE = hf.GeneralizedLaplace(epsilon="1")


@pytest.mark.parametrize(
    ("mistake", "said"),
    [
        (lambda: hf.margin(["sex", "age"]), "Write for example margin('sex', 'age')"),  # type: ignore[arg-type]
        (lambda: hf.plan(a_table(), [hf.margin("sex,age")], LAPLACE), "Write each by itself: 'sex', 'age'."),
        (lambda: hf.plan(a_table(), hf.margin("sex"), LAPLACE), "such as [margin('sex')]"),  # type: ignore[arg-type]
        (lambda: hf.plan(a_table(), ["sex"], LAPLACE), "Write margin('sex')."),  # type: ignore[list-item]
        (lambda: hf.release(a_table(), [], hf.GeneralizedLaplace), "write GeneralizedLaplace(...)"),  # type: ignore[call-overload]
        (lambda: a_table([1.5, 2, 3, 4]), "use hf.answer"),
        (lambda: a_table([None, 2, 3, 4]), "missing values (NaN) make a column one of floats"),
    ],
)
def test_python(mistake: Callable[[], object], said: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        mistake()
    assert said in str(caught.value)
