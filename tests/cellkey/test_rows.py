"""Rows of small counts: constraints, optimality, a brute-force optimiser beside them, and what is refused."""

from __future__ import annotations

import warnings
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from holdfast.cellkey import design_rows, max_entropy
from holdfast.cellkey.entropy import largest_entropy
from holdfast.cellkey.rows import SmallCountRow, row_constraints, row_noise
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import Enclosure
from tests.examples import examples


def within(bounds: Enclosure, value: Fraction, distance: str = "1e-12") -> bool:
    return bounds.lower >= value - Fraction(distance) and bounds.upper <= value + Fraction(distance)


def entropy(p: np.ndarray) -> float:
    return float(-np.sum(p * np.log(np.maximum(p, 1e-300))))


def brute_force(noise: list[int], V: Fraction, stay: Fraction | None, monotone: bool) -> np.ndarray:
    """Sequential quadratic programming on the probabilities themselves: no dual, no multipliers."""
    v = np.array(noise, float)
    equal = [{"type": "eq", "fun": lambda p: p.sum() - 1}, {"type": "eq", "fun": lambda p: p @ v}]
    at_least = [{"type": "ineq", "fun": lambda p: float(V) - p @ v**2}]
    if stay is not None and 0 in noise:
        at_least.append({"type": "ineq", "fun": lambda p: p[noise.index(0)] - float(stay)})
    if monotone:
        rising = [k for k in range(len(noise) - 1) if noise[k + 1] <= 0]
        at_least += [{"type": "ineq", "fun": lambda p, k=k: p[k + 1] - p[k]} for k in rising]
    start = np.full(len(noise), 1 / len(noise))
    found = minimize(
        lambda p: -entropy(p),
        start,
        jac=lambda p: np.log(np.maximum(p, 1e-300)) + 1,
        bounds=[(1e-12, 1)] * len(noise),
        constraints=equal + at_least,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-13},
    )
    assume(found.success)
    return np.asarray(found.x)


@settings(max_examples=examples(40))
@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(0, 2),
    st.fractions("1/5", 4, max_denominator=20),
    st.one_of(st.none(), st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(3, 5)])),
    st.booleans(),
)
def test_a_brute_force_optimiser_agrees(D: int, count: int, js: int, V: Fraction, stay: Fraction | None, monotone: bool) -> None:
    noise = row_noise(count, D, js)
    assume(len(noise) > 1 and noise[0] < 0 < noise[-1])
    assume(0 in noise or -max(v for v in noise if v < 0) * min(v for v in noise if v > 0) < V)
    found = largest_entropy(noise, row_constraints(noise, V, stay, monotone), count)
    by_force = brute_force(noise, V, stay, monotone)
    assert found is not None
    ours = np.array([found.law.pmf(v) for v in noise])
    assert entropy(ours) >= entropy(by_force) - 1e-7
    assert np.max(np.abs(ours - by_force)) < 1e-4


ROWS: list[dict[str, Any]] = [
    {"D": 2, "V": "0.9"},
    {"D": 3, "V": 1, "js": 1},
    {"D": 5, "V": 3, "js": 2},
    {"D": 4, "V": "1.5", "stay": "1/2", "allow_short": True},
    {"D": 5, "V": 2, "stay": "1/2", "monotone": True, "allow_short": True},
    {"D": 8, "V": 6, "js": 2, "stay": "0.3", "monotone": True, "allow_short": True},
    {"D": 3, "V": 2, "variance": "exact"},
    {"D": 3, "V": {1: "1.3", 2: "1.8", 3: 2}},
    {"D": 3, "V": 1, "stay": {1: "0.3", 2: "0.4", 3: "0.5"}},
]


def check_row(row: SmallCountRow, options: dict[str, Any]) -> None:
    """Constraints to 1e-12 and optimality conditions, from the probabilities and multipliers alone."""
    given = options.get("stay", 0)
    stay, V = Fraction(given[row.count] if isinstance(given, dict) else given), row.target
    law, D, js = row.law, options["D"], options.get("js", 0)
    results = [row.count + v for v in law.noise]
    assert all(result >= 0 and not 1 <= result <= js for result in results)
    assert max(abs(v) for v in law.noise) <= D
    assert within(law.mean_bounds(), Fraction(0))
    if options.get("variance") == "exact" or not row.is_short:
        assert within(row.variance_bounds, row.target)
    assert row.variance_bounds.upper <= row.target + Fraction(1, 10**12)
    p = {v: law.pmf_bounds(v) for v in law.noise}
    if "stay" in options and 0 in p:
        assert p[0].upper >= stay - Fraction(1, 10**12)
    if options.get("monotone"):
        left = [v for v in law.noise if v <= 0]
        assert all(p[a].lower <= p[b].upper + Fraction(1, 10**12) for a, b in pairwise(left))
    multipliers = row.optimum.multipliers
    assert all(value >= 0 for name, value in multipliers.items() if name != "mean" and not (name == "variance" and "variance" in options))
    assert row.optimum.gap < Fraction(1, 10**30)
    # Stationarity: log p(v) minus the multipliers' terms is the same number for every v.
    rests = []
    for k, v in enumerate(law.noise):
        terms = multipliers.get("mean", Fraction(0)) * v + multipliers.get("variance", Fraction(0)) * (V - v * v)
        terms += multipliers.get("stay", Fraction(0)) * ((v == 0) - stay)
        terms -= multipliers.get(f"order {v}", Fraction(0))
        terms += multipliers.get(f"order {law.noise[k - 1]}", Fraction(0)) if k else 0
        rests.append(np.log(float(p[v].upper)) - float(terms))
    assert np.ptp(rests) < 1e-12
    # Complementary slackness: what has a multiplier is tight.
    if "stay" in multipliers:
        assert within(p[0], stay)
    if "variance" in multipliers:
        assert within(row.variance_bounds, V)


