"""What is wrong with a database is told of what is wrong: the statement, the connection; and a plan asks for codes only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from holdfast.errors import InvalidParameter, UnreadableInput
from holdfast.tables import Declarations, Table
from tests.tables.reference import refused

ROWS = [("17", "031", 918273645546), ("17", "043", 12), ("18", "001", 7)]


@pytest.fixture(params=["sqlite", "duckdb"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    connect = sqlite3.connect if request.param == "sqlite" else duckdb.connect
    connection = connect(str(tmp_path / "census.db"))
    connection.execute("CREATE TABLE counties (state TEXT, county TEXT, people BIGINT)")
    connection.executemany("INSERT INTO counties VALUES (?, ?, ?)", ROWS)
    if request.param == "sqlite":
        connection.commit()
    connection.close()
    return f"{request.param}:///{tmp_path}/census.db"


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT state, county, people FROM countys", "countys"),
        ("SELECT state, county, poeple FROM counties", "poeple"),
        ("SELCT state FROM counties", "SELCT"),
    ],
)
def test_a_wrong_statement_is_blamed_on_the_statement(url: str, tmp_path: Path, query: str, word: str) -> None:
    message = refused(
        UnreadableInput, lambda: Table.from_counts(url, ["state", "county"], "people", query=query), "918273645546", str(tmp_path)
    )
    assert message.startswith(f"The statement given as query is wrong. The {url.split(':')[0]} database says: ")
    assert word in message
    with pytest.raises(UnreadableInput) as planned:
        Declarations.from_counts(url, ["state", "county"], "people", query=query)
    assert (str(planned.value), planned.value.field) == (message, "query")


def test_a_failure_among_the_rows_tells_nothing_of_them(url: str) -> None:
    """The statement is right, and its answer is not: a count too many for the database, or a text that is no number."""
    wrong = "CAST(county || 'x' AS BIGINT)" if url.startswith("duckdb") else "abs(-9223372036854775807 - people / people)"
    message = refused(
        UnreadableInput,
        lambda: Table.from_counts(url, ["state", "county"], "n", query=f"SELECT state, county, {wrong} AS n FROM counties"),
        "031",
        "overflow",
    )
    assert "left out" in message


def test_a_plan_asks_the_database_for_the_codes_alone(url: str) -> None:
    """An access trace by the database itself: a column of counts that cannot be computed is no hindrance, so nobody asked for it."""
    wrong = "error('looked at')" if url.startswith("duckdb") else "abs(-9223372036854775807 - people / people)"
    query = f"SELECT state, county, {wrong} AS people FROM counties ORDER BY county;  "
    refused(UnreadableInput, lambda: Table.from_counts(url, ["state", "county"], "people", query=query))
    found = Declarations.from_counts(url, ["state", "county"], "people", query=query)
    right = Table.from_counts(url, ["state", "county"], "people", query="SELECT * FROM counties ORDER BY county -- all of it")
    assert found.universe == right.universe
    declared = Declarations.from_counts(url, ["state", "county"], "people", query="SELECT * FROM counties ORDER BY county -- all of it")
    assert declared.universe == right.universe


def test_a_constraint_of_another_kind_is_planned_too(url: str) -> None:
    """SQLite takes no PRAGMA in a FROM clause: it is run as it is, and its other columns are dropped."""
    name, query = ("column_name", "DESCRIBE counties") if url.startswith("duckdb") else ("name", "PRAGMA table_info(counties)")
    found = Declarations.from_counts(url, [name], "null" if url.startswith("duckdb") else "cid", query=query)
    assert found.universe.codes[name] == ("county", "people", "state")  # not declared public: in the order of the codes


def test_a_missing_column_of_counts_is_found_without_reading(url: str) -> None:
    from holdfast.errors import UnknownColumn

    query = "SELECT state, county FROM counties"
    message = refused(UnknownColumn, lambda: Declarations.from_counts(url, ["state", "county"], "people", query=query))
    assert "no column 'people'" in message


@pytest.mark.postgres
def test_a_server_that_is_not_there_is_blamed_on_the_server() -> None:
    url = "postgresql://me:s3cret@127.0.0.1:1/census"
    message = refused(UnreadableInput, lambda: Table.from_counts(url, ["a"], "n", query="SELECT 1"), "s3cret", "127.0.0.1")
    assert "cannot be reached" in message


@pytest.mark.parametrize(
    "query", ["VACUUM INTO '{other}'", "ATTACH '{other}' AS other", "CREATE TEMP TABLE own (a)", "PRAGMA journal_mode = WAL"]
)
def test_a_query_of_sqlite_writes_no_file(tmp_path: Path, query: str) -> None:
    """The first two made a file, though the database was open for reading only: one of them with all its rows."""
    connection = sqlite3.connect(tmp_path / "census.db")
    connection.execute("CREATE TABLE counties (state TEXT, people BIGINT)")
    connection.execute("INSERT INTO counties VALUES ('17', 12)")
    connection.commit()
    connection.close()
    url, other = f"sqlite:///{tmp_path}/census.db", tmp_path / "other.db"
    for kind in (Table, Declarations):
        with pytest.raises(UnreadableInput, match="would do more than read its database") as found:
            kind.from_counts(url, ["state"], "people", query=query.format(other=other))
        assert found.value.field == "query"
    assert [path.name for path in tmp_path.iterdir()] == ["census.db"]


def test_a_query_of_duckdb_writes_no_file(tmp_path: Path) -> None:
    duckdb.connect(str(tmp_path / "census.db")).execute("CREATE TABLE counties AS SELECT '17' AS state, 12 AS people").close()
    other = tmp_path / "other.db"
    for query in (f"ATTACH '{other}' AS other", f"COPY counties TO '{other}'", f"SELECT 1; COPY counties TO '{other}'"):
        refused(UnreadableInput, lambda: Table.from_counts(f"duckdb:///{tmp_path}/census.db", ["state"], "people", query=query))  # noqa: B023
    assert [path.name for path in tmp_path.iterdir()] == ["census.db"]


def test_reading_of_every_kind_is_still_a_query(tmp_path: Path) -> None:
    """Views, functions, recursion, virtual tables and the list of columns."""
    connection = sqlite3.connect(tmp_path / "census.db")
    connection.execute("CREATE TABLE counties (state TEXT, people BIGINT)")
    connection.execute("INSERT INTO counties VALUES ('17', 12)")
    connection.execute("CREATE VIEW seen AS SELECT state, sum(people) AS people FROM counties GROUP BY state")
    connection.execute("CREATE VIRTUAL TABLE words USING fts5(state)")
    connection.execute("CREATE VIRTUAL TABLE boxes USING rtree(id, low, high)")
    connection.execute("INSERT INTO words VALUES ('17')")
    connection.commit()
    connection.close()
    queries = [
        "SELECT * FROM seen",
        "SELECT state, people FROM counties WHERE state IN (SELECT value FROM json_each('[\"17\"]'))",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12) SELECT '17' AS state, max(i) AS people FROM n",
        "SELECT state, 12 AS people FROM words WHERE words MATCH '17'",
        "SELECT '17' AS state, 12 + count(*) AS people FROM boxes",
        "SELECT '17' AS state, 10 + count(*) AS people FROM pragma_table_info('counties')",
    ]
    for query in queries:
        table = Table.from_counts(f"sqlite:///{tmp_path}/census.db", ["state"], "people", query=query)
        assert (table.universe.codes["state"], table.counts.tolist()) == (("17",), [12]), query


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"


@pytest.mark.ordinary("Declarations", "duckdb")
@pytest.mark.parametrize(
    ("kind", "rest"), [(Declarations, "'17' AS state, count(*) AS people FROM n"), (Table, "CAST(i AS TEXT) AS state, 1 AS people FROM n")]
)
def test_a_query_without_end_has_a_time_limit(url: str, kind: type[Table | Declarations], rest: str) -> None:
    """It ran until somebody killed it: one that never answers, and one that never stops answering."""
    with pytest.raises(UnreadableInput, match="took longer than 1 seconds and was ended") as found:
        kind.from_counts(url, ["state"], "people", query=f"{ENDLESS} {rest}", query_seconds=1)
    assert found.value.field == "query_seconds"


@pytest.mark.parametrize("given", [0, -1, 1.5, True, "1", 10**7])
def test_a_time_limit_is_a_number_of_seconds(url: str, given: object) -> None:
    query = "SELECT state, county, people FROM counties"
    with pytest.raises(InvalidParameter, match="query_seconds is a whole number from 1 to 1000000"):
        Table.from_counts(url, ["state", "county"], "people", query=query, query_seconds=given)  # type: ignore[arg-type]
    assert len(Table.from_counts(url, ["state", "county"], "people", query=query, query_seconds=60)) == 3
    with pytest.raises(InvalidParameter, match="Leave query_seconds out"):
        Table.from_counts(pa.table({"a": ["x"], "n": [1]}), ["a"], "n", query_seconds=60)
