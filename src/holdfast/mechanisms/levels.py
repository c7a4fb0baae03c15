"""Shares of a budget for levels and margins: read, checked against a table, turned into a channel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import numpy as np

from holdfast.channels import Channel, Facts
from holdfast.channels.layout import LevelLayout
from holdfast.display import Json, list_names, nearest, shorten
from holdfast.errors import InvalidConstraint, InvalidParameter
from holdfast.exact.parameters import exact_fraction
from holdfast.exposure.cells import Zeros
from holdfast.lattices.blocks import Blocks
from holdfast.lattices.geography import DETAILED, TOTAL, Geography, Ints, LevelName, geography, kept_margins, narrow_mask
from holdfast.lattices.norms import LEVELS
from holdfast.lattices.shapes import Pinned, Shape, Units
from holdfast.lattices.trees import Tree
from holdfast.laws import LevelGaussian
from holdfast.mechanisms.keys import EXACT, GOT, FloatText, InvalidKey, Key, declare_shape
from holdfast.mechanisms.mechanism import promise
from holdfast.privacy.level_secrets import Measured, person_distance, smallest_distance

_ROW = 'level = "county", margin = ["sex", "age"], share = "1/4"'

Margin: TypeAlias = tuple[str, ...] | str
"""Columns, or "total", or "detailed"."""


class _WrongShares(Exception):
    """What is wrong with shares; Python and run files each say where."""


@dataclass(frozen=True)
class Share:
    """A part of the budget for one margin of all units of one level."""

    level: LevelName
    margin: Margin
    share: Fraction

    def __str__(self) -> str:
        level = ":".join(self.level) if isinstance(self.level, tuple) else self.level
        margin = ":".join(self.margin) if isinstance(self.margin, tuple) else self.margin
        return f"{level}, {margin}: {self.share}"


class Shares(tuple[Share, ...]):
    """All shares, as they were given."""

    def __repr__(self) -> str:
        by_level: dict[LevelName, dict[Margin, str]] = {}
        for share in self:
            margin = share.margin[0] if len(share.margin) == 1 else share.margin
            by_level.setdefault(share.level, {})[margin] = str(share.share)
        return repr(by_level)

    @property
    def text(self) -> str:
        """For cards: (level, margin, share) of each, as JSON; `rows_of` reads it back."""
        return json.dumps([[share.level, share.margin, str(share.share)] for share in self], ensure_ascii=False)


def read_shares(given: Any) -> Shares:
    """From {level: share} or {level: {margin: share}}; a share alone is for the unit by all other columns ("detailed").

    Guarantees:  shares are exact, not negative, and add up to one; each level and margin is named once.
    """
    if isinstance(given, Shares):
        return given
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(
            "levels is a mapping from levels to shares, such as {'state': '1/10', 'county': {'total': '2/5', 'detailed': '1/2'}}."
        )
    try:
        return _check_shares(_shares_of(given))
    except _WrongShares as problem:
        raise InvalidParameter(f"levels: {problem}") from None


def read_workload(given: Any, what: str) -> Shares:
    """Levels and margins with a number each, zero or more: {level: number} or {level: {margin: number}}; a number alone is for the
    totals of the units.
    """
    if not isinstance(given, Mapping) or not given:
        raise InvalidParameter(f"A workload is a mapping from levels to a {what}, such as {{'county': 5, 'tract': {{'sex': '7.5'}}}}.")
    try:
        return _once(_shares_of(given, what, TOTAL))
    except _WrongShares as problem:
        raise InvalidParameter(f"workload: {problem}") from None


def _once(given: Iterable[Share]) -> Shares:
    shares = Shares(given)
    if len({(share.level, share.margin) for share in shares}) < len(shares):
        raise _WrongShares("a level and margin is named twice. Name each once, with one number.")
    return shares


def _check_shares(given: Iterable[Share]) -> Shares:
    shares = _once(given)
    total = sum((share.share for share in shares), Fraction(0))
    if total != 1:
        raise _WrongShares(
            f"the shares add up to {shorten(str(total))}, not to 1. Shares are parts of one budget: change them until their sum is 1."
        )
    return shares


def _shares_of(given: Mapping[Any, Any], what: str = "share", alone: str = DETAILED) -> Iterator[Share]:
    for level, value in given.items():
        name = _name(level, "level")
        margins = value if isinstance(value, Mapping) else {alone: value}
        for margin, share in margins.items():
            exact = exact_fraction(share, f"the {what} of {level!r}")
            if exact < 0:
                least = "a number above 0" if what == "standard deviation" else "0 or more"
                raise _WrongShares(f"the {what} of {level!r} is negative. Write {least}.")
            wanted = _name(margin, "margin")
            yield Share(name, (wanted,) if isinstance(wanted, str) and wanted not in (TOTAL, DETAILED) else wanted, exact)


def _name(given: Any, what: str) -> LevelName:
    if not _is_name(given):
        raise _WrongShares(f"a {what} is named by a text or a tuple of columns. Got {type(given).__name__}.")
    return given


def _is_name(given: Any) -> TypeGuard[LevelName]:
    return isinstance(given, str) or (isinstance(given, tuple) and bool(given) and all(isinstance(part, str) for part in given))


def rows_of(text: Json) -> list[dict[str, Json]]:
    """Return the rows of [[release.levels]] from the text of a card. Raise ValueError if it is not such a text."""
    try:
        given = json.loads(text if isinstance(text, str) else "null")
    except (TypeError, RecursionError):
        given = None
    if not isinstance(given, list) or not all(isinstance(row, list) and len(row) == 3 for row in given):
        raise ValueError("not a list of level, margin and share")
    return [{"level": level, "margin": margin, "share": share} for level, margin, share in given]


_NAME: Json = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
_SHAPE: Json = {
    "type": "object",
    "properties": {"level": _NAME, "margin": _NAME, "share": EXACT},
    "required": ["level", "share"],
    "additionalProperties": False,
}


@declare_shape({"type": "array", "items": _SHAPE, "minItems": 1})
def read_rows(key: Key, raw: object) -> Shares:
    """The reader of [[release.levels]] in a run file: rows with `level`, `share` and, beside units with other columns, `margin`."""
    if not isinstance(raw, list) or not raw or not all(isinstance(row, dict) for row in raw):
        raise InvalidKey(
            key.name, f"must be a list of tables. Got {GOT}. Write [[release.levels]] with {_ROW} below it, once for each share."
        )
    shares: list[Share] = []
    for place, row in enumerate(raw, 1):
        wrong = [name for name in row if name not in ("level", "margin", "share")]
        if wrong or "level" not in row or "share" not in row:
            said = f"has the unknown key {wrong[0]!r}" if wrong else "needs level and share"
            first = " Keys of [release] come before the first [[release.levels]]." if wrong else ""
            raise InvalidKey(key.name, f"row {place} {said}. Write {_ROW}.{first}")
        level, margin = (tuple(value) if isinstance(value, list) else value for value in (row["level"], row.get("margin", DETAILED)))
        for name, value in (("level", level), ("margin", margin)):
            if not _is_name(value):
                raise InvalidKey(key.name, f"row {place}: a {name} is a text or a list of columns. Write {_ROW}.")
        share = row["share"]
        if isinstance(share, FloatText):
            raise InvalidKey(key.name, f'row {place}: a share must be exact, because privacy depends on it. Write share = "{share.text}".')
        try:
            shares += _shares_of({level: {margin: share}})
        except (_WrongShares, InvalidParameter) as problem:
            raise InvalidKey(key.name, f"row {place}: {problem}") from None
    try:
        return _check_shares(shares)
    except _WrongShares as problem:
        raise InvalidKey(key.name, str(problem)) from None


def level_channel(facts: Facts, rho: Fraction, shares: Shares) -> Channel:
    """The channel of a Gaussian with these shares; refuses what does not fit the table."""
    if facts.lattice.universe is None or facts.lattice.kept is None:
        raise InvalidParameter("levels name columns and levels of a table. A lattice of a matrix alone has none: leave levels out.")
    found, kept = arrange_levels(facts, [share.level for share in shares])
    measured = _measured_margins(facts, shares, found, kept)
    facts, found, axes = _without_zeros(facts, found)
    kept = tuple(frozenset(narrow_mask(mask, axes) for mask in family) for family in kept)
    plain = promise(facts, "zcdp", "l2", rho=rho)
    depth, measured = found.depth, _narrowed_shares(measured, kept, axes)
    whole = Units(found.tree, found.lengths, tuple(tuple(sorted(family)) for family in kept))
    heights = tuple((depth - level, mask, share) for level, mask, share in measured)
    margins = found.margin_names()
    names = tuple(f"{_level_name(found, level)} by {margins[mask]}" if mask else _level_name(found, level) for level, mask, _ in measured)
    target = LevelGaussian(rho, heights, names)
    layout = _layout(whole, found, measured, facts.zeros, facts.lattice.blocks.order)
    distance, status = smallest_distance(whole, measured)
    person: Fraction | int | None = plain.person
    if facts.records == 1 and plain.person is not None and not plain.person_can_be_added:
        person = person_distance(whole, measured)
    guarantee = replace(plain, distance=LEVELS, smallest_secret=distance, smallest_secret_status=status, person=person)
    return Channel(facts, target, guarantee, layout=layout)


def arrange_levels(facts: Facts, names: list[LevelName]) -> tuple[Geography, tuple[frozenset[int], ...]]:
    """The levels that have shares, and where kept margins need them those that these name: they need no share of 0."""
    found = geography(facts.universe, names)
    try:
        return found, kept_margins(facts.kept, found)
    except InvalidConstraint:
        named = [name for rows in facts.kept.families for name in (*rows.columns, *rows.levels)]
        more = {name for name in named if name not in found.names and name not in found.margins}
        if not more:
            raise
        try:
            wider = geography(facts.universe, [*names, *sorted(more)])
        except InvalidParameter:  # they are not nested: what was wrong is still that
            wider = None
        if wider is None:
            raise
        return wider, kept_margins(facts.kept, wider)


def _without_zeros(facts: Facts, found: Geography) -> tuple[Facts, Geography, Sequence[int]]:
    """Without the units and codes that are zero throughout, and the axes that are left; what else is zero is drawn like other cells."""
    every = range(len(found.lengths))
    if facts.zeros is None:
        return facts, found, every
    zero = np.zeros(len(facts.universe), dtype=np.bool_)
    zero[facts.zeros.cells] = True
    left, cells, axes = found.without(zero)
    if np.isin(cells, facts.lattice.exposed_cells).all():
        return replace(facts, zeros=None), found, every
    return replace(facts, zeros=Zeros(facts.kept, cells)), left, axes


def _narrowed_shares(measured: list[Measured], kept: tuple[frozenset[int], ...], axes: Sequence[int]) -> list[Measured]:
    """Shares on the axes that are left. Margins that became one add up; one that became a kept total is the same in all tables."""
    parts: dict[tuple[int, int], Fraction] = {}
    for level, mask, share in measured:
        narrow = narrow_mask(mask, axes)
        if narrow not in kept[level]:
            parts[level, narrow] = parts.get((level, narrow), Fraction(0)) + share
    return sorted((level, mask, share) for (level, mask), share in parts.items())


def _level_name(found: Geography, level: int) -> str:
    name = found.names[level]
    return ":".join(name) if isinstance(name, tuple) else name


def _measured_margins(facts: Facts, shares: Shares, found: Geography, kept: tuple[frozenset[int], ...]) -> list[Measured]:
    """(level, mask, share) of the shares above zero, those of one margin added up."""
    parts: dict[tuple[int, int], Fraction] = {}
    for share in shares:
        level, mask = margin_of(facts, share, found)
        if share.share == 0:
            continue
        if mask in kept[level]:
            raise InvalidParameter(f"levels: {share} is a share on totals that are kept exactly. Give it to something that is noisy.")
        parts[level, mask] = parts.get((level, mask), Fraction(0)) + share.share
    if not parts.get((found.depth, found.full)):
        raise InvalidParameter(
            f"levels: the finest level, {found.names[-1]!r} by all other columns, needs a share above zero: every cell is published. "
            f"Add {{{found.names[-1]!r}: {{{DETAILED!r}: '1/10'}}}} and lower the others."
        )
    return sorted((level, mask, share) for (level, mask), share in parts.items())


def margin_of(facts: Facts, share: Share, found: Geography) -> tuple[int, int]:
    """(level, mask) of what a share is for; refuses a name that no column and no level has."""
    mask = found.full if share.margin == DETAILED else 0
    for name in () if share.margin in (TOTAL, DETAILED) else share.margin:
        if name not in found.margins:
            raise InvalidParameter(_no_margin(facts, found, share, name))
        mask |= found.margins[name]
    return found.level(share.level), mask


def _no_margin(facts: Facts, found: Geography, share: Share, name: str) -> str:
    trees = facts.universe.hierarchies.items()
    several = [f"{name} of {column}" for column, _ in trees if f"{name} of {column}" in found.margins]
    if several:
        return f"levels: {name!r} has several meanings. Write {' or '.join(map(repr, several))}, or give the levels different names."
    uneven = next((column for column, tree in trees if name in tree.levels and column in found.margins), None)
    if uneven is not None:
        return (
            f"levels: level {name!r} of {uneven!r} has units of different sizes. Beside the units, levels must divide evenly to be "
            f"drawn exactly: measure {uneven!r} itself, or make {uneven!r} the geography."
        )
    names = [*found.margins, TOTAL, DETAILED]
    near, of = nearest(name, names, "{!r}"), ":".join([share.level] if isinstance(share.level, str) else share.level)
    return f"levels: there is no column or level {name!r} beside the units of {of!r}. {near}Margins may be by {list_names(names)}."


def _layout(whole: Units, found: Geography, measured: list[Measured], zeros: Zeros | None, like: Ints) -> LevelLayout:
    """The units of the finest level that nothing above joins: every margin is kept there, or nothing above it is kept or measured.

    `like`: another order of cells, kept in memory anyway: mostly it is the same.
    """
    top = 0
    for level in range(1, whole.levels + 1):
        if all(mask in whole.kept[level] or _is_apart(whole, measured, level, mask) for mask in whole.masks):
            top = level
    width = found.cells.shape[1]
    if top == 0:
        shapes: dict[Shape, int] = {whole: 0}
        numbers, lengths = np.zeros(1, dtype=np.int32), np.array([whole.size])
    else:
        assert whole.tree is not None
        shapes, made = {}, []
        for unit in range(whole.tree.units(top)):
            below = _subtree(whole.tree, top, unit)
            made.append(shapes.setdefault(Units(below, whole.lengths, whole.kept[top:]), len(shapes)))
        numbers, lengths = np.array(made, dtype=np.int32), whole.tree.sizes(top) * width
    order = found.cells.ravel()
    if np.array_equal(order, like):
        order = like
    if zeros is not None:
        numbers, lengths = np.append(numbers, np.int32(len(shapes))), np.append(lengths, len(zeros.cells))
        shapes[Pinned(len(zeros.cells))] = len(shapes)
        order = np.concatenate([order, zeros.cells])
    blocks = Blocks(order, np.concatenate([[0], np.cumsum(lengths)]), numbers, tuple(shapes), finest=False)
    return LevelLayout(blocks, whole, top, tuple(_level_name(found, level) for level in range(whole.levels + 1)), found.margin_names())


def _subtree(tree: Tree, level: int, unit: int) -> Tree | None:
    """The units below one, on all their levels; None where it is a leaf."""
    children, first, end = [], unit, unit + 1
    for deeper in range(level, tree.depth):
        children.append(tree.children[deeper][first:end])
        first, end = int(tree.starts(deeper)[first]), int(tree.starts(deeper)[end])
    return Tree(tuple(children)) if children else None


def _is_apart(whole: Units, measured: list[Measured], level: int, mask: int) -> bool:
    """Whether nothing at the levels above keeps or measures this margin, or one that holds it."""
    kept = any(mask in family for family in whole.kept[:level])
    return not kept and not any(own < level and mask & wider == mask for own, wider, _ in measured)
