"""What several releases expose together: against dense exact algebra and against all tables that agree with the published totals."""

from __future__ import annotations

import json
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InvalidParameter
from holdfast.exposure import refinement
from holdfast.exposure.facts import JointFacts, LearnedTotals, NewCells, Obstacle, WhyNot
from holdfast.exposure.joint import ExposedCells, PublishedTotals, joint_exposure
from holdfast.invariants import areas, identity, linear, margin, subset, total
from holdfast.invariants.constraints import Constraint
from holdfast.lattices import Lattice, algebra, components
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe
from holdfast.wording import describe
from tests.examples import examples
from tests.lattices.joint_reference import assert_agrees, brute, cell_of, coded, new_cells, published, release, table
from tests.snapshot_files import Snapshot

# Releases of the same table.


def test_age_by_zip_code_kept_one_margin_at_a_time(snapshot: Snapshot) -> None:
    """001 section 2.3: neither release fixes a cell; together their rows are those of both margins, one of which is implied."""
    universe = Universe.product({"age": ["0-17", "18-64", "65+"], "zip": ["60601", "60602", "60603", "60604"]})
    first, second = release("ages", universe, margin("age")), release("zips", universe, margin("zip"))
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert new_cells(found) == [[], []]
    assert found.kept is not None
    assert Lattice.from_kept(found.kept).rank == algebra.rank(found.kept.matrix().toarray()) == 3 + 4 - 1
    assert set(found.facts.learned) == {LearnedTotals("ages", ("zip",), "zips"), LearnedTotals("zips", ("age",), "ages")}
    assert found.facts.values_missing == ("ages", "zips")
    assert found.pinned is None
    snapshot(describe(found), "without values")
    partly = joint_exposure([published("ages", universe, np.full(12, 3), margin("age")), second])
    assert partly.pinned is not None
    assert partly.facts.values_missing == ("zips",)
    snapshot(describe(partly), "values of one")


def test_age_by_zip_code_with_the_values_tells_about_the_one_person(snapshot: Snapshot) -> None:
    universe = Universe.product({"age": ["0-17", "18-64", "90+"], "zip": ["60601", "60602"]})
    counts = np.array([0, 5, 0, 7, 1, 0], dtype=np.int64)  # the only person of 60601 is the only one of 90 or more
    ages, zips = published("ages", universe, counts, margin("age")), published("zips", universe, counts, margin("zip"))
    assert (joint_exposure([ages]).pinned or [])[0].new.tolist() == []
    found = joint_exposure([ages, zips])
    assert found.pinned is not None
    tables = brute(universe, [ages, zips], 12)
    truly = np.flatnonzero(tables.min(axis=0) == tables.max(axis=0))
    for cells in found.pinned:
        assert set(cells.new.tolist()) <= set(truly.tolist())
    sparse = np.array([0, 5, 0, 7, 0, 1], dtype=np.int64)  # nobody lives in 60601
    found = joint_exposure([published("ages", universe, sparse, margin("age")), published("zips", universe, sparse, margin("zip"))])
    assert found.pinned is not None
    assert list(found.pinned[0].names()) == [universe.cell_name(i) for i in range(6)], "all of them, by both kinds of totals"
    assert found.pinned[1].old.tolist() == [0, 2, 4]
    assert found.pinned[1].new.tolist() == [1, 3, 5]
    assert found.facts.pinned == (NewCells(None, 3, ("age=0-17, zip=60602", "age=18-64, zip=60602", "age=90+, zip=60602")),)
    snapshot(describe(found))


def test_nested_sets_fix_what_lies_between(snapshot: Snapshot) -> None:
    universe = coded(x="abcd")
    first, second = release("wide", universe, subset("x", ["a", "b", "c"])), release("narrow", universe, subset("x", ["a", "b"]))
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert new_cells(found) == [["x=c"], ["x=c"]]
    assert found.facts.fixed == (NewCells(None, 1, ("x=c",)),)
    snapshot(describe(found))


def test_a_cell_that_one_release_keeps_is_new_for_the_other_only() -> None:
    universe = coded(x="abc")
    found = joint_exposure([release("one", universe, total()), release("two", universe, subset("x", ["a"]))])
    assert found.fixed is not None
    assert [cells.new.tolist() for cells in found.fixed] == [[0], []]
    assert [cells.old.tolist() for cells in found.fixed] == [[], [0]]
    assert found.facts.fixed == ()


