"""Laplace noise of the Euclidean norm: every accept word near its threshold, laws by enumeration, bands that change nothing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.errors import InvalidParameter
from holdfast.exact.balls import enclosure, precision
from holdfast.exact.predicates import BAND, is_below
from holdfast.randomness import NoiseKey, Words
from holdfast.samplers import l2_laplace
from holdfast.samplers.l2_laplace import L2Rejection, proposal_epsilon_for
from holdfast.samplers.laplace_rejection import GridLaplace, PivotLaplace
from holdfast.testing import ALPHA, ListedWords, check_fit_categories

from .lattice_points import ODD, counted, enumerated, fit_of_sums, margin_rows

QUARTER = Fraction(1, 4)
TOTAL = np.ones((1, 3), dtype=np.int64)
PAIR = np.array([[2, -3]])
NOTHING = np.zeros((0, 3), dtype=np.int64)
ONES = 2**32 - 1


def words(label: str) -> Words:
    return NoiseKey.for_tests(label).stream("l2")


def on_rows(rows: NDArray[np.int64], epsilon: Fraction, band: float = BAND) -> L2Rejection:
    slope = proposal_epsilon_for(epsilon, rows.shape[1])
    return L2Rejection(rows.shape[1], PivotLaplace(rows, slope).draw, slope, epsilon, band=band)


@given(st.fractions(Fraction(1, 1000), 1000), st.integers(1, 10**6))
def test_proposals_are_never_lighter_than_the_target(epsilon: Fraction, cells: int) -> None:
    slope = proposal_epsilon_for(epsilon, cells)
    assert slope**2 * cells <= epsilon**2
    assert float(slope) > 0.998 * float(epsilon) / math.sqrt(cells)
    if math.isqrt(cells) ** 2 == cells:
        assert slope**2 * cells == epsilon**2


def test_a_proposal_that_is_too_light_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="proposal_epsilon_for"):
        L2Rejection(3, PivotLaplace(TOTAL, 1).draw, Fraction(6, 10), 1)
    with pytest.raises(InvalidParameter, match="cells"):
        L2Rejection(0, PivotLaplace(TOTAL, 1).draw, 1, 1)
    with pytest.raises(InvalidParameter, match="cells"):
        proposal_epsilon_for(1, 0)


VECTORS = [(0, 0, 0, 1), (1, -1, 2, 0), (3, -3, 3, -2), (7, 0, 0, 0), (40, -2, 1, 5)]
VECTORS += [(1000, -999, 1001, -1000), (10**9, 1 - 10**9, 10**9, 10**9), (10**12, 10**12, 10**12, 1)]
# Exponent near .3 as a difference of numbers near 2 * 10^9: doubles are hundreds of words off, balls must decide.
VECTORS += [(10**9 + 24495, 24495 - 10**9, 10**9, 10**9)]


@pytest.mark.parametrize("z", VECTORS)
@pytest.mark.parametrize("epsilon", [QUARTER, Fraction(1), Fraction(1, 1000)])
@pytest.mark.parametrize("band", [2.0**-4, 2.0**-20, 2.0**-40])
def test_accept_words_around_the_threshold(z: tuple[int, ...], epsilon: Fraction, band: float) -> None:
    """A word below floor(2^32 exp(-t)) accepts, one above rejects, the word itself is settled by its own extra bits."""
    slope = proposal_epsilon_for(epsilon, 4)
    sampler = L2Rejection(4, lambda n, words: np.empty((n, 4), dtype=np.int64), slope, epsilon, band=band)
    with precision(400):
        size = arb(sum(x * x for x in z)).sqrt() * arb(epsilon.numerator) / epsilon.denominator
        chance = (arb(slope.numerator) / slope.denominator * sum(map(abs, z)) - size).exp()
        low, high = enclosure(chance * arb(2) ** 32)
        deep = math.floor(enclosure(chance * arb(2) ** 160).lower)
    threshold = math.floor(low)
    assert threshold == math.floor(high)
    tail = deep - (threshold << 128)
    for word, extra, verdict in (
        (threshold - 1, ONES, True),
        (threshold + 1, 0, False),
        (threshold, tail - 1, True),
        (threshold, tail + 1, False),
        (0, 0, deep > 0),
        (ONES, ONES, False),
    ):
        if not 0 <= word <= ONES or not 0 <= extra < 2**128 or (word == extra == deep == 0):
            continue  # no such word, or zeros without end against a number below 2^-160: open for ever, of probability zero
        bits = [extra >> 96 & ONES, extra >> 64 & ONES, extra >> 32 & ONES, extra & ONES] if extra not in (0, ONES) else [extra] * 4
        listed = ListedWords([word], {(0, 0): bits})
        uniforms = listed.take(1)
        assert sampler.decide(np.array([z]), uniforms, 0, listed)[0] == verdict


def test_extra_bits_belong_to_the_word_of_their_own_try() -> None:
    """Three tries alike, all at their threshold, behind two words of something else: each is settled by its own extra bits."""
    sampler = L2Rejection(4, lambda n, words: np.empty((n, 4), dtype=np.int64), Fraction(1, 2), 1)
    with precision(400):
        threshold = math.floor(enclosure((arb(2) - arb(6).sqrt()).exp() * arb(2) ** 32).lower)
    listed = ListedWords([1, 1, threshold, threshold, threshold], {(2, 0): [0] * 4, (3, 0): [ONES] * 4, (4, 0): [0] * 4})
    uniforms = listed.take(5)[2:]
    assert sampler.decide(np.array([[1, -1, 2, 0]] * 3), uniforms, 2, listed).tolist() == [True, False, True]


def test_the_zero_vector_and_equal_cells_are_always_accepted() -> None:
    """There the exponent is 0: with four cells the two epsilons are in the exact ratio 2, and balls cannot tell the probability from 1."""
    sampler = L2Rejection(4, lambda n, words: np.empty((n, 4), dtype=np.int64), Fraction(1, 2), 1)
    values = np.array([[0, 0, 0, 0], [3, -3, 3, -3], [1, 1, 1, 1], [10**9, 10**9, -(10**9), 10**9]])
    listed = ListedWords([ONES] * 4, {(i, 0): [ONES, ONES, ONES, ONES - 1] for i in range(4)})
    assert sampler.decide(values, listed.take(4), 0, listed).all()


CASES = [
    ("total", TOTAL, QUARTER, 70),
    ("total", TOTAL, Fraction(1), 30),
    ("total", TOTAL, Fraction(3), 8),
    ("odd rows", ODD, QUARTER, 60),
    ("odd rows", ODD, Fraction(1), 30),
    ("pair", PAIR, QUARTER, 60),
    ("nothing kept", NOTHING, Fraction(1, 2), 45),
    ("nothing kept", NOTHING, Fraction(3), 10),
]


@pytest.mark.parametrize(("name", "rows", "epsilon", "reach"), CASES)
def test_draws_follow_the_enumerated_law(name: str, rows: NDArray[np.int64], epsilon: Fraction, reach: int) -> None:
    z = on_rows(rows, epsilon).draw(40_000, words(f"{name} {epsilon}"))
    assert not (z @ rows.T).any()
    law = enumerated(rows if len(rows) else np.zeros((1, 3), dtype=np.int64), epsilon, reach, norm=2)
    check_fit_categories(counted(z, epsilon), law, name=f"l2, {name}, epsilon {epsilon}")


@pytest.mark.parametrize("epsilon", [QUARTER, Fraction(1)])
def test_a_grid_taken_whole(epsilon: Fraction) -> None:
    slope = proposal_epsilon_for(epsilon, 4)
    assert slope == epsilon / 2
    sampler = L2Rejection(4, GridLaplace((2, 2), slope).draw, slope, epsilon)
    z = sampler.draw(40_000, words(f"2 x 2 {epsilon}"))
    # In this lattice |z|_1 = 2 |z|_2 everywhere: nothing is rejected.
    assert sampler.expected_tries == 1
    check_fit_categories(counted(z, epsilon), enumerated(margin_rows((2, 2)), epsilon, 40, norm=2), name=f"l2, 2 x 2, epsilon {epsilon}")


def test_a_law_one_percent_off_and_the_proposal_itself_are_seen() -> None:
    epsilon = Fraction(1)
    z = on_rows(TOTAL, epsilon).draw(800_000, words("power"))
    assert fit_of_sums(z, enumerated(TOTAL, epsilon, 30, norm=2), epsilon) >= ALPHA
    for percent in (99, 101):
        assert fit_of_sums(z, enumerated(TOTAL, epsilon, 30, norm=2, slope=epsilon * Fraction(percent, 100)), epsilon) < ALPHA
    proposals = PivotLaplace(TOTAL, proposal_epsilon_for(epsilon, 3)).draw(40_000, words("proposals"))
    assert fit_of_sums(proposals, enumerated(TOTAL, epsilon, 30, norm=2), epsilon) < ALPHA


@pytest.mark.parametrize(("rows", "epsilon"), [(TOTAL, QUARTER), (ODD, Fraction(1)), (NOTHING, Fraction(1, 10**6)), (NOTHING, Fraction(3))])
def test_the_band_changes_nothing(rows: NDArray[np.int64], epsilon: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn, positions, resolved = [], [], []
    for band_bits in (40, 20, 4):
        calls: list[int] = []
        with monkeypatch.context() as patch:
            patch.setattr(l2_laplace, "is_below", lambda *args, calls=calls: calls.append(1) or is_below(*args))
            stream = words("band")
            drawn.append(on_rows(rows, epsilon, 2.0**-band_bits).draw(2000, stream))
        positions.append(stream.position)
        resolved.append(len(calls))
    assert np.array_equal(drawn[0], drawn[1])
    assert np.array_equal(drawn[0], drawn[2])
    assert len(set(positions)) == 1
    assert resolved[2] > 50 > resolved[0], "a band of 1/16 must send many tries to the balls, a narrow one hardly any"


def test_every_try_decided_by_balls_gives_the_same_draws() -> None:
    plain = on_rows(TOTAL, QUARTER).draw(1000, words("balls"))
    assert np.array_equal(plain, on_rows(TOTAL, QUARTER, band=4.0).draw(1000, words("balls")))


def test_expected_tries_count_those_of_the_proposals() -> None:
    slope = proposal_epsilon_for(QUARTER, 3)
    proposal = PivotLaplace(TOTAL, slope)
    alone = L2Rejection(3, proposal.draw, slope, QUARTER)
    both = L2Rejection(3, proposal.draw, slope, QUARTER, proposal_tries=proposal.expected_tries)
    assert both.expected_tries == pytest.approx(alone.expected_tries * proposal.expected_tries, rel=0.2)
    assert 1 < alone.expected_tries < 2
    assert alone.draw(0, words("none")).shape == (0, 3)
