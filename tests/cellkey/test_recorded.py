"""The noise of records never changes: tables recorded when several tables had a path of their own, bit for bit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, RecordKeys
from tests.cellkey.perturbing import perturb

NOISE = PerturbationTable.from_probabilities(
    {1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/8", -1: "1/8", 0: "1/2", 1: "1/8", 2: "1/8"}}, 2**16
)
PEOPLE = pa.table(
    {
        "id": [f"p{n}" for n in range(90)],
        "a": ["x", "y", "z"] * 30,
        "b": [str(n * n % 7) for n in range(90)],
        "w": [f"{n % 9 + 1}.{n % 4}" for n in range(90)],
    }
)
SECRET = RecordKeys.for_tests("recorded")
TABLES: dict[str, list[str]] = {"ab": ["a", "b"], "a": ["a"], "all": []}
MIXED = CellKeys(KeySpace.bits(32), size=2**16, mixed=True)
RECORDED: list[tuple[str, Any, PerturbationTable, dict[str, str], list[list[int]]]] = [
    ("32", KeySpace.bits(32), NOISE, {}, [[5, 10, 9, 8, 6, 7, 9, 8, 4, 8, 8, 10], [31, 28, 28], [90]]),
    ("64", KeySpace.bits(64), NOISE, {}, [[4, 10, 8, 8, 2, 9, 11, 8, 6, 8, 6, 10], [30, 30, 28], [90]]),
    ("decimals", KeySpace.decimals(8), NOISE.rescaled(10**8), {}, [[7, 9, 9, 8, 3, 9, 9, 8, 3, 8, 10, 10], [30, 31, 32], [90]]),
    ("4096 modulo", CellKeys(KeySpace(4096), 256), NOISE.rescaled(256), {}, [[5, 10, 9, 7, 4, 9, 7, 9, 4, 8, 10, 10], [32, 32, 29], [92]]),
    ("prime", CellKeys(KeySpace.bits(32), 4294967291, 2**16), NOISE, {}, [[5, 10, 9, 8, 6, 7, 9, 8, 4, 8, 8, 10], [31, 28, 28], [90]]),
    ("mixed", MIXED, NOISE, {}, [[5, 8, 9, 8, 4, 9, 8, 8, 2, 10, 8, 9], [29, 30, 30], [92]]),
    ("weighted", KeySpace.bits(32), NOISE, {"weight": "w"}, [[18, 49, 38, 30, 35, 34, 46, 41, 25, 49, 49, 62], [129, 144, 172], [463]]),
]


@pytest.mark.parametrize(("name", "keys", "table", "more", "expected"), RECORDED, ids=[row[0] for row in RECORDED])
def test_the_noise_is_as_recorded(name: str, keys: Any, table: PerturbationTable, more: dict[str, str], expected: list[list[int]]) -> None:
    made = perturb(PEOPLE, TABLES, table, keys=keys, id="id", secret=SECRET, **more)
    assert [made[name].column("count").to_pylist() for name in TABLES] == expected
