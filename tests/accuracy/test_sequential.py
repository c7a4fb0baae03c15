"""Intervals and pictures of the sequential law, against its probabilities by enumeration."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.accuracy.cell_laws import cell_law
from holdfast.accuracy.error_laws import NEAR, WIDER, ErrorLaws, NearSum
from holdfast.accuracy.sequential import sequence_of, sequential_steps
from holdfast.accuracy.short_moves import form_variance
from holdfast.channels import Facts
from holdfast.lattices.shapes import OneSum, Shape
from holdfast.laws import Gaussian, Sequential
from holdfast.publication.plan import Plan
from holdfast.samplers.levels_gaussian import SequentialGaussian
from holdfast.samplers.sequence_gaussian import SequenceGaussian
from tests.samplers.stepped import law_of, outcomes, table_of

CASES = [((4,), "1"), ((4,), "1/5"), ((4,), "3/10"), ((4,), "6/5"), ((3, 3), "1/3"), ((3, 3), "1/2")]


@cache
def probabilities(axes: tuple[int, ...], sigma_squared: str, *, in_groups: bool) -> list[tuple[tuple[int, ...], float]]:
    """(table, its probability under the sequential law): the product of the discrete Gaussians of its cells, or of its groups."""
    sampler = SequentialGaussian(axes, Fraction(sigma_squared), whole=False, in_groups=in_groups)
    return [(table_of(sampler, values), chance) for values, chance in outcomes(law_of(sampler), 1e-10).items()]


def drawn_by(plan: Plan, axes: tuple[int, ...], sigma_squared: str) -> list[tuple[tuple[int, ...], float]]:
    target = plan.drawing.channel.target
    assert isinstance(target, Sequential)
    return probabilities(axes, sigma_squared, in_groups=bool(target.in_groups))


def plan_of(axes: tuple[int, ...], sigma_squared: str) -> Plan:
    names = "ab"[: len(axes)]
    universe = hf.Universe.product({name: [str(i) for i in range(n)] for name, n in zip(names, axes, strict=True)})
    keep: list[Any] = [hf.total()] if len(axes) == 1 else [hf.margin("a"), hf.margin("b")]
    return hf.plan(universe, keep, hf.GeneralizedGaussian(sigma_squared=sigma_squared, law="sequential"))


@pytest.mark.parametrize(("axes", "sigma_squared"), CASES)
def test_intervals_cover_as_often_as_they_say(axes: tuple[int, ...], sigma_squared: str) -> None:
    plan = plan_of(axes, sigma_squared)
    tables = drawn_by(plan, axes, sigma_squared)
    assert math.fsum(p for _, p in tables) == pytest.approx(1, abs=1e-6)
    laws = ErrorLaws(plan.drawing)
    for query in ([1, 0, 0, 0], [1, 1, 0, 0], [3, -1, 0, 0], [1, 0, 0, 1]):
        cells, row = np.flatnonzero(query), np.array([a for a in query if a])
        for level in (0.5, 0.9, 0.95, 0.99):
            found = laws.of(cells, row).reach(1 - level)
            inside = math.fsum(p for z, p in tables if abs(sum(a * z[i] for i, a in zip(cells, row, strict=True))) <= found.reach)
            assert inside >= level - 1e-6, (query, level, found)
            assert found.covered is None or inside >= found.covered - 1e-6
    distance = sequential_steps(plan.drawing.channel.target, next(iter(plan.drawing.channel.shapes()))).total_variation
    assert laws.of(np.array([0]), np.array([1])).reach(0.05).method in (
        ["near lattice law"] if distance <= NEAR else ["simulated", "sub-Gaussian"]
    )


@pytest.mark.parametrize(("axes", "sigma_squared"), CASES)
def test_the_tail_bound_holds(axes: tuple[int, ...], sigma_squared: str) -> None:
    """Where nothing is near: the bound of steps that drift."""
    plan = plan_of(axes, sigma_squared)
    tables = drawn_by(plan, axes, sigma_squared)
    laws = ErrorLaws(plan.drawing)
    cells = np.array([0, 1])
    law = laws.near_sum(laws.parts(cells, np.array([[1, 1]])), None)
    assert isinstance(law, NearSum)
    for level in (0.5, 0.9, 0.99, 0.9999):
        found = law.reach(1 - level)
        assert found.method == "sub-Gaussian"
        assert math.fsum(p for z, p in tables if abs(z[0] + z[1]) <= found.reach) >= level - 1e-6


def level_plan(a: int, b: int, c: int, rho: str) -> Plan:
    universe = hf.Universe.product({name: [str(i) for i in range(n)] for name, n in (("a", a), ("b", b), ("c", c)) if n > 1})
    finest = ("a", *(name for name, n in (("b", b), ("c", c)) if n > 1))
    shares: dict[Any, str] = {"a": "1/3", finest: "2/3"}
    return hf.plan(universe, [hf.total()], hf.GeneralizedGaussian(rho=rho, levels=shares, law="sequential", per="distance"))


@pytest.mark.parametrize("rho", ["1", "3"])
def test_weighted_levels_have_the_tail_bound_too(rho: str) -> None:
    laws = ErrorLaws(level_plan(2, 2, 1, rho).drawing)
    ((shape, _, _),) = laws.parts(np.arange(4), np.ones((1, 4), dtype=np.int64))
    sampler: Any = laws.drawing.choice(shape).noise
    tables = [(table_of(sampler, values), chance) for values, chance in outcomes(law_of(sampler), 1e-10).items()]
    assert math.fsum(p for _, p in tables) == pytest.approx(1, abs=1e-4)
    for query in ([1, 0, 0, 0], [0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 0, 1], [2, -1, 0, 0]):
        law = laws.near_sum(laws.parts(np.arange(4), np.array([query])), None)
        spread = math.fsum(p * sum(a * k for a, k in zip(query, z, strict=True)) ** 2 for z, p in tables)
        assert spread <= (math.sqrt(law.variance) + law.shift) ** 2 + 1e-4
        for t in np.arange(0, 4, 0.25):
            beyond = math.fsum(p for z, p in tables if abs(sum(a * k for a, k in zip(query, z, strict=True))) > t + law.shift)
            assert beyond <= 2 * math.exp(-(t**2) / (2 * law.variance)) + 1e-9


@pytest.mark.parametrize("plan", [level_plan(5, 3, 2, "2"), level_plan(2, 1, 7, "1/2")])
def test_the_innovations_of_a_form_have_its_variance(plan: Plan) -> None:
    """Also where the sampler has the cells in another order."""
    laws = ErrorLaws(plan.drawing)
    size = plan.drawing.channel.facts.lattice.cells
    rng = np.random.default_rng(1)
    for _ in range(5):
        ((shape, _, values),) = laws.parts(np.arange(size), rng.integers(-2, 3, (1, size)))
        sampler, covariances = sequence_of(plan.drawing.channel.target, shape, values)
        assert isinstance(sampler, SequenceGaussian)
        steps = ((m[share > 0], float(sampler.scale) * share[share > 0]) for m, share in sampler.sequence.innovations(covariances))
        found = sum(float((m**2 / v).sum()) for m, v in steps)
        assert found == pytest.approx(form_variance(laws.target, shape, values[0]))  # type: ignore[arg-type]


def test_a_proved_interval_is_taken_where_draws_would_hardly_narrow_it() -> None:
    plan = level_plan(40, 5, 1, "8")
    auto, proved, drawn = (ErrorLaws(plan.drawing, how) for how in ("auto", "proved", "simulated"))
    cell, many, one = np.array([3]), np.arange(0, 200, 2), np.ones(1, dtype=np.int64)
    assert auto.of(cell, one).reach(0.05) == proved.of(cell, one).reach(0.05)
    assert auto.of(cell, one).reach(0.05).method == "sub-Gaussian"
    assert auto.of(cell, one).reach(0.05).reach <= drawn.of(cell, one).reach(0.05).reach * WIDER
    ones = np.ones(len(many), dtype=np.int64)
    found = [laws.of(many, ones).reach(0.05) for laws in (auto, proved, drawn)]
    assert [one.method for one in found] == ["simulated", "sub-Gaussian", "simulated"]
    assert found[0] == found[2] != found[1]
    assert auto.of(many, ones).reach(1e-7).method == "sub-Gaussian", "no number of draws tells of such a level"
    laplace = hf.plan(
        plan.drawing.channel.facts.universe, [hf.margin("a"), hf.margin("b")], hf.GeneralizedLaplace(epsilon=1, per="distance")
    )
    with pytest.raises(hf.errors.InvalidParameter, match="No bound is proved"):
        ErrorLaws(laplace.drawing, "proved").of(np.array([0, 6]), np.array([1, 2]))


def test_an_interval_near_the_lattice_law_has_the_level_less_the_distance() -> None:
    """The two laws differ by too little for coverage to show it."""
    law, alpha = ErrorLaws(plan_of((3, 3), "40000").drawing).of(np.array([0]), np.array([1])), 0.05
    for distance in (0.004, 0.02):
        near, wider = NearSum(law, distance, 2e4, 0.0).reach(alpha), law.reach(alpha - distance)
        assert near.reach == wider.reach > law.reach(alpha).reach
        assert near.covered is not None
        assert wider.covered is not None
        assert near.covered == max(wider.covered - distance, 1 - alpha)
    far = [NearSum(law, 0.03, 2e4, shift).reach(alpha) for shift in (0.0, 100.0)]
    assert [found.method for found in far] == ["sub-Gaussian"] * 2
    assert far[1].reach == far[0].reach + 100, "means of steps may move the sum as far"


def test_narrow_steps_in_a_corner_do_not_widen_the_rest() -> None:
    """At 30 x 30 and sigma^2 = 1/2 the last cells drawn have a price of 0.45 and means that drift; a cell far from them has neither."""
    laws = ErrorLaws(plan_of((30, 30), "1/2").drawing)
    far, near = (laws.near_sum(laws.parts(np.array([cell]), np.array([[1]])), None) for cell in (0, 899))
    steps = sequential_steps(laws.drawing.channel.target, next(iter(laws.drawing.channel.shapes())))
    plain = 0.5 * (29 / 30) ** 2
    assert plain < far.variance < plain * 1.005 < near.variance
    assert far.shift < steps.shift(plain) / 20
    assert far.shift < near.shift <= steps.shift(plain)


@pytest.mark.parametrize(("shape", "sigma_squared"), [(OneSum(4), "1"), (OneSum(4), "6/5")])
def test_pictures_are_off_by_no_more_than_they_say(shape: Shape, sigma_squared: str) -> None:
    law = cell_law(Sequential(Gaussian(Fraction(sigma_squared)), Fraction(1, 10)), shape)
    assert law is not None
    half, axes = len(law.probabilities) // 2, shape.axes
    for k in range(-half, half + 1):
        exact = math.fsum(p for z, p in probabilities(axes, sigma_squared, in_groups=False) for value in z if value == k) / shape.size
        assert abs(exact - law.probabilities[half + k]) <= law.error + 1e-6
    assert cell_law(Sequential(Gaussian(Fraction(1, 10)), Fraction(5)), shape) is None, "draws show it, where nothing is near"


def test_ratios_have_the_same_room() -> None:
    universe = hf.Universe.product({"a": [str(i) for i in range(6)]})
    table = hf.Table(universe, np.array([40, 60, 80, 100, 120, 140]))
    made = [
        hf.release(table, [hf.total()], mechanism, key=hf.NoiseKey.for_tests(1), ledger=None)
        for mechanism in (hf.GeneralizedGaussian(sigma_squared=s, law="sequential") for s in ("4", "3/10"))
    ]
    methods = [one.interval({"a": "0"}, 0.95, over={"a": "1"}).method for one in made]
    assert methods == ["near lattice law", "simulated"]


def test_standard_deviations_of_narrow_steps_are_said_to_be_approximate() -> None:
    """A thousand cells and more are not followed by draws: the continuous form is near, and no bound."""
    universe = hf.Universe.product({"a": [str(i) for i in range(40)], "b": [str(i) for i in range(40)]})
    keep: list[Any] = [hf.margin("a"), hf.margin("b")]
    narrow, wide = (hf.plan(universe, keep, hf.GeneralizedGaussian(sigma_squared=s, law="sequential")) for s in ("1/2", "4"))
    assert narrow.expected_error.basis == "approximate"
    assert narrow.expected_error.median == pytest.approx(math.sqrt(0.5) * 39 / 40, rel=1e-5)
    assert "standard deviation is about 0.689" in str(narrow)
    assert wide.expected_error.basis == "upper bound"
    draws = (
        hf.GeneralizedGaussian(sigma_squared="1/2", law="sequential")
        .law(Facts.of(universe, keep).lattice)
        .sample(40, hf.NoiseKey.for_tests(2))
    )
    assert float((draws.astype(np.float64) ** 2).mean()) ** 0.5 == pytest.approx(0.689, rel=0.03)
