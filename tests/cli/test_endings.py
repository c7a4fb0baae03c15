"""How commands end: errors as JSON, faults of ours, refusals of the ledger, Ctrl-C at any moment."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast import errors
from holdfast.ledger import Ledger
from holdfast.wording.endings import WHAT_TO_DO
from tests.running import Run

SECRET = 918273645546
COUNTIES = f"state,county,people\n17,031,{SECRET}\n17,043,12\n17,097,5\n18,001,7\n18,003,21\n19,001,3\n"
RUN = """\
[table]
source = "counties.csv"
cells = ["state", "county"]
count = "people"
public = true
[keep]
margins = [["state"]]
[release]
id = "r1"
allow_exposed = 1
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
ledger = "ledger.sqlite"
"""
GRANT = ("ledger", "grant", "counties", "--approver", "A. Chief", "--reason", "the census", "--ledger", "ledger.sqlite")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "counties.csv").write_text(COUNTIES)
    (tmp_path / "run.toml").write_text(RUN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class TestErrorsAsJson:
    @pytest.mark.parametrize(
        ("arguments", "code", "field"),
        [
            (["plan", "none.toml"], "invalid-run", None),
            (["plan", "wrong.toml"], "invalid-run", "release.epsilon"),
            (["release", "none.toml", "-o", "out"], "invalid-run", None),
            (["release", "run.toml"], "wrong-use", "output"),
            (["diagnose", "run.toml", "--kernel", "gibbs"], "invalid-parameter", None),
            (["verify", "none"], "verification-failed", None),
            (["demo", "-o", "counties.csv"], "output-exists", None),
            (["synth", "counties.csv"], "invalid-parameter", None),
            (["warm", "--wrong"], "wrong-use", "--wrong"),
            (["ledger", "grant", "x", "--approver", "a", "--reason", "b", "--epsilon", "0"], "invalid-parameter", "epsilon"),
            (["ledger", "show", "--ledger", "none.sqlite"], "ledger-problem", None),
            (["ledger", "verify", "--ledger", "none.sqlite"], "ledger-problem", None),
            (["ledger", "void", "x", "y", "--reason", "z", "--ledger", "none.sqlite"], "ledger-problem", None),
            (["nothing"], "wrong-use", None),
        ],
        ids=lambda given: " ".join(given) if isinstance(given, list) else None,
    )
    def test_an_error_is_one_object_on_standard_output(self, run: Run, arguments: list[str], code: str, field: str | None) -> None:
        Path("wrong.toml").write_text(RUN.replace('"1/2"', "0.5"))
        ran = run(*arguments, "--json")
        assert ran.err == ""
        found = json.loads(ran.out)
        assert found.keys() == {"code", "exit_code", "message", "field", "what_to_do"}
        assert (found["code"], found["exit_code"], found["what_to_do"]) == (code, ran.code, WHAT_TO_DO[code])
        assert found["field"] == field
        assert run(*arguments).err == f"holdfast: {found['message']}\n"

    def test_a_diagnosis_without_a_bound_is_one_object(self, run: Run) -> None:
        ran = run("diagnose", "run.toml", "--pairs", "20", "--kernel", "metropolis", "--most-sweeps", "1", "--json")
        found = json.loads(ran.out)
        assert (ran.code, ran.err, found["code"]) == (13, "", "no-meeting")
        assert [row["kernel"] for row in found["details"]["rows"]] == ["metropolis"] * len(found["details"]["rows"])

    def test_an_error_of_another_package_has_the_advice_of_its_base(self, capsys: pytest.CaptureFixture[str]) -> None:
        from holdfast.cli.endings import _print

        class Other(errors.InvalidTable):
            code = "other"

        _print(Other("Wrong. Do better."), True)
        assert json.loads(capsys.readouterr().out)["what_to_do"] == WHAT_TO_DO["invalid-table"]


FAULT = """
import sys
from holdfast.engines import local
def broken(channel, counts, published):
    raise RuntimeError(f"broken at {counts.max()}")
