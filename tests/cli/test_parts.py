"""Bars on the terminal: one for each step that runs, with its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from holdfast.cli.parts import StepBars
from tests.running import Ran

RUN = """\
[table]
source = "big.csv"
cells = ["county", "place"]
count = "persons"
public = true
[keep]
margins = [["county"]]
[release]
id = "big"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> StepBars:
    """Bars on a terminal, none of which is redrawn by a clock."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    return StepBars()


def shown(bars: StepBars) -> list[tuple[str, float, float | None]]:
    """Name, done and in all of every bar that stands."""
    return [(task.description, task.completed, task.total) for task in bars.bars.tasks]


def test_a_bar_for_each_step_that_runs(bars: StepBars, capfd: pytest.CaptureFixture[str]) -> None:
    bars.show("Writing", 0, 1)
    bars.show("Drawing", 0, 6)
    assert shown(bars) == [("Writing", 0, None), ("Drawing", 0, 6)]
    bars.show("Drawing", 4, 6)
    assert shown(bars)[1] == ("Drawing", 4, 6)
    bars.bars.refresh()
    lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capfd.readouterr().err).splitlines()
    assert any(re.match(r"Writing +━+ +0:", line) for line in lines), lines
    assert any(re.match(r"Drawing +━.* 4 of 6 0:", line) for line in lines), lines
    bars.show("Drawing", 6, 6)
    assert shown(bars) == [("Writing", 0, None)]
    bars.show("Drawing", 6, 6)  # a step that counts says so at its end, too
    assert shown(bars) == [("Writing", 0, None)]
    bars.show("Writing", 1, 1)
    assert shown(bars) == []


def test_a_step_that_failed_goes_with_the_one_around_it(bars: StepBars) -> None:
    bars.show("Planning", 0, 1)
    bars.show("Assessing chains", 0, 200)
    bars.show("Planning", 1, 1)
    assert shown(bars) == []


@pytest.mark.parametrize("cells", [1000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_the_bars_of_a_release(tmp_path: Path, run: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    """Planning, drawing, exposure, writing and pages each have a bar; then verifying has."""
    places = np.arange(cells)
    lines = [f"{place // 500:04},{place:07},{place % 7}" for place in places.tolist()]
    (tmp_path / "big.csv").write_text("county,place,persons\n" + "\n".join(lines) + "\n")
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    told: list[str] = []
    show = StepBars.show

    def record(self: StepBars, name: str, done: int, total: int) -> None:
        told.append(name)
        show(self, name, done, total)

    monkeypatch.setattr(StepBars, "show", record)
    assert run("release", "run.toml", "-o", "out").code == 0
    planning = ["Reading the table", "Planning", "Calibrating the noise", "Finding exposed cells"]
    drawing = ["Finding cells that are 0", "Trying the samplers", "Drawing", "Writing", "Writing the table", "Writing the pages"]
    assert list(dict.fromkeys(told)) == [*planning, *drawing]
    assert told.index("Drawing") < len(told) - told[::-1].index("Finding exposed cells"), "once more, after the draw"
    told.clear()
    assert run("verify", "out").code == 0
    assert list(dict.fromkeys(told))[:2] == ["Verifying", "Recomputing the promise"]
    told.clear()
    assert run("interval", "out", "--by", "county").code == 0
    assert "Verifying" in told
