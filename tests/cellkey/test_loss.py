"""Losses of pairs of counts against every event, in fractions."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import chain, combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cellkey import PerturbationTable, design_rows, max_entropy
from holdfast.errors import InvalidParameter
from holdfast.exact.balls import ball, enclosure, precision
from holdfast.research.figures import two_sided_epsilon_bounds

WEIGHTS_OF_ROWS = ((5, 6, 5), (4, 8, 4), (1, 14, 1), (2, 12, 2), (4, 8, 4))
SMALL = PerturbationTable.from_probabilities({0: {0: 1}, 1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/8", 0: "3/4", 2: "1/8"}}, 8)


def delta_over_all_events(p: dict[int, Fraction], q: dict[int, Fraction], factor: Fraction) -> Fraction:
    values = sorted(p.keys() | q.keys())
    events = chain.from_iterable(combinations(values, size) for size in range(len(values) + 1))
    return max(sum((p.get(y, Fraction(0)) - factor * q.get(y, Fraction(0)) for y in event), Fraction(0)) for event in events)


@given(
    st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(any), min_size=2, max_size=3), st.fractions(0, 3, max_denominator=8)
)
def test_delta_is_the_largest_over_all_events_both_ways(weights: list[list[int]], epsilon: Fraction) -> None:
    rows = {n: {v: Fraction(w, sum(row)) for v, w in enumerate(row, -1) if w} for n, row in enumerate(weights, 1)}
    table = PerturbationTable.from_probabilities(rows, repeat=0)
    bounds = table.epsilon_delta().delta_bounds(epsilon)
    laws = [table.rows[n].results for n in table.counts]
    low, high = (Fraction(math.exp(epsilon)) * (1 + side * Fraction(1, 10**14)) for side in (-1, 1))
    pairs = [(p, q) for a, b in pairwise(laws) for p, q in ((a, b), (b, a))]
    assert bounds.lower <= max(delta_over_all_events(p, q, low) for p, q in pairs)
    assert bounds.upper >= max(delta_over_all_events(p, q, high) for p, q in pairs)
    assert bounds.upper - bounds.lower < Fraction(1, 10**15)


def test_figures_of_a_table_by_hand() -> None:
    losses = PerturbationTable(SMALL.rows.values(), repeat=0).epsilon_delta()
    assert [pair.count for pair in losses.pairs] == [0, 1]
    assert losses.delta(0) == 0.75  # rows 0 and 1: 0 stays 0, 1 gives 0 with chance 1/4
    assert losses.plateau_bounds == (Fraction(3, 4), Fraction(3, 4))
    assert losses.worst_count(0) == 0
    assert losses.epsilon("1/2") is None
    assert (losses.at_least, losses.key_size) == (0, 8)
    repeated = SMALL.epsilon_delta()
    assert [pair.count for pair in repeated.pairs] == [0, 1, 2]
    assert (repeated.worst_count(0), repeated.plateau) == (2, 1.0)  # counts 2 and 3 have no published value in common


def test_epsilon_at_a_delta_inverts_the_curve() -> None:
    table = PerturbationTable.from_probabilities({3: {-2: "1/16", -1: "1/4", 0: "3/8", 1: "1/4", 2: "1/16"}})
    losses = table.epsilon_delta()
    assert losses.plateau == 1 / 16
    assert losses.plateau_epsilon == pytest.approx(math.log(4), abs=1e-15)
    for delta in ("1/16", "1/10", "1/5", "1/3"):
        bounds = losses.epsilon_bounds(delta)
        assert bounds is not None
        assert bounds.upper - bounds.lower < Fraction(1, 10**15)
        assert losses.delta_bounds(bounds.upper).lower <= Fraction(delta)
        assert losses.delta_bounds(max(bounds.lower - Fraction(1, 10**12), Fraction(0))).upper > Fraction(delta)
    assert losses.epsilon("0.99") == 0.0


def test_epsilon_of_several_pairs_is_the_largest_of_theirs() -> None:
    rows = {n: {v: Fraction(w, 16) for v, w in zip((-1, 0, 1), weights, strict=True)} for n, weights in enumerate(WEIGHTS_OF_ROWS, 1)}
    table = PerturbationTable.from_probabilities(rows, repeat=0)
    losses = table.epsilon_delta()
    alone = [replace(losses, pairs=(pair,)).epsilon("2/5") for pair in losses.pairs]
    found = losses.epsilon("2/5")
    assert None not in alone
    assert found is not None
    assert found == pytest.approx(max(value for value in alone if value is not None), abs=1e-15)
    assert alone.index(max(value for value in alone if value is not None)) == 2


def test_epsilon_where_the_first_guess_is_the_answer() -> None:
    """delta 1/2 is reached exactly at ln 2, half way to the plateau at ln 4: balls at the middle do not tell."""
    rows = {n: {v: Fraction(w, 16) for v, w in zip((-1, 0, 1), weights, strict=True)} for n, weights in ((4, (2, 12, 2)), (5, (4, 8, 4)))}
    losses = PerturbationTable.from_probabilities(rows, repeat=0).epsilon_delta()
    bounds = losses.epsilon_bounds("1/2")
    assert bounds is not None
    assert bounds.down() <= math.log(2) <= bounds.up()
    assert bounds.upper - bounds.lower < Fraction(1, 10**15)
    found = [losses.epsilon(Fraction(k, 40)) for k in range(10, 40)]
    assert found == sorted(found, reverse=True)  # type: ignore[type-var]


rows_of_counts = st.lists(st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(any), min_size=2, max_size=3)


def table_of(weights: list[list[int]]) -> PerturbationTable:
    rows = {n: {v: Fraction(w, sum(row)) for v, w in enumerate(row, -1) if w} for n, row in enumerate(weights, 1)}
    return PerturbationTable.from_probabilities(rows, repeat=0)


def exact_delta(table: PerturbationTable, factor: Fraction) -> Fraction:
    """delta at e^epsilon = factor, in fractions."""
    laws = [table.rows[n].results for n in table.counts]
    none = Fraction(0)
    return max(
        sum((max(none, chance - factor * q.get(y, none)) for y, chance in p.items()), none)
        for a, b in pairwise(laws)
        for p, q in ((a, b), (b, a))
    )


@given(rows_of_counts, st.integers(0, 8))
def test_epsilon_is_the_smallest_in_fractions(weights: list[list[int]], eighths: int) -> None:
    """At the factor found delta holds, and just below it does not; deltas at the plateau and zero included."""
    table = table_of(weights)
    losses = table.epsilon_delta()
    plateau = max(pair.plateau_bounds.upper for pair in losses.pairs)
    assert losses.plateau_bounds == (plateau, plateau)
    delta = plateau + (1 - plateau) * Fraction(eighths, 9)
    if delta == 1:
        return
    factor = max(pair.factor(delta) for pair in losses.pairs)
    assert exact_delta(table, factor) <= delta
    assert factor == 1 or exact_delta(table, factor - (factor - 1) / 10**9) > delta
    found = losses.epsilon_bounds(delta)
    assert found is not None
    assert found.lower <= Fraction(math.log(factor)) + Fraction(1, 10**13)
    assert found.upper >= Fraction(math.log(factor)) - Fraction(1, 10**13)
    with precision(128):
        ball_of_it = max((pair.factor_ball(ball(delta)) for pair in losses.pairs), key=lambda found: found.mid())
        bounds = enclosure(ball_of_it)
    assert bounds.lower <= factor <= bounds.upper
    assert bounds.upper - bounds.lower < Fraction(1, 10**30)


@given(rows_of_counts)
def test_the_plateau_starts_where_delta_reaches_it(weights: list[list[int]]) -> None:
    losses = table_of(weights).epsilon_delta()
    start, plateau = losses.plateau_epsilon_bounds, losses.plateau_bounds.upper
    assert losses.delta_bounds(start.upper).lower <= plateau
    if start.lower > 0:
        assert losses.delta_bounds(start.lower * Fraction(999, 1000)).lower > plateau
    assert start.lower <= two_sided_epsilon_bounds(losses).upper


def test_the_plateau_starts_below_the_largest_ratio() -> None:
    """Zeros that stay zero are at the plateau from epsilon 0 on; the ratios of larger counts do not matter."""
    losses = design_rows(3, {1: "1.3", 2: "1.8", 3: 2}).quantised(1 << 16).epsilon_delta()
    assert losses.plateau_epsilon_bounds == (Fraction(0), Fraction(0))
    assert losses.delta_bounds(0) == losses.plateau_bounds
    assert two_sided_epsilon_bounds(losses).nearest() == pytest.approx(1.36692, abs=1e-5)
    assert "from epsilon 0;" in repr(losses)


def test_epsilon_at_the_plateau_itself() -> None:
    losses = PerturbationTable.from_probabilities({3: {-1: "1/10", 0: "8/10", 1: "1/10"}}, 10).epsilon_delta()
    assert losses.epsilon("1/10") == pytest.approx(math.log(8), abs=1e-15)
    assert losses.epsilon(Fraction(1, 10) - Fraction(1, 10**30)) is None


def test_no_epsilon_is_needed_where_delta_is_large() -> None:
    """Exactly zero, before rounding for keys too, where probabilities are balls."""
    noise = max_entropy(20, 30)
    for losses in (noise.epsilon_delta(), noise.quantised(2**32).epsilon_delta()):
        assert losses.delta(0) < 0.1
        assert losses.epsilon_bounds("0.1") == (Fraction(0), Fraction(0))


def test_epsilon_without_delta() -> None:
    """Zero is a delta where both counts can give the same values, and only there."""
    rows = {1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/2", -1: "1/4", 0: "1/4"}}
    pure = PerturbationTable.from_probabilities(rows, repeat=0).epsilon_delta()
    assert pure.epsilon(0) == pytest.approx(math.log(2), abs=1e-15)
    assert pure.epsilon(0) == pure.plateau_epsilon
    assert SMALL.epsilon_delta().epsilon(0) is None
    for wrong in (-1, 1, 2):
        with pytest.raises(InvalidParameter, match="delta"):
            pure.epsilon(wrong)


def test_which_counts_were_compared() -> None:
    half = {-1: "1/2", 1: "1/2"}

    def compared(counts: tuple[int, ...], repeat: int) -> tuple[tuple[int, int | None], ...]:
        return PerturbationTable.from_probabilities(dict.fromkeys(counts, half), repeat=repeat).epsilon_delta().runs

    assert compared((1, 2, 3), 1) == ((1, None),)
    assert compared((1, 2, 3), 0) == ((1, 3),)
    assert compared((0, 5), 1) == ((5, None),)
    assert compared((1, 2, 5, 6, 7, 9), 1) == ((1, 2), (5, 7), (9, None))
    assert design_rows(2, "0.9").epsilon_delta().runs == ((0, None),)


def test_no_pair_no_figure() -> None:
    with pytest.raises(InvalidParameter, match="nothing to compare"):
        PerturbationTable.from_probabilities({3: {0: 1}}, repeat=0).epsilon_delta()
