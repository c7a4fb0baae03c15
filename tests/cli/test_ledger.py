"""`holdfast ledger` and `holdfast release` through a ledger, as a user meets them: what is printed, returned, charged."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.engines.local import BoundRelease
from holdfast.ledger import Ledger
from holdfast.wording.ledger import NO_KEY
from tests.ledger.helpers import run_sql
from tests.running import Run
from tests.snapshot_files import Snapshot, undated

COUNTIES = "state,county,people\n17,031,41\n17,043,12\n17,097,5\n18,001,7\n18,003,21\n19,001,3\n"
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
public = true
[keep]
KEPT
[release]
id = "ID"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""
FIXES = {'margins = [["state"]]': 1, 'subsets = [{column = "county", codes = ["031"]}]': 1, 'margins = [["county"]]': 4}
"""How many cells these constraints fix."""
DEFAULT = "holdfast-ledger.sqlite"
GRANT = ("ledger", "grant", "counties", "--epsilon", "3", "--approver", "A. Chief", "--reason", "the census")
LEDGER_PROBLEM, WRONG_INPUT, IDENTICAL = 12, 2, 9


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with run files and their table, which is the current one."""
    (tmp_path / "counties.csv").write_text(COUNTIES)
    write_run(tmp_path / "run.toml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_run(path: Path, name: str = "r1", kept: str = 'margins = [["state"]]', more: str = "") -> str:
    path.write_text(RUN.replace("ID", name).replace("KEPT", kept) + f"allow_exposed = {FIXES.get(kept, 0)}\n" + more)
    return str(path)


def card(folder: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(Path(folder, "card.json").read_text())["release"]
    return found


class TestGrantAndShow:
    def test_a_grant_makes_the_ledger_and_shows_it(self, run: Run, snapshot: Snapshot) -> None:
        snapshot(run("ledger", "show").err, "there is no ledger")
        made = run(*GRANT, "--legal", "Act 12")
        assert (made.code, made.err) == (0, "")
        assert Path(DEFAULT).is_file()
        snapshot(undated(made.out), "granted")
        snapshot(run("ledger", "show").out, "balances")
        assert [one["dataset"] for one in json.loads(run("ledger", "show", "--json").out)["datasets"]] == ["counties"]

    def test_a_long_name_is_shown_whole(self, run: Run) -> None:
        """It is what the next command is given."""
        name = "Residents by county, sex and age in single years, 2010"
        run("ledger", "grant", name, *GRANT[3:])
        run(*GRANT)
        lines = run("ledger", "show").out.splitlines()
        assert name in lines
        assert lines[lines.index(name) + 1].strip().startswith("epsilon = 0 of 3 spent")
        assert run("ledger", "show", name).code == 0

    @pytest.mark.parametrize(
        ("given", "kind"),
        [
            (("--rho", "1/8"), {"kind": "zcdp", "granted": "1/8", "currency": "rho"}),
            (("--epsilon", "2", "--delta", "1e-6"), {"kind": "approximate", "epsilon": "2", "delta": "1/1000000", "currency": "rho"}),
            (("--epsilon", "1/3", "--protect", "household"), {"kind": "pure", "protect": "household", "granted": "1/3", "left": "1/3"}),
        ],
    )
    def test_kinds_of_grants(self, run: Run, given: tuple[str, ...], kind: dict[str, str]) -> None:
        made = run("ledger", "grant", "x", "--approver", "a", "--reason", "b", "--json", *given)
        said = json.loads(made.out)
        assert {name: said[name] for name in kind} == kind
        assert said["releases"] == []
        assert said["exposed"] is None

    @pytest.mark.parametrize(
        ("given", "message"),
        [
            ((), "No budget given. Use --epsilon, --epsilon with --delta, or --rho."),
            (("--delta", "1e-6"), "epsilon is missing"),
            (("--rho", "1", "--epsilon", "1"), "epsilon must be left out"),
            (("--epsilon", "nothing"), "epsilon"),
            (("--epsilon", "0"), "epsilon"),
            (("--epsilon", "1", "--reason", " "), "reason"),
        ],
    )
    def test_wrong_grants(self, run: Run, given: tuple[str, ...], message: str) -> None:
        made = run("ledger", "grant", "x", "--approver", "a", "--reason", "b", *given)
        assert (made.code, made.out) == (WRONG_INPUT, "")
        assert message in made.err
        assert made.err.startswith("holdfast: ")

    def test_grants_of_one_data_set_share_their_kind(self, run: Run) -> None:
        run(*GRANT)
        made = run("ledger", "grant", "counties", "--rho", "1", "--approver", "a", "--reason", "b")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")

    def test_unknown_data_sets_and_places(self, run: Run, tmp_path: Path) -> None:
        run(*GRANT)
        assert run("ledger", "show", "countys").code == LEDGER_PROBLEM
        assert run("ledger", "show", "countys").err == "holdfast: The ledger has no data set 'countys'. It has: counties.\n"
        missing = run("ledger", "show", "--ledger", tmp_path / "nowhere.db")
        assert (missing.code, missing.out) == (LEDGER_PROBLEM, "")
        assert not (tmp_path / "nowhere.db").exists()

    def test_five_releases_fit_a_screen(self, run: Run, snapshot: Snapshot) -> None:
        """What is left and what is exposed, on 24 lines of 100 columns; all of it as JSON."""
        run(*GRANT)
        kept = ['margins = [["state"]]', "total = true", 'subsets = [{column = "county", codes = ["031", "043"]}]']
        kept += ['subsets = [{column = "county", codes = ["031"]}]', 'margins = [["county"]]']
        for number, text in enumerate(kept):
            name = f"counties-2030-v{number}"
            made = run("release", write_run(Path("run.toml"), name, text), "-o", name)
            if made.code == 6:  # with what was published before it fixes more
                counted = re.search(r"write allow_exposed = (\d+)", made.err)
                assert counted is not None
                said = re.sub("allow_exposed = .*", f"allow_exposed = {counted[1]}", Path("run.toml").read_text())
                Path("run.toml").write_text(said)
                made = run("release", "run.toml", "-o", name)
            assert made.code == 0
        made = run("ledger", "show", "counties")
        lines = made.out.splitlines()
        assert (made.code, made.err) == (0, "")
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 100
        snapshot(undated(made.out))
        said = json.loads(run("ledger", "show", "counties", "--json").out)
        assert [one["id"] for one in said["releases"]] == [f"counties-2030-v{number}" for number in range(5)]
        assert {one["state"] for one in said["releases"]} == {"closed"}
        assert said["releases"][0]["charge"]["epsilon"] == "1/2"
        assert said["releases"][4]["ledger"] == card("counties-2030-v4")["ledger"]
        assert (said["spent"], said["left"]) == ("5/2", "1/2")
        assert "Together the kept totals of" in said["exposed"]


class TestReleases:
    def test_charged(self, run: Run, snapshot: Snapshot) -> None:
        run(*GRANT)
        made = run("release", "run.toml", "-o", "out")
        assert made.code == 0
        entry = str(card("out")["ledger"])
        assert made.err == f"{NO_KEY}\n"  # what is exposed is printed where it is more than the plan says
        snapshot(made.out.replace(entry, "ENTRY"), "after it")
        again = run("release", "run.toml", "-o", "second")
        assert (again.code, again.out) == (IDENTICAL, "")
        snapshot(again.err, "again")
        assert not Path("second").exists()
        write_run(Path("run.toml"), "r2")
        said = json.loads(run("release", "run.toml", "-o", "second", "--json").out)
        assert said["ledger"] == card("second")["ledger"]

    def test_what_two_releases_fix_is_said_before_the_second_is_drawn(
        self, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
    ) -> None:
        run(*GRANT)
        write_run(Path("run.toml"), "r1", 'subsets = [{column = "county", codes = ["031", "043"]}]')
        assert run("release", "run.toml", "-o", "first").code == 0
        wider = 'subsets = [{column = "county", codes = ["031", "043", "097"]}]'
        write_run(Path("run.toml"), "r2", wider)
        draw = BoundRelease.draw

        def drawn(*given: object) -> object:
            print("drawing now", file=sys.stderr)
            return draw(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(BoundRelease, "draw", drawn)
        refused = run("release", "run.toml", "-o", "second")
        assert refused.code == 6
        snapshot(refused.err)
        Path("run.toml").write_text(Path("run.toml").read_text().replace("allow_exposed = 0", "allow_exposed = 1"))
        done = run("release", "run.toml", "-o", "second")
        assert done.code == 0
        assert done.err.endswith("drawing now\n")

    def test_without_a_budget(self, run: Run, snapshot: Snapshot) -> None:
        run(*GRANT[:2], "others", *GRANT[3:])
        made = run("release", "run.toml", "-o", "out")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")
        snapshot(made.err, "none granted")
        run("ledger", "grant", "counties", "--epsilon", "1/3", "--approver", "a", "--reason", "b")
        made = run("release", "run.toml", "-o", "out")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")
        snapshot(made.err, "too little left")
        assert not Path("out").exists()

    def test_no_ledger(self, run: Run) -> None:
        """Where there is none, and where there is one that is not to be used: command and card say so."""
        made = run("release", "run.toml", "-o", "first", "--no-ledger")
        assert "This release was recorded in no ledger" in made.out
        assert made.err == ""
        assert not Path(DEFAULT).exists()
        run(*GRANT)
        assert "recorded in no ledger" in run("release", "run.toml", "-o", "second", "--no-ledger").out
        assert json.loads(run("release", "run.toml", "-o", "third", "--no-ledger", "--json").out)["ledger"] is None
        assert [card(name)["ledger"] for name in ("first", "second", "third")] == [None] * 3
        assert json.loads(run("ledger", "show", "counties", "--json").out)["spent"] == "0"

    def test_nothing_to_resume_from(self, run: Run) -> None:
        for more in ((), ("--no-ledger",)):
            made = run("release", "run.toml", "-o", "out", "--resume", *more)
            assert (made.code, made.out) == (LEDGER_PROBLEM, "")
            assert "There is no ledger to resume from" in made.err
        assert not Path("out").exists()

    def test_places_in_their_order(self, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """--ledger, then the run file, then HOLDFAST_LEDGER, then beside the run file; never the current folder unasked."""
        places = {name: work / name / DEFAULT for name in ("option", "runfile", "environment", "beside", "here")}
        for place in places.values():
            place.parent.mkdir()
            run(*GRANT, "--ledger", place)
        (work / "beside" / "counties.csv").write_text(COUNTIES)
        monkeypatch.chdir(work / "here")

        def charged(*more: str, ledger: str = "") -> str:
            text = write_run(work / "beside" / "run.toml", f"r{time.monotonic_ns()}", more=ledger)
            made = run("release", text, "-o", work / f"out{time.monotonic_ns()}", "--json", *more)
            entry = json.loads(made.out)["ledger"].split(":")[0]
            return next(name for name, place in places.items() if Ledger.open(place).id == entry)

        said = f'ledger = "{work}/runfile/{DEFAULT}"\n'
        monkeypatch.setenv("HOLDFAST_LEDGER", str(places["environment"]))
        assert charged("--ledger", str(places["option"]), ledger=said) == "option"
        assert charged(ledger=said) == "runfile"
        assert charged(ledger=f'ledger = "../runfile/{DEFAULT}"\n') == "runfile"
        assert charged() == "environment"
        monkeypatch.delenv("HOLDFAST_LEDGER")
        assert charged() == "beside"
        places["beside"].rename(work / "beside" / "moved")
        places["beside"] = work / "beside" / "moved"
        made = run("release", write_run(work / "beside" / "run.toml", "r9"), "-o", work / "no")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")
        assert "There is a ledger in the current folder, and none beside the run file or the data. Say which is meant" in made.err
        assert not (work / "no").exists()
        assert charged("--ledger", DEFAULT) == "here"

    def test_a_ledger_that_was_named_and_is_not_there(self, run: Run) -> None:
        """Named and missing is an error, never a release without a ledger."""
        made = run("release", "run.toml", "-o", "out", "--ledger", "nowhere.db")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")
        assert not Path("out").exists()
        assert not Path("nowhere.db").exists()

    def test_a_revision(self, run: Run) -> None:
        run(*GRANT)
        run("release", "run.toml", "-o", "first")
        Path("counties.csv").write_text(COUNTIES.replace("18,001,7", "18,001,9"))
        write_run(Path("run.toml"), "r2", more='revises = "first"\n')
        assert run("release", "run.toml", "-o", "second").code == 0
        kept = json.loads(Path("second", "card.json").read_text())["kept"]
        assert kept["revision"] == {"of": "r1", "changed": 1, "totals": ["state=18: 28 before, 30 now"]}
        said = run("ledger", "show", "counties").out
        assert "revision of r1" in said
        assert "Spent     epsilon = 1 of 3" in said


class TestVerifyAndVoid:
    def test_verify(self, run: Run) -> None:
        run(*GRANT)
        run("release", "run.toml", "-o", "out")
        head = Ledger.open(DEFAULT).head()
        made = run("ledger", "verify", "out", "out/card.json")
        assert (made.code, made.err) == (0, "")
        seq = head.split(":")[1]
        compared = f"Compared with the mark in the state folder (event {seq}) and 2 cards."
        assert made.out == f"The ledger is as it was written. Head: {head}\n{compared}\n"
        seen = {"state folder": head, "cards": []}
        assert json.loads(run("ledger", "verify", "--json").out) == {"problems": [], "head": head, "compared_with": seen}
        run("release", "run.toml", "-o", "free", "--no-ledger")
        assert "says that no ledger was used" in run("ledger", "verify", "free").err
        assert "is not a readable card" in run("ledger", "verify", "run.toml").err

    def test_a_changed_row_and_a_cut_tail(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run(*GRANT)
        run("release", "run.toml", "-o", "out")
        run_sql(Ledger.open(DEFAULT), "DELETE FROM holdfast_events WHERE seq > 2")
        noticed = run("ledger", "verify")
        assert noticed.code == LEDGER_PROBLEM
        assert "The mark in the state folder names event 8, but the ledger ends at event 2" in noticed.err
        monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "forgotten"))
        assert run("ledger", "verify").code == 0
        cut = run("ledger", "verify", "out")
        assert (cut.code, cut.out) == (LEDGER_PROBLEM, "")
        assert "its tail was cut off" in cut.err
        run_sql(Ledger.open(DEFAULT), "UPDATE holdfast_events SET dataset = 'mine' WHERE seq = 2")
        for command in (("ledger", "verify"), ("ledger", "show", "counties"), ("release", "run.toml", "-o", "second")):
            made = run(*command)
            assert (made.code, made.out) == (LEDGER_PROBLEM, "")
            assert "was changed" in made.err
        assert not Path("second").exists()

    @pytest.mark.parametrize("drawn", [False, True])
    def test_void(self, run: Run, monkeypatch: pytest.MonkeyPatch, drawn: bool) -> None:
        run(*GRANT)

        def stop(*_: object) -> None:
            raise RuntimeError

        with monkeypatch.context() as patch:
            patch.setattr("holdfast.engines.local.BoundRelease.draw" if drawn else "holdfast.ledger.Ledger.start_drawing", stop)
            assert run("release", "run.toml", "-o", "out").code == 70
        refused = run("release", "run.toml", "-o", "out")
        assert (refused.code, refused.out) == (LEDGER_PROBLEM, "")
        assert f"is {'drawing' if drawn else 'reserved'} in the ledger" in refused.err
        assert "its key was not sealed" in run("release", "run.toml", "-o", "out", "--resume").err
        made = run("ledger", "void", "counties", "r1", "--reason", "stopped", *(("--json",) if drawn else ()))
        if drawn:
            assert json.loads(made.out) == {"release": "r1", "refunded": False}
        else:
            assert made.out == "Voided r1: its charge was given back.\n"
        assert json.loads(run("ledger", "show", "counties", "--json").out)["spent"] == ("1/2" if drawn else "0")
        assert run("release", "run.toml", "-o", "out").code == (IDENTICAL if drawn else 0)
        unknown = run("ledger", "void", "counties", "r9", "--reason", "x")
        assert (unknown.code, unknown.out) == (LEDGER_PROBLEM, "")
        assert "has no release 'r9'" in unknown.err

    def test_a_closed_release_is_not_voided(self, run: Run) -> None:
        run(*GRANT)
        run("release", "run.toml", "-o", "out")
        made = run("ledger", "void", "counties", "r1", "--reason", "regret")
        assert (made.code, made.out) == (LEDGER_PROBLEM, "")


STOPPED = """
import os, signal
from holdfast.publication import publication
fill = publication.fill_folder
def slow(*given):
    fill(*given)
    os.kill(os.getpid(), SIGNAL)
    import time; time.sleep(30)
publication.fill_folder = slow
from holdfast.cli.commands import main
from holdfast.engines.local import BoundRelease
main()
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.long)])
def test_stopped_and_resumed(run: Run, work: Path, monkeypatch: pytest.MonkeyPatch, sent: signal.Signals, code: int) -> None:
    """Ctrl-C says that something stands in the ledger; --resume finishes it."""
    run(*GRANT)
    script = STOPPED.replace("SIGNAL", str(int(sent)))
    command = [sys.executable, "-c", script, "release", "run.toml", "-o", "out"]
    environment = {**os.environ, "HOLDFAST_KEY": "the secret of the office"}
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code
    said = done.stderr.splitlines()[-1]
    assert said.startswith("holdfast: stopped. The release is charged in the ledger; nothing was published.")
    assert "holdfast release run.toml -o out --resume" in said
    assert sorted(path.name for path in work.iterdir()) == ["counties.csv", DEFAULT, "run.toml"]
    assert run("release", "run.toml", "-o", "out").code == LEDGER_PROBLEM
    monkeypatch.setenv("HOLDFAST_KEY", "the secret of the office")
    resumed = run("release", "run.toml", "-o", "out", "--resume")
    assert resumed.code == 0
    assert "Together" not in resumed.err  # the release itself is none of those before it
    assert run("verify", "out").code == 0
    assert run("ledger", "verify", "out").code == 0
