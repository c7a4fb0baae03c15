"""The choice between rejection and coupling from the past: by public facts and no clock; refused where neither ends."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from holdfast.errors import NoExactSampler
from holdfast.lattices.shapes import Free, General, Grid, Levels, OneSum
from holdfast.laws import L1Laplace
from holdfast.randomness import NoiseKey
from holdfast.samplers import choice as choice_module
from holdfast.samplers.choice import CELL_SECONDS, RULE_EPSILON, Compared, Reason, duration, least_tries
from holdfast.samplers.coupling import sampler as coupling_cost
from holdfast.samplers.coupling.klein_step import DenseKlein
from holdfast.samplers.coupling.sampler import CouplingLaplace
from holdfast.samplers.laplace_rejection import GridLaplace, PivotLaplace
from holdfast.samplers.one_sum_laplace import OneSumLaplace
from holdfast.samplers.protocol import cell_draws
from holdfast.samplers.table import COUPLING, choose
from holdfast.wording.samplers import reason_phrase
from tests.samplers.levels_shapes import PLAIN, SMALL, tree

QUARTER = L1Laplace(Fraction(1, 4))


@pytest.fixture
def fresh() -> Iterator[None]:
    """No choice of another test is remembered, nor is one of this test by others."""
    choose.cache_clear()
    yield
    choose.cache_clear()


def margins(rows: int, columns: int) -> tuple[tuple[int, ...], ...]:
    one = np.vstack([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))]).astype(np.int64)
    return tuple(tuple(map(int, row)) for row in one[:-1])


class TestAuto:
    @pytest.mark.parametrize("axes", [(3, 3), (7, 7), (3, 3, 3)])
    def test_where_rejection_is_cheap_nothing_else_is_looked_at(self, fresh: None, monkeypatch: pytest.MonkeyPatch, axes: Any) -> None:
        monkeypatch.delattr(CouplingLaplace, "of_grid")
        choice = choose(Grid(axes), QUARTER)
        assert isinstance(choice.sampler, GridLaplace)
        assert (choice.reason, choice.compared) == (Reason.SMALL_GRID, None)

    def test_a_larger_grid_is_coupled_and_both_figures_are_kept(self) -> None:
        choice = choose(Grid((10, 10)), QUARTER)
        assert isinstance(choice.sampler, CouplingLaplace)
        assert choice.reason is Reason.COUPLED
        compared = choice.compared
        assert compared is not None
        assert compared.taken == cell_draws(choice.noise) == choice.noise.expected_tries * choice.sampler.try_cost
        assert compared.other == 100 * GridLaplace((10, 10), QUARTER.epsilon).expected_tries
        assert compared.taken < compared.other / 100

    def test_no_clock_is_read_and_the_pilot_is_the_same_every_time(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        first = choose(Grid((8, 8)), QUARTER)
        choose.cache_clear()
        for name in ("time", "perf_counter", "process_time", "monotonic", "perf_counter_ns"):
            monkeypatch.setattr(time, name, lambda *_: pytest.fail("a clock was read"))
        again = choose(Grid((8, 8)), QUARTER)
        assert (again.noise.name, again.noise.expected_tries, again.compared) == (
            first.noise.name,
            first.noise.expected_tries,
            first.compared,
        )
        assert first.noise is not again.noise

    def test_the_pilot_has_a_stream_of_its_own(self) -> None:
        """What is drawn for a release does not depend on whether, or when, the pilot was run."""
        piloted, other = (CouplingLaplace.of_grid((4, 4), Fraction(1, 2)) for _ in range(2))
        assert piloted.expected_tries >= 1
        draws = []
        for sampler in (piloted, other):
            with NoiseKey.for_tests("choice").stream("draws") as words:
                draws.append(sampler.draw(5, words))
        assert (draws[0] == draws[1]).all()
        assert (draws[0].reshape(5, 4, 4).sum(axis=1) == 0).all()
        assert (draws[0].reshape(5, 4, 4).sum(axis=2) == 0).all()
        assert draws[0].any()

    def test_rejection_is_taken_where_it_costs_less(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(coupling_cost, "TWO_WAY_ATOM_COST", 5e4)
        choice = choose(Grid((8, 8)), QUARTER)
        assert isinstance(choice.sampler, GridLaplace)
        assert choice.compared is not None
        assert choice_module.CHEAP < choice.compared.taken < choice.compared.other

    def test_an_epsilon_outside_the_range_of_the_mixture_leaves_rejection(self) -> None:
        """At epsilon 8 all noise is 0 but for one draw in thousands."""
        choice = choose(Grid((60, 60)), L1Laplace(Fraction(8)))
        assert isinstance(choice.sampler, GridLaplace)

    def test_why_coupling_was_not_taken_is_told(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rejection of 9 x 9 at an epsilon that coupling does not take: seconds, and the plan was silent about both."""
        choice = choose(Grid((9, 9)), L1Laplace(Fraction(1, 5000)))
        assert isinstance(choice.sampler, GridLaplace)
        assert choice.note == "Coupling from the past takes epsilon between 1/1024 and 4 per unit, and this is 1/5000."
        assert choose(Grid((3, 3)), QUARTER).note == ""
        why = "a grid small enough for rejection (coupling from the past takes epsilon between 1/1024 and 4 per unit, and this is 1/5000)"
        assert reason_phrase(choice.reason, choice.compared, choice.note) == why

    def test_blocks_of_any_totals(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        shape = General(margins(4, 4), (1,) * 16)
        assert isinstance(choose(shape, QUARTER).sampler, PivotLaplace)
        monkeypatch.setattr(choice_module, "CHEAP", 1000)
        choose.cache_clear()
        choice = choose(shape, QUARTER)
        assert isinstance(choice.sampler, CouplingLaplace)
        assert choice.reason is Reason.COUPLED


class TestRefused:
    def test_with_both_figures(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("holdfast.samplers.choice.MAX_CELL_TRIES", 5_000)
        with pytest.raises(
            NoExactSampler, match=r"^A block of 8 x 8 would need about \S+ tries .* Coupling from the past would take about"
        ):
            choose(Grid((8, 8)), QUARTER)

    def test_before_anything_is_prepared_where_one_try_takes_too_long(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delattr(CouplingLaplace, "of_grid")
        with pytest.raises(NoExactSampler, match="1000 x 1000"):
            choose(Grid((1000, 1000)), QUARTER)

    @pytest.mark.parametrize(("size", "is_told"), [(300, True), (1000, False)])
    def test_what_half_an_hour_would_do_is_told(self, size: int, is_told: bool) -> None:
        """Trying 300 x 300 out takes minutes: whoever asks for it by name gets it."""
        with pytest.raises(NoExactSampler) as refusal:
            choose(Grid((size, size)), QUARTER)
        assert ('sampler = "coupling_from_past" allows half an hour for a draw.' in str(refusal.value)) == is_told

    def test_a_pilot_looks_no_further_where_there_is_no_hope(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """10 x 10 at epsilon 4, as if a try took an hour."""
        monkeypatch.setattr(coupling_cost, "HOPELESS_CELLS", 1e5)
        found = coupling_cost.acceptance(CouplingLaplace.of_grid((10, 10), Fraction(2)))
        assert found.tries == coupling_cost.FIRST_TRIES


class TestAskedFor:
    @pytest.mark.parametrize("shape", [Grid((3, 3)), Grid((2, 3, 2))])
    def test_wherever_a_block_has_more_than_one_total(self, shape: Grid) -> None:
        choice = choose(shape, QUARTER, COUPLING)
        assert isinstance(choice.sampler, CouplingLaplace)
        assert (choice.reason, choice.compared) == (Reason.ASKED, None)

    def test_one_total_and_free_cells_keep_the_samplers_that_throw_nothing_away(self) -> None:
        assert isinstance(choose(OneSum(5), QUARTER, COUPLING).sampler, OneSumLaplace)
        assert choose(Free(1), QUARTER, COUPLING).noise.expected_tries == 1

    def test_it_may_take_longer_and_has_a_limit_too(self, fresh: None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("holdfast.samplers.choice.MAX_CELL_TRIES", 1000)
        assert isinstance(choose(Grid((3, 3)), QUARTER, COUPLING).sampler, CouplingLaplace)
        monkeypatch.setattr("holdfast.samplers.choice.MAX_CELL_TRIES", 10)
        choose.cache_clear()
        with pytest.raises(
            NoExactSampler, match=r'^Coupling from the past would take .* for one draw, which is refused\. With sampler = "auto"'
        ):
            choose(Grid((3, 3)), QUARTER, COUPLING)

    def test_a_sampler_is_pickled_with_its_pilot(self) -> None:
        sampler = choose(Grid((3, 3)), QUARTER, COUPLING).noise
        again = pickle.loads(pickle.dumps(sampler))
        assert "acceptance" in again.__dict__
        assert again.expected_tries == sampler.expected_tries

    @pytest.mark.parametrize("axes", [(3, 4), (4, 3), (2, 2, 3)])
    def test_a_pickled_sampler_draws_the_same(self, axes: tuple[int, ...]) -> None:
        """Axes of unequal lengths, which the sampler may have turned."""
        sampler = CouplingLaplace.of_grid(axes, Fraction(1, 2))
        draws = []
        for one in (sampler, pickle.loads(pickle.dumps(sampler))):
            with NoiseKey.for_tests("choice").stream("pickled") as words:
                draws.append(one.draw(20, words).reshape(20, *axes))
        assert (draws[0] == draws[1]).all()
        assert not any(draws[1].sum(axis=axis).any() for axis in range(1, len(axes) + 1))


class TestCost:
    def test_in_words(self) -> None:
        seconds = {1e-9: "about 1 millisecond", 0.4: "about 400 milliseconds", 1.2: "about 1 second", 59.0: "about 59 seconds"}
        seconds |= {600.0: "about 10 minutes", 7200.0: "about 2 hours", 1e6: "about 12 days", 1e9: "years"}
        assert {time_: duration(time_ / CELL_SECONDS) for time_ in seconds} == seconds

    def test_of_samplers_that_say_it_and_of_others(self) -> None:
        rejection = GridLaplace((4, 4), Fraction(1, 4))
        assert cell_draws(rejection) == 16 * rejection.expected_tries
        assert Compared(1.0, 2.0) == Compared(1.0, 2.0)
        coupled = CouplingLaplace.of_grid((4, 4), Fraction(1, 4))
        assert cell_draws(coupled) == coupling_cost.try_cost((4, 4), 7) * coupled.expected_tries

    def test_tries_that_are_not_left_to_doubles_cost_more(self) -> None:
        """A plan said milliseconds, and its pilot ran for minutes, where every try was in integers: 240 cells, 220 free dimensions."""
        plain, slow = (CouplingLaplace.of_rows([[1, 2, 3, 1, 0], [0, 1, 1, 2, 1]], Fraction(1, 2)) for _ in range(2))
        assert isinstance(slow.klein, DenseKlein)
        slow.klein.most_off = 0.0
        assert plain.try_cost == coupling_cost.try_cost((5,), 2)
        assert slow.try_cost == plain.try_cost + coupling_cost.SLOW_COST * 3**3


@pytest.mark.parametrize("name", SMALL)
def test_the_rule_for_totals_at_levels_is_no_more_than_a_pilot_finds(name: str) -> None:
    shape = SMALL[name]
    rejection = PivotLaplace(shape.as_general().listed_matrix(), RULE_EPSILON)
    assert 1 <= least_tries(shape) <= rejection.expected_tries


def test_no_pivots_are_looked_for_where_no_pilot_would_say_otherwise(monkeypatch: pytest.MonkeyPatch, fresh: None) -> None:
    """County totals and sex by age kept over many places: the search for pivots took a minute."""
    monkeypatch.setattr(PivotLaplace, "__init__", lambda *_: pytest.fail("pivots were looked for"))
    shape = Levels((tree((53,), (60,) * 53), PLAIN(2), PLAIN(6)), ((0, 1, 1), (1, 0, 0)))
    with pytest.raises(NoExactSampler, match=r"more than 1e\+20 tries"):
        choose(shape, QUARTER)
