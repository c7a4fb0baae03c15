"""What is promised: guarantees, conversions between kinds, and calibration."""

from holdfast.privacy.calibration import is_enough, pair_sigma_squared, paper_sigma_squared, simple_sigma_squared, tight_sigma_squared
from holdfast.privacy.conversions import (
    discrete_gaussian_delta,
    discrete_gaussian_delta_bounds,
    zcdp_delta,
    zcdp_delta_bounds,
    zcdp_epsilon,
    zcdp_epsilon_bounds,
)
from holdfast.privacy.guarantee import Exposed, Guarantee, Promise
from holdfast.privacy.secrets import Secrets, facts_of

__all__ = [
    "Exposed",
    "Guarantee",
    "Promise",
    "Secrets",
    "discrete_gaussian_delta",
    "discrete_gaussian_delta_bounds",
    "facts_of",
    "is_enough",
    "pair_sigma_squared",
    "paper_sigma_squared",
    "simple_sigma_squared",
    "tight_sigma_squared",
    "zcdp_delta",
    "zcdp_delta_bounds",
    "zcdp_epsilon",
    "zcdp_epsilon_bounds",
]