def test_three_releases_fix_what_no_two_do() -> None:
    universe = coded(x="abcd")
    three = [release(str(i), universe, subset("x", list(codes))) for i, codes in enumerate(["ab", "bc", "ac"])]
    found = joint_exposure(three)
    assert_agrees(found, three)
    assert new_cells(found) == [["x=a", "x=b", "x=c"]] * 3
    for left in range(3):
        assert new_cells(joint_exposure([given for i, given in enumerate(three) if i != left])) == [[], []]


def test_columns_in_another_order_and_cells_in_another_order_are_the_same_table() -> None:
    first = release("first", table(r=2, c=3), margin("r"), subset("c", ["0", "1"], by=["r"]))
    cells = [(c, r) for c in "201" for r in "10"]
    turned = Universe.listed({"c": [c for c, _ in cells], "r": [r for _, r in cells]})
    second = release("second", turned, subset("c", ["0"], by=["r"]))
    found = joint_exposure([first, second])
    assert found.refinement is first.universe
    assert_agrees(found, [first, second])
    assert found.fixed is not None
    assert sorted(found.fixed[1].names()) == ["c=1, r=0", "c=1, r=1", "c=2, r=0", "c=2, r=1"]


def test_a_table_with_fewer_cells_is_laid_over_the_larger_one() -> None:
    large, small = coded(x="abc", y="01"), Universe.listed({"y": ["0", "1", "0", "1", "1"], "x": ["a", "a", "b", "b", "c"]})
    first, second = release("large", large, total()), release("small", small, total())
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert new_cells(found) == [["x=c, y=0"], []]


def test_identities_restrict_and_expose_nothing_by_themselves() -> None:
    universe = coded(x="abcd")
    zero = identity(subset("x", ["a"]))
    pair = [release("one", universe, zero, subset("x", ["a", "b"])), release("two", universe, subset("x", ["c", "d"]))]
    found = joint_exposure(pair)
    assert_agrees(found, pair)
    assert found.fixed is not None
    assert found.fixed[0].old.tolist() == [1]
    assert found.fixed[1].new.tolist() == [1]
    split = [release("one", universe, zero), release("two", universe, subset("x", ["a", "b"]))]
    found = joint_exposure(split)
    assert_agrees(found, split)
    assert new_cells(found) == [["x=b"], ["x=b"]]


@st.composite
def same_table(draw: st.DrawFn) -> list[PublishedTotals]:
    """Two or three releases over parts of one small table: sets, margins, rows of integers, identities."""
    full = coded(x="abc"[: draw(st.integers(2, 3))], y="012"[: draw(st.integers(1, 3))])
    out = []
    for number in range(draw(st.integers(2, 3))):
        universe = full
        if draw(st.booleans()):
            order = draw(st.permutations(range(len(full))))
            chosen = sorted(order[: draw(st.integers(1, len(full)))]) if draw(st.booleans()) else order
            rows = [full.cell(i) for i in chosen]
            universe = Universe.listed({c: [row[c] for row in rows] for c in draw(st.permutations(["x", "y"]))})
        out.append(PublishedTotals(f"r{number}", universe, tuple(draw(st.lists(constraints(universe), max_size=3)))))
    return out


def constraints(universe: Universe) -> st.SearchStrategy[Constraint]:
    columns = list(universe.columns)
    column = st.sampled_from(columns)
    codes = column.flatmap(lambda c: st.tuples(st.just(c), st.lists(st.sampled_from(universe.codes[c]), min_size=1, unique=True)))
    row = st.lists(st.integers(-1, 2), min_size=len(universe), max_size=len(universe)).filter(any)
    sets = st.one_of(
        st.just(total()),
        column.map(margin),
        st.just(margin(*columns)),
        codes.map(lambda pair: subset(pair[0], pair[1])),
        st.tuples(codes, column).map(lambda both: subset(both[0][0], both[0][1], by=[both[1]])),
        st.lists(row, min_size=1, max_size=2).map(linear),
        column.flatmap(
            lambda c: st.lists(st.lists(st.sampled_from(universe.codes[c]), min_size=1, unique=True), min_size=1, max_size=3).map(
                lambda listed: areas(c, {str(i): given for i, given in enumerate(listed)})
            )
        ),
    )
    return st.one_of(sets, sets, sets.map(lambda constraint: identity(constraint, 0)))


@settings(max_examples=examples(100), deadline=None)
@given(same_table())
def test_any_releases_of_parts_of_one_table(releases: list[PublishedTotals]) -> None:
    found = joint_exposure(releases, same_coding=True)
    assert_agrees(found, releases)


# Tables with different columns.


