"""Messages on the command line say what to write in a run file or on the command line, never in Python."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.running import Run

RUNS = Path(__file__).with_name("runs")
REFUSED = sorted(path.name for path in RUNS.glob("refused-*.toml"))
PYTHON = re.compile(
    r"\b[a-z_]+=(?:['\"\[{]|True|False|None)|\b[a-z_]+= |(?<!\()\b(?:Generalized\w+|RoundedProjection|Suppression|Universe|Table)\b[.(]?"
)


@pytest.mark.parametrize(
    ("text", "is_python"),
    [
        ("Use sampler='line_gibbs'.", True),
        ("Use GeneralizedGaussian, or nothing.", True),
        ("weight= is not supported", True),
        ("allow_estimated=True", True),
        ('Write separator = ";" and mechanism = "generalized-gaussian" (GeneralizedGaussian).', False),
        ("margin(state): state=17, county=031", False),
    ],
)
def test_what_counts_as_python(text: str, is_python: bool) -> None:
    assert (PYTHON.search(text) is not None) == is_python


@pytest.mark.ordinary("release", "refused-no-ledger")
@pytest.mark.parametrize("command", ["plan", "release"])
@pytest.mark.parametrize("name", REFUSED)
def test_no_message_is_in_python(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, command: str) -> None:
    shutil.copytree(RUNS, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    ran = run(command, name, *(["-o", "out"] if command == "release" else []))
    assert ran.code not in (1, 70), ran.err
    assert "Traceback" not in ran.err
    found = PYTHON.search(ran.err)
    assert found is None, f"{found[0]!r} in: {ran.err}"


def test_of_an_output_that_exists(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(RUNS, tmp_path / "runs")
    monkeypatch.chdir(tmp_path / "runs")
    (tmp_path / "runs" / "out").mkdir()
    (tmp_path / "runs" / "out" / "note.txt").write_text("mine")
    ran = run("release", "laplace-total.toml", "-o", "out", "--no-ledger")
    assert (ran.code, PYTHON.search(ran.err)) == (9, None), ran.err
