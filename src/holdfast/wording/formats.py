"""What a table is written as: codes that a spreadsheet would run, and copies that are left out."""

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


def no_csv_sentence(cells: int, most: int) -> str:
    """Where no formats are named."""
    return (
        f"The table is written as Parquet alone: it has {cells:,} cells, and above {most:,} a CSV file is written only if it is asked for, "
        'with formats = ["parquet", "csv"].'
    )
