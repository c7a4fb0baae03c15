"""What is wrong with a database is told of what is wrong: the statement, the connection; and a plan asks for codes only."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import duckdb
import pytest

from holdfast.errors import UnreadableInput
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


def test_a_statement_of_another_kind_is_planned_too(url: str) -> None:
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
