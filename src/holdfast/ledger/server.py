"""A ledger on a PostgreSQL server, on which other roles may have rights too: no code of theirs runs with the ledger's rights.

The ledger is in one schema: the first on the search path of the URL, role or database that has its tables, or the first of all where none
has. It is refused where others may create in that schema, or own it or a table of the ledger; and where a table has what could run code or
change what is written or read: see `FOREIGN`. Statements name the schema of every table, function, operator and type, and the search path
of every transaction holds the server's own schema alone.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from holdfast.errors import LedgerProblem
from holdfast.tables.postgres import NOWHERE, TRUSTED, check_schema, open_engine, path_of, quote_name

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

LOCK = 0x686F6C64
"""Number of PostgreSQL's advisory lock for all ledgers of one database."""

_OURS = """
ours AS (SELECT c.oid, c.relname, c.relowner, c.relnamespace, c.relrowsecurity FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
    WHERE n.nspname OPERATOR(pg_catalog.=) %s::pg_catalog.name AND c.relname OPERATOR(pg_catalog.=) ANY (
        ARRAY['holdfast_meta', 'holdfast_events', 'holdfast_open_reservations']::pg_catalog.name[]))"""

NAMES = f"WITH {_OURS} SELECT relname FROM ours"

FOREIGN = f"""
WITH {TRUSTED}, {_OURS}
SELECT 'table of another owner,'::pg_catalog.text, relname::pg_catalog.text FROM ours
    WHERE NOT relowner OPERATOR(pg_catalog.=) ANY (SELECT oid FROM trusted)
UNION ALL SELECT 'trigger', tgname::pg_catalog.text FROM pg_catalog.pg_trigger
    WHERE tgrelid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours) AND NOT tgisinternal
UNION ALL SELECT 'rule', rulename::pg_catalog.text FROM pg_catalog.pg_rewrite
    WHERE ev_class OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours)
UNION ALL SELECT 'policy', polname::pg_catalog.text FROM pg_catalog.pg_policy
    WHERE polrelid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours)
UNION ALL SELECT 'table with row security,', relname::pg_catalog.text FROM ours WHERE relrowsecurity
UNION ALL SELECT 'default of column', a.attname::pg_catalog.text FROM pg_catalog.pg_attrdef AS d
    JOIN pg_catalog.pg_attribute AS a ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid AND a.attnum OPERATOR(pg_catalog.=) d.adnum
    WHERE d.adrelid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours)
UNION ALL SELECT 'constraint', k.conname::pg_catalog.text FROM pg_catalog.pg_constraint AS k
    LEFT JOIN ours AS one ON one.oid OPERATOR(pg_catalog.=) k.conrelid
    LEFT JOIN ours AS other ON other.oid OPERATOR(pg_catalog.=) k.confrelid
    WHERE (one.oid IS NOT NULL OR other.oid IS NOT NULL) AND NOT (
        k.contype OPERATOR(pg_catalog.=) ANY (ARRAY['p', 'u', 'n']::pg_catalog."char"[])
        OR (k.contype OPERATOR(pg_catalog.=) 'f'::pg_catalog."char" AND k.confdeltype OPERATOR(pg_catalog.=) 'a'::pg_catalog."char"
            AND k.confupdtype OPERATOR(pg_catalog.=) 'a'::pg_catalog."char" AND one.oid IS NOT NULL AND other.oid IS NOT NULL))
UNION ALL SELECT 'index', c.relname::pg_catalog.text FROM pg_catalog.pg_index AS i
    JOIN pg_catalog.pg_class AS c ON c.oid OPERATOR(pg_catalog.=) i.indexrelid
    WHERE i.indrelid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours) AND (i.indexprs IS NOT NULL OR i.indpred IS NOT NULL OR EXISTS (
        SELECT 1 FROM pg_catalog.pg_opclass AS o JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) o.opcnamespace
        WHERE o.oid OPERATOR(pg_catalog.=) ANY (i.indclass::pg_catalog.oid[])
        AND n.nspname OPERATOR(pg_catalog.<>) 'pg_catalog'::pg_catalog.name))
UNION ALL SELECT 'view', c.relname::pg_catalog.text FROM pg_catalog.pg_class AS c
    WHERE c.relkind OPERATOR(pg_catalog.=) ANY (ARRAY['v', 'm']::pg_catalog."char"[])
    AND c.relnamespace OPERATOR(pg_catalog.=) ANY (SELECT relnamespace FROM ours) AND NOT EXISTS (
        SELECT 1 FROM pg_catalog.pg_depend AS d
        WHERE d.classid OPERATOR(pg_catalog.=) 'pg_catalog.pg_class'::pg_catalog.regclass::pg_catalog.oid
        AND d.objid OPERATOR(pg_catalog.=) c.oid AND d.deptype OPERATOR(pg_catalog.=) 'e'::pg_catalog."char")
LIMIT 1"""
"""What could run code, or change or hide what we write or read, and is not ours. Views of PostgreSQL's own extensions are left alone."""

