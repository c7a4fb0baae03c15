"""A code tree over one column: which codes of the column form a district, a region, a broad industry.

The leaves are the codes of the column; inner nodes name sums of them. Trees come as an indented list (`@` as lead string, as in
sdcHierarchies and in the .hrc files of tau-argus), as lengths of code prefixes, or as pairs of code and parent.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from holdfast.display import count_of, list_names
from holdfast.errors import InvalidHierarchy, InvalidParameter, UnreadableInput
from holdfast.tables.readers import open_source, read_codes

_SHOWN = 3
"""How many codes a message shows as examples."""


class Hierarchy:
    """A forest of codes. Build one with `from_tree`, `from_prefixes` or `from_parents`.

    Guarantees:  every code occurs once, exactly as given; there is no cycle; children keep their order. Top codes have no parent: the
                 total over all of them is implied and has no code of its own, unless the tree lists one.
    """

    def __init__(self, parents: Mapping[str, str | None], levels: Sequence[str] | None = None) -> None:
        """From the parent of every code (None for top codes), in the order in which siblings shall stand."""
        children: dict[str | None, list[str]] = {None: []}
        for code, parent in parents.items():
            children.setdefault(parent, []).append(code)
        self._parents = dict(parents)
        unknown = next((parent for parent in children if parent is not None and parent not in self._parents), None)
        if unknown is not None:
            raise InvalidHierarchy(f"Code {children[unknown][0]!r} lies under {unknown!r}, which is not a code of the tree. List it too.")
        self._depth: dict[str, int] = {}
        self._span: dict[str, tuple[int, int]] = {}
        self._leaves: tuple[str, ...] = ()
        self._walk(children)
        if len(self._depth) < len(self._parents):
            raise InvalidHierarchy(f"The hierarchy has a cycle: {self._cycle()}. Every code must lead up to a top code.")
        if not self._leaves:
            raise InvalidHierarchy("The hierarchy has no codes. Give at least one.")
        self._names: tuple[str, ...] = self._level_names(levels)

    @classmethod
    def from_tree(
        cls,
        source: str | os.PathLike[str] | Iterable[str | tuple[str, str]],
        *,
        lead: str = "@",
        separator: str = "",
        levels: Sequence[str] | None = None,
    ) -> Hierarchy:
        """From an indented list: one code per line, its level told by how many lead strings stand before it.

        Given:       a path (a Path, or a text without line ends that ends in .hrc), the text itself, its lines, or pairs such as
                     ("@@", "A"). Top codes have no lead string, as in .hrc files, or all lines have one more ("@Total", "@@A").
                     `separator` stands between lead and code where the file has one ("@@;A": separator=";"). Empty lines are skipped.
        Guarantees:  codes are what follows the lead, nothing trimmed. Refused with the number of the line: a level that jumps by more
                     than one, a code listed twice.
        """
        if not lead:
            raise InvalidParameter("The lead string must not be empty. Write lead='@', or whatever the lines begin with.")
        parents: dict[str, str | None] = {}
        path: list[str] = []
        base: int | None = None
        for number, depth, code in _levels_of(source, lead, separator):
            base = min(depth, 1) if base is None else base
            level = depth - base
            if not 0 <= level <= len(path):
                before = f", after a line at level {len(path) - 1}" if path else ""
                raise InvalidHierarchy(
                    f"Line {number} of the code tree is at level {level}{before}. The first line is at the top: no lead, or one. "
                    "A line may go down by one level, or up by any number, but not above the first."
                )
            del path[level:]
            _add(parents, code, path[-1] if path else None, f"line {number} of the code tree", repeat=False)
            path.append(code)
        return cls(parents, levels)

    @classmethod
    def from_prefixes(cls, codes: Iterable[str], lengths: Sequence[int], *, levels: Sequence[str] | None = None) -> Hierarchy:
        """From leaf codes whose first characters name what they lie in: lengths [2, 5, 11] for state, county, tract.

        Given:       increasing lengths. Codes longer than the last length are one more level; no code may be shorter than it.
        """
        lengths = list(lengths)
        if not lengths or lengths[0] < 1 or any(a >= b for a, b in pairwise(lengths)):
            raise InvalidParameter(f"Prefix lengths must be positive and increase. Got {lengths}. The total needs no length.")
        parents: dict[str, str | None] = {}
        given = list(codes)
        twice = first_repeated(given)
        if twice is not None:
            raise InvalidHierarchy(f"Code {twice!r} is listed twice. List each leaf once.")
        for code in given:
            if len(code) < lengths[-1]:
                raise InvalidHierarchy(
                    f"Code {code!r} has {len(code)} characters, fewer than the prefix length {lengths[-1]}. Give shorter lengths."
                )
            chain = [code[:length] for length in lengths] + ([code] if len(code) > lengths[-1] else [])
            for parent, child in zip([None, *chain], chain, strict=False):
                _add(parents, child, parent, f"code {code!r}", repeat=True)
        tree = cls(parents, levels)
        inner = [code for code in given if tree._is_inner(code)]
        if inner:
            raise InvalidHierarchy(
                f"Codes are also prefixes of others: {_examples(inner)}. A column must not hold both a code and its parts."
            )
        return tree

    @classmethod
    def from_parents(
        cls,
        parents: Mapping[str, str | None] | Iterable[tuple[str, str | None]] | Any,
        *,
        code: str | None = None,
        parent: str | None = None,
        levels: Sequence[str] | None = None,
    ) -> Hierarchy:
        """From the parent of each code: a mapping, pairs, or a frame or file with the names of its two columns.

        Given:       None as a parent, or a parent that has none itself, is a top code. The same pair may occur many times.
        """
        if code is not None and parent is not None:
            pairs = _pairs_of_columns(parents, code, parent)
        elif code is not None or parent is not None:
            raise InvalidParameter("A parent column needs both names. Write code='county', parent='state'.")
        else:
            pairs = list(parents.items() if isinstance(parents, Mapping) else parents)
        collected: dict[str, str | None] = {}
        for child, above in pairs:
            _add(collected, child, above, "a pair", repeat=True)
        tops = [above for above in collected.values() if above is not None and above not in collected]
        return cls({**dict.fromkeys(tops), **collected}, levels)

    @property
    def nodes(self) -> tuple[str, ...]:
        """All codes, inner ones before what lies under them."""
        return tuple(self._depth)

    @property
    def levels(self) -> tuple[str, ...]:
        """The names of the levels from the top: as given, or "0", "1", ..."""
        return self._names

    def level(self, level: str | int) -> tuple[str, ...]:
        """The codes at a level (0 is the top), in order. In an uneven tree they need not cover all leaves."""
        number = self._names.index(level) if isinstance(level, str) and level in self._names else level
        if not isinstance(number, int) or not 0 <= number < len(self._names):
            raise InvalidParameter(f"There is no level {level!r}. Levels from the top: {', '.join(self._names)}.")
        return tuple(code for code, depth in self._depth.items() if depth == number)

    def leaf_above(self, level: str | int) -> str | None:
        """A leaf at this level where the tree goes deeper: a code whose unit there is missing, not a unit. None where there is none."""
        codes = self.level(level)
        depth = self._depth[codes[0]]
        return None if depth == len(self._names) - 1 else next((code for code in codes if not self._is_inner(code)), None)

    def parent(self, code: str) -> str | None:
        """The code directly above, or None for a top code."""
        self._check_known(code)
        return self._parents[code]

    def leaves(self, node: str | None = None) -> tuple[str, ...]:
        """The column's codes under this node (the code itself if it is a leaf); all leaves without a node. In the order of the tree."""
        if node is None:
            return self._leaves
        self._check_known(node)
        low, high = self._span[node]
        return self._leaves[low:high]

    def only(self, codes: Iterable[str]) -> Hierarchy:
        """The part of the tree above these leaves, in the order of the tree: one file of codes can serve many tables.

        Levels keep their names, and the finest is that of the leaves also where the deepest ones are cut off: codes do not become units of
        the level above. A code that is no leaf of the tree is refused by the table that it belongs to.
        """
        wanted = set(codes)
        kept: set[str] = set()
        for leaf in self._leaves:
            above: str | None = leaf
            while leaf in wanted and above is not None and above not in kept:
                kept.add(above)
                above = self._parents[above]
        parents = {code: self._parents[code] for code in self._depth if code in kept}
        if not parents:
            raise InvalidHierarchy("The hierarchy has none of the table's codes. Codes must match exactly, blanks and zeros included.")
        depth = 1 + max(self._depth[code] for code in parents)
        return Hierarchy(parents, self._names if depth == len(self._names) else (*self._names[: depth - 1], self._names[-1]))

    def check_leaves(self, column: str, codes: Iterable[str]) -> None:
        """Refuse unless the leaves are exactly these codes, in whichever order."""
        declared = set(codes)
        leaves = set(self._leaves)
        absent = [code for code in declared if code not in leaves]
        if absent:
            raise InvalidHierarchy(
                f"{count_of(len(absent), 'code')} of column {column!r} {_are(len(absent), 'leaf', 'leaves')} of its hierarchy: "
                f"{_examples(sorted(absent))}. "
                "Add them to the tree as leaves; codes must match exactly, blanks and zeros included."
            )
        extra = [code for code in self._leaves if code not in declared]
        if extra:
            raise InvalidHierarchy(
                f"{count_of(len(extra), 'leaf', 'leaves')} of the hierarchy {_are(len(extra), 'code', 'codes')} of column {column!r}: "
                f"{_examples(extra)}. "
                "Declare or list these codes (with zeros), or take them out of the tree."
            )

    def __contains__(self, code: object) -> bool:
        return code in self._depth

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Hierarchy):
            return NotImplemented
        return self.nodes == other.nodes and self._parents == other._parents and self._names == other._names

    def __hash__(self) -> int:
        return hash((self.nodes, self._names))

    def __repr__(self) -> str:
        counts = f"{count_of(len(self._depth), 'code')}, {count_of(len(self._leaves), 'leaf', 'leaves')}"
        return f"Hierarchy({counts}, levels {list_names(self._names)})"

    def _walk(self, children: Mapping[str | None, Sequence[str]]) -> None:
        """Depth first: the leaves under any node lie side by side. A code is put back once, to be closed after its children."""
        leaves: list[str] = []
        waiting = [(code, 0, False) for code in reversed(children[None])]
        while waiting:
            code, depth, seen = waiting.pop()
            if seen:
                self._span[code] = (self._span[code][0], len(leaves))
                continue
            self._depth[code] = depth
            self._span[code] = (len(leaves), len(leaves) + 1)
            below = children.get(code)
            if below is None:
                leaves.append(code)
                continue
            waiting.append((code, depth, True))
            waiting.extend((child, depth + 1, False) for child in reversed(below))
        self._leaves = tuple(leaves)

    def _cycle(self) -> str:
        """One cycle, starting from the first code that no top code leads to."""
        code: str | None = next(code for code in self._parents if code not in self._depth)
        trail: list[str] = []
        while code is not None and code not in trail:
            trail.append(code)
            code = self._parents.get(code)
        assert code is not None
        loop = [*trail[trail.index(code) :], code]
        return " under ".join(map(repr, loop if len(loop) <= 10 else [*loop[:9], loop[-1]]))

    def _level_names(self, given: Sequence[str] | None) -> tuple[str, ...]:
        depth = 1 + max(self._depth.values())
        names = tuple(map(str, range(depth))) if given is None else tuple(given)
        if len(names) != depth or len(set(names)) != depth:
            raise InvalidParameter(
                f"The hierarchy has {depth} levels. Got the names {list(names)}. Give each level a name of its own, the "
                "codes of the column last."
            )
        return names

    def _is_inner(self, code: str) -> bool:
        low, high = self._span[code]
        return self._leaves[low:high] != (code,)

    def _check_known(self, code: str) -> None:
        if code not in self._depth:
            raise InvalidParameter(f"The hierarchy has no code {code!r}. Codes must match exactly, blanks and zeros included.")