def test_margins_of_one_table_are_known_for_the_other(snapshot: Snapshot) -> None:
    first = release("ages-2030", coded(sex="FM", age="012"), margin("age"))
    second = release("zips-2030", coded(sex="FM", zip="567"), margin("sex"))
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert found.refinement is not None
    assert len(found.refinement) == 18
    snapshot(describe(found))
    assert found.facts.learned == (LearnedTotals("ages-2030", ("sex",), "zips-2030"),), "table two learns the total only, which it has"


def test_a_cell_is_fixed_through_another_table(snapshot: Snapshot) -> None:
    """Table one keeps all women of age 0 or 1; table two tells all women: so it tells those of age 2."""
    first = release("one", coded(sex="FM", age="012"), subset("sex = 'F' and age < 2"))
    second = release("two", coded(sex="FM", zip="56"), margin("sex"))
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert new_cells(found) == [["sex=F, age=2"], []]
    assert found.facts.fixed == (NewCells("one", 1, ("sex=F, age=2",)),)
    snapshot(describe(found))


def test_a_chain_of_three_tables() -> None:
    """Three tables, no two with all columns: x by y needs a total of x (from the second) and of y (from the third)."""
    chain = [
        release("xy", coded(x="ab", y="cd"), subset("x = 'a' and y = 'c'")),
        release("xz", coded(x="ab", z="ef"), margin("x")),
        release("yz", coded(y="cd", z="ef"), margin("y")),
    ]
    found = joint_exposure(chain)
    assert_agrees(found, chain)
    assert new_cells(found)[0] == ["x=a, y=d", "x=b, y=c", "x=b, y=d"]
    assert new_cells(joint_exposure(chain[:2]))[0] == ["x=a, y=d"]


def test_values_of_one_table_pin_cells_of_another() -> None:
    rng = np.random.default_rng(3)
    cube = rng.integers(0, 3, size=(2, 3, 3))
    cube[0] = 0
    first = published("one", coded(sex="FM", age="012"), cube.sum(axis=2).ravel(), margin("age"))
    second = published("two", coded(sex="FM", zip="567"), cube.sum(axis=1).ravel(), margin("sex"))
    found = joint_exposure([first, second])
    assert found.pinned is not None
    assert found.pinned[0].new.tolist() == list(range(6)), "no woman at all: the ages are those of the men"


SIZES = {"w": 2, "x": 2, "y": 3, "z": 1}


@st.composite
def different_tables(draw: st.DrawFn) -> list[PublishedTotals]:
    """Two or three tables over some of four columns, full products or with some combinations left out."""
    out = []
    for number in range(draw(st.integers(2, 3))):
        columns = draw(st.lists(st.sampled_from(sorted(SIZES)), min_size=1, max_size=3, unique=True))
        universe = coded(**{column: "012"[: SIZES[column]] for column in columns})
        if draw(st.integers(0, 3)) == 0:
            rows = [universe.cell(i) for i in range(len(universe)) if draw(st.integers(0, 4))] or [universe.cell(0)]
            universe = Universe.listed({c: [row[c] for row in rows] for c in columns})
        out.append(PublishedTotals(f"r{number}", universe, tuple(draw(st.lists(constraints(universe), max_size=2)))))
    return out


@settings(max_examples=examples(100), deadline=None)
@given(different_tables())
def test_any_releases_of_different_tables(releases: list[PublishedTotals]) -> None:
    found = joint_exposure(releases)
    if found.is_computed:
        assert_agrees(found, releases)
    else:
        assert found.fixed is None
        assert not found.complete
        assert describe(found).startswith("Not computed: ")
        assert any(len(each.universe) < prod(SIZES[c] for c in each.universe.columns) for each in releases), describe(found)
    assert JointFacts.from_fields(json.loads(json.dumps(found.facts.to_fields()))) == found.facts


@settings(max_examples=examples(40), deadline=None)
@given(different_tables(), st.data())
def test_pinned_cells_are_pinned(releases: list[PublishedTotals], data: st.DataObject) -> None:
    """Every refined table with the published totals has the same value in a cell that is called pinned or fixed."""
    first = joint_exposure(releases)
    if not first.is_computed or first.refinement is None or len(first.refinement) > 8 or first.kept is None:
        return
    refined = first.refinement
    counts = np.array(data.draw(st.lists(st.integers(0, 1), min_size=len(refined), max_size=len(refined))), dtype=np.int64)
    places = [[cell_of(each.universe, refined.cell(i)) for i in range(len(refined))] for each in releases]
    known = []
    for each, place in zip(releases, places, strict=True):
        own, inside = np.zeros(len(each.universe), dtype=np.int64), np.array(place) >= 0
        np.add.at(own, np.array(place)[inside], counts[inside])
        known.append(published(each.name, each.universe, own, *each.constraints))
    found = joint_exposure(known)
    matrix = first.kept.matrix().toarray()
    tables = np.array([y for y in product(range(3), repeat=len(refined)) if not (matrix @ (np.array(y) - counts)).any()])
    for cells, place in zip(found.pinned or (), places, strict=False):
        own_tables = np.zeros((len(tables), len(cells.universe)), dtype=np.int64)
        inside = np.array(place) >= 0
        np.add.at(own_tables.T, np.array(place)[inside], tables.T[inside])
        for cell in [*cells.old, *cells.new]:
            assert len(set(own_tables[:, cell].tolist())) == 1


