"""Which mechanism should I take: what each gives at one budget, from public facts alone."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter
from holdfast.mechanisms import Mechanism, keys
from holdfast.mechanisms.registry import MECHANISMS
from holdfast.privacy.exchange import Exchange
from holdfast.publication import comparison
from holdfast.publication.comparison import LARGEST_COUNT, compare, stated_table
from holdfast.wording.comparison import Comparison
from holdfast.wording.view import SIZES
from tests.snapshot_files import Snapshot

TOWNS = hf.Universe.product({"town": ["a", "b", "c", "d"], "sex": ["F", "M"], "age": ["0", "1", "2"]})
LAPLACE = hf.GeneralizedLaplace(epsilon="1")
BY_TOWN = [hf.margin("town")]


def row(found: Comparison, name: str, *, view: bool = False) -> Any:
    return next(one for one in found.rows if one.mechanism == name and one.view is view)


class TestRows:
    @pytest.mark.parametrize(
        "mechanism",
        [
            LAPLACE,
            hf.GeneralizedGaussian(rho="1/2"),
            hf.GeneralizedGaussian(epsilon="1", delta="1e-9"),
            hf.Conditional(epsilon="1", gamma=1),
        ],
    )
    def test_the_one_asked_for_is_first_and_every_mechanism_with_a_budget_is_there(self, mechanism: Mechanism) -> None:
        found = compare(TOWNS, BY_TOWN, mechanism)
        assert (found.rows[0].mechanism, found.rows[0].asked) == (mechanism.name, True)
        wanted = {name for name, cls in MECHANISMS.items() if not cls.takes_answers and name != "cell-key"}
        assert {one.mechanism for one in found.rows} == wanted
        views = {one.mechanism for one in found.rows if one.view}
        assert views == {"generalized-laplace", "generalized-gaussian", "rounded-projection"}

    def test_a_mechanism_is_asked_and_not_listed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Doubled(hf.GeneralizedLaplace):
            name = "doubled-laplace"
            run_file_keys = (keys.Key("epsilon", keys.budget, '"1"', required=True),)

            @classmethod
            def at_budget(cls, budget: Exchange) -> Any:
                return cls(epsilon=budget.epsilon / 2)

        monkeypatch.setattr(comparison, "MECHANISMS", {**MECHANISMS, Doubled.name: Doubled})
        found = compare(TOWNS, BY_TOWN, LAPLACE)
        assert row(found, "doubled-laplace").promise == "epsilon = 0.5"
        assert row(found, "doubled-laplace").sizes[0].error > row(found, "generalized-laplace").sizes[0].error

    def test_one_that_is_refused_says_why_and_the_others_are_compared(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(comparison, "MOST_DRAWS", 4)
        universe = hf.Universe.product({name: list(map(str, range(12))) for name in "ab"})
        found = compare(universe, [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon="1/1000"))
        first = found.rows[0]
        assert first.refused
        assert "tries for one exact Laplace draw" in (first.problem or "")
        assert not first.sizes
        assert row(found, "generalized-gaussian").sizes
        assert "generalized-laplace (asked): refused. A block of" in str(found)

    def test_what_is_refused_in_every_form_is_told_once(self) -> None:
        universe = hf.Universe.product({name: list(map(str, range(12))) for name in "ab"})
        found = compare(universe, [hf.margin("a"), hf.margin("b")], hf.Conditional(epsilon="1/1000", lower=0))
        assert [one.mechanism for one in found.rows].count("conditional") == 1
        assert str(found).count("conditional (asked): refused.") == 1

    def test_a_chain_is_an_estimate(self) -> None:
        universe = hf.Universe.product({name: list("abc") for name in ("x", "y")})
        chain = hf.GeneralizedLaplace(epsilon="1/4", sampler="line_gibbs", eta="3/100", per="distance")
        found = compare(universe, [hf.margin("x"), hf.margin("y")], chain)
        assert [(one.mechanism, one.view, one.is_exact) for one in found.rows[:2]] == [
            ("generalized-laplace", False, False),  # no counts for print: no exact law simulates them
            ("generalized-laplace", False, True),
        ]
        assert "A Markov chain draws the first row: its promise is an estimate and has a delta." in str(found)

    def test_what_takes_long_is_not_simulated(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Gaussian noise within bounds on a 4 x 4 table takes half a second a draw: its proposals count."""
        monkeypatch.setattr(comparison, "MOST_WORK", 1e7)
        universe = hf.Universe.product({name: list("abcd") for name in ("x", "y")})
        found = compare(universe, [hf.margin("x"), hf.margin("y")], hf.Conditional(rho="1/2", noise="gaussian"))
        assert (found.rows[0].refused, found.rows[0].sizes, found.rows[0].time) == (False, (), None)
        assert "conditional (asked): not simulated. Simulating it would take too long." in str(found)

    def test_a_comparison_is_at_a_budget(self) -> None:
        with pytest.raises(InvalidParameter, match="A comparison is at one budget, and suppression has none"):
            compare(TOWNS, BY_TOWN, hf.Suppression())


