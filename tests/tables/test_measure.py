"""What the numbers of a table are: counts and answers reply to the same questions."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import InvalidCount, InvalidParameter, RequestTooLarge
from holdfast.tables.measure import COUNTS, AnswerGrid, Counts, Measure

TOWNS = hf.Universe.product({"town": ["a", "b"]})
QUARTERS = AnswerGrid(Fraction(1, 4), l1=Fraction(3))


class TestCounts:
    @given(st.lists(st.integers(-(2**62) + 1, 2**62 - 1), max_size=5))
    def test_texts_columns_and_doubles_are_the_whole_numbers(self, numbers: list[int]) -> None:
        steps = np.array(numbers, dtype=np.int64)
        assert list(map(COUNTS.text, numbers)) == list(map(str, numbers))
        assert [COUNTS.steps(str(number)) for number in numbers] == numbers
        column = COUNTS.column(steps)
        assert column.type == pa.int64()
        assert COUNTS.read_column(column).to_pylist() == COUNTS.read_column(column.cast(pa.string())).to_pylist() == numbers
        assert (COUNTS.floats(steps) == steps.astype(np.float64)).all()

    @pytest.mark.parametrize("text", ["5.0", "1/2", "", "x"])
    def test_other_texts_are_not_read_back(self, text: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            COUNTS.steps(text)

    def test_values_are_ints(self) -> None:
        assert [type(COUNTS.value(3)), COUNTS.step_text] == [int, "1"]

    def test_equal_after_a_pickle(self) -> None:
        assert pickle.loads(pickle.dumps(COUNTS)) == COUNTS == Counts()


@pytest.mark.parametrize(
    ("measure", "steps", "error"),
    [
        (COUNTS, [-1, 0], InvalidCount),
        (COUNTS, [2**62, 0], InvalidCount),
        (COUNTS, [2**61, 2**61], RequestTooLarge),
        (QUARTERS, [-(2**62), 0], RequestTooLarge),
        (QUARTERS, [-(2**61), 2**61], RequestTooLarge),
    ],
)
def test_what_a_table_cannot_hold_is_refused(measure: Measure, steps: list[int], error: type[Exception]) -> None:
    with pytest.raises(error):
        hf.Table(TOWNS, np.array(steps), measure=measure)


def test_answers_may_be_negative_and_counts_may_not() -> None:
    assert hf.Table(TOWNS, np.array([-3, 2]), measure=QUARTERS).measure is QUARTERS
    assert [COUNTS.nonnegative, QUARTERS.nonnegative] == [True, False]


@pytest.mark.parametrize(("text", "value"), [("0.25", "1/4"), ("1/3", "1/3"), ("-2e-1", "-1/5")])
def test_others_write_answers_as_they_like_and_counts_as_whole_numbers(text: str, value: str) -> None:
    assert QUARTERS.number(text) == Fraction(value)
    assert COUNTS.number("12") == 12
    for wrong in (text, "x", ""):
        with pytest.raises(ValueError, match="not a number"):
            COUNTS.number(wrong)


def test_each_refuses_what_is_for_the_other() -> None:
    COUNTS.check_counts("counts only")
    assert QUARTERS.as_grid("answers only") is QUARTERS
    with pytest.raises(InvalidParameter, match="counts only"):
        QUARTERS.check_counts("counts only")
    with pytest.raises(InvalidParameter, match="answers only"):
        COUNTS.as_grid("answers only")


def test_the_frame_of_answers_has_their_values() -> None:
    frame = hf.Table(TOWNS, np.array([-3, 2]), count="rate", measure=QUARTERS).frame
    assert frame.column("rate").to_pylist() == [Decimal("-0.75"), Decimal("0.50")]
