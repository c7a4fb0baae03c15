"""Tables published by the cell key method: the same records get the same noise in every table and on every day.

What leaves is a `Perturbed`: codes and published counts. True counts, keys and noise stay in this file's local variables.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys, KeySpace
from holdfast.cellkey.published import Gap, ListedTable, NoiseFacts, PublishedTables, Rescaled, Settings
from holdfast.cellkey.record_keys import RecordKeys
from holdfast.cellkey.table import PerturbationTable
from holdfast.cellkey.tabulate import (
    LARGEST_COUNT,
    WEIGHT_DIGITS,
    Columns,
    KeyedCells,
    Tables,
    check_published_columns,
    columns_of,
    rounded_ratio,
    tabulate,
)
from holdfast.display import count_of
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.tables import Table, Universe
from holdfast.tables.columns import KEY_BITS, arrow_numbers
from holdfast.tables.text_files import Reading

COUNT = "count"
UNKNOWN = "unknown"
"""The secret behind a column of keys."""
_MADE_KEYS = "keys made from identifiers"
"""Column of the records in memory. The data may have a column record_key, which is not read then."""
_NAME = re.compile(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\Z")


@dataclass(frozen=True, repr=False)
class Perturbed:
    """Tables to publish by name, as pyarrow.Tables of codes and counts, and how they were made.

    Tables need not add up: each cell has the noise of its own records. `gaps` says by how much they do not. They are recorded in a ledger
    when `holdfast.publication.cellkey.save_perturbed` writes them, and not before: of tables published in another way no second draw of
    noise is noticed.
    """

    tables: Mapping[str, Any]
    columns: Mapping[str, tuple[str, ...]]
    settings: Settings
    noise: NoiseFacts | None = None
    is_private: bool = True
    """False where the keys came from RecordKeys.for_tests."""
    dataset: str | None = None
    """The name of the data: of a Table, or of its file."""

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """One for each pair of tables of which one has all columns of the other and more."""
        names = list(self.tables)
        pairs = [(fine, coarse) for fine in names for coarse in names if set(self.columns[coarse]) < set(self.columns[fine])]
        return tuple(self._gap(fine, coarse) for fine, coarse in pairs)

    def _gap(self, fine: str, coarse: str) -> Gap:
        shared = self.columns[coarse]
        sums = _by_codes(self.tables[fine], shared)
        told = _by_codes(self.tables[coarse], shared)
        differences = [abs(sums.get(cell, 0) - told.get(cell, 0)) for cell in sums.keys() | told.keys()]
        unequal = sum(gap > 0 for gap in differences)
        return Gap(
            fine, coarse, len(differences), unequal, max(differences, default=0), Fraction(sum(differences), max(len(differences), 1))
        )

    def summary(self, release_id: str, dataset: str) -> PublishedTables:
        """What the folder of these tables says of itself, before it is recorded."""
        tables = tuple(ListedTable(name, f"{name}.csv", frame.num_rows) for name, frame in self.tables.items())
        return PublishedTables(release_id, dataset, self.is_private, self.settings, tables, self.gaps)

    def __getitem__(self, name: str) -> Any:
        return self.tables[name]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name!r} ({count_of(table.num_rows, 'cell')})" for name, table in self.tables.items())
        return f"Perturbed({shown})"


def perturb(
    data: Any,
    tables: Tables,
    noise: PerturbationTable,
    *,
    key: str = "record_key",
    keys: KeySpace | CellKeys | None = None,
    id: str | None = None,
    secret: RecordKeys | None = None,
    count: str | None = None,
    weight: str | None = None,
    query: str | None = None,
    reading: Reading | None = None,
    allow_similar_codes: bool = False,
) -> Perturbed:
    """Tabulate records and look up the noise of every cell. Nothing is recorded until the result is saved.

    Given:       data: a file, frame or query with one record a row and its key in column `key`; with `count`, one cell a row, its count
                 there and the sum of its records' keys, not folded, in `key`; or a Table with cell keys.
                 tables: by name, columns (cells as they occur), or columns with all their codes, or a Universe.
                 noise: the perturbation table. Empty cells stay empty: they have no key. Its law must be the same
                 with the number of cell keys, as it is with every multiple of the table's. Else rescale the table first,
                 `noise.rescaled(rule.size)`, and look at what its epsilon_delta() says.
                 keys: what record keys are, by default 32 bits; or how cell keys are made of them (`CellKeys`), by default as
                 `CellKeys.for_table` says.
                 weight: a column of weights: a cell is published as (count + noise) * mean weight, rounded to a whole number.
                 The (epsilon, delta) of the table is for counts of records. It does not hold for weighted counts.
                 id: a column of identifiers, of which no two may be equal. secret: keys are made from them, and no column of keys is read.
                 allow_similar_codes: codes may differ in blanks, case or Unicode form only.
    Guarantees:  the noise of a cell is a function of the set of its records: not of the table it stands in, of the order or number of
                 files, nor of the day. Nothing published but codes and published counts.
    Not promised: differential privacy. What `noise.epsilon_delta()` says is for one cell and one answer; it does not cover differences.

    Cells as they occur: what is published as 0 is left out, because a cell that is listed with 0 would be known to have records.
    """
    rule = _rule(data, count, noise, keys, secret is not None)
    named = _checked_names(tables)
    check_empty_cells(noise)
    found: dict[str, Any] = {}  # frames of pyarrow
    columns: dict[str, tuple[str, ...]] = {}
    fitting = fit_table(noise, rule)
    dataset = _dataset_of(data)
    column = _identifiers(id, key, named) if secret is not None else data.key_column if isinstance(data, Table) else key
    if secret is not None:
        data, query, reading = secret.add(data, column, rule.records, name=_MADE_KEYS, query=query, reading=reading), None, None
    wanted = Columns(key if secret is None else _MADE_KEYS, count, weight, id)
    for name, cells in tabulate(data, named, rule, wanted, query=query, reading=reading, allow_similar_codes=allow_similar_codes):
        found[name] = _public_frame(cells, fitting, is_declared=_is_declared(named[name]))
        columns[name] = () if cells.universe is None else cells.universe.columns
    settings = settings_of(rule, noise, weighted=weight is not None)
    is_private = secret is None or secret.is_private
    return Perturbed(found, columns, settings, noise_facts(rule, noise, secret, column), is_private, dataset)


def settings_of(rule: CellKeys, table: PerturbationTable, *, weighted: bool = False) -> Settings:
    """How cell keys are made by this rule, for this perturbation table."""
    return Settings(str(rule.records), rule.modulus, rule.size, rule.mixed, rule.distance, table.key_size, weighted)


def noise_facts(rule: CellKeys, table: PerturbationTable, secret: RecordKeys | None, column: str) -> NoiseFacts:
    """What fixes the noise of a set of records."""
    said = f"record_keys {rule.records}, modulus {rule.modulus}, size {rule.size}, mixed {rule.mixed}"
    return NoiseFacts(UNKNOWN if secret is None else secret.fingerprint, column, said, table_digest(table))


def table_digest(table: PerturbationTable) -> str:
    """SHA-256 of the table's law and bounds, whatever file they were read from."""
    rows = [[row.count, row.noise, row.upper] for row in table.rows.values()]
    return hashlib.sha256(json.dumps([table.key_size, table.repeat, rows]).encode("ascii")).hexdigest()


