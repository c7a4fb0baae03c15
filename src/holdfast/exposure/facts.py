"""What is exposed, as plain values that can be stored and read again: counts, a few names, enumerations. No sentences.

`to_fields` gives what JSON holds. `from_fields` reads just that, and raises KeyError, TypeError or ValueError for anything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Why(StrEnum):
    """Why a row is in the table of exposed cells."""

    FIXED = "fixed"
    """The kept totals determine this cell."""
    PINNED = "pinned"
    """The published totals leave one value, since counts are not negative."""
    NEARLY_PINNED = "nearly pinned"
    """The published totals leave a short interval."""
    SMALL_TOTAL = "small total"
    SEARCH_CUT = "search cut"
    """Too many cells are linked to look for all that are fixed."""


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


@dataclass(frozen=True)
class WhyNot:
    """An obstacle: between which releases, in which columns, at how many cells, above which limit."""

    obstacle: Obstacle
    releases: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    cells: int = 0
    limit: int = 0

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> WhyNot:
        names = {name: _texts(fields[name]) for name in ("releases", "columns")}
        return cls(Obstacle(fields["obstacle"]), **names, cells=int(fields["cells"]), limit=int(fields["limit"]))


@dataclass(frozen=True)
class NewCells:
    """Cells that releases expose together: how many, and the first few by name."""

    release: str | None
    """In whose table, and that its own totals do not expose; None: the tables have the same cells, and no release exposes them alone."""
    count: int
    names: tuple[str, ...]

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> NewCells:
        return cls(_text_or_none(fields["release"]), int(fields["count"]), _texts(fields["names"]))


@dataclass(frozen=True)
class LearnedTotals:
    """Totals of one table that another release tells exactly although the table's own release does not."""

    release: str
    columns: tuple[str, ...]
    """One total for every combination of these columns; none: the total of the table."""
    told_by: str

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> LearnedTotals:
        return cls(str(fields["release"]), _texts(fields["columns"]), str(fields["told_by"]))


@dataclass(frozen=True)
class JointFacts:
    """What releases expose together; nothing is known of it where `why_not` is given."""

    releases: tuple[str, ...]
    why_not: WhyNot | None = None
    fixed: tuple[NewCells, ...] = ()
    """Fixed by the kept totals themselves, whatever their values."""
    complete: bool = False
    """Whether all that is fixed was looked for. False where the search was cut, and where nothing was computed."""
    learned: tuple[LearnedTotals, ...] = ()
    pinned: tuple[NewCells, ...] | None = None
    """Further cells that the published values pin. None: no values are known, or they contradict one another."""
    values_missing: tuple[str, ...] = ()
    """Releases whose kept totals are not all known."""
    values_contradict: bool = False
    crossed: tuple[tuple[str, ...], ...] = ()
    """Columns found in one table only, table by table, if several tables have such columns: every combination was taken as possible."""
    of_answers: bool = False
    """Whether these are real-valued answers over the same cells, taken as answers to one question. Unlike counts they may be negative."""

    def to_fields(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> JointFacts:
        why_not, pinned = fields["why_not"], fields["pinned"]
        return cls(
            releases=_texts(fields["releases"]),
            why_not=None if why_not is None else WhyNot.from_fields(why_not),
            fixed=tuple(map(NewCells.from_fields, fields["fixed"])),
            complete=fields["complete"] is True,
            learned=tuple(map(LearnedTotals.from_fields, fields["learned"])),
            pinned=None if pinned is None else tuple(map(NewCells.from_fields, pinned)),
            values_missing=_texts(fields["values_missing"]),
            values_contradict=fields["values_contradict"] is True,
            crossed=tuple(map(_texts, fields["crossed"])),
            of_answers=fields.get("of_answers") is True,
        )


@dataclass(frozen=True)
class ExposedAlone:
    """Cells that one release publishes exactly, whatever its noise."""

    fixed: int
    """By the kept totals themselves."""
    pinned: int
    """By the values of the published totals, as far as they are known."""
    complete: bool
    """False where there may be more."""
    observed: bool
    """Whether every cell on the list is known to occur; else counts are only known not to be negative."""
    values_known: bool
    """Whether the values of the kept totals were looked at. Before the draw they are not: what they pin is then open."""
    bounded: bool = False
    """Whether counts that are known to lie within public bounds are pinned by them; older entries have True for all with bounds."""

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ExposedAlone:
        known = fields.get("values_known") is True  # older entries were written before the draw, and do not say so
        flags = fields["complete"] is True, fields["observed"] is True, known, fields.get("bounded") is True
        return cls(int(fields["fixed"]), int(fields["pinned"]), *flags)


@dataclass(frozen=True)
class LeftOut:
    """Earlier releases that something was not computed with."""

    releases: tuple[str, ...]
    why_not: WhyNot

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> LeftOut:
        return cls(_texts(fields["releases"]), WhyNot.from_fields(fields["why_not"]))


@dataclass(frozen=True)
class ReleaseExposure:
    """What a release exposes alone, and together with the earlier releases that it can be joined with."""

    alone: ExposedAlone
    together: JointFacts | None = None
    """None: there is no earlier release that it can be joined with."""
    left_out: tuple[LeftOut, ...] = ()

    def to_fields(self) -> dict[str, Any]:
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> ReleaseExposure:
        together = fields["together"]
        return cls(
            ExposedAlone.from_fields(fields["alone"]),
            None if together is None else JointFacts.from_fields(together),
            tuple(map(LeftOut.from_fields, fields["left_out"])),
        )


def _plain(value: Any) -> Any:
    """As JSON has it: lists for tuples, texts for enumerations."""
    if isinstance(value, Mapping):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, StrEnum) else value


def _texts(value: Sequence[str]) -> tuple[str, ...]:
    if isinstance(value, str) or not all(isinstance(entry, str) for entry in value):
        raise TypeError("a list of texts was expected")
    return tuple(value)


def _text_or_none(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError("a text was expected")
    return value