SHAPE = f"""
WITH {_OURS}
SELECT c.relname::pg_catalog.text, CASE WHEN c.relkind OPERATOR(pg_catalog.=) 'r'::pg_catalog."char"
    AND c.relpersistence OPERATOR(pg_catalog.=) 'p'::pg_catalog."char" AND NOT c.relispartition
    AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_inherits AS i
        WHERE i.inhrelid OPERATOR(pg_catalog.=) c.oid OR i.inhparent OPERATOR(pg_catalog.=) c.oid) THEN (
        SELECT pg_catalog.string_agg(pg_catalog.concat(a.attname, ' '::pg_catalog.text,
            pg_catalog.format_type(a.atttypid, a.atttypmod), a.attgenerated, a.attidentity,
            CASE WHEN a.attcollation OPERATOR(pg_catalog.<>) t.typcollation THEN ' collated'::pg_catalog.text END),
            ', '::pg_catalog.text ORDER BY a.attname::pg_catalog.text COLLATE pg_catalog."C")
        FROM pg_catalog.pg_attribute AS a JOIN pg_catalog.pg_type AS t ON t.oid OPERATOR(pg_catalog.=) a.atttypid
        WHERE a.attrelid OPERATOR(pg_catalog.=) c.oid AND a.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2 AND NOT a.attisdropped) END
FROM pg_catalog.pg_class AS c WHERE c.oid OPERATOR(pg_catalog.=) ANY (SELECT oid FROM ours)"""
"""How our tables look: their columns, where they are plain tables."""

_STRICT_COMMIT = """
SELECT pg_catalog.set_config('synchronous_commit'::pg_catalog.text, 'on'::pg_catalog.text, true)
WHERE pg_catalog.current_setting('synchronous_commit'::pg_catalog.text) OPERATOR(pg_catalog.=) 'off'::pg_catalog.text"""
"""For servers that are set to answer before the disk has the data; a stricter setting stays."""


def open_server(text: str, begin: Any) -> Engine:
    """A way to connect to the server of a URL; `begin` is called with the connection when a transaction begins."""
    problem = ""
    try:
        from sqlalchemy import NullPool, event, make_url

        url = make_url("postgresql+psycopg://" + text.split("://", 1)[1])
        if "connect_timeout" not in url.query:
            url = url.update_query_dict({"connect_timeout": "15"})
        engine = open_engine(url, poolclass=NullPool, hide_parameters=True, isolation_level="READ COMMITTED")
        engine.dialect.statement_compiler = _qualifying(engine.dialect.statement_compiler)
        event.listen(engine, "begin", begin)
    except ImportError:
        problem = "a package is missing: pip install holdfast[postgres]"
    except Exception:
        problem = "its URL cannot be read. Write postgresql://user:password@host:port/database"
    if problem:
        raise LedgerProblem(f"The PostgreSQL ledger cannot be opened: {problem}. The URL is left out here, since it may hold a password.")
    return engine


def _qualifying(compiler: type[Any]) -> type[Any]:
    """A compiler of statements that names the schema of the operators we use."""

    def compare(sign: str) -> Any:
        def visit(self: Any, binary: Any, operator: Any, **options: Any) -> str:
            return f"{self.process(binary.left, **options)} OPERATOR(pg_catalog.{sign}) {self.process(binary.right, **options)}"

        return visit

    return type("Qualifying", (compiler,), {"visit_eq_binary": compare("="), "visit_gt_binary": compare(">")})


def begin_server(connection: Connection, wait_seconds: float, write: bool) -> None:
    """A transaction in which only the server's own names are found; one that writes is alone, and lasts when it has ended."""
    connection.exec_driver_sql(f"SET LOCAL search_path = {NOWHERE}")  # again: a pooler may have given us another session
    if write:
        connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{wait_seconds}s'")
        connection.exec_driver_sql(_STRICT_COMMIT)
        connection.exec_driver_sql(f"SELECT pg_catalog.pg_advisory_xact_lock({LOCK}::pg_catalog.int8)")


def enter_schema(connection: Connection) -> str:
    """The ledger's schema, checked; from here on the connection's statements name it for our tables."""
    path = path_of(connection)
    schema = next((name for name in path if table_names(connection, name)), path[0] if path else None)
    if schema is None:
        raise LedgerProblem(f"The PostgreSQL ledger has no schema: none on the search path of its role exists. {_OWN_SCHEMA}")
    _check_schema(connection, schema)
    connection.execution_options(schema_translate_map={None: schema})
    return schema


def schema_of(connection: Connection) -> str:
    """The schema that `enter_schema` found."""
    return str(connection.get_execution_options()["schema_translate_map"][None])


_OWN_SCHEMA = (
    "Have a schema made that belongs to the ledger's role, or to the database's owner (CREATE SCHEMA name AUTHORIZATION role), and name it "
    "in the URL: ?options=-csearch_path%3Dname."
)


def _check_schema(connection: Connection, schema: str) -> None:
    owned, shared = check_schema(connection, schema)
    if owned and not shared:
        return
    fault = "other roles may create in it" if shared else "it belongs to another role"
    raise LedgerProblem(
        f"The PostgreSQL ledger cannot be kept in the schema {schema[:60]!a}: {fault}, who could run code with the rights of the ledger. "
        + (
            f"Revoke that right (REVOKE CREATE ON SCHEMA ... FROM PUBLIC, and from other roles). Or: {_OWN_SCHEMA}"
            if owned
            else _OWN_SCHEMA
        )
    )


def table_names(connection: Connection, schema: str) -> list[str]:
    """Those of our tables that are in this schema."""
    return list(connection.exec_driver_sql(NAMES, (schema,)).scalars())


def find_foreign(connection: Connection, schema: str) -> Any:
    """(kind, name) of something in or about our tables that Holdfast did not make; None where there is nothing."""
    return connection.exec_driver_sql(FOREIGN, (schema,)).first()


def read_shape(connection: Connection) -> Any:
    """Rows as SHAPE tells them."""
    return connection.exec_driver_sql(SHAPE, (schema_of(connection),)).all()


@contextlib.contextmanager
def making_tables(connection: Connection) -> Iterator[None]:
    """Statements that define tables name no schema: they are for the ledger's, in which nobody else may create."""
    connection.exec_driver_sql(f"SET LOCAL search_path = {quote_name(schema_of(connection))}, pg_temp")
    yield
    connection.exec_driver_sql(f"SET LOCAL search_path = {NOWHERE}")
