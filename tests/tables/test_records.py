"""Counting records: every source counts alike, nothing is lost, and errors tell neither values nor how many records have them."""

from __future__ import annotations

import itertools
import os
import stat
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import (
    EmptyTable,
    HoldfastError,
    InvalidCode,
    InvalidCount,
    InvalidParameter,
    OutOfScope,
    OutsideUniverse,
    TooManyRecords,
    UnknownColumn,
    UnreadableInput,
)
from holdfast.tables import Hierarchy, Table, Universe
from holdfast.tables.session import private_session
from tests.examples import examples
from tests.tables.reference import as_columns, codes, refused, rows_of, slow_counts

SECRET = "Zzyzx-7319465"
"""A code or identifier that must not show up anywhere."""

SEX_AGE = {"sex": ["F", "M"], "age": ["85+", "01", "1", "unused"]}
RECORDS = [("F", "01"), ("M", "85+"), ("F", "01"), ("M", "1"), ("F", "01"), ("M", "85+")]
FRAME = pa.table(
    {"sex": [sex for sex, _ in RECORDS], "x": range(6), "age": [age for _, age in RECORDS], "id": ["a", "b", "c", "d", "e", "a"]}
)
COUNTS = slow_counts(list(itertools.product(*SEX_AGE.values())), RECORDS)


