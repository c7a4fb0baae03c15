"""73,057 census tracts, state totals kept, equal shares for county and tract: what noise at two levels buys, and that it is unbiased."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import holdfast as hf
from holdfast.testing.fit import ALPHA, check_p_value
from tests.sums_of_squares import sum_of_squares_p_value

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RHO = Fraction(1, 400)
KEEP = [hf.margin("state_fips")]
SHARES = {"county_fips": "1/2", "tract_geoid": "1/2"}
DRAWS = 20


class Tracts:
    """The table, the draws, and variances of counties by the formulas for one tree, with nothing of the mechanism."""

    def __init__(self, source: Path) -> None:
        self.table = hf.Table.from_counts(source, cells=["state_fips", "county_fips", "tract_geoid"], count="pop2010", public=True)
        universe = self.table.universe
        self.county, codes = universe.group(["county_fips"])
        self.state = universe.group(["state_fips"])[0]
        self.state_of_county = np.zeros(len(codes), dtype=np.int64)
        self.state_of_county[self.county] = self.state
        self.tracts = np.bincount(self.county).astype(np.float64)
        self.mechanism = hf.GeneralizedGaussian(rho=RHO, levels=SHARES, per="distance")

    def given_states(self, spread: Floats) -> Floats:
        """Variances of counties that are independent with variance `spread`, given that those of a state add up to zero."""
        return spread * (1 - spread / np.bincount(self.state_of_county, spread)[self.state_of_county])

    @property
    def spread(self) -> Floats:
        """Of a county alone: its own measurement and the sum of its tracts', each of weight 2 rho / 2."""
        weight = float(RHO)
        return 1 / (weight + weight / self.tracts)

    def noise(self) -> Ints:
        law = self.mechanism.law(hf.lattice(self.table.universe, KEEP))
        return np.asarray(law.sample(DRAWS, hf.NoiseKey.for_tests("tracts")))

    def by_county(self, noise: Ints) -> Floats:
        return np.array([np.bincount(self.county, one) for one in noise])


@pytest.fixture(scope="module")
def tracts(shared_data: Path) -> Tracts:
    return Tracts(shared_data / "tract_pop_2010.csv")


@pytest.fixture(scope="module")
def noise(tracts: Tracts) -> Ints:
    return tracts.noise()


def test_the_plan_says_the_closed_form(tracts: Tracts) -> None:
    rows = {row.level: row for row in hf.plan(tracts.table.universe, KEEP, tracts.mechanism).expected_error.levels}
    assert len(tracts.table) == rows["tract_geoid"].units == 73_057
    assert rows["state_fips"].largest == 0
    deviations = np.sort(np.sqrt(tracts.given_states(tracts.spread)))
    found = rows["county_fips"]
    expected = [deviations[0], deviations[len(deviations) // 2], deviations[-1]]
    assert [found.smallest, found.median, found.largest] == pytest.approx(expected, rel=1e-12, abs=1e-6)


def test_state_totals_are_exact_in_every_draw(tracts: Tracts, noise: Ints) -> None:
    assert noise.any()
    assert not any(np.bincount(tracts.state, one).any() for one in noise)


def p_value_of_counties(tracts: Tracts, noise: Ints, times: float = 1.0) -> tuple[float, float]:
    """(the sum of squares of all counties over all draws, how probable it is). C is a diagonal matrix less a positive one, so that tr C^2
    and |C| are at most those of the diagonal. The variance of counties is above 100: that noise is discrete changes less than exp(-1000).
    """
    spread = tracts.spread
    total = times * float((tracts.by_county(noise) ** 2).sum())
    mean = DRAWS * float(tracts.given_states(spread).sum())
    return total, sum_of_squares_p_value(total, mean, DRAWS * float((spread**2).sum()), float(spread.max()))


def test_counties_have_the_error_of_the_closed_form(tracts: Tracts, noise: Ints) -> None:
    """A variance a tenth off is seen."""
    total, p_value = p_value_of_counties(tracts, noise)
    check_p_value(p_value, name="tracts: counties", n=DRAWS, statistic=total)
    for wrong in (0.9, 1.1):
        assert p_value_of_counties(tracts, noise, wrong)[1] < ALPHA


def test_noise_in_the_tracts_alone_is_three_times_worse_and_would_be_noticed(tracts: Tracts) -> None:
    """Of the same rho: tracts with variance 1 / (2 rho), and counties that are sums of them."""
    alone = tracts.given_states(tracts.tracts / (2 * float(RHO)))
    both = tracts.given_states(tracts.spread)
    assert float(alone.sum()) >= 9 * float(both.sum())
    leaves = hf.GeneralizedGaussian(rho=RHO, per="distance")
    plan = hf.plan(tracts.table.universe, KEEP, leaves)
    assert plan.covariance is not None
    county = int(np.argmax(tracts.tracts))
    assert plan.covariance.of((tracts.county == county).astype(np.float64)) == pytest.approx(float(alone[county]), rel=1e-9)
    law = leaves.law(hf.lattice(tracts.table.universe, KEEP))
    drawn = np.asarray(law.sample(DRAWS, hf.NoiseKey.for_tests("tracts alone")))
    assert p_value_of_counties(tracts, drawn)[1] < ALPHA


def test_empty_tracts_are_not_biased(tracts: Tracts, noise: Ints) -> None:
    """The sum over all empty tracts and draws against its Gaussian law. Setting negative counts to zero, as is often done, is noticed."""
    empty = tracts.table.counts == 0
    plan = hf.plan(tracts.table.universe, KEEP, tracts.mechanism)
    assert plan.covariance is not None
    deviation = math.sqrt(DRAWS * plan.covariance.of(empty.astype(np.float64)))

    def p_value(drawn: Ints) -> float:
        return math.erfc(abs(int(drawn.sum())) / deviation / math.sqrt(2))

    assert np.count_nonzero(empty) > 500
    check_p_value(p_value(noise[:, empty]), name="tracts: empty ones", n=DRAWS, statistic=float(noise[:, empty].sum()))
    assert p_value(np.maximum(noise[:, empty], 0)) < ALPHA
