"""What a budget means for a guess about one person, as a number that anyone can picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from holdfast.exact.balls import ball, enclosure, precision
from holdfast.exact.formatting import format_number, format_up
from holdfast.privacy.guarantee import Guarantee

CERTAIN_EPSILON = 50
"""From here on the bound is 1 to any number of digits that a page shows."""
LITTLE = Fraction(99, 100)
"""The share of right guesses above which a budget protects little: odds of 99 to 1, which an epsilon of 4.6 allows."""


@dataclass(frozen=True)
class Guess:
    """A guess which of two tables, both equally likely before, is the true one, made from what is published [theory T190].

    Law:  right with probability at most (1 + d) / 2, d the largest total variation distance that the promise allows: by epsilon and delta
          at most 1 - 2 (1 - delta) / (1 + e^epsilon), by rho at most sqrt(rho / 2) and sqrt(1 - e^-rho). The least of these counts.
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None

    @classmethod
    def of(cls, guarantee: Guarantee) -> Guess:
        """About one of what is protected; where none can change alone, about the two nearest tables."""
        promise = guarantee.per_person() or guarantee.per_smallest_secret()
        return cls(Fraction(promise.epsilon), Fraction(promise.delta), promise.rho if promise.kind == "zcdp" else None)

    @property
    def right(self) -> Fraction:
        """The largest share of right guesses; rounded up to a thousandth."""
        if not (self.epsilon or self.delta):
            return Fraction(1, 2)
        with precision(128):
            wrong = self._wrong()
            share = Fraction(1) if wrong is None else enclosure(1 - wrong).upper
        return min(Fraction(1), Fraction(math.ceil(share * 1000), 1000))

    @property
    def odds(self) -> str:
        """The odds of that share, to four digits, rounded up; where delta is 0 the factor that the promise names."""
        if not (self.epsilon or self.delta):
            return "1"
        with precision(128):
            wrong = self._wrong()
            return "infinity" if wrong is None else format_up(enclosure((1 - wrong) / wrong).upper, 4)

    @property
    def every_outcome(self) -> bool:
        """Whether these odds bound what any single publication may tell; else they hold on average over all that may be published."""
        return not self.delta and self.rho is None

    def _wrong(self) -> arb | None:
        """The least share of wrong guesses; None where it is nothing that a page could show."""
        found = []
        if self.delta < 1 and self.epsilon < CERTAIN_EPSILON:
            found.append(ball(1 - self.delta) / (1 + ball(self.epsilon).exp()))
        if self.rho is not None and self.rho < CERTAIN_EPSILON:
            apart = [ball(self.rho / 2).sqrt()] if self.rho < 2 else []
            found += [(1 - distance) / 2 for distance in (*apart, (1 - (-ball(self.rho)).exp()).sqrt())]
        return max(found, key=lambda share: enclosure(share).lower) if found else None


def hundredths(share: Fraction) -> str:
    """59.5, of a share of .595: a share in thousandths, so that nothing is rounded."""
    return format_number(float(100 * share))


def weak_sentence(guarantee: Guarantee) -> str | None:
    """Say that a budget protects little; None where it protects more, or is no differential privacy."""
    guess = Guess.of(guarantee)
    if guarantee.keyed is not None or guess.right <= LITTLE:
        return None
    about = f"about one {guarantee.protect}" if guarantee.person is not None else "which of the two nearest tables is the true one"
    told = "more than 1,000,000,000,000" if guess.odds == "infinity" else guess.odds
    odds = format_number(int(told)) if told.isdecimal() else told
    return (
        f"LITTLE IS PROTECTED by so large a budget. A best guess {about}, right 50 of 100 times without the table, can be right "
        f"{hundredths(guess.right)} of 100 times with it. That is odds of {odds} to 1."
    )
