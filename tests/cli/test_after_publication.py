"""What comes after a release is published does not make it look like a failed one; and what killed runs without a ledger leave."""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.cli.streams import StandardStream
from holdfast.errors import AfterPublication, LedgerProblem
from holdfast.ledger import Ledger
from holdfast.publication import folder as folders
from tests.cli.test_endings import GRANT, work  # noqa: F401  # a fixture for every test here
from tests.publication.bookings import run as carry_out
from tests.running import Run

RELEASE = ("release", "run.toml", "-o", "out")
LONG = pytest.mark.long
PUBLISHED = "The release is published, and its charge is in the ledger."
UNTOLD = "could not be written: standard output is full or closed."


def command(*arguments: str, redirect: str = "", encoding: str = "utf-8", script: str = "") -> subprocess.CompletedProcess[str]:
    """holdfast in a process of its own, by a shell, which redirects its streams."""
    given = ["-c", f"{script}\nfrom holdfast.__main__ import main\nmain()"] if script else ["-m", "holdfast"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    words = ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, *given, *arguments]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, check=False, env=environment)


def check_published() -> None:
    held = Ledger.open("ledger.sqlite").reservation("counties", "r1")
    assert held is not None
    assert held.state == "closed"
    hf.verify("out")


class TestStandardOutput:
    @pytest.mark.parametrize(
        ("redirect", "more"), [(">/dev/full", ()), pytest.param(">&-", (), marks=LONG), pytest.param(">/dev/full", ("--json",), marks=LONG)]
    )
    def test_full_or_closed(self, run: Run, redirect: str, more: tuple[str, ...]) -> None:
        """It was exit code 120 with a traceback of Python's, or 0 without a word."""
        run(*GRANT, "--epsilon", "1/2")
        ended = command(*RELEASE, *more, redirect=redirect)
        assert (ended.returncode, ended.stdout) == (AfterPublication.exit_code, "")
        said = ended.stderr.splitlines()[-1]
        assert said == f"holdfast: Published, but: What the command had to say {UNTOLD} {PUBLISHED}"
        assert "Traceback" not in ended.stderr
        assert "Exception" not in ended.stderr
        check_published()

    @LONG
    def test_a_pipe_that_nobody_reads(self, run: Run) -> None:
        run(*GRANT, "--epsilon", "1/2")
        reading, writing = os.pipe()
        os.close(reading)
        words = [sys.executable, "-m", "holdfast", *RELEASE]
        ended = subprocess.run(words, stdout=writing, stderr=subprocess.PIPE, text=True, timeout=100, check=False)
        os.close(writing)
        assert ended.returncode == AfterPublication.exit_code
        assert PUBLISHED in ended.stderr.splitlines()[-1]
        check_published()

    @pytest.mark.parametrize(("asked", "code"), [(("schema",), 141), (("plan", "none.toml"), 7), ((*GRANT, "--epsilon", "1/2"), 74)])
    def test_a_reader_that_closes_its_pipe(self, run: Run, asked: tuple[str, ...], code: int) -> None:
        """As `head` does. What failed, and what a command changed, is still said."""
        words = [sys.executable, "-m", "holdfast", *asked]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            said = process.stderr.read()
        assert (process.returncode, said == "") == (code, code == 141), said

    @pytest.mark.parametrize("redirect", ["2>/dev/full", pytest.param("2>&-", marks=LONG), pytest.param("2>&- <&-", marks=LONG)])
    def test_a_lost_standard_error_changes_nothing(self, run: Run, redirect: str) -> None:
        """What is said there comes between the charge and the draw: it was charged, and nothing was drawn."""
        run(*GRANT, "--epsilon", "1/2")
        ended = command(*RELEASE, redirect=redirect)
        assert ended.returncode == 0
        assert ended.stdout.startswith("Released r1: ")
        check_published()

    @LONG
    def test_all_streams_lost(self, run: Run) -> None:
        """No file that the command opens takes the number of a stream."""
        run(*GRANT, "--epsilon", "1/2")
        ended = command(*RELEASE, redirect=">&- 2>&- <&-")
        assert ended.returncode == AfterPublication.exit_code
        check_published()

    def test_an_ascii_terminal(self, run: Run) -> None:
        run(*GRANT, "--epsilon", "1/2")
        ended = command("release", "run.toml", "-o", "für alle", encoding="ascii")
        assert ended.returncode == 0
        assert r"f\xfcr alle" in ended.stdout
        hf.verify("für alle")

    def test_where_nothing_was_published(self, run: Run) -> None:
        """Commands that had nothing to do but to say something; and a grant, which stands."""
        ended = command("plan", "run.toml", "--no-ledger", redirect=">/dev/full")
        assert (ended.returncode, ended.stderr.count("\n"), ended.stderr.endswith(f"{UNTOLD}\n")) == (74, 1, True)
        ended = command(*GRANT, "--epsilon", "1/2", redirect=">/dev/full")
        assert (ended.returncode, ended.stderr) == (
            74,
            f"holdfast: What the command had to say {UNTOLD} The grant is in the ledger.\n",
        )
        assert len(Ledger.open("ledger.sqlite").account("counties").grants) == 1

    @LONG
    def test_a_refusal_as_json_that_cannot_be_written_is_told_elsewhere(self) -> None:
        ended = command("plan", "none.toml", "--json", redirect=">/dev/full")
        assert (ended.returncode, ended.stderr.count("\n")) == (7, 1)

    @LONG
    def test_help_that_cannot_be_written(self) -> None:
        ended = command("release", "--help", redirect=">/dev/full")
        assert ended.returncode == 74
        assert "Traceback" not in ended.stderr

    def test_a_stream_notes_what_it_lost(self) -> None:
        with open("/dev/full", "w", encoding="ascii") as full:
            stream = StandardStream(full)
            stream.write("für\n")
            assert not stream.lost
            assert not stream.finish()
            assert stream.lost


