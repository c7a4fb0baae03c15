"""Talking to a PostgreSQL server on which others may define functions, operators, types and tables of their own.

A name without its schema is looked up along the session's search path, and the best match wins, not the first: in a schema that others may
create in, a function or operator that fits its arguments exactly takes the place of the server's own, and runs with our rights. So

- the first statement of a session says where names are looked up, and calls nothing;
- what we ask ourselves names the schema of every table, function, operator and type;
- a schema in which others may create is never on the search path, also not for a query that a user wrote.

Others are all roles but superusers, the owner of the database, our own role, and those who may act as one of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine

NOWHERE = "pg_catalog, pg_temp"
"""A search path on which only the server's own names are found. Without pg_temp at its end, temporary tables would be found first."""
_PATH = "holdfast_path"

TRUSTED = """
masters AS MATERIALIZED (SELECT r.oid FROM pg_catalog.pg_roles AS r WHERE r.rolsuper OR r.rolname OPERATOR(pg_catalog.=) CURRENT_USER
    OR r.oid OPERATOR(pg_catalog.=) (
        SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database())),
trusted AS MATERIALIZED (SELECT r.oid FROM pg_catalog.pg_roles AS r
    WHERE r.rolname OPERATOR(pg_catalog.=) 'pg_database_owner'::pg_catalog.name
    OR EXISTS (SELECT 1 FROM masters AS m WHERE pg_catalog.pg_has_role(r.oid, m.oid, 'MEMBER'::pg_catalog.text)))"""
"""The roles that are not others, for a WITH clause. That we are a member of a role is no reason to trust it: up to version 15 any role can
make us one of its own.
"""

_SCHEMA = f"""
WITH {TRUSTED}
SELECT n.nspowner OPERATOR(pg_catalog.=) ANY (SELECT oid FROM trusted),
    pg_catalog.has_schema_privilege('public'::pg_catalog.name, n.oid, 'CREATE'::pg_catalog.text)
    OR EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r
        WHERE pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'::pg_catalog.text)
        AND NOT pg_catalog.pg_has_role(r.oid, n.nspowner, 'MEMBER'::pg_catalog.text)
        AND NOT r.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM trusted))
FROM pg_catalog.pg_namespace AS n WHERE n.nspname OPERATOR(pg_catalog.=) %s::pg_catalog.name"""


def open_engine(url: URL, **options: Any) -> Engine:
    """An engine whose sessions look up only the server's own names from their second statement on.

    The first one asks for the search path that was set for us: see `path_of`.
    """
    from sqlalchemy import create_engine, event

    # Looking for the type hstore would be the first statement, and look it up where others may write.
    engine = create_engine(url.set(drivername="postgresql+psycopg"), use_native_hstore=False, **options)
    event.listen(engine, "connect", _confine, insert=True)
    return engine


def _confine(raw: Any, record: Any) -> None:
    with raw.cursor() as cursor:
        cursor.execute("SELECT pg_catalog.current_schemas(false)")
        record.info[_PATH] = tuple(cursor.fetchone()[0])
        cursor.execute(f"SET search_path = {NOWHERE}")
    raw.commit()


def path_of(connection: Connection) -> tuple[str, ...]:
    """The schemas that the URL, the role or the database set as search path, as far as they exist."""
    return tuple(connection.info[_PATH])


def check_schema(connection: Connection, schema: str) -> tuple[bool, bool]:
    """(whether its owner is one of us, whether roles other than its owner and us may create in it)."""
    owned, shared = connection.exec_driver_sql(_SCHEMA, (schema,)).one()
    return bool(owned), bool(shared)


def look_up_names(connection: Connection) -> tuple[str, ...]:
    """Let the names of a user's query be found along the search path that was set for us; but not in schemas in which others than their
    owners may create, which are returned.
    """
    left_out = tuple(name for name in path_of(connection) if check_schema(connection, name)[1])
    kept = [quote_name(name) for name in path_of(connection) if name not in left_out]
    connection.exec_driver_sql(f"SET search_path = {', '.join([*kept, 'pg_temp'])}")
    connection.commit()
    return left_out


def quote_name(name: str) -> str:
    """An SQL name."""
    return '"' + name.replace('"', '""') + '"'
