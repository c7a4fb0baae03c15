"""Slow, obvious versions of what invariants/ computes, on universes small enough for dictionaries, and helpers for its tests."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st

from holdfast.errors import HoldfastError, InvalidConstraint
from holdfast.invariants import Kept, compile_rows
from holdfast.invariants.constraints import Constraint
from holdfast.tables.hierarchy import Hierarchy
from holdfast.tables.universe import Universe

Cell = dict[str, str]

ODD_CODES = [".5", " lead", "trail ", "  ", "", "85+", "100", "01", "1", "-1", "Ærø", "北京", "O'Neil", 'qu"ote', "a,b", "NULL", "A=B"]
ODD_COLUMNS = ["age", "sex", "group quarters", "Gemeinde-Nr.", "Ort/Ö", "and", "18plus"]


@dataclass(frozen=True)
class Small:
    """A universe together with its cells as dictionaries, made without asking it."""

    universe: Universe
    cells: list[Cell]
    order: dict[str, list[str]]
    """Per column its codes in the order declared, or first seen."""
    under: dict[str, list[str]] = field(default_factory=dict)
    """Nodes of the hierarchy of the first column, each with the codes under it."""

    @property
    def columns(self) -> list[str]:
        return list(self.order)


def small_product(codes: Mapping[str, Sequence[str]], under: Mapping[str, Sequence[str]] | None = None) -> Small:
    columns = list(codes)
    cells = [dict(zip(columns, row, strict=True)) for row in itertools.product(*codes.values())]
    order = {column: list(given) for column, given in codes.items()}
    universe = Universe.product(codes, hierarchies=_trees(columns[0], under), allow_similar_codes=True)
    return Small(universe, cells, order, _nodes(order[columns[0]], under))


def small_listed(columns: Sequence[str], rows: Sequence[tuple[str, ...]], under: Mapping[str, Sequence[str]] | None = None) -> Small:
    order = {column: list(dict.fromkeys(row[place] for row in rows)) for place, column in enumerate(columns)}
    listed = {column: [row[place] for row in rows] for place, column in enumerate(columns)}
    universe = Universe.listed(listed, hierarchies=_trees(columns[0], under), allow_similar_codes=True)
    return Small(universe, [dict(zip(columns, row, strict=True)) for row in rows], order, _nodes(order[columns[0]], under))


def _trees(column: str, under: Mapping[str, Sequence[str]] | None) -> dict[str, Hierarchy]:
    """A tree of two levels below one top node."""
    if not under:
        return {}
    parents: dict[str, str | None] = {"top node": None}
    for node, codes in under.items():
        parents[node] = "top node"
        parents |= dict.fromkeys(codes, node)
    return {column: Hierarchy.from_parents(parents)}


def _nodes(codes: list[str], under: Mapping[str, Sequence[str]] | None) -> dict[str, list[str]]:
    """What each node of that tree stands for: the top, the inner nodes, and each code itself."""
    if not under:
        return {}
    return {"top node": codes, **{node: list(given) for node, given in under.items()}, **{code: [code] for code in codes}}


def slow_rows(small: Small, by: Sequence[str], chosen: Callable[[Cell], bool] = lambda cell: True) -> tuple[list[list[int]], list[str]]:
    """One 0/1 row for every combination of the codes of `by` among the chosen cells, in the order of the codes, and what names it."""
    members: dict[tuple[str, ...], list[int]] = {}
    for number, cell in enumerate(small.cells):
        if chosen(cell):
            members.setdefault(tuple(cell[column] for column in by), []).append(number)
    combinations = sorted(members, key=lambda codes: [small.order[column].index(code) for column, code in zip(by, codes, strict=True)])
    rows = [[int(number in members[codes]) for number in range(len(small.cells))] for codes in combinations]
    return rows, [slow_name(zip(by, codes, strict=True)) for codes in combinations]


def slow_name(pairs: Iterable[tuple[str, str]]) -> str:
    """ "state=17, county=031", with quotes around what could be mistaken."""
    return ", ".join(f"{_quoted(column)}={_quoted(code)}" for column, code in pairs)


def _quoted(text: str) -> str:
    odd = not text or text[0].isspace() or text[-1].isspace() or any(letter in ',="' or not letter.isprintable() for letter in text)
    return json.dumps(text, ensure_ascii=not text.isprintable()) if odd else text


@st.composite
def smalls(draw: st.DrawFn) -> Small:
    """Products and lists of cells in any order, of one to three columns with odd names and codes; some with a hierarchy."""
    columns = draw(st.lists(st.sampled_from(ODD_COLUMNS), min_size=1, max_size=3, unique=True))
    codes = [draw(st.lists(st.sampled_from(ODD_CODES), min_size=1, max_size=4, unique=True)) for _ in columns]
    if draw(st.booleans()):
        return small_product(dict(zip(columns, codes, strict=True)), draw(trees(codes[0])))
    product = list(itertools.product(*codes))
    rows = draw(st.lists(st.sampled_from(product), min_size=1, max_size=len(product), unique=True))
    return small_listed(columns, rows, draw(trees(list(dict.fromkeys(row[0] for row in rows)))))


@st.composite
def trees(draw: st.DrawFn, codes: list[str]) -> dict[str, list[str]]:
    """The codes split among nodes, or no tree. The nodes' names are no codes."""
    if draw(st.booleans()):
        return {}
    nodes = draw(st.lists(st.sampled_from(["north", " süd", "01x"]), min_size=len(codes), max_size=len(codes)))
    return {node: [code for code, lies_in in zip(codes, nodes, strict=True) if lies_in == node] for node in dict.fromkeys(nodes)}


def dense(kept: Kept) -> list[list[int]]:
    """The matrix as lists of Python integers."""
    rows: list[list[int]] = kept.matrix().toarray().tolist()
    return rows


def compiled(universe: Universe, *constraints: Constraint) -> Kept:
    return compile_rows(universe, constraints)


def refused(work: Callable[[], Any], *parts: str) -> str:
    """The message with which `work` is refused: an InvalidConstraint and no other error, one line, holding these parts."""
    with pytest.raises(HoldfastError) as caught:
        work()
    error = caught.value
    assert type(error) is InvalidConstraint, f"{type(error).__name__}: {error}"
    message = str(error)
    assert error.__cause__ is None
    assert message.endswith(".")
    assert len(message) < 400
    assert not [part for part in parts if part not in message], message
    return message