@pytest.mark.parametrize("options", ROWS, ids=str)
def test_every_row_is_optimal(options: dict[str, Any]) -> None:
    design = design_rows(**options)
    js = options.get("js", 0)
    assert list(design.rows) == list(range(1, (options["D"] + js + 1 if js else options["D"]) + 1))
    for row in design.rows.values():
        check_row(row, options)


@pytest.mark.parametrize(
    ("D", "js", "count", "V", "stay", "monotone"),
    [
        (1, 0, 1, "1/5", "9/10", False),  # the constraints depend on each other
        (7, 0, 7, "1/20", "1/2", False),  # a tight variance makes staying loose
        (11, 1, 11, "1/50", "9/10", False),  # far from the start
        (12, 2, 3, "8/5", None, True),
    ],
)
def test_rows_that_a_plain_search_misses(D: int, js: int, count: int, V: str, stay: str | None, monotone: bool) -> None:
    noise, least = row_noise(count, D, js), None if stay is None else Fraction(stay)
    found = largest_entropy(noise, row_constraints(noise, Fraction(V), least, monotone), count)
    assert found is not None
    assert within(found.law.mean_bounds(), Fraction(0))
    assert found.gap < Fraction(1, 10**30)


def test_the_last_row_is_the_symmetric_noise_of_maximum_entropy() -> None:
    last, noise = design_rows(5, 3, js=2).rows[8].law, max_entropy(5, 3)
    assert last.noise == noise.noise
    for z in noise.noise:
        assert abs(last.pmf_bounds(z).lower - noise.pmf_bounds(z).lower) < Fraction(1, 10**15)


def test_the_example_of_peers_fails_at_count_one_and_works_with_less_variance() -> None:
    """D = 2 with rising probabilities: variance 1 is out of reach of count 1, 0.9 is not."""
    with pytest.raises(InvalidParameter, match=r"Count 1 does not reach the variance 1: .* 0\.931884") as refused:
        design_rows(2, 1, monotone=True)
    assert refused.value.details == {"short_rows": [1]}
    assert design_rows(2, 1, monotone=True, allow_short=True).short_rows == (1,)
    assert design_rows(2, "0.9", monotone=True).short_rows == ()
    row = design_rows(2, "0.9", monotone=True).rows[1].law
    assert [row.pmf(v) for v in row.noise] == pytest.approx([0.3625, 0.3625, 0.1875, 0.0875], abs=1e-15)  # three equations, by hand


def test_the_smallest_variance_without_staying_takes_two_values() -> None:
    row = design_rows(3, 1, js=1).rows[1].law
    assert row.noise == (-1, 1)
    assert row.pmf(1) == 0.5
    with pytest.raises(InvalidParameter, match=r"Count 1 has no noise .* lies between 1 and 3"):
        design_rows(3, "0.99", js=1)


def test_the_largest_variance_takes_both_ends() -> None:
    """The farthest values, and no noise with the least probability asked for: attained, so not refused."""
    row = design_rows(4, 4, js=2, variance="exact").rows[1]
    assert row.law.noise == (-1, 4)
    assert row.law.pmf(4) == 0.2
    assert within(row.variance_bounds, Fraction(4))
    row = design_rows(1, "3/4", stay="1/4", variance="exact").rows[1]
    assert [row.law.pmf(v) for v in row.law.noise] == [0.375, 0.25, 0.375]
    row = design_rows(1, "1/2", stay="1/2", variance="exact", monotone=True).rows[1]  # 1/4, 1/2, 1/4 rises up to no noise
    assert [row.law.pmf(v) for v in row.law.noise] == [0.25, 0.5, 0.25]
    with pytest.raises(InvalidParameter, match=r"Count 1 has no noise .* lies between 0 and 0\.75; order constraints"):
        design_rows(1, "3/4", stay="1/4", variance="exact", monotone=True)
    with pytest.raises(InvalidParameter, match=r"Count 1 has no noise .* lies between 2 and 4\."):
        design_rows(4, "4.01", js=2, variance="exact")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"D": 2, "V": "9/25", "js": 1, "stay": "1/10"}, "lies between 1 and 2"),
        ({"D": 4, "V": 5, "js": 2, "variance": "exact"}, "lies between 2 and 4"),
        ({"D": 2, "V": 8, "variance": "exact"}, "lies between 0 and 2"),
    ],
)
def test_a_refusal_comes_without_warnings_of_numpy(options: dict[str, Any], says: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidParameter, match=says):
            design_rows(**options)


