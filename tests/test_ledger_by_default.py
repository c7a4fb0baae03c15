"""Every release on the command line is recorded: where nothing is said, in a ledger beside the run file that sets no limit."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import holdfast as hf
from holdfast.ledger import Ledger
from holdfast.publication import publication
from tests.running import Run

COUNTIES = "state,county,people\n17,031,41\n17,043,12\n17,097,5\n18,001,7\n18,003,21\n19,001,3\n"
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
allow_exposed = 1
"""
SQUARE = "a,b,n\n" + "".join(f"{i},{j},{10 * i + j}\n" for i in range(3) for j in range(3))
GRID = RUN.replace('["state", "county"]', '["a", "b"]').replace('"people"', '"n"').replace('[["state"]]', '[["a"], ["b"]]')
GRID = GRID.replace("allow_exposed = 1\n", "")
DEFAULT = "holdfast-ledger.sqlite"
LEDGER_PROBLEM, IDENTICAL = 12, 9
NOBODY = 65534


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "counties.csv").write_text(COUNTIES)
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def card(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(folder, "card.json").read_text())
    return found


def pages(folder: str) -> list[str]:
    return [Path(folder, name).read_text(encoding="utf-8") for name in ("statement.html", "report.html")]


class TestTwoRunsOfOneId:
    """Two runs without a ledger gave two noisy copies under one id."""

    def test_the_second_is_refused(self, run: Run) -> None:
        first = run("release", "run.toml", "-o", "first")
        assert (first.code, first.err) == (0, "")
        assert f"Charged to 'counties', ledger entry {card('first')['release']['ledger']}." in first.out
        assert "NO LIMIT IS SET" in first.out
        again = run("release", "run.toml", "-o", "second")
        assert (again.code, again.out) == (IDENTICAL, "")
        assert "The ledger already holds the release 'r1' of this data set (published)" in again.err
        assert not Path("second").exists()
        assert run("ledger", "verify", "first").code == 0

    def test_under_a_link_to_the_run_file(self, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The link stands for the file: the ledger is beside the file itself, and not beside the link."""
        (work / "elsewhere").mkdir()
        for name in ("run.toml", "counties.csv"):
            (work / "elsewhere" / name).symlink_to(work / name)
        monkeypatch.chdir(work / "elsewhere")
        assert run("release", "run.toml", "-o", "first").code == 0
        assert (work / DEFAULT).exists()
        assert not Path(DEFAULT).exists()
        monkeypatch.chdir(work)
        assert run("release", "run.toml", "-o", "second").code == IDENTICAL
        assert not Path("second").exists()

    def test_whatever_the_data_are_called(self, run: Run) -> None:
        """The data set's name follows from the source, so a copy of the file would be another account."""
        assert run("release", "run.toml", "-o", "first").code == 0
        Path("copy.csv").write_text(COUNTIES)
        Path("run.toml").write_text(RUN.replace("counties.csv", "copy.csv"))
        again = run("release", "run.toml", "-o", "second")
        assert (again.code, again.out) == (LEDGER_PROBLEM, "")
        assert "already holds a release 'r1', of the data set 'counties'" in again.err
        assert not Path("second").exists()
        Path("run.toml").write_text(RUN.replace("counties.csv", "copy.csv").replace('"r1"', '"r2"'))
        assert run("release", "run.toml", "-o", "second").code == 0
        assert [one["dataset"] for one in json.loads(run("ledger", "show", "--json").out)["datasets"]] == ["counties", "copy"]

    def test_from_another_folder_it_is_the_same_ledger(self, run: Run, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert run("release", "run.toml", "-o", "first").code == 0
        (work / "elsewhere").mkdir()
        monkeypatch.chdir(work / "elsewhere")
        assert run("release", "../run.toml", "-o", "second").code == IDENTICAL
        assert not Path(DEFAULT).exists()

    def test_many_ids_without_a_limit(self, run: Run) -> None:
        for number in range(3):
            Path("run.toml").write_text(RUN.replace('"r1"', f'"r{number}"').replace('"1/2"', '"50"'))
            assert run("release", "run.toml", "-o", f"out{number}").code == 0
        (said,) = json.loads(run("ledger", "show", "--json").out)["datasets"]
        assert (said["granted"], said["left"], said["spent"], said["currency"], said["recorded"]) == (None, None, "150", "epsilon", 3)

    @pytest.mark.long
    def test_two_at_once(self, work: Path) -> None:
        """Both find no ledger and make one; one of them draws."""
        command = [sys.executable, "-m", "holdfast.cli.commands", "release", "run.toml", "-o"]
        started = [subprocess.Popen([*command, f"out{k}"], cwd=work, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for k in range(2)]
        errors = [process.communicate(timeout=100)[1] for process in started]
        assert sorted(process.returncode == 0 for process in started) == [False, True], errors
        assert sum((work / f"out{k}").exists() for k in range(2)) == 1
        assert Ledger.open(work / DEFAULT).verify() == []


class TestTheFile:
    def test_only_its_owner_may_read_it(self, run: Run, work: Path) -> None:
        before = os.umask(0)
        try:
            assert run("release", "run.toml", "-o", "out").code == 0
            run("ledger", "grant", "x", "--epsilon", "1", "--approver", "a", "--reason", "b", "--ledger", "other.sqlite")
            run("ledger", "create", "--ledger", "third.sqlite")
        finally:
            os.umask(before)
        for name in (DEFAULT, "other.sqlite", "third.sqlite"):
            assert stat.S_IMODE((work / name).stat().st_mode) == 0o600, name

    def test_what_is_refused_makes_none(self, run: Run, work: Path) -> None:
        Path("run.toml").write_text(RUN.replace('[["state"]]', '[["state", "county"]]'))
        assert run("release", "run.toml", "-o", "out").code == 6
        assert sorted(path.name for path in work.iterdir()) == ["counties.csv", "run.toml"]

    def test_one_that_a_crash_left_empty_is_finished(self, run: Run, work: Path) -> None:
        (work / DEFAULT).touch()
        assert run("release", "run.toml", "-o", "out").code == 0
        assert Ledger.open(work / DEFAULT).verify() == []

    def test_a_folder_that_cannot_be_written(self, work: Path) -> None:
        """The error names `ledger =`; as root it is tried as another user. Nothing of the table is read before."""
        for path in (work, *work.parents):
            if path == work or path.name.startswith(("pytest", "popen")):
                path.chmod(path.stat().st_mode | 0o055)
        work.chmod(0o555)
        (work / "counties.csv").chmod(0)
        child = os.fork()
        if child == 0:
            code = 99
            try:
                from holdfast.cli.ledger import ledger_of_release

                if os.geteuid() == 0:
                    os.setuid(NOBODY)
                ledger_of_release(None, False, None, work)
            except hf.errors.LedgerProblem as error:
                code = 12 if "ledger = " in str(error) and 'ledger = "none"' in str(error) else 98
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == LEDGER_PROBLEM
        work.chmod(0o755)
        assert not (work / DEFAULT).exists()

    def test_elsewhere_as_the_error_says(self, run: Run, work: Path) -> None:
        (work / "kept").mkdir()
        assert run("ledger", "create", "--ledger", "kept/office.sqlite").code == 0
        assert run("ledger", "create", "--ledger", "kept/office.sqlite").code == LEDGER_PROBLEM
        Path("run.toml").write_text(RUN + 'ledger = "kept/office.sqlite"\n')
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("release", "run.toml", "-o", "out2").code == IDENTICAL
        assert not (work / DEFAULT).exists()


class TestWithoutALedger:
    @pytest.mark.parametrize("how", ["option", "run file", "environment"])
    def test_asked_for_in_words_and_said_on_card_and_pages(self, run: Run, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
        if how == "run file":
            Path("run.toml").write_text(RUN + 'ledger = "none"\n')
        if how == "environment":
            monkeypatch.setenv("HOLDFAST_LEDGER", "none")
        for name in ("first", "second"):
            made = run("release", "run.toml", "-o", name, *(["--no-ledger"] if how == "option" else []))
            assert made.code == 0
            words = card(name)["release"]["ledger_text"]
            assert words.startswith("This release was recorded in no ledger")
            assert words in made.out
            assert card(name)["release"]["ledger"] is None
            assert all("recorded in no ledger" in page for page in pages(name))
        assert not Path(DEFAULT).exists()

    def test_recorded_on_card_and_pages(self, run: Run) -> None:
        run("release", "run.toml", "-o", "out")
        statement, report = (Path("out", page).read_text() for page in ("statement.html", "report.html"))
        assert "Recorded" in statement
        assert "before the draw, entry" in statement
        assert "This release was recorded in a ledger before it was drawn" in report

    @pytest.mark.parametrize("empty", ["", "  "])
    def test_an_empty_name_is_an_error_and_never_no_ledger(self, run: Run, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for command in (("release", "run.toml", "-o", "out"), ("ledger", "show"), ("ledger", "create")):
            made = run(*command, "--ledger", empty)
            assert (made.code, made.out) == (LEDGER_PROBLEM, "")
            assert "--ledger is empty" in made.err
        Path("run.toml").write_text(RUN + f'ledger = "{empty}"\n')
        assert run("release", "run.toml", "-o", "out").code == 7
        Path("run.toml").write_text(RUN)
        monkeypatch.setenv("HOLDFAST_LEDGER", empty)
        assert "HOLDFAST_LEDGER is set, and empty" in run("release", "run.toml", "-o", "out").err
        assert not Path("out").exists()

    def test_both_ways_at_once(self, run: Run) -> None:
        assert "Give one of them" in run("release", "run.toml", "-o", "out", "--ledger", "x", "--no-ledger").err

    def test_in_python(self, work: Path) -> None:
        """`ledger=None` records nothing; card and repr say so."""
        table = hf.Table.from_counts(work / "counties.csv", cells=["state", "county"], count="people")
        made = hf.release(
            table, [hf.margin("state")], hf.GeneralizedLaplace(epsilon="1/4", per="distance"), release_id="r1", ledger=None, allow_exposed=1
        )
        assert "not recorded in a ledger" in repr(made)
        assert made.card.release.ledger_text.startswith("This release was recorded in no ledger")
        assert not (work / DEFAULT).exists()


class TestInterrupted:
    @pytest.mark.parametrize("sealed", [True, False])
    def test_resumed_with_the_key_and_given_up_without(self, run: Run, sealed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
        if sealed:
            monkeypatch.setenv("HOLDFAST_KEY", "a secret of the office")

        def stop(*_: object) -> None:
            raise hf.errors.OutputProblem("stopped")

        with monkeypatch.context() as patch:
            patch.setattr(publication, "fill_folder", stop)
            assert run("release", "run.toml", "-o", "out").code == IDENTICAL
        refused = run("release", "run.toml", "-o", "out")
        assert (refused.code, refused.out) == (LEDGER_PROBLEM, "")
        assert "--resume" in refused.err
        resumed = run("release", "run.toml", "-o", "out", "--resume")
        if sealed:
            assert resumed.code == 0
            assert run("verify", "out").code == 0
            return
        assert "its key was not sealed" in resumed.err
        assert run("ledger", "void", "counties", "r1", "--reason", "stopped").code == 0
        Path("run.toml").write_text(RUN.replace('"r1"', '"r2"'))
        assert run("release", "run.toml", "-o", "out").code == 0


class TestALimitLater:
    def test_a_grant_counts_what_was_recorded(self, run: Run) -> None:
        run("release", "run.toml", "-o", "out1")
        grant = ("ledger", "grant", "counties", "--approver", "a", "--reason", "b")
        small = run(*grant, "--epsilon", "1/4")
        assert (small.code, small.out) == (LEDGER_PROBLEM, "")
        assert "cost epsilon = 0.5 already" in small.err
        assert "protects each person, not each household" in run(*grant, "--epsilon", "1", "--protect", "household").err
        assert "Left      epsilon = 0.5 (50 %)" in run(*grant, "--epsilon", "1").out
        for number, code in ((2, 0), (3, LEDGER_PROBLEM)):
            Path("run.toml").write_text(RUN.replace('"r1"', f'"r{number}"'))
            assert run("release", "run.toml", "-o", f"out{number}").code == code
        assert Ledger.open(DEFAULT).verify() == []

    def test_chains_are_recorded_and_bar_a_limit(self, run: Run) -> None:
        Path("counties.csv").write_text(SQUARE)
        Path("run.toml").write_text(GRID + 'sampler = "line_gibbs"\neta = "1/40"\n')
        assert run("release", "run.toml", "-o", "out").code == 0
        assert run("release", "run.toml", "-o", "again").code == IDENTICAL
        (said,) = json.loads(run("ledger", "show", "--json").out)["datasets"]
        assert (said["spent"], said["estimated"], said["recorded"]) == ("0", 1, 1)
        assert "and 1 release by Markov chains, which cannot be added up" in run("ledger", "show", "counties").out
        refused = run("ledger", "grant", "counties", "--epsilon", "9", "--approver", "a", "--reason", "b")
        assert (refused.code, refused.out) == (LEDGER_PROBLEM, "")
        assert "cannot be added up, so no limit can be kept" in refused.err
        assert Ledger.open(DEFAULT).verify() == []

    def test_another_unit_is_another_account(self, run: Run) -> None:
        run("release", "run.toml", "-o", "out1")
        text = RUN.replace('"r1"', '"r2"').replace('count = "people"', 'count = "people"\nprotect = "household"')
        text = text.replace('per = "person"', 'per = "household"')
        Path("run.toml").write_text(text)
        refused = run("release", "run.toml", "-o", "out2")
        assert (refused.code, refused.out) == (LEDGER_PROBLEM, "")
        assert "dataset = " in refused.err
        Path("run.toml").write_text(text + 'dataset = "households"\n')
        assert run("release", "run.toml", "-o", "out2").code == 0


class TestShow:
    def test_a_grant_of_1_pays_for_two_releases_that_cost_the_nearest_pairs_2(self, run: Run) -> None:
        Path("counties.csv").write_text(SQUARE)
        run("ledger", "grant", "counties", "--epsilon", "1", "--approver", "a", "--reason", "b")
        for number in (1, 2):
            Path("run.toml").write_text(GRID.replace('"r1"', f'"r{number}"'))
            assert run("release", "run.toml", "-o", f"out{number}").code == 0
        said = json.loads(run("ledger", "show", "counties", "--json").out)
        assert (said["granted"], said["spent"], said["left"]) == ("1", "1", "0")
        assert (said["per_distance"], said["smallest_secret"], said["secret_is_more"]) == ("1/2", "2", True)
        assert [one["costs"]["smallest_secret"]["epsilon"] for one in said["releases"]] == ["1", "1"]

    def test_balances_with_and_without_a_limit(self, run: Run) -> None:
        run("release", "run.toml", "-o", "out")
        run("ledger", "grant", "others", "--rho", "1/8", "--approver", "a", "--reason", "b")
        assert run("ledger", "show").out.splitlines() == [
            "counties  epsilon = 0.5 spent, no limit; 1 release",
            "others    rho = 0 of 0.125 spent, rho = 0.125 (100 %) left; 0 releases",
        ]
        one, other = json.loads(run("ledger", "show", "--json").out)["datasets"]
        assert (one["granted"], one["left"], one["per_distance"], one["smallest_secret"], one["secret_is_more"]) == (
            None,
            None,
            "1/4",
            "1/2",
            False,
        )
        assert (other["kind"], other["granted"], other["left"]) == ("zcdp", "1/8", "1/8")
        assert "Granted   nothing: no limit is set; charges are for one person changing cell" in run("ledger", "show", "counties").out


class TestRefusedBeforeSlowWork:
    """What the ledger refuses, it refuses before samplers are prepared; a second draw of one id before the table is read."""

    @pytest.fixture
    def no_samplers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def never(*_: object) -> None:
            raise AssertionError("samplers were prepared")

        monkeypatch.setattr("holdfast.publication.plan.choose_samplers", never)

    def test_a_second_draw_on_the_command_line(self, run: Run, request: pytest.FixtureRequest) -> None:
        run("release", "run.toml", "-o", "out")
        request.getfixturevalue("no_samplers")
        Path("counties.csv").write_text("no table")
        assert run("release", "run.toml", "-o", "second").code == IDENTICAL

    def test_python(self, work: Path, request: pytest.FixtureRequest) -> None:
        ledger = Ledger.open(work / "l.sqlite", create=True, needs_grants=True)
        ledger.grant("counties", kind="pure", epsilon=1, approver="a", reason="b")
        table = hf.Table.from_counts(work / "counties.csv", cells=["state", "county"], count="people", name="counties")
        keep, cheap, dear = (
            [hf.margin("state")],
            hf.GeneralizedLaplace(epsilon="1/4", per="distance"),
            hf.GeneralizedLaplace(epsilon=1, per="distance"),
        )
        hf.release(table, keep, cheap, ledger=ledger, release_id="r1", allow_exposed=1).save(work / "out")
        request.getfixturevalue("no_samplers")
        with pytest.raises(hf.errors.IdenticalRelease):
            hf.release(table, keep, cheap, ledger=ledger, release_id="r1")
        with pytest.raises(hf.errors.BudgetExceeded):
            hf.release(table, keep, dear, ledger=ledger, release_id="r2")
        with pytest.raises(hf.errors.NoGrant):
            hf.release(table, keep, cheap, ledger=ledger, release_id="r3", dataset="others")
        with pytest.raises(hf.errors.LedgerProblem, match="Markov chain"):
            hf.release(
                table, keep, hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", per="distance"), ledger=ledger, release_id="r4"
            )
        assert [event.kind for event in ledger.events()].count("reserved") == 1


def test_the_demo_can_be_repeated_and_tried_by_hand(run: Run, work: Path) -> None:
    for name in ("one", "two"):
        assert run("demo", "-o", name).code == 0
        assert run("release", f"{name}/run.toml", "-o", f"{name}-by-hand").code == 0
        shown = json.loads(run("ledger", "show", "--json", "--ledger", f"{name}/{DEFAULT}").out)["datasets"]
        assert [(one["dataset"], one["recorded"]) for one in shown] == [("education", 2), ("geography", 1)]