local.check_published = broken
from holdfast.cli.commands import main
main()
"""


class TestFaults:
    """An exception that nobody foresaw, with a confidential count in its text."""

    def fault(self, *more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", FAULT, "release", "run.toml", "-o", "out", "--no-ledger", *more]
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)

    def test_one_sentence_and_its_own_exit_code(self) -> None:
        ran = self.fault()
        assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (70, "", 1)
        assert re.match(r"holdfast: This is a fault in Holdfast: RuntimeError at [a-z_/]+\.py, line [0-9]+\. ", ran.stderr)
        assert "--debug" in ran.stderr
        assert "broken" not in ran.stderr
        assert str(SECRET) not in ran.stderr
        assert not Path("out").exists()

    def test_debug_shows_the_traceback_and_warns_of_what_it_may_hold(self) -> None:
        ran = self.fault("--debug")
        assert ran.returncode == 70
        assert "may quote confidential values" in ran.stderr.splitlines()[1]
        assert "Traceback (most recent call last):" in ran.stderr
        assert "RuntimeError: broken" in ran.stderr
        assert "╭" not in ran.stderr

    def test_as_json(self) -> None:
        ran = self.fault("--json")
        assert (ran.returncode, ran.stderr) == (70, "")
        assert json.loads(ran.stdout)["code"] == "internal-error"


def test_a_refusal_of_the_ledger_is_told_alone(run: Run) -> None:
    """No line about what would be exposed comes before it."""
    run(*GRANT, "--epsilon", "1/3")
    ran = run("release", "run.toml", "-o", "out")
    assert (ran.code, ran.out, ran.err.count("\n")) == (12, "", 1)
    assert ran.err.startswith("holdfast: ")
    assert "Exposed" not in ran.err


SIGNALLED = """
import os, signal, time
import holdfast.publication.pipeline, holdfast.runfiles.runfile, holdfast.publication.plan, holdfast.engines.local
from holdfast.ledger import Ledger
owner, name, before = OWNER, NAME, BEFORE
real = getattr(owner, name)
def signalled(*given, **named):
    made = None if before else real(*given, **named)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(30)
