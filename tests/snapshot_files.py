"""Texts that people read, kept in files under tests/snapshots and compared there: one file for each test that takes the fixture `snapshot`.

`make snapshots` writes the files anew; read the difference before you commit it. A text without a file fails, so does one that differs,
one that no test compares any more, and a file that belongs to no test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "snapshots"
REFRESH = "HOLDFAST_SNAPSHOTS"
"""Set to anything, this variable writes the files instead of comparing with them, and only tests that have one are run."""

HEAD = "=== "
ADVICE = f"If it should read so, run `make snapshots` (or pytest with {REFRESH}=write) and look at the difference."


class Snapshot:
    """The texts of one test. Call it with a text, and a title where a test has several."""

    def __init__(self, path: Path, *, refresh: bool = False) -> None:
        self.path = path
        self._refresh = refresh
        self._stored = {} if refresh or not path.exists() else _read(path)
        self._seen: dict[str, str] = {}

    def __call__(self, text: str, title: str = "text") -> None:
        assert title not in self._seen, f"two texts are titled {title!r}"
        assert not re.search(f"^{HEAD}", text, re.MULTILINE), f"a line of the text starts with {HEAD!r}, as the head of a part does"
        self._seen[title] = text
        if not self._refresh:
            assert title in self._stored, f"{self.path} has no part {title!r}. {ADVICE} Found:\n{text}"
            assert text == self._stored[title], f"{self.path}, part {title!r}. {ADVICE}"

    def finish(self) -> None:
        """Once the test has passed: no stored text was left uncompared; or, on a refresh, write what was seen."""
        if self._refresh:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text("".join(f"{HEAD}{title}\n{text}\n" for title, text in self._seen.items()), encoding="utf-8")
        unused = self._stored.keys() - self._seen.keys()
        assert not unused, f"{self.path} has parts that the test does not compare: {sorted(unused)}. {ADVICE}"
        assert self._seen, "the test takes the fixture `snapshot` and compares no text with it"


def _read(path: Path) -> dict[str, str]:
    parts = re.split(f"^{HEAD}(.*)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {title: text.removesuffix("\n") for title, text in zip(parts[::2], parts[1::2], strict=True)}


def undated(text: str) -> str:
    """A screen without what differs from day to day: dates, and the identifier of the ledger."""
    return re.sub(r"\b[0-9a-f]{32}\b", "LEDGER", re.sub(r"\b\d{4}-\d\d-\d\d\b", "YYYY-MM-DD", text))


def refreshing() -> bool:
    return bool(os.environ.get(REFRESH))


def path_of(nodeid: str, folder: Path = FOLDER) -> Path:
    """tests/publication/test_plan.py::TestText::test_long[a b] has snapshots/publication/test_plan/TestText.test_long[a-b].txt."""
    module, _, name = nodeid.partition("::")
    plain = re.sub(r"[^\w.,=\[\]-]+", "-", name.replace("::", "."))
    return folder.joinpath(*Path(module).with_suffix("").parts[1:], f"{plain}.txt")


def files_without_a_test(nodeids: Iterable[str], folder: Path = FOLDER) -> list[Path]:
    """Of all tests that take the fixture: two must not share a file, and no file may be left over."""
    expected = [path_of(nodeid, folder) for nodeid in nodeids]
    twice = {path for path in expected if expected.count(path) > 1}
    if twice:
        raise pytest.UsageError(f"Several tests would share a snapshot; give their cases ids of their own: {sorted(map(str, twice))}")
    return sorted(set(folder.rglob("*.txt")) - set(expected))
