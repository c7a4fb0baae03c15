"""Cell keys: sums of record keys modulo 2^32, read from records or given with counts, and as confidential as counts."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import ConfidentialTable, InvalidCount, TooManyRecords, UnknownColumn
from holdfast.tables import Table, Universe
from holdfast.tables.columns import KEY_BITS, KEY_LIMIT
from tests.tables.reference import refused

SECRET = "4019283746"
"""A valid key that must not show up anywhere."""

CODES = {"sex": ["F", "M"], "age": ["young", "old", "nobody"]}
CELLS = list(itertools.product(*CODES.values()))
RECORDS = [("F", "old", 2**32 - 1), ("M", "young", int(SECRET)), ("F", "old", 2**32 - 1), ("F", "old", 5), ("M", "old", 0)]


def frame_of(records: list[tuple[str, str, int]], kind: pa.DataType | None = None) -> pa.Table:
    sexes, ages, keys = zip(*records, strict=True)
    return pa.table({"sex": sexes, "x": ["?"] * len(keys), "rkey": pa.array(keys, kind or pa.int64()), "age": ages})


def slow_keys(records: list[tuple[str, str, int]]) -> list[int]:
    return [sum(key for *codes, key in records if tuple(codes) == cell) % 2**KEY_BITS for cell in CELLS]


def in_memory(frame: pa.Table, folder: Path) -> Any:
    return frame


def as_csv(frame: pa.Table, folder: Path) -> Any:
    pyarrow.csv.write_csv(frame, folder / "people.csv")
    return folder / "people.csv"


def as_parquet(frame: pa.Table, folder: Path) -> Any:
    pq.write_table(frame, folder / "people.parquet")
    return folder / "people.parquet"


SOURCES = pytest.mark.parametrize("source", [in_memory, as_csv, as_parquet])
Write = Callable[[pa.Table, Path], Any]


class TestRecords:
    @SOURCES
    def test_sums_wrap_around_and_empty_cells_have_key_zero(self, source: Write, tmp_path: Path) -> None:
        table = Table.from_records(source(frame_of(RECORDS), tmp_path), CODES, record_key="rkey")
        assert table.cell_keys is not None
        assert table.cell_keys.tolist() == slow_keys(RECORDS) == [0, 3, 0, int(SECRET), 0, 0]
        assert table.cell_keys.dtype == np.int64
        assert table.counts.tolist() == [0, 3, 0, 1, 1, 0]

    @settings(max_examples=30)
    @given(
        st.lists(st.tuples(st.sampled_from("FM"), st.sampled_from(["young", "old"]), st.integers(0, 2**32 - 1)), min_size=1, max_size=30)
    )
    def test_agrees_with_the_slow_version(self, records: list[tuple[str, str, int]]) -> None:
        table = Table.from_records(frame_of(records), CODES, record_key="rkey")
        assert table.cell_keys is not None
        assert table.cell_keys.tolist() == slow_keys(records)

    def test_observed_cells(self) -> None:
        table = Table.from_records(frame_of(RECORDS), ["sex", "age"], universe="observed", record_key="rkey")
        assert table.cell_keys is not None
        expected = dict(zip(CELLS, slow_keys(RECORDS), strict=True))
        names = [tuple(row[column] for column in CODES) for row in table.universe.frame().to_pylist()]
        assert table.cell_keys.tolist() == [expected[name] for name in names]

    @pytest.mark.parametrize(
        "keys",
        [
            pa.array([1, 2**32 - 1], pa.uint32()),
            pa.array([1, 2**32 - 1], pa.uint64()),
            pa.array([Decimal(1), Decimal(2**32 - 1)], pa.decimal128(20, 0)),
            pa.array(["1", str(2**32 - 1)]),
            pa.array(["1", str(2**32 - 1)]).dictionary_encode(),
        ],
    )
    def test_types(self, keys: pa.Array) -> None:
        table = Table.from_records(pa.table({"a": ["x", "x"], "k": keys}), {"a": ["x"]}, record_key="k")
        assert table.cell_keys is not None
        assert table.cell_keys.tolist() == [0]

    def test_beside_an_identifier(self) -> None:
        frame = frame_of(RECORDS).append_column("id", pa.array(list("abcda")))
        read = partial(Table.from_records, frame, CODES, id="id", record_key="rkey")
        keys = read(max_records=2).cell_keys
        assert keys is not None
        assert keys.tolist() == slow_keys(RECORDS)
        refused(TooManyRecords, read, SECRET)

    @pytest.mark.ordinary("in_memory", "None", "-4019283746")
    @SOURCES
    @pytest.mark.parametrize("value", [None, -int(SECRET), 2**32, 10**18 + int(SECRET)])
    def test_refused_with_file_column_and_row(self, source: Write, value: int | None, tmp_path: Path) -> None:
        keys = [*range(300_000), value, None, 0]  # the first bad row is named, also far down and whatever the threads
        data = source(pa.table({"a": ["x"] * len(keys), "rkey": pa.array(keys, pa.int64())}), tmp_path)
        message = refused(InvalidCount, lambda: Table.from_records(data, {"a": ["x"]}, record_key="rkey"), SECRET, str(tmp_path))
        assert "column 'rkey', row 300001 of " in message
        assert getattr(data, "name", "the pyarrow Table") in message

    @pytest.mark.parametrize(
        "text", ["", " 1", "1 ", "+1", "01", "1.0", "1e3", "0x1", "1_0", "x" + SECRET, f"{SECRET}\n", SECRET * 9, "\u0663"]
    )
    def test_text_in_other_than_plain_digits(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "r.csv").write_text(f'a,k\nx,{SECRET}\nx,"{text}"\n')
        for data in (tmp_path / "r.csv", pa.table({"a": ["x", "x"], "k": [SECRET, text]})):
            message = refused(InvalidCount, partial(Table.from_records, data, {"a": ["x"]}, record_key="k"), SECRET)
            assert "column 'k', row 2 of " in message

    @pytest.mark.parametrize("keys", [pa.array([0.25]), pa.array([True]), pa.array([Decimal("1.5")]), pa.array([1], pa.decimal256(40, 0))])
    def test_other_types(self, keys: pa.Array) -> None:
        message = refused(InvalidCount, lambda: Table.from_records(pa.table({"a": ["x"], "k": keys}), {"a": ["x"]}, record_key="k"), SECRET)
        assert "Cast it to integers" in message

    def test_columns(self) -> None:
        refused(UnknownColumn, lambda: Table.from_records(frame_of(RECORDS), CODES, record_key="key"), SECRET)
        refused(UnknownColumn, lambda: Table.from_records(frame_of(RECORDS), CODES, id="rkey", record_key="rkey"), SECRET)


class TestCounts:
    FRAME = pa.table({"a": ["x", "y", "z"], "n": [2, 0, 7], "ckey": pa.array([2**32 - 1, 0, int(SECRET)], pa.int64())})

    @SOURCES
    def test_keys_come_as_listed(self, source: Write, tmp_path: Path) -> None:
        table = Table.from_counts(source(self.FRAME, tmp_path), ["a"], "n", cell_key="ckey")
        assert table.cell_keys is not None
        assert table.cell_keys.tolist() == [2**32 - 1, 0, int(SECRET)]
        assert table.counts.tolist() == [2, 0, 7]

    @SOURCES
    @pytest.mark.parametrize("value", [None, -int(SECRET), 2**32, 10**18 + int(SECRET)])
    def test_refused_with_file_column_and_row(self, source: Write, value: int | None, tmp_path: Path) -> None:
        data = source(self.FRAME.set_column(2, "ckey", pa.array([1, 0, value], pa.int64())), tmp_path)
        message = refused(InvalidCount, lambda: Table.from_counts(data, ["a"], "n", cell_key="ckey"), SECRET, str(tmp_path))
        assert "This is not a cell key: column 'ckey', row 3 of " in message

    def test_other_types(self) -> None:
        data = self.FRAME.set_column(2, "ckey", pa.array([0.5, 0.0, 0.25]))
        assert "Cell keys must be whole numbers" in refused(InvalidCount, lambda: Table.from_counts(data, ["a"], "n", cell_key="ckey"))

    def test_an_empty_cell_with_a_key(self) -> None:
        data = self.FRAME.set_column(2, "ckey", pa.array([1, int(SECRET), 1], pa.int64()))
        assert "empty cell" in refused(InvalidCount, lambda: Table.from_counts(data, ["a"], "n", cell_key="ckey"), SECRET)

    def test_columns(self) -> None:
        refused(UnknownColumn, lambda: Table.from_counts(self.FRAME, ["a"], "n", cell_key="key"), SECRET)
        refused(UnknownColumn, lambda: Table.from_counts(self.FRAME, ["a"], "n", cell_key="n"), SECRET)


class TestConfidential:
    @pytest.fixture
    def table(self) -> Table:
        return Table.from_counts(TestCounts.FRAME, ["a"], "n", cell_key="ckey")

    def test_keys_are_not_shown(self, table: Table, tmp_path: Path) -> None:
        table.save(tmp_path / "t.csv")
        for text in (repr(table), str(table), repr(table.frame), (tmp_path / "t.csv").read_text()):
            assert SECRET not in text
        refused(ConfidentialTable, partial(pickle.dumps, table), SECRET)

    def test_keys_cannot_be_changed(self, table: Table) -> None:
        assert table.cell_keys is not None
        with pytest.raises(ValueError, match="read-only"):
            table.cell_keys[0] = 1
        mine = np.array([4, 0, 5])
        made = Table(table.universe, table.counts, cell_keys=mine)
        mine[0] = 9
        assert made.cell_keys is not None
        assert made.cell_keys.tolist() == [4, 0, 5]

    def test_none_where_none_were_given(self, table: Table) -> None:
        assert Table(table.universe, table.counts).cell_keys is None
        assert Table.from_counts(TestCounts.FRAME, ["a"], "n").cell_keys is None
        assert Table.from_records(frame_of(RECORDS), CODES).cell_keys is None

    @pytest.mark.parametrize("keys", [np.array([1.0]), np.array([1, 2]), np.array([-1]), np.array([KEY_LIMIT]), [1]])
    def test_made_by_hand(self, keys: Any) -> None:
        refused(InvalidCount, lambda: Table(Universe.product({"a": ["x"]}), np.array([3]), cell_keys=keys))
