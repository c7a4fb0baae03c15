"""Keys of records and cells: exact integers, decimals without rounding, sums that never cross a bound."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cellkey.keys import (
    LARGEST_DISTANCE,
    CellKeys,
    KeySpace,
    distance_from_uniform,
    do_not_fill,
    folded_sum,
)
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.tables.columns import record_key_sql
from tests.cellkey.paper_prime import BIG_PRIME

SECRET = "4294967297"


class TestSpaces:
    @pytest.mark.parametrize(
        ("text", "size", "digits"),
        [("2^32", 2**32, None), ("2^64", 2**64, None), ("256", 256, None), ("4096", 4096, None), ("0.8", 10**8, 8)],
    )
    def test_written_as_text(self, text: str, size: int, digits: int | None) -> None:
        assert KeySpace.parse(text) == KeySpace(size, digits)

    @pytest.mark.parametrize("text", ["", "2^", "2^65", "1", "0.0", "0.19", "-256", "1e8", "0.x", "2^-1"])
    def test_refused_texts(self, text: str) -> None:
        with pytest.raises(InvalidParameter):
            KeySpace.parse(text)

    @given(st.integers(0, 2**64 - 1))
    def test_integers_are_read_as_they_are(self, key: int) -> None:
        assert KeySpace.bits(64).read(str(key)) == key

    @given(st.integers(0, 10**8 - 1))
    def test_decimals_are_whole_numbers_over_a_power_of_ten(self, key: int) -> None:
        space = KeySpace.decimals(8)
        text = f"0.{key:08d}"
        assert space.read(text) == space.read(text.removeprefix("0")) == key
        assert Fraction(space.read(text), space.size) == Fraction(Decimal(text))
        assert space.read(text.rstrip("0") if key else "0") == key

    @pytest.mark.parametrize("key", ["", "256", "-1", "+1", "1.0", " 1", "01", "1e1", "²", "1_0", SECRET, "9" * 5000])
    def test_keys_out_of_range_or_not_plain_are_refused_without_being_shown(self, key: str) -> None:
        with pytest.raises(InvalidCount) as caught:
            KeySpace(256).read(key)
        assert SECRET not in str(caught.value)

    @pytest.mark.parametrize("key", ["", "1", "1.0", "0.123456789", "-0.5", "0,5", "1e-3", ".", "0.", "00.5", "5"])
    def test_decimals_out_of_range_or_too_long_are_refused(self, key: str) -> None:
        with pytest.raises(InvalidCount):
            KeySpace.decimals(8).read(key)


class TestCellKeys:
    @given(st.lists(st.integers(0, 2**32 - 1), max_size=40))
    def test_folding_is_xor_of_the_pieces_of_the_sum(self, keys: list[int]) -> None:
        records = KeySpace.bits(32)
        total = sum(keys) % 2**32
        parts = total.to_bytes(4, "big")
        assert CellKeys(records, size=2**8).of(keys) == parts[0] ^ parts[1] ^ parts[2] ^ parts[3]
        assert CellKeys(records, size=2**16).of(keys) == (total >> 16) ^ (total & 0xFFFF)
        assert CellKeys(records).of(keys) == total
        of_prime = sum(keys) % BIG_PRIME
        assert CellKeys(records, BIG_PRIME, 2**16).of(keys) == (of_prime >> 16) ^ (of_prime & 0xFFFF)

    @pytest.mark.parametrize(
        "rule",
        [
            CellKeys(KeySpace.bits(32)),
            CellKeys(KeySpace.bits(32), size=2**8),
            CellKeys(KeySpace.bits(32), BIG_PRIME, 2**8),
            CellKeys(KeySpace.bits(32), BIG_PRIME),
            CellKeys(KeySpace.bits(64), size=2**16),
            CellKeys(KeySpace.bits(64), size=2**24),
            CellKeys(KeySpace.decimals(8)),
            CellKeys(KeySpace(4096), 256),
        ],
    )
    def test_arrays_fold_as_the_slow_version_does(self, rule: CellKeys) -> None:
        sums = np.random.default_rng(7).integers(0, rule.modulus, 500, dtype=np.uint64, endpoint=False)
        sums[:2] = 0, rule.modulus - 1
        slow = [rule.of([total]) if total < rule.records.size else None for total in sums.tolist()]
        fast = rule.fold(sums).tolist()
        assert [f for f, s in zip(fast, slow, strict=True) if s is not None] == [s for s in slow if s is not None]
        assert max(fast) < rule.size

    @pytest.mark.parametrize(("records", "modulus", "size"), [(16, 16, 4), (16, 16, 16), (32, 32, 2), (16, 8, 8), (100, 100, 100)])
    def test_exactly_uniform_by_enumeration(self, records: int, modulus: int, size: int) -> None:
        rule = CellKeys(KeySpace(records), modulus, size)
        assert rule.distance == 0
        for members in (1, 2):
            law = Counter(rule.of(keys) for keys in product(range(records), repeat=members))
            assert set(law.values()) == {records**members // size}

    @pytest.mark.parametrize(("records", "modulus", "size"), [(16, 13, 13), (16, 13, 4), (32, 31, 8), (32, 29, 2), (16, 17, 17)])
    def test_a_prime_is_as_far_from_uniform_as_is_said(self, records: int, modulus: int, size: int) -> None:
        """By enumeration, with numbers so small that such a rule is refused."""
        distance = distance_from_uniform(records, modulus, size)
        found = []
        for members in (1, 2, 3):
            law = Counter(folded_sum(sum(keys), modulus, size) for keys in product(range(records), repeat=members))
            found.append(sum(abs(Fraction(law[key], records**members) - Fraction(1, size)) for key in range(size)) / 2)
        assert 0 < max(found) <= distance < Fraction(1, 2)
        if size == modulus:
            assert found[0] == distance
        with pytest.raises(InvalidParameter, match="far from uniform"):
            CellKeys(KeySpace(records), modulus, size)

    @pytest.mark.parametrize(
        ("records", "modulus", "size"),
        [
            (256, BIG_PRIME, 0),
            (2**32, 3000000019, 0),
            (2**32, 3000000019, 2**8),
            (4096, 4093, 0),
            (3000000019, 0, 2**8),
            (2**32, 2**61 - 1, 0),
        ],
    )
    def test_a_rule_that_is_far_from_uniform_is_refused(self, records: int, modulus: int, size: int) -> None:
        """With 256 record keys and a prime near 2^32 almost every cell had the same noise, the lowest one."""
        with pytest.raises(InvalidParameter, match="far from uniform") as caught:
            CellKeys(KeySpace(records), modulus, size)
        assert "at most 2^-16" in str(caught.value)

    @pytest.mark.parametrize(("records", "modulus"), [(2**32, BIG_PRIME), (2**32, 2**32 + 15), (2**64, BIG_PRIME), (2**64, 2**61 - 1)])
    def test_near_uniform_primes_stay(self, records: int, modulus: int) -> None:
        """A prime just beside the number of keys, or far below it."""
        assert 0 < CellKeys(KeySpace(records), modulus).distance <= LARGEST_DISTANCE

    def test_the_distance_of_the_usual_prime_is_small_and_told(self) -> None:
        rule = CellKeys(KeySpace.bits(32), BIG_PRIME, 2**8)
        assert 0 < rule.distance < Fraction(1, 2**28)

    @pytest.mark.parametrize(
        ("records", "modulus", "size"),
        [(2**32, 10**9, 0), (2**32, 0, 1000), (10**8, 0, 2**8), (2**32, 0, 2**33), (2**32, 1, 0), (256, 2**65, 0)],
    )
    def test_refused(self, records: int, modulus: int, size: int) -> None:
        with pytest.raises(InvalidParameter):
            CellKeys(KeySpace(records), modulus, size)

    def test_the_usual_rule(self) -> None:
        small, whole, decimal = (PerturbationTable.from_probabilities({1: {0: 1}}, size) for size in (2**8, 2**32, 10**8))
        assert CellKeys.for_table(KeySpace.bits(32), small) == CellKeys(KeySpace.bits(32), size=2**8)
        assert CellKeys.for_table(KeySpace.bits(32), whole).size == 2**32
        assert CellKeys.for_table(KeySpace.decimals(15), decimal).size == 10**15
        assert CellKeys.for_table(KeySpace.bits(32), small, modulus=2**16, mixed=True) == CellKeys(KeySpace.bits(32), 2**16, 2**8, True)

    def test_a_table_that_does_not_fold(self) -> None:
        """Sums modulo the number of its keys, where that is a rule; a number that is asked for comes first."""
        bounds = {1: [(0, 4), (1, 8)]}
        table = PerturbationTable.from_upper_bounds(bounds, 8, folds=False)
        assert CellKeys.for_table(KeySpace(4096), table) == CellKeys(KeySpace(4096), 8)
        assert CellKeys.for_table(KeySpace(4096), table, modulus=256) == CellKeys(KeySpace(4096), 256, 8)
        assert CellKeys.for_table(KeySpace(100), table) == CellKeys(KeySpace(100))
        assert table.rescaled(16).folds is False
        assert table != PerturbationTable.from_upper_bounds(bounds, 8)

    def test_a_key_out_of_range_is_refused_without_being_shown(self) -> None:
        with pytest.raises(InvalidCount) as caught:
            CellKeys(KeySpace.bits(32)).of([1, int(SECRET)])
        assert SECRET not in str(caught.value)


class TestFilled:
    @given(st.integers(0, 255), st.integers(1, 80))
    def test_exact(self, largest: int, members: int) -> None:
        assert do_not_fill(largest, members, 256) == (Fraction(largest + 1, 256) ** members < Fraction(1, 2**40))

    def test_the_chance_of_a_false_alarm_by_enumeration(self) -> None:
        """Of uniform keys, at most one draw in 2^40 is refused: the largest refused value stands for all below it."""
        for size, members in product((2, 10, 256, 2**20), range(1, 60, 7)):
            refused = sum(1 for largest in range(min(size, 1000)) if do_not_fill(largest, members, size))
            assert Fraction(refused, size) ** members < Fraction(1, 2**40) or not refused
            assert not do_not_fill(size - 1, members, size)

    def test_ten_million_keys(self) -> None:
        assert not do_not_fill(2**32 - 1000, 10**7, 2**32)
        assert do_not_fill(2**32 - 2**20, 10**7, 2**32)


class TestBounds:
    def test_thousands_of_eight_digit_keys_are_summed_without_crossing_a_bound(self) -> None:
        """The exact sum is 0.1, where the second half of the row begins; in floats it comes out below, and the noise would be another."""
        space = KeySpace.decimals(8)
        texts = ["0.00010000"] * 1000 + ["0.99999999", "0.00000001"] * 3000
        table = PerturbationTable.from_upper_bounds({1: [(-1, 10**7), (1, 10**8)]}, 10**8)
        key = CellKeys(space).of(space.read(text) for text in texts)
        assert key == 10**7
        assert table.lookup(np.array([6000]), np.array([key], np.uint64)).tolist() == [1]
        in_floats = sum(float(text) for text in texts) % 1
        assert in_floats != 0.1

    @given(st.lists(st.integers(1, 10**8 - 1), min_size=1, max_size=6, unique=True), st.data())
    def test_lookups_are_half_open_for_decimals_and_integers(self, bounds: list[int], data: st.DataObject) -> None:
        upper = [*sorted(bounds), 10**8]
        table = PerturbationTable.from_upper_bounds({5: list(enumerate(upper))}, 10**8)
        key = data.draw(st.sampled_from([*upper[:-1], *(bound - 1 for bound in upper), 0]))
        expected = next(noise for noise, bound in enumerate(upper) if key < bound)
        decimal = KeySpace.decimals(8).read(f"0.{key:08d}")
        as_integer = KeySpace(10**8).read(str(key))
        assert table.lookup(np.array([5, 5]), np.array([decimal, as_integer], np.uint64)).tolist() == [expected, expected]
        longer = KeySpace.decimals(15).read(f"0.{key:08d}")
        below = longer - 1 if longer else 0
        assert table.lookup(np.array([5]), np.array([longer], np.uint64), key_size=10**15).tolist() == [expected]
        assert table.lookup(np.array([5]), np.array([below], np.uint64), key_size=10**15).tolist() == [
            next(noise for noise, bound in enumerate(upper) if Fraction(below, 10**15) < Fraction(bound, 10**8))
        ]


def in_duckdb(values: Any, space: KeySpace) -> list[int | None]:
    connection = duckdb.connect()
    connection.register("given", pa.table({"c": values}))
    sql = record_key_sql(values.type, "c", "rkey", "the frame", size=space.size, digits=space.digits)
    return [row[0] for row in connection.sql(f"SELECT {sql} FROM given").fetchall()]


TEXTS = ["0", "1", "255", "256", "007", "-1", "", "1.0", " 1", "18446744073709551615", "18446744073709551616", "0.5", ".5", "0.", ".",
         "0.123456780", "0.12345678", "0.123456781", "1e-3", "0.00000001", "1.5", "00.5", "5", None]  # fmt: skip


@pytest.mark.parametrize("space", [KeySpace(256), KeySpace.bits(64), KeySpace.decimals(8), KeySpace(4096)])
def test_sql_reads_what_python_reads(space: KeySpace) -> None:
    def slow(text: str | None) -> int | None:
        try:
            return None if text is None else space.read(text)
        except InvalidCount:
            return None

    expected = [slow(text) for text in TEXTS]
    if space.digits is not None:
        expected[TEXTS.index("0.123456780")] = 12345678  # zeros at the end, as a column of longer decimals shows them
    assert in_duckdb(pa.array(TEXTS), space) == expected
    assert in_duckdb(pa.array(TEXTS).dictionary_encode(), space) == expected


def test_sql_reads_numbers() -> None:
    assert in_duckdb(pa.array([0, 255, 256, -1, None], pa.int64()), KeySpace(256)) == [0, 255, None, None, None]
    assert in_duckdb(pa.array([0, 2**64 - 1], pa.uint64()), KeySpace.bits(64)) == [0, 2**64 - 1]
    decimals = pa.array([Decimal("0.5"), Decimal("0.00000001"), Decimal("1"), Decimal("0.000000001")], pa.decimal128(18, 9))
    assert in_duckdb(decimals, KeySpace.decimals(8)) == [50000000, 1, None, None]


@pytest.mark.parametrize("space", [KeySpace(256), KeySpace.decimals(8)])
def test_floats_are_refused(space: KeySpace) -> None:
    with pytest.raises(InvalidCount, match="has type double"):
        in_duckdb(pa.array([0.5]), space)
