"""What is promised: guarantees, conversions between kinds, calibration, and what several promises come to together."""

from holdfast.privacy.calibration import is_enough, pair_sigma_squared, paper_sigma_squared, simple_sigma_squared, tight_sigma_squared
from holdfast.privacy.composition import Bound, Bounds, Composition, Part, compose
from holdfast.privacy.conversions import (
    discrete_gaussian_delta,
    discrete_gaussian_delta_bounds,
    zcdp_delta,
    zcdp_delta_bounds,
    zcdp_delta_closed_form,
    zcdp_delta_intermediate,
    zcdp_delta_standard,
    zcdp_epsilon,
    zcdp_epsilon_bounds,
)
from holdfast.privacy.disjoint import Rate, parallel
from holdfast.privacy.equal_parts import (
    optimal_composition,
    optimal_composition_bounds,
    optimal_composition_delta,
    optimal_composition_delta_bounds,
)
from holdfast.privacy.guarantee import ChainFacts, Exposed, Guarantee, Promise, Relation
from holdfast.privacy.lattice_delta import lattice_gaussian_delta, lattice_gaussian_delta_bounds, one_sum_delta_bounds
from holdfast.privacy.ledger import Ledger
from holdfast.privacy.optimal import zcdp_delta_optimal, zcdp_epsilon_optimal
from holdfast.privacy.posterior import equal_people_posterior, posterior_bound, posterior_bound_if_independent
from holdfast.privacy.secrets import Secrets, facts_of

__all__ = [
    "Bound",
    "Bounds",
    "ChainFacts",
    "Composition",
    "Exposed",
    "Guarantee",
    "Ledger",
    "Part",
    "Promise",
    "Rate",
    "Relation",
    "Secrets",
    "compose",
    "discrete_gaussian_delta",
    "discrete_gaussian_delta_bounds",
    "equal_people_posterior",
    "facts_of",
    "is_enough",
    "lattice_gaussian_delta",
    "lattice_gaussian_delta_bounds",
    "one_sum_delta_bounds",
    "optimal_composition",
    "optimal_composition_bounds",
    "optimal_composition_delta",
    "optimal_composition_delta_bounds",
    "pair_sigma_squared",
    "paper_sigma_squared",
    "parallel",
    "posterior_bound",
    "posterior_bound_if_independent",
    "simple_sigma_squared",
    "tight_sigma_squared",
    "zcdp_delta",
    "zcdp_delta_bounds",
    "zcdp_delta_closed_form",
    "zcdp_delta_intermediate",
    "zcdp_delta_optimal",
    "zcdp_delta_standard",
    "zcdp_epsilon",
    "zcdp_epsilon_bounds",
    "zcdp_epsilon_optimal",
]
