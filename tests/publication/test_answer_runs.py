"""Run files of real-valued answers, through the command line."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.errors import InvalidCount, InvalidRun
from holdfast.runfiles.runfile import load_run
from tests.running import Run

RATES = "region,town,rate\nnorth,a,0.5\nnorth,b,-1.25\nnorth,c,3/4\nsouth,d,1e-1\nsouth,e,0.15\n"
RUN = """\
[answer]
source = "rates.csv"
cells = ["region", "town"]
value = "rate"
sensitivity = "1/10"
public = true
[keep]
margins = [["region"]]
[release]
id = "rates"
mechanism = "projected-laplace"
epsilon = "1"
per = "person"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "rates.csv").write_text(RATES)
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_plan_release_and_verify(work: Path, run: Run) -> None:
    planned = run("plan", "run.toml")
    assert planned.code == 0
    assert "5 answers in steps of 2^-16 by region, town" in planned.out
    assert "Advice     projected-laplace was chosen." in planned.out
    assert run("release", "run.toml", "-o", "out").code == 0
    assert (work / "out" / "kept.csv").read_text().splitlines()[1:] == [
        '"margin(region)","region=north","north",,0.0000000000000000',
        '"margin(region)","region=south","south",,0.2500000000000000',
    ]
    assert run("verify", "out").code == 0
    card = json.loads((work / "out" / "card.json").read_text())
    assert card["release"]["ledger"] is not None
    assert card["guarantee"]["asked"]["parameters"] == {"epsilon": "1"}


@pytest.mark.filterwarnings("default")
def test_a_total_that_the_grid_does_not_have_is_on_the_card(work: Path, run: Run) -> None:
    (work / "rates.csv").write_text(RATES.replace("0.5", "0.3"))
    ended = run("release", "run.toml", "-o", "out")
    assert (ended.code, ended.err.startswith("holdfast: Warning: 1 invariant has a value")) == (0, True)
    assert "5 cells, 1 kept total exact." in ended.out  # of two
    assert json.loads((work / "out" / "card.json").read_text())["table"]["grid"]["moved"] == 1
    assert "1 of 2 kept totals had to be rounded" in (work / "out" / "report.html").read_text()
    assert run("verify", "out").code == 0


@pytest.mark.filterwarnings("default")
def test_a_warning_is_one_sentence_without_code_and_one_total_is_one(work: Path, run: Run) -> None:
    (work / "run.toml").write_text(RUN.replace('margins = [["region"]]', "total = true").replace("public", "places = 12\npublic"))
    (work / "rates.csv").write_text(RATES.replace("0.15", "0.16"))
    ended = run("release", "run.toml", "-o", "out")
    assert ended.err.startswith("holdfast: Warning: 1 invariant has a value")
    assert ".py" not in ended.err
    assert "1 kept totals" not in ended.out
    assert "1 independent sum, 4 free dimensions" in (work / "out" / "statement.html").read_text()


def test_a_plan_reads_no_answer(work: Path) -> None:
    (work / "rates.csv").write_text(RATES.replace("0.5", "secret"))
    run = load_run("run.toml")
    assert run.read_declarations().measure.noun == "answer"
    with pytest.raises(InvalidCount, match=r"This is not an answer: column 'rate', row 1 of file 'rates\.csv'") as problem:
        run.read_table()
    assert "secret" not in str(problem.value)


@pytest.mark.parametrize("wrong", ["", "nan", "inf", "0,5", "5 %", "1/0", "1e9999", "0x10"])
def test_what_is_no_answer_is_refused_by_row(work: Path, wrong: str) -> None:
    (work / "rates.csv").write_text(RATES.replace("-1.25", f'"{wrong}"'))
    with pytest.raises(InvalidCount, match="row 2"):
        load_run("run.toml").read_table()


def test_values_are_exact(work: Path) -> None:
    table = load_run("run.toml").read_table()
    assert table.measure.value(int(table.counts[1])) == Fraction(-5, 4)
    assert sum(table.measure.value(int(steps)) for steps in table.counts[3:]) == Fraction(1, 4)  # 1e-1 + 0.15, rounded together


def test_cells_of_a_declared_universe_need_an_answer(work: Path) -> None:
    (work / "cells.csv").write_text("region,town\nnorth,a\nnorth,b\nnorth,c\nsouth,d\nsouth,e\nsouth,f\n")
    (work / "run.toml").write_text(RUN.replace("public = true", 'universe = "cells.csv"'))
    with pytest.raises(InvalidCount, match="no answer"):
        load_run("run.toml").read_table()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('sensitivity = "1/10"\n', "", r"answer.sensitivity: this key is missing. Write sensitivity = \"1\""),
        ('"1/10"', "0.1", r'line 5, answer.sensitivity: must be exact.*Write sensitivity = "0.1"'),
        ('"1/10"', '"0"', "answer.sensitivity: must be greater than zero"),
        ('"1/10"', '"inf"', "answer.sensitivity: must be a decimal or rational number"),
        ("public = true", "places = 40", "answer.places"),
        ("public = true", "plases = 4", "answer.plases.*Did you mean places"),
        ('value = "rate"', 'value = "town"', 'answer.value: column "town" is in cells too'),
        ('"rates.csv"', '"none.csv"', "answer.source"),
        (
            '"projected-laplace"',
            '"generalized-laplace"',
            "mechanism: generalized-laplace is for tables of counts.* take projected-laplace, ",
        ),
        ('per = "person"', 'per = "distance"', "answers have a sensitivity"),
        ('\nper = "person"', "", r'Write per = "person" \(epsilon = 1 for'),
        ("[answer]", "[table]\n[answer]", r"answer: a run file has \[table\] for counts, or \[answer\]"),
    ],
)
def test_one_message_with_line_and_field(work: Path, old: str, new: str, message: str) -> None:
    (work / "run.toml").write_text(RUN.replace(old, new))
    with pytest.raises(InvalidRun, match=message):
        load_run("run.toml")


def test_mechanisms_of_answers_are_not_for_tables(work: Path) -> None:
    (work / "run.toml").write_text(RUN.replace("[answer]", "[table]").replace("value =", "count =").replace('sensitivity = "1/10"\n', ""))
    with pytest.raises(InvalidRun, match=r"release\.mechanism: projected-laplace is for real-valued answers"):
        load_run("run.toml")


def test_a_coarse_grid_is_refused_before_the_answers_are_read(work: Path) -> None:
    (work / "run.toml").write_text(RUN.replace("public = true", "public = true\nplaces = 2"))
    with pytest.raises(hf.errors.InvalidParameter, match="too coarse"):
        load_run("run.toml").read_declarations()
