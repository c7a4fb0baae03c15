from __future__ import annotations

from fractions import Fraction

import pytest

from holdfast.testing import bracket_inverse_cdf, check_brackets

THIRDS = {k: Fraction(1, 3) for k in range(3)}


def thirds(word: Fraction) -> int:
    return int(3 * word)


def runs(bits: int) -> tuple[list[int], list[int]]:
    """floor(3u) for u = w/2^bits followed by zeros, and by ones (just below the next word)."""
    size = 1 << bits
    return [thirds(Fraction(w, size)) for w in range(size)], [thirds(Fraction(w + 1, size) - Fraction(1, 1 << 99)) for w in range(size)]


def bounds(k: int) -> tuple[Fraction, Fraction]:
    p = THIRDS.get(k, Fraction(0))
    return p, p


@pytest.mark.parametrize("bits", [2, 3, 8])
def test_a_right_sampler_is_bracketed_within_two_words(bits: int):
    lower, upper = bracket_inverse_cdf(*runs(bits))
    check_brackets(lower, upper, bounds)
    assert all(upper[k] - lower[k] <= Fraction(2, 1 << bits) for k in lower)
    assert set(lower) == {-1, 0, 1, 2, 3}


def test_by_hand():
    lower, upper = bracket_inverse_cdf([0, 0, 1, 2], [0, 1, 2, 2])
    quarter = Fraction(1, 4)
    assert [lower[k] for k in range(3)] == [quarter, 0, quarter]
    assert [upper[k] for k in range(3)] == [2 * quarter, 2 * quarter, 2 * quarter]


def test_unsettled_words_reach_their_neighbours_and_open_ends_everything():
    lower, upper = bracket_inverse_cdf([None, 0, None, 2, None])
    fifth = Fraction(1, 5)
    assert lower == {-1: 0, 0: fifth, 1: 0, 2: fifth, 3: 0}
    assert upper == {-1: fifth, 0: 3 * fifth, 1: fifth, 2: 3 * fifth, 3: fifth}


def test_a_slightly_wrong_sampler_is_found():
    """Of 256 words, one that is settled at 0 and the open one after it now give 1."""
    lows, highs = runs(8)
    lows[84:86] = highs[84:86] = [1, 1]
    with pytest.raises(AssertionError, match=r"P\[X = 0\]|P\[X = 1\]"):
        check_brackets(*bracket_inverse_cdf(lows, highs), bounds)


def test_a_value_never_reached_is_found():
    lower, upper = bracket_inverse_cdf([0, 0, 2, 2])
    assert lower[1] == upper[1] == 0
    with pytest.raises(AssertionError, match=r"P\[X = 1\]"):
        check_brackets({1: lower[1]}, {1: upper[1]}, bounds)


def test_an_enclosure_that_proves_nothing_fails():
    lower, upper = bracket_inverse_cdf(*runs(4))
    with pytest.raises(AssertionError):
        check_brackets(lower, upper, lambda k: (Fraction(0), Fraction(1)))


def test_not_monotone_is_refused():
    with pytest.raises(AssertionError, match="1 comes before 0"):
        bracket_inverse_cdf([0, 1, 0, 2])
    with pytest.raises(AssertionError, match="not monotone"):
        bracket_inverse_cdf([0, 1], [0, 0])


def test_nothing_settled_or_lengths_differ():
    with pytest.raises(ValueError, match="No word settles"):
        bracket_inverse_cdf([None, None])
    with pytest.raises(ValueError, match="Got 2 and 1"):
        bracket_inverse_cdf([0, 1], [0])
