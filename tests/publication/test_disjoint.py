"""Releases of one data set add up, whatever their codes are; only an office can say that no person is in both, and it must say why."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import BudgetExceeded
from tests.publication.bookings import a_ledger, a_release, a_table, spent

SHIFTS = 40
LAPLACE = hf.GeneralizedLaplace(epsilon="1/2", per="person")
PEOPLE = np.arange(SHIFTS) * 7 % 23


def shifted(by: int) -> hf.Table:
    """The same people forty times over: every table lists all codes, and no two tables have a cell in common."""
    areas, groups = ([f"{letter}{number:02}" for number in range(SHIFTS)] for letter in "ag")
    return a_table(PEOPLE, hf.Universe.listed({"area": areas, "group": [groups[(place + by) % SHIFTS] for place in range(SHIFTS)]}))


class TestCodesProveNothing:
    def test_forty_shifted_tables_are_charged_forty_times(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, epsilon=str(SHIFTS))
        for by in range(SHIFTS):
            a_release(ledger, f"shift-{by}", LAPLACE, [hf.total()], shifted(by))
            assert spent(ledger) == Fraction(by + 1, 2)
        assert ledger.verify() == []

    def test_the_second_shifted_table_is_refused_where_the_budget_is_for_one(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path, epsilon="1/2")
        a_release(ledger, "first", LAPLACE, [hf.total()], shifted(0))
        with pytest.raises(BudgetExceeded, match=r"0\.5 is spent .* 0 is left"):
            a_release(ledger, "second", LAPLACE, [hf.total()], shifted(1))
        assert ledger.reservation("residents", "second") is None

    def test_cells_that_one_list_of_codes_keeps_apart_add_up(self, tmp_path: Path) -> None:
        ledger = a_ledger(tmp_path)
        for name, sexes in (("one", ["F", "M"]), ("other", ["M", "F"])):
            universe = hf.Universe.listed({"area": ["a", "b"], "sex": sexes})
            a_release(ledger, name, LAPLACE, [hf.total()], a_table(np.array([1, 2]), universe))
        assert spent(ledger) == 1

    def test_a_vintage_with_new_codes_adds_up(self, tmp_path: Path) -> None:
        """A territorial reform: the same people, now under the codes of other areas."""
        ledger = a_ledger(tmp_path)
        before = {"area": ["01", "01", "02", "02"], "sex": ["F", "M", "F", "M"]}
        after = {"area": ["03", "03", "04", "04"], "sex": ["F", "M", "F", "M"]}
        swapped = {"area": ["01", "02", "01", "02"], "sex": ["x", "x", "y", "y"]}
        for vintage, codes in enumerate((before, after, swapped)):
            a_release(ledger, f"vintage-{vintage}", LAPLACE, [hf.total()], a_table(universe=hf.Universe.listed(codes)))
            assert spent(ledger) == Fraction(vintage + 1, 2)
