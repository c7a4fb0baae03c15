"""Ledgers that somebody brought along, beside a run file or in a witness folder: nothing in them becomes a path or a pattern."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.errors import LedgerBroken, LedgerProblem, WitnessMismatch, WouldBeRefused
from holdfast.ledger import Ledger, NewLedger
from holdfast.ledger.embedded import ledger_in
from holdfast.ledger.store import place_of
from tests.ledger.helpers import bring, grant, reserve, the_store
from tests.ledger.hostile import append_event, read_events, run_sql, tree, untouched, with_id
from tests.publication.bookings import SECRET, a_ledger, interrupted
from tests.publication.bookings import run as carry_out
from tests.running import Run
from tests.test_ledger_by_default import COUNTIES, DEFAULT, LEDGER_PROBLEM, RUN

BESIDE = "office/work"
DOCS = {"annual-report.txt": b"the annual report", "12-notes": b"notes", "list.txt": b"", "x.mark": b"no mark"}
GOOD = "0123456789abcdef" * 2
IDS = {
    "a pattern elsewhere": "../../../../docs/*",
    "a full pattern": "{tmp}/docs/*",
    "every secret": "*",
    "every letter": "?" * 32,
    "a class of letters": "[0-9a-f]" * 4,
    "a traversal": "../../../made",
    "a full path": "{tmp}/docs/made",
    "the folder above": "..",
    "nothing": "",
    "capital letters": GOOD.upper(),
    "wide digits": "\uff11" * 32,
    "one digit less": GOOD[1:],
    "one digit more": GOOD + "0",
    "a line break": GOOD + "\n",
    "a null byte": GOOD[:-1] + "\0",
    "oversized": "a" * 100_000,
}


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run file, a state folder with the second secret of another ledger's release, and documents beside them."""
    for name in ("HOLDFAST_KEY_FILE", "HOLDFAST_LEDGER", "HOLDFAST_WITNESS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOLDFAST_KEY", SECRET.decode())
    monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "home" / "local" / "state"))
    (tmp_path / "docs").mkdir()
    for name, content in DOCS.items():
        (tmp_path / "docs" / name).write_bytes(content)
    (tmp_path / "other").mkdir()
    interrupted(a_ledger(tmp_path / "other"), tmp_path / "other" / "out")
    assert len(secret_files(tmp_path)) == 1
    place = tmp_path / BESIDE
    place.mkdir(parents=True)
    (place / "counties.csv").write_text(COUNTIES)
    (place / "run.toml").write_text(RUN)
    monkeypatch.chdir(place)
    return place


def secret_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "home" / "local" / "state" / "secrets").iterdir())


def brought(place: Path, monkeypatch: pytest.MonkeyPatch, *, releases: int = 0) -> Path:
    """A ledger beside the run file that was made on another machine."""
    with monkeypatch.context() as patch:
        patch.setenv("HOLDFAST_STATE", str(place.parents[1] / "elsewhere"))
        made = Ledger.open(place / DEFAULT, create=True, needs_grants=False)
        for number in range(releases):
            bring(made, "closed", f"old{number}")
    shutil.rmtree(place.parents[1] / "elsewhere", ignore_errors=True)
    return place / DEFAULT


