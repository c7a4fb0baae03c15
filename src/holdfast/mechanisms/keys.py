"""Keys that a mechanism takes in a run file: a name, how its value is read, and an example.

A reader gets what stands in the file and returns the value that the mechanism holds, checked by the rules that the Python constructors
follow too. It raises InvalidKey; the reader of run files adds file, line and field.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from holdfast.display import Json
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import BUDGET_RANGE, exact_fraction, is_extreme, outside

GOT = "{got}"
"""In a message: what was found. Only the reader of run files knows how much of it may be shown."""

_TOO_SMALL = "must be greater than zero. Got {text}."


class InvalidKey(Exception):
    """What is wrong with one key of a mechanism. `choices` are the words that would be right, where there is such a list."""

    def __init__(self, key: str, message: str, choices: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.key, self.message, self.choices = key, message, choices


@dataclass(frozen=True)
class FloatText:
    """A TOML float as it is written: it is refused wherever privacy depends on it, and shown as the file has it."""

    text: str


@dataclass(frozen=True)
class Key:
    """One key. `example` is its value as TOML writes it."""

    name: str
    reader: Reader
    example: str
    required: bool = False
    is_file: bool = False
    """Whether its value is the name of a file, from the folder of the run file."""

    def read(self, raw: object) -> Any:
        """Return the value of the key in the file, or raise InvalidKey."""
        return self.reader(self, raw)

    @property
    def shape(self) -> dict[str, Json]:
        """What it takes, as JSON Schema says it, with the example; anything where the reader does not tell."""
        own = self.reader.shape if isinstance(self.reader, SchemaReader) else {}
        return {**own, "examples": [tomllib.loads(self.line)[self.name]]}

    @property
    def line(self) -> str:
        """What to write."""
        return f"{self.name} = {self.example}"


Reader: TypeAlias = Callable[[Key, object], Any]


@dataclass(frozen=True)
class SchemaReader:
    """A reader that tells what it takes, for the JSON Schema of run files. The schema may take more than the reader, never less."""

    reader: Reader
    shape: Mapping[str, Json]

    def __call__(self, key: Key, raw: object) -> Any:
        return self.reader(key, raw)


def declare_shape(shape: Mapping[str, Json]) -> Callable[[Reader], Reader]:
    """Says the shape of what a reader takes."""
    return lambda reader: SchemaReader(reader, shape)


EXACT: Mapping[str, Json] = {"type": ["string", "integer"]}
"""The shape of an exact number: a text such as "0.25" or "1/4", or a whole number."""


def exact_number(below: int | None = None, **messages: str) -> Reader:
    """Reads an exact number above zero, and below `below` where one is given.

    Given:  messages for the three ways to miss (`zero`, `negative`, `large`) where the usual one does not say what to do; {text} stands
            for the number as written.
    """

    @declare_shape(EXACT)
    def read(key: Key, raw: object) -> Fraction:
        if isinstance(raw, FloatText):
            if re.fullmatch(r"[+-]?(?:inf|nan)", raw.text):
                raise InvalidKey(key.name, f'must be a finite exact number. Got {GOT}. Write a text such as "0.25".')
            raise InvalidKey(key.name, f'must be exact, because privacy depends on it. Got {GOT}. Write {key.name} = "{raw.text}".')
        if isinstance(raw, bool) or not isinstance(raw, int | str):
            raise InvalidKey(key.name, f'must be an exact number: a text such as "0.25" or "1/4", or a whole number. Got {GOT}.')
        try:
            value = exact_fraction(raw, key.name)
        except InvalidParameter:
            told = 'must be a decimal or rational number of ordinary length, such as "0.25", "1/4" or "1e-10". '
            point = str(raw).strip().replace(",", ".")
            is_comma = re.fullmatch(r"[0-9]+,[0-9]+", str(raw).strip())
            write = f'{key.name} = "{point}", with a point' if is_comma else key.line
            raise InvalidKey(key.name, f"{told}Got {GOT}. Write {write}.") from None
        missed = outside(value, below)
        if missed is not None:
            raise InvalidKey(key.name, messages.get(missed, _TOO_SMALL).replace("{text}", str(raw).strip()))
        if is_extreme(value):
            raise InvalidKey(key.name, f"{BUDGET_RANGE}. Got {GOT}. Write {key.line}.")
        return value

    return read


budget = exact_number(
    zero='a budget of zero publishes nothing about the cells: use mechanism = "suppression", which publishes the kept totals alone.'
)
"""Reads epsilon or rho."""


def delta_key(without: str) -> Key:
    """The delta of a Gaussian; `without`: a mechanism that takes none."""
    zero = f'must be greater than zero: no Gaussian reaches 0. Write delta = "1e-9"; {without} takes none.'
    large = 'must be less than 1: a larger delta promises nothing. Got {text}. Write delta = "1e-9".'
    return Key("delta", exact_number(1, zero=zero, large=large), '"1e-9"')


def one_of(*choices: str) -> Reader:
    """Reads one of these words."""

    @declare_shape({"enum": list(choices)})
    def read(key: Key, raw: object) -> str:
        if not isinstance(raw, str) or raw not in choices:
            listed = ", ".join(f'"{word}"' for word in choices)
            raise InvalidKey(key.name, f"must be one of {listed}. Got {GOT}.", choices)
        return raw

    return read


@declare_shape({"type": "string"})
def text(key: Key, raw: object) -> str:
    """Reads a text that is not empty."""
    if not isinstance(raw, str) or not raw.strip():
        raise InvalidKey(key.name, f"must be a text that is not empty. Got {GOT}. Write {key.line}.")
    return raw


@declare_shape({"type": "boolean"})
def boolean(key: Key, raw: object) -> bool:
    """Reads true or false."""
    if not isinstance(raw, bool):
        raise InvalidKey(key.name, f"must be true or false. Got {GOT}. Write {key.line}.")
    return raw
