"""Linear invariants of real-valued answers and how far one person can move them, exact: the base of `hf.answer`."""

from holdfast.subspace.sensitivities import Neighbours, Sensitivities, same_invariants_sensitivities
from holdfast.subspace.spaces import Invariants

__all__ = ["Invariants", "Neighbours", "Sensitivities", "same_invariants_sensitivities"]