class TestBudgets:
    def test_other_kinds_are_marked_and_the_foot_says_how_they_are_exchanged(self) -> None:
        found = compare(TOWNS, BY_TOWN, LAPLACE)
        assert {one.mechanism for one in found.rows if one.exchanged} == {"generalized-gaussian"}
        assert row(found, "generalized-gaussian").promise == "rho = 0.5"
        assert "+ Another kind of budget: epsilon = 1 implies rho = epsilon^2 / 2 = 0.5. It promises less" in str(found)

    @pytest.mark.parametrize(
        ("mechanism", "promise"),
        [
            (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), "epsilon = 1"),  # one person of two records is 4 away
            (hf.GeneralizedGaussian(rho="1/4", per="distance"), "rho = 2"),  # and 8 in squared l2
            (hf.GeneralizedGaussian(sigma_squared=2), "rho = 2"),
        ],
    )
    def test_a_budget_for_a_distance_is_converted_to_one_person(self, mechanism: Mechanism, promise: str) -> None:
        table = hf.Table(TOWNS, np.ones(24, dtype=np.int64), max_records=2)
        found = compare(table, BY_TOWN, mechanism)
        assert found.rows[0].promise == promise
        assert row(found, "rounded-projection").promise == {"epsilon = 1": "epsilon = 1", "rho = 2": "epsilon = 2"}[promise]

    def test_the_foot_never_says_more_than_is_implied(self) -> None:
        """1.42 would have been sqrt(2), rounded up: it implies a larger rho than was asked for."""
        said = str(compare(TOWNS, BY_TOWN, hf.GeneralizedGaussian(rho="1")))
        assert "the largest epsilon of nine digits that implies rho = 1 is 1.41421356 " in said
        assert "epsilon = 1.41421356+" in said


class TestErrors:
    def test_noise_that_sees_no_data_has_the_deviations_of_its_plan(self) -> None:
        for mechanism in (LAPLACE, hf.GeneralizedGaussian(rho="1/2"), hf.RoundedProjection(epsilon="1")):
            deviations = hf.plan(TOWNS, BY_TOWN, mechanism).deviations
            assert deviations is not None
            first = compare(TOWNS, BY_TOWN, mechanism).rows[0]
            for one in first.sizes:
                if one.cells:
                    assert one.error == pytest.approx(math.sqrt((deviations**2).mean()), rel=1e-5)
                    assert one.bias == 0
            assert [one.cells for one in first.sizes[1:]] == [int(count) for count in _class_sizes(24)]

    def test_conditional_noise_is_simulated_as_its_law_by_enumeration(self) -> None:
        """Under one total of three cells: P[y] proportional to exp(-rate |y - x|_1), y >= 0. The key is public: this is no chance."""
        universe = hf.Universe.product({"cell": ["a", "b", "c"]})
        found = compare(universe, [hf.total()], hf.Conditional(epsilon="1", gamma=1)).rows[0]
        truth, total, rate = stated_table(3), int(stated_table(3).sum()), 0.25
        tables = np.array([(a, b, total - a - b) for a, b in itertools.product(range(total + 1), repeat=2) if a + b <= total])
        weights = np.exp(-rate * np.abs(tables - truth).sum(axis=1))
        weights /= weights.sum()
        errors = tables - truth
        square = float((weights[:, None] * errors**2).sum() / 3)
        spread = math.sqrt(float((weights * (errors**2).mean(axis=1) ** 2).sum()) - square**2)
        assert found.draws == 200
        assert found.sizes[0].error is not None
        assert abs(found.sizes[0].error ** 2 - square) < 4 * spread / math.sqrt(found.draws)
        assert abs(found.sizes[0].error ** 2 - 4 * square) > 4 * spread / math.sqrt(found.draws)  # twice the noise would fail

    def test_a_view_is_biased_up_at_zeros_and_smaller_there(self) -> None:
        universe = hf.Universe.product({"town": [str(i) for i in range(100)], "sex": ["F", "M"], "age": ["0", "1", "2"]})
        found = compare(universe, BY_TOWN, LAPLACE)
        plain, view, bounded = (
            row(found, name, view=v) for name, v in (("generalized-laplace", False), ("generalized-laplace", True), ("conditional", False))
        )
        assert plain.sizes[1].bias == 0
        assert view.sizes[1].bias > 0.5
        assert bounded.sizes[1].bias > view.sizes[1].bias
        assert view.sizes[1].error < plain.sizes[1].error
        assert (plain.nonnegative, view.nonnegative, bounded.nonnegative) == (False, True, True)

    def test_bounds_that_the_stated_table_leaves_are_not_simulated(self) -> None:
        found = compare(TOWNS, BY_TOWN, hf.Conditional(epsilon="1", upper=20))
        assert not found.rows[0].refused
        assert "The stated table is not within its bounds." in (found.rows[0].problem or "")
        assert "conditional (asked): not simulated." in str(found)


def _class_sizes(cells: int) -> np.ndarray:
    truth = stated_table(cells)
    return np.array([((truth >= low) & (truth <= (LARGEST_COUNT if high is None else high))).sum() for low, high in SIZES])


class TestStatedTable:
    @pytest.mark.parametrize("cells", [1, 24, 360, 100_000])
    def test_a_fifth_of_the_cells_is_in_each_class(self, cells: int) -> None:
        sizes = _class_sizes(cells)
        assert sizes.sum() == cells
        assert np.abs(sizes - cells / 5).max() < 2 + math.log2(cells + 1)
        assert 0 <= stated_table(cells).min() <= stated_table(cells).max() <= LARGEST_COUNT

    def test_counts_are_not_read(self) -> None:
        one, other = (hf.Table(TOWNS, np.array(counts, dtype=np.int64)) for counts in ([3] * 24, range(0, 2400, 100)))
        assert str(compare(one, BY_TOWN, LAPLACE)) == str(compare(other, BY_TOWN, LAPLACE)) == str(compare(TOWNS, BY_TOWN, LAPLACE))


def test_how_it_reads(snapshot: Snapshot) -> None:
    found = compare(TOWNS, BY_TOWN, LAPLACE)
    snapshot(str(found), "pure")
    snapshot(str(compare(TOWNS, BY_TOWN, hf.GeneralizedGaussian(rho="1/2"))), "rho")
    assert json.loads(json.dumps(asdict(found)))["rows"][0]["promise"] == "epsilon = 1"
    assert repr(found) == "Comparison(epsilon = 1 for one person; 8 rows)"