# Linked codes.


COUNTIES = Hierarchy.from_prefixes(["17001", "17003", "18001"], [2, 5], levels=["state", "county"])


def test_a_hierarchy_links_columns_of_different_names() -> None:
    first = release("counties", Universe.product({"county": COUNTIES}), subset("county", ["17001"]))
    second = release("states", Universe.product({"state": ["17", "18"], "sex": ["F", "M"]}), margin("state"))
    found = joint_exposure([first, second])
    assert_agrees(found, [first, second])
    assert new_cells(found) == [["county=17003", "county=18001"], []]
    assert found.facts.learned == (LearnedTotals("counties", ("state",), "states"),)
    upward = [release("counties", first.universe, margin("county")), release("states", second.universe, total())]
    found = joint_exposure(upward)
    assert_agrees(found, upward)
    assert found.facts.learned == (LearnedTotals("states", ("state",), "counties"),)
    counts = [np.array([4, 0, 0]), np.array([3, 1, 0, 0])]
    pair = [published("counties", first.universe, counts[0], margin("county")), published("states", second.universe, counts[1], total())]
    found = joint_exposure(pair)
    assert found.pinned is not None
    assert list(found.pinned[1].names()) == ["state=18, sex=F", "state=18, sex=M"]


def test_a_hierarchy_links_codes_of_the_same_column() -> None:
    first = release("fine", Universe.product({"area": COUNTIES, "sex": ["F", "M"]}), margin("sex"))
    second = release("coarse", Universe.product({"sex": ["F", "M"], "area": ["18", "17"]}), margin("area", "sex"))
    found = joint_exposure([first, second])
    assert found.fixed is not None
    assert new_cells(found) == [["area=18001, sex=F", "area=18001, sex=M"], []]
    assert found.fixed[1].old.tolist() == [0, 1, 2, 3]
    assert found.kept is not None
    assert Lattice.from_kept(found.kept).rank == 4
    alone = release("fine", Universe.product({"area": COUNTIES.leaves(), "sex": ["F", "M"]}), margin("sex"))
    refused = joint_exposure([alone, second])
    assert not refused.is_computed
    assert refused.facts.why_not == WhyNot(Obstacle.OTHER_CODES, ("fine", "coarse"), ("area",))


def test_nested_codes_that_nothing_links_are_not_computed(snapshot: Snapshot) -> None:
    first = release("counties", Universe.product({"county": ["17001", "18001"]}), margin("county"))
    second = release("tracts", Universe.product({"tract": ["17001000100", "17001000200", "18001000100"]}), total())
    found = joint_exposure([first, second])
    assert (found.is_computed, found.complete, found.fixed, found.pinned, found.facts.learned) == (False, False, None, None, ())
    snapshot(describe(found))
    assert found.facts.why_not == WhyNot(Obstacle.LOOKS_NESTED, ("counties", "tracts"), ("county", "tract"))
    assert "none" not in describe(found)


def test_other_groupings_of_one_column_are_not_computed() -> None:
    fine = Universe.product({"age": ["0-4", "5-9", "10+"], "sex": ["F", "M"]})
    coarse = Universe.product({"age": ["0-9", "10+"], "sex": ["F", "M"]})
    for universes in ((fine, coarse), (fine, Universe.product({"age": ["0-9", "10+"], "zip": ["1"]}))):
        found = joint_exposure([release(str(i), universe, total()) for i, universe in enumerate(universes)])
        assert not found.is_computed
        assert found.facts.why_not == WhyNot(Obstacle.OTHER_CODES, ("0", "1"), ("age",))


