"""Texts that a spreadsheet would run when it opens a CSV file: they begin with = + - @, a tab or a carriage return, and are not numbers.

Marked, such a text has one more apostrophe before it, by which spreadsheets know a text. Apostrophes that stand there already change
nothing, so that unmarking gives every text back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

from holdfast.tables.universe import Universe

Formulas: TypeAlias = Literal["warn", "mark"]
FORMULAS: tuple[str, ...] = get_args(Formulas)

_BEGINS = r"'*[=+\-@\t\r]"
_NUMBER = r"'*[+-]?[0-9]*(?:[.,][0-9]+)?"


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would run it, marked or not."""
    return re.match(_BEGINS, text) is not None and re.fullmatch(_NUMBER, text) is None


def mark(text: str) -> str:
    return f"'{text}" if is_formula(text) else text


def unmark(text: str) -> str:
    """What `mark` was given; ValueError where a formula is not marked."""
    if not is_formula(text):
        return text
    if not text.startswith("'"):
        raise ValueError("a formula that is not marked")
    return text[1:]


def mark_frame(frame: Any) -> Any:
    """A pyarrow.Table with its texts and names marked."""
    import pyarrow as pa

    columns = [marked_column(column) for column in frame.columns]
    return pa.Table.from_arrays(columns, names=[mark(name) for name in frame.column_names])


def marked_column(column: Any) -> Any:
    """A column of texts, marked; any other column as it is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return (
        pc.if_else(_formulas(column), pc.binary_join_element_wise("'", column, ""), column) if pa.types.is_string(column.type) else column
    )


def unmark_frame(frame: Any, codes: int) -> Any:
    """What `mark_frame` was given, of which the first columns are codes; ValueError where a formula is not marked."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = list(frame.columns)
    for place, column in enumerate(columns[:codes]):
        formulas = _formulas(column)
        if pc.any(pc.and_(formulas, pc.invert(pc.starts_with(column, "'")))).as_py():
            raise ValueError("a formula that is not marked")
        columns[place] = pc.if_else(formulas, pc.utf8_slice_codeunits(column, 1), column)
    return pa.Table.from_arrays(columns, names=[unmark(name) for name in frame.column_names])


def _formulas(column: Any) -> Any:
    """Return which texts are formulas; missing ones are not."""
    import pyarrow.compute as pc

    numbers = pc.match_substring_regex(column, f"^(?:{_NUMBER})$")
    return pc.fill_null(pc.and_(pc.match_substring_regex(column, f"^{_BEGINS}"), pc.invert(numbers)), fill_value=False)


def formula_columns(universe: Universe, others: Iterable[str] = ()) -> list[str]:
    """Columns of which the name or a code is a formula, and names among the others that are."""
    found = [column for column in universe.columns if is_formula(column) or any(map(is_formula, universe.codes[column]))]
    return [*found, *filter(is_formula, others)]
