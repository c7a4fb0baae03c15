"""Several queries of one population: the joint law of their published values, by enumeration of all keys on small cases.

A query is a set of records, and its cell key the sum of their keys modulo some number, then folded where the rule says so. Records with the
same pattern, which queries they belong to, matter only through the sum of their keys. That sum is uniform as soon as there is one such
record, and sums of different patterns are independent: so one key for each pattern that occurs stands for all record keys [theory T86].
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys
from holdfast.cellkey.loss import Losses, Pair
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidParameter, RequestTooLarge

Pattern = tuple[int, ...]
"""For each query 1 where the record belongs to it, else 0."""

MOST_KEYS = 1 << 21
"""Most combinations of keys that are enumerated."""


def joint_law(table: PerturbationTable, records: Mapping[Pattern, int], rule: CellKeys | None = None) -> dict[tuple[int, ...], Fraction]:
    """The exact joint law of the published values of all queries, over the draw of the record keys.

    Given:       records: pattern -> how many records have it. Made-up ones: messages name counts. rule: how cell keys are made of record
                 keys; by default their sum modulo the table's key size. Sums that are folded by XOR have another joint law. A query
                 without records is published as 0, as `perturb` does.
    """
    queries = _queries(records)
    present = [pattern for pattern, many in records.items() if many]
    counts = [sum(many for pattern, many in records.items() if pattern[query]) for query in range(queries)]
    size = table.key_size if rule is None else _even_modulus(rule)
    if size ** len(present) > MOST_KEYS:
        raise RequestTooLarge(
            f"{len(present)} patterns with {size} keys each have more than {MOST_KEYS} combinations. Use fewer patterns, or fewer keys by "
            "table.rescaled."
        )
    keys = np.indices((size,) * len(present)).reshape(len(present), size ** len(present))
    values = []
    for query, count in enumerate(counts):
        total = sum((keys[place] for place, pattern in enumerate(present) if pattern[query]), np.zeros(size ** len(present), np.int64))
        values.append(_answers(table, count, (total % size).astype(np.uint64), rule))
    found, times = np.unique(np.array(values), axis=1, return_counts=True)
    return {tuple(map(int, value)): Fraction(int(many), size ** len(present)) for value, many in zip(found.T, times, strict=True)}


def joint_losses(table: PerturbationTable, records: Mapping[Pattern, int], added: Pattern, rule: CellKeys | None = None) -> Losses:
    """(epsilon, delta) of all answers together, for a population and the same with one record of the pattern `added` more.

    It may be far above what the same number of independent answers would have: where two queries have the same records, they have the same
    noise, and one record more in one of them shows at once.
    """
    queries = _queries({**records, added: 1})
    if not any(added):
        raise InvalidParameter("The record added belongs to no query, so no answer changes. Its pattern needs a 1.", field="added")
    without, with_one = (joint_law(table, given, rule) for given in (records, {**records, added: records.get(added, 0) + 1}))
    if queries == 1:
        count = records.get((1,), 0)
        alone = ({value: chance for (value,), chance in law.items()} for law in (without, with_one))
        return Losses((Pair(count, *alone),), is_open=False, key_size=table.key_size if rule is None else rule.size)
    place = {value: k for k, value in enumerate(sorted(without.keys() | with_one.keys()))}
    laws = ({place[value]: chance for value, chance in law.items()} for law in (without, with_one))
    return Losses((Pair(0, *laws),), is_open=False, queries=queries)


def _even_modulus(rule: CellKeys) -> int:
    if rule.records.size % rule.modulus:
        raise InvalidParameter(
            f"Sums modulo {rule.modulus} of keys from 0 to {rule.records.size - 1} are not quite uniform, so one key does not stand for "
            "the records of a pattern. Take a modulus that divides the number of record keys.",
            field="rule",
        )
    return rule.modulus


def _answers(table: PerturbationTable, count: int, sums: NDArray[np.uint64], rule: CellKeys | None) -> NDArray[np.int64]:
    if count == 0:
        return np.zeros(len(sums), np.int64)
    table.row_of(count)  # a refusal names the count: here they are made up
    keys, size = (sums, None) if rule is None else (rule.fold(sums), rule.size)
    return count + table.lookup(np.full(len(sums), count), keys, key_size=size)


def _queries(records: Mapping[Pattern, int]) -> int:
    lengths = {len(pattern) for pattern in records}
    if len(lengths) != 1 or lengths == {0}:
        raise InvalidParameter("Every pattern needs one 0 or 1 for each query, and there must be at least one pattern and one query.")
    if any(entry not in (0, 1) for pattern in records for entry in pattern) or any(many < 0 for many in records.values()):
        raise InvalidParameter("Patterns consist of 0 and 1, and numbers of records are zero or more.")
    return lengths.pop()
