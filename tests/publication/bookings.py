"""A small table, its ledger and its releases: what the tests of booking share."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.display import watching
from holdfast.ledger import Ledger
from holdfast.publication import booking, pipeline
from holdfast.publication.booking import ChargedAccount
from holdfast.publication.folder import Output
from holdfast.publication.order import Order

DATA = "residents"
SECRET = b"the secret of the office"
UNIVERSE = hf.Universe.product({"area": ["a", "b"], "sex": ["F", "M"]})
COUNTS = np.array([5, 3, 2, 9])
KEEP = (hf.margin("area"),)
LAPLACE = hf.GeneralizedLaplace(epsilon="1/4", per="distance")
"""Costs 1/2: a person who changes cell is at distance 2."""


def a_ledger(folder: Path, kind: str = "pure", **budget: str) -> Ledger:
    made = Ledger.open(folder / "ledger.db", create=True, needs_grants=True)
    made.grant(DATA, kind=kind, approver="A. Chief", reason="the census", **(budget or {"epsilon": "3"}))  # type: ignore[arg-type]
    return made


def a_table(counts: Any = COUNTS, universe: hf.Universe = UNIVERSE, **options: Any) -> hf.Table:
    return hf.Table(universe, counts, name=DATA, **options)


def a_release(ledger: Ledger, name: str = "r1", mechanism: Any = LAPLACE, keep: Any = KEEP, table: hf.Table | None = None) -> Any:
    return hf.release(table or a_table(), keep, mechanism, ledger=ledger, release_id=name)


def files(place: Path) -> dict[str, bytes]:
    """Of a folder and all below it, without the ledger."""
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file() and "ledger.db" not in path.name}


def state(ledger: Ledger, name: str = "r1") -> str | None:
    held = ledger.reservation(DATA, name)
    return None if held is None else held.state


def spent(ledger: Ledger) -> Fraction:
    return ledger.balance(DATA).spent


def run(ledger: Ledger | None, folder: Path, name: str = "r1", **options: Any) -> str:
    """As the command line does it. Without a ledger the result is empty."""
    table = options.pop("table", a_table())
    plan = hf.plan(table, options.pop("keep", KEEP), options.pop("mechanism", LAPLACE))
    order = Order(name, revises=options.pop("revises", None))
    output = Output(folder, options.pop("formats", ("csv",)), sign=options.pop("sign", None), force=options.pop("force", False))
    secret = options.pop("secret", SECRET)
    account = None if ledger is None else ChargedAccount(ledger, DATA, secret)
    with watching(options.pop("watcher", None)):
        return pipeline.carry_out(plan, table, order, output, account, **options) or ""


def stop(*_: object) -> None:
    raise KeyboardInterrupt


def stop_drawing(name: str, done: int, _: int) -> None:
    """Watch the steps, and interrupt the draw."""
    if name == "Drawing" and done:
        raise KeyboardInterrupt


def interrupted(ledger: Ledger, folder: Path, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(ledger, folder, watcher=stop_drawing, **options)


def fails(code: int) -> Callable[..., Any]:
    def step(*_: Any, **__: Any) -> Any:
        raise OSError(code, "said by the system")

    return step


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "ledger.db")


class Place:
    """A small release through a ledger of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger.open(folder / "ledger.sqlite", create=True, needs_grants=True)
        self.ledger.grant("towns", kind="pure", epsilon="10", approver="A", reason="test")
        self.table = hf.Table(hf.Universe.product({"r": ["n", "s"], "t": ["a", "b"]}), np.array([3, 4, 5, 6], dtype=np.int64))

    def carry_out(self, *, resume: bool = False, force: bool = False, mechanism: Any = None) -> None:
        made = hf.plan(self.table, [hf.margin("r")], mechanism or hf.GeneralizedLaplace(epsilon="1/4", per="distance"))
        account = booking.ChargedAccount(self.ledger, "towns", b"a secret of sixteen bytes or more")
        output = Output(self.folder / "out", force=force)
        pipeline.carry_out(made, self.table, Order("towns-1"), output, account, resume=resume)


def broken(*_: Any, **__: Any) -> None:
    raise RuntimeError("interrupted")
