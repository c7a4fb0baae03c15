"""Excel workbooks (.xlsx): one sheet, its first row the names of the columns. Needs the extra `excel`.

Texts stay as they are. Numbers are counts; a column of codes that Excel holds as numbers is refused, because 01 has become 1 there.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import UnreadableInput

EXCEL_SUFFIXES = (".xlsx", ".xlsm")


class ExcelSource:
    """A sheet, read as a whole; only the columns asked for are looked at."""

    def __init__(self, label: str, path: Path, sheet: str | None) -> None:
        self.label = label
        self.path: Path | None = None
        rows = _rows(label, path, sheet)
        header = list(rows[0]) if rows else []
        while header and header[-1] is None:
            header.pop()
        if not header:
            raise UnreadableInput(f"{_capital(label)} has no header. The first row of the sheet must name the columns.")
        if not all(name is None or isinstance(name, str) for name in header):
            raise UnreadableInput(
                f"The header of {label} holds numbers or dates. The first row of the sheet must name the columns, as text."
            )
        self.names = tuple(name or "" for name in header)
        self._rows = [row for row in rows[1:] if any(value is not None for value in row)]

    def types(self) -> Sequence[Any]:
        import pyarrow as pa

        kinds = [_kinds(self._values(i)) for i in range(len(self.names))]
        # a mixed column is refused where it is read: here it may be one that nobody asked for
        return [pa.string() if found <= {str} or _is_mixed(found) else self._array(i).type for i, found in enumerate(kinds)]

    def batches(self, columns: Sequence[int]) -> Generator[list[Any], None, None]:
        yield [self._array(i) for i in columns]

    def scan(self, session: Any, columns: Sequence[int]) -> str:
        import pyarrow as pa

        arrays = [self._array(i) for i in columns]
        session.connection.register("input", pa.table(arrays, names=[f"c{place}" for place in range(len(arrays))]))
        return "input"

    def _values(self, place: int) -> list[Any]:
        return [row[place] if place < len(row) else None for row in self._rows]

    def _array(self, place: int) -> Any:
        import pyarrow as pa

        values = self._values(place)
        kinds = _kinds(values)
        if kinds <= {str}:
            return pa.array(values, pa.string())
        if kinds <= {int, float} and all(value is None or _is_whole(value) for value in values):
            return pa.array([None if value is None else int(value) for value in values], pa.int64())
        if _is_mixed(kinds):
            raise UnreadableInput(
                f"Column {self.names[place]!r} of {self.label} holds texts and other values. Format the whole column as text in Excel, "
                "and check codes such as 01, or as whole numbers if it holds counts."
            )
        return pa.array([None if value is None else str(value) for value in values], pa.string()).cast(pa.binary())  # refused by its type


def _kinds(values: list[Any]) -> set[type]:
    return {type(value) for value in values} - {type(None)}


def _is_mixed(kinds: set[type]) -> bool:
    return len(kinds) > 1 and kinds != {int, float}


def _is_whole(value: float) -> bool:
    """Excel has no integers: a whole float below 2^53 is the number that was typed."""
    return (isinstance(value, int) and abs(value) < 2**63) or (isinstance(value, float) and value.is_integer() and abs(value) < 2**53)


def _rows(label: str, path: Path, sheet: str | None) -> list[tuple[Any, ...]]:
    try:
        import openpyxl
    except ImportError:
        openpyxl = None
    if openpyxl is None:
        raise UnreadableInput(
            f"{_capital(label)} is an Excel file, and the package to read it is missing. Run: pip install holdfast[excel]"
        )
    problem = ""
    names: list[str] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that are not read
            book = openpyxl.load_workbook(path, read_only=True, data_only=True)
            try:
                names = list(book.sheetnames)
                if sheet in names or (sheet is None and len(names) == 1):
                    return list(book[sheet or names[0]].iter_rows(values_only=True))
            finally:
                book.close()
    except PermissionError:
        problem = "may not be read by this user. Ask for the permission to read it"
    except Exception:  # what is in the file may be quoted: nothing of it is told
        problem = "cannot be read as an Excel workbook. Open it in Excel and save it as .xlsx, or as .csv"
    if problem:
        raise UnreadableInput(f"{_capital(label)} {problem}.")
    found = "has several sheets" if sheet is None else f"has no sheet {sheet!r}"
    listed = ", ".join(f'"{name}"' for name in names)
    raise UnreadableInput(f'{_capital(label)} {found}. Its sheets: {listed}. Write sheet = "{names[0]}", or another.', field="sheet")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
