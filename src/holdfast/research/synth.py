"""A made-up population of any size, for trials, benchmarks and demonstrations.

    synthesize(people, seed) -> Population      states > counties > tracts > blocks, households, group quarters, age, sex
                                                (in counts also hispanic, race)
        .records()  .counts(level, by)          one row per person, as a stream; one row per cell, zeros included
        .save(path, what)                       either of them as .parquet or .csv
    cells_for(n)                                counts of at least n cells under nested areas

Fictitious by construction: sizes come from a random generator and a few rounded facts (about 40 persons per block, 2.6 per household, 2.5 %
in group quarters), never from a real table. Codes look like a census geography; any agreement with a real area is chance.

NEVER USED FOR PROTECTION: the generator is PCG64 seeded through SHA-256, which anyone can repeat. Noise comes from `holdfast.randomness`.

Repeatable: only raw words of PCG64 (a stream that NumPy promises to keep) and integer arithmetic decide a value; no float does. Equal seed
and arguments give equal rows on any machine, and CSV files of equal bytes; the bytes of a Parquet file depend on PyArrow's version too.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import isqrt, prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter, RequestTooLarge

if TYPE_CHECKING:
    import pyarrow as pa

Integers: TypeAlias = NDArray[np.int64]
Bytes: TypeAlias = NDArray[np.uint8]

FORMAT = "holdfast synth 1"  # enters every seed: another recipe must have another name
CHUNK = 2**20  # people made at a time; it decides where streams begin, so it is part of the recipe
PEOPLE_PER_BLOCK = 40
MAX_PEOPLE = 10**10
MAX_CELLS = 10**9
MAX_AREAS = 10**8  # more codes of 15 letters do not fit into one Arrow array of text

LEVELS = ("state", "county", "tract", "block")
_WIDTH = {"state": 2, "county": 5, "tract": 11, "block": 15}
_ROOM = {"state": 99, "county": 999, "tract": 9999, "block": 9000}  # children of one parent that codes of these widths can name

_AGE_GROUPS = [*(f"{low}-{low + 4}" for low in range(0, 90, 5)), "90+"]
_CODES = {"age": [*map(str, range(90)), "90+"], "sex": ["F", "M"], "gq": list("01234567")}
_CODES |= {"age_group": _AGE_GROUPS, "voting_age": ["0-17", "18+"]}
_CODES |= {"hispanic": ["no", "yes"], "race": [f"{groups:06b}" for groups in range(1, 64)]}  # a digit for each of six groups
_FROM_AGE = {"age_group": np.arange(91, dtype=np.uint8) // 5, "voting_age": (np.arange(91) >= 18).astype(np.uint8)}

# Out of 256: sizes of households as drawn, 1 to 9. The end of a block cuts a household, which brings the mean from 2.7 to 2.6.
_HOUSEHOLD_SIZE = np.repeat(np.arange(1, 10, dtype=np.int64), [60, 85, 42, 36, 18, 8, 4, 2, 1])

# Out of 256: a first group; and out of 65536 who is hispanic, and who belongs to a second group, to any others.
_FIRST_GROUP = np.repeat(1 << np.arange(6, dtype=np.uint8)[::-1], [166, 34, 3, 17, 1, 35])
_HISPANIC, _SECOND_GROUP, _OTHER_GROUPS = 12500, 5000, 400

# Group quarters 1 to 7: prisons, juvenile facilities, nursing homes, other institutions, student housing, barracks, other.
_GQ_KIND = np.repeat(np.arange(1, 8, dtype=np.uint8), [64, 3, 51, 3, 84, 10, 41])  # out of 256
_GQ_BLOCKS, _GQ_LEAST = 2300, 10  # of 65536 blocks with at least that many people, most of whom then live in group quarters
_GQ_YOUNGEST = np.array([0, 18, 11, 62, 5, 17, 18, 19])
_GQ_AGE_SPAN = np.array([0, 28, 5, 20, 40, 4, 12, 32])  # two draws below this are added to the youngest age
_GQ_MALE = np.array([0, 60000, 52000, 22000, 39000, 30000, 55000, 39000])  # out of 65536


def synthesize(people: int, seed: int | str = "1", *, states: int | None = None, blocks: int | None = None) -> Population:
    """A population of exactly this many people in a nested geography.

    Given:       0 <= people <= 10^10; a seed (1 and "1" are the same); by default one block per 40 people, and roots of that for the levels
                 above: 331 million people live in 53 states, 2,876 counties, 83,835 tracts.
    Guarantees:  equal arguments give equal rows. People are made when asked for: the object itself holds about a byte per person.
    """
    people = _checked_count(people, "people", 0, MAX_PEOPLE)
    if isinstance(seed, bool) or not isinstance(seed, int | str) or (isinstance(seed, int) and seed.bit_length() > 4096):
        raise InvalidParameter(f"seed must be text or an int of ordinary size. Got {type(seed).__name__}. Write for example seed=1.")
    return _make_geography(people, str(seed), _number_of_areas(people, states, blocks))


def cells_for(n_cells: int, seed: int | str = 1, *, by: Iterable[str] = ("sex", "age_group")) -> pa.Table:
    """Counts of at least `n_cells` cells, blocks times the columns in `by`, with the codes of state, county and tract beside each."""
    by = _checked_columns(by)
    blocks = -(-_checked_count(n_cells, "n_cells", 1, MAX_CELLS) // prod(len(_CODES[column]) for column in by))
    return synthesize(blocks * PEOPLE_PER_BLOCK, seed, blocks=blocks).counts("block", by=by)


@dataclass(frozen=True, repr=False, eq=False)
class Population:
    """People in states, counties, tracts and blocks; made by `synthesize`."""

    seed: str
    codes: dict[str, Integers]  # for each level the full codes of its areas as numbers, ascending
    parents: dict[str, Integers]  # for each level below the state the place of each area's parent
    block_people: Integers
    block_gq: Bytes  # the kind of group quarters in each block, 0 for none
    block_gq_people: Integers

    @cached_property
    def _ends(self) -> Integers:
        return np.concatenate(([0], np.cumsum(self.block_people)))

    @property
    def people(self) -> int:
        """The number of people."""
        return int(self._ends[-1])

    def areas(self, level: str) -> int:
        """The number of areas at a level, empty ones included."""
        return len(self.codes[_checked_level(level)])

    def __repr__(self) -> str:
        areas = ", ".join(f"{level}: {self.areas(level):,}" for level in LEVELS)
        return f"<Population of {self.people:,} made-up people, seed {self.seed!r}; {areas}>"

    def records(self) -> pa.RecordBatchReader:
        """One row per person: person_id, household_id, state, county, tract, block, age, sex, gq.

        Guarantees:  a stream of batches (`read_all()` gives a table) that holds about a million people at a time. Codes are text, with a
                     dictionary per batch. `household_id` is the `person_id` of the household's first member; in group quarters (gq not
                     "0") everyone is a unit of one, as in census microdata.
        """
        import pyarrow as pa

        text = {**dict.fromkeys(LEVELS, pa.int32()), **dict.fromkeys(("age", "sex", "gq"), pa.int8())}
        types = {name: pa.dictionary(index, pa.string()) for name, index in text.items()}
        schema = pa.schema({"person_id": pa.int64(), "household_id": pa.int64(), **types})
        return pa.RecordBatchReader.from_batches(schema, (self._batch(chunk, schema) for chunk in self._chunks()))

    def counts(self, level: str = "block", by: Iterable[str] = ()) -> pa.Table:
        """One row per area of the level and combination of codes in `by`, zeros included: codes of all levels down to it, `by`, `count`.

        Given:       `by` from age, sex, gq, age_group (five years), voting_age, hispanic, race (63 codes). The last two are made for
                     counts alone, from words of their own: they are in no record.
        Guarantees:  counts at a level are exactly the sums of the counts at any lower level, and of the records.
        """
        import pyarrow as pa

        level, by = _checked_level(level), _checked_columns(by)
        sizes = [len(_CODES[column]) for column in by]
        areas, width, higher = self.areas(level), prod(sizes), "Take a higher level or fewer columns."
        _checked_count(areas, "the number of areas", 0, MAX_AREAS, higher)
        _checked_count(areas * width, "the number of cells", 0, MAX_CELLS, higher)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for name in LEVELS[: LEVELS.index(level) + 1]:
            columns[name] = _encode_column(np.repeat(self._place(level, name).astype(np.int32), width), _text(self.codes[name], name))
        for i, column in enumerate(by):
            inner = np.repeat(np.arange(sizes[i], dtype=np.int8), prod(sizes[i + 1 :]))
            columns[column] = _encode_column(np.tile(inner, areas * prod(sizes[:i])), _CODES[column])
        return pa.table(columns | {"count": self._tabulate(level, by, width)})

    def save(self, path: str | Path, what: str = "counts", *, level: str = "county", by: Iterable[str] = ()) -> Path:
        """Write the records, or the counts of a level, to a new .parquet or .csv file: complete, or not at all."""
        path = Path(path)
        _check_target(path)
        if what not in ("records", "counts"):
            raise InvalidParameter(f"what must be 'records' or 'counts'. Got {what!r}. Write one of the two.")
        rows = self.records() if what == "records" else self.counts(level, by).to_reader(CHUNK)
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        try:
            _write(rows, part, path.suffix)
            _check_target(path)
            os.rename(part, path)
        finally:
            part.unlink(missing_ok=True)
        return path

    def _place(self, level: str, above: str, only: slice = slice(None)) -> Integers:
        """For each area of the level, or only for some, the place of its area at a level above, or at the same."""
        place = np.arange(*only.indices(self.areas(level)))
        for step in reversed(LEVELS[LEVELS.index(above) + 1 : LEVELS.index(level) + 1]):
            place = self.parents[step][place]
        return place

    def _chunks(self) -> Iterator[_Chunk]:
        """All people, in ranges of whole blocks, each beginning with the block of a person whose number is a multiple of CHUNK."""
        cuts = np.searchsorted(self._ends, np.arange(0, self.people, CHUNK), side="right") - 1
        for low, high in itertools.pairwise([*np.unique(cuts).tolist(), len(self.block_people)]):
            some = slice(low, high)
            words = _source(self.seed, "people", self.people, low)
            made = _make_people(words, some, int(self._ends[low]), self.block_people[some], self.block_gq[some], self.block_gq_people[some])
            yield replace(made, origins=_source(self.seed, "origins", self.people, low))

    def _batch(self, chunk: _Chunk, schema: pa.Schema) -> pa.RecordBatch:
        import pyarrow as pa

        columns = [pa.array(chunk.first + np.arange(len(chunk.block))), pa.array(chunk.first + chunk.household)]
        for level in LEVELS:
            place = self._place("block", level, chunk.blocks)
            codes = _text(self.codes[level][place[0] : place[-1] + 1], level)
            columns.append(_encode_column((place - place[0]).astype(np.int32)[chunk.block], codes))
        columns += [_encode_column(chunk.column(name).view(np.int8), _CODES[name]) for name in ("age", "sex", "gq")]
        return pa.record_batch(columns, schema=schema)

    def _tabulate(self, level: str, by: tuple[str, ...], width: int) -> Integers:
        """Counts in row order, for `width` combinations per area."""
        place = self._place("block", level)
        if not by:
            return np.diff(self._ends[np.searchsorted(place, np.arange(self.areas(level) + 1))])
        out = np.zeros(self.areas(level) * width, dtype=np.int64)
        for chunk in self._chunks():
            areas = place[chunk.blocks]
            cell = (areas - areas[0])[chunk.block]
            for column in by:
                cell *= len(_CODES[column])
                cell += chunk.column(column)
            start, stop = int(areas[0]) * width, (int(areas[-1]) + 1) * width
            out[start:stop] += np.bincount(cell, minlength=stop - start)
        return out


@dataclass(frozen=True, eq=False)
class _Chunk:
    """The people of some consecutive blocks, in order of their blocks."""

    blocks: slice
    first: int  # number of the first person
    block: NDArray[np.int32]  # counted from the first block
    household: Integers  # the household's first person, counted from `first`
    age: Bytes
    sex: Bytes
    gq: Bytes
    origins: np.random.PCG64 | None = None  # words for what follows

    def column(self, name: str) -> Bytes:
        """For each person the place of its code in the list of codes."""
        column: Bytes = _FROM_AGE[name][self.age] if name in _FROM_AGE else getattr(self, name)
        return column

    @property
    def hispanic(self) -> Bytes:
        return np.asarray(self._draws[0] < _HISPANIC, dtype=np.uint8)

    @property
    def race(self) -> Bytes:
        """Groups as digits of a number, less one: nobody belongs to none."""
        first, second, more = self._draws[1], self._draws[2], self._draws[3]
        groups = _FIRST_GROUP[first >> 8]
        groups = np.where(second < _SECOND_GROUP, groups | 1 << second % 6, groups)
        return np.asarray(np.where(more < _OTHER_GROUPS, groups | 1 + more % 63, groups) - 1, dtype=np.uint8)

    @cached_property
    def _draws(self) -> NDArray[np.uint16]:
        """Four draws for each person."""
        assert self.origins is not None
        return _halves(self.origins, 4 * len(self.block)).reshape(-1, 4).T


def _make_people(words: np.random.PCG64, blocks: slice, first: int, people: Integers, kinds: Bytes, gq_people: Integers) -> _Chunk:
    """In each block the households, then the group quarters."""
    n = int(people.sum())
    drawn = [np.ascontiguousarray(column, dtype=np.int32) for column in _halves(words, 4 * n).reshape(n, 4).T]
    gq = np.repeat(np.stack((np.zeros_like(kinds), kinds), 1).ravel(), np.stack((people - gq_people, gq_people), 1).ravel())
    begins = gq > 0
    begins[(np.cumsum(people) - people)[people > 0]] = True
    cuts = np.cumsum(_HOUSEHOLD_SIZE[_halves(words, n) >> 8])
    begins[cuts[: np.searchsorted(cuts, n)]] = True
    heads = np.flatnonzero(begins)
    sizes = np.diff(heads, append=n)
    age, sex = _ages_and_sexes(drawn, heads, sizes)
    where = np.flatnonzero(gq)
    kind, a, b, d = gq[where], drawn[0][where], drawn[1][where], drawn[3][where]
    age[where] = _GQ_YOUNGEST[kind] + _below(a, _GQ_AGE_SPAN[kind]) + _below(b, _GQ_AGE_SPAN[kind])
    sex[where] = d < _GQ_MALE[kind]
    block = np.repeat(np.arange(len(people), dtype=np.int32), people)
    return _Chunk(blocks, first, block, np.repeat(heads, sizes), np.minimum(age, 90).astype(np.uint8), sex, gq)


def _ages_and_sexes(drawn: list[NDArray[np.int32]], heads: Integers, sizes: Integers) -> tuple[NDArray[np.int32], Bytes]:
    """A head, often a partner of about the same age, and people 18 to 38 years younger than the head."""
    a, b, c, d = drawn
    first, second = a[heads], b[heads]  # the young and the old live alone or in pairs, families in between
    head_age = np.where(sizes < 3, 19 + _below(first, 38) + _below(second, 39), 23 + _below(first, 20) + _below(second, 19))
    head = np.repeat(head_age.astype(np.int32), sizes)
    youngest = np.maximum(head - 38, 0)
    age = youngest + _below(a, head - 18 - youngest)
    age[heads] = head_age
    partners = heads[sizes > 1] + 1
    partners = partners[c[partners] < 50000]
    age[partners] = np.maximum(head[partners] - 5 + _below(a[partners], 11), 18)
    sex = (d < 33200 - 350 * np.maximum(age - 50, 0)).astype(np.uint8)  # women outlive men
    opposite = partners[b[partners] < 64500]
    sex[opposite] = 1 - sex[opposite - 1]
    return age, sex


def _make_geography(people: int, seed: str, numbers: dict[str, int]) -> Population:
    """Areas of all levels, and how many people live in each block, divided from the top down."""
    words = _source(seed, "geography", people, *numbers.values())
    codes, parents = {"state": np.arange(1, numbers["state"] + 1)}, {}
    inside = _divide(np.array([people]), _log_normal(words, numbers["state"], 100))
    for above, level, spread in (("state", "county", 145), ("county", "tract", 45), ("tract", "block", 110)):
        # Counties and blocks are drawn on the map; tracts are made to hold about equally many people.
        weights = inside + 1 if level == "tract" else _log_normal(words, numbers[above], 70)
        children = _children(numbers[level], weights, _ROOM[level])
        parents[level] = np.repeat(np.arange(len(children)), children)
        codes[level] = _child_codes(codes[above], children, level)
        weights = _log_normal(words, numbers[level], spread)
        if level == "block":
            weights[_halves(words, len(weights)) < 20000] = 0  # three in ten blocks are empty: water, fields, roads
            weights[np.cumsum(children) - children] += 1  # a tract always has a place for its people
        inside = _divide(inside, weights, parents[level])
    kinds = _GQ_KIND[_halves(words, len(inside)) >> 8]
    kinds[(_halves(words, len(inside)) >= _GQ_BLOCKS) | (inside < _GQ_LEAST)] = 0
    share = 32768 + (_halves(words, len(inside)).astype(np.int64) >> 1)  # from one half to all
    return Population(seed, codes, parents, inside, kinds, np.where(kinds > 0, inside * share >> 16, 0))


def _child_codes(above: Integers, children: Integers, level: str) -> Integers:
    """Full codes as numbers: counties 001, 003, ...; tracts 000100, 000200, ...; blocks 1000, 1001, ..., 2000, ... in up to nine groups."""
    parent, count = np.repeat(above, children), np.repeat(children, children)
    k = np.arange(len(count)) - np.repeat(np.cumsum(children) - children, children)
    if level == "county":
        return parent * 1000 + 1 + k * np.where(count > 500, 1, 2)
    if level == "tract":
        return parent * 10**6 + 100 * (k + 1)
    group = np.maximum(-(-count // 9), 30)
    return parent * 10**4 + 1000 * (1 + k // group) + k % group


def _children(total: int, weights: Integers, room: int) -> Integers:
    """How many of `total` children each parent gets: at least one, at most `room`, else about in proportion."""
    children = np.minimum(1 + _divide(np.array([total - len(weights)]), weights), room)
    free = room - children
    extra: Integers = np.clip(total - children.sum() - (np.cumsum(free) - free), 0, free)
    return children + extra


def _divide(totals: Integers, weights: Integers, parent: Integers | None = None) -> Integers:
    """Each parent's total split among its children in proportion to the weights, in integers: the parts add up exactly.

    Given:       `parent` ascending from 0 without gaps (by default one parent); each parent has a positive weight.
    """
    parent = np.zeros(len(weights), dtype=np.int64) if parent is None else parent
    starts = np.searchsorted(parent, np.arange(len(totals)))
    while int(np.add.reduceat(weights, starts).max()) >= 2**31:  # so that the products below stay under 2^62
        weights = weights + 1 >> 1
    summed, reached = np.add.reduceat(weights, starts), np.cumsum(weights)
    reached -= (reached[starts] - weights[starts])[parent]
    whole, rest = np.divmod(totals, summed)
    reached = reached * whole[parent] + reached * rest[parent] // summed[parent]
    parts = np.diff(reached, prepend=0)
    parts[starts] = reached[starts]
    return parts


def _log_normal(words: np.random.PCG64, n: int, spread: int) -> Integers:
    """Weights 4096 exp(spread / 100 Z) in integers, Z the scaled sum of eight uniform draws: nearly normal, up to 4.9 deviations."""
    z = _halves(words, 8 * n).reshape(n, 8).sum(axis=1, dtype=np.int64) - 262140
    exponent = z * (spread * 1158) >> 16  # of 2, in 65536ths: 1158 = 65536 / (100 ln 2 sqrt(8 / 12))
    whole, part = exponent >> 16, exponent & 0xFFFF
    mantissa = 65536 + (part * (43024 + (22512 * part >> 16)) >> 16)  # 2^x is 1 + 0.6565 x + 0.3435 x^2 to 0.3 %
    weights: Integers = np.maximum((mantissa << (whole + 16)) >> 20, 1)
    return weights


def _source(seed: str, *labels: str | int) -> np.random.PCG64:
    return np.random.PCG64(int.from_bytes(hashlib.sha256(json.dumps([FORMAT, seed, *labels]).encode()).digest(), "big"))


def _halves(words: np.random.PCG64, n: int) -> NDArray[np.uint16]:
    """Uniform integers below 65536, four from each word, in the same order on every machine."""
    return np.asarray(words.random_raw(-(-n // 4)), dtype="<u8").view("<u2")[:n].astype(np.uint16, copy=False)


def _below(half: NDArray[np.int32], bound: Any) -> Any:
    """A draw below 65536 brought below a small bound."""
    return half * bound >> 16


def _text(numbers: Integers, level: str) -> pa.StringArray:
    """Codes as text of the level's width with leading zeros, straight into Arrow's memory."""
    import pyarrow as pa

    width, rest = _WIDTH[level], numbers
    digits = np.empty((len(numbers), width), dtype=np.uint8)
    for place in reversed(range(width)):
        rest, digits[:, place] = np.divmod(rest, 10)
    offsets = np.arange(0, (len(numbers) + 1) * width, width, dtype=np.int32)
    return pa.StringArray.from_buffers(len(numbers), pa.py_buffer(offsets), pa.py_buffer(digits + np.uint8(ord("0"))))


def _encode_column(places: NDArray[Any], codes: Any) -> pa.DictionaryArray:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(places), codes if isinstance(codes, pa.Array) else pa.array(codes))


def _write(rows: pa.RecordBatchReader, path: Path, suffix: str) -> None:
    from pyarrow import csv, parquet

    plain = csv.WriteOptions(quoting_style="none", quoting_header="none")  # no code holds a comma or a quote
    csv_file = suffix == ".csv"
    with csv.CSVWriter(path, rows.schema, write_options=plain) if csv_file else parquet.ParquetWriter(path, rows.schema) as writer:
        for batch in rows:
            writer.write_batch(batch)


def _number_of_areas(people: int, states: int | None, blocks: int | None) -> dict[str, int]:
    states = None if states is None else _checked_count(states, "states", 1, _ROOM["state"])
    least = states or 1
    most = MAX_PEOPLE // PEOPLE_PER_BLOCK
    block = max(-(-people // PEOPLE_PER_BLOCK), least) if blocks is None else _checked_count(blocks, "blocks", least, most)
    root = isqrt(block)
    state = states or min(isqrt(root), _ROOM["state"])
    county = min(max(root, state), _ROOM["county"] * state)
    tract = max(root * isqrt(root) * 11 // 20, min(2 * county, block))
    return {"state": state, "county": county, "tract": min(tract, _ROOM["tract"] * county), "block": block}


def _checked_count(value: int, name: str, least: int, most: int, advice: str = "Write a number in that range.") -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidParameter(f"{name} must be a whole number. Got {type(value).__name__}. Write an int.")
    if not least <= value <= most:
        found = f"{value:,}" if abs(int(value)) < 10**18 else "a number of more than 18 digits"
        raise (RequestTooLarge if value > most else InvalidParameter)(f"{name} must be from {least:,} to {most:,}. Got {found}. {advice}")
    return int(value)


def _checked_level(level: str) -> str:
    if level not in LEVELS:
        raise InvalidParameter(f"level must be one of {', '.join(LEVELS)}. Got {level!r}. Write one of them.")
    return level


def _checked_columns(by: Iterable[str]) -> tuple[str, ...]:
    by = (by,) if isinstance(by, str) else tuple(by)
    if len(set(by)) < len(by) or not _CODES.keys() >= set(by):
        got = ", ".join(map(repr, by))
        raise InvalidParameter(f"by must name different columns out of {', '.join(_CODES)}. Got {got}. Write each once, as it is here.")
    return by


def _check_target(path: Path) -> None:
    if path.suffix not in (".csv", ".parquet"):
        raise InvalidParameter(f"The file must end in .csv or .parquet. Got {path.name!r}. Write one of the two endings.")
    if path.exists() or path.is_symlink():
        raise InvalidParameter(f"The file exists and is not overwritten. Got {path.name!r}. Remove it or choose another name.")
    if not path.parent.is_dir():
        raise InvalidParameter(f"The file's folder does not exist. Got {path.name!r} in a missing folder. Make the folder first.")
