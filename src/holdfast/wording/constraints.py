"""Kept constraints in words: "by county and sex" in place of margin(county, sex)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.display import list_names
from holdfast.tables.labels import ColumnLabels, Labels
from holdfast.wording.catalogue import ENGLISH, Sentences

CODES = 60
"""Characters of the codes of one constraint."""


def labels_of(given: Sequence[Mapping[str, Any]]) -> Labels:
    """The labels of a table, from its card."""
    columns = [(one["column"], one["name"], tuple(one["by"]), {tuple(codes): label for codes, label in one["codes"]}) for one in given]
    return Labels(tuple(ColumnLabels(*column) for column in columns))


def kept_texts(definitions: Sequence[Mapping[str, Any]], labels: Labels, kind: str = "kept", language: str = ENGLISH) -> list[str]:
    """The constraints of one kind in their order, kept ones or identities, from their plain form, as cards have it."""
    said = Sentences(language)
    return [_words(given, labels, said) for given in definitions if given["kind"] == kind]


def _words(given: Mapping[str, Any], labels: Labels, said: Sentences) -> str:
    match given["type"]:
        case "margin":
            return _by(given["columns"], labels, said) or said("constraints.whole")
        case "subset":
            what = _cells(given, labels, said)
        case "areas":
            names = list_names([name for name, _ in given["sets"]], CODES)
            what = said("constraints.areas", count=len(given["sets"]), column=labels.column(given["column"]), names=names)
        case _:
            return said("constraints.sums", count=len(given["rows"]))
    by = _by(given["by"], labels, said)
    return said("constraints.with_by", what=what, by=by) if by else what


def _cells(given: Mapping[str, Any], labels: Labels, said: Sentences) -> str:
    if given["condition"] is not None:
        return said("constraints.cells", condition=given["condition"])
    column, called = given["column"], labels.column(given["column"])
    if given["node"] is not None:
        return said("constraints.under", column=called, node=_code(column, given["node"], labels))
    return said("constraints.codes", column=called, codes=list_names([_code(column, code, labels) for code in given["codes"]], CODES))


def _code(column: str, code: str, labels: Labels) -> str:
    return labels.code(column, {column: code}) or code


def _by(columns: Sequence[str], labels: Labels, said: Sentences) -> str:
    """ "by county, sex and age"; nothing where there are no columns."""
    *first, last = [labels.column(column) for column in columns] or [""]
    named = said("constraints.and", first=", ".join(first), last=last) if first else last
    return said("constraints.by", columns=named) if columns else ""
