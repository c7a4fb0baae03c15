"""Real-valued answers under linear invariants in floating point, as [GGY22] has them: for research. Releases are on a grid.

projection and extension of any mechanism, a user's own included; the guarantee of Definitions 2.5 and 2.6 with its operations;
sensitivities of linear queries, exact; noise shaped after a linear query (correlated Gaussian, K-norm), beside a lower bound of the error.
"""

from holdfast.research.subspace.additive import (
    Additive,
    Calibration,
    Extended,
    Floating,
    Projected,
    ProjectedDoubleGeometric,
    ProjectedStudent,
    extended_gaussian,
    extended_laplace,
    projected_gaussian,
    projected_laplace,
)
from holdfast.research.subspace.answer import FloatAnswer, FloatingMechanism, floating_answer, floating_form, generator, read_query
from holdfast.research.subspace.correlated import CorrelatedGaussian, Shaped, shaped_query
from holdfast.research.subspace.design import enclosing_ellipsoid, least_squared_error, optimal_covariance
from holdfast.research.subspace.guarantee import FiniteMechanism, SubspaceExposure, SubspaceGuarantee, joint_exposure, subspace_paragraph
from holdfast.research.subspace.knorm import KNorm
from holdfast.research.subspace.noise import DoubleGeometricNoise, GaussianNoise, LaplaceNoise, Noise, StudentNoise
from holdfast.research.subspace.query import Changes, Query, prefix_sums, ranges
from holdfast.research.subspace.spaces import InvariantSpace, Subspace, linear_sensitivities
from holdfast.subspace import Sensitivities, same_invariants_sensitivities
from holdfast.wording.dispatch import describe_as

__all__ = [
    "Additive",
    "Calibration",
    "Changes",
    "CorrelatedGaussian",
    "DoubleGeometricNoise",
    "Extended",
    "FiniteMechanism",
    "FloatAnswer",
    "Floating",
    "FloatingMechanism",
    "GaussianNoise",
    "InvariantSpace",
    "KNorm",
    "LaplaceNoise",
    "Noise",
    "Projected",
    "ProjectedDoubleGeometric",
    "ProjectedStudent",
    "Query",
    "Sensitivities",
    "Shaped",
    "StudentNoise",
    "Subspace",
    "SubspaceExposure",
    "SubspaceGuarantee",
    "enclosing_ellipsoid",
    "extended_gaussian",
    "extended_laplace",
    "floating_answer",
    "floating_form",
    "generator",
    "joint_exposure",
    "least_squared_error",
    "linear_sensitivities",
    "optimal_covariance",
    "prefix_sums",
    "projected_gaussian",
    "projected_laplace",
    "ranges",
    "read_query",
    "same_invariants_sensitivities",
    "shaped_query",
]

describe_as(SubspaceGuarantee, subspace_paragraph)
