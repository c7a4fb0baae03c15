"""What is promised: guarantees, conversions between kinds, calibration, and what several promises come to together.

The last, accounting, is loaded when first used: a release does not need it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.privacy.calibration import is_enough, pair_sigma_squared, paper_sigma_squared, simple_sigma_squared, tight_sigma_squared
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
from holdfast.privacy.guarantee import ChainFacts, Exposed, Guarantee, Promise, Relation
from holdfast.privacy.ledger import Ledger
from holdfast.privacy.secrets import Secrets

if TYPE_CHECKING:
    from holdfast.research.accounting.composition import Bound, Bounds, Composition, Part, compose
    from holdfast.research.accounting.conditioned import ConditionedLoss, conditioned_loss, paper_examples
    from holdfast.research.accounting.disjoint import Rate, parallel
    from holdfast.privacy.equal_parts import (
        optimal_composition,
        optimal_composition_bounds,
        optimal_composition_delta,
        optimal_composition_delta_bounds,
    )
    from holdfast.research.accounting.lattice_delta import lattice_gaussian_delta, lattice_gaussian_delta_bounds, one_sum_delta_bounds
    from holdfast.research.accounting.optimal import zcdp_delta_optimal, zcdp_epsilon_optimal
    from holdfast.research.accounting.posterior import equal_people_posterior, posterior_bound, posterior_bound_if_independent

__all__ = [
    "Bound",
    "Bounds",
    "ChainFacts",
    "Composition",
    "ConditionedLoss",
    "Exposed",
    "Guarantee",
    "Ledger",
    "Part",
    "Promise",
    "Rate",
    "Relation",
    "Secrets",
    "compose",
    "conditioned_loss",
    "discrete_gaussian_delta",
    "discrete_gaussian_delta_bounds",
    "equal_people_posterior",
    "is_enough",
    "lattice_gaussian_delta",
    "lattice_gaussian_delta_bounds",
    "one_sum_delta_bounds",
    "optimal_composition",
    "optimal_composition_bounds",
    "optimal_composition_delta",
    "optimal_composition_delta_bounds",
    "pair_sigma_squared",
    "paper_examples",
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


_ACCOUNTING = {
    "composition": ("Bound", "Bounds", "Composition", "Part", "compose"),
    "conditioned": ("ConditionedLoss", "conditioned_loss", "paper_examples"),
    "disjoint": ("Rate", "parallel"),
    "equal_parts": (
        "optimal_composition",
        "optimal_composition_bounds",
        "optimal_composition_delta",
        "optimal_composition_delta_bounds",
    ),
    "lattice_delta": ("lattice_gaussian_delta", "lattice_gaussian_delta_bounds", "one_sum_delta_bounds"),
    "optimal": ("zcdp_delta_optimal", "zcdp_epsilon_optimal"),
    "posterior": ("equal_people_posterior", "posterior_bound", "posterior_bound_if_independent"),
}


def __getattr__(name: str) -> object:
    for module, names in _ACCOUNTING.items():
        if name in names:
            return getattr(import_module(f"holdfast.research.accounting.{module}"), name)
    raise AttributeError(f"module 'holdfast.privacy' has no attribute {name!r}")
