"""The fault drivers, a few cases of each; `make test-faults` runs them exhaustively. And the model of a disk that they rest on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.faults.disk import Disk, Step, put, read, record
from tests.faults.drive import drive


class TestDisk:
    """What is kept, and what may be lost."""

    def disk(self, *steps: Step) -> Disk:
        disk = Disk.holding({"a": b"old", "d": None})
        for step in steps:
            disk.apply(step)
        return disk

    def test_content_is_kept_when_the_file_is_synced(self) -> None:
        written = Step("write", "a", data=b"new!")
        assert self.disk(written).after("synced", 0) == {"a": b"old", "d": None}
        assert self.disk(written).after("all", 0) == {"a": b"new!", "d": None}
        assert self.disk(written, Step("sync", "a")).after("synced", 0) == {"a": b"new!", "d": None}

    def test_a_name_is_kept_when_the_folder_is_synced(self) -> None:
        made = (Step("create", "d/b"), Step("write", "d/b", data=b"x"), Step("sync", "d/b"))
        assert self.disk(*made).after("synced", 0) == {"a": b"old", "d": None}
        assert self.disk(*made).after("names", 0) == {"a": b"old", "d": None, "d/b": b"x"}
        assert self.disk(*made, Step("sync", "d")).after("synced", 0) == {"a": b"old", "d": None, "d/b": b"x"}

    def test_a_rename_before_the_content_is_synced_gives_an_empty_file(self) -> None:
        careless = (Step("create", "new"), Step("write", "new", data=b"x"), Step("rename", "new", "a"), Step("sync", ""))
        assert self.disk(*careless).after("synced", 0) == {"a": b"", "d": None}

    def test_what_was_removed_comes_back(self) -> None:
        assert self.disk(Step("remove", "a")).after("synced", 0) == {"a": b"old", "d": None}
        assert self.disk(Step("remove", "a"), Step("sync", "")).after("synced", 0) == {"d": None}

    def test_sectors_of_a_file_are_old_or_new_each_for_itself(self) -> None:
        old, new = b"o" * 2048, b"n" * 2048
        disk = Disk.holding({"a": old})
        disk.apply(Step("write", "a", data=new))
        found = {disk.after("mixed", seed)["a"] for seed in range(200)}
        assert found == {b"".join(bytes([letter]) * 512 for letter in letters) for letters in _all("on", 4)}

    @pytest.mark.strace
    def test_a_recorded_command_is_replayed(self, tmp_path: Path) -> None:
        """All calls by which Python, SQLite and a shell change files give what is there in the end."""
        root = tmp_path / "place"
        put(root, {"old": b"12345", "d": None, "d/x": b"x"})
        script = (
            "import os, sqlite3, shutil, ctypes\n"
            "with open('d/new', 'wb') as f: f.write(b'abc'); f.seek(1); f.write(b'ZZZ'); f.truncate(3)\n"
            "os.rename('d/new', 'moved'); os.link('moved', 'd/linked'); os.unlink('moved')\n"
            "open('old', 'wb').close(); os.makedirs('e/f'); open('e/f/g', 'w').close(); shutil.rmtree('e')\n"
            "c = sqlite3.connect('db'); c.execute('create table t (a)'); c.execute('insert into t values (1)'); c.commit(); c.close()\n"
            "ctypes.CDLL(None).renameat2(-100, b'old', -100, b'd', 2)\n"
        )
        before = read(root)
        code, steps = record([sys.executable, "-c", script], root, dict(os.environ))
        assert code == 0
        disk = Disk.holding(before)
        for step in steps:
            disk.apply(step)
        assert disk.after("all", 0) == read(root)
        assert {step.what for step in steps} == {"create", "write", "truncate", "rename", "link", "remove", "mkdir", "exchange", "sync"}


def _all(letters: str, length: int) -> list[bytes]:
    return [b""] if not length else [rest + bytes([letter]) for rest in _all(letters, length - 1) for letter in letters.encode()]


@pytest.mark.long
@pytest.mark.strace
@pytest.mark.parametrize("scenario", ["granted", "made"])
def test_power_is_lost(scenario: str) -> None:
    found = drive("power", scenario, 11)
    assert found["wrong"] == []
    assert found["different"] >= 20
    assert {"None", "drawing", "staged", "closed"} <= found["reached"].keys()


@pytest.mark.long
@pytest.mark.strace
def test_a_release_that_synced_nothing_would_be_noticed() -> None:
    assert drive("power", "granted", 40, "unsynced")["wrong"] != []


@pytest.mark.long
def test_memory_runs_out() -> None:
    found = drive("memory", 25, 7)
    assert found["wrong"] == []
    assert len(found["codes"]) >= 2


@pytest.mark.long
def test_the_ledger_is_rolled_back() -> None:
    found = drive("rollback", 3, 18)
    assert found["wrong"] == []
    assert found["attacks"]["roll back"] >= 3
    assert found["attacks"]["accepted"] >= 1


@pytest.mark.long
def test_nothing_can_be_written_but_the_output() -> None:
    assert drive("bare", "a home that cannot be written", "no witness") == {"cases": 2, "wrong": []}
