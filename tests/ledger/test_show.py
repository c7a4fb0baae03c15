"""The screen: it fits, and says what was granted by whom and why, what each release cost, what is left and what is exposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.exposure.facts import ExposedAlone, JointFacts, NewCells, ReleaseExposure
from holdfast.ledger import Ledger
from holdfast.wording.ledger import balances_screen, width
from tests.ledger.helpers import DATA, apart, bring, grant, reserve, screen
from tests.snapshot_files import Snapshot, undated


@pytest.fixture
def small(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.db", create=True, needs_grants=True)


def exposes(fixed: int, *together: NewCells) -> dict[str, Any]:
    joint = JointFacts(("counties-v1", "counties-v4"), fixed=together, complete=True) if together else None
    return ReleaseExposure(ExposedAlone(fixed, 0, (), 0, False), joint).to_fields()


def fits(text: str) -> bool:
    return len(text.splitlines()) <= 24 and all(width(line) <= 100 for line in text.splitlines())


def test_five_releases_on_one_screen(small: Ledger, snapshot: Snapshot) -> None:
    grant(small, "0.5")
    grant(small, "0.5")
    bring(small, "closed", "counties-v1", "0.2", exposed=exposes(2))
    bring(small, "voided", "counties-v2", "0.1", exposed=exposes(7))
    bring(small, "voided-spent", "counties-v3", "1/30", exposed=exposes(7))
    bring(small, "published", "counties-v4", "0.3", exposed=exposes(0, NewCells(None, 1, ("county=3",))), revision_of="counties-v1")
    bring(small, "drawing", "islands-v1", "0.1", **apart("counties-v1"))
    text = screen(small)
    assert fits(text)
    snapshot(undated(text))


def test_what_is_left_where_releases_were_declared_disjoint(small: Ledger) -> None:
    """`Left 1 (50 %)` stood there, and a release of 0.25 that declared nothing was refused."""
    grant(small, "2")
    reserve(small, "north", "1")
    reserve(small, "south", "0.9", **apart("north"))
    text = screen(small)
    assert "\nLeft      rho = 0.1 (5 %) for a release that declares nothing (all charges: 1.9)\n" in text
    assert "\n          rho = 1 (50 %) for one that overlaps only the releases that cost most\n" in text
    assert "rho = 1 of 2 spent, rho = 0.1 (5 %) left if nothing is declared; 2 releases" in balances_screen(small.balances())
    reserve(small, "both", "0.1")
    assert "\nLeft      rho = 0 (0 %)\n" in screen(small)


def test_grants_are_shown_with_the_number_that_take_back_asks_for(small: Ledger) -> None:
    grant(small, "0.5")
    number = grant(small, "0.25").seq
    assert f"  grant {number}: rho = 0.25, by A. Chief" in screen(small)
    small.take_back(DATA, grant=number, approver="A. Chief", reason="a mistake")
    assert f"  grant {number} taken back: rho = 0.25, by A. Chief: a mistake" in screen(small)


def test_what_is_exposed_is_never_guessed(small: Ledger, snapshot: Snapshot) -> None:
    grant(small)
    snapshot(undated(screen(small)), "nothing was published")
    bring(small, "committed", "silent")
    snapshot(undated(screen(small)), "the ledger does not say")


def test_many_releases_and_hostile_texts_fit_too(small: Ledger) -> None:
    for _ in range(7):
        small.grant(
            DATA, kind="approximate", epsilon="1/7", delta="1e-10", approver="\x1b[2J" + "人" * 90, reason="a\nb\r\t\u202e" * 50, again=True
        )
    for number in range(30):
        hostile = exposes(0, NewCells(None, 1, ("\x1b]0;owned\x07" + "long words " * 60,)))
        name, others = f"{number}\u202e{'調查' * 40}", [f"{before}\u202e{'調查' * 40}" for before in range(number)]
        disjoint = {"from": others, "because": "因為" * 200} if others else None
        reserve(small, name, "1/1000000", exposed=hostile, revision_of=None, disjoint=disjoint)
    for number in (3, 4):
        small.take_back(DATA, grant=number, approver="\x1b[2J" + "人" * 90, reason="a\nb" * 50)
    for _ in range(2):
        small.grant(DATA, kind="approximate", epsilon="1/7", delta="1e-10", approver="B", reason="c", again=True)
    text = screen(small)
    assert fits(text)
    assert "25 earlier releases are not shown; they are counted" in text
    assert "1 more grants were taken back before" in text
    assert "5 earlier grants are not shown" in text
    assert "(27 earlier declarations are not shown)" in text
    assert not set("\x1b\x07\r\u202e") & set(text)
    assert "epsilon = 1, delta = 1e-10" in text
