"""Controlled rounding on its own: cycles, every fall of the coins on small tables, large tables."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.randomness import NoiseKey
from holdfast.samplers.rounded_projection import Coin, RoundedGrid2, find_cycle, project, round_parts

from .test_rounded import enumerate_coins


def parts_of(table: NDArray[np.int64]) -> tuple[list[list[int]], int]:
    whole = table.size
    return (project(table.ravel(), table.shape)[0] % whole).tolist(), whole


tables = st.tuples(st.integers(2, 5), st.integers(2, 5)).flatmap(
    lambda shape: st.lists(st.integers(-9, 9), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]).map(
        lambda entries: np.array(entries, dtype=np.int64).reshape(shape)
    )
)


@given(tables)
def test_a_cycle_alternates_between_rows_and_columns(table: NDArray[np.int64]) -> None:
    parts, whole = parts_of(table)
    starts = [i for i, row in enumerate(parts) if any(0 < part < whole for part in row)]
    for start in starts:
        cycle = find_cycle(parts, whole, start)
        assert len(cycle) % 2 == 0
        assert len(set(cycle)) == len(cycle) >= 4
        assert all(0 < parts[i][j] < whole for i, j in cycle)
        signs = np.zeros(table.shape, dtype=np.int64)
        for t, (i, j) in enumerate(cycle):
            signs[i, j] += 1 - 2 * (t % 2)
        assert not signs.sum(axis=0).any()
        assert not signs.sum(axis=1).any()


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(-9, 9), min_size=9, max_size=9))
def test_every_fall_of_the_coins_keeps_sums_and_the_mean(entries: list[int]) -> None:
    parts, whole = parts_of(np.array(entries).reshape(3, 3))

    def run(coin: Coin) -> list[int]:
        copy = [list(row) for row in parts]
        round_parts(copy, whole, coin)
        return [part for row in copy for part in row]

    law = enumerate_coins(run)
    for outcome in law:
        assert set(outcome) <= {0, whole}
        rounded = np.array(outcome).reshape(3, 3)
        assert np.array_equal(rounded.sum(axis=0), np.sum(parts, axis=0))
        assert np.array_equal(rounded.sum(axis=1), np.sum(parts, axis=1))
    for k, part in enumerate(part for row in parts for part in row):
        assert sum((p * outcome[k] for outcome, p in law.items()), Fraction(0)) == part


@pytest.mark.parametrize("shape", [(100, 100), (3, 500), (500, 3), (64, 64)])
def test_large_tables_keep_their_sums_and_stay_within_one(shape: tuple[int, int]) -> None:
    sampler = RoundedGrid2(shape, "1/4")
    words = NoiseKey.for_tests("large tables").stream(str(shape))
    noise = sampler.law.draw(2 * sampler.cells, words).reshape(2, -1)
    rounded = sampler.round(noise, words).reshape(2, *shape)
    assert not rounded.sum(axis=1).any()
    assert not rounded.sum(axis=2).any()
    assert np.abs(rounded * sampler.cells - project(noise, shape)).max() < sampler.cells


def test_a_whole_table_takes_no_coin() -> None:
    sampler = RoundedGrid2((3, 3), 1)
    words = NoiseKey.for_tests("whole").stream(0)
    noise = np.array([[1, -1, 0, -1, 1, 0, 0, 0, 0]])
    assert np.array_equal(sampler.round_fast(noise, words), noise)
    assert words.position == 0
