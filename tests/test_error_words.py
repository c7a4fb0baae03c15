"""How far off counts are, in words."""

from __future__ import annotations

import pytest

from holdfast.wording.errors import error_sentences


@pytest.mark.parametrize(
    ("basis", "said"),
    [
        ("upper bound", "is 0 for half of the cells or more, and at most 1,230 for the others."),
        ("exact", "is 0 for half of the cells or more, and up to 1,230 for the others."),
        ("estimated", "is 0 for half of the cells or more, and up to 1,230 for the others."),
    ],
)
def test_where_most_cells_are_exact_the_others_are_spoken_of(basis: str, said: str) -> None:
    words = error_sentences(0.0, 0.0, 1234.5, basis)
    assert said in words
    assert "typical" not in words


def test_large_errors_are_plain_numbers() -> None:
    assert "is 1,230 for a typical cell (0.5 to 12,300)." in error_sentences(0.5, 1234.5, 12345.0, "exact")
