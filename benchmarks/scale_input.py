"""Made-up census tables of any size as Parquet: blocks in tracts in counties in states, by sex and age; written piece by piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

SEXES = ("F", "M")
AGES = ("0-17", "18-34", "35-49", "50-64", "65+")
PER_BLOCK = len(SEXES) * len(AGES)
UNITS = ("state", "county", "tract", "block")
COLUMNS = (*UNITS, "sex", "age")
COUNT = "population"
WIDTHS = (2, 3, 6, 4)
"""Digits that each unit adds to the code of the unit above, as in the codes of the United States."""
SHARES = (50, 2_000, 50_000)
"""States, counties and tracts of the largest table; one of a tenth of the cells has a tenth to the power 1/4, 1/2 and 3/4 of them."""
LARGEST = 10**8
GROUP_BLOCKS = 1 << 16

RUN_FILE = """\
[table]
source = "{source}"
cells  = ["state", "county", "tract", "block", "sex", "age"]
count  = "population"
public = true

[keep]
margins = [["state"]]

[release]
id        = "{name}"
mechanism = "generalized-gaussian"
rho       = "1/10"
per       = "person"
formats   = {formats}
"""
LEVELS = (("state", "sex", "1/10"), ("county", "detailed", "2/10"), ("tract", "total", "2/10"), ("block", "detailed", "5/10"))

Ints = NDArray[np.int64]


def run_file(source: str, name: str, formats: tuple[str, ...] = ("parquet",), *, levels: bool = False) -> str:
    """The run file of a release that keeps state totals, with shares for levels or without."""
    rows = LEVELS if levels else ()
    shares = "".join(f'\n[[release.levels]]\nlevel = "{level}"\nmargin = "{margin}"\nshare = "{share}"\n' for level, margin, share in rows)
    return RUN_FILE.format(source=source, name=name, formats=str(list(formats)).replace("'", '"')) + shares


def write_input(path: Path, cells: int) -> None:
    """A table of `cells` cells (a multiple of 10), the same for the same number. Every block has all ten cells, in order; units differ
    in size.
    """
    blocks = cells // PER_BLOCK
    ends = unit_ends(blocks)
    fields = [(name, pa.dictionary(pa.int32(), pa.string())) for name in COLUMNS]
    schema = pa.schema([*fields, (COUNT, pa.int64())])
    with pq.ParquetWriter(path, schema, compression="snappy", dictionary_pagesize_limit=1 << 24, data_page_size=1 << 20) as file:
        for low in range(0, blocks, GROUP_BLOCKS):
            file.write_table(_rows(ends, low, min(low + GROUP_BLOCKS, blocks), schema), row_group_size=GROUP_BLOCKS * PER_BLOCK)


def unit_ends(blocks: int) -> list[Ints]:
    """For states, counties and tracts where each ends, in units of the next finer level."""
    units = [
        max(1, round(most * (PER_BLOCK * blocks / LARGEST) ** power)) for most, power in zip(SHARES, (1 / 4, 1 / 2, 3 / 4), strict=True)
    ]
    ends = []
    for count, finer in zip(units, [*units[1:], blocks], strict=True):
        weights = np.cumsum(2 + _mixed(np.arange(count, dtype=np.uint64)) % 5)
        ends.append((weights * (finer - count)) // weights[-1] + np.arange(1, count + 1))  # each unit has one or more
    return ends


def _rows(ends: list[Ints], low: int, high: int, schema: pa.Schema) -> pa.Table:
    numbers = np.arange(low, high, dtype=np.int64)
    inside: list[tuple[Ints, Ints]] = []  # for each level, block by block: (the unit, its place in the unit above)
    for unit_end in reversed(ends):
        above = np.searchsorted(unit_end, numbers, side="right")
        inside.append((numbers, numbers - np.where(above > 0, unit_end[above - 1], 0)))
        numbers = above
    inside.append((numbers, numbers))
    columns, texts = [], np.full(high - low, "", dtype="U1")
    for (unit, place), width in zip(reversed(inside), WIDTHS, strict=True):
        texts = np.char.add(texts, np.char.zfill((place + 1).astype(f"U{width}"), width))
        new = np.diff(unit, prepend=-1) != 0
        places = np.repeat((np.cumsum(new) - 1).astype(np.int32), PER_BLOCK)
        columns.append(pa.DictionaryArray.from_arrays(pa.array(places), pa.array(texts[new].tolist(), pa.string())))
    own = np.tile(np.arange(PER_BLOCK, dtype=np.int32), high - low)
    columns.append(pa.DictionaryArray.from_arrays(pa.array(own // len(AGES)), pa.array(SEXES)))
    columns.append(pa.DictionaryArray.from_arrays(pa.array(own % len(AGES)), pa.array(AGES)))
    return pa.Table.from_arrays([*columns, pa.array(_people(low * PER_BLOCK, high * PER_BLOCK))], schema=schema)


def _people(low: int, high: int) -> Ints:
    """Many empty cells, and some of dozens of people."""
    bits = _mixed(np.arange(low, high, dtype=np.uint64))
    people: Ints = (bits & 15) * (bits >> 4 & 7) * (bits >> 7 & 1)
    return people


def _mixed(numbers: NDArray[np.uint64]) -> Ints:
    """Numbers scattered over 63 bits (the finaliser of SplitMix64)."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    scattered: Ints = ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(1)).astype(np.int64)
    return scattered
