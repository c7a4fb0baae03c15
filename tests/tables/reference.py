"""Slow, obvious versions of what tables/ computes, and helpers for its tests."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from holdfast.errors import HoldfastError

ODD_CODES = [
    *[".1", " lead", "trail ", "  ", "01", "1", "85+", "Ærø", "北京", "NULL", "NA", "-", "#x", "", "0x1", "1e3"],
    *['qu"ote', '"', "a,b", "two\nlines", "win\r\n", "\r", "'", "\t", "a\0b"],
]

codes = st.sampled_from(ODD_CODES) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


def slow_groups(cells: Sequence[tuple[int, ...]]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Number the distinct tuples in sorted order, one by one."""
    names = sorted(set(cells))
    number = {name: place for place, name in enumerate(names)}
    return [number[cell] for cell in cells], names


def slow_counts(universe: Sequence[tuple[str, ...]], records: Sequence[tuple[str, ...]]) -> list[int]:
    """Count records cell by cell."""
    return [sum(record == cell for record in records) for cell in universe]


def rows_of(frame: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    """The rows of a pyarrow.Table as tuples."""
    return list(zip(*(frame.column(name).to_pylist() for name in columns), strict=True))


def refused(kind: type[HoldfastError], work: Callable[[], Any], *secrets: str) -> str:
    """The message with which `work` is refused; no secret may stand in it, nor in anything else the exception carries."""
    with pytest.raises(HoldfastError) as caught:
        work()
    error = caught.value
    assert type(error) is kind, f"{type(error).__name__}: {error}"
    assert error.__context__ is None
    assert error.__cause__ is None
    shown = [str(error), repr(error), repr(error.__dict__), "".join(traceback.format_exception_only(error)), repr(pickle.dumps(error))]
    for secret in secrets:
        assert not [text for text in shown if secret in text]
    assert len(str(error).split(". ")) >= 2, f"no advice in: {error}"
    return str(error)


def as_columns(rows: Sequence[tuple[str, ...]], names: Sequence[str]) -> Mapping[str, list[str]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}
