"""How far off counts are, in words."""

from __future__ import annotations

import pytest

from holdfast.channels.layout import LevelError
from holdfast.wording.errors import error_sentences, level_lines


@pytest.mark.parametrize(
    ("basis", "said"),
    [
        ("upper bound", "is 0 for half of the cells or more, and at most 1,240 for the others."),
        ("exact", "is 0 for half of the cells or more, and up to 1,230 for the others."),
        ("estimated", "is 0 for half of the cells or more, and up to 1,230 for the others."),
    ],
)
def test_where_most_cells_are_exact_the_others_are_spoken_of(basis: str, said: str) -> None:
    words = error_sentences(0.0, 0.0, 1234.5, basis)
    assert said in words
    assert "typical" not in words


@pytest.mark.parametrize(("deviation", "basis"), [(1.0, "exact"), (None, "unknown"), (None, "not estimated"), (0.0, "estimated")])
def test_without_kept_totals_none_are_spoken_of(deviation: float | None, basis: str) -> None:
    assert "Kept totals have no error." in error_sentences(deviation, deviation, deviation, basis)
    assert "ept total" not in error_sentences(deviation, deviation, deviation, basis, kept=False)


def test_one_cell_is_one_cell() -> None:
    assert "not estimated for 1 cell," in error_sentences(0.5, 1.0, 2.0, "estimated", 1)


def test_large_errors_are_plain_numbers() -> None:
    assert "is 1,230 for a typical cell (0.5 to 12,300)." in error_sentences(0.5, 1234.5, 12345.0, "exact")


def test_bounds_are_rounded_up_and_called_bounds() -> None:
    assert "is at most 5 for a typical cell. Kept" in error_sentences(4.9991, 4.9992, 4.9993, "upper bound")
    assert "is at most 7.22 for a typical cell (1.01 to 9.01)." in error_sentences(1.0001, 7.2101, 9.0001, "upper bound")
    assert "is 7.21 for a typical cell (1 to 9)." in error_sentences(1.0001, 7.2101, 9.0001, "exact")
    lines = list(
        level_lines(
            [LevelError("state", "total", 2, 1.2341, 1.2341, 1.2341), LevelError("state", "sex", 4, 1.0001, 2.0001, 3.0001)], "upper bound"
        )
    )
    assert lines[0].endswith("standard deviation, at most")
    assert [line.split("  ")[-1] for line in lines[1:]] == ["1.24", "2.01 (1.01 to 3.01)"]
