"""The screen: it fits, and says what was granted by whom and why, what each release cost, what is left and what is exposed."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.privacy.ledger import Ledger
from holdfast.privacy.ledger.show import width
from tests.ledger.helpers import DATA, bring, grant, reserve


@pytest.fixture
def small(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.db", create=True)


def fits(text: str) -> bool:
    return len(text.splitlines()) <= 24 and all(width(line) <= 100 for line in text.splitlines())


def test_five_releases_on_one_screen(small: Ledger) -> None:
    grant(small, "0.5")
    grant(small, "0.5")
    bring(small, "closed", "counties-v1", "0.2", exposed=["state totals"])
    bring(small, "voided", "counties-v2", "0.1", exposed=["never published"])
    bring(small, "voided-spent", "counties-v3", "1/30", exposed=["never published"])
    bring(small, "published", "counties-v4", "0.3", exposed=["state totals", "totals by sex"], revision_of="counties-v1")
    bring(small, "drawing", "islands-v1", "0.1", disjoint_from=["counties-v1"])
    text = small.show(DATA)
    assert fits(text)
    lines = text.splitlines()
    assert lines[0] == "Data set  counties"
    assert lines[2] == "Granted   rho = 1 for one person changing cell"
    assert "rho = 0.5, by A. Chief: the census (Act 12, section 3)" in lines[3]
    for state, cost in (
        ("closed", "0.2"),
        ("voided (refunded)", "0.1"),
        ("voided (spent)", "1/30"),
        ("published", "0.3"),
        ("drawing", "0.1"),
    ):
        assert any(state in line and f"rho = {cost}" in line for line in lines)
    assert "Spent     rho = 19/30 of 1" in lines
    assert "Left      rho = 11/30 (36 %)" in lines
    assert lines[-1] == "Exposed   state totals; totals by sex"
    assert "revision of counties-v1" in text
    assert "other cells than counties-v1" in text
    assert small.show(DATA, exposed="all of Ærø").splitlines()[-1] == "Exposed   all of Ærø"


def test_what_is_exposed_is_never_guessed(small: Ledger) -> None:
    grant(small)
    assert small.show(DATA).splitlines()[-1] == "Exposed   nothing was published yet"
    assert "Releases  none yet" in small.show(DATA)
    bring(small, "committed", "silent")
    assert small.show(DATA).splitlines()[-1] == "Exposed   not computed for silent"


def test_many_releases_and_hostile_texts_fit_too(small: Ledger) -> None:
    for _ in range(7):
        small.grant(DATA, kind="approximate", epsilon="1/7", delta="1e-10", approver="\x1b[2J" + "人" * 90, reason="a\nb\r\t\u202e" * 50)
    for number in range(30):
        reserve(small, f"{number}\u202e{'調查' * 40}", "1/1000000", exposed=["\x1b]0;owned\x07" + "long words " * 60], revision_of=None)
    text = small.show(DATA)
    assert fits(text)
    assert "22 earlier releases are not shown; they are counted" in text
    assert "3 earlier grants are not shown" in text
    assert not set("\x1b\x07\r\u202e") & set(text)
    assert "epsilon = 1, delta = 1e-10" in text
