"""Views of networks: nearest tables against enumeration and brute force, two nested families against their definition, and optimality."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.publication.view import ViewMaker
from holdfast.views import network as network_module
from holdfast.views.network import Network, check_network, two_families
from tests.examples import examples

Ints = NDArray[np.int64]
GROUND = -1


def every_table(tail: Ints, head: Ints, values: Ints, base: int, least: int, most: int) -> Ints:
    """Every table of multiples of the base between two bounds with the totals of the values, one a row."""
    tables = base * (np.indices((most - least + 1,) * len(values)).reshape(len(values), -1).T + least)
    for side in (tail, head):
        for node in np.unique(side[side != GROUND]):
            tables = tables[tables[:, side == node].sum(axis=1) == values[side == node].sum()]
    return np.asarray(tables)


@given(
    st.lists(st.tuples(st.integers(-1, 1), st.integers(-1, 2), st.integers(0, 2)), min_size=2, max_size=5),
    st.integers(0, 10**6),
    st.sampled_from([1, 3, 5]),
    st.booleans(),
)
@settings(max_examples=examples(150), deadline=None)
def test_no_other_table_is_nearer(cells: list[tuple[int, int, int]], seed: int, base: int, nonnegative: bool) -> None:
    """A network of any cells, some of them on the ground at one end."""
    cells = [cell for cell in cells if cell[:2] != (GROUND, GROUND)]
    if not cells or (base == 1 and not nonnegative):
        return
    rows, columns, truth = np.array(cells, dtype=np.int64).T
    tail, head = rows, np.where(columns == GROUND, GROUND, columns + 10)
    values = base * truth + balanced(np.random.default_rng(seed), tail, head, 2)
    found = Network(tail, head).nearest_table(values, base, nonnegative=nonnegative)
    others = every_table(tail, head, values, base, 0 if nonnegative else -4, 10 if nonnegative else 6)
    assert not (found % base).any()
    assert not nonnegative or found.min() >= 0
    assert (others == found).all(axis=1).any()
    assert ((found - values) ** 2).sum() == ((others - values) ** 2).sum(axis=1).min()


@given(st.integers(0, 10**6), st.sampled_from([2, 30, 4000]), st.sampled_from([1, 3, 10]), st.booleans())
@settings(max_examples=examples(40), deadline=None)
def test_no_circle_of_cells_makes_it_nearer(seed: int, noise: int, base: int, nonnegative: bool) -> None:
    """Convex costs: a table is nearest where no circle of single units improves it (Bellman and Ford look for one)."""
    random = np.random.default_rng(seed)
    rows, columns = int(random.integers(2, 8)), int(random.integers(2, 6))
    places = np.flatnonzero(random.random(2 * rows * columns) < 0.7) % (rows * columns)
    if not len(places) or (base == 1 and not nonnegative):
        return
    tail, head = places // columns, rows + places % columns
    truth = random.integers(0, 4, len(places))
    values = base * truth + balanced(random, tail, head, noise)
    found = Network(tail, head).nearest_table(values, base, nonnegative=nonnegative)
    assert all(found[tail == node].sum() == values[tail == node].sum() for node in range(rows))
    assert all(found[head == node].sum() == values[head == node].sum() for node in range(rows, rows + columns))
    assert not nonnegative or found.min() >= 0
    assert not has_improving_circle(tail, head, values, found // base, base, nonnegative)


def balanced(random: np.random.Generator, tail: Ints, head: Ints, size: int) -> Ints:
    """Random numbers moved round circles of two rows and two columns, and between cells with the same ends."""
    out = np.zeros(len(tail), dtype=np.int64)
    at: dict[tuple[int, int], int] = {}
    for cell, ends in enumerate(zip(tail.tolist(), head.tolist(), strict=True)):
        if ends in at:
            out[[cell, at[ends]]] += int(random.integers(-size, size + 1)) * np.array([1, -1])
        at[ends] = cell
    for _ in range(len(tail)):
        one, other = random.integers(0, len(tail), 2)
        corners = [(int(tail[one]), int(head[other])), (int(tail[other]), int(head[one]))]
        if tail[one] != tail[other] and head[one] != head[other] and all(corner in at for corner in corners):
            step = int(random.integers(-size, size + 1))
            out[[one, other]] += step
            out[[at[corner] for corner in corners]] -= step
    return out


def has_improving_circle(tail: Ints, head: Ints, values: Ints, units: Ints, base: int, nonnegative: bool) -> bool:
    edges = []
    for t, h, y, u in zip(tail.tolist(), head.tolist(), values.tolist(), units.tolist(), strict=True):
        edges.append((t, h, (base * (u + 1) - y) ** 2 - (base * u - y) ** 2))
        if u > 0 or not nonnegative:
            edges.append((h, t, (base * (u - 1) - y) ** 2 - (base * u - y) ** 2))
    distance = dict.fromkeys([*tail.tolist(), *head.tolist()], 0)
    for _ in distance:
        changed = False
        for t, h, cost in edges:
            if distance[t] + cost < distance[h]:
                distance[h], changed = distance[t] + cost, True
        if not changed:
            return False
    return True


def test_the_check_sees_a_table_that_is_not_the_nearest_and_totals_that_are_not_kept() -> None:
    network = Network(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3]))
    values = np.array([-2, 4, 5, 1])
    found = network.nearest_table(values, 1, nonnegative=True)
    prices = np.zeros(4, dtype=np.int64)
    own, units = values[network.order], found[network.order]
    circle = np.array([1, -1, -1, 1])[network.order]
    right = [prices + np.array(steps) for steps in product(range(-6, 7), repeat=4)]
    assert any(network.is_nearest(units, one, own, 1, nonnegative=True) for one in right)
    assert not any(network.is_nearest(units + circle, one, own, 1, nonnegative=True) for one in right)
    assert not any(network.is_nearest(units + 1, one, own, 1, nonnegative=True) for one in right)


def test_ties_go_by_a_public_order_that_prefers_no_first_place() -> None:
    """Three of twenty equal cells have to give one each: not the first three."""
    network = Network(np.zeros(21, dtype=np.int64), np.full(21, GROUND))
    values = np.array([-3, *[5] * 20])
    found = network.nearest_table(values, 1, nonnegative=True)
    gave = np.flatnonzero(found[1:] == 4)
    assert len(gave) == 3
    assert gave.tolist() != [0, 1, 2]
    assert np.array_equal(found, Network(np.zeros(21, dtype=np.int64), np.full(21, GROUND)).nearest_table(values, 1, nonnegative=True))


def family_sets(families: list[list[set[int]]], cells: int) -> tuple[csr_array, Ints]:
    rows = [[int(cell in one) for cell in range(cells)] for family in families for one in family]
    return csr_array(np.array(rows, dtype=np.int64)), np.repeat(np.arange(len(families)), list(map(len, families)))


@given(st.lists(st.lists(st.integers(-1, 2), min_size=6, max_size=6), min_size=1, max_size=4))
@settings(max_examples=examples(200), deadline=None)
def test_two_families_are_told_as_every_split_tells_them(groups: list[list[int]]) -> None:
    families = [[{c for c in range(6) if own[c] == g} for g in range(3) if g in own] for own in groups]
    families = [family for family in families if family]
    if not families:
        return
    sets, stated = family_sets(families, 6)
    found = two_families(sets, stated)
    listed = [one for family in families for one in family]
    if found.odd.size:
        assert not can_be_split(listed) or len(found.odd) >= 3
        return
    # Cells with the same two smallest sets have the same sums to keep: all sets are made of smallest ones.
    one, other = found.smallest
    for place, own in enumerate(listed):
        kept = np.isin(np.arange(6), sorted(own)).astype(np.int64)
        rows = [(side == node).astype(np.int64) for side in (one, other) for node in np.unique(side) if node != GROUND]
        assert np.linalg.matrix_rank(np.array([*rows, kept])) == np.linalg.matrix_rank(np.array(rows)), (listed, place)
    rank = np.linalg.matrix_rank(sets.toarray())
    assert np.linalg.matrix_rank(np.array(rows)) == rank


def can_be_split(sets: list[set[int]]) -> bool:
    """Whether two nested families hold all sets, by trying every way."""

    def nested(family: list[set[int]]) -> bool:
        return all(a <= b or b <= a or not a & b for a in family for b in family)

    return any(
        nested([one for one, side in zip(sets, sides, strict=True) if side])
        and nested([one for one, side in zip(sets, sides, strict=True) if not side])
        for sides in product((False, True), repeat=len(sets))
    )


class TestWhichKeptTotalsAreNetworks:
    TOWNS = tuple(f"{county}{number}" for county in "ABC" for number in range(3))
    TREE = hf.Hierarchy.from_prefixes(TOWNS, [1], levels=["county", "town"])
    UNIVERSE = hf.Universe.product({"town": TOWNS, "sex": ["F", "M"], "age": ["0", "18", "65"]}, hierarchies={"town": TREE})

    @pytest.mark.parametrize(
        ("keep", "is_network"),
        [
            ([hf.margin("county"), hf.margin("sex", "age")], True),
            ([hf.total(), hf.margin("county"), hf.margin("town", "sex"), hf.margin("age")], True),
            ([hf.margin("sex"), hf.margin("age"), hf.margin("sex", "age"), hf.margin("town")], True),
            ([hf.margin("county", "sex"), hf.margin("county", "age")], True),
            ([hf.subset("sex", codes=["F"], by=["town"]), hf.margin("age")], True),
            ([hf.margin("county"), hf.subset("age", codes=["65"], by=["town"]), hf.margin("sex", "age")], True),
            ([hf.margin("town"), hf.margin("sex"), hf.margin("age")], False),
            ([hf.margin("town", "sex"), hf.margin("town", "age"), hf.margin("sex", "age")], False),
        ],
    )
    def test_of_a_table(self, keep: list[Any], is_network: bool) -> None:
        maker = ViewMaker(hf.plan(self.UNIVERSE, keep, hf.GeneralizedGaussian(sigma_squared=9)))
        assert bool(len(maker.arcs)) is is_network
        assert (not maker.searched) is is_network
        assert maker.has_multiples is is_network

    def test_with_cells_that_cannot_occur(self) -> None:
        cells = [(town, sex, age) for town in self.TOWNS for sex in "FM" for age in ("0", "18", "65") if (town, age) != ("A0", "65")]
        listed = hf.Universe.listed(
            dict(zip(("town", "sex", "age"), zip(*cells, strict=True), strict=True)), hierarchies={"town": self.TREE}
        )
        maker = ViewMaker(hf.plan(listed, [hf.margin("county"), hf.margin("sex", "age")], hf.GeneralizedGaussian(sigma_squared=9)))
        assert len(maker.arcs) == len(cells)
        assert not maker.searched


def test_totals_that_no_counts_have() -> None:
    """A row of -1 beside one of 3."""
    with pytest.raises(InvalidParameter, match="they are not totals of counts"):
        Network(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])).nearest_table(np.array([-2, 1, 2, 1]), 1, nonnegative=True)


def test_totals_that_are_no_multiples() -> None:
    with pytest.raises(InvalidParameter, match="No table of multiples of 5"):
        Network(np.array([0, 0, 1, 1]), np.array([2, 3, 2, 3])).nearest_table(np.array([1, 4, 4, 2]), 5, nonnegative=True)


def test_too_many_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MOST_CELLS", 5)
    with pytest.raises(hf.errors.RequestTooLarge, match=r"Kept totals cross over 6 cells, .* Leave view_base out"):
        check_network(6)
