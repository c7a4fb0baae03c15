"""Perturbation tables: half-open lookup in integers, exact laws, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cellkey import KeyInterval, PerturbationRow, PerturbationTable
from holdfast.errors import InvalidCount, InvalidParameter

SMALL = PerturbationTable.from_probabilities({0: {0: 1}, 1: {-1: "1/4", 0: "1/2", 1: "1/4"}, 2: {-2: "1/8", 0: "3/4", 2: "1/8"}}, 8)


def noise_by_hand(table: PerturbationTable, count: int, key: int, key_size: int) -> int:
    """The slow obvious lookup: the one interval whose fractions enclose key / key_size."""
    (found,) = [
        part.noise
        for part in table.row_of(count).intervals
        if Fraction(part.lower, table.key_size) <= Fraction(key, key_size) < Fraction(part.upper, table.key_size)
    ]
    return found


def test_lookup_of_every_key_agrees_with_the_obvious_one_at_every_key_size() -> None:
    for key_size in (1, 3, 8, 10, 64):
        for count in range(6):
            found = SMALL.lookup(np.full(key_size, count), np.arange(key_size), key_size=key_size)
            assert found.tolist() == [noise_by_hand(SMALL, count, key, key_size) for key in range(key_size)]


def test_bounds_are_half_open_up_to_the_last_64_bit_key() -> None:
    size = 1 << 64
    table = PerturbationTable.from_intervals([(3, -1, 0, 5), (3, 0, 5, size - 1), (3, 1, size - 1, size)], size)
    keys = np.array([0, 4, 5, size - 2, size - 1], np.uint64)
    assert table.lookup(np.full(5, 3), keys).tolist() == [-1, -1, 0, 0, 1]


def test_key_order_of_noise_is_kept_and_equal_neighbours_are_joined() -> None:
    table = PerturbationTable.from_intervals([(1, 1, 3, 4), (1, 0, 0, 1), (1, 0, 1, 2), (1, -1, 2, 3)], 4)
    assert table.rows[1] == PerturbationRow(1, (0, -1, 1), (2, 3, 4))
    assert table.rows[1].probabilities == {-1: Fraction(1, 4), 0: Fraction(1, 2), 1: Fraction(1, 4)}
    assert next(iter(table.intervals)) == KeyInterval(1, 0, 0, 2)
    repeated = PerturbationTable.from_intervals([(0, 1, 0, 1), (0, 0, 1, 2), (0, 1, 2, 3)], 3)
    assert repeated.rows[0].probabilities == {0: Fraction(1, 3), 1: Fraction(2, 3)}


def test_larger_counts_take_the_last_rows_in_turn() -> None:
    rows = [PerturbationRow(count, (count,), (4,)) for count in range(1, 7)]
    assert [PerturbationTable(rows, repeat=1).row_of(n).count for n in (6, 7, 100)] == [6, 6, 6]
    cycle = PerturbationTable(rows, repeat=3)
    assert [cycle.row_of(n).count for n in range(5, 13)] == [5, 6, 4, 5, 6, 4, 5, 6]
    assert cycle.lookup(np.arange(5, 13), np.zeros(8, np.int64)).tolist() == [5, 6, 4, 5, 6, 4, 5, 6]
    ons = PerturbationTable([PerturbationRow(count, (0,), (4,)) for count in range(1, 751)], repeat=250)
    assert all(ons.row_of(n).count == ((n - 1) % 250) + 501 for n in range(751, 1600))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5).filter(lambda weights: sum(weights) > 0), st.integers(1, 40))
def test_rescaled_bounds_are_ceilings_and_keep_the_rule(weights: list[int], size: int) -> None:
    chances = {noise: Fraction(weight, sum(weights)) for noise, weight in enumerate(weights, -2) if weight}
    table = PerturbationTable.from_probabilities({2: chances})
    other = table.rescaled(size)
    found = other.lookup(np.full(size, 2), np.arange(size))
    assert found.tolist() == [noise_by_hand(table, 2, key, size) for key in range(size)]
    assert table.rows[2].probabilities == chances
    assert table.rows[2].bias == sum(noise * chance for noise, chance in chances.items())
    assert table.rows[2].variance == sum((noise - table.rows[2].bias) ** 2 * chance for noise, chance in chances.items())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PerturbationTable([]), "at least one row"),
        (lambda: PerturbationTable.from_probabilities({1: {0: "0.9"}}), "add up to exactly 1"),
        (lambda: PerturbationTable.from_probabilities({1: {0: "1.5", 1: "-0.5"}}), "zero or more"),
        (lambda: PerturbationTable.from_probabilities({1: {-1: "0.001", 0: "0.001", 1: "0.998"}}, 256), "loses the noise value 0"),
        (lambda: PerturbationTable.from_intervals([(1, 0, 0, 3), (1, 1, 2, 4)], 4), "overlap at key 2"),
        (lambda: PerturbationTable.from_intervals([(1, 0, 0, 1), (1, 1, 2, 4)], 4), "leave a gap at key 1"),
        (lambda: PerturbationTable.from_intervals([(1, 0, 0, 3)], 4), "end at key 3"),
        (lambda: PerturbationTable.from_intervals([(1, 0, 3, 0)], 4), "before it begins"),
        (lambda: PerturbationTable.from_intervals([(1, 0.5, 0, 4)], 4), "float"),  # type: ignore[list-item]
        (lambda: PerturbationTable.from_intervals([(-1, 0, 0, 4)], 4), "zero or more"),
        (lambda: PerturbationTable.from_upper_bounds({1: [(0, 3), (1, 2), (2, 4)]}, 4), "must not decrease"),
        (lambda: PerturbationTable([PerturbationRow(1, (0, 1), (4, 4))]), "must not overlap"),
        (lambda: PerturbationTable([PerturbationRow(1, (0,), (4,)), PerturbationRow(1, (1,), (4,))]), "two rows"),
        (lambda: PerturbationTable([PerturbationRow(1, (0,), (4,)), PerturbationRow(2, (1,), (8,))]), "same key size"),
        (lambda: PerturbationTable([PerturbationRow(1, (0,), (4,)), PerturbationRow(3, (0,), (4,))], repeat=2), "without gaps"),
        (lambda: SMALL.rescaled(0), "from 1 to 2^64"),
        (lambda: SMALL.rescaled((1 << 64) + 1), "from -2^64 to 2^64"),
        (lambda: PerturbationTable(SMALL.rows.values(), repeat=0).row_of(3), "no row"),
    ],
)
def test_bad_tables(make: Callable[[], object], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says.replace("^", r"\^")):
        make()


def test_bad_counts_and_keys_are_refused_without_being_named() -> None:
    few = PerturbationTable(list(SMALL.rows.values())[1:], repeat=0)
    for counts, keys in (([1, 7777], [0, 0]), ([0, 1], [0, 0]), ([1, 1], [0, 7777]), ([1, 1], [0, -1])):
        with pytest.raises(InvalidCount) as refused:
            few.lookup(np.array(counts), np.array(keys))
        assert "7777" not in str(refused.value)
    with pytest.raises(InvalidParameter, match="same length"):
        few.lookup(np.array([1]), np.array([0, 1]))
    with pytest.raises(InvalidParameter, match="integers"):
        few.lookup(np.array([1.0]), np.array([0]))
    assert few.lookup(np.array([], np.int64), np.array([], np.int64)).tolist() == []


class TestThreshold:
    """As ONS does: a value below the threshold is left out, whatever made it so. Here 0 stands for it."""

    @given(
        rows=st.lists(st.lists(st.integers(-4, 4), min_size=2, max_size=2), min_size=1, max_size=4),
        repeat=st.integers(0, 4),
        threshold=st.integers(1, 12),
    )
    def test_every_count_and_key(self, rows: list[list[int]], repeat: int, threshold: int) -> None:
        made = {count: [(noise, key) for key, noise in enumerate(row, 1)] for count, row in enumerate(rows, 1)}
        table = PerturbationTable.from_upper_bounds(made, 2, repeat=min(repeat, len(rows)))
        cut = table.with_threshold(threshold)
        counts = np.repeat(np.arange(1, 40 if table.repeat else len(rows) + 1), 2)
        keys = np.tile([0, 1], len(counts) // 2)
        values = counts + table.lookup(counts, keys)
        assert (counts + cut.lookup(counts, keys)).tolist() == np.where(values < threshold, 0, values).tolist()
        assert cut.lowest_result >= 0
        assert cut.least_result >= threshold or not np.any(values >= threshold)

    def test_the_10_5_rule_needs_none(self) -> None:
        """ONS's own example publishes nothing below 10, so that its threshold changes nothing."""
        rows = {count: [(-count if count < 10 else (0, -1, -2, 2, 1)[count % 5], 1)] for count in range(1, 751)}
        table = PerturbationTable.from_upper_bounds(rows, 1, repeat=250, folds=False)
        assert table.with_threshold(10) == table
        assert (table.least_result, table.lowest_result) == (10, 0)

    @pytest.mark.parametrize("threshold", [0, -1, 1001])
    def test_refused(self, threshold: int) -> None:
        with pytest.raises(InvalidParameter, match="from 1 to 1000"):
            SMALL.with_threshold(threshold)
