"""Pairings of two laws: margins, how good they are, and the draws enumerated on words that cut the unit interval evenly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chains.coupled_line import Residual, draw_maximal, draw_quantile
from holdfast.chains.line import Line
from holdfast.chains.target import Decay
from holdfast.exact.table import certified_thresholds
from holdfast.exact.weights import FixedWeights, ListedSource
from holdfast.randomness import NoiseKey
from holdfast.testing import ListedWords, all_words

from .transitions import Joint, maximal_joint, normalise, quantile_joint

laws = st.dictionaries(st.integers(-4, 4), st.integers(1, 9).map(Fraction), min_size=1)


def margins(joint: Joint) -> tuple[dict[int, Fraction], dict[int, Fraction]]:
    first: dict[int, Fraction] = {}
    second: dict[int, Fraction] = {}
    for (x, y), mass in joint.items():
        first[x] = first.get(x, Fraction(0)) + mass
        second[y] = second.get(y, Fraction(0)) + mass
    return first, second


@given(laws, laws)
def test_both_pairings_have_the_right_margins_and_are_the_best_of_their_kind(p: dict[int, Fraction], q: dict[int, Fraction]) -> None:
    alone = normalise(p), normalise(q)
    maximal, quantile = maximal_joint(p, q), quantile_joint(p, q)
    assert margins(maximal) == alone
    assert margins(quantile) == alone
    points = range(-4, 5)
    distance = sum(abs(alone[0].get(k, Fraction(0)) - alone[1].get(k, Fraction(0))) for k in points) / 2
    assert sum(mass for (x, y), mass in maximal.items() if x != y) == distance
    below = [[sum(law.get(j, Fraction(0)) for j in range(-4, k + 1)) for k in points] for law in alone]
    assert sum(mass * abs(x - y) for (x, y), mass in quantile.items()) == sum(abs(a - b) for a, b in zip(*below, strict=True))


P = [8, 4, 2, 2]
Q = [4, 4, 4, 4]
R = [0, 2, 6, 8]
"""In sixteenths: every threshold of the pairings of P with Q, and of Q with R, is a multiple of 1/16."""


def source(weights: list[int]) -> ListedSource:
    return ListedSource(0, [Fraction(w) for w in weights])


def listed(weights: list[int]) -> dict[int, Fraction]:
    return {k: Fraction(w) for k, w in enumerate(weights) if w}


@pytest.mark.parametrize(("p", "q"), [(P, Q), (Q, P), (P, P)])
def test_the_maximal_draw_has_its_joint_law_over_all_words_of_four_bits(p: list[int], q: list[int]) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    rows = all_words(4, 3, shift=28)
    for row in rows:
        words = ListedWords(row, default_extra=1)  # a word on a threshold lies just above it
        counts[draw_maximal(source(p), source(q), words)] += 1
        assert words.position == 3
    assert {pair: Fraction(n, len(rows)) for pair, n in counts.items()} == maximal_joint(listed(p), listed(q))


@pytest.mark.parametrize(("p", "q"), [(P, Q), (Q, R), (R, P)])
def test_the_quantile_draw_has_its_joint_law_over_all_words_of_four_bits(p: list[int], q: list[int]) -> None:
    counts: Counter[tuple[int, int]] = Counter()
    for row in all_words(4, 1, shift=28):
        words = ListedWords(row, default_extra=1)  # a word on a threshold lies just above it
        counts[draw_quantile(source(p), source(q), words)] += 1
        assert words.position == 1
    assert {pair: Fraction(n, 16) for pair, n in counts.items()} == quantile_joint(listed(p), listed(q))


def test_the_residual_of_two_near_laws_is_still_known_to_all_bits() -> None:
    """Two lines whose laws differ by some 2^-60: the residual's thresholds against those of a slow sum in fractions."""
    base = Fraction(1) - Fraction(1, 1 << 60)
    p = Line(Decay("absolute", Fraction(1), base), (0,), (1,), 0, 0, 3)
    q = Line(Decay("absolute", Fraction(1), base), (0, 0), (-1, -1), 0, 0, 3)
    alone = normalise(p.exact_weights()), normalise(q.exact_weights())
    left = [max(Fraction(0), alone[1][k] - alone[0][k]) for k in range(4)]
    found = certified_thresholds(Residual(q, p), 32)
    total, running = sum(left), Fraction(0)
    for k, (low, high) in enumerate(zip(found.lows, found.values, strict=True)):
        running += left[found.first + k]
        exact = min(int(running / total * (1 << 32)), (1 << 32) - 1)
        assert low <= exact <= high


def test_identical_laws_give_identical_draws() -> None:
    line = Line(Decay("norm", Fraction(2)), (3, -2), (1, -1), 7)
    words = NoiseKey.for_tests("identical laws").stream("words")
    pairs = [draw_maximal(line, line, words) for _ in range(12)] + [draw_quantile(line, line, words) for _ in range(12)]
    assert all(x == y for x, y in pairs)
    assert len({x for x, _ in pairs}) > 2


HALF = Fraction(1, 2)
WIDE = (Line(Decay("absolute", Fraction(1), HALF), (0,), (1,), 0), Fraction(1, 3), HALF)
NARROW = (Line(Decay("absolute", Fraction(1), HALF), (0, 0), (1, 1), 0), Fraction(3, 5), HALF**2)
"""Lines without ends, with masses c a^|k|: (line, c, a)."""


@pytest.mark.parametrize("working", [6, 24, 90])
@pytest.mark.parametrize(("q", "p"), [(WIDE, NARROW), (NARROW, WIDE)])
def test_the_bounds_of_a_residual_hold(working: int, q: tuple[Line, Fraction, Fraction], p: tuple[Line, Fraction, Fraction]) -> None:
    """Every mass max(0, q - p) between its bounds; what lies beyond the list below its own bound, on each side."""
    found = Residual(q[0], p[0]).bounds(working)
    stop = found.first + len(found.lows)
    assert found.first < 0 < stop

    def left(k: int) -> Fraction:
        return max(Fraction(0), q[1] * q[2] ** abs(k) - p[1] * p[2] ** abs(k)) * (1 << working)

    for k, low, high in zip(range(found.first, stop), found.lows, found.highs, strict=True):
        assert low <= left(k) <= high
    for beyond, (low, high) in ((1 - found.first, found.left_tail), (stop, found.right_tail)):
        # both laws fall geometrically, and beyond the list one of them lies above the other throughout
        assert beyond > 2
        rest = q[1] * q[2] ** beyond / (1 - q[2]) - p[1] * p[2] ** beyond / (1 - p[2])
        assert low <= max(Fraction(0), rest) * (1 << working) <= high


def test_what_a_law_leaves_unlisted_is_not_taken_for_nothing() -> None:
    """q has half its mass at 200, where p's list has ended: p's mass there is known by its tail only, and q's keeps its own bounds."""
    q, p = source([1] + [0] * 199 + [1]), WIDE[0]
    found = Residual(q, p).bounds(6)
    assert found.lows[200 - found.first] < 32
    assert found.highs[200 - found.first] >= 32


class Loose:
    """A law of which little is known: a weight between 8 and 16 at 0, and at most 4 beyond it, on the right."""

    def fixed_weights(self, bits: int, guard: int) -> FixedWeights:
        return FixedWeights(0, [8], [16], (0, 0), (0, 4))


def test_a_tail_is_divided_by_the_least_total_there_may_be() -> None:
    found = Residual(Loose(), source([1])).bounds(6)
    assert found.right_tail == (0, 4 * 64 // 8)
    assert (found.lows, found.highs) == ([0], [64])
