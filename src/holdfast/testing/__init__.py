"""Tools for testing samplers, ours and yours: chosen words, brackets by enumeration, goodness of fit with a failure budget.

In order of strength: enumerate (`all_words`, `bracket_inverse_cdf`, `check_brackets`; `worst_loss` of a law drawn step by step), then
compare statistically (`check_fit`). The statistical part needs SciPy: `pip install holdfast[testing]`.
"""

from holdfast.testing.brackets import bracket_inverse_cdf, check_brackets
from holdfast.testing.fit import (
    ALPHA,
    CHECKS,
    SUITE_FAILURE_BUDGET,
    FitResult,
    check_fit,
    check_fit_categories,
    chi_square_p_value,
    fit_p_value,
    fits,
    two_sample_p_value,
)
from holdfast.testing.loss import SteppedLaw, WorstLoss, renyi_divergence, worst_loss
from holdfast.testing.words import ListedWords, WordsExhausted, all_words

__all__ = [
    "ALPHA",
    "CHECKS",
    "SUITE_FAILURE_BUDGET",
    "FitResult",
    "ListedWords",
    "SteppedLaw",
    "WordsExhausted",
    "WorstLoss",
    "all_words",
    "bracket_inverse_cdf",
    "check_brackets",
    "check_fit",
    "check_fit_categories",
    "chi_square_p_value",
    "fit_p_value",
    "fits",
    "renyi_divergence",
    "two_sample_p_value",
    "worst_loss",
]
