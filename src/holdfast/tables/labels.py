"""Labels: what people call columns and codes. Public words for pages and screens; data files keep the codes, no draw depends on them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from holdfast.display import list_names, named_codes, shorten
from holdfast.errors import InvalidCode, InvalidParameter, RequestTooLarge, UnknownColumn
from holdfast.tables.readers import open_source, read_codes

if TYPE_CHECKING:
    from holdfast.tables.universe import Universe

MAX_LABEL = 200
LABEL_FORM = (
    f"a text on one line of at most {MAX_LABEL} characters, without blanks at its ends and without characters that do not print, such as "
    "control or direction marks"
)
MOST_LABELS = 100_000
"""Most labels: the card lists them in full."""

Codes: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class ColumnLabels:
    """What one column and its codes are called.

    Given:  `by`: the columns whose codes together have a label, this column the last of them. County 031 has a name within its state only:
            by=("state", "county"). `strict`: a label of a code that the table does not have is a mistake, and not one of a shared list.
    """

    column: str
    name: str | None = None
    by: tuple[str, ...] = ()
    codes: Mapping[Codes, str] = field(default_factory=dict)
    strict: bool = field(default=True, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", self.by or (self.column,))
        if self.by[-1] != self.column:
            raise InvalidParameter(f"Labels of column {self.column!r} go by columns of which it is the last. Got {', '.join(self.by)}.")
        for text in (*([] if self.name is None else [self.name]), *self.codes.values()):
            check_label(text)

    @cached_property
    def _shared_labels(self) -> frozenset[tuple[Codes, str]]:
        """Labels that several codes have under the same codes of the other columns."""
        times = Counter((codes[:-1], label) for codes, label in self.codes.items())
        return frozenset(pair for pair, number in times.items() if number > 1)

    def label(self, codes: Codes) -> str | None:
        """The label of these codes, the code behind it where others have the same; None where they have none."""
        found = self.codes.get(codes)
        return f"{found} ({codes[-1]})" if found is not None and (codes[:-1], found) in self._shared_labels else found


@dataclass(frozen=True)
class Labels:
    """The labels of a table, column by column; those that have none are called by column and code."""

    columns: tuple[ColumnLabels, ...] = ()

    @classmethod
    def of(cls, codes: Mapping[str, Mapping[str, str]], columns: Mapping[str, str] | None = None) -> Labels:
        """From {"sex": {"F": "women"}} and {"sex": "Sex"}."""
        names = columns or {}
        return cls(
            tuple(
                ColumnLabels(column, names.get(column), codes={(code,): label for code, label in codes.get(column, {}).items()})
                for column in dict.fromkeys((*codes, *names))
            )
        )

    @cached_property
    def _of(self) -> dict[str, ColumnLabels]:
        return {given.column: given for given in self.columns}

    def column(self, column: str) -> str:
        """What a column is called."""
        given = self._of.get(column)
        return column if given is None or given.name is None else given.name

    def by(self, column: str) -> tuple[str, ...]:
        """The columns whose codes together have a label."""
        given = self._of.get(column)
        return (column,) if given is None else given.by

    def code(self, column: str, codes: Mapping[str, str]) -> str | None:
        """What a code is called, from the codes of some columns; None where it has no label, or these columns do not tell."""
        given = self._of.get(column)
        if given is None or not codes.keys() >= set(given.by):
            return None
        return given.label(tuple(codes[name] for name in given.by))

    def taken_for_code(self, column: str, text: str, codes: Collection[str]) -> str:
        """Say that a text that is not a code is the label of some of these codes, as a sentence without its end; empty if it is not."""
        given = self._of.get(column)
        labelled = {} if given is None or text in codes else given.codes
        found = list(dict.fromkeys(own[-1] for own, label in labelled.items() if label == text and own[-1] in codes))
        if not found:
            return ""
        return f"{shorten(text)!r} is the label of code{'s' if len(found) > 1 else ''} {list_names(found, show=repr)} of column {column}"

    def name_cell(self, codes: Mapping[str, str]) -> str:
        """ "Cook County, women, 18 to 24", and "age=18" for a column without labels."""
        return ", ".join(self.code(column, codes) or named_codes([(self.column(column), code)]) for column, code in codes.items())

    def fit_to(self, universe: Universe) -> Labels:
        """Those that this table uses; refused where a column or a code does not fit."""
        made = Labels(tuple(_fit_column(given, universe) for given in self.columns))
        if (number := sum(len(given.codes) for given in made.columns)) > MOST_LABELS:
            raise RequestTooLarge(f"Labels are written to the card, {MOST_LABELS:,} at most. Got {number:,}. Label fewer columns.")
        return made


NO_LABELS = Labels()


def _fit_column(given: ColumnLabels, universe: Universe) -> ColumnLabels:
    for column in given.by:
        if column not in universe.columns:
            raise UnknownColumn(f"Labels go by column {column!r}, which the table does not have: {', '.join(universe.columns)}.")
    known = [_known_codes(universe, column) for column in given.by]
    kept = {codes: label for codes, label in given.codes.items() if all(code in among for code, among in zip(codes, known, strict=True))}
    if given.strict and len(kept) < len(given.codes):
        wrong = next(codes for codes in given.codes if codes not in kept)
        raise InvalidCode(f"Column {given.column!r} has no code {', '.join(map(repr, wrong))}, but a label for it. Codes match exactly.")
    if given.codes and not kept:
        raise InvalidCode(f"No code with a label is a code of column {given.column!r}. '017' and '17' are two codes.")
    return replace(given, codes=kept)


def _known_codes(universe: Universe, column: str) -> Collection[str]:
    places = universe.codes.places(column)
    tree = universe.hierarchies.get(column)
    return places if tree is None else {*places, *tree.nodes}


def read_labels(file: str | os.PathLike[str], column: str, code: Sequence[str], label: str, name: str | None = None) -> ColumnLabels:
    """Labels of a codes file: its columns `code`, named as those of the table but for the last, which stands for `column`. The file may
    have codes that the table does not have.
    """
    found: dict[Codes, str] = {}
    with open_source(os.fspath(file)) as source:
        texts, indices = read_codes(source, [*code, label])
    lists = [[text[place] for place in index.tolist()] for text, index in zip((t.to_pylist() for t in texts), indices, strict=True)]
    for *codes, said in zip(*lists, strict=True):
        if found.setdefault(tuple(codes), said) != said:
            told = f"The code{'s' if len(codes) > 1 else ''} {', '.join(map(repr, codes))} ha{'ve' if len(codes) > 1 else 's'} two labels"
            raise InvalidCode(
                f"{told} in {os.path.basename(file)!r}, such as {shorten(found[tuple(codes)])!r} and {shorten(said)!r}. Leave one out; or, "
                f'where codes have a label only together with those of another column, name both: code = ["state", "{column}"].'
            )
    return ColumnLabels(column, name, (*code[:-1], column), found, strict=False)


def check_label(label: object) -> None:
    """One line that can be shown."""
    good = isinstance(label, str) and label == label.strip() and label.isprintable() and 0 < len(label) <= MAX_LABEL
    if not good:
        shown = f" Got {label!r:.60}." if isinstance(label, str) else ""
        raise InvalidParameter(f"A label is {LABEL_FORM}.{shown}")
