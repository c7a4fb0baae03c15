"""A refusal names only what was tried on this table and draws it exactly."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.channels import Facts
from holdfast.channels.alternatives import CHAIN, DRAWN_DIMENSION, MAX_DIMENSION, NOT_TRIED, WITHOUT_BOUNDS, advice
from holdfast.errors import NoExactSampler
from holdfast.lattices import Lattice
from holdfast.laws import L1Laplace, Rounded
from holdfast.samplers.table import choose

MADE = {
    'norm = "l1"': lambda value: hf.GeneralizedLaplace(epsilon=value, per="distance"),
    'mechanism = "generalized-gaussian"': lambda value: hf.GeneralizedGaussian(sigma_squared=value),
    'mechanism = "rounded-projection"': lambda value: hf.RoundedProjection(epsilon=value, per="distance"),
}


def grid(*axes: int) -> Lattice:
    names = "abcdef"[: len(axes)]
    universe = hf.Universe.product({name: [str(i) for i in range(n)] for name, n in zip(names, axes, strict=True)})
    return hf.lattice(universe, [hf.margin(*(other for other in names if other != name)) for name in names])


def named(message: str) -> list[Any]:
    """The mechanisms that a refusal names, made from its own words."""
    found = re.search(r"Drawn exactly here, as was tried: (.*?)\.(?: |$)(?![0-9])", message)
    if found is None:
        return []
    parts = found[1].split("; ")
    return [MADE[key](part.split(" = ")[-1].split(" ")[0].strip('"')) for part in parts for key in MADE if part.startswith(key)]


def refusal(mechanism: Any, lattice: Lattice) -> str:
    with pytest.raises(NoExactSampler) as caught:
        assert mechanism.law(lattice).sampler
    return str(caught.value)


OVERLAPPING = Lattice(np.array([[1, 1, 0, 1, 0, 0, 1, 0], [0, 1, 1, 0, 1, 0, 0, 2], [1, 0, 1, 0, 0, 3, 0, 1]]))


class TestNamesOnlyWhatWorksHere:
    @pytest.mark.parametrize(
        ("mechanism", "lattice", "count"),
        [
            (hf.GeneralizedLaplace(epsilon="1/2000", per="distance"), grid(20, 20), 2),
            (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), grid(8, 8, 8), 2),
            (hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"), grid(30, 30), 3),
            (hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"), grid(10, 10, 10), 2),  # not norm = "l1": it is refused too
            (
                hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"),
                hf.lattice(hf.Universe.product({"a": [str(i) for i in range(700)]}), [hf.total()]),
                3,
            ),
        ],
        ids=["grid", "three axes", "l2 grid", "l2 three axes", "l2 one sum"],
    )
    def test_and_each_of_them_does(self, mechanism: Any, lattice: Lattice, count: int) -> None:
        others = named(refusal(mechanism, lattice))
        assert len(others) == count
        for other in others:
            assert other.law(lattice).sampler.status == "exact"

    def test_the_budget_asked_for_stays_where_it_buys_just_that(self) -> None:
        """A user who asked for a person's epsilon need not convert anything: only the mechanism changes."""
        stays = "(epsilon and per can stay as they are)"
        facts = Facts(grid(20, 20))
        for mechanism in (hf.GeneralizedLaplace(epsilon="1/4", per="distance"), hf.GeneralizedLaplace(epsilon="1/2", per="person")):
            assert advice(mechanism.channel(facts)).count(stays) == 1
            other = hf.RoundedProjection(epsilon=mechanism.epsilon, per=mechanism.per)
            assert other.channel(facts).target == Rounded(Fraction(1, 4))
        half = replace(hf.GeneralizedLaplace(epsilon="1/4", per="distance").channel(facts), target=L1Laplace(Fraction(1, 8)))
        assert stays not in advice(half), "a mechanism that draws with another epsilon than was asked for"
        assert stays not in advice(hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance").channel(facts))

    @pytest.mark.parametrize("lattice", [grid(20, 20), grid(4, 4, 4), OVERLAPPING], ids=["two axes", "three axes", "general"])
    def test_the_variance_of_rounded_projection_stands_beside_it(self, lattice: Lattice) -> None:
        """It is another law. On 20 x 20 it is 28.9: (2 a / (1 - a)^2) (1 - 1/20)^2, a = exp(-1/4), and 1/6 for the rounding."""
        message = advice(hf.GeneralizedLaplace(epsilon="1/4", per="distance").channel(Facts(lattice)))
        beside = re.search(r'with epsilon = "0\.25" per unit of l1 distance, variance of a cell (at most )?([0-9.]+) ', message)
        assert beside is not None
        largest = hf.RoundedProjection(epsilon="1/4", per="distance").law(lattice).covariance().diagonal().max()
        assert float(beside[2]) == pytest.approx(largest, rel=0.005)

    def test_what_does_not_work_is_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A general block on which every sampler by rejection is too slow: only rounded projection, which throws nothing away, is left."""
        monkeypatch.setattr("holdfast.samplers.choice.MAX_CELL_TRIES", 8)
        choose.cache_clear()
        try:
            others = named(refusal(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), OVERLAPPING))
            assert others == [hf.RoundedProjection(epsilon="1/4", per="distance")]
            assert others[0].law(OVERLAPPING).sampler.status == "exact"
        finally:
            choose.cache_clear()

    def test_the_lattice_law_is_refused_with_the_law_that_draws_it(self) -> None:
        lattice = grid(300, 300)
        assert 'law = "auto"' in refusal(hf.GeneralizedGaussian(sigma_squared="1/4", law="lattice"), lattice)
        assert hf.GeneralizedGaussian(sigma_squared="1/4").law(lattice).sampler.status == "exact"

    @pytest.mark.long
    def test_a_hopeless_matrix_has_alternatives_with_their_variance(self) -> None:
        """28 random totals of 140 cells, 112 free dimensions: none was named once."""
        lattice = Lattice(np.random.default_rng(3).integers(0, 2, (28, 140)))
        assert DRAWN_DIMENSION < max(shape.dimension for shape in lattice.blocks.shapes) <= MAX_DIMENSION
        said = advice(hf.GeneralizedLaplace(epsilon=1, per="distance").channel(Facts(lattice)))
        assert named(said) == [hf.GeneralizedGaussian(sigma_squared=2), hf.RoundedProjection(epsilon=1, per="distance")]
        assert re.search(r"per unit of l1 distance, variance of a cell at most [0-9.]+", said)

    def test_blocks_that_take_long_to_prepare_are_not_tried(self) -> None:
        rows = np.concatenate([np.eye(2, dtype=np.int64)] * (MAX_DIMENSION + 9), axis=1)[:, : MAX_DIMENSION + 9]
        rows[:, ::3] = 1
        rows[1, 1::4] = 2
        lattice = Lattice(rows)
        assert max(shape.dimension for shape in lattice.blocks.shapes) > MAX_DIMENSION
        said = advice(hf.GeneralizedLaplace(epsilon="1/4", per="distance").channel(Facts(lattice)))
        assert named(said) == []
        assert said.startswith(f"{NOT_TRIED} mechanism = ")
        assert 'mechanism = "rounded-projection" (RoundedProjection) with epsilon = "0.25" per unit of l1 distance.' in said
        assert "suppression" in said
        assert CHAIN not in said


class TestMechanismsThatAskForMore:
    def test_bounds_name_the_same_budget_without_them(self) -> None:
        universe = hf.Universe.product({name: [str(i) for i in range(12)] for name in "ab"})
        keep = [hf.margin("a"), hf.margin("b")]
        with pytest.raises(NoExactSampler) as caught:
            hf.plan(universe, keep, hf.Conditional(epsilon="1"))
        assert f"Drawn exactly here, as was tried: {WITHOUT_BOUNDS}; " in str(caught.value)
        assert hf.plan(universe, keep, hf.GeneralizedLaplace(epsilon="1")).drawing.is_exact
        with pytest.raises(NoExactSampler, match=re.escape(WITHOUT_BOUNDS)):
            hf.plan(universe, keep, hf.Conditional(rho="1/2", noise="gaussian"))


class TestChains:
    def test_are_named_where_one_can_be_made(self) -> None:
        assert CHAIN in refusal(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), grid(8, 8, 8))

    def test_not_where_the_promise_could_not_count_their_error(self) -> None:
        channel = hf.GeneralizedGaussian(rho="1/4", per="distance").channel(Facts(grid(3, 3)))
        assert CHAIN not in advice(channel)
        assert CHAIN in advice(hf.GeneralizedGaussian(epsilon=1, delta="1e-6", per="distance").channel(Facts(grid(3, 3))))

    def test_not_for_laws_without_chains(self) -> None:
        assert CHAIN not in advice(hf.RoundedProjection(epsilon="1/4", per="distance").channel(Facts(grid(3, 3))))


def test_an_l2_refusal_says_what_it_is_about() -> None:
    """It spoke of a Laplace draw of a block, and of 1.0e+300 tries."""
    message = refusal(hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"), grid(30, 30))
    assert message.startswith(
        "Laplace noise in l2 is drawn from Laplace draws in l1 of all blocks. A block of 30 x 30 would need more than "
    )
    assert "up to 600 free dimensions; this lattice has 841." in message
    whole = hf.lattice(hf.Universe.product({"a": [str(i) for i in range(3000)]}), [])
    message = refusal(hf.GeneralizedLaplace(epsilon="1/4", norm="l2", per="distance"), whole)
    assert message.startswith("The table of 3,000 cells, taken whole, would need more than 1e+20 tries for one exact Laplace draw in l2, ")
    assert Fraction(1, 4) in [other.epsilon for other in named(message) if isinstance(other, hf.GeneralizedLaplace)]