@pytest.mark.parametrize("name", IDS)
def test_an_identifier_is_no_path_and_no_pattern(run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with_id(brought(work, monkeypatch), IDS[name].format(tmp=tmp_path))
    before = tree(tmp_path)
    planned = run("plan", "run.toml")
    assert tree(tmp_path) == before
    assert planned.code == WouldBeRefused.exit_code
    assert "no valid identifier: 32 hexadecimal digits" in planned.err
    released = run("release", "run.toml", "-o", "out")
    assert released.code == LEDGER_PROBLEM
    assert "no valid identifier: 32 hexadecimal digits" in released.err
    assert tree(tmp_path) == before
    for command in ("show", "verify"):
        assert run("ledger", command).code == LEDGER_PROBLEM
    assert run("ledger", "accept-restore", "--approver", "A", "--reason", "B").code == LEDGER_PROBLEM
    assert tree(tmp_path) == before


@pytest.mark.postgres
@pytest.mark.parametrize("identifier", ["*", "../../../../docs/*"])
def test_an_identifier_on_a_server_is_none_either(server: str, tmp_path: Path, identifier: str) -> None:
    import psycopg

    schema = "hostile" + hashlib.sha256(identifier.encode()).hexdigest()[:8]
    with psycopg.connect(server) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
    place = f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{schema}"
    Ledger.open(place, create=True, needs_grants=True)
    with psycopg.connect(place) as connection:
        connection.execute("UPDATE holdfast_meta SET value = %s WHERE name = 'ledger'", [identifier])
    before = tree(tmp_path)
    for options in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(LedgerBroken, match="no valid identifier"):
            Ledger.open(place, **options)  # type: ignore[arg-type]
    assert tree(tmp_path) == before


@pytest.mark.postgres
def test_a_ledger_on_a_server_can_be_opened_for_reading(place: str) -> None:
    made = Ledger.open(place, create=True, needs_grants=True)
    grant(made)
    reader = Ledger.open(place, read_only=True)
    assert reader.balance("counties") == made.balance("counties")
    for step in (lambda: grant(reader), lambda: reserve(reader)):
        with pytest.raises(LedgerProblem, match="opened for reading only"):
            step()


class TestAPlanWritesNothing:
    """Whatever is beside the run file and in the state folder."""

    def check(self, run: Run, tmp_path: Path, said: str) -> None:
        before = tree(tmp_path)
        for options in ((), ("--json",)):
            ran = run("plan", "run.toml", *options)
            assert ran.code in (0, WouldBeRefused.exit_code), ran.err
            assert said in ran.out + ran.err
            assert tree(tmp_path) == before

    def test_where_there_is_no_ledger(self, run: Run, tmp_path: Path) -> None:
        self.check(run, tmp_path, "counties")

    def test_and_no_state_folder(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_STATE", str(tmp_path / "new" / "state"))
        self.check(run, tmp_path, "counties")
        assert not (tmp_path / "new").exists()

    def test_where_a_crash_left_an_empty_file(self, run: Run, work: Path, tmp_path: Path) -> None:
        (work / DEFAULT).touch(0o600)
        self.check(run, tmp_path, "counties")

    def test_beside_a_ledger_that_was_never_seen_here(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        brought(work, monkeypatch, releases=2)
        self.check(run, tmp_path, "counties")

    def test_beside_the_own_ledger(self, run: Run, tmp_path: Path) -> None:
        assert run("release", "run.toml", "-o", "out").code == 0
        self.check(run, tmp_path, "counties")

    def test_where_a_second_secret_is_left_over(self, run: Run, work: Path, tmp_path: Path) -> None:
        assert run("release", "run.toml", "-o", "out").code == 0
        left = secret_files(tmp_path)[0].with_name(f"{Ledger.open(work / DEFAULT).id}-2")
        left.write_bytes(b"left over")
        self.check(run, tmp_path, "counties")
        run("release", "run.toml", "-o", "out2")
        assert not left.exists(), "a release destroys it"

    def test_beside_tables_of_an_earlier_version(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = brought(work, monkeypatch)
        run_sql(place, "UPDATE holdfast_meta SET value = '1' WHERE name = 'schema'")
        run_sql(place, "ALTER TABLE holdfast_open_reservations RENAME COLUMN input_check TO input_digest")
        self.check(run, tmp_path, "have version 1, and this Holdfast uses version 3")

    def test_beside_the_journal_of_a_crash(self, run: Run, work: Path, tmp_path: Path) -> None:
        assert run("release", "run.toml", "-o", "out").code == 0
        leave_journal(work / DEFAULT)
        self.check(run, tmp_path, "cannot be")
        assert run("ledger", "verify", "out").code == 0, "the next step plays it back"
        assert not (work / f"{DEFAULT}-journal").exists()

    def test_what_is_asked_of_a_ledger_that_is_only_read(self, work: Path, tmp_path: Path) -> None:
        book = ledger_in(work, read_only=True)
        assert isinstance(book, NewLedger)
        with pytest.raises(LedgerProblem, match="is not made"):
            book.make()
        with pytest.raises(ValueError, match="dataset must not hold control characters"):
            book.account("a\nb")
        with pytest.raises(ValueError, match="dataset must be a text"):
            book.account(7)  # type: ignore[arg-type]


def leave_journal(place: Path) -> None:
    """What a process leaves that is killed in the middle of a step, when pages have gone to the file."""
    script = (
        "import os, sqlite3, sys; file = sqlite3.connect(sys.argv[1], isolation_level=None); file.execute('PRAGMA cache_size = 1');"
        "file.execute('PRAGMA cache_spill = 1'); file.execute('BEGIN IMMEDIATE');"
        "file.execute('UPDATE holdfast_events SET salt = salt || hex(zeroblob(20000))'); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, str(place)], check=True, timeout=60)
    assert Path(f"{place}-journal").stat().st_size > 0


MAGIC = bytes.fromhex("d9d505f920a163d7")


def super_journal(place: Path, named: Path) -> bytes:
    """A journal of no pages that names a super-journal, as SQLite writes it where one step changes several files."""
    pages = place.stat().st_size // 4096
    header = (MAGIC + struct.pack(">IIIII", 0, 0, pages, 512, 4096)).ljust(512, b"\0")
    name = os.fsencode(named)
    return header + struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + MAGIC


class TestFilesBesideALedger:
    """SQLite obeys them: it removes a file that a journal names, writes through links, and reads pages from a log."""

    def check_refused(self, run: Run, tmp_path: Path, said: str) -> None:
        before = tree(tmp_path)
        planned = run("plan", "run.toml")
        assert tree(tmp_path) == before
        assert said in planned.err
        for command in (("release", "run.toml", "-o", "out"), ("ledger", "show"), ("ledger", "grant", "counties", "--epsilon", "1")):
            ran = run(*command, *(("--approver", "A", "--reason", "B") if "grant" in command else ()))
            assert ran.code == LEDGER_PROBLEM
            assert said in ran.out + ran.err
            assert tree(tmp_path) == before

    def test_a_journal_that_names_a_file_to_remove(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = brought(work, monkeypatch)
        Path(f"{place}-journal").write_bytes(super_journal(place, tmp_path / "docs" / "annual-report.txt"))
        self.check_refused(run, tmp_path, "it names another file")

    def test_sqlite_would_have_removed_it(self, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else the test above would show nothing."""
        place = brought(work, monkeypatch)
        Path(f"{place}-journal").write_bytes(super_journal(place, tmp_path / "docs" / "annual-report.txt"))
        file = sqlite3.connect(place)
        file.execute("SELECT * FROM holdfast_meta").fetchall()
        file.close()
        assert not (tmp_path / "docs" / "annual-report.txt").exists()

    @pytest.mark.parametrize("target", ["docs/made", "docs/list.txt", "docs/annual-report.txt"])
    def test_a_journal_that_is_a_link(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
        place = brought(work, monkeypatch)
        Path(f"{place}-journal").symlink_to(tmp_path / target)
        self.check_refused(run, tmp_path, "not a plain file of its own")

    def test_a_journal_that_is_another_name_of_a_file(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place = brought(work, monkeypatch)
        os.link(tmp_path / "docs" / "list.txt", f"{place}-journal")
        self.check_refused(run, tmp_path, "not a plain file of its own")

    @pytest.mark.parametrize("ending", ["-wal", "-shm"])
    def test_a_log(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
        place = brought(work, monkeypatch)
        Path(f"{place}{ending}").write_bytes(b"\0" * 32)
        self.check_refused(run, tmp_path, "Holdfast never makes one")

    def test_a_ledger_that_keeps_a_log(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run_sql(brought(work, monkeypatch), "PRAGMA journal_mode = WAL")
        self.check_refused(run, tmp_path, "kept with a write-ahead log")

    def test_behind_a_link_to_the_ledger(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """SQLite looks beside the file that the link leads to."""
        place = brought(work, monkeypatch)
        place.rename(tmp_path / "docs" / "moved.sqlite")
        place.symlink_to(tmp_path / "docs" / "moved.sqlite")
        (tmp_path / "docs" / "moved.sqlite-journal").symlink_to(tmp_path / "docs" / "list.txt")
        self.check_refused(run, tmp_path, "not a plain file of its own")

    def test_looking_keeps_the_locks_of_this_process(self, work: Path) -> None:
        """To close a second handle of a file takes away all locks of the process: another one could then write in between."""
        place = work / "locked.sqlite"
        ledger = Ledger.open(place, create=True, needs_grants=True)
        script = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0, isolation_level=None).execute('BEGIN IMMEDIATE')"

        def write_elsewhere(connection: object) -> str:
            Ledger.open(place, read_only=True)
            return subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True, timeout=60).stderr

        assert "database is locked" in the_store(ledger).write(write_elsewhere)


class TestAnotherLedgersIdentifier:
    """Nothing of the ledger that has it is destroyed by one that only says so."""

    def twin(self, work: Path, tmp_path: Path, change: Callable[[Path], object]) -> Path:
        shutil.copy(tmp_path / "other" / "ledger.db", work / DEFAULT)
        change(work / DEFAULT)
        return work / DEFAULT

    def check_kept(self, run: Run, tmp_path: Path) -> None:
        kept = {path: path.read_bytes() for path in secret_files(tmp_path)}
        untouched(tmp_path, lambda: run("plan", "run.toml"))
        released = run("release", "run.toml", "-o", "out")
        assert released.code == LEDGER_PROBLEM
        assert {path: path.read_bytes() for path in secret_files(tmp_path)} == kept
        carry_out(Ledger.open(tmp_path / "other" / "ledger.db"), tmp_path / "other" / "out", resume=True)
        assert (tmp_path / "other" / "out" / "card.json").exists()

    def test_with_a_chain_of_its_own(self, run: Run, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with_id(brought(work, monkeypatch, releases=2), Ledger.open(tmp_path / "other" / "ledger.db").id)
        self.check_kept(run, tmp_path)

    def test_a_copy_that_says_that_nothing_is_open(self, run: Run, work: Path, tmp_path: Path) -> None:
        """Rows of secrets are not part of the chain: whoever copies a ledger can leave them out."""
        self.twin(work, tmp_path, lambda place: run_sql(place, "DELETE FROM holdfast_open_reservations"))
        self.check_kept(run, tmp_path)

    def test_a_copy_with_a_refund_that_does_not_follow(self, run: Run, work: Path, tmp_path: Path) -> None:
        def change(place: Path) -> None:
            append_event(place, "voided", {"reason": "forged"})
            run_sql(place, "DELETE FROM holdfast_open_reservations")

        self.twin(work, tmp_path, change)
        kept = {path: path.read_bytes() for path in secret_files(tmp_path)}
        assert run("release", "run.toml", "-o", "out").code == LEDGER_PROBLEM
        assert {path: path.read_bytes() for path in secret_files(tmp_path)} == kept


class TestFoldersThatRemember:
    """A second witness may be shared: what stands in it is no path either."""

    @pytest.mark.parametrize("name", ["*", "../../docs/x", "../../../../docs/*"])
    def test_a_place_that_remembers_a_pattern(self, work: Path, tmp_path: Path, name: str) -> None:
        second = tmp_path / "second"
        (second / "places").mkdir(parents=True)
        ledger = Ledger.open(work / "own.sqlite", create=True, needs_grants=True, witness=second)
        grant(ledger)
        place = hashlib.sha256(place_of(work / "own.sqlite").encode()).hexdigest()
        (second / "places" / place).write_text(f"{name}\n")
        mark = (second / f"{ledger.id}.mark").read_text().replace(ledger.id, name)
        os.makedirs((second / f"{name}.mark").parent, exist_ok=True)
        (second / f"{name}.mark").write_text(mark)
        before = tree(tmp_path)
        for step in (
            lambda: Ledger.reopen(work / "own.sqlite", witness=second).accept_restore(approver="A", reason="B"),
            lambda: reserve(ledger),
            ledger.check_witness,
        ):
            with pytest.raises(WitnessMismatch, match="a file in its folder 'places', cannot be read"):
                step()
        assert tree(tmp_path) == before

    @pytest.mark.parametrize(
        "change",
        [("seq", "1.5"), ("seq", "true"), ("hash", '"../x"'), ("needs_grants", "7"), ("releases", "[7]"), ("version", "[]")],
        ids=str,
    )
    def test_a_mark_with_a_value_of_another_kind(self, work: Path, tmp_path: Path, change: tuple[str, str]) -> None:
        import json

        second = tmp_path / "second"
        second.mkdir()
        ledger = Ledger.open(work / "own.sqlite", create=True, needs_grants=True, witness=second)
        grant(ledger)
        path = second / f"{ledger.id}.mark"
        fields = json.loads(path.read_text()) | {change[0]: json.loads(change[1])}
        path.write_text(json.dumps(fields, sort_keys=True, separators=(",", ":")) + "\n")
        with pytest.raises(WitnessMismatch, match="cannot be read"):
            reserve(ledger)

    def test_a_second_secret_that_is_a_link(self, work: Path, tmp_path: Path) -> None:
        ledger = a_ledger(work)
        link = secret_files(tmp_path)[0].with_name(f"{ledger.id}-9")
        link.symlink_to(tmp_path / "docs" / "annual-report.txt")
        ledger.check_witness()
        assert not link.is_symlink()
        assert (tmp_path / "docs" / "annual-report.txt").read_bytes() == DOCS["annual-report.txt"]

    def test_a_lock_that_is_a_link(self, work: Path, tmp_path: Path) -> None:
        second = tmp_path / "second"
        second.mkdir()
        ledger = Ledger.open(work / "own.sqlite", create=True, needs_grants=True, witness=second)
        (second / f"{ledger.id}.lock").unlink(missing_ok=True)
        (second / f"{ledger.id}.lock").symlink_to(tmp_path / "docs" / "made")
        with pytest.raises(LedgerProblem):
            ledger.check_witness()
        assert not (tmp_path / "docs" / "made").exists()


def test_events_of_another_ledger_are_none_of_this_one(work: Path, tmp_path: Path) -> None:
    """Steps are read without the whole chain: each must still be of this ledger."""
    ledger = Ledger.open(work / "own.sqlite", create=True, needs_grants=True)
    grant(ledger)
    bring(ledger, "drawing")
    reserved = next(event for event in read_events(work / "own.sqlite") if event["kind"] == "reserved")
    append_event(work / "own.sqlite", "staged", {"checksum": "00"}, ledger="f" * 32)
    with pytest.raises(LedgerBroken, match="belongs to another ledger"):
        ledger.reservation(reserved["dataset"], reserved["release_id"])
