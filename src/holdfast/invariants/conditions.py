"""Conditions on codes: age >= 18 and sex = 'F'. A small grammar of our own, evaluated on public codes only; nothing is executed.

    condition  := term (or term)*          term := factor (and factor)*          factor := not factor | ( condition ) | comparison
    comparison := column op literal | column in ( literal, ... )                 op := = | != | < | <= | > | >=

A literal is an integer or a text in single quotes ('' stands for a quote inside); a column whose name is not a plain word stands in double
quotes ("" for one inside). In a column whose declared codes are all integers codes compare as integers, and = '010' is the code 010 where
no other code is that integer. In any other they compare as text, character by character, and the literal must be quoted: so "85+" is never
taken for a number, and '100' sorts before '85'.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.display import nearest, nearest_code, shorten
from holdfast.errors import InvalidConstraint
from holdfast.tables.universe import Universe

Mask = NDArray[np.bool_]

MAX_DEPTH = 50
MAX_DIGITS = 400

_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')|(?P<number>[+-]?[0-9]+(?!\w))|(?P<op><=|>=|!=|<>|==|=|<|>)|(?P<mark>[(),])|(?P<name>\"(?:[^\"]|\"\")+\"|\w+))"
)
_SMALL = 2**62
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")
_EQUALITIES = ("=", "==", "!=", "<>")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def cells_meeting(condition: str, universe: Universe, *, quoted_codes: bool = False) -> Mask:
    """For every cell of the universe whether it meets the condition.

    Given:  `quoted_codes`, for readers' questions: a text in quotes is a code as it is written where it is compared by =, != or in, also in
            a column of integers: '031' is then no '31', and a text that is not a code of the column is refused. Constraints, which offices
            write down for good, mean one thing only: a text in quotes there is a code that no other code equals as a number.
    """
    return _Parser(condition, universe, quoted_codes).parse()


def _values(codes: tuple[str, ...]) -> tuple[int, ...] | tuple[str, ...]:
    """What codes compare as: integers where all of them are."""
    return tuple(map(int, codes)) if all(map(_INTEGER.fullmatch, codes)) else codes


def _small_integers(codes: tuple[str, ...]) -> NDArray[np.int64] | None:
    """The same as an array, where they fit into one."""
    values = [value for value in _values(codes) if isinstance(value, int) and abs(value) <= _SMALL]
    return np.array(values, dtype=np.int64) if len(values) == len(codes) else None


def _places_of_values(codes: tuple[str, ...]) -> dict[int | str, list[int]]:
    """The places of the codes of each value; 1 and 01 have the same."""
    places: dict[int | str, list[int]] = {}
    values: tuple[int | str, ...] = _values(codes)
    for place, value in enumerate(values):
        places.setdefault(value, []).append(place)
    return places


def _unquote(text: str) -> str:
    """What stands between single quotes."""
    return text[1:-1].replace("''", "'")


def _requote(text: str) -> str:
    """A bare or double-quoted word as it would stand inside single quotes."""
    return text.strip('"').replace("'", "''")


class _Parser:
    def __init__(self, condition: str, universe: Universe, quoted_codes: bool) -> None:
        self._condition = condition
        self._quoted_codes = quoted_codes
        self._universe = universe
        self._tokens = self._split()
        self._place = 0
        self._depth = 0

    def parse(self) -> Mask:
        mask = self._any()
        if self._place < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._place][1]!r}")
        return mask

    def _split(self) -> list[tuple[str, str]]:
        tokens, place, text = [], 0, self._condition.rstrip()
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise self._error(f"cannot read {text[place : place + 12]!r}", "Join comparisons with and, or, not.")
            tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        return tokens

    def _any(self) -> Mask:
        mask = self._all()
        while self._accept("or"):
            mask = mask | self._all()
        return mask

    def _all(self) -> Mask:
        mask = self._one()
        while self._accept("and"):
            mask = mask & self._one()
        return mask

    def _one(self) -> Mask:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"it is nested more than {MAX_DEPTH} deep")
        if self._accept("not"):
            mask = ~self._one()
        elif self._accept("("):
            mask = self._any()
            self._expect(")")
        else:
            mask = self._comparison()
        self._depth -= 1
        return mask

    def _comparison(self) -> Mask:
        group, name = self._next("a column")
        if group != "name":
            raise self._error(f"expected a column, found {name!r}")
        column = name[1:-1].replace('""', '"') if name.startswith('"') else name
        if column not in self._universe.codes:
            near = nearest(column, self._universe.columns, "{!r}")
            near = f"{near}Names match exactly." if near else ""
            raise self._error(f"there is no column {column!r}; there are {', '.join(self._universe.columns)}", near)
        if self._accept("in"):
            return self._cells(column, operator.eq, "=", self._list())
        group, symbol = self._next("a comparison")
        if group != "op":
            raise self._error(f"expected a comparison after {column!r}, found {symbol!r}", "Write =, !=, <, <=, >, >= or in ('a', 'b').")
        return self._cells(column, _COMPARE[symbol], symbol, [self._value()])

    def _list(self) -> list[tuple[str, str]]:
        self._expect("(")
        values = [self._value()]
        while self._accept(","):
            values.append(self._value())
        self._expect(")")
        return values

    def _value(self) -> tuple[str, str]:
        group, text = self._next("a value")
        if group not in ("text", "number", "name"):
            raise self._error(f"expected a value, found {text!r}")
        if group == "number" and len(text) > MAX_DIGITS:
            raise self._error(f"a number has more than {MAX_DIGITS} digits")
        return group, text

    def _cells(self, column: str, compare: Callable[[Any, Any], bool], symbol: str, values: list[tuple[str, str]]) -> Mask:
        codes = self._universe.codes
        if self._quoted_codes and symbol in _EQUALITIES and all(group == "text" for group, _ in values):
            written = codes.places(column)
            asked = [_unquote(text) for _, text in values]
            if label := next(filter(None, (self._universe.labels.taken_for_code(column, text, written) for text in asked)), None):
                raise self._error(label, "Write the code.")
            if (unknown := next((code for code in asked if code not in written), None)) is not None:
                raise self._error(f"{shorten(unknown)!r} is not a code of the column {column!r}", nearest_code(unknown, written))
            chosen = np.zeros(len(written), dtype=np.bool_)
            chosen[[written[code] for code in asked]] = True
            return self._universe.cells_having(column, chosen if compare is operator.eq else ~chosen)
        known = codes.derive(column, _values)
        numeric = bool(known) and isinstance(known[0], int)
        wanted = [self._literal(column, numeric, symbol, value) for value in values]
        if compare is operator.eq:
            places = codes.derive(column, _places_of_values)
            of_code = np.zeros(len(known), dtype=np.bool_)
            of_code[[place for value in wanted for place in places.get(value, ())]] = True
        else:
            small = codes.derive(column, _small_integers) if numeric and abs(int(wanted[0])) <= _SMALL else None
            of_code = np.array([compare(code, wanted[0]) for code in known] if small is None else compare(small, wanted[0]), dtype=np.bool_)
        return self._universe.cells_having(column, of_code)

    def _literal(self, column: str, numeric: bool, symbol: str, value: tuple[str, str]) -> int | str:
        group, text = value
        if numeric:
            if group == "number":
                return int(text)
            if group == "text" and symbol in _EQUALITIES:
                return self._quoted_integer(column, _unquote(text))
            if group == "name" and self._quoted_codes and symbol in _EQUALITIES:
                raise self._error(f"put a code in single quotes: write {symbol} '{_requote(text)}'")
            number = _unquote(text)
            plain = f"write {symbol} {int(number)}" if _INTEGER.fullmatch(number) else f"compare it with a number, not with {text}"
            raise self._error(f"column {column!r} holds integers: {plain}")
        if group == "text":
            return _unquote(text)
        if group == "name":
            raise self._error(f"put a code in single quotes: write {symbol} '{_requote(text)}'")
        example = next(code for code in self._universe.codes[column] if not _INTEGER.fullmatch(code))
        raise self._error(
            f"column {column!r} has codes that are not integers (such as {example!r}), so its codes compare as text: "
            f"write {symbol} '{_requote(text)}' if that is meant, or list the codes"
        )

    def _quoted_integer(self, column: str, code: str) -> int:
        """The integer of a code in quotes. Raise if the text is not a code of the column, or if another code is the same integer."""
        written = self._universe.codes.places(column)
        if code not in written:
            raise self._error(f"{shorten(code)!r} is not a code of the column {column!r}", nearest_code(code, written))
        same = [self._universe.codes[column][place] for place in self._universe.codes.derive(column, _places_of_values)[int(code)]]
        if len(same) > 1:
            told = " and ".join(map(repr, same))
            raise self._error(f"the codes {told} of column {column!r} are one number", "List the codes that are meant: column and codes.")
        return int(code)

    def _next(self, what: str) -> tuple[str, str]:
        if self._place >= len(self._tokens):
            raise self._error(f"it ends where {what} is expected")
        self._place += 1
        return self._tokens[self._place - 1]

    def _accept(self, word: str) -> bool:
        if self._place < len(self._tokens):
            group, text = self._tokens[self._place]
            if group in ("name", "mark") and text.lower() == word:
                self._place += 1
                return True
        return False

    def _expect(self, word: str) -> None:
        if not self._accept(word):
            raise self._error(f"expected {word!r}")

    def _error(self, what: str, advice: str = "") -> InvalidConstraint:
        shown = self._condition if len(self._condition) <= 200 else self._condition[:197] + "..."
        return InvalidConstraint(f"The condition {shown!r} cannot be used: {what}. {advice}".rstrip())
