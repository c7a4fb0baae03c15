"""Linear invariants of real-valued answers and how far one person can move them, exact: the base of `hf.answer`."""

from holdfast.subspace.sensitivities import Neighbours, Sensitivities, linear_sensitivities, same_invariants_sensitivities
from holdfast.subspace.spaces import Invariants, Subspace

__all__ = ["Invariants", "Neighbours", "Sensitivities", "Subspace", "linear_sensitivities", "same_invariants_sensitivities"]
