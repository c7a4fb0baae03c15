"""The promises of Definitions 2.5 and 2.6 of [GGY22] as values: what may be done with them, and how they are said.

    V-subspace (epsilon, delta):  P[Pi_V M(x) in S] <= e^epsilon P[Pi_V M(x') in S] + delta for neighbours x, x' and every S in V
    induced by C:                 that for V = N, the null space of C, and C M(x) = C A(x) always

Neighbours may differ in their invariants. What is said is about the part of the publication in V; of the rest nothing is promised, and
where C is kept that part is published as it is. In real numbers: a computation in floating point has it up to rounding, and rounding is
known to give answers away ([theory T91]).

`FiniteMechanism` is the slow and obvious way to see what such a promise says: finitely many outcomes, in fractions. It is there to check,
by going through all outcomes, what is claimed here and in [theory T91], [theory T93]; and for small examples of research.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from operator import and_
from typing import Any, Literal, TypeAlias

from holdfast.display import count_of
from holdfast.errors import InvalidParameter
from holdfast.exact.formatting import format_exact, format_short
from holdfast.exact.parameters import Exact, exact_fraction
from holdfast.privacy.parameters import not_negative
from holdfast.research.subspace.spaces import InvariantSpace, Subspace
from holdfast.subspace.sensitivities import NEIGHBOURS, Neighbours
from holdfast.subspace.spaces import read_matrix
from holdfast.wording.budget import WEAK_EPSILON

Basis: TypeAlias = Literal["proved", "declared"]
Status: TypeAlias = Literal["real numbers", "floating point", "estimated"]

STATUSES: tuple[Status, ...] = ("real numbers", "floating point", "estimated")
"""From the strongest to the weakest."""

Point: TypeAlias = tuple[Fraction, ...]
Query: TypeAlias = Callable[[Any], Point]
"""The true answers of a data set, exact."""

_NEIGHBOURS = {
    "replace-one": "one person's record, replaced by another's",
    "add-remove": "one person's record, which only one of them has",
}


@dataclass(frozen=True, kw_only=True, repr=False)
class SubspaceGuarantee:
    """An (epsilon, delta) about the part of a publication that lies in a subspace.

    Given:       epsilon >= 0 and 0 <= delta <= 1, exact. `space`: V. `kept`: the null space of the rows that are published exactly;
                 None where none are. `identities`: the null space of rows that are 0 in every data set, which publish nothing; they are
                 among the rows of `kept`. `neighbours`: one person's row is replaced, as in the paper, or added and removed.
                 `basis`: "declared" where it rests on what a user says of a sensitivity, or of a mechanism of their own.
                 `status`: "floating point" where what is published was computed in floats; then it is no promise to publish by.
                 "estimated" where a Markov chain made it besides, whose law is near the stated one by an unknown amount.
    Reference:   [GGY22] Definitions 2.5 and 2.6; [theory T91].
    """

    space: Subspace
    epsilon: Fraction
    delta: Fraction = Fraction(0)
    kept: Subspace | None = None
    identities: Subspace | None = None
    neighbours: Neighbours = "replace-one"
    basis: Basis = "proved"
    status: Status = "real numbers"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", not_negative(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", not_negative(self.delta, "delta"))
        if self.delta > 1:
            raise InvalidParameter(f"delta must be at most 1. Got {format_exact(self.delta)}.")
        if self.neighbours not in NEIGHBOURS:
            raise InvalidParameter(f"neighbours must be one of {', '.join(map(repr, NEIGHBOURS))}. Got {self.neighbours!r}.")
        if any(one is not None and one.cells != self.space.cells for one in (self.kept, self.identities)):
            raise InvalidParameter("The kept rows and the subspace are over different numbers of answers.")

    @classmethod
    def of_private(cls, cells: int, epsilon: Exact, delta: Exact = 0, **fields: Any) -> SubspaceGuarantee:
        """An ordinary (epsilon, delta)-private mechanism with n answers: V = R^n ([GGY22] Corollary 2.8 then is `within`)."""
        return cls(space=Subspace.whole(cells), epsilon=exact_fraction(epsilon, "epsilon"), delta=exact_fraction(delta, "delta"), **fields)

    @classmethod
    def induced_by(cls, invariants: InvariantSpace, epsilon: Exact, delta: Exact = 0, **fields: Any) -> SubspaceGuarantee:
        """Definition 2.6: V = N, and C is kept."""
        space = invariants.space
        return replace(cls.of_private(space.cells, epsilon, delta, **fields), space=space, kept=space)

    @property
    def is_induced(self) -> bool:
        """Whether it is that of Definition 2.6: all that is not kept is protected."""
        return self._kept_space == self.space & self._identities

    @property
    def _identities(self) -> Subspace:
        """Where the answers of all data sets lie."""
        return Subspace.whole(self.space.cells) if self.identities is None else self.identities

    @property
    def _kept_space(self) -> Subspace:
        return self._identities if self.kept is None else self.kept

    @property
    def kept_rows(self) -> int:
        """Independent rows that are published as they are, beyond identities."""
        return self._identities.dimension - self._kept_space.dimension

    @property
    def fixed_cells(self) -> tuple[int, ...]:
        """Answers that the kept rows publish as they are."""
        return _fixed_answers(self._kept_space, self._identities)

    def within(self, smaller: Subspace) -> SubspaceGuarantee:
        """Nestedness: the same numbers for every subspace of V ([GGY22] Proposition 2.7, Corollary 2.8)."""
        if not self.space.contains(smaller):
            raise InvalidParameter(
                f"Nothing is promised about a subspace that does not lie in the one of the promise ({self.space}). Take one inside it."
            )
        return replace(self, space=smaller)

    def beside(self, other: SubspaceGuarantee) -> SubspaceGuarantee:
        """Composition: both answers of one data set, drawn independently, for the query (A_1, A_2) and the rows of both.

        Guarantees:  epsilons and deltas add up ([GGY22] Proposition 2.9; with delta [theory T91]). What rows of both say together about
                     one query is more than each says: `joint_exposure`.
        """
        self._check_neighbours(other)
        space, kept, identities = (getattr(self, name).beside(getattr(other, name)) for name in ("space", "_kept_space", "_identities"))
        return self._join(other, (space, kept, identities), self.epsilon + other.epsilon, self.delta + other.delta)

    def mix(self, other: SubspaceGuarantee, weight: Exact) -> SubspaceGuarantee:
        """One of two mechanisms for the same answers, this one with probability `weight`, chosen without looking at the data.

        Given:       both keep the same rows. Rows that one of them keeps would be published as they are whenever it is chosen.
        Guarantees:  about V of both (their intersection): the larger epsilon, the mean of the deltas (the axiom of choice; [theory T91]).
        """
        self._check_neighbours(other)
        p = not_negative(weight, "weight")
        if p > 1:
            raise InvalidParameter(f"weight is a probability, between 0 and 1. Got {format_exact(p)}.")
        if self._kept_space != other._kept_space:
            raise InvalidParameter(
                "The two keep different rows. What only one of them keeps would be published as it is whenever that one is chosen, which "
                "no promise about always or never can say. Mix mechanisms that keep the same rows."
            )
        spaces = (self.space & other.space, self._kept_space, self._identities & other._identities)
        return self._join(other, spaces, max(self.epsilon, other.epsilon), p * self.delta + (1 - p) * other.delta)

    def processed(self, matrix: Any) -> SubspaceGuarantee:
        """Post-processing: T y is published in place of y, for a rational matrix T.

        Guarantees:  the same numbers about those combinations of T y that look at the part of y in V only, W = {w : T^T w in V}. Where all
                     rows of T are in V, W is everything, and T y is private in the ordinary sense, as is any function of Pi_V y.
        Reference:   [GGY22] section 2.3; [theory T91].
        """
        T = read_matrix(matrix, "matrix", self.space.cells)
        # the combinations w of T y with T^T w in the span of the kept rows are published as they are; those with T^T w = 0 are 0 always
        kept, identities = (Subspace(T.nrows(), rows.complement().pulled_back(T).vectors) for rows in (self._kept_space, self._identities))
        own, known = _unless_empty(kept, identities)
        return replace(self, space=self.space.pulled_back(T), kept=own, identities=known)

    def _join(
        self, other: SubspaceGuarantee, spaces: tuple[Subspace, Subspace, Subspace], epsilon: Fraction, delta: Fraction
    ) -> SubspaceGuarantee:
        space, kept, identities = spaces
        basis: Basis = "declared" if "declared" in (self.basis, other.basis) else "proved"
        status = max(self.status, other.status, key=STATUSES.index)
        own, known = _unless_empty(kept, identities)
        numbers = {"epsilon": epsilon, "delta": min(delta, Fraction(1))}
        return SubspaceGuarantee(space=space, kept=own, identities=known, neighbours=self.neighbours, basis=basis, status=status, **numbers)

    def _check_neighbours(self, other: SubspaceGuarantee) -> None:
        if self.neighbours != other.neighbours:
            raise InvalidParameter(
                f"One promise is for neighbours by {self.neighbours}, the other by {other.neighbours}: they are not added up. State both "
                "for the same neighbours."
            )

    def to_fields(self) -> dict[str, str | int]:
        """JSON-ready; nothing confidential is in it."""
        return {
            "kind": "subspace",
            "epsilon": format_exact(self.epsilon),
            "delta": format_exact(self.delta),
            "answers": self.space.cells,
            "protected_dimensions": self.space.dimension,
            "kept_rows": self.kept_rows,
            "neighbours": self.neighbours,
            "invariants_of_neighbours": "may differ",
            "basis": self.basis,
            "status": self.status,
        }

    def __repr__(self) -> str:
        said = ", ".join(f"{name} = {value}" for name, value in self.to_fields().items() if name != "kind")
        return f"SubspaceGuarantee({said})"


@dataclass(frozen=True)
class SubspaceExposure:
    """What the kept rows of several publications of ONE query say together. Public facts: structure, no values."""

    rows: int
    """Independent rows in all."""
    cells: tuple[int, ...]
    """Answers that they fix."""
    only_together: tuple[int, ...]
    """Those of them that no publication fixes alone."""


def joint_exposure(*guarantees: SubspaceGuarantee) -> SubspaceExposure:
    """What the rows kept by publications of the same answers fix together ([GGY22] after Proposition 2.9)."""
    if not guarantees:
        return SubspaceExposure(0, (), ())
    joint, identities = (reduce(and_, (getattr(one, name) for one in guarantees)) for name in ("_kept_space", "_identities"))
    alone = {cell for one in guarantees for cell in one.fixed_cells}
    cells = _fixed_answers(joint, identities)
    return SubspaceExposure(identities.dimension - joint.dimension, cells, tuple(cell for cell in cells if cell not in alone))


def _fixed_answers(kept: Subspace, identities: Subspace) -> tuple[int, ...]:
    """Answers that the rows of the first fix, and those of the second do not."""
    known = set(identities.fixed_cells)
    return tuple(cell for cell in kept.fixed_cells if cell not in known)


def _unless_empty(kept: Subspace, identities: Subspace) -> tuple[Subspace | None, Subspace | None]:
    """As a promise has them: None where there are no such rows."""
    return None if kept == identities else kept, identities if identities.normals.nrows() else None


@dataclass(frozen=True)
class FiniteMechanism:
    """For every data set a law on finitely many points.

    Given:       probabilities as fractions that add up to 1 for each data set (trusted).
    """

    laws: Mapping[Any, Mapping[Point, Fraction]]

    def map_output(self, change: Callable[[Any, Point], Point]) -> FiniteMechanism:
        """The mechanism that publishes change(x, y) in place of y."""
        made: dict[Hashable, dict[Point, Fraction]] = {}
        for x, law in self.laws.items():
            out: dict[Point, Fraction] = defaultdict(Fraction)
            for y, p in law.items():
                out[change(x, y)] += p
            made[x] = dict(out)
        return FiniteMechanism(made)

    def delta(self, factor: Fraction, neighbours: Iterable[tuple[Hashable, Hashable]], space: Subspace | None = None) -> Fraction:
        """The smallest delta with P[Pi_V M(x) in S] <= factor P[Pi_V M(x') in S] + delta for all these pairs, both ways, and all S.

        Law:  the largest sum over outcomes of (P - factor P')_+. Without a space V is everything: the ordinary promise.
        """
        seen = self if space is None else self.map_output(lambda _, y: space.project(y))
        return max(max(_excess(seen.laws[a], seen.laws[b], factor), _excess(seen.laws[b], seen.laws[a], factor)) for a, b in neighbours)

    def project(self, space: Subspace, query: Query) -> FiniteMechanism:
        """A + Pi_V (M - A)."""
        return self.map_output(lambda x, y: _sum(query(x), space.project(_sum(y, query(x), -1))))

    def extend(self, space: Subspace, query: Query) -> FiniteMechanism:
        """M + Pi_R A, R at a right angle to V, for M with values in V."""
        return self.map_output(lambda x, y: _sum(y, space.complement().project(query(x))))

    def beside(self, other: FiniteMechanism) -> FiniteMechanism:
        """Both, drawn independently."""
        return FiniteMechanism(
            {x: {y + z: p * q for y, p in law.items() for z, q in other.laws[x].items()} for x, law in self.laws.items()}
        )

    def mix(self, other: FiniteMechanism, weight: Fraction) -> FiniteMechanism:
        """This one with probability `weight`, else the other."""
        made: dict[Hashable, dict[Point, Fraction]] = {}
        for x in self.laws:
            out: dict[Point, Fraction] = defaultdict(Fraction)
            for law, part in ((self.laws[x], weight), (other.laws[x], 1 - weight)):
                for y, p in law.items():
                    out[y] += part * p
            made[x] = dict(out)
        return FiniteMechanism(made)

    def mean(self, x: Hashable) -> Point:
        """E M(x)."""
        law = self.laws[x]
        return tuple(sum((p * y[i] for y, p in law.items()), Fraction(0)) for i in range(len(next(iter(law)))))

    def squared_error(self, x: Hashable, answers: Point) -> Fraction:
        """E |M(x) - answers|_2^2."""
        return sum(
            (p * sum(((a - b) ** 2 for a, b in zip(y, answers, strict=True)), Fraction(0)) for y, p in self.laws[x].items()), Fraction(0)
        )


def _excess(first: Mapping[Point, Fraction], second: Mapping[Point, Fraction], factor: Fraction) -> Fraction:
    return sum((max(p - factor * second.get(y, Fraction(0)), Fraction(0)) for y, p in first.items()), Fraction(0))


def _sum(first: Point, second: Point, sign: int = 1) -> Point:
    return tuple(a + sign * b for a, b in zip(first, second, strict=True))


def subspace_paragraph(guarantee: SubspaceGuarantee) -> str:
    """What is protected, what is not, and that floats are for research."""
    space, rows = guarantee.space, guarantee.kept_rows
    extra = f", apart from a probability of at most {format_short(guarantee.delta)}" if guarantee.delta else ""
    sentences = [
        f"Of {count_of(space.cells, 'answer')}, the promise is about the part in {count_of(space.dimension, 'dimension')}"
        f"{' that the kept rows leave free' if rows and guarantee.is_induced else ''}. Between two data sets that differ in "
        f"{_NEIGHBOURS[guarantee.neighbours]}, the chance of any outcome for that part differs by a factor of at most e to the power "
        f"{format_short(guarantee.epsilon)}{extra}."
    ]
    if rows:
        fixed = guarantee.fixed_cells
        shown = f", and with them {count_of(len(fixed), 'answer')} as a whole" if fixed else ""
        sentences.append(
            f"The values of {count_of(rows, 'kept row')} are published as they are{shown}: nothing protects them, and the two "
            "may differ in them."
        )
    if guarantee.basis == "declared":
        sentences.append("This rests on the sensitivity, or on the promise of a mechanism, as it was declared. That was not checked.")
    if guarantee.epsilon > WEAK_EPSILON:
        sentences.append(f"WARNING: an epsilon above {WEAK_EPSILON} promises next to nothing.")
    if guarantee.status == "estimated":
        sentences.append("A Markov chain draws the noise. How near it comes to the law that has this promise is not known.")
    if guarantee.status != "real numbers":
        sentences.append(
            "Floating point, research only: this holds for real numbers. Rounded numbers can give the true answers away by their last "
            "digits."
        )
    return " ".join(sentences)
