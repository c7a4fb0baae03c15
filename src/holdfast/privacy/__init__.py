"""What is promised: guarantees, conversions between kinds, calibration, and the best composition of equal promises."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from holdfast.privacy.calibration import is_enough, pair_sigma_squared, paper_sigma_squared, simple_sigma_squared, tight_sigma_squared
from holdfast.privacy.conversions import (
    discrete_gaussian_delta,
    discrete_gaussian_delta_bounds,
    zcdp_delta,
    zcdp_delta_bounds,
    zcdp_epsilon,
    zcdp_epsilon_bounds,
)
from holdfast.privacy.equal_parts import (
    optimal_composition,
    optimal_composition_bounds,
    optimal_composition_delta,
    optimal_composition_delta_bounds,
)
from holdfast.privacy.guarantee import ChainFacts, Exposed, Guarantee, Promise, Relation, Secrets

if TYPE_CHECKING:
    from holdfast.ledger import Ledger

__all__ = [
    "ChainFacts",
    "Exposed",
    "Guarantee",
    "Ledger",
    "Promise",
    "Relation",
    "Secrets",
    "discrete_gaussian_delta",
    "discrete_gaussian_delta_bounds",
    "is_enough",
    "optimal_composition",
    "optimal_composition_bounds",
    "optimal_composition_delta",
    "optimal_composition_delta_bounds",
    "pair_sigma_squared",
    "paper_sigma_squared",
    "simple_sigma_squared",
    "tight_sigma_squared",
    "zcdp_delta",
    "zcdp_delta_bounds",
    "zcdp_epsilon",
    "zcdp_epsilon_bounds",
]


def __getattr__(name: str) -> object:
    """`privacy.Ledger`, a public name: the ledger is a room above this one and is loaded when asked for."""
    if name != "Ledger":
        raise AttributeError(f"module 'holdfast.privacy' has no attribute {name!r}")
    return import_module("holdfast.ledger").Ledger
