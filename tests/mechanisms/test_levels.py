"""What offices state, refused before, is drawn: real tables and a large one, by Gaussian noise and by rounded projection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import NoExactSampler
from holdfast.invariants.statements import Statement
from holdfast.tables import Table, Universe

Case = Callable[[Path], tuple[Universe, list[Statement]]]


def counties(shared_data: Path) -> tuple[Universe, list[Statement]]:
    table = Table.from_counts(shared_data / "county_p12_sex_age_2010.csv", cells=["county_fips", "sex", "age"], count="total")
    return table.universe, [hf.margin("county_fips"), hf.margin("sex")]


def california(shared_data: Path) -> tuple[Universe, list[Statement]]:
    table = Table.from_counts(shared_data / "ca_county_p12_das_demo_20220316.csv", cells=["county_fips", "sex", "age"], count="census")
    return table.universe, [hf.margin("county_fips"), hf.subset("age", ["85+"])]


def flights(shared_data: Path) -> tuple[Universe, list[Statement]]:
    table = Table.from_counts(shared_data / "nycflights13_dest_hour_carrier.csv", cells=["dest", "hour", "carrier"], count="flights_2013")
    return table.universe, [hf.margin("dest"), hf.margin("hour"), hf.margin("carrier")]


def hundred_cubed(_: Path) -> tuple[Universe, list[Statement]]:
    universe = Universe.product({column: [str(i) for i in range(100)] for column in "abc"})
    return universe, [hf.margin("a"), hf.margin("b"), hf.margin("c")]


@pytest.mark.parametrize(
    ("case", "cells", "rank"),
    [(counties, 144_578, 3143 + 1), (california, 2668, 58 + 1), (flights, 6720, 20 + 24 + 14 - 2), (hundred_cubed, 10**6, 298)],
)
def test_refused_before_drawn_now(case: Case, cells: int, rank: int, shared_data: Path) -> None:
    """Every kept total is zero as an integer; the spread of all cells is what the law says, within five standard errors."""
    lattice = hf.lattice(*case(shared_data))
    assert (lattice.cells, lattice.rank) == (cells, rank)
    assert "general" not in lattice.blocks.kinds()
    for mechanism, spread in (
        (hf.GeneralizedGaussian(sigma_squared=20), 20.0),
        (hf.RoundedProjection("1/2"), 2 * np.exp(-0.5) / np.expm1(-0.5) ** 2),
    ):
        law = mechanism.law(lattice)
        assert law.guarantee.status == "exact"
        z = law.sample(1, hf.NoiseKey.for_tests(case.__name__))[0]
        assert lattice.contains(z)
        share = lattice.dimension / lattice.cells
        low, high = spread * share, (spread + (0.5 if mechanism.name == "rounded-projection" else 0)) * share
        error = 5 * spread * np.sqrt(6 / cells)  # the fourth moment of a Laplace cell is 6 times the square of its variance
        assert low - error < (z.astype(float) ** 2).mean() < high + error
        diagonal = law.covariance().diagonal()
        assert diagonal.mean() == pytest.approx(spread * share, rel=0.12)


def test_a_refusal_names_the_two_statements_that_do_not_fit() -> None:
    ages = ["0-17", "18-64", "65+"]
    universe = Universe.product({"county": [str(i) for i in range(40)], "sex": ["F", "M", "X"], "age": ages, "origin": list("abcdef")})
    keep: list[Statement] = [
        hf.areas("age", {"old": ["65+"], "rest": ["0-17", "18-64"]}, by=["county"]),
        hf.areas("age", {"adult": ["18-64", "65+"], "rest": ["0-17"]}, by=["sex"]),
        hf.margin("origin"),
    ]
    lattice = hf.lattice(universe, keep)
    with pytest.raises(NoExactSampler, match=r"areas\(age: 2 sets\) by county and areas\(age: 2 sets\) by sex do not fit together"):
        hf.GeneralizedLaplace(1).law(lattice).sample(1)
