"""What is exposed, as plain values that can be stored and read again: counts, a few names, enumerations. No sentences."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")


class Obstacle(StrEnum):
    """Why tables cannot be laid over one another, so that nothing is known of what they expose together."""

    CELLS_APART = "cells apart"
    """Cells of one table cannot occur in the others."""
    OBSERVED_LISTS = "observed lists"
    """Two tables list different cells, and a list that was not declared public may depend on the data."""
    OBSERVED_CELLS = "observed cells"
    """A table lists cells that were not declared public, and the tables have different columns."""
    OTHER_CODES = "other codes"
    """A column has other codes in each table, and no declared hierarchy links them."""
    OTHER_CELLS = "other cells"
    """Two tables have the same columns but other cells, and a third has other columns."""
    OTHER_COMBINATIONS = "other combinations"
    """Two tables list different combinations of the columns they share."""
    LOOKS_NESTED = "looks nested"
    """Codes of one column begin with codes of another, and no declared hierarchy links the two."""
    TOO_LARGE = "too large"
    TOO_MANY = "too many"
    """Later releases, or their cells, are as many as are joined."""
    NOT_HELD = "not held"
    """The ledger does not hold so large a table, or cannot read it."""
    ANSWERS = "answers"
    """Real-valued answers and a table, or other answers: which people make up which cell is not known."""


class Stored:
    """Facts that are stored as JSON and read again: as the dataclass says them, field by field, and nothing else."""

    def to_fields(self) -> dict[str, Any]:
        """Plain values: lists for tuples, texts for enumerations."""
        fields: dict[str, Any] = _form(type(self)).dump_python(self, mode="json")
        return fields

    @classmethod
    def from_fields(cls, fields: object) -> Self:
        """What `to_fields` gave; TypeError or ValueError for anything else."""
        return _form(cls).validate_json(json.dumps(fields), strict=True)


_FORMS: dict[type, TypeAdapter[Any]] = {}


def _form(kind: type[T]) -> TypeAdapter[T]:
    from pydantic import TypeAdapter  # when something is read: most that import this file read nothing

    if kind not in _FORMS:
        _FORMS[kind] = TypeAdapter(kind)
    return _FORMS[kind]


@dataclass(frozen=True)
class WhyNot:
    """An obstacle: between which releases, in which columns, at how many cells, above which limit."""

    obstacle: Obstacle
    releases: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: int = 0
    limit: int = 0


@dataclass(frozen=True)
class NewCells:
    """Cells that releases expose together: how many, and the first few by name."""

    release: str | None
    """In whose table, and that its own totals do not expose; None: the tables have the same cells, and no release exposes them alone."""
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class LearnedTotals:
    """Totals of one table that another release tells exactly although the table's own release does not."""

    release: str
    columns: tuple[str, ...]
    """One total for every combination of these columns; none: the total of the table."""
    told_by: str


@dataclass(frozen=True)
class JointFacts(Stored):
    """What releases expose together; nothing is known of it where `why_not` is given."""

    releases: tuple[str, ...]
    why_not: WhyNot | None = None
    fixed: tuple[NewCells, ...] = ()
    """Fixed by the kept totals themselves, whatever their values."""
    complete: bool = False
    """Whether all that is fixed was looked for. False where the search was cut, and where nothing was computed."""
    learned: tuple[LearnedTotals, ...] = ()
    pinned: tuple[NewCells, ...] | None = None
    """Further cells that the published values pin. None: no values are known."""
    open: int = 0
    """Cells of any table of which it was not decided whether the published values pin them."""
    values_missing: tuple[str, ...] = ()
    """Releases whose kept totals are not all known."""
    contradicting: tuple[str, ...] = ()
    """Releases whose values contradict those of the others: they were left out of what is pinned."""
    crossed: tuple[tuple[str, ...], ...] = ()
    """Columns found in one table only, table by table, if several tables have such columns: every combination was taken as possible."""
    of_answers: bool = False
    """Whether these are real-valued answers over the same cells, taken as answers to one question. Unlike counts they may be negative."""


@dataclass(frozen=True)
class Undecided:
    """Cells with equal bounds of which it is not decided whether they are exposed."""

    cells: int
    at_least: int | None
    """None: the values of the totals are not known, or give no bound."""
    at_most: int | None
    name: str
    """The first of them."""


@dataclass(frozen=True)
class ExposedAlone(Stored):
    """Cells that one release publishes exactly, whatever its noise."""

    fixed: int
    """By the kept totals themselves."""
    pinned: int
    """By the values of the published totals, as far as they are known."""
    open: tuple[Undecided, ...]
    """The largest classes of cells of which it is not decided."""
    undecided: int
    """How many such cells there are in all."""
    observed: bool
    """Whether every cell on the list is known to occur; else counts are only known not to be negative."""
    values_known: bool = False
    """Whether the values of the kept totals were looked at. Before the draw they are not: what they pin is then open; older
    entries, all written before the draw, do not say so."""
    bounded: bool = False
    """Whether counts that are known to lie within public bounds are pinned by them; older entries have True for all with bounds."""


@dataclass(frozen=True)
class TogetherFacts:
    """What a release exposes together with earlier ones, in short."""

    releases: tuple[str, ...]
    """The earlier ones that it was joined with."""
    by_structure: int
    """Cells that the kept totals of all fix, and those of none alone: of this table and of theirs, each once."""
    by_values: int
    """Further such cells that the published values pin."""
    text: str


@dataclass(frozen=True, eq=False)
class Together:
    """The cells of a release's table that it exposes with earlier releases and not alone."""

    facts: TogetherFacts
    fixed: NDArray[np.int64]
    pinned: NDArray[np.int64]
    values: tuple[int | None, ...] = ()
    """Their counts as far as the published totals tell them: first of the fixed cells, then of the pinned ones."""


@dataclass(frozen=True)
class LeftOut:
    """Earlier releases that something was not computed with."""

    releases: tuple[str, ...]
    why_not: WhyNot


@dataclass(frozen=True)
class ReleaseExposure(Stored):
    """What a release exposes alone, and together with the earlier releases that it can be joined with."""

    alone: ExposedAlone
    together: JointFacts | None = None
    """None: there is no earlier release that it can be joined with."""
    left_out: tuple[LeftOut, ...] = ()
