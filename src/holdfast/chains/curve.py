"""How far a chain is from its law after t steps, estimated from meeting times.

Legend: pi_t the law of the chain after t steps, pi the law it aims at, L the lag, tau the meeting time (meeting.py), N pairs. With

    J_t = max(0, ceil((tau - L - t) / L)),        d_TV(pi_t, pi) <= E[J_t]

for every t at once. The curve is the average of J_t over N independent pairs. So it is an ESTIMATE OF AN UPPER BOUND, not a certificate:
its mean lies on the safe side, the figure itself has a Monte Carlo error, and slow pairs too rare to be among the N are not seen.

Why 3/N: if P[tau - L > t] were above 3/N, then all of N independent pairs would have met by t with probability below (1 - 3/N)^N < e^-3,
which is less than 5 %. So where no pair is left, "P[tau - L > t] <= 3/N" is wrong with probability e^-3 at most, and nothing smaller can be
said from N pairs. This also holds at the largest tau - L that was seen, although the pairs themselves chose that t: the law beyond the
largest of N has more than mass 3/N with probability at most (1 - 3/N)^N. It bounds a probability; E[J_t] is larger where pairs may need
more than one lag beyond t, which is why steps are recommended at twice the largest time (assessment.py).

A censored pair has a tau that is not known, and no upper bound follows from the others: then the curve refuses.

Reference: [BJV19]; figure 1 of [DGGY22] shows such curves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.meeting import Meetings
from holdfast.errors import InvalidParameter, NoMeeting
from holdfast.exact.parameters import exact_integer

ONE_SIDED_95 = 1.645
"""95 % quantile of the standard normal law."""


@dataclass(frozen=True, eq=False)
class TotalVariationCurve:
    """The estimated bound of d_TV(pi_t, pi) as a function of the step t; see the module's text for what it is and is not."""

    meetings: Meetings

    def bound(self, step: int) -> float:
        """The average of J_t: an unbiased estimate of an upper bound of d_TV(pi_t, pi). NoMeeting if a pair is censored."""
        check_all_met(self.meetings)
        return self._mean(step)

    def standard_error(self, step: int) -> float:
        """Standard error of `bound`. It is 0 if all pairs agree, which does not mean that the bound is known: use `upper`."""
        check_all_met(self.meetings)
        return float(np.std(self._lags_left(step), ddof=1)) / math.sqrt(self.meetings.pairs)

    def upper(self, step: int) -> float:
        """A 95 % upper figure: bound + 1.645 standard errors (normal approximation), never below 3/N."""
        return max(self.bound(step) + ONE_SIDED_95 * self.standard_error(step), 3 / self.meetings.pairs)

    def lower_envelope_if_met_at_cap(self, step: int) -> float:
        """NOT A BOUND: what `bound` would be if every censored pair had met with its last step. The truth about them is worse.

        For figures that show how far a run that gave no bound has come. Without censored pairs it equals `bound`.
        """
        return self._mean(step)

    def points(self, count: int) -> NDArray[np.int64]:
        """At most `count` steps for a figure, evenly from 0 to the largest tau - L, where the estimate is 0 (if all pairs met)."""
        count = exact_integer(count, "count")
        if count < 2:
            raise InvalidParameter(f"A curve has 2 points or more. Got count {count}.")
        last = int(self.meetings.coupled_steps.max())
        return np.unique(np.array([last * place // (count - 1) for place in range(count)], dtype=np.int64))

    def _mean(self, step: int) -> float:
        return int(self._lags_left(step).sum()) / self.meetings.pairs  # of whole numbers: rounded once

    def _lags_left(self, step: int) -> NDArray[np.int64]:
        """J_t of each pair."""
        step = exact_integer(step, "step")
        if step < 0:
            raise InvalidParameter(f"A step is 0 or more. Got {step}.")
        return np.maximum(0, -((step - self.meetings.coupled_steps) // self.meetings.lag))


def check_all_met(meetings: Meetings) -> None:
    """NoMeeting if a pair is censored: no bound follows from the other pairs."""
    if meetings.censored:
        raise NoMeeting(
            f"{meetings.censored} of {meetings.pairs} pairs of {meetings.kernel} did not meet within {meetings.most} steps, so no bound "
            "was obtained. Allow more steps, or use another kernel."
        )