def first_repeated(items: Iterable[str]) -> str | None:
    """The first item that has occurred before, or None."""
    seen: set[str] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


def _add(parents: dict[str, str | None], code: str, parent: str | None, place: str, repeat: bool) -> None:
    """Enter a pair; the same pair again is allowed only if `repeat`, and another parent never."""
    if not isinstance(code, str) or not (parent is None or isinstance(parent, str)):
        wrong = parent if isinstance(code, str) else code
        raise InvalidHierarchy(f"Codes must be texts. Got {type(wrong).__name__} at {place}. Write '01', not 1.")
    if code in parents and parents[code] != parent:
        raise InvalidHierarchy(
            f"Code {code!r} has two parents, {_name_parent(parents[code])} and {_name_parent(parent)} ({place}). "
            "A code lies in one place; make codes distinct, such as by putting the parent's code in front."
        )
    if code in parents and not repeat:
        raise InvalidHierarchy(f"Code {code!r} is listed twice ({place}). List each code once.")
    parents[code] = parent


def _levels_of(
    source: str | os.PathLike[str] | Iterable[str | tuple[str, str]], lead: str, separator: str
) -> Iterator[tuple[int, int, str]]:
    """Number of the line, number of lead strings, code."""
    for number, line in enumerate(_lines_of(source), start=1):
        if line == "":
            continue
        prefix, code = line if isinstance(line, tuple) else _split_line(line, lead, separator, number)
        depth = len(prefix) // len(lead)
        if prefix != lead * depth:
            raise InvalidHierarchy(f"Line {number} of the code tree does not begin with a number of {lead!r} only. Check lead=.")
        yield number, depth, code


