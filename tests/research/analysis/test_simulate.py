"""Simulated releases: what is simulated, its law by listing, and the totals that every one of them keeps."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import research
from holdfast.errors import InvalidParameter
from holdfast.research.analysis.priors import Flat, Poisson
from holdfast.testing.fit import check_fit, check_fit_categories, fits
from tests.research.analysis import brute
from tests.research.analysis.test_posterior import fraction_prior

PAIR = hf.Universe.product({"sex": ["F", "M"]})
TOWNS = hf.Universe.product({"town": ["a", "b", "c"], "sex": ["F", "M"]})
DRAWS = 20_000


def released(mechanism, keep, universe=PAIR, counts=(3, 1)):
    return hf.release(hf.Table(universe, np.array(counts)), keep, mechanism, key=hf.NoiseKey.for_tests("simulated"))


class TestErrors:
    def test_are_draws_of_the_public_law(self) -> None:
        """Two cells: d and -d with P[d] proportional to exp(-2 epsilon |d|); at another epsilon they do not fit."""
        made = research.simulate(
            released(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), [hf.total()]), DRAWS, key=hf.NoiseKey.for_tests(1)
        )
        assert made.kind == "errors"
        assert (made.tables.sum(axis=1) == 0).all()
        check_fit(made.tables[:, 0], hf.DiscreteLaplace("2").pmf, name="simulated errors")
        assert not fits(made.tables[:, 0], hf.DiscreteLaplace("11/5").pmf)

    @pytest.mark.parametrize(
        "mechanism", [hf.GeneralizedGaussian(sigma_squared=4), hf.RoundedProjection(epsilon=1, per="distance")], ids=["gaussian", "rounded"]
    )
    def test_change_no_kept_total(self, mechanism) -> None:
        made = research.simulate(released(mechanism, [hf.margin("town")], TOWNS, range(6)), 50)
        assert not made.tables.reshape(50, 3, 2).sum(axis=2).any()
        assert made.tables.any()

    def test_equal_keys_give_equal_draws_and_fresh_ones_do_not(self, tmp_path: Path) -> None:
        """From the release and from its folder."""
        release = released(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), [hf.total()])
        folder = release.save(tmp_path / "out")
        one, other = (research.simulate(source, 100, key=hf.NoiseKey.for_tests(5)) for source in (release, folder))
        assert one.tables.tolist() == other.tables.tolist()
        assert research.simulate(release, 100).tables.tolist() != one.tables.tolist()


class TestPosteriorPredictive:
    def test_law_by_listing(self) -> None:
        """P[y'] = sum over x of P[x | y] P[y' | x]; the law without the prior does not fit."""
        release = released(hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.total()])
        y = release.table.counts.tolist()
        made = research.simulate(release, DRAWS, Poisson(2.0), key=hf.NoiseKey.for_tests(2))
        assert made.kind == "posterior predictive"
        assert made.effective_draws is None
        assert (made.tables.sum(axis=1) == sum(y)).all()
        total = sum(y)
        tables = [(k, total - k) for k in range(total + 1)]
        belief = brute.posterior_of_sum(tables, y, brute.laplace(Fraction(1, 2)), fraction_prior(Poisson(2.0), 2), [1, 0])
        noise = hf.DiscreteLaplace("1")
        law = {k: sum(p * noise.pmf(k - x) for x, p in belief.items()) for k in range(-40, total + 41)}
        check_fit_categories(Counter(made.tables[:, 0].tolist()), law, name="posterior predictive")
        assert not fits(made.tables[:, 0], lambda k: noise.pmf(k - y[0]))

    @pytest.mark.parametrize(
        "mechanism",
        [
            hf.GeneralizedLaplace(epsilon="1/2", per="distance"),
            hf.GeneralizedGaussian(sigma_squared=4),
            hf.RoundedProjection(epsilon=1, per="distance"),
        ],
        ids=["laplace", "gaussian", "rounded"],
    )
    def test_keeps_the_published_totals(self, mechanism) -> None:
        release = released(mechanism, [hf.margin("town"), hf.margin("sex")], TOWNS, (4, 2, 3, 5, 1, 6))
        made = research.simulate(release, 40, Flat(), key=hf.NoiseKey.for_tests(3))
        tables = made.tables.reshape(40, 3, 2)
        truth = release.table.counts.reshape(3, 2)
        assert (tables.sum(axis=2) == truth.sum(axis=1)).all()
        assert (tables.sum(axis=1) == truth.sum(axis=0)).all()
        assert (made.effective_draws is None) == (mechanism.name != "rounded-projection")


@pytest.mark.parametrize("n", [-1, 1.5, "3"])
def test_bad_numbers(n) -> None:
    with pytest.raises((InvalidParameter, TypeError)):
        research.simulate(released(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), [hf.total()]), n)


def test_repr() -> None:
    made = research.simulate(released(hf.GeneralizedLaplace(epsilon="1/4", per="distance"), [hf.total()]), 3)
    assert repr(made) == "Simulated(3 tables of 2 cells: errors)"
