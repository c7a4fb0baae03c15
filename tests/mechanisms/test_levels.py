"""What offices state, refused before, is drawn: real tables and a large one, by Gaussian noise and by rounded projection."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import NoExactSampler
from holdfast.invariants.constraints import Constraint
from holdfast.lattices.shapes import Levels
from holdfast.laws import Rounded
from holdfast.samplers.rounded_projection import RoundedSampler
from holdfast.samplers.table import choose
from holdfast.tables import Table, Universe
from holdfast.testing import ALPHA, check_fit
from holdfast.testing.fit import check_p_value
from tests.sums_of_squares import sum_of_squares_p_value

Case = Callable[[Path], tuple[Universe, list[Constraint]]]


def counties(shared_data: Path) -> tuple[Universe, list[Constraint]]:
    table = Table.from_counts(shared_data / "county_p12_sex_age_2010.csv", cells=["county_fips", "sex", "age"], count="total")
    return table.universe, [hf.margin("county_fips"), hf.margin("sex")]


def california(shared_data: Path) -> tuple[Universe, list[Constraint]]:
    table = Table.from_counts(shared_data / "ca_county_p12_das_demo_20220316.csv", cells=["county_fips", "sex", "age"], count="census")
    return table.universe, [hf.margin("county_fips"), hf.subset("age", ["85+"])]


def flights(shared_data: Path) -> tuple[Universe, list[Constraint]]:
    table = Table.from_counts(shared_data / "nycflights13_dest_hour_carrier.csv", cells=["dest", "hour", "carrier"], count="flights_2013")
    return table.universe, [hf.margin("dest"), hf.margin("hour"), hf.margin("carrier")]


def hundred_cubed(_: Path) -> tuple[Universe, list[Constraint]]:
    universe = Universe.product({column: [str(i) for i in range(100)] for column in "abc"})
    return universe, [hf.margin("a"), hf.margin("b"), hf.margin("c")]


@pytest.mark.ordinary("counties", "california", "flights")
@pytest.mark.parametrize(
    ("case", "cells", "rank"),
    [(counties, 144_578, 3143 + 1), (california, 2668, 58 + 1), (flights, 6720, 20 + 24 + 14 - 2), (hundred_cubed, 10**6, 298)],
)
def test_refused_before_drawn_now(case: Case, cells: int, rank: int, shared_data: Path) -> None:
    """Every kept total is zero as an integer; the spread of all cells is what the law says."""
    lattice = hf.lattice(*case(shared_data))
    assert (lattice.cells, lattice.rank) == (cells, rank)
    assert "general" not in lattice.blocks.kinds()
    for mechanism, spread in (
        (hf.GeneralizedGaussian(sigma_squared=20), 20.0),
        (hf.RoundedProjection(epsilon="1/2", per="distance"), 2 * np.exp(-0.5) / np.expm1(-0.5) ** 2),
    ):
        law = mechanism.law(lattice)
        assert law.guarantee.status == "exact"
        z = law.sample(1, hf.NoiseKey.for_tests(case.__name__))[0]
        assert lattice.contains(z)
        if isinstance(mechanism, hf.GeneralizedGaussian):
            _check_spread(case.__name__, float((z.astype(np.float64) ** 2).sum()), lattice.dimension)
        diagonal = law.covariance().diagonal()
        assert diagonal.mean() == pytest.approx(spread * lattice.dimension / lattice.cells, rel=0.12)
    for _, shape, _ in lattice.blocks.used_shapes():
        assert isinstance(shape, Levels)
        _check_rounding(case.__name__, shape)


def _check_spread(name: str, total: float, dimension: int) -> None:
    """The sum of squares of Gaussian noise of variance 20; 30 % less or more would be seen on the smallest of these tables."""
    law = 20.0 * dimension, 400.0 * dimension, 20.0
    check_p_value(sum_of_squares_p_value(total, *law), name=f"{name}: spread of Gaussian noise", n=dimension, statistic=total)
    for wrong in (0.7, 1.3):
        assert sum_of_squares_p_value(wrong * total, *law) < ALPHA


def _check_rounding(name: str, shape: Levels) -> None:
    """Noise on cells of the stated law, and z within reach of its projection u, without bias along u: so z has the spread of u and no more.

    z - u is a sum of Gram-Schmidt vectors, each times a number of mean zero in an interval of length one given those before. Along u it is
    thus beyond t with probability at most 2 exp(-2 t^2 / S), S the sum of squares of u's products with them (Hoeffding; Azuma).
    """
    sampler, words = choose(shape, Rounded(Fraction(1, 2))).noise, hf.NoiseKey.for_tests("rounding").stream(name)
    assert isinstance(sampler, RoundedSampler)
    noise = sampler.law.draw(shape.size, words)
    check_fit(noise, sampler.law.pmf, name=f"{name}: noise before rounding")
    u = shape.project(noise[None, :].astype(np.float64))
    moved = sampler.round(noise[None, :], words) - u
    assert (moved**2).sum() <= shape.rounding_square()
    along, squares = abs(float((u * moved).sum())), float((shape.gram_schmidt_products(u) ** 2).sum())
    bound = lambda t: min(1.0, 2 * np.exp(-2 * t**2 / squares))  # noqa: E731
    check_p_value(bound(along), name=f"{name}: rounding along the projection", n=shape.size, statistic=along)
    assert bound(0.05 * float((u**2).sum())) < ALPHA  # noise 5 % too wide or too narrow would be seen


def test_a_refusal_names_the_two_constraints_that_do_not_fit() -> None:
    ages = ["0-17", "18-64", "65+"]
    universe = Universe.product({"county": [str(i) for i in range(40)], "sex": ["F", "M", "X"], "age": ages, "origin": list("abcdef")})
    keep: list[Constraint] = [
        hf.areas("age", {"old": ["65+"], "rest": ["0-17", "18-64"]}, by=["county"]),
        hf.areas("age", {"adult": ["18-64", "65+"], "rest": ["0-17"]}, by=["sex"]),
        hf.margin("origin"),
    ]
    lattice = hf.lattice(universe, keep)
    with pytest.raises(NoExactSampler, match=r"areas\(age: 2 sets\) by county and areas\(age: 2 sets\) by sex do not fit together"):
        hf.GeneralizedLaplace(epsilon=1, per="distance").law(lattice).sample(1)