FAILING = """
import holdfast.publication.pipeline as pipeline, holdfast.wording.ledger as ledger, json
def broken(*given):
    RAISE
ledger.charged_sentence = broken
real = pipeline.carry_out
def carry_out(*given, **named):
    try:
        return real(*given, **named)
    finally:
        BREAK
pipeline.carry_out = carry_out
"""
"""Something that is called after the release is published fails."""


class TestFaultsAfterPublication:
    @pytest.mark.parametrize(
        ("fault", "said"),
        [
            ("raise RuntimeError('918273645546')", "This is a fault in Holdfast: RuntimeError"),
            pytest.param("raise MemoryError", "Memory ran out.", marks=LONG),
            pytest.param("import os, time; os.kill(os.getpid(), 2); time.sleep(9)", "The command was stopped", marks=LONG),
            pytest.param("raise hf.errors.LedgerProblem('The ledger is busy.')", "The ledger is busy.", marks=LONG),
        ],
    )
    def test_says_that_it_is_published(self, run: Run, fault: str, said: str) -> None:
        run(*GRANT, "--epsilon", "1/2")
        ended = command(*RELEASE, script="import holdfast as hf\n" + FAILING.replace("RAISE", fault).replace("BREAK", "pass"))
        assert (ended.returncode, PUBLISHED in ended.stderr) == (AfterPublication.exit_code, True)
        assert ended.stderr.splitlines()[-1].startswith(f"holdfast: Published, but: {said}")
        assert "Traceback" not in ended.stderr
        assert "918273645546" not in ended.stderr
        check_published()

    @LONG
    def test_as_json(self, run: Run) -> None:
        ended = command(
            *RELEASE, "--no-ledger", "--json", script=FAILING.replace("RAISE", "raise RuntimeError").replace("BREAK", "json.loads = broken")
        )
        found = json.loads(ended.stdout)
        assert (ended.returncode, found["exit_code"], found["code"]) == (20, 20, "after-publication")
        assert found["message"].endswith("The release is published, and charged to no ledger.")

    @pytest.mark.parametrize("step", ["publish", "close"])
    def test_a_ledger_that_fails_once_the_folder_has_its_name(self, run: Run, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        """It was exit code 12, and the message said nothing of the folder."""
        run(*GRANT, "--epsilon", "1/2")

        def full(*_: object) -> None:
            raise LedgerProblem("The ledger cannot grow: the disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, step, full)
            ended = run(*RELEASE)
        assert (ended.code, ended.out) == (AfterPublication.exit_code, "")
        assert PUBLISHED in ended.err
        assert "the disk is full" in ended.err
        assert run(*RELEASE, "--resume").code == 0
        check_published()

    @LONG
    def test_killed_between_name_and_ledger_is_told_as_published(self, run: Run) -> None:
        """The folder had its name, the ledger said committed, and the message said: not yet under its name."""
        run(*GRANT, "--epsilon", "1/2")
        script = (
            "from holdfast.ledger import Ledger\nimport os, signal, time\n"
            "def stop(*given):\n    os.kill(os.getpid(), signal.SIGINT)\n    time.sleep(9)\nLedger.publish = stop"
        )
        ended = command(*RELEASE, script=script)
        assert ended.returncode == 130
        assert PUBLISHED in ended.stderr.splitlines()[-1]
        assert "--resume" in ended.stderr.splitlines()[-1]
        assert run(*RELEASE, "--resume").code == 0


class TestLastResort:
    def test_memory_has_its_own_code(self) -> None:
        script = "from holdfast.engines import local\ndef broken(*given):\n    raise MemoryError\nlocal.check_published = broken"
        ended = command(*RELEASE, "--no-ledger", script=script)
        assert (ended.returncode, ended.stdout) == (71, "")
        assert ended.stderr == "holdfast: Memory ran out. Nothing was charged, and nothing was left behind.\n"

    @LONG
    def test_where_even_the_end_fails(self) -> None:
        script = (
            "import holdfast.cli.endings as ending\ndef broken(*given):\n    raise MemoryError\nending._ending_error = broken\n"
            "from holdfast.engines import local\nlocal.check_published = broken"
        )
        ended = command(*RELEASE, "--no-ledger", script=script)
        assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (70, "", 1)
        assert ended.stderr.startswith("holdfast: Memory ran out, or worse")

    @pytest.mark.parametrize(("more", "has_traceback"), [((), False), (("--debug",), True)])
    def test_what_cannot_be_loaded(self, more: tuple[str, ...], has_traceback: bool) -> None:
        ended = command("plan", "run.toml", *more, script="import sys\nsys.modules['typer'] = None")
        assert ("Traceback" in ended.stderr) == has_traceback
        if not has_traceback:
            assert (ended.returncode, ended.stdout) == (70, "")
            assert ended.stderr == "holdfast: Holdfast could not be loaded (ModuleNotFoundError). Nothing was begun.\n"


KILLED = """
import os, signal
import holdfast.publication.folder as folder
real = folder.write_synced
def killed(path, content):
    real(path, content)
    os.kill(os.getpid(), signal.SIGKILL)
folder.write_synced = killed
"""


def unfinished(place: Path) -> list[str]:
    return sorted(path.name for path in place.iterdir() if path.name.startswith(folders.TEMPORARY))


class TestLeftovers:
    """Of killed runs without a ledger; the noise in them was kept for ever."""

    def leave(self, place: Path) -> str:
        """A killed run; the name of the folder it leaves."""
        assert command(*RELEASE, "--no-ledger", script=KILLED).returncode == -signal.SIGKILL
        folder, lock = unfinished(place)
        assert re.fullmatch(r"\.holdfast-unfinished-[0-9a-f]{16}", folder)
        assert lock == f"{folder}.lock"
        return folder

    def test_removed_by_the_next_run(self, run: Run, work: Path) -> None:  # noqa: F811
        folder = self.leave(work)
        ended = run(*RELEASE, "--no-ledger")
        assert ended.code == 0
        assert f"Removed {folder!r}, which a killed run had left. It was not published." in ended.err
        assert unfinished(work) == []
        assert "Removed" not in run("release", "run.toml", "-o", "other", "--no-ledger").err

    @LONG
    def test_removed_by_a_run_with_a_ledger(self, run: Run, work: Path) -> None:  # noqa: F811
        self.leave(work)
        run(*GRANT, "--epsilon", "1/2")
        assert "which a killed run had left" in run(*RELEASE).err
        assert unfinished(work) == []

    def test_what_another_process_is_at_work_on_stays(self, run: Run, work: Path) -> None:  # noqa: F811
        folder = self.leave(work)
        with open(f"{folder}.lock", "rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            ended = run(*RELEASE, "--no-ledger")
        assert (ended.code, "killed" in ended.err) == (0, False)
        assert unfinished(work) == [folder, f"{folder}.lock"]

    def test_what_cannot_be_removed_is_named(self, run: Run, work: Path) -> None:  # noqa: F811
        """A link of that name is not followed; a folder that was being replaced is not thrown away."""
        folder = f"{folders.TEMPORARY}{'0' * 16}"
        (work / "theirs").mkdir()
        (work / folder).symlink_to(work / "theirs")
        aside = work / f"{folders.TEMPORARY}{'1' * 16}{folders.BEFORE}"
        aside.mkdir()
        ended = run(*RELEASE, "--no-ledger")
        assert ended.code == 0
        assert f"A killed run left {folder!r}, and it could not be removed" in ended.err
        assert f"A killed run left {aside.name!r}: it holds the release that was being replaced." in ended.err
        assert (work / "theirs").is_dir()
        assert aside.is_dir()

    @LONG
    def test_an_entry_of_a_ledger_is_left_alone(self, run: Run, work: Path) -> None:  # noqa: F811
        """What a killed run with a ledger left, its entry knows."""
        run(*GRANT, "--epsilon", "1/2")
        assert command(*RELEASE, script=KILLED).returncode == -signal.SIGKILL
        before = unfinished(work)
        assert len(before) == 2
        assert run("release", "run.toml", "-o", "other", "--no-ledger").code == 0
        assert unfinished(work) == before

    def test_names_that_are_not_ours_stay(self, tmp_path: Path) -> None:
        place = tmp_path / "place"
        place.mkdir()
        for name in (f"{folders.TEMPORARY}x", f"{folders.TEMPORARY}{'0' * 12}-1", "0" * 16):
            (place / name).mkdir()
        before = sorted(os.listdir(place))
        carry_out(None, place / "out")
        assert sorted(os.listdir(place)) == sorted([*before, "out"])
