"""Kept statements in words: "by county and sex" in place of margin(county, sex)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.display import listed
from holdfast.tables.labels import ColumnLabels, Labels

WHOLE = "the whole table"
CODES = 60
"""Characters of the codes of one statement."""


def labels_of(given: Sequence[Mapping[str, Any]]) -> Labels:
    """The labels of a table, from its card."""
    columns = [(one["column"], one["name"], tuple(one["by"]), {tuple(codes): label for codes, label in one["codes"]}) for one in given]
    return Labels(tuple(ColumnLabels(*column) for column in columns))


def statement_words(given: Mapping[str, Any], labels: Labels) -> str:
    """From the plain form of a statement, as cards have it."""
    match given["type"]:
        case "margin":
            return _by(given["columns"], labels) or WHOLE
        case "subset":
            what = _cells(given, labels)
        case "areas":
            what = f"{len(given['sets'])} areas of {labels.column(given['column'])} ({listed([name for name, _ in given['sets']], CODES)})"
        case _:
            return f"{len(given['rows'])} sums with coefficients" if len(given["rows"]) != 1 else "a sum with coefficients"
    by = _by(given["by"], labels)
    return f"{what}, {by}" if by else what


def _cells(given: Mapping[str, Any], labels: Labels) -> str:
    if given["condition"] is not None:
        return f"cells with {given['condition']}"
    column = given["column"]
    if given["node"] is not None:
        return f"{labels.column(column)} under {_code(column, given['node'], labels)}"
    return f"{labels.column(column)} {listed([_code(column, code, labels) for code in given['codes']], CODES)}"


def _code(column: str, code: str, labels: Labels) -> str:
    return labels.code(column, {column: code}) or code


def _by(columns: Sequence[str], labels: Labels) -> str:
    """ "by county, sex and age"; nothing where there are no columns."""
    names = [labels.column(column) for column in columns]
    return f"by {' and '.join((', '.join(names[:-1]), names[-1]) if len(names) > 1 else names)}" if names else ""


def kept_words(definitions: Sequence[Mapping[str, Any]], labels: Labels, kind: str = "kept") -> list[str]:
    """The statements of one kind, in their order: kept ones or identities."""
    return [statement_words(given, labels) for given in definitions if given["kind"] == kind]