setattr(owner, name, signalled)
from holdfast.__main__ import main
main()
"""

MOMENTS = {
    "about to grant": ("Ledger", "grant", True, None),
    "granted": ("Ledger", "grant", False, None),
    "about to void": ("Ledger", "void", True, None),
    "voided": ("Ledger", "void", False, None),
    "reading": ("holdfast.runfiles.runfile.Run", "read_table", False, None),
    "planning": ("holdfast.publication.plan", "choose_samplers", True, None),
    "about to reserve": ("Ledger", "reserve", True, None),
    "reserved": ("Ledger", "reserve", False, "reserved"),
    "about to draw": ("holdfast.engines.local.BoundRelease", "draw", True, "drawing"),
    "drawn": ("holdfast.engines.local.BoundRelease", "draw", False, "drawing"),
    "staged": ("Ledger", "stage", False, "staged"),
    "committed": ("Ledger", "commit", False, "committed"),
    "renamed": ("holdfast.publication.booking", "put_in_place", False, "committed"),
    "published": ("Ledger", "publish", False, "published"),
    "closed": ("Ledger", "close", False, "closed"),
}

TRUE = {
    None: "Nothing was charged",
    "reserved": "The charge is reserved in the ledger; nothing was drawn",
    "drawing": "The release is charged in the ledger; nothing was published",
    "staged": "charged and complete, and not yet under its name",
    "committed": "charged and complete, and not yet under its name",
    "published": "The release is published, and its charge is in the ledger",
    "closed": "The release is published, and its charge is in the ledger",
}


def check_told(said: str, state: str | None, folder: Path) -> None:
    """What is said is what the ledger holds, and the folder: once it has its name the release is published, although the ledger may not
    have been told yet.
    """
    is_there = state in ("published", "closed") or (state == "committed" and folder.exists())
    assert folder.exists() == is_there
    assert TRUE["published" if is_there else state] in said
    assert said.count(" -o ") == said.count(f"holdfast release run.toml -o {folder.name} --resume") == (" --resume" in said)


def check_a_stop(run: Run, monkeypatch: pytest.MonkeyPatch, moment: str, secret: str | None) -> None:
    """The signal, what is said, what the ledger holds; then what was said is done and works."""
    run(*GRANT, "--epsilon", "1/2")
    owner, name, before, state = MOMENTS[moment]
    script = SIGNALLED.replace("OWNER", owner).replace("NAME", repr(name), 1).replace("BEFORE", str(before))
    environment = os.environ | ({} if secret is None else {"HOLDFAST_KEY": secret})
    command = [sys.executable, "-c", script, "release", "run.toml", "-o", "out"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    said = done.stderr.splitlines()[-1]
    assert said.startswith("holdfast: stopped. ")
    assert "Traceback" not in done.stderr
    held = Ledger.open("ledger.sqlite").reservation("counties", "r1")
    assert (None if held is None else held.state) == state
    check_told(said, state, Path("out"))
    if secret is not None:
        monkeypatch.setenv("HOLDFAST_KEY", secret)
    resume = "holdfast release run.toml -o out --resume"
    if secret is None and state in ("reserved", "drawing"):
        assert resume not in said
        assert "holdfast ledger void counties r1 --reason" in said
        assert run("release", "run.toml", "-o", "out", "--resume").code == 12
    else:
        assert (resume in said) == (state not in (None, "closed"))
        if state != "closed":
            assert run("release", "run.toml", "-o", "out", *(() if state is None else ("--resume",))).code == 0
        assert run("verify", "out").code == 0


@pytest.mark.long
def test_stopped_after_reading_nothing_is_charged(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    check_a_stop(run, monkeypatch, "reading", None)


def test_stopped_while_drawing_without_a_secret(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    check_a_stop(run, monkeypatch, "drawn", None)


def stopped(moment: str, *command: str) -> str:
    """What a command says that is stopped at this moment."""
    owner, name, before, _ = MOMENTS[moment]
    script = SIGNALLED.replace("OWNER", owner).replace("NAME", repr(name), 1).replace("BEFORE", str(before))
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    return done.stderr.splitlines()[-1].removeprefix("holdfast: stopped. ")


@pytest.mark.ordinary("ledger.sqlite")
@pytest.mark.parametrize("line", ['ledger = "ledger.sqlite"', ""])
def test_the_command_that_gives_a_release_up_works_as_it_is_told(run: Run, work: Path, line: str) -> None:
    """From another folder, and where the data set's name has blanks: the ledger is named, and names are quoted."""
    place = work / "of the census"
    place.mkdir()
    (place / "counties.csv").write_text(COUNTIES)
    (place / "run.toml").write_text(RUN.replace('ledger = "ledger.sqlite"', f'dataset = "people by county"\n{line}'))
    assert run("ledger", "create", "--ledger", str(place / "ledger.sqlite")).code == 0
    said = stopped("drawn", "release", "of the census/run.toml", "-o", "out")
    command = re.search("give it up with holdfast (.*) and take a new id", said)
    assert command is not None, said
    assert run(*shlex.split(command[1])).out == "Voided r1: its charge stays spent, because drawing had begun.\n"


@pytest.mark.long
def test_stopped_once_the_ledger_was_made_beside_the_run_file(run: Run, work: Path) -> None:
    """It said that nothing was left behind, and the new ledger was."""
    (work / "run.toml").write_text(RUN.replace('ledger = "ledger.sqlite"\n', ""))
    said = stopped("about to reserve", "release", "run.toml", "-o", "out")
    assert said == "Nothing was charged, and nothing of the release was left behind."
    assert sorted(os.listdir(work)) == ["counties.csv", "holdfast-ledger.sqlite", "run.toml"]


@pytest.mark.long
def test_a_published_release_that_is_resumed_in_another_place(run: Run) -> None:
    """It was a fault: the command looked for the card in a folder that was never written."""
    run(*GRANT, "--epsilon", "1/2")
    assert "Close its entry with" in stopped("published", "release", "run.toml", "-o", "out")
    again = run("release", "run.toml", "-o", "other", "--resume")
    assert (again.code, again.out) == (9, "")
    assert "was published before, in another place" in again.err
    assert not Path("other").exists()
    held = Ledger.open("ledger.sqlite").reservation("counties", "r1")
    assert held is not None
    assert held.state == "closed"
    assert run("verify", "out").code == 0


@pytest.mark.long
def test_stopped_once_a_budget_was_granted(run: Run) -> None:
    assert stopped("granted", *GRANT, "--epsilon", "1/2") == "The grant is in the ledger."
    assert stopped("about to grant", *GRANT, "--epsilon", "1/2") == "Nothing was written to the ledger."
    assert len(Ledger.open("ledger.sqlite").account("counties").grants) == 1


