"""What an attacker gains against cell keys, in exact numbers: by averaging answers, by differences, and from several queries of one
population, whose joint law is found by enumeration of all keys on small cases.

A query is a set of records, and its cell key the sum of their keys modulo some number, then folded where the rule says so. Records with the
same pattern, which queries they belong to, matter only through the sum of their keys. That sum is uniform as soon as there is one such
record, and sums of different patterns are independent: so one key for each pattern that occurs stands for all record keys [theory T86].
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from holdfast.cellkey.keys import CellKeys
from holdfast.cellkey.loss import Losses, Pair
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidParameter, RequestTooLarge

Law: TypeAlias = Mapping[int, Fraction]

MOST_ENUMERATED = 2**11
"""Keys whose pairs are enumerated."""

Pattern = tuple[int, ...]
"""For each query 1 where the record belongs to it, else 0."""

MOST_KEYS = 1 << 21
"""Most combinations of keys that are enumerated."""


@dataclass(frozen=True)
class Averaging:
    """Asking for one cell again and again: the variance of the mean answer, and how often the mean, rounded, is the true count.

    fresh: every answer has noise of its own. keys: the cell key method, where every answer is the same.
    """

    answers: int
    fresh_variance: Fraction
    keys_variance: Fraction
    fresh_hits: Fraction
    keys_hits: Fraction


@dataclass(frozen=True)
class Differencing:
    """Two answers about cells that are the same but for one person, who is in one of them or in none.

    The attacker knows the two cells differ by this person at most and wants to know whether the person is in. With cell keys the same
    records give the same answer: whoever sees two different answers is certain that the person is in. `unchanged`: how often the answers
    agree though the person is in. keys and fresh: how often the best guess from both answers is right, of somebody who knows the other
    records and holds both cases as likely: by cell keys, and with noise of its own in each answer. 1/2 is guessing blindly.
    """

    count: int
    unchanged: Fraction
    keys: Fraction
    fresh: Fraction


@dataclass(frozen=True)
class GapAttack:
    """Two cells and the cell of both, all published: what their gap, first + second - both, tells about noise.

    equal: how often the gap is 0. blind, guess: how often the best guess of the noise in the cell of both is right, without and with the
    gap. fresh_equal, fresh_guess: the same with noise of its own in each of the three. shown: where the second cell is published as 0 and
    so left out, how often the other two differ, which proves that it has records; None where it is never published as 0.
    """

    equal: Fraction
    blind: Fraction
    guess: Fraction
    fresh_equal: Fraction
    fresh_guess: Fraction
    shown: Fraction | None


@dataclass(frozen=True)
class Measured:
    """A share seen in simulated attacks, and its standard error."""

    trials: int
    share: Fraction
    standard_error: float


def averaging(table: PerturbationTable, count: int, answers: int) -> Averaging:
    """Exact: the law of the sum of answers is a power of a polynomial with whole coefficients. The attacker knows the law's mean."""
    from flint import fmpz_poly

    if not 1 <= answers <= 1000:
        raise InvalidParameter(f"Between 1 and 1000 answers are averaged. Got {answers}.", field="answers")
    row = table.row_of(count)
    low, high = min(row.noise), max(row.noise)
    keys = [int(row.probabilities.get(noise, Fraction(0)) * row.key_size) for noise in range(low, high + 1)]

    def hits(terms: int) -> Fraction:
        """Sums within half of their number from their mean."""
        first = math.floor(terms * (row.bias - Fraction(1, 2))) + 1 - terms * low
        last = math.ceil(terms * (row.bias + Fraction(1, 2))) - 1 - terms * low
        ways = (fmpz_poly(keys) ** terms).coeffs()
        return Fraction(sum(map(int, ways[max(first, 0) : max(last + 1, 0)])), row.key_size**terms)

    return Averaging(answers, row.variance / answers, row.variance, hits(answers), hits(1))


def differencing(table: PerturbationTable, count: int) -> Differencing:
    """Exact, for a cell with `count` records and the same cell with one more. Keys of the two are independent: the person's own key,
    which is uniform, is added to the sum. An empty cell is published as 0, as `perturb` does.

    The best guess from both answers takes the case in which they are more likely. With P and Q the laws of the answer without and with the
    person: by cell keys the pairs have P(a) [a = b] and P(a) Q(b), in fresh noise P(a) P(b) and P(a) Q(b); there the first answer tells
    nothing new to somebody who knows the other records.
    """
    without, with_person = _answer_law(table, count), _answer_law(table, count + 1)
    unchanged = sum((chance * with_person.get(value, Fraction(0)) for value, chance in without.items()), Fraction(0))
    overlap = sum((min(without[value], with_person[value]) for value in without.keys() & with_person.keys()), Fraction(0))
    return Differencing(count, unchanged, 1 - unchanged / 2, 1 - overlap / 2)


