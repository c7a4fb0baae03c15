"""Noise of the cell key method: looked up for cells whose counts and keys are given, and what fixes it.

The same records get the same noise in every table and on every day.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys, CellKeySums
from holdfast.cellkey.published import NoiseFacts
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidCount, InvalidParameter
from holdfast.tables.columns import COUNT_LIMIT

WEIGHT_DIGITS = 6
"""Digits of a weight after the point. Weights are added up exactly."""
LARGEST_COUNT = COUNT_LIMIT - 1
"""Largest count of a cell and of all cells together, so that adding noise stays within 64 bits."""


def noise_facts(rule: CellKeys, table: PerturbationTable, given: CellKeySums) -> NoiseFacts:
    """What fixes the noise of a set of records."""
    said = f"record_keys {rule.records}, modulus {rule.modulus}, size {rule.size}, mixed {rule.mixed}"
    return NoiseFacts(given.secret, given.column, said, table_digest(table))


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


def has_same_law(table: PerturbationTable, rescaled: PerturbationTable) -> bool:
    """Whether every count has the same noise with the same probabilities."""
    return all(rescaled.rows[count].probabilities == row.probabilities for count, row in table.rows.items())


def add_noise(counts: NDArray[np.int64], given: CellKeySums, table: PerturbationTable, rule: CellKeys) -> NDArray[np.int64]:
    """Counts with the noise of their cell keys, then times the mean weight where there are weights; empty cells stay empty. CONFIDENTIAL
    input.
    """
    values = counts.copy()
    served = np.nonzero(counts)
    values[served] += table.lookup(counts[served], rule.cell_keys(given)[served])
    if given.weights is None:
        return values
    scale = 10**WEIGHT_DIGITS
    sums = zip(values.ravel().tolist(), counts.ravel().tolist(), given.weights.ravel().tolist(), strict=True)
    weighted = [rounded_ratio(value * weight, size * scale) if size else value for value, size, weight in sums]
    if any(abs(value) > LARGEST_COUNT for value in weighted):
        raise InvalidCount(
            f"A weighted count would be above {LARGEST_COUNT}, the largest that is published. Give the weights in a larger unit."
        )
    return np.array(weighted, np.int64).reshape(counts.shape)


def rounded_ratio(numerator: int, denominator: int) -> int:
    """The nearest whole number, the even one of two that are equally near."""
    low = numerator // denominator
    twice = 2 * (numerator - low * denominator)
    return low + (twice > denominator or (twice == denominator and low % 2 == 1))
