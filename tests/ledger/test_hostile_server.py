"""A PostgreSQL server on which others have rights too: no code of theirs runs as the ledger's role, and none changes what is recorded.

Every test has a database in which `public` is open to all, as on servers up to version 14 and those upgraded from them. `mallory` may
create there; `keeper` is the ledger's role. What ran as whom is seen in a table that every role may add to.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from holdfast.errors import LedgerBroken, LedgerProblem
from holdfast.ledger import Ledger
from tests.ledger.helpers import DATA, bring, grant, reserve, the_store

pytestmark = pytest.mark.postgres

NUMBERS = itertools.count()
SPY = (
    "CREATE FUNCTION public.{}({}) RETURNS {} LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (CURRENT_USER); RETURN {}; END $$"
)
FUNCTIONS = {  # the first fits its arguments better than the server's own; the others come first where `public` is named before pg_catalog
    "pg_advisory_xact_lock": ("integer", "text", "'x'"),
    "to_regclass": ("text", "regclass", "NULL"),
    "to_regtype": ("text", "regtype", "NULL"),
    "set_config": ("text, text, boolean", "text", "'x'"),
    "current_setting": ("text", "text", "'off'"),
    "current_schema": ("", "name", "'public'"),
    "format_type": ("oid, integer", "text", "'text'"),
}
OPERATORS = {  # =, > of a column and a value as the driver sends them, and of the catalogue's types
    "text_varchar": ("=", "text", "varchar"),
    "bigint_integer": ("=", "bigint", "integer"),
    "above": (">", "bigint", "integer"),
    "oid_regclass": ("=", "oid", "regclass"),
    "name_text": ("||", "name", "text"),
}


def url_of(server: str, role: str, database: str, schema: str | None = None) -> str:
    address = server.replace("postgres:@", f"{role}:@").replace("/postgres?", f"/{database}?")
    assert role in address
    assert database in address
    return address + ("" if schema is None else f"&options=-csearch_path%3D{schema}")


def run(url: str, *statements: str) -> list[tuple[object, ...]]:
    """All in one transaction; the rows of the last one, if it has any."""
    import psycopg

    with psycopg.connect(url) as connection:
        for statement in statements:
            done = connection.execute(statement)
        return done.fetchall() if done.description else []


@pytest.fixture
def database(server: str) -> Iterator[str]:
    """Its name."""
    import psycopg

    name = f"open{next(NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        for role in ("keeper", "mallory"):
            connection.execute(f"DO $$ BEGIN CREATE ROLE {role} LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$")
        connection.execute(f"CREATE DATABASE {name}")
    run(
        url_of(server, "postgres", name),
        "GRANT CREATE, USAGE ON SCHEMA public TO PUBLIC",
        "CREATE TABLE public.ran (who name)",
        "GRANT ALL ON public.ran TO PUBLIC",
        "CREATE SCHEMA own AUTHORIZATION keeper",
    )
    yield name
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def mallory(server: str, database: str) -> str:
    return url_of(server, "mallory", database)


def plant(mallory: str) -> None:
    """Functions and operators in `public` that note who runs them."""
    for name, (takes, gives, answer) in FUNCTIONS.items():
        run(mallory, SPY.format(name, takes, gives, answer))
    for name, (sign, left, right) in OPERATORS.items():
        gives, answer = ("text", "'x'") if sign == "||" else ("boolean", "true")
        run(mallory, SPY.format(name, f"{left}, {right}", gives, answer))
        run(mallory, f"CREATE OPERATOR public.{sign} (LEFTARG = {left}, RIGHTARG = {right}, FUNCTION = public.{name})")


def use(place: str) -> Ledger:
    """All that a ledger does."""
    ledger = Ledger.open(place, create=True, needs_grants=True)
    grant(ledger)
    bring(ledger, "closed")
    bring(ledger, "voided", "r2")
    assert str(Ledger.open(place).balance(DATA).spent) == "1/10"
    assert ledger.verify() == []
    return ledger


def test_the_traps_work(server: str, database: str, mallory: str) -> None:
    """A call without its schema runs another role's code here: what the next tests find is found."""
    plant(mallory)
    keeper = url_of(server, "keeper", database)
    run(keeper, "SELECT pg_advisory_xact_lock(1752132708)")
    run(keeper, "SELECT 1 WHERE 'a'::text = 'b'::varchar")
    assert run(keeper, "SELECT who FROM public.ran") == [("keeper",), ("keeper",)]


@pytest.mark.parametrize("path", ["own", "own,public", "own,public,pg_catalog"])
def test_no_planted_name_runs_as_the_ledgers_role(server: str, database: str, mallory: str, path: str) -> None:
    plant(mallory)
    use(url_of(server, "keeper", database, path))
    assert run(mallory, "SELECT who FROM public.ran") == []
    names = run(url_of(server, "keeper", database), "SELECT tablename::text FROM pg_tables WHERE schemaname = 'own' ORDER BY 1")
    assert names == [("holdfast_events",), ("holdfast_meta",), ("holdfast_open_reservations",)]


