from __future__ import annotations

from fractions import Fraction

import pytest
from flint import arb

from holdfast.testing.words import FairBits
from tests.testing.explore import choose_coin, enclosure, explore_bits, explore_choices


def third(bits: FairBits) -> int:
    """0 with probability 2/3, 1 with probability 1/3, by rejecting the fourth of four."""
    while (value := bits.bits(2)) == 3:
        pass
    return int(value == 2)


def test_bits_bracket_a_probability_by_what_is_left_open():
    lower, upper = explore_bits(third, 6)
    left = Fraction(1, 4**3)
    assert lower == {0: Fraction(2, 3) * (1 - left), 1: Fraction(1, 3) * (1 - left)}
    assert upper == {k: lower[k] + left for k in lower}


def test_choices_bracket_a_chain_of_coins():
    lower, upper = explore_choices(lambda bits: 2 * choose_coin(arb(1) / 3, bits) + choose_coin(arb(1) / 5, bits), 100)
    for value, p in enumerate([Fraction(8, 15), Fraction(2, 15), Fraction(4, 15), Fraction(1, 15)]):
        assert lower[value] <= p <= upper[value]
        assert upper[value] - lower[value] < Fraction(1, 10**60)


def test_rounds_of_rejection_are_left_out_of_the_law():
    def uneven(bits: FairBits) -> int:
        while True:
            value = bits.below(3)
            if value < 2 and choose_coin(arb(1) / (value + 2), bits):
                return value

    lower, upper = explore_choices(uneven, 100)
    assert lower[0] <= Fraction(3, 5) <= upper[0]
    assert lower[1] <= Fraction(2, 5) <= upper[1]
    assert upper[0] - lower[0] < Fraction(1, 10**60)


def test_few_runs_leave_wide_but_true_bounds():
    def geometric(bits: FairBits) -> int:
        count = 0
        while choose_coin(arb(1) / 2, bits):
            count += 1
        return count

    lower, upper = explore_choices(geometric, 12)
    assert all(lower[k] <= Fraction(1, 2 ** (k + 1)) <= upper[k] for k in lower)
    assert upper[0] - lower[0] > Fraction(1, 1000)


def test_ends_of_a_ball():
    low, high = enclosure(arb(1) / 3)
    assert low < Fraction(1, 3) < high
    assert float(low) == pytest.approx(1 / 3)