def _split_line(line: str, lead: str, separator: str, number: int) -> tuple[str, str]:
    end = 0
    while line.startswith(lead, end):
        end += len(lead)
    if not line.startswith(separator, end):
        raise InvalidHierarchy(f"Line {number} of the code tree has no {separator!r} after its lead strings. Check separator=.")
    return line[:end], line[end + len(separator) :]


def _lines_of(source: str | os.PathLike[str] | Iterable[str | tuple[str, str]]) -> Iterable[str | tuple[str, str]]:
    if isinstance(source, os.PathLike) or (isinstance(source, str) and "\n" not in source and source.lower().endswith(".hrc")):
        source = _read_tree(Path(source))
    if isinstance(source, str):
        # Not splitlines(), which also splits at characters that a code may contain.
        return source.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    return source


def _read_tree(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        problem = "is not UTF-8. Convert it to UTF-8."
    except OSError:
        problem = "cannot be opened. Check the name and the folder."
    raise UnreadableInput(f"The code tree {path.name!r} {problem}")


def _pairs_of_columns(data: Any, code: str, parent: str) -> list[tuple[str, str | None]]:
    """The distinct pairs of two columns, in order of first appearance."""
    with open_source(data) as source:
        codes, indices = read_codes(source, [code, parent], allow_missing=True)
    if len(indices[0]) and int(indices[0].min()) < 0:
        raise InvalidHierarchy(f"A code is missing in column {code!r}. Only the parent of a top code may be missing.")
    children, above = (array.to_pylist() for array in codes)
    distinct = dict.fromkeys(zip(indices[0].tolist(), indices[1].tolist(), strict=True))
    return [(children[child], None if top < 0 else above[top]) for child, top in distinct]


def _name_parent(parent: str | None) -> str:
    return "the top" if parent is None else repr(parent)


def _are(n: int, one: str, more: str) -> str:
    return f"is no {one}" if n == 1 else f"are no {more}"


def _examples(codes: Sequence[str]) -> str:
    shown = ", ".join(map(repr, codes[:_SHOWN]))
    return f"{shown}, ..." if len(codes) > _SHOWN else shown
