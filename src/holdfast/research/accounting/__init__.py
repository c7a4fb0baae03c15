"""What several promises come to together, and deltas and posteriors beyond what a release states."""

from holdfast.research.accounting.composition import Bound, Bounds, Composition, GaussianPromise, compose, composition_paragraph, parallel
from holdfast.research.accounting.conditioned import ConditionedLoss, conditioned_loss, paper_examples
from holdfast.research.accounting.lattice_delta import lattice_gaussian_delta, lattice_gaussian_delta_bounds, one_sum_delta_bounds
from holdfast.research.accounting.optimal import zcdp_delta_optimal, zcdp_epsilon_optimal
from holdfast.research.accounting.posterior import equal_people_posterior, posterior_bound, posterior_bound_if_independent
from holdfast.wording.dispatch import describe_as

__all__ = [
    "Bound",
    "Bounds",
    "Composition",
    "ConditionedLoss",
    "GaussianPromise",
    "compose",
    "conditioned_loss",
    "equal_people_posterior",
    "lattice_gaussian_delta",
    "lattice_gaussian_delta_bounds",
    "one_sum_delta_bounds",
    "paper_examples",
    "parallel",
    "posterior_bound",
    "posterior_bound_if_independent",
    "zcdp_delta_optimal",
    "zcdp_epsilon_optimal",
]

describe_as(Composition, composition_paragraph, takes_delta=True)
