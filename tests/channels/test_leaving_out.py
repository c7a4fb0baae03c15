"""The law of the noise where cells under a kept total of 0 are left out, by enumeration; and what depends on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.channels import Channel, choose_samplers
from holdfast.errors import NoExactSampler, NothingLeft
from holdfast.publication.plan import Plan
from holdfast.testing import ALPHA, check_fit_categories, chi_square_p_value
from tests.samplers.lattice_points import points

Ints = NDArray[np.int64]
Law = dict[tuple[int, ...], float]

UNIVERSE = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y", "z"]})
COUNTS = np.array([1, 2, 3, 0, 0, 0, 4, 0, 6])
ZERO = [3, 4, 5]
BOTH = [hf.margin("a"), hf.margin("b")]
SHARES = hf.GeneralizedGaussian(rho="1/4", levels={"total": {"b": "1/2"}, "a": "1/2"}, per="distance")
DRAWS = 40_000


def totals(keep: list[Any], counts: Ints = COUNTS) -> list[int]:
    kept = hf.lattice(UNIVERSE, keep).kept
    assert kept is not None
    return [int(total) for rows in kept.rows for total in rows.totals(counts)]


def restricted(keep: list[Any], mechanism: Any, counts: Ints = COUNTS) -> Plan:
    return hf.plan(UNIVERSE, keep, mechanism, published_totals=totals(keep, counts))


def enumerated(keep: list[Any], log_weight: Callable[[Ints], NDArray[np.float64]], *, zero: list[int] = ZERO, reach: int = 14) -> Law:
    """The law on the moves that keep the totals and are zero at these cells: every point of a box, nothing of the code under test."""
    rows = np.vstack([hf.lattice(UNIVERSE, keep).matrix.toarray(), np.eye(9, dtype=np.int64)[zero]])
    out: Law = {}
    at_the_end = 0.0
    for z, is_end in points(rows, reach):
        weights = np.exp(log_weight(z))
        at_the_end += float(weights[is_end].sum())
        out.update({tuple(move): float(weight) for move, weight in zip(z.tolist(), weights, strict=True) if weight > 1e-12})
    mass = sum(out.values())
    assert at_the_end < 1e-7 * mass
    return {move: weight / mass for move, weight in out.items()}


def gaussian(z: Ints) -> NDArray[np.float64]:
    return np.asarray(-(z**2).sum(axis=1) / 4.0)


def laplace(z: Ints) -> NDArray[np.float64]:
    return np.asarray(-1.0 * np.abs(z).sum(axis=1))


def by_levels(z: Ints, share: float = 0.5) -> NDArray[np.float64]:
    """rho times the shares of the b-margin of the whole table and of every cell."""
    margin = z.reshape(-1, 3, 3).sum(axis=1)
    return np.asarray(-(share * (margin**2).sum(axis=1) + (1 - share) * (z**2).sum(axis=1)) / 4)


CASES: dict[str, tuple[list[Any], Any, Callable[[Ints], NDArray[np.float64]], int]] = {
    "gaussian": (BOTH, hf.GeneralizedGaussian(sigma_squared=2), gaussian, 14),
    "laplace": (BOTH, hf.GeneralizedLaplace(epsilon=1, per="distance"), laplace, 14),
    "l2 laplace": (
        BOTH,
        hf.GeneralizedLaplace(epsilon="3/2", norm="l2", per="distance"),
        lambda z: np.asarray(-1.5 * np.sqrt((z**2).sum(axis=1))),
        14,
    ),
    "levels": ([hf.margin("a")], SHARES, by_levels, 9),
}


def drawn(plan: Plan, name: str) -> Counter[tuple[int, ...]]:
    sample = plan.law.sample(DRAWS, hf.NoiseKey.for_tests(f"zeros {name}"))
    return Counter(map(tuple, sample.tolist()))


def cut(law: Law, seen: Counter[tuple[int, ...]]) -> tuple[Law, Counter[tuple[int, ...]]]:
    """Points of little mass together, whatever was drawn: the law decides which."""
    likely = {move for move, mass in law.items() if mass * DRAWS >= 30}
    rest: tuple[int, ...] = ()
    shown = {**{move: law[move] for move in likely}, rest: 1 - sum(law[move] for move in likely)}
    counted: Counter[tuple[int, ...]] = Counter()
    for move, count in seen.items():
        counted[move if move in likely else rest] += count
    return shown, counted


def p_value(seen: Counter[tuple[int, ...]], law: Law) -> float:
    return chi_square_p_value([seen[move] for move in law], list(law.values()), DRAWS)


@pytest.mark.ordinary("laplace", "levels")
@pytest.mark.parametrize("name", CASES)
def test_the_law_is_that_on_the_moves_that_are_zero_there(name: str) -> None:
    """With power: the same draws do not fit a law whose parameter is a tenth off, and draws without the rule leave these moves."""
    keep, mechanism, log_weight, reach = CASES[name]
    plan = restricted(keep, mechanism)
    law, seen = enumerated(keep, log_weight, reach=reach), drawn(plan, name)
    assert not any(np.array(list(seen))[:, ZERO].ravel())
    assert all(plan.law.lattice.contains(np.array(move)) for move in list(seen)[:50])
    shown, counted = cut(law, seen)
    check_fit_categories(counted, shown, name=f"zeros left out, {name}")
    off = enumerated(keep, lambda z: 1.1 * log_weight(z), reach=reach)
    shown, counted = cut(off, seen)
    assert p_value(counted, shown) < ALPHA
    everywhere = hf.plan(UNIVERSE, keep, mechanism).law.sample(200, hf.NoiseKey.for_tests("everywhere"))
    assert everywhere[:, ZERO].any()


def test_rounded_projection_by_enumeration() -> None:
    """Two cells given their sum: half the difference of two Laplace draws, rounded without bias."""
    universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y"]})
    plan = hf.plan(universe, [hf.margin("a")], hf.RoundedProjection(epsilon=1, per="distance"), published_totals=[3, 0, 8])
    sample = plan.law.sample(DRAWS, hf.NoiseKey.for_tests("zeros rounded"))
    assert not sample[:, 2:4].any()
    assert np.array_equal(sample[:, 0], -sample[:, 1])
    for epsilon, right in ((1.0, True), (1.1, False)):
        one = np.exp(-epsilon * np.abs(np.arange(-80, 81)))
        difference = np.convolve(one, one) / one.sum() ** 2  # of e_1 - e_2, from -160 on
        law: Law = {(k,): float(difference[160 + 2 * k] + (difference[159 + 2 * k] + difference[161 + 2 * k]) / 2) for k in range(-40, 41)}
        for column in (0, 4):
            seen: Counter[tuple[int, ...]] = Counter((value,) for value in sample[:, column].tolist())
            shown, counted = cut(law, seen)
            if right:
                check_fit_categories(counted, shown, name=f"zeros left out, rounded, column {column}")
            else:
                assert p_value(counted, shown) < ALPHA


class TestWhatDependsOnIt:
    def test_smallest_secret_person_and_dimension_are_those_of_the_moves_left(self) -> None:
        """Before, a person can move between the cells of a=1. Their total is 0: what is left are the moves of a 2 x 2 table."""
        universe = hf.Universe.product({"a": ["1", "2", "3"], "b": ["x", "y"]})
        keep: list[Any] = [hf.margin("a"), hf.subset("a", ["2", "3"], by=["b"])]
        before = hf.plan(universe, keep, hf.GeneralizedLaplace(epsilon=1, per="distance"))
        after = hf.plan(universe, keep, hf.GeneralizedLaplace(epsilon=1, per="distance"), published_totals=[0, 3, 4, 5, 2])
        assert [(p.guarantee.smallest_secret, p.guarantee.person) for p in (before, after)] == [(2, 2), (4, None)]
        assert [p.to_fields()["kept"]["free_dimensions"] for p in (before, after)] == [2, 1]

    @pytest.mark.parametrize(
        "mechanism", [hf.GeneralizedGaussian(epsilon="1/2", delta="1e-6", per="distance"), SHARES], ids=["calibrated", "levels"]
    )
    def test_parameters_and_price_are_those_of_the_plan_without_totals(self, mechanism: Any) -> None:
        from holdfast.ledger import Charge

        keep = [hf.margin("a")]
        before, after = hf.plan(UNIVERSE, keep, mechanism), restricted(keep, mechanism)
        assert after.facts.zeros is not None
        assert after.drawing.channel.target == before.drawing.channel.target
        assert Charge.of(after.guarantee) == Charge.of(before.guarantee)

    def test_the_relation_says_that_counts_are_not_negative(self) -> None:
        keep, mechanism = BOTH, hf.GeneralizedGaussian(rho=1, per="distance")
        plain, left = hf.plan(UNIVERSE, keep, mechanism).guarantee, restricted(keep, mechanism).guarantee
        assert (plain.relation.non_negative, left.relation.non_negative) == (False, True)
        assert left.relation.to_fields() == {
            "same_totals": True,
            "same_cells": False,
            "non_negative": True,
            "within_bounds": False,
            "identities": False,
        }
        assert "tables with the same kept totals and no negative count" in hf.describe(left)
        assert "take no noise" in hf.describe(left)
        assert "negative" not in hf.describe(plain)

    def test_which_cells_are_left_out_is_part_of_the_identity(self) -> None:
        mechanism = hf.GeneralizedGaussian(rho=1, per="distance")
        one = restricted(BOTH, mechanism).drawing.channel.identity
        other = restricted(BOTH, mechanism, np.array([0, 0, 0, 1, 2, 3, 4, 0, 6])).drawing.channel.identity
        none = restricted(BOTH, mechanism, COUNTS + 1).drawing.channel.identity
        assert len({one, other, none}) == 3
        assert none == hf.plan(UNIVERSE, BOTH, mechanism).drawing.channel.identity  # the same law from the same moves

    def test_standard_deviations_are_zero_there_and_those_of_the_smaller_table_elsewhere(self) -> None:
        found = restricted(BOTH, hf.GeneralizedGaussian(sigma_squared=4)).deviations
        smaller = hf.plan(hf.Universe.product({"a": ["1", "3"], "b": ["x", "y", "z"]}), BOTH, hf.GeneralizedGaussian(sigma_squared=4))
        assert found is not None
        assert smaller.deviations is not None
        assert found.reshape(3, 3)[1].tolist() == [0, 0, 0]
        assert np.array_equal(found.reshape(3, 3)[[0, 2]].ravel(), smaller.deviations)

    def test_where_every_cell_is_zero_nothing_is_left(self) -> None:
        with pytest.raises(hf.errors.NothingLeft, match="under a total of 0"):
            restricted(BOTH, hf.GeneralizedGaussian(rho=1, per="distance"), np.zeros(9, dtype=np.int64))
        with pytest.raises(hf.errors.NothingLeft, match="under a total of 0"):
            restricted([hf.margin("a")], SHARES, np.zeros(9, dtype=np.int64))

    def test_a_chain_and_suppression_leave_nothing_out(self) -> None:
        for mechanism in (hf.Suppression(), hf.GeneralizedLaplace(epsilon="1/2", sampler="line_gibbs", eta="3/100", per="distance")):
            plan = restricted(BOTH, mechanism)
            assert plan.facts.zeros is None
            assert plan.to_fields()["kept"]["zeros"]["status"] == "none"


def test_what_no_sampler_draws_keeps_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """First the general block keeps its cells, then all do."""
    universe = hf.Universe.product({"a": ["1", "2", "3", "4", "5"], "b": ["x", "y", "z"]})
    rows = hf.linear([[1, 2, 3, 1, 2, *[0] * 10], [1, 1, *[0] * 13]])
    keep: list[Any] = [rows, hf.subset("a", ["4"]), hf.subset("a", ["5"])]
    values = [6, 0, 0, 5]
    mechanism = hf.GeneralizedGaussian(rho=1, per="distance")
    found = []
    for refused in range(3):
        calls: list[int] = []

        def refuse(channel: Channel, calls: list[int] = calls, refused: int = refused) -> Any:
            calls.append(len(channel.facts.zeros.cells) if channel.facts.zeros else 0)
            if len(calls) <= refused:
                raise NoExactSampler("not drawn")
            return choose_samplers(channel)

        monkeypatch.setattr("holdfast.channels.drawing.choose_samplers", refuse)
        zeros = hf.plan(universe, keep, mechanism, published_totals=values).facts.zeros
        found.append(None if zeros is None else zeros.cells.tolist())
    assert found == [[0, 1, 9, 10, 11], [9, 10, 11], None]


class TestShares:
    """Weighted levels: units are cut off the tree, codes off the other columns."""

    TREE = hf.Hierarchy.from_parents({"p": "n", "q": "n", "r": "s", "t": "s", "u": "w"}, levels=["region", "own"])
    CELLS = hf.Universe.product({"area": TREE, "sex": ["F", "M"], "age": ["1", "2", "3"]})

    def test_units_and_codes(self) -> None:
        mechanism = hf.GeneralizedGaussian(rho=1, levels={"total": "1/4", "region": {"sex": "1/4"}, "area": "1/2"}, per="distance")
        counts = np.arange(1, 31).reshape(5, 2, 3)
        counts[[2, 3]] = 0  # the region s
        counts[:, :, 1] = 0
        table = hf.Table(self.CELLS, counts.ravel())
        release = hf.release(table, [hf.margin("region", "age")], mechanism, key=hf.NoiseKey.for_tests("units"))
        zeros = release.plan.facts.zeros
        assert zeros is not None
        assert zeros.cells.tolist() == np.flatnonzero(counts.ravel() == 0).tolist()
        assert not release.table.counts[zeros.cells].any()
        deviations = release.table.standard_deviations
        assert deviations is not None
        assert (deviations[zeros.cells] == 0).all()
        assert (np.delete(deviations, zeros.cells) > 0).all()
        assert [(error.level, error.units) for error in release.plan.expected_error.levels][-1] == ("area", 3)

    @pytest.mark.parametrize(
        ("keep", "mechanism"),
        [
            ([hf.margin("region", "sex")], hf.GeneralizedGaussian(rho=1, levels={"region": {"age": "1/4"}, "area": "3/4"}, per="distance")),
            ([hf.margin("area")], hf.GeneralizedGaussian(rho=1, levels={"total": {"age": "1/4"}, "area": "3/4"}, per="distance")),
            ([hf.margin("age")], hf.GeneralizedGaussian(rho=1, per="distance")),
            ([hf.margin("region"), hf.margin("age")], hf.GeneralizedGaussian(rho=1, per="distance")),
            ([hf.margin("area", "sex")], hf.RoundedProjection(epsilon=1, per="distance")),
        ],
        ids=["regions apart", "areas joined", "one margin", "product", "one sum"],
    )
    def test_standard_deviations_are_those_of_the_table_without_them(self, keep: list[Any], mechanism: Any) -> None:
        """The region s without counts, and the age 2 where its margin is kept: the law is that of a table which does not have them."""
        counts = np.arange(1, 31).reshape(5, 2, 3)
        counts[[2, 3]] = 0
        by_age = any("age" in constraint.columns for constraint in keep)
        if by_age:
            counts[:, :, 1] = 0
        found = hf.release(hf.Table(self.CELLS, counts.ravel()), keep, mechanism, ledger=None).plan
        assert found.facts.zeros is not None
        left = np.ones((5, 2, 3), dtype=np.bool_)
        left.ravel()[found.facts.zeros.cells] = False
        areas, ages = np.asarray(left.any(axis=(1, 2))), np.asarray(left.any(axis=(0, 1)))
        assert areas.sum() == (5 if keep == [hf.margin("age")] else 3)
        assert ages.sum() == (2 if by_age else 3)
        parents = {code: "n" if code in "pq" else "s" if code in "rt" else "w" for code, own in zip("pqrtu", areas, strict=True) if own}
        tree = hf.Hierarchy.from_parents(parents, levels=["region", "own"])
        smaller = hf.Universe.product({"area": tree, "sex": ["F", "M"], "age": [age for age, own in zip("123", ages, strict=True) if own]})
        expected = hf.plan(smaller, keep, mechanism).deviations
        assert found.deviations is not None
        assert expected is not None
        assert np.array_equal(found.deviations[left.ravel()], expected)
        assert not found.deviations[~left.ravel()].any()

    @pytest.mark.parametrize("gone", [(0,), (0, 1)], ids=["a column", "both columns"])
    def test_a_column_of_one_code_is_no_axis_any_more(self, gone: tuple[int, ...]) -> None:
        """All are men, or all are men of one age: the law is that of a table without the column. Shares of margins that became one add up,
        and one on what became a kept total says nothing."""
        keep: list[Any] = [hf.margin("sex"), hf.margin("age")]
        shares = {"total": {("sex", "age"): "1/8"}, "region": {"total": "1/8", "sex": "1/8"}, "area": {"age": "1/8", "detailed": "1/2"}}
        counts = np.arange(1, 31).reshape(5, 2, 3)
        counts[:, 0] = 0
        if 1 in gone:
            counts[:, :, 1:] = 0
        totals = [*counts.sum(axis=(0, 2)).tolist(), *counts.sum(axis=(0, 1)).tolist()]
        plan = hf.plan(self.CELLS, keep, hf.GeneralizedGaussian(rho=1, levels=shares, per="distance"), published_totals=totals)
        left = counts.ravel() > 0
        assert plan.facts.zeros is not None
        assert np.array_equal(plan.facts.zeros.cells, np.flatnonzero(~left))
        columns: dict[str, Any] = {"area": self.CELLS.hierarchies["area"], **({} if 1 in gone else {"age": ["1", "2", "3"]})}
        merged = hf.GeneralizedGaussian(rho="7/8", levels={"region": {"total": "2/7"}, "area": "5/7"}, per="distance")
        same = hf.plan(hf.Universe.product(columns), [hf.total() if 1 in gone else hf.margin("age")], merged)
        assert plan.deviations is not None
        assert same.deviations is not None
        assert np.array_equal(plan.deviations[left], same.deviations)
        assert not plan.deviations[~left].any()
        assert plan.guarantee.smallest_secret == same.guarantee.smallest_secret * Fraction(7, 8)

    def test_nothing_is_drawn_where_only_one_table_of_counts_has_the_totals(self) -> None:
        """All are men: their counts are the totals of the counties. Women came out as 1 and -1."""
        places = hf.Universe.product({"county": ["1", "2", "3"], "sex": ["F", "M"]})
        table = hf.Table(places, np.array([2, 0, 3, 0, 4, 0]))
        for levels in (None, {"county": 1}):
            with pytest.raises(NothingLeft):
                hf.release(
                    table,
                    [hf.margin("county"), hf.margin("sex")],
                    hf.GeneralizedGaussian(rho="1/8", levels=levels, per="distance"),
                    ledger=None,
                )