@pytest.fixture
def database(tmp_path) -> str:
    path = tmp_path / "secret-folder.db"
    FRAME.to_pandas().assign(huge=2**40).to_sql("records", f"sqlite:///{path}", index=False)
    return f"sqlite:///{path}"


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch) -> Iterator[Path]:
    """A folder of its own for temporary files, which must be empty in the end."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


class TestSources:
    def test_all_count_alike(self, tmp_path, database) -> None:
        pq.write_table(FRAME, tmp_path / "r.parquet")
        pq.write_table(FRAME.append_column("SEX", FRAME["age"]), tmp_path / "case.parquet")
        FRAME.to_pandas().to_csv(tmp_path / "r.csv", index=False)
        connection = duckdb.connect()
        connection.register("frame", FRAME)
        encoded = FRAME.set_column(0, "sex", FRAME["sex"].dictionary_encode())
        sources = [
            FRAME,
            encoded,
            FRAME.to_reader(),
            FRAME.to_pandas(),
            FRAME.to_pandas().astype({"sex": "category"}),
            pl.from_arrow(FRAME),
        ]
        sources += [pl.from_arrow(FRAME).with_columns(pl.col("sex").cast(pl.Categorical)), connection.sql("FROM frame")]
        sources += [tmp_path / "r.parquet", tmp_path / "case.parquet", tmp_path / "r.csv", str(tmp_path / "r.csv")]
        for source in sources:
            table = Table.from_records(source, SEX_AGE)
            assert table.counts.tolist() == COUNTS, type(source)
            assert table.universe == Universe.product(SEX_AGE)
        for make in (
            lambda: FRAME,
            lambda: FRAME.to_reader(),
            lambda: tmp_path / "r.parquet",
            lambda: tmp_path / "case.parquet",
            lambda: tmp_path / "r.csv",
        ):
            assert Table.from_records(make(), SEX_AGE, id="id", max_records=2).counts.tolist() == COUNTS
            refused(TooManyRecords, partial(Table.from_records, make(), SEX_AGE, id="id", max_records=1))
        query = "SELECT sex, age, id FROM records WHERE x < 100 AND age <> ':p' AND age NOT LIKE '9%'"
        assert Table.from_records(database, SEX_AGE, query=query, id="id", max_records=2).counts.tolist() == COUNTS

    def test_the_adults(self, shared_data) -> None:
        universe = {"sex": ["Male", "Female"], "income": ["<=50K", ">50K"]}
        table = Table.from_records(shared_data / "adult.csv", universe)
        assert int(table.counts.sum()) == 48_842
        assert table.counts.reshape(2, 2).sum(axis=0).tolist() == [37_155, 11_687]
        assert (table.protect, table.max_records, table.count_name, table.universe.support) == ("person", 1, "count", "declared")

    @settings(max_examples=examples(40))
    @given(st.lists(st.tuples(codes, codes), min_size=1, max_size=15), st.sampled_from(["arrow", "csv", "parquet"]))
    def test_odd_codes(self, tmp_path_factory, records, kind) -> None:
        frame = pa.table(dict(as_columns(records, ["State", "state"])))
        source = frame
        if kind == "csv":
            source = tmp_path_factory.mktemp("odd") / "r.csv"
            frame.to_pandas().to_csv(source, index=False, lineterminator="\n", quoting=1)
        elif kind == "parquet":
            source = tmp_path_factory.mktemp("odd") / "r.parquet"
            pq.write_table(frame, source)
        declared = {name: list(dict.fromkeys([*frame[name].to_pylist(), "never"])) for name in ("State", "state")}
        table = Table.from_records(source, declared, allow_similar_codes=True)
        assert table.counts.tolist() == slow_counts(list(itertools.product(*declared.values())), records)
        cells = sorted(set(records), key=lambda record: [code.encode() for code in record])
        observed = Table.from_records(source, ["State", "state"], universe="observed", allow_similar_codes=True)
        assert rows_of(observed.frame, ["State", "state"]) == cells
        assert observed.counts.tolist() == slow_counts(cells, records)

    def test_an_empty_field_counts_as_the_empty_code_if_that_is_declared(self, tmp_path) -> None:
        (tmp_path / "r.csv").write_text('a,b\n,1\n"",1\nx,1\n')
        assert Table.from_records(tmp_path / "r.csv", {"a": ["", "x"]}).counts.tolist() == [2, 1]
        assert "(column 'a')" in refused(OutsideUniverse, lambda: Table.from_records(tmp_path / "r.csv", {"a": ["x"]}))

    def test_blank_lines(self, tmp_path) -> None:
        """Skipped where they cannot be a record; in a file of one column they are one."""
        (tmp_path / "r.csv").write_text("a,b\nx,1\n\nx,1\n\n")
        assert Table.from_records(tmp_path / "r.csv", {"a": ["", "x"]}).counts.tolist() == [0, 2]
        (tmp_path / "r.csv").write_text("a\nx\n\nx\n")
        assert Table.from_records(tmp_path / "r.csv", {"a": ["", "x"]}).counts.tolist() == [1, 2]
        refused(OutsideUniverse, lambda: Table.from_records(tmp_path / "r.csv", {"a": ["x"]}))

    def test_a_column_of_codes_named_count(self) -> None:
        frame = pa.table({"count": ["x", "y", "x"]})
        refused(UnknownColumn, lambda: Table.from_records(frame, {"count": ["x", "y"]}))
        for table in (
            Table.from_records(frame, {"count": ["x", "y"]}, count="n"),
            Table.from_records(frame, ["count"], universe="observed", count="n"),
        ):
            assert rows_of(table.frame, ["count", "n"]) == [("x", 2), ("y", 1)]
            assert table.count_name == "n"


class TestUniverse:
    def test_listed_cells(self) -> None:
        universe = Universe.listed({"sex": ["M", "F", "F", "M"], "age": ["1", "01", "1", "85+"]})
        table = Table.from_records(FRAME, universe=universe)
        assert table.counts.tolist() == [1, 3, 0, 2]
        assert Table.from_records(FRAME, ["sex", "age"], universe=universe).counts.tolist() == [1, 3, 0, 2]

    def test_a_combination_that_is_not_listed(self) -> None:
        universe = Universe.listed({"sex": ["M", "F", "F"], "age": ["1", "01", "85+"]})
        message = refused(OutsideUniverse, lambda: Table.from_records(FRAME, universe=universe), "85+")
        assert message.startswith("Records of the pyarrow Table lie outside the universe")

    def test_undeclared_codes(self) -> None:
        frame = pa.table({"a": ["x", SECRET, None, SECRET], "b": ["1", "1", "1", SECRET]})
        message = refused(OutsideUniverse, lambda: Table.from_records(frame, {"a": ["x"], "b": ["1"]}), SECRET)
        assert "(columns 'a', 'b')" in message

    def test_a_hierarchy_stands_for_its_leaves(self) -> None:
        tree = Hierarchy.from_tree("young\n@01\n@1\n85+")
        table = Table.from_records(FRAME, {"age": tree})
        assert table.counts.tolist() == [3, 1, 2]
        assert table.universe.hierarchies["age"].leaves("young") == ("01", "1")

    def test_observed_is_opt_in_and_says_so(self) -> None:
        table = Table.from_records(FRAME, ["sex", "age"], universe="observed", max_records=None)
        assert table.universe.support == "observed"
        assert table.max_records is None
        assert rows_of(table.frame, ["sex", "age", "count"]) == [("F", "01", 3), ("M", "1", 1), ("M", "85+", 2)]
        assert "observed" in repr(table)

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"cells": ["sex"]},
            {"universe": "observed"},
            {"cells": SEX_AGE, "universe": "observed"},
            {"cells": ["sex"], "universe": "all"},
            {"cells": SEX_AGE, "universe": Universe.product(SEX_AGE)},
            {"cells": ["age", "sex"], "universe": Universe.product(SEX_AGE)},
        ],
    )
    def test_must_be_declared(self, arguments) -> None:
        assert "must be declared" in refused(InvalidParameter, lambda: Table.from_records(FRAME, **arguments))

    def test_observed_refuses_missing_codes(self) -> None:
        frame = pa.table({"a": ["x", None, None]})
        assert ", records have no code" in refused(InvalidCode, lambda: Table.from_records(frame, ["a"], universe="observed"))

    def test_no_records(self, tmp_path) -> None:
        (tmp_path / "r.csv").write_text("sex,age\n")
        refused(EmptyTable, lambda: Table.from_records(tmp_path / "r.csv", SEX_AGE))
        refused(EmptyTable, lambda: Table.from_records(FRAME.slice(0, 0), ["sex"], universe="observed"))

    def test_wrong_columns(self, tmp_path) -> None:
        refused(UnknownColumn, lambda: Table.from_records(FRAME, {"Sex": ["F"]}))
        assert "Its columns: 'sex'" in refused(UnknownColumn, lambda: Table.from_records(FRAME, SEX_AGE, id="ID"))
        assert "has type int64" in refused(InvalidCode, lambda: Table.from_records(FRAME, {"x": ["1"]}))
        pq.write_table(FRAME, tmp_path / "r.parquet")
        assert "has type int64" in refused(InvalidCode, lambda: Table.from_records(tmp_path / "r.parquet", {"x": ["1"]}))

    def test_text_that_is_not_utf8(self) -> None:
        frame = pa.table({"a": pa.array([b"7319465\xff", b"x"]).view(pa.string())})
        refused(InvalidCode, lambda: Table.from_records(frame, {"a": ["x"]}), "7319465")
        refused(InvalidCode, lambda: Table.from_records(frame, ["a"], universe="observed"), "7319465")


def _men(times: int, **others: list[str | None]) -> pa.Table:
    return pa.table({"sex": ["F", *["M"] * times], **{name: [codes[0], *[codes[1]] * times] for name, codes in others.items()}})


LISTED = Universe.listed({"sex": ["F", "M", "M"], "age": ["1", "1", "2"]})
REFUSED_BY_NUMBER: dict[str, tuple[type[HoldfastError], Callable[[int], Table]]] = {
    "undeclared code": (OutsideUniverse, lambda n: Table.from_records(_men(n), {"sex": ["F"]})),
    "missing code": (OutsideUniverse, lambda n: Table.from_records(_men(n, age=["1", None]), {"sex": ["F", "M"], "age": ["1"]})),
    "unlisted cell": (OutsideUniverse, lambda n: Table.from_records(_men(n, age=["2", "1"]).take([0] * n), universe=LISTED)),
    "missing code, observed": (InvalidCode, lambda n: Table.from_records(_men(n, age=["1", None]), ["age"], universe="observed")),
    "identifier too often": (
        TooManyRecords,
        lambda n: Table.from_records(pa.table({"a": ["x"] * 2 * n, "i": [*map(str, range(n))] * 2}), {"a": ["x"]}, id="i"),
    ),
    "identifier missing": (TooManyRecords, lambda n: Table.from_records(_men(n, i=["1", None]), {"sex": ["F", "M"]}, id="i")),
}


@pytest.mark.parametrize("case", REFUSED_BY_NUMBER)
def test_messages_do_not_tell_how_many_records(case) -> None:
    """One message, however many records it is about: "column 'sex': 32650 rows" told how many men there are."""
    kind, work = REFUSED_BY_NUMBER[case]
    assert len({refused(kind, partial(work, n)) for n in (1, 2, 4231)}) == 1


class TestPromise:
    def test_too_many_records(self) -> None:
        ids = [SECRET, SECRET, SECRET, "b", "b", "c"]
        frame = FRAME.set_column(3, "id", pa.array(ids))
        message = refused(TooManyRecords, lambda: Table.from_records(frame, SEX_AGE, id="id"), SECRET)
        assert "In column 'id' of the pyarrow Table, identifiers have more than 1 record," in message
        message = refused(TooManyRecords, lambda: Table.from_records(frame, SEX_AGE, id="id", max_records=2), SECRET)
        assert "identifiers have more than 2 records" in message
        assert Table.from_records(frame, SEX_AGE, id="id", max_records=3).max_records == 3

    def test_identifiers_of_other_types(self) -> None:
        assert Table.from_records(FRAME, SEX_AGE, id="x").counts.tolist() == COUNTS

    def test_identifiers_that_are_missing(self, tmp_path) -> None:
        frame = FRAME.set_column(3, "id", pa.array(["a", None, "c", None, "e", "f"]))
        assert ", records have no identifier" in refused(TooManyRecords, lambda: Table.from_records(frame, SEX_AGE, id="id"))
        frame.to_pandas().to_csv(tmp_path / "r.csv", index=False)
        assert ", records have no identifier" in refused(TooManyRecords, lambda: Table.from_records(tmp_path / "r.csv", SEX_AGE, id="id"))

    def test_an_identifier_without_a_limit(self) -> None:
        refused(InvalidParameter, lambda: Table.from_records(FRAME, SEX_AGE, id="id", max_records=None))

    def test_weights(self) -> None:
        assert "unweighted" in refused(OutOfScope, lambda: Table.from_records(FRAME, SEX_AGE, weight="x"))


class TestDatabases:
    def test_counts_from_a_query(self, database) -> None:
        table = Table.from_counts(database, ["sex"], "n", query="SELECT sex, count(*) AS n FROM records GROUP BY sex ORDER BY sex")
        assert rows_of(table.frame, ["sex", "n"]) == [("F", 3), ("M", 3)]

    def test_many_batches(self, database, monkeypatch) -> None:
        monkeypatch.setattr("holdfast.tables.databases.BATCH_ROWS", 2)
        assert Table.from_records(database, SEX_AGE, query="SELECT * FROM records").counts.tolist() == COUNTS

    def test_a_duckdb_file(self, tmp_path) -> None:
        with duckdb.connect(str(tmp_path / "r.db")) as connection:
            connection.register("frame", FRAME)
            connection.execute("CREATE TABLE records AS FROM frame")
        url = f"duckdb:///{tmp_path}/r.db"
        assert Table.from_records(url, SEX_AGE, query="FROM records").counts.tolist() == COUNTS
        (tmp_path / "other.csv").write_text("sex,age\nF,01\n")
        refused(UnreadableInput, lambda: Table.from_records(url, SEX_AGE, query=f"FROM '{tmp_path}/other.csv'"), str(tmp_path))
        refused(UnreadableInput, lambda: Table.from_records(url, SEX_AGE, query="DROP TABLE records"), str(tmp_path))
        refused(UnreadableInput, lambda: Table.from_records(url + "x", SEX_AGE, query="FROM records"), str(tmp_path))

    def test_nothing_is_written(self, database) -> None:
        path = database.removeprefix("sqlite:///")
        before = Path(path).read_bytes()
        urls = [database, database + "?timeout=3", f"sqlite:///file:{path}?mode=rwc&uri=true", f"sqlite:///file:{path}%23x?uri=true"]
        statements = ["DELETE FROM records", "CREATE TABLE mine (a)", "DROP TABLE records", "PRAGMA user_version = 5"]
        for url, statement in itertools.product(urls, statements):
            refused(UnreadableInput, partial(Table.from_records, url, SEX_AGE, query=statement), path)
        assert Path(path).read_bytes() == before
        assert [file.name for file in Path(path).parent.iterdir()] == [Path(path).name]
        assert Table.from_records(urls[2], SEX_AGE, query="SELECT * FROM records").counts.tolist() == COUNTS
        assert Table.from_records(database, SEX_AGE, query="SELECT * FROM records").counts.tolist() == COUNTS

    def test_a_database_with_an_odd_name(self, database, tmp_path) -> None:
        odd = tmp_path / "a b?c#d%20é.db"
        os.rename(database.removeprefix("sqlite:///"), odd)
        url = sqlalchemy.URL.create("sqlite", database=str(odd)).render_as_string()
        assert Table.from_records(url, SEX_AGE, query="SELECT * FROM records").counts.tolist() == COUNTS

    @pytest.mark.parametrize(
        "url",
        [
            "postgresql://user:pass-word@host.example/base",
            "sqlite:////no-such-folder/pass-word.db",
            "mysql://user:pass-word@host.example/base",
            "sqlite://pass-word@host.example:x/y",
        ],
    )
    def test_urls_are_not_shown(self, url) -> None:
        message = refused(
            UnreadableInput,
            lambda: Table.from_records(url, SEX_AGE, query="SELECT 'pass-word'"),
            "pass-word",
            "host.example",
            "user:",
            "no-such",
        )
        assert url.split(":")[0] in message

    def test_wrong_queries(self, database) -> None:
        refused(InvalidParameter, lambda: Table.from_records(database, SEX_AGE), "secret-folder")
        message = refused(
            UnreadableInput, lambda: Table.from_records(database, SEX_AGE, query=f"SELECT '{SECRET}' FROM nowhere"), SECRET, "secret-folder"
        )
        assert "sqlite" in message
        path = database.removeprefix("sqlite:///") + "2"
        assert "does not exist" in refused(
            UnreadableInput, lambda: Table.from_records(database + "2", SEX_AGE, query="SELECT 1"), "secret-folder"
        )
        assert not os.path.exists(path)

    def test_types(self, database) -> None:
        numbers = "SELECT sex, x AS age FROM records"
        assert "Codes must be text" in refused(InvalidCode, lambda: Table.from_records(database, SEX_AGE, query=numbers))
        mixed = "SELECT sex, CASE WHEN x = 0 THEN 1 ELSE age END AS age FROM records"
        assert "several types" in refused(UnreadableInput, lambda: Table.from_records(database, SEX_AGE, query=mixed))

    def test_a_message_of_the_driver_is_not_the_context(self, database) -> None:
        with pytest.raises(UnreadableInput) as caught:
            Table.from_records(database, SEX_AGE, query="SELECT broken FROM records")
        assert not isinstance(caught.value.__context__, sqlalchemy.exc.SQLAlchemyError)


class TestTemporaryFiles:
    def test_private_and_removed(self, temporary, tmp_path) -> None:
        (tmp_path / "r.csv").write_text("a\nx\n")
        with private_session(tmp_path / "r.csv") as session:
            (folder,) = temporary.iterdir()
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            spill = session.connection.sql("SELECT current_setting('temp_directory')").fetchall()[0][0]
            assert Path(spill).parent == folder
            assert session.connection.sql(f"SELECT count(*) FROM read_csv('{session.file}', header = true)").fetchall() == [(1,)]
            for sql in (
                "FROM '/etc/passwd'",
                f"COPY (SELECT 1) TO '{tmp_path}/out.csv'",
                "SET enable_external_access = true",
                "INSTALL httpfs",
            ):
                with pytest.raises(duckdb.Error):
                    session.connection.execute(sql)
        assert not (tmp_path / "out.csv").exists()

    def test_removed_after_a_failure_while_the_error_is_held(self, temporary, tmp_path) -> None:
        (tmp_path / "r.csv").write_text("a,n\n" + "x,1\n" * 10 + f"{SECRET}\n")
        for work in (
            lambda: Table.from_records(tmp_path / "r.csv", {"a": ["x"]}),
            lambda: Table.from_counts(tmp_path / "r.csv", ["a"], "n"),
        ):
            with pytest.raises(UnreadableInput) as caught:
                work()
            assert list(temporary.iterdir()) == []
            assert SECRET not in str(caught.value)

    def test_removed_while_a_refused_count_is_held(self, temporary, tmp_path) -> None:
        (tmp_path / "r.csv").write_text("a,n\n" + "".join(f"{i},{i - 1}\n" for i in range(100_000)))
        with pytest.raises(InvalidCount, match="row 1 of") as caught:
            Table.from_counts(tmp_path / "r.csv", ["a"], "n")
        assert list(temporary.iterdir()) == []
        assert caught.value.__context__ is None

    def test_pandas_with_an_index_of_its_own(self) -> None:
        frame = FRAME.to_pandas().set_index(pd.Index(range(10, 16), name="row"))
        assert Table.from_records(frame, SEX_AGE).counts.tolist() == COUNTS


@pytest.mark.parametrize("other", ["id", "record_key"])
def test_identifiers_and_keys_are_no_column_of_cells(other: str) -> None:
    records = pa.table({"sex": ["F", "M"], "number": ["1", "2"]})
    given: dict[str, Any] = {"max_records": 1, other: "number"}
    for cells in ({"universe": "observed", "cells": ["sex", "number"]}, {"cells": {"sex": ["F", "M"], "number": ["1", "2"]}}):
        with pytest.raises(InvalidCode, match="Column 'number' holds identifiers or keys"):
            Table.from_records(records, **cells, **given)
