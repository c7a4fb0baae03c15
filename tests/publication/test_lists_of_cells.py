"""The rows of a source of counts may be those with a positive count, sorted by size: unless someone declares the list public, the promise
is for tables with the same cells, and the published order tells nothing.

It was not: such a list became the universe, in its order, and the promise had no condition.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast as hf
from holdfast.errors import DuplicateCells, InvalidConstraint, InvalidParameter, InvalidRun, OutsideUniverse
from holdfast.privacy.guarantee import Relation
from holdfast.runfiles.runfile import load_run
from holdfast.tables.declarations import Declarations
from tests.tables.reference import refused, rows_of

BY_SIZE = pa.table({"town": ["dale", "ash", "elm", "birch"], "sex": ["M", "F", "M", "F"], "n": [901, 77, 5, 1]})
LISTED = hf.Universe.listed({"town": ["elm", "dale", "ash", "birch", "oak"], "sex": ["M", "M", "F", "F", "F"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
CELLS = ["town", "sex"]

codes = st.text(alphabet="abcé1 ", max_size=3)


def released(table: hf.Table, folder: Path, keep: list[Any] | None = None) -> tuple[dict[str, Any], str]:
    made = hf.release(table, [hf.total()] if keep is None else keep, LAPLACE, hf.NoiseKey.for_tests(5), release_id="x")
    made.save(folder)
    assert hf.verify(folder).cells == len(table)
    return json.loads((folder / "card.json").read_text()), (folder / "statement.html").read_text() + (folder / "report.html").read_text()


def test_a_list_that_is_not_declared_public_is_a_condition_of_the_promise(tmp_path: Path) -> None:
    card, pages = released(hf.Table.from_counts(BY_SIZE, CELLS, "n"), tmp_path / "out")
    assert card["table"]["universe"] == "as listed"
    assert card["guarantee"]["relation_fields"] == {
        "same_totals": True,
        "same_cells": True,
        "non_negative": False,
        "within_bounds": False,
        "identities": False,
    }
    assert card["guarantee"]["relation"] == "tables with the same kept totals and the same cells"
    assert "was not declared public" in card["guarantee"]["text"]
    assert "pairs of tables with the same kept totals and the same cells" in pages
    assert pages.count("came with the data and was not declared public") >= 2
    assert "zero included" not in pages + json.dumps(card)
    assert "zeros included" not in pages + json.dumps(card)


@pytest.mark.parametrize("how", ["public", "universe"])
def test_a_declared_list_is_none(how, tmp_path: Path) -> None:
    given_list: dict[str, Any] = {"public": True} if how == "public" else {"universe": LISTED}
    table = hf.Table.from_counts(BY_SIZE, CELLS, "n", **given_list)
    card, pages = released(table, tmp_path / "out")
    assert card["table"]["universe"] == "declared"
    assert card["guarantee"]["relation"] == "tables with the same kept totals"
    assert "not declared public" not in pages + json.dumps(card)
    order = pq.read_table(tmp_path / "out" / "table.parquet").column("town").to_pylist()
    assert order == (BY_SIZE["town"].to_pylist() if how == "public" else LISTED.frame()["town"].to_pylist())


def test_published_rows_are_in_the_order_of_their_codes(tmp_path: Path) -> None:
    """Whatever the order of the source, the public bytes are the same: sorted by size, they told which town is larger."""
    bytes_of = []
    for number, order in enumerate([[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2]]):
        released(hf.Table.from_counts(BY_SIZE.take(order), CELLS, "n"), tmp_path / str(number))
        bytes_of.append({path.name: path.read_bytes() for path in (tmp_path / str(number)).iterdir()})
    assert bytes_of[0] == bytes_of[1] == bytes_of[2]
    assert pq.read_table(tmp_path / "0" / "table.parquet").column("town").to_pylist() == ["ash", "birch", "dale", "elm"]


@given(st.lists(st.tuples(codes, codes, st.integers(0, 9)), min_size=1, max_size=12, unique_by=lambda row: row[:2]), st.randoms())
def test_counts_and_keys_move_with_their_cells(rows, random) -> None:
    shuffled = random.sample(rows, len(rows))
    frame = pa.table(
        {"a": [r[0] for r in shuffled], "b": [r[1] for r in shuffled], "n": [r[2] for r in shuffled], "k": [7 * r[2] for r in shuffled]}
    )
    table = hf.Table.from_counts(frame, ["a", "b"], "n", cell_key="k", allow_similar_codes=True)
    in_order = sorted(rows, key=lambda row: (row[0].encode(), row[1].encode()))
    assert rows_of(table.frame, ["a", "b", "n"]) == in_order
    assert table.cell_keys is not None
    assert table.cell_keys.tolist() == [7 * row[2] for row in in_order]
    assert table.universe.rows_moved == (shuffled != in_order)
    plan = Declarations.from_counts(frame, ["a", "b"], "n", cell_key="k", allow_similar_codes=True)
    assert (plan.universe, plan.universe.support) == (table.universe, table.universe.support)
    universe = hf.Universe.listed({"a": frame["a"].to_pylist(), "b": frame["b"].to_pylist()}, allow_similar_codes=True)
    declared = hf.Table.from_counts(frame.take(list(range(len(rows)))[::-1]), ["a", "b"], "n", universe=universe)
    assert rows_of(declared.frame, ["a", "b", "n"]) == shuffled


def test_a_declared_universe_of_counts() -> None:
    table = hf.Table.from_counts(BY_SIZE, CELLS, "n", universe=LISTED)
    assert table.counts.tolist() == [5, 901, 77, 1, 0]
    plan = Declarations.from_counts("no such file.csv", CELLS, "n", universe=LISTED)
    assert plan.universe is LISTED
    few = hf.Universe.listed({"town": ["ash", "dale", "elm", "birch"], "sex": ["F", "F", "F", "M"]})
    less = hf.Universe.listed({"town": ["ash"], "sex": ["F"]})
    wrong: list[tuple[Any, Callable[[], Any]]] = [
        (OutsideUniverse, lambda: hf.Table.from_counts(BY_SIZE, CELLS, "n", universe=few)),
        (OutsideUniverse, lambda: hf.Table.from_counts(BY_SIZE, CELLS, "n", universe=less)),
        (DuplicateCells, lambda: hf.Table.from_counts(BY_SIZE.take([0, 1, 0]), CELLS, "n", universe=LISTED)),
        (DuplicateCells, lambda: hf.Table.from_counts(BY_SIZE.take([0, 1, 0]), CELLS, "n")),
        (InvalidParameter, lambda: hf.Table.from_counts(BY_SIZE, CELLS, "n", universe=LISTED, public=True)),
        (InvalidParameter, lambda: hf.Table.from_counts(BY_SIZE, CELLS[::-1], "n", universe=LISTED)),
    ]
    messages = [refused(kind, work, "901", "77") for kind, work in wrong]
    assert "rows 1 and 3" in messages[2]
    assert "rows 1 and 3" in messages[3]


def test_a_matrix_does_not_follow_rows_that_were_moved() -> None:
    """Its columns are counted in the order of the source; the table has another."""
    first = hf.linear([[1, 0, 0, 0]])
    with pytest.raises(InvalidConstraint, match="in the order of their codes"):
        hf.plan(hf.Table.from_counts(BY_SIZE, CELLS, "n"), [first], LAPLACE)
    for table in (hf.Table.from_counts(BY_SIZE, CELLS, "n", public=True), hf.Table.from_counts(BY_SIZE.sort_by("town"), CELLS, "n")):
        hf.plan(table, [first], LAPLACE)


def test_nothing_kept_and_a_list_that_is_not_public() -> None:
    guarantee = hf.plan(hf.Table.from_counts(BY_SIZE, CELLS, "n"), [], LAPLACE).guarantee
    assert guarantee.relation == Relation(same_totals=False, same_cells=True)
    assert "nothing is published without noise, except the list of cells" in hf.describe(guarantee)


RUN = """
[table]
source = "towns.csv"
cells = ["town", "sex"]
count = "n"
{0}
[keep]
total = true
[release]
id = "x"
mechanism = "generalized-laplace"
epsilon = "1/2"
per = "person"
"""


@pytest.mark.parametrize(
    ("line", "support", "towns"),
    [
        ("", "as listed", ["ash", "birch", "dale", "elm"]),
        ("public = false", "as listed", ["ash", "birch", "dale", "elm"]),
        ("public = true", "declared", ["dale", "ash", "elm", "birch"]),
        ('universe = "cells.csv"', "declared", ["elm", "dale", "ash", "birch", "oak"]),
    ],
)
def test_in_run_files(line: str, support: str, towns: list[str], tmp_path: Path) -> None:
    (tmp_path / "towns.csv").write_text("town,sex,n\ndale,M,901\nash,F,77\nelm,M,5\nbirch,F,1\n")
    (tmp_path / "cells.csv").write_text("sex,town\nM,elm\nM,dale\nF,ash\nF,birch\nF,oak\n")
    (tmp_path / "run.toml").write_text(RUN.format(line))
    run = load_run(tmp_path / "run.toml")
    for made in (run.read_table(), run.read_declarations()):
        assert made.universe.support == support
        assert made.universe.frame()["town"].to_pylist() == towns


@pytest.mark.parametrize("line", ['universe = "observed"', 'universe = "cells.csv"\npublic = true', 'public = "yes"'])
def test_refused_in_run_files(line: str, tmp_path: Path) -> None:
    for name in ("towns.csv", "cells.csv"):
        (tmp_path / name).write_text("town,sex,n\ndale,M,901\n")
    (tmp_path / "run.toml").write_text(RUN.format(line))
    with pytest.raises(InvalidRun, match=r"table\.(universe|public)"):
        load_run(tmp_path / "run.toml")


def test_verify_takes_the_codes_of_a_list_in_the_order_of_their_texts(tmp_path: Path) -> None:
    """Codes of the second column that first occur out of their order: the digest on the card is that of the sorted ones."""
    data = pa.table({"state": ["17", "17", "18"], "county": ["031", "043", "001"], "people": [4, 5, 6]})
    table = hf.Table.from_counts(data, cells=["state", "county"], count="people")
    hf.release(table, [hf.total()], hf.GeneralizedLaplace(epsilon="1/4", per="distance"), release_id="r1", ledger=None).save(
        tmp_path / "out"
    )
    assert hf.verify(tmp_path / "out").totals == 1
