"""What a budget means for a guess about one person, as a number that anyone can picture."""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.privacy.parameters import format_up

CERTAIN_EPSILON = 50
"""From here on the bound is 1 to any number of digits that a page shows."""


def right_guesses(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The largest share of right guesses which of two tables, both equally likely before, is the true one; rounded up to a thousandth.

    Law:         1 - (1 - delta) / (1 + e^epsilon), for any way to guess from what is published [theory T190].
    """
    if delta >= 1 or epsilon >= CERTAIN_EPSILON:
        return Fraction(1)
    with precision(128):
        share = enclosure(1 - ball(1 - delta) / (1 + ball(epsilon).exp())).upper
    return min(Fraction(1), Fraction(math.ceil(share * 1000), 1000)) if epsilon or delta else Fraction(1, 2)


def largest_odds(epsilon: Fraction, delta: Fraction) -> str:
    """The odds that belong to the largest share of right guesses, (e^epsilon + delta) / (1 - delta), to four digits, rounded up.

    Where delta is 0 this is the factor that the promise names.
    """
    if delta >= 1 or epsilon >= CERTAIN_EPSILON:
        return "infinity"
    with precision(128):
        return format_up(enclosure((ball(epsilon).exp() + ball(delta)) / ball(1 - delta)).upper, 4)