def test_too_large_a_refinement_is_not_computed(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    monkeypatch.setattr(refinement, "MAX_REFINED", 17)
    found = joint_exposure([release("a", coded(s="FM", a="012"), margin("a")), release("b", coded(s="FM", z="567"), margin("s"))])
    assert not found.is_computed
    assert found.facts.why_not == WhyNot(Obstacle.TOO_LARGE, cells=18, limit=17)
    snapshot(describe(found))


def test_observed_cells_of_different_lists_are_not_computed(snapshot: Snapshot) -> None:
    seen = Universe.listed({"x": ["a", "b"]})
    observed = Universe(seen.columns, "observed", seen._codes, seen._indices, {})
    found = joint_exposure([release("a", observed, total()), release("b", coded(x="abc"), total())])
    assert found.facts.why_not == WhyNot(Obstacle.OBSERVED_LISTS, ("a", "b"))
    snapshot(describe(found))
    assert joint_exposure([release("a", observed, total()), release("b", seen, total())]).is_computed


def test_a_cut_search_never_says_that_nothing_is_fixed(monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot) -> None:
    universe = coded(x="abcd", y="01")
    corner = "(x = 'a' or x = 'b') and y = 0"
    pair = [
        release("one", universe, margin("x"), subset("x", ["a"])),
        release("two", universe, subset(corner), margin("y")),
    ]
    whole = joint_exposure(pair)
    assert_agrees(whole, pair)
    monkeypatch.setattr(components, "LARGEST_SEARCHED", 1)
    found = joint_exposure(pair)
    assert found.is_computed
    assert not found.complete
    snapshot(describe(found))
    assert "no cell" not in describe(found)
    for full, cut in zip(whole.fixed or (), found.fixed or (), strict=True):
        assert set(cut.new) <= set(full.new) <= set(cut.new) | set(cut.undecided)


def test_large_tables_of_margins_are_quick() -> None:
    """A hundred thousand refined cells in a cycle of margins: closed form, no echelon form."""
    chain = [
        release("xy", table(x=40, y=50), margin("x")),
        release("xz", table(x=40, z=50), margin("x", "z")),
        release("yz", table(y=50, z=50), margin("y")),
    ]
    found = joint_exposure(chain)
    assert found.complete
    assert [len(cells.new) for cells in found.fixed or ()] == [0, 0, 0]
    assert LearnedTotals("xy", ("y",), "yz") in (found.facts.learned)


@settings(max_examples=examples(40), deadline=None)
@given(same_table() | different_tables())
def test_a_cut_search_misses_only_what_it_calls_undecided(releases: list[PublishedTotals]) -> None:
    whole = joint_exposure(releases, same_coding=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(components, "LARGEST_SEARCHED", 1)
        found = joint_exposure(releases, same_coding=True)
    for full, cut in zip(whole.fixed or (), found.fixed or (), strict=True):
        assert set(cut.old) <= set(full.old)
        assert set(cut.new) <= set(full.new) | set(full.old)
        assert set(full.new) <= set(cut.new) | set(cut.undecided)
        assert set(full.old) <= set(cut.old) | set(cut.new) | set(cut.undecided)
    assert found.complete == (found.is_computed and not any(len(cells.undecided) for cells in found.fixed or ()))


# Revisions, arguments.


def test_totals_of_a_revision_contradict(snapshot: Snapshot) -> None:
    universe = coded(x="abc", y="01")
    old = published("may", universe, np.arange(6), margin("x"), total(), identity(margin("y"), 0))
    new = published("june", universe, np.array([0, 1, 2, 3, 5, 6]), margin("x"), total(), identity(margin("y"), 0))
    found = joint_exposure([old, new])
    assert found.is_computed
    assert found.pinned is not None
    assert found.facts.contradicting == ("may",)
    snapshot(describe(found))


def test_arguments_are_checked() -> None:
    universe = coded(x="ab")
    with pytest.raises(InvalidParameter, match="name of its own"):
        joint_exposure([])
    with pytest.raises(InvalidParameter, match="name of its own"):
        joint_exposure([release("a", universe), release("a", universe)])
    with pytest.raises(InvalidParameter, match="1 kept totals, but 2 values"):
        joint_exposure([release("a", universe, total(), values=[1, 2])])
    with pytest.raises(InvalidParameter, match="integers"):
        joint_exposure([PublishedTotals("a", universe, (total(),), (1.5,))])  # type: ignore[arg-type]


def test_one_release_alone_has_nothing_new() -> None:
    found = joint_exposure([release("a", coded(x="ab"), margin("x"))])
    assert isinstance((found.fixed or ())[0], ExposedCells)
    assert new_cells(found) == [[]]
    assert (found.fixed or ())[0].old.tolist() == [0, 1]
