"""Several queries of one population: the joint law of their published values, by enumeration of all keys on small cases.

A query is a set of records, and its cell key the sum of their keys modulo key_size. Records with the same pattern, which queries they
belong to, matter only through the sum of their keys. That sum is uniform as soon as there is one such record, and sums of different
patterns are independent: so one key for each pattern that occurs stands for all record keys [theory T86].
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from holdfast.cellkey.loss import Losses, Pair
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidParameter, RequestTooLarge

Pattern = tuple[int, ...]
"""For each query 1 where the record belongs to it, else 0."""

MOST_KEYS = 1 << 21
"""Most combinations of keys that are enumerated."""


def joint_law(table: PerturbationTable, records: Mapping[Pattern, int]) -> dict[tuple[int, ...], Fraction]:
    """The exact joint law of the published values of all queries, over the draw of the record keys.

    Given:       records: pattern -> how many records have it. Made-up ones: messages name counts.
    """
    queries = _queries(records)
    present = [pattern for pattern, many in records.items() if many]
    counts = [sum(many for pattern, many in records.items() if pattern[query]) for query in range(queries)]
    size = table.key_size
    if size ** len(present) > MOST_KEYS:
        raise RequestTooLarge(
            f"{len(present)} patterns with {size} keys each have more than {MOST_KEYS} combinations. Use fewer patterns, or fewer keys by "
            "table.rescaled."
        )
    keys = np.indices((size,) * len(present)).reshape(len(present), -1)
    values = []
    for query, count in enumerate(counts):
        total = sum((keys[place] for place, pattern in enumerate(present) if pattern[query]), np.zeros(size ** len(present), np.int64))
        table.row_of(count)  # a refusal names the count: here they are made up
        values.append(count + table.lookup(np.full(total.shape, count), total % size))
    found, times = np.unique(np.array(values), axis=1, return_counts=True)
    return {tuple(map(int, value)): Fraction(int(many), size ** len(present)) for value, many in zip(found.T, times, strict=True)}


def joint_losses(table: PerturbationTable, records: Mapping[Pattern, int], added: Pattern) -> Losses:
    """(epsilon, delta) of all answers together, for a population and the same with one record of the pattern `added` more.

    It may be far above what the same number of independent answers would have: where two queries have the same records, they have the same
    noise, and one record more in one of them shows at once.
    """
    queries = _queries({**records, added: 1})
    without, with_one = joint_law(table, records), joint_law(table, {**records, added: records.get(added, 0) + 1})
    place = {value: k for k, value in enumerate(sorted(without.keys() | with_one.keys()))}
    laws = ({place[value]: chance for value, chance in law.items()} for law in (without, with_one))
    return Losses((Pair(0, *laws),), at_least=0, queries=queries)


def _queries(records: Mapping[Pattern, int]) -> int:
    lengths = {len(pattern) for pattern in records}
    if len(lengths) != 1 or lengths == {0}:
        raise InvalidParameter("Every pattern needs one 0 or 1 for each query, and there must be at least one pattern and one query.")
    if any(entry not in (0, 1) for pattern in records for entry in pattern) or any(many < 0 for many in records.values()):
        raise InvalidParameter("Patterns consist of 0 and 1, and numbers of records are zero or more.")
    return lengths.pop()
