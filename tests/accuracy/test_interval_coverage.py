"""How often intervals cover the truth, over 1,000 releases of one table: as often as computed, and never less than said, but for chance.

What was computed is `covered`, the law of one sum, where there is one; for ratios and for many sums at once it is the share of 200,000
simulated errors that are within reach. All checks count towards the suite's one failure budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, hypergeom

import holdfast as hf
from holdfast.accuracy.error_laws import ErrorLaws, rank
from holdfast.accuracy.interval_ratio import gaussian_reach
from holdfast.testing.fit import ALPHA, check_p_value

RELEASES, DRAWS, LEVEL = 1000, 200_000, 0.95
UNIVERSE = hf.Universe.listed({"state": ["1"] * 6 + ["2"] * 6, "county": list("aabbccddeeff"), "sex": ["F", "M"] * 6})
TRUE = np.array([0, 3, 12, 40, 7, 1, 100, 90, 0, 0, 33, 21])
SHARES = hf.GeneralizedGaussian(rho="1/8", levels={"state": "1/4", "county": "3/4"}, per="distance")
CASES = {
    "gaussian": (hf.GeneralizedGaussian(sigma_squared=4), [hf.margin("state")]),
    "levels": (SHARES, [hf.total()]),
    "laplace": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("state")]),
    "grid": (hf.GeneralizedLaplace(epsilon="1/2", per="distance"), [hf.margin("county"), hf.margin("state", "sex")]),
}
SUMS: dict[str, dict[str, Any]] = {
    "leaf": {"query": 3},
    "empty leaf, not below 0": {"query": 0, "nonnegative": True},
    "county": {"query": {"county": "b"}},
    "difference": {"query": {"county": "b"}, "minus": {"county": "c"}},
    "across states": {"query": {"county": "b"}, "minus": {"county": "f"}},
    "women": {"query": "sex = 'F'"},
}
RATIOS: dict[str, dict[str, Any]] = {
    "ratio": {"query": {"county": "d"}, "over": {"county": "b"}},
    "percentage": {"query": 6, "percent_of": {"county": "d"}},
}
SET = [1, 2, 3, {"county": "d"}, "sex = 'F'"]


def sum_of(query: Any, values: Any = TRUE) -> Any:
    """Of a query as above, over rows of `values`."""
    chosen = {int: lambda: np.arange(12) == query, dict: lambda: in_county(query), str: lambda: np.arange(12) % 2 == 0}[type(query)]()
    return values @ chosen.astype(np.int64)


def in_county(query: dict[str, str]) -> Any:
    return np.array(list("aabbccddeeff")) == query["county"]


def truth(asked: dict[str, Any]) -> float:
    if "minus" in asked:
        return float(sum_of(asked["query"]) - sum_of(asked["minus"]))
    below = asked.get("over", asked.get("percent_of"))
    return (
        float(sum_of(asked["query"]))
        if below is None
        else (100 if "percent_of" in asked else 1) * float(sum_of(asked["query"]) / sum_of(below))
    )


def two_sided(covered: int, share: float, more: float) -> float:
    """p-value of so many of RELEASES, where each covers with a probability from `share` to `more`."""
    return float(min(1.0, 2 * min(binom.cdf(covered, RELEASES, share), binom.sf(covered - 1, RELEASES, more))))


def against_draws(covered: int, within: int) -> float:
    """p-value of so many of RELEASES beside so many of DRAWS: Fisher's exact test."""
    law = hypergeom(RELEASES + DRAWS, covered + within, RELEASES)
    return float(min(1.0, 2 * min(law.cdf(covered), law.sf(covered - 1))))


def each_release(case: str, look: Callable[[Any], None]) -> None:
    mechanism, keep = CASES[case]
    table = hf.Table(UNIVERSE, TRUE)
    for number in range(RELEASES):
        look(hf.release(table, keep, mechanism, key=hf.NoiseKey.for_tests(f"coverage {number}")))


