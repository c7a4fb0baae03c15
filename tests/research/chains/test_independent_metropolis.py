"""The paper's own chain within bounds: its step, its law from exact draws, and its acceptance on the paper's table."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.paper_table import BLOCK, SOLVED, TABLE
from holdfast.errors import InvalidParameter
from holdfast.randomness import NoiseKey, Words
from holdfast.research.chains.independent_metropolis import IndependentMetropolis
from holdfast.samplers.bounded_block import BoundedBlock
from holdfast.samplers.bounded_classes import BoundedClasses
from holdfast.testing import ALPHA, check_fit_categories, chi_square_p_value
from tests.samplers.bounded_cases import CASES, law

HALF = Fraction(1, 2)
HALVES = BoundedBlock(((2, 3, 3),), (0,) * 3, (9,) * 3)
PAPER = IndependentMetropolis(BLOCK, TABLE, HALF, Fraction(3, 5), SOLVED)
SMALL = IndependentMetropolis(*CASES["2 x 3 grid"], HALF, Fraction(3, 5), (0, 1, 2, 5))  # type: ignore[arg-type]


def stream(*label: str) -> Words:
    return NoiseKey.for_tests("independent metropolis").stream(*label)


def test_the_papers_table_is_the_papers() -> None:
    assert (BLOCK.kept_matrix @ TABLE).tolist() == [256, 130, 213]
    assert [i + 1 for i in PAPER.pivots.free] == [*range(2, 23), *range(24, 46)]


@pytest.mark.parametrize("kernel", [PAPER, SMALL], ids=["paper", "small"])
def test_the_loop_makes_the_steps_and_a_wider_band_changes_nothing(kernel: IndependentMetropolis) -> None:
    fast_words, slow_words, wide_words = (stream("steps") for _ in range(3))
    fast, info = kernel.run(kernel.at_the_table(), 1000, fast_words)
    slow, accepted = kernel.at_the_table(), 0
    for _ in range(1000):
        slow, made = kernel.step(slow, slow_words)
        accepted += made.accepted
    wide, _ = replace(kernel, band=2.0**-5).run(kernel.at_the_table(), 1000, wide_words)
    assert np.array_equal(fast, slow)
    assert np.array_equal(fast, wide)
    assert (info.steps, info.accepted) == (1000, accepted)
    assert info.accepted > 0
    assert fast_words.position == slow_words.position == wide_words.position == 1000 * (len(kernel.pivots.free) + 1)


def test_the_trace_records_the_distance_and_two_cells() -> None:
    one, two = stream("trace"), stream("trace")
    state, record = SMALL.trace(SMALL.at_the_table(), 6, 11, one)
    z = SMALL.at_the_table()
    for row in record:
        z, _ = SMALL.run(z, 11, two)
        assert row.tolist() == [int(abs(z).sum()), int(z[0]), int(z[1])]
    assert np.array_equal(z, state)


def test_exact_draws_stay_exact_draws() -> None:
    """From independent exact draws, ten steps later the tables have the same law. With weights of another proposal they do not."""
    block, table = CASES["2 x 3 grid"]
    n = 4000
    begun = BoundedClasses(block, HALF).publish(np.tile(np.array(table), (n, 1)), None, stream("exact")) - np.array(table)
    shares = law(block, table, HALF)

    def after(kernel: IndependentMetropolis, label: str) -> Counter[tuple[int, ...]]:
        words = stream("after", label)
        return Counter(tuple((np.array(table) + kernel.run(z, 10, words)[0]).tolist()) for z in begun)

    check_fit_categories(after(SMALL, "right"), shares, name="independent metropolis keeps its law")
    wrong = IndependentMetropolis(*CASES["2 x 3 grid"], HALF, Fraction(3, 5), (0, 1, 2, 5))  # type: ignore[arg-type]
    *arrays, rule = wrong._arrays
    assert isinstance(rule, tuple)
    wrong.__dict__["_arrays"] = (*arrays, (rule[0], 0, *rule[2:]))
    found = after(wrong, "wrong")
    assert chi_square_p_value([found[y] for y in shares], list(shares.values()), n) < ALPHA


def test_at_the_true_table_a_short_run_publishes_the_truth() -> None:
    """At parameter .4 a step leaves it with probability 5e-8: ten thousand steps do not."""
    state, info = replace(PAPER, proposal_rate=Fraction(2, 5)).run(PAPER.at_the_table(), 10_000, stream("stuck"))
    assert info.accepted == 0
    assert not state.any()


@pytest.mark.long
def test_acceptance_on_the_papers_table() -> None:
    """Flat between .6 and .7, 1.4 to 1.8 %, and lower outside: from independent exact draws, a few steps each, so that no run sticks.

    Each figure is a mean of independent ones; six of their standard errors are allowed, which is below one in 10^8.
    """
    runs, steps = 16_000, 150
    begun = BoundedClasses(BLOCK, HALF).publish(np.tile(TABLE, (runs, 1)), None, stream("begun")) - TABLE
    found = {}
    for percent in (40, 50, 55, 60, 65, 70, 80, 90):
        kernel, words = replace(PAPER, proposal_rate=Fraction(percent, 100)), stream("acceptance", str(percent))
        rates = [kernel.run(z, steps, words)[1].accepted / steps for z in begun]
        found[percent] = float(np.mean(rates)), 6 * float(np.std(rates)) / math.sqrt(runs)
    print({percent: f"{mean:.5f} +- {error:.5f}" for percent, (mean, error) in found.items()})
    for percent in (60, 65, 70):
        mean, error = found[percent]
        assert 0.014 - error <= mean <= 0.018 + error
        assert error < 0.001
    for percent in (40, 50, 90):
        assert found[percent][0] + found[percent][1] < min(found[p][0] - found[p][1] for p in (60, 65, 70))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"band": 0.0}, "band"),
        (
            {"block": HALVES, "table": np.array([3, 1, 1]), "solved": (0,)},
            "does not always give integers",
        ),
        ({"block": CASES["people and households"][0], "table": np.array([2, 1, 2, 1, 1]), "solved": (0,)}, "bounds of cells only"),
        ({"solved": (0, 1)}, "different columns"),
    ],
    ids=["band", "pivots", "inequalities", "solved"],
)
def test_what_it_refuses(change: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidParameter, match=match):
        replace(PAPER, **change)  # type: ignore[arg-type]
