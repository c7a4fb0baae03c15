"""How a budget is divided, and what that reaches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from holdfast.exact.formatting import format_up
from holdfast.privacy.asked import DISTANCE

PASTE = "In the run file, in place of the budget and the shares that [release] has now:"


def run_file_lines(rho: str, shares: Sequence[tuple[Any, Any, str]]) -> Iterator[str]:
    """What [release] of a run file says for these shares."""
    yield f'rho = "{rho}"'
    for level, margin, share in shares:
        yield "[[release.levels]]"
        yield f"level = {_toml(level)}"
        yield f"margin = {_toml(margin)}"
        yield f'share = "{share}"'


def _toml(name: str | Sequence[str]) -> str:
    return json.dumps(name if isinstance(name, str) or len(name) > 1 else name[0], ensure_ascii=False)


@dataclass(frozen=True)
class ShareLine:
    """A share of the budget, exact."""

    level: str | Sequence[str]
    margin: str | Sequence[str]
    share: str


@dataclass(frozen=True)
class ReachedLine:
    """One wanted margin: its target, exact, if there is one, and the standard deviation that it reaches, rounded up."""

    level: str
    margin: str
    target: str | None
    reached: float


@dataclass(frozen=True)
class AllocationFacts:
    """An allocation in plain values: shares and budget exact, other numbers to six digits, those that are bounds rounded up."""

    goal: str
    rho: str
    per: str | None
    levels: list[ShareLine]
    reached: list[ReachedLine]
    within: float
    equal_shares: float
    run_file: str


def allocation_lines(found: AllocationFacts) -> Iterator[str]:
    """The budget, what it reaches, the shares, how good they are."""
    is_found = found.goal == "targets"
    yield f"{'Budget':<10} rho = {found.rho} for {_whom(found.per)}, {'found for these targets' if is_found else 'as given'}"
    rows = [("level", "margin", "standard deviation", "target" if is_found else "")]
    rows += [(row.level, row.margin, f"at most {format_up(Fraction(repr(row.reached)), 4)}", row.target or "") for row in found.reached]
    yield from _table("Reached", rows)
    shares = [(_name(row.level), _name(row.margin), row.share) for row in found.levels]
    yield from _table("Shares", [("level", "margin", "share"), *shares])
    yield f"{'Quality':<10} {_quality(found)}"


def _whom(per: str | None) -> str:
    return "one unit of distance" if per == DISTANCE else f"one {per}"


def _quality(found: AllocationFacts) -> str:
    what = {"targets": "rho", "sum": "sum of variances"}.get(found.goal, "largest variance")
    over, equal = 100 * (Fraction(repr(found.within)) - 1), found.equal_shares
    beside = "equal shares do as well." if f"{equal:.3g}" == "1" else f"equal shares have one {equal:.3g} times as large."
    return f"no other shares of these margins have a {what} more than {format_up(max(over, Fraction(1, 10)), 2)} % lower; {beside}"


def _name(name: str | Sequence[str]) -> str:
    return name if isinstance(name, str) else " x ".join(name)


def _table(head: str, rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        line = "  ".join(f"{text:<{width}}" for text, width in zip(row, widths, strict=True))
        yield f"{'' if number else head:<10} {line}".rstrip()
