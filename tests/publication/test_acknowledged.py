"""True counts are published only where someone said how many, and nothing is charged before."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, InvalidRun, NotAcknowledged
from holdfast.ledger import Ledger
from holdfast.publication.pipeline import check_acknowledged
from holdfast.runfiles.runfile import load_run
from tests.running import Run

LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
GEOGRAPHY = hf.Universe.listed({"state": list("AAABBCD"), "county": list("1231245")})
COUNTS = np.array([5, 0, 2, 0, 0, 4, 9])
KEEP = [hf.margin("state")]
"""States C and D have one county each; the total of B is 0."""

RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
[keep]
margins = [["state"]]
[release]
id = "counties"
mechanism = "MECHANISM"
"""
CSV = "state,county,people\nA,1,5\nA,2,0\nA,3,2\nB,1,0\nB,2,0\nC,4,4\nD,5,9\n"
LIST = '"state","county"\n"C","4"\n"D","5"\n'
BUDGET = 'epsilon = "1/2"\nper = "person"\n'


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counties.csv").write_text(CSV)
    write_run(tmp_path)
    return tmp_path


def write_run(folder: Path, *lines: str, mechanism: str = "generalized-laplace", budget: str = BUDGET) -> None:
    (folder / "run.toml").write_text(RUN.replace("MECHANISM", mechanism) + budget + "".join(f"{line}\n" for line in lines))


class TestCommand:
    """What `holdfast release` asks for before it publishes true counts."""

    @pytest.mark.parametrize("allowed", [None, 0, 1, 3, 236])
    def test_another_number_is_refused_with_the_number_the_list_and_the_line(self, work: Path, run: Run, allowed: int | None) -> None:
        write_run(work, *([] if allowed is None else [f"allow_exposed = {allowed}"]))
        ran = run("release", "run.toml", "-o", "out")
        assert (ran.code, ran.out) == (6, "")
        assert "The true counts of 2 cells would be published" in ran.err
        assert "write allow_exposed = 2 under [release]" in ran.err
        assert "'out-exposed.csv' lists them" in ran.err
        assert ran.err.count("\n") == 1
        assert sorted(os.listdir()) == ["counties.csv", "out-exposed.csv", "run.toml"]
        assert (work / "out-exposed.csv").read_text() == LIST
        assert oct((work / "out-exposed.csv").stat().st_mode & 0o777) == "0o600"

    def test_the_line_that_was_shown_works(self, work: Path, run: Run) -> None:
        write_run(work, "allow_exposed = 2")
        assert run("release", "run.toml", "-o", "out").code == 0
        assert json.loads((work / "out" / "card.json").read_text())["release"]["allow_exposed"] == 2
        assert "the office accepted that 2 cells are published exactly" in (work / "out" / "statement.html").read_text()
        assert run("verify", "out").code == 0

    def test_nothing_is_charged(self, work: Path, run: Run) -> None:
        run("ledger", "grant", "counties", "--epsilon", "3", "--approver", "a", "--reason", "b", "--ledger", "budget.sqlite")
        before = (work / "budget.sqlite").read_bytes()
        assert run("release", "run.toml", "-o", "out", "--ledger", "budget.sqlite").code == 6
        assert (work / "budget.sqlite").read_bytes() == before
        assert Ledger.open(work / "budget.sqlite").reservation("counties", "counties") is None

    def test_as_json(self, work: Path, run: Run) -> None:
        ran = run("release", "run.toml", "-o", "out", "--json")
        assert (ran.code, ran.err) == (6, "")
        said = json.loads(ran.out)
        assert (said["code"], said["field"]) == ("not-acknowledged", "release.allow_exposed")
        assert said["details"] == {"exposed": 2, "allowed": 0, "list": "out-exposed.csv"}

    def test_cells_pinned_by_the_values_are_counted_apart_and_told_after_the_draw(self, work: Path, run: Run) -> None:
        """The total of B is 0: known once the totals are published, and nothing that a run file could say before."""
        write_run(work, "allow_exposed = 2")
        ran = run("release", "run.toml", "-o", "out")
        assert "2 cells are published exactly" in ran.out
        assert "2 other cells follow from the published totals" in ran.out
        assert f"See {Path('out', 'exposed.csv')}." in ran.out
        said = json.loads(run("release", "run.toml", "-o", "again", "--json", "--no-ledger").out)
        assert (said["exposed"]["by_structure"], said["exposed"]["by_values"]) == (2, 2)

    def test_a_plan_shows_the_line(self, work: Path, run: Run) -> None:
        assert "To write   allow_exposed = 2 under [release]" in run("plan", "run.toml").out
        assert json.loads(run("plan", "run.toml", "--json").out)["allow_exposed"] == 0
        write_run(work, "allow_exposed = 2")
        assert "To write" not in run("plan", "run.toml").out

    def test_suppression_needs_the_line_too(self, work: Path, run: Run) -> None:
        """It publishes just these cells."""
        write_run(work, mechanism="suppression", budget="")
        assert run("release", "run.toml", "-o", "out").code == 6
        write_run(work, "allow_exposed = 2", mechanism="suppression", budget="")
        assert run("release", "run.toml", "-o", "out").code == 0

    def test_cells_that_identities_fix_are_not_counted(self, work: Path, run: Run) -> None:
        text = RUN.replace(
            'margins = [["state"]]', 'total = true\n[keep.identities]\nsubsets = [{where = "state = \'B\'", by = ["state", "county"]}]'
        )
        (work / "run.toml").write_text(text.replace("MECHANISM", "generalized-laplace") + BUDGET)
        assert run("release", "run.toml", "-o", "out").code == 0

    def test_a_number_where_no_cell_is_fixed(self, work: Path, run: Run) -> None:
        text = RUN.replace('margins = [["state"]]', "total = true").replace("MECHANISM", "generalized-laplace")
        (work / "run.toml").write_text(text + BUDGET + "allow_exposed = 1\n")
        ran = run("release", "run.toml", "-o", "out")
        assert (ran.code, sorted(os.listdir())) == (6, ["counties.csv", "run.toml"])
        assert "fix no cell, and allow_exposed says 1" in ran.err

    def test_other_files_are_not_touched(self, work: Path, run: Run) -> None:
        (work / "out-exposed.csv").write_text("mine")
        for _ in range(2):
            assert "'out-exposed-2.csv' lists them" in run("release", "run.toml", "-o", "out").err
        assert (work / "out-exposed.csv").read_text() == "mine"
        assert sorted(os.listdir()) == ["counties.csv", "out-exposed-2.csv", "out-exposed.csv", "run.toml"]

    def test_twins_are_refused_in_the_same_words(self, work: Path, run: Run) -> None:
        """Other counts under the same totals, and other totals too: the number comes from the kept constraints alone."""
        found = []
        for place, counts in enumerate(((5, 0, 2, 0, 0, 4, 9), (1, 5, 1, 0, 0, 4, 9), (7, 7, 7, 7, 7, 0, 0))):
            rows = [line.rsplit(",", 1)[0] for line in CSV.splitlines()[1:]]
            lines = ["state,county,people", *(f"{row},{count}" for row, count in zip(rows, counts, strict=True))]
            (work / "counties.csv").write_text("\n".join(lines) + "\n")
            ran = run("release", "run.toml", "-o", "out")
            found.append((ran.code, ran.err, (work / "out-exposed.csv").read_bytes()))
            assert found[place] == found[0]

    @pytest.mark.parametrize("given", ["-1", "2.0", '"2"', "true"])
    def test_what_is_no_number(self, work: Path, given: str) -> None:
        write_run(work, f"allow_exposed = {given}")
        with pytest.raises(InvalidRun, match=r"release\.allow_exposed"):
            load_run(work / "run.toml")


