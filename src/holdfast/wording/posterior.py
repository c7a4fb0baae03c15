"""What a reader may come to believe, for readers who know no mathematics."""

from __future__ import annotations

from fractions import Fraction

from holdfast.exact.parameters import Exact
from holdfast.privacy.accounting.posterior import posterior_bound, pure_epsilon
from holdfast.privacy.guarantee import Promise
from holdfast.privacy.parameters import format_exact, format_up, probability
from holdfast.wording.numbers import number


def posterior_paragraph(prior: Exact, promise: Promise | Exact) -> str:
    """The statement for a secret pair."""
    lower, upper = posterior_bound(prior, promise)
    low = Fraction(int(lower * 10000), 10000)
    return (
        "Take two tables that agree in every kept total, and a reader who is sure that one of them is the true one. If the reader gave the "
        f"first a probability of {format_exact(probability(prior, 'prior'))} before, then after seeing the publication it is "
        f"between {format_exact(low)} "
        f"and {format_up(upper, 4)}, whatever is published (odds within a factor of e to the power {number(pure_epsilon(promise))}). This "
        "is said of pairs of tables. It may be said of one person only where what is known about that person is independent of what is "
        "known about others."
    )
