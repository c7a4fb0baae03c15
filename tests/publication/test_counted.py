"""Whole-number sums look like counts: what the numbers count is declared, and plan, card and statement repeat it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.errors import InvalidCount, OutOfScope
from holdfast.wording.budget import plural
from tests.running import Run
from tests.tables.reference import refused

RUN = """
[table]
source = "income.csv"
cells = ["town"]
count = "income"
public = true
protect = "{protect}"
max_records = {records}
[keep]
[release]
id = "income-1"
mechanism = "generalized-laplace"
epsilon = "1"
per = "{protect}"
ledger = "none"
"""


@pytest.mark.parametrize(
    ("protect", "records", "said"),
    [
        ("person", 1, "a count of persons, each counted at most once, and no sum of amounts such as income."),
        ("household", 1, "a count of households, each counted at most once, and no sum of amounts such as income."),
        ("family", 3, "a count of families, each counted at most 3 times, and no sum of amounts such as income."),
    ],
)
def test_sums_of_income_as_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, protect: str, records: int, said: str) -> None:
    """They cannot be refused: no number shows that it is a sum of amounts. Whoever signs reads what was declared."""
    monkeypatch.chdir(tmp_path)
    Path("income.csv").write_text("town,income\na,41250\nb,380000\n")
    Path("run.toml").write_text(RUN.format(protect=protect, records=records))
    told = f"The numbers are declared to be {said}"
    assert f"Counted    {told}" in run("plan", "run.toml").out
    assert json.loads(run("plan", "run.toml", "--json").out)["counted"] == told
    assert run("release", "run.toml", "-o", "out").code == 0
    card = json.loads(Path("out/card.json").read_text())
    assert (card["table"]["counted"], card["table"]["over"]) == (told, "refuse")
    assert told in Path("out/statement.html").read_text()
    assert run("verify", "out").code == 0
    Path("out/card.json").write_text(Path("out/card.json").read_text().replace(" and no sum of amounts such as income", ""))
    assert run("verify", "out").code != 0


def test_where_the_promise_is_for_one_record() -> None:
    table = hf.Table(hf.Universe.product({"a": ["x", "y"]}), np.array([1, 2]), max_records=None)
    assert "a count of records, each record counted once" in str(hf.plan(table, [], hf.GeneralizedLaplace(epsilon=1)))


def test_answers_are_not_declared_to_be_counts() -> None:
    """Nor are their names refused: who gives the sensitivity knows which answers are totals."""
    noise = hf.ProjectedLaplace(epsilon=1)
    made = hf.answer(["1/2", "1/3"], mechanism=noise, names=["mean", "Total"], sensitivity=1, key=hf.NoiseKey.for_tests(1))
    assert made.card.table.counted is None
    assert "declared to be a count" not in str(made.plan)


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.5, float("nan")], ["1.5", "2"], ["NaN", "1"], [1, None], [-1, 2]])
def test_numbers_that_are_no_counts_lead_to_answers(values: list[Any]) -> None:
    frame = pa.table({"a": ["x", "y"], "n": values})
    assert "hf.answer" in refused(InvalidCount, partial(hf.Table.from_counts, frame, ["a"], "n"))


def test_so_do_arrays_and_weights() -> None:
    universe = hf.Universe.product({"a": ["x", "y"]})
    assert "hf.answer" in refused(InvalidCount, partial(hf.Table, universe, np.array([0.5, 1.5])))
    frame = pa.table({"a": ["x", "y"], "n": [1, 2]})
    assert "hf.answer" in refused(OutOfScope, partial(hf.Table.from_counts, frame, ["a"], "n", weight="w"))


@pytest.mark.parametrize("protect", ["y", "Yes", " no ", "true", "none"])
def test_an_answer_to_a_question_is_nobody(protect: str) -> None:
    with pytest.raises(hf.errors.InvalidParameter, match="must say whose privacy is promised"):
        hf.Table(hf.Universe.product({"a": ["x"]}), np.array([1]), protect=protect)


@pytest.mark.parametrize(
    ("one", "many"), [("person", "persons"), ("family", "families"), ("day", "days"), ("business", "businesses"), ("branch", "branches")]
)
def test_plural(one: str, many: str) -> None:
    assert plural(one) == many