def test_a_schema_in_which_others_may_create_is_refused(server: str, database: str, mallory: str) -> None:
    """Nothing is made in it; and a ledger that is there already is refused once others may create."""
    plant(mallory)
    place = url_of(server, "keeper", database)
    for create in (True, False):
        with pytest.raises(LedgerProblem, match=r"'public': other roles may create in it.*REVOKE CREATE"):
            Ledger.open(place, create=create)
    assert run(mallory, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == [("ran",)]
    own = url_of(server, "keeper", database, "own")
    ledger = use(own)
    run(own, "GRANT CREATE ON SCHEMA own TO mallory")
    with pytest.raises(LedgerProblem, match="'own': other roles may create"):
        reserve(ledger, "r3")
    run(own, "REVOKE CREATE ON SCHEMA own FROM mallory")
    assert reserve(ledger, "r3").state == "reserved"
    assert run(mallory, "SELECT who FROM public.ran") == []


def test_a_closed_public_is_taken(server: str, database: str) -> None:
    """As the refusal advises, and as servers from version 15 on are made; the database's owner may own it."""
    run(
        url_of(server, "postgres", database),
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        "GRANT CREATE ON SCHEMA public TO keeper",
    )
    assert use(url_of(server, "keeper", database)).verify() == []


def test_schemas_and_tables_of_another_role_are_refused(server: str, database: str, mallory: str) -> None:
    run(
        url_of(server, "postgres", database),
        "CREATE SCHEMA trap AUTHORIZATION mallory",
        "GRANT ALL ON SCHEMA trap TO keeper",
        "GRANT ALL ON SCHEMA own TO mallory",
    )
    for membership in ("REVOKE mallory FROM keeper", "GRANT mallory TO keeper"):  # which mallory could grant up to version 15
        run(url_of(server, "postgres", database), membership)
        with pytest.raises(LedgerProblem, match="'trap': it belongs to another role"):
            Ledger.open(url_of(server, "keeper", database, "trap"), create=True, needs_grants=True)
    run(url_of(server, "postgres", database), "REVOKE mallory FROM keeper")
    run(url_of(server, "mallory", database, "own"), "CREATE TABLE holdfast_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    run(url_of(server, "postgres", database), "REVOKE ALL ON SCHEMA own FROM mallory")
    with pytest.raises(LedgerBroken, match="table of another owner, 'holdfast_meta'"):
        Ledger.open(url_of(server, "keeper", database, "own"), create=True, needs_grants=True)


def test_several_roles_share_a_ledger_of_the_databases_owner(server: str, database: str) -> None:
    """As the documentation advises: users may read and write rows, and create nothing."""
    owner = url_of(server, "postgres", database)
    run(owner, "CREATE SCHEMA office")
    ledger = use(url_of(server, "postgres", database, "office"))
    run(owner, "GRANT USAGE ON SCHEMA office TO keeper", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA office TO keeper")
    theirs = Ledger.open(url_of(server, "keeper", database, "office"))
    assert theirs.id == ledger.id
    bring(theirs, "closed", "r3")
    assert ledger.verify() == []


FOREIGN = {
    "default of column 'salt'": ["ALTER TABLE holdfast_events ALTER salt SET DEFAULT spy()"],
    "constraint 'odd'": ["ALTER TABLE holdfast_events ADD CONSTRAINT odd CHECK (spy() IS NOT NULL)"],
    "index 'odd'": ["CREATE INDEX odd ON holdfast_events (still(salt))"],
    "index 'partial'": ["CREATE INDEX partial ON holdfast_events (salt) WHERE still(salt) = 'a'"],
    "table with row security, 'holdfast_events'": ["ALTER TABLE holdfast_events ENABLE ROW LEVEL SECURITY"],
    "constraint 'far'": ["CREATE TABLE other (seq BIGINT CONSTRAINT far REFERENCES holdfast_events (seq) ON DELETE CASCADE)"],
    "trigger 'odd'": ["CREATE TRIGGER odd BEFORE INSERT ON holdfast_meta FOR EACH ROW EXECUTE FUNCTION quiet()"],
}


@pytest.mark.parametrize("found", FOREIGN)
def test_code_in_the_tables_is_refused(server: str, database: str, found: str) -> None:
    place = url_of(server, "keeper", database, "own")
    ledger = use(place)
    run(
        place,
        "CREATE FUNCTION spy() RETURNS text LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.ran VALUES (CURRENT_USER); RETURN 'x'; END $$",
        "CREATE FUNCTION still(text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT $1 $$",
        "CREATE FUNCTION quiet() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$",
    )
    run(place, *FOREIGN[found], "DELETE FROM public.ran")
    for ask in (lambda: reserve(ledger, "r3"), lambda: ledger.balance(DATA), lambda: ledger.verify(), lambda: Ledger.open(place)):
        with pytest.raises(LedgerBroken, match=f"holds a {found} that Holdfast did not make"):
            ask()
    assert run(place, "SELECT who FROM public.ran") == []


def test_every_statement_names_its_schemas(server: str, database: str) -> None:
    """Also those that SQLAlchemy writes: no operator, and none of our tables, without its schema; and no name is looked up elsewhere."""
    from sqlalchemy import event

    place = url_of(server, "keeper", database, "own")
    use(place)
    ledger, said, paths = Ledger.open(place), [], set()

    def look(connection: object, cursor: object, statement: str, *_: object) -> None:
        said.append(statement)
        with connection.connection.cursor() as other:  # type: ignore[attr-defined]
            paths.add(other.execute("SHOW search_path").fetchone()[0])

    event.listen(the_store(ledger)._engine, "after_cursor_execute", look)
    bring(ledger, "closed", "r3")
    ledger.verify()
    assert paths == {"pg_catalog, pg_temp"}
    assert any("FROM own.holdfast_events" in statement for statement in said)
    for statement in said:
        assert not re.search(r"(FROM|JOIN|INTO|UPDATE) (holdfast|pg_)(?!catalog[.])", statement), statement
        if not statement.startswith("SET LOCAL"):
            assert not re.search(r" (=|<>|>|<|[|][|]|IN) ", statement.split(" SET ")[0]), statement
