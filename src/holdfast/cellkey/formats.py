"""Perturbation tables in the files of others, and in one of our own. All numbers are read exactly.

    json        our own: key size, repeat, whether cell keys fold, and for each count its (noise, upper bound) as integers
    ptable      text with the columns i;j;p;v;p_int_ub, decimals: R's ptable, cellKey and tau-argus, which also writes p_ij and p_ij_ub
    sas         the same with p_int_lb before p_int_ub
    ons         text with the columns pcv,ckey,pvalue: one line for each count and cell key
    superstar   numbers alone: one line for each cell key, one column for each count from 1 on

Decimals with d digits are whole numbers over 10^d. Bounds alone decide what is read; p may be rounded as it is printed.
In `ptable` and `sas` the last count's row serves larger counts; `ons` and `superstar` have a number of last rows that serve larger counts
in turn, which the file does not say (`repeat`). Messages name lines and quote nothing: the file may be another than was meant.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import MOST_DIGITS
from holdfast.cellkey.table import KeyInterval, PerturbationTable
from holdfast.errors import InvalidParameter, OutputExists, OutputProblem, UnreadableInput

Kind: TypeAlias = Literal["json", "ptable", "sas", "ons", "superstar"]
KINDS: tuple[Kind, ...] = get_args(Kind)

ONS_REPEAT = 250
"""ONS tables have rows for counts 1 to 750; counts above go through 501 to 750 in turn."""
MOST_LINES = 2**24
"""Largest number of keys in a file that has a line, or an entry, for each."""

_OWN = "holdfast perturbation table"
_VERSION = 2
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "ptable": ("i", "j", "p", "v", "p_int_ub"),
    "sas": ("i", "j", "p", "v", "p_int_lb", "p_int_ub"),
    "ons": ("pcv", "ckey", "pvalue"),
}
_OTHER_NAMES = {"p_ij": "p", "p_ij_ub": "p_int_ub"}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_DECIMAL = re.compile(r"(?P<whole>[0-9])?(?:\.(?P<part>[0-9]+))?(?:[eE](?P<exponent>[+-]?[0-9]{1,3}))?")
_SIGNED_DECIMAL = re.compile(r"-?[0-9]*\.[0-9]+")
_MOST_DIGITS_OF_P = 340
"""p decides nothing, and doubles are printed with as many digits."""
_ROUNDED = Fraction(1, 2**52)
"""Programs add p up in doubles: a bound and p are each off by 2^-54 at most, and so is the sum."""


def read_table(path: str | os.PathLike[str], kind: Kind | None = None, *, repeat: int | None = None) -> PerturbationTable:
    """A perturbation table from a file.

    Given:       kind: by default what the first line shows. repeat: how many last rows serve larger counts; by default as the kind has it
                 (ons: 250), and for superstar it must be given.
    Guarantees:  the table knows how its cell keys are made: those of ons are never folded (`PerturbationTable.folds`).
    Refused:     probabilities that do not add up to one, bounds that overlap or leave a gap, a key that is missing or there twice.
    """
    text, chosen = _read_text(Path(path), kind)
    return _READERS[chosen](text, repr(Path(path).name), repeat)


def _read_text(file: Path, kind: Kind | None) -> tuple[str, Kind]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError):
        text = ""
    if not text.strip():
        raise UnreadableInput(f"File {file.name!r} cannot be opened, is empty, or is no text. Give the file of a perturbation table.")
    chosen = kind or _kind_of(text)
    if chosen is None:
        raise UnreadableInput(
            f"File {file.name!r} does not look like a perturbation table: its first line is not one of "
            f"{', '.join(repr(';'.join(names)) for names in _COLUMNS.values())}, and it is not JSON. Name its kind: {', '.join(KINDS)}."
        )
    if chosen not in KINDS:
        raise InvalidParameter(f"Kinds of files are {', '.join(KINDS)}. Got {chosen!r}.", field="kind")
    return text, chosen


def write_table(table: PerturbationTable, path: str | os.PathLike[str], kind: Kind = "json") -> None:
    """Write a perturbation table to a new file. What is written reads back as it was, if the same `repeat` is given; only a file of ons
    reads back as one whose cell keys are not folded, whatever the table was, and superstar has no place for count 0, which stays 0.

    Refused:     a key size that the kind cannot write: ptable and sas need a power of ten (`table.rescaled(10**8)`), ons and superstar one
                 that is not too large for a line a key; rows that the kind has no place for; a table that does not fold,
                 unless as ons or json.
    """
    if kind not in KINDS:
        raise InvalidParameter(f"Kinds of files are {', '.join(KINDS)}. Got {kind!r}.", field="kind")
    if not table.folds and kind not in ("json", "ons"):
        raise InvalidParameter(
            "This table takes cell keys modulo the number of its keys, as ONS does. This kind of file cannot say so: write ons or json.",
            field="kind",
        )
    text = _WRITERS[kind](table)
    try:
        with open(path, "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
        taken = False
    except FileExistsError:
        taken = True
    except OSError:
        raise OutputProblem(f"{Path(path).name!r} cannot be written. Check that its folder exists and may be written to.") from None
    if taken:
        raise OutputExists(f"{Path(path).name!r} exists and is left as it is. Choose another name.")


def _kind_of(text: str) -> Kind | None:
    first = text.lstrip().splitlines()[0]
    if first.startswith("{"):
        return "json"
    names = tuple(_names(first))
    found: list[Kind] = [kind for kind in ("ptable", "sas", "ons") if set(_COLUMNS[kind]) <= set(names)]
    if found:
        return found[-1]
    return "superstar" if all(_INTEGER.fullmatch(name) for name in names) else None


def _separator(line: str) -> str:
    return next((mark for mark in (";", "\t", ",") if mark in line), ",")


def _fields(line: str, separator: str) -> list[str]:
    """Fields without the blanks and quotes that some programs put around them."""
    return [part.strip().strip('"') for part in line.split(separator)]


def _names(line: str) -> list[str]:
    """The names of a header, in our spelling."""
    return [_OTHER_NAMES.get(name, name) for name in _fields(line, _separator(line))]


def _lines(text: str, what: str, kind: str) -> list[tuple[int, dict[str, str]]]:
    """The number of each line and its fields by name; columns that the kind does not have must be the same in every line."""
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    separator = _separator(numbered[0][1])
    names = _names(numbered[0][1])
    missing = [name for name in _COLUMNS[kind] if names.count(name) != 1]
    if missing:
        raise UnreadableInput(
            f"File {what} must name the columns {', '.join(_COLUMNS[kind])} in its first line, once. Missing or twice: {missing[0]!r}."
        )
    out = []
    for number, line in numbered[1:]:
        fields = _fields(line, separator)
        if len(fields) != len(names):
            raise UnreadableInput(f"Line {number} of {what} has another number of fields than the header. Correct that line.")
        out.append((number, dict(zip(names, fields, strict=True))))
    for name in set(names) - set(_COLUMNS[kind]):
        if len({fields[name] for _, fields in out}) > 1:
            if name == "type":
                raise _for_magnitudes(what)
            raise UnreadableInput(f"Column {name!r} of {what} has several values: the file holds several tables. Give a file of one.")
    if not out:
        raise UnreadableInput(f"File {what} has a header and no rows. Give the file of a perturbation table.")
    return out


def _for_magnitudes(what: str) -> UnreadableInput:
    return UnreadableInput(
        f"File {what} is a perturbation table for magnitudes: it has several types of rows, or noise that is not a whole number. Holdfast "
        "adds noise of this kind to counts only. Give a table for counts."
    )


def _integer(text: str, number: int, what: str) -> int:
    if not _INTEGER.fullmatch(text):
        raise UnreadableInput(f"Line {number} of {what} needs whole numbers for counts, noise and keys. Correct that line.")
    return int(text)


def _decimal(text: str, number: int, what: str, most: int = MOST_DIGITS) -> tuple[int, str]:
    """The whole part and the digits after the point of a number from 0 to 1, exactly: 0.0001 and 1e-04 are the same."""
    found = _DECIMAL.fullmatch(text)
    if found is not None and (found["whole"] or found["part"]):
        part = found["part"] or ""
        places = len(part) - int(found["exponent"] or 0)
        digits = ((found["whole"] or "0") + part).rjust(places + 1, "0")
        whole, part = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
        if places >= 0 and len(part) <= most and (int(whole) == 0 or (int(whole) == 1 and not part)):
            return int(whole), part
    raise UnreadableInput(
        f"Line {number} of {what} needs decimals from 0 to 1 with a point, no comma, and at most {most} digits. Correct that line."
    )


def _unit(text: str) -> Fraction:
    """The worth of the last digit that is printed, and a tenth for whole numbers: 1e-3 of 0.500, 1e-6 of 1.25e-04."""
    digits, _, exponent = text.lower().partition("e")
    return Fraction(1, 10 ** max(1, len(digits.partition(".")[2]) - int(exponent or 0)))


def _read_ptable(text: str, what: str, repeat: int | None, kind: str = "ptable") -> PerturbationTable:
    lines = _lines(text, what, kind)
    for _, fields in lines:
        if any(_SIGNED_DECIMAL.fullmatch(fields[name]) for name in ("j", "v")):
            raise _for_magnitudes(what)
    bounds = [name for name in _COLUMNS[kind] if name.startswith("p_")]
    read = {(number, name): _decimal(fields[name], number, what) for number, fields in lines for name in bounds}
    digits = max(1, *(len(part) for _, part in read.values()))
    read |= {(number, "p"): _decimal(fields["p"], number, what, _MOST_DIGITS_OF_P) for number, fields in lines}
    size = 10**digits

    def value(number: int, name: str) -> Fraction:
        whole, part = read[number, name]
        return whole + Fraction(int(part or "0"), 10 ** len(part))

    intervals, ends = [], dict[int, int]()
    for number, fields in lines:
        count, result, noise = (_integer(fields[name], number, what) for name in ("i", "j", "v"))
        if noise != result - count:
            raise UnreadableInput(f"Line {number} of {what}: v must be j - i. Correct that line.")
        lower = ends.get(count, 0) if kind == "ptable" else int(value(number, "p_int_lb") * size)
        upper = int(value(number, "p_int_ub") * size)
        near = Fraction(1, size) + _unit(fields["p"]) + _ROUNDED  # two bounds and p were each rounded to their digits
        if abs(value(number, "p") - Fraction(upper - lower, size)) > near:
            raise UnreadableInput(
                f"Line {number} of {what}: p is not the length of its interval, to {digits} digits. Bounds are sums of p, in the order of "
                "lines, up to 1 for each i. Correct that line."
            )
        ends[count] = upper
        intervals.append(KeyInterval(count, noise, lower, upper))
    return PerturbationTable.from_intervals(intervals, size, repeat=1 if repeat is None else repeat)


def _read_sas(text: str, what: str, repeat: int | None) -> PerturbationTable:
    return _read_ptable(text, what, repeat, "sas")


def _write_ptable(table: PerturbationTable, kind: str = "ptable") -> str:
    digits = len(str(table.key_size)) - 1
    if table.key_size != 10**digits or not 1 <= digits <= MOST_DIGITS:
        raise InvalidParameter(
            f"This kind of file holds decimals, and the table has {table.key_size} keys. Rescale it first, table.rescaled(10**8) (holdfast "
            "cellkey design: --key-size 0.8), and look at its (epsilon, delta) again.",
            field="kind",
        )
    if table.repeat != 1:
        raise InvalidParameter("In this kind of file the last row serves all larger counts. The table has another rule.", field="kind")

    def decimal(value: int) -> str:
        return "1" if value == table.key_size else f"0.{value:0{digits}d}"

    lines = [";".join(_COLUMNS[kind])]
    for part in table.intervals:
        bounds = [decimal(part.upper)] if kind == "ptable" else [decimal(part.lower), decimal(part.upper)]
        chance = decimal(part.upper - part.lower)
        lines.append(";".join([str(part.count), str(part.count + part.noise), chance, str(part.noise), *bounds]))
    return "\n".join(lines) + "\n"


def _write_sas(table: PerturbationTable) -> str:
    return _write_ptable(table, "sas")


def _read_ons(text: str, what: str, repeat: int | None) -> PerturbationTable:
    lines = _lines(text, what, "ons")
    read = np.array([[_integer(fields[name], number, what) for name in _COLUMNS["ons"]] for number, fields in lines], np.int64)
    counts, keys, noise = read.T
    counts, keys, noise = (column[np.lexsort((keys, counts))] for column in (counts, keys, noise))
    size = int(keys.max()) + 1
    starts = np.unique(counts)
    if keys.min() < 0 or len(keys) != len(starts) * size or not np.array_equal(keys, np.tile(np.arange(size), len(starts))):
        raise UnreadableInput(f"File {what} must have one line for each pcv and each ckey from 0 to {size - 1}. Some are missing or twice.")
    return _of_matrix(starts.tolist(), noise.reshape(len(starts), size), ONS_REPEAT if repeat is None else repeat, folds=False)


def _read_superstar(text: str, what: str, repeat: int | None) -> PerturbationTable:
    if repeat is None:
        raise InvalidParameter(
            "A matrix does not say how many of its last columns serve larger counts in turn (SmallN). Give repeat.", field="repeat"
        )
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    separator = _separator(numbered[0][1])
    rows = [[_integer(field, number, what) for field in _fields(line, separator)] for number, line in numbered]
    wrong = next((number for (number, _), row in zip(numbered, rows, strict=True) if len(row) != len(rows[0])), None)
    if wrong is not None:
        raise UnreadableInput(f"Line {wrong} of {what} has another number of fields than the first. Correct that line.")
    matrix = np.array(rows, np.int64).T
    return _of_matrix(range(1, len(matrix) + 1), matrix, repeat)


def _of_matrix(counts: Sequence[int], noise: NDArray[np.int64], repeat: int, *, folds: bool = True) -> PerturbationTable:
    """From the noise of every key, one count a row."""
    size = noise.shape[1]
    if repeat > 0 and counts[-1] % repeat:
        raise InvalidParameter(
            f"The table has counts to {counts[-1]}, and {repeat} last ones would serve larger counts in turn. Where that begins is "
            f"documented only if {repeat} divides {counts[-1]}. Give a repeat that does, or 0 to refuse larger counts.",
            field="repeat",
        )
    bounds = {}
    for count, row in zip(counts, noise, strict=True):
        ends = np.append(np.flatnonzero(row[1:] != row[:-1]) + 1, size)
        bounds[count] = [(int(row[end - 1]), int(end)) for end in ends]
    return PerturbationTable.from_upper_bounds(bounds, size, repeat=repeat, folds=folds)


def _matrix(table: PerturbationTable) -> NDArray[np.int64]:
    """The noise of every key, one count a row."""
    if table.key_size * len(table.counts) > MOST_LINES:
        raise InvalidParameter(
            f"This kind of file holds every key of every count: {table.key_size} keys are too many. Rescale the table, or write json.",
            field="kind",
        )
    keys = np.arange(table.key_size, dtype=np.uint64)
    return np.stack([table.lookup(np.full(table.key_size, count), keys) for count in table.counts])


def _write_ons(table: PerturbationTable) -> str:
    lines = [",".join(_COLUMNS["ons"])]
    for count, row in zip(table.counts, _matrix(table).tolist(), strict=True):
        lines += [f"{count},{key},{noise}" for key, noise in enumerate(row)]
    return "\n".join(lines) + "\n"


def _write_superstar(table: PerturbationTable) -> str:
    zero = table.rows.get(0)
    if zero is not None and set(zero.noise) == {0} and len(table.rows) > 1:  # empty cells stay empty without a column
        table = PerturbationTable([row for row in table.rows.values() if row.count], repeat=table.repeat)
    if table.counts != tuple(range(1, len(table.counts) + 1)):
        raise InvalidParameter("The columns of a matrix are the counts 1, 2, 3 and so on. The table has others.", field="kind")
    return "".join(",".join(map(str, row)) + "\n" for row in _matrix(table).T.tolist())


def _read_json(text: str, what: str, repeat: int | None) -> PerturbationTable:
    try:
        found = json.loads(text)
        is_ours = (found["kind"], found["version"]) == (_OWN, _VERSION) and isinstance(found["folds"], bool)
        rows = {int(count): [(noise, upper) for noise, upper in row] for count, row in found["rows"].items()}
        size, said = found["key_size"], found["repeat"]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_ours = False
    if not is_ours:
        raise UnreadableInput(f"File {what} is no perturbation table of version {_VERSION}. Give one that write_table wrote.")
    return PerturbationTable.from_upper_bounds(rows, size, repeat=said if repeat is None else repeat, folds=found["folds"])


def _write_json(table: PerturbationTable) -> str:
    rows: dict[str, Any] = {str(row.count): list(zip(row.noise, row.upper, strict=True)) for row in table.rows.values()}
    lines = ",\n".join(f'  "{count}": {json.dumps(row)}' for count, row in rows.items())
    head = f'{{\n "kind": "{_OWN}",\n "version": {_VERSION},\n "key_size": {table.key_size},\n "repeat": {table.repeat},\n'
    return f'{head} "folds": {json.dumps(table.folds)},\n "rows": {{\n{lines}\n }}\n}}\n'


_READERS: Mapping[str, Callable[[str, str, int | None], PerturbationTable]] = {
    "json": _read_json,
    "ptable": _read_ptable,
    "sas": _read_sas,
    "ons": _read_ons,
    "superstar": _read_superstar,
}
_WRITERS: Mapping[str, Callable[[PerturbationTable], str]] = {
    "json": _write_json,
    "ptable": _write_ptable,
    "sas": _write_sas,
    "ons": _write_ons,
    "superstar": _write_superstar,
}
