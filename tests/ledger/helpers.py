"""Short ways to grant, reserve and step, and to reach the tables behind the ledger's back."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from holdfast.ledger import Charge, Event, Ledger, Reservation
from holdfast.ledger.releases import ReleaseFacts
from holdfast.ledger.server import schema_of
from holdfast.ledger.store import Store
from holdfast.wording.ledger import ledger_screen

DATA = "counties"
KEY = b"sealed key \x00\xff of the test"
DIGEST = "digest-of-the-input-0123456789"
NOW = "2030-04-01T12:00:00Z"
STEPS: dict[str, Callable[[Ledger, Reservation], Any]] = {
    "drawing": lambda ledger, held: ledger.start_drawing(held),
    "staged": lambda ledger, held: ledger.stage(held, "sha256:00"),
    "committed": lambda ledger, held: ledger.commit(held),
    "published": lambda ledger, held: ledger.publish(held),
    "closed": lambda ledger, held: ledger.close(held),
    "void": lambda ledger, held: ledger.void(held, "a test"),
}
ORDER = ("drawing", "staged", "committed", "published", "closed")


def grant(ledger: Ledger, rho: str = "1", dataset: str = DATA) -> Event:
    return ledger.grant(dataset, kind="zcdp", rho=rho, approver="A. Chief", reason="the census", legal="Act 12, section 3", again=True)


def reserve(ledger: Ledger, release_id: str = "r1", rho: str | Fraction = "1/10", dataset: str = DATA, **facts: Any) -> Reservation:
    charge = Charge("zcdp", rho=Fraction(rho))
    return ledger.reserve(dataset, release_id, charge, ReleaseFacts.read(facts), sealed_key=KEY, input_digest=DIGEST, now=NOW)


def apart(*releases: str) -> dict[str, Any]:
    """The declaration, among the facts of a release, that it shares no person with these."""
    return {"disjoint": {"from": list(releases), "because": "nobody lives in both regions"}}


def bring(
    ledger: Ledger, state: str, release_id: str = "r1", rho: str | Fraction = "1/10", dataset: str = DATA, **facts: Any
) -> Reservation:
    """A release in this state; "voided" and "voided-spent" too."""
    held = reserve(ledger, release_id, rho, dataset, **facts)
    if state == "voided":
        assert ledger.void(held, "a test")
    elif state == "voided-spent":
        assert not ledger.void(ledger.start_drawing(held), "a test")
    elif state != "reserved":
        for name in ORDER[: ORDER.index(state) + 1]:
            held = STEPS[name](ledger, held)
    found = ledger.reservation(dataset, release_id)
    assert found is not None
    assert found.state == state
    return found


def screen(ledger: Ledger, dataset: str = DATA) -> str:
    return ledger_screen(ledger.account(dataset), ledger.last_event())


def the_store(ledger: Ledger) -> Store:
    """The database below a ledger, for what no user can do."""
    return ledger._store


def run_sql(ledger: Ledger, *statements: str) -> None:
    """Straight at the tables, foreign keys or not."""

    def work(connection: Any) -> None:
        look_in_schema(connection)
        for statement in statements:
            connection.exec_driver_sql(statement)

    the_store(ledger).write(work)


def look_in_schema(connection: Any) -> None:
    """On a server, let names without a schema mean those of the ledger's: its own transactions look them up nowhere."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f'SET LOCAL search_path = "{schema_of(connection)}"')


def rows(ledger: Ledger, table: str = "holdfast_events") -> list[tuple[Any, ...]]:
    def work(connection: Any) -> list[tuple[Any, ...]]:
        look_in_schema(connection)
        return [tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY 1")]

    return the_store(ledger).read(work)