def gap_attack(table: PerturbationTable, first: int, second: int, rule: CellKeys) -> GapAttack:
    """Exact, by enumeration of the keys of both cells, which have so many records; for rules that fold nothing, of few keys."""
    size = rule.size
    if size != rule.modulus or rule.distance or not 2 <= size <= MOST_ENUMERATED:
        raise InvalidParameter(
            f"The keys of two cells are enumerated for sums that are not folded, modulo at most {MOST_ENUMERATED} and a divisor of the "
            "number of record keys.",
            field="rule",
        )
    if first < 1 or second < 1:
        raise InvalidParameter("Both cells have records: their counts are 1 or more.", field="count")
    keys = rule.fold(np.arange(size, dtype=np.uint64))
    one, other, both = (table.lookup(np.full(size, count), keys, key_size=size) for count in (first, second, first + second))
    sums = (np.arange(size)[:, None] + np.arange(size)[None, :]) % size
    total = both[sums]
    gap = one[:, None] + other[None, :] - total
    pairs = Counter(zip(gap.ravel().tolist(), total.ravel().tolist(), strict=True))
    fresh: Counter[tuple[int, int]] = Counter()
    laws = [Counter(noise.tolist()) for noise in (one, other, both)]
    for (a, m), (b, n), (c, k) in product(*(law.items() for law in laws)):
        fresh[a + b - c, c] += m * n * k
    is_left_out = other == -second
    differs = (second + total - one[:, None] != 0)[:, is_left_out]
    shown = Fraction(int(np.count_nonzero(differs)), differs.size) if differs.size else None
    (equal, guess), (fresh_equal, fresh_guess) = _of_gaps(pairs, size**2), _of_gaps(fresh, size**3)
    return GapAttack(equal, Fraction(max(laws[2].values()), size), guess, fresh_equal, fresh_guess, shown)


def _of_gaps(pairs: Mapping[tuple[int, int], int], ways: int) -> tuple[Fraction, Fraction]:
    """How often the gap is 0, and how often the noise that is most frequent with a gap is the one, from numbers of (gap, noise)."""
    best: dict[int, int] = {}
    for (gap, _), number in pairs.items():
        best[gap] = max(best.get(gap, 0), number)
    return Fraction(sum(number for (gap, _), number in pairs.items() if gap == 0), ways), Fraction(sum(best.values()), ways)


def measured_differencing(table: PerturbationTable, count: int, rule: CellKeys, trials: int, seed: int) -> Measured:
    """The same attack on simulated cells: records' keys drawn, summed and folded, the person in half of the cells, noise looked up.

    The random numbers are NumPy's and not secret: this shows a rate, it protects nothing.
    """
    rng = np.random.default_rng(seed)
    others = np.zeros(trials, object)
    for _ in range(count):
        others += rng.integers(0, rule.records.size, trials, dtype=np.uint64).astype(object)
    person = rng.integers(0, rule.records.size, trials, dtype=np.uint64).astype(object)
    present = rng.random(trials) < 0.5
    first = _answers(table, rule, others, np.full(trials, count))
    second = _answers(table, rule, others + np.where(present, person, 0), count + present.astype(np.int64))
    right = int(np.count_nonzero((first != second) == present))
    share = Fraction(right, trials)
    return Measured(trials, share, float(share * (1 - share) / trials) ** 0.5)


def _answers(table: PerturbationTable, rule: CellKeys, sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    keys = rule.fold((sums % rule.modulus).astype(np.uint64))
    filled = np.flatnonzero(counts)
    answers = counts.copy()
    answers[filled] += table.lookup(counts[filled], keys[filled], key_size=rule.size)
    return answers


def _answer_law(table: PerturbationTable, count: int) -> Law:
    if count == 0:
        return {0: Fraction(1)}
    return {count + noise: chance for noise, chance in table.row_of(count).probabilities.items()}


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
        values.append(_published_values(table, count, (total % size).astype(np.uint64), rule))
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


def _published_values(table: PerturbationTable, count: int, sums: NDArray[np.uint64], rule: CellKeys | None) -> NDArray[np.int64]:
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
