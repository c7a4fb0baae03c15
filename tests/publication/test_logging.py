"""What is logged: the steps, and nothing confidential. A release at DEBUG level, seen from Python and from the command line."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.engines.local import BoundRelease
from tests.running import Run

SECRET = "the secret of the office"
ROWS = [("17", "031", 918273645546), ("17", "043", 723456789), ("18", "001", 654321987), ("18", "003", 835791357)]
TWIN = [("17", "031", 918273645501), ("17", "043", 723456834), ("18", "001", 654322000), ("18", "003", 835791344)]
"""Other counts with the same totals by state."""
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
[keep]
margins = [["state"]]
[release]
id = "r1"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_KEY", SECRET)
    monkeypatch.delenv("HOLDFAST_LEDGER", raising=False)
    Path("run.toml").write_text(RUN)
    return tmp_path


def write(rows: list[tuple[str, str, int]]) -> None:
    Path("counties.csv").write_text("state,county,people\n" + "".join(f"{s},{c},{n}\n" for s, c, n in rows))


def numbers(text: str) -> set[int]:
    return set(map(int, re.findall(r"[0-9]+", text)))


@pytest.mark.parametrize("mechanism", ["generalized-laplace", "generalized-gaussian", "rounded-projection"])
def test_a_release_at_debug_level_logs_steps_and_no_count_or_key(
    run: Run, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, mechanism: str
) -> None:
    budget = 'rho = "1/8"' if mechanism == "generalized-gaussian" else 'epsilon = "1/2"'
    Path("run.toml").write_text(RUN.replace("generalized-laplace", mechanism).replace('epsilon = "1/2"', budget))
    drawn: list[BoundRelease] = []
    real = BoundRelease.draw
    monkeypatch.setattr(BoundRelease, "draw", lambda bound, *given: drawn.append(bound) or real(bound, *given))  # type: ignore[func-returns-value]
    write(ROWS)
    with caplog.at_level(logging.DEBUG, logger="holdfast"):
        ran = run("release", "run.toml", "-o", "out", "--verbose")
    assert ran.code == 0, ran.err
    told = "\n".join([*(record.getMessage() for record in caplog.records if record.name.startswith("holdfast")), ran.err])
    published = {int(line.split(",")[2].strip('"')) for line in Path("out/table.csv").read_text().splitlines()[1:]}
    confidential = {count for *_, count in ROWS} | published
    assert len(confidential) >= len(ROWS)
    assert not numbers(told) & confidential
    (bound,) = drawn
    for secret in (SECRET, bound.input_digest):
        assert secret not in told
    assert not re.search(r"[0-9a-f]{32}", told)
    for step in ("Reading file 'counties.csv'", "Planning", "Sampler", "in the ledger: drawing", "Drawing 4 cells", "Writing the files"):
        assert step in told, step


def test_twins_log_the_same(run: Run) -> None:
    """Two tables that differ only in confidential counts: the same log, byte by byte."""
    logs = []
    for name, rows in (("one", ROWS), ("two", TWIN)):
        write(rows)
        ran = run("release", "run.toml", "-o", "out", "--verbose", "--no-ledger")
        assert ran.code == 0, (name, ran.err)
        logs.append(ran.err)
        Path("out").rename(name)
    assert logs[0] == logs[1]
    assert logs[0].count("\n") >= 5


def test_records(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    """How many records there are, and how many each cell has, is not told."""
    people = "".join(f"{sex},{number}\n" for sex, many in (("F", 1237), ("M", 2549)) for number in range(10**6, 10**6 + many))
    Path("people.csv").write_text("sex,nr\n" + people)
    with caplog.at_level(logging.DEBUG, logger="holdfast"):
        table = hf.Table.from_records("people.csv", {"sex": ["F", "M", "X"]}, record_key="nr")
        hf.release(table, [], hf.GeneralizedLaplace(epsilon="1/2", per="distance"), ledger=None)
    told = "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("holdfast"))
    assert "Counting the records of file 'people.csv' by sex" in told
    assert not numbers(told) & {1237, 2549, 1237 + 2549}


def test_without_verbose_nothing_is_told(run: Run) -> None:
    write(ROWS)
    quiet = run("plan", "run.toml")
    assert (quiet.code, quiet.err) == (0, "")
    told = run("plan", "run.toml", "--verbose")
    assert told.out == quiet.out
    assert all(line.startswith("holdfast: ") for line in told.err.splitlines())
    assert told.err == run("--verbose", "plan", "run.toml").err != ""


def test_what_other_packages_log_is_not_shown() -> None:
    """It may quote data: SQLAlchemy tells of a connection that could not be closed, with a traceback."""
    code = (
        "import logging\nimport holdfast.cli.endings as ending\nending.show_log(False)\n"
        "logging.getLogger('sqlalchemy.pool').error('1234567')\nlogging.getLogger('holdfast.tables').info('told')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == "holdfast: told\n"
