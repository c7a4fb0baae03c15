"""What an attacker gains against cell keys, in exact numbers: by averaging answers, and by differences. joint.py has others."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TypeAlias

import numpy as np

from holdfast.cellkey.keys import CellKeys
from holdfast.cellkey.table import PerturbationTable
from holdfast.errors import InvalidParameter

Law: TypeAlias = Mapping[int, Fraction]

MOST_ENUMERATED = 2**11
"""Keys whose pairs are enumerated."""


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
