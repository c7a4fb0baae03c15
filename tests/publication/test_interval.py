"""Intervals for true numbers, and simulated errors, from the public law."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.publication import interval as module

UNIVERSE = hf.Universe.product({"town": ["a", "b"], "sex": ["F", "M"]})
TABLE = hf.Table(UNIVERSE, np.array([5, 3, 2, 9]))
KEY = "intervals"


def answered(mechanism: Any, values: Any = (0.5, 0.25, 0.25), rows: Any = (), **others: Any) -> Any:
    given = {"invariants": rows, "sensitivity": "1", "mechanism": mechanism, "places": 4, "on_grid": True, "release_id": "a"}
    return hf.answer(list(values), **{"key": hf.NoiseKey.for_tests(KEY), **given, **others})


class TestEnds:
    """[theory T112], on laws that are known in full. The draws come from a public key: the ends are the same in every run."""

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
    def test_a_free_answer_with_laplace_noise(self, level: float) -> None:
        found = answered(hf.ProjectedLaplace(1)).interval(1, level)
        law, middle = hf.DiscreteLaplace(scale=16), (found.low + found.high) / 2
        steps = int((found.high - middle) * 16)
        covered = law.pmf(0) + 2 * sum(law.pmf(k) for k in range(1, steps + 1))
        assert covered >= level
        # The rank asks for 4.9 standard deviations of a share of 20,000 draws more than the level, and the draws may add as many again.
        assert covered - 2 * law.pmf(steps) < level + 2 * 4.9 * (level * (1 - level) / 20_000) ** 0.5
        assert (found.level, found.doubt) == (level, 1e-6)

    def test_two_counts_under_one_total(self) -> None:
        release = hf.release(TABLE, [hf.margin("town")], hf.GeneralizedGaussian(rho="1/20"), key=hf.NoiseKey.for_tests(KEY))
        found = release.interval({"town": "a", "sex": "F"}, 0.9)
        weights = np.exp(-2 * np.arange(-80, 81) ** 2 / 20.0)  # z = (k, -k), sigma_squared = 10
        reach = (found.high - found.low) // 2
        covered = weights[80 - reach : 81 + reach].sum() / weights.sum()
        assert 0.9 <= covered <= 0.99  # few whole numbers lie inside
        assert weights[81 - reach : 80 + reach].sum() / weights.sum() < 0.92  # one step less would not do

    def test_what_is_kept_is_exact(self) -> None:
        release = answered(hf.ProjectedLaplace(1), rows=[[1, 1, 1]])
        found = release.interval([1, 1, 1], 0.95)
        assert found.low == found.high == 1
        assert release.interval([2, 1, 1], 0.95).low < 1 + Fraction(release.table.values[0])

    @pytest.mark.parametrize(
        ("values", "others"),
        [
            (["0.3", "0.4", "0.3"], {"mechanism": hf.ProjectedGaussian(rho=4000), "places": 0, "sensitivity": 8}),
            (["1/3", "1/3", "1/5"], {"mechanism": hf.ProjectedLaplace(30), "places": 3}),
        ],
        ids=["coarse", "moved"],
    )
    @pytest.mark.filterwarnings("ignore:1 invariant has a value")
    def test_answers_that_were_rounded_lie_in_their_intervals(self, values: list[str], others: dict[str, Any]) -> None:
        """Noise smaller than a step: what is left of the error is the rounding, the same in every release."""
        release = answered(rows=[[1, 1, 1]], values=values, **{"on_grid": False, **others})
        true = [Fraction(value) for value in values]
        for query in ([1, 0, 0], [0, 1, 0], [1, 1, 1]):
            found = release.interval(query, 0.95)
            assert found.low <= sum(w * value for w, value in zip(query, true, strict=True)) <= found.high
        assert (found.low == found.high) == (release.table.grid.moved == 0)  # of the invariant

    def test_half_of_all_releases_cover_an_answer_that_was_rounded(self) -> None:
        """By the noise alone none of them did. Of 40 fewer than 3 would cover it with a probability of 821 / 2^40."""
        covered = 0
        for number in range(40):
            release = answered(
                hf.ProjectedLaplace(30),
                ["0.55", "0.47", "-0.02"],
                [[1, 1, 1]],
                places=3,
                on_grid=False,
                key=hf.NoiseKey.for_tests(number),
            )
            found = release.interval(0, 0.5)
            covered += found.low <= Fraction("0.55") <= found.high
        assert covered >= 3

    def test_ranks_against_binomial_sums_in_fractions(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "DRAWS", 60)
        for level in (Fraction(1, 2), Fraction(3, 4)):
            tails = [sum(math.comb(60, k) * level**k * (1 - level) ** (60 - k) for k in range(r, 61)) for r in range(1, 61)]
            assert module._rank(float(level)) == 1 + next(i for i, tail in enumerate(tails) if tail <= Fraction(1, 10**6))

    def test_readers_of_a_folder_get_the_same(self, tmp_path: Path) -> None:
        release = answered(hf.ProjectedGaussian(rho=1), rows=[[1, 1, 1]])
        folder = release.save(tmp_path / "out")
        assert hf.interval(folder, 0, 0.95) == release.interval(0, 0.95) == hf.interval(release, 0, 0.95)


class TestRefused:
    @pytest.mark.parametrize("level", [0, 1, -0.5, "0.9", 1 - 1e-9])
    def test_levels(self, level: Any) -> None:
        with pytest.raises(InvalidParameter, match="level"):
            answered(hf.ProjectedLaplace(1)).interval(0, level)

    def test_noise_that_depends_on_the_counts(self) -> None:
        release = hf.release(TABLE, [hf.total()], hf.Conditional(epsilon=1))
        with pytest.raises(InvalidParameter, match=r"holdfast\.posterior"):
            release.interval(0, 0.9)

    def test_too_many_cells(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(module, "MOST_CELLS", 1000)
        with pytest.raises(RequestTooLarge):
            answered(hf.ProjectedLaplace(1), rows=[[1, 1, 1]]).interval(0, 0.9)

    def test_priors_are_of_counts(self) -> None:
        release = answered(hf.ProjectedLaplace(1))
        for ask in (lambda: hf.posterior(release, hf.priors.Flat(), 0), lambda: hf.simulate(release, 3, hf.priors.Flat())):
            with pytest.raises(InvalidParameter, match="priors are of counts"):
                ask()


class TestSimulated:
    def test_errors_of_answers_are_in_values_and_keep_the_invariants(self) -> None:
        release = answered(hf.ProjectedLaplace(1), rows=[[1, 1, 1]])
        made = hf.simulate(release, 50, key=hf.NoiseKey.for_tests("simulated"))
        assert made.kind == "errors"
        assert made.values.shape == (50, 3)
        assert not made.values.sum(axis=1).any()
        assert np.array_equal(made.values * 16, made.tables)

    def test_errors_of_counts_are_whole(self) -> None:
        made = hf.simulate(hf.release(TABLE, [], hf.GeneralizedLaplace(1)), 2)
        assert np.array_equal(made.values, made.tables)
