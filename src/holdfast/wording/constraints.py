"""Kept constraints in words: "by county and sex" in place of margin(county, sex)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.display import list_names
from holdfast.invariants.constraints import Areas, Constraint, Kind, Margin, Subset
from holdfast.invariants.rows import integer_matrix
from holdfast.tables.labels import Labels
from holdfast.wording.catalogue import ENGLISH, Sentences

KINDS: tuple[Kind, ...] = ("kept", "identity")
CODES = 60
"""Characters of the codes of one constraint."""


def kept_texts(constraints: Iterable[Constraint], labels: Labels, kind: Kind = "kept", language: str = ENGLISH) -> list[str]:
    """The constraints of one kind in their order, kept ones or identities."""
    said = Sentences(language)
    return [_words(given, labels, said) for given in constraints if given.kind == kind]


def _words(given: Constraint, labels: Labels, said: Sentences) -> str:
    match given:
        case Margin():
            return _by(given.columns, labels, said) or said("constraints.whole")
        case Subset():
            what = _cells(given, labels, said)
        case Areas():
            names = list_names([name for name, _ in given.sets], CODES)
            what = said("constraints.areas", count=len(given.sets), column=labels.column(given.column), names=names)
        case _:
            return said("constraints.sums", count=len(integer_matrix(given.matrix).indptr) - 1)
    by = _by(given.by, labels, said)
    return said("constraints.with_by", what=what, by=by) if by else what


def _cells(given: Subset, labels: Labels, said: Sentences) -> str:
    if given.condition is not None:
        return said("constraints.cells", condition=given.condition)
    assert given.column is not None
    column, called = given.column, labels.column(given.column)
    if given.node is not None:
        return said("constraints.under", column=called, node=_code(column, given.node, labels))
    return said("constraints.codes", column=called, codes=list_names([_code(column, code, labels) for code in given.codes or ()], CODES))


def _code(column: str, code: str, labels: Labels) -> str:
    return labels.code(column, {column: code}) or code


def _by(columns: Sequence[str], labels: Labels, said: Sentences) -> str:
    """ "by county, sex and age"; nothing where there are no columns."""
    *first, last = [labels.column(column) for column in columns] or [""]
    named = said("constraints.and", first=", ".join(first), last=last) if first else last
    return said("constraints.by", columns=named) if columns else ""
