"""One answer in floating point: for research, marked as such, and never a release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal, NoReturn, Protocol

import numpy as np

from holdfast.display import html_table
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.invariants.constraints import Areas, Linear, Margin, Subset
from holdfast.lattices import lattice
from holdfast.mechanisms import ExtendedGaussian, ExtendedLaplace, ProjectedGaussian, ProjectedLaplace
from holdfast.mechanisms.mechanism import Mechanism
from holdfast.mechanisms.subspace import SubspaceMechanism
from holdfast.randomness import NoiseKey
from holdfast.research.subspace.additive import Floating, extended_gaussian, extended_laplace, projected_gaussian, projected_laplace
from holdfast.research.subspace.guarantee import SubspaceGuarantee
from holdfast.research.subspace.query import Query
from holdfast.research.subspace.spaces import Floats, InvariantSpace, to_floats
from holdfast.subspace.sensitivities import Neighbours, Sensitivities, read_sensitivity
from holdfast.subspace.spaces import read_matrix
from holdfast.tables import Table, Universe
from holdfast.wording.answers import no_mechanism

RESEARCH_ONLY = "floating point, research only"
REFUSED = (
    "This answer was computed in floating point, where rounding can give the true answers away: it is for research, and is neither saved, "
    "published nor booked. Use hf.answer, which publishes whole multiples of a power of two."
)


class FloatingMechanism(Protocol):
    """A mechanism that has a form in floating point."""

    @property
    def norm(self) -> str:
        """ "l1" or "l2": how one number given as sensitivity is meant."""

    def floating(self, query: Query) -> Floating: ...


@dataclass(frozen=True, eq=False, repr=False)
class FloatAnswer:
    """What a mechanism of [GGY22] answers, taken literally: values in floating point. Not a release: `save` refuses.

    Guarantees:  `guarantee` is that of the same mechanism in real numbers. The bits of `values` do not have it ([theory T91]). The
                 invariants hold up to rounding.
    """

    values: Floats
    law: Floating
    """What was drawn from: its covariance and expected error are public."""
    basis: str
    """Which orthonormal basis of the null space was used."""
    status: ClassVar[Literal["floating point"]] = "floating point"
    notice: ClassVar[str] = RESEARCH_ONLY

    @property
    def guarantee(self) -> SubspaceGuarantee:
        return self.law.guarantee

    def save(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: this is not a release."""
        raise InvalidParameter(REFUSED)

    def __repr__(self) -> str:
        return f"FloatAnswer({len(self.values)} answers by {self.law.name}; {RESEARCH_ONLY}; {self.guarantee!r})"

    def _repr_html_(self) -> str:
        return html_table(f"Answers: {RESEARCH_ONLY}", self.guarantee.to_fields().items())


def floating_answer(
    values: Any,
    histogram: Any = None,
    *,
    mechanism: SubspaceMechanism | FloatingMechanism,
    keep: Any = (),
    sensitivity: Sensitivities | Exact | None = None,
    neighbours: Neighbours = "replace-one",
    universe: Universe | None = None,
    key: NoiseKey | None = None,
) -> FloatAnswer:
    """Answer once by a mechanism of [GGY22], taken literally: in floating point, for research.

    Given:       as for `hf.answer`: answers with their sensitivity in the norm of the mechanism, or the matrix of a linear query with a
                 histogram. `keep`: a matrix, or constraints such as hf.margin over a `universe`.
    Guarantees:  what comes back is no release: it cannot be saved or charged. Nothing here reaches a ledger.
    """
    counts = histogram.counts if isinstance(histogram, Table) else histogram
    norm, rows = getattr(mechanism, "norm", "l2"), _as_matrix(keep, universe)
    answers, query = read_query(values, counts, keep=rows, norm=norm, sensitivity=sensitivity, neighbours=neighbours)
    law = floating_form(mechanism, query)
    return FloatAnswer(law.answers(answers, 1, generator(key))[0], law, query.invariants.basis_name)


def floating_form(mechanism: SubspaceMechanism | FloatingMechanism, query: Query) -> Floating:
    """What a mechanism does to a query in floating point, made from public facts."""
    if isinstance(mechanism, SubspaceMechanism):
        return _paper_form(mechanism, query)
    if isinstance(mechanism, type) or not (isinstance(mechanism, Mechanism) or hasattr(mechanism, "floating")):
        raise InvalidParameter(no_mechanism(mechanism), field="mechanism")
    if not hasattr(mechanism, "floating"):
        raise InvalidParameter(
            f"{type(mechanism).__name__} has no form in floating point. Use ProjectedLaplace, ProjectedGaussian, ExtendedLaplace, "
            "ExtendedGaussian, CorrelatedGaussian, KNorm, or research.Projected(...) for a mechanism of your own.",
            field="mechanism",
        )
    return mechanism.floating(query)