class TestPython:
    def test_where_nothing_is_said_none_may_be_exposed(self) -> None:
        with pytest.raises(NotAcknowledged, match="nothing says that this is allowed"):
            hf.release(hf.Table(GEOGRAPHY, COUNTS), KEEP, LAPLACE, ledger=None)

    def test_the_number(self) -> None:
        made = hf.release(hf.Table(GEOGRAPHY, COUNTS), KEEP, LAPLACE, allow_exposed=2, ledger=None)
        assert made.card.release.allow_exposed == 2

    @pytest.mark.parametrize("allowed", [0, 1, 3])
    def test_another_number_is_refused_before_anything_is_charged(self, tmp_path: Path, allowed: int) -> None:
        ledger = Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=True)
        ledger.grant("t", kind="pure", epsilon="3", approver="A. Chief", reason="the census")
        table = hf.Table(GEOGRAPHY, COUNTS, name="t")
        with pytest.raises(NotAcknowledged, match=r"allow_exposed=2") as caught:
            hf.release(table, KEEP, LAPLACE, ledger=ledger, release_id="r", allow_exposed=allowed)
        assert ledger.reservation("t", "r") is None
        assert caught.value.details == {"exposed": 2, "allowed": allowed, "list": None}

    @pytest.mark.parametrize("given", [-1, 2.0, "2", True, None])
    def test_what_is_no_number(self, given: Any) -> None:
        with pytest.raises(InvalidParameter, match="allow_exposed is a number of cells"):
            hf.release(hf.Table(GEOGRAPHY, COUNTS), KEEP, LAPLACE, allow_exposed=given, ledger=None)

    def test_a_search_that_was_cut_says_so(self) -> None:
        found = hf.plan(GEOGRAPHY, KEEP, LAPLACE).exposure
        object.__setattr__(found, "undecided", np.array([0, 1]))
        with pytest.raises(NotAcknowledged, match="For 2 cells it is not decided whether the kept totals give them away"):
            check_acknowledged(found, 0)