@pytest.mark.parametrize("key_size", [4, 100, 256, 2**16, 3 * 2**20, 2**32, 10**8, 2**64])
@pytest.mark.parametrize(("D", "V"), [(1, "1/2"), (1, "1/4"), (1, "3/5"), (2, 1), (3, "3/2")])
def test_symmetric_rows_round_as_the_noise_of_maximum_entropy(D: int, V: str | int, key_size: int) -> None:
    """Multipliers are cut to 256 bits; a cumulative probability of exactly j / key_size must not be rounded up for that."""
    made = design_rows(D, V, variance="exact").rows[D].law
    assert made.upper_bounds(key_size) == max_entropy(D, V).upper_bounds(key_size)


def test_quarters_stay_quarters() -> None:
    row = design_rows(1, "1/2").quantised(256).rows[1]
    assert row.upper == (64, 192, 256)
    assert row.bias == 0


def test_tiny_probabilities_keep_their_key() -> None:
    """Far below what rounding forgives: the first noise value still has one key."""
    made = design_rows(2, Fraction(1, 2**60)).rows[2].law
    assert made.pmf_bounds(-2).upper < Fraction(1, 2**220)
    assert made.upper_bounds(2**64)[0] == (-2, 1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"D": 0, "V": 1}, "1 or more"),
        ({"D": 201, "V": 1}, "at most 200"),
        ({"D": 3, "V": 0}, "greater than zero"),
        ({"D": 3, "V": 1, "js": -1}, "from 0 to D"),
        ({"D": 3, "V": 1, "js": 4}, "from 0 to D"),
        ({"D": 3, "V": 1, "js": 3}, "is always 3"),
        ({"D": 3, "V": 1, "stay": 1}, "below 1"),
        ({"D": 3, "V": 1, "variance": "some"}, "'at_most' or 'exact'"),
        ({"D": 3, "V": {1: 1, 2: 1}}, "no value for count 3"),
        ({"D": 3, "V": "3.01", "variance": "exact"}, "Count 1 has no noise"),
        ({"D": 3, "V": 2, "variance": "exact", "stay": "0.9"}, "Count 1 has no noise .* probability of staying"),
        ({"D": 3, "V": "2.9", "variance": "exact", "monotone": True}, "For count 1 no noise was found .* order constraints"),
        ({"D": 3, "V": 2}, "allow_short"),
    ],
)
def test_bad_requests(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        design_rows(**options)


def test_losses_of_neighbouring_rows() -> None:
    design = design_rows(3, "1.3")
    losses = design.epsilon_delta()
    assert [pair.count for pair in losses.pairs] == [0, 1, 2, 3]
    shown = 1 - design.rows[1].law.pmf(-1)
    assert losses.zero_shown is not None
    assert losses.zero_shown.nearest() == pytest.approx(shown, abs=1e-15)
    for epsilon in (0, 1, 10, 100):
        assert losses.delta(epsilon) >= shown - 1e-15  # no epsilon helps: a zero stays zero
    assert losses.worst_count(10) == 0
    above = design.epsilon_delta(at_least=3)
    assert (above.at_least, above.zero_shown) == (3, None)
    assert above.plateau == pytest.approx(max_entropy(3, "1.3").epsilon_delta().plateau, rel=1e-12)
    between = design.epsilon_delta(at_least=1)
    p, q = design.rows[1].law, design.rows[2].law
    by_hand = max(
        sum(max(0.0, p.pmf(y - 1) - np.e * q.pmf(y - 2)) for y in range(6)),
        sum(max(0.0, q.pmf(y - 2) - np.e * p.pmf(y - 1)) for y in range(6)),
    )
    assert between.pairs[0].delta_bounds(Fraction(1)).nearest() == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("key_size", [1 << 16, 1 << 32, 1 << 64, 10**8])
def test_tables_of_keys(key_size: int) -> None:
    design = design_rows(5, 3, js=2)
    table = design.quantised(key_size)
    assert table.counts == tuple(range(9))
    assert table.rows[0].probabilities == {0: 1}
    assert table.lowest_result == 0
    for count, row in design.rows.items():
        assert abs(table.rows[count].bias) < Fraction(20, key_size)
        for v in row.law.noise:
            low, high = row.law.pmf_bounds(v)
            assert low - Fraction(1, key_size) <= table.rows[count].probabilities[v] <= high + Fraction(1, key_size)
    with pytest.raises(InvalidParameter, match="too small"):
        design.quantised(256)