def _paper_form(mechanism: SubspaceMechanism, query: Query) -> Floating:
    """[GGY22] Theorem 3.1 for projected noise, Theorem 3.3 for extended noise."""
    match mechanism:
        case ProjectedLaplace():
            return projected_laplace(query, mechanism.epsilon)
        case ExtendedLaplace():
            return extended_laplace(query, mechanism.epsilon)
        case ProjectedGaussian():
            return projected_gaussian(query, *_pair(mechanism), mechanism.calibration)
        case ExtendedGaussian():
            return extended_gaussian(query, *_pair(mechanism), mechanism.calibration)
    raise InvalidParameter(f"{type(mechanism).__name__} has no form in floating point.", field="mechanism")


def _pair(mechanism: ProjectedGaussian | ExtendedGaussian) -> tuple[Fraction, Fraction]:
    if mechanism.epsilon is None or mechanism.delta is None:
        raise InvalidParameter("In floating point a Gaussian is calibrated to epsilon and delta. Give both, and no rho.")
    return mechanism.epsilon, mechanism.delta


def _as_matrix(invariants: Any, universe: Universe | None) -> Any:
    """Constraints over a universe as rows; a matrix as it is."""
    stated = [invariants] if isinstance(invariants, Margin | Subset | Areas | Linear) else invariants
    if not isinstance(stated, Sequence) or not all(isinstance(given, Margin | Subset | Areas | Linear) for given in stated) or not stated:
        return invariants
    if universe is None:
        raise InvalidParameter("Constraints are about a universe. Give it, or give a matrix of invariants.", field="universe")
    return lattice(universe, stated).matrix.toarray().tolist()


def generator(key: NoiseKey | None) -> np.random.Generator:
    """A NumPy generator, begun by words of this key, or by the operating system. It is not a cryptographic one."""
    if key is None:
        return np.random.default_rng()
    return np.random.default_rng(key.stream("floating answer").take(8).tolist())


def read_query(
    values: Any,
    histogram: Any = None,
    *,
    keep: Any,
    norm: str = "l2",
    sensitivity: Sensitivities | Exact | None = None,
    neighbours: Neighbours = "replace-one",
) -> tuple[Floats, Query]:
    """The true answers in floats and the public facts of the query, from what a user gives.

    Given:       `values`: the answers; or, with a histogram (how many people there are of each kind), the rational matrix of a linear
                 query, whose sensitivities are then computed. `sensitivity`: for answers; an exact number in the mechanism's norm, or
                 Sensitivities.
    """
    if histogram is not None:
        if sensitivity is not None:
            raise InvalidParameter(
                "The sensitivity of a linear query is computed from its matrix. Leave `sensitivity` out.", field="sensitivity"
            )
        matrix = read_matrix(values, "query_matrix")
        query = Query.linear(matrix, as_invariants(keep, int(matrix.nrows())), neighbours)
        counts = finite(histogram, int(matrix.ncols()), "histogram")
        if (counts < 0).any() or (counts != np.rint(counts)).any():
            raise InvalidParameter(
                "The histogram holds whole numbers, zero or more: how many people there are of each kind.", field="histogram"
            )
        return to_floats(matrix) @ counts, query
    found = finite(values, None, "values")
    if sensitivity is None:
        stated = Sensitivities(neighbours=neighbours)
    elif isinstance(sensitivity, Sensitivities):
        stated = sensitivity
    else:
        number = read_sensitivity(sensitivity)
        stated = Sensitivities(neighbours=neighbours, **({"l1": number} if norm == "l1" else {"l2_squared": number**2}))
    return found, Query(as_invariants(keep, len(found)), stated)


def as_invariants(invariants: Any, cells: int) -> InvariantSpace:
    """C over so many answers; None stands for none."""
    found = invariants if isinstance(invariants, InvariantSpace) else InvariantSpace([] if invariants is None else invariants, cells)
    if found.cells != cells:
        raise InvalidParameter(f"The invariants are over {found.cells} answers; there are {cells}. Give one column for each answer.")
    return found


def finite(values: Any, length: int | None, name: str) -> Floats:
    """A list of finite numbers; the message shows none of them."""
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter(f"{name} takes numbers, one for each answer. Got something else.", field=name) from None
    if found.ndim != 1 or not found.size or (length is not None and len(found) != length):
        raise InvalidParameter(f"{name} takes a list of {length or 'numbers, at least one'}. Got the shape {found.shape}.", field=name)
    if not np.isfinite(found).all():
        raise InvalidParameter(f"{name} holds numbers that are not finite. Correct the query: every answer must be a number.", field=name)
    return found