def check_empty_cells(table: PerturbationTable) -> None:
    """Refuse a perturbation table that gives noise to empty cells."""
    zero = table.rows.get(0)
    if zero is not None and set(zero.noise) != {0}:
        raise InvalidParameter(
            "The perturbation table gives noise to empty cells. They have no records and so no key: all would get the same noise, and "
            "anyone could take it off. Leave the row of count 0 out; empty cells stay empty.",
            field="noise",
        )


def _identifiers(id: str | None, key: str, tables: Tables) -> str:
    """The column of identifiers, from which keys are made. No table may name it, nor the column of keys that is not read."""
    if id is None:
        raise InvalidParameter("Keys are made from identifiers, and id is missing. Name their column (--id).", field="id")
    check_published_columns({name: columns_of(name, given) for name, given in tables.items()}, [key, id])
    return id


def _dataset_of(data: Any) -> str | None:
    if isinstance(data, Table):
        return data.dataset
    return Path(data).stem if isinstance(data, str | os.PathLike) else None


def _rule(data: Any, count: str | None, table: PerturbationTable, keys: KeySpace | CellKeys | None, has_secret: bool) -> CellKeys:
    """The rule for cell keys. Sums that are given are already taken modulo the number of record keys: with a modulus that does not divide
    it, the same records would get another key than from their records.
    """
    rule = keys if isinstance(keys, CellKeys) else CellKeys.for_table(keys or KeySpace.bits(KEY_BITS), table)
    if isinstance(data, Table) and has_secret:
        raise InvalidParameter(
            "A Table has cell keys, and no identifiers to make keys from. Leave secret out, or give records.", field="secret"
        )
    if isinstance(data, Table) and rule.records.size != 2**KEY_BITS:
        raise InvalidParameter(f"The cell keys of a Table are sums modulo 2^{KEY_BITS}. Leave keys out.", field="keys")
    if (isinstance(data, Table) or count is not None) and rule.records.size % rule.modulus:
        raise InvalidParameter(
            f"Cells with sums of keys have sums modulo {rule.records.size}, and {rule.modulus} does not divide it: the same records would "
            f"get other noise than from their own keys. Give records. If the sums are modulo {rule.modulus}, say so: "
            f"keys=CellKeys(KeySpace({rule.modulus}), size=...) with count=.",
            field="keys",
        )
    return rule


