"""The estimated bound of d_TV(pi_t, pi) as a curve, with its error: for figures (chains/meeting.py says what it is and is not)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.chains.meeting import Meetings, check_all_met
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import exact_integer

ONE_SIDED_95 = 1.645
"""95 % quantile of the standard normal law."""


@dataclass(frozen=True, eq=False)
class TotalVariationCurve:
    """The estimated bound of d_TV(pi_t, pi) as a function of the step t."""

    meetings: Meetings

    def bound(self, step: int) -> float:
        """`Meetings.bound`. NoMeeting if a pair is censored."""
        return self.meetings.bound(step)

    def standard_error(self, step: int) -> float:
        """Standard error of `bound`. It is 0 if all pairs agree, which does not mean that the bound is known: use `upper`."""
        check_all_met(self.meetings)
        return float(np.std(self.meetings.lags_left(step), ddof=1)) / math.sqrt(self.meetings.pairs)

    def upper(self, step: int) -> float:
        """A 95 % upper figure: bound + 1.645 standard errors (normal approximation), never below 3/N."""
        return max(self.bound(step) + ONE_SIDED_95 * self.standard_error(step), 3 / self.meetings.pairs)

    def lower_envelope_if_met_at_cap(self, step: int) -> float:
        """NOT A BOUND: what `bound` would be if every censored pair had met with its last step. The truth about them is worse.

        For figures that show how far a run that gave no bound has come. Without censored pairs it equals `bound`.
        """
        return int(self.meetings.lags_left(step).sum()) / self.meetings.pairs

    def points(self, count: int) -> NDArray[np.int64]:
        """At most `count` steps for a figure, evenly from 0 to the largest tau - L, where the estimate is 0 (if all pairs met)."""
        count = exact_integer(count, "count")
        if count < 2:
            raise InvalidParameter(f"A curve has 2 points or more. Got count {count}.")
        last = int(self.meetings.coupled_steps.max())
        return np.unique(np.array([last * place // (count - 1) for place in range(count)], dtype=np.int64))
