"""Releases by the cell key method in the ledger: recorded as such, and nothing is added to a guarantee or taken from a budget."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from holdfast.errors import InvalidParameter, LedgerProblem
from holdfast.ledger import Charge, Ledger
from holdfast.ledger.releases import ReleaseFacts
from holdfast.wording.ledger import balances_screen
from tests.ledger.helpers import DATA, DIGEST, NOW, ORDER, STEPS, grant, screen

CHARGE = Charge("cell-key")


@pytest.fixture
def recording(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite", create=True, needs_grants=False)


def record(ledger: Ledger, charge: Charge = CHARGE, name: str = "k1") -> None:
    held = ledger.reserve(DATA, name, charge, ReleaseFacts(), sealed_key=None, input_digest=DIGEST, now=NOW)
    for step in ORDER:
        held = STEPS[step](ledger, held)


def test_it_is_counted_apart(recording: Ledger) -> None:
    record(recording)
    record(recording, Charge("pure", epsilon=Fraction(1)), "r1")
    balance = recording.balance(DATA)
    assert balance.spent == 1
    assert (balance.recorded, balance.cell_key, balance.estimated) == (2, 1, 0)
    assert balance.to_fields()["cell_key"] == 1
    assert "cell keys, no DP guarantee" in screen(recording)
    assert "and 1 release by cell keys, without a guarantee" in screen(recording)
    assert "epsilon = 1 spent, no limit; 2 releases (1 release by cell keys, without a guarantee)" in balances_screen([balance])
    assert recording.verify() == []
    assert Charge.from_fields(CHARGE.to_fields()) == CHARGE


def test_no_budget_pays_for_it(tmp_path: Path, recording: Ledger) -> None:
    with_grants = Ledger.open(tmp_path / "granted.sqlite", create=True, needs_grants=True)
    grant(with_grants)
    with pytest.raises(LedgerProblem, match="no differential privacy guarantee"):
        record(with_grants)
    assert with_grants.balance(DATA).recorded == 0
    record(recording)
    with pytest.raises(LedgerProblem, match="no limit can be kept"):
        grant(recording)


def test_it_has_no_number() -> None:
    with pytest.raises(InvalidParameter):
        Charge("cell-key", epsilon=Fraction(1))
