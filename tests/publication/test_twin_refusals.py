"""The twin test, for tables that are refused: two tables that differ only in confidential counts get the same refusal.

A release tells nothing by its bytes beyond the released counts (test_release.py); a refusal tells nothing beyond that the table is refused.
Where a row of the source is wrong in itself its number is told, never what stands there: such twins have the same row wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import holdfast as hf
from holdfast.errors import HoldfastError
from holdfast.runfiles.runfile import load_run
from tests.exposing import exposing

UNIVERSE = hf.Universe.product({"age": ["14", "15", "16"], "married": ["no", "yes"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
BIG = 2**61 - 1


def counts_of(*counts: Any) -> pa.Table:
    cells = [UNIVERSE.cell(place) for place in range(6)]
    return pa.table({name: [cell[name] for cell in cells] for name in UNIVERSE.columns} | {"n": list(counts)})


def from_counts(*counts: Any) -> hf.Table:
    return hf.Table.from_counts(counts_of(*counts), ["age", "married"], "n", public=True)


def keyed(*counts: int, key: int) -> hf.Table:
    keys = np.array([key if count else 0 for count in counts])
    return hf.Table(UNIVERSE, np.array(counts), cell_keys=keys)


def release(keep: list[Any], *counts: int) -> Any:
    return exposing(hf.release, hf.Table(UNIVERSE, np.array(counts)), keep, LAPLACE, hf.NoiseKey.for_tests(1), release_id="x")


def records(times: int, age: str | None, married: str | None, **options: Any) -> hf.Table:
    """Fourteen-year-olds, and some others as given."""
    frame = pa.table(
        {
            "age": pa.array(["14", *[age] * times], pa.string()),
            "married": pa.array(["no", *[married] * times], pa.string()),
            "id": pa.array(["a", *["b"] * times], pa.string()),
            "key": pa.array([1, *[2**32 + times] * times], pa.int64()),
        }
    )
    return hf.Table.from_records(frame, universe=options.pop("universe", UNIVERSE), **options)


ZERO = hf.identity(hf.subset("age < 16 and married = 'yes'", by=["age", "married"]))
LISTED = hf.Universe.listed({"age": ["14", "15", "16"], "married": ["no", "no", "yes"]})
HEAVY = hf.linear([[2**30, 0, 0, 0, 0, 0]])

TWINS: dict[str, tuple[Callable[[], Any], ...]] = {
    "an identity is broken, in one sum or another": (
        lambda: release([hf.margin("age"), ZERO], 7, 1, 5, 0, 4, 3),
        lambda: release([hf.margin("age"), ZERO], 6, 0, 5, 2, 4, 3),
        lambda: release([hf.margin("age"), ZERO], 6, 900, 5, 77, 4, 3),
    ),
    "an identity of a margin is broken": (
        lambda: release([hf.identity(hf.margin("age"), [7, 5, 7])], 7, 1, 5, 0, 4, 3),
        lambda: release([hf.identity(hf.margin("age"), [7, 5, 7])], 7, 0, 9, 0, 4, 4),
    ),
    "a declared total is another": (
        lambda: release([hf.linear([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], ["a", "b"], [8, 9])], 7, 1, 5, 0, 4, 3),
        lambda: release([hf.linear([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0]], ["a", "b"], [8, 9])], 6, 1, 9, 0, 4, 3),
    ),
    "a kept sum would overflow": (
        lambda: release([HEAVY], 2**33, 1, 5, 0, 4, 3),
        lambda: release([HEAVY], 2**40, 0, 0, 9, 4, 3),
    ),
    "the total would overflow": (
        lambda: hf.Table(UNIVERSE, np.array([BIG, BIG, 2, 0, 0, 0])),
        lambda: hf.Table(UNIVERSE, np.array([BIG, 5, BIG, BIG, 1, 0])),
        lambda: from_counts(0, BIG, BIG, 7, 0, 0),
    ),
    "a negative count in an array": (
        lambda: hf.Table(UNIVERSE, np.array([1, -2, 3, 4, 5, 6])),
        lambda: hf.Table(UNIVERSE, np.array([1, 2, 3, -4, -5, 2**62])),
    ),
    "a negative count in a row": (lambda: from_counts(1, -2, 3, 4, 5, 6), lambda: from_counts(9, -7319465, 8, -7, 6, 5)),
    "a count beyond the limit in a row": (lambda: from_counts(1, 2**62, 3, 4, 5, 6), lambda: from_counts(9, 2**62 + 9, 8, 7, 6, 5)),
    "a count that is missing": (lambda: from_counts(1, None, 3, 4, 5, 6), lambda: from_counts(9, None, 8, None, 6, 5)),
    "a count in words": (lambda: from_counts("1", "two", "3", "4", "5", "6"), lambda: from_counts("9", "8.0", "7", "x", "6", "5")),
    "keys of cells out of range": (lambda: keyed(1, 2, 3, 4, 5, 6, key=2**32), lambda: keyed(9, 0, 0, 0, 0, 1, key=-1)),
    "a key of an empty cell": (
        lambda: hf.Table(UNIVERSE, np.array([0, 2, 3, 4, 5, 6]), cell_keys=np.array([1, 2, 3, 4, 5, 6])),
        lambda: hf.Table(UNIVERSE, np.array([9, 0, 0, 4, 5, 6]), cell_keys=np.array([7, 2, 3, 4, 5, 6])),
    ),
    "codes that were not declared": (lambda: records(1, "17", "no"), lambda: records(300, "99", "no")),
    "codes that are missing": (lambda: records(1, "15", None), lambda: records(300, "16", None)),
    "cells that are not listed": (lambda: records(1, "14", "yes", universe=LISTED), lambda: records(300, "15", "yes", universe=LISTED)),
    "rows of counts outside the universe": (
        lambda: hf.Table.from_counts(counts_of(1, 2, 3, 4, 5, 6), ["age", "married"], "n", universe=LISTED),
        lambda: hf.Table.from_counts(counts_of(9, 0, 0, 7, 6, 0), ["age", "married"], "n", universe=LISTED),
    ),
    "too many records": (lambda: records(2, "15", "no", id="id"), lambda: records(300, "16", "yes", id="id")),
    "a record key out of range": (lambda: records(1, "15", "no", record_key="key"), lambda: records(300, "16", "no", record_key="key")),
}


def refusal(work: Callable[[], Any]) -> tuple[str, str, int, str]:
    with pytest.raises(HoldfastError) as caught:
        work()
    error = caught.value
    return type(error).__name__, error.code, error.exit_code, str(error)


@pytest.mark.parametrize("case", TWINS)
def test_twins_get_the_same_refusal(case: str) -> None:
    first, *others = [refusal(work) for work in TWINS[case]]
    assert others == [first] * len(others)


RUN = """
[table]
source = "people.csv"
cells = ["age", "married"]
count = "n"
[keep]
margins = [["age"]]
[keep.identities]
subsets = [{where = "age < 16 and married = 'yes'", by = ["age", "married"]}]
[release]
id = "x"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.mark.parametrize("rows", [("1", "900"), ("-1", "-900"), ("x", "1.5"), (str(2**62), str(2**63))])
def test_twins_get_the_same_refusal_from_a_run_file(rows: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(RUN)
    told: list[tuple[str, str, int, str]] = []
    for count in rows:
        (tmp_path / "people.csv").write_text(f"age,married,n\n14,no,{len(told)}\n14,yes,{count}\n15,no,5\n15,yes,0\n16,no,4\n16,yes,3\n")
        run = load_run(tmp_path / "run.toml")
        told.append(refusal(lambda run=run: hf.release(run.read_table(), run.keep, run.mechanism, ledger=None, allow_exposed=2)))  # type: ignore[misc]
    assert told[0] == told[1]
