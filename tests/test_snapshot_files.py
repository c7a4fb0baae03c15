"""The texts in tests/snapshots: a missing, changed or unused one fails, and a refresh writes what the test sees."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.snapshot_files import Snapshot, files_without_a_test, path_of

TEXTS = {"text": "One line.\nAnother, and an empty one at the end.\n\n", "screen": "", "said on stderr": "  indented\n\n\nlast"}


def written(path: Path) -> Path:
    """A file as a refresh writes it."""
    test = Snapshot(path, refresh=True)
    for title, text in TEXTS.items():
        test(text, title)
    test.finish()
    return path


def test_what_a_refresh_wrote_is_what_is_compared(tmp_path: Path) -> None:
    test = Snapshot(written(tmp_path / "new" / "folder" / "test_a.txt"))
    for title, text in reversed(TEXTS.items()):
        test(text, title)
    test.finish()


@pytest.mark.parametrize("title", TEXTS)
def test_every_changed_character_fails(tmp_path: Path, title: str) -> None:
    path = written(tmp_path / "test_a.txt")
    right = TEXTS[title]
    wrong = {right + "\n", right + " ", "\n" + right, *(right[:i] + right[i + 1 :] for i in range(len(right)))} - {right}
    for text in wrong:
        with pytest.raises(AssertionError, match="make snapshots"):
            Snapshot(path)(text, title)


def test_a_missing_file_or_part_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="has no part 'text'"):
        Snapshot(tmp_path / "none.txt")("x")
    with pytest.raises(AssertionError, match="has no part 'other'"):
        Snapshot(written(tmp_path / "test_a.txt"))("x", "other")


def test_an_unused_part_fails_and_a_refresh_drops_it(tmp_path: Path) -> None:
    path = written(tmp_path / "test_a.txt")
    for refresh in (False, True):
        test = Snapshot(path, refresh=refresh)
        test(TEXTS["text"])
        if refresh:
            test.finish()
        else:
            with pytest.raises(AssertionError, match="'said on stderr', 'screen'"):
                test.finish()
    after = Snapshot(path)
    after(TEXTS["text"])
    after.finish()


def test_misuse_fails(tmp_path: Path) -> None:
    test = Snapshot(tmp_path / "test_a.txt", refresh=True)
    with pytest.raises(AssertionError, match="compares no text"):
        test.finish()
    test("x")
    with pytest.raises(AssertionError, match="two texts are titled 'text'"):
        test("x")
    with pytest.raises(AssertionError, match="as the head of a part does"):
        test("a\n=== b", "b")


def test_every_test_has_a_file_of_its_own_and_every_file_a_test(tmp_path: Path) -> None:
    nodeids = ["tests/test_a.py::test_b", "tests/x/test_a.py::TestC::test_b[1-a b/c]"]
    paths = [path_of(nodeid, tmp_path) for nodeid in nodeids]
    assert paths == [tmp_path / "test_a" / "test_b.txt", tmp_path / "x" / "test_a" / "TestC.test_b[1-a-b-c].txt"]
    for path in paths:
        written(path)
    assert files_without_a_test(nodeids, tmp_path) == []
    assert files_without_a_test(nodeids[1:], tmp_path) == [paths[0]]
    with pytest.raises(pytest.UsageError, match="share a snapshot"):
        files_without_a_test([*nodeids, nodeids[1].replace("/c", " c")], tmp_path)
