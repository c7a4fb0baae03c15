"""Cells that published totals pin, against a search of all tables with those totals."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.exposure import Exposure
from holdfast.exposure.programmes import Work
from holdfast.invariants.constraints import Constraint
from holdfast.publication.plan import Plan, exposed_info, exposure_after, prepare
from holdfast.randomness import NoiseKey
from tests.examples import examples
from tests.snapshot_files import Snapshot

UNIVERSE = hf.Universe.product({"a": ["x", "y"], "b": ["p", "q", "r"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="distance")
CONSTRAINTS = [
    hf.total(),
    hf.margin("a"),
    hf.margin("b"),
    hf.subset("b", ["q", "r"]),
    hf.subset("b", ["q"], by=["a"]),
    hf.subset("a = 'x' and b = 'p'"),
    hf.areas("b", {"left": ["p", "q"], "right": ["q", "r"]}),
    hf.linear([[1, -1, 0, 0, 0, 1]]),
]


def exposure_of(plan: Plan, counts: np.ndarray, *, with_table: bool = True) -> Exposure:
    """As a release finds it, with a table of these totals at hand; or as a plan does, from the totals alone."""
    totals = [rows.totals(counts) for rows in plan.facts.kept.rows]
    if with_table:
        return exposure_after(plan.drawing.channel, totals, counts)
    return prepare(plan.facts.with_totals(np.concatenate(totals)), plan.mechanism).exposure


def told(plan: Plan, counts: list[int], *, with_table: bool = True) -> tuple[set[int], bool]:
    """(cells called exposed, whether they are said to be all) when the totals of these counts are published."""
    found = exposure_of(plan, np.array(counts, dtype=np.int64), with_table=with_table)
    return {*found.fixed.tolist(), *found.cells_exposed_by_totals.tolist()}, found.complete


def pinned(plan: Plan, counts: list[int], least: int = 0) -> set[int]:
    """By trying: cells that are equal in all tables with the totals of these counts; a count above 4 or 5 would be no smaller a choice."""
    matrix, wanted = plan.facts.lattice.matrix.toarray(), np.array(counts)
    tables = np.array(list(product(range(least, 5 + least), repeat=len(counts))))
    same = tables[(tables @ matrix.T == matrix @ wanted).all(axis=1)]
    return set(np.flatnonzero((same == same[0]).all(axis=0)).tolist())


@given(
    st.lists(st.sampled_from(CONSTRAINTS), min_size=1, max_size=3, unique_by=str),
    st.lists(st.sampled_from([0, 0, 1, 2]), min_size=6, max_size=6),
)
@settings(max_examples=examples(150), deadline=None)
def test_what_is_said_to_be_all_is_all(keep: list[Constraint], counts: list[int]) -> None:
    try:
        plan = hf.plan(UNIVERSE, keep, LAPLACE)
    except hf.errors.NothingLeft:
        return
    truth = pinned(plan, counts)
    for with_table in (True, False):
        try:
            found, complete = told(plan, counts, with_table=with_table)
        except hf.errors.NothingLeft:  # a plan with totals that, being 0, leave nothing to draw
            assert not with_table
            assert len(truth) == len(counts)
            continue
        assert found <= truth
        assert not complete or found == truth


def test_a_total_that_equals_one_of_its_parts_empties_the_rest() -> None:
    plan = hf.plan(UNIVERSE, [hf.total(), hf.subset("b", ["q", "r"])], LAPLACE)
    assert told(plan, [0, 3, 4, 0, 5, 6]) == ({0, 3}, True)
    assert told(plan, [0, 3, 4, 1, 5, 6]) == (set(), True)


def test_a_release_says_so_on_its_card() -> None:
    people = pa.table({"region": ["n", "n", "s", "s"], "age": ["0-17", "18+"] * 2, "people": [0, 85, 0, 47]})
    table = hf.Table.from_counts(people, cells=["region", "age"], count="people")
    made = hf.release(table, [hf.total(), hf.subset("age", ["18+"])], LAPLACE, NoiseKey.for_tests("pinned"))
    assert made.card.exposed.names == ("region=n, age=0-17", "region=s, age=0-17")


@pytest.mark.parametrize("last", [1, 2])
def test_cells_that_occur_hold_at_least_one(last: int) -> None:
    records = pa.table({"region": ["n", "n", "s", "s"] + ["s"] * last, "town": ["A", "B", "C", "D"] + ["D"] * last})
    table = hf.Table.from_records(records, ["region", "town"], universe="observed")
    made = hf.release(table, [hf.margin("region")], LAPLACE, NoiseKey.for_tests("pinned")).card.exposed
    assert made.names == ("region=n, town=A", "region=n, town=B")
    assert made.undecided == 0
    assert "every cell on the list occurs" in made.text


def test_rows_and_columns_of_cells_that_occur() -> None:
    counts = [1, 1, 3, 1, 2, 2]
    pairs = [(a, b) for (a, b), n in zip(product("xy", "pqr"), counts, strict=True) for _ in range(n)]
    records = pa.table({"a": [a for a, _ in pairs], "b": [b for _, b in pairs]})
    table = hf.Table.from_records(records, ["a", "b"], universe="observed")
    plan = hf.plan(table, [hf.margin("a"), hf.margin("b")], LAPLACE)
    assert told(plan, counts) == (pinned(plan, counts, least=1), True)
    assert told(plan, counts, with_table=False) == (pinned(plan, counts, least=1), True)


def test_what_is_not_decided_is_listed_with_its_bounds(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three margins of pairs, and no work to spend on them."""
    monkeypatch.setattr(Work, "__init__", lambda self: self.__dict__.update(entries=0, tables=0, each=0))
    plan = hf.plan(
        hf.Universe.product({c: ["0", "1"] for c in "abc"}),
        [hf.margin("a", "b"), hf.margin("b", "c"), hf.margin("a", "c")],
        hf.GeneralizedGaussian(rho="1/10", per="distance"),
    )
    found = exposure_of(plan, np.array([1, 2, 3, 2, 1, 1, 2, 5]), with_table=False)
    said = exposed_info(found, plan.guarantee)
    assert (said.cells, said.undecided) == (0, 8)
    assert sum(one.cells for one in said.open) <= 8
    snapshot(said.text)