def fit_table(table: PerturbationTable, rule: CellKeys) -> PerturbationTable:
    """The table for the number of cell keys, with the same law; InvalidParameter where there is none."""
    if rule.size == table.key_size:
        return table
    fitting = table.rescaled(rule.size, allow_lost=False)
    if not has_same_law(table, fitting):
        raise InvalidParameter(
            f"The perturbation table has {table.key_size} keys and cells have {rule.size}. With so many the noise would follow "
            f"another law than this table, with another (epsilon, delta). Use table.rescaled({rule.size}) and look at its "
            "epsilon_delta() (on the command line: --rescale), or make the table for this number of keys.",
            field="noise",
        )
    return fitting


def rescale_table(table: PerturbationTable, size: int) -> tuple[PerturbationTable, Rescaled | None]:
    """The table for another number of cell keys, and what this did to its law; None where that is the same."""
    fitted = table.rescaled(size, allow_lost=False)
    if has_same_law(table, fitted):
        return fitted, None
    return fitted, Rescaled(table.key_size, size, fitted.epsilon_delta().delta(1), table.epsilon_delta().delta(1))


def has_same_law(table: PerturbationTable, rescaled: PerturbationTable) -> bool:
    """Whether every count has the same noise with the same probabilities."""
    return all(rescaled.rows[count].probabilities == row.probabilities for count, row in table.rows.items())


def _checked_names(tables: Tables) -> Tables:
    if not isinstance(tables, Mapping) or not tables:
        raise InvalidParameter('Tables are given by name: {"ages": ["region", "age"], "regions": ["region"]}.', field="tables")
    for name in tables:
        if not isinstance(name, str) or not _NAME.match(name):
            raise InvalidParameter(
                f"The name of a table is the name of its file: letters, digits, '_', '-' and '.', at most 100. Got {name!r}.",
                field="tables",
            )
    return tables


def _is_declared(given: Any) -> bool:
    """True if its cells are known before any record is seen: not for a list of columns, of whatever type."""
    return isinstance(given, Mapping | Universe)


def _public_frame(cells: KeyedCells, table: PerturbationTable, *, is_declared: bool) -> Any:
    """The public frame of one table."""
    import pyarrow as pa

    values = _values(cells, table)
    if cells.universe is None:
        return pa.table({COUNT: arrow_numbers(values)})
    frame = cells.universe.frame().append_column(_free_name(cells.universe.columns), arrow_numbers(values))
    if not is_declared:
        frame = frame.filter(pa.array(values != 0))
    # As plain text: a dictionary would still hold the codes of the cells that were left out.
    texts = {name: frame.column(name).cast(pa.string()) for name in cells.universe.columns}
    return pa.table({**texts, frame.column_names[-1]: frame.column(frame.column_names[-1])})


def _free_name(taken: tuple[str, ...]) -> str:
    """A name for the column of counts that no column of codes has."""
    names = (COUNT, f"published_{COUNT}", *(f"published_{COUNT}_{number}" for number in range(2, len(taken) + 2)))
    return next(name for name in names if name not in taken)


def add_noise(counts: NDArray[np.int64], keys: NDArray[np.uint64], table: PerturbationTable) -> NDArray[np.int64]:
    """Counts with the noise of their cell keys; empty cells stay empty. CONFIDENTIAL input."""
    values = counts.copy()
    served = np.flatnonzero(counts)
    values[served] += table.lookup(counts[served], keys[served])
    return values


def _values(cells: KeyedCells, table: PerturbationTable) -> NDArray[np.int64]:
    counts = cells.counts
    values = add_noise(counts, cells.keys, table)
    if cells.weights is None:
        return values
    scale = 10**WEIGHT_DIGITS
    sums = zip(values.tolist(), counts.tolist(), cells.weights, strict=True)
    weighted = [rounded_ratio(value * weight, size * scale) if size else value for value, size, weight in sums]
    if any(abs(value) > LARGEST_COUNT for value in weighted):
        raise InvalidCount(
            f"A weighted count would be above {LARGEST_COUNT}, the largest that is published. Give the weights in a larger unit."
        )
    return np.array(weighted, np.int64)


def _by_codes(frame: Any, columns: tuple[str, ...]) -> dict[tuple[str, ...], int]:
    """Sums of published counts by the codes of some columns."""
    count = frame.column_names[-1]
    if not columns:
        import pyarrow.compute as pc

        return {(): pc.sum(frame.column(count)).as_py() or 0}
    import pyarrow as pa

    plain = pa.table({column: frame.column(column).cast(pa.string()) for column in columns} | {count: frame.column(count)})
    summed = plain.group_by(list(columns)).aggregate([(count, "sum")])
    codes = zip(*(summed.column(column).to_pylist() for column in columns), strict=True)
    return dict(zip(codes, summed.column(f"{count}_sum").to_pylist(), strict=True))
