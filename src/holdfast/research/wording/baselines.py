"""What can be said of a noisy table that was corrected afterwards."""

from __future__ import annotations

from holdfast.exact.formatting import format_exact
from holdfast.research.baselines.post_processing import PostProcessed

_NEAREST = {
    "l2": "to the nearest table with the true totals (in l2)",
    "nonnegative l2": "to the nearest table with the true totals and no negative count (in l2); this adds bias",
    "l1": "to a nearest table with the true totals (in l1)",
}


def post_processed_sentences(result: PostProcessed) -> str:
    """What was done and what is known of the budget."""
    known = (
        "the budget of the mechanism that made the noisy table"
        if result.epsilon_same_totals is None
        else f"epsilon = {format_exact(result.epsilon_same_totals)}"
    )
    return (
        f"A noisy table was corrected {_NEAREST[result.method]}. The correction uses the true totals, so it is not covered by the rule "
        f"that processing costs nothing. Between two tables with the same totals the promise is {known}. Between tables with other totals "
        "the budget is undetermined. Numbers are floating point."
    )
