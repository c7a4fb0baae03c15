"""Codes that a spreadsheet would run."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.display import list_names


def formulas_warning(columns: Sequence[str], can_mark: bool = True) -> str:
    """Before anything is drawn: the office may choose otherwise."""
    choice = ' With formulas = "mark" an apostrophe stands before them, and the card says so.' if can_mark else ""
    return (
        f"Codes or names of {list_names(columns, show=repr)} begin with =, +, - or @: a spreadsheet that opens the CSV files would "
        f"run them as formulas. They are written as they are.{choice}"
    )
