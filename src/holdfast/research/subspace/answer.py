"""One answer in floating point: for research, marked as such, and never a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NoReturn, Protocol

import numpy as np

from holdfast.display import html_table
from holdfast.errors import InvalidParameter
from holdfast.exact.parameters import Exact
from holdfast.randomness import NoiseKey
from holdfast.research.subspace.additive import Floating
from holdfast.research.subspace.guarantee import Neighbours, SubspaceGuarantee
from holdfast.research.subspace.query import Query, Sensitivities, read_sensitivity
from holdfast.subspace.spaces import Floats, Invariants, read_matrix, to_floats

RESEARCH_ONLY = "floating point, research only"
REFUSED = (
    "This answer was computed in floating point, where rounding can give the true answers away: it is for research, and is neither saved, "
    "published nor booked. Use form='grid', which publishes whole multiples of a power of two."
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
        """Refused: this is no release."""
        raise InvalidParameter(REFUSED)

    def __repr__(self) -> str:
        return f"FloatAnswer({len(self.values)} answers by {self.law.name}; {RESEARCH_ONLY}; {self.guarantee!r})"

    def _repr_html_(self) -> str:
        return html_table(f"Answers: {RESEARCH_ONLY}", self.guarantee.to_fields().items())


def floating_answer(
    mechanism: FloatingMechanism, query: Query, values: Floats, *, key: NoiseKey | None = None, ledger: object = None
) -> FloatAnswer:
    """One answer by this mechanism.

    Given:       the true answers; a mechanism with a form in floating point. A ledger is refused: there is no promise to book.
    """
    if ledger is not None:
        raise InvalidParameter(REFUSED, field="ledger")
    if not hasattr(mechanism, "floating"):
        raise InvalidParameter(
            f"{type(mechanism).__name__} has no form in floating point. Use ProjectedLaplace, ProjectedGaussian, ExtendedLaplace, "
            "ExtendedGaussian, CorrelatedGaussian, KNorm, or hf.subspace.Projected(...) for a mechanism of your own."
        )
    law = mechanism.floating(query)
    return FloatAnswer(law.answers(values, 1, generator(key))[0], law, query.invariants.basis_name)


def generator(key: NoiseKey | None) -> np.random.Generator:
    """A NumPy generator, begun by words of this key, or by the operating system. It is not a cryptographic one."""
    if key is None:
        return np.random.default_rng()
    return np.random.default_rng(key.stream("floating answer").take(8).tolist())


def read_query(
    values: Any,
    histogram: Any = None,
    *,
    invariants: Any,
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
        query = Query.linear(matrix, as_invariants(invariants, int(matrix.nrows())), neighbours)
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
    return found, Query(as_invariants(invariants, len(found)), stated)


def as_invariants(invariants: Any, cells: int) -> Invariants:
    """C over so many answers; None stands for none."""
    found = invariants if isinstance(invariants, Invariants) else Invariants([] if invariants is None else invariants, cells)
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
