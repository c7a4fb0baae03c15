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
    assert "5 answers in steps of 0.00001 by region, town" in planned.out
    assert "Advice     projected-laplace was chosen." in planned.out
    assert run("release", "run.toml", "-o", "out").code == 0
    assert (work / "out" / "kept.csv").read_text().splitlines()[1:] == [
        '"margin(region)","region=north","north",,0.00000',
        '"margin(region)","region=south","south",,0.25000',
    ]
    assert run("verify", "out").code == 0
    card = json.loads((work / "out" / "card.json").read_text())
    assert card["release"]["ledger"] is not None
    assert card["guarantee"]["asked"]["parameters"] == {"epsilon": "1"}


def test_a_total_that_the_grid_does_not_have_is_refused_or_declared(work: Path, run: Run) -> None:
    (work / "rates.csv").write_text(RATES.replace("0.5", "1/3"))
    ended = run("release", "run.toml", "-o", "out")
    assert ended.code == 2
    assert "The kept totals are no totals of multiples of 0.00001" in ended.err
    assert not (work / "out").exists()
    (work / "run.toml").write_text(RUN.replace("public", "round_totals = true\npublic"))
    said = "Kept totals are rounded to multiples of 0.00001; beyond that they carry no noise."
    assert f"WARNING    {said}" in run("plan", "run.toml").out
    assert f"5 cells, 2 kept totals. {said}" in run("release", "run.toml", "-o", "out").out
    assert said in (work / "out" / "report.html").read_text()
    assert run("verify", "out").code == 0


def test_one_total_is_one(work: Path, run: Run) -> None:
    (work / "run.toml").write_text(RUN.replace('margins = [["region"]]', "total = true").replace("public", 'step = "1e-6"\npublic'))
    assert "1 kept total exact" in run("release", "run.toml", "-o", "out").out
    assert "1 independent sum, 4 free dimensions" in (work / "out" / "statement.html").read_text()


def test_values_are_declared_of_no_answer(work: Path) -> None:
    keep = "linear = [{matrix = [[1, 1, 1, 0, 0]], values = [5]}]"
    (work / "run.toml").write_text(RUN.replace('margins = [["region"]]', keep))
    with pytest.raises(hf.errors.InvalidParameter, match="Invariants of answers declare no values but 0"):
        load_run("run.toml").read_declarations()


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
        ("public = true", 'step = "1/3"', r'answer.step: must be a decimal above zero as text.*Got "?.?1/3'),
        ("public = true", "stepp = 4", "answer.stepp.*Did you mean step"),
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
    (work / "run.toml").write_text(RUN.replace("public = true", 'public = true\nstep = "1/4"'))
    with pytest.raises(hf.errors.InvalidParameter, match="too coarse"):
        load_run("run.toml").read_declarations()