@pytest.mark.long
def test_stopped_once_a_release_was_given_up(run: Run) -> None:
    run(*GRANT, "--epsilon", "1/2")
    stopped("reserved", "release", "run.toml", "-o", "out")
    void = ("ledger", "void", "counties", "r1", "--reason", "a mistake", "--ledger", "ledger.sqlite")
    assert stopped("about to void", *void) == "Nothing was written to the ledger."
    assert stopped("voided", *void) == "The release was given up, and the ledger says so."


@pytest.mark.long
@pytest.mark.parametrize("secret", [None, "the secret of the office"])
@pytest.mark.parametrize("moment", list(MOMENTS)[4:])  # of a release
def test_stopped_at_every_step(run: Run, monkeypatch: pytest.MonkeyPatch, moment: str, secret: str | None) -> None:
    check_a_stop(run, monkeypatch, moment, secret)


def test_the_command_that_resumes_a_release_has_each_option_once(run: Run) -> None:
    """Typed twice, the last one counts; the message repeated both."""
    run(*GRANT, "--epsilon", "1/2")
    said = stopped("staged", "release", "run.toml", "-o", "wrong", "--output=out", "--ledger", "other.sqlite", "--ledger", "ledger.sqlite")
    command = re.search("Publish it with: holdfast (.*)", said)
    assert command is not None, said
    assert command[1] == "release run.toml -o out --ledger ledger.sqlite --resume"
    assert run(*shlex.split(command[1])).code == 0
    assert run("verify", "out").code == 0


def test_stopped_between_the_name_and_the_ledger(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The state is committed, and the folder has its name already: the release is published, and is told so."""
    check_a_stop(run, monkeypatch, "renamed", None)


def stop_after(seconds: float, output: str = "out", *more: str) -> tuple[int, str, str]:
    """A release in a process of its own, stopped this long after its command was begun."""
    script = "import holdfast.__main__ as command; print('begun', flush=True); command.main()"
    with subprocess.Popen(
        [sys.executable, "-c", script, "release", "run.toml", "-o", output, *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(seconds)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=100)
    return process.returncode, out, err


def test_stopped_while_loading(run: Run) -> None:
    code, out, err = stop_after(0.02)
    assert (code, out, err) == (130, "", "holdfast: stopped. Nothing was begun.\n")
    code, out, err = stop_after(0.02, "out", "--json")
    assert (code, json.loads(out)["code"], err) == (130, "stopped", "")


IGNORED = """
import os, signal, time
import holdfast.research.synth as synth
class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)
def slow(*given, **named):
    last = Last()
    del last
    time.sleep(30)
synth.synthesize = slow
from holdfast.__main__ import main
main()
"""


def test_stopped_where_python_ignores_exceptions() -> None:
    """In a finalizer: what is raised there is lost, and raised again."""
    command = [sys.executable, "-c", IGNORED, "synth", "people.csv"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "holdfast: stopped. Nothing was charged, and nothing was left behind.\n"


@pytest.mark.long
def test_stopped_at_any_moment(run: Run, work: Path) -> None:
    """A signal at every tenth of a second of a release: never a traceback, and what is said is what the ledger holds."""
    run(*GRANT, "--epsilon", "100")
    begun, said = time.monotonic(), set()
    number, ended = 0, 0
    while ended < 3:
        number += 1
        Path("run.toml").write_text(RUN.replace('"r1"', f'"r{number}"'))
        code, _, err = stop_after(0.02 + 0.1 * number, f"out{number}")
        assert "Traceback" not in err, err
        held = Ledger.open("ledger.sqlite").reservation("counties", f"r{number}")
        state = None if held is None else held.state
        if code == 0:
            assert state == "closed"
            ended += 1
            continue
        told = err.splitlines()[-1]
        is_after = code == errors.AfterPublication.exit_code  # stopped while it was saying that it is published
        assert is_after == ("Published, but: " in told), err
        assert is_after or code == 130, err
        assert state == "closed" or not is_after
        said.add(state)
        if "Nothing was begun" in told:
            assert (state, Path(f"out{number}").exists()) == (None, False)
        else:
            check_told(told, state, Path(f"out{number}"))
        assert time.monotonic() - begun < 3600
    assert None in said
    assert not [name for name in os.listdir(work) if name.startswith(".holdfast-unfinished-") and name.endswith(".lock")]
