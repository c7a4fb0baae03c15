"""Several queries: the joint law against every assignment of record keys, and what it shows about composition and differencing."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from holdfast.cellkey import CellKeys, KeySpace, PerturbationTable, max_entropy
from holdfast.errors import InvalidParameter, RequestTooLarge
from holdfast.research.attacks import joint_law, joint_losses

TABLE = PerturbationTable.from_probabilities(
    {0: {0: 1}, 1: {-1: "3/8", 0: "3/8", 1: "1/8", 2: "1/8"}, 2: {-2: "1/8", -1: "1/4", 0: "1/4", 1: "1/4", 2: "1/8"}}, 8
)


def by_every_key(records: dict[tuple[int, ...], int]) -> dict[tuple[int, ...], Fraction]:
    """One key for every record, all combinations."""
    people = [pattern for pattern, many in records.items() for _ in range(many)]
    queries = len(next(iter(records)))
    seen: Counter[tuple[int, ...]] = Counter()
    for keys in product(range(TABLE.key_size), repeat=len(people)):
        values = []
        for query in range(queries):
            mine = [key for key, pattern in zip(keys, people, strict=True) if pattern[query]]
            values.append(len(mine) + int(TABLE.lookup(np.array([len(mine)]), np.array([sum(mine) % TABLE.key_size]))[0]))
        seen[tuple(values)] += 1
    return {value: Fraction(many, TABLE.key_size ** len(people)) for value, many in seen.items()}


@pytest.mark.parametrize(
    "records", [{(1, 1): 2}, {(1, 0): 1, (1, 1): 1}, {(1, 0): 2, (0, 1): 1}, {(1, 0): 1, (0, 1): 1, (1, 1): 1}, {(0, 1): 2}]
)
def test_one_key_for_each_pattern_stands_for_all_records(records: dict[tuple[int, ...], int]) -> None:
    assert joint_law(TABLE, records) == by_every_key(records)


def test_each_query_alone_has_the_law_of_its_row() -> None:
    law = joint_law(TABLE, {(1, 0): 1, (1, 1): 2, (0, 1): 3})
    for query, count in ((0, 3), (1, 5)):
        alone: Counter[int] = Counter()
        for value, chance in law.items():
            alone[value[query]] += chance  # type: ignore[assignment]
        assert alone == {count + v: chance for v, chance in TABLE.row_of(count).probabilities.items()}


def test_asking_again_gains_nothing() -> None:
    """The same records in both queries before and after: the pair says what one answer says."""
    single = TABLE.epsilon_delta()
    for n in (1, 2, 3):
        both = joint_losses(TABLE, {(1, 1): n}, (1, 1))
        one = joint_losses(TABLE, {(1,): n}, (1,))
        for epsilon in (0, "1/2", 2):
            assert both.delta_bounds(epsilon) == one.delta_bounds(epsilon)
            assert one.delta_bounds(epsilon).upper <= single.delta_bounds(epsilon).upper


def test_queries_with_records_of_their_own_are_independent() -> None:
    law = joint_law(TABLE, {(1, 0): 1, (0, 1): 2, (1, 1): 1})
    p, q = TABLE.row_of(2).probabilities, TABLE.row_of(3).probabilities
    assert law == {(2 + v, 3 + w): a * b for v, a in p.items() for w, b in q.items()}
    # Then a record in both queries costs what two independent answers cost: more than one, and less than anything shown for sure.
    both = joint_losses(TABLE, {(1, 0): 1, (0, 1): 2, (1, 1): 1}, (1, 1))
    assert joint_losses(TABLE, {(1,): 2}, (1,)).delta_bounds(1).upper < both.delta_bounds(1).lower


def test_differencing_shows_a_single_record() -> None:
    """Two queries that differ in the one record at stake: equal answers without it, hardly ever with it. No epsilon helps."""
    table = max_entropy(2, 1).quantised(64)
    losses = joint_losses(table, {(1, 1): 3}, (1, 0))
    without = joint_law(table, {(1, 1): 3})
    assert all(a == b for a, b in without)
    with_one = joint_law(table, {(1, 1): 3, (1, 0): 1})
    shown = sum(chance for (a, b), chance in with_one.items() if a != b)
    assert losses.plateau_bounds == (shown, shown)
    assert shown > Fraction(7, 10)
    assert table.epsilon_delta().plateau == 5 / 64  # one answer alone


@pytest.mark.parametrize(
    ("records", "error", "says"),
    [
        ({}, InvalidParameter, "at least one pattern"),
        ({(1,): 1, (1, 0): 1}, InvalidParameter, "one 0 or 1 for each query"),
        ({(2,): 1}, InvalidParameter, "0 and 1"),
        ({(1,): -1}, InvalidParameter, "zero or more"),
        ({tuple(map(int, f"{k:03b}")): 1 for k in range(1, 8)} | {(0, 0, 0): 1}, RequestTooLarge, "combinations"),
    ],
)
def test_bad_patterns(records: dict[tuple[int, ...], int], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        joint_law(TABLE, records)


@pytest.mark.parametrize("records", [{(1, 0, 1): 1, (0, 1, 1): 1}, {(1, 1): 1, (0, 1): 1}, {(1, 0): 1, (0, 1): 1, (0, 0): 0}])
def test_folded_keys_have_a_joint_law_of_their_own(records: dict[tuple[int, ...], int]) -> None:
    """Every assignment of record keys, with the sums folded by XOR as `CellKeys.of` does it."""
    rule = CellKeys(KeySpace(16), size=4)
    table = PerturbationTable.from_upper_bounds({n: [(-1, 1), (0, 3), (1, 4)] for n in (1, 2, 3)}, 4)
    members = [pattern for pattern, many in records.items() for _ in range(many)]
    seen: Counter[tuple[int, ...]] = Counter()
    for keys in product(range(16), repeat=len(members)):
        answer = []
        for query in range(len(members[0])):
            cell = [key for key, pattern in zip(keys, members, strict=True) if pattern[query]]
            answer.append(len(cell) + int(table.lookup(np.array([len(cell)]), np.array([rule.of(cell)]))[0]))
        seen[tuple(answer)] += 1
    by_hand = {answer: Fraction(often, 16 ** len(members)) for answer, often in seen.items()}
    assert joint_law(table, records, rule) == by_hand
    if len(members[0]) == 3:  # the third key is a function of the other two only before folding
        assert joint_law(table, records) != by_hand


def test_an_uneven_modulus_is_refused() -> None:
    table = max_entropy(2, 1).quantised(61)
    with pytest.raises(InvalidParameter, match="not quite uniform"):
        joint_law(table, {(1,): 3}, CellKeys(KeySpace(2**22), modulus=61))


def test_a_query_without_records_is_published_as_zero() -> None:
    table = max_entropy(1, "1/2").quantised(64)
    assert joint_law(table, {(1, 0): 2}) == {(2 + v, 0): chance for v, chance in table.row_of(2).probabilities.items()}
    assert joint_law(table, {(1,): 0}) == {(0,): Fraction(1)}
    losses = joint_losses(table, {(1, 0): 1, (0, 1): 0}, (0, 1))
    assert losses.delta_bounds(9).lower >= 1 - table.row_of(1).probabilities[-1]


def test_one_query_is_a_pair_of_counts() -> None:
    """Its values are counts, so that what is said of them is true: which counts, and what zeros show."""
    for n in (0, 1, 2):
        losses = joint_losses(TABLE, {(1,): n}, (1,))
        (pair,) = losses.pairs
        assert (pair.count, losses.runs, losses.key_size) == (n, ((n, n + 1),), 8)
        assert pair.upper == {n + 1 + v: chance for v, chance in TABLE.row_of(n + 1).probabilities.items()}
        assert (losses.zero_shown is not None) == (n == 0)
    first = joint_losses(TABLE, {(1,): 0}, (1,)).zero_shown
    assert first is not None
    assert first == (Fraction(5, 8), Fraction(5, 8))


def test_a_record_in_no_query_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="belongs to no query"):
        joint_losses(TABLE, {(1, 1): 2}, (0, 0))


def test_counts_without_a_row() -> None:
    with pytest.raises(InvalidParameter, match="Count 1 has no row"):
        joint_law(max_entropy(2, 1).quantised(64), {(1,): 1})
