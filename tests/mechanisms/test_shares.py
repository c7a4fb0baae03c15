"""Shares of the budget for levels and margins: what they cost, what is drawn together, what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.channels import Facts, choose_samplers
from holdfast.errors import HoldfastError, InvalidConstraint, InvalidParameter
from holdfast.lattices.shapes import Units
from holdfast.mechanisms.levels import read_shares
from holdfast.tables import Hierarchy, Universe

Ints = NDArray[np.int64]


def universe_of(counties: Mapping[str, int], sexes: str = "FM", ages: int = 1) -> Universe:
    """Counties in states, by sex, and by age where there is more than one."""
    rows = [(s, f"{s}{c}", x, str(a)) for s, n in counties.items() for c in range(n) for x in sexes for a in range(ages)]
    state, county, sex, age = (list(column) for column in zip(*rows, strict=True))
    listed = {"state": state, "county": county, "sex": sex, "age": age}
    return Universe.listed(
        {name: listed[name] for name in ("state", "county", *(["sex"] if len(sexes) > 1 else []), *(["age"] if ages > 1 else []))}
    )


SMALL = universe_of({"A": 3, "B": 2})
SHARES: dict[Any, Any] = {"state": {"sex": "1/5"}, "county": {"total": "3/10", "detailed": "1/2"}}


def channel_of(universe: Universe, keep: list[Any], shares: Any, rho: str = "1/10") -> Any:
    return hf.GeneralizedGaussian(rho=rho, levels=shares, per="distance").channel(Facts.of(universe, keep))


def measured_rows(universe: Universe, shares: Any) -> list[tuple[Fraction, Ints]]:
    """(share, matrix) of every measured margin, by plain grouping of cells: nothing of the mechanism is used."""
    out = []
    for share in read_shares(shares):
        level = share.level if isinstance(share.level, tuple) else (share.level,) if share.level != "total" else ()
        others = [c for c in universe.columns if c not in ("state", "county")]
        margin = others if share.margin == "detailed" else [] if share.margin == "total" else list(share.margin)
        group, codes = universe.group([*level, *margin])
        out.append((share.share, (group[None, :] == np.arange(len(codes))[:, None]).astype(np.int64)))
    return out


def distance(universe: Universe, shares: Any, v: Ints) -> Fraction:
    return sum((share * int(((rows @ v) ** 2).sum()) for share, rows in measured_rows(universe, shares)), Fraction(0))


CASES: list[tuple[str, Universe, list[Any], Any]] = [
    ("state totals kept", SMALL, [hf.margin("state")], SHARES),
    ("nothing kept", SMALL, [], SHARES),
    ("the sex margin and the counties kept", SMALL, [hf.margin("county"), hf.margin("sex")], {"state": {"sex": "1/3"}, "county": "2/3"}),
    ("tracts below states", universe_of({"A": 3, "B": 2}, "F"), [hf.margin("state")], {"total": 0, "state": 0, "county": 1}),
    (
        "one level, margins only",
        universe_of({"A": 1}, "FM", 3),
        [hf.total()],
        {"total": {"sex": "1/4", "age": "1/4", "detailed": "1/2"}, "county": 0},
    ),
    (
        "uneven shares",
        SMALL,
        [hf.total()],
        {"total": {"sex": "1/10"}, "state": {"total": "1/10"}, "county": {"total": "7/10", "detailed": "1/10"}},
    ),
]


@pytest.mark.parametrize(
    ("name", "universe", "keep", "shares"), CASES[:4] + CASES[5:], ids=lambda value: value if isinstance(value, str) else ""
)
def test_the_form_of_the_law_is_that_of_independent_measurements(name: str, universe: Universe, keep: list[Any], shares: Any) -> None:
    """Continuous covariance of the best linear unbiased estimate given the kept totals: (B^T Q B)^-1 with Q from plain groupings."""
    channel = channel_of(universe, keep, shares)
    rho = 0.1
    form = sum(2 * rho * float(share) * rows.T @ rows for share, rows in measured_rows(universe, shares))
    basis = channel.facts.lattice.basis.astype(np.float64)
    expected = basis @ np.linalg.inv(basis.T @ form @ basis) @ basis.T
    found = hf.plan(universe, keep, hf.GeneralizedGaussian(rho="1/10", levels=shares, per="distance")).covariance
    assert found is not None
    np.testing.assert_allclose(found.dense(), expected, atol=1e-12)
    np.testing.assert_allclose(found.diagonal(), np.diag(expected), atol=1e-12)
    query = np.arange(len(universe)) - 3.0
    assert found.of(query) == pytest.approx(float(query @ expected @ query), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "universe", "keep", "shares"), [CASES[0], CASES[1], CASES[5]], ids=lambda v: v if isinstance(v, str) else ""
)
def test_the_table_of_errors_has_every_level_and_margin(name: str, universe: Universe, keep: list[Any], shares: Any) -> None:
    plan = hf.plan(universe, keep, hf.GeneralizedGaussian(rho="1/10", levels=shares, per="distance"))
    assert plan.covariance is not None
    dense = plan.covariance.dense()
    listed = plan.to_fields()["expected_error"]["levels"]
    assert {(row["level"], row["margin"]) for row in listed} == set(itertools.product(("total", "state", "county"), ("total", "sex")))
    for row in listed:
        columns = ([row["level"]] if row["level"] != "total" else []) + ([row["margin"]] if row["margin"] != "total" else [])
        group, codes = universe.group(columns)
        rows = (group[None, :] == np.arange(len(codes))[:, None]).astype(np.float64)
        deviations = np.sqrt(np.maximum(np.einsum("bi,ij,bj->b", rows, dense, rows), 0))
        assert row["largest"] == pytest.approx(float(deviations.max()), rel=1e-5, abs=1e-7)
        assert row["smallest"] == pytest.approx(float(deviations.min()), rel=1e-5, abs=1e-7)
        if columns == ["state"] and name == "state totals kept":
            assert row["largest"] == 0
    assert "0, exact" in str(plan) or not keep


def small_vectors(universe: Universe, keep: list[Any], reach: int) -> Ints:
    lattice = hf.lattice(universe, keep)
    values = np.array(list(itertools.product(range(-reach, reach + 1), repeat=len(universe))), dtype=np.int64)
    rows = (
        lattice.kept.matrix().toarray() if lattice.kept is not None and len(lattice.kept) else np.zeros((0, len(universe)), dtype=np.int64)
    )
    inside = values[~(values @ rows.T).any(axis=1)]
    return inside[inside.any(axis=1)]


TINY = universe_of({"A": 2, "B": 1})
BRUTE: list[tuple[list[Any], Any]] = [
    ([hf.margin("state")], {"state": {"sex": "1/5"}, "county": {"total": "3/10", "detailed": "1/2"}}),
    ([], {"state": {"total": "9/10"}, "county": "1/10"}),
    ([hf.total()], {"total": {"sex": "1/10"}, "state": {"total": "1/10"}, "county": {"total": "7/10", "detailed": "1/10"}}),
    ([hf.margin("county")], {"state": {"sex": "1/2"}, "county": "1/2"}),
    ([hf.margin("sex")], {"county": {"total": "1/2", "detailed": "1/2"}}),
    ([hf.margin("county"), hf.margin("sex")], {"county": 1}),
]


@pytest.mark.parametrize(("keep", "shares"), BRUTE)
def test_person_and_smallest_secret_are_those_of_all_small_changes(keep: list[Any], shares: Any) -> None:
    guarantee = channel_of(TINY, keep, shares).guarantee
    found = {tuple(v.tolist()): distance(TINY, shares, v) for v in small_vectors(TINY, keep, 2)}
    assert min(found.values()) == guarantee.smallest_secret
    assert guarantee.smallest_secret_status == "exact"
    moves = [d for v, d in found.items() if sorted(v) == [-1, *[0] * (len(v) - 2), 1]]
    added = [d for v, d in found.items() if sum(map(abs, v)) == 1]
    if added:
        assert guarantee.person == 2  # not only moves: the general bound stands
        assert max(moves) <= 2
    else:
        assert guarantee.person == max(moves, default=None)


@pytest.mark.parametrize(("keep", "shares"), BRUTE[:3])
def test_a_pair_costs_what_independent_measurements_cost(keep: list[Any], shares: Any) -> None:
    """Renyi divergence of order 2 and 3 between the laws of x + z and x' + z, by summation over the lattice: alpha rho D(v), no more.

    For integer orders the bound is attained: weights w(z - v)^(1 - a) w(z)^a sum to exp of it times the sum of w.
    """
    channel = channel_of(TINY, keep, shares, rho="12")
    basis = np.array(channel.facts.lattice.basis, dtype=np.int64)
    points = np.array(list(itertools.product(range(-4, 5), repeat=basis.shape[1])), dtype=np.int64) @ basis.T
    forms = [(float(share), rows) for share, rows in measured_rows(TINY, shares)]

    def log_weight(z: Ints) -> NDArray[np.float64]:
        return np.asarray(-12 * sum(share * ((z @ rows.T) ** 2).sum(axis=1) for share, rows in forms))

    v = basis[:, 0]
    base, moved = log_weight(points), log_weight(points - v)
    log_z = math.log(np.exp(base).sum())
    for order in (2, 3):
        renyi = math.log(np.exp(order * base - (order - 1) * moved - log_z).sum()) / (order - 1)
        assert renyi == pytest.approx(order * 12 * float(distance(TINY, shares, v)), rel=1e-6)
        assert channel.guarantee.cost(distance(TINY, shares, v)).rho == 12 * distance(TINY, shares, v)


def test_units_of_a_level_kept_wholly_are_blocks_and_one_alone_gives_the_same_bytes() -> None:
    drawing = choose_samplers(channel_of(SMALL, [hf.margin("state")], {"state": 0, "county": {"total": "1/2", "detailed": "1/2"}}))
    tasks = drawing.channel.tasks()
    assert sorted(len(task.cells.ravel()) for task in tasks) == [4, 6]
    key = hf.NoiseKey.for_tests("levels")
    law = hf.GeneralizedGaussian(rho="1/10", levels={"state": 0, "county": {"total": "1/2", "detailed": "1/2"}}, per="distance").law(
        hf.lattice(SMALL, [hf.margin("state")])
    )
    whole = law.sample(1, key)[0]
    for task in tasks:
        with hf.NoiseKey.for_tests("levels").stream("law", law.channel.identity, "", *task.label) as words:
            alone = drawing.choice(task.shape).noise.draw(1, words)
        assert np.array_equal(alone[0], whole[task.cells[0]])


@pytest.mark.parametrize(
    ("keep", "shares", "blocks"),
    [
        ([hf.margin("state")], SHARES, [6, 4]),
        ([], {"state": 0, "county": 1}, [2] * 5),
        ([], {"total": {"total": "1/2"}, "county": "1/2"}, [10]),
        ([hf.margin("county")], {"county": 1}, [2] * 5),
        ([hf.margin("county"), hf.margin("sex")], {"county": 1}, [10]),
        ([hf.margin("state", "sex")], {"state": 0, "county": 1}, [6, 4]),
    ],
)
def test_what_is_drawn_together(keep: list[Any], shares: Any, blocks: list[int]) -> None:
    channel = channel_of(SMALL, keep, shares)
    assert [len(block.cells.ravel()) for block in channel.blocks] == blocks
    assert sorted(np.concatenate([block.cells.ravel() for block in channel.blocks]).tolist()) == list(range(len(SMALL)))
    assert sum(shape.rank * n for shape, n in zip(channel.blocks.shapes, channel.blocks.counts, strict=True)) == channel.facts.lattice.rank


@pytest.mark.parametrize("keep", [[hf.margin("state")], [hf.margin("state", "sex")], [hf.margin("state"), hf.margin("sex")]])
def test_levels_of_kept_margins_need_no_share(keep: list[Any]) -> None:
    """The same law and blocks as with a share of 0, for nested columns and for a hierarchy."""
    codes = ["A0", "A1", "A2", "B0", "B1"]
    tree = Hierarchy.from_prefixes(codes, [1], levels=["state", "own"])
    by_tree = Universe.product({"county": codes, "sex": ["F", "M"]}, hierarchies={"county": tree})
    for universe in (SMALL, by_tree):
        short, said = channel_of(universe, keep, {"county": 1}), channel_of(universe, keep, {"state": 0, "county": 1})
        assert short.identity == said.identity
        law = hf.GeneralizedGaussian(rho="1/10", levels={"county": 1}, per="distance").law(
            hf.lattice(universe, keep)
        )  # of a lattice, without constraints
        assert law.channel.blocks.shapes == said.blocks.shapes
        assert short.blocks.shapes == said.blocks.shapes


def test_a_kept_margin_across_the_levels_is_refused_by_its_name() -> None:
    rows = [("A", "1", "x"), ("A", "2", "y"), ("B", "3", "x"), ("B", "4", "y")]
    universe = Universe.listed(dict(zip(("state", "county", "kind"), map(list, zip(*rows, strict=True)), strict=True)))
    with pytest.raises(InvalidConstraint, match=r"margin\(kind\) is no margin at one of the levels"):
        channel_of(universe, [hf.margin("kind")], {"state": "1/2", "county": "1/2"})


def test_levels_of_a_hierarchy_and_nested_columns_are_one_thing() -> None:
    """A county column with a hierarchy, and columns for state and county: the same law, the same blocks."""
    codes = ["A0", "A1", "A2", "B0", "B1"]
    tree = Hierarchy.from_prefixes(codes, [1], levels=["state", "own"])
    by_tree = Universe.product({"county": codes, "sex": ["F", "M"]}, hierarchies={"county": tree})
    one = channel_of(by_tree, [], {"state": {"sex": "1/5"}, "county": {"total": "3/10", "detailed": "1/2"}})
    other = channel_of(SMALL, [], SHARES)
    assert one.target.fields == other.target.fields
    assert one.blocks.shapes == other.blocks.shapes
    tuples = channel_of(SMALL, [], {("state",): {"sex": "1/5"}, ("state", "county"): {"total": "3/10", "detailed": "1/2"}})
    assert tuples.target.fields == other.target.fields


BAD: list[tuple[Any, list[Any], str]] = [
    ({"state": "1/2"}, [], "add up to 1/2"),
    ({"state": "1/2", "county": "2/3"}, [], "add up to 7/6"),
    ({"state": "-1/2", "county": "3/2"}, [], "negative"),
    ({"state": 0.5, "county": "1/2"}, [], "exact"),
    ({}, [], "mapping"),
    ([("state", 1)], [], "mapping"),
    ({3: 1}, [], "text or a tuple"),
    ({"region": "1/2", "county": "1/2"}, [], "no level 'region'"),
    ({"state": "1/2", ("state", "town"): "1/2"}, [], "no column 'town'"),
    ({"county": {"income": "1/2", "detailed": "1/2"}}, [], "no column or level 'income'"),
    ({"county": {"total": 1}}, [], "finest level"),
    ({"state": 1}, [], "same"),
    ({"state": {"total": "1/2"}, "county": "1/2"}, [hf.margin("state")], "kept exactly"),
    ({"state": {"total": "1/2"}, "county": "1/2"}, [hf.margin("county")], "kept exactly"),
    ({"sex": "1/2", "county": "1/2"}, [], "not nested"),
]


@pytest.mark.parametrize(("shares", "keep", "words"), BAD)
def test_shares_that_cannot_be_are_refused(shares: Any, keep: list[Any], words: str) -> None:
    with pytest.raises(HoldfastError, match=words):
        channel_of(SMALL, keep, shares)


def test_messages_about_levels_are_short() -> None:
    """Two trees with a level of one name, which was listed twice; a sum of 400 digits, which was printed in full."""
    own = {column: Hierarchy.from_parents({"1": "n", "2": "s"}, levels=["part", "own"]) for column in ("a", "b")}
    with pytest.raises(InvalidParameter) as error:
        hf.plan(Universe.product(own), [], hf.GeneralizedGaussian(rho=1, levels={"parts": 1}, per="distance"))
    assert str(error.value).partition("Known:")[2].count("'part'") == 1
    with pytest.raises(InvalidParameter, match="the shares add up to") as error:
        read_shares({"a": "1e-400"})
    assert len(str(error.value)) < 300


def test_groups_of_an_axis_are_margins_where_they_divide_evenly() -> None:
    """Age in two groups of two: measured by group, by age, and kept by group; the form is that of plain groupings."""
    ages = Hierarchy.from_parents({"1": "young", "2": "young", "3": "old", "4": "old"}, levels=["group", "own"])
    universe = Universe.product({"county": ["A", "B"], "age": ["1", "3", "2", "4"]}, hierarchies={"age": ages})
    shares = {"total": {"group": "1/4"}, "county": {"group": "1/4", "detailed": "1/2"}}
    keep = [hf.margin("county")]
    plan = hf.plan(universe, keep, hf.GeneralizedGaussian(rho="1/2", levels=shares, per="distance"))
    group = np.array([[0, 1, 0, 1, 0, 1, 0, 1], [0, 1, 0, 1, 2, 3, 2, 3], range(8)])
    form = sum(
        float(share) * rows.T @ rows
        for share, own in zip((0.25, 0.25, 0.5), group, strict=True)
        for rows in [(own[None, :] == np.arange(own.max() + 1)[:, None]).astype(np.float64)]
    )
    basis = hf.lattice(universe, keep).basis.astype(np.float64)
    assert plan.covariance is not None
    np.testing.assert_allclose(plan.covariance.dense(), basis @ np.linalg.inv(basis.T @ form @ basis) @ basis.T, atol=1e-12)
    assert {row["margin"] for row in plan.to_fields()["expected_error"]["levels"]} == {"total", "group", "age"}


def test_groups_of_different_sizes_beside_the_units_are_refused() -> None:
    ages = Hierarchy.from_parents({"1": "young", "2": "young", "3": "old"}, levels=["group", "own"])
    universe = Universe.product({"county": ["A", "B"], "age": ["1", "2", "3"]}, hierarchies={"age": ages})
    with pytest.raises(InvalidParameter, match="different sizes"):
        channel_of(universe, [], {"county": {"group": "1/2", "detailed": "1/2"}})


def test_a_county_in_two_states_is_not_nested_and_the_message_names_the_tuple() -> None:
    universe = Universe.listed({"state": ["A", "A", "B", "B"], "county": ["1", "2", "1", "2"]})
    with pytest.raises(InvalidParameter, match=r"two units of 'state'.*tuple of columns"):
        channel_of(universe, [], {"state": "1/2", "county": "1/2"})
    assert isinstance(channel_of(universe, [], {"state": "1/2", ("state", "county"): "1/2"}).blocks.shapes[0], Units)


def test_a_code_without_a_parent_at_a_level_is_named() -> None:
    tree = Hierarchy({"A": None, "A1": "A", "A2": "A", "B": None}, levels=["state", "county"])
    universe = Universe.product({"county": ["A1", "A2", "B"]}, hierarchies={"county": tree})
    with pytest.raises(InvalidParameter, match="code 'B' of 'county' has no parent at level 'state'"):
        channel_of(universe, [], {"state": "1/2", "county": "1/2"})
    deep = Hierarchy({"A": None, "AA": "A", "A1": "AA", "B": None, "B1": "B"}, levels=["state", "district", "county"])
    uneven = Universe.product({"county": ["A1", "B1"]}, hierarchies={"county": deep})
    with pytest.raises(InvalidParameter, match="code 'B1' of 'county' has no parent at level 'district'"):
        channel_of(uneven, [], {"district": "1/2", "county": "1/2"})
    assert channel_of(uneven, [], {"state": "1/2", "county": "1/2"}).layout.names == ("total", "state", "county")
    named = Hierarchy({"A": None, "A1": "A", "A2": "A", "B state": None, "B": "B state"}, levels=["state", "county"])
    assert channel_of(universe.with_hierarchies({"county": named}), [], {"state": "1/2", "county": "1/2"}).layout.whole.levels == 2


@pytest.mark.parametrize("by_tree", [False, True])
def test_of_levels_with_the_same_units_it_does_not_matter_which_is_named_first_or_has_the_share(by_tree: bool) -> None:
    """One county a state: shares of either are shares of both, and so are kept totals."""
    tree = Hierarchy.from_parents({"A1": "A", "B1": "B"}, levels=["state", "county"])
    columns = {"county": ["A1", "A1", "B1", "B1"], "sex": ["F", "M"] * 2}
    if by_tree:
        universe = Universe.listed(columns, hierarchies={"county": tree})
    else:
        universe = Universe.listed({"state": ["A", "A", "B", "B"], **columns})
    said: list[dict[str, Any]] = [{"state": {"total": "1/2"}, "county": "1/2"}, {"state": "1/2", "county": {"total": "1/2"}}]
    made = [channel_of(universe, [], dict(order)) for shares in said for order in (shares.items(), reversed(shares.items()))]
    assert [channel.layout.names for channel in made] == [("total", "state", "county")] * 4
    assert len({channel.identity for channel in made}) == 1
    for kept, shares in itertools.product(("state", "county"), said):
        with pytest.raises(InvalidParameter, match="kept exactly"):
            channel_of(universe, [hf.margin(kept)], shares)
    twice = [channel_of(universe, [], dict(order)) for order in itertools.permutations([("county", "1/2"), (("county",), "1/2")])]
    assert twice[0].identity == twice[1].identity
    both = [channel_of(universe, [hf.margin(kept)], {level: 1}) for kept, level in itertools.product(("state", "county"), repeat=2)]
    assert len({channel.guarantee.smallest_secret for channel in both}) == 1
    assert all(channel.blocks.shapes == both[0].blocks.shapes for channel in both)


GROUPS = {"a": "x", "b": "x", "c": "y", "d": "y"}


def test_a_level_named_like_another_column_takes_nothing_from_it() -> None:
    """As with kept margins the column goes first, and the level is named with its column."""
    made = {}
    for name in ("sex", "group"):
        columns: dict[str, Any] = {"county": ["1", "2"], "sex": ["F", "M"], "age": Hierarchy.from_parents(GROUPS, levels=[name, "age"])}
        made[name] = channel_of(Universe.product(columns), [], {"county": {"sex": "1/2", "detailed": "1/2"}})
    assert made["sex"].target.measured == made["group"].target.measured
    assert list(made["sex"].layout.margins.values()) == [
        margin.replace("group", "sex of age") for margin in made["group"].layout.margins.values()
    ]
    universe = Universe.product(columns | {"age": Hierarchy.from_parents(GROUPS, levels=["sex", "age"])})
    by_level = channel_of(universe, [], {"county": {"sex of age": "1/2", "detailed": "1/2"}})
    by_group = channel_of(Universe.product(columns), [], {"county": {"group": "1/2", "detailed": "1/2"}})
    assert by_level.target.measured == by_group.target.measured != made["sex"].target.measured


def test_a_level_of_two_hierarchies_is_refused_where_it_is_named() -> None:
    trees = {
        column: Hierarchy.from_parents({f"{column}{k}": f"{column} {k % 2}" for k in range(4)}, levels=["group", column]) for column in "ab"
    }
    universe = Universe.product({"county": ["1", "2"], **trees})
    with pytest.raises(InvalidParameter, match=r"'group' has several meanings\. Write 'group of a' or 'group of b'"):
        channel_of(universe, [], {"county": {"group": "1/2", "detailed": "1/2"}})
    with pytest.raises(InvalidParameter, match="'group' is a level of the hierarchies of a and b"):
        channel_of(universe, [], {"group": "1/2", "a": "1/2"})
    one, other = (channel_of(universe, [], {"county": {f"group of {column}": "1/2", "detailed": "1/2"}}) for column in "ab")
    assert one.target.measured != other.target.measured


@pytest.mark.parametrize("name", ["total", "detailed"])
def test_columns_with_names_that_mean_something_else_in_shares_are_refused(name: str) -> None:
    with pytest.raises(InvalidParameter, match=f"a column is called '{name}'"):
        channel_of(Universe.product({"county": ["1", "2"], name: ["a", "b"]}), [], {"county": {"total": "1/2", "detailed": "1/2"}})


def test_totals_that_are_no_margin_of_a_level_are_refused_by_name() -> None:
    with pytest.raises(InvalidConstraint, match=r"subset\(sex in \[F\]\) by county is no margin"):
        channel_of(SMALL, [hf.subset("sex", codes=["F"], by=["county"])], SHARES)


@pytest.mark.parametrize("others", [{"sigma_squared": 5}, {"epsilon": 1, "delta": "1e-9"}, {"rho": 1, "allow_estimated": True}])
def test_levels_go_with_rho_alone(others: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter, match="levels goes with rho"):
        hf.GeneralizedGaussian(**others, levels={"county": 1})


def test_a_lattice_of_a_matrix_has_no_levels() -> None:
    with pytest.raises(InvalidParameter, match="matrix"):
        hf.GeneralizedGaussian(rho=1, levels={"county": 1}, per="distance").law(hf.Lattice([[1, 1]]))


def test_per_person_divides_by_the_general_bound() -> None:
    whole = hf.GeneralizedGaussian(rho="1/5", per="person", levels=SHARES).channel(Facts.of(SMALL, [hf.margin("state")]))
    assert whole.guarantee.rho == Fraction(1, 10)
    person = whole.guarantee.per_person()
    assert person is not None
    assert person.rho is not None
    assert person.rho <= Fraction(1, 5)


def test_the_mechanism_can_be_read_back_from_its_repr() -> None:
    made = hf.GeneralizedGaussian(
        rho="1/10",
        levels={"state": "1/10", ("state", "county"): {"total": "1/5", ("sex", "age"): "1/5", "detailed": "1/2"}},
        per="distance",
    )
    assert eval(repr(made), {"GeneralizedGaussian": hf.GeneralizedGaussian}) == made


@pytest.mark.parametrize("share", ["9/10", "1/2", "1/10"])
def test_the_tail_bound_holds_where_the_finest_margin_has_a_small_share(share: str) -> None:
    """Two cells: all of the law is enumerated. The total of a leaf has a share of its own, and says nothing about the difference."""
    detailed = 1 - Fraction(share)
    law = hf.GeneralizedGaussian(rho="1/20", levels={"total": {"total": share, "detailed": str(detailed)}}, per="distance").law(
        hf.lattice(Universe.product({"a": ["x", "y"]}), [])
    )
    x, y = np.meshgrid(np.arange(-150, 151), np.arange(-150, 151))
    weights = np.exp(-(float(Fraction(share)) * (x + y) ** 2 + float(detailed) * (x**2 + y**2)) / 20)
    for t in range(1, 41):
        assert weights[x**2 + y**2 >= t * t].sum() / weights.sum() <= law.tail_bound(t)


def test_a_kept_margin_may_name_a_level_of_a_hierarchy() -> None:
    """As it may name a column: the same units, the same blocks, the same costs."""
    tree = Hierarchy.from_parents({"A0": "A", "A1": "A", "A2": "A", "B0": "B", "B1": "B"}, levels=["state", "own"])
    codes = {name: [SMALL.codes[name][k] for k in SMALL.code_indices(name)] for name in ("county", "sex")}
    universe = Universe.listed(codes, hierarchies={"county": tree})
    for columns in (["state"], ["state", "sex"], ["county", "state"]):
        found, expected = (channel_of(given, [hf.margin(*columns)], {"state": 0, "county": 1}) for given in (universe, SMALL))
        assert found.layout.whole == expected.layout.whole
        assert found.layout.top == expected.layout.top
        assert np.array_equal(found.blocks.order, expected.blocks.order)
        assert found.guarantee.smallest_secret == expected.guarantee.smallest_secret