@pytest.mark.long
@pytest.mark.parametrize("case", ["gaussian", "levels", "laplace"])
def test_coverage_over_1000_releases(case: str) -> None:
    covered: Counter[str] = Counter()
    shorter: Counter[str] = Counter()
    computed: dict[str, float] = {}

    def look(release: Any) -> None:
        ratios = {} if case == "laplace" else RATIOS  # of Laplace noise they are simulated: see below
        for name, asked in {**SUMS, **ratios}.items():
            found, true = release.interval(level=LEVEL, **asked), truth(asked)
            covered[name] += found.low <= true <= found.high
            shorter[name] += found.low + 2 <= true <= found.high - 2
            if found.covered is not None:
                computed[name] = found.covered
        together = release.intervals(SET, LEVEL)
        covered["together"] += all(one.low <= sum_of(query) <= one.high for query, one in zip(SET, together, strict=True))

    each_release(case, look)
    drawn = within_reach(case)
    for name, number in covered.items():
        label = f"{case}: {name} covers"
        below = float(binom.cdf(number, RELEASES, LEVEL))
        if name in drawn:
            p_value = against_draws(number, drawn[name])
        else:  # bounds of tails are above them by 3 % at most
            share = computed[name]
            p_value = two_sided(number, share, share + 0.03 * (1 - share))
        check_p_value(min(p_value, 2 * below), name=label, n=RELEASES, statistic=number)
    # Power: intervals of leaves that are shorter by two whole numbers at each end would be found out.
    assert two_sided(shorter["leaf"], computed["leaf"], 1.0) < ALPHA


def within_reach(case: str) -> dict[str, int]:
    """Of DRAWS errors of the public law, how many are within reach of a ratio, and of all sums at once."""
    mechanism, keep = CASES[case]
    release = hf.release(hf.Table(UNIVERSE, TRUE), keep, mechanism, key=hf.NoiseKey.for_tests("reach"))
    errors = release.simulate(DRAWS, key=hf.NoiseKey.for_tests("errors")).tables
    out: dict[str, int] = {}
    together = release.intervals(SET, LEVEL)
    reaches = [one.high - one.published for one in together]
    out["together"] = int(
        np.logical_and.reduce([np.abs(sum_of(query, errors)) <= reach for query, reach in zip(SET, reaches, strict=True)]).sum()
    )
    if case == "laplace":
        return out
    for name, asked in RATIOS.items():
        above, below = asked["query"], asked.get("over", asked.get("percent_of"))
        laws = ErrorLaws(release.plan.drawing)
        rows = np.stack([sum_of(query, np.eye(12, dtype=np.int64)) for query in (above, below)])
        cells = np.flatnonzero(rows.any(axis=0))
        parts = laws.parts(cells, rows[:, cells])
        target: Any = release.plan.drawing.channel.target
        reach, _ = gaussian_reach(target, parts, 1 - LEVEL)
        t = float(sum_of(above) / sum_of(below))
        out[name] = int((np.abs(sum_of(above, errors) - t * sum_of(below, errors)) <= reach(t)).sum())
    return out


@pytest.mark.long
@pytest.mark.parametrize("case", ["laplace", "grid"])
def test_coverage_of_simulated_intervals(case: str) -> None:
    """Their reach is the same for every release, so that errors tell: of a leaf, a ratio, several sums together."""
    mechanism, keep = CASES[case]
    release = hf.release(hf.Table(UNIVERSE, TRUE), keep, mechanism, key=hf.NoiseKey.for_tests("simulated"))
    errors = release.simulate(RELEASES, key=hf.NoiseKey.for_tests("1000 errors")).tables
    long = release.simulate(DRAWS, key=hf.NoiseKey.for_tests("errors")).tables
    leaf = release.interval(3, LEVEL, method="simulated")
    several = release.intervals([1, 2, 3], LEVEL, method="simulated")
    assert (leaf.method, several.joint) == ("simulated", "simulated")

    laws, t = ErrorLaws(release.plan.drawing, "simulated"), 3.0
    a, b = laws.draws(laws.parts(np.array([2, 6]), np.eye(2, dtype=np.int64)))
    reach = np.sort(np.abs(a - t * b))[rank(LEVEL, len(a)) - 1]

    def inside(drawn: Any) -> dict[str, int]:
        return {
            "leaf": int((np.abs(drawn[:, 3]) <= leaf.high - leaf.published).sum()),
            "ratio": int((np.abs(drawn[:, 2] - t * drawn[:, 6]) <= reach).sum()),
            "together": int((np.abs(drawn[:, 1:4]) <= np.array([one.high - one.published for one in several])).all(axis=1).sum()),
        }

    expected = inside(long)
    for name, number in inside(errors).items():
        p_value = min(against_draws(number, expected[name]), 2 * float(binom.cdf(number, RELEASES, LEVEL)))
        check_p_value(p_value, name=f"{case}: simulated {name} covers", n=RELEASES, statistic=number)
        assert binom.cdf(int(0.88 * RELEASES), RELEASES, expected[name] / DRAWS) < ALPHA  # power: 88 % would be found out
