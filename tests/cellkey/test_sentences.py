"""What is said of cell key figures: the facts in fields, the text in snapshots."""

from __future__ import annotations

from collections.abc import Callable

import holdfast as hf
from holdfast.cellkey import PerturbationTable, design, design_rows
from holdfast.research.attacks import joint_losses


def test_what_is_said_of_a_design_and_of_its_table(snapshot: Callable[..., None]) -> None:
    made = design("0.5", "1e-4")
    snapshot(hf.describe(made.epsilon_delta()), "before rounding for keys")
    snapshot(hf.describe(made.quantised(1 << 32).epsilon_delta()), "2^32 keys")


def test_a_design_is_printed_on_one_line() -> None:
    """It was thousands of characters of fractions."""
    assert repr(design("0.5", "1e-4")) == "Design(epsilon = 0.5, delta = 0.0001: noise of -25 to 25, gamma = 0.0102, variance 49.0022)"
    assert len(repr(design("0.123456789123456789", "1e-9"))) < 120


def test_what_is_said_of_zeros_that_stay_zero(snapshot: Callable[..., None]) -> None:
    text = hf.describe(design_rows(3, "1.3").quantised(1 << 16).epsilon_delta())
    assert "always published as zero" in text
    assert "no protection" in text
    snapshot(text)


def test_what_is_said_of_tables_with_gaps_and_of_one_answer(snapshot: Callable[..., None]) -> None:
    half = {-1: "1/2", 1: "1/2"}
    gap = hf.describe(PerturbationTable.from_probabilities({0: {0: 1}, 5: half}).epsilon_delta())
    assert "zero and one included" not in gap
    snapshot(gap, "rows of 0 and 5")
    ends = PerturbationTable.from_probabilities(dict.fromkeys((1, 2, 5, 6, 7), half), repeat=0)
    snapshot(hf.describe(ends.epsilon_delta()), "rows of 1, 2, 5, 6 and 7, no larger counts")
    text = hf.describe(joint_losses(design_rows(2, "0.9").quantised(64), {(1,): 3}, (1,)))
    assert "zero" not in text.replace("other than zero", "")
    snapshot(text, "one answer, counts 3 and 4")


def test_what_is_said_of_several_answers_and_of_a_pure_table(snapshot: Callable[..., None]) -> None:
    rows = {1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/2", -1: "1/4", 0: "1/4"}}
    table = PerturbationTable.from_probabilities(rows, repeat=0)
    assert table.epsilon_delta().plateau == 0
    snapshot(hf.describe(table.epsilon_delta()), "no plateau")
    small = design_rows(2, "0.9").quantised(64)
    snapshot(hf.describe(joint_losses(small, {(1, 1): 3}, (1, 0))), "two answers that differ in one record")
