"""What a budget means for a guess about one person, as a number that anyone can picture."""

from __future__ import annotations

import math
from fractions import Fraction

from holdfast.exact.balls import ball, enclosure, precision

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
