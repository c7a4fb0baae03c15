"""Real-valued answers under linear invariants in floating point, as [GGY22] has them: for research. Releases are on a grid.

projection and extension of any mechanism, a user's own included; the guarantee of Definitions 2.5 and 2.6 with its operations;
sensitivities of linear queries, exact.
"""

from holdfast.subspace.additive import (
    Additive,
    Calibration,
    Floating,
    ProjectedDoubleGeometric,
    extended_gaussian,
    extended_laplace,
    projected_gaussian,
    projected_laplace,
)
from holdfast.subspace.answer import FloatAnswer, FloatingMechanism, floating_answer, generator, read_query
from holdfast.subspace.finite import FiniteMechanism
from holdfast.subspace.guarantee import SubspaceExposure, SubspaceGuarantee, joint_exposure
from holdfast.subspace.noise import DoubleGeometricNoise, GaussianNoise, LaplaceNoise, Noise
from holdfast.subspace.own import Extended, Projected
from holdfast.subspace.query import Query, Sensitivities, linear_sensitivities
from holdfast.subspace.spaces import Invariants, Subspace

__all__ = [
    "Additive",
    "Calibration",
    "DoubleGeometricNoise",
    "Extended",
    "FiniteMechanism",
    "FloatAnswer",
    "Floating",
    "FloatingMechanism",
    "GaussianNoise",
    "Invariants",
    "LaplaceNoise",
    "Noise",
    "Projected",
    "ProjectedDoubleGeometric",
    "Query",
    "Sensitivities",
    "Subspace",
    "SubspaceExposure",
    "SubspaceGuarantee",
    "extended_gaussian",
    "extended_laplace",
    "floating_answer",
    "generator",
    "joint_exposure",
    "linear_sensitivities",
    "projected_gaussian",
    "projected_laplace",
    "read_query",
]
